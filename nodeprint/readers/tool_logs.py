"""Outputs of benchmarks as values of nodes: a file, a directory of files, or one file of many nodes' outputs.

A log may have several tools' outputs. The text, the program that gathered it (pdsh, clush, srun --label, tail) or the
file's name states the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from nodeprint import waiting
from nodeprint.campaign.directories import campaigns_in, is_campaign, not_a_campaign
from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import (
    between_results,
    host_words,
    node_pairs,
    pair_lines,
    path_fields,
    text_sections,
    value_table,
    varied_arguments,
)
from nodeprint.readers.node_pairs import PEER
from nodeprint.readers.parsing import WrongResultError, lines_of
from nodeprint.readers.path_fields import PathFields
from nodeprint.readers.registry import Reader, readers
from nodeprint.readers.text_sections import Passage
from nodeprint.readers.tool_output import Axis, ToolOutput, ToolValue
from nodeprint.readers.value_table import ValueTable
from nodeprint.settings.texts import say

#: What comes in has no name of a file.
_STREAM = "standard input"
#: So many files of a folder that are no outputs are named; all are counted.
_NAMED = 3
#: Benchmarks by MPI: one result may be of all nodes of a job.
_OVER_NODES = frozenset(("hpl", "hpcc", "hpcg", "osu", "imb"))
#: So many lines of a text are looked at for the tool, and those of other forms.
_FIRST = 1000


def is_outputs(folder: Path) -> bool:
    """Whether a directory holds outputs, and no campaign."""
    return folder.is_dir() and not is_campaign(folder)


def has_output(lines: list[str]) -> bool:
    """Whether a text has the output of a known tool, whatever gathered it."""
    with suppress(NodeprintError):  # of a text that contradicts itself
        if any(_readers(section.lines) for section in text_sections.split(lines, "")):
            return True
    return bool(_readers(lines))


def read_logs(path: Path, name: str = "", pattern: str = "", lines: Sequence[str] = ()) -> ValueTable:
    """The values of a file, or of all files below a directory.

    `name` is its name in messages. `pattern` states the parts of a path, such as `stream-{node}-run{run}.log`: node,
    run, job, time, or any name of a copy. `lines` are patterns of the lines before results, such as `### {node}`, the
    outermost loop first. Raises NodeprintError if no output of a known tool exists, if nothing states the node of a
    result, or if the only file is faulty. Among several files the node of a faulty one is not measured, with a note.
    """
    source = name or str(path)
    outputs, strangers, several = _outputs_of(path, source, pattern, lines)
    identified, sources = _identified(outputs, pattern, source)
    return _of_outputs(identified, strangers, source, sources, several=several)


def identified(path: Path, pattern: str = "", lines: Sequence[str] = ()) -> list[ToolValue]:
    """The values of a file or directory with their axes, before they are checked as a table. Raises NodeprintError as
    `read_logs` does, and for the first faulty output."""
    outputs, _, _ = _outputs_of(path, str(path), pattern, lines)
    sections, _ = _identified(outputs, pattern, str(path))
    for section in sections:
        if section.fault is not None:
            raise section.fault
    values = [_named(value, section.node, several=False) for section in sections for value in section.values]
    return varied_arguments.as_points(values, str(path))


def _outputs_of(
    path: Path, source: str, pattern: str, patterns: Sequence[str]
) -> tuple[list[Passage], list[str], bool]:
    """The outputs of all files, the files without any, and whether there are several files."""
    if campaigns_in(path) and not any(file.is_file() for file in path.iterdir()):
        raise not_a_campaign(path)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    if not files:
        raise NodeprintError("has no files", where=source, advice="name the directory that has the outputs")
    outputs: list[Passage] = []
    strangers: list[str] = []
    for file in waiting.counted(files, len(files), "files"):
        try:
            lines = lines_of(file)
        except NodeprintError as error:
            if len(files) == 1:
                raise
            strangers.append(str(error))
            continue
        below = file.relative_to(path).as_posix() if path.is_dir() else file.name
        is_stated = bool(pattern) and source != _STREAM
        where = source if len(files) == 1 else str(file)
        found, without = _outputs(file, lines, below, where, patterns, is_stated=is_stated)
        outputs += found
        strangers += [below if len(files) > 1 else source] * without
    if len(files) == 1 and len(outputs) == 1 and outputs[0].fault is not None:
        raise outputs[0].fault
    return outputs, strangers, len(files) > 1


def _outputs(
    file: Path, lines: list[str], below: str, where: str, patterns: Sequence[str], *, is_stated: bool
) -> tuple[list[Passage], int]:
    """The outputs in a file, and how many nodes' parts of it have none. `is_stated` where the user says whose it is."""
    if between := _between_nodes(file, lines, below, where, patterns):
        return between, 0
    sections = text_sections.split(lines, where, patterns)
    read = [_read(section, file, below, where, is_stated=is_stated) for section in sections]
    names = host_words.distinct([section.node for section in sections if section.node])
    of_nodes = {section.node for section, found in zip(sections, read, strict=True) if found}
    if len(names) > 1 and ("" in of_nodes or len(of_nodes) == 1):
        raise text_sections.several_hosts(names, where)
    out = _of_tasks([output for found in read for output in found])
    _see_whether_stated(out, patterns, where)
    under_names = [section for section in out if not section.copy and (section.node in names or section.path != below)]
    counts = [(section.node or section.path, _results(section.values)) for section in under_names]
    fault = text_sections.missing_heading(counts, where)
    if fault is not None:
        raise fault
    _see_whether_explained(out, names, patterns, where)
    return [replace(section, lines=[], text=[]) for section in out], sum(
        not found for section, found in zip(sections, read, strict=True) if section.node or len(sections) == 1
    )


def _between_nodes(file: Path, lines: list[str], below: str, where: str, patterns: Sequence[str]) -> list[Passage]:
    """The outputs of benchmarks between two hosts that a line names; none if no line names exactly two."""
    named = pair_lines.ends(lines)
    if named is None or patterns or not _readers(named[1]):
        return []
    ends, rest = named
    out = _read(Passage("", rest, text=rest), file, below, where, is_stated=True)
    if not pair_lines.are_between_two([value for output in out for value in output.values]):
        return []
    _see_whether_explained(out, list(ends), patterns, where)
    return [
        replace(
            output,
            node=node_pairs.called(*ends),
            values=[
                msgspec.structs.replace(value, link=dict(zip(("node", PEER), ends, strict=True)))
                for value in output.values
            ],
            results=[replace(result, node=node_pairs.called(*ends)) for result in output.results],
            lines=[],
            text=[],
            source="a line with two hosts",
        )
        for output in out
    ]


def _of_tasks(outputs: list[Passage]) -> list[Passage]:
    """The outputs of tasks that print their hosts: on each host they count from 0, and one alone is the node itself."""
    if not all("task" in output.copy and output.node for output in outputs):
        return outputs
    of_nodes: dict[str, list[str]] = {}
    for output in outputs:
        of_nodes.setdefault(output.node, []).append(str(output.copy["task"]))
    if len(of_nodes) == 1:
        return outputs
    return [_of_task(output, sorted({*of_nodes[output.node]}, key=int)) for output in outputs]


def _of_task(output: Passage, tasks: Sequence[str]) -> Passage:
    copy = {"task": str(tasks.index(str(output.copy["task"])))} if len(tasks) > 1 else {}
    values = [msgspec.structs.replace(value, copy=_without_task(value.copy) | copy) for value in output.values]
    results = [replace(result, copy=copy) for result in output.results]
    return replace(output, copy=copy, values=values, results=results)


def _without_task(copy: Axis) -> dict[str, int | str]:
    return {axis: value for axis, value in copy.items() if axis != "task"}


def _see_whether_stated(outputs: Sequence[Passage], patterns: Sequence[str], where: str) -> None:
    """Raise NodeprintError if a result lacks an axis that patterns of lines state for others."""
    axes = {axis for pattern in patterns for axis in path_fields.fields(pattern, "--line")}
    for output in outputs:
        missing = sorted(axes - {*output.copy} - ({"node"} if output.node else set()))
        line = min((result.first for result in output.results), default=None)
        if missing and line is not None:
            what = f"no line before this result fits --line and states its {missing[0]}"
            advice = "write the pattern of an outer loop before that of an inner one, and * for text that varies"
            raise NodeprintError(what, where=where, line=line, advice=advice)


def _see_whether_explained(
    outputs: Sequence[Passage], names: Sequence[str], patterns: Sequence[str], where: str
) -> None:
    """Raise NodeprintError for a line between results whose meaning is unknown. Results that differ in it are no runs:
    as runs they would hide in the node's spread."""
    forms = [text_sections.line_pattern(pattern) for pattern in patterns]
    streams: dict[int, list[Passage]] = {}
    for output in outputs:
        streams.setdefault(id(output.text), []).append(output)
    for own in streams.values():
        lines = own[0].text
        results = [result for output in own for result in output.results]
        if len(results) < 2:
            continue
        explained = {number for number, line in enumerate(lines) if any(form.fullmatch(line.strip()) for form in forms)}
        known = {*names, *(output.node for output in own)} - {""}
        found = between_results.unexplained(lines, results, known, explained)
        if found is not None:
            raise between_results.rejection(*found, where)


def _read(section: Passage, file: Path, below: str, where: str, *, is_stated: bool) -> list[Passage]:
    """The copies of a section that have a known tool's output, each with its values or the fault that a reader found.
    The section's host is that of all."""
    parts = [(part, found) for part in text_sections.by_copies(section) if (found := _readers(part.lines))]
    read = [_with_values(part, found, file, below, where) for part, found in parts]
    if not read or all(part.is_named for part in read):
        return [replace(part, source=part.source or "the output") for part in read]
    own = {value.line for part in read for value in part.values}
    results = sum(_results(part.values) for part in read)
    may_span = any(reader.NAME in _OVER_NODES for _, found in parts for reader in found)
    named = text_sections.host(section, results, own, where, is_stated=is_stated, may_span_nodes=may_span)
    source = "the host that the text names" if named else ""
    return [
        replace(
            part,
            node=named,
            source=source,
            results=[replace(result, node=result.node or named) for result in part.results],
        )
        for part in read
    ]


#: Axes of a value that are not of a copy.
_OF_VALUES = ("run", "job", "time")


def _with_values(part: Passage, found: Sequence[Reader], file: Path, below: str, where: str) -> Passage:
    outputs: list[tuple[str, ToolOutput]] = []
    fault = None
    try:
        outputs = [(reader.NAME, reader.read_output(file, part.lines)) for reader in found]
    except NodeprintError as error:
        fault = error
    copy = {axis: value for axis, value in part.copy.items() if axis not in _OF_VALUES}
    known = {axis: str(value) for axis, value in part.copy.items() if axis in _OF_VALUES}
    read_values = [value for _, output in outputs for value in output.values]
    return replace(
        part,
        path=part.path or below,
        where=where,
        values=[msgspec.structs.replace(value, copy={**copy, **value.copy}, **known) for value in read_values],
        results=[
            result
            for tool, output in outputs
            for result in between_results.results_of(tool, output.values, part.node or part.path, part.copy)
        ],
        notes=[note for _, output in outputs for note in output.notes],
        fault=fault,
    )


def _results(values: Sequence[ToolValue]) -> int:
    """The number of results: the repetitions of the most frequent value, or the copies of a process."""
    again: dict[tuple[object, ...], set[int]] = {}
    for value in values:
        again.setdefault((value.metric, *sorted(value.place.items())), set()).add(value.line)
    copies = max((int(value.settings.get("copies", 1)) for value in values), default=1)
    return max(copies, *map(len, again.values()), 1)


def _identified(outputs: Sequence[Passage], pattern: str, source: str) -> tuple[list[Passage], dict[str, str]]:
    """The outputs with the axes that their paths state, and by axis what states it. Raises NodeprintError where nothing
    states the node."""
    unnamed = [output for output in outputs if not output.is_named]
    named = [output for output in outputs if output.is_named]
    paths = {output.path for output in unnamed}
    is_stated = bool(pattern) and source != _STREAM
    of_parts: dict[str, int] = {}  # those of a node's GPUs are one result, those of tasks may be of several nodes
    for output in unnamed:
        part = "" if "task" in output.copy else str(output.copy)
        of_parts[part] = of_parts.get(part, 0) + _results(output.values)
    results = of_parts.pop("", 0) + of_parts.pop("{}", 0) + max(of_parts.values(), default=0)
    if len(paths) == 1 and not is_stated and results > 1:
        advice = f"print `hostname: NAME` first if all are of one node; else {text_sections.GATHER}"
        of_tasks = f" of {len(unnamed)} tasks" if unnamed[0].copy else ""
        what = f"{results} results{of_tasks}, and nothing says of which nodes"
        raise NodeprintError(what, where=unnamed[0].where, advice=advice)
    by_path = _paths(unnamed, {}, pattern, source)
    nodes: dict[str, list[str]] = {}
    for output in named:
        names = [output.node] if output.node else [value.node for value in output.values]
        nodes.setdefault(output.path, []).extend(names)
    of_named = _paths(named, {path: " ".join(sorted({*names})) for path, names in nodes.items()}, pattern, source)
    sources = {**of_named.sources, **by_path.sources}
    stated = host_words.distinct([*filter(None, (output.source for output in named)), by_path.sources.get("node", "")])
    sources["node"] = " and ".join(filter(None, stated))
    copies = [axis for output in outputs for axis in output.copy]
    sources |= dict.fromkeys(copies, "--line" if any(output.source == "--line" for output in outputs) else "the text")
    whole = [_with_axes(output, of_named if output.is_named else by_path) for output in outputs]
    return whole, sources


def _paths(outputs: Sequence[Passage], named: dict[str, str], pattern: str, source: str) -> PathFields:
    """The axes that the paths of outputs state. Standard input has none."""
    paths = host_words.distinct([output.path for output in outputs])
    if not paths or (source == _STREAM and named):
        return PathFields({path: {} for path in paths})
    if source == _STREAM and len(paths) == 1:
        advice = "print `hostname: NAME` first"
        raise NodeprintError("nothing states the node of its result", where=source, advice=advice)
    return path_fields.read_paths(paths, source, pattern=pattern, named=named)


def _with_axes(output: Passage, by_path: PathFields) -> Passage:
    axes = dict(by_path.values[output.path])
    node = output.node or axes.pop("node", "")
    axes.pop("node", None)
    link = {"node": node, PEER: axes.pop("peer")} if "peer" in axes else {}
    if link and by_path.sources["node"] != "--path" and not pair_lines.are_between_two(output.values):
        what = f"is named after two hosts ({printable(' and '.join(link.values()), 60)}), but its benchmark needs one"
        raise NodeprintError(
            what, where=output.where, key="--path", advice="state {node} by --path, and * for the other"
        )
    known = {axis: axes.pop(axis) for axis in ("run", "job", "time") if axis in axes}
    values = [
        msgspec.structs.replace(
            value,
            copy={**axes, **value.copy},
            link={**value.link, **link},
            **{axis: text for axis, text in known.items() if not getattr(value, axis)},
        )
        for value in output.values
    ]
    return replace(output, node=node, values=values)


def _of_outputs(
    outputs: Sequence[Passage], strangers: Sequence[str], source: str, sources: Mapping[str, str], *, several: bool
) -> ValueTable:
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
    if (
        sources.get("node") == "--path"
        and pair_lines.are_between_two(values)
        and not any(value.link for value in values)
    ):
        notes.append(say("read", "between_two"))
    measured = {value.node for value in values}
    out = value_table.from_values(varied_arguments.as_points(values, source), source, sources)
    return replace(
        out,
        notes=(*out.notes, *notes),
        unmeasured=tuple(sorted({*out.unmeasured, *(set(faulty) - measured)})),
        wrong=frozenset(wrong),
    )


def _readers(lines: list[str]) -> list[Reader]:
    """The readers of the tools whose output is in a text."""
    shown = _forms(lines)
    return [reader for reader in readers("values").values() if reader.evidence(shown)]


def _forms(lines: list[str]) -> list[str]:
    """The first lines of a text, and the first of each further form: what shows whose output a long log is."""
    if len(lines) <= _FIRST:
        return lines
    of_form: dict[bytes, str] = {}
    for line in lines[_FIRST:]:
        of_form.setdefault(text_sections.form_of(line), line)
    return [*lines[:_FIRST], *of_form.values()]


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
