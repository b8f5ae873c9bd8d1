"""Detect cores, CCXs, quadrants and sockets in a latency matrix, and compare them with the topology labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.model import Topology
from nodeprint.structure import label_agreement, matrix_checks
from nodeprint.structure.found import FoundLevel, LabelAgreement, PairClass, Structure, StructureFinding, Symmetry
from nodeprint.structure.levels import Detected, detect, levels_of_cores
from nodeprint.structure.matrix_arithmetic import Labels, Matrix, averaged, numbered, positive, rand_index
from nodeprint.structure.pair_classes import pair_classes
from nodeprint.structure.siblings import sibling_labels

__all__ = [
    "FoundLevel",
    "LabelAgreement",
    "PairClass",
    "Structure",
    "StructureFinding",
    "Symmetry",
    "find",
    "with_repetitions",
]

RESAMPLES = 5
LEAST_STABILITY = 0.5  # less stable levels are omitted: their groups depend on which cores are sampled
KEPT = 0.8  # share of each finest group's cores in a resample, at least two


def find(
    ns: npt.NDArray[Any],
    cpus: Sequence[int],
    topology: Topology | None = None,
    home_controlled: bool | None = None,
    seed: int = 0,
) -> Structure:
    """Detect the levels of an (n, n) matrix of latencies in ns.

    The rows are the CPUs `cpus` (OS numbers, any order). The matrix may be asymmetric or triangular; NaN marks a
    missing pair, and the diagonal is ignored. The labels of `topology` are compared with the result and do not
    influence it. `home_controlled` is whether the contended line had the same NUMA home policy for every pair, None if
    unknown. `seed` sets the resampling behind `stability`.

    Raises NodeprintError if matrix and CPUs do not match.
    """
    values = np.asarray(ns, dtype=np.float64)
    if values.ndim != 2 or values.shape != (len(cpus), len(cpus)) or len(set(cpus)) != len(cpus):
        raise NodeprintError(
            f"a matrix of shape {values.shape} does not fit {len(cpus)} CPUs",
            advice="give one row and one column for each CPU",
        )
    order = np.argsort(cpus)
    values = positive(values if np.array_equal(order, np.arange(len(order))) else values[np.ix_(order, order)])
    matrix = averaged(values)
    numbers = [int(cpus[i]) for i in order]
    measured = ~np.isnan(matrix).all(axis=1)
    absent = [numbers[i] for i in np.flatnonzero(~measured)]
    if absent:
        matrix, values = matrix[np.ix_(measured, measured)], values[np.ix_(measured, measured)]
        numbers = [numbers[i] for i in np.flatnonzero(measured)]

    detected = detect(matrix)
    stability = _stability(matrix, detected, seed)
    names = (level.name for level in detected.levels)
    kept = [name == "smt" or share >= LEAST_STABILITY for name, share in zip(names, stability, strict=True)]
    left_out = list(compress(detected.levels, (not is_kept for is_kept in kept)))
    partitions, stability = list(compress(detected.levels, kept)), list(compress(stability, kept))
    classes = pair_classes(matrix, partitions)
    levels = tuple(
        FoundLevel(level.name, _groups(level.labels, numbers), classes[index], classes[index + 1], stability[index])
        for index, level in enumerate(partitions)
    )
    agreed: tuple[LabelAgreement, ...] = ()
    findings = matrix_checks.cell_findings(values, numbers, partitions)
    exchanged: tuple[tuple[int, int], ...] = ()
    if topology is not None:
        agreed = label_agreement.agreement(partitions, numbers, topology)
        exchanged = label_agreement.exchanges(partitions, numbers, topology, agreed)
        findings += matrix_checks.lacking(numbers, topology)
        hidden = next((item for item in agreed if item.level == "smt" and item.relation == "not found"), None)
        if hidden and (far := matrix_checks.siblings_not_nearest(matrix, numbers, topology)):
            agreed, findings = tuple(item for item in agreed if item is not hidden), (*findings, far)
    alike = matrix_checks.symmetry(matrix, partitions, numbers)
    findings += matrix_checks.findings(levels, agreed, alike, home_controlled, exchanged)
    findings += matrix_checks.unsure(left_out)
    if absent:
        findings += (StructureFinding.of("unmeasured-cpus", "info", cpus=list_text(absent)),)
    findings = tuple(sorted(findings, key=lambda finding: ("warning", "info").index(finding.severity)))
    return Structure(levels, agreed, alike, findings)


def with_repetitions(structure: Structure, differing: str) -> Structure:
    """Return the structure with a leading warning if runs or passes differ."""
    if not differing:
        return structure
    finding = StructureFinding.of("repetitions-differ", "warning", repetitions=differing)
    return replace(structure, findings=(finding, *structure.findings))


def _groups(labels: Labels, cpus: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    members: dict[int, list[int]] = {}
    for label, cpu in zip(labels, cpus, strict=True):
        members.setdefault(int(label), []).append(cpu)
    return tuple(tuple(members[label]) for label in sorted(members))


def _most_of_each(groups: Labels, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw the share KEPT of every finest group: losing a whole group could change a coarser level."""
    shuffled = generator.permutation(len(groups))
    kept = []
    for group in range(int(groups.max()) + 1):
        rows = shuffled[groups[shuffled] == group]
        kept.append(rows[: max(2, math.floor(KEPT * len(rows)))])
    return np.sort(np.concatenate(kept))


def _stability(matrix: Matrix, detected: Detected, seed: int) -> list[float]:
    """Mean adjusted Rand index of each level with its best match among the levels of each resample."""
    if not detected.levels:
        return []
    generator = np.random.default_rng(seed)
    cores = len(detected.between_cores)
    threads = detected.threads.max() > 1
    core_of = detected.levels[0].labels if threads else np.arange(cores)
    finest = detected.of_cores[0].labels if detected.of_cores else np.zeros(cores, dtype=np.int64)
    scores = np.zeros((RESAMPLES, len(detected.levels)))
    first = int(threads)
    for run in range(RESAMPLES):
        keep = _most_of_each(finest, generator)
        again = levels_of_cores(detected.between_cores[np.ix_(keep, keep)], detected.threads[keep])
        for index, level in enumerate(detected.of_cores):
            own = numbered(level.labels[keep])
            scores[run, first + index] = max((rand_index(own, resampled.labels) for resampled in again), default=0.0)
        if threads:
            cpus = np.flatnonzero(np.isin(core_of, keep))
            siblings = sibling_labels(matrix[np.ix_(cpus, cpus)])
            scores[run, 0] = 0.0 if siblings is None else rand_index(numbered(core_of[cpus]), siblings)
    return [float(score) for score in scores.mean(axis=0)]
