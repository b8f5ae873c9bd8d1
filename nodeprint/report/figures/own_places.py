"""The pairs or cells that a finding is of: the node beside its peers, with the finding's effect and its own
tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from nodeprint.data.places.layout import SOCKET, Ints, codes
from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedNode, os_places
from nodeprint.errors import NodeprintError
from nodeprint.judge.verdict import Finding, NodeVerdict, Verdict
from nodeprint.report.figures import tolerance_band
from nodeprint.report.figures.node_levels import Floats, NodeLevels, median_of_runs
from nodeprint.report.figures.part_levels import (
    PartLevel,
    letters,
    name_below,
    part_levels,
    size_pt,
)
from nodeprint.report.figures.pixels import wrapped
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.strips import peer_ranges
from nodeprint.report.figures.style import Style
from nodeprint.report.figures.tolerance_band import Tolerance
from nodeprint.report.names import place as place_in_words
from nodeprint.report.names import row, shortened
from nodeprint.settings.texts import say

#: More pairs than these are shown as the means of each CPU's.
MOST_PAIRS = 128
#: Letters of the node's name in the legend.
_LETTERS = 24
#: The effect and the lines of a legend take the room of so many letters.
_BESIDE = 22


class OwnPlaces(msgspec.Struct, frozen=True):
    """The pairs or cells of a finding: values of the node and its peers in the unit of `value_title`, and how much the
    node and the peers differ from what is expected there, in percent (percentage points of a share of the time).

    Expected is the median of the peers, moved by what the node's pairs of the same class that are not of the finding
    differ by: a finding of a core is what the core adds to its node. `axis` says what the places are, `levels` are
    their parts, `own` are the finding's: all, or one among those beside it. `tolerance`, `effect` and `interval` are
    the finding's.
    """

    places: tuple[str, ...]
    node: str
    peers: int
    values: Floats
    peer_low: Floats
    peer_median: Floats
    peer_high: Floats
    difference: Floats
    peer_difference_low: Floats
    peer_difference_high: Floats
    tolerance: Tolerance
    effect: float
    interval: tuple[float, float]
    axis: str
    value_title: str
    title: str
    own: tuple[int, ...]
    levels: tuple[PartLevel, ...] = ()

    def frame(self, width: float) -> Frame:
        """A strip, with the parts as brackets below."""
        return Frame(width, 24.0)

    def table(self) -> pd.DataFrame:
        """A row for each place."""
        unit = self.value_title.rpartition(", ")[2]
        return pd.DataFrame(
            {
                self.axis: self.places,
                f"{self.node}, {unit}": self.values,
                f"peers' lowest, {unit}": self.peer_low,
                f"peers' median, {unit}": self.peer_median,
                f"peers' highest, {unit}": self.peer_high,
                self.title: self.difference,
                "peers' lowest difference": self.peer_difference_low,
                "peers' highest difference": self.peer_difference_high,
                "tolerance below": -self.tolerance.below,
                "tolerance above": self.tolerance.above,
            }
        )


def unsuspected_peers(verdict: Verdict, levels: NodeLevels, node: str) -> tuple[str, ...]:
    """The nodes of a node's group without a finding of this measurement that counts; all others where that leaves
    none."""
    measurement, nodes = levels.quantity.measurement, verdict.nodes
    group = [name for name in levels.rows if name != node and nodes[name].group == nodes[node].group]
    return tuple(name for name in group if not _has_finding(nodes[name], measurement)) or tuple(group)


def _has_finding(node: NodeVerdict, measurement: str) -> bool:
    return any(finding.measurement == measurement for finding in node.counted)


def own_places(levels: NodeLevels, node: str, finding: Finding, peers: Sequence[str] = ()) -> OwnPlaces:
    """The pairs or cells of a finding on its node, in the job that decides, and on the peers (all others where none are
    named). Raises NodeprintError where the finding names none of the measurement, or there is no peer."""
    quantity = levels.quantity
    values, others = _of_job(levels, node, finding), levels.of_peers(node, peers)
    if not len(others):
        raise NodeprintError(f"{node} has no peer to differ from", advice="draw its values instead")
    of_node = levels.nodes[levels.rows[node]]
    if quantity.of_pairs:
        at = _pair_places(quantity, of_node, finding)
        strata = _strata(quantity, finding.home)
    else:
        at, strata = _cell_places(quantity, of_node, finding), None
    of_finding = at
    if not len(at):
        advice = "judge the campaign again with this version"
        raise NodeprintError(f"finding {finding.id} of {node} names no measured places", advice=advice)
    if not quantity.of_pairs and len(at) == 1:  # one value says more beside those of the node's other CPUs
        at = _beside(quantity, at)
    middle = np.nanmedian(others, axis=0)
    share = quantity.model.scale == "share"
    difference = _differences(values[None], middle, at, strata, share)[0]
    peer_difference = _differences(others, middle, at, strata, share)
    names, axis, groups, components = (
        _pair_names(quantity, of_node, at) if quantity.of_pairs else _cell_names(quantity, of_node, at)
    )

    def gathered(of_places: Floats) -> Floats:
        return np.array([np.nanmean(of_places[rows]) for rows in groups])

    size = levels.unit.size
    peers_known = np.array([gathered(row) for row in peer_difference])
    peer_values = np.array([gathered(row) for row in others[:, at] / size])
    what = say("axes", "lost_expected") if share else "difference from the peers, %"
    return OwnPlaces(
        names,
        node,
        len(others),
        gathered(values[at] / size),
        np.nanmin(peer_values, axis=0),
        np.nanmedian(peer_values, axis=0),
        np.nanmax(peer_values, axis=0),
        gathered(difference),
        np.nanmin(peers_known, axis=0),
        np.nanmax(peers_known, axis=0),
        tolerance_band.of_finding(finding),
        100 * finding.effect,
        (100 * finding.interval.low, 100 * finding.interval.high),
        axis,
        levels.title,
        what,
        tuple(number for number, rows in enumerate(groups) if np.isin(at[rows], of_finding).any()),
        components,
    )


def _of_job(levels: NodeLevels, node: str, finding: Finding) -> Floats:
    """The node's values in the job that decides; of its newest job where the finding has none."""
    quantity, name = levels.quantity, levels.rows
    job = finding.by_job[finding.deciding].job.removeprefix("job") if finding.by_job else ""
    fleet_number = next(number for row, number in enumerate(quantity.newest_rows) if row == name[node])
    rows = quantity.rows[fleet_number].get(int(job)) if job.isdigit() else None
    return median_of_runs(quantity, rows) if rows else levels.of(node)


def _differences(values: Floats, middle: Floats, at: Ints, strata: Ints | None, share: bool) -> Floats:
    """By node and place of the finding the difference from what is expected, in percent."""
    if share:
        return np.asarray(100 * (values[:, at] - middle[at]))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = values / middle - 1
    out = relative[:, at].astype(np.float64)
    if strata is not None:
        rest = np.ones(len(middle), dtype=np.bool_)
        rest[at] = False
        for stratum in np.unique(strata[at]):
            beside = rest & (strata == stratum)
            if beside.any():
                of_stratum = strata[at] == stratum
                out[:, of_stratum] -= np.nanmedian(relative[:, beside], axis=1, keepdims=True)
    return np.asarray(100 * out)


def _strata(quantity: Measured, home: int) -> Ints:
    """By place the class of its pair with its sockets; -1 of places at other homes."""
    pairs = quantity.pairs
    sockets = np.sort(quantity.layout.slots[pairs, SOCKET], axis=1)
    of_pair = codes(np.column_stack([quantity.pair_layout.classes, sockets]))
    out = np.full(quantity.size, -1, dtype=np.int64)
    start = quantity.homes.index(home) * len(pairs)
    out[start : start + len(pairs)] = of_pair
    return out


def _pair_places(quantity: Measured, node: PackedNode, finding: Finding) -> Ints:
    """The places of a finding's pairs at its home, in order."""
    if finding.home not in quantity.homes:
        return np.zeros(0, dtype=np.int64)
    slot = {cpu: number for number, cpu in enumerate(node.cpus or range(len(quantity.layout.slots)))}
    wanted = {
        tuple(sorted((slot[a], slot[b])))
        for a, partners in finding.pairs.items()
        for b in partners
        if a in slot and b in slot
    }
    start = quantity.homes.index(finding.home) * len(quantity.pairs)
    places = [start + number for number, pair in enumerate(map(tuple, quantity.pairs.tolist())) if pair in wanted]
    return np.array(places, dtype=np.int64)


def _pair_names(
    quantity: Measured, node: PackedNode, at: Ints
) -> tuple[tuple[str, ...], str, list[Ints], tuple[PartLevel, ...]]:
    """What the places along the axis are called, what the axis is, which of the pairs each has, and their parts."""
    cpus = node.cpus or tuple(range(len(quantity.layout.slots)))
    ends = np.stack([quantity.places["a"][at], quantity.places["b"][at]], axis=1)
    first = ends[0].tolist()
    common = [cpu for cpu in first if len(at) > 1 and (ends == cpu).any(axis=1).all()]
    if common:
        partner = np.where(ends[:, 0] == common[0], ends[:, 1], ends[:, 0])
        order = np.argsort(partner)
        groups = [np.array([row]) for row in order.tolist()]
        names = tuple(str(cpus[slot]) for slot in partner[order].tolist())
        components = part_levels(quantity.layout.slots[partner[order]])
        return names, f"partner of CPU {cpus[common[0]]}", groups, components
    if len(at) <= MOST_PAIRS:
        names = tuple(f"{cpus[a]}\N{EN DASH}{cpus[b]}" for a, b in ends.tolist())
        return names, "pair of CPUs", [np.array([row]) for row in range(len(at))], ()
    slots = np.unique(ends)
    groups = [np.flatnonzero((ends == slot).any(axis=1)) for slot in slots.tolist()]
    names = tuple(str(cpus[slot]) for slot in slots.tolist())
    return names, say("axes", "own_cpus"), groups, part_levels(quantity.layout.slots[slots])


def _cell_places(quantity: Measured, node: PackedNode, finding: Finding) -> Ints:
    wanted = [dict(cell) for cell in finding.cells]
    numbers = [
        number
        for number, place in enumerate(os_places(quantity, node))
        if any(all(place.get(dim) == value for dim, value in cell.items()) for cell in wanted)
    ]
    return np.array(numbers, dtype=np.int64)


def _beside(quantity: Measured, at: Ints) -> Ints:
    """The places that differ from one in their CPU alone; it alone where there are no CPUs."""
    if "cpu" not in quantity.dims:
        return at
    alike = np.ones(quantity.size, dtype=np.bool_)
    for dim in (dim for dim in quantity.dims if dim != "cpu"):
        alike &= quantity.places[dim] == quantity.places[dim][at[0]]
    return np.flatnonzero(alike)


_DIMS = {
    "cpu": "CPU",
    "a": "CPU",
    "b": "CPU",
    "cpu_node": "NUMA node of the CPUs",
    "memory_node": "NUMA node of the memory",
}


def dim_name(dim: str) -> str:
    """A dimension of places as a title has it."""
    return _DIMS.get(dim, dim.replace("_", " "))


def _cell_names(
    quantity: Measured, node: PackedNode, at: Ints
) -> tuple[tuple[str, ...], str, list[Ints], tuple[PartLevel, ...]]:
    every = os_places(quantity, node)
    places = [every[number] for number in at.tolist()]
    varying = [dim for dim in quantity.dims if len({place[dim] for place in places}) > 1] or list(quantity.dims)
    fixed = {dim: places[0][dim] for dim in quantity.dims if dim not in varying}
    names = tuple(row(", ".join(str(place[dim]) for dim in varying)) for place in places)
    axis = ", ".join(map(dim_name, varying)) + (f" ({place_in_words(fixed)})" if fixed else "")
    components: tuple[PartLevel, ...] = ()
    if len(varying) == 1 and quantity.model.labels.get(varying[0]) == "cpu":
        components = part_levels(quantity.layout.slots[quantity.places[varying[0]][at]])
    return names, axis, [np.array([row]) for row in range(len(at))], components


def own_differences(ax: Axes, data: OwnPlaces, style: Style) -> None:
    """Draw by place how much the node (triangles) and its peers (lines from lowest to highest) differ from what is
    expected, with the finding's effect and its tolerance."""
    x = np.arange(len(data.places))
    data.tolerance.draw(ax, style)
    peer_ranges(ax, x, data.peer_difference_low, data.peer_difference_high, style)
    ax.axhspan(*data.interval, color=style.color("alarm"), alpha=0.15, linewidth=0)
    ax.axhline(data.effect, color=style.color("alarm"), linewidth=0.7)
    _node_marks(ax, x, data, style)
    longest = max(map(len, data.places))
    turned = longest > 3 and (longest + 1.5) * len(data.places) > letters(ax, 1.0, style)
    name_below(ax, data.places, data.levels, data.axis, style, turned=turned)
    ax.set_ylabel(wrapped(data.title, size_pt(ax)[1], style))
    ax.margins(y=0.08)
    ax.set_title(f"{data.effect:+.1f} %", fontsize=style.letters_pt, color=style.color("alarm"))
    lines = {line.get_label(): line for line in ax.get_lines()}
    dashed = Line2D([], [], color=style.colors["tolerance"], linewidth=0.7, linestyle=(0, (4, 2)))
    words = [shortened(data.node, _LETTERS), f"{data.peers} peers", f"tolerance {data.tolerance.text}"]
    ax.legend(
        [lines["_node"], lines["_peers"], dashed],
        words,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=3 if len("".join(words)) + _BESIDE < letters(ax, 1.0, style) else 1,
        borderpad=0.2,
        columnspacing=1.2,
    )


def _node_marks(ax: Axes, x: Ints, data: OwnPlaces, style: Style) -> None:
    size = float(np.clip(160 / max(len(x), 1), 1.8, 4.0))
    own, beside = list(data.own), np.setdiff1d(x, data.own)
    pen: dict[str, Any] = {"linestyle": "", "color": style.colors["node"]}
    if beside.size:
        ax.plot(beside, data.difference[beside], marker="o", markersize=min(size, 2.4), **pen)
        size = 4.0
    ax.plot(own, data.difference[own], marker="^", markersize=size, label="_node", **pen)
