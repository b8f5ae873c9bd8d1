"""OSU micro-benchmarks: a table by message size under the test's title
(https://mvapich.cse.ohio-state.edu/benchmarks, 3 to 7).

If a table has minimum and maximum, the average is read. Rates printed as 0.00 are below its resolution.
"""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, slug, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "osu"
KINDS = ("values",)
_TITLE = re.compile(r"#\s*OSU\s+(.*?)\s*(?:v[\d.]+.*)?")
_SIZES = re.compile(r"#\s*Size\s+(.*)")
_ROW = re.compile(rf"(\d+)((?:\s+{NUMBER})+)(?:\s+(Pass|Fail)\w*)?", re.IGNORECASE)
#: Of tests without sizes: a head of times alone, as of a barrier, or a sentence, as of MPI_Init.
_TIMES = re.compile(r"#\s*Avg Latency\s?\(us\).*")
_SENTENCE = re.compile(rf"nprocs: \d+, .*avg: ({NUMBER}) (ms|us|s)")
_COLUMN = re.compile(r"\s{2,}")
_UNIT = re.compile(r"(.*?)\s*\(([^)]*)\)\s*")
#: Columns that are no average: extremes, percentiles, counts and words.
_BESIDE = re.compile(r"Min|Max|Iterations|P\d+|Tail|Validation", re.IGNORECASE)


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether a title of a test is there."""
    return ToolEvidence.NAME if any(_TITLE.fullmatch(line.strip()) for line in lines) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """A row for each size. Raises NodeprintError if a test has the head of a table without lines, or if received data
    differ from sent data."""
    out: list[ToolValue] = []
    heads: list[str] = []
    test, begun, without_sizes = "", 0, False
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if title := _TITLE.fullmatch(text):
            _check(path, begun)
            test, heads, begun, without_sizes = slug(title[1].removesuffix("Test")), [], 0, False
        elif test and (head := _SIZES.fullmatch(text)):
            heads, begun = _COLUMN.split(head[1].strip()), number
        elif test and _TIMES.fullmatch(text):
            without_sizes, begun = True, number
        elif without_sizes and re.fullmatch(rf"{NUMBER}(\s+{NUMBER})*", text):
            out += tool_values(float(text.split()[0]), f"osu-{test}", "us", number)
            begun, without_sizes = 0, False
        elif test and (sentence := _SENTENCE.fullmatch(text)):
            out += tool_values(float(sentence[1]), f"osu-{test}", sentence[2], number)
        elif heads and (row := _ROW.fullmatch(text)):
            if (row[3] or "").lower() == "fail":
                advice = "messages are corrupted: see to the network before its rates"
                raise NodeprintError(f"{test} does not validate", where=path, line=number, advice=advice)
            begun = 0
            values = [float(cell) for cell in row[2].split()]
            out += _of_size(test, heads, values, int(row[1]), number)
    _check(path, begun)
    return ToolOutput(path, NAME, values=out)


def _of_size(test: str, heads: list[str], values: list[float], size: int, line: int) -> list[ToolValue]:
    """The columns that are figures: an average, a rate of bytes, one of messages."""
    out: list[ToolValue] = []
    for head, value in zip(heads, values, strict=False):
        unit = _UNIT.fullmatch(head)
        name = unit[1] if unit else head
        if _BESIDE.match(name):
            continue
        kind = slug(re.sub(r"^(?:Avg|Overall)\s*", "", name))
        plain = kind in ("latency", "bandwidth", "bi-bandwidth", "mb/s", "") or kind in test
        metric = f"osu-{test}" if plain else f"osu-{test}-{kind}"
        out += tool_values(value, metric, unit[2] if unit else name, line, point={"message bytes": size})
    return out


def _check(path: Path, line: int) -> None:
    if line:
        advice = "let the test end, and give all that it printed"
        raise NodeprintError("a table without a line", where=path, line=line, advice=advice)
