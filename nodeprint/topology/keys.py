"""Which CPU of one node corresponds to which of another: by place on the chip, never by OS number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple

from nodeprint.topology.facts import groups_of
from nodeprint.topology.model import Level, Topology

Outcome = Literal["same", "renumbered", "different harvest", "different"]

#: In a key: the level is unknown there, or does not exist. A number, so that keys sort.
NONE = -1

_LEVELS: tuple[Level, ...] = ("socket", "numa", "quadrant", "ccd", "ccx", "cluster", "core")


class Key(NamedTuple):
    """A CPU's place: each number counts from 0 inside the part before it, `NONE` where that level is unknown.

    `numa` counts only where NUMA nodes cut an L3 (Intel's SNC); elsewhere the other levels say it all.
    """

    socket: int
    numa: int
    quadrant: int
    ccd: int
    ccx: int
    cluster: int
    core: int
    thread: int


class Comparison(NamedTuple):
    """What two nodes have in common, in a word and in a sentence."""

    outcome: Outcome
    explanation: str


def canonical_keys(topology: Topology) -> dict[int, Key]:
    """Each CPU's key by OS number: unique in the machine, and equal on nodes of one configuration.

    Labels count parts by APIC id where it is known, so other OS numbers give the same keys. On harvested parts keys are
    as compacted as APIC ids are: see `Machine.core_positions` and `ccd_positions` before one core is compared with
    another node's.
    """
    levels = [level for level in _LEVELS if level != "numa" or _numa_counts(topology)]
    place: dict[int, tuple[int, ...]] = {cpu.cpu: () for cpu in topology.cpus}
    for level in _LEVELS:
        parts = {cpu.cpu: getattr(cpu, level) if level in levels else None for cpu in topology.cpus}
        place = _counted(place, parts)
    last = {cpu.cpu: cpu.thread if cpu.core is not None else cpu.cpu for cpu in topology.cpus}
    return {cpu: Key(*key) for cpu, key in _counted(place, last).items()}


def compare(a: Topology, b: Topology) -> Comparison:
    """Whether two nodes are the same, only numbered otherwise, of one part with other cores fused off, or different."""
    unlike = [
        f"{name.replace('_', ' ')} {getattr(a.machine, name)} and {getattr(b.machine, name)}"
        for name in ("vendor", "family", "model", "stepping", "name", "nps", "smt", "virtual")
        if None not in (getattr(a.machine, name), getattr(b.machine, name))
        and getattr(a.machine, name) != getattr(b.machine, name)
    ]
    for what, count_a, count_b in (
        ("CPUs", len(a.cpus), len(b.cpus)),
        ("sockets", len(a.groups("socket")), len(b.groups("socket"))),
        ("NUMA nodes with CPUs", len(a.groups("numa")), len(b.groups("numa"))),
        ("NUMA nodes", len(a.numa_nodes), len(b.numa_nodes)),
    ):
        if count_a != count_b:
            unlike.append(f"{count_a} and {count_b} {what}")
    if unlike:
        return Comparison("different", "; ".join(unlike))
    return _compare_places(a, b)


def _compare_places(a: Topology, b: Topology) -> Comparison:
    keys_a, keys_b = canonical_keys(a), canonical_keys(b)
    if Counter(keys_a.values()) != Counter(keys_b.values()):
        if len(a.groups("core")) == len(b.groups("core")):
            sizes = f"{_counts(_ccx_sizes(a))} and {_counts(_ccx_sizes(b))}"
            return Comparison("different harvest", f"one part, other cores fused off: CPUs of CCXs {sizes}")
        return Comparison("different", "CPUs are not in corresponding places")
    kinds_a, kinds_b = ({keys[c.cpu]: c.kind for c in t.cpus} for t, keys in ((a, keys_a), (b, keys_b)))
    if kinds_a != kinds_b:
        return Comparison("different", "cores of other kinds are in corresponding places")
    if _apicids(a) and _apicids(b) and _apicids(a) != _apicids(b):
        return Comparison("different harvest", "one part and one shape, but APIC ids skip other cores")
    moved = sum(keys_a[cpu] != keys_b.get(cpu) for cpu in keys_a)
    if moved or [node.cpus for node in a.numa_nodes] != [node.cpus for node in b.numa_nodes]:
        what = f"{moved} of {len(keys_a)} CPUs have" if moved else "NUMA nodes have"
        return Comparison("renumbered", f"{what} another number at the same place")
    return Comparison("same", f"all {len(keys_a)} CPUs are at the same places under the same numbers")


def _numa_counts(topology: Topology) -> bool:
    """Whether NUMA nodes are finer than what the other levels tell."""
    numa = {cpu.cpu: cpu.numa for cpu in topology.cpus}
    coarse: Level = "ccx" if topology.groups("ccx") else "socket"
    return any(len({numa[cpu] for cpu in cpus}) > 1 for cpus in topology.groups(coarse).values())


def _counted(place: dict[int, tuple[int, ...]], parts: Mapping[int, int | None]) -> dict[int, tuple[int, ...]]:
    """Each CPU's place with one more number: its part's among the parts at that place."""
    inside: dict[tuple[int, ...], set[int]] = {}
    for cpu, part in parts.items():
        if part is not None:
            inside.setdefault(place[cpu], set()).add(part)
    numbers = {at: {part: i for i, part in enumerate(sorted(found))} for at, found in inside.items()}
    return {cpu: (*place[cpu], numbers[place[cpu]][part] if part is not None else NONE) for cpu, part in parts.items()}


def _ccx_sizes(topology: Topology) -> Counter[int]:
    return Counter(len(cpus) for cpus in topology.groups("ccx").values())


def _counts(sizes: Counter[int]) -> str:
    return ", ".join(f"{count} x {size}" for size, count in sorted(sizes.items(), reverse=True)) or "unknown"


def _apicids(topology: Topology) -> list[list[int]]:
    """APIC ids of each socket, from the socket's first: where cores are fused off they have holes."""
    ids = {cpu.cpu: cpu.apicid for cpu in topology.cpus if cpu.apicid is not None}
    sockets = {cpu.cpu: cpu.socket for cpu in topology.cpus if cpu.cpu in ids and cpu.socket is not None}
    if len(sockets) != len(topology.cpus):
        return []
    found = [sorted(ids[cpu] for cpu in cpus) for _, cpus in sorted(groups_of(sockets).items())]
    return [[number - numbers[0] for number in numbers] for numbers in found]
