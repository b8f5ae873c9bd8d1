"""Reduce the deviating components of a node to causes.

The first cause is the coarsest component that explains the largest deviation, then follow those that explain the rest.
A cause explains a deviation that is within its tolerance after the cause's effect is subtracted from its pairs or
cells.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from nodeprint.data.places.layout import Ints
from nodeprint.judge.reduction import Matrix
from nodeprint.judge.terms import Cause, Terms, scoped

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: The maximum number of causes of a node in a measurement at one home.
MOST_CAUSES = 6
#: A cause of several components shows in each within this share of its size, or within so many standard errors.
_AGREE_SHARE, _AGREE_ERRORS = 0.35, 3.0
#: A component may be the head instead of one whose share of its tolerance is this many times its own.
_RIVAL = 0.7
#: A core's own pairs show at least this share of its effect: two slow cores of four make the other two appear fast.
_OWN_SHARE = 0.5
#: This share of the sets of cells inside a wider one shows its effect. If not all of eight CCDs are slow, it is at most
#: seven eighths, and some of many cores differ by nature.
_MOST = 0.9


def causes(
    matrix: Matrix,
    difference: Floats,
    *,
    error: Floats,
    natural: Floats,
    half: Floats,
    tolerance: Floats,
    found: Bools,
    confirmed: Bools,
    residual: Floats,
) -> list[Cause]:
    """The causes of a node in one measurement at one home, first the confirmed ones, then by size.

    All arguments are by component, except the node's mean `residual` from the template (place, 0 if missing). `error`
    is the standard error of `difference`, and `natural` the standard deviation of a healthy node. `half` is half of the
    interval that decided. `found` selects the components with a deviation, and `confirmed` those of them that two jobs
    confirm.
    """
    terms, levels = matrix.terms, matrix.levels
    candidates = _candidates(terms)
    remaining = np.nan_to_num(difference)
    open_components = found.copy()
    # single cores of a slow node differ by nature
    agree = error if len(terms.layout.pairs) else np.hypot(error, natural)
    beside = _beside_class(residual, terms)
    out: list[Cause] = []
    while open_components.any() and len(out) < MOST_CAUSES:
        surest = open_components & confirmed
        surest = surest if surest.any() else open_components
        head = _head(np.where(surest, np.abs(remaining) / tolerance, 0.0), remaining, tolerance, terms)
        candidate, effect = _explaining(head, candidates, remaining, agree, tolerance, levels, terms)
        if not len(terms.layout.pairs):
            head = _widest(candidate.members[surest[candidate.members]], terms)
        if candidate.term == "core" and not _own(terms.terms[head].covers, float(remaining[head]), beside):
            open_components[head] = False
            continue
        remaining = remaining - _shown_in(terms, candidate, effect, matrix)
        remaining[candidate.members] = 0.0
        remains = open_components & (np.abs(remaining) - half > tolerance)
        finer = open_components & ~remains
        finer[candidate.members] = False
        remains[candidate.members] = False
        open_components = remains
        members = candidate.members[found[candidate.members] | (candidate.members == head)]
        out.append(replace(candidate, members=members, head=head, finer=np.flatnonzero(finer)))
    return out


def _head(share: Floats, remaining: Floats, tolerance: Floats, terms: Terms) -> int:
    """The component with the largest share of its tolerance.

    For overlapping components of pairs, it is one that explains the largest and is not explained by it. For example, a
    core accounts for half of its CCX, but the CCX does not explain a core that differs from the others in it.
    """
    largest = float(share.max())
    head = int(np.argmax(share))
    if not len(terms.layout.pairs):
        return head
    for component in np.flatnonzero(share >= _RIVAL * largest).tolist():
        explains = abs(remaining[head] - _weight(terms, head, component) * remaining[component]) <= tolerance[head]
        explained = (
            abs(remaining[component] - _weight(terms, component, head) * remaining[head]) <= tolerance[component]
        )
        if component != head and explains and not explained:
            head = component
    return head


def _widest(components: Ints, terms: Terms) -> int:
    """The first component with the most cells."""
    return int(components[np.argmax([len(terms.terms[component].covers) for component in components.tolist()])])


def _weight(terms: Terms, component: int, of: int) -> float:
    """The share of an effect on the pairs of one component that appears in another."""
    return float(terms.contrast[component, terms.terms[of].covers].sum())


def _candidates(terms: Terms) -> list[Cause]:
    """The possible causes, the coarsest first: several components together, then each component by itself."""
    single = [
        Cause(term.name, scoped(term.component_type, term.where), np.array([number]), term.covers)
        for number, term in enumerate(terms.terms)
    ]
    return [*terms.composites, *single]


def _explaining(
    head: int,
    candidates: list[Cause],
    remaining: Floats,
    error: Floats,
    tolerance: Floats,
    levels: Floats,
    terms: Terms,
) -> tuple[Cause, Floats]:
    """The coarsest candidate that contains the head and has one common effect, with the effect in each component. For
    pairs all components must agree. For sets of cells most must agree, as single cores of a slow node differ by
    nature."""
    most = 1.0 if len(terms.layout.pairs) else _MOST
    for candidate in candidates:
        members = candidate.members
        if head not in members:
            continue
        if len(members) == 1:
            break
        at = int(np.flatnonzero(members == head)[0])
        effect = _common(remaining[members], error[members], levels[members], terms.component_type[members], at, most)
        if effect is not None and (np.abs(effect) > tolerance[members]).any():
            return candidate, effect
    return candidate, remaining[[head]]


def _common(
    difference: Floats, error: Floats, levels: Floats, component_type: Ints, head: int, most: float
) -> Floats | None:
    """The common effect in each of several components, constant in percent or in ns; None if neither agrees.

    It agrees with the head and with a share `most` of each component type, so that many cores cannot outvote a memory
    node. The fit is least squares, weighted by the error.
    """
    best: tuple[float, Floats] | None = None
    for shape in (np.ones(len(difference)), levels[head] / levels):
        weights = 1 / np.maximum(error, 1e-9) ** 2
        size = float(np.sum(weights * shape * difference) / np.sum(weights * shape**2))
        expected = size * shape
        apart = np.abs(difference - expected)
        agrees = apart <= np.maximum(_AGREE_SHARE * np.abs(expected), _AGREE_ERRORS * error)
        if not agrees[head] or any(agrees[component_type == of].mean() < most for of in np.unique(component_type)):
            continue
        misfit = float(np.sum(weights * apart**2))
        if best is None or misfit < best[0]:
            best = misfit, expected
    return best[1] if best else None


def _shown_in(terms: Terms, candidate: Cause, effect: Floats, matrix: Matrix) -> Floats:
    """The effect of a candidate in every component, from the measurement points that it covers."""
    if terms.share:
        # a few measurement points do not affect a median
        overlap = np.array([np.isin(term.covers, candidate.covers).mean() for term in terms.terms])
        return np.asarray(np.where(overlap > 0.5, float(effect[0]), 0.0))
    by_place = np.zeros(terms.contrast.shape[1])
    for member, size in zip(candidate.members, effect, strict=True):
        by_place[terms.terms[member].covers] = size
    return np.asarray(terms.contrast @ by_place, dtype=np.float64)


def _beside_class(residual: Floats, terms: Terms) -> Floats:
    """Residuals relative to the median of their class on their socket or between their sockets (place)."""
    out = residual.copy()
    for number in terms.indices("class"):
        covers = terms.terms[number].covers
        out[covers] -= np.median(residual[covers])
    return out


def _own(pairs: Ints, effect: float, beside: Floats) -> bool:
    """Whether the pairs of a core itself deviate by enough of its effect, and not only those of the cores that it is
    compared with."""
    own = float(np.mean(beside[pairs])) * np.sign(effect)
    return bool(own >= _OWN_SHARE * abs(effect))
