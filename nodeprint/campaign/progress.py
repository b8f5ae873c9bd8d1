"""How far a campaign is, read from its folder while its nodes are measured."""

from __future__ import annotations

import calendar
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nodeprint.campaign import node_sheet, plans, run_files
from nodeprint.campaign import preparation as campaigns
from nodeprint.errors import NodeprintError
from nodeprint.settings import config as configuration

#: What node-run writes into its log when it begins with a measurement, and what a kernel writes while it measures.
_BEGINS = re.compile(r"^(?P<time>\S+) node-run: run (?P<run>\d+) of \d+: (?P<name>\S+)$")
_LEFT = re.compile(r": \d+ of \d+ \(\d+ %\), (?P<seconds>\d+) s left$")
#: So much of the end of a log is read; a measurement's own lines are less.
_TAIL_BYTES = 16_384
#: A kernel's start and its pinning, which its plan does not count.
_START_S = 1.0

#: Slurm's states of a job that runs.
RUNS = ("RUNNING", "COMPLETING", "SUSPENDED")

#: A run and a measurement.
Step = tuple[int, str]


@dataclass(frozen=True)
class Current:
    """The measurement that a node is at, the seconds since it began, and those that its kernel says are left."""

    run: int
    name: str
    since_s: float
    left_s: float | None = None


@dataclass(frozen=True)
class NodeProgress:
    """How far a node is: the places (in the plan's steps) that are behind it; `finished` by its status.json.

    `since_s`: the seconds since it began to measure, where nothing else is seen of it until it is done (Ansible).
    """

    name: str
    done: frozenset[int]
    finished: bool = False
    current: Current | None = None
    since_s: float | None = None

    @property
    def at_work(self) -> bool:
        """Whether it measures now."""
        return not self.finished and (self.current is not None or self.since_s is not None)


@dataclass(frozen=True)
class State:
    """How far a campaign is. `steps` are the plan's runs in order, `weights_s` what a measurement takes; empty
    where that is unknown.

    `waits_for` is Slurm's reason for most of the jobs that are queued; empty where there are none.
    """

    nodes: Sequence[NodeProgress]
    steps: Sequence[Step]
    weights_s: Mapping[str, float] = field(default_factory=dict)
    waits_for: str = ""

    @property
    def places(self) -> int:
        """Measurements of a node in all of their runs."""
        return len(self.steps)

    def runs_of(self, name: str) -> int:
        """How many runs a job makes of a measurement."""
        return sum(step == name for _, step in self.steps)

    def left_s(self) -> float | None:
        """Seconds until all nodes are measured, if as many go on measuring at a time as do now; None if unknown."""
        at_work = [node for node in self.nodes if node.at_work]
        if not at_work or not self._weights_known():
            return None
        seconds = {node.name: self._of_node(node) for node in self.nodes if not node.finished}
        # what takes longer than another node did has an unknown time left, and not none
        return max(*(seconds[node.name] for node in at_work), sum(seconds.values()) / len(at_work)) or None

    def left_of(self, node: NodeProgress) -> float | None:
        """Seconds until a node is measured; None if unknown."""
        return self._of_node(node) if self._weights_known() else None

    def _weights_known(self) -> bool:
        return {name for _, name in self.steps} <= set(self.weights_s)

    def _of_node(self, node: NodeProgress) -> float:
        ahead = [self.weights_s[self.steps[place][1]] for place in self.ahead(node)]
        now = node.current
        if now is None:
            return max(0.0, sum(ahead) - (node.since_s or 0.0))
        of_this = now.left_s if now.left_s is not None else max(0.0, self.weights_s[now.name] - now.since_s)
        return sum(ahead) - self.weights_s[now.name] + of_this

    def ahead(self, node: NodeProgress) -> list[int]:
        """Places that a node has not behind it."""
        return [place for place in range(self.places) if place not in node.done]


class CampaignProgress:
    """A campaign's folder, looked at again and again while its nodes are measured."""

    def __init__(
        self, folder: Path, jobs: Mapping[str, Path], steps: Sequence[Step], planned_s: Mapping[str, float]
    ) -> None:
        """`jobs` are the folders of the nodes' current jobs by node; `planned_s` the kernels' own plans."""
        self.folder, self.jobs, self.steps = folder, jobs, list(steps)
        self._seen: State | None = None
        self._until = 0.0
        self._weights = dict(planned_s)
        self._finished: set[str] = set()
        self._former = {name: complete(job, self.steps) for name, job in jobs.items()}
        # what a former attempt logged is none of this one's progress
        self._begin = {name: _size(job / "node-run.log") for name, job in jobs.items()}

    def measured_before(self) -> int:
        """Measurements that were complete before this call."""
        return sum(map(len, self._former.values()))

    def forget_begin(self) -> None:
        """Count what an attempt that is at work, or was the last, has logged."""
        self._begin = dict.fromkeys(self.jobs, 0)

    def unfinished(self) -> list[str]:
        """Nodes whose job has no outcome."""
        return [name for name, job in self.jobs.items() if not (job / "status.json").exists()]

    def look(self) -> State:
        """How far it is now."""
        queue = queue_rows(self.folder)
        nodes = [self._node(name, queue.get(name)) for name in self.jobs]
        return State(nodes, self.steps, self._weights, _most_wait_for(queue))

    def glance(self) -> State:
        """How far it was a moment ago: with many nodes it takes a hundredth of the time to look."""
        now = time.monotonic()
        if self._seen is None or now >= self._until:
            self._seen = self.look()
            self._until = time.monotonic() + 100 * (time.monotonic() - now)
        return self._seen

    def _node(self, name: str, row: Sequence[str] | None) -> NodeProgress:
        job, everything = self.jobs[name], frozenset(range(len(self.steps)))
        if name in self._finished:
            return NodeProgress(name, everything, finished=True)
        if (job / "status.json").exists():
            self._finished.add(name)
            self._weights |= seconds_of(text_of(job / "outcomes.tsv"))
            return NodeProgress(name, everything, finished=True)
        current = at_work(_tail(job / "node-run.log", self._begin[name]), time.time())
        if current is None or (current.run, current.name) not in self.steps:
            return NodeProgress(name, self._former[name], since_s=_begun_s(row))
        self._weights |= seconds_of(text_of(job / "outcomes.tsv"))
        place = self.steps.index((current.run, current.name))
        return NodeProgress(name, (self._former[name] - {place}) | frozenset(range(place)), current=current)


def complete(job: Path, steps: Sequence[Step]) -> frozenset[int]:
    """Places of a job's measurements whose records are complete."""
    recorded = run_files.complete(job)
    return frozenset(place for place, step in enumerate(steps) if step in recorded)


def at_work(log: str, now: float) -> Current | None:
    """What node-run is at by the end of its log, `now` in seconds since 1970; None before it measures."""
    current: Current | None = None
    for line in log.replace("\r", "\n").splitlines():
        if begins := _BEGINS.match(line):
            current = Current(int(begins["run"]), begins["name"], max(0.0, now - _seconds(begins["time"], now)))
        elif current and (time_left := _LEFT.search(line.rstrip())):
            current = Current(current.run, current.name, current.since_s, float(time_left["seconds"]))
    return current


def seconds_of(outcomes: str) -> dict[str, float]:
    """What the measurements of an outcomes.tsv took in seconds, by name; the last of each counts."""
    rows = (line.split("\t") for line in outcomes.splitlines())
    return {row[1]: float(row[4]) for row in rows if len(row) == 7 and row[2] == "done" and _is_number(row[4])}


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", text) is not None


def _seconds(moment: str, otherwise: float) -> float:
    """A moment of a log in seconds since 1970."""
    try:
        return calendar.timegm(time.strptime(moment, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return otherwise


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _tail(path: Path, begin: int) -> str:
    """The end of a log, nothing before byte `begin`."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(begin, end - _TAIL_BYTES) if end >= begin else 0)
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def text_of(path: Path) -> str:
    """A file's text, empty where there is none that can be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def watch(folder: Path) -> CampaignProgress:
    """A campaign to be looked at, with what each measurement is planned to take. Raises NodeprintError without one."""
    config = configuration.kept(folder)
    nodes = [node for node in node_sheet.read_sheet(folder / "nodes.tsv") if node.measure]
    jobs = {node.node: campaigns.job_folder(folder, node) for node in nodes}
    most = max((node.cpus for node in nodes), default=0)
    elsewhere = ["--cpus", f"0-{max(most, 2) - 1}"] if config.launch != "here" else []
    plan = configuration.read_plan((folder / "plan.tsv").read_text(), config.runs)
    planned = {}
    # of an inventory the number of CPUs is not known, and no time before the first node is done
    for row in plan if most or not elsewhere else []:
        with suppress(NodeprintError):  # without it no time can be estimated
            planned[row.name] = (
                plans.seconds(Path("kernels/build"), row.kernel, [*row.arguments.split(), *elsewhere]) + _START_S
            )
    return CampaignProgress(folder, jobs, configuration.steps(plan), planned)


def queue_rows(folder: Path) -> dict[str, list[str]]:
    """The rows of launch/jobs.tsv by node."""
    rows = (line.split("\t") for line in text_of(folder / "launch/jobs.tsv").splitlines())
    return {row[0]: row for row in rows if len(row) == 5}


def by_ansible(row: Sequence[str]) -> bool:
    """Whether a row of jobs.tsv is of Ansible, which gives no numbers to its jobs."""
    return row[2] == ""


def _begun_s(row: Sequence[str] | None) -> float | None:
    """The seconds since Ansible began to measure on a host; None where it does not."""
    now = time.time()
    return max(0.0, now - _seconds(row[4], now)) if row and row[3] in RUNS and by_ansible(row) else None


def _most_wait_for(queue: Mapping[str, Sequence[str]]) -> str:
    """The reason for most of the queued jobs; empty where there are none."""
    reasons = [row[4] for row in queue.values() if row[3] == "PENDING" and row[4] not in ("", "None")]
    return max(set(reasons), key=lambda reason: (reasons.count(reason), reason)) if reasons else ""


# --- words ---


def span(seconds: float) -> str:
    """A time in the one or two units that matter."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def counted(number: int, noun: str) -> str:
    """`number` with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def progress(state: State) -> str:
    """How far the campaign is, the most important first: the end of the line may be cut."""
    total = len(state.nodes) * state.places
    done = sum(len(node.done) for node in state.nodes)
    finished = sum(node.finished for node in state.nodes)
    parts = [f"{done} of {total} measurements"]
    if len(state.nodes) > 1:
        parts.insert(0, f"{finished} of {len(state.nodes)} nodes")
    seconds = state.left_s()
    if seconds is not None:
        parts.append(f"{span(seconds)} left")
    now = next(((node.name, node.current) for node in state.nodes if node.current and not node.finished), None)
    if now:
        name, current = now
        where = f"{name} " if len(state.nodes) > 1 else ""
        parts.append(f"{where}{current.name}, run {current.run}/{state.runs_of(current.name)}")
    elif begun := sum(node.at_work for node in state.nodes):
        parts.append(f"{counted(begun, 'node')} at work, {len(state.nodes) - finished - begun} waiting")
    elif finished < len(state.nodes):
        why = f" (Slurm: {state.waits_for})" if state.waits_for else ""
        parts.append(f"{counted(len(state.nodes) - finished, 'node')} not begun{why}")
    return ", ".join(parts)


def share(state: State) -> float:
    """The part of the campaign that is measured, from 0 to 1."""
    return sum(len(node.done) for node in state.nodes) / max(1, len(state.nodes) * state.places)
