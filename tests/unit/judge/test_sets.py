"""The components of measurements that are no pairs: sets of cells, each once."""

from __future__ import annotations

from dataclasses import replace

from nodeprint.data.job import job_points
from nodeprint.data.places.measured import Measured
from nodeprint.judge import sets
from nodeprint.machine.topology.presets import from_part
from nodeprint.simulate import Plan, fleet


def _of(measurement: str, nps: int) -> Measured:
    campaign = fleet(Plan(from_part("EPYC 7742", 2, nps=nps), nodes=1, runs=1, passes=1, cells=True))
    return next(quantity for quantity in campaign.others if quantity.measurement == measurement)


def test_distances_of_four_nodes_a_socket() -> None:
    distance, streams = sets.labels(_of("bandwidth-nodes", 4))["distance"], 4
    assert [distance.count(word) for word in ("own node", "same socket", "other socket")] == [
        8 * streams,
        8 * 3 * streams,
        8 * 4 * streams,
    ]


def test_the_first_set_is_all_and_none_is_there_twice() -> None:
    quantity = _of("bandwidth-nodes", 4)
    terms = sets.of(quantity).terms
    assert not terms[0].where
    assert len(terms[0].covers) == quantity.size
    assert len({term.covers.tobytes() for term in terms}) == len(terms)


def test_memory_is_compared_by_numa_node_and_by_ccd() -> None:
    """A cell 20% off is lost in the mean over a memory."""
    terms = sets.of(_of("chase-latency", 4))
    assert len(terms.indices("cpu_node x memory_node")) == 8 * 8
    assert len(terms.indices("ccd x memory_node")) == 16 * 8


def test_memory_without_cpus_has_a_distance_of_its_own() -> None:
    """CXL or high-bandwidth memory is not what CPUs of another socket have."""
    quantity = _of("bandwidth-nodes", 1)
    memory = quantity.places["memory_node"] + 2 * (quantity.places["memory_node"] != quantity.places["cpu_node"])
    far = quantity.assign(places={**quantity.places, "memory_node": memory})
    assert set(sets.labels(far)["distance"]) == {"own node", "node without CPUs"}


def test_numa_nodes_are_places_by_their_cpus_and_not_by_their_numbers() -> None:
    topology = from_part("EPYC 7742", 2, nps=4)
    of = job_points.machine(topology)
    swapped = {0: 5, 5: 0}
    nodes = tuple(replace(n, node=swapped.get(n.node, n.node)) for n in topology.numa_nodes)
    again = job_points.machine(replace(topology, numa_nodes=nodes))
    assert of.layout.key == again.layout.key
    assert [swapped.get(n, n) for n in of.nodes] == list(again.nodes)
