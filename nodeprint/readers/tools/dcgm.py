"""DCGM's diagnostic as JSON (`dcgmi diag -j`, NVIDIA DCGM 2 to 4): the figures that its tests give as information.

Most tests only pass or fail and give no value. If a test fails, the node is rejected with the name of the test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers.parsing import NUMBER, json_of, slug, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "dcgm-diag"
KINDS = ("values",)
_ROOTS = ("DCGM GPU Diagnostic", "DCGM Diagnostic")
#: A figure in a line of information: `GPU 0 GPU to Host bandwidth: 12.4 GB/s`.
_FIGURE = re.compile(
    rf"\s*(?:GPU\s*(\d+),?\s+)?(.+?)\s*[:=]\s*({NUMBER})\s*(GB/s|MB/s|us|ms|ns|GFLOPS|TFLOPS|GFlop/s|W|MHz|GHz)\s*"
)


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether the object of a diagnostic is there."""
    return ToolEvidence.NAME if any(f'"{root}"' in line for line in lines for root in _ROOTS) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """The figures of all tests. Raises NodeprintError where a test failed, or none has a figure."""
    out: list[ToolValue] = []
    for test, result in _results(json_of(path, lines)):
        status = str(result.get("status", "")).lower()
        gpus = str(result.get("gpu_ids") if result.get("gpu_ids") is not None else result.get("entity_id", ""))
        if status.startswith("fail"):
            where = f" of GPU {printable(gpus, 20)}" if gpus else ""
            advice = "see dcgmi's own advice; take the node out of service"
            raise NodeprintError(f"test {printable(test, 40)}{where} failed", where=path, advice=advice)
        info = result.get("info")
        for text in info if isinstance(info, list) else [info]:
            if match := _FIGURE.fullmatch(str(text)):
                gpu = match[1] or gpus
                copy = {"gpu": int(gpu)} if gpu.isdecimal() else {}
                unit = match[4].replace("FLOPS", "flop/s")
                out += tool_values(float(match[3]), f"dcgm-{slug(match[2])}", unit, copy=copy)
    if not out:
        raise NodeprintError(
            "no figure: its tests only pass or fail",
            where=path,
            advice="give level 3 (dcgmi diag -r 3 -j), whose tests of PCIe and memory have figures",
        )
    return ToolOutput(path, NAME, values=out)


def _results(content: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each test's name with each of its results, wherever a version of DCGM has them."""
    if isinstance(content, dict):
        name = content.get("name")
        results = content.get("results")
        if isinstance(name, str) and isinstance(results, list):
            yield from ((name, result) for result in results if isinstance(result, dict))
            return
        for value in content.values():
            yield from _results(value)
    elif isinstance(content, list):
        for value in content:
            yield from _results(value)
