"""The deviations of a campaign as one labeled table, the basis of every outcome, for people and other programs."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import agreements, naming
from nodeprint.judge.deviations import AT_ONCE, Deviations

#: The group number of a node without peers.
ALONE = -1
#: The dimensions of the table.
DIMS = ("sample", "component")
#: The variables of the table, with their units and meaning.
VARIABLES = {
    "difference": "difference from the peers' center, relative (of shares of the time: log1p(share / tolerance))",
    "error": "standard error of the difference",
    "error_runs": "the part of the error that is from run to run",
    "error_jobs": "the part of the error that is from job to job",
    "error_template": "the part of the error that is of the peers' center",
    "degrees": "degrees of freedom of the error",
    "half_90": "half of the 90% interval; infinite with one run",
    "error_different": "standard error of the test for a difference: with the natural variation of the peers",
    "degrees_different": "degrees of freedom of that error",
    "half_simultaneous": "half of the interval that holds for all components of the component type and all jobs "
    "together; of pooled jobs, for all components and nodes of the campaign",
    "tolerance": "accepted difference, on the scale of the difference",
    "value": "the node's value, in the measurement's unit",
    "peers": "the peers' center, in the measurement's unit",
    "runs": "runs",
    "runs_above": "runs that are each more than the tolerance above the peers' center",
    "runs_below": "runs that are each more than the tolerance below it",
    "runs_far": "runs far beyond the tolerance on one side, several in one job, while others of that job are within it",
}


Values = dict[str, npt.NDArray[np.float32]]
#: A sample: the number of a node, and the name of its job.
Sample = tuple[int, str]


def labels(tables: Sequence[Deviations], nodes: Sequence[PackedNode], group_of: Mapping[int, int]) -> xr.Dataset:
    """The coordinates of the table (sample, component) that the `tables` of all groups are one of, without values.

    A sample is a node in one independent job, or in all of them pooled (`job` is "pooled"), which decides whether it is
    SAME.
    """
    components, _ = _components(tables)
    samples = _samples(tables)
    coordinates: dict[str, Any] = {
        key: ("component", [component[key] for component in components])
        for key in ("measurement", "home", "metric", "term", "component_type", "place", "unit")
    }
    coordinates |= {
        "node": ("sample", [nodes[node].name for node, _ in samples]),
        "job": ("sample", [job for _, job in samples]),
        "group": ("sample", [group_of.get(node, ALONE) for node, _ in samples]),
        "started": ("sample", _started(tables, samples)),
    }
    return xr.Dataset(coords=coordinates)


def blocks(tables: Sequence[Deviations]) -> Iterator[Values]:
    """The variables of the table in order of samples, AT_ONCE nodes at a time: the whole table of ten thousand nodes
    exceeds 1 GB. Missing values are NaN."""
    components, columns = _components(tables)
    samples = _samples(tables)
    every = list(dict.fromkeys(node for node, _ in samples))
    for begin in range(0, len(every), AT_ONCE):
        nodes = every[begin : begin + AT_ONCE]
        first = bisect.bisect_left(samples, nodes[0], key=lambda sample: sample[0])
        last = bisect.bisect_right(samples, nodes[-1], key=lambda sample: sample[0])
        at = {sample: number for number, sample in enumerate(samples[first:last])}
        values = {name: np.full((len(at), len(components)), np.nan, dtype=np.float32) for name in VARIABLES}
        for table, of_table in zip(tables, columns, strict=True):
            _enter_nodes(values, nodes, at, table, of_table)
        yield values


def whole(coordinates: xr.Dataset, of_samples: Iterable[Values]) -> xr.Dataset:
    """The table with all of its blocks; `.to_dataframe()` has a row for each node, job, measurement and component."""
    values = list(of_samples)
    none = np.zeros((0, coordinates.sizes["component"]), dtype=np.float32)
    return coordinates.assign(
        {
            name: (DIMS, np.concatenate([none, *(block[name] for block in values)]), {"long_name": meaning})
            for name, meaning in VARIABLES.items()
        }
    )


def _enter_nodes(
    values: Values,
    nodes: Sequence[int],
    at: Mapping[Sample, int],
    table: Deviations,
    columns: npt.NDArray[np.int64],
) -> None:
    """Enter the values of some nodes in a table into its `columns`."""
    matrix = table.matrix
    positions = [matrix.place[node] for node in nodes if node in matrix.place]
    rows = [row for position in positions for row in matrix.jobs(position)]
    samples = [at[int(matrix.nodes[matrix.owner[row]]), matrix.job(row)] for row in rows]
    _enter(values, samples, columns, _of_jobs(table, rows, positions))
    several = [position for position in positions if len(matrix.jobs(position)) > 1]
    samples = [at[int(matrix.nodes[position]), "pooled"] for position in several]
    _enter(values, samples, columns, _of(table.pooled[several], table.campaign_tail) if several else {})


def _components(tables: Sequence[Deviations]) -> tuple[list[dict[str, Any]], list[npt.NDArray[np.int64]]]:
    """The components of all tables, each once, and which of them the components of each table are."""
    positions: dict[tuple[str, int, str, str], int] = {}
    components: list[dict[str, Any]] = []
    columns = []
    for of_measurement in tables:
        matrix = of_measurement.matrix
        numbers = []
        for term in matrix.terms.terms:
            place = naming.key(matrix, term)
            identity = (matrix.name, matrix.home, term.component_type, place)
            if identity not in positions:
                positions[identity] = len(components)
                unit = "share" if matrix.terms.share else matrix.measured.unit
                components.append(
                    {
                        "measurement": matrix.name,
                        "home": matrix.home,
                        "metric": agreements.metric(matrix.measured),
                        "term": term.name,
                        "component_type": term.component_type,
                        "place": place,
                        "unit": unit,
                    }
                )
            numbers.append(positions[identity])
        columns.append(np.array(numbers, dtype=np.int64))
    return components, columns


def _samples(tables: Sequence[Deviations]) -> list[Sample]:
    """Each node in each of its jobs, in order, then pooled if it has several."""
    jobs: dict[int, dict[str, float]] = {}
    for of_measurement in tables:
        matrix = of_measurement.matrix
        for row, owner in enumerate(matrix.owner.tolist()):
            job = matrix.job(row)
            jobs.setdefault(int(matrix.nodes[owner]), {})[job] = int(job.removeprefix("job"))
        for owner in np.flatnonzero(np.diff(matrix.first_row) > 1).tolist():
            jobs.setdefault(int(matrix.nodes[owner]), {})["pooled"] = math.inf
    return [(node, job) for node in sorted(jobs) for job in sorted(jobs[node], key=jobs[node].__getitem__)]


def _started(tables: Sequence[Deviations], samples: Sequence[Sample]) -> list[str]:
    """When the first run of each sample began (ISO 8601); empty if unknown. Pooled jobs have the start of their first
    run."""
    begun: dict[Sample, str] = {}
    quantities = {id(of.matrix.measured): of.matrix.measured for of in tables}.values()
    for quantity in quantities:
        for node, job, moment in zip(quantity.node.tolist(), quantity.job.tolist(), quantity.started, strict=True):
            for sample in ((node, f"job{job}"), (node, "pooled")) if moment else ():
                begun[sample] = min(begun.get(sample, moment), moment)
    return [begun.get(sample, "") for sample in samples]


def _enter(
    values: Values,
    samples: Sequence[int],
    columns: npt.NDArray[np.int64],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Enter arrays (sample, component) of some samples and components."""
    for name, array in arrays.items():
        values[name][np.ix_(np.array(samples, dtype=np.int64), columns)] = array


def _of_jobs(table: Deviations, rows: Sequence[int], positions: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
    """The variables of some jobs, which are all those of nodes at some `positions`."""
    if not rows:
        return {}
    matrix, tolerance = table.matrix, table.tolerance
    values = matrix.values[rows] - table.spreads.rounds.shift[table.spreads.rounds.number[rows]][:, None]
    difference = values - table.reference.center[matrix.owner[rows]][:, None]
    far = np.concatenate([table.far_runs(position) for position in positions])
    with np.errstate(invalid="ignore"):
        runs = {
            "runs_above": (difference > tolerance).sum(axis=1),
            "runs_below": (difference < -tolerance).sum(axis=1),
            "runs_far": far.sum(axis=1),
        }
    return _of(table[rows], table.tail) | runs


def _of(estimates: Deviations, tail: npt.NDArray[np.float64] | float) -> dict[str, npt.NDArray[Any]]:
    """The variables of some rows of the table, each of one job or of several together."""
    value, peers = estimates.in_unit
    error_different, degrees_different = estimates.different
    return {
        "difference": estimates.difference,
        "error": estimates.error,
        "error_runs": np.sqrt(estimates.of_runs),
        "error_jobs": np.sqrt(estimates.of_jobs),
        "error_template": np.sqrt(estimates.of_reference),
        "degrees": estimates.degrees,
        "half_90": estimates.half_90,
        "error_different": error_different,
        "degrees_different": degrees_different,
        "half_simultaneous": estimates.half(tail),
        "tolerance": np.broadcast_to(estimates.tolerance, value.shape),
        "value": value,
        "peers": peers,
        "runs": estimates.runs,
    }
