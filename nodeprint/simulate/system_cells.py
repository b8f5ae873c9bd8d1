"""What a simulated node's pages, page faults, wake-ups and barriers are: cells as the kernels write them.

Figures are assumptions of the size that servers have: a walk through page tables adds 40 % to a load from memory, a
fault of a base page takes 0.5 us and one of 2 MiB 100 us, a core leaves C1 in 3 us and a deep state in 40 us.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodeprint.data.layout import Ints
from nodeprint.data.quantity import Key
from nodeprint.simulate.defects import NodeDefects

Floats = npt.NDArray[np.float64]

MEASUREMENTS = ("chase-pages", "fault-rate", "fault-huge", "wake-futex", "barrier-all")

_WALK = {"base": 1.4, "huge": 1.0}
_FAULTS_PER_S = {"base": 2e6, "thp": 1e4}
_WAKE_NS = {"shallow": 3e3, "deep": 40e3}
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
    cores: Cores, own_latency_ns: Floats, fabric: float, memories: Sequence[int], state: NodeDefects, *,
    seeds: tuple[int, int, int, int], passes: int,
) -> list[Cells]:  # fmt: skip
    """One run of each of MEASUREMENTS. `own_latency_ns` is each core's to its own memory (core), `fabric` how much
    longer the fabric takes than usual, `seeds` are those of the campaign, node, job and run."""
    rng = np.random.default_rng([*seeds, 9])

    def seen(truth: Floats) -> Floats:
        noise = _RUN * rng.standard_normal() + _CELL * rng.standard_normal(truth.shape)
        return np.asarray(truth * (1 + noise) * (1 + _PASS * rng.standard_normal((passes, *truth.shape))))

    of_node, of_ccx = _firsts(cores.node), _firsts(cores.ccx)
    wakes = np.outer(1 / cores.clock[of_ccx], list(_WAKE_NS.values()))
    wakes[:, 1] *= state.idle_state
    fragments = np.array([state.fragmented.get(number, 0.0) for number in memories])
    return [
        Cells(
            "chase-pages", {"cpu": _cpus(cores, of_node), "pages": list(_WALK)},
            seen(np.outer(own_latency_ns[of_node], list(_WALK.values()))),
        ),
        Cells(
            "fault-rate", {"cpu": list(cores.cpu), "pages": list(_FAULTS_PER_S)},
            seen(np.outer(cores.clock, list(_FAULTS_PER_S.values()))),
        ),
        Cells("fault-huge", {"memory_node": list(memories)}, np.broadcast_to(fragments, (passes, len(memories)))),
        Cells("wake-futex", {"cpu": _cpus(cores, of_ccx), "depth": list(_WAKE_NS)}, seen(wakes)),
        Cells(
            "barrier-all",
            {"cpu": _cpus(cores, of_ccx), "scope": ["ccx", "socket", "machine"], "kind": ["counter", "tree"]},
            seen(_barriers(cores, of_ccx, fabric)),
        ),
    ]  # fmt: skip


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
