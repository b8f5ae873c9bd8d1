"""Intel MPI Benchmarks: a table by message size for each benchmark (https://github.com/intel/mpi-benchmarks,
src_c/IMB_output.c). Of several times the average is read, and the rate beside it."""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, figure, slug, with_parts_that_differ
from nodeprint.readers.tool_value import Row

NAME = "imb"
_TITLE = re.compile(r"#?\s*Benchmarking\s+([A-Za-z]\S*).*")
_PROCESSES = re.compile(r"#\s*#processes = (\d+).*")
_ROW = re.compile(rf"\s*(?:([A-Za-z]\w*)\s+)?({NUMBER}(?:\s+{NUMBER})+)\s*")


def matches(lines: list[str]) -> bool:
    """Whether a benchmark and a head of its table are there."""
    return any("#repetitions" in line and "usec" in line for line in lines)


def rows(path: Path, lines: list[str]) -> list[Row]:
    """A row for each size and figure. Raises NodeprintError where a benchmark has no table."""
    out: list[Row] = []
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
            parts: dict[str, int | str] = {"processes": processes}
            if "#bytes" in cells:
                parts["message bytes"] = int(cells["#bytes"])
            time = cells.get("t_avg[usec]", cells.get("t[usec]"))
            if time is not None:
                out += figure(time, f"imb-{name}", "us", number, parts)
            if "Mbytes/sec" in cells:
                out += figure(cells["Mbytes/sec"], f"imb-{name}-rate", "MB/s", number, parts)
    _check(path, titled, found)
    return with_parts_that_differ(out, always="message bytes")


def _check(path: Path, line: int, found: int) -> None:
    if line and not found:
        raise NodeprintError("a benchmark without a table", where=path, line=line, advice="let it end, and give it all")
