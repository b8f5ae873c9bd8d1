"""An imported matrix that is as its peers with two of its components exchanged accuses no hardware."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nodeprint.data.places.layout import CCD, SOCKET, codes
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Outcome, ReasonDetail
from nodeprint.report import text
from tests.support.fleets import made


def _imported(fleet: PackedFleet, *, imported: bool = True) -> PackedFleet:
    """The fleet as imported matrices, socket 0 twice as slow inside, as where all lines were on the other one."""
    (quantity,) = fleet.pairs
    socket = quantity.layout.slots[quantity.pairs, SOCKET]
    slow = np.tile(np.where((socket == 0).all(axis=1), 2.0, 1.0), len(quantity.homes))
    nodes = tuple(replace(node, imported=imported) for node in fleet.nodes)
    return replace(
        fleet, nodes=nodes, quantities=(quantity.assign(values=(quantity.values * slow).astype(np.float32)),)
    )


def _exchanged(fleet: PackedFleet, level: int, first: int, second: int, node: int = 4) -> PackedFleet:
    """The fleet with two components of a node exchanged."""
    (quantity,) = fleet.pairs
    component, pairs = codes(quantity.layout.slots[:, : level + 1]), quantity.pairs
    order = np.arange(len(component))
    order[component == first], order[component == second] = (
        np.flatnonzero(component == second),
        np.flatnonzero(component == first),
    )
    place = {tuple(sorted(pair)): number for number, pair in enumerate(pairs.tolist())}
    at = np.array([place[tuple(sorted(pair))] for pair in order[pairs].tolist()])
    values = quantity.values.copy()
    rows = np.flatnonzero(quantity.node == node)
    values[rows] = values[rows][:, :, at]
    return replace(fleet, quantities=(quantity.assign(values=values),))


@pytest.mark.parametrize(("level", "name"), [(SOCKET, "socket"), (CCD, "ccd")])
def test_an_exchange_of_parts_is_the_one_explanation(level: int, name: str) -> None:
    fleet = _imported(made(nodes=5, machine="rome-2x64"))
    second = 1 if level == SOCKET else 9
    verdict = judge(_exchanged(fleet, level, 0, second)).verdict
    node = verdict.nodes["node004"]
    assert (node.outcome, node.reasons[0].why) == (Outcome.INCONCLUSIVE, ReasonDetail.RENUMBERED)
    assert node.findings == ()
    assert f"With {name} 0 and {name} {second} exchanged it matches its peers" in text.node_sentence(node)
    assert {of.outcome for key, of in verdict.nodes.items() if key != "node004"} == {Outcome.SAME}


def test_what_was_measured_here_is_accused_all_the_same() -> None:
    """Its home and its numbers are known."""
    fleet = _imported(made(nodes=5), imported=False)
    assert judge(_exchanged(fleet, SOCKET, 0, 1)).verdict.nodes["node004"].outcome is Outcome.SUSPECT


def test_a_fault_that_no_exchange_explains_is_found() -> None:
    fleet = _imported(made("node004: core 17 +20%", nodes=5))
    assert judge(fleet).verdict.nodes["node004"].outcome is Outcome.SUSPECT
    assert judge(_exchanged(fleet, SOCKET, 0, 1)).verdict.nodes["node004"].outcome is Outcome.SUSPECT
