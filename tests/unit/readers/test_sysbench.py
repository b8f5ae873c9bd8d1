"""The output of sysbench."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values


@pytest.mark.parametrize(
    ("head", "figure"),
    [
        ("Maximum prime number checked in CPU test: 10000\n", {("sysbench-cpu-time",): 10.0212}),
        ("Running memory speed test with the following options:\n", {("sysbench-memory-time",): 10.0212}),
    ],
)
def test_sysbench_of_before(tmp_path: Path, head: str, figure: dict[tuple[str, ...], float]) -> None:
    """Version 0.4 printed no rate of cpu (sysbench.c, its summary of a test's execution)."""
    text = f"sysbench 0.4.12:  multi-threaded system evaluation benchmark\n\nNumber of threads: 1\n\n{head}\n"
    assert values(of_text(tmp_path, f"{text}    total time:                          10.0212s\n")) == figure
    with pytest.raises(NodeprintError, match="without its figure"):
        of_text(tmp_path, text)


#: Version 1 prints the same of threads and mutexes, but for figures.
SYSBENCH_1 = """{command}
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Threads started!

General statistics:
    total time:                          {seconds}s
    total number of events:              {events}
"""


def test_sysbench_of_threads_and_mutexes(tmp_path: Path) -> None:
    """A script's log: which test it is says the line before it; without it there is no figure of that name."""
    threads = SYSBENCH_1.format(command="====== sysbench threads run", seconds="10.0000", events=16120)
    mutex = SYSBENCH_1.format(command="====== sysbench mutex run", seconds="0.1415", events=1)
    figures = of_text(tmp_path, threads + mutex)
    assert values(figures) == {("sysbench-threads",): 1612.0, ("sysbench-mutex-time",): 0.1415}
    with pytest.raises(NodeprintError, match="line 2: a test that sysbench does not name"):
        of_text(tmp_path, SYSBENCH_1.format(command="", seconds="10.0", events=16120))
