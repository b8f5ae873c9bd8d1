"""Canonical places of a node's CPUs, so that nodes are compared place by place and never by OS number.

A slot is (socket, quadrant, CCD, CCX, rank, thread), -1 if a level is unknown. `levels` of a layout names the columns.
The quadrant's column holds NUMA nodes if a machine shows no quadrants and NUMA nodes split its sockets. The column of
the CCX holds clusters of cores if a machine shows no L3, and on hybrid processors with one L3 per socket. Two nodes
share a layout if they have the same slots, levels and types of cores.

The class of a pair is the finest component that its two CPUs share. A class that the labels do not determine is merged
into the coarser one. A class with several types of cores (performance, efficiency) is split by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nodeprint.machine.topology.level_names import level_name
from nodeprint.machine.topology.model import Cpu, Topology
from nodeprint.stats.distinct import distinct

#: Columns of a slot.
SOCKET, QUADRANT, CCD, CCX, RANK, THREAD = range(6)
#: The first four columns of a slot on a machine that shows all levels (`levels_of`).
LEVELS = ("socket", "quadrant", "ccd", "ccx")
#: Their names.
NAMES = tuple(map(level_name, LEVELS))
#: Classes of pairs on such a machine, from near to far; the last where nothing is known of the CPUs, as of a matrix
#: without labels.
CLASSES = (
    *(f"same {level_name(level)}" for level in ("core", *reversed(LEVELS))),
    f"other {level_name('socket')}",
    "every pair",
)
SAME_CORE, SAME_CCX, SAME_CCD, SAME_QUADRANT, SAME_SOCKET, OTHER_SOCKET, ALL_PAIRS = range(7)

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """The measurement points of one kind of node, by canonical order and never by OS number.

    `slots` (n x 6, sorted) are its CPUs: of a measurement of pairs those that were measured, else all. `pairs` (p x 2)
    are rows of `slots`. `numa` (n) is the number of each slot's NUMA node, -1 if unknown, as for pairs. The
    `numa_nodes` NUMA nodes are numbered by their first slot; those without CPUs follow.
    `harvested`: fewer cores of a CCX are active than the die has, so that a rank is no position on the die.
    `ordered`: components are numbered as they are on the chip, not by OS CPU numbers. `levels` are what the first four
    columns of a slot hold. `kinds` is the kind of each slot's core, empty if all are alike or nothing is known.
    """

    slots: Ints
    pairs: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    harvested: bool = False
    ordered: bool = True
    levels: tuple[str, ...] = LEVELS
    kinds: tuple[str, ...] = ()
    numa: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    numa_nodes: int = 0

    @cached_property
    def closeness(self) -> Ints:
        """The index in CLASSES of each pair, whatever the types of its cores (pair)."""
        return pair_classes(self.slots, self.pairs)

    @cached_property
    def classes(self) -> Ints:
        """Per pair, the index of its class in `class_names`."""
        return self._classes_and_names[0]

    @cached_property
    def ends(self) -> Mapping[str, tuple[Ints, Ints]]:
        """By level and `core` the numbers of the parts of both CPUs of each pair, -1 of an unknown level."""
        columns = {"core": RANK} | {name: self.column(name) for name in LEVELS}
        parts = {name: codes(self.slots[:, : column + 1]) for name, column in columns.items()}
        for name in ("ccd", "quadrant"):
            if self.slots[:, columns[name]].min(initial=0) < 0:
                parts[name] = np.full_like(parts[name], -1)
        a, b = self.pairs.T
        return {name: (numbers[a], numbers[b]) for name, numbers in parts.items()}

    @cached_property
    def strata(self) -> Ints:
        """Per pair, the number of its stratum: pairs of one class on one socket or between two."""
        sockets = np.sort(np.column_stack(self.ends["socket"]), axis=1)
        return codes(np.column_stack([self.classes, sockets]))

    @property
    def class_names(self) -> tuple[str, ...]:
        """CLASSES with the names of this layout's columns, such as `same NUMA node` instead of `same quadrant`.

        Classes by types of cores follow: `same socket, performance and efficiency cores`.
        """
        return self._classes_and_names[1]

    @cached_property
    def _classes_and_names(self) -> tuple[Ints, tuple[str, ...]]:
        names = list(CLASSES)
        for column, number in ((CCX, SAME_CCX), (CCD, SAME_CCD), (QUADRANT, SAME_QUADRANT)):
            names[number] = f"same {level_name(self.levels[column])}"
        classes = self.closeness.copy()
        if self.kinds:
            kinds = np.array(self.kinds)
            ends = np.sort(kinds[self.pairs], axis=1)[:, ::-1]
            for number in np.unique(self.closeness).tolist():
                of_class = self.closeness == number
                combinations = np.unique(ends[of_class], axis=0)
                for combination in combinations if len(combinations) > 1 else ():
                    classes[of_class & np.all(ends == combination, axis=1)] = len(names)
                    names.append(f"{names[number]}, {' and '.join(dict.fromkeys(combination.tolist()))} cores")
        return classes, tuple(names)

    @property
    def finest(self) -> str:
        """The name of the finest level above cores that labels every CPU; empty without any."""
        labeled = (column for column in (CCX, QUADRANT, SOCKET) if self.slots[:, column].min() >= 0)
        return next((self.levels[column] for column in labeled), "")

    def column(self, part: str) -> int:
        """The column of a level of LEVELS. `ccd` stands for the component with its own port to the fabric. That is the
        CCX if dies are unknown, and the NUMA node if the L3 of a socket spans several."""
        columns = (CCD, CCX, QUADRANT) if part == "ccd" else (LEVELS.index(part),)
        return next((column for column in columns if self.slots[:, column].min(initial=0) >= 0), columns[0])

    @cached_property
    def first(self) -> tuple[Ints, ...]:
        """By level (SOCKET to THREAD) the first slot of each part, in the order of its number (`codes`)."""
        levels = range(1, self.slots.shape[1] + 1)
        return tuple(np.unique(codes(self.slots[:, :level]), return_index=True)[1] for level in levels)

    @cached_property
    def key(self) -> bytes:
        """Equal for layouts that can be compared point by point."""
        shape = np.array([len(self.slots), self.numa_nodes, self.harvested, self.ordered], dtype=np.int32)
        held = " ".join((*self.levels, *self.kinds)).encode()
        return shape.tobytes() + self.slots.astype(np.int32).tobytes() + self.numa.astype(np.int32).tobytes() + held


def levels_of(topology: Topology) -> tuple[str, ...]:
    """The names of the first four columns of a slot on a machine (see the module)."""
    nodes_of: dict[int | None, set[int | None]] = {}
    for cpu in topology.cpus:
        nodes_of.setdefault(cpu.socket, set()).add(cpu.numa)
    split = any(len(nodes - {None}) > 1 for nodes in nodes_of.values())
    by_numa = split and not topology.groups("quadrant")
    around_one = len(set(kinds_of(topology, [cpu.cpu for cpu in topology.cpus]))) > 1 and (
        {cpu.ccx for cpu in topology.cpus if cpu.ccx is not None} == {0}
        and all(cpu.cluster is not None for cpu in topology.cpus)
    )
    by_cluster = bool(topology.groups("cluster")) and (not topology.groups("ccx") or around_one)
    return "socket", "numa" if by_numa else "quadrant", "ccd", "cluster" if by_cluster else "ccx"


def kinds_of(topology: Topology, cpus: Sequence[int]) -> tuple[str, ...]:
    """The type of the core of each of `cpus`; empty if all are of one type, or one type is unknown."""
    by_number = {cpu.cpu: cpu.kind for cpu in topology.cpus}
    kinds = [by_number.get(cpu) for cpu in cpus]
    return tuple(kind or "" for kind in kinds) if all(kinds) and len(set(kinds)) > 1 else ()


def slots_of(topology: Topology, cpus: Sequence[int]) -> tuple[Ints, list[int]]:
    """Slots of `cpus` in canonical order (n x 6), columns as of `levels_of`, and the OS numbers in that order."""
    by_number = {cpu.cpu: cpu for cpu in topology.cpus}
    labeled = [by_number.get(number) or Cpu(cpu=number) for number in cpus]
    levels = levels_of(topology)
    beyond = 1 + max(topology.groups("ccx"), default=-1)
    rows = [_slot(cpu, levels, beyond) for cpu in labeled]
    if _spans_nodes(rows):  # the L3 of a socket that is split into NUMA nodes is no part of one of them
        rows = [(*row[:CCX], -1, *row[CCX + 1 :]) for row in rows]
    # A rank that is unknown or not unique becomes the order of the core in its CCX.
    order = sorted(range(len(rows)), key=lambda i: (*rows[i], labeled[i].cpu))
    seen: dict[tuple[int, ...], dict[int, int]] = {}
    for i in order:
        socket, quadrant, ccd, ccx, rank, thread = rows[i]
        place = (socket, quadrant, ccd, ccx)
        core = labeled[i].core
        ranks = seen.setdefault(place, {})
        identity = core if core is not None else -1 - labeled[i].cpu
        rank = ranks.setdefault(identity, len(ranks))
        rows[i] = (*place, rank, thread)
    order = sorted(range(len(rows)), key=lambda i: (*rows[i], labeled[i].cpu))
    return np.array([rows[i] for i in order], dtype=np.int64).reshape(-1, 6), [labeled[i].cpu for i in order]


def _spans_nodes(rows: Sequence[tuple[int, ...]]) -> bool:
    """Whether some part in the column of the CCX is in several of that of the quadrant."""
    inside: dict[int, set[int]] = {}
    for row in rows:
        inside.setdefault(row[CCX], set()).add(row[QUADRANT])
    return any(len(parts) > 1 for number, parts in inside.items() if number >= 0)


def _slot(cpu: Cpu, levels: Sequence[str], ccxs: int) -> tuple[int, ...]:
    held = [getattr(cpu, level) for level in levels]
    if held[CCX] is None and cpu.cluster is not None:
        held[CCX] = ccxs + cpu.cluster  # a core without L3 beside others that have one: a number that no CCX has
    rank = cpu.rank if cpu.rank is not None else (cpu.core if cpu.core is not None else cpu.cpu)
    numbers = (*held, rank, cpu.thread if cpu.thread is not None else 0)
    return tuple(-1 if value is None else value for value in numbers)


def pair_classes(slots: Ints, pairs: Ints) -> Ints:
    """Index in CLASSES of each pair (p), merged where a level is unknown or holds nothing of its own."""
    a, b = slots[pairs[:, 0]], slots[pairs[:, 1]]

    def same(level: int) -> npt.NDArray[np.bool_]:
        is_known = slots[:, level].min(initial=0) >= 0
        return np.asarray((a[:, level] == b[:, level]) & is_known, dtype=np.bool_)

    coarsest = SAME_SOCKET if slots[:, SOCKET].min(initial=0) >= 0 else ALL_PAIRS
    result = np.where((a[:, SOCKET] == b[:, SOCKET]), coarsest, OTHER_SOCKET)
    result[same(QUADRANT)] = SAME_QUADRANT
    result[same(CCD)] = SAME_CCD
    result[same(CCX)] = SAME_CCX
    result[np.all(a[:, : RANK + 1] == b[:, : RANK + 1], axis=1)] = SAME_CORE
    # One CCX or quadrant a socket: its pairs are simply those of the socket.
    for fine in (SAME_QUADRANT, SAME_CCD, SAME_CCX):
        if np.any(result == fine) and not np.any(result == coarsest):
            result[result == fine] = coarsest
    return result


def codes(columns: Ints) -> Ints:
    """The number of each row (n, k) among the distinct rows in order, (n)."""
    return distinct(columns)[1]


def layout_of(topology: Topology, slots: Ints, pairs: Ints, cpus: Sequence[int] = ()) -> Layout:
    """The layout of a node of `topology` with those slots, which are of `cpus`, and pairs (rows of `slots`)."""
    machine = topology.machine
    harvested, kinds = machine.core_positions is False, kinds_of(topology, cpus)
    return Layout(slots, pairs, harvested, machine.order_known, levels_of(topology), kinds)
