"""From a measurement to one number per node, run and term: medians over passes, residuals on a scale, terms."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.campaign.followed import Followed
from nodeprint.data.places.layout import Ints
from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import pairs, sets
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.terms import Terms
from nodeprint.stats.disagreement import differs

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
#: float32 of pairs, of which there are many, else float64.
Reals = npt.NDArray[np.floating]

#: Jobs whose beginnings are this far apart count as independent.
APART = timedelta(minutes=10)
#: Rows that are in memory at once while passes are reduced.
_CHUNK = 128
#: A pair's residual is clipped at this: a burst in a single pair is no component.
CLIP = 1.0


class JobAt(msgspec.Struct, frozen=True, order=True):
    """An independent job of a node: its start (ISO 8601; empty if unknown), its campaign (number) and its name
    there."""

    started: str
    campaign: int
    job: str
    node: str


class Matrix(msgspec.Struct, frozen=True, dict=True):
    """A measurement at one `home` (-1 if lines have none) over the nodes of one group.

    `values` (row, run, term) has a row for each independent job; NaN if a run is missing. `nodes` are numbers in the
    fleet. `owner` (row) is the position there of a row's node; the rows of a node follow each other. `runs` are the
    names of each row's runs (job1/run1), `began` the start of the first (seconds since 1970; NaN if unknown).
    `template` (place) is the peers' level. `level` (row, place) has all runs, and `rows` selects those of each job: a
    copy for a thousand nodes takes 250 MB. With several campaigns (`judge.joined`), `at` is the job of each row, in
    order of time, and `nodes` are numbers in all names of nodes.
    """

    measured: Measured
    home: int
    terms: Terms
    nodes: Ints
    owner: Ints
    runs: tuple[tuple[str, ...], ...]
    began: Floats
    rows: tuple[Sequence[int], ...]
    level: Reals
    template: Reals
    values: Floats
    at: tuple[JobAt, ...] = ()

    @property
    def name(self) -> str:
        """Its measurement."""
        return self.measured.measurement

    def level_of(self, rows: Sequence[int]) -> Reals:
        """The mean over some jobs of a node of the means over their runs (place), in the measurement's unit."""
        of_jobs = np.stack([mean_of_runs(self.level[self.rows[row]][None])[0] for row in rows])
        return np.asarray(mean_of_runs(of_jobs[None])[0])

    @cached_property
    def place(self) -> dict[int, int]:
        """The position of each fleet node."""
        return {node: position for position, node in enumerate(self.nodes.tolist())}

    @cached_property
    def first_row(self) -> Ints:
        """The first row of each node (node), and the number of rows."""
        return np.searchsorted(self.owner, np.arange(len(self.nodes) + 1))

    def jobs(self, position: int) -> range:
        """The rows of a node."""
        return range(int(self.first_row[position]), int(self.first_row[position + 1]))

    def job(self, row: int) -> str:
        """The name of a row's job; of several that followed each other too soon to be independent, the last."""
        return self.runs[row][-1].partition("/")[0]

    @cached_property
    def levels(self) -> Floats:
        """The template's mean over each term's places, in the measurement's unit."""
        template = np.nan_to_num(self.template.astype(np.float64), nan=float(np.nanmedian(self.template)))
        return np.array([template[term.covers].mean() for term in self.terms.terms])


def reduce(measured: Measured, nodes: Sequence[PackedNode] = ()) -> Measured:
    """Add columns to a measurement; `nodes` are the fleet's.

    `level` (row, point) is the median over passes. `restless` (row) says whether the passes of a run may differ
    (`stats.disagreement.differs`). `replicate` (row) is the number of the independent job of the node.
    It works on a few rows at a time, so that memory stays limited.
    """
    if measured.of_pairs:
        level, restless = _of_pairs(measured)
    else:
        level = over_passes(measured.values).astype(np.float64)
        restless = differs(measured.values, axis=1)
        measured.release()
    made = measured.dataset.assign(of_passes=(("row", "point"), level), restless=("row", restless))
    replicate = ("row", _replicates(measured, nodes))
    return Measured(made.assign_coords(replicate=replicate), measured.layout, measured.model)


def _of_pairs(measured: Measured) -> tuple[Singles, npt.NDArray[np.bool_]]:
    """The level (row, point) of pairs, and which rows are restless."""
    rows, _, points = measured.values.shape
    level, restless = np.empty((rows, points), dtype=np.float32), np.zeros(rows, dtype=np.bool_)
    for start in range(0, rows, _CHUNK):
        block = _without_nonsense(np.asarray(measured.values[start : start + _CHUNK]))
        level[start : start + len(block)] = over_passes(block)
        restless[start : start + len(block)] = differs(block, axis=1)
        measured.release()
    return level, restless


def homes(measured: Measured) -> tuple[int, ...]:
    """The homes at which points are judged together: of pairs each, of other points -1 for all."""
    return measured.homes if measured.of_pairs else (-1,)


def points(measured: Measured, home: int) -> slice:
    """The points at one of the `homes`."""
    if not measured.of_pairs:
        return slice(0, measured.size)
    each, number = len(measured.pairs), measured.homes.index(home)
    return slice(number * each, (number + 1) * each)


def terms_of(measured: Measured, rules: Acceptance) -> Terms:
    """The terms that are examined at each home."""
    if measured.of_pairs:
        return pairs.of(measured.pair_layout)
    return sets.of(measured, rules.cell(measured.model.term).tolerance)


def _replicates(measured: Measured, nodes: Sequence[PackedNode]) -> Ints:
    """The number of each row's independent job within its node; -1 for former jobs."""
    out = np.full(len(measured.node), -1, dtype=np.int64)
    for node, jobs in measured.rows.items():
        begun = {job: [measured.started[row] for row in rows] for job, rows in jobs.items()}
        for number, together in enumerate(independent(begun, nodes[node].followed if nodes else {})):
            for job in together:
                out[jobs[job]] = number
    return out


def independent(begun: Mapping[int, Sequence[str]], followed: Mapping[int, Followed]) -> list[list[int]]:
    """Groups of jobs in order of their start; a job less than APART after the previous one joins its group.

    A disturbance may persist for some minutes. A job that soon after is not independent: its runs count as further runs
    of the same job. Clocks of nodes may be wrong: for jobs that the login node `followed`, its times of submission and
    end decide. For other jobs, the times at which their runs began (`begun`) decide.
    """
    components: list[list[int]] = []
    for job in sorted(begun, key=lambda job: (_beginning(job, begun, followed), job)):
        earlier = components[-1][-1] if components else job
        if components and not _apart(earlier, job, begun, followed):
            components[-1].append(job)
        else:
            components.append([job])
    return components


def _beginning(job: int, begun: Mapping[int, Sequence[str]], followed: Mapping[int, Followed]) -> float:
    """When a job was submitted, or began if nobody followed it, in seconds since 1970; 0 if unknown."""
    submitted = moment(followed[job].submitted) if job in followed else None
    known = [submitted] if submitted else [at for at in map(moment, begun[job]) if at is not None]
    return min((at.timestamp() for at in known), default=0.0)


def _apart(earlier: int, later: int, begun: Mapping[int, Sequence[str]], followed: Mapping[int, Followed]) -> bool:
    """Whether a job follows APART after an earlier one. True without any times; false if the login node did not see the
    end of the earlier one."""
    if earlier in followed and later in followed:
        ended, submitted = moment(followed[earlier].ended), moment(followed[later].submitted)
        return ended is not None and submitted is not None and submitted - ended >= APART
    before, after = ([at for at in map(moment, begun[job]) if at is not None] for job in (earlier, later))
    return not before or not after or min(after) - max(before) >= APART


def moment(text: str) -> datetime | None:
    """Parse a time of a record, in UTC if it names no zone. None if it is not a time."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _without_nonsense(block: Singles) -> Singles:
    """Replace invalid latencies with NaN: only records are checked when they are read, packed values are not."""
    low, high = np.fmin.reduce(block, axis=None, initial=np.inf), np.fmax.reduce(block, axis=None, initial=0)
    return block if low > 0 and high < np.inf else np.where((block > 0) & (block < np.inf), block, np.float32(np.nan))


def over_passes(block: Reals) -> Reals:
    """The median over axis 1 of (row, pass, ...), NaN if no pass measured a value."""
    if block.shape[1] == 1:
        return block[:, 0]
    if block.shape[1] == 3 and not np.isnan(np.sum(block)):  # the default, several times faster than a sort
        low, high = np.minimum(block[:, 0], block[:, 1]), np.maximum(block[:, 0], block[:, 1])
        return np.asarray(np.maximum(low, np.minimum(high, block[:, 2])))
    return _over("median", block, 1)


def _over(statistic: str, values: Reals, axis: int) -> Reals:
    """A statistic (mean or median) of the measured values over an axis, NaN without any. NumPy's functions that skip
    NaN are several times slower."""
    function = getattr(np, f"nan{statistic}" if np.isnan(np.sum(values)) else statistic)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        return np.asarray(function(values, axis=axis), dtype=values.dtype)


def matrix(measured: Measured, home: int, terms: Terms, nodes: Ints) -> Matrix | None:
    """A measurement at one home on `nodes` with all their independent jobs; None if no node has any.

    The template is the median over the nodes of the mean over their jobs, each the mean over its runs.
    """
    jobs = {node: jobs for node in nodes.tolist() if (jobs := _rows_of_jobs(measured, node))}
    if not jobs:
        return None
    rows = [of_job for of_node in jobs.values() for of_job in of_node]
    owner = np.repeat(np.arange(len(jobs)), [len(of_node) for of_node in jobs.values()])
    level = measured.level[:, points(measured, home)]
    chunks = [rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK)]
    means = np.concatenate([mean_of_runs(padded(level, chunk)) for chunk in chunks])
    of_nodes = means if len(rows) == len(jobs) else mean_of_groups(means, owner)
    # a median along contiguous memory is several times faster
    template = np.zeros(means.shape[1]) if terms.share and len(jobs) < 2 else _over_nodes(of_nodes)
    runs = max(map(len, rows))
    values = np.full((len(rows), runs, len(terms.terms)), np.nan)
    for start, chunk in zip(range(0, len(rows), _CHUNK), chunks, strict=True):
        of_chunk = term_values(padded(level, chunk), template, terms)
        values[start : start + len(chunk), : of_chunk.shape[1]] = of_chunk
    return Matrix(
        measured,
        home,
        terms,
        np.array(list(jobs), dtype=np.int64),
        owner,
        tuple(tuple(f"job{measured.job[row]}/run{measured.run[row]}" for row in of_job) for of_job in rows),
        np.array([_first_moment(measured, of_job) for of_job in rows]),
        tuple(rows),
        level,
        template,
        values,
    )


def _rows_of_jobs(measured: Measured, node: int) -> list[list[int]]:
    """The rows of each independent job of a node."""
    jobs = measured.independent_jobs.get(node, ())
    return [[row for job in together for row in measured.rows[node][job]] for together in jobs]


def _first_moment(measured: Measured, rows: Sequence[int]) -> float:
    """When the first of some runs began, in seconds since 1970; NaN if no run says so."""
    known = [at.timestamp() for at in (moment(measured.started[row]) for row in rows) if at is not None]
    return min(known, default=float("nan"))


def _over_nodes(values: Reals) -> Reals:
    return _over("median", np.ascontiguousarray(values.T), 1)


def mean_of_groups(values: Reals, group: Ints) -> Reals:
    """The mean of the measured `values` (row, ...) over the rows of each group (group, ...), NaN without any. The rows
    of a group follow each other, and every number has some."""
    groups = int(group[-1]) + 1
    first, each = np.searchsorted(group, np.arange(groups)), len(values) // groups
    if np.array_equal(first, each * np.arange(groups)) and len(values) == each * groups:  # several times faster
        return mean_of_runs(values.reshape(groups, each, *values.shape[1:]))
    present = np.isfinite(values)
    count = np.add.reduceat(present, first, axis=0, dtype=np.int64)
    total = np.add.reduceat(np.where(present, values, 0), first, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(count > 0, total / count, np.nan), dtype=values.dtype)


def padded(values: Reals, rows: Sequence[Sequence[int]]) -> Reals:
    """Rows of `values` as (node, run, ...), NaN for the missing runs of a node."""
    runs = max(map(len, rows))
    if all(len(mine) == runs for mine in rows):
        return values[np.concatenate(rows)].reshape(len(rows), runs, *values.shape[1:])
    out = np.full((len(rows), runs, *values.shape[1:]), np.nan, dtype=values.dtype)
    for i, mine in enumerate(rows):
        out[i, : len(mine)] = values[mine]
    return out


def mean_of_runs(level: Reals) -> Reals:
    """The mean over runs of an array (node, run, place), NaN if no run has the place."""
    return level[:, 0] if level.shape[1] == 1 else _over("mean", level, 1)


def term_values(level: Reals, template: Reals, terms: Terms) -> Floats:
    """Every term's value (..., term) on the model's scale; NaN for a run that has none of it."""
    flat = terms.residual(level.reshape(-1, level.shape[-1]), template)
    if len(terms.layout.pairs):
        np.clip(flat, -CLIP, CLIP, out=flat)
    bad = np.isnan(flat.sum(axis=1))
    gaps = flat[bad]
    flat[bad] = 0
    values = terms.values(flat)
    if len(gaps):
        values[bad] = _with_gaps(gaps, terms)
    return values.reshape(*level.shape[:-1], -1)


def _with_gaps(flat: Reals, terms: Terms) -> Floats:
    """Contrasts of rows with gaps, as means over the places present; NaN if half of a term's are missing."""
    positive, negative = np.maximum(terms.contrast, 0), np.maximum(-terms.contrast, 0)
    there = np.isfinite(flat).astype(terms.contrast.dtype)
    filled = np.nan_to_num(flat)
    with np.errstate(invalid="ignore", divide="ignore"):
        share, of_others = there @ positive.T, there @ negative.T
        has_other = negative.sum(axis=1) > 0
        result = (filled @ positive.T) / share
        result = result - np.where(has_other, (filled @ negative.T) / np.where(has_other, of_others, 1), 0)
        result[(share < 0.5) | (has_other & (of_others < 0.5))] = np.nan
    return terms.medians(np.asarray(result, dtype=np.float64), flat)
