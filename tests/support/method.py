"""The text of docs/method/verdict.md, for tests that hold its numbers against the code."""

from __future__ import annotations

from functools import lru_cache

from tests.support.real_parts import ROOT

_WORDS = {0.25: "a quarter", 0.5: "half"} | dict(
    enumerate(("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"))
)


@lru_cache
def text() -> str:
    """All of it in one line."""
    return " ".join((ROOT / "docs/method/verdict.md").read_text().split())


def word(number: float) -> str:
    """A number as the text has small ones."""
    return _WORDS.get(number, f"{number:g}")


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.6g} %"
