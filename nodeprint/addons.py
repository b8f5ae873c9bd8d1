"""Add-ons: packages that extend nodeprint through entry points. The core imports none of them."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Any

from nodeprint.errors import NodeprintError

#: An add-on's commands: a typer app, whose commands become commands of `nodeprint`.
COMMANDS = "nodeprint.commands"
#: Machines that a single node is compared with, as in nodeprint/summary/references.py.
REFERENCES = "nodeprint.references"


def load(group: str) -> dict[str, Any]:
    """The objects that installed add-ons name in a group of entry points, by name.

    An add-on that fails to load is left out with a line on stderr: all other commands still work.
    """
    out = {}
    for point in sorted(metadata.entry_points(group=group), key=lambda point: point.name):
        try:
            out[point.name] = point.load()
        except Exception as error:  # noqa: BLE001 (whatever its code raises costs the add-on alone)
            problem = f"add-on {point.name} ({point.value}) fails to load: {error}"
            print(f"nodeprint: {NodeprintError(problem, advice='install its package again')}", file=sys.stderr)
    return out
