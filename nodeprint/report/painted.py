"""A square of figures for a terminal: a row of text for each of its rows, in the report's colors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from rich.color import Color
from rich.style import Style
from rich.text import Text

from nodeprint.settings import checked_yaml, sources

Floats = npt.NDArray[np.floating]


class Square(msgspec.Struct, frozen=True):
    """A matrix to print: `values` (n x n, NaN where there is none), a name for each row, and its title."""

    title: str
    names: tuple[str, ...]
    values: Floats


def painted(square: Square, columns: int) -> Text:
    """A matrix as text whose background is the report's colors; its numbers say the same without any color.

    Where there is no room for a value in so many `columns`, the numbers are tens of them.
    """
    finite = square.values[np.isfinite(square.values)]
    # without the outermost thousandth, as one cell that was disturbed would leave one color to all others
    low, high = np.quantile(finite, (0.001, 0.999)) if finite.size else (0.0, 1.0)
    agreement = max(map(len, square.names)) + 1
    room = (columns - agreement) // len(square.names)
    digits = len(f"{finite.max(initial=0.0):.0f}")
    width, unit = (min(room, digits + 1), 1) if room > digits else (max(2, min(room, 3)), 10)
    out = Text(f"{square.title}{' / 10' if unit == 10 else ''}\n")
    step = -(-agreement // width)
    heads = (name.rjust(width) if i % step == 0 else " " * width for i, name in enumerate(square.names))
    out.append(" " * agreement + "".join(heads))
    colors = _colors()
    for name, row in zip(square.names, square.values.tolist(), strict=True):
        out.append("\n" + name.rjust(agreement - 1) + " ")
        for value in row:
            share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0
            shown = f"{value / unit:.0f}" if math.isfinite(value) else "."
            out.append(shown.rjust(width), _style(colors, share) if math.isfinite(value) else Style())
    return out


def _colors() -> list[tuple[int, int, int]]:
    path = sources.folder() / "reports" / "style.yaml"
    names: Sequence[str] = checked_yaml.read(path)["terminal"]
    triplets = [Color.parse(name).get_truecolor() for name in names]
    return [(color.red, color.green, color.blue) for color in triplets]


def _style(colors: Sequence[tuple[int, int, int]], share: float) -> Style:
    """Black or white on the color of a share of the scale."""
    place = share * (len(colors) - 1)
    first = min(int(place), len(colors) - 2)
    red, green, blue = (
        round(a + (b - a) * (place - first)) for a, b in zip(colors[first], colors[first + 1], strict=True)
    )
    ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 140 else "black"
    return Style(color=ink, bgcolor=f"rgb({red},{green},{blue})")
