"""Strips: values by place over the range of the peers, with a row for each quantity of the same places."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import offset_copy

from nodeprint.data.places.layout import Ints
from nodeprint.errors import NodeprintError
from nodeprint.report import text
from nodeprint.report.figures import tolerance_band
from nodeprint.report.figures.figure_data import named, title_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import (
    BRACKET_PT,
    PartLevel,
    letters,
    name_below,
    part_coordinates,
    part_levels,
    root_of,
    size_pt,
    subplots,
)
from nodeprint.report.figures.pixels import wrapped
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.report.names import place as place_in_words
from nodeprint.report.names import shortened

#: In mm: the height of a single row and of one among others; the most rows of a figure.
_ONLY_ROW_MM, _ROW_MM, _MOST_ROWS = 26.0, 17.0, 8
#: Letters of a node's name below the rows.
_NODE_LETTERS = 24


def strip_of(dim: str, values: Floats, peers: Floats, title: str, of_peers: str) -> dict[str, xr.Variable]:
    """Return the values of places, and the lowest and highest of the peers' values (peer, place).

    `of_peers` is the peers' title, with {} for `lowest` or `highest`.
    """
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        ends = np.nanmin(peers, axis=0), np.nanmax(peers, axis=0)
    low, high = (named(dim, end, of_peers.format(word)) for end, word in zip(ends, ("lowest", "highest"), strict=True))
    return {"value_0": named(dim, values, title), "low_0": low, "high_0": high}


def in_rows(strips: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Combine strips of a node into figures that fit on a page.

    Strips of the same CPUs become rows of one figure. They must have equally many peers, which the legend counts.
    """
    alike: dict[tuple[int, tuple[str, ...]], list[xr.Dataset]] = {}
    for strip in strips:
        alike.setdefault((strip.attrs["peers"], tuple(strip.cpu.to_numpy().tolist())), []).append(strip)
    return [
        xr.merge(
            [
                strip.rename({name: f"{str(name)[:-1]}{row}" for name in strip.variables if str(name).endswith("_0")})
                for row, strip in enumerate(of_cpus[start : start + _MOST_ROWS])
            ],
            combine_attrs="override",
            compat="override",
        )
        for of_cpus in alike.values()
        for start in range(0, len(of_cpus), _MOST_ROWS)
    ]


def rows_of(data: xr.Dataset) -> list[int]:
    """Return the row numbers of a figure."""
    return list(takewhile(lambda row: f"value_{row}" in data, count()))


def by_cpu(
    levels: NodeLevels,
    node: str,
    fixed: Mapping[str, int | str] | None = None,
    *,
    peers: Sequence[str] = (),
    marked: Sequence[int] = (),
) -> xr.Dataset:
    """Return the values of a measurement by CPU, at `fixed` coordinates of its other dimensions.

    Coordinates are words or canonical numbers, the first by default. `marked` are OS numbers of CPUs. Raises
    NodeprintError if the measurement has no CPUs.
    """
    quantity = levels.quantity
    if "cpu" not in quantity.dims:
        raise NodeprintError(f"{quantity.measurement} has no value for each CPU", advice="draw it as a curve or table")
    at = {dim: _coordinate(levels, dim, (fixed or {}).get(dim)) for dim in quantity.dims if dim != "cpu"}
    chosen = np.ones(quantity.size, dtype=np.bool_)
    for dim, coordinate in at.items():
        chosen &= quantity.places[dim] == coordinate
    places = np.flatnonzero(chosen)
    slots = quantity.places["cpu"][places]
    names = tuple(map(str, levels.cpus(node, slots)))
    size = levels.unit.size
    others = levels.of_peers(node, peers)[:, places] / size
    none = np.full((1, len(places)), np.nan)
    at_words = [place_in_words({dim: quantity.named(dim, number)}) for dim, number in at.items()]
    shows = ", ".join([text.measured(quantity.measurement), *at_words])
    variables = strip_of(
        "cpu",
        levels.of(node)[places] / size,
        others if len(others) else none,
        f"{shows}: {levels.title}",
        f"{shows}: peers' {{}}, {levels.unit.name}",
    )
    coordinates = {
        "cpu": named("cpu", names, "CPU"),
        **part_coordinates("cpu", quantity.layout.slots[slots]),
        "marked_0": named("cpu", np.isin(names, list(map(str, marked))), f"{shows}: of a finding"),
    }
    return xr.Dataset(variables, coordinates, {"node": node, "peers": len(others)})


def _coordinate(levels: NodeLevels, dim: str, wanted: int | str | None) -> int:
    """Return the canonical coordinate of a dimension, the first by default."""
    quantity = levels.quantity
    if isinstance(wanted, str):
        return quantity.names[dim].index(wanted)
    return int(quantity.places[dim].min()) if wanted is None else wanted


def _frame(data: xr.Dataset, width: float) -> Frame:
    """Return a frame with a row for each quantity, and the components as brackets below."""
    rows = len(rows_of(data))
    return Frame(width, _ROW_MM if rows > 1 else _ONLY_ROW_MM, rows=rows)


@primitive(_frame)
def strip(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw the rows: values as dots, those of a finding as triangles, over the range of the peers.

    The effect and the tolerance of a finding are lines. `ax` becomes the lowest row, with the ticks and brackets.
    """
    dim, rows = str(data.value_0.dims[0]), rows_of(data)
    labels, levels = list(map(str, data[dim].to_numpy().tolist())), part_levels(data, dim)
    for of_row, row in zip(subplots(ax, len(rows), 1), rows, strict=True):
        _draw_row(of_row, data, row, levels, style)
        of_row.set_xticks([])
    longest = max(map(len, labels))
    turned = longest > 3 and (longest + 1.5) * len(labels) > letters(ax, 1.0, style)
    name_below(ax, labels, levels, title_of(data[dim]), style, turned=turned)
    if data.attrs["peers"]:
        along = longest * 0.62 if turned else 1.2
        below = len(levels) * BRACKET_PT + (2.0 + along) * style.letters_pt
        ax.xaxis.label.set(x=0.0, ha="left")  # the legend is on the right, or below
        _legend(ax, data, below, style)


def _legend(ax: Axes, data: xr.Dataset, below: float, style: Style) -> None:
    lines = {line.get_label(): line for line in ax.get_lines()}
    handles: list[Any] = [lines["_node"], lines["_peers"]]
    words = [shortened(str(data.attrs["node"]), _NODE_LETTERS), f"{data.attrs['peers']} peers"]
    if tolerance_band.BELOW in data.coords:
        handles.append(Line2D([], [], color=style.colors["tolerance"], linewidth=0.7, linestyle=(0, (4, 2))))
        words.append(f"tolerance {tolerance_band.text(data)}")
    has_room = len("".join((*words, ax.get_xlabel()))) + 6 * len(words) < letters(ax, 1.0, style)
    ax.legend(
        handles,
        words,
        loc="center right" if has_room else "upper right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=offset_copy(
            ax.transAxes, root_of(ax), 0, -below - (0.0 if has_room else 0.8 * style.letters_pt), units="points"
        ),
        ncols=len(words) if len("".join(words)) + 6 * len(words) < letters(ax, 1.2, style) else 1,
        borderpad=0,
        columnspacing=1.2,
    )


def _draw_row(ax: Axes, data: xr.Dataset, row: int, levels: Sequence[PartLevel], style: Style) -> None:
    values, low, high = (data[f"{name}_{row}"].to_numpy() for name in ("value", "low", "high"))
    x = np.arange(len(values))
    if levels:  # components have the same borders in every row
        borders = [start - 0.5 for start, _, _ in levels[-1].groups[1:]]
        lines = LineCollection(
            [[(at, 0), (at, 1)] for at in borders],
            linewidths=0.4,
            colors=style.colors["hair"],
            transform=ax.get_xaxis_transform(),
        )
        ax.add_collection(lines, autolim=False)
    tolerance_band.draw(ax, data, style)
    if data.attrs["peers"]:
        _peer_ranges(ax, x, low, high, style)
    title = title_of(data[f"value_{row}"])
    if "effect" in data.coords:
        effect = float(data.effect)
        ax.axhspan(float(data.effect_low), float(data.effect_high), color=style.color("alarm"), alpha=0.15, linewidth=0)
        ax.axhline(effect, color=style.color("alarm"), linewidth=0.7)
        words = f"{effect:+.1f} {data.effect.attrs['units']}"
        ax.set_title(words, loc="right", fontsize=style.letters_pt, color=style.color("alarm"))
    marked = data[f"marked_{row}"].to_numpy().astype(np.bool_)
    size = float(np.clip(200 / max(len(x), 1), 1.6, 3.5))
    pen: dict[str, Any] = {"linestyle": "", "label": "_finding" if not marked.all() else "_node"}
    dots = pen | {"label": "_node", "marker": "o", "markersize": size}
    if not marked.all():
        ax.plot(x[~marked], values[~marked], color=style.colors["node"], **dots)
    if marked.any():
        size = 4.0 if marked.sum() <= 40 else 160 / marked.sum()
        ax.plot(x[marked], values[marked], marker="^", color=style.color("alarm"), markersize=max(size, 1.8), **pen)
    ax.margins(y=0.1)
    ax.set_xlim(-0.7, len(x) - 0.3)
    ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    room = size_pt(ax)[0] - (8 * style.letters_pt if "effect" in data.coords else 0.0)
    ax.set_title(wrapped(title, room, style), fontsize=style.letters_pt)


def _peer_ranges(ax: Axes, x: Ints, low: Floats, high: Floats, style: Style) -> None:
    """Draw lines from the lowest to the highest of the peers at each place, all as one path."""
    ends = np.column_stack([low, high, np.full(len(x), np.nan)])
    ax.plot(
        np.repeat(x, 3),
        ends.ravel(),
        linewidth=1.2,
        color=style.colors["peers"],
        alpha=0.7,
        solid_capstyle="butt",
        label="_peers",
    )
