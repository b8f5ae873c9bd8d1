"""A site's own commands from config.yaml to the verdict: metrics, components, and reasons of those without values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprint.campaign import job_status, node_sheet
from nodeprint.campaign.job_status import Outcome
from nodeprint.campaign.node_sheet import Node
from nodeprint.data.store import packing
from nodeprint.errors import NodeprintError
from nodeprint.judge import campaign as judging
from nodeprint.judge.verdict import Verdict
from nodeprint.settings import checked_yaml, config
from tests.support import made_status
from tests.support.made_status import run_outcome
from tests.support.real_parts import ROOT

PAGE = (ROOT / "docs/how-to/measure-your-own-command.md").read_text()
OWN = yaml.safe_load(PAGE.partition("```yaml\n")[2].partition("```")[0])
#: What a run printed, and its exit status.
Printed = tuple[str, int]
Make = Callable[..., Path]


def stream(triad: float, noise: float = 0.0) -> Printed:
    rows = [f"{name}: {triad * (1 + noise):12.1f} 0.02 0.02 0.02" for name in ("Copy", "Scale", "Add", "Triad")]
    return "\n".join(("Function    Best Rate MB/s  Avg time     Min time     Max time", *rows)), 0


def record(node: str, job: int, run: int, printed: Printed, time: str) -> str:
    header = {
        "record": "header", "schema": 1, "segment": 0, "kernel": "command", "operation": "command",
        "quantity": "figure", "unit": "", "host": node, "boot_id": node, "job": job, "run": run, "seed": run,
        "cpus": [], "passes": 1,
        "start_time": f"2026-11-29T{time}Z", "arguments": ["--command", "x"], "kernel_hash": "0" * 16,
        "compiler": "sh", "pinned_by": "native", "clock": {"source": "clock_gettime", "hz": 100, "step_ns": 1e7},
        "cells": {"dims": [], "values": {"value": ""}},
    }  # fmt: skip
    text, status = printed
    lines = [{"record": "output", "text": line} for line in text.split("\n")]
    trailer = {"record": "trailer", "elapsed_s": 1.0, "complete": status == 0, "cells": 0, "status": status}
    return "".join(f"{json.dumps(line)}\n" for line in (header, *lines, trailer))


@pytest.fixture
def campaign(tmp_path: Path) -> Make:
    """A campaign whose nodes printed something in each run."""

    def make(nodes: Mapping[str, list[Printed]], **own: Any) -> Path:
        path = tmp_path / "own.yaml"
        measurements = [OWN["measurements"][0] | own, {"name": "unasked", "command": "false", "reader": "metrics"}]
        path.write_text(yaml.safe_dump({"measure": ["stream"], "measurements": measurements}))
        settings = config.load(path)
        folder = tmp_path / "campaign"
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(checked_yaml.text(settings))
        (folder / "plan.tsv").write_text(config.plan(settings))
        node_sheet.write_sheet(folder / "nodes.tsv", [Node(node, node) for node in nodes])
        for node, runs in nodes.items():
            put_job(folder, node, 1, runs, "12:00:00")
        return folder

    return make


def put_job(folder: Path, node: str, job: int, runs: list[Printed], time: str) -> None:
    """A job of a node that began at a time and took a minute."""
    job_folder = folder / f"nodes/{node}/job{job}"
    rows = []
    for number, printed in enumerate(runs, start=1):
        (job_folder / f"run{number}").mkdir(parents=True, exist_ok=True)
        (job_folder / f"run{number}/stream.jsonl").write_text(record(node, job, number, printed, time))
        failed = {"outcome": "failed", "exit_code": 1, "message": "command: exited"} if printed[1] else {}
        rows.append(run_outcome("stream", number, **failed))
    outcome: Outcome = "partial" if any(row.message for row in rows) else "complete"
    began, ended = f"2026-11-29T{time}Z", f"2026-11-29T{time[:-2]}59Z"
    names = {"node": node, "host": node, "job": job, "started": began, "ended": ended}
    job_status.write(job_folder, made_status.job_outcome(outcome, *rows, **names))


def healthy(*names: str) -> dict[str, list[Printed]]:
    return {name: [stream(3e5, 1e-3 * at), stream(3e5, -1e-3 * at)] for at, name in enumerate(names, start=1)}


def judged(folder: Path) -> Verdict:
    return judging.judge(folder).verdict


def test_the_example_of_the_page_names_a_slow_node(campaign: Make) -> None:
    folder = campaign(healthy("a", "b", "c", "d") | {"e": [stream(2.2e5), stream(2.21e5)]})
    verdict = judged(folder)
    assert str(verdict.nodes["e"].outcome) == "SUSPECT"
    finding = verdict.nodes["e"].findings[0]
    assert finding.measurement.startswith("stream/") and finding.effect == pytest.approx(-0.267, abs=0.01)
    assert set(verdict.criteria) == {"stream/copy", "stream/scale", "stream/add", "stream/triad"}
    assert 100 * finding.tolerance == pytest.approx(3, abs=0.1)
    assert {str(verdict.nodes[name].outcome) for name in "abcd"} == {"SAME"}
    # a command that `measure` leaves out is no metric that is missing
    assert "unasked" not in (folder / "plan.tsv").read_text()
    assert not [note for note in verdict.fleet.notes if note.kind == "no-such-metric"]


@pytest.mark.parametrize(("time", "outcome"), [("12:30:00", "DEVIATES"), ("12:05:00", "SUSPECT")])
def test_a_second_job_confirms_a_slow_node_if_it_is_independent(campaign: Make, time: str, outcome: str) -> None:
    """Independent after ten minutes. The recheck asks for the node and for control nodes that have the command, too."""
    slow = [stream(2.2e5), stream(2.21e5)]
    folder = campaign(healthy("a", "b", "c", "d") | {"e": slow})
    assert judging.judge(folder).verdict.nodes["e"].outcome == "SUSPECT"
    nodes = {"e": slow} | {node: runs for node, runs in healthy("a", "b", "c", "d").items() if node in "ab"}
    for node, runs in nodes.items():
        put_job(folder, node, 2, runs, time)
    node_sheet.write_sheet(folder / "nodes.tsv", [Node(node, node, job=2 if node in nodes else 1) for node in "abcde"])
    verdict = judged(folder)
    assert {name: str(node.outcome) for name, node in verdict.nodes.items()} == {
        **dict.fromkeys("abcd", "SAME"),
        "e": outcome,
    }
    finding = verdict.nodes["e"].findings[0]
    assert finding.measurement.startswith("stream/") and finding.effect == pytest.approx(-0.267, abs=0.01)


def test_failed_unreadable_and_wrong_outputs_are_their_nodes_reasons(campaign: Make) -> None:
    wrong = f"{stream(3e5)[0]}\nFailed Validation on array a[]", 0
    nodes = healthy("a", "b", "c", "d")
    nodes |= {"cut": [stream(3e5), ("no memory", 0)], "failed": [stream(3e5), ("oops", 3)], "wrong": [wrong, wrong]}
    folder = campaign(nodes)
    verdict = judged(folder)
    outcomes = {name: str(node.outcome) for name, node in verdict.nodes.items()}
    assert outcomes == dict.fromkeys("abcd", "SAME") | {
        "cut": "INCONCLUSIVE",
        "failed": "INCONCLUSIVE",
        "wrong": "WRONG RESULT",
    }
    ends = "stream, job1/run2: the output ends with 'no memory' and is not of stream"
    why = f"{ends}; mend `command` or `reader`; its output is kept in the record"
    assert why in next(node for node in packing.pack(folder).nodes if node.name == "cut").problems
    assert verdict.nodes["cut"].reasons[0].of == ("stream",)


def test_bytes_that_are_no_text_are_not_printed(campaign: Make) -> None:
    folder = campaign({"a": [("Triad\n\x7fELF\x02\x01\ufffd\ufffd\xe9\x00", 0)]})
    (reason,) = {line for node in packing.pack(folder).nodes for line in node.problems}
    assert "the output is not text and is not of stream; mend `command` or `reader`" in reason


def test_another_reader_reads_the_same_output_again(campaign: Make) -> None:
    folder = campaign(healthy("a", "b", "c"), reader="hpcg")
    assert {str(node.outcome) for node in judged(folder).nodes.values()} == {"NOT MEASURED"}
    campaign(healthy("a", "b", "c"))
    assert {str(node.outcome) for node in judged(folder).nodes.values()} == {"SAME"}


def test_a_gpu_is_a_component_and_a_finding_names_it(campaign: Make) -> None:
    head = "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1"
    printed = f"nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\nRunning host_to_device_memcpy_ce.\n{head}\n"

    def of(*rates: float) -> Printed:
        row = "".join(f"{rate:10.2f}" for rate in rates)
        return f"{printed} 0 {row}\n\nSUM host_to_device_memcpy_ce {sum(rates):.2f}\n", 0

    nodes = {name: [of(55.1 + at / 50, 55.2), of(55.0, 55.1 + at / 50)] for at, name in enumerate("abcde")}
    nodes["slow"] = [of(55.1, 27.4), of(55.0, 27.5)]
    verdict = judged(campaign(nodes, reader="nvbandwidth"))
    finding = verdict.nodes["slow"].findings[0]
    assert finding.component.where == {"gpu": 1}


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ([{"name": "chase-latency"}], "measurements[0].name: nodeprint has a measurement or metric chase-latency"),
        ([{"reader": "streams"}], "measurements[0].reader: unknown reader 'streams'; did you mean stream? known are "),
        ([{}, {}], "measurements[1].name: stream appears twice; rename one of the two"),
        ([{"command": ""}], "measurements[0].command: must not be empty"),
        ([{"command": " "}], "measurements[0].command: no command"),
        ([{"name": "a b"}], "measurements[0].name: 'a b' cannot be used"),
        ([{"time": 3}], "measurements[0].time: unknown key"),
        ("nowhere", "measurements: nowhere is not there; name a measurements.yaml, its directory or"),
    ],
)
def test_a_bad_entry_is_one_sentence_with_its_key(tmp_path: Path, own: Any, sentence: str) -> None:
    path = tmp_path / "own.yaml"
    listed = own if isinstance(own, str) else [OWN["measurements"][0] | entry for entry in own]
    path.write_text(yaml.safe_dump({"measurements": listed}))
    with pytest.raises(NodeprintError) as error:
        config.load(path)
    assert str(error.value).startswith(f"{path}: {sentence}")


def test_the_list_may_be_in_a_directory_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "measurements.yaml").write_text(yaml.safe_dump(OWN))
    path = tmp_path / "config.yaml"
    path.write_text(f"measurements: {tmp_path}\n")
    assert config.load(path).measurements[0].reader == "stream"
    (tmp_path / "measurements.yaml").write_text("measurements: [{name: a}]\n")
    with pytest.raises(NodeprintError, match=r"measurements.yaml: measurements\[0\]: command is missing"):
        config.load(path)


def test_the_list_may_be_in_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry point of the page names it."""
    page = (ROOT / "docs/how-to/measure-your-own-command.md").read_text()
    group, _, point = page.partition("```toml\n")[2].partition("```")[0].replace('"', "").partition("\n")
    (dist := tmp_path / "acme_checks-1.dist-info").mkdir()
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: acme_checks\nVersion: 1\n")
    (dist / "entry_points.txt").write_text(f"{group.replace('project.entry-points.', '')}\n{point}")
    (package := tmp_path / "acme_checks").mkdir()
    (package / "__init__.py").touch()
    (package / "measurements.yaml").write_text(yaml.safe_dump(OWN))
    (path := tmp_path / "config.yaml").write_text("measurements: acme\n")
    with pytest.raises(NodeprintError, match=r"acme is not there; name a measurements\.yaml, .* entry point"):
        config.load(path)
    monkeypatch.syspath_prepend(tmp_path)
    assert config.load(path).measurements[0].reader == "stream"


def test_another_time_limit_compares_and_another_command_does_not() -> None:
    plans = [
        config.plan(config.checked({"measurements": [OWN["measurements"][0] | change]}, "x"))
        for change in ({}, {"time_limit": 9}, {"command": "other %"})
    ]
    rows = [config.rows(plan)["stream"] for plan in plans]
    assert rows[0] == rows[1] != rows[2]
    assert rows[2] == "--command other%20%25"


def test_a_program_of_the_site_prints_metrics_with_units_and_a_better_side_each(campaign: Make) -> None:
    def of(rate: float, latency: float) -> Printed:
        return f"# probe of {{node}}, pid: 4711\nread bandwidth: {rate} GB/s\nlatency = {latency} us\nerrors: 0", 0

    nodes = {name: [of(50 + at / 50, 1.7), of(50, 1.7 + at / 1000)] for at, name in enumerate("abcd")}
    nodes |= {"fast": [of(60, 1.7), of(60.1, 1.7)], "late": [of(50, 2.4), of(50, 2.41)]}
    found = judged(campaign(nodes, reader="metrics")).nodes
    effects = {name: [(f.measurement, round(f.effect, 1)) for f in node.findings] for name, node in found.items()}
    assert effects["late"] == [("stream/latency", 0.4)] and found["late"].outcome == "SUSPECT"
    assert effects["fast"] == [("stream/read-bandwidth", 0.2)]
    assert not any(effects[name] for name in "abcd")
