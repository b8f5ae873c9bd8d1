"""Parts that are found where labels are missing: drawn in one piece each, and no median of a mixture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection

from nodeprint.data.places.layout import SOCKET
from nodeprint.data.store.packed import PackedFleet
from nodeprint.machine.topology.presets import preset
from nodeprint.report.figures import matrix, node_levels, render
from nodeprint.report.figures import style as styles
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.figures.part_levels import PartLevel, found_at, in_groups, part_levels, structure_at
from nodeprint.report.text import structure_sentences
from nodeprint.simulate import Plan, fleet
from nodeprint.structure.found import FoundLevel, PairClass, Structure

NODE = "node000"


def levels(*, labeled: bool, slow_socket: float = 1.0) -> NodeLevels:
    """A node of two sockets, one of which may be slower inside; without labels its CPUs are in another order."""
    plan = Plan(preset("naples-2x32"), nodes=2, runs=2, passes=1)
    whole = fleet(plan)
    quantity = whole.pairs[0]
    inside = (quantity.layout.slots[quantity.pairs, SOCKET] == 0).all(axis=1)
    values = quantity.values * np.where(inside, slow_socket, 1.0).astype(np.float32)
    slots = quantity.layout.slots
    if not labeled:
        slots = np.full_like(slots, -1)
        slots[:, 4] = np.arange(len(slots))
    made = quantity.assign(values=values, layout=replace(quantity.layout, slots=slots))
    of = PackedFleet(whole.campaign, simulated=True, nodes=whole.nodes, quantities=(made,))
    return node_levels.levels(of, quantity.measurement, NODE)


def test_groups_are_outlined_where_labels_are_missing() -> None:
    data = matrix.of_node(levels(labeled=False), NODE)
    labeled = matrix.of_node(levels(labeled=True), NODE)
    assert {level.name for level in part_levels(data, "b")} >= {"CCX?", "socket?"}
    assert data.attrs["axis"] == "CPU, in the groups that were found"
    of_ccx, known = (
        {frozenset(of.b.to_numpy()[start:stop]) for start, stop, _ in part_levels(of, "b")[0].groups}
        for of in (data, labeled)
    )
    assert of_ccx == known
    drawn = render.figure(matrix.matrix, data, styles.load(), 128.0)
    outlines = [c for c in drawn.axes[0].collections if isinstance(c, LineCollection)]
    assert sum(len(c.get_segments()) for c in outlines) >= len(known)


def test_clusters_of_a_hybrid_have_numbers_and_its_cores_kinds() -> None:
    """Two cores with two threads each, and two clusters of two cores with one."""
    groups = ((0, 1), (2, 3), (4, 5), (6, 7))
    near = (PairClass("", 4.0, 2),)
    core = FoundLevel("smt", (*groups[:2], (4,), (5,), (6,), (7,)), near, near, 1.0)
    structure = Structure((core, FoundLevel("group", groups, near, near, 1.0)), (), (), ())
    group, kinds = levels_of(structure)
    assert [label for *_, label in group.groups] == ["", "", "0", "1"]
    assert list(kinds.groups) == [(0, 4, "2"), (4, 8, "1")]
    alike = levels_of(Structure((FoundLevel("group", groups, near, near, 1.0),), (), (), ()))
    assert [level.name for level in alike] == ["group?"]


def levels_of(structure: Structure) -> tuple[PartLevel, ...]:
    return part_levels(xr.Dataset(coords=in_groups(structure, tuple(range(8)))[1]), "place")


def test_labeled_machines_are_searched_where_they_are_asked() -> None:
    of = levels(labeled=True)
    matrix.of_node(of, NODE)
    assert not of.found
    assert structure_sentences.structure_summary(found_at(of, NODE)).startswith("16 groups of 4 CPUs: ")  # type: ignore[arg-type]


def test_levels_of_unlike_sockets_have_a_median_for_each() -> None:
    of = levels(labeled=False, slow_socket=2.0)
    seen = structure_at(of, NODE)
    assert seen is not None
    first = [pairs.median_ns for pairs in seen.levels[0].within]
    assert len(first) == 2
    assert max(first) == pytest.approx(2 * min(first), rel=0.05)
