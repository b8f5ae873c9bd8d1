"""Checks of public functions' arguments against their annotations: a wrong type raises one sentence."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from matplotlib.axes import Axes

from nodeprint.errors import NodeprintError, printable

T = TypeVar("T")
#: No name of a node, measurement or part is longer.
_LONGEST_NAME = 300
#: By annotated type what it is called, and which values are of it.
_KINDS: Mapping[Any, tuple[str, Callable[[Any], bool]]] = {
    str: ("a name", lambda value: isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST_NAME),
    int: ("a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool)),
    Axes: ("axes of matplotlib", lambda value: isinstance(value, Axes)),
    Path: ("a path", lambda value: isinstance(value, str | Path) and str(value) != "" and "\0" not in str(value)),
    type(None): ("left out", lambda value: value is None),
}


def checked(owner: type[T]) -> type[T]:
    """The class, whose public functions raise NodeprintError for an argument that is not of its annotated type."""
    for name, function in vars(owner).items():
        if not name.startswith("_") and inspect.isfunction(function):
            setattr(owner, name, _checked(function))
    return owner


def check(value: Any, kind: Any, name: str) -> None:
    """Raise NodeprintError where the argument `name` is not of this kind."""
    kinds = [_KINDS[member] for member in get_args(kind) or (kind,)]
    if not any(is_of(value) for _, is_of in kinds):
        shown = printable(repr(value), 60)
        raise NodeprintError(f"{shown} is given", key=name, advice=f"give {' or '.join(words for words, _ in kinds)}")


def _checked(function: Callable[..., T]) -> Callable[..., T]:
    signature, hints = inspect.signature(function), get_type_hints(function)

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> T:
        try:
            given = signature.bind(*args, **keywords).arguments
        except TypeError as error:
            advice = f"call it as {function.__name__}{signature}".replace("(self, ", "(")
            raise NodeprintError(str(error), key=function.__name__, advice=advice) from error
        for name, value in given.items():
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            for each in value if several else (value,) if name in hints else ():
                check(each, hints[name], name)
        return function(*args, **keywords)

    return call
