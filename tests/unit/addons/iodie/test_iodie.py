"""The map of the I/O die: what was planted is found, and nothing where there is nothing."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from msgspec import structs
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.data.places.layout import CCX
from nodeprint.errors import NodeprintError
from nodeprint.machine import dies
from nodeprint.machine.topology.model import Topology
from nodeprint.machine.topology.presets import from_part, preset
from nodeprint.report.pages.blocks import Text
from nodeprint.simulate import Modes, Plan, Variation, write
from nodeprint.structure.matrix_arithmetic import rand_index
from nodeprint_addons.iodie import (
    analysis,
    campaign_dies,
    data,
    die_pages,
    geometry,
    hashing,
    line_clusters,
    listing,
    node_lines,
    part_comparison,
)
from nodeprint_addons.iodie import die as dies_of
from nodeprint_addons.iodie.data import census, pass_over_lines
from tests.support.detailed_runs import Detailed, detailed, passes_of, visits_of
from tests.support.real_parts import built
from tests.support.schemas import valid

ROME = from_part("EPYC 7742", 1, smt=False)
GENOA = from_part("EPYC 9654", 1, smt=False)


def analyzed(
    topology: Topology, modes: Modes, *, seed: int = 1, runs: int = 2, spread: Variation | None = None, defect: str = ""
) -> tuple[analysis.NodeDies, list[np.ndarray]]:
    """A simulated node, and where each line of its dies truly is."""
    plan = Plan(
        topology,
        nodes=1,
        runs=runs,
        modes=modes,
        seed=seed,
        spread=spread or Variation(),
        defects=(f"node000: {defect}",) if defect else (),
    )
    passes: list[xr.Dataset] = []
    truth: list[Detailed] = []
    for number, run in enumerate(detailed(plan), start=1):
        passes += passes_of(run, number)
        truth.append(run)
    found = analysis.analyze(analysis.NodeDies("node000", "coherence-cas", topology, (), True), passes, ())
    sites = [
        np.concatenate(
            [
                truth[int(run[-1]) - 1]
                .pools[tensor.attrs["socket"]]
                .site[truth[int(run[-1]) - 1].pools[tensor.attrs["socket"]].drawn[p]]
                for run, p in visits_of(tensor)
            ]
        )
        for tensor in data.tensors(passes, topology)[0]
    ]
    return found, sites


@pytest.mark.parametrize(
    "topology, modes",
    [
        (ROME, Modes(2.0, pair_step_ns=2.0, die="mesh")),
        (GENOA, Modes(1.0, pair_step_ns=1.0, die="mesh", sites=6)),
        (GENOA, Modes(2.0, pair_step_ns=2.0, die="ring", sites=6)),
        (GENOA, Modes(2.0, pair_step_ns=2.0, die="crossbar", sites=6)),
        (GENOA, Modes(2.0, (0.3, 0.2, 0.15, 0.15, 0.1, 0.1), False, 2.0, "mesh", 6)),
    ],
    ids=["2x2", "2x3", "ring", "crossbar", "unequal"],
)
def test_a_planted_die_is_found(topology: Topology, modes: Modes) -> None:
    """Lines and CCDs at their sites, the geometry by name, the cost of a step within half a nanosecond."""
    found, truth = analyzed(topology, modes)
    for die, sites in zip(found.dies, truth, strict=True):
        assert rand_index(np.where(die.clusters.label < 0, die.clusters.count, die.clusters.label), sites) > 0.99
        assert die.sites is not None and die.geometry is not None
        order = np.arange(len(die.sites.of_end))
        planted = order * modes.sites // len(order) if modes.sites != 4 else die.labels[die.here] % 4
        assert rand_index(die.sites.of_end, planted) == 1
        assert (die.geometry.kind, die.geometry.sites) == (modes.die, modes.sites)
        assert die.geometry.hop_ns == pytest.approx(modes.step_ns, abs=0.5)
        assert die.geometry.pair_hop_ns == pytest.approx(modes.pair_step_ns, abs=0.5)


@pytest.mark.parametrize("seed", range(4))
def test_without_geometry_there_is_no_map_and_it_says_what_could_be_found(seed: int) -> None:
    found, _ = analyzed(ROME, Modes(0, pair_step_ns=0), seed=seed, spread=Variation(tail=3))
    (die,) = found.dies
    assert die.sites is None and die.geometry is None and die.no_map == "all lines are alike"
    assert 0 < die.clusters.detectable_ns < 0.5


def test_pairs_that_lie_in_quadrants_make_no_map_where_lines_do_not() -> None:
    found, _ = analyzed(ROME, Modes(0, pair_step_ns=5))
    assert found.dies[0].sites is None


def test_a_harvested_part_has_its_sites() -> None:
    """Six CCDs of eight on a die of four sites: two sites with two CCDs, two with one."""
    six = from_part("EPYC 7R13", 1, smt=False)
    found, truth = analyzed(six, Modes(2.0, pair_step_ns=2.0, die="mesh"))
    (die,) = found.dies
    assert rand_index(die.clusters.label, truth[0]) == 1
    if die.sites is not None:
        assert die.sites.count <= 4


def test_a_slow_port_is_named_and_leaves_the_map_as_it_is() -> None:
    modes = Modes(2.0, pair_step_ns=2.0, die="mesh")
    (healthy,), (slow,) = (analyzed(ROME, modes, defect=defect)[0].dies for defect in ("", "ccd 3 +3%"))
    assert healthy.odd_ends == {}
    assert list(slow.odd_ends) == [3]
    assert slow.odd_ends[3] == pytest.approx(3.3, abs=0.7)
    assert slow.sites is not None and healthy.sites is not None
    assert rand_index(slow.sites.of_end, healthy.sites.of_end) == 1


def test_a_slow_core_is_no_slow_port() -> None:
    plan = Plan(ROME, nodes=1, runs=2, modes=Modes(2.0, pair_step_ns=2.0), defects=("node000: core 11 +12%",))
    passes = [one for number, run in enumerate(detailed(plan), start=1) for one in passes_of(run, number)]
    ((tensor,), _) = data.tensors(passes, ROME)
    assert dies_of.find(tensor, (), ROME).odd_ends == {}
    offsets = tensor["core_ns"].to_series()
    assert offsets.idxmax() == 11 and offsets[11] > 8


def test_two_sockets_have_a_die_each_and_a_link() -> None:
    found, _ = analyzed(preset("rome-2x64"), Modes(4.0, pair_step_ns=4.0), runs=1)
    assert [die.socket for die in found.dies] == [0, 1]
    links = found.dies[0].links
    assert list(links) == [1]
    assert links[1].value == pytest.approx(88 + 4 + 4, abs=2)  # the link, and the ways to it: a step a die on the mean


def test_ports_and_sites_that_the_data_do_not_separate_are_said_not_to_be_identified() -> None:
    """With one CCD a site, a CCD's own part takes what its site's ways to the others have in common."""
    eight = from_part("EPYC 9174F", 1, smt=False)
    (die,) = analyzed(eight, Modes(3.0, pair_step_ns=3.0, die="mesh", sites=8))[0].dies
    assert die.sites is not None and die.sites.count == 8
    of_pairs = list(die.fit.positions("pair").values())
    assert not die.fit.identified[of_pairs].any()
    assert die.fit.identified[list(die.fit.positions("line").values())].all()
    assert die.geometry is not None and np.isnan(die.geometry.pair_hop_ns).all()


def test_intervals_hold_what_was_planted() -> None:
    inside = []
    for seed in range(6):
        (die,) = analyzed(ROME, Modes(2.0, pair_step_ns=2.0, die="mesh"), seed=seed)[0].dies
        assert die.to_lines is not None and die.sites is not None
        label = die.labels[die.here]
        of = np.array([label[die.sites.of_end == site][0] % 4 for site in range(4)])
        truth = 2.0 * dies.steps("mesh", 4)[of[die.to_lines.ends[:, 0]], of[die.to_lines.ends[:, 1]]]
        inside += (np.abs(die.to_lines.ns - truth) <= die.to_lines.half).tolist()
    assert np.mean(inside) >= 0.8


def test_two_clocks_tell_a_core_from_its_port() -> None:
    """Hops that take 12 cycles of each core, at 3.4 GHz in one run and 2.4 in the other."""
    plan = Plan(ROME, nodes=1, runs=2, modes=Modes(2.0, pair_step_ns=2.0))
    passes = []
    for number, run in enumerate(detailed(plan), start=1):
        ghz = (3.4, 2.4)[number - 1]
        for one in passes_of(run, number):
            passes.append(one.assign(ns=one.ns + 2 * 12 / ghz, ghz=0 * one.ghz + ghz))
    node = analysis.NodeDies("a", "coherence-cas", ROME, (), True)
    found = analysis.analyze(node, passes, ())
    (die,) = found.dies
    assert die.core_cycles is not None
    assert die.core_cycles.value == pytest.approx(12, abs=max(die.core_cycles.half, 2))
    assert "the core's share is" in listing.as_text(found).lower()
    steady = analysis.analyze(node, [one for one in passes if one.attrs["run"] == "job1/run1"], ())
    assert steady.dies[0].core_cycles is None


# --- lines ---


def test_a_census_of_the_same_lines_agrees(tmp_path: Path) -> None:
    write(Plan(ROME, nodes=1, runs=1, detail=True), tmp_path / "a")
    found = analysis.analyze(*node_lines.read(tmp_path / "a/nodes/node000"))
    (die,) = found.dies
    assert die.census is not None and die.census.count == 4
    assert die.census_agreement == 1 and die.common_lines == 96
    assert die.agrees == 1 and die.geometry is not None
    assert [die.share(site).value for site in range(4)] == pytest.approx([0.25] * 4, abs=0.08)


def test_shares_of_a_census_are_at_the_sites_where_its_lines_are(tmp_path: Path) -> None:
    """Clusters of the census have numbers of their own."""
    planted = (0.1, 0.2, 0.3, 0.4)
    for seed in range(3):
        modes = Modes(6.0, planted)
        write(Plan(ROME, nodes=1, runs=1, detail=True, modes=modes, seed=seed), tmp_path / f"{seed}")
        (die,) = analysis.analyze(*node_lines.read(tmp_path / f"{seed}/nodes/node000")).dies
        assert die.sites is not None and die.sites.count == 4
        label = die.labels[die.here]
        truth = [planted[label[die.sites.of_end == site][0] % 4] for site in range(4)]
        assert [die.share(site).value for site in range(4)] == pytest.approx(truth, abs=0.07)


def test_clusters_that_only_half_of_a_census_has_are_none() -> None:
    rng = np.random.default_rng(1)
    first, second = (100 + rng.standard_normal((256, 8)) for _ in range(2))
    first[:128, :4] += 8
    assert line_clusters.of_census(first, second, np.zeros(256, dtype=int)).count == 1
    second[:128, :4] += 8
    assert line_clusters.of_census(first, second, np.zeros(256, dtype=int)).count == 2


def test_a_continuous_spread_makes_no_clusters() -> None:
    rng = np.random.default_rng(3)
    for tail in (3, 5, 1000):
        own = rng.standard_t(tail, (400, 12))
        halves = [own + 0.05 * rng.standard_normal(own.shape) for _ in range(2)]
        found = line_clusters.find(halves[0], halves[1], (halves[0] + halves[1]) / 2, np.zeros(400, dtype=int))
        assert found.count == 1, tail


def test_lines_between_clusters_are_unassigned() -> None:
    rng = np.random.default_rng(3)
    centers = np.array([[-2.0] * 8, [2.0] * 8])
    truth = np.repeat([0, 1], 100)
    points = centers[truth] + 0.3 * rng.standard_normal((200, 8))
    points = np.vstack([points, np.zeros((3, 8))])
    found = line_clusters.find(points, points, points, np.zeros(203, dtype=int))
    assert found.count == 2 and set(found.label[:200].tolist()) == {0, 1}
    assert (found.probability[200:] < 1).all()


def test_passes_with_other_shares_of_lines_are_brought_together() -> None:
    """A pass with more lines of one cluster has another mean; its lines are still in the same clusters."""
    rng = np.random.default_rng(5)
    part = np.repeat(np.arange(6), 32)
    truth = np.concatenate([rng.random(32) < share for share in (0.65, 0.35, 0.6, 0.4, 0.7, 0.3)]).astype(int)
    near = np.where(truth[:, None] == np.array([0, 0, 0, 1, 1, 1]), 0.0, 2.0)
    rest = line_clusters.less_pass_means(near.T, part).T
    rest = rest - rest.mean(axis=1, keepdims=True)
    noisy = [rest + 0.25 * rng.standard_normal(rest.shape) for _ in range(2)]
    found = line_clusters.find(noisy[0], noisy[1], sum(noisy) / 2, part)
    assert found.count == 2
    assert rand_index(np.where(found.label < 0, 2, found.label), truth) > 0.95


# --- addresses ---


@pytest.mark.parametrize("hashing_of, sites, bits", [("parity", 4, {(6, 8, 9), (7, 10, 11)}), ("modulo 3", 6, None)])
def test_a_hash_of_the_address_is_found(hashing_of: str, sites: int, bits: set[tuple[int, ...]] | None) -> None:
    modes = Modes(5.0, die="mesh", sites=sites, hashing=hashing_of)  # type: ignore[arg-type]
    label, number, part = [], [], []
    for run in range(6):
        pool = next(iter(detailed(Plan(GENOA, nodes=1, runs=1, passes=1, modes=modes, seed=run)))).pools[0]
        label.append(pool.site)
        number.append(pool.lines)
        part.append(np.full(len(pool.lines), run))
    of = pd.DataFrame({"run": np.concatenate(part), "home": 0, "number": np.concatenate(number)})
    rules = hashing.find(np.concatenate(label), of, sites, 12)
    assert all(rule.right == 1 and rule.in_page for rule in rules)
    if bits is not None:
        found = [set(rule.bits) for rule in rules]
        assert len(found) == 2
        # any two of the three parities (both, and their sum) say the same
        every = [set(one) for one in bits]
        assert all(one in (*every, every[0] ^ every[1]) for one in found)
    else:
        assert () in [rule.bits for rule in rules]
    shuffled = np.random.default_rng(1).permutation(np.concatenate(label))
    assert hashing.find(shuffled, of, sites, 12) == []


# --- geometry ---


def ways_of(ends: np.ndarray, ns: np.ndarray, half: float = np.nan) -> geometry.WayCosts:
    return geometry.WayCosts(int(ends.max()) + 1, ends, ns, np.full(len(ends), half))


@pytest.mark.parametrize("kind, sites", [("mesh", 4), ("mesh", 6), ("ring", 5), ("ring", 6), ("crossbar", 5)])
def test_distances_that_follow_a_geometry_name_it(kind: dies.Kind, sites: int) -> None:
    rng = np.random.default_rng(sites)
    order = rng.permutation(sites)
    ends = np.array([(p, q) for p in range(sites) for q in range(p + 1, sites)])
    value = 3.0 * dies.steps(kind, sites)[order[ends[:, 0]], order[ends[:, 1]]] + 0.1 * rng.standard_normal(len(ends))
    none = np.full(len(ends), np.nan)
    found = geometry.find(ways_of(ends, value, 0.2), ways_of(ends, none))
    assert isinstance(found, geometry.Geometry) and found.kind == kind
    steps = dies.steps(kind, sites)
    assert (steps[found.site[ends[:, 0]], found.site[ends[:, 1]]] == steps[order[ends[:, 0]], order[ends[:, 1]]]).all()
    assert found.certain > 0.9 and found.hop_ns == pytest.approx(3, abs=0.2)


def test_the_interval_of_a_step_holds_those_of_placements_that_are_about_as_likely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three rows of two sites that are hardly apart: which of both is where is doubtful, and so is that step."""
    ends = np.array([(p, q) for p in range(6) for q in range(p + 1, 6)])
    across, along = dies.moves("mesh", 6)[:, ends[:, 0], ends[:, 1]]
    none = np.full(len(ends), np.nan)
    held = []
    for seed in range(30):
        noise = 0.3 * np.random.default_rng(seed).standard_normal(len(ends))
        planted = ways_of(ends, 0.3 * across + 3 * along + noise, 0.1)
        with monkeypatch.context() as alone:
            alone.setattr(geometry, "_PROFILE", -1.0)
            single = geometry.find(planted, ways_of(ends, none))
        found = geometry.find(planted, ways_of(ends, none))
        assert isinstance(single, geometry.Geometry) and isinstance(found, geometry.Geometry)
        if found.certain < 0.6:
            assert (found.hop_half > single.hop_half).any()
        held.append(abs(found.hop_ns[0] - 0.3) <= found.hop_half[0])
    assert np.mean(held) >= 0.9


def test_distances_without_a_pattern_name_no_geometry() -> None:
    rng = np.random.default_rng(1)
    ends = np.array([(p, q) for p in range(4) for q in range(p + 1, 4)])
    none = np.full(len(ends), np.nan)
    named = 0
    for _ in range(200):
        value = rng.uniform(2, 8, len(ends))
        found = geometry.find(ways_of(ends, value, 0.2), ways_of(ends, none))
        named += isinstance(found, geometry.Geometry)
    assert named <= 6


def test_three_sites_are_too_few() -> None:
    ends = np.array([(0, 1), (0, 2), (1, 2)])
    three = ways_of(ends, np.ones(3), 0.1)
    assert geometry.find(three, three) == "3 sites have too few distances to test a geometry"


# --- records ---


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("iodie") / "a"
    return write(Plan(ROME, nodes=2, runs=1, passes=2, detail=True), folder)


def test_the_command_prints_a_plan_and_json_by_its_schema(campaign: Path) -> None:
    node = campaign / "nodes/node000"
    said = CliRunner().invoke(app, ["iodie", str(node)]).stdout
    assert said.startswith("SIMULATED")
    assert "mesh of 2 x 2" in said and "[quadrant 0: CCD 0-1" in said and "The sites are the labeled quadrants." in said
    facts = json.loads(CliRunner().invoke(app, ["iodie", str(node), "--json"]).stdout)
    valid(facts, "iodie")
    assert facts["simulated"] is True and facts["nodes"][0]["dies"][0]["map"]["geometry"]["kind"] == "mesh"
    every = json.loads(CliRunner().invoke(app, ["iodie", str(campaign), "--json"]).stdout)
    valid(every, "iodie")
    assert [one["node"] for one in every["nodes"]] == ["node000", "node001"]
    assert every["fleet"]["nodes"] == ["node000", "node001"]


def test_records_give_the_same_as_what_they_were_made_of(campaign: Path) -> None:
    found, passes, censuses = node_lines.read(campaign / "nodes/node000")
    assert found.measurement == "coherence-cas" and found.missing == () and len(passes) == 2
    assert len(censuses) == 1 and censuses[0].sizes["cpu"] == 16
    one = passes[0]
    pairs = len(ROME.cpus) * (len(ROME.cpus) - 1) // 2
    assert one.ns.shape == (pairs, 32) and one.sizes["line"] == 32 and one.ghz.shape == (pairs, 2)


def test_what_is_missing_is_named(campaign: Path, tmp_path: Path) -> None:
    write(Plan(ROME, nodes=1, runs=1, passes=1), tmp_path / "plain")
    with pytest.raises(NodeprintError, match=r"no record of pairs has the value of each line.*was measured without"):
        node_lines.read(tmp_path / "plain/nodes/node000")
    with pytest.raises(NodeprintError, match="there is no such directory"):
        node_lines.read(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NodeprintError, match="no records of a job"):
        node_lines.read(tmp_path / "empty")
    result = CliRunner().invoke(app, ["iodie", str(tmp_path / "plain")])
    assert isinstance(result.exception, NodeprintError)


def node_with(campaign: Path, folder: Path, change: Callable[[bytes], bytes]) -> Path:
    """A node's folder with the survey and one run of the campaign's first node, its records changed."""
    node, theirs = folder / "node000", campaign / "nodes/node000/job1"
    (node / "job1/run1").mkdir(parents=True)
    shutil.copyfile(theirs / "survey.tar.gz", node / "job1/survey.tar.gz")
    content = gzip.decompress((theirs / "run1/coherence-cas.jsonl.gz").read_bytes())
    (node / "job1/run1/coherence-cas.jsonl").write_bytes(change(content))
    return node


@pytest.mark.parametrize(
    "old, new, says",
    [
        (b'"line_ns":[', b'"line_ns":["x",', "the checksum differs"),
        (b'"line_ns":[', b'"line_ns":[1e999,', "not a JSON record|the checksum differs"),
        (b'"record":"pair","a":', b'"record":"pair","a":x', "line"),
        (b'"line_set": [', b'"line_set": ["x", ', "records of passes are not as expected"),
        (b'"line_set"', b'"lines"', "records of passes are not as expected"),
    ],
)
def test_a_garbled_file_is_named_and_left_out(
    campaign: Path, tmp_path: Path, old: bytes, new: bytes, says: str
) -> None:
    node = node_with(campaign, tmp_path, lambda content: content.replace(old, new, 1))
    with pytest.raises(NodeprintError, match=says):
        node_lines.read(node)


@pytest.mark.parametrize("wrong", [b'"reload_ns":[[null,', b'"reload_ns":[["x",', b'"reload_ns":[[1,'])
def test_a_garbled_census_is_named_and_the_passes_are_kept(campaign: Path, tmp_path: Path, wrong: bytes) -> None:
    node = node_with(campaign, tmp_path, lambda content: content.replace(b'"reload_ns":[[', wrong, 1))
    found, passes, censuses = node_lines.read(node)
    assert len(passes) == 2 and censuses == []
    assert found.missing == ("job1/run1: its records of census and clusters are not as expected and are left out",)


def test_a_port_stands_apart_beside_others_that_are_alike_and_not_where_all_scatter() -> None:
    """The last cost is 4 ns above the median both times."""
    alike, scattered = np.array([20.0, 20.1, 20.2, 19.9, 24.0]), np.array([16.0, 18.0, 20.0, 22.0, 24.0])
    half = np.full(5, 0.5)
    assert dies_of.stands_apart(alike, half).tolist() == [False, False, False, False, True]
    assert not dies_of.stands_apart(scattered, half).any()
    assert not dies_of.stands_apart(alike, np.full(5, 5.0)).any()
    assert not dies_of.stands_apart(20 + (alike - 20) / 4, half).any()
    two = np.array([20.0, 20.1, 20.2, 19.9, 24.0, 20.0, 23.0, 19.9])
    assert np.flatnonzero(dies_of.stands_apart(two, np.full(8, 0.5))).tolist() == [4, 6]


def test_cpus_that_the_labels_do_not_have_are_left_out() -> None:
    found, _ = analyzed(ROME, Modes(2.0), runs=1)
    fewer = replace(ROME, cpus=ROME.cpus[:-1])
    plan = Plan(ROME, nodes=1, runs=1, modes=Modes(2.0))
    passes = [one for run in detailed(plan) for one in passes_of(run, 1)]
    (tensor,), missing = data.tensors(passes, fewer)
    assert missing == [] and tensor.sizes["end"] == len(found.dies[0].ends)


def test_a_run_that_was_stopped_gives_its_finished_passes(campaign: Path, tmp_path: Path) -> None:
    node = node_with(campaign, tmp_path, lambda content: content[: len(content) * 2 // 3])
    found = analysis.analyze(*node_lines.read(node))
    assert any("stopped before its end" in sentence for sentence in found.missing)
    assert found.dies[0].clusters.count == 4 and len(found.dies[0].clusters.label) >= 32


def test_what_the_kernel_writes_here_is_read(tmp_path: Path, two_cpus: None) -> None:
    """Its lines and census as they are; two CPUs make no map, and that is said in one sentence."""
    node = tmp_path / "here"
    (node / "job1/run1").mkdir(parents=True)
    cpus = sorted(os.sched_getaffinity(0))[:2]
    out = node / "job1/run1/coherence-cas.jsonl"
    command = [f"{built()}/coherence", "--op", "cas", "--cpus", ",".join(map(str, cpus)), "--passes", "2"]
    subprocess.run([*command, "--detail", "--census", "--out", out], check=True, capture_output=True)
    labels = CliRunner().invoke(app, ["topology", "--json"]).output
    (node / "job1/topology.json").write_text(labels)
    _, passes, censuses = node_lines.read(node)
    assert [one.ns.shape for one in passes] == [(1, 32), (1, 32)]
    assert [one.sizes["line"] for one in passes] == [32, 32] and len(censuses) == 1
    assert censuses[0].sizes["line"] >= 512
    said = CliRunner().invoke(app, ["iodie", str(node)]).stdout
    assert "NO MAP: no socket has core-to-core latencies between 3 cores" in said


# --- other machines ---


def test_two_cores_are_too_few() -> None:
    two = replace(ROME, cpus=ROME.cpus[:2])
    one = pass_over_lines(
        "run1", 0, 0, np.array([0]), np.array([1]), np.arange(32), np.full((1, 32), 50.0), np.full((1, 2), 3.0)
    )
    found, missing = data.tensors([one], two)
    assert found == [] and "lines and cores cannot be separated" in missing[0]


@pytest.mark.parametrize(
    ("part", "homes", "expected"),
    [
        ("EPYC 7601", (-1,), "1 of 3 needed parts of level ccd"),
        ("EPYC 7601", (0, 1, 2, 3), ""),
        ("EPYC 7742", (-1,), "2 of 3 needed parts of level ccd"),
        ("EPYC 9174F", (-1,), ""),
    ],
)
def test_a_numa_node_with_too_few_ccds_is_said_to_have_them(
    tmp_path: Path, part: str, homes: tuple[int, ...], expected: str
) -> None:
    """With one CCD a node lines at home with their pair's first CPU leave the last nodes one end, or none."""
    topology = from_part(part, 1, smt=False, nps=1 if part == "EPYC 9174F" else 4)
    folder = write(Plan(topology, nodes=2, runs=1, passes=2, detail=True, homes=homes), tmp_path / "a")
    result = CliRunner().invoke(app, ["iodie", str(folder)], catch_exceptions=False)
    assert result.exit_code == 0 and (expected in result.output if expected else "needed parts" not in result.output)
    assert CliRunner().invoke(app, ["judge", str(folder)], catch_exceptions=False).exit_code == 0
    facts = CliRunner().invoke(app, ["iodie", str(folder), "--json"], catch_exceptions=False)
    valid(json.loads(facts.stdout), "iodie")


def test_a_mesh_part_has_its_cores_as_ends_and_no_map_without_slices() -> None:
    """One L3 for all cores: hops inside it are what there is to see."""
    flat = preset("graviton3-64")
    found, _ = analyzed(flat, Modes(), runs=1)
    (die,) = found.dies
    assert die.level == "core" and die.sites is None


def test_numa_nodes_of_a_socket_are_joined_where_the_same_pairs_were_measured() -> None:
    """NPS4 with every home: each NUMA node is a site of its own, and no label is needed to see it."""
    nps4 = from_part("EPYC 7742", 1, smt=False, nps=4)
    rng = np.random.default_rng(1)
    cpus = np.array([cpu.cpu for cpu in nps4.cpus])
    a, b = (cpus[side] for side in np.triu_indices(len(cpus), 1))
    quadrant = np.array([cpu.quadrant or 0 for cpu in nps4.cpus])
    numa = {node.node: quadrant[node.cpus[0]] for node in nps4.numa_nodes}
    steps = 3.0 * dies.steps("mesh", 4)
    passes = []
    for home, site in numa.items():
        base = 110 + steps[quadrant[a], quadrant[b]] + steps[quadrant[a], site] + steps[quadrant[b], site]
        ns = base[:, None] + rng.standard_normal(16) + 2 * rng.standard_normal((len(a), 16))
        passes.append(pass_over_lines("run1", 0, home, a, b, np.arange(16), ns, np.full((len(a), 2), 3.0)))
    tensors, missing = data.tensors(passes, nps4)
    (die,) = [dies_of.find(one, (), nps4) for one in tensors]
    assert missing == [] and die.homes == (0, 1, 2, 3)
    assert rand_index(die.clusters.label, tensors[0]["home"].to_numpy()) == 1
    assert die.agrees == 1 and die.geometry is not None and die.geometry.hop_ns == pytest.approx(3, abs=0.3)
    apart = [one.isel(pair=slice(i, None, 4)) for i, one in enumerate(passes)]
    alone, missing = data.tensors(apart, nps4)
    assert len(alone) == 4 and "--home each" in missing[0]


def test_clusters_by_the_census_come_from_the_cpus_of_the_socket() -> None:
    ccx = {cpu.ccx: cpu.cpu for cpu in ROME.cpus}
    rng = np.random.default_rng(1)
    cpus, number = np.array(list(ccx.values())), np.arange(256)
    site = rng.integers(4, size=256)
    quadrant = np.array([next(c.quadrant for c in ROME.cpus if c.cpu == cpu) or 0 for cpu in cpus])
    ns = 100 + 8.0 * dies.steps("mesh", 4)[quadrant][:, site] + 2 * rng.standard_normal((2, 16, 256))
    (run,) = detailed(Plan(ROME, nodes=1, runs=1, modes=Modes(2.0)))
    ((tensor,), _) = data.tensors(list(passes_of(run, 1)), ROME)
    die = dies_of.find(tensor, (census("r", 0, cpus, number, ns, 12),), ROME)
    assert die.census is not None and rand_index(die.census.label, site) == 1
    assert len(ccx) == 16 and CCX == 3


def test_the_fit_recovers_every_part() -> None:
    """Without noise the parts come out as they were put in."""
    (die,) = analyzed(
        ROME,
        Modes(2.0, pair_step_ns=3.0),
        spread=Variation(0, 0, 0, 0, 0, 0.0, run=0, drift=0, cell=0, run_cell=0, burst_rate=0),
    )[0].dies
    assert die.sites is not None and die.to_lines is not None and die.to_cpus is not None
    assert np.ptp(die.own_parts["ns"]) < 0.05 and die.fit.identified.all()
    label = die.labels[die.here]
    of = np.array([label[die.sites.of_end == site][0] % 4 for site in range(4)])
    steps = dies.steps("ring", 4)[of[die.to_lines.ends[:, 0]], of[die.to_lines.ends[:, 1]]]
    assert die.to_lines.ns == pytest.approx(2.0 * steps, abs=0.02)
    assert die.to_cpus.ns == pytest.approx(3.0 * steps, abs=0.02)
    assert die.fit.positions("far") == {}


# --- a fleet ---


def test_a_node_is_mapped_once_and_again_where_its_records_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept gives the same text and numbers; a kept file that is damaged, or of other records, is not used."""
    plan = Plan(from_part("EPYC 74F3", 1, smt=False), nodes=2, runs=1, detail=True, modes=Modes(8.0, die="mesh"))
    folder = write(plan, tmp_path / "a")
    first = campaign_dies.read(folder)
    kept = sorted(folder.glob("store/nodes/*/dies.msgpack.zst"))
    assert [path.parent.name for path in kept] == ["node000", "node001"]

    def not_again(_: object) -> None:
        raise AssertionError

    with monkeypatch.context() as broken:
        broken.setattr(analysis, "analyze", not_again)
        again = campaign_dies.read(folder)
    assert campaign_dies.as_text(*again) == campaign_dies.as_text(*first)
    facts = campaign_dies.as_json(*first)
    assert campaign_dies.as_json(*again) == facts
    for one, other in zip(first[0], again[0], strict=True):
        assert one.topology == other.topology
        assert analysis.part_costs(one.dies).equals(analysis.part_costs(other.dies))
    for content in (b"", kept[0].read_bytes()[:-9], kept[1].read_bytes()):
        kept[0].write_bytes(content)
        assert campaign_dies.as_json(*campaign_dies.read(folder)) == facts
    os.utime(next((folder / "nodes/node000").rglob("coherence-cas.jsonl*")), (1, 1))
    before = kept[0].read_bytes()
    assert campaign_dies.as_json(*campaign_dies.read(folder)) == facts and kept[0].read_bytes() != before


def test_nodes_are_compared_part_by_part() -> None:
    """A slow port is the highest of its part, on its node; what deviates is not said here."""
    modes = Modes(2.0, pair_step_ns=2.0, die="mesh")
    defects = {"node0": "", "node1": "ccd 3 +6%"}
    nodes = [structs.replace(analyzed(ROME, modes, defect=defect)[0], node=name) for name, defect in defects.items()]
    compared = part_comparison.compare(nodes)
    assert compared is not None and compared["node"].unique().tolist() == ["node0", "node1"]
    (row,) = [row for row in listing.fleet_rows(nodes) if "own part of CCD 3" in row]
    assert row.endswith("node0, node1")
    assert part_comparison.compare(nodes[:1]) is None


def test_a_node_with_other_dies_is_left_out_by_name() -> None:
    modes = Modes(2.0, pair_step_ns=2.0, die="mesh")
    nodes = [analyzed(ROME, modes, seed=seed)[0] for seed in range(3)]
    nodes = [structs.replace(node, node=f"node{i}") for i, node in enumerate(nodes)]
    other = structs.replace(analyzed(ROME, Modes(0, pair_step_ns=0))[0], node="flat")
    compared = part_comparison.compare([*nodes, other])
    assert compared is not None and compared["node"].unique().tolist() == ["node0", "node1", "node2"]
    assert part_comparison.not_compared([*nodes, other]) == {"flat": "it has other ends or sites than most nodes"}


# --- pages ---


def test_a_page_has_a_floor_plan_with_every_ccd_and_the_same_bytes(campaign: Path, tmp_path: Path) -> None:
    found, _ = campaign_dies.read(campaign)
    first, node, _ = die_pages.pages(found)
    assert (first.subject, node.subject) == ("cluster", "node000")
    (figure,) = node.pictures
    assert all(f">CCD {ccd}<" in figure.svg for ccd in range(8))
    assert all(f">quadrant {q}<" in figure.svg for q in range(4)) and "mesh of 2 x 2" in figure.caption
    for name in "xy":
        called = CliRunner().invoke(app, ["iodie", str(campaign), "--pdf", str(tmp_path / f"{name}.pdf")])
        assert called.exit_code == 0
    content = (tmp_path / "x.pdf").read_bytes()
    assert content.startswith(b"%PDF") and content == (tmp_path / "y.pdf").read_bytes()


@pytest.mark.parametrize("kind, sites", [("ring", 6), ("crossbar", 4), ("mesh", 6)])
def test_every_geometry_has_a_plan_on_terminal_and_page(kind: dies.Kind, sites: int) -> None:
    (die,) = analyzed(GENOA, Modes(2.0, pair_step_ns=2.0, die=kind, sites=sites))[0].dies
    rows = "\n".join(listing.plan(die))
    plan = die_pages.floorplan(die)
    assert plan is not None and all(f">CCD {ccd}<" in plan.svg for ccd in range(12))
    links = 6 if (kind, sites) != ("mesh", 6) else 7
    assert rows.count("2.0") >= (5 if kind == "ring" else links)


def test_without_a_map_the_page_says_what_could_be_found() -> None:
    found, _ = analyzed(ROME, Modes(0, pair_step_ns=0), runs=1)
    (page,) = die_pages.pages([found])
    assert list(page.pictures) == []
    said = [block.text for section in page.sections for block in section.blocks if isinstance(block, Text)]
    assert any(one.startswith("No map: all lines are alike. With this data") for one in said)
    assert "NO MAP" in listing.as_text(found)
