"""What is said of the groups of a split fleet: the same in a node's sentence, on the terminal and on page 1."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge.outcome import Certainty, FleetOutcome, Outcome
from nodeprint.judge.verdict import Component, Group, Interval, Reason, Verdict
from nodeprint.report import protocol, text, verdict_files
from nodeprint.report.figures import differences
from nodeprint.report.pages import medians, node, not_passing
from nodeprint.report.pages.blocks import Mark, SiteTexts, Table
from nodeprint.report.pages.judged_campaign import Campaign
from tests.support import blocks, printed, verdicts

FIRST = Group("A", ("cn0", "cn1", "cn2"), fields={"bios": "2.3"})
AWAY = Group(
    "B",
    ("cn3", "cn4", "cn5"),
    "coherence-cas",
    Component("class", "class", {"class": 5}),
    "A",
    0.08,
    9.0,
    Interval(0.07, 0.09),
    0.02,
    "ns",
    {"bios": "2.4"},
)


def split(first: Group = FIRST, away: Group = AWAY, **of_node: Any) -> Verdict:
    """A fleet of two groups; changes are of the nodes of the second."""
    made = verdicts.verdict()
    fleet = replace(made.fleet, outcome=FleetOutcome.SPLIT, groups=(first, away), nodes=6, counts={Outcome.SPLIT: 6})
    alike = verdicts.node(Outcome.SPLIT)
    nodes = {name: replace(alike, group="A") for name in first.nodes}
    nodes |= {name: replace(alike, group="B", **of_node) for name in away.nodes}
    return replace(made, fleet=fleet, nodes=nodes)


def test_a_node_says_how_far_its_group_is_from_the_other_and_what_shows_why() -> None:
    verdict = split()
    first, second = (text.node_sentence(verdict.nodes[name], verdict.fleet.groups) for name in ("cn0", "cn3"))
    assert "group A of a split fleet" in first and "in group B pairs" in first and "8.0% slower" in first
    assert "group B of a split fleet" in second and "are 8.0% slower than in group A" in second
    assert "Set BIOS (2.4 on cn3, 2.3 on cn0) of cn3 as on cn0 and measure both again" in second
    shown, xml = printed.summary(verdict), verdict_files.junit(verdict)
    for words in (first, second):
        assert words in shown and words in xml


def test_a_protocol_has_a_row_a_group_with_its_remedy(tmp_path: Path) -> None:
    verdict_files.write(split(), tmp_path)
    content = protocol.content([protocol.judged(tmp_path)], "", SiteTexts())
    rows = {row["node"]: row for row in blocks.rows(content, "Open items")}
    assert list(rows) == ["cn[0-2]", "cn[3-5]"]
    assert rows["cn[3-5]"]["what to do"].startswith("Set BIOS (2.4 on cn3, 2.3 on cn0) of cn3 as on cn0")
    assert (rows["cn[3-5]"]["by"], rows["cn[3-5]"]["tolerance"]) == ("+8.0%", "2%")
    assert rows["cn[0-2]"]["what to do"] and any("split fleet count as dev" in words for words in content.pages[0].lead)


def test_a_group_without_a_row_leaves_its_experiment_to_the_other() -> None:
    """The row of group A said "as for the groups that are compared with this one", and there was none."""
    made = split()
    found = verdicts.node(Outcome.SUSPECT, findings=(verdicts.finding(0.06, Certainty.SUSPECTED),), group="B")
    verdict = replace(made, nodes={**made.nodes, **dict.fromkeys(AWAY.nodes, found)})
    rows = {str(row[0]): str(row[-1]) for row in not_passing.table(verdict, {}, {}).rows}
    assert rows["cn[0-2]"].startswith("Set BIOS (2.4 on cn3, 2.3 on cn0) of cn3 as on cn0")
    of_both = not_passing.table(made, {}, {}).rows
    assert str(next(row[-1] for row in of_both if row[0] == "cn[0-2]")).startswith("As for the groups")


def test_what_goes_with_a_group_decides_what_to_do() -> None:
    alone = replace(FIRST, fields={})
    for one_sided in (text.to_do(AWAY, alone), text.to_do(replace(AWAY, fields={}), FIRST)):
        assert "Set BIOS (" in one_sided and " as on cn0 and" in one_sided and "No recorded" not in one_sided
    alone, away = replace(FIRST, fields={}), replace(AWAY, fields={})
    assert "No recorded setting, component or time of measurement separates" in text.to_do(away, alone)
    assert "again at the same time" in text.to_do(replace(away, later_h=3.0), alone)


def test_a_limit_or_a_baseline_that_one_group_keeps_says_which_is_right() -> None:
    limit = verdicts.finding(id="limit")
    outside = text.which_is_right(split(findings=(limit,)))
    assert outside == ["Outside a contract limit: 0 of 3 of group A and 3 of 3 of group B."]
    changed = text.which_is_right(split(findings=(verdicts.finding(baseline="c1"),)))
    assert changed == ["Changed since the baseline: 0 of 3 of group A and 3 of 3 of group B."]
    of_all = split(findings=(limit,))
    of_all = replace(of_all, nodes={name: replace(node, findings=(limit,)) for name, node in of_all.nodes.items()})
    for neither in (split(), of_all):
        assert "It is unknown which group is right" in text.which_is_right(neither)[-1]
    assert text.which_is_right(verdicts.verdict()) == []


def test_what_groups_reach_of_what_is_possible_is_said_where_they_differ() -> None:
    away = replace(
        AWAY, measurement="bandwidth-nodes", component=Component("bandwidth", "bandwidth", {"memory_node": 0})
    )
    row = replace(verdicts.cells()[0], measurement="bandwidth-nodes", median=7.0, peak=10.0)
    verdict = split(away=away, cells=(row,))
    most = replace(row, median=8.0)
    nodes = {name: replace(node, cells=(most,)) if node.group == "A" else node for name, node in verdict.nodes.items()}
    first, still_open = text.which_is_right(replace(verdict, nodes=nodes))
    assert first == "Share of the theoretical peak that memory bandwidth reaches: 80% (group A) and 70% (group B)."
    assert "It is unknown which group is right" in still_open
    alike = {name: replace(node, cells=(row,)) for name, node in verdict.nodes.items()}
    assert text.which_is_right(replace(verdict, nodes=alike)) == [still_open]


def page_1(verdict: Verdict) -> Table:
    return not_passing.table(verdict, {}, {})


def test_the_first_line_counts_the_nodes_of_the_groups_that_split_a_fleet() -> None:
    """Six nodes "formed" groups of three and two, as one was not measured; nine include three of another processor."""
    verdict = split(away=replace(AWAY, nodes=("cn3", "cn4")))
    nodes = {**verdict.nodes, "cn5": verdicts.node(Outcome.NOT_MEASURED)}
    assert text.headline_of(replace(verdict, nodes=nodes)).startswith("5 of 6 nodes form 2 groups without a two-thirds")
    others = Group("C", ("cn6", "cn7", "cn8"))
    fleet = replace(split().fleet, nodes=9, groups=(FIRST, AWAY, others))
    nodes = {**split().nodes, **{name: verdicts.node(group="C") for name in others.nodes}}
    verdict = replace(verdict, fleet=fleet, nodes=nodes)
    assert text.headline_of(verdict) == (
        "6 of 9 nodes form 2 groups without a two-thirds majority; in group B pairs of the other socket (core-to-core "
        "latency) are 8.0% slower than in group A; BIOS 2.4 there alone"
    )
    assert [row[0] for row in page_1(verdict).rows] == ["cn[0-2]", "cn[3-5]"], "others match their peers"


def test_a_node_of_a_group_has_one_row_by_its_outcome() -> None:
    """A node with a finding had the row of its group, too, so that rows had more nodes than the counts."""
    verdict = split()
    finding = verdicts.finding(state=Certainty.MISMATCH)
    own = verdicts.node(Outcome.MISMATCH, group="B", findings=(finding,), reasons=(Reason(Outcome.MISMATCH),))
    rows = page_1(replace(verdict, nodes={**verdict.nodes, "cn4": own})).rows
    expected = {"cn[0-2]": Outcome.SPLIT, "cn[3,5]": Outcome.SPLIT, "cn4": Outcome.MISMATCH}
    assert {row[0]: row[1] for row in rows} == {name: Mark.of(outcome) for name, outcome in expected.items()}
    every = {name: replace(own, group=of.group) for name, of in verdict.nodes.items()}
    assert {row[1] for row in page_1(replace(verdict, nodes=every)).rows} == {Mark.of(Outcome.MISMATCH)}


def test_page_has_the_numbers_of_a_group_and_their_quotient_is_the_printed_factor() -> None:
    verdict = split()
    row = dict(zip((table := medians.differences(verdict.fleet)).header, table.rows[0], strict=True))
    assert (row["difference"], row["tolerance"], row["of the tolerance"]) == ("+8.0%", "2%", "4.0 times")
    first, second = (dict(zip(table.header, row, strict=True)) for table in [page_1(verdict)] for row in table.rows)
    assert (second["by"], second["tolerance"]) == ("+8.0%", "2%")
    assert "BIOS 2.4 there alone" in str(second["what differs"]) and "2.3 on cn0" in str(second["what to do"])
    assert (first["by"], first["tolerance"]) == ("", "") and "compared with this one" in str(first["what to do"])
    assert not medians.differences(verdicts.verdict().fleet).rows


def test_medians_of_groups_are_those_of_other_fleets() -> None:
    """A split fleet had no measured values but the eight rows that differ most."""
    slow = tuple(
        replace(figure, median_ns=figure.median_ns * f)
        for figure, f in zip(verdicts.classes(), (1.0, 1.1, 0.8), strict=True)
    )
    cells = tuple(replace(verdicts.cells()[1], name=f"stream {n}") for n in range(9))
    verdict = split(classes=slow, cells=cells)
    near = {"classes": verdicts.classes(), "cells": cells}
    nodes = {n: v if v.group == "B" else replace(v, **near) for n, v in verdict.nodes.items()}
    table = medians.of_groups(replace(verdict, nodes=nodes))
    assert table.header[-3:] == ("A", "B", "B compared with A")
    assert [row[:2] for row in table.rows] == [row[:2] for row in medians.on_paper(nodes).rows] and len(table.rows) > 9
    assert [row[-1] for row in table.rows[:4]] == ["+0.0%", "+10.0%", "-20.0%", "+0.0%"]
    assert math.isclose(0.8 * 205, float(str(table.rows[2][-2]).split()[0]), abs_tol=0.5)
    assert not medians.of_groups(verdicts.verdict()).rows


def test_several_kinds_of_pairs_have_no_difference_in_nanoseconds() -> None:
    """Of two groups it was 16.9 ns for 7.6% and 19.3 ns for 15.1%, of other pairs each."""
    several = replace(AWAY, component=Component("class", "class", {"beyond_class": 1}))
    for group, is_there in ((AWAY, True), (several, False)):
        verdict = split(away=group)
        assert ("9 ns more" in printed.summary(verdict)) is is_there
        assert ("in its unit" in medians.differences(verdict.fleet).header) is is_there


def test_three_groups_are_in_one_figure_and_a_line_each() -> None:
    near = replace(AWAY, differences={"cn0": 0.001, "cn3": 0.08})
    far = replace(AWAY, name="C", nodes=("cn6", "cn7"), differences={"cn0": 0.001, "cn6": 0.16})
    data = differences.of_groups((FIRST, near, far), "every pair")
    assert data is not None and data.group.values.tolist() == ["A", "B", "C"]
    assert data.node.values.tolist() == ["cn0", "cn3", "cn6"] and data.value.values.tolist() == [[0.05, 4.0, 8.0]]
    lines = text.node_lines(split().nodes, split().fleet.groups)
    assert [line.names for line in lines] == ["cn[0-2]", "cn[3-5]"]


def test_a_page_of_a_node_with_a_finding_says_how_far_its_group_is_from_the_other() -> None:
    reasons = (Reason(Outcome.OUT_OF_SPEC, of=("limit",)), Reason(Outcome.SPLIT))
    made = split(outcome=Outcome.OUT_OF_SPEC, reasons=reasons, findings=(verdicts.finding(),))
    campaign = Campaign(made, PackedFleet("c", simulated=False, nodes=(), quantities=()))
    (apart,) = (words for words in node.page(campaign, "cn3").lead if "group B of a split fleet" in words)
    assert "8.0% slower than in group A" in apart
    assert "split fleet" not in " ".join(node.page(Campaign(verdicts.verdict(), campaign.fleet), "cn003").lead)
