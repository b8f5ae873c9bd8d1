"""SAME is an equivalence test: which nodes pass it, how alike they are, and what is said where one does not pass."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from msgspec import structs
from nodeprint.verdict.campaign_verdict import judge_fleet
from nodeprint.words.outcome import MarginFigure, said_within
from nodeprint.words.sameness import bound_key

from bench import verdict as bench
from nodeprint.judge import acceptance, margins, pairs, terms
from nodeprint.packed import PackedFleet
from nodeprint.simulate import Plan, Spread, fleet
from nodeprint.topology.presets import from_part, preset

SMALL = preset("naples-2x32")
#: What healthy nodes differ by usually: cores by 0.2 to 0.6 % (docs/method.md).
USUAL = Spread(core=0.004)


@pytest.mark.parametrize("part", ["EPYC 7601", "EPYC 7742", "EPYC 9654", "EPYC 74F3"])
def test_healthy_nodes_of_two_runs_are_the_same(part):
    counts = [
        judge_fleet(fleet(Plan(from_part(part, 2), nodes=8, seed=seed, spread=USUAL))).fleet.counts.get("SAME", 0)
        for seed in (1, 2)
    ]
    assert sum(counts) >= 14


@pytest.mark.parametrize("planted", bench.PLANTED, ids=lambda p: p.text.split("{")[0])
def test_a_node_beyond_a_bound_is_never_the_same(planted):
    assert bench.equal(2, 8, USUAL, planted=(planted,)) == {planted.text: 0}


def test_nodes_and_fleet_say_how_alike_they_are():
    verdict = judge_fleet(fleet(Plan(SMALL, nodes=8, seed=1, spread=USUAL, cells=True)))
    assert re.match(
        r"UNIFORM: 8 of 8 nodes are the same within \d\.\d % \(classes\), .*\d\.\d ns \(inside a CCX\)$",
        verdict.fleet.text,
    )
    for family, widest_of in verdict.fleet.margins.items():
        shares = [node.margins[family].within / node.margins[family].bound for node in verdict.nodes.values()]
        assert widest_of.within / widest_of.bound == max(shares) <= 1
    pairs = [
        one
        for name, one in verdict.fleet.margins.items()
        if not name.startswith(("chase", "clock", "band", "jit", "coherence"))
    ]
    assert all(one.within_ns <= one.bound_ns and one.place for one in pairs)
    assert "chase-latency" in verdict.fleet.margins


def test_a_larger_deviation_has_a_larger_margin():
    def margin(percent: float) -> float:
        found = fleet(Plan(SMALL, nodes=8, spread=USUAL, defects=(f"node001: ccd 3 to-others +{percent}%",)))
        return judge_fleet(found).nodes["node001"].margins["ccd"].within

    assert margin(1) < margin(2) < margin(4)


def test_inconclusive_names_what_is_not_resolved_and_the_runs_that_resolve_it():
    plan = Plan(SMALL, nodes=8, seed=3, spread=Spread(core=0.004, run=0.008))
    found = fleet(plan)
    nodes = tuple(dataclasses.replace(node, run_minutes={"coherence-cas": 2.0}) for node in found.nodes)
    first = judge_fleet(dataclasses.replace(found, nodes=nodes))
    open_ = {name: node for name, node in first.nodes.items() if node.verdict == "INCONCLUSIVE"}
    assert open_
    for node in open_.values():
        beyond = {family for family, one in node.margins.items() if one.within > one.bound}
        assert len(re.findall(r"by up to", node.text)) == len(beyond) > 0
    runs = [int(found[1]) for node in open_.values() if (found := re.search(r"(\d+) runs are needed", node.text))]
    assert runs
    asked = next(node.text for node in open_.values() if f"{max(runs)} runs are needed" in node.text)
    assert f"(about {2 * (max(runs) - 2):.2g} minutes of measuring more on each node)" in asked
    again = judge_fleet(fleet(dataclasses.replace(plan, runs=max(runs) + 1)))
    assert again.fleet.counts.get("SAME", 0) > first.fleet.counts.get("SAME", 0)


@pytest.mark.parametrize(
    ("changed", "runs", "lacking"),
    [
        ({}, 8, ""),
        ({"deviation": 0.0}, 4, ""),
        ({"scale": 0.012, "run_scale": 0.004, "deviation": 0.05}, None, "likeness"),
        ({"scale": 0.024, "run_scale": 0.006, "template": 1.57}, None, "peers"),
        ({"scale": 0.045, "run_scale": 0.06}, None, "calm"),
    ],
)
def test_the_advice_follows_from_what_makes_the_interval_wide(changed, runs, lacking):
    usual = {"bound": 0.03, "deviation": 0.02, "quantile": 1.86, "scale": 0.015, "run_scale": 0.015, "template": 0.2}
    assert margins.runs_within(runs=2, **(usual | changed)) == (runs, lacking)


def test_the_bounds_that_are_named_are_keys_of_the_acceptance_file():
    defaults = yaml.safe_load(Path(acceptance.__file__).with_name("acceptance.yaml").read_text())
    for family in terms.FAMILIES:
        found = defaults
        for key in bound_key(family).strip("`").split("."):
            found = found[key]
        assert found > 0


def test_with_one_peer_more_nodes_are_asked_for_and_no_bound_is_raised_for_noise():
    verdict = judge_fleet(fleet(Plan(preset("rome-2x64"), nodes=2, seed=3, spread=Spread(core=0.01, run=0.005))))
    text = verdict.nodes["node000"].text
    assert "measure more nodes like these" in text, text


def test_more_runs_do_not_raise_a_detection_limit():
    """In these fleets the heavy tail that cores show by chance once made the limit four times as large."""
    for seed in (0, 1):
        plan = Plan(SMALL, nodes=8, seed=seed, spread=Spread(core=0.002))
        few, more = (judge_fleet(fleet(dataclasses.replace(plan, runs=n))).fleet.smallest_effect for n in (2, 3))
        assert all(limit <= 1.1 * few[term] for term, limit in more.items() if limit is not None)


def test_one_run_shows_no_equivalence():
    verdict = judge_fleet(fleet(Plan(SMALL, nodes=8, runs=1, spread=USUAL)))
    assert verdict.fleet.counts == {"INCONCLUSIVE": 8}
    assert "`runs`" in verdict.nodes["node000"].text


# --- no SAME over what no term examines -------------------------------------------------------------------------------


def test_the_inside_of_a_ccx_is_examined_where_cores_are_fused_off():
    harvested = from_part("EPYC 7402", 2)
    assert pairs.of(fleet(Plan(harvested, nodes=2)).pairs[0].pair_layout).indices("ccx").size
    slow = fleet(Plan(harvested, nodes=8, spread=USUAL))
    stack = slow.pairs[0]
    tested = pairs.of(stack.pair_layout)
    inside = tested.terms[int(tested.indices("ccx")[5])].covers
    values = np.array(stack.values)
    values[np.ix_(np.flatnonzero(stack.node == 1), range(values.shape[1]), inside)] *= 1.12
    verdict = judge_fleet(_with_values(slow, values))
    assert verdict.nodes["node001"].verdict == "SUSPECT"
    assert {name for name, node in verdict.nodes.items() if node.verdict == "SAME"} == {*verdict.nodes} - {"node001"}


@pytest.mark.parametrize(
    ("dropped", "named"),
    [("_ccx_terms", "the inside of a CCX"), ("_core_terms", "a core to its socket")],
)
def test_what_no_term_examines_is_named_and_nothing_is_the_same(dropped, named, monkeypatch):
    monkeypatch.setattr(pairs, "_BUILT", {})
    monkeypatch.setattr(pairs, dropped, lambda *_: ())
    verdict = judge_fleet(fleet(Plan(preset("rome-2x64"), nodes=6, spread=USUAL)))
    assert not verdict.fleet.counts.get("SAME", 0)
    assert f"this data cannot show a defect of {named}" in verdict.nodes["node000"].text


# --- homes are configuration ------------------------------------------------------------------------------------------


def test_a_node_measured_with_other_homes_is_another_configuration_and_condemns_nobody():
    found = fleet(Plan(SMALL, nodes=6, spread=USUAL, homes=(0, 1)))
    stack = found.pairs[0]
    values = np.array(stack.by_home)
    values[np.flatnonzero(stack.node != 2), :, 1] = np.nan
    verdict = judge_fleet(_with_values(found, values))
    assert verdict.nodes["node002"].verdict == "DIFFERENT CONFIGURATION"
    assert "home nodes of the measured lines" in verdict.nodes["node002"].text
    assert {node.verdict for name, node in verdict.nodes.items() if name != "node002"} == {"SAME"}
    assert not verdict.recheck


def test_a_node_whose_homes_were_not_controlled_is_another_configuration():
    found = fleet(Plan(SMALL, nodes=6, spread=USUAL, homes=(-1, 0)))
    stack = found.pairs[0]
    values = np.array(stack.by_home)
    values[np.flatnonzero(stack.node != 2), :, 0] = np.nan
    values[np.flatnonzero(stack.node == 2), :, 1] = np.nan
    verdict = judge_fleet(_with_values(found, values))
    assert verdict.nodes["node002"].verdict == "DIFFERENT CONFIGURATION"
    assert {node.verdict for name, node in verdict.nodes.items() if name != "node002"} == {"SAME"}


def test_a_run_that_lacks_a_home_of_its_job_has_gaps():
    found = fleet(Plan(SMALL, nodes=6, spread=USUAL, homes=(0, 1)))
    stack = found.pairs[0]
    values = np.array(stack.by_home)
    values[np.flatnonzero((stack.node == 2) & (stack.run == 2)), :, 1] = np.nan
    verdict = judge_fleet(_with_values(found, values))
    assert verdict.nodes["node002"].verdict == "INVALID"
    assert "50 % of the pairs are missing" in verdict.nodes["node002"].text


def test_gaps_of_one_run_of_many_make_no_job_invalid():
    found = fleet(Plan(SMALL, nodes=3, runs=6, spread=USUAL))
    stack = found.pairs[0]
    values = np.array(stack.by_home)
    values[np.flatnonzero((stack.node == 2) & (stack.run == 2)), ..., : len(stack.pairs) // 5] = np.nan
    assert judge_fleet(_with_values(found, values)).nodes["node002"].verdict != "INVALID"


def _with_values(found: PackedFleet, values: np.ndarray) -> PackedFleet:
    first, *others = found.quantities
    changed = dataclasses.replace(first, values=values.reshape(first.values.shape))
    return dataclasses.replace(found, quantities=(changed, *others))


# --- words ------------------------------------------------------------------------------------------------------------


def test_margins_in_words():
    one = MarginFigure(0.011, 1.3, 0.02, 2.0, "core 1")
    assert said_within({"class": one, "core-in": one}) == "1.1 % (classes), 1.3 ns (inside a CCX)"
    assert said_within({"linktest-node: ccx": one, "class": one}) == "1.1 % (classes), 1.1 % (linktest-node)"
    assert said_within({}) == ""
    near = structs.replace(one, within=0.019)
    assert margins.worst([{"class": one}, {"class": near, "ccd": one}]) == {"class": near, "ccd": one}
