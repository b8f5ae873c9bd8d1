"""The table of page 1: every node that does not pass, a row for each kind of finding, the worst first."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from nodeprint.judge.outcome import Certainty, FleetOutcome, Outcome, ReasonDetail
from nodeprint.judge.verdict import Component, Disturbance, NodeVerdict, Reason, Spread
from nodeprint.report import documents, pdf, text, verdict_files
from nodeprint.report.pages import not_passing
from nodeprint.report.pages.blocks import Mark, Table
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.node import finding_block
from nodeprint.settings.config_file import MOST_JOBS
from tests.support import verdicts
from tests.support.fleets import judged
from tests.support.fleets import made as simulated
from tests.support.real_parts import need


def slow(effect: float, core: int = 12, **changes: object) -> NodeVerdict:
    component = Component("core", "core-near", {"core": core, "cpu": core})
    sizes = {"component": component, "times_tolerance": abs(effect) / 0.04, **changes}
    finding = verdicts.finding(effect, Certainty.SUSPECTED, **sizes)
    return verdicts.node(Outcome.SUSPECT, findings=(finding,), reasons=(Reason(Outcome.SUSPECT),))


def table(nodes: dict[str, NodeVerdict]) -> Table:
    return not_passing.table(verdicts.verdict(nodes), {}, {})


@pytest.mark.parametrize("state", [Certainty.SUSPECTED, Certainty.INTERMITTENT, Certainty.CONFIRMED])
def test_a_node_report_says_what_page_1_says_is_to_be_done(state: Certainty) -> None:
    """By the finding and not by the node, which may have a confirmed finding beside an intermittent one."""
    defect, name = "node003: core 17 +12%", "node003"
    verdict = judged(defect).verdict
    node = verdict.nodes[name]
    node = replace(node, findings=tuple(replace(finding, state=state) for finding in node.findings))
    verdict = replace(verdict, nodes={**verdict.nodes, name: node})
    (row,) = not_passing.table(verdict, {}, {}).rows
    block = finding_block(Campaign(verdict, simulated(defect)), name, verdict.nodes[name].counted[0], 1, {})
    assert dict(block.facts)["next"] == row[5]
    again = str(row[5]).startswith("Confirm it by another job. If it is confirmed: Look for")
    assert again is (state is not Certainty.CONFIRMED)


@pytest.mark.parametrize("jobs", [2, MOST_JOBS])
@pytest.mark.parametrize("outcome", [Outcome.SUSPECT, Outcome.INTERMITTENT])
def test_the_headline_of_a_node_asks_for_the_job_that_the_table_asks_for(outcome: Outcome, jobs: int) -> None:
    """An intermittent node was to be confirmed on page 1, and its headline had another step."""
    reason = Reason(outcome)
    names = tuple(f"job{number}" for number in range(1, jobs + 1))
    node = replace(verdicts.node(outcome, findings=(verdicts.finding(),), reasons=(reason,)), jobs=names)
    words = text.node_sentence(node)
    assert "can confirm it" in words or "another job will decide" in words, words
    assert "Look for what differed" not in words


def test_nodes_with_the_same_finding_share_a_row_with_the_range_of_their_effects() -> None:
    nodes = {"cn1": slow(0.607), "cn2": slow(0.059), "cn3": slow(0.05, core=3), "cn4": verdicts.node()}
    nodes |= {f"cn{n}": slow(0.2, core=5, tolerance=n / 100, times_tolerance=4.0) for n in (5, 7, 6)}
    rows = table(nodes).rows
    assert [(row[0], row[2], row[3], row[4]) for row in rows] == [
        ("cn[1-2]", "core-to-core latency of core 12 (CPU 12)", "+5.9 to +60.7%", "4%"),
        ("cn[5-7]", "core-to-core latency of core 5 (CPU 5)", "+20.0%", "5 to 7%"),
        ("cn3", "core-to-core latency of core 3 (CPU 3)", "+5.0%", "4%"),
    ]


def test_the_worst_is_first_in_the_direction_that_hurts_and_in_the_headline() -> None:
    """A node at half speed stands before those that are a fifth faster, however many tolerances these are."""
    nodes = {f"n{n:03}": slow(-0.2, core=n) for n in range(18)}
    nodes["n227"] = slow(0.105)
    nodes["n300"] = verdicts.node(Outcome.DEVIATES, findings=slow(0.1).findings)
    rows = table(nodes).rows
    assert [row[0] for row in rows[:3]] == ["n300", "n227", "n000"]
    assert all(isinstance(row[1], Mark) for row in rows)
    assert "The worst is n300: Core 12 (CPU 12) is 10.0% slower" in text.first_line(verdicts.verdict(nodes))


def test_a_node_that_deviates_is_named_by_what_makes_it_deviate() -> None:
    """Not by an intermittent finding, however large, which is one of its further ones."""
    (confirmed,), (other,) = slow(0.1).findings, slow(0.6, core=3).findings
    confirmed, other = replace(confirmed, state=Certainty.CONFIRMED), replace(other, state=Certainty.INTERMITTENT)
    (row,) = table({"n1": verdicts.node(Outcome.DEVIATES, findings=(other, confirmed))}).rows
    assert row[2] == "core-to-core latency of core 12 (CPU 12) (and 1 more)" and row[3] == "+10.0%"
    assert str(row[-1]).startswith("Look for")


def test_nodes_without_findings_have_a_row_with_their_action() -> None:
    reasons = {
        "a": Reason(Outcome.DIFFERENT_CONFIGURATION, of=("bios",)),
        "b": Reason(Outcome.INCONCLUSIVE, ReasonDetail.ONE_RUN),
        "c": Reason(Outcome.NOT_MEASURED, detail="drained: bad fan"),
        "d": Reason(Outcome.INVALID, ReasonDetail.DISTURBED),
    }
    nodes = {name: verdicts.node(reason.outcome, reasons=(reason,)) for name, reason in reasons.items()}
    rows = table({**nodes, "e": verdicts.node()}).rows
    assert {row[0] for row in rows} == set("abcd") and all(row[-1] for row in rows)
    assert rows[0][0] == "a", "a warning stands before what is undetermined"


@pytest.mark.parametrize("why", ReasonDetail)
def test_every_reason_without_a_finding_has_an_action(why: ReasonDetail) -> None:
    node = verdicts.node(Outcome.INCONCLUSIVE, reasons=(Reason(Outcome.INCONCLUSIVE, why),))
    _, action = text.reason_and_action({"cn1": node})
    has_own = why in (ReasonDetail.WRONG, ReasonDetail.UNRESOLVED)  # that of the finding, and in the reason
    assert bool(action) is not has_own


def test_a_value_of_one_node_is_not_printed_for_all() -> None:
    """Of runs that are off by 24 and by 79% the sentence says on how many nodes and on which it is most."""
    shares = {"n003": 0.791, "n016": 0.239, "n019": 0.4, "n022": 0.3}
    nodes = {
        name: verdicts.node(
            Outcome.INVALID,
            reasons=(Reason(Outcome.INVALID, ReasonDetail.ODD_RUN),),
            disturbances=(Disturbance("odd-run", True, "coherence-cas", "job1/run3", share, 1 + share),),
        )
        for name, share in shares.items()
    }
    (line,) = text.node_lines(nodes)
    assert line.text.startswith("on 4 nodes, most on n003: Run 3 of job1 has a 79.1% higher core-to-core")


def test_a_fleet_that_is_not_uniform_has_a_row_with_the_range_of_its_measurements() -> None:
    made = verdicts.verdict({"cn1": verdicts.node(), "cn2": verdicts.node()})
    spread = Spread("core-to-core", "coherence-cas", "core-near", "core", 0.03, 0.004, 0.04, 0.071, 7, wide=True)
    narrower = replace(spread, component_type="core-far", chips=0.02)
    clock = Spread("clock", "clock-together", "cpu", "cpu", 0.011, 0.001, 0.01, 0.03, 2, wide=True)
    even = replace(spread, measurement="chase-latency", wide=False)
    fleet = replace(made.fleet, outcome=FleetOutcome.NON_UNIFORM, spreads=(even, narrower, spread, clock))
    (row,) = not_passing.table(replace(made, fleet=fleet), {}, {}).rows
    node, mark, differs, size, tolerance, _ = row
    assert (node, size, tolerance) == ("all nodes", "SD 1.1 to 3.0%", "1 to 4%")
    assert differs == "Clock with all cores busy and core-to-core latency"
    assert isinstance(mark, Mark) and mark.word == "WARN (NON-UNIFORM)"
    deviating = replace(fleet, outcome=FleetOutcome.DEVIATIONS)
    assert not not_passing.table(replace(made, fleet=deviating), {}, {}).rows


def _of_cores() -> dict[str, NodeVerdict]:
    return {f"cn{2 * n:04}": slow(0.05 + n / 5000, core=n % 64) for n in range(750)}


def _of_metrics() -> dict[str, NodeVerdict]:
    """Few rows of many nodes with short words, and one of a sentence over all columns but the first."""
    whole = Component("node", "whole", {})
    nodes = {f"cn{2 * n:04}": slow(0.05 + n / 5000, measurement=f"m{n % 4}", component=whole) for n in range(750)}
    open_ = verdicts.agreement(within=0.06, share=1.5, remedy="none")
    reason = Reason(Outcome.INCONCLUSIVE, ReasonDetail.UNRESOLVED)
    return {**nodes, "dn1": verdicts.node(Outcome.INCONCLUSIVE, agreements=(open_,), reasons=(reason,))}


@pytest.mark.parametrize("made", [_of_cores, _of_metrics])
def test_750_findings_are_all_named_on_six_pages(made: Callable[[], dict[str, NodeVerdict]], tmp_path: Path) -> None:
    need("pdftotext")
    nodes = made()
    verdict_files.write(verdicts.verdict(nodes), tmp_path)
    task = documents.Task(tmp_path, tmp_path / "report", (), figures=None, pseudonyms=False)
    with pdf.Printer() as printer:
        _, content = task.whole([], printer)
    assert pdf.pages_of(content) <= documents.MOST_PAGES
    (tmp_path / "cluster.pdf").write_bytes(content)
    read = subprocess.run(["pdftotext", tmp_path / "cluster.pdf", "-"], capture_output=True, text=True, check=True)
    named = re.sub(r"\s+", "", read.stdout)
    assert all(f"{2 * n:04}" in named for n in range(750)) and "more in cluster.html" not in named
    assert "5.0to+20.0" in named
