"""The sentences of reports/texts.yaml by their keys, for every package that describes results, and an add-on's own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from nodeprint.settings import checked_yaml, sources

#: Formats of values by name: `{spread.runs:percent}`, `{nodes:counted node}`. The modules that know how a kind of value
#: is printed add theirs; the words behind the name are their further argument.
FORMATS: dict[str, Callable[..., str]] = {}


def counted(count: float, what: str, several: str = "") -> str:
    """`1 node`, `2 nodes`."""
    return f"{count:.10g} {what if count == 1 else several or f'{what}s'}"


def _counted(values: float | Collection[object], words: str) -> str:
    noun, _, several = words.partition("/")
    return counted(len(values) if isinstance(values, Collection) else values, noun, several)


FORMATS["counted"] = _counted


class _Sentences(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        name, blank, words = format_spec.partition(" ")  # words of a nested value may be empty, as a unit
        if name in FORMATS:
            return FORMATS[name](value, words) if blank else FORMATS[name](value)
        return format(value, format_spec)


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
    return _Sentences().vformat(str(node), (), values)
