"""Where to pin threads that communicate: how many fit into each part of a machine, and what a hop takes there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import CCX, QUADRANT, SOCKET, THREAD, Layout, codes
from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.level_names import level_name
from nodeprint.report import names
from nodeprint.report.figures.matrix import drawn_slots, square_of, structure_at
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.settings.texts import say
from nodeprint.structure.found import Structure
from nodeprint.structure.matrix_checks import ALIKE

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.int64]
#: Of a part at least this share of the pairs has to be measured where it is named as the place to pin: the median of a
#: few, as a host left them, would be lower than that of its like.
_MEASURED = 0.8
_FEW_CORES = 3
#: Settings on the kernel's command line that keep other work off CPUs.
_ISOLATION = ("isolcpus", "nohz_full", "rcu_nocbs")


class Room(msgspec.Struct, frozen=True):
    """A part of a machine that threads fit into, one a core: what it is called, its CPUs, and the median hop between
    them in ns."""

    name: str
    cpus: tuple[int, ...]
    median_ns: float


class Ends(msgspec.Struct, frozen=True):
    """The pair with the lowest hop between two cores and that with the highest, ns."""

    low: tuple[int, int]
    high: tuple[int, int]
    low_ns: float
    high_ns: float


def rooms(matrix: Floats, cpus: Sequence[int], groups: Mapping[str, Sequence[Sequence[int]]]) -> tuple[Room, ...]:
    """Of each level of `groups` (name to the CPUs of its parts, one a core, from fine to coarse) that with the lowest
    median hop, and the whole machine last. Left out are levels whose parts have no more cores than a finer one's, or
    are no faster inside than a larger one, as clusters of small cores."""
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
    """The parts of a level without those of three cores or fewer that are far faster than their like: a median of one
    to three pairs is what disturbed one of them."""
    usual = float(np.median([room.median_ns for room in rooms])) if rooms else 0.0
    return [room for room in rooms if len(room.cpus) > _FEW_CORES or room.median_ns * ALIKE["ccx"] > usual]


def _room(matrix: Floats, name: str, cpus: tuple[int, ...], place: Mapping[int, int]) -> Room:
    rows = [place[cpu] for cpu in cpus]
    inside = matrix[np.ix_(rows, rows)][np.triu_indices(len(rows), 1)]
    finite = inside[np.isfinite(inside)]
    known = finite.size and finite.size >= _MEASURED * inside.size
    return Room(name, cpus, float(np.median(finite)) if known else float("nan"))


def ends(matrix: Floats, cpus: Sequence[int]) -> Ends | None:
    """The lowest and the highest hop; None without two pairs."""
    known = np.triu(np.isfinite(matrix), 1)
    if known.sum() < 2:
        return None
    low, high = (
        np.unravel_index(at(np.where(known, matrix, fill)), matrix.shape)
        for at, fill in ((np.argmin, np.inf), (np.argmax, -np.inf))
    )
    pairs = [(cpus[int(a)], cpus[int(b)]) for a, b in (low, high)]
    return Ends(pairs[0], pairs[1], float(matrix[low]), float(matrix[high]))


def sentences(matrix: Floats, cpus: Sequence[int], groups: Mapping[str, Sequence[Sequence[int]]]) -> list[str]:
    """Where threads fit, and the lowest and the highest pair."""
    out = []
    if len(fits := rooms(matrix, cpus, groups)) > 1:
        first = fits[0].median_ns
        rooms_in_words = [
            say(
                "placement",
                "room" if number + 1 < len(fits) else "all",
                threads=str(len(room.cpus)),
                component=room.name,
                level=names.duration(room.median_ns),
                cpus=list_text(room.cpus),
                times=say("placement", "times", times=f"{room.median_ns / first:.1f}") if number else "",
            )
            for number, room in enumerate(fits)
        ]
        out.append(say("placement", "pin", rooms="; ".join(rooms_in_words)))
    if pairs := ends(matrix, cpus):
        out.append(
            say(
                "placement",
                "ends",
                low=names.duration(pairs.low_ns),
                high=names.duration(pairs.high_ns),
                low_pair=names.listed(map(str, pairs.low)),
                high_pair=names.listed(map(str, pairs.high)),
            )
        )
    return out


def of_node(levels: NodeLevels, node: str, fingerprint: Mapping[str, object]) -> list[str]:
    """The sentences of a node's hops at their first home, by its labels, or by the groups that are found without, and
    what isolates CPUs there as found; of messages none."""
    quantity = levels.quantity
    if quantity.quantity != "hop" or len(quantity.layout.slots) < 3:
        return []
    drawn = drawn_slots(quantity)
    numbers = levels.nodes[levels.rows[node]].cpus or tuple(range(len(quantity.layout.slots)))
    cpus = [numbers[slot] for slot in drawn.tolist()]
    matrix = square_of(quantity, levels.of(node), quantity.homes[0], drawn)
    structure = structure_at(levels, node)
    if structure is not None:
        sentences_of_levels = of_structure(matrix, cpus, structure)
    else:
        sentences_of_levels = _of_labels(matrix, cpus, quantity.layout, drawn)
    is_known = bool(fingerprint.get("cmdline") or fingerprint.get("governor"))
    return [*sentences_of_levels, isolation(fingerprint)] if sentences_of_levels and is_known else sentences_of_levels


def _of_labels(matrix: Floats, cpus: Sequence[int], layout: Layout, drawn: Ints) -> list[str]:
    """The sentences of a matrix of the slots `drawn`, one CPU of each core, by their labels."""
    first = np.flatnonzero(layout.slots[drawn, THREAD] == layout.slots[drawn, THREAD].min())
    slots, kept = layout.slots[drawn[first]], [cpus[row] for row in first.tolist()]
    groups: dict[str, list[list[int]]] = {}
    for column in (CCX, QUADRANT, SOCKET):
        if slots[:, column].min(initial=0) >= 0:
            kinds = codes(slots[:, : column + 1])
            members = [[kept[n] for n in np.flatnonzero(kinds == kind)] for kind in range(int(kinds.max()) + 1)]
            groups[level_name(layout.levels[column])] = members
    return sentences(matrix[np.ix_(first, first)], kept, groups)


def isolation(fingerprint: Mapping[str, object]) -> str:
    """What keeps other work off CPUs, as found: isolcpus, nohz_full, governor."""
    words = dict(re.findall(r"(\w+)=(\S+)", str(fingerprint.get("cmdline", ""))))
    settings = [f"{key} {words.get(key, 'not set')}" for key in _ISOLATION[:2]]
    settings += [f"{key} {words[key]}" for key in _ISOLATION[2:] if key in words]
    governor = str(fingerprint.get("governor") or "not reported")
    return say("placement", "isolation", found=", ".join([*settings, f"governor {governor}"]))


def of_structure(matrix: Floats, cpus: Sequence[int], structure: Structure) -> list[str]:
    """The sentences of a matrix by the groups that were found in it, one CPU of each core."""
    smt = structure.level("smt")
    first = {cpu for group in smt.groups for cpu in group[:1]} if smt is not None else set(cpus)
    rows = [number for number, cpu in enumerate(cpus) if cpu in first]
    kept = [cpus[number] for number in rows]
    groups = {
        level_name(level.name): [[cpu for cpu in group if cpu in first] for group in level.groups]
        for level in structure.levels
        if level.name != "smt"
    }
    both = np.fmin(matrix, matrix.T)[np.ix_(rows, rows)]
    return sentences(both, kept, groups)
