"""`nodeprint status`: how every node of a campaign stands, for an administrator and for a script."""

import fcntl
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nodeprint.campaign import job_status, lost_jobs, node_sheet, node_status, progress
from nodeprint.campaign.node_sheet import Node
from nodeprint.errors import NodeprintError
from tests.support import made_status
from tests.support.command_line import call
from tests.support.made_status import job_outcome, run_outcome

MOMENT = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

#: Two runs of the only measurement.
STEPS = [(1, "coherence-cas"), (2, "coherence-cas")]


@pytest.fixture
def folder(campaign: Callable[..., Path]) -> Path:
    """A campaign in which a node of each kind is."""
    folder = campaign("done", "part")
    names = ("done", "part", "runs", "waits", "lost", "later")
    out = Node("out", "out", state="drained", reason="DIMM 7 is bad", measure=False)
    node_sheet.write_sheet(folder / "nodes.tsv", [*(Node(name, name) for name in names), out])
    (folder / "config.yaml").write_text("launch: slurm\nruns: 2\n")
    status = folder / "nodes/part/job1/status.json"
    content = json.loads(status.read_text())
    content["measurements"][1] |= {"outcome": "failed", "message": "killed by signal 9"}
    status.write_text(json.dumps(content | {"outcome": "partial"}))
    for name in ("runs", "lost"):
        (folder / "nodes" / name / "job1").mkdir(parents=True)
    (folder / "nodes/runs/job1/node-run.log").write_text(f"{MOMENT} node-run: run 2 of 2: coherence-cas\n")
    (folder / "nodes/runs/job1/run1").mkdir()
    (folder / "nodes/runs/job1/run1/coherence-cas.jsonl.gz").touch()
    lost_jobs.settle(folder / "nodes/lost/job1", "Slurm job 9: NODE_FAIL, the node was lost")
    rows = ["runs\t1\t7\tRUNNING\tNone", "waits\t1\t8\tPENDING\tPriority", "lost\t1\t9\tabsent\tSlurm job 9"]
    (folder / "launch").mkdir()
    (folder / "launch/jobs.tsv").write_text("".join(f"{row}\n" for row in rows))
    (folder / "launch/lock").touch()
    return folder


def test_how_each_node_stands(folder: Path) -> None:
    found = node_status.read(folder)
    assert {node.node: node.standing for node in found.nodes} == {
        "done": "measured",
        "part": "partly measured",
        "runs": "running",
        "waits": "queued",
        "lost": "failed",
        "later": "not begun",
        "out": "left out",
    }
    of = {node.node: node for node in found.nodes}
    assert of["part"].reason == "coherence-cas: killed by signal 9"
    assert (of["runs"].measurement, of["runs"].run, of["runs"].done, of["runs"].of) == ("coherence-cas", 2, 1, 2)
    assert (of["waits"].reason, of["waits"].slurm_job) == ("Priority", "8")
    assert of["lost"].reason == "Slurm job 9: NODE_FAIL, the node was lost"
    assert of["out"].reason == "drained: DIMM 7 is bad"
    assert found.code == 3
    (folder / "launch/jobs.tsv").write_text("later\t1\t9\tCOMPLETED\tNone\n")
    with (folder / "launch/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        later = next(node for node in node_status.read(folder).nodes if node.node == "later")
    assert (later.standing, later.reason) == ("running", "its Slurm job is COMPLETED; waiting for its status.json")
    text = "\n".join([found.heading, *map("  ".join, found.rows), found.advice])
    assert text.splitlines()[0].startswith(
        "main: 7 nodes: 1 failed, 1 partly measured, 1 running, 1 queued, 1 not begun, 1 left out, 1 measured"
    )
    assert "coherence-cas, run 2, 1 of 2 measurements" in text
    assert text.splitlines()[-1] == "no call follows the jobs that are queued: `make run` continues it"


def test_a_call_that_is_at_work_is_seen_by_its_lock(folder: Path) -> None:
    with (folder / "launch/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = node_status.read(folder)
    assert found.followed
    assert not found.advice


def test_what_nobody_is_at_work_on_is_interrupted(folder: Path) -> None:
    """A log that ends in a measurement is no sign of life: the node's lock is, and what Slurm says."""
    (folder / "launch/jobs.tsv").write_text("runs\t1\t7\tCANCELLED\tNone\n")
    (folder / "locks").mkdir()
    with (folder / "locks/runs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert [node.standing for node in node_status.read(folder).nodes if node.node == "runs"] == ["running"]
    found = node_status.read(folder)
    assert [node.standing for node in found.nodes if node.node == "runs"] == ["interrupted"]
    assert found.code == 1 and "runs interrupted" in found.unfinished()
    killed = run_outcome("a", 2, outcome="failed", exit_code=-1, message="Slurm job 7: CANCELLED")
    status = job_outcome("partial", run_outcome("a"), killed)
    job_status.write(folder / "nodes/runs/job1", replace(status, lost=True))
    cut = next(node for node in node_status.read(folder).nodes if node.node == "runs")
    assert (cut.standing, cut.reason) == ("interrupted", "Slurm job 7: CANCELLED")
    # a job that wrote it itself did what it could: a kernel that is missing here is no interruption
    job_status.write(folder / "nodes/runs/job1", status)
    without = next(node for node in node_status.read(folder).nodes if node.node == "runs")
    assert without.standing == "partly measured"
    # what another boot began is measured in a new job
    job_status.write(folder / "nodes/runs/job1", replace(status, rebooted=True))
    assert node_status.read(folder).counts["interrupted"] == 1


def test_status_ends_with_what_a_script_can_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("status", folder, "--json") == 3
    facts = json.loads(capsys.readouterr().out)
    assert facts["counts"]["queued"] == 1
    assert {node["node"] for node in facts["nodes"]} >= {"done", "out"}
    for name in ("runs", "waits", "later"):
        made_status.put(folder / "nodes" / name / "job1")
    assert call("status", folder, "--watch") == 1
    for name in ("part", "lost"):
        made_status.put(folder / "nodes" / name / "job1")
    assert call("status", folder) == 0, "a node that the sheet leaves out is no failure"
    assert call("status", folder.parent) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_many_nodes_of_the_same_words_share_a_line(campaign: Callable[..., Path]) -> None:
    folder = campaign("n000")
    (folder / "nodes/n000/job1/status.json").unlink()
    node_sheet.write_sheet(folder / "nodes.tsv", [Node(f"n{i:03}", f"n{i:03}") for i in range(400)])
    (folder / "config.yaml").write_text("launch: slurm\n")
    (folder / "launch").mkdir()
    rows = (f"n{i:03}\t1\t{i + 1}\tPENDING\t{'Priority' if i % 2 else 'Resources'}\n" for i in range(400))
    (folder / "launch/jobs.tsv").write_text("".join(rows))
    status = node_status.read(folder)
    (few, many) = (row for row in status.rows if row[0] == "queued")
    assert {few[2], many[2]} == {"Resources", "Priority"} and len(status.rows) == 2
    assert "200 nodes, n[000,002,004,006,008,010,012,014,016,018,020,..." in (few[1], many[1])


@pytest.mark.parametrize("state", ["simulated", "imported"])
def test_what_was_not_measured_is_counted_as_what_it_is(campaign: Callable[..., Path], state: str) -> None:
    folder = campaign("a", "b")
    node_sheet.write_sheet(folder / "nodes.tsv", [Node(name, name, state=state) for name in "ab"])
    found = node_status.read(folder)
    assert (found.heading, found.rows, found.code) == (f"{folder.name}: 2 nodes: 2 {state}", [], 0)
    node_sheet.write_sheet(folder / "nodes.tsv", [Node(name, name, state=state) for name in "abc"])
    found = node_status.read(folder)
    assert (found.counts, found.code) == ({state: 2, "not begun": 1}, 1)


def test_no_campaign_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="not a campaign directory; specify one"):
        node_status.read(tmp_path)


def test_hosts_of_ansible(folder: Path) -> None:
    """Nothing is seen of a host that measures but when it began; the time that is left, from the first one done on."""
    (folder / "config.yaml").write_text("launch: ansible\nruns: 2\n")
    (folder / "nodes/runs/job1/node-run.log").unlink()
    rows = ("runs\t1\t\tPENDING\t", "waits\t1\t\tPENDING\t", f"runs\t1\t\tRUNNING\t{MOMENT}")
    (folder / "launch/jobs.tsv").write_text("".join(f"{row}\n" for row in rows))
    with (folder / "launch/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = node_status.read(folder)
    of = {node.node: node for node in found.nodes}
    assert (of["runs"].standing, of["runs"].reason) == ("running", f"since {MOMENT}")
    assert of["waits"].standing == "queued"
    assert node_status.read(folder).counts.get("running") is None, "the call that ran it was killed"

    nodes = [
        progress.NodeProgress("done", frozenset({0, 1}), ended=True),
        progress.NodeProgress("runs", frozenset(), since_s=4.0),
        progress.NodeProgress("waits", frozenset()),
    ]
    state = progress.State(nodes, STEPS)
    assert progress.progress(state) == "1 of 3 nodes, 2 of 6 measurements, 1 node at work, 1 waiting"
    assert progress.State(nodes, STEPS, {"coherence-cas": 5.0}).left_s() == 16.0
