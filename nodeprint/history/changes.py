"""Level changes of components over campaigns: size, date, and the changes of the node's configuration at that time.

A change that all nodes share is one change, and not one of each node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec.structs import replace

from nodeprint.data.places.layout import Ints
from nodeprint.data.store import packing
from nodeprint.history.judged import PastCampaign
from nodeprint.judge import acceptance, agreements, joined, naming
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.deviations import SUSPECT, Spreads, job_tail
from nodeprint.judge.joined import Difference
from nodeprint.judge.reduction import JobAt, Matrix, mean_of_runs
from nodeprint.judge.terms import Cause
from nodeprint.judge.verdict import Component, Interval
from nodeprint.machine.node_configuration import read_fingerprint
from nodeprint.machine.tree import open_tree
from nodeprint.stats import change_points, intervals
from nodeprint.stats.change_points import Stretch

Floats = npt.NDArray[np.float64]

#: The chance that anything of an unchanged node is reported as changed in so many measurements: a year of weeks.
ALARM, YEAR = 0.01, 52
#: The probability at each end of a 95% interval.
_TAIL_95 = 0.025
#: A series' own scatter counts, besides that of all, from so many steps on.
_STEPS = 8
#: The scatter of jobs is the median of at least so many differences: of fewer, it may be the change itself.
_ENOUGH = 3
#: A level is known by so many measurements.
_SEVERAL = 2
#: Components of a node that have a course.
_COURSES = 4
#: So many nodes, besides the requested ones, show the shared movement.
_OTHERS = 16
#: A step is this share of all that a component moves by.
_AT_ONCE = 0.75
#: A node moves with the others if it moves by this share of their movement.
_WITH_ALL = 0.5
#: In place of the position of a node: all of them together.
ALL = -1


class Range(msgspec.Struct, frozen=True):
    """The lowest and highest values of a component, relative to its first level, with their dates (ISO 8601)."""

    low: float
    lowest: str
    high: float
    highest: str


class Change(msgspec.Struct, frozen=True):
    """A component of a node, or of all `nodes` together, whose level changed: the whole interval is outside the
    tolerance.

    `effect` and `interval` (95%) are relative to the level `before`; for shares of the time they are the difference.
    `before` and `after` are in `unit`, for several nodes the medians. For one node, they exclude the shared movement of
    all nodes, unless fewer than three were measured (`compared` is false). The component still had its level before at
    `unchanged`. The change was there `since`, the likeliest first measurement, at the latest `by` (ISO 8601). If it
    came in several steps, they made up the tolerance at `since`. `counts` are the measurements that show the level
    before and after; `confirmed`: two or more each. `further` components of the same metric moved with it. `fields` of
    the fingerprint changed in between: values before and after. If the level of all nodes keeps moving, `moves` has the
    range.
    """

    node: str
    measurement: str
    home: int
    metric: str
    component: Component
    unit: str
    before: float
    after: float
    effect: float
    interval: Interval
    tolerance: float
    unchanged: str
    since: str
    by: str
    confirmed: bool
    counts: tuple[int, int]
    worse: bool
    further: int = 0
    fields: Mapping[str, tuple[str, str]] = {}
    nodes: tuple[str, ...] = ()
    compared: bool = True
    moves: Range | None = None


class Course(msgspec.Struct, frozen=True):
    """A component of a node over its measurements: the time (`measured`, ISO 8601) and campaign of each. `distance` is
    its difference from the first level, and `half` is half of the 95% interval, both in tolerances.

    `tolerance` is relative, as in a change.
    """

    measurement: str
    home: int
    metric: str
    component: Component
    tolerance: float
    measured: tuple[str, ...]
    campaigns: tuple[str, ...]
    distance: tuple[float, ...]
    half: tuple[float, ...]


class NodeHistory(msgspec.Struct, frozen=True):
    """A node over time: its measurement times (ISO 8601, in order) and campaigns, its changes by date, and its courses.
    Courses are of the changed components, the largest change in tolerances first. An unchanged node has that of the
    component that moved most."""

    node: str
    measured: tuple[str, ...]
    campaigns: tuple[str, ...]
    changes: tuple[Change, ...]
    courses: tuple[Course, ...]


#: Of nodes that were another machine in a campaign.
OTHER_MACHINE = ["node", "campaign", "field", "before", "now"]


class Histories(msgspec.Struct, frozen=True):
    """Campaigns in the order of time (`judged`), and every node over time by name.

    `common` are the changes that all nodes share, of a node without a name; None if they are not known.

    `left_out` has the names of simulated campaigns if the others were measured. `copies` has those of directories that
    copy another campaign, and `beside` the number that a cap left out. `other_machines` has nodes that were another
    machine in a campaign, which leaves them out. Its `field` of the fingerprint was `before`, and is `now` in the
    newest campaign.
    """

    judged: tuple[PastCampaign, ...]
    nodes: tuple[NodeHistory, ...] = ()
    common: NodeHistory | None = None
    left_out: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    other_machines: pd.DataFrame = msgspec.field(default_factory=lambda: pd.DataFrame(columns=OTHER_MACHINE))
    beside: int = 0


class _LevelSeries(msgspec.Struct, frozen=True):
    """A node in one matrix over time (its `position`; ALL: the shared movement of all). `values` (sample, component)
    have `errors`, `jobs` the first job of each sample, and `rows` (sample, job; -1 if missing) all of its jobs.

    Levels differ from `z` standard errors on. Differences need the spread of jobs (in `past`), the correlation of
    successive ones (`alike`), and the probability at each end of a component's interval (`tails`). All three are known
    once every series has its levels.
    """

    past: Spreads
    position: int
    rows: Ints
    values: Floats
    errors: Floats
    jobs: tuple[JobAt, ...]
    z: float
    alike: float = 0.0
    tails: Floats = np.empty(0)

    @property
    def times(self) -> tuple[str, ...]:
        """The time of each sample (ISO 8601)."""
        return tuple(job.started for job in self.jobs)

    def between(self, after: Ints, before: Ints) -> tuple[Difference, Floats] | None:
        """The change from some samples to others, and half of its simultaneous interval (component)."""
        if self.position != ALL:
            rows = self.rows[:, 0]
            change = joined.difference(self.past, self.position, rows[after], rows[before], self.alike)
        else:
            known = joined.together(self.past, self._sides(after, before))
            if known is None:
                return None
            change = known
        return change, intervals.half_width(change.error, change.degrees, self.tails)

    def residual(self, after: Ints, before: Ints) -> Floats:
        """The change of each measurement point."""
        if self.position != ALL:
            rows = self.rows[:, 0]
            return joined.residual(self.past, rows[after], rows[before])
        return np.asarray(
            np.median([joined.residual(self.past, *sides) for sides in self._sides(after, before)], axis=0)
        )

    def _sides(self, after: Ints, before: Ints) -> list[tuple[Ints, Ints]]:
        """The jobs of each node that has any in both sets of rounds."""
        sides = [rows[rows >= 0] for rows in (self.rows[after], self.rows[before])]
        owner = self.past.matrix.owner
        nodes = np.intersect1d(owner[sides[0]], owner[sides[1]])
        return [(sides[0][owner[sides[0]] == node], sides[1][owner[sides[1]] == node]) for node in nodes.tolist()]


class _Step(msgspec.Struct, frozen=True):
    """A change of one component, by the numbers of the samples: those that show the level before and after it."""

    component: int
    before: Ints
    after: Ints
    unchanged: int
    since: int
    by: int
    share: float


class _Found(msgspec.Struct, frozen=True, eq=False):
    """A cause of a change of a node, or of all, with its samples and its size."""

    line: _LevelSeries
    step: _Step
    cause: Cause
    change: Difference

    @property
    def past(self) -> Spreads:
        """The matrix that it is in."""
        return self.line.past

    @property
    def covered(self) -> float:
        """The share of all measurement points that it covers."""
        return len(self.cause.covers) / max(len(self.past.matrix.template), 1)

    @property
    def share(self) -> float:
        """The change in tolerances."""
        head = self.cause.head
        return float(abs(self.change.effect[head]) / self.past.tolerance[head])

    @property
    def components(self) -> int:
        """The number of components that it changed."""
        return len(np.union1d(self.cause.members, self.cause.finer))

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for the same component in several measurements or at several homes."""
        where = {key: value for key, value in self.cause.where.items() if key not in ("inside", "near", "across")}
        return self.cause.term, *sorted(where.items())

    @property
    def confirmed(self) -> bool:
        """Whether several measurements show either level."""
        return min(len(self.step.before), len(self.step.after)) >= _SEVERAL

    def overlaps(self, other: _Found) -> bool:
        """Whether both may have come at one time."""
        ends = [(of.line.jobs[of.step.unchanged], of.line.jobs[of.step.by]) for of in (self, other)]
        return (ends[0][0] < ends[1][1] and ends[1][0] < ends[0][1]) or ends[0] == ends[1]


def histories(selected: Histories, nodes: Collection[str] | None = None) -> Histories:
    """Selected campaigns with every node of theirs; with `nodes` of these, compared with others of the same campaigns.

    Judged by the acceptance of the newest campaign. Raises NodeprintError if a campaign cannot be read.
    """
    judged = selected.judged
    fleets = [packing.pack(campaign.folder) for campaign in judged]
    rules = acceptance.rules_of(judged[-1].folder)
    rules = acceptance.of_metrics(acceptance.of_surveys(rules, fleets[-1]), fleets[-1])
    matrices, copies = joined.join(fleets, rules, _wanted(judged, nodes))
    return of_joined(matrices, copies, rules, selected)


def of_joined(matrices: Sequence[Matrix], copies: Collection[int], rules: Acceptance, selected: Histories) -> Histories:
    """The same of campaigns that are joined, in the same order."""
    judged = selected.judged
    pasts = [joined.past(matrix, rules) for matrix in matrices]
    names = sorted({job.node for matrix in matrices for job in matrix.at})
    components = sum(len(past.tolerance) for past in pasts)
    most = max((int(np.bincount(past.matrix.owner).max()) for past in pasts), default=1)
    z = change_points.threshold(ALARM, components, max(most, YEAR))
    by_node: dict[str, list[_LevelSeries]] = {}
    common: list[_LevelSeries] = []
    found: dict[str, list[_Found]] = {}
    for past in pasts:
        lines = _lines(past, z)
        levels, fitted = _levels(past, lines)
        varying, alike = joined.about(past, levels, fitted), joined.correlation(past.means - levels, past.matrix.owner)
        tails = job_tail(past.matrix.terms, SUSPECT, len(names))
        for position, line in enumerate(lines):
            node = joined.node_of(past, position)
            by_node.setdefault(node, []).append(line)
            found.setdefault(node, []).extend(_found(replace(line, past=varying, alike=alike, tails=tails)))
        if (together := _line_of_all(varying, z)) is not None:
            common.append(together)
            found.setdefault("", []).extend(_found(replace(together, alike=alike, tails=tails)))
    nodes = tuple(_history(name, by_node[name], found[name], judged) for name in names)
    folders = tuple(sorted(judged[number].folder.name for number in copies))
    of_all = _history_of_all(common, found.get("", []), judged)
    return replace(selected, nodes=nodes, common=of_all, copies=folders)


def _wanted(judged: Sequence[PastCampaign], nodes: Collection[str] | None) -> list[Collection[str]]:
    """The nodes of each campaign to read: `nodes` if given, and the others that most campaigns have, which show the
    shared movement."""
    if nodes is None:
        return [set(campaign.nodes) for campaign in judged]
    count = Counter(name for campaign in judged for name in campaign.nodes if name not in nodes)
    others = sorted(count, key=lambda name: (-count[name], name))[:_OTHERS]
    return [{*nodes, *others} & set(campaign.nodes) for campaign in judged]


# --- series over time ---


def _lines(past: Spreads, z: float) -> list[_LevelSeries]:
    """Each node of a matrix over time, without the shared movement. The spread of jobs beyond their runs is at least
    the assumed one. It is larger if successive jobs of this fleet differ by more, or those of a node measured often."""
    own, errors = past.means, np.sqrt(joined.of_runs(past) + past.job.assumed)
    rows = [np.array(past.matrix.jobs(position)) for position in range(len(past.matrix.nodes))]
    factors = [_scatter(past, own[of_node], errors[of_node]) for of_node in rows]
    differences = len(own) - len(rows)
    of_all = np.median(np.stack(factors), axis=0) if differences >= _ENOUGH else np.ones(own.shape[1])
    out = []
    for position, of_node in enumerate(rows):
        factor = np.maximum(of_all, factors[position] if len(of_node) > _STEPS else 1.0)
        jobs = tuple(past.matrix.at[row] for row in of_node.tolist())
        out.append(
            _LevelSeries(
                past, position, of_node[:, None], own[of_node], errors[of_node] * np.maximum(factor, 1.0), jobs, z
            )
        )
    return out


def _scatter(past: Spreads, values: Floats, errors: Floats) -> Floats:
    """The scatter of a node (component) in standard errors, by the median over each component type; 1 if unknown."""
    of_components, out = change_points.scatter(values, errors), np.ones(values.shape[1])
    for _, columns in past.matrix.terms.by_component_type:
        usable = np.isfinite(of_components[columns])
        if usable.any():
            out[columns] = np.median(of_components[columns][usable])
    return out


def _line_of_all(past: Spreads, z: float) -> _LevelSeries | None:
    """The shared movement of all nodes over time, a sample per round; None if it is not known."""
    known = np.flatnonzero(past.rounds.error > 0)
    if not len(known):
        return None
    rows = [np.flatnonzero(past.rounds.number == number) for number in known.tolist()]
    first = [min(past.matrix.at[row] for row in of_round.tolist()) for of_round in rows]
    order = sorted(range(len(known)), key=lambda number: first[number])
    variance = past.rounds.error[known][:, None] * (past.of_usual_runs + past.job.variance)
    widest = max(map(len, rows))
    padded = np.array([[*rows[number], *[-1] * (widest - len(rows[number]))] for number in order], dtype=np.int64)
    jobs = tuple(first[number] for number in order)
    return _LevelSeries(past, ALL, padded, past.rounds.shift[known][order], np.sqrt(variance)[order], jobs, z)


def _levels(past: Spreads, lines: Sequence[_LevelSeries]) -> tuple[Floats, Ints]:
    """The level of each node in each of its jobs (row, component), and its number of levels (node, component)."""
    levels = np.zeros_like(past.means)
    fitted = np.ones((len(lines), len(past.tolerance)), dtype=np.int64)
    for line in lines:
        of_node = line.rows[:, 0]
        levels[of_node] = mean_of_runs(line.values[None])[0]
        for component in _moving(line):
            at, stretches = _stretches(line, component)
            fitted[line.position, component] = len(stretches)
            for stretch in stretches:
                end = at[stretch.stop] if stretch.stop < len(at) else len(of_node)
                levels[of_node[at[stretch.start] : end], component] = stretch.level
    return levels, fitted


def _moving(line: _LevelSeries) -> list[int]:
    """The components whose values differ by their tolerance or more: the others cannot have moved by it."""
    return np.flatnonzero(_reach(line) >= 1).tolist()


def _reach(line: _LevelSeries) -> Floats:
    """The range of each component's values, in tolerances (component)."""
    present = np.isfinite(line.values)
    low, high = np.where(present, line.values, np.inf).min(axis=0), np.where(present, line.values, -np.inf).max(axis=0)
    return np.asarray(np.where(present.any(axis=0), high - low, 0.0) / line.past.tolerance)


def _stretches(line: _LevelSeries, component: int) -> tuple[Ints, list[Stretch]]:
    """The samples that show a component, without isolated ones, and the stretches of one level in them."""
    values, errors = line.values[:, component], line.errors[:, component]
    at = np.flatnonzero(np.isfinite(values) & (errors > 0))
    if len(at):
        at = at[~change_points.isolated(values[at], errors[at], line.z)]
    return at, change_points.stretches(values[at], errors[at], line.z) if len(at) else []


# --- changes ---


def _found(of: _LevelSeries) -> Iterator[_Found]:
    """The causes of all changes of a node in a matrix. For components that change at one time, these are the coarsest
    that explain the others."""
    steps = [step for component in _moving(of) for step in _steps(of, component)]
    taken: list[_Step] = []
    for step in sorted(steps, key=lambda step: (min(len(step.before), len(step.after)) < _SEVERAL, -step.share)):
        if any(step.unchanged < first.by and first.unchanged < step.by for first in taken):
            continue
        taken.append(step)
        between = of.between(step.after, step.before)
        if between is None:
            continue
        change, half = between
        for cause in joined.causes_of(of.past, change, half, of.residual(step.after, step.before)):
            found = _Found(of, step, cause, change)
            if of.position == ALL or _moved(found):
                yield found


def _moved(found: _Found) -> bool:
    """Whether a node is beyond the tolerance from its former level, including the shared movement. A node that stayed
    while all others moved did not change."""
    rows, head = found.line.rows[:, 0], found.cause.head
    after, before = (
        joined.means_with_rounds(found.past, rows[side])[:, head] for side in (found.step.after, found.step.before)
    )
    return bool(abs(np.nanmean(after) - np.nanmean(before)) > found.past.tolerance[head])


def _steps(of: _LevelSeries, component: int) -> Iterator[_Step]:
    """The changes of one component, each a level that differs from one since the last change. As for an outlier, the
    whole simultaneous interval is outside the tolerance. The latest such level counts, so that small steps add up."""
    at, stretches = _stretches(of, component)
    tolerance, last = float(of.past.tolerance[component]), 0
    for index in range(1, len(stretches)):
        after = stretches[index]
        for number in range(index - 1, last - 1, -1):
            before = stretches[number]
            if abs(after.level - before.level) <= tolerance:
                continue
            samples = at[before.start : before.stop], at[after.start : after.stop]
            between = of.between(samples[1], samples[0])
            if between is None or not intervals.outside(between[0].effect[component], between[1][component], tolerance):
                continue
            first = stretches[number + 1]
            unchanged, since, by = (int(at[place]) for place in (first.earliest - 1, after.start, after.latest))
            yield _Step(component, *samples, unchanged, since, by, float(abs(between[0].effect[component])) / tolerance)
            last = index
            break


def _together(found: Sequence[_Found]) -> list[tuple[_Found, int]]:
    """Changes of one metric at one time, joined over measurements and homes if they share a component or one contains
    the other. The coarsest represents them, preferably one that several measurements show. Each has its number of
    further components."""
    groups: list[tuple[_Found, list[_Found]]] = []
    for of in sorted(found, key=lambda of: (not of.confirmed, -round(of.covered, 3), -of.share)):
        for first, others in groups:
            same = agreements.metric(first.past.matrix.measured) == agreements.metric(of.past.matrix.measured)
            apart = first.past is of.past or not (first.place == of.place or of.covered < first.covered)
            if same and not apart and first.overlaps(of):
                others.append(of)
                break
        else:
            groups.append((of, []))
    return [(first, sum(of.components for of in (first, *others)) - 1) for first, others in groups]


# --- results ---


def _history(
    name: str, lines: Sequence[_LevelSeries], found: Sequence[_Found], judged: Sequence[PastCampaign]
) -> NodeHistory:
    changes = []
    for first, further in _together(found):
        ends = (first.line.jobs[first.step.unchanged], first.line.jobs[first.step.by])
        fields = _fields(name, *ends, judged)
        changes.append(replace(_change(first, further), node=name, fields=fields))
    return _with_courses(name, lines, found, changes, judged)


def _history_of_all(
    lines: Sequence[_LevelSeries],
    found: Sequence[_Found],
    judged: Sequence[PastCampaign],
) -> NodeHistory | None:
    """The changes that all nodes share. Movements without a change of the configuration are one change in each metric,
    with its range."""
    if not lines:
        return None
    changes: list[Change] = []
    moving: dict[str, list[tuple[_Found, Change]]] = {}
    for first, further in _together(found):
        change = _change(first, further)
        nodes = tuple(sorted(joined.node_of(first.past, i) for i in _movers(first)))
        change = replace(change, nodes=nodes, fields=_fields_of_all(first, judged))
        if change.fields:
            changes.append(change)
        else:
            moving.setdefault(change.metric, []).append((first, change))
    for of_metric in moving.values():
        of_metric.sort(key=lambda of: (-round(of[0].covered, 3), -of[0].share))
        first, change = of_metric[0]
        if len(of_metric) > 1 or not _is_step(first):
            further = sum(other.further for _, other in of_metric)
            change = replace(change, moves=_range(first), further=further)
        changes.append(change)
    return _with_courses("", lines, found, changes, judged)


def _movers(found: _Found) -> list[int]:
    """The nodes (positions) that moved with the others. A node did not if it is beyond the tolerance from them and
    moved less than half as much."""
    head, owner = found.cause.head, found.past.matrix.owner
    effect, tolerance = found.change.effect[head], found.past.tolerance[head]
    sides = [rows[rows >= 0] for rows in (found.line.rows[found.step.after], found.line.rows[found.step.before])]
    out = []
    for node in np.intersect1d(owner[sides[0]], owner[sides[1]]).tolist():
        after, before = (
            np.nanmean(joined.means_with_rounds(found.past, side[owner[side] == node])[:, head]) for side in sides
        )
        if (after - before) / effect > _WITH_ALL or abs(after - before - effect) <= tolerance:
            out.append(node)
    return out


def _is_step(found: _Found) -> bool:
    """Whether one step is most of the difference between the lowest and the highest level."""
    levels = [stretch.level for stretch in _stretches(found.line, found.cause.head)[1]]
    return bool(np.abs(np.diff(levels)).max(initial=0.0) >= _AT_ONCE * np.ptp(levels))


def _range(found: _Found) -> Range:
    """The range over which the component of a change moved, from its first level."""
    values, times = found.line.values[:, found.cause.head], found.line.times
    from_first = values - values[np.flatnonzero(np.isfinite(values))[0]]
    low, high = int(np.nanargmin(values)), int(np.nanargmax(values))
    relative = found.past.matrix.terms.relative
    return Range(relative(float(from_first[low])), times[low], relative(float(from_first[high])), times[high])


def _change(found: _Found, further: int) -> Change:
    """A cause of a change with its values."""
    past, step, head, matrix = found.past, found.step, found.cause.head, found.past.matrix
    model, scale, share = matrix.measured.model, matrix.terms, matrix.terms.share
    rows = found.line.rows[step.before]
    usual = float(np.nanmedian(joined.means_with_rounds(past, rows[rows >= 0])[:, head]))
    before = scale.relative(usual) if share else float(matrix.levels[head]) * (1 + scale.relative(usual))
    effect, half = float(found.change.effect[head]), float(_half_95(found.change)[head])
    low, size, high = (scale.relative(effect + side, before if share else 0.0) for side in (-half, 0.0, half))
    times = found.line.times
    return Change(
        "",
        matrix.name,
        matrix.home,
        agreements.metric(matrix.measured),
        _component(found),
        "share" if share else matrix.measured.unit,
        before,
        before + size if share else before * (1 + size),
        size,
        Interval(low, high),
        scale.allowed(float(past.tolerance[head]), effect),
        times[step.unchanged],
        times[step.since],
        times[step.by],
        found.confirmed,
        (len(step.before), len(step.after)),
        (effect > 0) == (model.better == "lower"),
        further,
        compared=bool(past.rounds.error.any()),
    )


def _half_95(change: Difference) -> Floats:
    return intervals.half_width(change.error, change.degrees, _TAIL_95)


def _component(found: _Found) -> Component:
    matrix, cause = found.past.matrix, found.cause
    where = naming.place(matrix, cause.where, naming.NO_NODE)
    return Component(cause.term, matrix.terms.terms[cause.head].component_type, where)


def _with_courses(
    name: str,
    lines: Sequence[_LevelSeries],
    found: Sequence[_Found],
    changes: Sequence[Change],
    judged: Sequence[PastCampaign],
) -> NodeHistory:
    """A node with its changes by date, and the courses of these components, or of the one that moved most."""
    by_date = tuple(sorted(changes, key=lambda change: change.since))
    courses = []
    for of in sorted(found, key=lambda of: -of.share):
        course = _course(of.line, of.cause.head, _component(of), judged)
        if any(is_of(change, course) for change in changes) and course not in courses:
            courses.append(course)
    if not courses:
        line = max(lines, key=lambda line: float(_reach(line).max()))
        most = int(np.argmax(_reach(line)))
        courses.append(_course(line, most, naming.component(line.past.matrix, most), judged))
    jobs = sorted({job for line in lines for job in line.jobs})
    measured = {job.started + f" {job.campaign} {job.job}": job for job in jobs}.values()
    return NodeHistory(
        name,
        tuple(job.started for job in measured),
        tuple(judged[job.campaign].name for job in measured),
        by_date,
        tuple(courses[:_COURSES]),
    )


def _course(line: _LevelSeries, number: int, component: Component, judged: Sequence[PastCampaign]) -> Course:
    """One component of a line, named by `component`."""
    past, matrix = line.past, line.past.matrix
    values, errors, size = line.values[:, number], line.errors[:, number], float(past.tolerance[number])
    at = np.flatnonzero(np.isfinite(values) & (errors > 0))
    z = change_points.threshold(ALARM, len(past.tolerance), max(len(at), YEAR))
    first = change_points.stretches(values[at], errors[at], z)[0].level if len(at) else 0.0
    half = intervals.half_width(errors[at], np.full(len(at), past.run.degrees[number]), _TAIL_95)
    return Course(
        matrix.name,
        matrix.home,
        agreements.metric(matrix.measured),
        component,
        matrix.terms.allowed(size, 1.0),
        tuple(line.times[sample] for sample in at.tolist()),
        tuple(judged[line.jobs[sample].campaign].name for sample in at.tolist()),
        tuple(((values[at] - first) / size).tolist()),
        tuple((half / size).tolist()),
    )


def is_of(change: Change, course: Course) -> bool:
    """Whether a change is of the component of a course."""
    return all(getattr(change, key) == getattr(course, key) for key in ("measurement", "home", "component"))


# --- changes of the configuration ---


def _fields_of_all(found: _Found, judged: Sequence[PastCampaign]) -> dict[str, tuple[str, str]]:
    """The fields of the fingerprint that changed on all nodes in the same way at that time."""
    owner, step = found.past.matrix.owner, found.step
    sides = [rows[rows >= 0] for rows in (found.line.rows[step.unchanged], found.line.rows[step.by])]
    fields = []
    for node in np.intersect1d(owner[sides[0]], owner[sides[1]]).tolist():
        before, after = (found.past.matrix.at[int(side[owner[side] == node][0])] for side in sides)
        fields.append(_fields(joined.node_of(found.past, node), before, after, judged))
    first = fields[0] if fields else {}
    return {key: values for key, values in first.items() if all(of.get(key) == values for of in fields)}


def _fields(name: str, first: JobAt, second: JobAt, judged: Sequence[PastCampaign]) -> dict[str, tuple[str, str]]:
    """The changes of a node's fingerprint from one job to another, without values unknown before or after.

    A verdict has the newest fingerprint of a campaign. Within one campaign, the surveys of the jobs are read.
    """
    before, after = (judged[job.campaign] for job in (first, second))
    if before is after:
        old, new = (_surveyed(before.folder / "nodes" / name / job.job) for job in (first, second))
    else:
        old, new = (campaign.nodes[name].fingerprint for campaign in (before, after))
    return {key: (str(old[key]), str(new[key])) for key in old if key in new and old[key] != new[key]}


def _surveyed(job: Path) -> Mapping[str, Any]:
    """The fingerprint of a job's survey; empty if it has none."""
    survey = job / "survey.tar.gz"
    return read_fingerprint(open_tree(survey)) if survey.exists() else {}
