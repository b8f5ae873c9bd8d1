"""The output of STREAM."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.readers import tool_logs
from tests.support.tool_output import of_text, stream, values


def test_threads_of_stream_that_differ_are_said(tmp_path: Path) -> None:
    said = re.findall(r"Number of Threads \w+ = \d+", stream(3000))
    assert said
    for number in range(1, 6):
        threads = "32" if number == 4 else "64"
        text = re.sub(r"(Number of Threads \w+ =) \d+", rf"\1 {threads}", stream(3000 + number))
        (tmp_path / f"cn{number:03d}.txt").write_text(text)
    figures = tool_logs.read_logs(tmp_path)
    assert figures.notes == ("threads is 64 on most nodes, 32 on cn004",)
    assert figures.fields["cn004"] == {"threads": "32"}


def test_stream_again_and_again_is_runs(tmp_path: Path) -> None:
    figures = of_text(tmp_path, stream(3000) + stream(3050) + stream(2990))
    triad = figures.frame[figures.frame["metric"] == "stream-triad"]
    assert list(zip(triad["run"], triad["value"], strict=True)) == [("1", 3000.0), ("2", 3050.0), ("3", 2990.0)]


@pytest.mark.parametrize("end", ["Copy:            1471.8     0.05", "STREAM version"])
def test_a_result_of_stream_that_is_cut_is_refused(tmp_path: Path, end: str) -> None:
    last = stream(2990)
    with pytest.raises(NodeprintError, match=r"1 lines of .* for 2 results; let STREAM end"):
        of_text(tmp_path, stream(3000) + last[: last.index(end) + len(end)])


def test_copies_of_stream_have_a_median_and_a_slowest(tmp_path: Path) -> None:
    """Of processes with one thread each, which nothing tells apart. Tasks whose lines are mixed, as srun --label prints
    them, are parts of the node."""
    copies = [stream(rate, threads=1) for rate in (3000, 3100, 2000)]
    figures = of_text(tmp_path, "".join(copies))
    assert values(figures)["stream-triad-of-copies",] == 3000.0 and len(figures.frame) == 8
    assert values(figures)["stream-triad-of-copies-minimum",] == 2000.0
    lines = [f"{task}: {line}" for task, text in enumerate(copies) for line in text.splitlines()]
    mixed = "\n".join(sorted(lines, key=lambda line: copies[int(line[0])].splitlines().index(line[3:])))
    of_tasks = values(of_text(tmp_path, mixed))
    assert [of_tasks["stream-triad", str(task)] for task in range(3)] == [3000.0, 3100.0, 2000.0]
