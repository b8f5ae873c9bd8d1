"""The verdict's promises on simulated fleets, with bounds that fail when the method breaks, and its files."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema
import numpy as np
import pandas
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from nodeprint.verdict.campaign_verdict import judge, judge_fleet
from nodeprint.words import cause_findings, places
from nodeprint.words.outcome import Finding

from bench import other
from bench import verdict as bench
from nodeprint import outcomes as table
from nodeprint import packed, packing
from nodeprint.errors import NodeprintError
from nodeprint.export import COLUMNS, export
from nodeprint.fingerprint import FIELDS
from nodeprint.judge import acceptance, causes, pairs, tails, thresholds
from nodeprint.judge import terms as tested
from nodeprint.judge.causes import Cause
from nodeprint.judge.configuration import FieldDifference
from nodeprint.layout import CCX, RANK, Layout, codes
from nodeprint.packed import PackedFleet, PackedNode
from nodeprint.simulate import Plan, Spread, fleet, write
from nodeprint.simulate.machines import measured_places
from nodeprint.topology.model import Topology
from nodeprint.topology.presets import from_part, preset
from nodeprint.verdict import outputs, power

ROOT = Path(__file__).parent.parent
QUIET = Spread(core=0.002)
ROME = preset("rome-2x64")
SMALL = preset("naples-2x32")


def outcomes(defects: tuple[str, ...] = (), nodes: int = 8, seed: int = 1, jobs: int = 1) -> dict[str, str]:
    found = judge_fleet(fleet(Plan(SMALL, nodes=nodes, seed=seed, jobs=jobs, spread=QUIET, defects=defects)))
    return {name: node.verdict for name, node in found.nodes.items()}


# --- promises over fleets ---------------------------------------------------------------------------------------------


def test_healthy_fleets_are_not_accused():
    accused = 0
    for seed in range(12):
        make = (
            bench.simulated(SMALL, 8, seed, Spread(core=0.005))
            if seed % 2
            else bench.others(SMALL, 8, seed, other.Other(core_tail=0))
        )
        _, verdict = bench.flow(make)
        accused += verdict.fleet.counts.get("DEVIATES", 0)
    assert accused == 0


@pytest.mark.parametrize("planted", bench.PLANTED, ids=lambda p: p.text.split("{")[0])
def test_planted_defects_are_found_and_named_and_half_of_them_is_not(planted, monkeypatch):
    judged = []

    def flow(make):
        judged.append(bench_flow(make))
        return judged[-1]

    bench_flow = bench.flow
    monkeypatch.setattr(bench, "flow", flow)
    ((strong, weak, right),) = bench.power(4, 8, QUIET, (planted,)).values()
    assert strong >= 3
    assert right >= 3
    assert weak == 0
    assert all(v.verdict != "DEVIATES" for _, last in judged for name, v in last.nodes.items() if name != "node001")


def test_what_classes_share_is_named_by_its_own_size_and_not_by_the_noise_of_one():
    shared = Cause("node", {}, np.arange(3), np.full(3, 1 / 3), 0.015, 1.5, "percent")
    threshold, level_ns = np.full(3, 0.02), np.array([25.0, 100.0, 200.0])
    assert not causes.stands_out(shared, threshold, level_ns)
    assert causes.stands_out(structs.replace(shared, effect=0.025), threshold, level_ns)
    # 1.5 ns are 6 % of the first class
    assert causes.stands_out(structs.replace(shared, constant_in="ns"), threshold, level_ns)


#: The family of each pool of pairs.
_FAMILIES = list(tested.FAMILIES)
_POOLS = {number: _FAMILIES[number // 2] for number in range(2 * len(_FAMILIES))}


@pytest.mark.parametrize(("near", "far", "heavy"), [(3, 3, True), (3, 200, False), (200, 3, False), (200, 200, False)])
def test_coarse_parts_have_a_heavy_tail_where_cores_show_one_near_and_far(near, far, heavy):
    rng = np.random.default_rng(1)
    families = ("class", "core-near", "core-far")
    pool = np.repeat([2 * _FAMILIES.index(name) for name in families], (12, 128, 128))
    silicon = np.concatenate([rng.standard_t(df, (8, n)) for df, n in ((200, 12), (near, 128), (far, 128))], axis=1)
    values = 0.003 * (silicon[:, None] + 0.3 * rng.standard_normal((8, 2, 268)))
    stats = thresholds.statistics(
        values,
        pool,
        np.full(268, 0.02),
        prior=np.full(268, 0.003),
        pools=_POOLS,
        alpha=1e-4,
        trusted=np.full(8, True),
    )
    assert (stats.families["class"].tail_df <= 6) == heavy


def _beyond_their_thresholds(fleets, alpha):
    """How many of eight healthy nodes in each of so many fleets, whose cores have heavy tails beneath as much noise."""
    rng = np.random.default_rng(1)
    pool = np.full(128, 2 * _FAMILIES.index("core-near"))
    count = 0
    for _ in range(fleets):
        values = 0.003 * (rng.standard_t(3, (8, 1, 128)) + rng.standard_normal((8, 2, 128)))
        stats = thresholds.statistics(
            values,
            pool,
            np.zeros(128),
            prior=np.full(128, 0.003),
            pools=_POOLS,
            alpha=alpha,
            trusted=np.full(8, True),
        )
        count += int((np.abs(stats.deviation) > stats.threshold).any(axis=1).sum())
    return count


def test_a_heavy_tail_beneath_noise_is_seen(monkeypatch):
    """As many healthy nodes exceed a threshold as are meant to; by the tail of the sum it is four times as many."""
    assert _beyond_their_thresholds(50, 0.01) <= 2 * 0.01 * 50 * 8
    monkeypatch.setattr(thresholds._Family, "noise", 0.0)
    assert _beyond_their_thresholds(50, 0.01) > 3 * 0.01 * 50 * 8


def test_parts_of_a_thousand_nodes_have_a_tail_though_it_is_heavier_than_any_that_means_may_have():
    rng = np.random.default_rng(1)
    tail = tails.tail_of(rng.standard_t(2, (1000, 64)), tails.OF_MEANS)
    assert tail.sum() == pytest.approx(1) and tails.degrees_of(tail) == pytest.approx(8)


def test_what_covers_more_classes_is_found_smaller():
    for topology in (ROME, preset("icelake-2x40")):
        size = judge_fleet(bench.simulated(topology, 8, 1, QUIET)({})).fleet.smallest_effect
        assert size["node"] <= size["fabric"] <= size["socket_link"]
        assert size["node"] < size["socket"]
        assert size["node"] < size["class"]


@pytest.mark.parametrize("text", ["core 37 +6ns", "half-row 37 +14%", "core-clock 37 -30%"])
def test_defects_that_are_no_terms_are_found(text):
    _, verdict = bench.flow(bench.simulated(ROME, 8, 1, QUIET, (f"node001: {text}",)))
    assert verdict.nodes["node001"].verdict == "DEVIATES"
    assert verdict.nodes["node001"].findings[0].where["core"] == 37


@pytest.mark.parametrize(
    ("text", "where", "consistent_with"),
    [
        ("fabric +8%", {"beyond_class": 1}, ("fabric clock", "NPS setting")),
        ("nps 1", {"class": 4}, ("fabric clock", "NPS setting")),
        (
            "socket-link +8%",
            {"class": 5, "socket": 0, "to_socket": 1},
            ("width or speed of the link between the sockets",),
        ),
    ],
)
def test_what_classes_are_consistent_with(text, where, consistent_with):
    shown = judge_fleet(fleet(Plan(SMALL, nodes=8, spread=QUIET, defects=(f"node001: {text}",)))).nodes["node001"]
    assert (shown.findings[0].where, shown.findings[0].consistent_with) == (where, consistent_with)


def test_one_cause_is_one_finding_and_two_are_two():
    _, one = bench.flow(bench.simulated(ROME, 8, 1, QUIET, ("node001: core 37 +30%",)))
    assert [f.term for f in one.nodes["node001"].findings] == ["core"]
    _, two = bench.flow(bench.simulated(ROME, 8, 1, QUIET, ("node001: core 37 +15%", "node001: link q0-q2 +8%")))
    assert {f.term for f in two.nodes["node001"].findings} == {"core", "link"}


def test_a_part_has_one_number_where_it_is_planted_found_and_drawn():
    """On Genoa the order of quadrants is not that of CCDs, and CPUs are in neither."""
    topology = from_part("EPYC 9654", 1, smt=False)
    texts = ("ccd 7 to-others +8%", "core 50 +15%", "link q1-q3 +8%")
    defects = tuple(f"node00{i}: {text}" for i, text in enumerate(texts, start=1))
    found = fleet(Plan(topology, nodes=8, jobs=2, passes=1, spread=QUIET, defects=defects))
    verdict = judge_fleet(found)
    ccd, core, link = (verdict.nodes[f"node00{i}"].findings[0] for i in (1, 2, 3))
    assert ccd.where["ccd"] == 7
    assert core.where["core"] == 50 and core.where["cpu"] in topology.groups("core")[50]
    assert {link.where["quadrant"], link.where["to_quadrant"]} == {1, 3}
    stack, node = found.pairs[0], found.nodes[1]
    values = np.median(stack.values.reshape(len(stack.node), -1, len(stack.pairs)), axis=1)
    slower = np.median(values[stack.node == 1], axis=0) / np.median(values[stack.node != 1], axis=0) > 1.04
    count = np.bincount(stack.pairs[slower].ravel(), minlength=len(node.cpus))
    cpus = {cpu for cpu, slow in zip(node.cpus, count, strict=True) if slow > len(node.cpus) / 2}
    assert cpus == set(topology.groups("ccd")[7])  # the floor plan colours CPUs


def test_a_die_that_is_a_quadrant_is_one_finding():
    verdict = judge_fleet(fleet(Plan(SMALL, nodes=8, jobs=2, spread=QUIET, defects=("node001: ccd 3 +8%",))))
    assert [(f.term, f.where) for f in verdict.nodes["node001"].findings] == [("ccd", {"ccd": 3})]


def test_a_busy_core_is_measured_again_and_cleared():
    first, final = bench.flow(bench.simulated(ROME, 8, 1, QUIET, ("node001: busy core 5 run 1",)))
    assert first.nodes["node001"].verdict == "INVALID"
    assert re.fullmatch(r"(runs differ in )?core 5 \(CPU 5\).*; measure it again", first.nodes["node001"].text)
    assert final.nodes["node001"].verdict in ("SAME", "INCONCLUSIVE")
    both = ("node001: busy core 5 run 1", "node001: busy core 5 run 2")
    first, final = bench.flow(bench.simulated(ROME, 8, 1, QUIET, both))
    assert first.nodes["node001"].verdict in ("SUSPECT", "INVALID")
    assert final.nodes["node001"].verdict in ("SAME", "INCONCLUSIVE")


@pytest.mark.parametrize(("nodes", "cores"), [(8, (9, 9)), (8, (9, 40)), (16, (9, 22, 40))])
def test_nodes_with_a_slow_core_each_do_not_hide_each_other(nodes, cores):
    slow = {f"node{2 * i + 1:03d}": core for i, core in enumerate(cores)}
    found = outcomes(tuple(f"{node}: core {core} +20%" for node, core in slow.items()), nodes=nodes)
    assert {found[node] for node in slow} == {"SUSPECT"}


def test_two_slow_cores_of_four_are_named_and_not_the_two_others():
    found = judge_fleet(fleet(Plan(SMALL, nodes=8, spread=QUIET, defects=tuple(
        f"node001: core {core} +15%" for core in (9, 10)
    )))).nodes["node001"].findings  # fmt: skip
    assert {one.where["core"] for one in found if one.term == "core"} == {9, 10}
    assert all(one.effect > 0 for one in found)


def _with_rows(found: PackedFleet, node: int, factor: np.ndarray) -> PackedFleet:
    """The fleet with the values of one node, a row a run, times `factor`."""
    stack = found.pairs[0]
    values = np.asarray(stack.values).copy()
    values[stack.node == node] *= factor.astype(np.float32)
    return dataclasses.replace(found, quantities=(dataclasses.replace(stack, values=values),))


def test_runs_that_differ_are_no_steady_deviation():
    found = fleet(Plan(SMALL, nodes=8, jobs=2, spread=QUIET))

    def of_runs(*percent: float) -> str:
        factor = 1 + np.array(percent).reshape(-1, 1, 1) / 100
        return judge_fleet(_with_rows(found, 1, factor)).nodes["node001"].verdict

    assert of_runs(0, 9, 0, 9) == "UNSTABLE"
    assert of_runs(6, 11, 6, 11) == "DEVIATES"  # every run is beyond by itself


def test_chips_that_are_very_much_alike_are_the_same():
    found = fleet(Plan(SMALL, nodes=8, spread=QUIET))
    stack = found.pairs[0]
    template = np.median(stack.values, axis=(0, 1))
    for closer in (0.1, 0.0):
        values = (template + closer * (stack.values - template)).astype(np.float32)
        alike = judge_fleet(dataclasses.replace(found, quantities=(dataclasses.replace(stack, values=values),)))
        assert alike.fleet.counts == {"SAME": 8}


def test_a_node_noisier_than_its_peers_is_held_against_its_own_noise():
    rng = np.random.default_rng(1)
    values = rng.normal(0, 0.005, (8, 2, 128))
    noise = rng.normal(0, 0.005, (8, 2, 128)) * np.where(np.arange(8) == 3, 8, 1)[:, None, None]
    pool = np.full(128, 2 * _FAMILIES.index("core-near"))
    threshold = thresholds.statistics(
        values + noise, pool, np.full(128, 0.001), prior=np.full(128, 0.006), pools=_POOLS, alpha=1e-4,
        trusted=np.ones(8, dtype=np.bool_),
    ).threshold.mean(axis=1)  # fmt: skip
    assert threshold[3] > 3 * np.delete(threshold, 3).max()


def test_one_job_is_at_most_suspect():
    assert outcomes(("node001: global +20%",))["node001"] == "SUSPECT"
    assert outcomes(("node001: global +20%",), jobs=2)["node001"] == "DEVIATES"


def _begun(found: PackedFleet, minutes: dict[int, int]) -> PackedFleet:
    """The fleet with each job beginning at so many minutes."""
    stacks = [
        dataclasses.replace(
            s, started=tuple(f"2026-01-01T{minutes[j] // 60:02d}:{minutes[j] % 60:02d}:00Z" for j in s.job)
        )
        for s in found.pairs
    ]
    return dataclasses.replace(found, quantities=tuple(stacks))


def test_what_a_figure_in_ns_is_of_is_said():
    """All classes of a slow node are slower by the same percentage, and by as many ns as each has."""
    found = judge_fleet(fleet(Plan(SMALL, nodes=8, jobs=2, spread=QUIET, defects=("node001: global +20%",))))
    assert re.match(
        r"the whole node is [\d.]+ % \(\+[\d.]+ ns in class '[a-zA-Z ]+' on socket \d\) slower",
        found.nodes["node001"].text,
    )
    found = judge_fleet(fleet(Plan(SMALL, nodes=8, jobs=2, spread=QUIET, defects=("node001: ccd 3 +8%",))))
    assert re.match(r"CCD 3 is [\d.]+ % \(\+[\d.]+ ns\) slower", found.nodes["node001"].text)


def test_a_second_job_too_soon_proves_no_more_than_the_first():
    found = fleet(Plan(SMALL, nodes=8, jobs=2, spread=QUIET, defects=("node001: global +20%",)))
    soon = judge_fleet(_begun(found, {1: 0, 2: 9})).nodes["node001"]
    assert soon.verdict == "SUSPECT"
    assert "less than 10 minutes" in soon.text
    assert judge_fleet(_begun(found, {1: 0, 2: 10})).nodes["node001"].verdict == "DEVIATES"


def test_all_later_jobs_speak_and_the_newest_may_clear():
    plan = Plan(SMALL, nodes=8, jobs=4, spread=QUIET)
    calm = fleet(plan)
    bad = fleet(dataclasses.replace(plan, defects=("node001: core 5 +25%",)))

    def mixed(shows: set[int]) -> str:
        """The verdict of node001 where only some of its jobs have the defect."""
        stack, other_stack = calm.pairs[0], bad.pairs[0]
        rows = (stack.node == 1) & np.isin(stack.job, list(shows))
        values = np.where(rows[:, None, None], other_stack.values, stack.values)
        return (
            judge_fleet(dataclasses.replace(calm, quantities=(dataclasses.replace(stack, values=values),)))
            .nodes["node001"]
            .verdict
        )

    assert mixed({1, 2, 3, 4}) == mixed({2, 3, 4}) == "DEVIATES"
    assert mixed({4}) == "SUSPECT"
    assert mixed({1, 2, 4}) in ("SUSPECT", "DEVIATES")  # most of what came after the first shows it
    for repaired in ({1}, {1, 2}, {1, 2, 3}):
        assert mixed(repaired) in ("SAME", "INCONCLUSIVE")


def test_evidence_names_what_was_seen_and_what_is_missing():
    found = fleet(Plan(SMALL, nodes=8, jobs=2, spread=QUIET, defects=("node001: core 5 +20%",)))
    blind = judge_fleet(found).nodes["node001"].findings[0]
    assert "not known: temperature" in blind.evidence
    assert any(text.startswith("not known: core clocks") for text in blind.evidence)
    slots = found.pairs[0].layout.slots
    mine = np.unique(slots[:, :5], axis=0, return_inverse=True)[1].reshape(-1) == 5

    def told(factor: float) -> Finding:
        nodes = tuple(
            dataclasses.replace(
                node,
                senses={
                    "clock_ghz": np.where(mine & (node.name == "node001"), 3 * factor, 3.0).tolist(),
                    "temperature_c": 80.0 if node.name == "node001" else 60.0,
                    "memory_errors": 0,
                },
            )
            for node in found.nodes
        )
        return judge_fleet(dataclasses.replace(found, nodes=nodes)).nodes["node001"].findings[0]

    slow, alike = told(0.85), told(1.0)
    assert slow.consistent_with == ("core clock",)
    assert "seen: core clock -15.0 % against the peers'" in slow.evidence
    assert "seen: temperature 80 C, the peers have 60 C" in slow.evidence
    assert "not seen: memory errors (EDAC)" in slow.evidence
    assert alike.consistent_with and not any("clock" in text for text in alike.consistent_with)


def test_recheck_names_the_suspect_and_two_beside_it():
    verdict = judge_fleet(fleet(Plan(SMALL, nodes=8, spread=QUIET, defects=("node003: global +20%",))))
    assert "node003" in verdict.recheck
    assert len(verdict.recheck) == 3


def test_nodes_without_any_comparable_measurement_are_inconclusive():
    found = dataclasses.replace(fleet(Plan(SMALL, nodes=2)), quantities=())
    verdict = judge_fleet(found)
    assert {node.verdict for node in verdict.nodes.values()} == {"INCONCLUSIVE"}
    assert "nothing was measured that can be compared" in verdict.nodes["node000"].text


def test_lost_jobs_use_up_no_recheck():
    found = fleet(Plan(SMALL, nodes=8, spread=QUIET, defects=("node003: global +20%",)))
    third = tuple(dataclasses.replace(one, job=np.full_like(one.job, 3)) for one in found.quantities)
    assert "node003" in judge_fleet(dataclasses.replace(found, quantities=third)).recheck


def test_recheck_takes_its_companions_from_the_same_rack():
    found = fleet(Plan(SMALL, nodes=8, spread=QUIET, defects=("node003: global +20%",)))
    racks = [dataclasses.replace(node, rack="far" if i in (2, 4) else "near") for i, node in enumerate(found.nodes)]
    verdict = judge_fleet(dataclasses.replace(found, nodes=tuple(racks)))
    assert "node003" in verdict.recheck and len(verdict.recheck) == 3
    assert not {"node002", "node004"} & set(verdict.recheck)


# --- sizes and populations --------------------------------------------------------------------------------------------


def test_alone_and_two():
    alone = judge_fleet(fleet(Plan(SMALL, nodes=1, spread=QUIET)))
    assert alone.fleet.text == "NO PEER: 1 of 1 nodes measured" and not alone.fleet.notes
    assert [node.verdict for node in alone.nodes.values()] == ["NO PEER"]
    for seed in range(4):
        for text in ("global +3%", "core 5 +6%"):
            assert outcomes((f"node001: {text}",), nodes=2, seed=seed)["node001"] not in ("SAME", "DEVIATES")
    gone = fleet(Plan(SMALL, nodes=2, jobs=2, spread=QUIET, defects=("node001: global +20%",)))
    calm = fleet(Plan(SMALL, nodes=2, jobs=2, spread=QUIET)).pairs[0]
    values = np.where((calm.job == 2)[:, None, None], calm.values, gone.pairs[0].values)
    once = judge_fleet(dataclasses.replace(gone, quantities=(dataclasses.replace(calm, values=values),)))
    assert set(once.fleet.counts) <= {"SAME", "INCONCLUSIVE"}
    both = outcomes(("node001: global +20%",), nodes=2, jobs=2)
    assert both == {"node000": "DIFFER", "node001": "DIFFER"}


@pytest.mark.parametrize("preset_name", ["rome-2x64", "milan-2x64"])
def test_a_core_of_one_of_two_nodes_is_named_whole(preset_name):
    plan = Plan(preset(preset_name), nodes=2, seed=1, spread=QUIET, defects=("node001: core 37 +20%",))
    for node in judge_fleet(fleet(plan)).nodes.values():
        assert node.verdict == "DIFFER"
        assert [(one.term, one.where) for one in node.findings] == [("core", {"core": 37, "cpu": 37})]


@pytest.mark.parametrize("nodes", [3, 4])
def test_of_three_or_four_one_is_blamed_only_when_the_others_agree(nodes):
    for text in ("global +20%", "core 5 +40%"):
        one = outcomes((f"node001: {text}",), nodes=nodes, jobs=2)
        assert one.pop("node001") == "DEVIATES"
        assert set(one.values()) <= {"SAME", "INCONCLUSIVE"}
    apart = outcomes(("node001: global +20%", "node002: global -20%"), nodes=nodes, jobs=2)
    assert "DEVIATES" not in apart.values()


def test_two_populations_blame_nobody():
    half = tuple(f"node{i:03d}: fabric +6%" for i in range(4))
    verdict = judge_fleet(fleet(Plan(ROME, nodes=8, jobs=2, spread=QUIET, defects=half)))
    assert verdict.fleet.outcome == "TWO POPULATIONS"
    assert not {"DEVIATES", "SUSPECT", "SAME"} & set(verdict.fleet.counts)
    assert {tuple(g["nodes"]) for g in verdict.fleet.groups} == {
        tuple(f"node{i:03d}" for i in range(4)),
        tuple(f"node{i:03d}" for i in range(4, 8)),
    }


def test_half_of_a_fleet_with_a_slow_core_is_a_second_population():
    half = tuple(f"node{i:03d}: core 37 +8%" for i in range(4))
    verdict = judge_fleet(fleet(Plan(ROME, nodes=8, spread=QUIET, defects=half)))
    assert verdict.fleet.outcome == "TWO POPULATIONS" and "SAME" not in verdict.fleet.counts
    assert {group["told_apart_by"] for group in verdict.fleet.groups} == {"core 37"}


def test_a_socket_beyond_its_ccxs_and_the_inside_of_a_ccd_are_one_finding_each():
    def planted(node, job, run, latency, layout):
        (socket, _, ccd), (to_socket, _, to_ccd) = layout.slots[layout.pairs][:, :, :3].transpose(1, 2, 0)
        beyond = (socket == to_socket) & (socket == 1) & (layout.classes > 1)
        inside = (socket == to_socket) & (ccd == to_ccd) & (socket == 0) & (ccd == 3) & (layout.classes > 0)
        return latency * np.where(((node == 1) & beyond) | ((node == 2) & inside), 1.12, 1.0)

    calm = other.Other(core=0.002, core_tail=0, keeps=0.002, bimodal=0.0)
    verdict = judge_fleet(other.fleet(ROME, 8, 3, jobs=2, other=calm, plant=planted))
    socket, ccd = (verdict.nodes[f"node{i:03d}"].findings[0] for i in (1, 2))
    assert (socket.term, socket.where) == ("socket", {"socket": 1, "beyond_class": 1})
    assert socket.text.startswith("socket 1 beyond its CCXs is ")
    assert (ccd.term, ccd.where) == ("ccd", {"ccd": 3, "inside": 1}) and ccd.text.startswith("the inside of CCD 3 is ")


def test_a_finding_has_the_size_of_its_largest_term_and_never_less_than_the_bound():
    verdict = judge_fleet(fleet(Plan(ROME, nodes=8, jobs=2, spread=QUIET, defects=("node001: core-clock 37 -30%",))))
    found = verdict.nodes["node001"].findings[0]
    bound = acceptance.load().bounds["core"]
    assert found.constant_in == "ns" and found.effect > bound and 2 < found.effect_ns < 4
    assert found.interval[0] < found.effect < found.interval[1]
    assert "largest inside its CCX" in found.text


def test_a_node_that_is_set_aside_counts_all_others():
    values = np.random.default_rng(3).normal(0, 0.01, (4, 2, 1))
    everyone = np.ones(4, dtype=bool)

    def thresholds_of(trusted: np.ndarray) -> np.ndarray:
        pool, bound = np.zeros(1, dtype=np.int64), np.full(1, 1e-6)
        return thresholds.statistics(
            values, pool, bound, prior=np.full(1, 0.01), pools=_POOLS, alpha=1e-3, trusted=trusted
        ).threshold

    without = thresholds_of(np.arange(4) != 2)
    assert without[2] == thresholds_of(everyone)[2]  # the same three peers, whether it is set aside or not
    assert without[0] != thresholds_of(everyone)[0]


def test_a_wide_fleet_does_not_excuse_itself():
    verdict = judge_fleet(fleet(Plan(SMALL, nodes=16, seed=3, spread=dataclasses.replace(QUIET, node=0.05))))
    assert verdict.fleet.outcome in ("NOT UNIFORM", "TWO POPULATIONS")
    assert verdict.fleet.counts.get("SAME", 0) == 0


def test_other_configurations_are_named():
    defects = ("node001: fingerprint governor=powersave", "node002: harvest 1")
    verdict = judge_fleet(fleet(Plan(SMALL, nodes=8, spread=QUIET, defects=defects)))
    assert verdict.nodes["node001"].verdict == verdict.nodes["node002"].verdict == "DIFFERENT CONFIGURATION"
    assert "governor" in verdict.nodes["node001"].text


def test_power_tells_the_smallest_effect_by_noise():
    calm, loud = (power.power(SMALL, QUIET.times(noise), nodes=(5,), runs=(2,), seeds=1)[0] for noise in (1, 3))
    assert (calm.nodes, calm.runs) == (5, 2)
    assert all(calm.smallest_effect[term] < loud.smallest_effect[term] for term in ("class", "ccd", "ccx", "core"))
    head, names, row = power.as_text([calm]).splitlines()
    assert head.startswith("SIMULATED")
    assert dict(zip(names.split(), row.split(), strict=True))["ccd"] == f"{calm.smallest_effect['ccd']:.1%}"


# --- invariances ------------------------------------------------------------------------------------------------------


def _shuffled(found: PackedFleet, order: list[int]) -> PackedFleet:
    at = {old: new for new, old in enumerate(order)}
    stacks = []
    for stack in found.pairs:
        rows = np.argsort([at[n] for n in stack.node.tolist()], kind="stable")
        stacks.append(
            dataclasses.replace(
                stack,
                node=np.array([at[n] for n in stack.node.tolist()])[rows],
                job=stack.job[rows],
                run=stack.run[rows],
                started=tuple(stack.started[row] for row in rows),
                values=np.asarray(stack.values)[rows],
            )
        )
    return dataclasses.replace(found, nodes=tuple(found.nodes[i] for i in order), quantities=tuple(stacks))


def test_node_order_cpu_numbers_and_units_do_not_matter():
    defects = ("node001: core 5 +15%",)
    found = fleet(Plan(SMALL, nodes=8, jobs=2, spread=QUIET, defects=defects))
    plain = judge_fleet(found)
    other_order = judge_fleet(_shuffled(found, [3, 1, 4, 0, 5, 7, 2, 6]))
    assert {n: v.verdict for n, v in plain.nodes.items()} == {n: v.verdict for n, v in other_order.nodes.items()}
    renumbered = outcomes((*defects, "node002: renumbered", "node005: renumbered"), jobs=2)
    assert renumbered["node001"] == "DEVIATES"
    assert "DEVIATES" not in (renumbered["node002"], renumbered["node005"])
    larger = [dataclasses.replace(one, values=np.asarray(one.values) * np.float32(4)) for one in found.pairs]
    scaled = dataclasses.replace(found, quantities=tuple(larger))
    assert judge_fleet(scaled).nodes["node001"].verdict == plain.nodes["node001"].verdict == "DEVIATES"


def test_a_larger_defect_is_never_a_milder_verdict():
    rank = {"SAME": 0, "INCONCLUSIVE": 1, "SUSPECT": 2, "DEVIATES": 3}
    for text in ("core 5 +{}%", "global +{}%", "ccd 3 to-others +{}%"):
        seen = [
            rank[outcomes((f"node001: {text.format(size)}",), jobs=2)["node001"]] for size in (0, 2, 5, 10, 20, 40, 80)
        ]
        assert seen == sorted(seen), (text, seen)
        assert seen[-1] == 3


def test_adding_healthy_nodes_keeps_the_finding():
    for nodes in (6, 8, 20):
        assert outcomes(("node001: core 5 +20%",), nodes=nodes, jobs=2)["node001"] == "DEVIATES"


AGAIN = {"node000": 2, "node001": 2, "node002": 2}


def _of_core(found: PackedFleet, core: int, factor: float, *, job: int = 0, inside: bool = False) -> PackedFleet:
    """The fleet with the pairs of a core of node001 (in its CCX alone, in one job alone) by a factor slower."""
    (stack,) = found.pairs
    slots, (a, b) = stack.layout.slots, stack.pairs.T
    cores, ccxs = (codes(slots[:, : level + 1]) for level in (RANK, CCX))
    mine = ((cores[a] == core) ^ (cores[b] == core)) & ((ccxs[a] == ccxs[b]) | (not inside))
    rows = np.flatnonzero((stack.node == 1) & ((stack.job == job) | (job == 0)))
    values = np.asarray(stack.values).copy().reshape(*stack.values.shape[:2], len(stack.homes), -1)
    values[rows] *= np.where(mine, np.float32(factor), np.float32(1))
    return dataclasses.replace(
        found, quantities=(dataclasses.replace(stack, values=values.reshape(stack.values.shape)),)
    )


@pytest.mark.parametrize("core", [12, 14, 17])
def test_a_core_of_a_harvested_ccx_is_named_and_confirmed(core: int) -> None:
    healthy = fleet(Plan(from_part("EPYC 7443", 2), nodes=8, runs=4, spread=QUIET), AGAIN)
    verdict = judge_fleet(_of_core(healthy, core, 1.3, inside=True))
    assert verdict.nodes["node001"].verdict == "DEVIATES"
    assert verdict.nodes["node001"].text.startswith(f"core {core} (CPU {core}) inside its CCX is ")
    assert {node.verdict for name, node in verdict.nodes.items() if name != "node001"} == {"SAME"}
    near = judge_fleet(_of_core(healthy, core, 1.06, inside=True)).nodes["node001"].margins["core-in"]
    assert near.place == f"core {core} (CPU {core}) inside its CCX"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("machine", [SMALL, from_part("EPYC 7443", 2)])
def test_what_a_second_job_lacks_is_neither_confirmed_nor_refuted(machine: Topology) -> None:
    found = fleet(Plan(machine, nodes=8, spread=QUIET, defects=("node001: core 9 +20%",)), AGAIN)
    verdict = judge_fleet(_of_core(found, 9, np.nan, job=2))
    assert verdict.nodes["node001"].verdict == "SUSPECT"
    assert "node001" in verdict.recheck
    healthy = fleet(Plan(machine, nodes=8, spread=QUIET), AGAIN)
    assert "too few pairs" in judge_fleet(_of_core(healthy, 9, np.nan, job=2)).nodes["node001"].text
    assert judge_fleet(_of_core(healthy, 9, np.nan, job=1)).nodes["node001"].verdict == "SAME"


def test_what_is_not_confirmed_is_said_as_it_was_seen() -> None:
    found = fleet(Plan(SMALL, nodes=8, runs=4, spread=QUIET), AGAIN)
    node = judge_fleet(_of_core(found, 9, 1.2, job=1)).nodes["node001"]
    (gone,) = [one for one in node.findings if one.id == "not-confirmed"]
    assert node.verdict == "SAME" and "was seen in job1/run[1-4] and not confirmed" in node.text
    assert gone.text.startswith("core 9 (CPU 9) is ") and gone.text.endswith("in job1/run[1-4]")
    assert 0.15 < gone.effect < 0.25 and set(gone.runs) == {f"job1/run{run}" for run in range(1, 5)}


def test_one_cause_at_several_homes_is_one_finding_of_one_node() -> None:
    plan = Plan(SMALL, nodes=8, runs=6, passes=2, homes=(-1, 10_000), spread=Spread(core=0.003))
    defects = ("node001: intermittent core 9 +40%",)
    verdict = judge_fleet(fleet(dataclasses.replace(plan, defects=defects), AGAIN))
    assert [one.id for one in verdict.nodes["node001"].findings] == ["core-slow", "unstable"]
    assert not any("share a deviation" in note for note in verdict.fleet.notes)
    (stack,) = fleet(plan).pairs
    values = np.asarray(stack.values).copy()
    values[stack.node == 1, :, values.shape[2] // 2 :] *= np.float32(1.06)
    far = judge_fleet(dataclasses.replace(fleet(plan), quantities=(dataclasses.replace(stack, values=values),)))
    (found,) = far.nodes["node001"].findings
    assert ", with lines at the far home, in job1/run[1-6]" in found.text


def test_a_node_with_twice_the_noise_of_its_peers_is_not_unstable() -> None:
    found = fleet(Plan(SMALL, nodes=8, runs=6, passes=2, spread=Spread(core=0.003)))
    (stack,) = found.pairs
    values = np.asarray(stack.values).copy()
    mine = values[stack.node == 1]
    values[stack.node == 1] += mine - mine.mean(axis=(0, 1))
    verdict = judge_fleet(dataclasses.replace(found, quantities=(dataclasses.replace(stack, values=values),)))
    assert verdict.nodes["node001"].verdict in ("SAME", "INCONCLUSIVE")


def _throttled(found: PackedFleet, *jobs: int) -> PackedFleet:
    """The fleet with node001 throttled in some jobs, which makes them invalid."""
    seen = tuple({"job": job, "measurement": "coherence-cas", "run": 1, "throttled": 50} for job in jobs)
    one = dataclasses.replace(found.nodes[1], seen=seen)
    return dataclasses.replace(found, nodes=(found.nodes[0], one, *found.nodes[2:]))


def test_an_invalid_job_neither_confirms_nor_refutes() -> None:
    found = fleet(Plan(SMALL, nodes=8, jobs=3, spread=QUIET))
    slow = _of_core(_of_core(found, 5, 1.1, job=1), 5, 1.12, job=3)
    assert judge_fleet(slow).nodes["node001"].verdict == "DEVIATES"
    last = judge_fleet(_throttled(slow, 3)).nodes["node001"]
    assert last.verdict == "INVALID" and {one.severity for one in last.findings} == {"info"}
    beside = _of_core(_of_core(_of_core(found, 5, 1.1, job=1), 5, 1.12, job=2), 5, 1.03, job=3)
    assert judge_fleet(_throttled(beside, 2)).nodes["node001"].verdict == "SAME"
    # two invalid jobs that follow each other within minutes are one
    (stack,) = found.pairs
    started = tuple("2026-01-01T00:00:00" if job > 1 else "2026-01-01T09:00:00" for job in stack.job.tolist())
    at_once = dataclasses.replace(found, quantities=(dataclasses.replace(stack, started=started),))
    assert judge_fleet(_throttled(at_once, 2, 3)).nodes["node001"].verdict == "INVALID"
    assert judge_fleet(_throttled(found, 2, 3)).nodes["node001"].verdict == "UNSTABLE"


def test_a_gap_on_one_node_does_not_hide_a_core_that_varies_on_another() -> None:
    found = fleet(Plan(SMALL, nodes=8, spread=QUIET))
    loose = _of_core(found, 9, 1.0)
    (stack,) = loose.pairs
    values = np.asarray(stack.values).copy()
    mine = np.isin(codes(stack.layout.slots[:, : RANK + 1])[stack.pairs], 9).any(axis=1)
    values[np.ix_(stack.node == 1, [0], mine)] *= np.float32(0.92)
    values[np.ix_(stack.node == 1, [2], mine)] *= np.float32(1.08)
    for gap in ((), np.flatnonzero(stack.node == 5)[:1]):
        values[gap, 1:] = np.nan
        changed = dataclasses.replace(loose, quantities=(dataclasses.replace(stack, values=values),))
        assert "core 9 (CPU 9) varies" in judge_fleet(changed).nodes["node001"].text


def test_a_crowd_is_of_one_side_and_of_the_whole_cause() -> None:
    shared = ("socket 1 +6%", "socket 1 +5%", "socket 1 +6%")
    alike = tuple(f"node{i:03d}: {text}" for i, text in enumerate(("global +20%", *shared)))
    crowd = judge_fleet(fleet(Plan(SMALL, nodes=12, jobs=2, spread=QUIET, defects=alike)))
    assert crowd.nodes["node000"].verdict == "DEVIATES"
    assert [crowd.nodes[f"node{i:03d}"].verdict for i in (1, 2, 3)] == ["INCONCLUSIVE"] * 3
    sides = tuple(f"node{i:03d}: core 5 {text}" for i, text in enumerate(("+12%", "-9%", "+9%")))
    both = judge_fleet(fleet(Plan(SMALL, nodes=12, jobs=2, spread=QUIET, defects=sides)))
    assert [both.nodes[f"node{i:03d}"].verdict for i in range(3)] == ["DEVIATES"] * 3


def test_a_core_that_one_run_has_is_not_the_same() -> None:
    found = fleet(Plan(SMALL, nodes=8, runs=4, spread=QUIET))
    (stack,) = found.pairs
    values = np.asarray(stack.values).copy()
    mine = np.isin(codes(stack.layout.slots[:, : RANK + 1])[stack.pairs], 5).any(axis=1)
    values[np.ix_(np.flatnonzero(stack.node == 1)[1:], range(values.shape[1]), mine)] = np.nan
    node = judge_fleet(dataclasses.replace(found, quantities=(dataclasses.replace(stack, values=values),))).nodes
    assert node["node001"].verdict == "INCONCLUSIVE"
    assert "core 5 (CPU 5) to its socket has one run at most" in node["node001"].text


# --- mutations: each must break a promise -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["template holds the node", "no grouping", "no parents"])
def test_mutations_are_caught(name):
    with bench.mutated(name):
        assert bench.failures(3, 8, Spread(core=0.005))


def test_the_method_itself_passes_what_catches_mutations():
    assert bench.failures(3, 8, Spread(core=0.005)) == []
    assert bench.unsteady(8, Spread(core=0.005)) == bench.beside(3) == []


@pytest.mark.parametrize("name", ["runs agree", "no spread over passes"])
def test_without_what_sees_them_defects_that_come_and_go_are_not_told(name):
    with bench.mutated(name):
        assert bench.unsteady(8, Spread(core=0.005))


@pytest.mark.parametrize("name", ["no mirror", "all that deviate left out at once", "faulty nodes in the tail"])
def test_faulty_nodes_neither_accuse_their_peers_nor_hide_one_another(name):
    with bench.mutated(name):
        assert bench.beside(3)


def test_healthy_chips_with_heavy_tails_are_not_suspected():
    assert bench.heavy(4) == []


@pytest.mark.parametrize("name", ["no z", "normal tails"])
def test_healthy_chips_with_heavy_tails_are_suspected_by_lower_thresholds(name):
    with bench.mutated(name):
        assert bench.heavy(4)


@pytest.mark.parametrize(
    ("term", "where", "said"),
    [
        ("socket", {"socket": 1}, "socket 1"),
        ("ccd", {"ccd": 3, "to_others": 1}, "CCD 3 to all others"),
        ("quadrant", {"quadrant": 2, "across": 1}, "quadrant 2 to the other socket"),
        ("link", {"quadrant": 0, "to_quadrant": 2}, "link quadrant 0 to quadrant 2"),
        ("block", {"ccx": 4, "to_ccx": 5}, "CCX 4 to CCX 5"),
        ("core", {"core": 5, "cpu": 9, "inside": 1}, "core 5 (CPU 9) inside its CCX"),
        ("class", {"class": 1, "socket": 0}, "class 'same CCX' on socket 0"),
    ],
)
def test_places_are_said(term, where, said):
    assert places.spoken(term, where) == said


# --- terms ------------------------------------------------------------------------------------------------------------


def test_no_two_terms_are_of_the_same_pairs():
    """The quadrants of a Naples are its dies: they are examined once, as dies."""
    examined = pairs.of(measured_places(SMALL)[0]).terms
    assert len({term.covers.tobytes() for term in examined}) == len(examined)
    assert not any(term.family == "quadrant" for term in examined)


@pytest.mark.parametrize("name", ["naples-2x32", "rome-2x64", "icelake-2x40", "graviton3-64"])
def test_contrasts_answer_to_their_own_pairs_and_not_to_a_common_shift(name):
    layout: Layout = fleet(Plan(preset(name), nodes=1)).pairs[0].pair_layout
    built = pairs.of(layout)
    assert len(built.terms)
    for number, term in enumerate(built.terms):
        row = built.contrast[number].astype(np.float64)
        own = np.zeros(len(layout.pairs))
        own[term.covers] = 1
        assert row @ own == pytest.approx(1, abs=1e-4)
        shift = row @ np.ones(len(layout.pairs))
        assert shift == pytest.approx(0 if len(term.against) else 1, abs=1e-4)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated campaign of records of eight nodes, judged."""
    folder = tmp_path_factory.mktemp("verdict") / "sim"
    defects = ("node001: core 5 +20%", "node002: missing", "node003: cut", "node004: renumbered")
    write(Plan(SMALL, nodes=8, jobs=2, passes=2, spread=QUIET, defects=defects), folder)
    judge(folder)
    return folder


def test_records_are_judged_like_the_same_draws_packed(campaign):
    verdict = json.loads((campaign / "verdict.json").read_text())
    assert verdict["simulated"] is True
    assert verdict["nodes"]["node001"]["verdict"] == "DEVIATES"
    assert verdict["nodes"]["node001"]["findings"][0]["where"]["core"] == 5
    assert verdict["nodes"]["node002"]["verdict"] == "NOT MEASURED"
    assert verdict["nodes"]["node004"]["verdict"] in ("SAME", "INCONCLUSIVE")
    assert all(c["pairs"] for c in verdict["nodes"]["node003"]["classes"])


def test_clocks_of_the_records_come_to_the_verdict(tmp_path):
    slow = ("node001: core-clock 5 -60%",)
    write(Plan(SMALL, nodes=4, jobs=2, runs=1, passes=1, spread=QUIET, defects=slow), tmp_path)
    shown = judge(tmp_path).nodes["node001"].findings[0]
    assert shown.where["core"] == 5
    assert shown.consistent_with == ("core clock",)
    seen = [text for text in shown.evidence if text.startswith("seen: core clock -")]
    assert len(seen) == 1
    assert float(seen[0].split()[3]) == pytest.approx(-60, abs=1)


@pytest.mark.parametrize(
    ("what", "clock", "effect", "left"),
    [
        (("the core's clock", "interrupts"), None, 0.1, ("the core's clock", "interrupts")),
        (("the core's clock", "interrupts"), 0.8, 0.0, ("interrupts",)),
        (("the core's clock", "interrupts"), 1.01, 0.1, ("interrupts",)),
        (("the core's clock", "interrupts"), 0.9, 0.1, ("core clock",)),
        (("the core's clock", "interrupts"), 0.97, 0.3, ("core clock", "interrupts")),  # it explains a tenth
        (("the core's clock", "interrupts"), 1.1, 0.1, ("interrupts",)),  # a faster clock slows nothing
        (("fabric clock", "NPS setting"), 0.9, 0.1, ("fabric clock", "NPS setting")),
    ],
)
def test_what_the_core_clock_explains(what, clock, effect, left):
    assert cause_findings.by_clock(what, clock, effect) == left


def test_verdict_json_has_its_schema_and_is_the_same_again(campaign):
    schema = json.loads((ROOT / "nodeprint/schemas/verdict.json").read_text())
    text = (campaign / "verdict.json").read_text()
    jsonschema.validate(json.loads(text), schema)
    assert judge(campaign).json() == text
    shutil.rmtree(campaign / "packed")
    assert judge(campaign).json() == text


def test_files_for_other_tools(campaign):
    verdict = judge(campaign)
    tree = ET.parse(campaign / "verdict.xml")
    failed = {case.get("name") for case in tree.iter("testcase") if case.find("failure") is not None}
    assert failed == {"node001"}
    prom = (campaign / "verdict.prom").read_text()
    assert 'node="node001",verdict="DEVIATES"} 1' in prom
    script = (campaign / "drain.sh").read_text()
    assert "node001" in script
    assert not [line for line in script.splitlines() if line and not line.startswith("#")]
    real = structs.replace(verdict, simulated=False)
    assert "scontrol update NodeName='node001' State=DRAIN" in outputs.drain(real, {})
    left = outputs.drain(real, {"node001": ("drained", "disk; rm -rf /")})
    assert not [line for line in left.splitlines() if line.startswith("scontrol")]
    assert subprocess.run(["sh", "-n"], input=outputs.drain(real, {}), text=True, check=False).returncode == 0


def test_fail_on_counts_known_outcomes(campaign):
    verdict = judge(campaign)
    assert {on for one in table.NODE.values() for on in one.fail_on} == set(table.FAIL_ON)
    assert verdict.fails("deviates") and verdict.fails("invalid") and verdict.fails("any")


def test_export_has_every_pair(campaign, tmp_path):
    found = packing.pack(campaign)
    table = pandas.read_parquet(export(found, tmp_path / "out.parquet"))
    text = pandas.read_csv(export(found, tmp_path / "out.csv"))
    count = sum(int(np.isfinite(np.asarray(s.values)).sum()) for s in found.pairs)
    assert len(table) == len(text) == count
    assert list(table.columns) == list(COLUMNS)
    with pytest.raises(NodeprintError, match="neither"):
        export(found, tmp_path / "out.xlsx")


def test_parquet_without_its_package_says_what_to_install(campaign, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NodeprintError, match=r"pip install pyarrow`, or name a file that ends in \.csv"):
        export(packing.pack(campaign), tmp_path / "out.parquet")
    assert not list(tmp_path.glob(".out*"))


def test_what_differs_is_told_in_words_not_in_keys():
    for field in FIELDS:
        told = FieldDifference(field.name, "0123", "4567", field.hard).text
        assert "_" not in told and ("0123" in told) is (field.name != "kernel_hash")
    nodes = [
        dataclasses.replace(node, fingerprint={**node.fingerprint, "kernel_hash": str(i), "numa_balancing": i > 1})
        for i, node in enumerate(fleet(Plan(SMALL, nodes=3)).nodes)
    ]
    verdict = judge_fleet(dataclasses.replace(fleet(Plan(SMALL, nodes=3)), nodes=tuple(nodes)))
    assert verdict.fleet.text == (
        "INCONCLUSIVE: 3 of 3 nodes measured; 3 DIFFERENT CONFIGURATION; the fleet is split by sources of nodeprint's "
        "kernels: 3 nodes with a configuration of their own"
    )
    assert verdict.nodes["node002"].text.startswith("differs in sources of nodeprint's kernels; class medians against")
    assert "kernel_hash" not in verdict.text()
    texts = [warning["text"] for warning in verdict.nodes["node002"].warnings]
    assert "nodeprint's kernels were built from different sources than on most nodes" in texts
    assert "NUMA balancing is True, most nodes have False" in texts


# --- acceptance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("bounds: {percent: {core: -1}}", "bounds.percent.core"),
        ("bounds: {percnt: 1}", "bounds"),
        ("limits: [{measurement: coherence-cas, class: other socket, reason: x}]", "limits[0]"),
        ("priors: {core: {percent: 1}}", "priors.core"),
        ("priors: {core: 1}", "priors.core: must be keys with values"),
        ("required: coherence-cas", "required: must be a list"),
        ("required: [coherence-cass]", "required[0]: 'coherence-cass' is not allowed; did you mean coherence-cas?"),
        (
            "limits: [{measurement: bandwidth-nods, row: x, at_least: 300e9, reason: x}]",
            "limits[0].measurement: 'bandwidth-nods' is not allowed; did you mean bandwidth-nodes?",
        ),
        ("false_alarm_percent: often", "false_alarm_percent: must be a number"),
        ("fingerprint: {hard: [cpu, colour]}", "fingerprint.hard[1]: 'colour' is not allowed"),
        ("cells: {bandwith: {percent: 5, prior: 1, source: x}}", "cells: 'bandwith' is not allowed"),
        (
            "limits: [{measurement: coherence-cas, class: same CCX, row: x, at_most: 1, reason: x}]",
            "limits[0]: class and row are both given",
        ),
        ("suppressions: [{node: a, finding: b, until: 2026-12-31}]", "suppressions[0]: reason is missing"),
        ("suppressions: [{node: a, finding: b, reason: '', until: 2026-12-31}]", "suppressions[0].reason"),
        (
            "suppressions: [{node: a, finding: b, reason: c, until: soon}]",
            "suppressions[0].until: 'soon' is not a date",
        ),
    ],
)
def test_wrong_keys_are_named(tmp_path, text, key):
    path = tmp_path / "acceptance.yaml"
    path.write_text(text)
    with pytest.raises(NodeprintError, match=re.escape(key)):
        acceptance.load(path)


def test_limits_and_suppressions(tmp_path):
    path = tmp_path / "acceptance.yaml"
    limit = {"measurement": "coherence-cas", "class": "other socket", "at_most": 20, "reason": "contract 1"}
    path.write_text(yaml.safe_dump({"limits": [limit]}))
    found = fleet(Plan(SMALL, nodes=4, jobs=2, spread=QUIET, defects=("node001: global +20%",)))
    verdict = judge_fleet(found, acceptance.load(path))
    assert set(verdict.fleet.counts) == {"OUTSIDE LIMIT"}
    known = {"node": "node001", "finding": "*", "reason": "ticket 1", "until": "2999-12-31"}
    path.write_text(yaml.safe_dump({"suppressions": [known]}))
    verdict = judge_fleet(found, acceptance.load(path))
    assert verdict.nodes["node001"].findings[0].suppressed
    assert not verdict.fails("deviates")


def _suppressing(*findings: str, until: str = "2999-12-31") -> acceptance.Acceptance:
    """The default with findings of node001 accepted."""
    day = datetime.date.fromisoformat(until)
    known = tuple(acceptance.Suppression("node001", finding, "ticket 1", day) for finding in findings)
    return dataclasses.replace(acceptance.load(), suppressions=known)


def test_a_suppressed_finding_leaves_the_others():
    defects = ("node001: core 5 +30%", "node001: link q0-q2 +30%")
    found = fleet(Plan(SMALL, nodes=8, jobs=2, spread=QUIET, defects=defects))
    plain = judge_fleet(found).nodes["node001"]
    assert {f.id for f in plain.findings} == {"core-slow", "link-slow"}
    for hidden, left in (("core-slow", "link"), ("link-slow", "core 5")):
        node = judge_fleet(found, _suppressing(hidden)).nodes["node001"]
        assert node.verdict == "DEVIATES"
        assert node.text.startswith(left)
    both = judge_fleet(found, _suppressing("core-slow", "link-slow"))
    assert both.nodes["node001"].verdict == "INCONCLUSIVE"
    assert both.nodes["node001"].text == "suppressed: ticket 1 (until 2999-12-31)"
    assert not both.fails("any")
    assert "node001" not in outputs.drain(structs.replace(both, simulated=False), {})
    misspelt = judge_fleet(found, _suppressing("core-slow", "core-slwo"))
    without = [note for note in misspelt.fleet.notes if "without effect" in note]
    assert without == [
        "suppression without effect (ticket 1): node001 has no finding core-slwo; did you mean core-slow?"
    ]
    day = datetime.date(2999, 12, 31)
    absent = dataclasses.replace(acceptance.load(), suppressions=(acceptance.Suppression("node01", "*", "x", day),))
    assert "suppression without effect (x): there is no node node01; did you mean node001?" in (
        judge_fleet(found, absent).fleet.notes
    )
    ended = judge_fleet(found, _suppressing("*", until="2025-12-31"))  # the day before the first run
    assert ended.nodes["node001"].verdict == "DEVIATES"
    assert any("ended on 2025-12-31" in note for note in ended.fleet.notes)
    limit = acceptance.Limit("coherence-cas", "other socket", 20.0, None, "contract 1")
    rules = dataclasses.replace(_suppressing("outside-limit"), limits=(limit,))
    alone = judge_fleet(fleet(Plan(SMALL, nodes=2)), rules)
    assert alone.nodes["node000"].verdict == "OUTSIDE LIMIT"
    assert alone.nodes["node001"].verdict == "INCONCLUSIVE"


def test_a_limit_that_nothing_is_held_against_is_told():
    limits = tuple(
        acceptance.Limit("coherence-cas", of, 900.0, None, "contract 1") for of in ("other socket", "other sockt")
    )
    verdict = judge_fleet(fleet(Plan(SMALL, nodes=2)), dataclasses.replace(acceptance.load(), limits=limits))
    told = [note for note in verdict.fleet.notes if "contract 1" in note]
    assert told == [
        "limit not applied (contract 1): no node reports coherence-cas, other sockt; did you mean other socket?"
    ]


# --- packed fleets ----------------------------------------------------------------------------------------------------


def test_packed_fleets_come_back_and_bad_ones_are_named(tmp_path):
    found = fleet(Plan(SMALL, nodes=3))
    packed.write(found, tmp_path)
    back = packed.read(tmp_path)
    assert back.nodes == found.nodes
    assert np.array_equal(back.pairs[0].values, found.pairs[0].values)
    index = tmp_path / "packed/index.json"
    whole = index.read_text()
    index.write_text(whole.replace('"name":"node001"', '"name":"node002"'))
    with pytest.raises(NodeprintError, match="node002 is there twice"):
        packed.read(tmp_path)
    index.write_text(whole.replace('"dims":["home","a","b"]', '"dims":["a","b"]'))
    with pytest.raises(NodeprintError, match="shape"):
        packed.read(tmp_path)
    index.write_text("{")
    with pytest.raises(NodeprintError, match="not a packed fleet"):
        packed.read(tmp_path)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("nothing", [np.nan, 0.0, -100.0, np.inf])
@pytest.mark.parametrize("nodes", [(2,), (0, 1, 2)])
def test_what_is_no_latency_is_missing(nothing, nodes):
    found = fleet(Plan(SMALL, nodes=3, spread=QUIET))
    stack = found.pairs[0]
    values = np.where(np.isin(stack.node, nodes)[:, None, None], np.float32(nothing), stack.values)
    verdict = judge_fleet(dataclasses.replace(found, quantities=(dataclasses.replace(stack, values=values),)))
    for number, node in enumerate(verdict.nodes.values()):
        assert node.verdict == ("INVALID" if number in nodes else "SAME")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("harvested", [False, True])
def test_a_missing_pair_is_no_matter(harvested):
    found = fleet(Plan(SMALL, nodes=6, spread=QUIET, defects=("node001: core 9 +20%",)))
    stack = found.pairs[0]
    values = np.asarray(stack.values).copy()
    values[stack.node == 1, :, 100] = np.nan
    changed = dataclasses.replace(stack, values=values, layout=dataclasses.replace(stack.layout, harvested=harvested))
    verdict = judge_fleet(dataclasses.replace(found, quantities=(changed,)))
    assert verdict.nodes["node001"].verdict == "SUSPECT"
    assert verdict.nodes["node001"].findings[0].where["core"] == 9


def _without_pairs(found: PackedFleet, node: int, jobs: list[int]) -> PackedFleet:
    """The fleet without a third of the pairs of a node in some jobs."""
    stack = found.pairs[0]
    values = np.asarray(stack.values).copy()
    values[np.flatnonzero((stack.node == node) & np.isin(stack.job, jobs)), :, ::3] = np.nan
    return dataclasses.replace(found, quantities=(dataclasses.replace(stack, values=values),))


def test_a_node_without_most_pairs_is_invalid_and_twice_unstable():
    found = fleet(Plan(SMALL, nodes=5, jobs=2, spread=QUIET))
    for jobs, outcome in (([1], "SAME"), ([2], "INVALID"), ([1, 2], "UNSTABLE")):
        verdict = judge_fleet(_without_pairs(found, 2, jobs))
        node = verdict.nodes["node002"]
        assert node.verdict == outcome
        assert ("pairs are missing" in node.text) is (2 in jobs)
        assert node.text.startswith("coherence-cas, job2/run1: 33 % of the pairs") is (2 in jobs)
        assert len(node.quality) == (2 if 2 in jobs else 0), "each run is named"
        assert ("node002" in verdict.recheck) is (outcome == "INVALID")
        real = structs.replace(verdict, simulated=False)
        assert ("NodeName='node002'" in outputs.drain(real, {})) is (outcome == "UNSTABLE")
    assert PackedNode("x").state == "measured"


@pytest.mark.filterwarnings("error")
def test_a_job_that_is_no_evidence_confirms_nothing():
    found = fleet(Plan(SMALL, nodes=8, jobs=3, spread=QUIET, defects=("node001: global +20%",)))
    two = dataclasses.replace(
        found.pairs[0],
        values=found.pairs[0].values[found.pairs[0].job < 3],
        **{key: getattr(found.pairs[0], key)[found.pairs[0].job < 3] for key in ("node", "job", "run", "disturbed")},
        started=("",) * int((found.pairs[0].job < 3).sum()),
    )
    two_jobs = dataclasses.replace(found, quantities=(two,))
    assert judge_fleet(two_jobs).nodes["node001"].verdict == "DEVIATES"
    assert judge_fleet(_without_pairs(two_jobs, 1, [2])).nodes["node001"].verdict == "INVALID"
    first = judge_fleet(_without_pairs(two_jobs, 1, [1])).nodes["node001"]
    assert first.verdict == "SUSPECT"
    assert all(f.severity != "error" for f in first.findings)
    assert judge_fleet(_without_pairs(found, 1, [1])).nodes["node001"].verdict == "DEVIATES"


def test_a_node_alone_is_held_to_what_it_must_have():
    rules = dataclasses.replace(acceptance.load(), required=("chase-latency",))
    node = judge_fleet(fleet(Plan(SMALL, nodes=1)), rules).nodes["node000"]
    assert (node.verdict, node.text) == ("INVALID", "chase-latency was not measured; measure it again")


@given(st.integers(3, 15), st.integers(0, 2**32), st.sampled_from([1.0, 3.0, 100.0]))
def test_the_centre_of_a_small_group_leaves_this_node_out(nodes: int, seed: int, off: float) -> None:
    values = np.random.default_rng(seed).normal(size=(nodes, 64))
    family, everyone = np.zeros(64, dtype=np.int64), np.ones(nodes, dtype=np.bool_)
    before = thresholds.centres(values, family, everyone)
    values[0] += off
    after = thresholds.centres(values, family, everyone)
    assert (after[0] == before[0]).all()
    if nodes > 4:  # however far it is off, it moves its peers' centres by less than a scale
        assert np.mean(np.abs(after - before)[1:]) < 1


@given(st.integers(6, 40), st.integers(0, 2**32))
def test_a_centre_is_nearly_as_precise_as_a_mean(nodes: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(nodes, 1000))
    of_first = thresholds.centres(values, np.zeros(1000, dtype=np.int64), np.ones(nodes, dtype=np.bool_))[0]
    others = values[1:] if nodes < thresholds.LEAVE_OUT_BELOW else values
    assert np.mean(of_first**2) * len(others) == pytest.approx(thresholds.TEMPLATE_ERROR, rel=0.25)
    assert np.mean(of_first**2) < np.mean(np.median(others, axis=0) ** 2)
