"""Directories of campaigns: how they are recognized, and the error of another path."""

from __future__ import annotations

from pathlib import Path

from nodeprint.campaign import derived
from nodeprint.errors import NodeprintError, printable

#: An error lists at most this many campaigns.
_LISTED = 10
#: A campaign has one of these: the sheet, the jobs of its nodes, or the arrays of a table or a baseline.
_PARTS = ("nodes.tsv", "nodes", derived.FLEET)


def is_campaign(directory: Path) -> bool:
    """Return whether a directory is a campaign, measured or made from a table."""
    return any((directory / name).exists() for name in _PARTS)


def campaigns_in(directory: Path) -> list[Path]:
    """Return the campaigns of a directory that holds several, by name; none if it is not readable."""
    try:
        return [path for path in sorted(directory.iterdir()) if is_campaign(path)]
    except OSError:
        return []


def not_a_campaign(directory: Path) -> NodeprintError:
    """Return the error of a path that must be a campaign. It lists the campaigns inside."""
    if not (inside := campaigns_in(directory)):
        advice = "specify one that `make run` made, such as a directory in results with a nodes.tsv"
        return NodeprintError("not a campaign directory", where=directory, advice=advice)
    names = ", ".join(printable(path.name, 60) for path in inside[:_LISTED])
    more = f" and {len(inside) - _LISTED} more" if len(inside) > _LISTED else ""
    problem = f"not a campaign, but a directory of campaigns ({names}{more})"
    return NodeprintError(problem, where=directory, advice=f"specify one, for example {inside[0]}")
