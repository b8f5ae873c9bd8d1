"""Parts of a machine in the numbers of a node: its own where they are known, canonical ones where they are not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nodeprint.data.places.layout import RANK
from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import naming
from nodeprint.judge.reduction import Matrix
from tests.support.fleets import judged


def of_pairs() -> Matrix:
    """64 cores of two threads each on two sockets."""
    return next(series.matrix for series in judged(nodes=3).tables if series.matrix.measured.of_pairs)


#: Of 20 CPUs: the first ten cores.
NODE = PackedNode("n1", cores=tuple(range(100, 120)), cpus=tuple(range(200, 220)))


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ({"core": 9}, {"core": 118, "cpu": 218}),  # its first CPU is in the slot 18
        ({"core": 10}, {"core": 10}),  # a node that does not have so many
        ({"core": 9, "across": 1}, {"core": 118, "cpu": 218, "across": 1}),
        ({"class": 1}, {"class": "same CCX"}),
        ({"inside": 1}, {"inside": "ccx"}),
        ({"socket": 0, "to_socket": 1}, {"socket": 0, "to_socket": 1}),
    ],
)
def test_a_part_of_pairs_has_the_numbers_of_the_node(where: dict[str, Any], named: dict[str, Any]) -> None:
    assert naming.place(of_pairs(), where, NODE) == named


def test_levels_are_called_by_what_they_are_and_numbered_as_on_the_chip() -> None:
    """Three components of a level, of which the second has the number 0 and the third none."""
    slots = np.zeros((3, RANK + 2), dtype=np.int64)
    slots[:, 1] = [4, 0, -1]
    layout: Any = SimpleNamespace(
        slots=slots,
        first=[np.arange(3)] * slots.shape[1],
        levels=("socket", "numa", "ccd", "cluster"),
        column=lambda _: 1,
        finest="",
    )
    for component, number in ((0, 4), (1, 0), (2, 2)):
        assert naming._of_pairs({"to_quadrant": component}, layout, NODE) == {"to_numa": number}
    assert naming._of_pairs({"inside": 1}, layout, NODE) == {}
    layout.finest = "cluster"
    assert naming._of_pairs({"inside": 1}, layout, NODE) == {"inside": "cluster"}


def test_a_place_of_cells_has_the_numbers_of_the_node() -> None:
    model: Any = SimpleNamespace(labels={"cpu": "cpu", "b": "cpu", "memory_node": "node", "at": "node_of_cpu"})
    node = PackedNode("n1", numbers={"cpu": (7, 5), "core": (3, 2), "node": (1, 0)})
    named = naming.numbered({"cpu": 1, "b": 0, "memory_node": 0, "at": 1, "stream": "load"}, node, model)
    assert named == {"core": 2, "cpu": 5, "core_b": 3, "cpu_b": 7, "memory_node": 1, "node_at": 0, "stream": "load"}
    unknown = naming.numbered({"cpu": 2, "memory_node": -1}, node, model)
    assert unknown == {"core": 2, "cpu": 2, "memory_node": -1}


def test_canonical_keys_are_the_same_on_every_node() -> None:
    matrix = of_pairs()
    of_cores = {naming.key(matrix, term) for term in matrix.terms.terms if term.component_type == "core-near"}
    assert {"core=0", "core=63"} <= of_cores
    cells = next(of.matrix for of in judged(nodes=3, cells=True).tables if of.matrix.name == "clock-together")
    layout: Any = cells.terms.layout
    term: Any = SimpleNamespace(where={"cpu": 1})
    first = layout.first[RANK].tolist()
    for slot in (first[1], len(layout.slots) - 1):
        term.where = {"cpu": slot}
        core = max(number for number, begin in enumerate(first) if begin <= slot)
        thread = f",thread={slot - first[core]}" if slot > first[core] else ""
        assert naming.key(cells, term) == f"core={core}{thread}"
    term.where = {}
    assert naming.key(cells, term) == "all"


def test_pairs_are_listed_by_their_lower_cpu() -> None:
    matrix = of_pairs()
    covers = np.arange(4)
    slots = np.asarray(matrix.terms.layout.pairs[covers])
    reversed_cpus = tuple(range(len(matrix.terms.layout.slots)))[::-1]
    named = naming.cpu_pairs(matrix, covers, PackedNode("n1", cpus=reversed_cpus))
    expected = sorted(tuple(sorted((reversed_cpus[a], reversed_cpus[b]))) for a, b in slots.tolist())
    assert sorted((a, b) for a, partners in named.items() for b in partners) == expected
    plain = naming.cpu_pairs(matrix, covers, naming.NO_NODE)
    assert sorted((a, b) for a, partners in plain.items() for b in partners) == sorted(map(tuple, slots.tolist()))
