"""bandwidthTest of NVIDIA's CUDA samples: the rate of each direction by the size of a transfer
(https://github.com/NVIDIA/cuda-samples, bandwidthTest.cu)."""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, slug, tool_values, with_varying_points
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput

NAME = "cuda-bandwidth"
KINDS = ("values",)
_DIRECTION = re.compile(r"\s*((?:Host|Device) to (?:Host|Device)) Bandwidth, (\d+) Device\(s\)\s*")
_HEAD = re.compile(r"\s*Transfer Size \(Bytes\)\s+Bandwidth\((\w+/s)\)\s*")
_DEVICE = re.compile(r"\s*Device (\d+):.*")
_ROW = re.compile(rf"\s*(\d+)\s+({NUMBER})\s*")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether the head of one of its tables is there."""
    return ToolEvidence.NAME if any(map(_HEAD.fullmatch, lines)) else ToolEvidence.NONE


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
    if begun:
        advice = "let bandwidthTest end, and give all that it printed"
        raise NodeprintError("a table without a line", where=path, line=begun, advice=advice)
    return ToolOutput(path, NAME, values=with_varying_points(out))
