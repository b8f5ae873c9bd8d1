"""One shape for everything that is measured: rows, places and names of a quantity."""

import numpy as np
import pytest

from nodeprint.data.job.job_points import assemble, at_points, pair_places, runs_of
from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.data.places.layout import Layout
from nodeprint.data.places.measured import Measured, models
from nodeprint.machine.topology.presets import from_part
from nodeprint.simulate import Plan, fleet

FLEET = fleet(Plan(from_part("EPYC 7302", 2, False), nodes=3, jobs=2, cells=True, linktest=True, passes=2))
QUANTITIES = FLEET.quantities


@pytest.mark.parametrize("one", QUANTITIES, ids=lambda one: one.measurement)
def test_places_are_sorted_and_rows_are_runs(one: Measured) -> None:
    assert one.values.dtype == np.float32 and one.values.shape[0] == len(one.node) == len(one.started)
    columns = np.stack([one.places[dim] for dim in one.dims], axis=1)
    assert columns.shape == (one.size, len(one.dims))
    assert np.array_equal(np.unique(columns, axis=0), columns)
    rows = list(zip(one.node.tolist(), one.job.tolist(), one.run.tolist(), strict=True))
    assert rows == sorted(set(rows))
    for dim in one.dims:
        if one.model.labels.get(dim) == "cpu":
            assert one.places[dim].max() < len(one.layout.slots)


def test_pairs_are_a_view_by_home() -> None:
    one = QUANTITIES[0]
    assert one.of_pairs and one.homes == (-1,)
    assert one.by_home.shape == (*one.values.shape[:2], 1, len(one.pairs)) and (one.pairs[:, 0] < one.pairs[:, 1]).all()
    assert np.shares_memory(one.by_home, one.values)


def test_words_keep_their_places() -> None:
    rates = next(one for one in QUANTITIES if one.measurement == "bandwidth-nodes")
    assert rates.names["stream"] == ("copy", "load", "store_mem", "triad")
    medians = {
        tuple(rates.place(number).values())[:3]: float(np.median(rates.values[..., number]))
        for number in range(rates.size)
    }
    assert medians[0, 0, "load"] > 1.5 * medians[0, 0, "store_mem"]
    assert medians[0, 1, "load"] < 0.6 * medians[0, 0, "load"]


def test_the_order_of_parts_with_other_places_does_not_matter() -> None:
    unknown = np.full(4, -1, dtype=np.int64)
    layout = Layout(np.arange(24, dtype=np.int64).reshape(4, 6), numa=unknown)

    def of(node: int, pairs: list[list[int]], value: float) -> JobMeasurement:
        values = np.full((1, 1, len(pairs)), value, dtype=np.float32)
        places = pair_places((-1,), np.array(pairs))
        header = {"operation": "cas", "quantity": "hop", "unit": "ns", "tick_ns": 0.0}
        return at_points(node, 1, "coherence-cas", header, runs_of([1], [""]), layout, places, {}, values)

    (one,) = assemble([of(0, [[0, 1], [2, 3]], 1), of(1, [[1, 2]], 2)])
    assert one.pairs.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert np.array_equal(one.values[:, 0], [[1, np.nan, 1], [np.nan, 2, np.nan]], equal_nan=True)


def test_every_pair_of_cpus_states_a_model() -> None:
    assert {name for name, model in models().items() if model.places == "pairs"} == {
        "coherence-cas",
        "coherence-faa",
        "coherence-flag1",
        "coherence-flag2",
        "coherence-imported",
        "linktest-node",
        "linktest-node-bidirectional",
        "linktest-node-unidirectional",
    }
