"""Processors of the table are the machines that were captured: the same places under the same CPU numbers."""

from __future__ import annotations

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.presets import PRESETS, from_part, preset
from tests.support import machines
from tests.support.labels import read
from tests.support.machines import epyc

PARTS = {
    "naples": "EPYC 7601",
    "rome": "EPYC 7742",
    "milan": "EPYC 7763",
    "genoa": "EPYC 9654",
    "bergamo": "EPYC 9754",
    "turin": "EPYC 9755",
    "dense": "EPYC 9965",
}


@pytest.mark.parametrize(("threads", "sockets", "nps"), [(1, 2, 1), (2, 1, 4)])
@pytest.mark.parametrize("name", PARTS)
def test_a_processor_of_the_table_is_labeled_as_the_machine(name: str, threads: int, sockets: int, nps: int) -> None:
    captured = read(epyc(machines.WHOLE[name], sockets, threads, nps))
    made = from_part(PARTS[name], sockets, threads == 2, nps=nps)
    for level in ("socket", "quadrant", "ccd", "ccx", "core", "numa"):
        assert made.groups(level) == captured.groups(level), level
    assert made.order() == captured.order()
    assert made.provenance["ccx"] == "table"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_the_sockets_and_cores_of_its_name(name: str) -> None:
    sockets, _, cores = name.rpartition("-")[2].rpartition("x")
    shape = {level: len(set(preset(name).groups(level))) for level in ("socket", "core")}
    assert shape == {"socket": int(sockets or 1), "core": int(sockets or 1) * int(cores)}


@pytest.mark.parametrize(("sockets", "nps"), [(0, 1), (9, 1), (1, 2), (1, 3)])
def test_what_no_machine_has_is_refused(sockets: int, nps: int) -> None:
    with pytest.raises(NodeprintError, match="give 1"):
        from_part("EPYC 7763", sockets, nps=nps)
    assert len(from_part("EPYC 7763", 8, False).cpus) == 8 * 64


@pytest.mark.parametrize(
    ("part", "nps", "first", "last"),
    [
        ("EPYC 7763", 1, (10, 32), (32, 10)),
        ("EPYC 7763", 4, (10, 12, 12, 12, 32, 32, 32, 32), (32, 32, 32, 32, 12, 12, 12, 10)),
        ("Xeon Platinum 8380", 1, (10, 21), (21, 10)),
    ],
)
def test_distances_are_those_that_firmware_reports(
    part: str, nps: int, first: tuple[int, ...], last: tuple[int, ...]
) -> None:
    """A node, its socket, another socket: captured machines have these."""
    nodes = from_part(part, 2, nps=nps).numa_nodes
    assert (nodes[0].distances, nodes[-1].distances) == (first, last)


def test_apic_ids_leave_room_for_what_is_fused_off() -> None:
    """Each core has room for two threads and each CCX for four cores, of which a 7402 has three."""
    by_cpu = {cpu.cpu: cpu.apicid for cpu in from_part("EPYC 7402", 2).cpus}
    assert [by_cpu[cpu] for cpu in (0, 1, 2, 3, 6, 24, 48, 49)] == [0, 2, 4, 8, 16, 64, 1, 3]
    assert {cpu.apicid for cpu in preset("graviton3-64").cpus} == {None}, "Arm has none"
