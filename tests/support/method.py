"""The pages of docs/method/ on the verdict, for tests that hold their numbers against the code."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module

from tests.support.real_parts import ROOT

_WORDS = {0.25: "a quarter", 0.5: "half"} | dict(
    enumerate(("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"))
)


@lru_cache
def text() -> str:
    """All of it in one line."""
    return " ".join((ROOT / "docs/method/verdict.md").read_text().split())


def constants(room: str) -> Iterator[tuple[str, str, float]]:
    """Of a room the module, name and value of each constant that docs/method/constants.md has."""
    page = (ROOT / "docs/method/constants.md").read_text()
    for module, names, values in re.findall(rf"^\| `{room}/(\w+)\.([\w, ]+)` \| ([^|]+) \|", page, re.MULTILINE):
        for name, value in zip(names.split(", "), values.split(", "), strict=True):
            yield f"nodeprint.{room}.{module}", name, literal_eval(value.strip())


def in_code(module: str, name: str) -> float:
    """A constant of the code."""
    return float(getattr(import_module(module), name))


def word(number: float) -> str:
    """A number as the text has small ones."""
    return _WORDS.get(number, f"{number:g}")


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.6g}%"
