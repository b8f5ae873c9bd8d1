"""Changes since a baseline of known-good runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from nodeprint.data.places.layout import Ints
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge import joined, naming
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.deviations import Deviations, Spreads, table
from nodeprint.judge.findings import TableFinding, merged, of_row
from nodeprint.judge.reduction import mean_of_runs
from nodeprint.judge.standing import outliers
from nodeprint.judge.verdict import Component, Finding, Interval, Note, Shared
from nodeprint.settings.texts import say
from nodeprint.stats import intervals
from nodeprint.stats.peers import Peers
from nodeprint.stats.rounds import Rounds
from nodeprint.stats.runs import PooledVariance

#: The minimum numbers of runs and boots of a node in a baseline.
MIN_RUNS, MIN_BOOTS = 3, 2


def against(
    fleet: PackedFleet, points: Sequence[PackedFleet], baseline: Path, rules: Acceptance
) -> tuple[Mapping[str, Sequence[Finding]], tuple[Note, ...]]:
    """The changes of each node of `fleet` since its own past, the `points` of a `baseline`.

    Returns the findings by name of the node, and notes. The notes identify the baseline, its gaps and the common change
    of all nodes.

    A node is compared with the mean of its own jobs in the baseline, and judged like any node (`judge.standing`). The
    common shift of all nodes is subtracted and reported as a note. A node with fewer than three runs or two boots in
    the baseline is not compared. Raises NodeprintError if only one of the two is simulated.
    """
    before = [point for point in points if point.campaign != fleet.campaign] or list(
        points
    )  # a campaign is not its own past
    simulated = {point.simulated for point in before} | {fleet.simulated}
    if len(simulated) > 1:
        raise NodeprintError("mixes simulated and measured campaigns", where=baseline, advice="name another baseline")
    all_joined, _ = joined.join([*before, fleet], rules, distinct=False)
    matrices = [_sides(joined.past(matrix, rules), len(before)) for matrix in all_joined]
    tests = sum(len(past.tolerance) * len(sides) for past, sides in matrices)
    tail = rules.false_alarm / (2.0 * max(tests, 1))
    boots, called = boots_of(before), _called(before)
    number = {node.name: i for i, node in enumerate(fleet.nodes)}
    shown: dict[str, list[TableFinding]] = {}
    thin, compared = set[str](), set[str]()
    for past, sides in matrices:
        for position, (now, then) in sides.items():
            name = joined.node_of(past, position)
            compared.add(name)
            if past.runs[then].max(axis=1).sum() < MIN_RUNS or len(boots[name]) < MIN_BOOTS:
                thin.add(name)
                continue
            of_now = _table(past, position, now, then, number[name], tail)
            changed = _is_changed(past, now, then)
            for i, row in outliers(of_now).items():
                of_node = of_row(row, fleet.nodes[i])
                # a node that stayed the same while all others shifted did not change
                shown.setdefault(name, []).extend(outlier for outlier in of_node if changed[outlier.cause.head])
    changes = {
        name: [_changed(outlier.finding, called) for outlier in merged(of_node)] for name, of_node in shown.items()
    }
    notes = [Note("baseline", printable(str(baseline)), _trust(before, fleet, thin, compared))]
    common = [change for past, sides in matrices if (change := _common(past, sides, tail)) is not None]
    if common:
        largest = max(common, key=lambda change: (len(change.nodes), abs(change.effect)))
        notes.append(Note("baseline-common", called, value=float(len(common) - 1), shared=largest))
    return changes, tuple(notes)


def _trust(past: Sequence[PackedFleet], fleet: PackedFleet, thin: Collection[str], compared: Collection[str]) -> str:
    """A summary of a baseline for this fleet: its campaigns, and the nodes with too little data or none."""
    known = {node.name for point in past for node in point.nodes if node.state == "measured"}
    measured = [node.name for node in fleet.nodes if node.state == "measured"]
    absent = [name for name in measured if name not in known]
    differing = [name for name in measured if name in known and name not in compared]
    facts = [", ".join(filter(None, (printable(point.campaign), begun(point)[:10]))) for point in past]
    for names, what in (
        (sorted(thin), say("baseline", "thin", runs=MIN_RUNS, boots=MIN_BOOTS)),
        (absent, say("baseline", "absent")),
        (differing, say("baseline", "differing")),
    ):
        if names:
            facts.append(f"{what}: {', '.join(map(printable, names[:8]))}{', ...' if len(names) > 8 else ''}")
    return "; ".join(facts)


def begun(fleet: PackedFleet) -> str:
    """The start of the first run of a fleet; empty if unknown."""
    return min((moment for quantity in fleet.quantities for moment in quantity.started), default="")


def _called(past: Sequence[PackedFleet]) -> str:
    """The first and last campaign of a baseline: `c1 to c4`."""
    return " to ".join(dict.fromkeys(printable(point.campaign, 60) for point in (past[0], past[-1])))


def boots_of(past: Sequence[PackedFleet]) -> dict[str, set[str]]:
    """By node, the boots in the campaigns of a baseline. A campaign without boot data counts as one boot."""
    out: dict[str, set[str]] = {}
    for point in past:
        for node in point.nodes:
            out.setdefault(node.name, set()).update(node.boots or (f"of {point.campaign}",))
    return out


def runs_of(past: Sequence[PackedFleet]) -> dict[str, int]:
    """By node, the number of runs in a baseline's campaigns, for its most frequent measurement."""
    runs = Counter[tuple[str, str]]()
    for point in past:
        for quantity in point.quantities:
            runs.update((point.nodes[number].name, quantity.measurement) for number in quantity.node)
    most: dict[str, int] = {}
    for (name, _), count in runs.items():
        most[name] = max(most.get(name, 0), count)
    return most


#: The jobs (rows) of a node now and in the baseline, by its position in a matrix.
_Sides = Mapping[int, tuple[Ints, Ints]]


def _sides(past: Spreads, number: int) -> tuple[Spreads, _Sides]:
    """The jobs of campaign `number`, the newest, and of those before it, for each node that has both; with the past
    spread between jobs."""
    newest = np.array([job.campaign == number for job in past.matrix.at])
    sides, levels = {}, np.zeros_like(past.means)
    for position in range(len(past.matrix.nodes)):
        rows = np.array(past.matrix.jobs(position))
        now, then = rows[newest[rows]], rows[~newest[rows]]
        # only the past is evidence of the spread between jobs, as the current jobs are being judged
        levels[now] = np.nan_to_num(past.means[now])
        if len(then):
            levels[then] = mean_of_runs(past.means[then][None])[0]
        if len(now) and len(then):
            sides[position] = now, then
    of_now = np.bincount(past.matrix.owner[newest], minlength=len(past.matrix.nodes))
    fitted = of_now + (of_now < np.bincount(past.matrix.owner))
    return joined.about(past, levels, fitted[:, None]), sides


def _is_changed(past: Spreads, now: Ints, then: Ints) -> npt.NDArray[np.bool_]:
    """Whether the change of a node since the baseline is beyond the tolerance, including the common shift of all nodes
    (component)."""
    change = mean_of_runs(joined.means_with_rounds(past, now)[None])
    change -= mean_of_runs(joined.means_with_rounds(past, then)[None])
    return np.asarray(np.abs(change[0]) > past.tolerance)


def _table(past: Spreads, position: int, now: Ints, then: Ints, i: int, tail: float) -> Deviations:
    """Node number `i` by its jobs now, with its baseline as template and reference."""
    matrix = past.matrix
    usual = mean_of_runs(past.means[then][None])[0]
    means = past.means[now] - usual
    zero, one = np.zeros((1, len(usual))), np.ones((1, len(usual)))
    of_node = msgspec.structs.replace(
        matrix,
        nodes=np.array([i]),
        owner=np.zeros(len(now), dtype=np.int64),
        runs=tuple(matrix.runs[row] for row in now.tolist()),
        began=matrix.began[now],
        rows=tuple([row] for row in range(len(now))),
        level=matrix.level[now],
        template=matrix.level_of(then.tolist()),
        values=matrix.values[now] - (joined.moved(past, now) + usual)[:, None],
    )
    days = past.rounds.number[np.concatenate([now, then])]
    of_rounds = past.rounds.error[days].max() * (1 / len(now) + 1 / len(then))
    of_runs = joined.of_runs(past, then).sum(axis=0) / len(then) ** 2
    of_runs = of_runs + of_rounds * (past.of_usual_runs + past.job.variance)
    ratio = past.job.ratio[[position]]
    spreads = Spreads(
        of_node,
        past.tolerance,
        means,
        past.runs[now],
        np.asarray(mean_of_runs(means[None]), dtype=np.float64),
        PooledVariance(past.run.pooled, past.run.degrees, past.run.ratio[now].max(axis=0, keepdims=True)),
        PooledVariance(past.job.pooled, past.job.degrees, ratio, past.job.assumed),
        Rounds(np.zeros(len(now), dtype=np.int64), zero, np.zeros(1), np.zeros(1, dtype=np.int64)),
    )
    of_jobs = ratio / len(then)
    reference = Peers(zero, np.ones(1), zero, one, of_runs[None], of_jobs, zero, np.ones(1))
    referenced = np.ones(len(usual), dtype=np.bool_)
    return table(spreads, reference, referenced, np.full(len(usual), tail), tail)


def _changed(finding: Finding, called: str) -> Finding:
    """Convert a finding among a node's own jobs to a change since the baseline `called`."""
    return replace(finding, id="changed", remedy="changed", baseline=called, consistent_with=())


def _common(past: Spreads, sides: _Sides, tail: float) -> Shared | None:
    """The largest common change of all nodes beyond a tolerance, with the nodes that changed; None without one."""
    matrix, change = past.matrix, joined.together(past, list(sides.values()))
    if change is None:
        return None
    half = intervals.half_width(change.error, change.degrees, tail)
    residual = np.median([joined.residual(past, now, then) for now, then in sides.values()], axis=0)
    cause = next(iter(joined.causes_of(past, change, half, residual)), None)
    if cause is None:
        return None
    head, half_95 = cause.head, intervals.half_width(change.error, change.degrees, 0.025)
    effect = float(change.effect[head])
    low, size, high = (matrix.terms.relative(effect + side * float(half_95[head])) for side in (-1, 0, 1))
    names = sorted(joined.node_of(past, i) for i, side in sides.items() if _is_changed(past, *side)[head])
    component = Component(
        cause.term, matrix.terms.terms[head].component_type, naming.place(matrix, cause.where, naming.NO_NODE)
    )
    return Shared(tuple(names), matrix.name, component, size, Interval(low, high))
