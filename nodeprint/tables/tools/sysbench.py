"""sysbench: events and MiB in a second, as versions 0.4 to 1.1 print them (https://github.com/akopytov/sysbench)."""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.tables.row import Row
from nodeprint.tables.tools.parsing import NUMBER, figure, with_parts_that_differ

NAME = "sysbench"
_VERSION = re.compile(r"sysbench \d+\.\d.*")
_THREADS = re.compile(r"Number of threads:\s*(\d+)")
_EVENTS = re.compile(rf"events per second:\s*({NUMBER})")
_MEMORY = re.compile(rf"{NUMBER} (?:MiB|MB) transferred \(({NUMBER}) (MiB|MB)/sec\)")
_FILES = re.compile(rf"(read|written), (MiB|MB)/s:\s*({NUMBER})")
_OF_04 = re.compile(rf".*Total transferred \S+\s+\(({NUMBER})(Kb|Mb|Gb)/sec\)")
_TOTAL = re.compile(rf"total time:\s*({NUMBER})s")
#: A line of each test that no other has; cpu of 0.4 says so in a sentence.
_TESTS = {
    "cpu": re.compile(r"Prime numbers limit|.*prime number checked in CPU test"),
    "memory": re.compile(r"Running (?:the )?memory speed test.*|Memory block size.*"),
    "fileio": re.compile(r"Extra file open flags.*"),
    "threads": re.compile(r"Running the test with following options.*threads.*|Doing thread subsystem.*"),
    "mutex": re.compile(r"Doing mutex performance test.*"),
}


def matches(lines: list[str]) -> bool:
    """Whether a line of its version is there."""
    return any(_VERSION.match(line.strip()) for line in lines)


def rows(path: Path, lines: list[str]) -> list[Row]:
    """The figure of each test that ran. Raises NodeprintError where one has none, or none ran."""
    starts = [n for n, line in enumerate(lines) if _VERSION.match(line.strip())]
    out: list[Row] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        found = _of_test(lines, start, end)
        # files are prepared and removed by calls of their own
        ran = any(line.startswith("Running the test") or "Threads started" in line for line in lines[start:end])
        if not found and (ran or len(starts) == 1):
            advice = "let sysbench end, and give all that it printed"
            raise NodeprintError("a test of sysbench without its figure", where=path, line=start + 1, advice=advice)
        out += found
    return with_parts_that_differ(out)


def _of_test(lines: list[str], start: int, end: int) -> list[Row]:
    own = [(number + 1, lines[number].strip()) for number in range(start, end)]
    test = next((name for name, mark in _TESTS.items() if any(mark.match(text) for _, text in own)), "events")
    threads = next((int(match[1]) for _, text in own if (match := _THREADS.match(text))), 1)
    out: list[Row] = []
    for number, text in own:
        if match := _EVENTS.match(text):
            out += figure(float(match[1]), f"sysbench-{test}", "events/s", number, {"threads": threads})
        elif match := _MEMORY.match(text):
            out += figure(float(match[1]), "sysbench-memory", f"{match[2]}/s", number, {"threads": threads})
        elif match := _FILES.match(text):
            out += figure(float(match[3]), f"sysbench-fileio-{match[1]}", f"{match[2]}/s", number, {"threads": threads})
        elif match := _OF_04.match(text):  # its Mb are of 2^20 bytes
            unit = f"{match[2][0]}iB/s"
            out += figure(float(match[1]), "sysbench-fileio", unit, number, {"threads": threads})
    if out:
        return out
    return [
        row for number, text in own if (match := _TOTAL.match(text))
        for row in figure(float(match[1]), f"sysbench-{test}-time", "s", number, {"threads": threads})
    ]  # fmt: skip
