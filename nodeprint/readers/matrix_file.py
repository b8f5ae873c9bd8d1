"""Other tools' matrices: read, with what they do not say, and written as a campaign that all that follows takes for
measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers.text_lines import lines_of
from nodeprint.readers.tool_output import CoreMatrix, ToolOutput
from nodeprint.readers.tools import (
    c2clat,
    chips_and_cheese,
    core_to_core_latency,
    intel_mlc,
    linktest,
    long_table,
    multichase,
    record_file,
    terminal_table,
)


class _Format(Protocol):
    """What the module of a format has."""

    NAME: str

    def matches(self, lines: list[str]) -> bool: ...

    def read(self, path: Path, lines: list[str]) -> ToolOutput: ...


_MODULES: tuple[_Format, ...] = (
    record_file,
    intel_mlc,
    linktest,
    multichase,
    c2clat,
    chips_and_cheese,
    terminal_table,
    long_table,
    core_to_core_latency,
)
#: By name; in the order in which a file is tried, the surest marks first.
FORMATS = {module.NAME: module for module in _MODULES}


def read_output(path: Path, format: str | None = None) -> ToolOutput:
    """Read one file of another tool; `format` is a key of FORMATS, None to find it by the file's content.

    Raises NodeprintError with line and column (cells counted from 1) where the file is not what its format says.
    """
    if format is not None and format not in FORMATS:
        raise NodeprintError(
            f"unknown format {printable(repr(format), 60)}", key="--format", advice=f"known are {', '.join(FORMATS)}"
        )
    lines = lines_of(path)
    if format is None:
        format = next((name for name, module in FORMATS.items() if module.matches(lines)), None)
    if format is None:
        line, text = next((number, line) for number, line in enumerate(lines, start=1) if line.strip())
        raise NodeprintError(
            f"begins with {printable(repr(text.strip()), 60)}, which no known format does",
            where=path,
            line=line,
            column=1,
            advice=f"name its --format ({', '.join(FORMATS)})",
        )
    imported = FORMATS[format].read(path, lines)
    if imported.cores is not None and imported.cores.quantity == "hop":
        _check_unit(path, imported.cores)
    return imported


#: No hop between two CPUs is faster or slower, ns: one inside a core takes 4 ns and more, one between machines 1 us.
_LEAST_NS, _MOST_NS = 1.0, 1e5


def _check_unit(path: Path, cores: CoreMatrix) -> None:
    """Raise NodeprintError where latencies cannot be nanoseconds."""
    median = float(np.nanmedian(cores.latency_ns))
    if _LEAST_NS <= median <= _MOST_NS:
        return
    limit = f"below {_LEAST_NS:g} ns" if median < _LEAST_NS else f"above {_MOST_NS:g} ns"
    likely = "microseconds or seconds" if median < _LEAST_NS else "picoseconds, cycles or of a whole run"
    raise NodeprintError(
        f"the median latency is {median:.3g}, and no hop between CPUs is {limit}",
        where=path,
        advice=f"give nanoseconds: these figures may be {likely}",
    )
