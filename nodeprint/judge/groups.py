"""Split fleets: no majority of nodes agrees, so there is no center that a node could differ from."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.judge import naming
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.causes import causes
from nodeprint.judge.deviations import Deviations, Spreads, spreads
from nodeprint.judge.reduction import Matrix
from nodeprint.judge.verdict import Component
from nodeprint.stats import intervals, strata
from nodeprint.stats.peers import MAJORITY, agreeing

Floats = npt.NDArray[np.float64]

#: Fewer nodes form no two groups.
FEWEST = 4
#: The space between two groups is so many times the largest step inside either.
_STEPS = 2.0
#: Groups of nodes within their tolerance are reported if they are surely separated by this share of it.
GAP = 0.5


class Cut(msgspec.Struct, frozen=True):
    """The `component` that separates a group from the `first` group of a split fleet.

    `first` has the nodes of that group (numbers in the fleet). `effect` and `error` are the relative difference in
    `term` of `matrix` and its standard error.
    """

    first: Ints
    matrix: Matrix
    term: int
    component: Component
    effect: float
    error: float
    tolerance: float

    @property
    def apart(self) -> bool:
        """Whether the difference is beyond the tolerance."""
        return abs(self.effect) - strata.BEYOND * self.error > self.tolerance


class PeerGroup(msgspec.Struct, frozen=True):
    """Nodes (numbers in the fleet) that are compared with each other.

    `cut` is the difference from the first group of a split fleet; None for that group, and if the fleet is not split.
    `whole` has all nodes of the split fleet that the group is part of; None if it is not split.
    """

    nodes: Ints
    cut: Cut | None = None
    whole: Ints | None = None


def split(configurations: Sequence[Ints], matrices: Sequence[Matrix], rules: Acceptance) -> list[PeerGroup]:
    """The groups of nodes of one machine by configuration, within each the largest first.

    A configuration is one group unless its nodes form clusters in a component without a center. Several configurations
    are split if those that match the first one do not hold a majority of the nodes. `matrices` are those of all these
    nodes.
    """
    nodes = np.concatenate(configurations)
    if len(nodes) < FEWEST:
        return [PeerGroup(configuration) for configuration in configurations]
    usable = [of_matrix for matrix in matrices if (of_matrix := _spreads(matrix, nodes, rules)) is not None]
    rows = np.split(np.arange(len(nodes)), np.cumsum([len(configuration) for configuration in configurations])[:-1])
    parted = [_of_configuration(of_it, usable) for of_it in rows]
    first = parted[0][0]
    between = [_cut(nodes, first, alike[0], usable) for alike in parted[1:]]
    of_one_kind = [len(of_it) for of_it, cut in zip(rows[1:], between, strict=True) if cut is None or not cut.apart]
    is_split = len(rows[0]) + sum(of_one_kind) < MAJORITY * len(nodes)
    out = []
    for of_it, alike, cut in zip(rows, parted, [None, *between], strict=True):
        whole = nodes if is_split else nodes[of_it] if len(alike) > 1 else None
        out.append(PeerGroup(nodes[alike[0]], cut if cut is not None and cut.apart and is_split else None, whole))
        out += [PeerGroup(nodes[group], _cut(nodes, alike[0], group, usable), whole) for group in alike[1:]]
    return out


def _spreads(matrix: Matrix, nodes: Ints, rules: Acceptance) -> Spreads | None:
    """None if a node has no value, or values are shares of the time, which differ for reasons outside of a node."""
    if len(matrix.nodes) < len(nodes) or matrix.terms.share:
        return None
    of_it = spreads(matrix, rules)
    return of_it if np.isfinite(of_it.of_nodes).all() else None


def has_references(matrix: Matrix, rules: Acceptance) -> bool:
    """Whether a majority of the nodes of a matrix agrees in every component."""
    return bool(_agree(spreads(matrix, rules)).all())


def from_majority(matrix: Matrix, rules: Acceptance) -> Floats:
    """Differences of nodes from the median of all (node, component), 0 in a component in which no majority agrees."""
    of_it = spreads(matrix, rules)
    return np.where(_agree(of_it), of_it.of_nodes - np.nanmedian(of_it.of_nodes, axis=0), 0.0)


def _agree(of_it: Spreads, rows: Ints | slice = slice(None)) -> npt.NDArray[np.bool_]:
    """Whether a majority of some nodes is within the tolerance of one of them (component)."""
    return np.asarray(agreeing(of_it.of_nodes[rows], of_it.tolerance, fewest=FEWEST) >= MAJORITY)


def _of_configuration(rows: Ints, candidates: Sequence[Spreads]) -> list[Ints]:
    """The groups of `rows`, the largest first; all of them if a majority agrees."""
    groups = _parted(rows, candidates)
    if max(map(len, groups)) >= MAJORITY * len(rows):
        return [rows]
    return sorted(groups, key=lambda group: (-len(group), int(group[0])))


def _parted(rows: Ints, candidates: Sequence[Spreads]) -> list[Ints]:
    """The clusters of `rows`, each split further if possible. A split uses the component without a center in which the
    clusters differ most."""
    best: tuple[float, Sequence[Ints]] = 0.0, ()
    for candidate in candidates:
        open_components = ~_agree(candidate, rows)
        if open_components.any():
            of_rows = candidate.of_nodes[rows], candidate.tolerance, candidate.of_usual_node
            columns = [of[..., open_components] for of in of_rows]
            best = max(best, strata.farthest(*columns), key=lambda split: split[0])
    return [group for of_it in best[1] for group in _parted(rows[of_it], candidates)] or [rows]


def sharing(group: PeerGroup, series: Sequence[Deviations], rules: Acceptance) -> list[PeerGroup]:
    """Split a group in two if more than a third of its nodes share a difference from the others.

    The data cannot tell then which side is right. The split uses the component with the largest difference, in
    tolerances, in the `series` of the group. Returns the group alone if there is no such component.
    """
    nodes = group.nodes
    best: tuple[float, Ints, Deviations] | None = None
    for of_measurement in series if len(nodes) >= FEWEST and group.cut is None else ():
        for side in (1, -1):
            beyond = of_measurement.nodes_outside(side)
            count = np.isfinite(of_measurement.spreads.of_nodes).sum(axis=0)
            shared = np.flatnonzero((beyond.sum(axis=0) > (1 - MAJORITY) * count) & (beyond.sum(axis=0) > 1))
            for component in shared.tolist():
                rows = _alike(of_measurement, np.flatnonzero(beyond[:, component]), component)
                if len(rows) <= (1 - MAJORITY) * count[component]:
                    continue
                times = abs(float(np.median(of_measurement.pooled[rows].difference[:, component])))
                times /= float(of_measurement.tolerance[component])
                if best is None or times > best[0]:
                    best = times, of_measurement.matrix.nodes[rows], of_measurement
    of_matrix = None if best is None else _spreads(best[2].matrix, nodes, rules)
    if best is None or of_matrix is None:
        return [group]
    away = np.isin(nodes, best[1])
    large, small = sorted((np.flatnonzero(away), np.flatnonzero(~away)), key=lambda rows: (-len(rows), int(rows[0])))
    return [
        PeerGroup(nodes[large], None, nodes),
        PeerGroup(nodes[small], _cut(nodes, large, small, [of_matrix]), nodes),
    ]


def _alike(series: Deviations, rows: Ints, component: int) -> Ints:
    """The largest set of nodes in `rows` that are within tolerance of one of them. Empty if they are part of a
    continuous spread, without a gap to all others."""
    values, tolerance = series.spreads.of_nodes[:, component], float(series.tolerance[component])
    near = np.abs(values[rows][:, None] - values[rows][None]) <= tolerance
    alike = rows[near[int(near.sum(axis=1).argmax())]]
    others = np.setdiff1d(np.flatnonzero(np.isfinite(values)), alike)
    if not len(others):
        return rows[:0]
    apart = abs(float(values[alike].mean() - values[others].mean()))
    space = float(np.abs(values[alike][:, None] - values[others][None]).min())
    steps = [float(np.diff(np.sort(values[of_it])).max(initial=0.0)) for of_it in (alike, others)]
    is_empty = space >= strata.EMPTY * apart and space > _STEPS * max(steps)
    return alike if is_empty else rows[:0]


def gap(nodes: Ints, matrices: Sequence[Matrix], rules: Acceptance) -> PeerGroup | None:
    """The smaller of two groups of `nodes` with a clear gap inside the tolerance.

    All nodes are within the tolerance of one component, but the groups differ by more than GAP of it. The component
    with the largest gap counts. None without a gap.
    """
    best: tuple[float, PeerGroup | None] = 0.0, None
    for of_matrix in (_spreads(matrix, nodes, rules) for matrix in matrices if len(nodes) >= FEWEST):
        if of_matrix is None:
            continue
        extent = np.ptp(of_matrix.of_nodes, axis=0)
        within = np.flatnonzero((extent <= 2 * of_matrix.tolerance) & (extent > GAP * of_matrix.tolerance))
        columns = [of[..., within] for of in (of_matrix.of_nodes, GAP * of_matrix.tolerance, of_matrix.of_usual_node)]
        apart, groups = strata.farthest(*columns)
        if len(groups) == 2 and apart > best[0]:
            small, large = sorted(groups, key=len)
            best = apart, PeerGroup(nodes[small], _cut(nodes, large, small, [of_matrix], GAP, within))
    return best[1]


def _cut(
    nodes: Ints,
    first: Ints,
    group: Ints,
    candidates: Sequence[Spreads],
    share: float = 1.0,
    among: Ints | None = None,
) -> Cut | None:
    """The difference between the rows of `group` and `first`, in the most certain component with the largest
    difference.

    Differences are in tolerances. None if no component was measured on all nodes. Components, limited to `among`, are
    separated if they differ by more than `share` of the tolerance.
    """
    cuts = [
        cut for of_matrix in candidates if (cut := _of_matrix(nodes, first, group, of_matrix, share, among)) is not None
    ]
    return max(cuts, key=lambda cut: (cut.apart, abs(cut.effect) / cut.tolerance), default=None)


def _of_matrix(
    nodes: Ints, first: Ints, group: Ints, of_matrix: Spreads, share: float, among: Ints | None
) -> Cut | None:
    """The difference between two groups in a matrix, in the coarsest component that explains the largest difference."""
    matrix, tolerance = of_matrix.matrix, of_matrix.tolerance
    if not len(tolerance):
        return None
    near, far = of_matrix.of_nodes[first], of_matrix.of_nodes[group]
    effect = far.mean(axis=0) - near.mean(axis=0)
    variances = [np.maximum(side.var(axis=0), of_matrix.of_usual_node) / len(side) for side in (near, far)]
    error = np.sqrt(variances[0] + variances[1])
    apart = intervals.outside(effect, strata.BEYOND * error, share * tolerance)
    size = np.abs(effect) / tolerance
    if among is not None:
        chosen = np.isin(np.arange(len(tolerance)), among)
        apart, size = apart & chosen, np.where(chosen, size, 0.0)
    head = int(np.argmax(np.where(apart, 1e6, 1.0) * size))
    component = naming.component(matrix, head)
    if apart.any():
        levels = [
            np.nanmean([matrix.level_of(matrix.jobs(matrix.place[int(nodes[row])])) for row in rows], axis=0)
            for rows in (first, group)
        ]
        residual = np.nan_to_num(matrix.terms.residual(levels[1], levels[0])).astype(np.float64)
        possible = causes(
            matrix,
            effect,
            error=error,
            natural=np.sqrt(of_matrix.of_usual_node),
            half=strata.BEYOND * error,
            tolerance=share * tolerance,
            found=apart,
            confirmed=apart & False,
            residual=residual,
        )
        cause = max(possible, key=lambda cause: size[cause.head], default=None)
        if cause is not None:
            head, where = cause.head, naming.place(matrix, cause.where, naming.NO_NODE)
            component = Component(cause.term, matrix.terms.terms[head].component_type, where)
    return Cut(nodes[first], matrix, head, component, float(effect[head]), float(error[head]), float(tolerance[head]))
