"""Cells in the colors of a color map, and their scale."""

from __future__ import annotations

import textwrap

import msgspec
import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgba_array
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from nodeprint.report.figures import tolerance_band
from nodeprint.report.figures.figure_data import title_of
from nodeprint.report.figures.node_levels import Floats
from nodeprint.report.figures.part_levels import FittedText, root_of, size_pt
from nodeprint.report.figures.style import Map, Style

#: Approximate pixels along an image: PDF and SVG viewers smooth images, which must not blur borders of cells.
PIXELS = 768
#: Steps of a color scale, and the points that a number at the scale takes.
_STEPS, _A_TICK = 64, 18.0


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
    tolerance = float(data[tolerance_band.ABOVE]) if tolerance_band.ABOVE in data.coords else None
    said = "" if tolerance is None else "tolerance"
    if said and look == "differences":
        said = f"{data.attrs.get('tolerance_of', 'tolerance')}\n{tolerance_band.text(data)}"
    return ColorScale(title_of(value), value.attrs["low"], value.attrs["high"], look, tolerance, said)


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


def wrapped(title: str, points: float, style: Style) -> str:
    """Wrap a title along an axis of `points` points; its unit stays with its last word."""
    kept = "\N{NO-BREAK SPACE}".join(title.rsplit(" ", 1))
    lines = textwrap.wrap(kept, max(int(points / (0.58 * style.letters_pt)), 12))
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


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
