"""What a node's instruments said, beside those of all others."""

from __future__ import annotations

import numpy as np

from nodeprint.data.job.sensors import PeerSensors

SENSORS = {
    7: {"clock_ghz": [3.0, None, 2.0], "temperature_c": 50},
    2: {"clock_ghz": [2.0, 3.0], "temperature_c": 70},
    9: {},
    4: {"clock_ghz": [4.0, 3.5, 2.5, None], "temperature_c": 40},
}


def test_a_clock_is_compared_with_the_median_of_the_others_slot_by_slot() -> None:
    peers = PeerSensors(SENSORS)
    assert peers.clock(7, [0]) == 1.0
    assert peers.clock(7, [0, 1, 2, 3, 8]) == float(np.median([1.0, 2.0 / 2.5]))
    assert peers.clock(2, [0, 1]) == float(np.median([2.0 / 3.5, 3.0 / 3.5]))


def test_what_a_node_or_all_others_lack_is_not_known() -> None:
    peers = PeerSensors(SENSORS)
    assert peers.clock(9, [0, 1]) is None
    assert peers.clock(7, [1]) is None
    assert peers.clock(7, []) is None
    assert PeerSensors({3: SENSORS[7]}).clock(3, [0]) is None
    assert PeerSensors({3: {}, 4: {}}).clock(3, [0]) is None


def test_what_is_usual_is_a_clock_for_each_slot_and_one_temperature() -> None:
    clocks, temperature = PeerSensors(SENSORS).usual()
    np.testing.assert_array_equal(clocks, [3.0, 3.25, 2.25, np.nan])
    assert temperature == 50


def test_the_others_temperature_is_the_middle_one() -> None:
    peers = PeerSensors(SENSORS)
    assert (peers.temperature(7), peers.temperature(2), peers.temperature(9)) == (70, 50, 50)
    assert PeerSensors({3: SENSORS[7], 4: {}}).temperature(3) is None
