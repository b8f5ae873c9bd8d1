"""What a node shows: causes in its first job and in later ones, each confirmed or refuted by the jobs after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from nodeprint.judge import profiles
from nodeprint.judge.causes import RUN_SHARE, Cause, causes, shown_by_runs
from nodeprint.judge.evidence import FEW_NODES, Evidence, Observed
from nodeprint.judge.reduction import Matrix, filled

Floats = npt.NDArray[np.float64]

#: A second job confirms a term that shows at least this share of its effect with the same sign.
CONFIRM_SHARE = 0.5
#: And this share of its threshold: the first job was selected for its deviation, the second was not.
CONFIRM_REACH = 0.7
#: A run is named as showing an effect from this share of it on.
RUN_HALF = 0.5
#: The states of a cause, the one that counts most first: confirmed by later jobs, shown by too many nodes, without a
#: later job, of few nodes that do not agree which is right, refuted by later jobs.
STATES = ("confirmed", "crowd", "fresh", "differs", "refuted")


class ShownCause(msgspec.Struct, frozen=True):
    """A cause seen in a node (its number in the fleet): in which matrix's evidence, in which of STATES, its relative
    effect with a 95 % interval, and which runs show it."""

    node: int
    cause: Cause
    one: Evidence
    state: str
    effect: float
    interval: tuple[float, float]
    runs: tuple[str, ...]

    @property
    def matrix(self) -> Matrix:
        """The matrix that shows it."""
        return self.one.matrix


class Unstable(msgspec.Struct, frozen=True):
    """A term whose runs differ, or (`factor`) a core that varies so many times as much between passes as its peers'."""

    matrix: Matrix
    term: int = -1
    core: int = -1
    factor: float = 0.0


def shown(one: Evidence) -> dict[int, list[ShownCause]]:
    """By node the causes that it shows."""
    few = len(one.matrix.nodes) <= FEW_NODES
    found = {node: _of_node(one, i, one.jobs(node)) for i, node in enumerate(one.matrix.nodes.tolist())}
    blamed = [s for mine in found.values() for s in mine if s.state in ("confirmed", "fresh")]
    return {node: [s for s in mine if not (few and _mirrored(s, blamed))] for node, mine in found.items()}


def _of_node(one: Evidence, i: int, jobs: Sequence[Observed]) -> list[ShownCause]:
    found: list[ShownCause] = []
    node = int(one.matrix.nodes[i])
    for k, job in enumerate(jobs):
        if not (np.abs(job.deviation) > one.stats.threshold[i]).any():
            continue
        for cause in causes(one, job, i):
            like = [s for s in found if set(s.cause.members.tolist()) & set(cause.members.tolist())]
            if any(s.state != "refuted" for s in like):
                continue
            interval = _interval(one, cause, cause.effect, len(job.runs), i)
            new = ShownCause(node, cause, one, "fresh", cause.effect, interval, _showing(job, cause))
            after = [later for later in jobs[k + 1 :] if _has(later, cause)]
            if after:
                new = _confirm(new, i, job, one.later[k].rest.of(node), after[-1])
            if new.state == "confirmed":
                found = [s for s in found if s not in like]
            if new.state != "refuted" or not like:
                found.append(new)
    return [replace(s, state=_state(one, s, i)) for s in found]


def _has(job: Observed, cause: Cause) -> bool:
    """Whether a job has measured what was beyond its threshold."""
    return bool(np.isfinite(job.values[:, cause.beyond]).any(axis=0).all())


def _state(one: Evidence, seen: ShownCause, i: int) -> str:
    if seen.state == "refuted":
        return seen.state
    if len(one.matrix.nodes) <= FEW_NODES and not _others_agree(one, seen.cause, i):
        return "differs"
    return "crowd" if one.is_of_many(seen.cause.beyond, float(np.sign(seen.cause.effect))) else seen.state


def _mirrored(seen: ShownCause, blamed: Sequence[ShownCause]) -> bool:
    """Whether a difference is the other side of another node's finding, which is part of this node's template."""
    return seen.state == "differs" and any(
        seen.effect * other.effect < 0 and np.isin(seen.cause.members, other.cause.members).any() for other in blamed
    )


def instability(one: Evidence, node: int) -> tuple[set[int], list[Unstable]]:
    """Runs that differ in the first and in the newest job (numbered 1 and 2), and cores that spread over passes.

    What rests on one pair or CPU is left out, as a run may well find it busy.
    """
    seen, found, jobs = set(), [], one.jobs(node)
    i, newest = jobs[0].row, jobs[-1]
    for number, job in enumerate((jobs[0], newest)[: len(jobs)], start=1):
        differ = job.differ & ~one.matrix.terms.passing
        if differ.any():
            seen.add(number)
            if job is newest:
                worst = next(int(k) for k in np.argsort(-np.abs(one.stats.deviation[i])) if differ[k])
                found.append(Unstable(one.matrix, worst))
    if one.wobble is None:
        return seen, found
    high = one.wobble.deviation[i] > one.wobble.threshold[i]
    if not high.any():
        return seen, found
    in_all = shown_by_runs(np.log(one.matrix.wobble[i]), one.wobble.centre[i], RUN_SHARE * one.wobble.deviation[i])
    cores = np.flatnonzero(high & in_all)
    if not len(cores):
        return seen, found
    size = one.wobble.deviation[i][cores]
    again = np.log(np.nanmean(newest.matrix.wobble[newest.row], axis=0))[cores] - one.wobble.centre[i][cores]
    stays = len(jobs) > 1 and bool((again >= CONFIRM_SHARE * size).any())
    if stays or len(jobs) == 1:
        worst = int(np.argmax(size))
        found.append(Unstable(one.matrix, core=int(cores[worst]), factor=float(np.exp(size[worst]))))
    return seen | {1} | ({2} if stays else set()), found


def _interval(one: Evidence, cause: Cause, effect: float, runs: int, i: int) -> tuple[float, float]:
    """95 % bounds of an effect; of two nodes the other is all that a node differs from, and its runs are its error."""
    half = one.half(0.975, runs, i)
    if len(one.matrix.nodes) == 2:
        half = one.t(0.975) * one.stats.run_scale * np.sqrt(2 / max(runs, 1))
    size = float(np.abs(cause.weights) @ half[cause.members])
    return effect - size, effect + size


def _showing(job: Observed, cause: Cause) -> tuple[str, ...]:
    """The runs that show a cause."""
    each = cause.effect_of(job.values - job.centre)[: len(job.runs)]
    size = min(abs(cause.effect), float(np.nanmax(np.abs(each)))) if np.isfinite(each).any() else 0.0
    return tuple(
        name
        for name, value in zip(job.runs, each.tolist(), strict=True)
        if np.isfinite(value) and value * np.sign(cause.effect) >= RUN_HALF * size
    )


def _confirm(seen: ShownCause, i: int, job: Observed, rest: Observed, newest: Observed) -> ShownCause:
    """What all jobs after `job` say of a cause that was seen in it; size and interval are theirs where they confirm it.

    Half the effect with the same sign confirms it, unless the newest job has nothing of it.
    """
    one, cause = seen.one, seen.cause
    # pairs are clipped in the deviations of both jobs and not in the cause's own size: only the ratio can be compared
    first, later, last = (float(cause.effect_of(of.deviation)) for of in (job, rest, newest))
    ratio = later / first if first * cause.effect > 0 else 0.0
    confirmed = ratio >= CONFIRM_SHARE and last / first >= RUN_SHARE
    if confirmed:
        # what was beyond its threshold must be there again, not only what a wider cause has beside it
        before = job.deviation[cause.beyond]
        size = float(np.linalg.norm(before))
        again = float(before @ rest.deviation[cause.beyond]) / size
        reach = float(np.abs(before) @ one.stats.threshold[i, cause.beyond]) / size
        confirmed = again >= max(CONFIRM_SHARE * size, CONFIRM_REACH * reach)
    if not confirmed:
        return replace(seen, state="refuted")
    effect = cause.effect * ratio
    interval, runs = _interval(one, cause, effect, len(rest.runs), i), seen.runs + _showing(rest, cause)
    return replace(seen, state="confirmed", effect=effect, interval=interval, runs=runs)


def _others_agree(one: Evidence, cause: Cause, i: int) -> bool:
    """Whether all other nodes agree among themselves in a cause's terms, so that one of three or four can be named."""
    if len(one.matrix.nodes) < 3:
        return False
    others = np.arange(len(one.matrix.nodes)) != i
    order = profiles.order_of(one.matrix)
    mean = np.nanmean(profiles.of(filled(one.matrix.values), order), axis=1)[others]
    apart = mean.max(axis=0) - mean.min(axis=0)
    at = cause.members if order is None else np.argsort(order[i])[cause.members]
    return bool(np.all(apart[at] <= one.stats.threshold[i][cause.members]))


def by_cpu(one: Evidence, node: int) -> Mapping[int, float]:
    """The newest deviation of each single CPU (slot) of a node, where terms are of single CPUs."""
    seen = one.newest(node)
    return {} if seen is None else {
        int(term.where["cpu"]): float(value)
        for term, value in zip(one.matrix.terms.terms, seen.deviation, strict=True)
        if tuple(term.where) == ("cpu",) and np.isfinite(value)
    }  # fmt: skip
