"""Where lines are at home, seen from their pair."""

from __future__ import annotations

import numpy as np
import pytest

from nodeprint.data.places import homes
from nodeprint.machine.topology.model import Topology
from nodeprint.machine.topology.presets import from_part

MACHINE = from_part("EPYC 7302", 2, False)


def homes_of(policy: str, a: list[int], b: list[int], home: list[int], machine: Topology | None = MACHINE) -> list[int]:
    places = {"home": np.array(home), "a": np.array(a), "b": np.array(b)}
    return list(homes.of_pairs(places, policy, machine))


def test_homes_are_near_or_far_by_the_lower_socket_whatever_numbers_the_cpus_have() -> None:
    first, second = (next(cpu.cpu for cpu in MACHINE.cpus if cpu.socket == socket) for socket in (0, 1))
    for ends in ((first, second), (second, first)):
        pair = homes_of("sockets", [ends[0]] * 2, [ends[1]] * 2, [0, 1])
        assert pair == [-1, 10_000], "as docs/formats.md has them"
    assert homes_of("sockets", [second, second], [second + 1] * 2, [0, 1]) == [homes.FAR, homes.NEAR]


def test_homes_stay_numa_nodes_where_they_were_asked_for_or_sockets_are_unknown() -> None:
    assert homes_of("each", [0, 0], [1, 1], [0, 1]) == [0, 1]
    assert homes_of("sockets", [0, 0], [1, 1], [0, 1], None) == [0, 1]
    assert homes_of("sockets", [0, 9999], [1, 1], [0, 1]) == [0, 1]


@pytest.mark.parametrize(
    "home, text", [(-1, ""), (0, "home NUMA node 0"), (10_000, "far home"), (10_001, "far home 2")]
)
def test_a_home_in_words(home: int, text: str) -> None:
    assert homes.named(home) == text
