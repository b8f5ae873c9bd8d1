"""Pages, page faults, wake-ups and barriers of a simulated node: cells as the kernels write them.

Values are assumptions typical of servers: a walk through page tables adds 40% to a load from memory. Values in a
kernel's file (`simulated` in measurements.yaml) take precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import CCD, Ints
from nodeprint.data.places.measured import Key, models
from nodeprint.settings.measurements import Measurement, Simulated, measurements
from nodeprint.simulate.drawn_run import DrawnRun, Floats, statistics
from nodeprint.simulate.memory_cells import latency
from nodeprint.simulate.silicon import latency as hop_latency
from nodeprint.simulate.simulated_node import NodeRun

#: The coordinates of cells by dimension, and their true values (a dimension each).
Cells = tuple[dict[str, list[Key]], Floats]

#: How many times as long a load from memory takes by the pages that it is in.
_WALK = {"base": 1.4, "huge": 1.0}
#: A barrier by a counter, whose line visits all cores (ns a core), and by a tree (ns a level, branching factor).
_COUNTER_NS, _LEVEL_NS, _FAN = 60.0, 250.0, 4
#: Relative standard deviations: between runs, of a cell in a run, of a pass of it.
_RUN, _CELL, _PASS = 0.005, 0.005, 0.006


def draw(of: NodeRun) -> list[DrawnRun]:
    """One run of each of `MEASUREMENTS`, in their order."""
    rng = np.random.default_rng([*of.seeds, 9])
    of_pairs = np.random.default_rng([*of.seeds, 10])  # its own: with more draws the same seed gives another fleet
    known = measurements()
    return [_drawn(known[name], name, of, of_pairs if _is_of_pairs(known[name]) else rng) for name in MEASUREMENTS]


def _is_of_pairs(measurement: Measurement) -> bool:
    return measurement.simulated is not None and measurement.simulated.each == "pair"


def _drawn(measurement: Measurement, name: str, of: NodeRun, rng: np.random.Generator) -> DrawnRun:
    """A run of a measurement, with the noise of runs and passes."""
    if measurement.simulated is not None:
        coordinates, truth = _declared(measurement.simulated, measurement, of)
    else:
        coordinates, truth = _MODELED[name](of)
    if name == "fault-huge":  # a state of the memory, which every pass sees alike
        values = np.broadcast_to(truth, (of.passes, *truth.shape))
    else:
        noise = _RUN * rng.standard_normal() + _CELL * rng.standard_normal(truth.shape)
        values = truth * (1 + noise) * (1 + _PASS * rng.standard_normal((of.passes, *truth.shape)))
    key = models()[name].value
    by_key = statistics(values) if key == "latency_ns" else {key: (measurement.unit, values)}
    return DrawnRun(name, coordinates, by_key)


def _declared(simulated: Simulated, measurement: Measurement, of: NodeRun) -> Cells:
    """A measurement (CPU, a dimension of words each) as its kernel's file has it, with the node's defects."""
    if simulated.each == "pair":
        return _of_pairs(simulated, measurement, of)
    ccx = of.node.path.ccx_of_core
    part = {"core": np.arange(len(of.cpu_of_core)), "ccx": ccx, "node": of.memory_of_core}[simulated.each]
    firsts = _firsts(part)
    rising = measurement.model is not None and measurement.model.better == "higher"
    clock = (of.clock[firsts] if rising else 1 / of.clock[firsts]) if simulated.clock else np.ones(len(firsts))
    values = _by_words(simulated, simulated.value * clock)
    for (name, core), factor in of.node.state.of_cells.items():
        here = np.ones(len(firsts), dtype=np.bool_) if core is None else part[firsts] == part[core]
        _plant(simulated, name, factor, here, values)
    return {"cpu": _cpus(of, firsts), **{dim: list(factors) for dim, factors in simulated.words.items()}}, values


def _by_words(simulated: Simulated, values: Floats) -> Floats:
    """The values (n) by the words of the other dimensions (n, a dimension each)."""
    for factors in simulated.words.values():
        values = np.multiply.outer(values, list(factors.values()))
    return values


def _plant(simulated: Simulated, name: str, factor: float, here: npt.NDArray[np.bool_], values: Floats) -> None:
    """Change the `values` of a defect `here` if the measurement has it, and of its words only."""
    if name in simulated.defects:
        words = simulated.defects[name]
        chosen = [
            [not of_dim or word in of_dim for word in factors]
            for factors in simulated.words.values()
            for of_dim in [set(words) & set(factors)]
        ]
        values[np.ix_(here, *map(np.array, chosen))] *= factor


def _of_pairs(simulated: Simulated, measurement: Measurement, of: NodeRun) -> Cells:
    """The first core and one other of each closeness (a, b, closeness, a dimension of words each); else NaN."""
    hops = _closest(of)
    hop_ns = np.array([hop for _, hop in hops.values()])
    rising = measurement.model is not None and measurement.model.better == "higher"
    values = _by_words(simulated, simulated.value / hop_ns if rising else simulated.value * hop_ns)
    partners = [core for core, _ in hops.values()]
    for (name, core), factor in of.node.state.of_cells.items():
        _plant(simulated, name, factor, np.array([core in (None, 0, partner) for partner in partners]), values)
    out = np.full((1, len(hops), *values.shape), np.nan)
    for at in range(len(hops)):
        out[0, at, at] = values[at]
    words: dict[str, list[Key]] = {dim: list(factors) for dim, factors in simulated.words.items()}
    return {"a": _cpus(of, [0]), "b": _cpus(of, partners), "closeness": list(hops), **words}, out


def _closest(of: NodeRun) -> dict[Key, tuple[int, float]]:
    """The first other core of each closeness to the first one, and their core-to-core latency in ns."""
    path = of.node.path
    ccd = path.layout.slots[path.core_slots, CCD]
    hop_ns = hop_latency(path, of.node.chip)
    out: dict[Key, tuple[int, float]] = {}
    for pair in np.flatnonzero((path.core_a == 0) & ~path.in_core).tolist():
        other = int(path.core_b[pair])
        near = "same_die" if ccd[other] == ccd[0] >= 0 else "same_socket"
        closeness = "same_l3" if path.in_ccx[pair] else "other_socket" if path.cross[pair] else near
        out.setdefault(closeness, (other, float(hop_ns[pair])))
    return out


def _walks(of: NodeRun) -> Cells:
    """Loads from a core's own memory by the pages that it is in, for a core of each NUMA node."""
    firsts = _firsts(of.memory_of_core)
    own_latency_ns = latency(of)[firsts, of.memory_of_core[firsts]]
    return {"cpu": _cpus(of, firsts), "pages": list(_WALK)}, np.outer(own_latency_ns, list(_WALK.values()))


def _fragments(of: NodeRun) -> Cells:
    """The share of each NUMA node's memory that is in pieces."""
    fragmented = of.node.state.fragmented
    return {"memory_node": list(of.memories)}, np.array([fragmented.get(number, 0.0) for number in of.memories])


def _barriers(of: NodeRun) -> Cells:
    """Barriers of the cores of a CCX, a socket and the machine in ns: (first core of a CCX, scope, kind).

    NaN if no such group begins at the core."""
    ccx = of.node.path.ccx_of_core
    firsts, fabric = _firsts(ccx), float(np.mean(of.node.chip.fabric))
    out = np.full((len(firsts), 3, 2), np.nan)
    one_group = np.zeros_like(ccx)
    former = dict.fromkeys(firsts, 1)
    for scope, part in enumerate((ccx, of.socket_of_core, one_group)):
        for row, first in enumerate(firsts):
            count = int((part == part[first]).sum())
            begins = int(np.flatnonzero(part == part[first])[0]) == first
            if begins and count > former[first]:
                levels = np.ceil(np.log(count) / np.log(_FAN))
                out[row, scope] = np.array([_COUNTER_NS * count, _LEVEL_NS * levels]) * (fabric if scope else 1.0)
            former[first] = count
    dims: dict[str, list[Key]] = {"scope": ["ccx", "socket", "machine"], "kind": ["counter", "tree"]}
    return {"cpu": _cpus(of, firsts), **dims}, out


def _firsts(part: Ints) -> list[int]:
    """The first core of each part."""
    return [int(core) for core in np.unique(part, return_index=True)[1]]


def _cpus(of: NodeRun, cores: Sequence[int]) -> list[Key]:
    return [of.cpu_of_core[core] for core in cores]


#: Measurements with a model in this module; the kernels' files define all others.
_MODELED: Mapping[str, Callable[[NodeRun], Cells]] = {
    "chase-pages": _walks,
    "fault-huge": _fragments,
    "barrier-all": _barriers,
}
#: What `draw` gives.
MEASUREMENTS = tuple(name for name, of in measurements().items() if of.simulated is not None or name in _MODELED)
