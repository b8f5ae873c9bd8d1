"""A job's values at canonical places: machines with CPUs out of order, places that become one, parts that differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodeprint.data.format.record_format import FLAGS
from nodeprint.data.job import job_points
from nodeprint.data.job.job_points import NodePlaces
from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.machine.topology.model import Cpu, Machine, NumaNode, Topology

#: Two sockets of a CCX with two cores of two threads each; OS numbers run against the order of the chip.
CPUS = tuple(
    Cpu(7 - 4 * socket - 2 * core - thread, socket, ccx=socket, core=2 * socket + core, rank=core, thread=thread)
    for socket in range(2)
    for core in range(2)
    for thread in range(2)
)
#: Node 5 is on the first socket, node 3 on the second, and node 1 has no CPU.
NODES = (NumaNode(1), NumaNode(3, (0, 1, 2, 3)), NumaNode(5, (4, 5, 6, 7)))
TOPOLOGY = Topology(Machine(), tuple(sorted(CPUS, key=lambda cpu: cpu.cpu)), NODES)
NAN = float("nan")


@pytest.fixture
def places() -> NodePlaces:
    return job_points.machine(TOPOLOGY)


def test_places_are_in_the_order_of_the_chip(places: NodePlaces) -> None:
    assert places.cpus == (7, 6, 5, 4, 3, 2, 1, 0)
    assert places.cores == (0, 0, 1, 1, 2, 2, 3, 3)
    assert places.nodes == (5, 3, 1), "by their first CPU, those without CPUs last"
    assert places.layout.numa.tolist() == [0, 0, 0, 0, 1, 1, 1, 1] and places.layout.numa_nodes == 3
    more = job_points.machine(TOPOLOGY, [0, 9])
    assert 9 in more.cpus and len(more.cpus) == 9, "a CPU that was measured and is not known has a place, too"
    assert more.cores[more.cpus.index(9)] == 9 and more.layout.numa[more.cpus.index(9)] == -1
    assert job_points.machine(TOPOLOGY) == places != more
    assert hash(job_points.machine(TOPOLOGY)) == hash(places)
    other = replace(TOPOLOGY, cpus=tuple(replace(cpu, core=(cpu.core or 0) + 4) for cpu in TOPOLOGY.cpus))
    assert job_points.machine(other) != places, "its cores have other numbers"


def pairs(ends: list[tuple[int, int]], values: Any, flags: Any = 0, **header: Any) -> JobMeasurement:
    """A job's latencies of pairs of OS numbers, (run, pass, pair)."""
    columns = {"latency_ns": np.array(values, dtype=np.float32)}
    columns["flags"] = np.broadcast_to(np.array(flags, dtype=np.uint8), columns["latency_ns"].shape)
    at = np.array(ends, dtype=np.int64)
    coordinates = {"home": np.full(len(at), -1), "a": at[:, 0].copy(), "b": at[:, 1].copy()}
    usual = {"operation": "cas", "quantity": "hop", "unit": "ns", "home": "first"}
    runs = tuple({"run": n + 1, "start_time": f"t{n}"} for n in range(len(columns["latency_ns"])))
    passes = tuple(range(columns["latency_ns"].shape[1]))
    measured = JobMeasurement("coherence-cas", usual | header, runs, passes, coordinates, {}, columns)
    return job_points.of_pairs(4, 2, measured, TOPOLOGY, job_points.machine(TOPOLOGY))


def rows(part: JobMeasurement) -> dict[tuple[int, int], list[float]]:
    """The values of the first run by pair of slots."""
    ends = zip(part.places["a"].tolist(), part.places["b"].tolist(), strict=True)
    return dict(zip(ends, part.columns["value"][0].T.tolist(), strict=True))


def test_pairs_are_by_slots_with_the_lower_first() -> None:
    part = pairs([(0, 1), (6, 7), (0, 7)], [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])
    assert rows(part) == {(0, 1): [2.0, 5.0], (0, 7): [3.0, 6.0], (6, 7): [1.0, 4.0]}
    assert (part.node, part.job, part.numbers, part.passes) == (4, 2, [1], (0, 1))
    assert [run["start_time"] for run in part.runs] == ["t0"]
    directed = pairs([(0, 1), (1, 0), (6, 7), (7, 6)], [[[1.0, 2.0, 3.0, 4.0]]], directed=True)
    assert rows(directed) == {(0, 1): [4.0], (6, 7): [2.0]}, "the direction from the lower slot counts"


@pytest.mark.parametrize(
    ("clock", "round_trips", "tick_ns"),
    [({"step_ns": 0.5}, 25, 0.01), ({"step_ns": 0.5}, 0, 0.0), ({}, 25, 0.0), (None, 25, 0.0)],
)
def test_a_tick_of_the_clock_is_over_all_hops_of_a_measurement(clock: Any, round_trips: int, tick_ns: float) -> None:
    """A round trip is two hops; 0 where clock or round trips are not known."""
    assert pairs([(0, 1)], [[[1.0]]], clock=clock, round_trips=round_trips).header["tick_ns"] == tick_ns


def test_what_was_disturbed_is_a_share_of_each_run() -> None:
    disturbed, other = FLAGS["disturbed"], sum(FLAGS.values()) - FLAGS["disturbed"]
    flags = [[[disturbed, other]], [[0, disturbed | other]], [[0, other]]]
    part = pairs([(0, 1), (2, 3)], [[[1.0, 2.0]]] * 3, flags)
    assert [run["disturbed"] for run in part.runs] == [0.5, 0.5, 0.0]
    quiet = pairs([(0, 1)], [[[1.0]], [[2.0]]])
    assert [run["disturbed"] for run in quiet.runs] == [0.0, 0.0]


def cells(places: NodePlaces, at: dict[str, list[Any]], values: Any, name: str = "bandwidth-nodes") -> JobMeasurement:
    """A job's values of a measurement of cells, (run, pass, place)."""
    array = np.array(values, dtype=np.float64)
    runs = range(1, len(array) + 1)
    of_runs = job_points.runs_of(runs, [f"t{run}" for run in runs])
    return job_points.cells_at_points(4, 2, name, {"operation": "o"}, places, at, array, of_runs)


def test_cells_of_a_numa_node_are_by_its_order_and_words_by_the_alphabet(places: NodePlaces) -> None:
    at: dict[str, list[Any]] = {
        "cpu_node": [5, 3, 3],
        "memory_node": [3, 5, 3],
        "stream": ["triad", "copy", "load"],
        "threads": [4, 4, 4],
    }
    part = cells(places, at, [[[1.0, 2.0, NAN]]])
    assert {dim: column.tolist() for dim, column in part.places.items()} == {
        "cpu_node": [0, 1],
        "memory_node": [1, 0],
        "stream": [2, 0],
        "threads": [4, 4],
    }
    assert part.names == {"stream": ("copy", "load", "triad")}
    assert part.columns["value"].tolist() == [[[1.0, 2.0]]], "a place without a value is none"
    assert part.runs[0]["start_time"] == "t1"


def test_threads_that_were_measured_alone_stand_for_their_core(places: NodePlaces) -> None:
    """Whichever thread it was; where both were measured each is itself."""
    at: dict[str, list[Any]] = {"cpu": [6, 4, 5], "level": ["l1", "l1", "l1"]}
    part = cells(places, at, [[[1.0, 2.0, 3.0]]], "chase-levels")
    assert part.places["cpu"].tolist() == [0, 2, 3]
    assert part.columns["value"].tolist() == [[[1.0, 3.0, 2.0]]]


def test_parts_with_other_passes_and_words_share_a_quantity(places: NodePlaces, tmp_path: Path) -> None:
    """In memory and in a file; where a part has no such pass or place there is no value."""
    at = {"cpu_node": [5], "memory_node": [5], "threads": [4]}
    first = cells(places, {**at, "stream": ["triad"]}, [[[1.0], [2.0]], [[3.0], [4.0]]])
    second = cells(places, {**at, "stream": ["copy"]}, [[[5.0]]])
    kept, mapped = (job_points.assemble([first, second], folder)[0] for folder in (None, tmp_path))
    for quantity in (kept, mapped):
        assert quantity.names == {"stream": ("copy", "triad")}
        np.testing.assert_array_equal(
            quantity.values, [[[NAN, 1.0], [NAN, 2.0]], [[NAN, 3.0], [NAN, 4.0]], [[5.0, NAN], [NAN, NAN]]]
        )
        assert (quantity.run.tolist(), quantity.started) == ([1, 2, 1], ("t1", "t2", "t1"))
    assert [path.name for path in tmp_path.iterdir()] == ["bandwidth-nodes-0.npy"]
    assert job_points.has_places_of(first, [second, first]) and not job_points.has_places_of(first, [second])
    shorter = cells(places, {**at, "stream": ["triad"]}, [[[1.0]]])
    assert job_points.has_places_of(shorter, [first]) and not job_points.has_places_of(first, [shorter])
    assert not job_points.has_places_of(first, [])


def test_pairs_come_before_cells(places: NodePlaces) -> None:
    of_cells = cells(places, {"cpu_node": [5], "memory_node": [5], "stream": ["copy"]}, [[[1.0]]])
    both = job_points.assemble([of_cells, pairs([(0, 1)], [[[1.0]]])])
    assert [quantity.measurement for quantity in both] == ["coherence-cas", "bandwidth-nodes"]
    assert both[0].node.tolist() == [4] and both[0].job.tolist() == [2]
