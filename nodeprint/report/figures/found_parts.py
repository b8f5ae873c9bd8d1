"""Components of a machine without CPU labels, as detected in its matrix (`nodeprint.structure`)."""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import xarray as xr

from nodeprint.data.places.layout import SOCKET, Ints
from nodeprint.machine.topology.level_names import level_name
from nodeprint.machine.topology.model import Level
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import outlined
from nodeprint.settings.texts import say
from nodeprint.structure.found import LevelName, Structure

#: The outline of each detected level; threads of a core have none.
_OUTLINED_AS: dict[LevelName, Level] = {
    "ccx": "ccx",
    "group": "ccx",
    "quadrant": "quadrant",
    "half": "ccd",
    "socket": "socket",
}
#: A matrix of fewer CPUs has no groups.
_FEWEST = 4


def structure_of(levels: NodeLevels, node: str, square: Floats, slots: Ints) -> Structure | None:
    """Return the groups detected in a node's matrix (`square`, of `slots`) if its CPUs have no labels.

    None if the CPUs have labels or are too few.
    """
    return None if levels.quantity.layout.slots[:, SOCKET].max(initial=-1) > -1 else found(levels, node, square, slots)


def found(levels: NodeLevels, node: str, square: Floats, slots: Ints) -> Structure | None:
    """Return the groups detected in a node's matrix whatever its labels, cached; None for too few CPUs."""
    if len(slots) < _FEWEST:
        return None
    if node not in levels.found:
        from nodeprint import structure  # noqa: PLC0415 (imports for half a second; only for matrices without labels)

        levels.found[node] = structure.find(square, list(levels.cpus(node, slots)))
    return levels.found[node]


def in_groups(structure: Structure, cpus: tuple[int, ...]) -> tuple[Ints, dict[str, xr.Variable]]:
    """Return a drawing order of CPUs that keeps each group contiguous, and the groups as coordinates.

    CPUs are OS numbers. Coordinates follow this order, the finest level first. A group of a single core has a negative
    number.
    """
    number = {cpu: at for at, cpu in enumerate(cpus)}
    of_cpu = np.zeros((len(structure.levels), len(cpus)), dtype=np.int64)
    for row, level in enumerate(structure.levels):
        for group in level.groups:  # by its lowest CPU, as group numbers have no order
            of_cpu[row, [number[cpu] for cpu in group]] = min(number[cpu] for cpu in group)
    smt = structure.level("smt")
    cores = np.arange(len(cpus))
    for group in smt.groups if smt else ():
        cores[[number[cpu] for cpu in group]] = min(number[cpu] for cpu in group)
    order = np.lexsort((np.arange(len(cpus)), *of_cpu))
    out: dict[str, xr.Variable] = {}
    for row, level in enumerate(structure.levels):
        if level.name not in _OUTLINED_AS or len(level.groups) < 2:
            continue
        keys = of_cpu[row:, order]  # a group of a level that is not nested may be in several pieces
        changes = (np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1).tolist()
        counted, single = itertools.count(), itertools.count(-1, -1)
        numbers = np.empty(len(cpus), dtype=np.int64)
        for start, stop in pairwise([0, *changes, len(cpus)]):
            numbers[start:stop] = next(counted if len(set(cores[order[start:stop]])) > 1 else single)
        name = f"{level_name(level.name)}?"
        out[f"found_{level.name}"] = outlined(numbers, name, level_name(_OUTLINED_AS[level.name]))
    return order, out | _kinds(cores[order])


def _kinds(cores: Ints) -> dict[str, xr.Variable]:
    """Return the kinds of cores in a hybrid processor by their number of threads.

    Empty if all cores have equally many, or if the kinds are not contiguous.
    """
    _, core, threads = np.unique(cores, return_inverse=True, return_counts=True)
    of_cpu = threads[core.ravel()]
    changes = np.flatnonzero(of_cpu[1:] != of_cpu[:-1])
    if len(changes) != len(set(threads.tolist())) - 1 or not len(changes):
        return {}
    return {"found_kind": outlined(of_cpu, say("axes", "threads"), level_name("ccd"))}
