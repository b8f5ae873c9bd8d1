"""The values of one run of a measurement: cells as the kernels write them, with the noise of runs and passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.measured import Key
from nodeprint.settings.measurements import measurements

Floats = npt.NDArray[np.float64]
#: `with_noise` of one run: true cells, and how many times as large as usual noise and shift are, give passes.
Measure = Callable[..., Floats]

#: Relative standard deviations: of a run, of a cell in a run, of a pass of it.
_RUN, _CELL, _PASS = 0.003, 0.005, 0.006


@dataclass(frozen=True)
class DrawnRun:
    """One run of one measurement: `coordinates` by dimension, `values` (pass, a dimension each) with their units."""

    measurement: str
    coordinates: Mapping[str, list[Key]]
    values: Mapping[str, tuple[str, Floats]]

    @property
    def identity(self) -> dict[str, str]:
        """Its kernel, operation, quantity and unit, as the header of its records has them."""
        of = measurements()[self.measurement]
        return {"kernel": of.kernel, "operation": of.operation, "quantity": of.quantity, "unit": of.unit}

    @property
    def declared(self) -> dict[str, Any]:
        """Its dimensions and units, as the header of its records declares them."""
        return {"dims": list(self.coordinates), "values": {key: unit for key, (unit, _) in self.values.items()}}


def with_noise(rng: np.random.Generator, passes: int, truth: Floats, noise: float = 1.0, run: float = 1.0) -> Floats:
    """Add noise to true cells: a shift per run, a constant error per cell and run, and noise per pass."""
    tails = rng.standard_t(4, (passes, *truth.shape)) / np.sqrt(2)
    stays = 1 + run * _RUN * rng.standard_normal() + noise * _CELL * rng.standard_normal(truth.shape)
    return np.asarray(truth * stays * (1 + noise * _PASS * tails))


def statistics(value: Floats) -> dict[str, tuple[str, Floats]]:
    """A chase's values around its latency."""
    shares = {
        "latency_ns": 1.0,
        "ci_low_ns": 0.997,
        "ci_high_ns": 1.003,
        "min_ns": 0.97,
        "median_ns": 1.0,
        "p99_ns": 1.1,
    }
    return {key: ("ns", value * share) for key, share in shares.items()}
