"""What LinkTest's figure has beside a matrix: its values in microseconds on discrete colours, their histogram, and how
they were measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nodeprint.report import scale, words
from nodeprint.report.figures import Bar, Floats, Histogram, Tick, three_digits
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


def histogram(values: Floats, colours: Scale) -> Histogram:
    """The bars of `values` (us, NaN left out), in the colours of the matrix."""
    finite = values[np.isfinite(values)]
    part = (finite - colours.low) / (colours.high - colours.low)
    counts = np.bincount(np.clip((part * colours.bins).astype(int), 0, colours.bins - 1), minlength=colours.bins)
    middles = colours.low + (np.arange(colours.bins) + 0.5) / colours.bins * (colours.high - colours.low)
    palette = scale.palette(colours.map)
    bars = tuple(
        Bar(float(count / max(counts.max(), 1)), "#{:02x}{:02x}{:02x}".format(*palette[entry]))
        for count, entry in zip(counts.tolist(), colours.index(middles).tolist(), strict=True)
    )
    ticks = tuple(Tick(at, text) for at, text in colours.ticks(4))
    return Histogram(bars, ticks, f"{words.thousands(int(counts.max()))} pairs")


def facts(values: Floats, header: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Minimum, mean and maximum of `values` (us, each pair twice or once), as times and rates; the run's parameters."""
    finite = values[np.isfinite(values) & ~np.eye(len(values), dtype=bool)]
    size = words.number(header.get("message_bytes"))
    rows = []
    for name, value in (("minimum", finite.min()), ("mean", finite.mean()), ("maximum", finite.max())):
        rate = f", {three_digits(size / float(value) / _NS)} GB/s" if size else ""
        rows.append((name, f"{three_digits(float(value))} us{rate}"))
    arguments = dict(zip(header.get("arguments", ()), [*header.get("arguments", ())][1:], strict=False))
    transport = header.get("transport") or {}
    carried = " ".join(("/".join(transport.get("btl") or ()), str(transport.get("single_copy", "")))).strip()
    rows += [
        ("pairs", words.thousands(int(finite.size) // (1 if header.get("directed") else 2))),
        ("message", f"{size:,.0f} B".replace(",", " ") if size else ""),
        ("mode", str(header.get("operation", ""))),
        ("schedule", str(arguments.get("--schedule", ""))),
        ("samples", str(header.get("batches", ""))),
        ("MPI", str(transport.get("library", ""))),
        ("transport", "/".join(transport.get("pml") or ())),
        ("", carried),
    ]
    return tuple((name, text) for name, text in rows if text)
