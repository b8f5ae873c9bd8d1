"""Measurement points of the judge in the numbers of a node's operating system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nodeprint.data.places.layout import LEVELS, RANK, Ints, Layout, codes
from nodeprint.data.places.measured import Key
from nodeprint.data.store.packed import PackedNode, os_places
from nodeprint.judge.reduction import Matrix
from nodeprint.judge.terms import Term, scoped
from nodeprint.judge.verdict import Component
from nodeprint.settings.measurements import Model

#: A node without data, for places that are the same on all.
NO_NODE = PackedNode("")


def component(matrix: Matrix, number: int, node: PackedNode = NO_NODE) -> Component:
    """A component of a matrix in a node's numbers."""
    term = matrix.terms.terms[number]
    return Component(term.name, term.component_type, place(matrix, scoped(term.component_type, term.where), node))


def key(matrix: Matrix, term: Term) -> str:
    """A component in canonical numbers, the same on every node: `core=37`, `ccd=3,memory_node=1`. A CPU has the number
    of its core, and of its thread unless that is the first one."""
    layout, of_cpu = matrix.terms.layout, matrix.measured.model.labels
    out = []
    for label, value in term.where.items():
        if of_cpu.get(label) != "cpu":
            out.append(f"{label}={value}")
            continue
        core = int(codes(layout.slots[:, : RANK + 1])[int(value)])
        thread = int(value) - int(layout.first[RANK][core])
        behind = "" if label == "cpu" else f"_{label}"
        out += [f"core{behind}={core}", *([f"thread{behind}={thread}"] if thread else [])]
    return ",".join(out) or "all"


def place(matrix: Matrix, where: Mapping[str, Key], node: PackedNode) -> dict[str, Key]:
    """A measurement point of a matrix in a node's numbers: cores, CPUs and NUMA nodes of the system, components
    machine-wide.

    Components have their actual type (`numa` for a quadrant, `cluster`), and classes their name. `inside` becomes the
    finest level.
    """
    if matrix.measured.of_pairs:
        return _of_pairs(where, matrix.terms.layout, node)
    if not where and matrix.measured.size == 1:  # the only place of named ones is not the whole node
        where = {dim: value for dim, value in matrix.measured.place(0).items() if dim in matrix.measured.names}
    return numbered(where, node, matrix.measured.model)


def _of_pairs(where: Mapping[str, Key], layout: Layout, node: PackedNode) -> dict[str, Key]:
    out: dict[str, Key] = {}
    for name, value in where.items():
        level = name.removeprefix("to_")
        if level == "core":
            slot = int(layout.first[RANK][int(value)])
            out["core"] = node.cores[slot] if slot < len(node.cores) else value
            if slot < len(node.cpus):
                out["cpu"] = node.cpus[slot]
        elif name == "class":
            out[name] = layout.class_names[int(value)]
        elif level in LEVELS:
            column = layout.column(level)
            number = int(layout.slots[layout.first[column][int(value)], column])
            out[name.replace(level, layout.levels[column])] = number if number >= 0 else value
        elif name != "inside":
            out[name] = value
        elif layout.finest:
            out[name] = layout.finest
    return out


def numbered(where: Mapping[str, Key], node: PackedNode, model: Model) -> dict[str, Key]:
    """A place of cells in a node's numbers; words and plain numbers as they are."""
    out: dict[str, Key] = {}
    for label, value in where.items():
        kind = model.labels.get(label)
        if kind == "cpu":
            for name in ("core", "cpu"):
                out[name if label == "cpu" else f"{name}_{label}"] = _at(node.numbers.get(name, ()), int(value))
        elif kind in ("node", "node_of_cpu"):
            out[label if kind == "node" else f"node_{label}"] = _at(node.numbers.get("node", ()), int(value))
        else:
            out[label] = value
    return out


def _at(numbers: Sequence[int], index: int) -> int:
    return numbers[index] if 0 <= index < len(numbers) else index


def cpu_pairs(matrix: Matrix, covers: Ints, node: PackedNode) -> dict[int, tuple[int, ...]]:
    """Pairs of CPUs by their first CPU, in the system's numbers."""
    pairs = np.asarray(matrix.terms.layout.pairs[covers])
    numbers = np.array(node.cpus if node.cpus else range(len(matrix.terms.layout.slots)), dtype=np.int64)
    out: dict[int, list[int]] = {}
    for a, b in np.sort(numbers[pairs], axis=1).tolist():
        out.setdefault(a, []).append(b)
    return {a: tuple(sorted(partners)) for a, partners in sorted(out.items())}


def cells(matrix: Matrix, covers: Ints, node: PackedNode) -> tuple[dict[str, Key], ...]:
    """The cells of points other than pairs by the dimensions of their measurement, in the system's numbers."""
    places = os_places(matrix.measured, node)
    return tuple(places[number] for number in covers.tolist())
