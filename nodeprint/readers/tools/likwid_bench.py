"""likwid-bench: the rate of a kernel over its working set, as likwid 4 and 5 print it
(https://github.com/RRZE-HPC/likwid, bench/likwid-bench.c)."""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, tool_values, with_varying_points
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "likwid-bench"
KINDS = ("values",)
_BANNER = "LIKWID MICRO BENCHMARK"
_LINE = re.compile(rf"(Test|Size(?: \(Byte\))?|MByte/s|MFlops/s):\s*(\S+)\s*|(?:{NUMBER})")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether its banner is there."""
    return ToolEvidence.NAME if any(line.startswith(_BANNER) for line in lines) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Bandwidth and, of kernels that calculate, the rate of operations. Raises NodeprintError where the tool did not
    end."""
    out: list[ToolValue] = []
    test, size, open_since = "", 0, 0
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line.strip())
        if match is None or not match[1]:
            continue
        key, value = match[1], match[2]
        if key == "Test":
            _check_ended(path, open_since)
            test, open_since = value, number
        elif key.startswith("Size") and value.isdecimal():
            size = int(value)
        elif key in ("MByte/s", "MFlops/s") and re.fullmatch(NUMBER, value) and test:
            metric, unit = (f"likwid-bench-{test}", "MB/s") if key == "MByte/s" else (f"likwid-flops-{test}", "Mflop/s")
            out += tool_values(float(value), metric, unit, number, point={"bytes": size})
            open_since = 0 if key == "MByte/s" else open_since
    _check_ended(path, open_since)
    return ToolOutput(path, NAME, values=with_varying_points(out))


def _check_ended(path: Path, line: int) -> None:
    if line:
        advice = "let likwid-bench end, and give all that it printed"
        raise NodeprintError("a test without its bandwidth", where=path, line=line, advice=advice)
