"""The sentences of reports/texts.yaml by their keys, for every package that describes results, and an add-on's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from nodeprint.settings import checked_yaml, sources


@cache
def texts() -> dict[str, Any]:
    """All sentences, by their keys."""
    return dict(checked_yaml.read_own(sources.folder() / "reports" / "texts.yaml", "it is part of the project"))


def say(*keys: str, **values: object) -> str:
    """The sentence of reports/texts.yaml under `keys`, with its values. Raises KeyError where there is none."""
    return _filled(texts(), keys, values)


def of_addon(module: str) -> Callable[..., str]:
    """A function like `say` for the sentences in texts.yaml next to an add-on's `module` (its `__file__`)."""

    @cache
    def own() -> dict[str, Any]:
        return dict(checked_yaml.read_own(Path(module).with_name("texts.yaml"), "it is part of the add-on"))

    return lambda *keys, **values: _filled(own(), keys, values)


def _filled(sentences: dict[str, Any], keys: tuple[str, ...], values: dict[str, object]) -> str:
    node: Any = sentences
    for key in keys:
        node = node[key]
    return str(node).format(**values)
