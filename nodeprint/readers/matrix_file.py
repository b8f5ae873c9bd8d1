"""The core-to-core matrix of another tool's file, a record file, or a node: which tool it is of, and whether its
numbers can be latencies.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from nodeprint.campaign import run_files
from nodeprint.data.job import jobs
from nodeprint.data.store import store
from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.topology import serialized
from nodeprint.readers.parsing import lines_of
from nodeprint.readers.registry import readers
from nodeprint.readers.tool_output import CoreMatrix, ToolEvidence, ToolOutput
from nodeprint.readers.tools import record_file

_RECORD = b'{"record"'
#: Limits of a core-to-core latency, ns: it takes 4 ns and more inside a core, and 1 us between machines.
_LEAST_NS, _MOST_NS = 1.0, 1e5


def read_output(path: Path, format: str | None = None) -> ToolOutput:
    """Read one file of another tool; `format` is the name of a reader of matrices, None to find it by the content.

    Raises NodeprintError with line and column (cells counted from 1) where the file is not what its format says.
    """
    known = readers("matrix")
    if format is not None and format not in known:
        raise NodeprintError(
            f"unknown format {printable(repr(format), 60)}", key="--format", advice=f"known are {', '.join(known)}"
        )
    lines = lines_of(path)
    output = known[format].read_output(path, lines) if format is not None else _read_likeliest(path, lines)
    if output.cores is not None and output.cores.quantity == "hop":
        _check_unit(path, output.cores)
    return output


def read_matrix(path: Path, format: str | None = None) -> CoreMatrix:
    """The core-to-core matrix of a node, a record file, a run's archive or another tool's file.

    A node is its directory. `format` is that of `read_output`. Raises NodeprintError if no matrix exists.
    """
    if (path / "nodes.tsv").exists():
        raise NodeprintError("is a campaign of nodes", where=path, advice="name one of them: a directory below nodes/")
    if format is None and path.is_dir():
        return _node_matrix(path)
    if format is None and (path.name.endswith(run_files.ARCHIVE) or _is_record(path)):
        return record_file.record_matrix(path)
    return read_output(path, format).core_matrix()


def _is_record(path: Path) -> bool:
    """Whether it is a record file, by its first bytes; a cut one may have no more than them."""
    try:
        with path.open("rb") as plain:
            first = plain.read(1 << 12)
        if first.startswith(b"\x1f\x8b"):
            first = zlib.decompressobj(wbits=31).decompress(first, len(_RECORD))
    except (OSError, zlib.error):
        first = b""
    return first.startswith(_RECORD) or path.name.endswith((".jsonl", ".jsonl.gz"))


def _node_matrix(path: Path) -> CoreMatrix:
    """The newest job's matrix of a node, of compare-exchange where it has that. Raises NodeprintError where it has
    none.
    """
    labels = store.survey(path, write=False).topology
    for job in reversed([jobs.read(folder) for folder in jobs.folders(path)]):
        for measured in sorted(job.pairs, key=lambda measured: (measured.name != "coherence-cas", measured.name)):
            return record_file.measured_matrix(measured, serialized.from_text(labels) if labels else None)
    raise NodeprintError("no core-to-core latencies", where=path, advice="measure or import them first")


def _read_likeliest(path: Path, lines: list[str]) -> ToolOutput:
    """The output as the surest reader reads it, or the next one if that fails.

    A line that only one tool prints is final: its output would lose its axes in another reader. A reader that is less
    sure must find the numbers of all CPUs, in order. Raises NodeprintError with the fault of the surest reader and the
    name of each that failed. It also rejects a text that several can read.
    """
    found = [(reader.evidence(lines), reader) for reader in readers("matrix").values()]
    likely = sorted(((evidence, reader) for evidence, reader in found if evidence), key=lambda item: -item[0])
    if not likely:
        raise _unknown(path, lines)
    best = likely[0][0]
    outputs: list[ToolOutput] = []
    faults: dict[str, NodeprintError] = {}
    for evidence, reader in likely:
        if evidence < best and (outputs or best == ToolEvidence.NAME):
            break
        try:
            output = reader.read_output(path, lines)
        except NodeprintError as error:
            faults[reader.NAME] = error
            continue
        if evidence == best or _are_counted(output):
            outputs.append(output)
    if len(outputs) > 1:
        what = f"may be of {' or '.join(output.tool for output in outputs)}"
        raise NodeprintError(what, where=path, advice="give one output a file, or name its --format")
    if outputs:
        return outputs[0]
    raise _all_failed(faults)


def _are_counted(output: ToolOutput) -> bool:
    """Whether the text has the numbers of the CPUs, in order: latencies of a cut table rarely rise."""
    cpus = output.cores.cpus if output.cores is not None else ()
    return "cpu numbers" not in output.unknown and all(a < b for a, b in pairwise(cpus))


def _all_failed(faults: Mapping[str, NodeprintError]) -> NodeprintError:
    """The fault of the first reader with the name of each."""
    (first, fault), *others = faults.items()
    tried = f"read as {first}" + "".join(f", {name}" for name, _ in others)
    advice = str(fault).removeprefix(fault.problem).removeprefix("; ")
    return NodeprintError(f"{fault.problem} ({tried})", advice=advice)


def _unknown(path: Path, lines: list[str]) -> NodeprintError:
    """A text that no reader knows, by its first line."""
    line, text = next((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    return NodeprintError(
        f"begins with {printable(repr(text.strip()), 60)}, which no known format does",
        where=path,
        line=line,
        column=1,
        advice=f"name its --format ({', '.join(readers('matrix'))})",
    )


def _check_unit(path: Path, cores: CoreMatrix) -> None:
    """Raise NodeprintError where latencies cannot be nanoseconds."""
    median = float(np.nanmedian(cores.ns))
    if _LEAST_NS <= median <= _MOST_NS:
        return
    limit = f"below {_LEAST_NS:g} ns" if median < _LEAST_NS else f"above {_MOST_NS:g} ns"
    likely = "microseconds or seconds" if median < _LEAST_NS else "picoseconds, cycles or of a whole run"
    raise NodeprintError(
        f"the median latency is {median:.3g}, and no core-to-core latency is {limit}",
        where=path,
        advice=f"give nanoseconds: these figures may be {likely}",
    )
