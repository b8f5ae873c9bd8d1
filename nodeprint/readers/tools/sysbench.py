"""sysbench: events and MiB in a second, as versions 0.4 to 1.1 print them (https://github.com/akopytov/sysbench).

Version 1 does not print whether it tested threads or mutexes. It is read if an earlier line has the command. For a test
of a fixed time, the events in a second are the value.
"""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, tool_values, with_varying_points
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "sysbench"
KINDS = ("values",)
_VERSION = re.compile(r"sysbench \d+\.\d.*")
_THREADS = re.compile(r"Number of threads:\s*(\d+)")
_EVENTS = re.compile(rf"events(?: per second|/s \(eps\)):\s*({NUMBER})")
_MEMORY = re.compile(rf"{NUMBER} (?:MiB|MB) transferred \(({NUMBER}) (MiB|MB)/sec\)")
_FILES = re.compile(rf"(read|written), (MiB|MB)/s:\s*({NUMBER})")
_OF_04 = re.compile(rf".*Total transferred \S+\s+\(({NUMBER})(Kb|Mb|Gb)/sec\)")
_TOTAL = re.compile(rf"total time:\s*({NUMBER})s")
#: A line of each test that no other has; cpu of 0.4 says so in a sentence.
_TESTS = {
    "cpu": re.compile(r"Prime numbers limit|.*prime number checked in CPU test"),
    "memory": re.compile(r"Running (?:the )?memory speed test.*|Memory block size.*"),
    "fileio": re.compile(r"Extra file open flags.*"),
    "threads": re.compile(r"Doing thread subsystem.*"),
    "mutex": re.compile(r"Doing mutex performance test.*"),
}
#: A command as scripts and shells print it before its output.
_COMMAND = re.compile(rf".*\bsysbench\b.*\b({'|'.join(_TESTS)})\b.*\brun\b.*")
_BEFORE = 3
_TRANSACTIONS = re.compile(rf"transactions:\s+\d+\s+\(({NUMBER}) per sec\.\)")
_COUNT = re.compile(r"total number of events:\s*(\d+)")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether a line of its version is there."""
    return ToolEvidence.NAME if any(_VERSION.match(line.strip()) for line in lines) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """The figure of each test that ran. Raises NodeprintError where one has none, or none ran."""
    starts = [n for n, line in enumerate(lines) if _VERSION.match(line.strip())]
    out: list[ToolValue] = []
    unnamed: list[int] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        found = _of_test(lines, start, end)
        # files are prepared and removed by calls of their own
        ran = any(line.startswith("Running the test") or "Threads started" in line for line in lines[start:end])
        if found is None:
            unnamed.append(start + 1)
        elif not found and (ran or len(starts) == 1):
            advice = "let sysbench end, and give all that it printed"
            raise NodeprintError("a test of sysbench without its figure", where=path, line=start + 1, advice=advice)
        out += found or ()
    if not out and unnamed:
        advice = "give its command in the line before it, as 'sysbench threads run'"
        raise NodeprintError("a test that sysbench does not name", where=path, line=unnamed[0], advice=advice)
    return ToolOutput(path, NAME, values=with_varying_points(out))


def _of_test(lines: list[str], start: int, end: int) -> list[ToolValue] | None:
    """The figures of the test that begins there; None of one that only has a time, and no name."""
    own = [(number + 1, lines[number].strip()) for number in range(start, end)]
    test = next((name for name, mark in _TESTS.items() if any(mark.match(text) for _, text in own)), "")
    if not test:
        before = [line for line in lines[:start] if line.strip()][-_BEFORE:]
        test = next((match[1] for line in reversed(before) if (match := _COMMAND.fullmatch(line.strip()))), "")
    threads = next((int(match[1]) for _, text in own if (match := _THREADS.match(text))), 1)
    found: list[tuple[float, str, str, int]] = []
    seconds, events, line = 0.0, 0, 0
    for number, text in own:
        if match := _EVENTS.match(text):
            found.append((float(match[1]), f"sysbench-{test or 'events'}", "events/s", number))
        elif match := _MEMORY.match(text):
            found.append((float(match[1]), "sysbench-memory", f"{match[2]}/s", number))
        elif match := _FILES.match(text):
            found.append((float(match[3]), f"sysbench-fileio-{match[1]}", f"{match[2]}/s", number))
        elif match := _OF_04.match(text):  # its Mb are of 2^20 bytes
            found.append((float(match[1]), "sysbench-fileio", f"{match[2][0]}iB/s", number))
        elif match := _TRANSACTIONS.match(text):
            found.append((float(match[1]), "sysbench-transactions", "transactions/s", number))
        elif match := _TOTAL.match(text):
            seconds, line = float(match[1]), number
        elif match := _COUNT.match(text):
            events = int(match[1])
    if not found and seconds and not test:
        return None
    if not found and seconds:
        by_time = test == "threads" and events
        found.append(
            (events / seconds, "sysbench-threads", "events/s", line)
            if by_time
            else (seconds, f"sysbench-{test}-time", "s", line)
        )
    return [row for figures in found for row in tool_values(*figures, point={"threads": threads})]
