"""Outputs of benchmarks as values of nodes: a file, a directory of files, or one file of many nodes' outputs.

A log may have several tools' outputs. The text, the program that gathered it (pdsh, clush, srun --label, tail) or the
file's name states the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from nodeprint import waiting
from nodeprint.campaign.directories import campaigns_in, is_campaign, not_a_campaign
from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import host_words, path_fields, text_sections, value_table
from nodeprint.readers.parsing import WrongResultError, lines_of
from nodeprint.readers.path_fields import PathFields
from nodeprint.readers.registry import Reader, readers
from nodeprint.readers.text_sections import Passage
from nodeprint.readers.tool_output import ToolOutput, ToolValue
from nodeprint.readers.value_table import ValueTable

#: What comes in has no name of a file.
_STREAM = "standard input"
#: So many files of a folder that are no outputs are named; all are counted.
_NAMED = 3
#: So many lines of a text are looked at for the tool, and those of other forms.
_FIRST = 1000


def is_outputs(folder: Path) -> bool:
    """Whether a directory holds outputs, and no campaign."""
    return folder.is_dir() and not is_campaign(folder)


def has_output(lines: list[str]) -> bool:
    """Whether a text has the output of a known tool, whatever gathered it."""
    with suppress(NodeprintError):  # of a text that contradicts itself
        return any(_readers(section.lines) for section in text_sections.split(lines, ""))
    return bool(_readers(lines))


def read_logs(path: Path, name: str = "", pattern: str = "") -> ValueTable:
    """The values of a file, or of all files below a directory.

    `name` is its name in messages. `pattern` states the parts of a path, such as `stream-{node}-run{run}.log`: node,
    run, job, time, or any name of a copy. Raises NodeprintError if no output of a known tool exists, if nothing states
    the node of a result, or if the only file is faulty. Among several files the node of a faulty one is not measured,
    with a note.
    """
    source = name or str(path)
    outputs, strangers, several = _outputs_of(path, source, pattern)
    identified, sources = _identified(outputs, pattern, source)
    return _of_outputs(identified, strangers, source, sources, several=several)


def identified(path: Path, pattern: str = "") -> list[ToolValue]:
    """The values of a file or directory with their axes, before they are checked as a table. Raises NodeprintError as
    `read_logs` does, and for the first faulty output."""
    outputs, _, _ = _outputs_of(path, str(path), pattern)
    sections, _ = _identified(outputs, pattern, str(path))
    for section in sections:
        if section.fault is not None:
            raise section.fault
    return [_named(value, section.node, several=False) for section in sections for value in section.values]


def _outputs_of(path: Path, source: str, pattern: str) -> tuple[list[Passage], list[str], bool]:
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
        found, without = _outputs(file, lines, below, source if len(files) == 1 else str(file), is_stated=is_stated)
        outputs += found
        strangers += [below if len(files) > 1 else source] * without
    if len(files) == 1 and len(outputs) == 1 and outputs[0].fault is not None:
        raise outputs[0].fault
    return outputs, strangers, len(files) > 1


def _outputs(file: Path, lines: list[str], below: str, where: str, *, is_stated: bool) -> tuple[list[Passage], int]:
    """The outputs in a file, and how many nodes' parts of it have none. `is_stated` where the user says whose it is."""
    sections = text_sections.split(lines, where)
    read = [(section, _readers(section.lines)) for section in sections]
    names = host_words.distinct([section.node for section in sections if section.node])
    of_nodes = {section.node for section, found in read if found}
    if len(names) > 1 and ("" in of_nodes or len(of_nodes) == 1):
        raise text_sections.several_hosts(names, where)
    out = [_read(section, found, file, below, where, is_stated=is_stated) for section, found in read if found]
    _see_what_differs(lines, out, where)
    under_names = [section for section in out if section.node in names and not section.copy]
    fault = text_sections.missing_heading([(section.node, _results(section.values)) for section in under_names], where)
    if fault is not None:
        raise fault
    return [replace(section, lines=[]) for section in out], sum(
        not found for section, found in read if section.node or len(sections) == 1
    )


def _see_what_differs(lines: list[str], outputs: Sequence[Passage], where: str) -> None:
    """Raise NodeprintError if results of a node differ in a GPU or a variant that is no axis of theirs. As runs they
    would hide in the node's spread."""
    of_nodes = Counter(output.node for output in outputs if not output.copy)
    several = [output for output in outputs if _results(output.values) > 1 or of_nodes[output.node] > 1]
    if not several or all(output.copy or any(value.copy for value in output.values) for output in several):
        return
    own = {value.line for output in outputs for value in output.values}
    parts = text_sections.parts_named(lines)
    differing = parts if len(parts) > 1 else []
    for output in several:
        differing = differing or text_sections.variants(output.lines, _results(output.values), own)
    if differing:
        shown = " and ".join(printable(text, 30) for text in differing[:2])
        what = f"results of a node differ in {shown}, and it is not stated whether they are runs"
        advice = "give each a directory of its own and judge them apart, or print `GPU N` before those of GPUs"
        raise NodeprintError(what, where=where, advice=advice)


def _read(section: Passage, found: Sequence[Reader], file: Path, below: str, where: str, *, is_stated: bool) -> Passage:
    """A section with the values of its outputs, or the fault that a reader found, and with the host that it names."""
    outputs: list[ToolOutput] = []
    fault = None
    try:
        outputs = [reader.read_output(file, section.lines) for reader in found]
    except NodeprintError as error:
        fault = error
    read_values = [value for output in outputs for value in output.values]
    values = [msgspec.structs.replace(value, copy={**section.copy, **value.copy}) for value in read_values]
    notes = [note for output in outputs for note in output.notes]
    section = replace(section, path=section.path or below, where=where, values=values, notes=notes, fault=fault)
    if section.is_named:
        return replace(section, source=section.source or "the output")
    own = {value.line for value in values}
    named = text_sections.host(section, _results(values), own, where, is_stated=is_stated)
    return replace(section, node=named, source="the host that the text names" if named else "")


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
        how = "print `hostname: NAME` first" if source == _STREAM else "state it by --path '{node}.log'"
        advice = f"{how} if all are of one node; else {text_sections.GATHER}"
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
    sources |= dict.fromkeys(copies, "the text")
    whole = [_with_axes(output, of_named if output.is_named else by_path) for output in outputs]
    return whole, sources


def _paths(outputs: Sequence[Passage], named: dict[str, str], pattern: str, source: str) -> PathFields:
    """The axes that the paths of outputs state. Standard input is the node of its outputs."""
    paths = host_words.distinct([output.path for output in outputs])
    if not paths or (source == _STREAM and len(paths) == 1):
        states_node = bool(paths) and not named
        return PathFields({path: {"node": _STREAM} if states_node else {} for path in paths})
    return path_fields.read_paths(paths, source, pattern=pattern, named=named)


def _with_axes(output: Passage, by_path: PathFields) -> Passage:
    axes = dict(by_path.values[output.path])
    node = output.node or axes.pop("node", "")
    axes.pop("node", None)
    known = {axis: axes.pop(axis) for axis in ("run", "job", "time") if axis in axes}
    values = [
        msgspec.structs.replace(
            value,
            copy={**axes, **value.copy},
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
    measured = {value.node for value in values}
    out = value_table.from_values(values, source, sources)
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
