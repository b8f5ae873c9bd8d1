"""A campaign's folder made ready for measuring: configuration, plan and sheet written, failed outcomes cleared."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from nodeprint import config as configuration
from nodeprint import discover, files
from nodeprint.discover import Node


def prepare(
    config: dict[str, Any], find: Callable[[], Sequence[Node]], again: Sequence[str], hashes: Mapping[str, str]
) -> Path:
    """Write or refresh the campaign of `config`; returns its folder.

    The set of nodes is frozen: `find` says which they are only where there is no sheet yet; Slurm's states are asked
    again while nodes are pending. A node of `again` gets a new job, and so does one whose unfinished job was begun with
    another plan or other kernels (`hashes`, by kernel's name): what was measured stays. A failed outcome is set aside,
    so that the workflow tries it again. Raises NodeprintError.
    """
    folder = configuration.campaign_folder(config)
    sheet = folder / "nodes.tsv"
    nodes = discover.read_sheet(sheet) if sheet.exists() else list(find())
    plan = configuration.plan(config)
    if sheet.exists() and config["launch"] != "here" and any(_pending(folder, node) for node in nodes):
        fresh = {node.node: node for node in find()}
        nodes = [_as_now(node, fresh.get(node.node)) if _pending(folder, node) else node for node in nodes]
    nodes = discover.again(nodes, again)
    nodes = [_refreshed(folder, node, plan, hashes) for node in nodes]
    _note_changes(folder / "config.yaml", config)
    files.write(folder / "config.yaml", yaml.safe_dump(config, sort_keys=True))
    files.write(folder / "plan.tsv", plan)
    discover.write_sheet(sheet, nodes)
    if config["launch"] == "sweep":
        for name, members in sweeps(nodes).items():
            pending = [node for node in members if not (job_folder(folder, node) / "status.json").exists()]
            if pending:
                rows = (f"{node.node}\t{node.job}\t{node.cpus}\n" for node in pending)
                files.write(folder / "sweeps" / f"{name}.nodes", "".join(rows))
    return folder


def sweeps(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """The nodes to measure, by partition and number of CPUs: one allocation each. Raises NodeprintError."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        if node.measure:
            name = discover.checked_name(f"{node.partition or 'any'}-{node.cpus}", "nodes.tsv")
            found.setdefault(name, []).append(node)
    return found


def job_folder(campaign: Path, node: Node) -> Path:
    """Where a node's current job is."""
    return campaign / "nodes" / node.node / f"job{node.job}"


def _pending(folder: Path, node: Node) -> bool:
    return _outcome(job_folder(folder, node) / "status.json") != "complete"


def _as_now(node: Node, fresh: Node | None) -> Node:
    """A pending node with the state that Slurm gives it now, unless the sheet was edited against the old state."""
    by_hand = node.measure == bool(node.reason)
    if fresh is None or by_hand:
        return node
    return replace(node, state=fresh.state, reason=fresh.reason, measure=fresh.measure)


def _note_changes(path: Path, config: Mapping[str, Any]) -> None:
    """Say which keys a call changes of an existing campaign's configuration."""
    if not path.exists():
        return
    former = configuration.read_yaml(path)
    changed = sorted(key for key in {*former, *config} if former.get(key) != config.get(key))
    if changed:
        said = (
            f"the campaign's configuration changes in {', '.join(changed)}; what is complete stays as it was measured"
            " (`make run NODES=a,b` measures these nodes anew)"
        )
        print(f"nodeprint: {path}: {said}", file=sys.stderr)


def _refreshed(campaign: Path, node: Node, plan: str, hashes: Mapping[str, str]) -> Node:
    job = job_folder(campaign, node)
    status = job / "status.json"
    if status.exists():
        if _outcome(status) == "complete" and not _damaged(job):
            return node
        files.rename(status, "status.former.json")
    files.remove(job / "submission.txt")
    if _begun_with(job / "plan.tsv") not in (None, plan):
        return replace(node, job=node.job + 1)
    if any(_of_other_kernel(path, hashes) for path in job.glob("run*/*.jsonl")):
        return replace(node, job=node.job + 1)
    return node


def _damaged(job: Path) -> bool:
    """Whether a compressed record file does not even begin as one: node-run sets it aside and measures again."""
    for path in job.glob("run*/*.jsonl.gz"):
        with path.open("rb") as file:
            if file.read(2) != b"\x1f\x8b":
                return True
    return False


def _outcome(status: Path) -> str | None:
    try:
        content = json.loads(status.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return content.get("outcome") if isinstance(content, dict) else None


def _begun_with(plan: Path) -> str | None:
    return plan.read_text() if plan.exists() else None


def read_hashes(path: Path) -> dict[str, str]:
    """The hashes of the built kernels by name, as their Makefile writes them; none where none were built here."""
    if not path.exists():
        return {}
    rows = [line.split() for line in path.read_text().splitlines()]
    return {row[0]: row[1] for row in rows if len(row) == 2}


def _of_other_kernel(records: Path, hashes: Mapping[str, str]) -> bool:
    """Whether an unfinished record file was begun by another version of its kernel; False where that cannot be told."""
    try:
        with records.open("rb") as file:
            header = json.loads(file.readline(1 << 20))
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(header, dict) or header.get("kernel") not in hashes:
        return False
    return header.get("kernel_hash") != hashes[header["kernel"]]
