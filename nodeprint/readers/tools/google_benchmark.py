"""Google Benchmark's JSON (https://github.com/google/benchmark, docs/tools.md): real time of each benchmark, the median
over repetitions, and its rates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nodeprint.readers.parsing import json_number, json_of, listed, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "google-benchmark"
KINDS = ("values",)
_RATES = {"bytes_per_second": "B/s", "items_per_second": "1/s"}


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether both its objects are there."""
    text = "\n".join(lines[:200])
    found = '"context"' in text and '"library_build_type"' in text and any('"benchmarks"' in line for line in lines)
    return ToolEvidence.NAME if found else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """A row for each benchmark and rate. Repetitions of one process are no runs. Raises NodeprintError where there is
    no list of benchmarks."""
    content = json_of(path, lines)
    context = content.get("context") if isinstance(content, dict) else None
    node, date = (str(context.get(key) or "") if isinstance(context, dict) else "" for key in ("host_name", "date"))
    of_run: dict[str, list[Mapping[str, Any]]] = {}
    for item in listed(content, "benchmarks", path):
        aggregate = item.get("aggregate_name")
        nameless = aggregate is None and item.get("run_type") == "aggregate"
        if item.get("error_occurred") or nameless or aggregate not in (None, "median"):
            continue
        of_run.setdefault(str(item.get("run_name") or item.get("name")), []).append(item)
    out: list[ToolValue] = []
    for name, items in of_run.items():
        # all repetitions, or the median where the tool reported aggregates alone
        repetitions = [item for item in items if item.get("aggregate_name") is None] or items
        unit = str(repetitions[0].get("time_unit") or "ns")
        figures = [("real_time", unit, name), *((key, rate, f"{name} {key}") for key, rate in _RATES.items())]
        for key, of_key, metric in figures:
            values = [json_number(item.get(key)) for item in repetitions if key in item]
            out += tool_values(float(np.median(values)) if values else 0.0, metric, of_key, node=node, time=date)
    return ToolOutput(path, NAME, values=out)
