"""The components of a machine: its CPUs with their position in every level, and its NUMA nodes.

Numbers of sockets, halves, quadrants, CCDs, CCXs, clusters and cores are machine-wide and unique. The second socket of
a dual EPYC has quadrants 4 to 7. CPUs with equal numbers share the component. None is unknown; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodeprint.settings.texts import say

#: From coarse to fine. NUMA is an axis of its own: its nodes may equal quadrants, halves, sockets or CCXs.
Level = Literal["socket", "half", "quadrant", "ccd", "ccx", "cluster", "core", "numa"]
LEVELS: tuple[Level, ...] = ("socket", "half", "quadrant", "ccd", "ccx", "cluster", "core")

#: The source of a label.
Provenance = Literal["sysfs", "cpuid", "table", "numa", "unknown"]


@dataclass(frozen=True, slots=True)
class Cpu:
    """A hardware thread. `rank` is its core's position in the CCX by APIC id, `thread` its position in the core, both
    from 0. `kind` is the core's where a machine has several."""

    cpu: int
    socket: int | None = None
    half: int | None = None
    quadrant: int | None = None
    ccd: int | None = None
    ccx: int | None = None
    numa: int | None = None
    cluster: int | None = None
    core: int | None = None
    thread: int | None = None
    rank: int | None = None
    apicid: int | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node: its CPUs (none for memory only), memory in bytes, and SLIT distances to all nodes in order."""

    node: int
    cpus: tuple[int, ...] = ()
    memory_bytes: int | None = None
    distances: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """The identity that the machine reports. `nps` is NUMA nodes per socket (0: one for the whole machine) if known.

    `core_positions` is True if every core of each CCX is active, so that ranks are positions on the die. It is False if
    some are fused off (positions unknown), and None if unknown. `ccd_positions` is the same for the CCDs of a socket.
    `order_known` is False if dies, CCXs and cores are numbered by OS CPU numbers, as nothing shows their order. For
    Arm, vendor is the implementer, family the architecture and model the part number.
    """

    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    stepping: int | None = None
    name: str | None = None
    architecture: str | None = None
    generation: str | None = None
    nps: int | None = None
    smt: bool | None = None
    virtual: bool | None = None
    core_positions: bool | None = None
    ccd_positions: bool | None = None
    order_known: bool = True
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Warning:
    """Something a reader should know. `id` is stable, `advice` says what to do about it."""

    id: str
    text: str
    advice: str


def warning(name: str, case: str = "", /, *, of: str = "", **values: object) -> Warning:
    """The warning `name` with its text from reports/texts.yaml (`warnings`), for one `case` if it has several.

    `of` is put before the id, such as `core-partial`.
    """
    keys = ("warnings", name, case) if case else ("warnings", name)
    return Warning(f"{of}-{name}" if of else name, say(*keys, "text", **values), say(*keys, "advice", **values))


@dataclass(frozen=True, slots=True)
class Topology:
    """A machine's CPUs by OS number, its NUMA nodes, the source of each level's label, and warnings."""

    machine: Machine
    cpus: tuple[Cpu, ...]
    numa_nodes: tuple[NumaNode, ...] = ()
    provenance: Mapping[str, Provenance] = field(default_factory=dict)
    warnings: tuple[Warning, ...] = ()

    def __hash__(self) -> int:
        return hash((self.machine, len(self.cpus)))

    def groups(self, level: Level) -> dict[int, tuple[int, ...]]:
        """OS numbers of the CPUs of each part of `level` by the part's number; without CPUs whose part is unknown."""
        out: dict[int, list[int]] = {}
        for cpu in self.cpus:
            part = getattr(cpu, level)
            if part is not None:
                out.setdefault(part, []).append(cpu.cpu)
        return {part: tuple(cpus) for part, cpus in sorted(out.items())}

    def order(self) -> list[int]:
        """OS numbers in topology order: neighbors in the list are neighbors on the chip, unknown parts last."""

        def key(cpu: Cpu) -> tuple[float, ...]:
            fields = (
                cpu.socket,
                cpu.numa,
                cpu.half,
                cpu.quadrant,
                cpu.ccd,
                cpu.ccx,
                cpu.cluster,
                cpu.core,
                cpu.thread,
                cpu.cpu,
            )
            return tuple(float("inf") if value is None else value for value in fields)

        return [cpu.cpu for cpu in sorted(self.cpus, key=key)]
