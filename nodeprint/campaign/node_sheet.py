"""The sample sheet: which nodes a campaign measures (docs/formats.md, nodes.tsv)."""

from __future__ import annotations

import csv
import io
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, get_type_hints

from nodeprint import files, reading
from nodeprint.campaign import derived, directories, node_lists
from nodeprint.errors import NodeprintError, printable
from nodeprint.settings.keys import key

#: A node's name is part of paths and of command lines: a host name, and nothing that looks like an option.
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")


@dataclass(frozen=True)
class Node:
    """A row of the sheet."""

    node: Annotated[str, key("the name used in paths")]
    host: Annotated[str, key("the host name that the records must carry, short")]
    job: Annotated[int, key("the current job, from 1", ge=1, le=reading.MOST_WHOLE)] = 1
    group: Annotated[str, key("the site's own name for a set of nodes; it is kept, and decides nothing")] = ""
    partition: Annotated[str, key("Slurm's partition that it is measured in")] = ""
    cpus: Annotated[int, key("the CPUs that a job must get, 0 unknown", ge=0, le=reading.MOST_WHOLE)] = 0
    threads: Annotated[
        int,
        key(
            "threads per core as Slurm reports them, 0 unknown. A job's time limit is planned for "
            "one thread of each core",
            ge=0,
            le=reading.MOST_WHOLE,
        ),
    ] = 0
    rack: Annotated[str, key("its rack, by `slurm.rack_pattern`")] = ""
    switch: Annotated[str, key("its leaf switch")] = ""
    state: Annotated[str, key("Slurm's, `here`, `inventory`, `simulated` or `imported`")] = ""
    reason: Annotated[
        str, key("why it is not measured; of a row from Slurm there if and only if `measure` is `no`")
    ] = ""
    measure: Annotated[bool, key("`yes` or `no`")] = True

    @property
    def cores(self) -> int:
        """How many cores its CPUs are, one for each CPU where that is unknown."""
        return -(-self.cpus // max(self.threads, 1))


def columns() -> dict[str, str]:
    """The sheet's columns in their order, with descriptions."""
    hints = get_type_hints(Node, include_extras=True)
    return {field.name: hints[field.name].__metadata__[0].description for field in fields(Node)}


def short(host: str) -> str:
    """A host name without its domain."""
    return host.split(".", maxsplit=1)[0]


def local() -> Node:
    """This host, with the CPUs that this process may use."""
    host = short(socket.gethostname())
    return Node(node=host, host=host, cpus=len(os.sched_getaffinity(0)), state="here")


def states(campaign: Path) -> dict[str, tuple[str, str]]:
    """The state and reason that Slurm has of each node of a campaign; nothing where there is no sheet."""
    sheet = campaign / "nodes.tsv"
    return {node.node: (node.state, node.reason) for node in read_sheet(sheet)} if sheet.exists() else {}


def read_sheet(path: Path) -> list[Node]:
    """Read nodes.tsv. Raises NodeprintError naming file, line and column's name."""
    try:
        text = reading.content(path).decode()
    except OSError as error:
        if (path.parent / derived.FLEET / "index.json").exists():
            what = "is a table of figures, which has no jobs to follow and no topology"
            advice = f"`nodeprint judge {path.parent}` says what its nodes are"
            raise NodeprintError(what, where=path.parent, advice=advice) from error
        absent = isinstance(error, FileNotFoundError)
        if isinstance(error, NotADirectoryError) or (absent and not directories.is_campaign(path.parent)):
            raise directories.not_a_campaign(path.parent) from error
        advice = "run `nodeprint discover`" if absent else "remove it, then run `nodeprint discover`"
        raise NodeprintError(f"cannot be read ({error.strerror})", where=path, advice=advice) from error
    except UnicodeDecodeError as error:
        raise NodeprintError("not text", where=path, advice="write it with `nodeprint discover`") from error
    rows = csv.DictReader(io.StringIO(text), delimiter="\t")
    expected = list(columns())
    unknown = [name for name in rows.fieldnames or [] if name not in expected]
    if unknown or "node" not in (rows.fieldnames or []):
        problem = f"unknown column {printable(repr(unknown[0]), 40)}" if unknown else "no column 'node'"
        raise NodeprintError(problem, where=path, line=1, advice=f"columns are {', '.join(expected)}")
    nodes = [_node(path, rows.line_num, row) for row in rows]
    seen: set[str] = set()
    for number, node in enumerate(nodes, start=2):
        if node.node in seen:
            raise NodeprintError(
                f"node {node.node} is listed twice", where=path, line=number, advice="remove one of the rows"
            )
        seen.add(node.node)
    return nodes


def write_sheet(path: Path, nodes: Sequence[Node]) -> None:
    """Write nodes.tsv atomically. Raises NodeprintError if the directory is not writable."""
    out = io.StringIO()
    sheet = csv.DictWriter(out, list(columns()), delimiter="\t", lineterminator="\n")
    sheet.writeheader()
    for node in nodes:
        sheet.writerow(asdict(node) | {"measure": "yes" if node.measure else "no", "reason": printable(node.reason)})
    files.write(path, out.getvalue())


def checked_name(name: str, where: Path | str, line: int | None = None) -> str:
    """`name` if it can be a node's name. Raises NodeprintError otherwise."""
    if not _NAME.fullmatch(name):
        raise NodeprintError(
            f"{printable(repr(name), 60)} is not a node name",
            where=where,
            line=line,
            advice="names have letters, digits, '_', '.' and '-', and begin and end with a letter, a digit or '_'",
        )
    return name


def again(nodes: Sequence[Node], names: Sequence[str]) -> list[Node]:
    """The sheet with a new job for each of `names`. Raises NodeprintError when one is not in it."""
    listed = [node.node for node in nodes]
    missing = sorted(set(names) - set(listed))
    if missing:
        raise node_lists.unknown_node(missing[0], listed, key="NODES")
    return [replace(node, job=node.job + 1, measure=True) if node.node in names else node for node in nodes]


def _node(path: Path, line: int, row: dict[str | None, str | list[str] | None]) -> Node:
    if None in row or None in row.values():
        raise NodeprintError(
            "more or fewer cells than columns", where=path, line=line, advice="separate cells by one tab"
        )
    cells = {str(column): str(cell) for column, cell in row.items()}
    name = checked_name(cells.pop("node"), path, line)
    measure = cells.pop("measure", "yes")
    if measure not in ("yes", "no"):
        raise NodeprintError("column 'measure' is neither yes nor no", where=path, line=line)
    numbers = {}
    for column, least in (("job", 1), ("cpus", 0), ("threads", 0)):
        text = cells.pop(column, "") or str(least)
        number = reading.whole_number(text)
        if number is None or number < least:
            allowed = f"a whole number from {least} to {reading.MOST_WHOLE}"
            raise NodeprintError(f"column {column!r} is not {allowed}", where=path, line=line)
        numbers[column] = number
    host = checked_name(cells.pop("host", "") or name, path, line)
    job, cpus, threads = numbers["job"], numbers["cpus"], numbers["threads"]
    return Node(name, host, job, cpus=cpus, threads=threads, measure=measure == "yes", **cells)
