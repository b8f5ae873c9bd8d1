"""Disturbances of a measurement by the kernels' own records, and readings of a node's sensors at the time.

A run is invalid by its records: pairs are missing, were disturbed, or differ between the runs of a virtual machine.
Counters of the whole machine (steal time) are reported and decide nothing, as the kernels repeat disturbed
measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import disagreements
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.agreements import metric
from nodeprint.judge.verdict import LOST, Disturbance
from nodeprint.stats.disagreement import LEAST
from nodeprint.stats.robust import row_medians

#: The kind of disturbance that is a run off the others of its job.
ODD_RUN = "odd-run"


def of_job(
    node: PackedNode,
    i: int,
    job: int,
    reduced: Sequence[Measured],
    odd: Sequence[Mapping[int, float]],
    rules: Acceptance,
) -> list[Disturbance]:
    """The disturbances that invalidate deciding measurements of a node's job. They are missing or disturbed pairs, an
    `odd` run (by measurement and row), and migrated CPUs of a virtual machine."""
    out = [seen for seen in disagreements.of_job(node, i, job, reduced, rules) if seen.invalid]
    out += [disturbance for measurement in reduced for disturbance in _of_measurement(i, job, measurement, rules)]
    for measurement, of_row in zip(reduced, odd, strict=True):
        rows = measurement.rows.get(i, {}).get(job, [])
        of_other_runs = row_medians(measurement.level[[row for row in rows if row not in of_row]].T)
        for row in (row for row in rows if row in of_row):
            run, ratios = f"job{job}/run{measurement.run[row]}", measurement.level[row] / of_other_runs
            far = ratios[np.abs(np.log(ratios)) > np.log(LEAST)]  # it may be off in some of its points only
            ratio = float(np.nanmedian(far if len(far) else ratios))
            out.append(Disturbance(ODD_RUN, True, measurement.measurement, run, abs(ratio - 1), ratio))
    return out


def _of_measurement(i: int, job: int, reduced: Measured, rules: Acceptance) -> Iterator[Disturbance]:
    rows = reduced.rows.get(i, {}).get(job, [])
    if not reduced.of_pairs or not rows or metric(reduced) not in rules.criteria:
        return
    missing = reduced.missing[rows]
    measured = missing.min(axis=0) < 1  # at other homes the job was not measured: another configuration, and no gap
    absent = missing[:, measured].mean(axis=1) if measured.any() else np.ones(len(rows))
    disturbed = reduced.disturbed[rows]
    for kind, shares, limit in (
        ("missing", absent, rules.quality.missing_pairs_percent / 100),
        ("disturbed", disturbed, rules.quality.disturbed_pairs_percent / 100),
    ):
        if shares.mean() <= limit:
            continue
        for row, share in zip(rows, shares.tolist(), strict=True):
            if share > limit:
                run = f"job{job}/run{reduced.run[row]}"
                yield Disturbance(kind, invalid=True, measurement=reduced.measurement, run=run, share=share)


def beside(node: PackedNode, i: int, reduced: Sequence[Measured], rules: Acceptance) -> list[Disturbance]:
    """Observations of a node's newest job that invalidate no run: differing runs, disturbed pairs, steal time and
    background load. Also noisy CPUs, heat, corrected memory errors and reduced clocks."""
    runs = _newest(node)
    newest = max((job for measurement in reduced for job in measurement.rows.get(i, ())), default=0)
    differing = [
        *disagreements.of_job(node, i, newest, reduced, rules),
        *disagreements.of_jobs(node, i, reduced, rules),
    ]
    out = [*(seen for seen in differing if not seen.invalid), *_share_of_pairs(i, reduced)]
    stolen, steal = _worst(runs, "steal_share")
    if 100 * steal > rules.quality.steal_percent:
        out.append(_seen("stolen", stolen, share=steal))
    lossy, lost = _worst(runs, "lost_share")
    if lost >= LOST:
        out.append(_seen("busy", lossy, share=lost))
    loudest = loud(node, i, reduced, rules)
    if loudest:
        cpus = tuple(cpu for cpu, _ in loudest)
        out.append(Disturbance("loud-cpus", invalid=False, share=loudest[0][1], cpus=cpus))
    hot, heat = _worst(runs, "hottest_c")
    if heat >= rules.quality.hottest_c:
        out.append(_seen("hot", hot, value=heat, detail=str(hot["hottest"])))
    corrected = sum(int(run.get("corrected") or 0) for run in runs)
    if corrected:
        out.append(Disturbance("memory-errors", invalid=False, value=float(corrected)))
    fell, share = _worst(runs, "clock_fell")
    if 100 * share > rules.quality.clock_fell_percent:
        out.append(_seen("clock-fell", fell, share=share))
    return out


def lost(node: PackedNode, i: int, reduced: Sequence[Measured]) -> dict[str, float]:
    """The largest disturbed share in any run of a node's newest job, by measurement. It is a share of CPU time
    (background load or steal time), or of values that the kernel flagged."""
    out: dict[str, float] = {}
    for measurement in reduced:
        rows = measurement.newest_rows.get(i, [])
        name = measurement.measurement
        out[name] = max([out.get(name, 0.0), *measurement.disturbed[rows].tolist()])
    for run in _newest(node):
        name = str(run["measurement"])
        taken = max(float(run.get("lost_share") or 0.0), float(run.get("steal_share") or 0.0))
        out[name] = max(out.get(name, 0.0), taken)
    return out


def _share_of_pairs(i: int, reduced: Sequence[Measured]) -> Iterator[Disturbance]:
    """The worst share of disturbed pairs of each measurement of the newest job, if there are any."""
    for measurement in reduced:
        rows = measurement.newest_rows.get(i, []) if measurement.of_pairs else []
        if not rows:
            continue
        worst = max(rows, key=lambda row: measurement.disturbed[row])
        share = float(measurement.disturbed[worst])
        if share > 0.01:
            run = f"job{measurement.job[worst]}/run{measurement.run[worst]}"
            yield Disturbance("disturbed", invalid=False, measurement=measurement.measurement, run=run, share=share)


def _seen(kind: str, run: Mapping[str, Any], share: float = 0.0, value: float = 0.0, detail: str = "") -> Disturbance:
    name = f"job{run['job']}/run{run['run']}"
    return Disturbance(kind, False, str(run["measurement"]), name, share, value, detail=detail)


def loud(node: PackedNode, i: int, quantities: Sequence[Measured], rules: Acceptance) -> list[tuple[int, float]]:
    """OS numbers of noisy CPUs, the noisiest first. They lost more than the tolerance of their time in a run of the
    newest job."""
    out: dict[int, float] = {}
    numbers = node.numbers.get("cpu", ())
    for quantity in quantities:
        if quantity.model.scale != "share" or quantity.dims != ("cpu",) or i not in quantity.rows:
            continue
        values = np.asarray(quantity.values[quantity.newest_rows[i]], dtype=np.float64)
        worst = np.nan_to_num(values).reshape(-1, quantity.size).max(axis=0)
        for place in np.flatnonzero(worst > rules.cell(quantity.model.term).tolerance):
            slot = int(quantity.places["cpu"][place])
            cpu = numbers[slot] if slot < len(numbers) else slot
            out[cpu] = max(float(worst[place]), out.get(cpu, 0.0))
    return sorted(out.items(), key=lambda entry: (-entry[1], entry[0]))


#: The finding of a core that calculates wrongly.
WRONG_RESULT = "wrong-result"


def events(node: PackedNode) -> dict[str, dict[str, int]]:
    """Throttling, uncorrected memory errors and wrong results by kind and job (job1). They are faults of the node, from
    its counters or from a check of its results."""
    out: dict[str, dict[str, int]] = {}
    for kind, counter in (("throttled", "throttled"), ("memory-errors", "uncorrected"), (WRONG_RESULT, "wrong")):
        for run in node.seen:
            if count := int(run.get(counter) or 0):
                by_job = out.setdefault(kind, {})
                by_job[f"job{run['job']}"] = by_job.get(f"job{run['job']}", 0) + count
    return out


def wrong_cpus(node: PackedNode) -> list[int]:
    """The CPUs that calculated a wrong number, as far as it is known which did."""
    return sorted({cpu for run in node.seen for cpu in run.get("wrong_cpus", ())})


def _worst(runs: Sequence[Mapping[str, Any]], key: str) -> tuple[Mapping[str, Any], float]:
    """The run with the largest value of `key`, and that value; 0 if unknown."""
    run = max(runs, key=lambda run: float(run.get(key) or 0.0), default={})
    return run, float(run.get(key) or 0.0)


def _newest(node: PackedNode) -> list[Mapping[str, Any]]:
    last = max((int(run["job"]) for run in node.seen), default=0)
    return [run for run in node.seen if run["job"] == last]
