"""What a simulated node's pages, page faults, wake-ups and barriers are: cells as the kernels write them.

Figures are assumptions of the size that servers have: a walk through page tables adds 40 % to a load from memory.
What a kernel's file gives values for (`simulated` in measurements.yaml) is drawn from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.data.places.quantity import Key
from nodeprint.settings.measurements import Measurement, Simulated, measurements
from nodeprint.simulate.defects import NodeDefects

Floats = npt.NDArray[np.float64]

_WALK = {"base": 1.4, "huge": 1.0}
#: A barrier of so many cores by a counter, whose line visits all, and by a tree: ns a core, and ns a level of the tree.
_COUNTER_NS, _LEVEL_NS, _FAN = 60.0, 250.0, 4
#: Relative standard deviations: between runs, of a cell in a run, of a pass of it.
_RUN, _CELL, _PASS = 0.005, 0.005, 0.006


@dataclass(frozen=True)
class Cores:
    """The cores of a node: the `cpu` of each, its `node`, `ccx` and `socket` by number (core), and its `clock` as a
    share of the usual one."""

    cpu: Sequence[int]
    node: Ints
    ccx: Ints
    socket: Ints
    clock: Floats


@dataclass(frozen=True)
class Cells:
    """A run's values (pass, a dimension each of `coordinates`) of one measurement."""

    measurement: str
    coordinates: dict[str, list[Key]]
    values: Floats


def draw(
    cores: Cores,
    own_latency_ns: Floats,
    fabric: float,
    memories: Sequence[int],
    state: NodeDefects,
    *,
    seeds: tuple[int, int, int, int],
    passes: int,
) -> list[Cells]:
    """One run of each of `MEASUREMENTS`, in their order. `own_latency_ns` is each core's to its own memory (core),
    `fabric` how much longer the fabric takes than usual, `seeds` are those of the campaign, node, job and run."""
    rng = np.random.default_rng([*seeds, 9])

    def seen(truth: Floats) -> Floats:
        noise = _RUN * rng.standard_normal() + _CELL * rng.standard_normal(truth.shape)
        return np.asarray(truth * (1 + noise) * (1 + _PASS * rng.standard_normal((passes, *truth.shape))))

    def modelled(measurement: str) -> Cells:
        if measurement == "chase-pages":
            firsts = _firsts(cores.node)
            walks = np.outer(own_latency_ns[firsts], list(_WALK.values()))
            return Cells(measurement, {"cpu": _cpus(cores, firsts), "pages": list(_WALK)}, seen(walks))
        if measurement == "fault-huge":
            fragments = np.array([state.fragmented.get(number, 0.0) for number in memories])
            values = np.broadcast_to(fragments, (passes, len(memories)))
            return Cells(measurement, {"memory_node": list(memories)}, values)
        firsts = _firsts(cores.ccx)
        dims: dict[str, list[Key]] = {"scope": ["ccx", "socket", "machine"], "kind": ["counter", "tree"]}
        return Cells(measurement, {"cpu": _cpus(cores, firsts), **dims}, seen(_barriers(cores, firsts, fabric)))

    out = []
    for name in MEASUREMENTS:
        of = measurements()[name]
        if of.simulated is None:
            out.append(modelled(name))
        else:
            coordinates, values = _declared(of, of.simulated, cores, state)
            out.append(Cells(name, coordinates, seen(values)))
    return out


#: What the models of this module make; all others are as the kernels' files say.
_MODELLED = ("chase-pages", "fault-huge", "barrier-all")
#: What `draw` gives.
MEASUREMENTS = tuple(name for name, of in measurements().items() if of.simulated is not None or name in _MODELLED)


def _declared(
    of: Measurement, simulated: Simulated, cores: Cores, state: NodeDefects
) -> tuple[dict[str, list[Key]], Floats]:
    """The coordinates and values of a measurement (CPU, a dimension of words each) as its kernel's file has them, with
    the node's defects."""
    part = {"core": np.arange(len(cores.cpu)), "ccx": cores.ccx, "node": cores.node}[simulated.each]
    firsts = _firsts(part)
    rising = of.model is not None and of.model.better == "higher"
    clock = (cores.clock[firsts] if rising else 1 / cores.clock[firsts]) if simulated.clock else np.ones(len(firsts))
    values = simulated.value * clock
    for factors in simulated.words.values():
        values = np.multiply.outer(values, list(factors.values()))
    for defect in state.of_cells:
        if defect.name not in simulated.defects:
            continue
        here = np.ones(len(firsts), dtype=np.bool_) if defect.core is None else part[firsts] == part[defect.core]
        words = simulated.defects[defect.name]
        chosen = [[not words or word in words for word in factors] for factors in simulated.words.values()]
        values[np.ix_(here, *map(np.array, chosen))] *= defect.by
    return {"cpu": _cpus(cores, firsts), **{dim: list(factors) for dim, factors in simulated.words.items()}}, values


def _firsts(part: Ints) -> list[int]:
    """The first core of each part."""
    return [int(core) for core in np.unique(part, return_index=True)[1]]


def _cpus(cores: Cores, which: Sequence[int]) -> list[Key]:
    return [cores.cpu[core] for core in which]


def _barriers(cores: Cores, firsts: Sequence[int], fabric: float) -> Floats:
    """(first core of a CCX, scope, kind) in ns, NaN where no such group begins at the core."""
    out = np.full((len(firsts), 3, 2), np.nan)
    one_group = np.zeros_like(cores.ccx)
    former = dict.fromkeys(firsts, 1)
    for scope, part in enumerate((cores.ccx, cores.socket, one_group)):
        for row, first in enumerate(firsts):
            count = int((part == part[first]).sum())
            begins = int(np.flatnonzero(part == part[first])[0]) == first
            if begins and count > former[first]:
                levels = np.ceil(np.log(count) / np.log(_FAN))
                out[row, scope] = np.array([_COUNTER_NS * count, _LEVEL_NS * levels]) * (fabric if scope else 1.0)
            former[first] = count
    return out
