"""How alike each node is, what keeps a margin beyond its bound, and from which size on an effect is found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.judge.evidence import Evidence
from nodeprint.judge.reduction import Matrix
from nodeprint.judge.terms import FAMILIES
from nodeprint.judge.thresholds import FamilySpread, Statistics

Floats = npt.NDArray[np.float64]

#: The quantity whose margins have their families' names; those of other quantities of pairs begin with the measurement.
HOP = "hop"
#: Nobody is advised to measure more runs than this.
MOST_RUNS = 20
#: An effect counts as found where nine of ten nodes show it, in standard deviations.
_NINE_OF_TEN = 1.2816
#: Scales of single cores differ by a factor of two in eight nodes: the limit is that of this share of the places.
_UNLIKE = 0.75


class Margin(msgspec.Struct, frozen=True):
    """How alike one node is in one family of terms: the smallest bound at which it would be the same.

    `reach` is the far end of the 90 % interval of the `term` that comes nearest to its bound, on the model's scale,
    infinite with one run; `bound` is that term's. `runs` in one job of all nodes should bring
    `reach` within the bound, 0 where it is there already, None where no number up to MOST_RUNS should; then `lacking`
    says what keeps it beyond: "peers" (there are too few), "calm" (runs differ too much) or "likeness" (the difference
    itself is too large).
    """

    matrix: Matrix
    term: int
    reach: float
    bound: float
    runs: int | None
    lacking: str

    @property
    def share(self) -> float:
        """The reach as a share of the bound: the node is the same in this family up to 1."""
        return self.reach / self.bound


def name_of(matrix: Matrix, family: str) -> str:
    """The name of a family's margin: `family` of hops, `measurement: family` of other pairs, else the measurement."""
    if matrix.quantity.quantity == HOP and matrix.quantity.of_pairs:
        return family
    return f"{matrix.name}: {family}" if matrix.quantity.of_pairs else matrix.name


def equivalence(one: Evidence, node: int) -> dict[str, Margin]:
    """How far the 90 % interval of every term reaches, in the later jobs where there are any; by `name_of`.

    Two one-sided tests at 5 % each: a node is the same where all intervals lie within their bounds.
    """
    stats, terms = one.stats, one.matrix.terms
    seen, i = one.newest(node), one.matrix.row[node]
    assert seen is not None
    runs = np.isfinite(seen.values).sum(axis=0)
    reach = np.abs(seen.deviation) + one.half(0.95, runs, i)
    share = reach / stats.bound
    out: dict[str, Margin] = {}
    for family, mine in terms.by_family:
        w = int(mine[np.lexsort((-share[mine], runs[mine] > 1))[0]])  # what one run has at most comes first
        needed: int | None = 0
        lacking = ""
        if share[w] > 1:
            needed, lacking = runs_within(
                float(stats.bound[w]), float(seen.deviation[w]), one.t(0.95), float(stats.scale[i, w]),
                float(stats.noise[i] * stats.run_scale[w]), max(int(runs[w]), 1), one.template_error(i),
            )  # fmt: skip
        far = float(reach[w]) if runs[w] > 1 else float("inf")
        margin = Margin(one.matrix, w, far, float(stats.bound[w]), needed, lacking)
        key = name_of(one.matrix, terms.families[family])
        if key not in out or margin.share > out[key].share:
            out[key] = margin
    return out


def runs_within(
    bound: float, deviation: float, quantile: float, scale: float, run_scale: float, runs: int, template: float
) -> tuple[int | None, str]:
    """How many runs of all nodes should bring a term within its bound, or what is lacking; see `Margin`.

    The deviation is the largest of many, measured in `runs` runs: what is expected of it in others is its share that
    nodes and not runs make. The bound is then passed in nine of ten cases. `template` is the variance of the template
    relative to that of a node.
    """
    of_nodes = max(scale**2 / (1 + template) - run_scale**2 / runs, 0.0)

    def needed(template: float, expected: float) -> int | None:
        left = (max(bound - expected, 0.0) / (quantile + _NINE_OF_TEN)) ** 2 - template * of_nodes
        count = int(np.ceil(run_scale**2 * (1 + template) / left)) if left > 0 else MOST_RUNS + 1
        return max(count, runs + 1) if count <= MOST_RUNS else None

    variance = of_nodes + run_scale**2 / runs
    expected = abs(deviation) * of_nodes / variance if of_nodes > 0 else 0.0
    found = needed(template, expected)
    if found is not None:
        return found, ""
    if needed(0.0, 0.0) is None:
        return None, "calm"
    # with many other peers the expected deviation is smaller by the share that is of these peers
    return None, "likeness" if needed(0.0, expected / (1 + template)) is None else "peers"


def _found_in_most(stats: Statistics) -> Floats:
    """The effect (node, term) that passes the threshold in nine of ten nodes, by the scale: a few nodes have no
    empirical quantile."""
    return stats.threshold + _NINE_OF_TEN * stats.scale


def _of_classes(one: Evidence) -> dict[str, float]:
    """The smallest effect of each kind of cause over classes, at its middle place.

    A cause adds the same to every class that it covers: the first to pass its threshold shows it.
    """
    needs, terms = _found_in_most(one.stats), one.matrix.terms
    classes = terms.indices("class").tolist()
    kinds = [
        ("fabric" if cause.term == "class" and "beyond_class" in cause.where else cause.term, cause.members)
        for cause in terms.composites
        if np.isin(cause.members, classes).all()
    ]
    in_both = [number for kind, members in kinds if kind == "class" for number in members]
    for number in classes:
        if "to_socket" in terms.terms[number].where:
            kinds.append(("socket_link", np.array([number])))
        elif number not in in_both:
            kinds.append(("class", np.array([number])))
    found: dict[str, list[float]] = {}
    for kind, members in kinds:
        found.setdefault(kind, []).append(float(np.median(needs[:, members].min(axis=1))))
    return {kind: float(np.median(sizes)) for kind, sizes in found.items()}


def detection_limits(evidence: Sequence[Evidence]) -> tuple[dict[str, float], dict[str, float]]:
    """By family of pairs, and by the name of other terms, the detection limit and the bound, relative.

    The detection limit is the smallest effect that nine of ten nodes would show: of pairs at the middle node and place,
    in the matrix where it is largest, a core in the family that finds it best, causes over classes each by themselves
    (a machine of one class or socket has those of the class); of others, whose places are less alike, at the upper
    quartile, in the sharpest measurement.
    """
    smallest: dict[str, float] = {}
    bounds: dict[str, float] = {}
    for one in evidence:
        of_pairs, terms = one.matrix.quantity.of_pairs, one.matrix.terms
        needs = _found_in_most(one.stats)
        middle = {
            terms.families[number]: float(np.quantile(needs[:, terms.family == number], 0.5 if of_pairs else _UNLIKE))
            for number in np.unique(terms.family)
        }
        if not of_pairs:
            name, relative = one.matrix.quantity.model.term, one.matrix.scale.relative
            smallest[name] = min(relative(max(middle.values())), smallest.get(name, float("inf")))
            bounds[name] = one.matrix.scale.floor
            continue
        for name, least in ({k: v for k, v in middle.items() if k != "class"} | _of_classes(one)).items():
            smallest[name] = max(smallest.get(name, 0.0), least)
        for name in middle:
            bound = float(np.median(one.stats.bound[terms.indices(name)]))
            bounds[name] = max(bounds.get(name, 0.0), bound)
    if cores := [name for name in smallest if name in FAMILIES and FAMILIES[name].scope]:
        smallest["core"], bounds["core"] = (min(of[name] for name in cores) for of in (smallest, bounds))
    if "class" in smallest:
        smallest = {"node": smallest["class"], "socket": smallest["class"], **smallest}
    return smallest, {**{name: bounds["class"] for name in smallest if name not in bounds}, **bounds}


def spreads(evidence: Sequence[Evidence]) -> tuple[dict[str, FamilySpread], dict[str, float]]:
    """Spread by family of pairs, and the families whose chips alone spread so that one node in twenty is beyond the
    bound."""
    widest: dict[str, FamilySpread] = {}
    beyond: dict[str, float] = {}
    for one in evidence:
        if len(one.matrix.nodes) < 5 or not one.matrix.quantity.of_pairs:
            continue
        runs = one.matrix.values.shape[1]
        for name, spread in one.stats.families.items():
            bound = float(np.median(one.stats.bound[one.matrix.terms.indices(name)]))
            if name not in widest or spread.total > widest[name].total:
                widest[name] = spread
            # both larger than half of the bound and clear of what runs alone would give
            if spread.chip > bound / 2 and spread.total**2 > 2 * spread.run**2 / runs:
                beyond[name] = max(beyond.get(name, 0.0), spread.chip)
    return widest, beyond


class _HasShare(Protocol):
    @property
    def share(self) -> float: ...


_Margin = TypeVar("_Margin", bound=_HasShare)


def worst(margins: Iterable[Mapping[str, _Margin]]) -> dict[str, _Margin]:
    """Margins of several matrices or nodes together: by name the one nearest to its bound."""
    out: dict[str, _Margin] = {}
    for mine in margins:
        for name, one in mine.items():
            if name not in out or one.share > out[name].share:
                out[name] = one
    return out
