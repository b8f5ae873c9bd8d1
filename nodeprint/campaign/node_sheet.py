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

from nodeprint import files
from nodeprint.errors import NodeprintError, printable

#: A node's name is part of paths and of command lines: a host name, and nothing that looks like an option.
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")


@dataclass(frozen=True)
class Node:
    """A row of the sheet. `host` is what the records must carry, `cpus` 0 where the number is unknown, and `threads`,
    how many of them a core has, too."""

    node: str
    host: str
    job: int = 1
    group: str = ""
    partition: str = ""
    cpus: int = 0
    threads: int = 0
    rack: str = ""
    switch: str = ""
    state: str = ""
    reason: str = ""
    measure: bool = True

    @property
    def cores(self) -> int:
        """How many cores its CPUs are, one for each CPU where that is unknown."""
        return -(-self.cpus // max(self.threads, 1))


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
        text = path.read_text()
    except OSError as error:
        raise NodeprintError(
            f"cannot be read ({error.strerror})", where=path, advice="run `nodeprint discover`"
        ) from error
    except UnicodeDecodeError as error:
        raise NodeprintError("not text", where=path, advice="write it with `nodeprint discover`") from error
    rows = csv.DictReader(io.StringIO(text), delimiter="\t")
    known = [f.name for f in fields(Node)]
    unknown = [name for name in rows.fieldnames or [] if name not in known]
    if unknown or "node" not in (rows.fieldnames or []):
        what = f"unknown column {printable(repr(unknown[0]), 40)}" if unknown else "no column 'node'"
        raise NodeprintError(what, where=path, line=1, advice=f"columns are {', '.join(known)}")
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
    """Write nodes.tsv atomically. Raises NodeprintError when the folder is not writable."""
    out = io.StringIO()
    sheet = csv.DictWriter(out, [f.name for f in fields(Node)], delimiter="\t", lineterminator="\n")
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
    missing = sorted(set(names) - {node.node for node in nodes})
    if missing:
        raise NodeprintError(f"no node {printable(missing[0])} in this campaign", key="NODES", advice="see nodes.tsv")
    return [replace(node, job=node.job + 1, measure=True) if node.node in names else node for node in nodes]


def _node(path: Path, line: int, row: dict[str | None, str | list[str] | None]) -> Node:
    if None in row or None in row.values():
        raise NodeprintError(
            "more or fewer cells than columns", where=path, line=line, advice="separate cells by one tab"
        )
    cells = {str(key): str(value) for key, value in row.items()}
    name = checked_name(cells.pop("node"), path, line)
    measure = cells.pop("measure", "yes")
    if measure not in ("yes", "no"):
        raise NodeprintError("column 'measure' is neither yes nor no", where=path, line=line)
    numbers = {}
    for key, least in (("job", 1), ("cpus", 0), ("threads", 0)):
        text = cells.pop(key, "") or str(least)
        if not text.isdecimal() or int(text) < least:
            raise NodeprintError(f"column {key!r} is not a whole number from {least}", where=path, line=line)
        numbers[key] = int(text)
    host = checked_name(cells.pop("host", "") or name, path, line)
    job, cpus, threads = numbers["job"], numbers["cpus"], numbers["threads"]
    return Node(name, host, job, cpus=cpus, threads=threads, measure=measure == "yes", **cells)
