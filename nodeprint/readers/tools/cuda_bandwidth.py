"""bandwidthTest of NVIDIA's CUDA samples: the rate of each direction by the size of a transfer
(https://github.com/NVIDIA/cuda-samples, bandwidthTest.cu)."""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, slug, tool_values, with_varying_points
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "cuda-bandwidth"
KINDS = ("values",)
_DIRECTION = re.compile(r"\s*((?:Host|Device) to (?:Host|Device)) Bandwidth, (\d+) Device\(s\)\s*")
_HEAD = re.compile(r"\s*Transfer Size \(Bytes\)\s+Bandwidth\((\w+/s)\)\s*")
_DEVICE = re.compile(r"\s*Device (\d+):.*")
#: A line of `--csv`, as "bandwidthTest-H2D-Pinned, Bandwidth = 12.1 GB/s, Time = 0.003 s, Size = 32000000 bytes, ...".
_CSV = re.compile(
    rf"\s*bandwidthTest-([HD])2([HD])(?:-(\w+))?, Bandwidth = ({NUMBER}) (\w+/s), Time = {NUMBER} s,"
    r" Size = (\d+) bytes, NumDevsUsed = (\d+)\s*"
)
_MEMORY = {"H": "host", "D": "device"}
_ROW = re.compile(rf"\s*(\d+)\s+({NUMBER})\s*")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether the head of one of its tables is there, or a line of `--csv`."""
    found = any(_HEAD.fullmatch(line) or _CSV.fullmatch(line) for line in lines)
    return ToolEvidence.NAME if found else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """A rate for each direction and size. Raises NodeprintError where a table has no line or the test failed."""
    out = []
    direction, unit, gpu, begun = "", "", None, 0
    for number, line in enumerate(lines, start=1):
        if device := _DEVICE.fullmatch(line):
            gpu = int(device[1])
        elif title := _DIRECTION.fullmatch(line):
            direction, unit, gpu = slug(title[1]), "", gpu if title[2] == "1" else None
        elif head := _HEAD.fullmatch(line):
            unit, begun = head[1], number
        elif "Result = FAIL" in line:
            raise NodeprintError("the test failed", where=path, line=number, advice="run bandwidthTest again")
        elif unit and direction and (row := _ROW.fullmatch(line)):
            copy = {} if gpu is None else {"gpu": gpu}
            axes = {"copy": copy, "point": {"transfer bytes": int(row[1])}}
            out += tool_values(float(row[2]), f"cuda-{direction}", unit, number, **axes)
            begun = 0
        elif csv := _CSV.fullmatch(line):
            out += _csv_values(csv, gpu, number)
    if begun:
        advice = "let bandwidthTest end, and give all that it printed"
        raise NodeprintError("a table without a line", where=path, line=begun, advice=advice)
    return ToolOutput(path, NAME, values=with_varying_points(out))


def _csv_values(csv: re.Match[str], gpu: int | None, line: int) -> list[ToolValue]:
    copy = {} if gpu is None or csv[7] != "1" else {"gpu": gpu}
    kind = "-paged" if csv[3] == "Paged" else ""
    name = f"cuda-{_MEMORY[csv[1]]}-to-{_MEMORY[csv[2]]}{kind}"
    return tool_values(float(csv[4]), name, csv[5], line, copy=copy, point={"transfer bytes": int(csv[6])})
