"""Latency matrices of machines that are made up: what two CPUs share decides, then the line's home, noise and
accidents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Made:
    """A matrix with its CPUs in order and the true part of every CPU by level; `far_ns` is what two CPUs pay that share
    nothing.
    """

    matrix: Matrix
    parts: Mapping[str, Labels]

    def groups(self, level: str) -> set[frozenset[int]]:
        """The level's groups as sets of CPUs."""
        labels = self.parts[level]
        return {frozenset(np.flatnonzero(labels == part).tolist()) for part in np.unique(labels)}


def made(
    parts: Mapping[str, Sequence[int] | Labels],
    shared_ns: Mapping[str, float],
    far_ns: float,
    *,
    spread: float = 0.02,
    seed: int = 0,
) -> Made:
    """A matrix where two CPUs pay the time of the finest level that they share (`parts` and `shared_ns` from coarse to
    fine).

    `spread` is the standard deviation of the logarithm, with a tail as means over batches have it.
    """
    labels = {level: np.asarray(part, dtype=np.int64) for level, part in parts.items()}
    n = len(next(iter(labels.values())))
    matrix = np.full((n, n), far_ns)
    for level, part in labels.items():
        matrix[part[:, None] == part[None, :]] = shared_ns[level]
    generator = np.random.default_rng(seed)
    noise = spread * (0.8 * generator.standard_normal((n, n)) + 0.2 * generator.standard_t(3, (n, n)))
    matrix = matrix * np.exp(np.triu(noise, 1) + np.triu(noise, 1).T)
    np.fill_diagonal(matrix, np.nan)
    return Made(matrix, labels)


def homed(machine: Made, socket: int, cost_ns: float) -> Made:
    """The same with every line at home in one socket: pairs of CPUs of another one pay `cost_ns` more."""
    outside = machine.parts["socket"] != socket
    pays = outside[:, None] & outside[None, :] & (machine.parts["ccx"][:, None] != machine.parts["ccx"][None, :])
    return Made(np.where(pays, machine.matrix + cost_ns, machine.matrix), machine.parts)


def epyc(
    sockets: int,
    quadrants: int,
    ccxs: int,
    cores: int,
    threads: int = 2,
    *,
    quadrant_steps: bool = True,
    spread: float = 0.02,
    seed: int = 0,
) -> Made:
    """A server of so many parts in each; siblings have the numbers after all first threads. The times are those of the
    generations 2 to 5.
    """
    core = np.tile(np.arange(sockets * quadrants * ccxs * cores), threads)
    parts = {
        "socket": core // (quadrants * ccxs * cores),
        "quadrant": core // (ccxs * cores),
        "ccx": core // cores,
        "smt": core,
    }
    shared = {"socket": 130.0, "quadrant": 112.0 if quadrant_steps else 130.0, "ccx": 24.0, "smt": 9.0}
    machine = made(parts, shared, 215.0, spread=spread, seed=seed)
    if not quadrant_steps:
        return machine
    # Two quadrants of a socket are as far from each other as their places on the die say.
    place = np.array([(0, 0), (0, 1), (1, 0), (1, 1)])[parts["quadrant"] % quadrants % 4]
    steps = np.abs(place[:, None] - place[None, :]).sum(axis=2)
    same = (parts["socket"][:, None] == parts["socket"][None, :]) & (steps > 0)
    return Made(np.where(same, machine.matrix + 8.0 * (steps - 1), machine.matrix), parts)


def mesh(cores: int, threads: int = 1, *, spread: float = 0.02, seed: int = 0) -> Made:
    """A flat machine: latency grows with the distance on a mesh, with no border anywhere."""
    core = np.tile(np.arange(cores), threads)
    side = int(np.ceil(np.sqrt(cores)))
    place = np.stack([core // side, core % side], axis=1)
    steps = np.abs(place[:, None] - place[None, :]).sum(axis=2)
    shared = {"smt": 8.0} if threads > 1 else {"smt": 40.0}
    machine = made({"smt": core}, shared, 38.0, spread=spread, seed=seed)
    far = core[:, None] != core[None, :]
    return Made(np.where(far, machine.matrix + 0.8 * steps, machine.matrix), {"smt": core})


def spoiled(
    machine: Made,
    *,
    noise: float = 0.0,
    spikes: float = 0.0,
    missing: float = 0.0,
    gone: float = 0.0,
    seed: int = 0,
) -> tuple[Matrix, list[int]]:
    """The matrix with multiplicative noise, shares of spikes (2 to 20 times) and of missing cells, without a share of
    the CPUs.

    Returns it with the CPUs that are left.
    """
    generator = np.random.default_rng(seed)
    n = len(machine.matrix)
    factor = np.exp(noise * generator.standard_normal((n, n)))
    factor = np.where(generator.random((n, n)) < spikes, generator.uniform(2, 20, (n, n)), factor)
    factor = np.where(generator.random((n, n)) < missing, np.nan, factor)
    matrix = machine.matrix * (np.triu(factor, 1) + np.triu(factor, 1).T)
    np.fill_diagonal(matrix, np.nan)
    keep = np.sort(generator.choice(n, n - round(gone * n), replace=False))
    return matrix[np.ix_(keep, keep)], keep.tolist()


def with_ports(machine: Made, spread_ns: float, seed: int = 4) -> Matrix:
    """The matrix where each CCX has a cost of its own to everything outside."""
    own = np.random.default_rng(seed).uniform(0, spread_ns, int(machine.parts["ccx"].max()) + 1)[machine.parts["ccx"]]
    same = machine.parts["ccx"][:, None] == machine.parts["ccx"][None, :]
    return np.where(same, machine.matrix, machine.matrix + own[:, None] + own[None, :])
