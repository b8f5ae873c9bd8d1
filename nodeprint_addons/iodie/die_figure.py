"""The map of an I/O die: its sites with CCDs and memory, and the cost of the path from site to site."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from msgspec.structs import astuple

from nodeprint.machine import dies
from nodeprint.machine.topology.level_names import level_name
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint_addons.iodie import listing, sentences
from nodeprint_addons.iodie.data import rows_of
from nodeprint_addons.iodie.die import Die
from nodeprint_addons.iodie.iodie_texts import say

#: In mm: a site, a CCD next to it, and the gaps between sites across and along.
_SITE, _END, _ACROSS, _ALONG = (34.0, 15.0), (23.0, 7.0), 26.0, 12.0
_WIDTH = 2 * (_END[0] + 3 + _SITE[0]) + _ACROSS
#: So many sites have room for a line between every two.
_MOST_LINKED = 6


def of_die(die: Die) -> xr.Dataset | None:
    """The data of a die's figure; None without a map, or with too many sites without a geometry.

    A `site` has its name, row, column, and share of lines. An `end`, a CCD (or CCX), has its site, its cost in ns, and
    whether that is much more than for the others (`odd`). A `way` has the sites of both ends, and its extra cost to a
    line in ns. It also says whether it is drawn, as a step is. All have `half` of the 95% interval.
    """
    if die.sites is None or die.to_lines is None or (die.geometry is None and die.sites.with_memory > _MOST_LINKED):
        return None
    word, places, numbers = level_name(die.level), _places(die), range(die.sites.with_memory)
    sites = pd.DataFrame(
        [(sentences.site_name(die, number), *places[number], *astuple(die.share(number))) for number in numbers],
        columns=["name", "row", "column", "share", "half"],
    )
    site_of = {end: number for number in numbers for end in sentences.ends_of(die, number)}
    ends = die.own_parts.loc[list(site_of)].assign(
        site=list(site_of.values()), name=[f"{word} {end}" for end in site_of]
    )
    between = die.to_lines.between
    ways = pd.DataFrame(between.ends, columns=["start", "end"]).assign(
        ns=between.ns, half=between.half, drawn=[_is_step(die, int(p), int(q)) for p, q in between.ends]
    )
    shape = f"as a {sentences.shape(die.geometry)}" if die.geometry is not None else "without a named geometry"
    columns = {
        f"{dim}_{name}": (dim, table[name].to_numpy())
        for dim, table in (("site", sites), ("end", ends), ("way", ways))
        for name in table
    }
    return xr.Dataset(columns, attrs={"title": f"{sentences.title(die)}, {shape}"})


def _table(data: xr.Dataset, dim: str) -> pd.DataFrame:
    """The sites, ends or ways of a die, a row each."""
    names = [str(name) for name in data if data[name].dims == (dim,)]
    return pd.DataFrame({name.removeprefix(f"{dim}_"): data[name].to_numpy() for name in names})


def _rows(data: xr.Dataset) -> tuple[int, float]:
    """The number of rows of sites, and the height of each with the path to the next, in mm."""
    most = int(_table(data, "end")["site"].value_counts().max())
    return 1 + int(data["site_row"].max()), max(_SITE[1], most * (_END[1] + 1)) + _ALONG


def _frame(data: xr.Dataset, width: float) -> Frame:
    """As large as its boxes; it has no scale."""
    rows, height = _rows(data)
    return Frame(width, rows * height, least=_WIDTH, most=_WIDTH)


def _places(die: Die) -> dict[int, tuple[int, int]]:
    """Row and column of each site."""
    assert die.sites is not None
    if die.geometry is None or die.geometry.kind == "crossbar":
        return {site: (site // 2, site % 2) for site in range(die.sites.with_memory)}
    rows = listing.grid(die.geometry)
    return {site: (r, c) for r, row in enumerate(rows) for c, site in enumerate(row) if site is not None}


def _is_step(die: Die, p: int, q: int) -> bool:
    """Whether the way between two sites is a single step of the geometry, or there is none."""
    geometry = die.geometry
    if geometry is None:
        return True
    return bool(dies.steps(geometry.kind, geometry.sites)[geometry.site[p], geometry.site[q]] == 1)


@primitive(_frame)
def die(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw the sites with their ends and memory, and the paths with their costs, in mm from the upper left."""
    (rows, height), sites, ends, ways = _rows(data), *(_table(data, dim) for dim in ("site", "end", "way"))
    ax.set_axis_off()
    ax.set_xlim(0, _WIDTH)
    ax.set_ylim(rows * height, 0)
    ax.set_aspect("equal", anchor="NW")
    ax.set_title(say("axis", title=data.attrs["title"]), fontsize=style.letters_pt)
    above = (height - _ALONG - _SITE[1]) / 2
    top = sites["row"] * height + above
    left = _END[0] + 3 + sites["column"] * (_SITE[0] + _ACROSS)
    for way in rows_of(ways[ways["drawn"]]):
        both = [(left[n] + _SITE[0] / 2, top[n] + _SITE[1] / 2) for n in (way.start, way.end)]
        _draw_way(ax, both[0], both[1], sentences.cost(way.ns, way.half), style)
    for site in rows_of(sites):
        _draw_site(ax, site, ends[ends["site"] == site.Index], left[site.Index], top[site.Index], style)


def _draw_way(ax: Axes, start: tuple[float, float], end: tuple[float, float], cost: str, style: Style) -> None:
    """A line with its cost on it; two diagonals of a square cross in the middle, so theirs are nearer to one end."""
    ax.plot([start[0], end[0]], [start[1], end[1]], color=style.colors["ink"], linewidth=1.2, zorder=1)
    share = 0.5 if start[0] == end[0] or start[1] == end[1] else 0.32
    x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
    ax.text(
        x,
        y,
        cost,
        ha="center",
        va="center",
        fontsize=style.smallest_letters_pt,
        zorder=2,
        bbox={"facecolor": style.colors["paper"], "edgecolor": "none", "pad": 1.0},
    )


def _draw_site(ax: Axes, site: Any, ends: pd.DataFrame, x: float, y: float, style: Style) -> None:
    """Draw a site (its row) and its `ends` next to it."""
    small, ink, quiet = style.smallest_letters_pt, style.colors["ink"], style.colors["quiet"]
    ax.add_patch(Rectangle((x, y), *_SITE, facecolor=style.colors["wash"], edgecolor=ink, linewidth=0.8, zorder=3))
    ax.text(x + _SITE[0] / 2, y + 3, site.name, ha="center", va="center", zorder=4, fontweight="bold")
    text = f"{100 * site.share:.0f} ± {100 * site.half:.0f}% of lines"
    ax.text(x + _SITE[0] / 2, y + 7.3, text, ha="center", va="center", zorder=4, fontsize=small)
    for length, color in ((1.0, "paper"), (min(site.share, 1.0), "quiet")):
        bar = Rectangle((x + 3, y + 10.2), (_SITE[0] - 6) * length, 2.2, facecolor=style.colors[color], zorder=4)
        ax.add_patch(bar)
    outside = x - _END[0] - 1.5 if site.column == 0 else x + _SITE[0] + 1.5
    first = y + _SITE[1] / 2 - len(ends) * (_END[1] + 1) / 2
    for number, end in enumerate(rows_of(ends)):
        at = first + number * (_END[1] + 1)
        edge = style.color("alarm" if end.odd else "hair")
        ax.add_patch(Rectangle((outside, at), *_END, facecolor=style.colors["paper"], edgecolor=edge, zorder=3))
        mark = "\N{BLACK UP-POINTING TRIANGLE} " if end.odd else ""
        lines = (
            (2.1, f"{mark}{end.name}", edge if end.odd else ink),
            (5.1, f"{sentences.cost(end.ns, end.half)} ns", quiet),
        )
        for below, words, color in lines:
            ax.text(outside + 1, at + below, words, va="center", fontsize=small, color=color, zorder=4)
