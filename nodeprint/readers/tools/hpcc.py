"""HPC Challenge: the rates and times in the summary of hpccoutf.txt (https://hpcchallenge.org/hpcc, src/hpcc.c).

Its STREAM and HPL sections are read as those tools' outputs, too.
"""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.readers.parsing import NUMBER, WrongResultError, slug, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput

NAME = "hpcc"
KINDS = ("values",)
_BEGIN, _END = "Begin of Summary section.", "End of Summary section."
_LINE = re.compile(rf"\s*(\w+)=({NUMBER})\s*")
#: By the end of a name the unit of its value, and a factor to it; other lines are sizes, counts and errors.
_UNITS = {
    "_Tflops": ("Tflop/s", 1.0),
    "_Gflops": ("Gflop/s", 1.0),
    "_GUPs": ("operations/s", 1e9),
    "_GBs": ("GB/s", 1.0),
    "_GBytes": ("GB/s", 1.0),
    "_usec": ("us", 1.0),
    "STREAM_Copy": ("GB/s", 1.0),
    "STREAM_Scale": ("GB/s", 1.0),
    "STREAM_Add": ("GB/s", 1.0),
    "STREAM_Triad": ("GB/s", 1.0),
}


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether its summary is there, complete: the sections before it are outputs of other tools."""
    stripped = {line.strip() for line in lines}
    return ToolEvidence.NAME if {_BEGIN, _END} <= stripped else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """The values of each summary. Raises WrongResultError where a test failed."""
    out = []
    begun = False
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text in (_BEGIN, _END):
            begun = text == _BEGIN
        elif begun and text == "Success=0":
            advice = "see which test failed, in the text above, and run it again"
            raise WrongResultError("a test of HPCC failed", where=path, line=number, advice=advice)
        elif begun and (found := _LINE.fullmatch(line)):
            ending = next((ending for ending in _UNITS if found[1].endswith(ending)), None)
            if ending is not None:
                unit, factor = _UNITS[ending]
                name = found[1].removesuffix(ending) if ending.startswith("_") else found[1]
                out += tool_values(factor * float(found[2]), f"hpcc-{slug(name.replace('_', ' '))}", unit, number)
    return ToolOutput(path, NAME, values=out)
