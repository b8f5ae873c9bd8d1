"""What the instruments of a node's peers said: their clocks and temperatures, which explain a finding."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class PeerSensors:
    """What the instruments of nodes that are compared said, each by its number in the fleet: a node with all others."""

    def __init__(self, sensors: Mapping[int, Mapping[str, Any]]) -> None:
        self._row = {node: row for row, node in enumerate(sensors)}
        slots = max((len(of_node.get("clock_ghz") or ()) for of_node in sensors.values()), default=0)
        #: By node and slot, NaN where it is not known.
        self._clock_ghz = np.full((len(sensors), slots), np.nan)
        for row, of_node in enumerate(sensors.values()):
            for slot, clock in enumerate(of_node.get("clock_ghz") or ()):
                self._clock_ghz[row, slot] = np.nan if clock is None else clock
        self._temperature_c = np.array([float(of_node.get("temperature_c", np.nan)) for of_node in sensors.values()])

    def clock(self, node: int, slots: Sequence[int]) -> float | None:
        """The clock of some slots over that of the same slots of the others (medians), None where either is not
        known."""
        row = self._row[node]
        timed = [slot for slot in slots if slot < self._clock_ghz.shape[1] and np.isfinite(self._clock_ghz[row, slot])]
        peers_ghz = np.delete(self._clock_ghz[:, timed], row, axis=0)
        measured = np.isfinite(peers_ghz).any(axis=0)
        if not measured.any():
            return None
        ratios = self._clock_ghz[row, timed][measured] / np.nanmedian(peers_ghz[:, measured], axis=0)
        return float(np.median(ratios))

    def usual(self) -> tuple[npt.NDArray[np.float64], float]:
        """The median clock of each slot and the median temperature, NaN where none is known."""
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a slot without any
            return np.nanmedian(self._clock_ghz, axis=0), float(np.nanmedian(self._temperature_c))

    def temperature(self, node: int) -> float | None:
        """The temperature of the others: the middle one, of an even number the warmer of the two; None without any."""
        peers_c = np.delete(self._temperature_c, self._row[node])
        sorted_c = np.sort(peers_c[np.isfinite(peers_c)])
        return float(sorted_c[len(sorted_c) // 2]) if len(sorted_c) else None
