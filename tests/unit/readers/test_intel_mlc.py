"""The output of Intel's Memory Latency Checker."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.judge.campaign import judge
from nodeprint.readers import campaign_writer, matrix_file, tool_logs
from nodeprint.readers.tool_output import ToolOutput
from tests.support import printed
from tests.support.tool_output import MLC, of_text, refused, values

Write = Callable[..., Path]


def between(first: float, second: float) -> dict[tuple[str, str], float]:
    """What a writer on each of two nodes takes for a reader on the other."""
    return {("writer on node 0", "reader on node 1"): first, ("writer on node 1", "reader on node 0"): second}


def at_places(output: ToolOutput, name: str) -> dict[tuple[int | str, ...], float]:
    """By place the values of a metric of MLC."""
    return {tuple(v.place.values()): v.value for v in output.values if v.metric == f"intel-mlc-{name}"}


def test_mlc(write: Write) -> None:
    imported = matrix_file.read_output(write(MLC, "mlc.txt"))
    assert imported.tool == "intel-mlc"
    idle = {(0, 0): 82.2, (0, 1): 129.6, (1, 0): 131.1, (1, 1): 81.6}
    assert at_places(imported, "idle-latency") == {
        (f"node {a}", f"memory of node {b}"): value for (a, b), value in idle.items()
    }
    assert at_places(imported, "bandwidth")["node 0", "memory of node 1"] == pytest.approx(50923.4e6)
    assert at_places(imported, "c2c-writer-homed") == between(111.3, 111.1)
    assert at_places(imported, "c2c-reader-homed") == between(175.8, 176.7)
    assert at_places(imported, "c2c-local") == {("hit",): 51.6, ("hitm",): 51.7}
    assert at_places(imported, "peak-all-reads") == {(): 225097.1}
    links = {value.metric: (list(value.link), value.unit, value.quantity) for value in imported.values}
    assert links["intel-mlc-idle-latency"] == (["from", "memory"], "ns", "load")
    assert links["intel-mlc-bandwidth"] == (["from", "memory"], "B/s", "rate")
    assert at_places(imported, "loaded-latency") == {(0,): 261.5}
    assert at_places(imported, "loaded-bandwidth") == {(0,): 225452.5}
    assert imported.notes == ()
    with pytest.raises(NodeprintError, match="no latencies between cores"):
        imported.core_matrix()


def test_mlc_of_former_versions_and_memory_without_cpus(write: Write) -> None:
    text = "Measuring idle latencies (in ns)...\n        Memory node\nSocket       0       1\n     0   106.9   107.9\n"
    output = matrix_file.read_output(write(text))
    ends = [("socket 0", "memory of socket 0"), ("socket 0", "memory of socket 1")]
    assert at_places(output, "idle-latency") == dict(zip(ends, (106.9, 107.9), strict=True))


def test_what_mlc_measured_is_shown(write: Write, tmp_path: Path) -> None:
    """Each table has its rows in the verdict, on the node's page and in what `show` prints."""
    campaign_writer.write_campaign([matrix_file.read_output(write(MLC, "mlc.txt"))], tmp_path / "c")
    (node,) = judge(tmp_path / "c").verdict.nodes.values()
    figures = {(cell.measurement, cell.name): cell.median for cell in node.cells}
    assert figures["mlc-idle-latency", "node 1, memory of node 0"] == pytest.approx(131.1)
    assert figures["mlc-bandwidth", "node 0, memory of node 1"] == pytest.approx(50923.4e6)
    assert figures["mlc-c2c-reader-homed", "writer on node 1, reader on node 0"] == pytest.approx(176.7)
    shown = printed.medians({"mlc": node})
    assert any("memory latency" in line for line in shown) and any("131 ns" in line for line in shown)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (MLC.replace("82.2", "fast"), 5, 2),
        (MLC.replace("50916.6", "-50916.6"), 19, 2),
        (MLC.replace(" 129.6\t", ""), 5, 2),
        (MLC.replace("HIT  latency\t51.6", "HIT  latency\t0"), 28, 6),
        ("Measuring idle latencies (in ns)...\n", 1, 1),
        ("Measuring Loaded Latencies for the system\n", 1, 1),
    ],
)
def test_faults_of_mlc(write: Write, text: str, line: int, column: int) -> None:
    refused(write(text), line, column)


#: Written after the forms that the importer of RESULT documents.
RESULT = """Intel(R) Memory Latency Checker - v3.9
Measuring idle latencies (in ns)...
                Numa node
Numa node            0       1
       0          81.2   139.7
       1         140.1    80.9

Measuring Peak Injection Memory Bandwidths for the system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
ALL Reads        :      233234.1
3:1 Reads-Writes :      218871.9
Stream-triad like:      200111.5
"""


@pytest.mark.parametrize("result", [RESULT, RESULT.partition("\n")[2]])
def test_results_of_mlc_in_one_file_are_runs(tmp_path: Path, result: str) -> None:
    runs = [re.sub(r"(\.\d)\b", rf"\g<1>{run}", result) for run in range(3)]
    figures = of_text(tmp_path, "".join(runs))
    of_pair = figures.frame[(figures.frame["from"] == "node 0") & (figures.frame["memory"] == "memory of node 1")]
    assert of_pair["run"].tolist() == ["1", "2", "3"]
    with pytest.raises(NodeprintError, match="cells for 2 nodes"):
        of_text(tmp_path, runs[1] + result.replace("139.7", ""))


def test_values_of_mlc(tmp_path: Path) -> None:
    figures = of_text(tmp_path, RESULT)
    assert values(figures)["intel-mlc-idle-latency", "node 0", "memory of node 1"] == 139.7
    assert values(figures)["intel-mlc-peak-all-reads", "", ""] == 233234.1
    assert len(figures.frame) == 7


def test_result_begins_at_its_title(tmp_path: Path) -> None:
    """A list of a job's nodes before it is of no result: the file is of no single node."""
    (tmp_path / "cn001.log").write_text(f"Running on nodes cn001, cn002, cn003\n{MLC}")
    with pytest.raises(NodeprintError, match="several hosts are named"):
        tool_logs.read_logs(tmp_path / "cn001.log")
