"""GPU STREAM of SuperBench: a rate for each kernel, GPU and size of block
(https://github.com/microsoft/superbenchmark, micro_benchmarks/gpu_stream)."""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.readers.parsing import NUMBER, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput

NAME = "gpu-stream"
KINDS = ("values",)
_ROW = re.compile(rf"STREAM_([A-Z]+)_(\w+?)_gpu_(\d+)_buffer_(\d+)_block_(\d+)\s+({NUMBER})(?:\s+{NUMBER})?\s*")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether a line of its results is there."""
    return ToolEvidence.NAME if any(map(_ROW.fullmatch, lines)) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """The rate of each kernel on each GPU by the size of a block, in GB/s."""
    out = []
    for number, line in enumerate(lines, start=1):
        if row := _ROW.fullmatch(line):
            metric = f"gpu-stream-{row[1].lower()}-{row[2]}"
            axes = {"copy": {"gpu": int(row[3])}, "point": {"block": int(row[5])}, "settings": {"buffer": row[4]}}
            out += tool_values(float(row[6]), metric, "GB/s", number, **axes)
    return ToolOutput(path, NAME, values=out)
