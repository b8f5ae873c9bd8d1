"""The nodes of a campaign: which were measured, which were not, and why."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from nodeprint import bundle, campaign, discover, files
from nodeprint.bundle import Bundle
from nodeprint.discover import Node, short
from nodeprint.errors import CannotWriteError, NodeprintError, printable

State = Literal["measured", "refused", "not measured"]
_LOG_LINES = 8


@dataclass(frozen=True)
class NodeState:
    """What came of a node. `reason` says why it is refused or not measured; then `log_tail` has its log's end."""

    node: str
    host: str
    state: State
    reason: str = ""
    log_tail: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fleet:
    """A campaign's nodes in the order of their names."""

    campaign: Path
    nodes: tuple[NodeState, ...]

    def measured(self) -> Iterator[Bundle]:
        """The bundles of the measured nodes, one at a time, so that memory stays bounded."""
        for node in self.nodes:
            if node.state == "measured":
                yield bundle.load(self.campaign / "nodes" / node.node)


def gather(folder: Path, workers: int | None = None) -> Fleet:
    """Pack what is there, in `workers` processes, and write fleet.json.

    Raises NodeprintError without a campaign, or where what was packed cannot be written: that is no node's fault.
    """
    nodes = discover.read_sheet(folder / "nodes.tsv")
    if len(nodes) == 1:
        states = [_state(folder, nodes[0])]
    else:
        with ProcessPoolExecutor(workers) as pool:
            states = list(pool.map(_state, [folder] * len(nodes), nodes, chunksize=4))
    fleet = Fleet(folder, tuple(sorted(states, key=lambda state: state.node)))
    simulated = any(node.state == "simulated" for node in nodes)
    text = json.dumps(
        {"schema": 1, "simulated": simulated, "nodes": [asdict(state) for state in fleet.nodes]}, indent=1
    )
    files.write(folder / "fleet.json", text + "\n")
    return fleet


def _state(folder: Path, node: Node) -> NodeState:
    node_dir = folder / "nodes" / node.node
    if not node_dir.is_dir():
        return NodeState(node.node, node.host, "not measured", _not_begun(node))
    try:
        found = bundle.pack(node_dir)
    except CannotWriteError:
        raise
    except NodeprintError as error:
        return NodeState(node.node, node.host, "refused", str(error))
    wrong = [host for host in found.hosts if short(host) != short(node.host)]
    if wrong:
        reason = f"its records were written on host {printable(wrong[0], 80)}, not on {node.host}: measure it again"
        return NodeState(node.node, node.host, "refused", reason, _log_tail(campaign.job_folder(folder, node)))
    current = next((job for job in found.jobs if job.number == node.job), None)
    failed = [
        f"{m.get('name')}, job{node.job}/run{m.get('run')}: {m.get('outcome')}, {printable(str(m.get('message')))}"
        for m in (current.status.get("measurements", []) if current else [])
        if m.get("outcome") != "done"
    ]
    submission = _submission(campaign.job_folder(folder, node))
    problems = (*found.problems, *failed, *([submission] if submission else []))
    if any(job.names for job in found.jobs):
        tail = _log_tail(campaign.job_folder(folder, node)) if problems else ()
        return NodeState(node.node, node.host, "measured", problems=problems, log_tail=tail)
    known = (submission, *failed, *problems, "its job ended before anything was measured")
    reason = next(text for text in known if text)
    if not node.measure:
        reason = _not_begun(node)
    return NodeState(
        node.node, node.host, "not measured", reason, _log_tail(campaign.job_folder(folder, node)), problems
    )


def _not_begun(node: Node) -> str:
    if node.measure:
        return "its job never began to measure"
    return ": ".join(text for text in (node.state or "left out by the sheet", printable(node.reason)) if text)


def _submission(job_dir: Path) -> str:
    """The scheduler's reason for a job without an outcome; empty where there is none."""
    path = job_dir / "submission.txt"
    return printable(path.read_text(errors="replace").strip()) if path.is_file() else ""


def _log_tail(job_dir: Path) -> tuple[str, ...]:
    """The last lines of node-run's log, or of its launch where it never began."""
    for name in ("node-run.log", "launch.log"):
        try:
            with (job_dir / name).open(errors="replace") as log:
                return tuple(printable(line.rstrip("\n")) for line in deque(log, _LOG_LINES))
        except OSError:
            continue
    return ()
