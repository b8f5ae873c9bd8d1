"""Intel MPI Benchmarks: a table by message size for each benchmark (https://github.com/intel/mpi-benchmarks,
src_c/IMB_output.c). If there are several times, the average is read, and the rate next to it."""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, slug, tool_values, with_varying_points
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "imb"
KINDS = ("values",)
_TITLE = re.compile(r"#?\s*Benchmarking\s+([A-Za-z]\S*).*")
_PROCESSES = re.compile(r"#\s*#processes = (\d+).*")
_ROW = re.compile(rf"\s*(?:([A-Za-z]\w*)\s+)?({NUMBER}(?:\s+{NUMBER})+)\s*")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether a benchmark and a head of its table are there."""
    return ToolEvidence.NAME if any("#repetitions" in line and "usec" in line for line in lines) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """A row for each size and figure. Raises NodeprintError where a benchmark has no table."""
    out: list[ToolValue] = []
    heads: list[str] = []
    name, processes, titled, found = "", 0, 0, 0
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if title := _TITLE.fullmatch(text):
            _check(path, titled, found)
            name, heads, titled, found = slug(title[1]), [], number, 0
        elif match := _PROCESSES.fullmatch(text):
            processes = int(match[1])
        elif "#repetitions" in text and (name or "#procs" in text):
            heads = text.split()
        elif heads and (row := _ROW.fullmatch(line)):
            if "#procs" in heads:  # one table of all benchmarks, with -multi: its rows begin with their names
                if row[1] is None:
                    continue
                name, own = slug(row[1]), heads[1:]
            else:
                own = heads
            cells = dict(zip(own, map(float, row[2].split()), strict=False))
            processes = int(cells.get("#procs", processes))
            found += 1
            point = {"processes": processes}
            if "#bytes" in cells:
                point["message bytes"] = int(cells["#bytes"])
            time = cells.get("t_avg[usec]", cells.get("t[usec]"))
            if time is not None:
                out += tool_values(time, f"imb-{name}", "us", number, point=point)
            if "Mbytes/sec" in cells:
                out += tool_values(cells["Mbytes/sec"], f"imb-{name}-rate", "MB/s", number, point=point)
    _check(path, titled, found)
    return ToolOutput(path, NAME, values=with_varying_points(out, always="message bytes"))


def _check(path: Path, line: int, found: int) -> None:
    if line and not found:
        raise NodeprintError("a benchmark without a table", where=path, line=line, advice="let it end, and give it all")
