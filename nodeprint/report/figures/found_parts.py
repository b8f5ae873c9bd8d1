"""Parts of a machine whose CPUs have no labels, as they are found in its matrix (`nodeprint.structure`)."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.layout import SOCKET, Ints
from nodeprint.judge.figures import MIXED
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import PartGroup, PartLevel
from nodeprint.structure.found import LevelName, Structure

#: By found level its outline (a name of style.yaml) and what it is called; threads of a core are not outlined.
_OUTLINES: dict[LevelName, tuple[str, str]] = {
    "ccx": ("CCX", "CCX"), "group": ("CCX", "group"), "quadrant": ("quadrant", "quadrant"), "half": ("CCD", "half"),
    "socket": ("socket", "socket"),
}  # fmt: skip
#: A matrix of fewer CPUs has no groups.
_FEWEST = 4


def structure_of(levels: NodeLevels, node: str, square: Floats, slots: Ints) -> Structure | None:
    """The groups that are found in a node's matrix (`square`, of `slots`), searched once; None where its CPUs have
    labels or are too few."""
    if len(slots) < _FEWEST or levels.quantity.layout.slots[:, SOCKET].max(initial=-1) > -1:
        return None
    if node not in levels.found:
        from nodeprint import structure  # noqa: PLC0415 (half a second to import, for matrices without labels alone)

        numbers = levels.nodes[levels.rows[node]].cpus or range(len(levels.quantity.layout.slots))
        levels.found[node] = structure.find(square, [numbers[slot] for slot in slots.tolist()])
    return levels.found[node]


def in_groups(structure: Structure, cpus: tuple[int, ...]) -> tuple[Ints, tuple[PartLevel, ...]]:
    """In which order CPUs (OS numbers) are drawn so that each group is in one piece, and the levels of groups in this
    order, the finest first."""
    number = {cpu: at for at, cpu in enumerate(cpus)}
    of_cpu = np.zeros((len(structure.levels), len(cpus)), dtype=np.int64)
    for row, level in enumerate(structure.levels):
        for group in level.groups:  # by its lowest CPU, as groups are numbered in no order
            of_cpu[row, [number[cpu] for cpu in group]] = min(number[cpu] for cpu in group)
    order = np.lexsort((np.arange(len(cpus)), *of_cpu))
    out = []
    for row, level in enumerate(structure.levels):
        if level.name not in _OUTLINES or len(level.groups) < 2:
            continue
        keys = of_cpu[row:, order]  # a group of a level that is not nested may be in several pieces
        changes = (np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1).tolist()
        ends = list(pairwise([0, *changes, len(cpus)]))
        groups = tuple(PartGroup(start, stop, str(at)) for at, (start, stop) in enumerate(ends))
        outline, name = _OUTLINES[level.name]
        out.append(PartLevel(outline, f"{name}?", groups))
    return order, tuple(out)


class LevelValues(msgspec.Struct, frozen=True):
    """The medians of the pairs that join at a level, and of those that join at the next, in the matrix's unit: one, or
    by coarsest group where these are of two kinds and the median of all would be that of no pair."""

    within: tuple[float, ...]
    to_the_next: tuple[float, ...]


def values_of_levels(structure: Structure, square: Floats, cpus: tuple[int, ...]) -> tuple[LevelValues, ...]:
    """The values of each level of a matrix whose rows are `cpus` (OS numbers)."""
    if not structure.levels:
        return ()
    number = {cpu: at for at, cpu in enumerate(cpus)}
    labels = np.full((len(structure.levels), len(cpus)), -1, dtype=np.int64)
    for row, level in enumerate(structure.levels):
        for at, group in enumerate(level.groups):
            labels[row, [number[cpu] for cpu in group]] = at
    same = labels[:, :, None] == labels[:, None, :]
    same = np.concatenate([np.eye(len(cpus), dtype=np.bool_)[None], same, np.ones_like(same[:1])])
    joined = same[1:] & ~same[:-1]  # by level the pairs that share its group and none of the finer one
    coarsest = labels[-1]
    return tuple(
        LevelValues(_by_group(square, joined[row], coarsest), _by_group(square, joined[row + 1], coarsest))
        for row in range(len(structure.levels))
    )


def _by_group(square: Floats, pairs: npt.NDArray[np.bool_], groups: Ints) -> tuple[float, ...]:
    """The median over pairs, or the median of each group where these differ by more than the judge's MIXED."""
    inside = (
        square[pairs & (groups == group)[:, None] & (groups == group)[None, :]] for group in range(groups.max() + 1)
    )
    medians = [float(np.nanmedian(values)) for values in inside if np.isfinite(values).any()]
    if len(medians) > 1 and max(medians) > MIXED * min(medians):
        return tuple(medians)
    every = square[pairs]
    return (float(np.nanmedian(every)),) if np.isfinite(every).any() else ()
