"""What benchmarks print, as figures of nodes: a file, a folder of files, or one file of many nodes' outputs.

A module a tool: `matches` says whether its output is in a text, `rows` reads it. A log may have several tools' outputs.
The node is named by the text, by what gathered it (pdsh, clush, srun --label, tail), or by the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import msgspec

from nodeprint.campaign import derived
from nodeprint.errors import NodeprintError, printable
from nodeprint.importers.parsing import lines_of
from nodeprint.tables import figures
from nodeprint.tables.figures import Figures
from nodeprint.tables.row import Row
from nodeprint.tables.tools import (
    dcgm,
    google_benchmark,
    hpcg,
    hpl,
    hyperfine,
    imb,
    likwid_bench,
    mlc,
    node_names,
    nvbandwidth,
    osu,
    reframe,
    stream,
    superbench,
    sysbench,
)
from nodeprint.tables.tools.parsing import WrongResultError

__all__ = ["TOOLS", "is_outputs", "matches", "read"]


class _Tool(Protocol):
    """What the module of a tool has."""

    NAME: str

    def matches(self, lines: list[str]) -> bool: ...

    def rows(self, path: Path, lines: list[str]) -> list[Row]: ...


_MODULES: tuple[_Tool, ...] = (
    stream,
    likwid_bench,
    hpl,
    hpcg,
    osu,
    imb,
    mlc,
    sysbench,
    nvbandwidth,
    dcgm,
    reframe,
    superbench,
    google_benchmark,
    hyperfine,
)
#: By name.
TOOLS = {module.NAME: module for module in _MODULES}
#: What comes in has no name of a file.
_STREAM = "standard input"
#: So many files of a folder that are no outputs are named; all are counted.
_NAMED = 3


def is_outputs(folder: Path) -> bool:
    """Whether a folder is one of outputs, and no campaign."""
    return folder.is_dir() and not any((folder / name).exists() for name in ("nodes.tsv", "nodes", derived.FLEET))


def matches(lines: list[str]) -> bool:
    """Whether a text has the output of a known tool, whatever gathered it."""
    return any(_of(of_node) for _, of_node in node_names.split(lines))


def read(path: Path, name: str = "", pattern: str = "") -> Figures:
    """The figures of a file or of all files below a folder; `name` is what it is called in messages, `pattern` says
    where a file's path has its node's name, as `stream-{node}-*.log`.

    Raises NodeprintError where there is no output of a known tool, and where a file of a single one is faulty; of
    several the node of a faulty one is not measured, and a note says why.
    """
    source = name or str(path)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    if not files:
        raise NodeprintError("has no files", where=source, advice="name the folder that has the outputs")
    folder = path if path.is_dir() else path.parent
    called = {path: _STREAM} if source == _STREAM else node_names.of_files(files, folder, pattern, source)
    rows: list[Row] = []
    notes: list[str] = []
    faulty: dict[str, str] = {}
    strangers: list[str] = []
    wrong: set[str] = set()
    for file in files:
        try:
            texts = [(node or called[file], of_node) for node, of_node in node_names.split(lines_of(file))]
        except NodeprintError as error:
            if len(files) == 1:
                raise
            strangers.append(str(error))
            continue
        for node, lines in texts:
            tools = _of(lines)
            if not tools:
                strangers.append(str(file.relative_to(path)) if len(files) > 1 else source)
            try:
                rows += [_named(row, node, len(files) > 1) for tool in tools for row in tool.rows(file, lines)]
            except NodeprintError as error:
                if len(texts) * len(files) == 1:
                    raise
                faulty[node] = str(error)
                wrong |= {node} if isinstance(error, WrongResultError) else set()
    rows = [row for row in rows if row.node not in wrong]  # what else it printed is not to be trusted
    if not rows:
        raise _nothing(source, faulty, strangers)
    if strangers:
        shown = ", ".join(printable(text, 80) for text in strangers[:_NAMED])
        more = f" and {len(strangers) - _NAMED} more" if len(strangers) > _NAMED else ""
        notes.append(f"no known tool's output: {shown}{more}")
    notes += faulty.values()
    measured = {row.node for row in rows}
    out = figures.of_rows(rows, source)
    return replace(
        out,
        notes=(*out.notes, *notes),
        unmeasured=tuple(sorted({*out.unmeasured, *(set(faulty) - measured)})),
        wrong=frozenset(wrong),
    )


def _of(lines: list[str]) -> list[_Tool]:
    """The tools whose output is in a text."""
    return [tool for tool in _MODULES if tool.matches(lines)]


def _named(row: Row, node: str, several: bool) -> Row:
    """A row with its node, which the text names better than the file; of several files a line number says nothing."""
    return msgspec.structs.replace(row, node=row.node or node, line=0 if several else row.line)


def _nothing(source: str, faulty: dict[str, str], strangers: Sequence[str]) -> NodeprintError:
    if faulty:
        node, reason = next(iter(faulty.items()))
        return NodeprintError(
            f"no node has a figure; of {printable(node, 40)}: {reason}", where=source, advice="see to the first of them"
        )
    what = "it is empty" if not strangers else f"{printable(strangers[0], 80)} is of no known tool"
    advice = f"give outputs of {', '.join(TOOLS)}, or a table with a column node"
    return NodeprintError(f"has no figure ({what})", where=source, advice=advice)
