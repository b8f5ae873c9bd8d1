"""The sentences of reports/texts.yaml by their keys, for every room that says something of what was measured."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from nodeprint.settings import sources


@cache
def texts() -> dict[str, Any]:
    """All sentences, by their keys."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # by libyaml, an eighth of the time
    text = (sources.folder() / "reports" / "texts.yaml").read_text(encoding="utf-8")
    return dict(yaml.load(text, loader))


def say(*keys: str, **values: object) -> str:
    """The sentence of reports/texts.yaml under `keys`, with its values. Raises KeyError where there is none."""
    node: Any = texts()
    for key in keys:
        node = node[key]
    return str(node).format(**values)
