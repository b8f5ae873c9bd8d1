"""LinkTest's matrices over a fleet: simulated, judged by the machinery of pairs, and drawn."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nodeprint import records
from nodeprint.fleet.quantity import Quantity
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.layout import pair_classes
from nodeprint.report import cluster, distribution_plots, linktest
from nodeprint.report.fleet_figures import Overview
from nodeprint.report.pages import Table
from nodeprint.report.scale import Scale
from nodeprint.simulate import Plan, Spread, fleet, write
from nodeprint.topology.presets import preset

from .schemas import valid_records

ROME = preset("rome-2x64")


def stack_of(plan: Plan) -> Quantity:
    (one,) = [stack for stack in fleet(plan).pairs if stack.measurement == "linktest-node"]
    return one


def test_a_planted_ccd_is_named_by_linktest_alone() -> None:
    plan = Plan(ROME, nodes=6, jobs=2, runs=2, passes=1, spread=Spread(core=0.004), linktest=True,
                defects=("node003: ccd 5 +10%",))  # fmt: skip
    whole = fleet(plan)
    alone = replace(whole, quantities=tuple(s for s in whole.pairs if s.measurement == "linktest-node"))
    verdict = judge(alone).verdict
    assert verdict.nodes["node003"].outcome is Outcome.DEVIATES
    (finding,) = verdict.nodes["node003"].findings
    assert (finding.part.term, finding.part.where["ccd"], finding.measurement) == ("ccd", 5, "linktest-node")
    assert finding.effect == pytest.approx(0.10, abs=0.02)
    others = {node.outcome for name, node in verdict.nodes.items() if name != "node003"}
    assert not {Outcome.DEVIATES, Outcome.SUSPECT} & others


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


def test_the_colours_of_the_matrix_are_the_bins_of_the_histogram() -> None:
    values = np.array([[np.nan, 10.0, 100.0], [10.0, np.nan, 100.0], [100.0, 100.0, np.nan]])
    colours = linktest.in_us(Scale(10e3, 100e3))

    def pairs(operation: str) -> list[int]:
        each = linktest.each_once(values, operation)
        return list(distribution_plots.histogram(each, colours, name="", caption="", unit="us").data["pairs"])

    counts = pairs("semidirectional")  # each of three pairs is in both triangles
    assert (len(counts), counts[0], counts[-1], sum(counts)) == (colours.bins, 1, 2, 3)
    assert sum(pairs("unidirectional")) == 6
    fine = np.linspace(colours.low, colours.high, 10_000)
    assert len(np.unique(colours.index(fine))) == colours.bins


def test_the_facts_are_minimum_mean_maximum_and_how() -> None:
    header = {
        "quantity": "message", "message_bytes": 1 << 20, "operation": "semidirectional", "batches": 16,
        "arguments": ["--mode", "semidirectional", "--schedule", "serial"], "directed": False,
        "transport": {"library": "Open MPI v4.1.4", "pml": ["ob1"], "btl": ["vader"], "single_copy": "cma"},
    }  # fmt: skip
    facts = dict(linktest.facts(np.array([[np.nan, 100.0], [100.0, np.nan]]), header))
    assert facts["minimum"] == facts["maximum"] == "100 us"
    assert (facts["pairs"], facts["schedule"], facts["message"]) == ("1", "serial", "1 MiB")
    assert facts["transport"] == "ob1"


@pytest.mark.parametrize(
    ("operation", "at_once", "rates"),
    [
        ("semidirectional", 1, ["10.5 GB/s", "5.24 GB/s", "2.62 GB/s"]),
        ("unidirectional", 4, ["10.5 GB/s", "5.24 GB/s", "2.62 GB/s", "21.0 GB/s"]),
        ("bidirectional", 4, ["21.0 GB/s", "10.5 GB/s", "5.24 GB/s", "41.9 GB/s"]),  # two messages in that time
    ],
)
def test_a_rate_counts_all_messages_of_its_time(operation: str, at_once: int, rates: list[str]) -> None:
    times = {"minimum": 100.0, "mean": 200.0, "maximum": 400.0}
    rows = linktest.figures(times, 1 << 20, operation, at_once)
    assert [value for _, value in rows if value.endswith("GB/s")] == rates
    assert [name for name, _ in rows if "pairs" in name] == (["4 pairs"] if at_once > 1 else [])


@pytest.mark.parametrize(("size", "text"), [(1 << 20, "1 MiB"), (3 << 16, "192 KiB"), (100, "100 B"), (None, "")])
def test_the_size_of_a_message_is_short(size: int | None, text: str) -> None:
    assert linktest.size_text(size) == text
