"""The card of a matrix of another tool: its classes are those of the structure that is found in it."""

from __future__ import annotations

import numpy as np

from nodeprint.machine.topology.level_names import level_name
from nodeprint.readers.tool_output import ToolOutput
from nodeprint.structure import Structure, find
from nodeprint.summary.node_summary import (
    CpuLabels,
    MedianValue,
    PairMatrix,
    ProcessorFacts,
    SummaryOrigin,
    rounded,
    tenths,
)
from nodeprint_addons.atlas.card import Card

_SOCKET, _BEYOND = "same socket", "other socket"


def card_of_matrix(imported: ToolOutput, name: str, sockets: int = 0) -> Card:
    """The card of an imported core-to-core matrix of the processor `name` (as /proc/cpuinfo has it, or as people write
    it). Raises NodeprintError where the file has no such matrix."""
    cores = imported.core_matrix()
    structure = find(cores.ns, cores.cpus)
    order = np.argsort(cores.cpus)
    cpus = tuple(int(cores.cpus[row]) for row in order)
    ns = cores.ns[np.ix_(order, order)]
    measurement = f"coherence-{cores.operation}"
    levels = {level.name: level for level in structure.levels}
    parts = {
        "core" if level.name == "smt" else str(level.name): _numbers(level.groups, cpus) for level in structure.levels
    }
    return Card(
        processor=ProcessorFacts(
            name,
            sockets=sockets or (len(levels["socket"].groups) if "socket" in levels else 0),
            cores=len(levels["smt"].groups) if "smt" in levels else 0,
            cpus=len(cpus),
        ),
        origin=SummaryOrigin(imported.tool, file=imported.source.name, unknown=imported.unknown),
        figures=tuple(
            MedianValue(measurement, name, "ns", rounded(value)) for name, value in classes(structure, ns).items()
        ),
        matrix=PairMatrix(
            measurement,
            cores.operation,
            cores.quantity,
            cores.home or "",
            CpuLabels(cpus, parts, dict.fromkeys(parts, "matrix")),
            tenths(ns),
        ),
    )


def classes(structure: Structure, ns: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> dict[str, float]:
    """The median of each class in ns, from near to far; of a class whose parts differ one each, as `same socket, socket
    0`."""
    if not structure.levels:
        return {_SOCKET: float(np.nanmedian(ns))}
    coarsest = structure.levels[-1]
    named = [(f"same {level_name(level.name)}", level.within) for level in structure.levels]
    named.append((_BEYOND if coarsest.name == "socket" else _SOCKET, coarsest.between))
    return {
        ", ".join(filter(None, (name, pairs.part))): pairs.median_ns for name, of_level in named for pairs in of_level
    }


def _numbers(groups: tuple[tuple[int, ...], ...], cpus: tuple[int, ...]) -> tuple[int, ...]:
    """The number of each CPU's group, -1 where it is in none."""
    number = {cpu: index for index, group in enumerate(groups) for cpu in group}
    return tuple(number.get(cpu, -1) for cpu in cpus)
