"""SuperBench's results-summary.jsonl (https://github.com/microsoft/superbenchmark): a line a node, its keys
`BENCHMARK/METRIC` with `:RANK` where each rank has one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import json_number, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "superbench"
KINDS = ("values",)
_RANK = re.compile(r"(.*\D):(\d+)")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether its first line is an object with a node and keys of benchmarks, or all of it is one with such keys."""
    first = _object(next((line for line in lines if line.strip()), ""))
    found = _of_one(lines) is not None if first is None else "node" in first and any("/" in key for key in first)
    return ToolEvidence.LAYOUT if found else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """The metrics of each node; return codes are no figures. Raises NodeprintError naming a line that is no object."""
    whole = _of_one(lines)
    if whole is not None:
        return ToolOutput(path, NAME, values=_of_node(whole, "", 0))
    out: list[ToolValue] = []
    for line_number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        node = _object(line)
        if node is None or not isinstance(node.get("node"), str):
            advice = "give SuperBench's results-summary.jsonl as it is"
            raise NodeprintError("no object of a node", where=path, line=line_number, advice=advice)
        out += _of_node(node, str(node["node"]), line_number)
    return ToolOutput(path, NAME, values=out)


def _of_node(node: Mapping[str, Any], name: str, line: int) -> list[ToolValue]:
    out: list[ToolValue] = []
    for key, value in node.items():
        if key == "node" or "return_code" in key:
            continue
        rank = _RANK.fullmatch(key)
        copy = {"rank": int(rank[2])} if rank else {}
        out += tool_values(json_number(value), rank[1] if rank else key, "", line, node=name, copy=copy)
    return out


def _of_one(lines: list[str]) -> dict[str, Any] | None:
    """The results of one node, as `results-summary.json` of before has them: an object over many lines, without the
    node's name."""
    if not lines or lines[0].strip() != "{":
        return None
    whole = _object("\n".join(lines))
    benchmarks = [key for key in whole or {} if "/" in key]
    return whole if whole and 2 * len(benchmarks) > len(whole) else None


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
