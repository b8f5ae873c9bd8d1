"""Snakemake's own call with a Slurm that answers and runs nothing (fake_slurm.sh): retries, priorities, many nodes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeprint.campaign import node_status
from nodeprint.campaign.node_sheet import Node
from tests.support import fake_slurm, made_status
from tests.support.idle_campaigns import begin, copy, measure_words
from tests.support.real_parts import ROOT, environment

pytestmark = pytest.mark.machine


class Call:
    """A campaign of some nodes in a working copy, and calls of Snakemake that measure it."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder, self.names = copy(folder), [f"cn{number:04}" for number in range(1, nodes + 1)]
        sheet = [Node(name, name, partition="main", cpus=256) for name in self.names]
        self.config = begin(folder, "many", sheet, late_seconds=0)
        self.campaign, self.queue = folder / "results/many", folder / "queue"
        self.environment = environment() | fake_slurm.environment(folder) | {"PYTHONPATH": str(ROOT / "workflow")}
        self.started: list[subprocess.Popen[bytes]] = []

    def begin(self, *options: str) -> subprocess.Popen[bytes]:
        """Begin a call."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [*measure_words(self.config), *options], cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        self.started.append(process)
        return process

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def submitted(self) -> list[str]:
        """The nodes of all jobs that were ever submitted, in their order."""
        rows = self.queue.read_text().splitlines() if self.queue.exists() else []
        return [row.split("|")[1] for row in rows]

    def status(self, node: str) -> Path:
        return self.campaign / f"nodes/{node}/job1/status.json"

    def measured(self, node: str) -> None:
        """Write a node's outcome."""
        made_status.put(self.status(node).parent)

    def wait_for(self, true: Callable[[], bool], seconds: float = 300) -> None:
        until = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < until and self.started[-1].poll() is None, self.log()
            time.sleep(0.1)


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Callable[[int], Call]]:
    """`call(count)`: a campaign of so many nodes; what was started is ended."""
    calls: list[Call] = []

    def make(nodes: int) -> Call:
        calls.append(Call(tmp_path, nodes))
        return calls[-1]

    yield make
    for process in (process for made in calls for process in made.started if process.poll() is None):
        process.kill()
        process.wait()


def fails(call: Call, node: str) -> None:
    """All jobs of a node so far end without an outcome."""
    rows = [row.split("|") for row in call.queue.read_text().splitlines()]
    text = "".join("|".join([*row[:3], "FAILED" if row[1] == node else row[3], row[4]]) + "\n" for row in rows)
    (call.folder / "queue.new").write_text(text)
    (call.folder / "queue.new").rename(call.queue)


def test_a_lost_job_is_submitted_again_as_often_as_snakemake_is_asked_to(call: Callable[[int], Call]) -> None:
    tries = call(3)
    process = tries.begin("--retries", "1")
    tries.wait_for(lambda: len(tries.submitted()) == 3)
    for attempts in (4, 5):
        fails(tries, "cn0002")
        if attempts == 4:
            tries.wait_for(lambda: len(tries.submitted()) == 4)
            assert not tries.status("cn0002").exists(), "an attempt that is repeated is no outcome"
    tries.measured("cn0001")
    tries.measured("cn0003")
    assert process.wait(timeout=300) == 0, tries.log()
    assert tries.submitted().count("cn0002") == 2
    assert [tries.submitted().count(node) for node in ("cn0001", "cn0003")] == [1, 1]
    lost = next(node for node in node_status.read(tries.campaign).nodes if node.node == "cn0002")
    assert lost.standing == "failed" and "FAILED" in lost.reason


def test_a_node_that_is_asked_for_first_is_submitted_first(call: Callable[[int], Call]) -> None:
    ordered = call(4)
    # the last --jobs counts
    process = ordered.begin("--jobs", "1", "--prioritize", str(ordered.status("cn0003")))
    for number in range(1, 5):
        ordered.wait_for(lambda number=number: len(ordered.submitted()) == number)  # type: ignore[misc]
        ordered.measured(ordered.submitted()[-1])
    assert process.wait(timeout=300) == 0, ordered.log()
    assert ordered.submitted()[0] == "cn0003" and sorted(ordered.submitted()) == ordered.names


@pytest.mark.long
def test_of_a_thousand_nodes_none_is_submitted_twice_or_lost(call: Callable[[int], Call]) -> None:
    """Snakemake is killed in the middle of submitting, and called again."""
    many = call(1000)
    first = many.begin()
    many.wait_for(lambda: len(many.submitted()) > 400)
    first.kill()
    first.wait()
    second = many.begin()
    many.wait_for(lambda: len(many.submitted()) == 1000, seconds=600)
    assert sorted(many.submitted()) == many.names
    for node in many.names[:-1]:
        many.measured(node)
    fails(many, many.names[-1])
    assert second.wait(timeout=600) == 0, many.log()
    status = node_status.read(many.campaign)
    assert len(many.submitted()) == 1000
    assert status.counts == {"failed": 1, "measured": 999} and status.code == 1
    assert "cn1000 failed (Slurm job" in status.unfinished()
