"""The terms of measurement points other than pairs of CPUs. A term is the set of points with the same value in all its
labels.

A measurement's model states its terms (measurements.yaml); see docs/method/memory.md. A set is compared only with the
same set of the peers. `judge.causes` separates a wider set from those inside it by the composites: single causes that
may affect several sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nodeprint.data.places.layout import SOCKET, Ints, Layout
from nodeprint.data.places.measured import Key, Measured
from nodeprint.judge.terms import Cause, Term, Terms

#: The component type of the set of all places.
WHOLE = "whole"
#: Components that may be one cause in all of their cells, even if no term of the model covers all of these.
_COMPOSITES = ("socket", "ccd")
#: By the scope of a cell, the components that are narrower: the cell's CPU is only the first of its scope.
_WIDER = {
    "ccd": ("ccx",),
    "numa": ("ccx", "cluster", "ccd", "quadrant"),
    "socket": ("ccx", "cluster", "ccd", "quadrant"),
    "machine": ("ccx", "cluster", "ccd", "quadrant", "socket", "cpu_node"),
}
#: In place of the socket of a NUMA node that has CPUs of several sockets, or none (CXL and high-bandwidth memory).
_SEVERAL, _NO_CPUS = -1, -2


def labels(quantity: Measured) -> dict[str, list[Key | None]]:
    """The value of each label at every point, None if unknown; CPUs are slots, NUMA nodes by their order."""
    out: dict[str, list[Key | None]] = {
        dim: [quantity.named(dim, at) for at in column.tolist()] for dim, column in quantity.places.items()
    }
    numa: Ints | None = None
    for dim in quantity.dims:
        if quantity.model.labels.get(dim) == "cpu":
            slots = quantity.layout.slots[quantity.places[dim]]
            for column, name in enumerate(quantity.layout.levels):
                out.setdefault(name, [int(value) if value >= 0 else None for value in slots[:, column]])
            if numa is None:
                numa = quantity.layout.numa[quantity.places[dim]]
                out.setdefault("cpu_node", [int(node) if node >= 0 else None for node in numa])
    numa = quantity.places.get("cpu_node", numa)
    if "socket" not in out and numa is not None:
        own = _sockets(quantity, int(numa.max(initial=-1)) + 1)[numa]
        out["socket"] = [int(value) if value >= 0 else None for value in own]
    if "memory_node" in out and numa is not None:
        memory = quantity.places["memory_node"]
        sockets = _sockets(quantity, max(int(memory.max(initial=-1)), int(numa.max(initial=-1))) + 1)
        out["distance"] = [_distance(cpu, node, sockets) for cpu, node in zip(numa.tolist(), memory, strict=True)]
    for place, scope in enumerate(out.get("scope", ())):
        for component in _WIDER.get(str(scope), ()):
            if component in out and component not in quantity.dims:
                out[component][place] = None
    return out


def _sockets(quantity: Measured, nodes: int) -> Ints:
    """The socket of each NUMA node (by order), _SEVERAL, or _NO_CPUS."""
    out = np.full(nodes, _NO_CPUS, dtype=np.int64)
    for node in range(nodes):
        sockets_of_node = np.unique(quantity.layout.slots[quantity.layout.numa == node, SOCKET])
        if len(sockets_of_node):
            out[node] = sockets_of_node[0] if len(sockets_of_node) == 1 else _SEVERAL
    return out


def _distance(cpu: int, memory: int, sockets: Ints) -> str | None:
    if cpu < 0:
        return None
    if cpu == memory:
        return "own node"
    if sockets[memory] == _NO_CPUS:
        return "node without CPUs"
    return "same socket" if sockets[cpu] == sockets[memory] >= 0 else "other socket"


def of(quantity: Measured, floor: float = 0.0) -> Terms:
    """All points, then each term's sets from coarse to fine; of sets with the same points the first. `floor` is the
    share of the time that matters."""
    known, share = labels(quantity), quantity.model.scale == "share"
    component_types = (WHOLE, *(" x ".join(term) for term in quantity.model.terms))
    all_terms: list[Term] = []
    seen: set[bytes] = set()
    for component_type, term in zip(component_types, ((), *quantity.model.terms), strict=True):
        places: dict[tuple[Key, ...], list[int]] = {}
        for place in range(quantity.size) if set(term) <= set(known) else ():
            keys = [known[label][place] for label in term]
            value = tuple(key for key in keys if key is not None)
            if len(value) == len(term):
                places.setdefault(value, []).append(place)
        for value, of_value in places.items():
            covers = np.array(of_value, dtype=np.int64)
            if covers.tobytes() not in seen:
                seen.add(covers.tobytes())
                where = dict(zip(term, value, strict=True))
                all_terms.append(Term(component_type, quantity.model.term, where, covers, covers[:0]))
    contrast = np.zeros((len(all_terms), quantity.size))
    for row, one_term in zip(contrast, all_terms, strict=True):
        row[one_term.covers] = 1 / len(one_term.covers)
    component_type_of = np.array(
        [component_types.index(one_term.component_type) for one_term in all_terms], dtype=np.int64
    )
    layout = Layout(quantity.layout.slots, np.zeros((0, 2), dtype=np.int64), levels=quantity.layout.levels)
    return Terms(
        layout,
        tuple(all_terms),
        contrast,
        () if share else tuple(_composites(quantity, all_terms, known)),
        component_types,
        component_type_of,
        component_type_of,
        dict(enumerate(component_types)),
        (),
        quantity.model.scale,
        floor,
    )


def _composites(quantity: Measured, terms: Sequence[Term], known: Mapping[str, Sequence[Key | None]]) -> list[Cause]:
    """Single causes that may affect several sets, from coarse to fine. They are the sets that contain others, and
    sockets and CCDs that are not a set."""
    components = [(term.where, term.covers) for term in terms]
    sets = {covers.tobytes() for _, covers in components}
    for label in _COMPOSITES:
        values = known.get(label, ())
        for value in sorted({value for value in values if value is not None}, key=str):
            covers = np.array([place for place, own in enumerate(values) if own == value], dtype=np.int64)
            if covers.tobytes() not in sets:
                sets.add(covers.tobytes())
                components.append(({label: value}, covers))
    is_in = np.zeros((len(terms), quantity.size), dtype=np.float32)
    for row, term in zip(is_in, terms, strict=True):
        row[term.covers] = 1
    sizes = is_in.sum(axis=1)
    out = []
    for where, covers in components:
        members = np.flatnonzero(is_in[:, covers].sum(axis=1) == sizes)
        if len(members) > 1:
            out.append(Cause(quantity.model.term, where, members, covers))
    return sorted(out, key=lambda candidate: -len(candidate.covers))
