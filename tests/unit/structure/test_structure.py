"""What structure finds in matrices of made-up and of published machines, and what it must not find."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from nodeprint import structure
from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.model import Cpu, Machine, Topology
from nodeprint.readers import campaign_writer, matrix_file
from nodeprint.structure.matrix_arithmetic import SortedCells, averaged, numbered, positive, rand_index
from tests.support.latencies import Made, Matrix, epyc, homed, made, mesh, spoiled, with_ports
from tests.support.made_records import TRAILER, header, lines, pair
from tests.support.strange_matrices import LEVELS, MILAN, ROME, packages


def found(matrix: Matrix, cpus: Iterable[int] | None = None, **options: object) -> dict[str, set[frozenset[int]]]:
    """Groups of every level by name."""
    numbers = list(range(len(matrix)) if cpus is None else cpus)
    result = structure.find(matrix, numbers, **options)  # type: ignore[arg-type]
    return {level.name: {frozenset(group) for group in level.groups} for level in result.levels}


def without(groups: set[frozenset[int]], left: Iterable[int]) -> set[frozenset[int]]:
    """The groups as far as their CPUs are left."""
    there = frozenset(left)
    return {group & there for group in groups} - {frozenset()}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_of_machines(name: str) -> None:
    machine, levels = LEVELS[name]
    assert found(machine.matrix) == {level: machine.groups(level) for level in levels}


@pytest.mark.parametrize("sizes", [(4, 4, 4), (4, 5, 5), (5, 5, 5), (6, 6), (4, 6, 6)])
@pytest.mark.parametrize(("inside", "across"), [(17.0, 90.0), (26.0, 125.0), (39.0, 110.0)])
def test_clusters_of_a_soc_have_one_name(sizes: tuple[int, ...], inside: float, across: float) -> None:
    """Apple's had three names: CCXs by a fast cache, sockets by five cores each 100 ns apart, and groups."""
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    machine = made({"group": cluster}, {"group": inside}, across, spread=0.03)
    assert set(found(machine.matrix)) == {"group"}


@pytest.mark.parametrize("name", ["rome", "milan", "genoa without threads", "two xeons", "harvested"])
@pytest.mark.parametrize("seed", range(3))
def test_ccx_and_socket_in_spoiled_matrices(name: str, seed: int) -> None:
    machine, levels = LEVELS[name]
    matrix, cpus = spoiled(machine, noise=0.1, spikes=0.01, missing=0.01, gone=0.1, seed=seed)
    groups = found(matrix, cpus)
    for level in ("ccx", "socket"):
        if level in levels:
            assert groups[level] == without(machine.groups(level), cpus)
        else:
            assert level not in groups


@pytest.mark.parametrize("name", ["rome", "milan", "two xeons", "xeon"])
def test_siblings_in_spoiled_matrices(name: str) -> None:
    machine, _ = LEVELS[name]
    matrix, cpus = spoiled(machine, spikes=0.01, missing=0.01, gone=0.1, seed=3)
    pairs = {pair for pair in without(machine.groups("smt"), cpus) if len(pair) == 2}
    mine = {pair for pair in found(matrix, cpus)["smt"] if len(pair) == 2}
    assert len(pairs & mine) >= 0.95 * len(pairs)
    assert len(mine - pairs) <= 0.05 * len(pairs)


@pytest.mark.parametrize("seed", range(5))
def test_flat_machines_have_no_groups_however_noisy(seed: int) -> None:
    for machine in (
        mesh(64, seed=seed),
        mesh(16, seed=seed),
        made({"all": np.zeros(48, dtype=np.int64)}, {"all": 50.0}, 50.0, seed=seed),
    ):
        matrix, cpus = spoiled(machine, noise=0.1, spikes=0.01, missing=0.01, gone=0.1, seed=seed)
        result = structure.find(matrix, cpus)
        assert result.levels == ()
        assert {finding.id for finding in result.findings} <= {"flat", "no-clear-cut", "missing-pairs"}
        clean = structure.find(machine.matrix, range(len(machine.matrix)))
        assert [finding.id for finding in clean.findings] == ["flat"]


@pytest.mark.parametrize("far", [52.0, 60.0])
def test_small_steps_of_a_matrix_without_noise_are_found(far: float) -> None:
    """Gaps are large where cells differ anyhow, and small where they do not."""
    machine = made({"group": np.arange(12) // 4}, {"group": 50.0}, far, spread=0.0)
    assert found(machine.matrix) == {"group": machine.groups("group")}


def test_a_mesh_without_noise_has_no_groups_either() -> None:
    assert found(mesh(64, spread=0.0).matrix) == found(mesh(48, spread=0.005).matrix) == {}


@pytest.mark.parametrize("count", [2, 4])
def test_sockets_without_ccxs_are_found_beside_a_wide_spread_inside(count: int) -> None:
    machine = packages(count, 16, 70.0)
    assert found(machine.matrix) == {"socket": machine.groups("socket")}


def test_one_ring_is_not_cut() -> None:
    """Its two ends are as far from each other as anything; no cut separates the cores beside it."""
    result = structure.find(packages(1, 32, 0.0).matrix, range(32))
    assert result.levels == ()
    assert [item.id for item in result.findings] == ["no-clear-cut"]
    assert "a factor of" in result.findings[0].text


def test_four_sockets_of_ccxs_one_of_which_owns_the_line() -> None:
    machine = homed(epyc(4, 1, 4, 4, 1, quadrant_steps=False), 0, 100.0)
    assert found(machine.matrix) == {"ccx": machine.groups("ccx"), "socket": machine.groups("socket")}


def test_missing_pairs_are_counted_and_the_rest_is_used() -> None:
    matrix = MILAN.matrix.copy()
    for i, j in [(0, 17), (3, 40), (5, 60)]:
        matrix[i, j] = matrix[j, i] = 0.0
    result = structure.find(matrix, range(len(matrix)))
    assert {level.name for level in result.levels} == {"smt", "ccx", "quadrant"}
    assert "3 of 8128 pairs have no latency." in {item.text for item in result.findings}


def test_directions_that_differ_are_a_finding() -> None:
    assert "asymmetric" not in {item.id for item in structure.find(MILAN.matrix, range(128)).findings}
    wide = MILAN.matrix * np.where(np.tri(128, dtype=bool), 7.0, 1.0)
    item = next(item for item in structure.find(wide, range(128)).findings if item.id == "asymmetric")
    assert item.severity == "warning" and "7." in item.text


def test_a_topology_without_some_cpus_is_a_warning_and_the_others_are_compared() -> None:
    labels = labeled(MILAN)
    part = Topology(labels.machine, labels.cpus[:100])
    result = structure.find(MILAN.matrix, range(128), part)
    item = next(item for item in result.findings if item.id == "cpus-without-labels")
    assert item.severity == "warning" and "100-127" in item.text
    assert {one.relation for one in result.agreement} == {"agrees"}


@pytest.mark.parametrize("swapped", [(3, 40), (3, 20), (3, 40, 9, 70)])
def test_exchanged_labels_are_named_by_their_smallest_set(swapped: tuple[int, ...]) -> None:
    order = list(range(128))
    for one, other in zip(swapped[::2], swapped[1::2], strict=True):
        order[one], order[other] = other, one
    labels = labeled(MILAN)
    wrong = tuple(replace(labels.cpus[order[cpu.cpu]], cpu=cpu.cpu) for cpu in labels.cpus)
    result = structure.find(MILAN.matrix, range(128), Topology(labels.machine, wrong))
    against = [item for item in result.findings if item.id == "labels-contradict"]
    assert len(against) == 1
    assert f"CPUs {list_text(swapped)} contradict" in against[0].text
    assert all(
        f"{min(pair)} and {max(pair)}" in against[0].text for pair in zip(swapped[::2], swapped[1::2], strict=True)
    )


def test_siblings_that_are_not_nearest_are_known_by_their_labels() -> None:
    machine = made(
        {"ccx": np.tile(np.arange(32) // 8, 2), "smt": np.tile(np.arange(32), 2)}, {"ccx": 19.0, "smt": 19.0}, 110.0
    )
    result = structure.find(machine.matrix, range(64), labeled(machine))
    assert {level.name for level in result.levels} == {"ccx"}
    assert "siblings-not-nearest" in {item.id for item in result.findings}
    assert "label-not-found" not in {item.id for item in result.findings}


def test_quadrants_are_found_where_each_ccx_has_an_offset_of_its_own() -> None:
    matrix = with_ports(epyc(1, 4, 3, 8, 1), 20.0)
    assert found(matrix)["quadrant"] == epyc(1, 4, 3, 8, 1).groups("quadrant")


@pytest.mark.parametrize(("port_ns", "most"), [(0.0, 0), (20.0, 3)])
def test_a_die_without_quadrants_shows_none(port_ns: float, most: int) -> None:
    """Also where ports differ, and some are alike by chance: 30 dies of four to twelve CCXs."""
    invented = 0
    for ccxs, seed in itertools.product((4, 6, 8, 12, 16), range(6)):
        ccx = np.repeat(np.arange(ccxs), 8)
        machine = made({"ccx": ccx}, {"ccx": 26.0}, 118.0, seed=seed)
        invented += set(found(with_ports(machine, port_ns, seed))) != {"ccx"}
    assert invented <= most


@pytest.mark.parametrize("ccxs", [5, 6, 7, 8, 12])
def test_ccxs_along_a_way_have_no_quadrants(ccxs: int) -> None:
    """The farther along the way, the longer a hop, with no border anywhere: six CCDs of a 7R13 are so, two by two at
    both ends. 27 of 30 such dies had quadrants before what is left between two parts was compared with noise."""
    invented = 0
    for seed in range(6):
        machine = made({"ccx": np.repeat(np.arange(ccxs), 8)}, {"ccx": 26.0}, 100.0, seed=seed)
        place = np.random.default_rng(seed).uniform(0, 20, ccxs)[machine.parts["ccx"]]
        far = np.abs(place[:, None] - place[None, :])
        invented += set(found(machine.matrix + far)) != {"ccx"}
    assert invented <= 1


def test_a_ccx_alone_is_no_quadrant() -> None:
    """CCXs with equal rows at both ends, and two that are like no other between them."""
    place = np.array([0.0, 0.0, 1.0, 2.0, 3.0, 3.0])[np.repeat(np.arange(6), 8)]
    machine = made({"ccx": np.repeat(np.arange(6), 8)}, {"ccx": 23.0}, 90.0, spread=0.01)
    assert set(found(machine.matrix + 6 * np.abs(place[:, None] - place[None, :]))) == {"ccx"}


def test_a_quadrant_whose_ccxs_are_not_nearest_is_none() -> None:
    """Rows alike, and still as far from each other as from the rest."""
    machine = epyc(1, 4, 2, 8, 1)
    same = machine.parts["quadrant"][:, None] == machine.parts["quadrant"][None, :]
    apart = machine.parts["ccx"][:, None] != machine.parts["ccx"][None, :]
    assert "quadrant" in found(machine.matrix)
    assert "quadrant" not in found(np.where(same & apart, machine.matrix * 1.4, machine.matrix))


def test_a_socket_without_quadrants_takes_none_from_the_other() -> None:
    machine, plain = epyc(2, 4, 4, 4, 1), epyc(2, 4, 4, 4, 1, quadrant_steps=False)
    second = machine.parts["socket"] == 1
    matrix = np.where(second[:, None] & second[None, :], plain.matrix, machine.matrix)
    first = {group for group in machine.groups("quadrant") if max(group) < 64}
    assert first < found(matrix)["quadrant"]


def test_hybrid_processor() -> None:
    """Cores with threads beside cores without."""
    core = np.concatenate([np.repeat(np.arange(8), 2), np.arange(8, 16)])
    machine = made({"smt": core}, {"smt": 5.0}, 38.0, spread=0.08)
    assert found(machine.matrix) == {"smt": machine.groups("smt")}


def test_tiles_are_no_threads() -> None:
    """Pairs of cores that share a second-level cache (Xeon Phi) are too slow for threads of one core."""
    machine = made({"group": np.arange(64) // 2}, {"group": 42.0}, 90.0)
    assert found(machine.matrix) == {"group": machine.groups("group")}


def test_clusters_of_big_little_are_groups() -> None:
    machine = made({"group": [0, 0, 1, 1, 1, 2, 2, 2]}, {"group": 45.0}, 145.0)
    assert found(machine.matrix) == {"group": machine.groups("group")}


def test_512_cpus() -> None:
    machine = epyc(2, 4, 4, 8)
    assert len(machine.matrix) == 512
    assert set(found(machine.matrix)) == {"smt", "ccx", "quadrant", "socket"}


def test_siblings_with_a_single_measured_cell() -> None:
    """The default measures one thread of each core and each core's own pair: siblings follow their core."""
    matrix = ROME.matrix.copy()
    second = np.arange(len(matrix)) >= len(matrix) // 2
    own = ROME.parts["smt"][:, None] == ROME.parts["smt"][None, :]
    matrix[(second[:, None] | second[None, :]) & ~own] = np.nan
    assert found(matrix) == {level: ROME.groups(level) for level in ("smt", "ccx", "quadrant", "socket")}


def test_interleaved_cpu_numbers() -> None:
    """Even CPUs on one socket, odd ones on the other."""
    machine = made({"socket": np.arange(48) % 2}, {"socket": 50.0}, 140.0)
    assert found(machine.matrix) == {"socket": machine.groups("socket")}


def test_home_artefact_is_named_and_only_that() -> None:
    artefact = homed(ROME, 0, 105.0)
    cpus = range(len(artefact.matrix))
    slow = tuple(np.flatnonzero(ROME.parts["socket"] == 1).tolist())
    for known in (None, False):
        result = structure.find(artefact.matrix, cpus, home_controlled=known)
        finding = next(finding for finding in result.findings if finding.id == "home-artefact")
        assert finding.severity == "warning"
        assert "home" in finding.advice
        assert next(item for item in result.symmetry if item.level == "socket").cpus == slow
    controlled = {finding.id for finding in structure.find(artefact.matrix, cpus, home_controlled=True).findings}
    assert "home-artefact" not in controlled
    assert "unlike-sockets" in controlled
    for name, (machine, _) in LEVELS.items():
        ids = {finding.id for finding in structure.find(machine.matrix, range(len(machine.matrix))).findings}
        assert ("home-artefact" in ids) == ("home" in name)


def test_slow_ccx_is_named() -> None:
    slow = MILAN.parts["ccx"] == 5
    matrix = np.where(slow[:, None] & slow[None, :], MILAN.matrix * 1.5, MILAN.matrix)
    result = structure.find(matrix, range(len(matrix)))
    item = next(item for item in result.symmetry if item.level == "ccx")
    assert not item.alike
    assert item.cpus == tuple(np.flatnonzero(slow).tolist())
    assert "unlike-ccxs" in {finding.id for finding in result.findings}


def labeled(machine: Made, **parts: np.ndarray) -> Topology:
    """A topology that says of every CPU what the machine was made of, or `parts` instead."""
    labels = {"core": machine.parts["smt"]} | {k: v for k, v in machine.parts.items() if k != "smt"} | parts
    cpus = []
    for number in range(len(machine.matrix)):
        of_cpu: dict[str, Any] = {level: int(part[number]) for level, part in labels.items()}
        cpus.append(Cpu(number, **of_cpu))
    return Topology(Machine(), tuple(cpus))


def test_true_labels_agree() -> None:
    result = structure.find(ROME.matrix, range(len(ROME.matrix)), labeled(ROME))
    assert [(item.level, item.label, item.relation, item.cpus) for item in result.agreement] == [
        ("smt", "core", "agrees", ()),
        ("ccx", "ccx", "agrees", ()),
        ("quadrant", "quadrant", "agrees", ()),
        ("socket", "socket", "agrees", ()),
    ]


def test_exchanged_labels_contradict_by_name_and_change_nothing() -> None:
    ccx = MILAN.parts["ccx"].copy()
    ccx[[3, 12]] = ccx[[12, 3]]
    result = structure.find(MILAN.matrix, range(len(MILAN.matrix)), labeled(MILAN, ccx=ccx))
    item = next(item for item in result.agreement if item.level == "ccx")
    assert (item.relation, item.cpus) == ("contradicts", (3, 12))
    assert result.findings[0].id == "labels-contradict"
    assert "3,12" in result.findings[0].text
    assert result.levels == structure.find(MILAN.matrix, range(len(MILAN.matrix))).levels


def test_coarser_and_finer_labels() -> None:
    cpus = range(len(MILAN.matrix))
    relation = {}
    for name, ccx in (("finer", MILAN.parts["ccx"] // 2), ("coarser", MILAN.parts["smt"] // 4)):
        result = structure.find(MILAN.matrix, cpus, labeled(MILAN, ccx=ccx))
        item = next(item for item in result.agreement if item.level == "ccx")
        relation[name] = item.relation
        assert item.cpus == tuple(cpus)
    assert relation == {"finer": "finer", "coarser": "coarser"}


def test_labels_that_the_matrix_does_not_show() -> None:
    flat = mesh(32)
    result = structure.find(flat.matrix, range(32), labeled(flat, ccx=np.arange(32) // 8))
    assert [(item.level, item.relation) for item in result.agreement] == [("ccx", "not found")]


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(["rome", "milan", "two xeons", "mesh", "harvested"]))
def test_order_of_rows_does_not_matter(random: object, name: str) -> None:
    machine, _ = LEVELS[name]
    order = list(range(len(machine.matrix)))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = structure.find(machine.matrix[np.ix_(order, order)], order)
    assert shuffled == structure.find(machine.matrix, range(len(order)))
    renamed = found(machine.matrix[np.ix_(order, order)])
    assert {
        level: {frozenset(order[i] for i in group) for group in groups} for level, groups in renamed.items()
    } == found(machine.matrix)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.8, 1.2), st.sampled_from(["rome", "milan", "mesh", "harvested"]))
def test_scale_does_not_matter_much(scale: float, name: str) -> None:
    machine, _ = LEVELS[name]
    assert found(machine.matrix * scale) == found(machine.matrix)


@pytest.mark.parametrize("fill", [np.nan, 0.0])
def test_one_triangle_is_enough(fill: float) -> None:
    lower = np.where(np.tri(len(MILAN.matrix), k=-1, dtype=bool), MILAN.matrix, fill)
    assert found(lower) == found(lower.T) == found(MILAN.matrix)


def test_both_directions_are_averaged() -> None:
    values = np.array([[0, 10.0, np.nan], [20.0, 0, 5.0], [7.0, np.inf, 0]])
    assert np.array_equal(
        averaged(positive(values)), [[np.nan, 15, 7], [15, np.nan, 5], [7, 5, np.nan]], equal_nan=True
    )


def test_unmeasured_cpus_are_named() -> None:
    matrix = MILAN.matrix.copy()
    matrix[5, :] = matrix[:, 5] = np.nan
    result = structure.find(matrix, range(len(matrix)))
    assert {"unmeasured-cpus"} == {finding.id for finding in result.findings}
    assert all(5 not in group for level in result.levels for group in level.groups)


@pytest.mark.parametrize("shape", [(3, 2), (4, 4), (2,)])
def test_shapes_that_do_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(NodeprintError, match="3 CPUs"):
        structure.find(np.ones(shape), range(3))


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_very_small_matrices_have_no_levels(n: int) -> None:
    assert structure.find(np.full((n, n), 30.0), range(n)).levels == ()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_groups_that_are_joined_again_are_no_level() -> None:
    far = np.zeros((4, 4))
    far[np.triu_indices(4, 1)] = (92, 66, 62, 50, 54, 48)
    assert structure.find(far, range(4)).levels == ()


def test_nothing_measured_at_all() -> None:
    assert structure.find(np.full((8, 8), np.nan), range(8)).levels == ()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 24), st.integers(0, 2**32 - 1), st.floats(0, 0.9))
def test_any_matrix_gives_partitions(n: int, seed: int, missing: float) -> None:
    """Whatever the cells hold: every level covers every measured CPU once, coarser levels join finer ones' groups or
    not at all.
    """
    generator = np.random.default_rng(seed)
    matrix = np.exp(generator.normal(3, 2, (n, n)))
    matrix[generator.random((n, n)) < missing] = np.nan
    result = structure.find(matrix, range(n))
    measured = sorted(np.flatnonzero(~np.isnan(averaged(positive(matrix))).all(axis=1)).tolist())
    for level in result.levels:
        assert sorted(cpu for group in level.groups for cpu in group) == measured
        assert 1 < len(level.groups) < len(measured)
        assert -1 <= level.stability <= 1
    for finer, coarser in itertools.pairwise(result.levels):
        assert all(any(set(group) <= set(one) for one in coarser.groups) for group in finer.groups)
    json.dumps(result.as_json(), allow_nan=False)


def test_json_has_the_documented_keys() -> None:
    result = structure.find(homed(ROME, 0, 105.0).matrix, range(len(ROME.matrix)), labeled(ROME)).as_json()
    assert set(result) == {"levels", "agreement", "symmetry", "findings"}
    assert set(result["levels"][0]) == {"name", "groups", "within", "between", "stability"}
    assert set(result["findings"][0]) == {"id", "severity", "text", "advice"}
    times = [level["within"][0]["median_ns"] for level in result["levels"]]
    assert times == sorted(times)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=4, max_size=20), st.integers(0, 1000))
def test_block_medians_are_lower_medians(labels: list[int], seed: int) -> None:
    part = numbered(np.array(labels))
    n = len(part)
    matrix = averaged(positive(np.random.default_rng(seed).uniform(1, 9, (n, n))))
    blocks = SortedCells.of(matrix).block_medians(part)
    rows = SortedCells.of(matrix).row_medians(part)
    for one in range(int(part.max()) + 1):
        for other in range(int(part.max()) + 1):
            cells = matrix[np.ix_(part == one, part == other)]
            cells = np.sort(cells[~np.isnan(cells)])
            expected = cells[(len(cells) - 1) // 2] if len(cells) else np.nan
            # Both directions of a cell count inside a group: the lower median of doubled values is the same.
            assert np.array_equal(blocks[one, other], expected, equal_nan=True)
        for row in range(n):
            cells = np.sort(matrix[row, part == one])
            cells = cells[~np.isnan(cells)]
            expected = cells[(len(cells) - 1) // 2] if len(cells) else np.nan
            assert np.array_equal(rows[row, one], expected, equal_nan=True)


def test_rand_index() -> None:
    assert rand_index(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])) == 1
    assert rand_index(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])) == pytest.approx(-0.5)
    assert rand_index(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 2, 2])) == pytest.approx(8 / 33)


def records_of(machine: Made, home: object, homes: list[int]) -> list[dict[str, object]]:
    """A record file of two passes; a pair whose CPUs are both off the home's socket pays for it."""
    n = len(machine.matrix)
    out = [header(cpus=list(range(n)), home=home)]
    for number in (0, 1):
        for node in homes:
            away = homed(machine, node, 100.0).matrix if node >= 0 else machine.matrix
            out += [pair(i, j, number, float(away[i, j]), home=node) for i in range(n) for j in range(i + 1, n)]
    return [*out, TRAILER]


@pytest.mark.parametrize(
    ("home", "homes", "artefact"), [("each", [0, 1], False), ("first", [-1], False), (0, [0], True)]
)
def test_record_files_and_homes(tmp_path: Path, home: object, homes: list[int], artefact: bool) -> None:
    machine = epyc(2, 2, 2, 4, 1)
    path = tmp_path / "coherence-cas.jsonl"
    path.write_text(lines(*records_of(machine, home, homes)))
    source = matrix_file.read_matrix(path)
    result = structure.find(source.ns, source.cpus, source.topology, source.home_controlled)
    assert {level.name for level in result.levels} >= {"ccx", "socket"}
    assert ("home-artefact" in {finding.id for finding in result.findings}) == artefact


def test_files_of_other_tools_and_nodes(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("\n".join(",".join("" if np.isnan(v) else str(v) for v in row) for row in MILAN.matrix))
    campaign_writer.write_campaign([matrix_file.read_output(path)], tmp_path / "c", labeled(MILAN))
    direct, node = matrix_file.read_matrix(path), matrix_file.read_matrix(tmp_path / "c" / "nodes" / "m")
    assert direct.topology is None
    assert node.topology is not None
    assert direct.home_controlled is node.home_controlled is None
    assert np.allclose(direct.ns, node.ns, rtol=1e-5, equal_nan=True)
    result = structure.find(node.ns, node.cpus, node.topology, node.home_controlled)
    assert {item.relation for item in result.agreement} == {"agrees"}


def test_files_without_a_matrix(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(lines(header(), TRAILER))
    with pytest.raises(NodeprintError, match="no pair"):
        matrix_file.read_matrix(tmp_path / "x.jsonl")
    (tmp_path / "n").mkdir()
    with pytest.raises(NodeprintError, match="no core-to-core"):
        matrix_file.read_matrix(tmp_path / "n")
    (tmp_path / "nodes.tsv").write_text("node\n")
    with pytest.raises(NodeprintError, match="a campaign of nodes; name one of them"):
        matrix_file.read_matrix(tmp_path)


def test_command(tmp_path: Path) -> None:
    """The command's JSON is what `find` found, and a node's own topology is what it is held against."""
    path = tmp_path / "m.csv"
    path.write_text("\n".join(",".join("" if np.isnan(v) else str(v) for v in row) for row in MILAN.matrix))
    campaign_writer.write_campaign([matrix_file.read_output(path)], tmp_path / "c", labeled(MILAN))
    for file, agreed in ((path, set()), (tmp_path / "c" / "nodes" / "m", {"agrees"})):
        result = CliRunner().invoke(app, ["structure", str(file), "--json"])
        assert result.exit_code == 0
        printed = json.loads(result.output)
        assert [level["name"] for level in printed["levels"]] == ["smt", "ccx", "quadrant"]
        assert {item["relation"] for item in printed["agreement"]} == agreed
        assert "ccx: 8 groups of 16 CPUs" in CliRunner().invoke(app, ["structure", str(file)]).output


def test_no_level_is_further_inside_than_outside() -> None:
    """In every group; the socket that does not own the line is the exception that has a finding of its own."""
    for machine, _ in LEVELS.values():
        for noise, seed in ((0.0, 0), (0.08, 1), (0.15, 2)):
            matrix, cpus = spoiled(machine, noise=noise, spikes=0.0, missing=0.0, gone=0.0, seed=seed)
            for level in structure.find(matrix, cpus).levels:
                within, between = (
                    {pairs.part: pairs.median_ns for pairs in of} for of in (level.within, level.between)
                )
                outside = [between.get(part, max(between.values())) for part in within]
                assert level.name == "socket" or all(np.array(list(within.values())) < outside)


@pytest.mark.parametrize("noise", [0.005, 0.01])
@pytest.mark.parametrize("rounded", [False, True])
def test_pairs_that_stand_out_are_found_by_the_noise_of_their_rows(noise: float, rounded: bool) -> None:
    """Groups of two have no spread inside; the gap to the others is 15%, below what large groups need."""
    machine = made({"group": np.arange(24) // 2}, {"group": 52.0}, 61.0, spread=noise)
    matrix = np.round(machine.matrix) if rounded else machine.matrix
    assert machine.groups("group") in found(matrix).values()


def test_clusters_of_five_cores_are_no_sockets() -> None:
    near = made(
        {"group": np.tile(np.arange(10) // 5, 2), "smt": np.tile(np.arange(10), 2)}, {"group": 32.0, "smt": 8.0}, 60.0
    )
    assert "socket" not in found(near.matrix)


def test_two_left_over_neighbors_are_a_pair() -> None:
    machine = made({"group": np.arange(16) // 2}, {"group": 30.0}, 70.0, spread=0.01)
    matrix = machine.matrix.copy()
    matrix[4, 5] = matrix[5, 4] = 44.0  # disturbed, and still nearest to each other
    assert machine.groups("group") in found(matrix).values()


@pytest.mark.parametrize("name", ["rome", "milan", "genoa without threads"])
def test_right_levels_are_stable(name: str) -> None:
    for seed in range(3):
        result = structure.find(LEVELS[name][0].matrix, range(len(LEVELS[name][0].matrix)), seed=seed)
        assert min(level.stability for level in result.levels) >= 0.9


def test_cpus_of_groups_are_printed() -> None:
    text = structure.find(MILAN.matrix, range(128)).lines()
    assert "0-7,64-71; 8-15,72-79" in "".join(text)


def test_a_picture_of_the_matrix(tmp_path: Path) -> None:
    file = tmp_path / "m.csv"
    np.savetxt(file, np.nan_to_num(MILAN.matrix), delimiter=",")
    done = CliRunner().invoke(app, ["structure", str(file), "--svg", str(tmp_path / "m.svg")])
    assert done.exit_code == 0 and "CCX" in (tmp_path / "m.svg").read_text()
    done = CliRunner().invoke(app, ["structure", str(file), "--pdf", str(tmp_path / "m.svg")])
    assert isinstance(done.exception, NodeprintError)
