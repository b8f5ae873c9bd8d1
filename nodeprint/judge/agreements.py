"""The agreement of nodes, remedies for undetermined components, and detection limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.measured import Measured, is_metric, models
from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import naming
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.deviations import Deviations
from nodeprint.judge.reduction import Matrix
from nodeprint.judge.standing import FEW_NODES
from nodeprint.judge.verdict import Agreement, Finding, Limit, Spread, Verdict
from nodeprint.stats.peers import TEMPLATE_ERROR

Floats = npt.NDArray[np.float64]

#: The largest numbers of runs, nodes and jobs that a remedy recommends.
MOST_RUNS, MOST_NODES, MOST_JOBS = 20, 64, 4
#: The standard normal quantile of 90% power.
NINE_OF_TEN = 1.2816
#: Detection limits above this many tolerances do not support a conclusion.
FAR = 2.5
#: The largest detection limit: of few runs or nodes Student's quantile makes it arbitrarily large.
MOST_LIMIT = 10.0
#: A node is noisy if its runs have more than this many times the variance of its peers' runs.
_NOISIER = 2.0
#: A difference above this share of its tolerance is close to it.
_CLOSE = 0.5
#: Within a fleet, this share of the nodes beyond a tolerance in different places, and this many, are natural spread.
_WIDE_SHARE, _WIDE_NODES = 0.2, 3
#: If more than this share of them has the same component, they share a difference.
_SHARED = 0.5


def metric(quantity: Measured) -> str:
    """The deciding metric of a measurement: core-to-core latency, messages, or a term of measurements.yaml."""
    if quantity.of_pairs:
        return "core-to-core" if quantity.core_to_core else "messages"
    return quantity.model.term


def metric_of(finding: Finding) -> str:
    """The metric of a finding, by its measurement; empty if it has none."""
    model = models().get(finding.measurement)
    if model is None:
        return finding.measurement if is_metric(finding.measurement) else ""
    if model.places == "pairs":
        return "messages" if finding.measurement.startswith("linktest") else "core-to-core"
    return model.term


def decided_metrics(verdict: Verdict) -> tuple[str, ...]:
    """The metrics that decide the outcomes of a verdict: its criteria, and then those of findings that count.

    A finding fails its node in any metric. One of a limit or of a baseline is not a difference from peers.
    """
    counted = (finding for node in verdict.nodes.values() for finding in node.counted)
    of_peers = (metric_of(finding) for finding in counted if not (finding.of_limit or finding.baseline))
    return tuple(dict.fromkeys((*verdict.criteria, *filter(None, of_peers))))


def agreements(tables: Iterable[tuple[Deviations, int]], node: PackedNode, rules: Acceptance) -> tuple[Agreement, ...]:
    """The agreement of a node in each metric, deciding metrics first. `tables` are its tables, each with its position
    there."""
    by_metric: dict[str, list[tuple[Deviations, int]]] = {}
    for table, position in tables:
        by_metric.setdefault(metric(table.matrix.measured), []).append((table, position))
    out = []
    for name, of_metric in by_metric.items():
        shares = [_share_of_tolerance(table, position) for table, position in of_metric]
        nearest = int(np.argmax([share.max(initial=-1.0) for share in shares]))
        if shares[nearest].max(initial=-1.0) >= 0:
            out.append(_agreement(name, *of_metric[nearest], int(np.argmax(shares[nearest])), node, rules))
    return tuple(
        sorted(out, key=lambda agreement: (not agreement.criterion, _order(agreement.metric, rules), agreement.metric))
    )


def _share_of_tolerance(table: Deviations, position: int) -> Floats:
    """The share of its tolerance that each component of a node uses (component), -1 without a value."""
    pooled, number = table.pooled_node(position)
    difference = pooled.difference[number]
    reach = np.abs(difference) + pooled.half_90[number]
    return np.where(np.isfinite(difference), reach / table.tolerance, -1.0)


def _order(name: str, rules: Acceptance) -> int:
    return rules.criteria.index(name) if name in rules.criteria else len(rules.criteria)


def _agreement(
    name: str, table: Deviations, position: int, component: int, node: PackedNode, rules: Acceptance
) -> Agreement:
    """The agreement of a node, by the component nearest to its tolerance."""
    matrix, relative = table.matrix, table.matrix.terms.relative
    pooled, number = table.pooled_node(position)
    difference, half = float(pooled.difference[number, component]), float(pooled.half_90[number, component])
    reach, limit = abs(difference) + half, float(table.tolerance[component])
    unit_of = 1.0 if matrix.terms.share else float(matrix.levels[component])
    within, tolerance = relative(reach), relative(limit)
    remedy, needed = "", 0
    # no remedy for a node that is known to be outside its tolerance
    if reach == np.inf and pooled.runs[number, component] > 1:  # no center to compare it with
        remedy = "settings"
    elif abs(difference) - half <= limit < reach < np.inf:
        remedy, needed = remedy_of(pooled, number, component)
    elif limit < reach < np.inf and not _is_outside(table, position, component):
        remedy = "job"
    return Agreement(
        name,
        name in rules.criteria,
        matrix.name,
        naming.component(matrix, component, node),
        within,
        tolerance,
        "share" if matrix.terms.share else matrix.measured.unit,
        within * unit_of,
        tolerance * unit_of,
        reach / limit,
        relative(difference),
        int(pooled.runs[number, component]),
        remedy,
        needed,
        _oddest_run(matrix, position, component) if remedy == "quiet" else "",
    )


def _is_outside(table: Deviations, position: int, component: int) -> bool:
    """Whether a job of a node, or all together, show it outside its tolerance in a component."""
    jobs = table.matrix.jobs(position)
    return bool(table.outside[jobs.start : jobs.stop, component].any() or table.outside_pooled[position, component])


def _oddest_run(matrix: Matrix, position: int, component: int) -> str:
    """The run farthest from the median of all runs of the node in a component, such as job1/run2."""
    rows = matrix.jobs(position)
    values = matrix.values[rows.start : rows.stop, :, component]
    apart = np.nan_to_num(np.abs(values - np.nanmedian(values)), nan=-1.0)
    row, run = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return matrix.runs[rows.start + int(row)][int(run)]


def remedy_of(pooled: Deviations, number: int, component: int) -> tuple[str, int]:
    """The first remedy that brings a component of a node (row `number` of `pooled`) within its tolerance.

    The remedies are `quiet` (an idle system), `runs`, `jobs` and `nodes` (each with the required total), `tolerance`
    (the difference is close to it) and `none`. `quiet` means that the node's runs should vary as little as those of the
    others.

    The observed deviation is the largest of many, so other jobs are expected to show only its share beyond noise. More
    runs of the same jobs reduce the noise of runs alone. If noise cannot explain a difference, all of it remains.
    A wider tolerance is not a remedy if a difference beyond it is unresolved, or if the interval is wider than it.
    """
    position, spread, reference = int(pooled.owner[number]), pooled.spreads.run, pooled.reference
    runs, jobs = max(int(pooled.runs[number, component]), 1), max(len(pooled.matrix.jobs(position)), 1)
    tolerance, error = float(pooled.tolerance[component]), float(pooled.error[number, component])
    difference, half_90 = abs(float(pooled.difference[number, component])), float(pooled.half_90[number, component])
    between = float(reference.between[position, component])
    if difference > tolerance:
        return "quiet", 0
    own, usual = float(spread.pooled[component] * spread.ratio[position, component]), float(spread.pooled[component])
    job = float(pooled.spreads.job.variance[component])
    count = max(float(reference.count[position]), 1.0)
    chips = max(between - own / runs, 0.0)
    quantile = half_90 / error if error > 0 and np.isfinite(half_90) else 2.0
    scatter = max(between + error**2, 1e-30)
    noisy = difference <= NormalDist().inv_cdf(1 - float(pooled.tail[component])) * scatter**0.5

    def room(noise: float) -> float:
        expected = difference * (1 - min(noise / scatter, 1.0) * noisy)
        return float((max(tolerance - expected, 0.0) / (quantile + NINE_OF_TEN)) ** 2)

    def variance(run: float, runs: float, jobs: int, peers: float) -> float:
        return float(run / runs + job / jobs + TEMPLATE_ERROR * (chips + run / runs) / peers)

    of_jobs, of_runs = room(error**2), room(own / runs)
    if own > _NOISIER * usual and variance(usual, runs, jobs, count) <= of_jobs:
        return "quiet", 0
    more_runs = (("runs", of, variance(own, of, jobs, count), of_runs) for of in range(runs + 1, MOST_RUNS + 1))
    more_jobs = (
        ("jobs", of, variance(own, runs * of / jobs, of, count), of_jobs) for of in range(jobs + 1, MOST_JOBS + 1)
    )
    more_nodes = (
        ("nodes", of, variance(own, MOST_RUNS, jobs, of - 1), of_runs) for of in range(int(count) + 2, MOST_NODES + 1)
    )
    for remedy, wanted, expected, most in chain(more_runs, more_jobs, more_nodes):
        if expected <= most:
            return remedy, wanted
    if own > _NOISIER * usual or not half_90 <= tolerance:
        return "quiet", 0
    return ("tolerance", 0) if difference > _CLOSE * tolerance else ("none", 0)


def limits(series: Sequence[Deviations]) -> tuple[Limit, ...]:
    """The detection limit of each component type: the difference that one job detects with 90% power. It is the median
    over nodes and components."""
    out = []
    for of_measurement in series:
        terms, tolerances = of_measurement.matrix.terms, of_measurement.tolerance
        needs = tolerances + of_measurement.half_of_job + NINE_OF_TEN * of_measurement.error
        for number, columns in terms.by_component_type:
            usable = needs[:, columns][np.isfinite(needs[:, columns])]
            if not len(usable):
                continue
            effect, tolerance = float(np.median(usable)), float(np.median(tolerances[columns]))
            relative = of_measurement.matrix.terms.relative
            remedy, needed = (
                _sharper(of_measurement, columns, effect, tolerance) if effect > FAR * tolerance else ("", 0)
            )
            first = terms.terms[int(columns[0])]
            compared = tolerances[columns][np.isfinite(of_measurement.difference[:, columns]).any(axis=0)]
            out.append(
                Limit(
                    metric(of_measurement.matrix.measured),
                    of_measurement.matrix.name,
                    terms.component_types[number],
                    first.name,
                    min(relative(effect), MOST_LIMIT),
                    relative(tolerance),
                    remedy,
                    needed,
                    relative(float(compared.min(initial=tolerance))),
                    relative(float(compared.max(initial=tolerance))),
                )
            )
    return tuple(out)


def _sharper(series: Deviations, columns: npt.NDArray[np.int64], effect: float, tolerance: float) -> tuple[str, int]:
    """The number of runs or nodes that reduces a detection limit to FAR tolerances; `none` if neither does."""
    runs = float(np.median(series.spreads.runs[:, columns]))
    run = float(np.median(series.of_runs[:, columns])) * runs
    job = float(np.median(series.of_jobs[:, columns]))
    template = float(np.median(series.of_reference[:, columns]))
    width = (effect - tolerance) / np.sqrt(run / runs + job + template)
    room = ((FAR - 1) * tolerance / width) ** 2
    share = run / max(runs, 1) / (run / max(runs, 1) + template)
    for wanted in range(int(runs) + 1, MOST_RUNS + 1):
        if run / wanted + job + template * (1 - share + share * runs / wanted) <= room:
            return "runs", wanted
    peers = float(np.median(series.reference.count))
    for wanted in range(int(peers) + 2, MOST_NODES + 1):
        if run / runs + job + template * peers / (wanted - 1) <= room:
            return "nodes", wanted
    if peers < FEW_NODES - 1:  # intervals over two or three nodes are far wider than those that more would have
        return "nodes", FEW_NODES
    return "none", 0


def spreads(series: Sequence[Deviations]) -> tuple[Spread, ...]:
    """The spread of each component type over the nodes."""
    out = []
    for of_measurement in series:
        terms, of_nodes = of_measurement.matrix.terms, of_measurement.pooled
        nodes = len(of_measurement.matrix.nodes)
        if nodes < 3 or terms.share:
            continue
        runs = np.maximum(np.median(of_measurement.spreads.runs, axis=0), 1)
        beyond_tolerance = of_measurement.nodes_outside(1) | of_measurement.nodes_outside(-1)
        between_all, reach_all = of_nodes.between, np.abs(of_nodes.difference) + of_nodes.half_90
        for component_type, columns in terms.by_component_type:
            relative = of_measurement.matrix.terms.relative
            between = float(np.median(between_all[:, columns]))
            run = float(np.median(of_measurement.spreads.run.pooled[columns]))
            chips = float(np.sqrt(max(between - run / float(np.median(runs[columns])), 0.0)))
            outside = beyond_tolerance[:, columns]
            beyond = int(outside.any(axis=1).sum())
            most_alike = int(outside.sum(axis=0).max(initial=0))
            wide = beyond >= max(_WIDE_NODES, _WIDE_SHARE * nodes) and most_alike <= _SHARED * beyond
            wide = wide or bool(of_measurement.scattered[columns].any())
            tolerance = float(np.median(of_measurement.tolerance[columns]))
            share = (reach_all[:, columns] / of_measurement.tolerance[columns]).max(axis=1)
            usable = share[np.isfinite(share)]
            smallest = float(np.quantile(usable, 0.95)) * tolerance if len(usable) else float("nan")
            out.append(
                Spread(
                    metric(of_measurement.matrix.measured),
                    of_measurement.matrix.name,
                    terms.component_types[component_type],
                    terms.terms[int(columns[0])].name,
                    relative(chips),
                    relative(float(np.sqrt(run))),
                    relative(tolerance),
                    relative(smallest),
                    beyond,
                    wide,
                )
            )
    return tuple(out)
