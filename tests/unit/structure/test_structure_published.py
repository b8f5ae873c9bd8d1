"""Structure of published matrices, whole and spoiled. Runs where NODEPRINT_DATA names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodeprint import structure
from nodeprint.structure.matrix_arithmetic import numbered, rand_index
from tests.support import published
from tests.support.latencies import Made, Matrix, spoiled

NAMES = [*published.CHOSEN_ON, *published.HELD_OUT]


@pytest.fixture
def folder(data: Path) -> Path:
    return data / "c2c" / "core-to-core-latency"


def held_against(machine: Made, matrix: Matrix, cpus: list[int]) -> tuple[dict[str, float], set[str], set[str]]:
    """The adjusted Rand index of every level that is there, levels that are not and were found, and ids of findings."""
    result = structure.find(matrix, cpus)
    scores = dict.fromkeys(machine.parts, 0.0)
    place = {cpu: i for i, cpu in enumerate(cpus)}
    invented: set[str] = set()
    for level in result.levels:
        if level.name not in machine.parts:
            invented.add(level.name)
            continue
        labels = np.empty(len(cpus), dtype=np.int64)
        for number, group in enumerate(level.groups):
            labels[[place[cpu] for cpu in group]] = number
        scores[level.name] = rand_index(numbered(labels), numbered(machine.parts[level.name][cpus]))
    return scores, invented, {finding.id for finding in result.findings}


@pytest.mark.parametrize("name", NAMES)
def test_whole_matrices(folder: Path, name: str) -> None:
    machine = published.machine(folder, name)
    scores, invented, findings = held_against(machine, machine.matrix, list(range(len(machine.matrix))))
    assert set(scores.values()) <= {1.0}
    assert not invented
    assert ("home-artefact" in findings) == (name in published.ARTEFACT)
    assert ("flat" in findings) == (not machine.parts)


@pytest.mark.parametrize("name", NAMES)
def test_no_figure_that_no_pair_has(folder: Path, name: str) -> None:
    """A third of the pairs of a class, and a pair of each, are within 10% of its median."""
    matrix = published.machine(folder, name).matrix
    pairs = matrix[np.triu_indices(len(matrix), 1)]
    for level in structure.find(matrix, range(len(matrix))).levels:
        for of_class in (*level.within, *level.between):
            near = int((np.abs(pairs / of_class.median_ns - 1) <= 0.1).sum())
            assert near >= max(1, of_class.pairs / 3 if of_class.pairs >= 8 else 1), of_class


@pytest.mark.parametrize("name", NAMES)
def test_shuffled_rows(folder: Path, name: str) -> None:
    machine = published.machine(folder, name)
    order = np.random.default_rng(1).permutation(len(machine.matrix))
    shuffled = Made(machine.matrix[np.ix_(order, order)], {k: v[order] for k, v in machine.parts.items()})
    scores, _, findings = held_against(shuffled, shuffled.matrix, list(range(len(order))))
    assert set(scores.values()) <= {1.0}
    assert ("home-artefact" in findings) == (name in published.ARTEFACT)


SPOILED = {
    "noise": {"noise": 0.1},
    "spikes and missing pairs": {"spikes": 0.01, "missing": 0.01},
    "missing CPUs": {"gone": 0.1},
    "all": {"noise": 0.1, "spikes": 0.01, "missing": 0.01, "gone": 0.1},
}


@pytest.mark.parametrize("how", SPOILED)
@pytest.mark.parametrize("name", NAMES)
def test_ccx_and_socket_of_spoiled_matrices(folder: Path, name: str, how: str) -> None:
    machine = published.machine(folder, name)
    for seed in range(2):
        matrix, cpus = spoiled(machine, seed=seed, **SPOILED[how])
        scores, invented, findings = held_against(machine, matrix, cpus)
        assert {scores.get(level, 1.0) for level in ("ccx", "socket")} == {1.0}
        assert not invented & {"ccx", "socket", "half"}
        assert ("home-artefact" in findings) == (name in published.ARTEFACT)


@pytest.mark.parametrize("how", ["spikes and missing pairs", "missing CPUs"])
def test_siblings_and_quadrants_of_spoiled_matrices(folder: Path, how: str) -> None:
    pairs = right = 0
    for name in NAMES:
        machine = published.machine(folder, name)
        matrix, cpus = spoiled(machine, seed=4, **SPOILED[how])
        if "quadrant" in machine.parts:
            assert held_against(machine, matrix, cpus)[0]["quadrant"] == 1
        if "smt" in machine.parts:
            core = machine.parts["smt"]
            level = structure.find(matrix, cpus).level("smt")
            assert level is not None
            known = {frozenset(np.flatnonzero(core == c).tolist()) & set(cpus) for c in np.unique(core)}
            known = {group for group in known if len(group) == 2}
            pairs += len(known)
            right += len(known & {frozenset(group) for group in level.groups})
    assert right >= 0.95 * pairs
