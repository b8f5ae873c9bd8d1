"""SuperBench's results-summary.jsonl (https://github.com/microsoft/superbenchmark): a line a node, its keys
`BENCHMARK/METRIC` with `:RANK` where each rank has one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from nodeprint.errors import NodeprintError
from nodeprint.tables.row import Row
from nodeprint.tables.tools.parsing import figure, number

NAME = "superbench"
_RANK = re.compile(r"(.*\D):(\d+)")


def matches(lines: list[str]) -> bool:
    """Whether its first line is an object with a node and keys of benchmarks."""
    first = _object(next((line for line in lines if line.strip()), ""))
    return first is not None and "node" in first and any("/" in key for key in first)


def rows(path: Path, lines: list[str]) -> list[Row]:
    """The metrics of each node; return codes are no figures. Raises NodeprintError naming a line that is no object, and
    the node of which a benchmark failed with a return code."""
    out: list[Row] = []
    for line_number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        node = _object(line)
        if node is None or not isinstance(node.get("node"), str):
            advice = "give SuperBench's results-summary.jsonl as it is"
            raise NodeprintError("no object of a node", where=path, line=line_number, advice=advice)
        for key, value in node.items():
            if key == "node" or "return_code" in key:
                continue
            rank = _RANK.fullmatch(key)
            parts = {"rank": int(rank[2])} if rank else {}
            out += figure(number(value), rank[1] if rank else key, "", line_number, parts, str(node["node"]))
    return out


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
