"""From a node's residuals to causes: the term that explains most is taken and subtracted, and so on.

Each cause becomes one finding.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from nodeprint.fleet.quantity import Key
from nodeprint.judge.evidence import Evidence, Observed, residual_of
from nodeprint.judge.terms import FAMILIES, Composite, Terms
from nodeprint.layout import Ints

Floats = npt.NDArray[np.float64]

#: A node has at most so many findings in a matrix.
MOST_CAUSES = 6
#: A cause that covers several terms must show in each within this share of its size, or within so many scales.
_AGREE_SHARE, _AGREE_SCALES = 0.3, 3.0
#: A core's own pairs must show at least this share of its effect.
_OWN_SHARE = 0.5
#: A run shows a cause with at least this share of it.
RUN_SHARE = 0.25


class Cause(msgspec.Struct, frozen=True):
    """A term or several with one effect, relative and in ns.

    `constant_in` says which of the two is the same over the terms. `members` are numbers of terms, `weights` how their
    deviations make the effect; `beyond` the terms whose thresholds were passed. `largest` is the term in which the
    cause is largest, measured by the term's threshold, with its effect there, relative and in ns.
    """

    term: str
    where: Mapping[str, Key]
    members: Ints
    weights: Floats
    effect: float
    effect_ns: float
    constant_in: str
    beyond: Ints = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    largest: tuple[int, float, float] = (-1, 0.0, 0.0)

    def effect_of(self, deviation: Floats) -> Floats:
        """The relative effect in other deviations (..., term)."""
        return np.asarray(deviation[..., self.members] @ self.weights, dtype=np.float64)


def causes(one: Evidence, job: Observed, i: int) -> list[Cause]:
    """The causes that a job of a node shows, the largest first; the node has row `i` in its kind's evidence."""
    terms, level = one.matrix.terms, one.matrix.levels
    threshold, scale = one.stats.threshold[i], one.stats.scale[i]
    centre, left = job.centre, residual_of(job.matrix, job.row).astype(np.float64)
    # of two nodes the template is their mean, which has half of what a node differs by
    peer = residual_of(one.matrix, 1 - i) if len(one.matrix.nodes) == 2 else np.zeros_like(left)
    whole = terms.values(left) - centre
    accepted = _accepted(job) & (whole > 0) if terms.share else _accepted(job)
    count = np.array([len(term.covers) for term in terms.terms], dtype=np.float64)
    found: list[Cause] = []
    candidates = _candidates(terms)
    for _ in range(MOST_CAUSES):
        deviation = terms.values(left) - centre
        shown = accepted & (deviation * whole > 0)  # what is left on the other side comes from subtraction
        beyond = (np.abs(deviation) > threshold) & shown
        beside = _beside_class(left - peer, terms)
        fits = [
            (*fit, candidate)
            for candidate in candidates
            if beyond[candidate.members].any()
            and (fit := _fit(candidate, deviation, count, scale, level)) is not None
            and _bears_out(fit[0], candidate, beside)
        ]
        if not fits:
            break
        cause, _, candidate = max(fits, key=lambda fit: fit[1])
        if stands_out(cause, threshold, level):
            reached = candidate.members[beyond[candidate.members]]
            found.append(replace(cause, beyond=reached, largest=_largest(cause, threshold, level)))
        if cause.constant_in == "ns":
            left[candidate.covers] -= cause.effect_ns / job.matrix.template[candidate.covers]
        else:
            left[candidate.covers] -= cause.effect
    return found


def _accepted(job: Observed) -> npt.NDArray[np.bool_]:
    """The terms whose deviation all runs of a job show."""
    return shown_by_runs(job.values, job.centre, RUN_SHARE * job.deviation)


def _beside_class(left: Floats, terms: Terms) -> Floats:
    """What is left from the median of its class on its socket or between its sockets."""
    out = left.copy()
    for number in terms.indices("class"):
        covers = terms.terms[number].covers
        out[covers] -= np.median(left[covers])
    return out


def _bears_out(cause: Cause, candidate: Composite, beside: Floats) -> bool:
    """Whether a core's own pairs deviate, and not only those of the cores that it is compared with.

    Two slow cores of four make the other two appear fast.
    """
    own = float(np.mean(beside[candidate.covers])) * np.sign(cause.effect)
    return candidate.term != "core" or own >= _OWN_SHARE * abs(cause.effect)


def stands_out(cause: Cause, threshold: Floats, level: Floats) -> bool:
    """Whether a cause over several terms is by its own size beyond the threshold of one of them.

    Noise easily takes one of many terms beyond its threshold, while their common effect is within what is accepted.
    """
    sizes = _sizes(cause, level)
    return len(sizes) == 1 or bool(np.any(np.abs(sizes) >= threshold[cause.members]))


def _sizes(cause: Cause, level: Floats) -> Floats:
    """The relative effect of a cause in each of its terms."""
    each = cause.effect_ns / level[cause.members] if cause.constant_in == "ns" else cause.effect
    return np.broadcast_to(each, cause.members.shape)


def _largest(cause: Cause, threshold: Floats, level: Floats) -> tuple[int, float, float]:
    sizes = _sizes(cause, level)
    where = int(np.argmax(np.abs(sizes) / threshold[cause.members]))
    term = int(cause.members[where])
    return term, float(sizes[where]), float(sizes[where] * level[term])


def _candidates(terms: Terms) -> list[Composite]:
    """What may be a cause: each term by itself, and those that one cause shows in together."""
    single = [
        Composite(term.name, scoped(term.family, term.where), np.array([i]), term.covers)
        for i, term in enumerate(terms.terms)
    ]
    return [*single, *terms.composites]


def scoped(family: str, where: Mapping[str, Key]) -> Mapping[str, Key]:
    """A place with the pairs that a family of core terms counts: inside the CCX, near or across."""
    scope = FAMILIES[family].scope if family in FAMILIES else ""
    return {**where, scope: 1} if scope else where


def _fit(
    candidate: Composite, deviation: Floats, count: Floats, scale: Floats, level: Floats
) -> tuple[Cause, float] | None:
    """The better of a relative and a constant effect over the candidate's terms, and how much it explains."""
    members = candidate.members
    d, n, level = deviation[members], count[members], level[members]
    if len(members) == 1:
        effect = float(d[0])
        cause = Cause(candidate.term, candidate.where, members, np.ones(1), effect, effect * float(level[0]), "either")
        return cause, float(n[0] * effect**2)
    best: tuple[Cause, float] | None = None
    for constant_in, shape in (("percent", np.ones(len(members))), ("ns", 1 / level)):
        weights = n * shape / float(np.sum(n * shape**2))
        amplitude = float(weights @ d)
        gain = amplitude**2 * float(np.sum(n * shape**2))
        expected = amplitude * shape
        tolerance = np.maximum(_AGREE_SHARE * np.abs(expected), _AGREE_SCALES * scale[members])
        if np.any(np.abs(d - expected) > tolerance):
            continue
        relative = float(n @ expected / n.sum())
        nanoseconds = float(n @ (expected * level) / n.sum())
        if best is None or gain > best[1]:
            factor = relative / amplitude if amplitude else 0.0
            best = (
                Cause(candidate.term, candidate.where, members, weights * factor, relative, nanoseconds, constant_in),
                gain,
            )
    return best


def shown_by_runs(values: Floats, centre: Floats, least: Floats) -> npt.NDArray[np.bool_]:
    """Per term, whether every run (run, term) is as far from the centre as `least`, on its side."""
    with np.errstate(invalid="ignore"):
        each = (values - centre) * np.sign(least) >= np.abs(least)
    return np.asarray(np.all(each | np.isnan(values), axis=0), dtype=np.bool_)
