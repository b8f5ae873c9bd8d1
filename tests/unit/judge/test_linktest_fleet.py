"""LinkTest's matrices over a fleet: simulated, judged by the machinery of pairs, and drawn."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nodeprint.data.format import records
from nodeprint.data.job import jobs
from nodeprint.data.places.layout import pair_classes
from nodeprint.data.places.measured import Measured
from nodeprint.judge import acceptance
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.machine.topology.presets import preset
from nodeprint.report import message_rates, names, text
from nodeprint.simulate import Plan, Variation, fleet, write
from tests.support.made_records import header, lines
from tests.support.schemas import valid_records

ROME = preset("rome-2x64")


def stack_of(plan: Plan) -> Measured:
    (one,) = [stack for stack in fleet(plan).pairs if stack.measurement == "linktest-node"]
    return one


def test_a_planted_ccd_is_named_by_linktest_alone() -> None:
    plan = Plan(
        ROME,
        nodes=6,
        jobs=2,
        runs=2,
        passes=1,
        spread=Variation(core=0.004),
        linktest=True,
        defects=("node003: ccd 5 +10%",),
    )
    whole = fleet(plan)
    alone = replace(whole, quantities=tuple(s for s in whole.pairs if s.measurement == "linktest-node"))
    verdict = judge(alone, acceptance.load()).verdict
    assert verdict.nodes["node003"].outcome is Outcome.DEVIATES
    finding = verdict.nodes["node003"].counted[0]
    assert (finding.component.term, finding.component.where["ccd"], finding.measurement) == ("ccd", 5, "linktest-node")
    assert finding.effect == pytest.approx(0.10, abs=0.02)
    assert re.search(r", \d+(\.\d+)? µs", text.finding_sentence(finding))
    others = [node.outcome for name, node in verdict.nodes.items() if name != "node003"]
    assert not {Outcome.DEVIATES, Outcome.SUSPECT} & set(others)


def test_a_message_takes_longer_the_further_it_goes() -> None:
    stack = stack_of(Plan(ROME, nodes=1, runs=1, passes=1, linktest=True))
    classes = pair_classes(stack.layout.slots, stack.pairs)
    assert 0 not in classes  # a rank a core
    medians = [float(np.median(stack.values[0, 0, classes == kind])) for kind in (1, 4, 5)]
    assert medians == sorted(medians)
    assert len(stack.pairs) == 128 * 127 // 2


def test_records_and_arrays_are_of_the_same_draws(tmp_path: Path) -> None:
    plan = Plan(preset("naples-2x32"), nodes=1, runs=1, passes=2, linktest=True)
    path = write(plan, tmp_path / "sim") / "nodes/node000/job1/run1/linktest-node.jsonl.gz"
    valid_records(path)
    file = records.read(path)
    assert file.header["simulated"] is True
    assert file.header["quantity"] == "message"
    assert np.sort(file.pairs["latency_ns"]) == pytest.approx(np.sort(stack_of(plan).values.ravel()), abs=0.1)


def test_facts_are_minimum_mean_maximum_and_how() -> None:
    header = {
        "quantity": "message",
        "message_bytes": 1 << 20,
        "operation": "semidirectional",
        "batches": 16,
        "arguments": ["--mode", "semidirectional", "--schedule", "serial"],
        "transport": {"library": "Open MPI v4.1.4", "pml": ["ob1"], "btl": ["vader"], "single_copy": "cma"},
    }
    facts = dict(message_rates.facts(np.array([np.nan, 1e5]), header))
    assert facts["minimum"] == facts["maximum"] == "100 \N{MICRO SIGN}s, 10.5 GB/s"
    assert (facts["pairs"], facts["schedule"], facts["message"]) == ("1", "serial", "1 MiB")
    assert facts["transport"] == "ob1/vader"
    assert "slowest, remeasured alone" not in facts
    assert message_rates.facts(np.array([np.nan]), header) == ()


def test_slowest_pairs_have_their_first_and_their_second_time(tmp_path: Path) -> None:
    """As the kernel chose them: by the lowest time of a pair over passes."""
    file = tmp_path / "linktest.jsonl"
    measured_ns = {(0, 1): 80e3, (0, 2): 104e3, (1, 1): 81e3, (1, 2): 120e3}
    first = [
        {"record": "pair", "a": 0, "b": b, "pass": number, "home": -1, "latency_ns": ns, "flags": []}
        for (number, b), ns in measured_ns.items()
    ]
    again = {**first[1], "record": "again", "pass": 2, "latency_ns": 80e3, "reason": "slowest"}
    differ = {**again, "reason": "passes_differ"}
    head = header(kernel="linktest", operation="semidirectional", quantity="message", cpus=[0, 1, 2], home=None)
    file.write_text(lines(head, *first, differ, again))
    measured = jobs.of_file(file)
    assert measured is not None
    (slowest,) = measured.runs[0]["slowest_again"]
    assert slowest == {"a": 0, "b": 2, "first_ns": 104e3, "again_ns": 80e3}
    facts = dict(message_rates.facts(np.array([80e3, 104e3]), head, [slowest]))
    assert facts["slowest, remeasured alone"] == "CPUs 0 and 2 104 \N{MICRO SIGN}s, again 80 \N{MICRO SIGN}s"


@pytest.mark.parametrize(
    ("operation", "at_once", "rates"),
    [
        ("semidirectional", 1, ["10.5", "5.24", "2.62"]),
        ("unidirectional", 4, ["10.5", "5.24", "2.62", "21"]),
        ("bidirectional", 4, ["21", "10.5", "5.24", "41.9"]),  # two messages in that time
    ],
)
def test_rate_counts_all_messages_of_its_time(operation: str, at_once: int, rates: list[str]) -> None:
    times = {"minimum": 1e5, "mean": 2e5, "maximum": 4e5}
    rows = message_rates.rates(times, 1 << 20, operation, at_once)
    assert [value.removesuffix(" GB/s").split(", ")[-1] for value in rows.values()] == rates


@pytest.mark.parametrize(("size", "text"), [(1 << 20, "1 MiB"), (3 << 16, "192 KiB"), (100, "100 B"), (None, "")])
def test_size_of_a_message_is_short(size: int | None, text: str) -> None:
    assert names.message_size(size) == text
