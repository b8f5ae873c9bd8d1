"""Sentences that are made of a verdict."""

from __future__ import annotations

import re

import pytest
import yaml
from msgspec.structs import replace

from nodeprint.data.places.measured import models
from nodeprint.judge.outcome import Certainty, FleetOutcome, Outcome, ReasonDetail
from nodeprint.judge.verdict import Component, Group, Interval, JobEffect, Limit, Reason, Shared, SizeFigure
from nodeprint.report import names, text
from nodeprint.report.figures import differences, figure_data
from nodeprint.report.pages import accepted, method, tables
from nodeprint.settings.texts import say, texts
from tests.support import printed, verdicts


def test_first_line_says_agreements_what_they_rest_on_and_who_deviates() -> None:
    line = text.first_line(verdicts.verdict())
    assert line.startswith(
        "FAIL (DEVIATIONS): 7 of 8 nodes match; closest to a tolerance: core-to-core latency 1.4% of 4% ("
    )
    assert "; FAIL (DEVIATES): cn003 (core-to-core latency of core 37 (CPU 37) +5.9%, tolerance 4%). " in line
    assert line.endswith(
        "Deciding metrics for SAME: core-to-core latency, memory latency, bandwidth and clock;"
        " findings count in every metric."
    )


def test_what_cannot_be_resolved_of_a_measurement_for_one_reason_is_a_sentence() -> None:
    limits = tuple(
        Limit("core-to-core", measurement, component_type, component_type, effect, tolerance, "none")
        for measurement, component_type, effect, tolerance in (
            ("coherence-cas", "class", 0.27, 0.02),
            ("coherence-cas", "core", 1.33, 0.04),
            ("chase-latency", "numa", 0.41, 0.05),
        )
    )
    made = verdicts.verdict()
    notes = text.fleet_notes(replace(made, fleet=replace(made.fleet, limits=limits)))
    assert "2 kinds of components one job detects differences only above 27.0 to 133.0% (toler" in notes[0]
    assert len(notes) == 2 and "one job detects differences only above 41.0%" in notes[1]
    equal = tuple(replace(of, effect=0.127) for of in limits)
    (of_pairs, _) = text.fleet_notes(replace(made, fleet=replace(made.fleet, limits=equal)))
    assert "one job detects differences only above 12.7%" in of_pairs


@pytest.mark.parametrize(("count", "words"), [(1, "1.5 to 2%"), (2, "1.5 to 6.3%")])
def test_tolerances_have_one_range_in_tables_and_in_sentences(count: int, words: str) -> None:
    """A component type has a range of tolerances; the limit states their median."""
    pairs = Limit("core-to-core", "coherence-cas", "class", "class", 0.27, 0.02, tolerance_low=0.015)
    cores = Limit("core-to-core", "coherence-cas", "core", "core", 1.33, 0.058, tolerance_high=0.063)
    verdict = verdicts.verdict()
    verdict = replace(verdict, fleet=replace(verdict.fleet, limits=(pairs, cores)[:count]))
    (note,) = text.fleet_notes(verdict)
    assert f"% (tolerance{'s' * (count > 1)} {words})" in note
    assert accepted.tolerances(verdict)[0].rows[0][1] == words
    assert method.limit_table(verdict).rows[0][2] == "1.5 to 2%"


def test_of_few_nodes_that_differ_none_is_to_be_compared_with_one_that_is_the_same() -> None:
    finding = verdicts.finding(remedy="node")
    same, slow = {"cn1": verdicts.node(Outcome.SAME)}, {"cn2": verdicts.node(Outcome.SUSPECT)}
    assert text.remedy(finding, same | slow).endswith("power settings with a node that is SAME.")
    assert "SAME" not in text.remedy(replace(finding, state=Certainty.MISMATCH), same | slow)
    words = text.action(replace(finding, state=Certainty.SUSPECTED), slow)
    assert "power settings with another node of the fleet." in words and "SAME" not in words


def test_an_outcome_that_all_nodes_share_is_named_once() -> None:
    nodes = {f"cn{n}": verdicts.node(Outcome.NO_PEERS) for n in range(5)}
    made = verdicts.verdict(nodes)
    line = text.first_line(replace(made, fleet=replace(made.fleet, outcome=FleetOutcome.NO_PEERS)))
    assert line.count("NO PEERS") == 1


def test_single_node_is_and_several_are_the_same() -> None:
    made = verdicts.verdict()
    for nodes, words in ((1, "0 of 1 node matches"), (2, "0 of 2 nodes match")):
        fleet = replace(made.fleet, nodes=nodes, counts={Outcome.DEVIATES: 1}, agreements=())
        assert text.headline_of(replace(made, fleet=fleet)) == words


def test_first_line_says_what_is_missing_and_where_it_is_from() -> None:
    made = verdicts.verdict()
    fleet = replace(made.fleet, based_on=("core-to-core",), missing=("chase-latency",))
    line = text.first_line(replace(made, fleet=fleet, simulated=True))
    assert line.startswith("SIMULATED: FAIL (DEVIATIONS): ")
    assert "Deciding metrics without a measurement: memory latency, bandwidth and clock." in line
    assert "Planned and measured on no node: memory latency." in line
    assert text.first_line(replace(made, imported=True)).startswith("IMPORTED: ")


def test_finding_has_effect_interval_its_own_tolerance_and_unit() -> None:
    assert text.finding_sentence(verdicts.finding()) == (
        "Core 37 (CPU 37) is 5.9% slower to the other cores of its socket than on its peers "
        "(interval 5.5 to 6.2%; tolerance 4%: 1.5 times), 6.9 ns more."
    )
    faster = text.finding_sentence(verdicts.finding(-0.059, interval=Interval(-0.062, -0.055), worse=False))
    assert "is 5.9% faster to the other cores of its socket than" in faster and "(interval 5.5 to 6.2%;" in faster


def test_a_component_is_slower_its_time_longer_and_its_latency_higher() -> None:
    for measurement, words in (("linktest-node", "Time of a message"), ("chase-latency", "Memory latency")):
        sentence = text.finding_sentence(verdicts.finding(measurement=measurement))
        assert sentence.startswith(words) and f"{'longer ' if 'Time' in words else 'higher than'}" in sentence
    copies = verdicts.finding(
        measurement="bandwidth-nodes", component=Component("stream", "bandwidth", {"stream": "copy"})
    )
    assert text.noun_phrase(copies) == "memory bandwidth (copy)"


def test_a_change_is_said_in_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes `slower`, or its verb, changes every sentence."""
    said = texts()
    time = {**said["change"]["time"], "more": "longer", "present": ["takes", "take"], "past": ["took", "took"]}
    monkeypatch.setitem(said, "change", {**said["change"], "time": time})
    finding, link = verdicts.finding(), verdicts.fabric().findings[0]
    later = replace(finding, state=Certainty.INTERMITTENT)
    assert text.finding_sentence(finding).startswith("Core 37 (CPU 37) takes 5.9% longer to the other")
    assert text.finding_sentence(later).startswith("Core 37 (CPU 37) took 5.9% longer to the other")
    assert re.search(r" takes \S+% longer", text.finding_sentence(link))
    others = yaml.safe_dump({key: words for key, words in said.items() if key != "change"})
    assert re.findall(r"\b(?:slow|fast)(?:er|est)\b", others) == []


def test_a_change_is_one_from_the_baseline_and_not_from_peers() -> None:
    by_job = (JobEffect("since the baseline", 0.035, Interval(0.026, 0.043), {}),)
    changed = replace(verdicts.finding(0.035, Certainty.SUSPECTED), id="changed", remedy="changed", by_job=by_job)
    changed = replace(changed, baseline="c1 to c4")
    assert "is 3.5% slower to the other cores of its socket than in its baseline (c1 to c4) (" in text.finding_sentence(
        changed
    )
    assert not any("runs" in detail for detail in text.finding_details(changed))
    jitter = text.finding_sentence(replace(changed, measurement="jitter-detours", unit="share"))
    cells = text.finding_sentence(replace(changed, measurement="bandwidth-machine", unit="GB/s"))
    for words in (jitter, cells):
        assert "its baseline (c1 to c4)" in words and "the baseline has " in words and "peers" not in words
    assert "SAME" not in text.remedy(changed, {})


def test_finding_says_how_many_runs_show_it() -> None:
    assert text.runs_beyond(verdicts.finding()) == "All 18 runs of 2 jobs are beyond the tolerance."
    weak = verdicts.finding()
    first = replace(weak.by_job[0], runs={"job1/run1": 0.059, "job1/run2": 0.039})
    assert text.runs_beyond(replace(weak, by_job=(first,))) == "1 of 2 runs in 1 job is beyond the tolerance."
    only = replace(first, runs={"job1/run1": 0.059})
    assert text.runs_beyond(replace(weak, by_job=(only,))) == "Its only run is beyond the tolerance."


def test_nodes_with_equal_reasons_share_a_line_and_findings_do_not() -> None:
    nodes = {f"cn{n:03}": verdicts.node() for n in range(1, 9)}
    nodes |= {f"gpu{n}": verdicts.node(Outcome.DEVIATES, findings=(verdicts.finding(),)) for n in (1, 2)}
    lines = text.node_lines(nodes)
    assert [line.names for line in lines] == ["gpu1", "gpu2", "cn[001-008]"]
    assert lines[-1].outcome is Outcome.SAME


def test_nodes_of_one_kind_with_reasons_of_their_own_have_a_row_each() -> None:
    details = ("TIMEOUT", "NODE_FAIL", "the archive is cut", "no space left", "TIMEOUT", "TIMEOUT", "TIMEOUT")
    reasons = {f"cn{n}": (Reason(Outcome.NOT_MEASURED, detail=detail),) for n, detail in enumerate(details, 1)}
    nodes = {name: verdicts.node(Outcome.NOT_MEASURED, reasons=reason) for name, reason in reasons.items()}
    lines = text.node_lines(nodes)
    assert [(line.names, line.text) for line in lines] == [
        ("cn[1,5-7]", "TIMEOUT"),
        ("cn2", "NODE_FAIL"),
        ("cn3", "The archive is cut"),
        ("cn4", "No space left"),
    ]
    shown = printed.summary(verdicts.verdict(nodes)).splitlines()
    assert shown[-5:-2] == [
        "  UNDETERMINED (NOT MEASURED):",
        "    cn[1,5-7]  TIMEOUT. Remove the cause and measure it.",
        "    cn2        NODE_FAIL. Remove the cause and measure it.",
    ]


def test_summary_ends_with_what_is_most_urgent() -> None:
    nodes = {
        "cn1": verdicts.node(Outcome.INCONCLUSIVE, ReasonDetail.UNRESOLVED),
        "cn2": verdicts.node(),
        "cn3": verdicts.node(Outcome.DEVIATES, findings=(verdicts.finding(),)),
    }
    lines = printed.summary(verdicts.verdict(nodes), most=9, remarks=["a remark"]).splitlines()
    assert [line.split(":")[0].strip() for line in lines[-3:]] == ["cn2", "cn1", "cn3"]
    assert lines.index("  a remark") < len(lines) - 3


def test_alike_nodes_are_described_by_the_worst_of_them() -> None:
    nodes = {f"cn{n}": verdicts.node(agreements=(verdicts.agreement(within=0.01 + n / 1000),)) for n in range(5)}
    (line,) = text.node_lines(nodes)
    assert "latency 1.4% of 4% (" in line.text


@pytest.mark.parametrize(("outcome", "why"), verdicts.REASONS)
def test_every_reason_has_a_sentence(outcome: Outcome, why: ReasonDetail | None) -> None:
    findings = (verdicts.finding(waived="ticket 42"),)
    reason = Reason(outcome, why, of=("core-far",), share=0.2, detail="bad fan")
    words = text.node_sentence(verdicts.node(outcome, reasons=(reason,), findings=findings))
    assert words and "{" not in words
    assert words.endswith(".") or outcome is Outcome.NOT_MEASURED


@pytest.mark.parametrize("outcome", list(FleetOutcome))
def test_every_outcome_of_a_fleet_has_a_first_line(outcome: FleetOutcome) -> None:
    made = verdicts.verdict({"cn001": verdicts.node()})
    assert text.first_line(replace(made, fleet=replace(made.fleet, outcome=outcome))).startswith(outcome.with_class)


def test_groups_say_size_sign_and_fields() -> None:
    made = verdicts.verdict()
    component = Component("class", "class", {"class": 5})
    groups = (
        Group("A", tuple(f"cn{n}" for n in range(5))),
        Group(
            "B",
            ("cn5", "cn6"),
            "coherence-cas",
            component,
            "A",
            0.08,
            9.0,
            Interval(0.07, 0.09),
            0.02,
            "ns",
            {"bios": "2.4"},
        ),
    )
    fleet = replace(made.fleet, outcome=FleetOutcome.SPLIT, groups=groups)
    notes = text.fleet_notes(replace(made, fleet=fleet))
    assert notes[0] == "Group A: 5 nodes (cn[0-4])."
    assert "Group B: 2 nodes (cn[5-6]), 8.0% slower than group A" in notes[1]
    assert "9 ns" in notes[1] and "BIOS 2.4 there alone" in notes[1]


def test_shared_difference_asks_for_a_batch() -> None:
    share = Shared(("cn1", "cn2", "cn3"), "coherence-cas", verdicts.CORE, 0.081, Interval(0.078, 0.084), {})
    assert text.shared(share, {name: verdicts.node() for name in share.nodes}).startswith(
        "3 nodes (cn[1-3]) share a difference: core 37 (CPU 37)"
    )


def test_an_agreement_beyond_its_tolerance_is_the_reason_and_its_remedy_the_action() -> None:
    unresolved = Reason(Outcome.INCONCLUSIVE, ReasonDetail.UNRESOLVED)
    runs = verdicts.agreement(within=0.06, runs=4, remedy="runs", needed=14)
    node = verdicts.node(Outcome.INCONCLUSIVE, agreements=(runs,), reasons=(unresolved,))
    reason, action = text.reason_and_action({"cn1": node})
    assert reason.endswith("may differ by up to 6.0% or 6.72 ns (tolerance 4.0% or 4.48 ns).")
    assert action.startswith("14 runs in all are needed and 4 were made: raise `runs`") and action.endswith(
        "adds them."
    )
    assert text.node_sentence(node) == f"{reason} {action}"
    nodes = verdicts.agreement("memory", within=0.06, remedy="nodes", needed=9)
    _, action = text.reason_and_action({"cn1": replace(node, agreements=(runs, nodes))})
    assert "Core-to-core latency: 14 runs in all are needed" in action
    assert action.endswith(
        "Memory latency: measure more nodes like these: a group of peers needs 9 in all, outliers not counted."
    )
    reason, _ = text.reason_and_action({"cn1": node, "cn2": replace(node, agreements=(replace(runs, share=2.0),))})
    assert "On 2 nodes, most on cn2: Core-to-core latency: core 12" in reason


def test_the_runs_of_a_detection_limit_are_those_of_each_job() -> None:
    limit = Limit("core-to-core", "coherence-cas", "ccd", "ccd", 0.1, 0.03, "runs", 12)
    verdict = verdicts.verdict()
    (note,) = text.fleet_notes(replace(verdict, fleet=replace(verdict.fleet, limits=(limit,))))
    assert "; 12 runs in each job are needed and fewer were made: raise `runs`" in note


def test_a_remedy_says_which_interval_is_beyond_the_tolerance() -> None:
    """`Nothing deviates` was followed by `the difference exceeds the tolerance`."""
    words = text.agreement_remedy(verdicts.agreement(within=0.06, remedy="job"))
    assert words.startswith("the 90% interval is beyond the tolerance, but the wider one")


def test_an_agreement_just_beyond_its_tolerance_is_not_printed_as_equal_to_it() -> None:
    agreement = verdicts.agreement(within=0.04002, remedy="quiet")
    assert "up to 4.002% or 4.482 ns (tolerance 4.000% or 4.48 ns)" in text.open_agreement(agreement)
    words = text.finding_sentence(verdicts.finding(0.0402))
    assert "4.02% slower" in words and "tolerance 4%: 1.0 times" in words


def test_an_agreement_without_a_value_says_why() -> None:
    without = verdicts.agreement(within=float("inf"), remedy="runs", needed=2)
    assert "one run" in text.open_agreement(replace(without, runs=1))
    words = text.open_agreement(replace(without, runs=6))
    assert "one run" not in words
    assert "fewer than two thirds of the nodes are within 4% (the tolerance) of each other" in words


def test_lost_time_is_in_percentage_points_and_rates_are_lower() -> None:
    jitter = verdicts.finding(
        0.03,
        measurement="jitter-detours",
        component=Component("jitter", "jitter", {"cpu": 3}),
        unit="share",
        value=0.031,
        peers=0.001,
    )
    assert text.finding_sentence(jitter).startswith("CPU 3 loses 3.0 percentage points more of its time than its peers")
    assert " points; tolerance 4 points: " in text.finding_sentence(jitter)
    assert figure_data.tolerance_text(differences.of_finding(jitter)) == "±4 points"
    agreement = replace(verdicts.agreement(within=0.05), measurement="jitter-detours", within_unit=float("nan"))
    assert "by up to 5.0 points (tolerance 4.0 points)" in text.open_agreement(agreement)
    assert tables.agreement_numbers(agreement) == {"the same within": "5 points", "tolerance": "4 points"}
    less = replace(jitter, effect=-0.03)
    assert "loses 3.0 percentage points less of its time" in text.finding_sentence(less)
    table = tables.finding_numbers(jitter)
    assert table is not None
    row = dict(zip(table.header, map(str, table.rows[0]), strict=True))
    assert (row["difference"], row["tolerance"]) == ("+3.0 points", "4 points") and row["interval"].endswith(" points")
    slow = verdicts.finding(
        -0.1,
        measurement="bandwidth-nodes",
        component=Component("bandwidth", "bandwidth", {"memory_node": 1}),
        unit="B/s",
        value=9e10,
        peers=1e11,
    )
    assert "10.0% lower" in text.finding_sentence(slow) and "90 GB/s, its peers have 100 GB/s" in text.finding_sentence(
        slow
    )


def test_fabric_names_link_and_detection_limit() -> None:
    assert "1 slow node or link. Detection limit 8.0%" in text.fabric(verdicts.fabric())
    assert text.fabric_findings(verdicts.fabric())[0].startswith("The link between cn001 and cn002 is 30.0% slower")
    assert "INCONCLUSIVE" in text.fabric(verdicts.fabric(findings=(), inconclusive="one-run"))
    of_sizes = tuple(SizeFigure(size, True, 1e5, 9e4, 2e5) for size in (8, 1 << 16, 1 << 20))
    criteria = "Messages of 1 MiB decide; 8 B and 64 KiB are also shown."
    assert criteria in text.fabric(verdicts.fabric(by_size=of_sizes))
    assert "decide" not in text.fabric(verdicts.fabric())


def test_node_lists_fold_and_keep_hostile_names_apart() -> None:
    assert names.nodes(["cn001", "cn002", "cn003"]) == "cn[001-003]"
    assert names.nodes(["a[1", "cn1", "x\x1b"]) == "cn1,a[1,x?"


def test_pairs_are_and_a_part_is() -> None:
    slower = verdicts.finding()
    of_class = replace(slower, component=Component("class", "class", {"class": "same socket", "socket": 1}))
    of_all = replace(slower, component=Component("class", "class", {"class": "every pair"}))
    assert text.finding_sentence(of_class).startswith("Pairs of the same socket on socket 1 are ")
    assert text.finding_sentence(of_all).startswith("Every pair is ")
    assert " is " in text.finding_sentence(slower)


def test_every_measurement_has_words_for_a_reader() -> None:
    assert all(text.measured(name) != name for name in models()), "no name of a measurement is printed"


def test_a_memory_channel_is_named_with_both_values() -> None:
    where = {"cpu_node": 1, "memory_node": 1}
    streams = tuple({**where, "stream": stream} for stream in ("copy", "load", "store_mem", "triad"))
    found = verdicts.finding(
        -0.119,
        id="bandwidth-slow",
        measurement="bandwidth-nodes",
        component=Component("bandwidth", "bandwidth", where),
        tolerance=0.0476,
        value=99e9,
        peers=112.4e9,
        unit="B/s",
        cells=streams,
        consistent_with=("memory-channel",),
    )
    sentence = text.finding_sentence(found)
    assert sentence.startswith("A memory channel of NUMA node 1 is probably missing or slow: memory bandwidth 11.9%")
    assert "(99 of 112 GB/s, mean of 4 streams" in sentence and "bandwidth-nodes" not in sentence
    line = text.first_line(
        verdicts.verdict({"cn1": verdicts.node(Outcome.DEVIATES, findings=(found,)), "cn2": verdicts.node()})
    )
    assert "cn1 (memory bandwidth of NUMA node 1 from its own CPUs -11.9%, tolerance 4.8%)" in line
    other = text.finding_sentence(replace(found, consistent_with=("memory-speed",)))
    assert other.startswith("Memory bandwidth of NUMA node 1 from its own CPUs is 11.9% lower")


def test_a_class_on_one_of_its_sockets_is_not_named_twice() -> None:
    """It read 'Pairs of the same socket are 6.4% faster in pairs of the same socket on socket 0'."""
    same, on_socket = Component("class", "class", {"class": 4}), Component("class", "class", {"class": 4, "socket": 0})
    found = verdicts.finding(component=same, figures_of=on_socket)
    assert "Pairs of the same socket are 5.9% slower on socket 0 than" in text.finding_sentence(found)
    assert text.component_in_words(found) == "core-to-core latency of pairs of the same socket, on socket 0"


def test_a_count_of_one_has_a_singular() -> None:
    """A node with one peer had "1 peers", and a processor was throttled "1 times"."""
    event = verdicts.finding(id="throttled", measurement="", component=Component("throttled", "throttled"))
    one, two = (text.finding_sentence(replace(event, value=count)) for count in (1.0, 2.0))
    assert "was throttled 1 time" in one and "times" not in one and "throttled 2 times" in two
    caption = say("figures", "map", measurement="m", node="n", peers=1, marked="")
    assert "1 peer." in caption
    assert " 1 run of " in say("figures", "runs", beyond=1, runs=1, component="c", verb="is", tolerance="4%")


def test_no_cause_names_a_part_that_some_processors_lack() -> None:
    """Zen 1 has no I/O die, and a finding on it was consistent with the CCD's port to one."""
    causes = {key: str(words) for key, words in texts()["causes"].items()}
    assert causes["ccd-port"] == "the CCD's port to the rest of the processor"
    assert not [words for words in causes.values() if re.search("I/O.die", words)]
