"""STREAM: the rate of its four kernels (https://www.cs.virginia.edu/stream, stream.c: the best of ten). It also reads
HPCC and versions for GPUs with the same table.

Several results in one text are runs, one after another. Those of processes with one thread each are copies that ran at
once, without names. The median and the lowest of them are values, because one slow core does not move the median.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, WrongResultError, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "stream"
KINDS = ("values",)
_HEAD = re.compile(r"\s*Function\s+(?:Best )?Rate \(?([MG]i?B/s)\)?\s.*")
_RATE = re.compile(rf"\s*(Copy|Scale|Add|Triad):\s+({NUMBER})(?:\s+{NUMBER}){{3,4}}\s*")
_THREADS = re.compile(r"\s*Number of Threads (?:counted|requested) = (\d+)\s*")
_KERNELS = ("Copy", "Scale", "Add", "Triad")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether a table of its rates is there."""
    return ToolEvidence.NAME if any(map(_HEAD.fullmatch, lines)) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """The rates of each run, or the median and the least of copies. Raises NodeprintError where a result does not
    validate, or a table is cut."""
    failed = next((n for n, line in enumerate(lines, start=1) if "Failed Validation" in line), None)
    if failed is not None:
        advice = "the node calculates wrongly or the build is broken: run it again"
        raise WrongResultError("STREAM's result does not validate", where=path, line=failed, advice=advice)
    rates: dict[str, list[tuple[float, int]]] = {kernel: [] for kernel in _KERNELS}
    unit, begun = "MB/s", 0
    for line_number, line in enumerate(lines, start=1):
        if head := _HEAD.fullmatch(line):
            unit, begun = head[1], begun + 1
        elif rate := _RATE.fullmatch(line):
            rates[rate[1]].append((float(rate[2]), line_number))
    counts = {kernel: len(found) for kernel, found in rates.items()}
    last = max((line for _, line in rates["Triad"]), default=0)
    begun += any("STREAM version" in line for line in lines[last:]) and not any(map(_HEAD.fullmatch, lines[last:]))
    short = min(counts, key=lambda kernel: counts[kernel])
    if counts[short] < max(begun, *counts.values(), 1):
        raise NodeprintError(
            f"{counts[short]} lines of {short} for {max(begun, *counts.values())} results",
            where=path,
            line=len(lines),
            advice="let STREAM end, and give all that it printed",
        )
    counted = list(dict.fromkeys(match[1] for line in lines if (match := _THREADS.fullmatch(line))))
    if len(counted) > 1:
        what = f"results with {' and '.join(counted)} threads, which are no runs"
        raise NodeprintError(what, where=path, advice="give each number of threads a file of its own")
    settings = {"threads": " and ".join(counted)} if counted else {}
    copies = counts[short] > 1 and _copies(lines)
    settings |= {"copies": str(counts[short])} if copies else {}
    of_kernels = [row for kernel, found in rates.items() for row in _of_kernel(kernel, found, unit, copies)]
    values = [msgspec.structs.replace(value, settings=settings) for value in of_kernels]
    return ToolOutput(path, NAME, values=values)


def _of_kernel(kernel: str, found: list[tuple[float, int]], unit: str, copies: bool) -> list[ToolValue]:
    metric = f"stream-{kernel.lower()}"
    if not copies:
        return [row for rate, line in found for row in tool_values(rate, metric, unit, line)]
    least, line = min(found)
    median = float(np.median([rate for rate, _ in found]))
    of_all = tool_values(median, f"{metric}-of-copies", unit, found[0][1])
    return of_all + tool_values(least, f"{metric}-of-copies-minimum", unit, line)


def _copies(lines: list[str]) -> bool:
    """Whether results are of processes that ran at once: of one thread each, or one begun in another."""
    threads = {int(match[1]) for line in lines if (match := _THREADS.fullmatch(line))}
    heads = [n for n, line in enumerate(lines) if "STREAM version" in line]
    ends = [n for n, line in enumerate(lines) if _RATE.fullmatch(line)]
    nested = any(not any(begin < end < after for end in ends) for begin, after in pairwise(heads))
    return nested or max(threads, default=1) == 1
