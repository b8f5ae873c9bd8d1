"""Preparation of a campaign directory: write configuration, plan and sheet, and clear failed outcomes."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nodeprint import files, reading
from nodeprint.campaign import gathered, job_status, node_lists, node_sheet, recheck, run_files
from nodeprint.campaign.launchers.launcher import Engine
from nodeprint.campaign.launchers.launcher_registry import launcher
from nodeprint.campaign.node_sheet import Node
from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.tree import open_tree
from nodeprint.settings import checked_yaml
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config
from nodeprint.settings.texts import say

#: The kernel's identifier of a boot, below a machine's root.
_BOOT_ID = "proc/sys/kernel/random/boot_id"


class OtherCampaignError(NodeprintError):
    """The configuration needs another campaign. The advice ends with the key `campaign:`."""


def check(config: Config, again: Sequence[str]) -> None:
    """Raise NodeprintError if `prepare` would reject the campaign's directory.

    Writes nothing, so it does not wait for another call that runs on the campaign.
    """
    folder = configuration.campaign_folder(config)
    sheet, former = folder / "nodes.tsv", _former(folder / "config.yaml")
    _refuse_other_nodes(folder, former, config)
    if sheet.exists():
        _refuse_other_plan(folder, former, config, node_sheet.again(node_sheet.read_sheet(sheet), again))


def prepare(
    config: Config,
    find: Callable[[], Sequence[Node]],
    again: Sequence[str],
    hashes: Mapping[str, str],
    read_whole: Collection[str] = (),
    is_available: Callable[[str], bool] = lambda _: False,
) -> Path:
    """Write or refresh the campaign of `config`; returns its directory.

    The set of nodes is frozen: `find` selects them only if there is no sheet yet. Slurm's states are asked again while
    nodes are pending.

    A node of `again` gets a new job. So does a node whose unfinished job was begun with other kernels (`hashes`, by
    kernel's name) or in another boot. Other arguments require a new job only if nothing of the job is complete. Results
    stay.

    A failed outcome is set aside, so that the workflow tries it again. A complete one is set aside if the configuration
    now asks for measurements or runs that the job does not have: node-run adds them. If anything is to be measured, the
    search for suspects runs again after it. Complete jobs are searched for damaged records, except those of nodes in
    `read_whole`. A measurement that was unavailable on a node is tried again if `is_available` says that it can be
    taken now.

    Raises NodeprintError, also if the configuration now asks for other nodes, or for other arguments than those of
    complete measurements.
    """
    folder = configuration.campaign_folder(config)
    here = launcher(config.launch).is_here
    for path in (path for part in (".", "logs", "report") for path in (folder / part).glob("*")):
        if not path.is_dir():  # the workflow's shells write into them, and a pipe would be waited for without end
            files.check(path)
    sheet = folder / "nodes.tsv"
    former = _former(folder / "config.yaml")
    _refuse_links(folder)
    _refuse_other_nodes(folder, former, config)
    nodes = node_sheet.read_sheet(sheet) if sheet.exists() else list(find())
    plan = configuration.plan(config)
    if sheet.exists() and not here and any(_pending(folder, node) for node in nodes):
        fresh = {node.node: node for node in find()}
        nodes = [_as_now(node, fresh.get(node.node)) if _pending(folder, node) else node for node in nodes]
    nodes = node_sheet.again(nodes, again)
    _refuse_other_plan(folder, former, config, nodes)
    complete = [job_folder(folder, node) for node in nodes if not _pending(folder, node)]
    more_runs = config.runs > int(former.get("runs", config.runs))
    added = _add_what_is_new(complete, plan, more_runs) if former else {}
    _set_aside_what_lacks(complete, is_available)
    unusable = gathered.unusable(folder)
    if former and former.get("measurements", []) != checked_yaml.plain(config)["measurements"]:
        unusable = {}  # another reader may read what the last one could not
    nodes = [_beside_links(folder, node) for node in nodes]
    nodes = [_refreshed(folder, node, plan, hashes, read_whole, unusable.get(node.node), here=here) for node in nodes]
    _set_fabric_aside(fabric_job(folder, nodes), config)
    _note_changes(folder / "config.yaml", former, config, added)
    if former != checked_yaml.plain(config):  # the report is made again where it is newer
        files.write(folder / "config.yaml", checked_yaml.text(config))
    files.write(folder / "plan.tsv", plan)
    node_sheet.write_sheet(sheet, nodes)
    if not here and not (folder / "id").exists():  # by it jobs and folders on nodes are known
        files.write(folder / "id", os.urandom(6).hex() + "\n")
    pending = [node for node in nodes if node.measure and not (job_folder(folder, node) / job_status.NAME).exists()]
    if pending:
        recheck.forget(folder)
        if absent := configuration.left_out(config):
            print(f"nodeprint: preset {config.preset} leaves out {', '.join(absent)}", file=sys.stderr)
    if pending and isinstance(launcher(config.launch), Engine):
        files.write(folder / "launch/pending.tsv", recheck.listed(pending))
        # Snakemake makes nothing again for a newer file of the same content: the same nodes are tried again
        files.remove(folder / "launch/pending.outcomes.tsv")
    mark = discovered(folder, config)
    for former_mark in set((folder / "launch").glob("discovered-*")) - {mark}:
        files.remove(former_mark)
    files.write(mark, "")
    return folder


def discovered(folder: Path, config: Config) -> Path:
    """The file which says that a campaign is as `config` asks for: an edited configuration has another."""
    digest = hashlib.sha256(checked_yaml.text(config).encode()).hexdigest()
    return folder / f"launch/discovered-{digest[:12]}"


def node_run(config: Config, node: Node, job: int) -> list[str]:
    """The arguments that node-run gets for a job of a node."""
    return [
        "--campaign",
        str(configuration.campaign_folder(config)),
        "--node",
        node.node,
        "--job",
        str(job),
        "--runs",
        str(config.runs),
        "--expect-cpus",
        str(node.cpus),
        "--host",
        node.host,
        "--setup",
        config.site.setup,
        "--serials",
        config.serials,
    ]


def job_folder(campaign: Path, node: Node) -> Path:
    """The directory of a node's current job."""
    return campaign / "nodes" / node.node / f"job{node.job}"


def rebooted(campaign: Path) -> list[str]:
    """The nodes whose job ended as they were booted again since it was begun: `prepare` gives them a new one. Raises
    NodeprintError where there is no sheet."""
    sheet = node_sheet.read_sheet(campaign / "nodes.tsv")
    return [node.node for node in sheet if _was_rebooted(job_folder(campaign, node))]


def fabric_job(campaign: Path, nodes: Iterable[Node]) -> Path:
    """The directory of the newest job between the nodes. A new job of any node is a new one between them, too."""
    return campaign / f"fabric/job{max((node.job for node in nodes), default=1)}"


def _set_fabric_aside(job: Path, config: Config) -> None:
    """Set aside what says that the job between the nodes is done where it failed, or lacks what is asked for now."""
    if not (job / job_status.NAME).exists():
        return
    status = job_status.known(job)
    runs = {(run.run, run.name) for run in status.measurements} if status is not None and not status.untaken else set()
    if {(run + 1, name) for run in range(config.runs) for name, _ in configuration.fabric_plan(config)} - runs:
        job_status.set_aside(job)


def _pending(folder: Path, node: Node) -> bool:
    return not _is_complete(job_folder(folder, node))


def _as_now(node: Node, fresh: Node | None) -> Node:
    """A pending node with the state that Slurm gives it now, unless the sheet was edited against the old state."""
    by_hand = node.measure == bool(node.reason)
    if fresh is None or by_hand:
        return node
    # an inventory says by which name a host calls itself (nodeprint_host)
    host = fresh.host if fresh.state == "inventory" else node.host
    return replace(node, host=host, state=fresh.state, reason=fresh.reason, measure=fresh.measure)


def _former(path: Path) -> dict[str, Any]:
    """The configuration of the campaign's call before this one; empty where this is the first."""
    return checked_yaml.read(path) if path.exists() else {}


def _refuse_links(folder: Path) -> None:
    """Raise CannotWriteError if a directory or log to be written is a link, or a log is not a regular file."""
    for name in ("nodes", "launch", "logs", "locks", "fabric"):
        if (folder / name).exists():
            files.own_folder(folder / name)
    files.refuse_links(*(folder / "nodes").glob("*"))
    # programs open these by their names
    for path in (path for name in ("launch", "logs") for path in (folder / name).glob("*")):
        files.check(path)


def _refuse_other_nodes(folder: Path, former: Mapping[str, Any], config: Config) -> None:
    before, now = former.get("launch", config.launch), config.launch
    if before != now:
        raise _other_nodes(folder, "launch", before, now)
    if other := launcher(now).other_nodes(former, config):
        raise _other_nodes(folder, *other)


def _other_nodes(folder: Path, key: str, before: str, now: str) -> OtherCampaignError:
    """Return the error of a configuration whose `key` selects other nodes than those of the campaign."""
    problem = f"the campaign was begun with `{key}: {before}`, and `{key}: {now}` measures other nodes"
    return OtherCampaignError(problem, where=folder, key=key, advice="write another name at `campaign:`")


def _refuse_other_plan(folder: Path, former: Mapping[str, Any], config: Config, nodes: Sequence[Node]) -> None:
    complete = [job_folder(folder, node) for node in nodes if not _pending(folder, node)]
    _refuse_other_arguments(folder, former, config, complete)
    _refuse_to_begin_anew(folder, former, config, [node for node in nodes if _pending(folder, node)])


def _refuse_other_arguments(folder: Path, former: Mapping[str, Any], config: Config, complete: Iterable[Path]) -> None:
    """Reject other arguments, as their results cannot be compared. They may stay if only a new nodeprint changed
    them."""
    changed = _changed(former, config)
    asked = configuration.rows(configuration.plan(config))
    for job in complete if changed else ():
        if differing := _differing(configuration.planned(job), asked):
            name, before, now = differing[0]
            problem = (
                f"{job.parent.name} was measured by {name} with `{before}`, and `{now}` is configured now, so that "
                "values of both cannot be compared"
            )
            advice = "write another name at `campaign:`"
            raise OtherCampaignError(problem, where=folder, key=" and ".join(changed), advice=advice)


def _changed(former: Mapping[str, Any], config: Config) -> list[str]:
    """The keys that ask for other arguments than in the campaign's call before this one."""
    now = checked_yaml.plain(config)
    return [key for key in ("preset", "arguments", "measurements") if former.get(key, now[key]) != now[key]]


def _refuse_to_begin_anew(folder: Path, former: Mapping[str, Any], config: Config, pending: Iterable[Node]) -> None:
    """Reject a new job for interrupted ones: it would start from nothing and discard their complete measurements."""
    asked = configuration.rows(configuration.plan(config))
    lost, apart, lacking = dict[str, int](), ("", "", ""), ""
    for node in pending:
        job = job_folder(folder, node)
        differing = _differing(configuration.planned(job), asked)
        if differing and (complete := len(run_files.complete(job))):
            lost[node.node], apart = complete, differing[0]
            lacking = lacking or _lacking(job)
    if lost:
        name, before, now = apart
        names = node_lists.fold(list(lost))
        count = sum(lost.values())
        problem = (
            f"{count} measurements of the job of {names} are complete, {name} with `{before}`, and the others are "
            f"missing ({lacking}); `{now}` is configured now, which would begin a new job at nothing"
        )
        key = " and ".join(_changed(former, config)) or "arguments"
        advice = (
            f"set {key} as it was to continue the job, begin anew with NODES={names}, or write another name at "
            "`campaign:`"
        )
        raise OtherCampaignError(problem, where=folder, key=key, advice=advice)


def _lacking(job: Path) -> str:
    """Why an unfinished job has not all that it was asked for."""
    status = job_status.known(job)
    return printable(status.reason, 200) if status is not None and status.reason else "it is not finished"


def _differing(begun: Mapping[str, str], asked: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """The measurements of a plan that are asked for with other arguments now: name, these, and those."""
    return [(name, words, asked[name]) for name, words in begun.items() if asked.get(name, words) != words]


def _add_what_is_new(complete: Iterable[Path], plan: str, more_runs: bool) -> dict[str, int]:
    """Ask for the measurements that `plan` has beyond these jobs, and for its runs if the configuration asks for
    `more_runs` than before.

    Returns the number of nodes for each.
    """
    asked = configuration.read_plan(plan)
    added: dict[str, int] = {}
    for job in complete:
        begun, status = _begun_with(job / "plan.tsv"), job_status.known(job)
        if begun is None or status is None:
            continue
        had = {row.name: row.runs for row in configuration.read_plan(begun, status.runs)}
        new = [row.name for row in asked if row.name not in had]
        more = [(row, had[row.name]) for row in asked if more_runs and had.get(row.name, row.runs) < row.runs]
        new += [f"runs {runs + 1} to {row.runs} of {row.name}" for row, runs in more]
        if new:
            files.write(job / "plan.tsv", plan)
            job_status.set_aside(job)
        for name in new:
            added[name] = added.get(name, 0) + 1
    return added


def _set_aside_what_lacks(complete: Iterable[Path], is_available: Callable[[str], bool]) -> None:
    """Set the outcomes of those of these jobs aside that lack a measurement which can be taken now."""
    for job in complete:
        status = job_status.known(job)
        runs = status.measurements if status is not None else ()
        lacking = {run.name for run in runs if run.outcome == "unavailable" and run.exit_code}
        if any(map(is_available, lacking)):
            job_status.set_aside(job)


def _note_changes(path: Path, former: Mapping[str, Any], config: Config, added: Mapping[str, int]) -> None:
    """Print the configuration keys that a call changes in an existing campaign, and the measurements that follow."""
    now = checked_yaml.plain(config)
    changed = sorted(key for key in {*former, *now} if former.get(key) != now.get(key)) if former else []
    if not changed and not added:
        return
    new = [f"{name} on {count} {'node' if count == 1 else 'nodes'}" for name, count in added.items()]
    measured = say("campaign", "added", measurements=", ".join(new)) if new else ""
    change = say("campaign", "changed", keys=", ".join(changed), added=measured)
    print(f"nodeprint: {path}: {change}", file=sys.stderr)


def _beside_links(campaign: Path, node: Node) -> Node:
    """A node with a new job if its job directory is a link."""
    while (job := job_folder(campaign, node)).is_symlink():
        print(f"nodeprint: {say('campaign', 'link', job=job, node=node.node)}", file=sys.stderr)
        node = replace(node, job=node.job + 1)
    return node


def _refreshed(
    campaign: Path,
    node: Node,
    plan: str,
    hashes: Mapping[str, str],
    read_whole: Collection[str],
    unusable: gathered.NodeState | None,
    *,
    here: bool,
) -> Node:
    """A node with the job that the next call continues or begins; `unusable` is why its records could not be used."""
    job = job_folder(campaign, node)
    other_boot = _was_rebooted(job) or (here and _is_of_another_boot(job / "survey.tar.gz"))
    if (job / job_status.NAME).exists():
        status = job_status.known(job)
        # what is damaged is set aside by node-run and measured again, as is what is gone
        incomplete = (node.node not in read_whole and run_files.is_damaged(job)) or run_files.lost(job)
        did_all = status is not None and status.outcome != "failed" and not status.ended_early
        if unusable and unusable.reason and did_all and not incomplete and gathered.is_of(job, campaign):
            reason, former = printable(unusable.reason, 300), replace(node, job=node.job - 1)
            helps = not (job_folder(campaign, former) / _REMEASURED).exists()  # else it would never end
            words = say("campaign", "new_job" if helps else "no_new_job", node=node.node, reason=reason)
            print(f"nodeprint: {words}", file=sys.stderr)
            if helps:  # what was written elsewhere would be continued
                files.write(job / _REMEASURED, f"{reason}\n")
                return replace(node, job=node.job + 1)
        if _is_complete(job) and not incomplete:
            return node
        job_status.set_aside(job)
    begun = _begun_with(job / "plan.tsv")
    if begun is not None and _without_runs(begun) != _without_runs(plan):
        if _differing(configuration.rows(begun), configuration.rows(plan)):
            return replace(node, job=node.job + 1)
        files.write(job / "plan.tsv", plan)  # more, or fewer, of the same are measured in the same job
    if any(_of_other_kernel(path, hashes) for path in job.glob("run*/*.jsonl")):
        return replace(node, job=node.job + 1)
    if other_boot and run_files.paths(job):  # of another node only node-run knows the boot; it then refuses the rest
        return replace(node, job=node.job + 1)
    return node


#: In a job of which records could not be used: the next job was begun for that.
_REMEASURED = "remeasured"


def _is_complete(job: Path) -> bool:
    status = job_status.known(job)
    return status is not None and status.outcome == "complete"


def _was_rebooted(job: Path) -> bool:
    status = job_status.known(job)
    return status is not None and status.rebooted


def _is_of_another_boot(survey: Path) -> bool:
    """Whether this machine was booted again since a survey of it; False where that is unknown."""
    try:
        surveyed = open_tree(survey).read_text(_BOOT_ID)
    except NodeprintError:
        return False
    return bool(surveyed) and surveyed != open_tree(Path("/")).read_text(_BOOT_ID)


def _without_runs(plan: str) -> list[tuple[str, str, str]]:
    """More runs of the same are measured in the same job."""
    return [(row.name, row.kernel, row.arguments) for row in configuration.read_plan(plan)]


def _begun_with(plan: Path) -> str | None:
    return reading.required(plan) if plan.exists() else None


def read_hashes(path: Path) -> dict[str, str]:
    """The hashes of the built kernels by name, as their Makefile writes them; none where none were built here."""
    if not path.exists():
        return {}
    rows = [line.split() for line in path.read_text().splitlines()]
    return {row[0]: row[1] for row in rows if len(row) == 2}


def _of_other_kernel(records: Path, hashes: Mapping[str, str]) -> bool:
    """Whether an unfinished record file was begun by another version of its kernel; False where that is unknown."""
    try:
        with reading.opened(records) as file:
            header = json.loads(file.readline(1 << 20))
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(header, dict) or header.get("kernel") not in hashes:
        return False
    return header.get("kernel_hash") != hashes[header["kernel"]]
