"""What a node's instruments said, in its runs and beside those of all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodeprint.data.job import sensors
from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.judge import peer_sensors
from nodeprint.judge.peer_sensors import clock, temperature

SENSORS = {
    7: {"clock_ghz": [3.0, None, 2.0], "temperature_c": 50},
    2: {"clock_ghz": [2.0, 3.0], "temperature_c": 70},
    9: {},
    4: {"clock_ghz": [4.0, 3.5, 2.5, None], "temperature_c": 40},
}


def test_a_clock_is_compared_with_the_median_of_the_others_slot_by_slot() -> None:
    peers = peer_sensors.table(SENSORS)
    assert clock(peers, 7, [0]) == 1.0
    assert clock(peers, 7, [0, 1, 2, 3, 8]) == float(np.median([1.0, 2.0 / 2.5]))
    assert clock(peers, 2, [0, 1]) == float(np.median([2.0 / 3.5, 3.0 / 3.5]))


def test_what_a_node_or_all_others_lack_is_not_known() -> None:
    peers = peer_sensors.table(SENSORS)
    assert clock(peers, 9, [0, 1]) is None
    assert clock(peers, 7, [1]) is None
    assert clock(peers, 7, []) is None
    assert clock(peer_sensors.table({3: SENSORS[7]}), 3, [0]) is None
    assert clock(peer_sensors.table({3: {}, 4: {}}), 3, [0]) is None


def test_the_others_temperature_is_the_middle_one() -> None:
    peers = peer_sensors.table(SENSORS)
    assert (temperature(peers, 7), temperature(peers, 2), temperature(peers, 9)) == (70, 50, 50)
    assert temperature(peer_sensors.table({3: SENSORS[7], 4: {}}), 3) is None


def measured(*runs: dict[str, Any], places: dict[str, list[int]] | None = None, **columns: Any) -> JobMeasurement:
    """A measurement of CPUs 0 and 1 with these runs, and columns (run, pass, place)."""
    of_runs = tuple({"run": number, "trailer": {}, "sensors": None} | run for number, run in enumerate(runs, 1))
    at = {dim: np.array(numbers) for dim, numbers in (places or {"cpu": [0, 1]}).items()}
    values = {key: np.array(column, dtype=np.float64) for key, column in columns.items()}
    return JobMeasurement("load-alone", {"cpus": [0, 1], "cells": {}}, of_runs, (0,), at, {}, values)


def test_stolen_time_is_a_share_of_all_cpus_less_a_tick_of_each() -> None:
    stolen = [{"trailer": {"elapsed_s": 10.0, "steal_s": seconds}} for seconds in (1.02, 0.02, 0.0)]
    (seen,) = sensors.beside(3, measured(*stolen))
    assert (seen["job"], seen["run"], seen["measurement"]) == (3, 1, "load-alone")
    assert seen["steal_share"] == pytest.approx(1.0 / 20)


def test_counters_are_what_they_rose_by_and_never_fall() -> None:
    before = {"throttle_core": {"0": 5, "1": 9}, "edac": {"mc0": {"ce": 1, "ue": 0}}}
    after = {
        "throttle_core": {"0": 7, "1": 2},
        "throttle_package": {"0": 1},
        "edac": {"mc0": {"ce": 4, "ue": 2}},
        "temperatures_c": {"Tctl": 71.5, "nvme": 40},
    }
    (seen,) = sensors.beside(1, measured({"sensors": before, "trailer": {"sensors": after}}))
    assert (seen["throttled"], seen["corrected"], seen["uncorrected"]) == (3, 3, 2)
    assert (seen["hottest_c"], seen["hottest"]) == (71.5, "Tctl")


def test_a_clock_fell_by_the_median_over_places() -> None:
    start, end = [[[4.0, 4.0, 4.0]], [[4.0, 4.0, 4.0]]], [[[3.0, 2.0, 3.6]], [[4.0, np.nan, 4.0]]]
    (seen,) = sensors.beside(1, measured({}, {}, places={"cpu": [0, 1, 2]}, start_hz=start, end_hz=end))
    assert (seen["run"], seen["clock_fell"]) == (1, pytest.approx(0.25))


@pytest.mark.parametrize(("dim", "cpus"), [("cpu", [1]), ("cores", []), ("scope", [])])
def test_wrong_bursts_name_the_cpu_where_a_cell_is_of_one(dim: str, cpus: list[int]) -> None:
    bursts = [[[0, 3]], [[0, np.nan]]]
    (seen,) = sensors.beside(1, measured({}, {}, places={dim: [0, 1]}, wrong_bursts=bursts))
    assert (seen["run"], seen["wrong"], seen["wrong_cpus"]) == (1, 3, cpus)


def test_a_quiet_run_says_nothing() -> None:
    assert list(sensors.beside(1, measured({"trailer": {"elapsed_s": 1.0, "steal_s": 0.0}}))) == []
