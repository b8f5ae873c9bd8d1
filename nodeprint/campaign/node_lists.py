"""Node lists as Slurm and ClusterShell write them: `cn[001-004],gpu7`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nodeprint.errors import NodeprintError, nearest, printable


def _library() -> Any:
    """ClusterShell's node sets, which the workflow can be read without."""
    from ClusterShell import NodeSet  # noqa: PLC0415

    return NodeSet


def expand(text: str, key: str) -> list[str]:
    """The names of a list, separated by commas or blanks; none of an empty one.

    Raises NodeprintError naming `key` where it is no list.
    """
    library = _library()
    try:
        lists = (library.NodeSet(part.strip(","), resolver=library.RESOLVER_NOGROUP) for part in text.split())
        return [name for nodes in lists for name in nodes]
    except library.NodeSetException as error:
        problem = f"{printable(repr(text), 60)} is no list of nodes ({printable(str(error))})"
        raise NodeprintError(problem, key=key, advice="write it as in cn[001-004],gpu7") from error


def fold(names: Iterable[str]) -> str:
    """Names as one list, the shortest that says all of them."""
    library = _library()
    return str(library.NodeSet.fromlist(list(names), resolver=library.RESOLVER_NOGROUP))


def unknown_node(
    name: str, known: Iterable[str], *, key: str | None = None, where: Path | None = None
) -> NodeprintError:
    """Return the error for a name that is none of the `known` nodes of a campaign, which it names."""
    names = list(known)
    advice = f"{nearest(name, names)} its nodes are {printable(fold(names))}".strip()
    return NodeprintError(f"no node {printable(name, 60)} in this campaign", key=key, where=where, advice=advice)
