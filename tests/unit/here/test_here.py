"""nodeprint here: the plan that fits, what is continued, what is shown, and the commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from nodeprint import simulate as simulator
from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.here import matrix_text, measure, result, time_budget, view
from nodeprint.judge.campaign import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Disturbance
from nodeprint.machine.topology import presets
from nodeprint.report import text
from nodeprint.summary import measured_node
from nodeprint.summary.node_summary import (
    CpuLabels,
    MedianValue,
    NodeSummary,
    PairMatrix,
    ProcessorFacts,
    SummaryOrigin,
    tenths,
)
from tests.support import printed
from tests.support.real_parts import ROOT, need


def seconds(pair_s: float) -> time_budget.Seconds:
    """Times as kernels have them, where a pass over all pairs takes `pair_s`."""

    def asked(kernel: str, words: Sequence[str]) -> float:
        options = dict(pairwise(words))
        if kernel == "coherence":
            return pair_s * int(options["--passes"]) * int(options.get("--lines", 32)) / 32
        return {"chase": 1.0 if "--per" not in words else 0.1, "clock": float(options.get("--seconds", 1))}.get(
            kernel, 2.0
        )

    return asked


@pytest.mark.parametrize(("cpus", "pair_s", "most"), [(2, 0.01, 30), (16, 0.3, 30), (128, 6.0, 75), (256, 25.0, 120)])
def test_the_plan_fits_the_time(cpus: int, pair_s: float, most: float) -> None:
    asked = seconds(pair_s)
    rows = time_budget.rows(cpus, asked)
    total = sum(row.runs * (asked(row.kernel, row.arguments.split()) + time_budget.START_S) for row in rows)
    assert total <= time_budget.budget_s(cpus) < most
    assert [row.name for row in rows] == [
        "coherence-cas",
        "chase-latency",
        "bandwidth-machine",
        "clock-together",
        "load-together",
    ]
    assert min(row.runs for row in rows) >= 3  # an interval for each


def test_one_cpu_is_refused_in_one_sentence(tmp_path: Path) -> None:
    words = ["taskset", "-c", str(min(os.sched_getaffinity(0))), sys.executable, "-m", "nodeprint", "here"]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    (sentence,) = done.stderr.splitlines()
    assert done.returncode == 2 and "only one CPU" in sentence and "slurm" not in sentence
    assert not list(tmp_path.rglob("plan.tsv"))


def test_what_is_not_known_of_a_processor_is_not_counted() -> None:
    assert (
        view.heading(NodeSummary(ProcessorFacts("X", virtual=True), SummaryOrigin("nodeprint", "", {})))
        == "X: a virtual machine"
    )
    assert view.heading(NodeSummary(ProcessorFacts("X", cpus=4), SummaryOrigin("nodeprint", "", {}))) == "X: 4 CPUs"
    assert view.heading(NodeSummary(ProcessorFacts(""), SummaryOrigin("nodeprint", "", {}))) == "unknown processor"


def test_richer_arguments_where_there_is_time() -> None:
    small, large = time_budget.rows(16, seconds(0.02))[0], time_budget.rows(256, seconds(100.0))[0]
    assert "--passes 3" in small.arguments and small.runs >= 3
    assert "--lines 8" in large.arguments


def test_what_takes_longer_than_all_time_is_measured_once() -> None:
    assert {row.runs for row in time_budget.rows(16, lambda kernel, words: 100.0)} == {1}


# --- what is shown ---


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("here") / "main"
    slow = ("node000: fingerprint memory_mts=2133",)
    simulator.write(simulator.Plan(presets.preset("milan-2x64"), 1, cells=True, defects=slow), folder)
    return folder


def test_a_large_matrix_is_shown_by_parts(campaign: Path) -> None:
    matrix = measured_node.MeasuredNode(campaign).summary.matrix
    assert matrix is not None
    shown = matrix_text.square(matrix)
    assert "CCX by CCX" in shown.title and len(shown.names) == 16
    lines = printed.of_blocks([shown], 100).splitlines()
    assert len(lines) == 18 and max(map(len, lines)) <= 100


@pytest.mark.parametrize("cpus", [2, 3, 8, 32, 33, 100])
def test_matrices_of_all_sizes_without_labels(cpus: int) -> None:
    values = np.full((cpus, cpus), 1234.0)
    shown = matrix_text.square(
        PairMatrix("m", "cas", "hop", "", CpuLabels(tuple(range(0, 2 * cpus, 2))), tenths(values))
    )
    for columns in (60, 100):
        lines = printed.of_blocks([shown], columns).splitlines()
        assert len(lines) == len(shown.names) + 2 and max(map(len, lines)) <= columns


def test_medians_have_unit_and_interval(campaign: Path) -> None:
    lines = printed.of_blocks([view.medians(measured_node.MeasuredNode(campaign).summary.figures)]).splitlines()
    inside = next(line for line in lines if "same CCX" in line)
    assert " ns" in inside and "95% over" in inside


def test_what_the_memory_could_be_is_said_first_as_the_verdict_says_it(campaign: Path) -> None:
    (warning,) = text.memory_warnings(judge(campaign).verdict.fleet)
    assert "memory runs at 2,133 of 3,200 MT/s" in warning
    outcome = "NOT COMPARED (NO PEERS): Measured. It has no peers, so nothing was compared."
    assert printed.of_sections(view.sections(result.read(campaign))).startswith(f"{outcome}\n{warning}\n\n")


def test_one_difference_of_runs_is_stated_once_with_one_pair_of_values(campaign: Path) -> None:
    ends: dict[str, Any] = {"low": 26.7, "high": 107.0, "unit": "ns", "low_in": "job1/run3", "high_in": "job1/run1"}
    differ = Disturbance("runs-differ", False, "coherence-cas", "job1", 0.5, 4.0, odd=("job1/run1",), **ends)
    moved = replace(differ, kind="cpus-moved", invalid=True)
    near = replace(moved, value=3.0, low=25.0)
    odd = Disturbance("odd-run", True, "coherence-cas", "job1/run1", 3.0, 4.0)
    measured = replace(result.read(campaign), outcome=Outcome.INVALID, disturbances=(near, odd, differ, moved))
    shown = printed.of_sections(view.sections(measured))
    assert shown.startswith("UNDETERMINED (INVALID): The host migrates the virtual CPUs")
    assert shown.count("run 1") == 1 and "25 ns" not in shown and "other runs" not in shown
    shown = printed.of_sections(view.sections(replace(measured, disturbances=(odd, differ))))
    assert shown.count("Run 1") == 1 and "by a factor of 4.0" in shown


def test_an_interval_names_the_runs_that_it_is_of() -> None:
    figure = MedianValue("coherence-cas", "same socket", "ns", 27.0, low=25.5, high=28.4, runs=3, left_out=1)
    (row,) = view.medians([figure]).rows
    assert row[-1] == "95% over 2 of 3 runs: 25.5 to 28.4 ns"


# --- measuring ---


def call(cache: Path, *words: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "nodeprint", "here", *words],
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of seconds."""
    monkeypatch.setattr(time_budget, "budget_s", lambda cpus: 1.0)


@pytest.mark.machine
@pytest.mark.usefixtures("quick")
def test_here_measures_prints_and_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("flock", "setsid", cpus=2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run = CliRunner()
    done = run.invoke(app, ["here", "--csv", str(tmp_path / "m.csv"), "--svg", str(tmp_path / "m.svg")])
    assert done.exit_code == 0, done.output
    for words in ("core-to-core latency", "memory latency", "clock", "records: "):
        assert words in done.stdout
    assert (tmp_path / "m.csv").read_text().startswith("cpu_a,cpu_b,latency_ns\n0,1,")
    assert "<svg" in (tmp_path / "m.svg").read_text()
    card = tmp_path / "card.json"
    assert run.invoke(app, ["publish", "--to", str(card)]).exit_code == 0
    assert run.invoke(app, ["verify-card", str(card)]).exit_code == 0
    assert run.invoke(app, ["here", "--fail-on", "not-same", "--json"]).exit_code == 3


@pytest.mark.machine
def test_ctrl_c_is_continued(tmp_path: Path) -> None:
    need("flock", "setsid", cpus=2)
    with call(tmp_path) as process:
        records = tmp_path / "nodeprint" / "here"
        end = time.monotonic() + 60
        while time.monotonic() < end and not any(
            "\tdone\t" in path.read_text() for path in records.glob("*/nodes/*/job1/outcomes.tsv")
        ):
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=120)
    assert process.returncode == 130 and "continues it" in error
    (folder,) = records.iterdir()
    done = [
        line for line in next(folder.glob("nodes/*/job1/outcomes.tsv")).read_text().splitlines() if "\tdone\t" in line
    ]
    with call(tmp_path) as process:
        out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    assert [folder] == list(records.iterdir())
    after = next(folder.glob("nodes/*/job1/outcomes.tsv")).read_text()
    assert done and all(after.count(line) == 1 for line in done)
    assert str(folder) in out


def test_nothing_measured_yet_is_said(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="nothing was measured here yet"):
        measure.newest(tmp_path)


def test_files_are_checked_before_anything_is_measured(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["here", "--pdf", str(tmp_path / "m.png")])
    assert isinstance(done.exception, NodeprintError) and ".pdf" in str(done.exception)


def test_a_missing_package_is_named() -> None:
    """A damaged installation ends in one sentence."""
    code = (
        "import sys; sys.modules['xarray'] = None; sys.argv = ['nodeprint', 'judge', 'nowhere'];"
        "from nodeprint.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr == "nodeprint: the Python package xarray is missing: `pip install xarray`\n"


def test_figures_are_in_the_words_and_units_of_the_report() -> None:
    flops = MedianValue("load-together", "steady", "1/s", 117.6e9)
    moved = MedianValue("bandwidth-scaling", "machine, load, huge", "B/s", 5.6e9)
    lines = printed.of_blocks([view.medians([flops, moved])]).splitlines()
    assert "117.6 Gflop/s" in lines[0] and "machine, load, huge pages" in lines[1]
