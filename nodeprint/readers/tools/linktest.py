"""What LinkTest of Forschungszentrum Juelich prints: the pairs of a serial run, ` 0-> 1:  78.0us (13443 MB/s)`.

A run with all pairs at once prints summaries alone; its pairs are in a SION file, which no Python package reads.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import missing
from nodeprint.readers.tool_output import CoreMatrix, ToolEvidence, ToolOutput
from nodeprint.settings.texts import say

NAME = "linktest"
KINDS = ("matrix",)
_PAIR = re.compile(r"\s*(\d+)\s*->\s*(\d+):\s*([\d.]+)us \(\s*([\d.]+) MB/s\)")
_SUMMARY = re.compile(r"RESULT: (?:Min|Max|Avg) Time:|(?:Serial|Parallel)\s+PingPong for step")
#: Its MB are 1024 x 1024 bytes; a printed rate has five digits or fewer.
_MIB, _WHOLE = 1 << 20, 0.02


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether it has LinkTest's steps or results."""
    return ToolEvidence.NAME if any(_SUMMARY.match(line.strip()) for line in lines) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Parse the file's lines, with ranks as CPUs and the median of several passes over a pair. Raises NodeprintError if
    no pair is printed."""
    by_pair: dict[tuple[int, int], list[float]] = {}
    bytes_of_pairs = []
    for line in lines:
        if match := _PAIR.match(line):
            microseconds, rate = float(match[3]), float(match[4])
            by_pair.setdefault((int(match[1]), int(match[2])), []).append(1e3 * microseconds)
            bytes_of_pairs.append(microseconds * 1e-6 * rate * _MIB)
    if not by_pair:
        raise NodeprintError(
            "no pair of ranks: a parallel run prints summaries alone",
            where=path,
            advice="run LinkTest serially, which prints each pair",
        )
    ranks = sorted({end for pair in by_pair for end in pair})
    values = np.full((len(ranks), len(ranks)), np.nan)
    for (a, b), times in by_pair.items():
        values[ranks.index(a), ranks.index(b)] = np.median(times)
    values = np.where(np.isnan(values), values.T, values)
    size = _message_bytes(float(np.median(bytes_of_pairs)))
    facts = {"message_bytes": size} if size else {}
    cores = CoreMatrix(tuple(ranks), values, "semidirectional", "message", kernel="linktest", facts=facts)
    notes = (say("read", "ranks"),)
    return ToolOutput(path, NAME, cores, unknown=("topology", "cpu numbers"), notes=(*notes, *missing(values)))


def _message_bytes(estimate: float) -> int | None:
    """The size of a message from its time and its rate, where it is near a power of two; None where it is not."""
    size = 1 << round(np.log2(max(estimate, 1.0)))
    return size if abs(estimate / size - 1) < _WHOLE else None
