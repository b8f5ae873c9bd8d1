"""perftest (`ib_write_bw`, `ib_send_lat` and others): a rate or a time by message size, of an adapter
(https://github.com/linux-rdma/perftest, src/perftest_parameters.h).

The average rate is read, as the peak is 0.00 with several queue pairs, and the typical time, which is the median. Its
`MB/sec` are 1,048,576 bytes.
"""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, slug, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput

NAME = "perftest"
KINDS = ("values",)
_TITLE = re.compile(r"\s*((?:RDMA_(?:Write|Read)|Send|Atomic|Raw Ethernet)\b.*? (?:BW|Latency)) Test\s*")
_HEAD = re.compile(r"\s*#bytes\s+#iterations\s+(.*)")
_DEVICE = re.compile(r".*\bDevice\s*:\s*(\S+)\s*")
_ROW = re.compile(rf"\s*(\d+)\s+(\d+)((?:\s+{NUMBER})+)\s*")
#: By the head of a column its unit, in the order of choice.
_COLUMNS = {
    "BW average[MB/sec]": "MiB/s",
    "BW average[Gb/sec]": "Gb/s",
    "t_typical[usec]": "us",
    "t_avg[usec]": "us",
}


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether the head of a table is there."""
    return ToolEvidence.NAME if any(map(_HEAD.fullmatch, lines)) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """A rate or time for each size. Raises NodeprintError where a table has no line, or no title says of which test it
    is."""
    out = []
    test, device, begun = "", "", 0
    heads: list[str] = []
    for number, line in enumerate(lines, start=1):
        if title := _TITLE.fullmatch(line):
            test, device, heads = slug(title[1].replace("_", " ")), "", []
        elif named := _DEVICE.fullmatch(line):
            device = named[1]
        elif head := _HEAD.fullmatch(line):
            heads, begun = re.findall(r"\S[^\]]*\]|\S+", head[1]), number
            if not test:
                advice = "give all that the test printed"
                raise NodeprintError("a table without the title of its test", where=path, line=number, advice=advice)
        elif heads and (row := _ROW.fullmatch(line)):
            cells = dict(zip(heads, row[3].split(), strict=False))
            column = next((name for name in _COLUMNS if name in cells), None)
            if column is not None:
                axes = {"copy": {"adapter": device} if device else {}, "point": {"message bytes": int(row[1])}}
                out += tool_values(float(cells[column]), f"perftest-{test}", _COLUMNS[column], number, **axes)
                begun = 0
    if begun:
        advice = "let the test end, and give all that it printed"
        raise NodeprintError("a table without a line", where=path, line=begun, advice=advice)
    return ToolOutput(path, NAME, values=out)
