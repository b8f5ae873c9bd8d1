"""Disagreement between runs, passes or jobs of a node: the outliers and the factor. On a virtual machine, also whether
the hypervisor migrated its CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedNode
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.agreements import metric
from nodeprint.judge.reduction import over_passes
from nodeprint.judge.verdict import Disturbance
from nodeprint.stats.disagreement import Disagreement, disagreement, nearer_once, of_runs

Values = npt.NDArray[np.floating]


def of_job(node: PackedNode, i: int, job: int, reduced: Sequence[Measured], rules: Acceptance) -> list[Disturbance]:
    """Disagreement between the runs of a job or the passes of a run, in deciding metrics. `i` is the node's number."""
    out = []
    for measurement in _deciding(reduced, rules):
        rows = measurement.rows.get(i, {}).get(job, [])
        out += _near_once(measurement, node, job, rows)
        if not rows or not ((i, job) in measurement.differing or measurement.restless[rows].any()):
            continue
        repeated = of_runs(np.asarray(measurement.values[rows]))
        if repeated is None:
            continue
        within = f"job{job}" if repeated.run is None else f"job{job}/run{measurement.run[rows[repeated.run]]}"
        names = (
            [f"{within}/run{measurement.run[row]}" for row in rows]
            if repeated.run is None
            else [f"{within}/pass{number + 1}" for number in range(measurement.values.shape[1])]
        )
        values = (
            over_passes(np.asarray(measurement.values[rows]))
            if repeated.run is None
            else np.asarray(measurement.values[rows[repeated.run]])
        )
        kind = "runs-differ" if repeated.run is None else "passes-differ"
        out += _disturbances(kind, measurement, node, repeated, within, names, values)
    return out


def of_jobs(node: PackedNode, i: int, reduced: Sequence[Measured], rules: Acceptance) -> list[Disturbance]:
    """Disagreement between the jobs of a node, each by the median over its runs."""
    out = []
    for measurement in _deciding(reduced, rules):
        jobs = measurement.rows.get(i, {})
        if len(jobs) < 2:
            continue
        values = np.concatenate([over_passes(measurement.level[rows][None]) for rows in jobs.values()])
        if (found := disagreement(values)) is not None:
            out += _disturbances("jobs-differ", measurement, node, found, "", [f"job{job}" for job in jobs], values)
    return out


def between_nodes(
    nodes: Sequence[PackedNode], numbers: Sequence[int], reduced: Sequence[Measured], rules: Acceptance
) -> dict[int, Disturbance]:
    """Virtual machines of one configuration with CPU pairs far from those of the majority, by number; all if no
    majority agrees."""
    for measurement in _deciding(reduced, rules):
        jobs = {i: measurement.rows[i].values() for i in numbers if i in measurement.rows}
        rows = {i: [row for of_job in of_node for row in of_job] for i, of_node in jobs.items()}
        if len(rows) < 2 or not measurement.core_to_core:
            continue
        values = np.concatenate([over_passes(measurement.level[of_node][None]) for of_node in rows.values()])
        names = [nodes[i].name for i in rows]
        if (found := disagreement(values)) is not None and found.is_far:
            moved = _disturbances("jobs-differ", measurement, nodes[numbers[0]], found, "", names, values)[-1]
            return {i: moved for at, i in enumerate(rows) if not found.odd or at in found.odd}
    return {}


def _near_once(quantity: Measured, node: PackedNode, job: int, rows: list[int]) -> list[Disturbance]:
    """A virtual machine's CPU pair with the latency of two threads of one core in one run only: the hypervisor migrates
    its CPUs."""
    if not rows or not _is_virtual(node) or not quantity.core_to_core:
        return []
    values = np.asarray(quantity.values[rows])
    nearer = nearer_once(values.reshape(-1, values.shape[-1]))
    names = [f"job{job}/run{quantity.run[row]}" for row in rows for _ in range(values.shape[1])]
    if nearer is None:
        return []
    return [_moved(_differing("runs-differ", quantity, nearer, f"job{job}", names, values.reshape(len(names), -1)))]


def _deciding(reduced: Sequence[Measured], rules: Acceptance) -> Iterator[Measured]:
    for measurement in reduced:
        if measurement.model.scale != "share" and metric(measurement) in rules.criteria:
            yield measurement


def _is_virtual(node: PackedNode) -> bool:
    return bool(node.fingerprint.get("virtual"))


def _disturbances(
    kind: str,
    quantity: Measured,
    node: PackedNode,
    runs_apart: Disagreement,
    run: str,
    names: Sequence[str],
    values: Values,
) -> list[Disturbance]:
    """A disagreement of repetitions with these `names` and `values` (repetition, place). A factor too large for the
    same CPU pairs also reports migrated virtual CPUs, or tasks without pinning."""
    differing = _differing(kind, quantity, runs_apart, run, names, values)
    if not (runs_apart.is_far and quantity.core_to_core):
        return [differing]
    if _is_virtual(node):
        return [differing, _moved(differing)]
    return [differing, replace(differing, kind="unpinned", invalid=True)] if runs_apart.both_ways else [differing]


def _moved(differing: Disturbance) -> Disturbance:
    return replace(differing, kind="cpus-moved", invalid=True)


def _differing(
    kind: str, quantity: Measured, runs_apart: Disagreement, run: str, names: Sequence[str], values: Values
) -> Disturbance:
    return Disturbance(
        kind,
        False,
        quantity.measurement,
        run,
        runs_apart.apart,
        runs_apart.factor,
        odd=tuple(names[number] for number in runs_apart.odd),
        low=float(values[runs_apart.lowest, runs_apart.place]),
        high=float(values[runs_apart.highest, runs_apart.place]),
        unit=quantity.unit,
        low_in=names[runs_apart.lowest],
        high_in=names[runs_apart.highest],
    )
