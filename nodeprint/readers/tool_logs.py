"""Outputs of benchmarks as values of nodes: a file, a directory of files, or one file of many nodes' outputs.

A log may have several tools' outputs. The text, the program that gathered it (pdsh, clush, srun --label, tail) or the
file's name states the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from nodeprint.campaign.directories import campaigns_in, is_campaign, not_a_campaign
from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import file_names, node_names, value_table
from nodeprint.readers.node_names import NodeLog
from nodeprint.readers.parsing import WrongResultError, lines_of
from nodeprint.readers.registry import Reader, readers
from nodeprint.readers.tool_output import ToolOutput, ToolValue
from nodeprint.readers.value_table import ValueTable

#: What comes in has no name of a file.
_STREAM = "standard input"
#: So many files of a folder that are no outputs are named; all are counted.
_NAMED = 3


def is_outputs(folder: Path) -> bool:
    """Whether a directory holds outputs, and no campaign."""
    return folder.is_dir() and not is_campaign(folder)


def has_output(lines: list[str]) -> bool:
    """Whether a text has the output of a known tool, whatever gathered it."""
    return any(_readers(section.lines) for section in node_names.split(lines))


def read_logs(path: Path, name: str = "", pattern: str = "") -> ValueTable:
    """The values of a file, or of all files below a directory.

    `name` is its name in messages. `pattern` states the place of a node's name in a path, such as
    `stream-{node}-*.log`. Raises NodeprintError if no output of a known tool exists, if nothing states the node of a
    result, or if the only file is faulty. Among several files the node of a faulty one is not measured, with a note.
    """
    source = name or str(path)
    if campaigns_in(path) and not any(file.is_file() for file in path.iterdir()):
        raise not_a_campaign(path)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    if not files:
        raise NodeprintError("has no files", where=source, advice="name the directory that has the outputs")
    outputs: list[NodeLog] = []
    strangers: list[str] = []
    for file in files:
        try:
            lines = lines_of(file)
        except NodeprintError as error:
            if len(files) == 1:
                raise
            strangers.append(str(error))
            continue
        below = file.relative_to(path).as_posix() if path.is_dir() else file.name
        is_stated = bool(pattern) and source != _STREAM
        found, without = _outputs(file, lines, below, source if len(files) == 1 else str(file), is_stated=is_stated)
        outputs += found
        strangers += [below if len(files) > 1 else source] * without
    if len(files) == 1 and len(outputs) == 1 and outputs[0].fault is not None:
        raise outputs[0].fault
    return _of_outputs(_with_nodes(outputs, pattern, source), strangers, source, several=len(files) > 1)


def _outputs(file: Path, lines: list[str], below: str, where: str, *, is_stated: bool) -> tuple[list[NodeLog], int]:
    """The outputs in a file, and how many nodes' parts of it have none. `is_stated` where the user says whose it is."""
    out, without = [], 0
    for section in node_names.split(lines):
        outputs: list[ToolOutput] = []
        fault = None
        found = _readers(section.lines)
        without += not found
        try:
            outputs = [reader.read_output(file, section.lines) for reader in found]
        except NodeprintError as error:
            fault = error
        values = [value for output in outputs for value in output.values]
        notes = [note for output in outputs for note in output.notes]
        log = replace(
            section, path=section.path or below, lines=[], where=where, values=values, notes=notes, fault=fault
        )
        if found and not log.is_named:
            own = {value.line for value in values}
            named = node_names.host(section.lines, _results(values), own, where, is_stated=is_stated)
            log = replace(log, node=named)
        out += [log] if found else []
    return out, without


def _results(values: Sequence[ToolValue]) -> int:
    """The number of results: the repetitions of the most frequent value, or the copies of a process."""
    again: dict[tuple[object, ...], set[int]] = {}
    for value in values:
        again.setdefault((value.metric, *sorted(value.place.items())), set()).add(value.line)
    copies = max((int(value.settings.get("copies", 1)) for value in values), default=1)
    return max(copies, *map(len, again.values()), 1)


def _with_nodes(outputs: Sequence[NodeLog], pattern: str, source: str) -> list[NodeLog]:
    """The outputs with the nodes that their paths say, where the texts name none. Raises NodeprintError where nothing
    does."""
    unnamed = [output for output in outputs if not output.is_named]
    paths = {output.path for output in unnamed}
    is_stated = bool(pattern) and source != _STREAM
    if len(paths) == 1 and not is_stated:
        for output in unnamed:
            if (results := _results(output.values)) > 1:
                how = "print `hostname: NAME` first" if source == _STREAM else "state it by --node-name '{node}.log'"
                advice = f"{how} if all are of one node; else {node_names.GATHER}"
                what = f"{results} results, and nothing says of which nodes"
                raise NodeprintError(what, where=output.where, advice=advice)
    if source == _STREAM and len(paths) == 1:
        named = dict.fromkeys(paths, _STREAM)
    else:
        named = file_names.nodes([output.path for output in unnamed], pattern, source) if unnamed else {}
    return [output if output.is_named else replace(output, node=named[output.path]) for output in outputs]


def _of_outputs(outputs: Sequence[NodeLog], strangers: Sequence[str], source: str, *, several: bool) -> ValueTable:
    faulty = {output.node: output.fault for output in outputs if output.fault is not None}
    wrong = {node for node, fault in faulty.items() if isinstance(fault, WrongResultError)}
    values = [_named(value, output.node, several) for output in outputs for value in output.values]
    values = [value for value in values if value.node not in wrong]  # what else it printed is not to be trusted
    if not values:
        raise _nothing(source, {node: str(fault) for node, fault in faulty.items()}, strangers)
    notes = list(dict.fromkeys(note for output in outputs for note in output.notes))
    if strangers:
        shown = ", ".join(printable(text, 80) for text in strangers[:_NAMED])
        more = f" and {len(strangers) - _NAMED} more" if len(strangers) > _NAMED else ""
        notes.append(f"no known tool's output: {shown}{more}")
    notes += map(str, faulty.values())
    measured = {value.node for value in values}
    out = value_table.from_values(values, source)
    return replace(
        out,
        notes=(*out.notes, *notes),
        unmeasured=tuple(sorted({*out.unmeasured, *(set(faulty) - measured)})),
        wrong=frozenset(wrong),
    )


def _readers(lines: list[str]) -> list[Reader]:
    """The readers of the tools whose output is in a text."""
    return [reader for reader in readers("values").values() if reader.evidence(lines)]


def _named(value: ToolValue, node: str, several: bool) -> ToolValue:
    """A value with its node, which the text names better than the file; of several files a line number says nothing."""
    return msgspec.structs.replace(value, node=value.node or node, line=0 if several else value.line)


def _nothing(source: str, faulty: dict[str, str], strangers: Sequence[str]) -> NodeprintError:
    if faulty:
        node, reason = next(iter(faulty.items()))
        return NodeprintError(
            f"no node has a figure; of {printable(node, 40)}: {reason}", where=source, advice="see to the first of them"
        )
    what = "it is empty" if not strangers else f"{printable(strangers[0], 80)} is of no known tool"
    advice = f"give outputs of {', '.join(readers('values'))}, or a table with a column node"
    return NodeprintError(f"has no figure ({what})", where=source, advice=advice)
