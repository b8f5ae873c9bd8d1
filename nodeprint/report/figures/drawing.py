"""Elements of figures: cells with their color scale, the components of a machine along an axis, letters that fit."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, GridSpecBase
from matplotlib.image import AxesImage
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator
from matplotlib.transforms import blended_transform_factory, offset_copy

from nodeprint.report.figures import figure_data
from nodeprint.report.figures.figure_data import title_of
from nodeprint.report.figures.node_levels import Floats
from nodeprint.report.figures.part_levels import PartLevel
from nodeprint.report.figures.style import Map, Style

#: Brackets at an axis: distance in points, and the estimated width of a letter as a share of its size.
BRACKET_PT, _LETTER = 8.5, 0.62
#: Approximate pixels along an image: PDF and SVG viewers smooth images, which must not blur borders of cells.
PIXELS = 768
#: Steps of a color scale, and the points that a number at the scale takes.
_STEPS, _A_TICK = 64, 18.0


# --- letters and axes ---


def root_of(ax: Axes) -> Figure:
    """Return the figure of axes."""
    root = ax.get_figure(root=True)
    assert root is not None
    return root


def size_pt(ax: Axes) -> tuple[float, float]:
    """Return width and height of axes in points, which are final during drawing."""
    points = 72 / root_of(ax).dpi
    return float(ax.bbox.width * points), float(ax.bbox.height * points)


def letters(ax: Axes, share: float, style: Style) -> int:
    """Return how many letters fit in a share of the width of axes."""
    return int(share * size_pt(ax)[0] / (_LETTER * style.letters_pt))


def wrapped(title: str, points: float, style: Style) -> str:
    """Wrap a title along an axis of `points` points; its unit stays with its last word."""
    kept = "\N{NO-BREAK SPACE}".join(title.rsplit(" ", 1))
    lines = textwrap.wrap(kept, max(int(points / (0.58 * style.letters_pt)), 12))
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


class FittedText(Text):
    """A text that is `shown` if it fits, which is determined during drawing; layouts ignore it."""

    def __init__(self, x: float, y: float, text: str, *, shown: Callable[[], bool], **properties: Any) -> None:
        self._shown = shown
        super().__init__(x, y, text, clip_on=False, **properties)
        self.set_in_layout(False)

    def get_visible(self) -> bool:
        """Tell whether it is drawn."""
        return self._shown()


class Places(Locator):
    """Ticks at places from 0 to `count`, exclusive: all of them, every second, every fourth, and so on.

    A tick needs `points` points; there are at most `most` ticks.
    """

    def __init__(self, ax: Axes, across: bool, count: int, points: float, most: int) -> None:
        self.ax, self.across, self.count, self.points, self.most = ax, across, count, points, most

    def __call__(self) -> range:
        """Return the ticks that fit on the axes at their current size."""
        width, height = size_pt(self.ax)
        length = width if self.across else height
        return range(0, self.count, _power_of_two(max(self.count * self.points / length, self.count / self.most)))

    def tick_values(self, vmin: float, vmax: float) -> range:
        """Return the same ticks for any interval."""
        return self()


def _power_of_two(least: float) -> int:
    return 1 << (max(1, math.ceil(least)) - 1).bit_length()


def name_places(axis: Axis, labels: Sequence[str], style: Style, *, turned: bool = False, most: int = 512) -> None:
    """Set as many ticks with names of places as fit along an axis; those of an x axis may be `turned`."""
    wide = 1.6 if turned else max(map(len, labels), default=1) * _LETTER + 0.5
    ax, across = axis.axes, isinstance(axis, XAxis)
    axis.set_major_locator(Places(ax, across, len(labels), wide * style.letters_pt, most))
    axis.set_major_formatter(FuncFormatter(lambda at, _: labels[int(at)]))
    if turned and across:
        axis.set_tick_params(rotation=90)


def subplots(ax: Axes, rows: int, columns: int) -> list[Axes]:
    """Return axes in rows and columns, from the top, in the area of `ax`, which becomes the lower left one."""
    spec, figure, lower_left = ax.get_subplotspec(), root_of(ax), (rows - 1) * columns
    if spec is None:
        at = ax.get_position()
        grid: GridSpecBase = GridSpec(rows, columns, figure, at.x0, at.y0, at.x1, at.y1)
    elif figure.axes == [ax] and spec.get_gridspec().get_geometry() == (rows, columns):
        grid = spec.get_gridspec()
    else:
        grid = spec.subgridspec(rows, columns)
    ax.set_subplotspec(grid[lower_left])
    return [ax if at == lower_left else figure.add_subplot(grid[at]) for at in range(rows * columns)]


# --- components of a machine ---


def draw_outlines(ax: Axes, levels: Sequence[PartLevel], size: int, style: Style, color: str) -> None:
    """Draw a square around the pairs inside each component, and lines across the matrix between sockets."""
    for level in levels:
        ends = [(start - 0.5, stop - 0.5) for start, stop, _ in level.groups]
        lines = [[(a, a), (b, a), (b, b), (a, b), (a, a)] for a, b in ends if b - a > 1]
        if level is levels[-1] and len(ends) <= 8:
            for at, _ in ends[1:]:
                lines += [[(at, -0.5), (at, size - 0.5)], [(-0.5, at), (size - 0.5, at)]]
        pen = style.outlines[level.outline]
        look: dict[str, Any] = {"linewidths": pen.points, "linestyles": [pen.linestyle], "colors": style.color(color)}
        ax.add_collection(LineCollection(lines, **look), autolim=False)


def draw_brackets(ax: Axes, levels: Sequence[PartLevel], style: Style, *, below: float | None = None) -> None:
    """Draw a line for each component above the axes, the finest level nearest, or `below` them at that many points."""
    ends = ax.get_xlim()
    each = size_pt(ax)[0] / abs(ends[1] - ends[0])
    letter = style.letters_pt * _LETTER
    for number, level in enumerate(levels):
        offset = 4.0 + number * BRACKET_PT if below is None else -below - number * BRACKET_PT
        edge = 1.0 if below is None else 0.0
        at_axes = blended_transform_factory(ax.transData, ax.transAxes)
        across = offset_copy(at_axes, root_of(ax), 0, offset, units="points")
        gap = min(0.12 * each, 1.0) / each
        named = [group for group in level.groups if group[2]]
        lines = [[(start - 0.5 + gap, edge), (stop - 0.5 - gap, edge)] for start, stop, _ in named]
        pen = style.outlines[level.outline]
        look: dict[str, Any] = {"linewidths": max(pen.points, 0.6), "linestyles": [pen.linestyle], "clip_on": False}
        brackets = LineCollection(lines, colors=style.color("quiet"), transform=across, **look)
        brackets.set_in_layout(False)  # the level's name next to them is as high
        ax.add_collection(brackets, autolim=False)
        if not named:
            continue
        places = min(stop - start for start, stop, _ in named) / abs(ends[1] - ends[0])
        needed = (max(len(label) for *_, label in named) * letter + 2) / places  # points of axes for all numbers
        look = {"ha": "center", "va": "bottom", "color": style.color("ink"), "transform": across}
        for at, (start, stop, label) in enumerate(named):
            shown = partial(_is_kept, ax, at, needed)
            middle = (start + stop - 1) / 2
            ax.add_artist(FittedText(middle, edge, label, shown=shown, fontsize=style.smallest_letters_pt, **look))
        where: dict[str, Any] = {"xycoords": "axes fraction", "xytext": (-5, offset), "textcoords": "offset points"}
        look = {"ha": "right", "va": "bottom" if below is None else "center", "color": style.color("quiet")}
        ax.annotate(level.name, (0, edge), fontsize=style.smallest_letters_pt, **where, **look)


def _is_kept(ax: Axes, number: int, needed: float) -> bool:
    return number % _power_of_two(needed / size_pt(ax)[0]) == 0


def name_below(
    ax: Axes, labels: Sequence[str], levels: Sequence[PartLevel], title: str, style: Style, *, turned: bool = False
) -> None:
    """Name places below axes, then their components with brackets, then the kind of places."""
    ax.set_xlim(-0.7, len(labels) - 0.3)
    name_places(ax.xaxis, labels, style, turned=turned)
    if levels:
        along = max(map(len, labels)) * _LETTER if turned else 1.2
        draw_brackets(ax, levels, style, below=along * style.letters_pt + 12.0)
    ax.set_xlabel(title, labelpad=len(levels) * BRACKET_PT + 2)


# --- cells and their scale ---


class ColorScale(msgspec.Struct, frozen=True):
    """A color map from `low` to `high`, with a title and its unit.

    A `tolerance` is marked on both sides of 0, or on one side of values that are a share of it. `tolerance_text` is its
    label.
    """

    title: str
    low: float
    high: float
    map: Map = "values"
    tolerance: float | None = None
    tolerance_text: str = ""


def scale_of(data: xr.Dataset) -> ColorScale:
    """Return the scale of a figure's values from their attributes, with the tolerance if there is one."""
    value = data["value"]
    look: Map = value.attrs.get("map", "values")
    tolerance = float(data[figure_data.ABOVE]) if figure_data.ABOVE in data.coords else None
    tolerance_text = "" if tolerance is None else "tolerance"
    if tolerance_text and look == "differences":
        tolerance_text = f"{data.attrs.get('tolerance_of', 'tolerance')}\n{figure_data.tolerance_text(data)}"
    return ColorScale(title_of(value), value.attrs["low"], value.attrs["high"], look, tolerance, tolerance_text)


def draw_cells(
    ax: Axes,
    values: Floats,
    scale: ColorScale,
    style: Style,
    *,
    blank: npt.NDArray[np.bool_] | None = None,
    extent: tuple[float, float, float, float] | None = None,
    pixels: int = PIXELS,
    shades: int = 0,
) -> AxesImage:
    """Draw values (rows, columns) as cells centered on whole numbers, the first row on top.

    Values that were not measured are gray; `blank` cells have the color of paper. `extent` (left, right, bottom, top)
    overrides the position. An image has about `pixels` pixels along its side. With `shades`, fewer colors reduce its
    size (0: the full map).
    """
    rows, columns = values.shape
    shares = np.asarray(np.ma.filled(Normalize(scale.low, scale.high)(values), np.nan), dtype=np.float64)
    if shades:
        shares = np.round(shares * shades) / shades
    colors = style.map(scale.map)(shares, bytes=True)
    colors[~np.isfinite(values)] = (255 * to_rgba_array(style.colors["missing"])[0]).round()
    if blank is not None:
        colors[blank] = (255 * to_rgba_array(style.colors["paper"])[0]).round()
    times = max(1, pixels // max(rows, columns))
    aspect = ax.get_aspect()
    extent = extent or (-0.5, columns - 0.5, rows - 0.5, -0.5)
    shown = colors.repeat(times, axis=0).repeat(times, axis=1)
    image = ax.imshow(shown, interpolation="none", aspect=aspect, extent=extent)
    ax.spines[:].set_visible(True)
    return image


def draw_scale(ax: Axes, scale: ColorScale, style: Style, *, length: float = 1.0) -> Axes:
    """Draw the color scale to the right of the axes, over a part of their height from the top; return its axes."""
    bar = ax.inset_axes((1.03, 1.0 - length, 0.03, length))
    colors = ScalarMappable(Normalize(scale.low, scale.high), style.map(scale.map).resampled(_STEPS))
    points = length * size_pt(ax)[1]
    ticks = MaxNLocator(min(max(int(points / _A_TICK), 2), 8), steps=[1, 2, 2.5, 5, 10])
    drawn = root_of(ax).colorbar(colors, cax=bar, ticks=ticks)
    if drawn.solids is not None:
        drawn.solids.set_edgecolor("face")  # no gaps between steps
    drawn.set_label(wrapped(scale.title, points, style))
    if scale.tolerance is not None:
        for at in {-scale.tolerance, scale.tolerance} if scale.map == "differences" else {scale.tolerance}:
            bar.axhline(at, color=style.colors["tolerance"], linewidth=1.0)
            bar.plot([-0.5], [at], marker=">", color=style.colors["tolerance"], markersize=3, clip_on=False)
        bar.set_xlim(0, 1)
        bar.set_xlabel(scale.tolerance_text, fontsize=style.smallest_letters_pt, labelpad=6)
    return bar


def value_limits(*arrays: Floats) -> tuple[float, float]:
    """Return one scale: all but the outermost thousandth; a span of at least 10%, so that like values look alike."""
    finite = np.concatenate([values[np.isfinite(values)] for values in arrays]) if arrays else np.zeros(0)
    if not finite.size:
        return 0.0, 1.0
    low, high = (float(end) for end in np.quantile(finite, (0.001, 0.999)))
    pad = max(0.0, 0.1 * abs(high) - (high - low), 1e-9) / 2
    return low - pad, high + pad


def write_numbers(ax: Axes, numbers: Floats, values: Floats, scale: ColorScale, style: Style, digits: int = 3) -> None:
    """Write `numbers` into the cells of `values` (both row, column) if all of them fit."""
    texts = [[short(value, digits) for value in row] for row in numbers.tolist()]
    longest = max((len(text) for row in texts for text in row), default=0)
    letter = style.smallest_letters_pt
    rows, columns = numbers.shape
    needs = columns * longest * letter * 0.64, rows * 1.4 * letter
    colors = style.map(scale.map)(Normalize(scale.low, scale.high)(values))

    def have_room() -> bool:
        return all(points >= need for points, need in zip(size_pt(ax), needs, strict=True))

    for row, line in enumerate(texts):
        for column, text in enumerate(line):
            if text:
                dark = np.isfinite(values[row, column]) and is_dark(colors[row, column])
                pen = {"color": style.colors["paper" if dark else "ink"], "fontsize": letter}
                ax.add_artist(FittedText(column, row, text, shown=have_room, ha="center", va="center", **pen))


def short(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits and no exponent; empty if it is not finite."""
    if not np.isfinite(value):
        return "\N{INFINITY}" if value == np.inf else ""
    decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(value))))) if value else 1
    return f"{value:.{min(decimals, 3)}f}"


def is_dark(color: npt.NDArray[np.float64]) -> bool:
    """Tell whether white letters have more contrast than black ones on a color (WCAG 2.1, relative luminance)."""
    linear = np.where(color[:3] <= 0.04, color[:3] / 12.92, ((color[:3] + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ (0.2126, 0.7152, 0.0722))
    return (luminance + 0.05) ** 2 < 1.05 * 0.05
