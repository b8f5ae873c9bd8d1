"""The same place has the same slot under any numbering, and harvested parts are told."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeprint import layout
from nodeprint.topology import from_part
from nodeprint.topology.model import Cpu, Machine, Topology
from tests import machines
from tests.machines import arm, epyc, xeon
from tests.test_topology import read

MACHINES = {
    **{f"{name}-nps{nps}": epyc(recipe, nps=nps) for name, recipe in machines.WHOLE.items() for nps in (1, 4)},
    "snc": xeon(snc=2, interleaved=True),
    "flat": arm(32),
    "clusters": arm(32, cluster=4),
    "no-l3": arm(8).with_rows(lambda row: replace(row, ccx=None)),
}


@pytest.mark.parametrize("name", MACHINES)
def test_slots_are_unique_and_sorted(name: str) -> None:
    labels = read(MACHINES[name])
    slots, cpus = layout.slots_of(labels, [cpu.cpu for cpu in labels.cpus])
    rows = [tuple(row) for row in slots.tolist()]
    assert rows == sorted(set(rows)) and len(rows) == len(labels.cpus)
    assert sorted(cpus) == [cpu.cpu for cpu in labels.cpus]


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(["rome-nps1", "genoa-nps4", "naples-nps4", "snc"]))
def test_slots_do_not_depend_on_numbers(seed: int, name: str) -> None:
    fake = MACHINES[name]
    numbers = list(range(len(fake.rows)))
    random.Random(seed).shuffle(numbers)
    a = read(fake)
    b = read(fake.renumbered(numbers.__getitem__))
    slots_a, cpus_a = layout.slots_of(a, range(len(numbers)))
    slots_b, cpus_b = layout.slots_of(b, range(len(numbers)))
    np.testing.assert_array_equal(slots_a, slots_b)
    assert cpus_b == [numbers[cpu] for cpu in cpus_a]


@pytest.mark.parametrize("part, harvested", [("EPYC 7402", True), ("EPYC 7502", False), ("EPYC 7742", False)])
def test_cores_fused_off_are_told(part: str, harvested: bool) -> None:
    """Of 3, 4 and 4 cores in each CCX; that the 7502 has half the CCDs says nothing of ranks."""
    labels = from_part(part, 2)
    slots, _ = layout.slots_of(labels, [cpu.cpu for cpu in labels.cpus])
    assert layout.layout_of(labels, slots, np.zeros((0, 2), dtype=np.int64)).harvested is harvested


def test_cores_without_an_l3_are_in_no_ccx_of_the_others() -> None:
    """The low-power cores of a hybrid part share an L2 alone; its number is no number of an L3."""
    cpus = [Cpu(c, socket=0, ccx=0, cluster=c, core=c, thread=0) for c in range(2)]
    cpus += [Cpu(c, socket=0, cluster=c - 2, core=c, thread=0) for c in (2, 3)]
    slots, _ = layout.slots_of(Topology(Machine(), tuple(cpus)), range(4))
    pairs = np.stack(np.triu_indices(4, 1), axis=1)
    same = {
        tuple(pair) for pair, kind in zip(pairs.tolist(), layout.pair_classes(slots, pairs), strict=True) if kind == 1
    }
    assert same == {(0, 1)}
