"""OSU micro-benchmarks: a table by message size under the test's title
(https://mvapich.cse.ohio-state.edu/benchmarks, 3 to 7).

Of a table with minimum and maximum the average is read. Rates that are printed as 0.00 are below what it resolves.
"""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.tables.row import Row
from nodeprint.tables.tools.parsing import NUMBER, figure, slug

NAME = "osu"
_TITLE = re.compile(r"#\s*OSU\s+(.*?)\s*(?:v[\d.]+.*)?")
_SIZES = re.compile(r"#\s*Size\s+(.*)")
_ROW = re.compile(rf"\s*(\d+)((?:\s+{NUMBER})+)\s*")
#: Of `# Avg Latency(us)` alone, as of a barrier: a head without sizes.
_LONE = re.compile(r"#\s*(Avg Latency\s?\(us\).*)")
_COLUMN = re.compile(r"\s{2,}")
_UNIT = re.compile(r"(.*?)\s*\(([^)]*)\)\s*")


def matches(lines: list[str]) -> bool:
    """Whether a title of a test is there."""
    return any(_TITLE.fullmatch(line.strip()) for line in lines)


def rows(path: Path, lines: list[str]) -> list[Row]:
    """A row for each size. Raises NodeprintError where a test has no table."""
    out: list[Row] = []
    heads: list[str] = []
    test, titled, found, lone = "", 0, 0, False
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if title := _TITLE.fullmatch(text):
            _check(path, titled, found)
            test, heads, titled, found = slug(title[1].removesuffix("Test")), [], number, 0
        elif test and (head := _SIZES.fullmatch(text) or _LONE.fullmatch(text)):
            heads = _COLUMN.split(head[1])
            lone = _LONE.fullmatch(text) is not None
        elif heads and lone and re.fullmatch(rf"{NUMBER}(\s+{NUMBER})*", text):
            found += 1
            out += figure(float(text.split()[0]), f"osu-{test}", "us", number)
        elif heads and (row := _ROW.fullmatch(line)):
            found += 1
            values = [float(cell) for cell in row[2].split()]
            out += _of_size(test, heads, values, int(row[1]), number)
    _check(path, titled, found)
    return out


def _of_size(test: str, heads: list[str], values: list[float], size: int, line: int) -> list[Row]:
    """The first column of each kind: an average comes before minimum and maximum, and a count of iterations is none."""
    out: list[Row] = []
    for head, value in zip(heads, values, strict=False):
        unit = _UNIT.fullmatch(head)
        name = unit[1] if unit else head
        if re.match(r"(?:Min|Max|Iterations|P\d+)", name):
            continue
        kind = slug(re.sub(r"^(?:Avg|Overall)\s*", "", name))
        plain = kind in ("latency", "bandwidth", "mb/s", "")
        metric = f"osu-{test}" if plain or kind in test else f"osu-{test}-{kind}"
        out += figure(value, metric, unit[2] if unit else name, line, {"message bytes": size})
    return out


def _check(path: Path, line: int, found: int) -> None:
    if line and not found:
        raise NodeprintError(
            "a test without a table", where=path, line=line, advice="let the test end, and give it all"
        )
