"""What came of each node when a campaign was gathered, store/fleet.json: its one type, reader and writer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from nodeprint import files, reading
from nodeprint.campaign import derived, job_status
from nodeprint.campaign.derived import State
from nodeprint.settings.keys import key, schema_of


@dataclass(frozen=True)
class NodeState:
    """What came of a node."""

    node: Annotated[str, key("its name in the sheet")]
    host: Annotated[str, key("the host name of the node")]
    state: Annotated[State, key("what came of it")]
    reason: Annotated[
        str, key("why it is refused or not measured; of a measured node which records of its newest job are of no use")
    ] = ""
    log_tail: Annotated[tuple[str, ...], key("the end of its log, where something went wrong")] = ()
    problems: Annotated[tuple[str, ...], key("what of its records could not be used, though they were made")] = ()

    @property
    def problem(self) -> str:
        """The first of its problems; empty if it has none."""
        return next(iter(self.problems), self.reason)


@dataclass(frozen=True)
class Gathered:
    """What came of every node of the sheet."""

    schema: Annotated[Literal[1], key("the version of this format")]
    simulated: Annotated[bool, key("whether it was simulated")]
    nodes: Annotated[tuple[NodeState, ...], key("by name")]


def write(folder: Path, states: Sequence[NodeState], *, simulated: bool) -> None:
    """Write what came of the nodes of a campaign. Raises CannotWriteError."""
    content = asdict(Gathered(1, simulated, tuple(states)))
    files.write(folder / derived.STATES, json.dumps(content, indent=1) + "\n")


def unusable(folder: Path) -> dict[str, NodeState]:
    """By name the nodes of which not everything could be used; empty where nothing was gathered, or none can be read.

    Only of those that have a `reason` the newest job lacks something.
    """
    import msgspec  # noqa: PLC0415 (not there where Snakemake alone plans a clone)

    try:
        gathered = msgspec.json.decode(reading.content(folder / derived.STATES, reading.RECORD_BYTES), type=Gathered)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return {}
    return {state.node: state for state in gathered.nodes if state.problem}


def schema() -> dict[str, Any]:
    """The JSON schema of store/fleet.json, made from its type."""
    return schema_of(Gathered, "fleet.json: what came of every node")


def is_of(job: Path, folder: Path) -> bool:
    """Whether a job had its outcome when the campaign in `folder` was gathered."""
    try:
        return (job / job_status.NAME).stat().st_mtime <= (folder / derived.STATES).stat().st_mtime
    except OSError:
        return False
