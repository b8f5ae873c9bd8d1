"""One colour scale for all nodes of a report: values to the colours of a perceptual map, and back to a legend.

Colours are Fabio Crameri's batlow (values) and vik (differences), both perceptually even and readable with every
common colour vision deficiency (doi:10.1038/s41467-020-19160-7).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.order_statistics import quantile
from nodeprint.report import package_data

Map = Literal["batlow", "vik"]

#: Colours of a map; the palette entries after them are for what has no value, and for what is not painted.
LEVELS = 253
MISSING, DIAGONAL, NONE = LEVELS, LEVELS + 1, LEVELS + 2
_MISSING_RGB, _DIAGONAL_RGB = (205, 205, 205), (255, 255, 255)


class Scale(msgspec.Struct, frozen=True):
    """From `low` to `high` (in the unit of the values) over a colour map; values beyond take the colour of the end.

    With `bins` there are so many colours, each that of the middle of its part.
    """

    low: float
    high: float
    map: Map = "batlow"
    bins: int = 0

    def index(self, values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Palette entries of `values` (any shape); NaN becomes MISSING."""
        array = np.asarray(values, dtype=np.float64)
        part = (array - self.low) / (self.high - self.low)
        part = np.nan_to_num(part, nan=0.0, posinf=1.0, neginf=0.0)
        if self.bins:
            part = (np.clip(np.floor(part * self.bins), 0, self.bins - 1) + 0.5) / self.bins
        entry = np.clip(part * LEVELS, 0, LEVELS - 1)
        out: npt.NDArray[np.uint8] = np.where(np.isnan(array), MISSING, entry).astype(np.uint8)
        return out

    def ticks(self, wanted: int = 6) -> list[tuple[float, str]]:
        """Round values within the scale as (position from 0 at `low` to 1 at `high`, text)."""
        return [((tick - self.low) / (self.high - self.low), text) for tick, text in ticks(self.low, self.high, wanted)]


def ticks(low: float, high: float, wanted: int = 6) -> list[tuple[float, str]]:
    """About `wanted` round values in [low, high], as (value, text)."""
    rough = (high - low) / max(wanted, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9) + (1 if step / power == 2.5 else 0))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(i * step, f"{i * step:.{decimals}f}") for i in range(first, last + 1)]


Ends = tuple[float, float]


def ends(values: npt.ArrayLike) -> Ends | None:
    """The 0.5 % and 99.5 % quantiles of a node's values (any shape, NaN left out); None where there is no value."""
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if not finite.size:
        return None
    return quantile(finite, 0.005), quantile(finite, 0.995)


def of_nodes(nodes: Iterable[Ends]) -> Scale:
    """The scale of a report from the `ends` of each of its nodes.

    It spans the 5 % and 95 % quantiles of them over nodes: one broken node does not take the contrast from all others,
    its values are drawn in the colour of the end.
    """
    pairs = list(nodes)
    if not pairs:
        return Scale(0.0, 1.0)
    low, high = float(np.quantile([a for a, _ in pairs], 0.05)), float(np.quantile([b for _, b in pairs], 0.95))
    # A machine whose pairs are all alike must look so: never less than 10 % from end to end, nor than a thousandth.
    pad = max(0.0, 0.1 * abs(high) - (high - low), 1e-3 - (high - low)) / 2
    return Scale(low - pad, high + pad)


def of_differences(values: npt.ArrayLike, at_least: float) -> Scale:
    """A vik scale for differences, symmetric around 0, to the 99.5 % quantile of |values| or further to `at_least`."""
    finite = np.abs(np.asarray(values, dtype=np.float64))
    finite = finite[np.isfinite(finite)]
    reach = max(at_least, quantile(finite, 0.995) if finite.size else 0.0)
    return Scale(-reach, reach, "vik")


@cache
def palette(name: Map) -> tuple[tuple[int, int, int], ...]:
    """The 256 palette entries of a map as (red, green, blue): its colours, then MISSING, DIAGONAL and NONE."""
    stated = np.loadtxt(package_data.path("cmcrameri", f"cmaps/{name}.txt"))
    colours = stated[(np.linspace(0.0, 1.0, LEVELS) * len(stated)).astype(int).clip(max=len(stated) - 1)]
    rgb = [tuple(round(float(channel) * 255) for channel in colour) for colour in colours]
    return (*[(r, g, b) for r, g, b in rgb], _MISSING_RGB, _DIAGONAL_RGB, _DIAGONAL_RGB)


def is_dark(entry: int, name: Map) -> bool:
    """Whether text on a palette entry must be white (relative luminance below 0.4)."""
    r, g, b = palette(name)[entry]
    return 0.2126 * r + 0.7152 * g + 0.0722 * b < 0.4 * 255
