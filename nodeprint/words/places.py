"""Places in words: the numbers of the judge become those of a node, then of a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodeprint.fleet.quantity import Key, Model
from nodeprint.judge.causes import scoped
from nodeprint.judge.reduction import Matrix
from nodeprint.layout import ALL_PAIRS, CCD, CCX, CLASSES, QUADRANT, RANK, SOCKET, Layout
from nodeprint.packed import PackedNode

LEVELS: Mapping[str, int] = {"socket": SOCKET, "quadrant": QUADRANT, "ccd": CCD, "ccx": CCX}
#: What is tested, for people: terms, and the families of those that several families show.
TESTED: Mapping[str, str] = {
    "node": "the whole node",
    "socket": "one socket",
    "socket_link": "the link between sockets",
    "fabric": "everything beyond the CCX",
    "class": "one class of pairs",
    "quadrant": "a quadrant to other quadrants",
    "link": "a path between quadrants",
    "ccd": "a CCD to other CCDs",
    "block": "a path between CCDs",
    "ccx": "the inside of a CCX",
    "core": "a core",
    "core-in": "a core inside its CCX",
    "core-near": "a core to its socket",
    "core-far": "a core to the other socket",
    "numa": "memory latency",
    "cache": "cache latency",
    "bandwidth": "memory bandwidth",
    "clock": "a core's clock",
    "jitter": "time taken from a CPU",
    "loaded": "latency under load",
    "load": "cores under load",
    "flops": "what a core calculates alone",
    "touch": "memory first touched by another core",
    "remap": "memory that is mapped twice",
    "die-port": "a port of the I/O die",
    "die-link": "the link of the I/O die to another",
    "die-way": "a way over the I/O die",
    "die-lines": "lines at a site of the I/O die",
}


def place(matrix: Matrix, where: Mapping[str, Key], node: PackedNode) -> dict[str, Key]:
    """A place of a matrix in the numbers of the node's topology: cores and CPUs of the node, parts machine-wide."""
    if matrix.quantity.of_pairs:
        return _of_pairs(where, matrix.terms.layout, node)
    if not where and matrix.quantity.size == 1:  # the only one of named parts is not the whole node
        where = {dim: key for dim, key in matrix.quantity.place(0).items() if dim in matrix.quantity.names}
    return numbered(where, node, matrix.quantity.model)


def term(matrix: Matrix, number: int, node: PackedNode) -> str:
    """A term of a matrix, its place in the node's own numbers."""
    one = matrix.terms.terms[number]
    where = place(matrix, scoped(one.family, one.where), node)
    return spoken(one.name, where) if matrix.quantity.of_pairs else of_labels(where)


def part(matrix: Matrix, number: int, node: PackedNode) -> str:
    """The part that a term is of, whichever of its pairs the term counts; of cells with their measurement."""
    one = matrix.terms.terms[number]
    where = place(matrix, one.where, node)
    return spoken(one.name, where) if matrix.quantity.of_pairs else f"{matrix.name}, {of_labels(where)}"


def _of_pairs(where: Mapping[str, Any], layout: Layout, node: PackedNode) -> dict[str, Key]:
    """A place in the numbers of the node's topology: cores and CPUs of the node, parts machine-wide."""
    out: dict[str, Key] = {}
    for key, value in where.items():
        level = key.removeprefix("to_")
        if level == "core":
            slot = int(layout.first[RANK][value])
            out["core"] = node.cores[slot] if slot < len(node.cores) else value
            if slot < len(node.cpus):
                out["cpu"] = node.cpus[slot]
        elif level in LEVELS and key != "to_others":
            column = LEVELS[level]
            number = int(layout.slots[layout.first[column][value], column])
            named = key.replace("ccd", "ccx") if level == "ccd" and number < 0 else key
            out[named] = number if number >= 0 else value
        elif key != "inside" or layout.slots[:, CCX].min() >= 0:
            out[key] = value
    return out


def spoken(term: str, where: Mapping[str, Any]) -> str:
    """A place of pairs for people."""
    if term in _WHOLE:
        return _WHOLE[term]
    if term == "class":
        return _spoken_class(where)
    if term == "core":
        core = of_labels({key: value for key, value in where.items() if key in ("core", "cpu")})
        return core + "".join(text for scope, text in _SCOPES.items() if where.get(scope))
    if where.get("beyond_class"):
        return f"socket {where['socket']} beyond its CCXs"
    parts = [(key.removeprefix("to_"), value) for key, value in where.items() if key not in ("across", "to_others")]
    own = "the path inside" if len(parts) == 2 and parts[0] == parts[1] else "the inside of"
    if where.get("inside") or own == "the path inside":
        return f"{own} {parts[0][0].upper()} {parts[0][1]}"
    numbers = " to ".join(f"{_LABELS.get(part, part)} {value}" for part, value in parts)
    scope_text = " to the other socket" if where.get("across") else " to all others" if where.get("to_others") else ""
    return f"{'link ' if term == 'link' else ''}{numbers}{scope_text}"


_WHOLE: Mapping[str, str] = {"node": "the whole node", "spread": "runs or passes that differ"}
#: Which of a core's pairs a term counts.
_SCOPES: Mapping[str, str] = {
    "inside": " inside its CCX",
    "near": " to its socket",
    "across": " to the other socket",
    "outside": " outside its CCX",
}
_LABELS: Mapping[str, str] = {
    "ccd": "CCD",
    "ccx": "CCX",
    "cpu_node": "CPUs of NUMA node",
    "memory_node": "memory of NUMA node",
    "distance": "memory of the",
}


def _spoken_class(where: Mapping[str, int]) -> str:
    if "beyond_class" in where:
        return "everything beyond the CCX"
    name = CLASSES[where["class"]]
    if where["class"] == ALL_PAIRS:
        return name
    if "to_socket" in where:
        return f"the link between socket {where['socket']} and socket {where['to_socket']} ({name})"
    return f"class '{name}'" + (f" on socket {where['socket']}" if "socket" in where else "")


def numbered(where: Mapping[str, Key], node: PackedNode, model: Model) -> dict[str, Key]:
    """A place in the numbers of the node's topology: OS numbers of CPUs, cores and NUMA nodes, words as they are."""
    out: dict[str, Key] = {}
    for label, key in where.items():
        kind = model.labels.get(label)
        if kind == "cpu":
            for what in ("core", "cpu"):
                out[what if label == "cpu" else f"{what}_{label}"] = _at(node.numbers.get(what, ()), int(key))
        elif kind in ("node", "node_of_cpu"):
            out[label if kind == "node" else f"node_{label}"] = _at(node.numbers.get("node", ()), int(key))
        else:
            out[label] = key
    return out


def _at(numbers: Sequence[int], index: int) -> int:
    return numbers[index] if 0 <= index < len(numbers) else index


def of_labels(where: Mapping[str, Key]) -> str:
    """A place of cells for people."""
    parts = []
    for key, value in where.items():
        if key == "core":
            parts.append(f"core {value} (CPU {where['cpu']})" if "cpu" in where else f"core {value}")
        elif isinstance(value, str) and key not in _LABELS:
            parts.append(value)
        elif key != "cpu":
            parts.append(f"{_LABELS.get(key, key.replace('_', ' '))} {value}")
    return ", ".join(parts) or "the whole node"


def brief(where: Mapping[str, Key]) -> str:
    """A place in few words, for a table."""
    names = {"cpu": "CPU", "cpu_node": "CPU node", "memory_node": "memory"}
    told = [(names.get(key, key.replace("_", " ")), value) for key, value in where.items() if key != "core"]
    return ", ".join(str(value) if isinstance(value, str) else f"{name} {value}" for name, value in told)
