"""SuperBench's results-summary.jsonl (https://github.com/microsoft/superbenchmark): a line a node, its keys
`BENCHMARK/METRIC` with `:RANK` where each rank has one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import figure, number
from nodeprint.readers.tool_value import Row

NAME = "superbench"
_RANK = re.compile(r"(.*\D):(\d+)")


def matches(lines: list[str]) -> bool:
    """Whether its first line is an object with a node and keys of benchmarks, or all of it is one with such keys."""
    first = _object(next((line for line in lines if line.strip()), ""))
    if first is not None:
        return "node" in first and any("/" in key for key in first)
    return _of_one(lines) is not None


def rows(path: Path, lines: list[str]) -> list[Row]:
    """The metrics of each node; return codes are no figures. Raises NodeprintError naming a line that is no object."""
    whole = _of_one(lines)
    if whole is not None:
        return _of_node(whole, "", 0)
    out: list[Row] = []
    for line_number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        node = _object(line)
        if node is None or not isinstance(node.get("node"), str):
            advice = "give SuperBench's results-summary.jsonl as it is"
            raise NodeprintError("no object of a node", where=path, line=line_number, advice=advice)
        out += _of_node(node, str(node["node"]), line_number)
    return out


def _of_node(node: Mapping[str, Any], name: str, line: int) -> list[Row]:
    out: list[Row] = []
    for key, value in node.items():
        if key == "node" or "return_code" in key:
            continue
        rank = _RANK.fullmatch(key)
        parts = {"rank": int(rank[2])} if rank else {}
        out += figure(number(value), rank[1] if rank else key, "", line, parts, name)
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
