"""Structure from a latency matrix: which CPUs form cores, CCXs, quadrants and sockets, and whether the labels say the
same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.errors import NodeprintError
from nodeprint.structure import checks
from nodeprint.structure.levels import Partition, detect
from nodeprint.structure.matrices import Labels, Matrix, numbered, rand_index, sizes, symmetrised
from nodeprint.structure.model import Agreement, Finding, FoundLevel, Structure, Symmetry
from nodeprint.structure.source import Source, of_bundle, read
from nodeprint.topology.facts import list_text
from nodeprint.topology.model import Topology

__all__ = ["Agreement", "Finding", "FoundLevel", "Source", "Structure", "Symmetry", "find", "of_bundle", "read"]

RESAMPLES = 5
KEPT, KEPT_OF_MANY = 0.8, 0.7  # of the cores in a resample; of more than MANY the second, which costs less
MANY = 64


def find(
    latency_ns: npt.NDArray[Any],
    cpus: Sequence[int],
    topology: Topology | None = None,
    home_controlled: bool | None = None,
    seed: int = 0,
) -> Structure:
    """Levels of groups in an (n, n) matrix of latencies in ns whose rows are the CPUs `cpus` (OS numbers, any order).

    The matrix may be asymmetric or one triangle; NaN is a missing pair, the diagonal is not looked at. Labels of
    `topology` are compared with what was found and change nothing in it. `home_controlled` says whether the contended
    line's NUMA home was the same policy for every pair, None where this is unknown. `seed` is that of the resampling
    behind `stability`.

    Raises NodeprintError when matrix and CPUs do not fit together.
    """
    values = np.asarray(latency_ns, dtype=np.float64)
    if values.ndim != 2 or values.shape != (len(cpus), len(cpus)) or len(set(cpus)) != len(cpus):
        raise NodeprintError(
            f"a matrix of shape {values.shape} does not fit {len(cpus)} CPUs",
            advice="give one row and one column for each CPU",
        )
    order = np.argsort(cpus)
    matrix = symmetrised(values[np.ix_(order, order)])
    numbers = [int(cpus[i]) for i in order]
    measured = ~np.isnan(matrix).all(axis=1)
    absent = [numbers[i] for i in np.flatnonzero(~measured)]
    matrix, numbers = matrix[np.ix_(measured, measured)], [numbers[i] for i in np.flatnonzero(measured)]

    partitions = detect(matrix)
    stability = _stability(matrix, partitions, seed)
    levels = tuple(
        FoundLevel(
            level.name,
            _groups(level.labels, numbers),
            *_within_between(matrix, partitions, index),
            stability[index],
        )
        for index, level in enumerate(partitions)
    )
    agreed = checks.agreement(partitions, numbers, topology) if topology is not None else ()
    alike = checks.symmetry(matrix, partitions, numbers)
    found = checks.findings(levels, agreed, alike, home_controlled)
    if absent:
        text = f"No pair of CPUs {list_text(absent)} was measured."
        found += (Finding("unmeasured-cpus", "info", text, "Measure them, or leave them out of the matrix."),)
    return Structure(levels, agreed, alike, found)


def _groups(labels: Labels, cpus: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    members: dict[int, list[int]] = {}
    for label, cpu in zip(labels, cpus, strict=True):
        members.setdefault(int(label), []).append(cpu)
    return tuple(tuple(members[label]) for label in sorted(members))


def _within_between(matrix: Matrix, levels: Sequence[Partition], index: int) -> tuple[float, float]:
    """Medians in ns of the pairs that join at this level, and of those that join at the next."""

    def same(level: int) -> npt.NDArray[np.bool_]:
        if level < 0:
            return np.eye(len(matrix), dtype=bool)
        if level >= len(levels):
            return np.ones(matrix.shape, dtype=bool)
        labels = levels[level].labels
        return np.asarray(labels[:, None] == labels[None, :])

    finer, own, coarser = same(index - 1), same(index), same(index + 1)

    def median(pairs: npt.NDArray[np.bool_]) -> float:
        values = matrix[pairs]
        values = values[~np.isnan(values)]
        return float(np.median(values)) if len(values) else float("nan")

    return median(own & ~finer), median(coarser & ~own)


def _stability(matrix: Matrix, levels: Sequence[Partition], seed: int) -> list[float]:
    """Mean adjusted Rand index of each level with the nearest one that is found where some CPUs are left out, threads
    with their core.
    """
    if not levels:
        return []
    generator = np.random.default_rng(seed)
    unit = levels[0].labels if sizes(levels[0].labels).max() <= 2 else np.arange(len(matrix))
    units = int(unit.max()) + 1
    kept = KEPT if units <= MANY else KEPT_OF_MANY
    scores = np.zeros((RESAMPLES, len(levels)))
    for run in range(RESAMPLES):
        keep = np.isin(unit, generator.choice(units, math.ceil(kept * units), replace=False))
        again = detect(matrix[np.ix_(keep, keep)])
        for index, level in enumerate(levels):
            mine = numbered(level.labels[keep])
            scores[run, index] = max((rand_index(mine, other.labels) for other in again), default=0.0)
    return [float(score) for score in scores.mean(axis=0)]
