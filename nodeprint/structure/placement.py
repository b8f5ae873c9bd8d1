"""Find the part of a machine, of each size, with the lowest core-to-core latency: room for communicating threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.structure.matrix_checks import ALIKE

Floats = npt.NDArray[np.floating]
#: The share of a component's pairs that must be measured before it is recommended for pinning. The median of a few
#: pairs that a host did not disturb would be lower than that of its peers.
_MEASURED = 0.8
_FEW_CORES = 3


class Room(msgspec.Struct, frozen=True):
    """A machine component that fits a number of threads, one per core: its name, CPUs, and median latency (ns)."""

    name: str
    cpus: tuple[int, ...]
    median_ns: float


class Ends(msgspec.Struct, frozen=True):
    """The core pairs with the lowest and the highest core-to-core latency, ns."""

    low: tuple[int, int]
    high: tuple[int, int]
    low_ns: float
    high_ns: float


def rooms(matrix: Floats, cpus: Sequence[int], groups: Mapping[str, Sequence[Sequence[int]]]) -> tuple[Room, ...]:
    """Return the component with the lowest median core-to-core latency of each level, and the whole machine last.

    `groups` maps each level to the CPUs of its components, one per core, from fine to coarse. Levels are omitted if
    their components have no more cores than those of a finer level. Levels that are no faster inside than a larger one,
    such as clusters of small cores, are omitted, too.
    """
    place = {cpu: number for number, cpu in enumerate(cpus)}
    out: list[Room] = []
    for name, components in [*groups.items(), ("machine", [cpus])]:
        measured = [
            _room(matrix, name, tuple(cpu for cpu in component if cpu in place), place) for component in components
        ]
        known = _without_artefacts([room for room in measured if np.isfinite(room.median_ns)])
        best = min(known, key=lambda room: (-len(room.cpus), room.median_ns), default=None)
        if best is not None and len(best.cpus) > (len(out[-1].cpus) if out else 1):
            out.append(best)
    return tuple(
        room for number, room in enumerate(out) if all(room.median_ns < r.median_ns for r in out[number + 1 :])
    )


def _without_artefacts(rooms: Sequence[Room]) -> Sequence[Room]:
    """Drop components of at most three cores that are far faster than their peers.

    A median of one to three pairs may be an artifact of a disturbance.
    """
    usual = float(np.median([room.median_ns for room in rooms])) if rooms else 0.0
    return [room for room in rooms if len(room.cpus) > _FEW_CORES or room.median_ns * ALIKE["ccx"] > usual]


def _room(matrix: Floats, name: str, cpus: tuple[int, ...], place: Mapping[int, int]) -> Room:
    rows = [place[cpu] for cpu in cpus]
    inside = matrix[np.ix_(rows, rows)][np.triu_indices(len(rows), 1)]
    finite = inside[np.isfinite(inside)]
    known = finite.size and finite.size >= _MEASURED * inside.size
    return Room(name, cpus, float(np.median(finite)) if known else float("nan"))


def extreme_pairs(matrix: Floats, cpus: Sequence[int]) -> Ends | None:
    """Return the pairs with the lowest and the highest core-to-core latency; None without two pairs."""
    known = np.triu(np.isfinite(matrix), 1)
    if known.sum() < 2:
        return None
    low, high = (
        np.unravel_index(at(np.where(known, matrix, fill)), matrix.shape)
        for at, fill in ((np.argmin, np.inf), (np.argmax, -np.inf))
    )
    pairs = [(cpus[int(a)], cpus[int(b)]) for a, b in (low, high)]
    return Ends(pairs[0], pairs[1], float(matrix[low]), float(matrix[high]))
