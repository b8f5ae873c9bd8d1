"""Add-ons: packages that extend nodeprint through entry points. The core imports none of them."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Any

from nodeprint.errors import NodeprintError, printable

#: An add-on's commands: a typer app, whose commands become commands of `nodeprint`.
COMMANDS = "nodeprint.commands"
#: Machines that a single node is compared with, as in nodeprint/summary/references.py.
REFERENCES = "nodeprint.references"
#: What starts node-run on the nodes, as in nodeprint/campaign/launchers/launcher.py.
LAUNCHERS = "nodeprint.launchers"
#: Packages with a measurements.yaml: commands that `measurements` in config.yaml adds by the name of the entry point.
MEASUREMENTS = "nodeprint.measurements"
#: Readers of what a site's own commands print, for rooms below them: nodeprint/readers/site_values.py.
SITE_VALUES = "nodeprint.site_values"
#: Entry points of nodeprint itself that a clone has too, which is not installed: the workflow's rules run one.
_OWN = {
    LAUNCHERS: {
        "here": "nodeprint.campaign.launchers.here:HereLauncher",
        "slurm": "nodeprint.campaign.launchers.slurm:SlurmLauncher",
        "ansible": "nodeprint.campaign.launchers.ansible:AnsibleLauncher",
        "gridengine": "nodeprint.campaign.launchers.gridengine:GridEngineLauncher",
    },
    SITE_VALUES: {
        "names": "nodeprint.readers.site_values:reader_names",
        "read": "nodeprint.readers.site_values:read",
    },
}


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


def names(group: str) -> list[str]:
    """The names of a group of entry points, nodeprint's own first; none is loaded."""
    own = list(_OWN.get(group, ()))
    return [*own, *sorted({point.name for point in metadata.entry_points(group=group)} - set(own))]


def has(group: str, name: str) -> bool:
    """Whether a group of entry points has this name."""
    return name in _OWN.get(group, ()) or name in names(group)


def load_one(group: str, name: str) -> Any:
    """The object that an entry point names; nodeprint's own precede others of their name. Raises NodeprintError."""
    if own := _OWN.get(group, {}).get(name):
        return metadata.EntryPoint(name, own, group).load()
    for point in metadata.entry_points(group=group, name=name):
        try:
            return point.load()
        except Exception as error:  # whatever its code raises
            problem = f"add-on {name} ({point.value}) fails to load: {error}"
            raise NodeprintError(problem, advice="install its package again") from error
    raise NodeprintError(unknown(group, name))


def unknown(group: str, name: str) -> str:
    """The sentence about a name that no entry point of a group has."""
    return f"{printable(repr(name), 60)} is unknown; known are {', '.join(names(group))}"
