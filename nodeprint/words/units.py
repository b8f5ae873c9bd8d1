"""Values with their units."""

from __future__ import annotations

from collections.abc import Mapping

_UNITS: Mapping[str, tuple[float, str]] = {"Hz": (1e-9, "GHz"), "B/s": (1e-9, "GB/s"), "share": (100.0, "%")}


def said(value: float, unit: str) -> str:
    """A value with its unit; a time in the unit that keeps it short."""
    if unit == "ns":
        return duration(value)
    factor, name = _UNITS.get(unit, (1.0, "" if unit == "1" else unit))
    return f"{value * factor:.4g} {name}".rstrip()


def duration(ns: float) -> str:
    """A time: `61.3 ns`, `1.14 ms`, `2.5 s`."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(ns) >= 0.9995 * size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.4g} ns"


def both(share: float, ns: float) -> str:
    """A difference in percent and in ns."""
    return f"{share * 100:.2f} % or {ns:.2f} ns"


def counted(count: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {what}{'s' if count != 1 else ''}"
