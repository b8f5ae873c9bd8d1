"""How far the runs of a measurement in a job agree: medians over measurement points, and their spread."""

from __future__ import annotations

import statistics
import warnings

import numpy as np
import numpy.typing as npt

from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.data.places.measured import models
from nodeprint.stats.robust import median_of_passes

#: Values (run, point) of a measurement that nodes are compared by.
RunValues = npt.NDArray[np.floating]


def values_of_runs(measured: JobMeasurement) -> RunValues:
    """The medians over passes (run, point); no point if the measurement is not compared."""
    model = models().get(measured.name)
    if model is None or model.value not in measured.columns:
        return np.zeros((len(measured.runs), 0))
    return median_of_passes(measured.columns[model.value])


def unit_of(measured: JobMeasurement) -> str:
    """The unit of these values; empty if there are none."""
    model = models().get(measured.name)
    if model is None or model.value not in measured.columns:
        return ""
    return "share" if model.scale == "share" else measured.units[model.value]


def median_over_points(values: RunValues) -> float | None:
    """The median of the values (point) of a run; None without any."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else None


def between_runs(values: RunValues) -> float | None:
    """The standard deviation over runs, as a share; None with one run.

    A run's deviation is its median, over points, of the ratio to the median of all runs.
    """
    measured = values[np.isfinite(values).any(axis=1)]
    if len(measured) < 2:
        return None
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings(action="ignore"):
        levels = measured / np.nanmedian(measured, axis=0)
    of_runs = [median for run in levels if (median := median_over_points(run)) is not None]
    return statistics.stdev(of_runs) if len(of_runs) > 1 else None


def flagged_share(measured: JobMeasurement) -> float:
    """The share of values that the kernel flagged."""
    return float((measured.columns["flags"] != 0).mean())
