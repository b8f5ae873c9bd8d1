"""Units of figures: which are the same but for a factor, and which side is better where a unit says it."""

from __future__ import annotations

import re
from typing import Literal

Better = Literal["higher", "lower"]

_DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
_SECONDS = {
    "ns": 1e-9, "nsec": 1e-9, "us": 1e-6, "\N{MICRO SIGN}s": 1e-6, "\u03bcs": 1e-6, "usec": 1e-6, "ms": 1e-3,
    "msec": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0, "second": 1.0, "min": 60.0, "ps": 1e-12,
    **{f"{prefix}second{s}": factor for prefix, factor in
       (("pico", 1e-12), ("nano", 1e-9), ("micro", 1e-6), ("milli", 1e-3)) for s in ("", "s")},
}  # fmt: skip
_BYTES = re.compile(r"([kmgtp]?|[kmgt]i)(b|bytes?|o)(?:/s|/sec|ps|\*s\^-1| s-1)")
_FLOPS = re.compile(r"([kmgtp]?)(?:flops?)(?:/s|/sec|ps)?")
_HERTZ = re.compile(r"([kmg]?)hz")
_EVENTS = re.compile(r"(?:1|events?|ops?|operations?|iterations?|messages?|transactions?)?(?:/s|/sec)")
#: What a metric without a unit is called, where lower is better.
_TIMES = re.compile(r"latency|(?:^|[_ -])(?:time|seconds|elapsed|duration|runtime|ns|us|ms)(?:$|[_ -])", re.IGNORECASE)


def known(unit: str) -> tuple[str, float] | None:
    """The base unit and the factor to it; None for an unknown unit.

    Base units are B/s, bit/s, flop/s, Hz, s and 1/s. A capital B is a byte and a small one a bit, as in Gb/s; a prefix
    is decimal, Ki and Mi are binary.
    """
    text = unit.strip()
    lower = text.lower()
    if lower in _SECONDS:
        return "s", _SECONDS[lower]
    if (match := _BYTES.fullmatch(lower)) is not None:
        factor = {**_DECIMAL, **_BINARY}[match[1]]
        is_bit = match[2] == "b" and "b" in text[: len(match[1]) + 1]
        return ("bit/s" if is_bit else "B/s"), factor
    if (match := _FLOPS.fullmatch(lower)) is not None:
        return "flop/s", _DECIMAL[match[1]]
    if (match := _HERTZ.fullmatch(lower)) is not None:
        return "Hz", _DECIMAL[match[1]]
    return ("1/s", 1.0) if _EVENTS.fullmatch(lower) else None


def factor(unit: str, into: str) -> float | None:
    """How many of `into` one `unit` is; None where they are not of one kind."""
    if unit == into:
        return 1.0
    own, other = known(unit), known(into)
    return own[1] / other[1] if own and other and own[0] == other[0] else None


def better(metric: str, unit: str) -> Better | None:
    """Which side is better by the unit, or by the name where that is no known one; None where neither says it."""
    kind = known(unit)
    if kind is not None:
        return "lower" if kind[0] == "s" else "higher"
    return "lower" if _TIMES.search(metric) else None
