"""likwid-topology as a second opinion: a difference from the labels is a warning, agreement is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodeprint.machine.topology import likwid
from nodeprint.machine.topology.presets import preset

#: As likwid 5.2 prints two sockets of two cores with two threads, `likwid-topology -O`.
SMALL = """\
STRUCT,Hardware Thread Topology,3
Sockets:,2,
TABLE,Topology,8
HWThread        Thread        Core        Die        Socket        Available
0               0             0           0          0             *                ,,
1               0             1           0          0             *                ,,
2               0             0           0          1             *                ,,
3               0             1           0          1             *                ,,
4               1             0           0          0             *                ,,
5               1             1           0          0             *                ,,
6               1             0           0          1             *                ,,
7               1             1           0          1             *                ,,
STRUCT,Cache Topology L2,3
Level:,2,
Size:,2 MB,
Cache groups:,0 4,1 5,2 6,3 7
STRUCT,Cache Topology L3,3
Level:,3,
Size:,32 MB,
Cache groups:,0 4 1 5,2 6 3 7
NUMA domains:,2,
STRUCT,NUMA Topology 0,5
Domain:,0,
Processors:,0,1,4,5
STRUCT,NUMA Topology 1,5
Domain:,1,
Processors:,2,3,6,7
"""


def test_parts_of_each_level() -> None:
    found = likwid.groups(SMALL)
    halves = frozenset({frozenset({0, 1, 4, 5}), frozenset({2, 3, 6, 7})})
    assert found["socket"] == found["ccx"] == found["numa"] == halves
    assert found["core"] == frozenset(frozenset({cpu, cpu + 4}) for cpu in range(4))


def printed(moved: int = 0) -> str:
    """A simulated Rome as likwid-topology would print it; `moved` CPUs of socket 1 are in socket 0."""
    machine = preset("rome-2x64")
    rows = [
        f"{cpu.cpu} {cpu.thread} {cpu.core} 0 {0 if cpu.socket == 1 and cpu.cpu < 64 + moved else cpu.socket} * ,,"
        for cpu in machine.cpus
    ]
    caches = ",".join(" ".join(map(str, cpus)) for cpus in machine.groups("ccx").values())
    return "\n".join([*rows, "Level:,3,", "Size:,16 MB,", f"Cache groups:,{caches}"])


def test_agreement_says_nothing() -> None:
    assert list(likwid.warnings(preset("rome-2x64"), printed())) == []


def test_difference_names_level_and_cpus() -> None:
    first, *_ = likwid.warnings(preset("rome-2x64"), printed(moved=4))
    assert first.id == "likwid-topology"
    assert "2 sockets where the labels have 2: they differ on CPUs 0-" in first.text


def test_other_groups_of_the_l3() -> None:
    machine = preset("rome-2x64")
    merged = replace(machine, cpus=tuple(replace(cpu, ccx=(cpu.ccx or 0) // 2) for cpu in machine.cpus))
    (warning,) = likwid.warnings(merged, printed())
    assert "32 groups of the L3 where the labels have 16" in warning.text


@pytest.mark.parametrize("text", ["", "likwid-topology: command not found\n", "Cache groups:,", "0 0 0\n"])
def test_nothing_of_use_says_nothing(text: str) -> None:
    assert list(likwid.warnings(preset("rome-2x64"), text)) == []
