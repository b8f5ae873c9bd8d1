"""The pairs or cells of a finding: the node compared with its peers, with the finding's effect and own tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint.data.places.layout import SOCKET, Ints, codes
from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedNode, os_places
from nodeprint.errors import NodeprintError
from nodeprint.judge.verdict import Finding, Verdict
from nodeprint.report.figures import tolerance_band
from nodeprint.report.figures.figure_data import named
from nodeprint.report.figures.node_levels import Floats, NodeLevels, median_of_runs
from nodeprint.report.figures.part_levels import part_coordinates
from nodeprint.report.figures.strips import strip_of
from nodeprint.report.names import place as place_in_words
from nodeprint.report.names import row
from nodeprint.settings.texts import say

#: More pairs than these are reduced to the means by CPU.
MOST_PAIRS = 128


def unsuspected_peers(verdict: Verdict, levels: NodeLevels, node: str) -> tuple[str, ...]:
    """Return the nodes of a node's group without a finding of this measurement that counts; if none, all others."""
    measurement, nodes = levels.quantity.measurement, verdict.nodes
    group = [name for name in levels.rows if name != node and nodes[name].group == nodes[node].group]
    return tuple(n for n in group if not any(of.measurement == measurement for of in nodes[n].counted)) or tuple(group)


def own_places(levels: NodeLevels, node: str, finding: Finding, peers: Sequence[str] = ()) -> xr.Dataset:
    """Return the differences of a finding's pairs or cells from their expected values, in percent (a share: points).

    Values are those of the node in the deciding job, and of the peers (all others if none are named). The expected
    value is the median of the peers. It shifts with the node's other pairs of the same class. A finding of a core is
    thus the difference that the core adds to its node. The places of the finding are marked. Raises NodeprintError if
    the finding names no places of the measurement, or there is no peer.
    """
    quantity = levels.quantity
    values, others = _of_job(levels, node, finding), levels.of_peers(node, peers)
    if not len(others):
        raise NodeprintError(f"{node} has no peer to differ from", advice="draw its values instead")
    of_node = levels.nodes[levels.rows[node]]
    at = _pair_places(levels, node, finding) if quantity.of_pairs else _cell_places(quantity, of_node, finding)
    strata, of_finding = _strata(quantity, finding.home) if quantity.of_pairs and len(at) else None, at
    if not len(at):
        advice = "judge the campaign again with this version"
        raise NodeprintError(f"finding {finding.id} of {node} names no measured places", advice=advice)
    if not quantity.of_pairs and len(at) == 1:  # a single value needs the node's other CPUs for comparison
        at = _beside(quantity, at)
    middle = np.nanmedian(others, axis=0)
    share = quantity.model.scale == "share"
    difference = _differences(values[None], middle, at, strata, share)[0]
    peer_difference = _differences(others, middle, at, strata, share)
    names, axis, groups, slots = (
        _pair_names(levels, node, at) if quantity.of_pairs else _cell_names(quantity, of_node, at)
    )

    def gathered(of_places: Floats) -> Floats:
        return np.array([np.nanmean(of_places[rows]) for rows in groups])

    size = levels.unit.size
    peers_known = np.array([gathered(row) for row in peer_difference])
    peer_values = np.array([gathered(row) for row in others[:, at] / size])
    what = say("axes", "lost_expected") if share else "difference from the peers, %"
    own = np.array([np.isin(at[rows], of_finding).any() for rows in groups])
    measured = (gathered(values[at] / size), peer_values)
    return (
        finding_strip(
            finding, node, (axis, names), measured, levels.title, (gathered(difference), peers_known), what, own
        )
        .assign_coords(part_coordinates("place", slots) if slots is not None else {})
        .assign_attrs(peers=len(others))
    )


def finding_strip(
    finding: Finding,
    node: str,
    places: tuple[str, Sequence[str]],
    measured: tuple[Floats, Floats],
    title: str,
    differences: tuple[Floats, Floats],
    what: str,
    own: npt.NDArray[np.bool_],
) -> xr.Dataset:
    """Return the strip of a finding: differences and values of its places on the node and its peers (peer, place).

    `places` are the axis and names of the places, `own` selects those of the finding. Effect, interval and tolerance
    are those of the finding.
    """
    axis, names = places
    unit = title.rpartition(", ")[2]
    values = {
        "node_value": named("place", measured[0], f"{node}, {unit}"),
        **{
            f"peers_{word}": named("place", reduce(measured[1], axis=0), f"peers' {word}, {unit}")
            for word, reduce in (("lowest", np.nanmin), ("median", np.nanmedian), ("highest", np.nanmax))
        },
    }
    percent = what.rpartition(", ")[2]
    ends = (("effect", finding.effect), ("effect_low", finding.interval.low), ("effect_high", finding.interval.high))
    coordinates = {
        "place": named("place", np.array(names, dtype=object), axis),
        "marked_0": named("place", own, "of the finding"),
        **{name: named((), 100 * end, f"{name.replace('_', ' ')}, {percent}") for name, end in ends},
        **tolerance_band.of_finding(finding),
    }
    variables = values | strip_of("place", *differences, what, f"peers' {{}} difference, {percent}")
    return xr.Dataset(variables, coordinates, {"node": node, "measured": title})


def _of_job(levels: NodeLevels, node: str, finding: Finding) -> Floats:
    """Return the node's values in the deciding job, or in its newest job if the finding has none."""
    quantity, name = levels.quantity, levels.rows
    job = finding.by_job[finding.deciding].job.removeprefix("job") if finding.by_job else ""
    fleet_number = next(number for row, number in enumerate(quantity.newest_rows) if row == name[node])
    rows = quantity.rows[fleet_number].get(int(job)) if job.isdigit() else None
    return median_of_runs(quantity, rows) if rows else levels.of(node)


def _differences(values: Floats, middle: Floats, at: Ints, strata: Ints | None, share: bool) -> Floats:
    """Return the difference from the expected value by node and place of the finding, in percent."""
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
    """Return the class of each place's pair with its sockets; -1 for places at other homes."""
    pairs = quantity.pairs
    sockets = np.sort(quantity.layout.slots[pairs, SOCKET], axis=1)
    of_pair = codes(np.column_stack([quantity.pair_layout.classes, sockets]))
    out = np.full(quantity.size, -1, dtype=np.int64)
    start = quantity.homes.index(home) * len(pairs)
    out[start : start + len(pairs)] = of_pair
    return out


def _pair_places(levels: NodeLevels, node: str, finding: Finding) -> Ints:
    """Return the places of a finding's pairs at its home, in order."""
    quantity = levels.quantity
    if finding.home not in quantity.homes:
        return np.zeros(0, dtype=np.int64)
    slot = {cpu: number for number, cpu in enumerate(levels.cpus(node, range(len(quantity.layout.slots))))}
    wanted = {
        tuple(sorted((slot[a], slot[b])))
        for a, partners in finding.pairs.items()
        for b in partners
        if a in slot and b in slot
    }
    start = quantity.homes.index(finding.home) * len(quantity.pairs)
    places = [start + number for number, pair in enumerate(map(tuple, quantity.pairs.tolist())) if pair in wanted]
    return np.array(places, dtype=np.int64)


def _pair_names(levels: NodeLevels, node: str, at: Ints) -> tuple[tuple[str, ...], str, list[Ints], Ints | None]:
    """Return the names of the places, the title of the axis, the pairs of each place, and their slots."""
    quantity = levels.quantity
    cpus = levels.cpus(node, range(len(quantity.layout.slots)))
    ends = np.stack([quantity.places["a"][at], quantity.places["b"][at]], axis=1)
    first = ends[0].tolist()
    common = [cpu for cpu in first if len(at) > 1 and (ends == cpu).any(axis=1).all()]
    if common:
        partner = np.where(ends[:, 0] == common[0], ends[:, 1], ends[:, 0])
        order = np.argsort(partner)
        groups = [np.array([row]) for row in order.tolist()]
        names = tuple(str(cpus[slot]) for slot in partner[order].tolist())
        return names, f"partner of CPU {cpus[common[0]]}", groups, quantity.layout.slots[partner[order]]
    if len(at) <= MOST_PAIRS:
        names = tuple(f"{cpus[a]}\N{EN DASH}{cpus[b]}" for a, b in ends.tolist())
        return names, "pair of CPUs", [np.array([row]) for row in range(len(at))], None
    slots = np.unique(ends)
    groups = [np.flatnonzero((ends == slot).any(axis=1)) for slot in slots.tolist()]
    names = tuple(str(cpus[slot]) for slot in slots.tolist())
    return names, say("axes", "own_cpus"), groups, quantity.layout.slots[slots]


def _cell_places(quantity: Measured, node: PackedNode, finding: Finding) -> Ints:
    wanted = [dict(cell) for cell in finding.cells]
    numbers = [
        number
        for number, place in enumerate(os_places(quantity, node))
        if any(all(place.get(dim) == value for dim, value in cell.items()) for cell in wanted)
    ]
    return np.array(numbers, dtype=np.int64)


def _beside(quantity: Measured, at: Ints) -> Ints:
    """Return the places that differ from one only in their CPU; the place itself if there are no CPUs."""
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
    """Return the name of a dimension in a title."""
    return _DIMS.get(dim, dim.replace("_", " "))


def _cell_names(quantity: Measured, node: PackedNode, at: Ints) -> tuple[tuple[str, ...], str, list[Ints], Ints | None]:
    every = os_places(quantity, node)
    places = [every[number] for number in at.tolist()]
    varying = [dim for dim in quantity.dims if len({place[dim] for place in places}) > 1] or list(quantity.dims)
    fixed = {dim: places[0][dim] for dim in quantity.dims if dim not in varying}
    names = tuple(row(", ".join(str(place[dim]) for dim in varying)) for place in places)
    axis = ", ".join(map(dim_name, varying)) + (f" ({place_in_words(fixed)})" if fixed else "")
    of_cpus = len(varying) == 1 and quantity.model.labels.get(varying[0]) == "cpu"
    slots = quantity.layout.slots[quantity.places[varying[0]][at]] if of_cpus else None
    return names, axis, [np.array([row]) for row in range(len(at))], slots
