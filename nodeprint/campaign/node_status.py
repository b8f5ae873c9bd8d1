"""The state of each node of a campaign, during measurement and afterwards: `nodeprint status`."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nodeprint import reading
from nodeprint.campaign import gathered, job_status, node_lists, node_sheet
from nodeprint.campaign import preparation as campaigns
from nodeprint.campaign.launchers.launcher import ENDED, QUEUED, RUNS, JobState, NoAnswerError, Scheduler, job_name
from nodeprint.campaign.launchers.launcher_registry import launcher
from nodeprint.campaign.progress import (
    NodeProgress,
    State,
    by_engine,
    complete,
    counted,
    queue_rows,
    share,
    span,
    time_left,
    watch,
)
from nodeprint.errors import NodeprintError, printable
from nodeprint.settings import config as configuration
from nodeprint.settings.texts import say

#: How a node came to be that was not measured, as nodes.tsv says it.
_MADE = ("simulated", "imported")
#: What a node is of which everything is there.
_ENDED = ("measured", *_MADE)
#: What a node is whose outcome is one of its newest job.
JUDGED = ("measured", "partly measured", *_MADE)
#: What a node can be, in the order in which an administrator wants to read it. `failed`: nothing is measured, or
#: nothing can be read; `interrupted`: what is there will be continued; `partly measured`: of the rest the node refused
#: each part, a kernel failed on it, or the record cannot be used.
STANDINGS = ("failed", "interrupted", "partly measured", "running", "queued", "not begun", "left out", *_ENDED)
#: What is to be measured by the next call.
UNFINISHED = ("failed", "interrupted", "partly measured", "running", "queued", "not begun")
#: The status for scripts while nodes run or are queued.
AT_WORK = 3
_MOST_ROWS, _MOST_NAMED = 12, 3
_LONGEST_LIST = 48


@dataclass(frozen=True)
class NodeStanding:
    """How a node stands: one of STANDINGS, why, and where it runs the measurement and the seconds left, if known.

    `done` `of` its measurements are complete, all runs counted. `problem`: what of a former job cannot be used, of a
    node of which everything else is there. The fields are keys of `status --json`.
    """

    node: str
    standing: str
    reason: str = ""
    job: int = 1
    slurm_job: str = ""
    measurement: str = ""
    run: int = 0
    done: int = 0
    of: int = 0
    left_s: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class Status:
    """The state of a campaign. `followed`: a call follows its jobs. `measured` is the completed share."""

    campaign: str
    nodes: Sequence[NodeStanding]
    followed: bool
    left_s: float | None
    measured: float = 0.0

    @property
    def counts(self) -> dict[str, int]:
        """Nodes by how they stand, none that is 0."""
        counts = {name: sum(node.standing == name for node in self.nodes) for name in STANDINGS}
        return {name: count for name, count in counts.items() if count}

    @property
    def code(self) -> int:
        """For scripts: 3 while nodes run or are queued, else 1 where one was to be measured and is not, or in part."""
        if {"running", "queued"} & set(self.counts):
            return AT_WORK
        return int(bool(set(self.counts) & set(UNFINISHED)))

    def unfinished(self) -> str:
        """The nodes still to be measured, by state, in half a sentence; empty if there are none."""
        rows = [(standing, names, text) for standing in UNFINISHED for names, text in self._rows(standing)]
        parts = [f"{names} {standing}" + (f" ({text})" if text else "") for standing, names, text in rows[:_MOST_NAMED]]
        if len(rows) > _MOST_NAMED:
            parts.append(f"{len(rows) - _MOST_NAMED} more reasons, see `nodeprint status`")
        return "; ".join(parts)

    def _rows(self, standing: str) -> list[tuple[str, str]]:
        """The nodes that stand so, those with the same words folded, and the words."""
        by_words: dict[str, list[str]] = {}
        for node in self.nodes:
            if node.standing == standing and (standing not in _ENDED or node.problem):
                by_words.setdefault(_words(node), []).append(node.node)
        return [(_folded(names), words) for words, names in by_words.items()]

    def as_json(self) -> dict[str, Any]:
        """The facts for programs."""
        nodes = [asdict(node) for node in self.nodes]
        return {
            "campaign": self.campaign,
            "counts": self.counts,
            "followed": self.followed,
            "left_s": self.left_s,
            "nodes": nodes,
        }

    @property
    def heading(self) -> str:
        """How many nodes stand how, and the time left."""
        remaining = time_left(self.left_s, self.measured)
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return f"{self.campaign}: {counted(len(self.nodes), 'node')}: {counts}{f'; {remaining}' if remaining else ''}"

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """How nodes stand, who, and why, the most urgent last, above the prompt. Nodes with the same words share a row;
        a kind has at most _MOST_ROWS."""
        out = []
        for standing in reversed(STANDINGS):
            rows = self._rows(standing)
            more = len(rows) - _MOST_ROWS
            out += [(standing, f"and {more} more", "")] if more > 0 else []
            out += [(standing, names, text) for names, text in rows[:_MOST_ROWS]]
        return out

    @property
    def advice(self) -> str:
        """What to do where no call follows jobs that are queued; empty otherwise."""
        return say("status", "unfollowed") if not self.followed and "queued" in self.counts else ""


def read(folder: Path) -> Status:
    """The state of every node of a campaign. Raises NodeprintError if the campaign does not exist."""
    sheet = node_sheet.read_sheet(folder / "nodes.tsv")
    unusable = gathered.unusable(folder)
    if any(node.state in _MADE for node in sheet):
        made = [_gathered(folder, row, _made(folder, row), unusable) for row in sheet]
        return Status(folder.name, made, followed=False, left_s=None)
    if not (folder / "config.yaml").exists() or not (folder / "plan.tsv").exists():
        raise NodeprintError("no measured campaign", where=folder, advice="`make run` begins one")
    watched = watch(folder)
    watched.forget_begin()
    state = watched.look()
    seen = {node.name: node for node in state.nodes}
    followed = _held(folder / "launch/lock")
    queue = queue_rows(folder)
    if not followed:
        queue = _asked_anew(folder, queue)
    nodes = [
        _gathered(folder, row, _standing(folder, row, seen.get(row.node), queue.get(row.node, []), state), unusable)
        for row in sheet
    ]
    return Status(folder.name, nodes, followed, state.left_s(), share(state))


def _gathered(
    folder: Path, row: node_sheet.Node, node: NodeStanding, unusable: Mapping[str, gathered.NodeState]
) -> NodeStanding:
    """A node whose job is complete has failed if its records cannot be used, such as those of another host.

    If some can be used, it is partly measured. The same holds for a simulated or imported node. A problem of a former
    job is reported.
    """
    if node.node not in unusable or node.standing not in ("measured", "partly measured", *_MADE):
        return node
    if not gathered.is_of(campaigns.job_folder(folder, row), folder):
        return node  # measured again since
    of_node = unusable[node.node]
    if not of_node.reason:
        return replace(node, problem=printable(of_node.problem, 300))
    standing = "partly measured" if of_node.state == "measured" else "failed"
    return replace(node, standing=standing, reason=printable(of_node.reason, 300))


def _asked_anew(folder: Path, queue: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The rows of jobs.tsv with the scheduler's current states, if no call follows them.

    Jobs that left the queue, and those of an engine, are gone.
    """
    if not any(row[2] and row[3] not in ENDED for row in queue.values()):
        return {}
    named = launcher(configuration.kept(folder).launch)
    if not isinstance(named, Scheduler):
        return {}
    try:
        keys = {node: (job_name(folder, row[1]), node) for node, row in queue.items()}
        listed = named.follow({name for name, _ in keys.values()})
    except (NoAnswerError, NodeprintError, OSError):  # the rows of the last answer
        return dict(queue)
    in_queue = {node: state for node, key in keys.items() if (state := _of_number(listed.get(key), queue[node][2]))}
    return {node: [*queue[node][:3], state.state, state.reason] for node, state in in_queue.items()}


def _of_number(job: JobState | None, number: str) -> JobState | None:
    """A job if it has this number, and is no later one of its node."""
    return job if job is not None and job.id == number else None


def _made(folder: Path, row: node_sheet.Node) -> NodeStanding:
    """How a simulated or imported node stands."""
    begun = campaigns.job_folder(folder, row).is_dir()
    return NodeStanding(row.node, row.state if begun else "not begun", row.reason, row.job)


def _standing(
    folder: Path, row: node_sheet.Node, seen: NodeProgress | None, queued: Sequence[str], state: State
) -> NodeStanding:
    """How a node stands; `queued` is its row of jobs.tsv, or empty."""
    job = campaigns.job_folder(folder, row)
    none = NodeStanding(row.node, "not begun", job=row.job, of=state.places, done=len(seen.done) if seen else 0)
    if (job / job_status.NAME).exists():
        standing, message = _outcome(job)
        return replace(none, standing=standing, reason=message, done=len(complete(job, state.steps)))
    if not row.measure:
        return replace(none, standing="left out", reason=": ".join(filter(None, (row.state, row.reason))))
    number, slurm_state, why = queued[2:5] if queued and queued[1] == str(row.job) else ("", "", "")
    if slurm_state in QUEUED:
        return replace(none, standing="queued", reason="" if why == "None" else why, slurm_job=number)
    if slurm_state in RUNS or _held(folder / f"locks/{row.host}.lock"):
        since = f"since {why}" if slurm_state in RUNS and by_engine(queued) else ""
        return _running(none, seen, state, number, since)
    if slurm_state.isupper():  # a state of a scheduler, and no outcome of a former call
        reason = say("status", "ended_job", state=slurm_state)
        return replace(none, standing="running", reason=reason, slurm_job=number)
    return replace(none, standing="interrupted") if (job / "node-run.log").exists() else none


def _running(node: NodeStanding, seen: NodeProgress | None, state: State, number: str, since: str) -> NodeStanding:
    """The standing of a running node: its current measurement by its log; for an engine only `since` is known."""
    if since:
        return replace(node, standing="running", reason=since)
    if not seen or not seen.measurement:
        return replace(node, standing="running", reason=say("status", "begins"), slurm_job=number)
    return replace(
        node,
        standing="running",
        slurm_job=number,
        measurement=seen.measurement,
        run=seen.run,
        left_s=state.left_of(seen),
    )


def _words(node: NodeStanding) -> str:
    """The text about a node, without its name."""
    if node.measurement:
        remaining = f", {span(node.left_s)} left" if node.left_s is not None else ""
        return say(
            "status",
            "at_work",
            measurement=node.measurement,
            run=node.run,
            done=node.done,
            all=node.of,
            time_left=remaining,
        )
    return node.problem or node.reason


def _folded(names: Sequence[str]) -> str:
    """Names as one list; the rest of a long line is counted."""
    text = node_lists.fold(names)
    if len(text) <= _LONGEST_LIST:
        return text
    whole = text[:_LONGEST_LIST].rpartition(",")[0] or text
    return f"{len(names)} nodes, {whole}{',...' if whole != text else ''}"


def _outcome(job: Path) -> tuple[str, str]:
    """How a node stands by the outcome of its job, and why it lacks something."""
    try:
        status = job_status.read(job)
    except NodeprintError as error:
        return "failed", str(error)
    if status is None:
        return "failed", f"{job_status.NAME} is gone"
    partial = "interrupted" if status.ended_early else "partly measured"
    standings = {"complete": "measured", "partial": partial, "failed": "failed"}
    return standings[status.outcome], printable(status.reason)


def _held(lock: Path) -> bool:
    """Whether a call holds a lock."""
    try:
        with reading.opened(lock) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
