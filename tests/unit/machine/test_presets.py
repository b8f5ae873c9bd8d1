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
def test_a_processor_of_the_table_is_labelled_as_the_machine(name: str, threads: int, sockets: int, nps: int) -> None:
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
