"""How values are distributed: shapes by class, bars, and the density of pairs of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodeprint.order_statistics import finite_median, quantile
from nodeprint.report import scale
from nodeprint.report.drawing import HAIR, INK, QUIET, SMALL, WASH, Drawing
from nodeprint.report.old_figures import (
    PAGE,
    Column,
    Figure,
    Floats,
    finished,
    pixels,
)
from nodeprint.report.scale import Scale


def shapes(classes: Sequence[tuple[str, Floats, Floats]], *, name: str, caption: str, width: float = PAGE) -> Figure:
    """For each class (name, values of the node, values of its peers), both in percent of the peers' median and in
    ascending order: the node's as a filled shape, the peers' as an outline."""
    row, left, top, bins = 8.0, 26.0, 1.0, 80
    reach = max([quantile(np.abs(v), 0.995) for _, mine, peers in classes for v in (mine, peers) if v.size] or [1.0])
    reach = float(np.clip(reach * 1.1, 2.0, 60.0))
    drawing = Drawing(width, top + row * len(classes) + 8)
    wide = width - left - 2
    edges = np.linspace(-reach, reach, bins + 1)[1:-1]  # the outermost bins hold what is beyond, too

    def shape(values: Floats, base: float) -> list[tuple[float, float]]:
        below = np.searchsorted(values, edges)
        counts = np.diff([0, *below, values.size]) / 1.0
        counts /= max(counts.max(), 1)
        xs = left + (np.arange(bins) + 0.5) / bins * wide
        inner = [(float(x), base - float(c) * row * 0.85) for x, c in zip(xs, counts, strict=True)]
        return [(float(xs[0]), base), *inner, (float(xs[-1]), base)]

    for i, (label, mine, peers) in enumerate(classes):
        base = top + row * (i + 1) - 0.5
        drawing.text(left - 1, base - 2, label, anchor="end", size=SMALL)
        drawing.line(left, base, left + wide, base, stroke=HAIR, width=0.12)
        if peers.size:
            drawing.path(shape(peers, base), fill=WASH, stroke=QUIET, width=0.18)
        if mine.size:
            drawing.path(shape(mine, base), fill="#0072b2", opacity=0.45, stroke="#0072b2", width=0.2)
            middle = left + float(np.clip((finite_median(mine) + reach) / (2 * reach), 0, 1)) * wide
            drawing.line(middle, base - row * 0.9, middle, base, width=0.4)
    foot = top + row * len(classes)
    for value, text in scale.ticks(-reach, reach, 9):
        at = left + (value + reach) / (2 * reach) * wide
        drawing.line(at, foot, at, foot + 0.8, stroke=QUIET)
        drawing.text(at, foot + 2.2, text, size=SMALL, anchor="middle")
    drawing.text(
        left + wide / 2, foot + 5.2, "% from the median of the peers' class", size=SMALL, anchor="middle", fill=QUIET
    )
    data: dict[str, Column] = {
        "class": np.repeat([label for label, _, _ in classes], [mine.size for _, mine, _ in classes]),
        "percent": np.concatenate([mine for _, mine, _ in classes] or [np.empty(0)]),
    }
    return finished(drawing, name, caption, f"Distributions of {len(classes)} classes. {caption}", data)


def density(x: Floats, y: Floats, *, name: str, caption: str, x_name: str, y_name: str, width: float = 62.0) -> Figure:
    """How many points (x, y) fall where, with the line on which both are equal."""
    good = np.isfinite(x) & np.isfinite(y)
    x, y = x[good], y[good]
    both = np.concatenate([x, y]) if x.size else np.array([0.0, 1.0])
    low, high = float(both.min()), float(both.max())
    pad = 0.03 * (high - low) or 1.0
    low, high = low - pad, high + pad
    counts = np.histogram2d(y, x, bins=90, range=((low, high), (low, high)))[0][::-1]
    share = np.log1p(counts) / np.log1p(max(counts.max(), 1))
    colours = Scale(0.0, 1.15)
    entries = colours.index(np.where(counts > 0, 1 - share, np.nan))
    entries[counts == 0] = scale.DIAGONAL
    left, top, side = 12.0, 2.0, width - 14.0
    drawing = Drawing(width, side + 10)
    drawing.image(pixels(entries, colours), left, top, side, side)
    drawing.line(left, top + side, left + side, top, stroke=QUIET, width=0.15, dash="0.8 0.6")
    drawing.rect(left, top, side, side, stroke=QUIET, line=0.14)
    for value, text in scale.ticks(low, high, 5):
        at = (value - low) / (high - low) * side
        drawing.text(left + at, top + side + 2, text, size=SMALL, anchor="middle")
        drawing.text(left - 0.8, top + side - at, text, size=SMALL, anchor="end")
    drawing.text(left + side / 2, top + side + 5, x_name, size=SMALL, anchor="middle", fill=QUIET)
    drawing.text(1.4, top + side / 2, y_name, size=SMALL, anchor="middle", fill=QUIET, turned=True)
    return finished(drawing, name, caption, f"{x.size} points. {caption}", {x_name: x, y_name: y})


def histogram(values: Floats, colours: Scale, *, name: str, caption: str, unit: str, width: float = 46.0) -> Figure:
    """Bars of `values` in the colours of a matrix with discrete ones; the outermost hold what lies beyond, too."""
    bins = colours.bins or 16
    finite = values[np.isfinite(values)]
    part = (finite - colours.low) / (colours.high - colours.low)
    counts = np.bincount(np.clip((part * bins).astype(int), 0, bins - 1), minlength=bins)
    middles = colours.low + (np.arange(bins) + 0.5) / bins * (colours.high - colours.low)
    palette = scale.palette(colours.map)
    height, top = 20.0, 4.0
    drawing = Drawing(width, top + height + 7)
    highest = max(int(counts.max()), 1)
    drawing.text(0, 1.5, f"highest bar: {int(counts.max()):,} pairs".replace(",", "\u202f"), size=SMALL, fill=QUIET)
    each = width / bins
    for i, (count, entry) in enumerate(zip(counts.tolist(), colours.index(middles).tolist(), strict=True)):
        tall = count / highest * height
        fill = "#{:02x}{:02x}{:02x}".format(*palette[entry])
        drawing.rect(i * each, top + height - tall, each, tall, fill=fill, stroke=INK, line=0.08)
    drawing.line(0, top + height, width, top + height, width=0.14)
    for at, text in colours.ticks(4):
        drawing.text(min(max(at, 0.04), 0.96) * width, top + height + 1.8, text, size=SMALL, anchor="middle")
    drawing.text(width / 2, top + height + 4.6, unit, size=SMALL, anchor="middle", fill=QUIET)
    return finished(
        drawing, name, caption, f"Histogram ({unit}). {caption}", {unit: middles.tolist(), "pairs": counts.tolist()}
    )
