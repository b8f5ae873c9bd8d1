"""A matrix of latencies for a terminal: every CPU where there is room, part by part where there is not."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from rich.color import Color
from rich.style import Style
from rich.text import Text

from nodeprint.cards.card import Matrix
from nodeprint.machine.topology.level_names import level_name
from nodeprint.settings import checked_yaml, sources
from nodeprint.settings.texts import say

Floats = npt.NDArray[np.float64]
#: Up to so many rows are shown, in so many columns of text.
_MOST_ROWS, _COLUMNS = 32, 100
#: What takes the place of CPUs where there are too many: the first of these levels with few enough parts.
_LEVELS = ("core", "ccx", "ccd", "quadrant", "numa", "socket")


class Square(msgspec.Struct, frozen=True):
    """What is shown: a title, a name for each row, and values (n, n) in ns."""

    title: str
    names: tuple[str, ...]
    values: Floats


def square(matrix: Matrix) -> Square:
    """The matrix CPU by CPU, or the medians between the parts of the finest level that has few enough."""
    cpus = matrix.places.cpus
    values = matrix.latency_ns
    if len(cpus) <= _MOST_ROWS:
        return Square("CPU by CPU, ns", tuple(map(str, cpus)), values)
    for level in _LEVELS:
        parts = np.array(matrix.places.parts.get(level, ()))
        labelled = np.unique(parts[parts >= 0]) if parts.size else parts
        if 2 <= len(labelled) <= _MOST_ROWS:
            rows = [np.flatnonzero(parts == part) for part in labelled]
            medians = np.array([[_median(values[np.ix_(a, b)]) for b in rows] for a in rows])
            name = level_name(level)
            return Square(say("matrix_of", rows=name, columns=name), tuple(map(str, labelled.tolist())), medians)
    size = -(-len(cpus) // _MOST_ROWS)  # no labels: neighbours in the order of the system
    rows = [np.arange(start, min(start + size, len(cpus))) for start in range(0, len(cpus), size)]
    medians = np.array([[_median(values[np.ix_(a, b)]) for b in rows] for a in rows])
    return Square(say("matrix_of_cpus", size=size), tuple(str(cpus[row[0]]) for row in rows), medians)


def _median(block: Floats) -> float:
    finite = block[np.isfinite(block)]
    return float(np.median(finite)) if finite.size else float("nan")


def painted(shown: Square) -> Text:
    """A row of text for each row of the matrix; the numbers say the same without any colour."""
    finite = shown.values[np.isfinite(shown.values)]
    if not finite.size:
        return Text("no pair was measured")
    low, high = float(finite.min()), float(finite.max())
    digits = len(f"{high:.0f}")
    margin = max(map(len, shown.names)) + 1
    width = max(2, min((_COLUMNS - margin) // len(shown.names), digits + 1))
    colours = _colours()
    out = Text(f"{shown.title}\n{' ' * margin}")
    step = -(-(max(map(len, shown.names)) + 1) // width)
    for number, name in enumerate(shown.names):
        out.append(name.rjust(width) if number % step == 0 else " " * width)
    for name, row in zip(shown.names, shown.values.tolist(), strict=True):
        out.append("\n" + name.rjust(margin - 1) + " ")
        for value in row:
            if not np.isfinite(value):
                out.append(".".rjust(width))
                continue
            share = (value - low) / (high - low) if high > low else 0.0
            figure = f"{value:.0f}" if digits < width else ""
            out.append(figure.rjust(width), _style(colours, share))
    return out


def _colours() -> list[tuple[int, int, int]]:
    path = sources.folder() / "reports" / "style.yaml"
    names: Sequence[str] = checked_yaml.read(path)["terminal"]
    triplets = [Color.parse(name).get_truecolor() for name in names]
    return [(colour.red, colour.green, colour.blue) for colour in triplets]


def _style(colours: Sequence[tuple[int, int, int]], share: float) -> Style:
    """Black or white on the colour of a share of the scale."""
    place = share * (len(colours) - 1)
    first = min(int(place), len(colours) - 2)
    red, green, blue = (
        round(a + (b - a) * (place - first)) for a, b in zip(colours[first], colours[first + 1], strict=True)
    )
    ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 140 else "black"
    return Style(color=ink, bgcolor=f"rgb({red},{green},{blue})")
