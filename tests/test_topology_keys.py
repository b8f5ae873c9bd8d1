"""The same place has the same key under any numbering, and two nodes are called what they are."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeprint.topology import canonical_keys, compare
from nodeprint.topology.model import Topology
from tests import machines
from tests.machines import Fake, Row, arm, epyc, xeon
from tests.test_topology import read

MACHINES = {
    **{f"{name}-nps{nps}": epyc(recipe, nps=nps) for name, recipe in machines.WHOLE.items() for nps in (1, 4)},
    "snc": xeon(snc=2, interleaved=True),
    "flat": arm(32),
    "clusters": arm(32, cluster=4),
    "no-l3": arm(8).with_rows(lambda row: replace(row, ccx=None)),
}


@pytest.mark.parametrize("name", MACHINES)
def test_keys_are_unique_and_sorted_by_place(tmp_path: Path, name: str) -> None:
    labels = read(MACHINES[name], tmp_path)
    keys = canonical_keys(labels)
    assert len(set(keys.values())) == len(keys) == len(labels.cpus)
    assert compare(labels, labels).outcome == "same"


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(["rome-nps1", "genoa-nps4", "naples-nps4", "snc"]))
def test_keys_do_not_depend_on_numbers(tmp_path_factory: pytest.TempPathFactory, seed: int, name: str) -> None:
    fake = MACHINES[name]
    numbers = list(range(len(fake.rows)))
    random.Random(seed).shuffle(numbers)
    a = read(fake, tmp_path_factory.mktemp("a"))
    b = read(fake.renumbered(numbers.__getitem__), tmp_path_factory.mktemp("b"))
    keys_a, keys_b = canonical_keys(a), canonical_keys(b)
    assert all(keys_a[cpu] == keys_b[numbers[cpu]] for cpu in keys_a)
    assert compare(a, b).outcome == ("same" if numbers == sorted(numbers) else "renumbered")


def _harvest(fused: set[tuple[int, int]]) -> Fake:
    """A socket of eight CCXs of eight cores with some fused off: ids are compacted in the CCX, numbers over all."""
    rows = []
    core = 0
    for ccx in range(8):
        alive = [rank for rank in range(8) if (ccx, rank) not in fused]
        for place, _ in enumerate(alive):
            rows.append(Row(core, 0, core, ccx=ccx, ccd=ccx, node=0, apicid=ccx * 16 + place * 2))
            core += 1
    return Fake(tuple(rows), family=0x19, model=1, name="AMD EPYC 7xyz")


def test_another_core_fused_off_is_another_harvest(tmp_path: Path) -> None:
    a = read(_harvest({(0, 0), (1, 0)}), tmp_path / "a")
    b = read(_harvest({(0, 0), (0, 1)}), tmp_path / "b")
    assert compare(a, b).outcome == "different harvest"
    assert "CCX" in compare(a, b).explanation


def test_another_tile_fused_off_shows_in_apic_ids(tmp_path: Path) -> None:
    def without(tile: int) -> Topology:
        fake = xeon(sockets=1, cores=8).with_rows(
            lambda row: replace(row, apicid=(row.apicid or 0) + (2 if row.core >= tile else 0))
        )
        return read(fake, tmp_path / str(tile))

    assert compare(without(3), without(5)).outcome == "different harvest"
    assert compare(without(3), without(3)).outcome == "same"


def test_different_machines_are_different(tmp_path: Path) -> None:
    rome = read(epyc(machines.ROME), tmp_path / "rome")
    for name, other in {
        "milan": epyc(machines.MILAN),
        "one socket": epyc(machines.ROME, sockets=1),
        "nps": epyc(machines.ROME, nps=4),
        "smt": epyc(machines.ROME, threads=1),
        "offline": epyc(machines.ROME).but(offline=frozenset({3})),
    }.items():
        result = compare(rome, read(other, tmp_path / name))
        assert result.outcome == "different" and result.explanation, name
