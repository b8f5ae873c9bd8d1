"""The sentences of reports/texts.yaml by their keys, for every package that describes results."""

from __future__ import annotations

from functools import cache
from typing import Any

from nodeprint.settings import checked_yaml, sources


@cache
def texts() -> dict[str, Any]:
    """All sentences, by their keys."""
    return dict(checked_yaml.read_own(sources.folder() / "reports" / "texts.yaml", "it is part of the project"))


def say(*keys: str, **values: object) -> str:
    """The sentence of reports/texts.yaml under `keys`, with its values. Raises KeyError where there is none."""
    node: Any = texts()
    for key in keys:
        node = node[key]
    return str(node).format(**values)
