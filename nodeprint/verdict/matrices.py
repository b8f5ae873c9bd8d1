"""From packed values to one number per node, run and term: medians over passes, residuals, contrasts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from nodeprint.cells import Cells
from nodeprint.layout import Ints
from nodeprint.packed import Stack
from nodeprint.verdict.terms import Terms

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

#: Jobs whose beginnings are this far apart count as independent.
APART = timedelta(minutes=10)
#: Rows that are in memory at once while passes are reduced.
_CHUNK = 128
#: A pair's residual is clipped at this, or at ten times the spread of its cells: bursts in a few cells are no term.
_CLIP, _CLIP_SCALES = 0.25, 10.0


@dataclass(frozen=True)
class Reduced:
    """A stack with passes reduced to their median.

    `latency` (row, home, pair) is in the stack's unit. `wobble` (row, home, core) is the mean over a core's pairs of
    the range over passes, relative; NaN with one pass. `missing` (row, home) is the share of pairs that a run lacks, 1
    at a home that it was not measured with. `sittings` has each node's jobs, see `sittings`.
    """

    stack: Stack
    terms: Terms
    latency: Singles
    wobble: Singles
    missing: Floats
    cores: Ints
    sittings: Mapping[int, list[list[int]]]


@dataclass(frozen=True)
class Matrix:
    """One home of a stack over the nodes of one group: `latency` (node, run, pair), `values` (node, run, term).

    `nodes` are numbers in the fleet, `runs` the names of each one's runs (job1/run1); NaN where a run is missing.
    """

    stack: Stack
    home: int
    terms: Terms
    nodes: Ints
    runs: tuple[tuple[str, ...], ...]
    latency: Singles
    template: Singles
    values: Floats
    wobble: Floats


def reduce(stack: Stack, terms: Terms) -> Reduced:
    """Median and range over passes, a few rows at a time, so that memory stays bounded."""
    rows, passes, homes, pairs = stack.values.shape
    latency = np.empty((rows, homes, pairs), dtype=np.float32)
    codes = np.unique(stack.layout.slots[:, :5], axis=0, return_inverse=True)[1].reshape(-1)
    ends = codes[stack.layout.pairs]
    n_cores = int(codes.max(initial=0)) + 1
    member = np.zeros((pairs, n_cores), dtype=np.float32)
    member[np.arange(pairs), ends[:, 0]] = member[np.arange(pairs), ends[:, 1]] = 1
    member /= np.maximum(member.sum(axis=0), 1)
    wobble = np.full((rows, homes, n_cores), np.nan, dtype=np.float32)
    for start in range(0, rows, _CHUNK):
        block = _measured(np.asarray(stack.values[start : start + _CHUNK]))
        span = slice(start, start + len(block))
        middle, spread = over_passes(block)
        latency[span] = middle
        if passes > 1:
            np.divide(spread, middle, out=spread)
            np.nan_to_num(spread, copy=False)
            np.minimum(spread, 1, out=spread)
            wobble[span] = (spread.reshape(-1, pairs) @ member).reshape(len(block), homes, n_cores)
    missing = np.isnan(latency).mean(axis=2)
    return Reduced(stack, terms, latency, wobble, missing, codes.astype(np.int64), sittings(stack))


def sittings(stack: Stack | Cells) -> dict[int, list[list[int]]]:
    """By node, its independent jobs."""
    begun: dict[int, dict[int, list[str]]] = {}
    times = stack.started or ("",) * len(stack.node)
    for node, job, time in zip(stack.node.tolist(), stack.job.tolist(), times, strict=True):
        begun.setdefault(node, {}).setdefault(job, []).append(time)
    return {node: independent(jobs) for node, jobs in begun.items()}


def independent(begun: Mapping[int, Sequence[str]]) -> list[list[int]]:
    """Jobs, each with when its runs began, in order, those together that began less than APART after the one before.

    The cause of a disturbance may persist for some minutes, so that a job that soon after the first is not independent
    of it. A job whose time is not known counts as independent.
    """
    parts: list[list[int]] = []
    before: datetime | None = None
    for job in sorted(begun):
        known = [moment for moment in map(_moment, begun[job]) if moment is not None]
        if parts and before is not None and known and min(known) - before < APART:
            parts[-1].append(job)
        else:
            parts.append([job])
        before = max(known, default=None)
    return parts


def newest_rows(stack: Stack | Cells) -> dict[int, list[int]]:
    """By node the rows of its newest job."""
    newest: dict[int, int] = {}
    rows: dict[int, list[int]] = {}
    for row, (node, job) in enumerate(zip(stack.node.tolist(), stack.job.tolist(), strict=True)):
        if job > newest.get(node, -1):
            newest[node], rows[node] = job, [row]
        elif job == newest[node]:
            rows[node].append(row)
    return rows


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _measured(block: Singles) -> Singles:
    """Without what is no latency: only records are checked when they are read, packed values are not."""
    low, high = np.fmin.reduce(block, axis=None, initial=np.inf), np.fmax.reduce(block, axis=None, initial=0)
    return block if low > 0 and high < np.inf else np.where((block > 0) & (block < np.inf), block, np.float32(np.nan))


def over_passes(block: Singles) -> tuple[Singles, Singles]:
    """Median and range over axis 1 of (row, pass, ...), NaN where no pass measured a value."""
    passes = block.shape[1]
    if passes == 1:
        return block[:, 0], np.zeros_like(block[:, 0])
    gaps = bool(np.isnan(np.sum(block)))
    if passes == 3 and not gaps:  # the default, several times faster than a sort
        low, high = np.minimum(block[:, 0], block[:, 1]), np.maximum(block[:, 0], block[:, 1])
        middle = np.minimum(high, block[:, 2])
        np.maximum(low, middle, out=middle)
        np.maximum(high, block[:, 2], out=high)
        np.minimum(low, block[:, 2], out=low)
        np.subtract(high, low, out=high)
        return middle, high
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a pair that no pass measured stays NaN
        middle = np.asarray(np.nanmedian(block, axis=1) if gaps else np.median(block, axis=1), dtype=np.float32)
        return middle, np.asarray(np.nanmax(block, axis=1) - np.nanmin(block, axis=1), dtype=np.float32)


def of_jobs(
    reduced: Reduced,
    home: int,
    nodes: Ints,
    choose: Callable[[list[list[int]]], list[int]],
    template: Singles | None = None,
) -> Matrix | None:
    """The matrix of `nodes` with the runs of the jobs that `choose` takes from each node's sittings.

    Nodes without any are left out.
    """
    stack = reduced.stack
    by_node: dict[int, dict[int, list[int]]] = {}
    for row, (node, job) in enumerate(zip(stack.node.tolist(), stack.job.tolist(), strict=True)):
        by_node.setdefault(node, {}).setdefault(job, []).append(row)
    chosen, rows = [], []
    for node in nodes.tolist():
        jobs = choose(reduced.sittings[node]) if node in by_node else []
        if jobs:
            chosen.append(node)
            rows.append(np.array([row for job in jobs for row in by_node[node][job]], dtype=np.int64))
    return _matrix(reduced, home, chosen, rows, template) if chosen else None


def _matrix(reduced: Reduced, home: int, chosen: list[int], rows: list[Ints], template: Singles | None) -> Matrix:
    runs = max(len(mine) for mine in rows)
    flat = np.concatenate(rows)
    regular = all(len(mine) == runs for mine in rows)
    if regular:
        latency = reduced.latency[flat, home].reshape(len(chosen), runs, -1)
        wobble = reduced.wobble[flat, home].reshape(len(chosen), runs, -1).astype(np.float64)
    else:
        latency = np.full((len(chosen), runs, reduced.latency.shape[2]), np.nan, dtype=np.float32)
        wobble = np.full((len(chosen), runs, reduced.wobble.shape[2]), np.nan)
        for i, mine in enumerate(rows):
            latency[i, : len(mine)] = reduced.latency[mine, home]
            wobble[i, : len(mine)] = reduced.wobble[mine, home]
    if template is None:
        template = _median(mean_of_runs(latency))
    values = contrasts(latency, template, reduced.terms)
    job, run = reduced.stack.job, reduced.stack.run
    names = tuple(tuple(f"job{job[row]}/run{run[row]}" for row in mine.tolist()) for mine in rows)
    nodes = np.array(chosen, dtype=np.int64)
    return Matrix(reduced.stack, home, reduced.terms, nodes, names, latency, template, values, wobble)


def mean_of_runs(latency: Singles) -> Singles:
    """Of (node, run, pair) the mean over runs, NaN where none has the pair."""
    if latency.shape[1] == 1:
        return latency[:, 0]
    if np.isnan(np.sum(latency)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(np.nanmean(latency, axis=1), dtype=np.float32)
    return np.asarray(latency.mean(axis=1), dtype=np.float32)


def _median(mean: Singles) -> Singles:
    columns = np.ascontiguousarray(mean.T)  # a median along contiguous memory is several times faster
    if np.isnan(np.sum(columns)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(np.nanmedian(columns, axis=1), dtype=np.float32)
    return np.asarray(np.median(columns, axis=1, overwrite_input=True), dtype=np.float32)


def contrasts(latency: Singles, template: Singles, terms: Terms) -> Floats:
    """Every term's value (node, run, term), relative to the template; NaN for a run that has no pair."""
    nodes, runs, pairs = latency.shape
    flat = latency.reshape(-1, pairs) / template - np.float32(1)
    limit = _limits(flat, terms)
    np.clip(flat, -limit, limit, out=flat)
    bad = np.isnan(flat.sum(axis=1))
    values = np.empty((len(flat), len(terms.terms)))
    if bad.any():
        values[bad] = _with_gaps(flat[bad], terms)
        flat[bad] = 0
    product = flat @ terms.contrast.T
    values[~bad] = product[~bad]
    return values.reshape(nodes, runs, -1)


def _limits(flat: Singles, terms: Terms) -> Singles:
    """What a pair's residual counts up to, by class."""
    limit = np.full(flat.shape[1], _CLIP, dtype=np.float32)
    sample = flat[:: max(1, len(flat) // 64)]
    for number in np.unique(terms.layout.classes):
        mine = terms.layout.classes == number
        cells = sample[:, mine]
        cells = cells[np.isfinite(cells)]
        if len(cells):
            spread = 1.4826 * float(np.median(np.abs(cells - np.median(cells))))
            limit[mine] = max(_CLIP, _CLIP_SCALES * spread)
    return limit


def _with_gaps(flat: Singles, terms: Terms) -> Floats:
    """Contrasts of rows with missing pairs, as means over the pairs present; NaN where half of a term's are missing."""
    positive, negative = np.maximum(terms.contrast, 0), np.maximum(-terms.contrast, 0)
    there = np.isfinite(flat).astype(np.float32)
    filled = np.nan_to_num(flat)
    with np.errstate(invalid="ignore", divide="ignore"):
        share, other = there @ positive.T, there @ negative.T
        has_other = negative.sum(axis=1) > 0
        result = (filled @ positive.T) / share
        result = result - np.where(has_other, (filled @ negative.T) / np.where(has_other, other, 1), 0)
        result[(share < 0.5) | (has_other & (other < 0.5))] = np.nan
    return np.asarray(result, dtype=np.float64)
