"""Medians of the pairs that join at a level, apart where their parts differ."""

from __future__ import annotations

import numpy as np
import pytest

from nodeprint import structure
from nodeprint.report.text import structure_sentences
from nodeprint.structure.found import PairClass
from tests.support.latencies import Made, epyc, homed, made


def parts(classes: tuple[PairClass, ...]) -> dict[str, float]:
    return {pairs.part: pairs.median_ns for pairs in classes}


def test_sockets_that_differ_have_a_median_each() -> None:
    machine = homed(epyc(2, 4, 2, 4, 1, quadrant_steps=False), 0, 90.0)
    result = structure.find(machine.matrix, range(64))
    _, socket = result.levels
    assert parts(socket.within) == pytest.approx({"socket 0": 130.0, "socket 1": 220.0}, rel=0.02)
    assert parts(socket.between) == pytest.approx({"": 215.0}, rel=0.02)
    count = 64 * 63 // 2
    assert (
        sum(pairs.pairs for of in (*(level.within for level in result.levels), socket.between) for pairs in of) == count
    )
    text = structure_sentences.structure_summary(result)
    assert text.startswith("16 groups of 4 CPUs: 24") and "on socket 0 and" in text and "(1.7 times)" in text
    assert text.endswith("One socket is slower: most likely the home of the line.")


def test_sockets_that_are_alike_have_one() -> None:
    result = structure.find(epyc(2, 4, 2, 4, 1, quadrant_steps=False).matrix, range(64))
    assert [set(parts(level.within)) for level in result.levels] == [{""}, {""}]
    assert "slower" not in structure_sentences.structure_summary(result)


def test_parts_that_are_alike_are_named_together() -> None:
    machine = made({"group": [0, 0, 0, 1, 1, 1, 2, 2, 2]}, {"group": 40.0}, 145.0, spread=0.01)
    matrix = machine.matrix.copy()
    matrix[:3, :3] *= 1.3
    (level,) = structure.find(matrix, range(9)).levels
    assert parts(level.within) == pytest.approx({"group 0": 52.0, "groups 1 and 2": 40.0}, rel=0.02)


def test_a_gradient_has_no_kinds() -> None:
    """Forty pairs of cores whose medians lie on a line: one figure, and no list of pairs."""
    machine = made({"group": np.arange(80) // 2}, {"group": 80.0}, 160.0, spread=0.01)
    step = 1 + 0.2 * (machine.parts["group"] / 40)
    same = machine.parts["group"][:, None] == machine.parts["group"][None, :]
    (level,) = structure.find(np.where(same, machine.matrix * step[:, None], machine.matrix), range(80)).levels
    assert set(parts(level.within)) == {""}


def test_groups_that_other_cores_do_not_show_are_no_level() -> None:
    """A ring of eight cores, of which a few pairs are a little nearer."""
    generator = np.random.default_rng(4)
    noise = np.exp(np.triu(generator.normal(0, 0.01, (8, 8)), 1))
    matrix = np.triu(20.5 * noise, 1)
    matrix[[0, 2, 3, 2], [1, 3, 4, 4]] = 18.2
    result = structure.find(matrix + matrix.T, range(8))
    assert result.levels == ()


def test_cores_without_threads_are_counted_as_cpus() -> None:
    machine = made({"ccx": np.arange(16) // 8}, {"ccx": 24.0}, 110.0)
    assert structure_sentences.structure_summary(structure.find(machine.matrix, range(16))).startswith(
        "2 groups of 8 CPUs: 2"
    )


def hybrid(cluster_ns: float, *, performance: int = 4, clusters: int = 2) -> Made:
    """Cores with two threads beside clusters of four with one."""
    kinds = np.concatenate([np.repeat(np.arange(performance), 2), performance + np.repeat(np.arange(clusters), 4)])
    core = np.concatenate([np.repeat(np.arange(performance), 2), performance + np.arange(4 * clusters)])
    efficient = kinds >= performance
    machine = made({"group": kinds, "smt": core}, {"group": cluster_ns, "smt": 4.5}, 36.0, spread=0.01)
    both = efficient[:, None] & efficient[None, :] & (kinds[:, None] != kinds[None, :])
    return Made(np.where(both, machine.matrix * 44 / 36, machine.matrix), machine.parts)


@pytest.mark.parametrize("cluster_ns", [50.0, 30.0])
def test_clusters_of_cores_without_threads(cluster_ns: float) -> None:
    """Also where their cores are farther from each other than from those of the other cluster."""
    machine = hybrid(cluster_ns)
    result = structure.find(machine.matrix, range(16))
    assert {level.name: {frozenset(group) for group in level.groups} for level in result.levels} == {
        name: machine.groups(name) for name in ("smt", "group")
    }
    assert parts(result.levels[1].within) == pytest.approx({"": cluster_ns}, rel=0.02)
    assert parts(result.levels[1].between)["cores with one thread"] == pytest.approx(44.0, rel=0.02)


@pytest.mark.parametrize(("performance", "clusters"), [(2, 2), (4, 6), (2, 4)])
def test_few_cores_with_threads(performance: int, clusters: int) -> None:
    """A fifth of the CPUs have siblings on a processor of two fast and sixteen small cores."""
    machine = hybrid(50.0, performance=performance, clusters=clusters)
    smt = structure.find(machine.matrix, range(len(machine.matrix))).level("smt")
    assert smt is not None and {frozenset(group) for group in smt.groups} == machine.groups("smt")


@pytest.mark.parametrize("seed", range(20))
def test_few_pairs_that_are_near_by_chance_are_no_threads(seed: int) -> None:
    generator = np.random.default_rng(seed)
    noise = np.exp(np.triu(generator.normal(0, 0.25, (24, 24)), 1))
    matrix = np.triu(16.0 * noise, 1)
    assert structure.find(matrix + matrix.T, range(24)).level("smt") is None
