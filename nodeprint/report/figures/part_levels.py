"""The components of a machine along an axis of CPUs: CCX, CCD, quadrant and socket, or groups found in its latencies.

Each is a run of neighboring CPUs.
"""

from __future__ import annotations

import itertools
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint.data.places.layout import CCD, CCX, NAMES, QUADRANT, SOCKET, Ints
from nodeprint.machine.topology.level_names import level_name
from nodeprint.machine.topology.model import Level
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.settings.texts import say
from nodeprint.structure.found import LevelName, Structure

_COLUMNS = (CCX, CCD, QUADRANT, SOCKET)


class PartLevel(msgspec.Struct, frozen=True):
    """A level of the machine: the `outline` of its components (a name of style.yaml), its name, and its components.

    Each component, in order, has its first place, the place after its last, and its label, empty if it has none.
    """

    outline: str
    name: str
    groups: tuple[tuple[int, int, str], ...]


def outlined(numbers: npt.ArrayLike, name: str, outline: str) -> xr.Variable:
    """Return a level as a coordinate of places that is drawn with an outline; each run of a number is a component."""
    return xr.Variable("place", np.asarray(numbers), {"long_name": name, "outline": outline, "level": name, "alone": 1})


def part_coordinates(dim: str, slots: Ints) -> dict[str, xr.Variable]:
    """Return the components of `slots` (n, 6; in drawing order) as coordinates: ccx, ccd, quadrant, socket.

    An unknown level has no coordinate. A level with one component, or with one CPU per component, has no outline. Two
    levels with the same components have one outline with both names.
    """
    out: dict[str, xr.Variable] = {}
    finer = np.zeros(0, dtype=np.int64)
    name, finest = "", ""
    for column in _COLUMNS:
        level, numbers = NAMES[column], slots[:, column]
        if len(slots) < 2 or numbers.min() < 0:
            continue
        starts = np.flatnonzero((slots[1:, : column + 1] != slots[:-1, : column + 1]).any(axis=1)) + 1
        key = level.lower()
        out[key] = xr.Variable(dim, numbers, {"long_name": level})
        if not 0 < len(starts) < len(slots) - 1:
            continue
        name = f"{name} = {level}" if np.array_equal(starts, finer) else level
        if np.array_equal(starts, finer):
            del out[finest].attrs["outline"]
        out[key].attrs |= {"outline": level, "level": name}
        finer, finest = starts, key
    return out


def part_levels(data: xr.Dataset, dim: str) -> tuple[PartLevel, ...]:
    """Return the levels with an outline along a dimension, the finest first.

    A component is a run of one value of its coordinate, inside a component of the coarser levels unless it is
    `outlined`. A negative number is no label.
    """
    drawn = [of for of in data.coords.values() if of.dims == (dim,) and "outline" in of.attrs]
    values = [of.to_numpy() for of in drawn]
    out = []
    for number, of in enumerate(drawn):
        coarser = values[number : number + 1] if "alone" in of.attrs else values[number:]
        changes = np.any([each[1:] != each[:-1] for each in coarser], axis=0)
        starts = [0, *(np.flatnonzero(changes) + 1).tolist(), data.sizes[dim]]
        labels = [str(value) for value in values[number][starts[:-1]].tolist()]
        groups = tuple(
            (start, stop, "" if label.startswith("-") else label)
            for (start, stop), label in zip(pairwise(starts), labels, strict=True)
        )
        out.append(PartLevel(of.attrs["outline"], of.attrs["level"], groups))
    return tuple(out)


def of_slots(slots: Ints) -> tuple[PartLevel, ...]:
    """Return the levels of `slots` (n, 6; in drawing order), the finest first."""
    return part_levels(xr.Dataset(coords={"place": range(len(slots)), **part_coordinates("place", slots)}), "place")


# --- groups that are found where labels are missing ---


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


def structure_at(levels: NodeLevels, node: str) -> Structure | None:
    """Return the groups detected in a node's matrix at the first home; None if its CPUs have labels or are few."""
    return None if levels.quantity.layout.slots[:, SOCKET].max(initial=-1) > -1 else found_at(levels, node)


def found_at(levels: NodeLevels, node: str) -> Structure | None:
    """Return the groups detected in the latencies alone, whatever the labels, cached; None for too few CPUs."""
    if len(levels.slots) < _FEWEST:
        return None
    if node not in levels.found:
        from nodeprint import structure  # noqa: PLC0415 (imports for half a second; only for matrices without labels)

        levels.found[node] = structure.find(levels.square(levels.of(node)), list(levels.cpus(node, levels.slots)))
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
    # the kinds of cores in a hybrid processor, by their number of threads, if each kind is contiguous
    _, core, threads = np.unique(cores[order], return_inverse=True, return_counts=True)
    kinds = threads[core.ravel()]
    if 0 < np.count_nonzero(np.diff(kinds)) == len(set(threads.tolist())) - 1:
        out["found_kind"] = outlined(kinds, say("axes", "threads"), level_name("ccd"))
    return order, out
