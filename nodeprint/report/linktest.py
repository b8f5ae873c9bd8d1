"""What LinkTest's figure has beside a matrix: its values in microseconds on discrete colours, their histogram, and how
they were measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from nodeprint.report import formatting
from nodeprint.report.old_figures import Floats, three_digits
from nodeprint.report.scale import Scale

#: Colours of the matrix, which are the bars of the histogram.
_BINS = 16
_NS = 1e3


def is_linktest(header: Mapping[str, Any]) -> bool:
    """Whether a measurement is of messages between ranks."""
    return header.get("quantity") == "message"


def in_us(colours: Scale) -> Scale:
    """The scale of a measurement in ns as one of discrete colours in us."""
    return replace(colours, low=colours.low / _NS, high=colours.high / _NS, bins=_BINS)


def each_once(values: Floats, operation: str) -> Floats:
    """The values of pairs: one way apart from the other, else of the upper triangle."""
    start, end = np.indices(values.shape)
    counted = start != end if operation == "unidirectional" else start < end
    return values[np.isfinite(values) & counted]


def size_text(size: float | None) -> str:
    """A message's size: `1 MiB`, `64 KiB`, `1000 B`; empty where it is not known."""
    if not size:
        return ""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{formatting.thousands(int(size) // unit)} {name}"
    return f"{formatting.thousands(int(size))} B"


def figures(times: Mapping[str, float], size: float | None, operation: str, at_once: int) -> list[tuple[str, str]]:
    """Times (us) by name, each with its rate: of both messages where both ways are measured at once. Of several pairs
    at once also the rate of all together, at the mean time."""
    rows: list[tuple[str, str]] = []
    both = 2 if operation == "bidirectional" else 1
    for name, time in times.items():
        rows.append((name, f"{three_digits(time)} us"))
        if size:
            rows.append(("", f"{three_digits(both * size / time / _NS)} GB/s"))
    if size and at_once > 1:
        rows.append((f"{at_once} pairs", f"{three_digits(at_once * both * size / times['mean'] / _NS)} GB/s"))
    return rows


def facts(values: Floats, header: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Minimum, mean and maximum of `values` (from, to; us), as times and rates; the run's parameters."""
    operation, size = str(header.get("operation", "")), formatting.number(header.get("message_bytes"))
    finite = each_once(values, operation)
    times = {"minimum": float(finite.min()), "mean": float(finite.mean()), "maximum": float(finite.max())}
    arguments = dict(zip(header.get("arguments", ()), [*header.get("arguments", ())][1:], strict=False))
    transport = header.get("transport") or {}
    carried = " ".join(("/".join(transport.get("btl") or ()), str(transport.get("single_copy", "")))).strip()
    rows = figures(times, size, operation, int(header.get("parallel", 1)))
    rows += [
        ("pairs", formatting.thousands(int(finite.size))),
        ("message", size_text(size)),
        ("mode", operation),
        ("schedule", str(arguments.get("--schedule", ""))),
        ("order", "by seed" if "--mix" in arguments else ""),
        ("samples", str(header.get("batches", ""))),
        ("MPI", str(transport.get("library", ""))),
        ("transport", "/".join(transport.get("pml") or ())),
        ("", carried),
    ]
    return tuple((name, text) for name, text in rows if text)
