"""Messages between nodes as they are read from records; test_fabric_slurm has a real fabric."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from nodeprint.campaign.node_sheet import Node, write_sheet
from nodeprint.data.job import fabric_records
from tests.support import made_status
from tests.support.made_records import TRAILER, cell_header, header, lines, pair
from tests.support.made_status import run_outcome


def written(
    campaign: Path, run: int, *pairs: dict[str, object], nodes: tuple[str, ...] = ("b", "a"), **changes: object
) -> Path:
    path = campaign / f"fabric/job1/main/run{run}/linktest-fabric.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    ranks = [[node, 0] for node in nodes for _ in range(2)]
    head = header(
        kernel="linktest",
        operation="unidirectional",
        quantity="message",
        home=None,
        directed=True,
        ranks=ranks,
        run=run,
        cpus=[],
        message_bytes=1024,
        **changes,
    )
    path.write_text(lines(head, *pairs, TRAILER))
    return path


def test_ranks_become_nodes(tmp_path: Path) -> None:
    times = {(0, 2): 1.0, (0, 3): 2.0, (1, 2): 3.0, (2, 0): 8.0, (0, 1): 99.0}
    written(tmp_path, 1, *(pair(a, b, latency_ns=t, home=-1) for (a, b), t in times.items()), nodes=("hb", "ha"))
    write_sheet(tmp_path / "nodes.tsv", [Node("b", "hb", rack="r1"), Node("a", "ha", rack="r2")])
    (one,) = fabric_records.read(tmp_path)[0]
    assert (one.nodes, one.places, one.partition) == (("b", "a"), ("r1", "r2"), "main")
    assert one.values[0, 0, 1] == 2.0  # the median over pairs of ranks
    assert one.values[0, 1, 0] == 8.0
    assert np.isnan(np.diagonal(one.values[0])).all()  # ranks of one node are no link


def test_a_file_that_cannot_be_used_is_a_note_and_no_more(tmp_path: Path) -> None:
    written(tmp_path, 1, pair(0, 2, home=-1), arguments=["--sizes", "1024", "--nodes", "b,a"])
    written(tmp_path, 2).write_text('{"record": 1}\n')
    written(tmp_path, 3, pair(0, 2, home=-1), arguments=["--sizes", "1024", "--nodes", "b,a,c"])
    written(tmp_path, 4, pair(0, 2, home=-1), arguments=["--sizes", "2048", "--nodes", "b,a"])
    head = cell_header(ranks=[["b", 0], ["a", 0]], cells={"dims": ["a", "home"], "values": {"latency_ns": "ns"}})
    written(tmp_path, 5).write_text(lines(head, {"record": "cell", "a": 0, "home": 1, "pass": 0, "latency_ns": 1.0}))
    written(tmp_path, 6, pair(0, 9, home=-1))  # a rank that is not there
    (tmp_path / "fabric/jobs/main/runs").mkdir(parents=True)
    (tmp_path / "fabric/jobs/main/runs/linktest-fabric.jsonl").touch()
    found, notes = fabric_records.read(tmp_path)
    (one,) = found
    assert one.runs == ("job1/run1", "job1/run3")
    assert [
        part in note
        for part, note in zip(("line 1", "other arguments", "of a, home", "not of its ranks"), notes, strict=True)
    ]
    assert fabric_records.read(tmp_path / "elsewhere") == ((), ())


def test_a_record_of_another_job_or_run_is_a_note(tmp_path: Path) -> None:
    """One that was copied or exchanged, as its header says; a merge that renumbers jobs keeps the job's own outcome."""
    written(tmp_path, 1, pair(0, 2, home=-1))
    copied = written(tmp_path, 2, pair(0, 2, home=-1))
    copied.write_bytes((tmp_path / "fabric/job1/main/run1/linktest-fabric.jsonl").read_bytes())
    found, notes = fabric_records.read(tmp_path)
    assert [one.runs for one in found] == [("job1/run1",)]
    assert notes == ("linktest-fabric, job1/run2: line 1: key 'run' is 1, not 2: the record belongs elsewhere",)
    (tmp_path / "fabric/job1").rename(tmp_path / "fabric/job3")
    assert not fabric_records.read(tmp_path)[0]
    made_status.put(tmp_path / "fabric/job3")
    assert [one.runs for one in fabric_records.read(tmp_path)[0]] == [("job3/run1",)]


def test_disturbed_values_and_lost_time_are_kept_by_run(tmp_path: Path) -> None:
    written(tmp_path, 1, pair(0, 2, home=-1, flags=["disturbed"]), pair(2, 0, home=-1))
    path = written(tmp_path, 2, pair(0, 2, home=-1))
    *before, trailer = map(json.loads, path.read_text().splitlines())
    path.write_text(lines(*before, {**trailer, "lost_share": 0.25}))
    written(tmp_path, 3, pair(0, 2, home=-1))
    (one,) = fabric_records.read(tmp_path)[0]
    assert one.disturbed == (0.5, 0.25, 0.0)


def test_of_several_message_sizes_the_largest_decides_and_all_are_there(tmp_path: Path) -> None:
    path = written(tmp_path, 1)
    dims = {"dims": ["a", "b", "size_bytes"], "values": {"latency_ns": "ns"}}
    head = cell_header(operation="unidirectional", directed=True, ranks=[["a", 0], ["b", 0]], cells=dims)
    times = {(0, 1, 8): 2e3, (1, 0, 8): 3e3, (0, 1, 1 << 20): 9e4, (1, 0, 1 << 20): 8e4}
    cells = [
        {"record": "cell", "a": a, "b": b, "size_bytes": size, "pass": 0, "flags": [], "latency_ns": ns}
        for (a, b, size), ns in times.items()
    ]
    path.write_text(lines(head, *cells, TRAILER))
    found, notes = fabric_records.read(tmp_path)
    (one,) = found
    assert notes == ()
    assert (one.message_bytes, list(one.by_size)) == (1 << 20, [8, 1 << 20])
    assert [[one.by_size[size][0, a, b] for a, b in ((0, 1), (1, 0))] for size in one.by_size] == [
        [2e3, 3e3],
        [9e4, 8e4],
    ]
    np.testing.assert_array_equal(one.values, one.by_size[1 << 20])


def test_a_host_that_is_not_of_the_campaign_is_named(tmp_path: Path) -> None:
    written(tmp_path, 1, pair(0, 2, home=-1), nodes=("ha", "login1"))
    write_sheet(tmp_path / "nodes.tsv", [Node("a", "ha")])
    (note,) = fabric_records.read(tmp_path)[1]
    assert note.startswith("messages were measured on login1, which the campaign does not have")


def test_what_was_not_measured_between_nodes_is_said_with_its_reason(tmp_path: Path) -> None:
    written(tmp_path, 1, pair(0, 2, home=-1))
    nodes = [
        Node("a", "a", partition="main"),
        Node("b", "b", partition="main"),
        Node("late", "late", partition="main"),
        Node("lost", "lost", partition="main"),
        Node("g1", "g1", partition="gpu"),
    ]
    write_sheet(tmp_path / "nodes.tsv", nodes)
    for node in ("a", "b", "late", "g1"):
        (tmp_path / f"nodes/{node}/job1").mkdir(parents=True)
        (tmp_path / f"nodes/{node}/job1/status.json").touch()
    alone = {"outcome": "unavailable", "message": "g1 alone has no link to another node", "partition": "gpu"}
    runs = [run_outcome("linktest-fabric", 1, partition="main")]
    runs += [run_outcome("linktest-fabric", run, **alone) for run in (1, 2)]
    (tmp_path / "config.yaml").write_text("measure: [coherence-cas, linktest-fabric, linktest-fabric-parallel]\n")
    made_status.put(tmp_path / "fabric/job1", "complete", *runs)
    assert fabric_records.read(tmp_path)[1] == (
        "linktest-fabric, partition gpu: left out: g1 alone has no link to another node (run 1, 2)",
        "linktest-fabric-parallel was not measured in the newest job: it follows the nodes, when none of their jobs "
        "was lost; `make run` continues",
        "no messages between nodes were measured on late, measured after them: `make run "
        "CONFIG=results/main/config.yaml NODES=late` measures all links again",
    )


def test_an_outcome_that_cannot_be_read_is_a_note_and_no_more(tmp_path: Path) -> None:
    written(tmp_path, 1, pair(0, 2, home=-1))
    (tmp_path / "fabric/job1/status.json").write_text('{"schema": 1, "no')
    fabrics, notes = fabric_records.read(tmp_path)
    assert len(fabrics) == 1
    (note,) = notes
    assert "fabric/job1/status.json: no outcome of a job can be read in it" in note
