"""nvbandwidth: a matrix of each test case, as text or JSON (https://github.com/NVIDIA/nvbandwidth, output.cpp,
json_output.cpp). Text has the host's name before its devices."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import json_number, json_of, listed, slug, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "nvbandwidth"
KINDS = ("values",)
_RUNNING = re.compile(r"Running (\S+?)\.?")
_FAILED = re.compile(r"(?:ERROR|Error)\b.*")
_UNIT = re.compile(r".*\((GB/s|ns)\)\s*")
_CELLS = re.compile(r"\s*\d+(?:\s+(?:[\d.]+|N/A))+\s*")
_HOST = re.compile(r".*\((\S+)\)\s*")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether it names itself, or a matrix of a test case is there."""
    if any("nvbandwidth" in line for line in lines[:40]):
        return ToolEvidence.NAME
    has_matrix = any("GPU" in line and "(row)" in line and _UNIT.fullmatch(line) for line in lines)
    return ToolEvidence.LAYOUT if has_matrix else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """A row for each measured cell. Raises NodeprintError where a test case failed."""
    if any(line.lstrip().startswith("{") for line in lines[:20]):
        return ToolOutput(path, NAME, values=_json_values(path, lines))
    out: list[ToolValue] = []
    columns: list[int] = []
    test, unit, node = "", "", ""
    for line_number, line in enumerate(lines, start=1):
        text = line.strip()
        if line.startswith("Device 0:"):  # a file may have the outputs of several hosts
            host = lines[line_number - 2].strip() if line_number > 1 else ""
            test, node = "", host if re.fullmatch(r"[A-Za-z0-9][\w.-]*", host) else ""
        elif running := _RUNNING.fullmatch(text):
            test, unit, columns = slug(running[1]), "", []
        elif test and _FAILED.fullmatch(text):
            raise NodeprintError(f"{test} failed", where=path, line=line_number, advice="run nvbandwidth again")
        elif test and not unit and (match := _UNIT.fullmatch(text)):
            unit = match[1]
        elif unit and not columns and re.fullmatch(r"\s*\d+(\s+\d+)*\s*", line):
            columns = [int(cell) for cell in text.split()]
        elif columns and _CELLS.fullmatch(line):
            row, *cells = text.split()
            if len(cells) != len(columns):
                raise NodeprintError(
                    f"{len(cells)} cells for {len(columns)} GPUs",
                    where=path,
                    line=line_number,
                    advice="give the output complete",
                )
            out += _cells(test, unit, int(row), cells, columns, line_number, node)
        elif columns and text:
            columns, unit, test = [], "", ""
    return ToolOutput(path, NAME, values=out)


def _cells(
    test: str, unit: str, row: int, cells: list[str], columns: list[int], line: int, node: str
) -> list[ToolValue]:
    """The cells of a row; between GPUs both ends are named."""
    peers = "device_to_device" in test
    out: list[ToolValue] = []
    for column, cell in zip(columns, cells, strict=True):
        axes = {"link": {"gpu": column, "peer gpu": row}} if peers else {"copy": {"gpu": column}}
        out += tool_values(json_number(cell), f"nvbandwidth-{test}", unit, line, node=node, **axes)
    return out


def _json_values(path: Path, lines: list[str]) -> list[ToolValue]:
    content: Any = json_of(path, lines)
    root = content.get("nvbandwidth") if isinstance(content, dict) else None
    if not isinstance(root, dict):
        raise NodeprintError("has no object nvbandwidth", where=path, advice="give what nvbandwidth -j printed")
    if root.get("error"):
        raise NodeprintError("nvbandwidth reports an error", where=path, advice="run it again")
    devices = next((value for key, value in root.items() if "device" in key.lower() and isinstance(value, list)), [])
    host = _HOST.fullmatch(str(devices[0])) if devices else None
    out: list[ToolValue] = []
    for case in listed(root, "testcases", path):
        if case.get("status") not in ("Passed", None):
            continue
        unit = _UNIT.fullmatch(str(case.get("bandwidth_description", "")))
        matrix = case.get("bandwidth_matrix")
        for row, cells in enumerate(matrix if isinstance(matrix, list) else []):
            texts = [str(cell) for cell in cells] if isinstance(cells, list) else []
            of_row = slug(str(case.get("name", ""))), unit[1] if unit else "GB/s", row, texts
            out += _cells(*of_row, list(range(len(texts))), 0, host[1] if host else "")
    return out
