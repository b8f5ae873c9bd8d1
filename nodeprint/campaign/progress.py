"""Progress of a campaign, read from its directory while its nodes are measured.

The count of complete measurements never falls, in whatever order they come. The time left follows from the plans of the
kernels, the background load before the first measurement, the time of complete measurements, and the limit. Until a
fifth is done it is a range.
"""

from __future__ import annotations

import calendar
import math
import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from nodeprint import reading
from nodeprint.campaign import job_status, node_sheet, plans, run_files
from nodeprint.campaign import preparation as campaigns
from nodeprint.campaign.launchers.launcher import RUNS, Scheduler
from nodeprint.campaign.launchers.launcher_registry import launcher
from nodeprint.errors import NodeprintError
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import COMMAND

#: What node-run writes into its log when it begins with a measurement, and what a kernel writes while it measures.
_BEGINS = re.compile(r"^(?P<time>\S+) node-run: run (?P<run>[0-9]{1,9}) of \d+: (?P<name>\S+)$")
_ATTEMPT = re.compile(r"^(?P<time>\S+) node-run: node \S+, job \d+ on ", re.MULTILINE)
_MOMENT = re.compile(r"^(?P<time>\S+) node-run: ")
_LEFT = re.compile(r": \d+ of \d+ \(\d+%\), (?P<seconds>[0-9]{1,9}) s left$")
#: So much of the end of a log is read; a measurement's own lines, one in 10 s, are less.
_TAIL_BYTES = 1 << 20
#: node-run's own list of what came of each measurement.
_NOTES = "outcomes.tsv"
#: Until this share is done, plans and background load weigh as much as measured times, and the time left is a range of
#: `_LEAST` to `_MOST` times the estimate.
_EARLY, _LEAST, _MOST = 0.2, 0.8, 1.5

#: A run and a measurement.
Step = tuple[int, str]


@dataclass(frozen=True)
class NodeProgress:
    """Progress of a node: the indexes (in the plan's steps) of complete measurements, and of those not taken.

    Those were rejected or failed in this attempt. `ended`: its status.json exists, so nothing more will come.
    `since_s`: the seconds since it began to measure, if known. `called`: its scheduler lets it begin. `measurement` is
    the running one (empty before the first) in its `run`, with the seconds since its begin and the kernel's estimate of
    the rest.
    """

    name: str
    done: frozenset[int]
    untaken: frozenset[int] = frozenset()
    ended: bool = False
    since_s: float | None = None
    called: bool = False
    measurement: str = ""
    run: int = 0
    measured_s: float = 0.0
    left_s: float | None = None

    @property
    def at_work(self) -> bool:
        """Whether it measures now."""
        return not self.ended and (self.measurement != "" or self.since_s is not None)


@dataclass(frozen=True)
class State:
    """How far a campaign is. `steps` are the plan's runs in order, `weights_s` what a measurement takes; empty
    where that is unknown; no node is measured for longer than `limit_s`.

    `waits_for` is the scheduler with its reason for most of the jobs that are queued; empty where there are none.
    """

    nodes: Sequence[NodeProgress]
    steps: Sequence[Step]
    weights_s: Mapping[str, float] = field(default_factory=dict)
    waits_for: str = ""
    limit_s: float = math.inf

    @property
    def done(self) -> int:
        """Measurements of all nodes that are complete, all runs counted."""
        return sum(len(node.done) for node in self.nodes)

    @property
    def untaken(self) -> int:
        """Those that were rejected, failed, or were lost with their node."""
        return sum(self.places - len(node.done) if node.ended else len(node.untaken) for node in self.nodes)

    @property
    def total(self) -> int:
        """Those that were asked for."""
        return len(self.nodes) * self.places

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
        seconds = {node.name: self._of_node(node) for node in self.nodes if not node.ended}
        at_a_time = sum(node.at_work or node.called for node in self.nodes if not node.ended)
        # what takes longer than another node did has an unknown time left, and not none
        return max(*(seconds[node.name] for node in at_work), sum(seconds.values()) / at_a_time) or None

    def left_of(self, node: NodeProgress) -> float | None:
        """Seconds until a node is measured; None if unknown."""
        return self._of_node(node) if self._weights_known() else None

    def _weights_known(self) -> bool:
        return {name for _, name in self.steps} <= set(self.weights_s)

    def _of_node(self, node: NodeProgress) -> float:
        until_limit_s = max(0.0, self.limit_s - (node.since_s or 0.0))
        at = self.steps.index((node.run, node.measurement)) if node.measurement else -1
        ahead = set(range(self.places)) - node.done - node.untaken - {at}
        seconds = sum(self.weights_s[self.steps[place][1]] for place in ahead)
        if not node.measurement:
            return min(until_limit_s, max(0.0, seconds - (node.since_s or 0.0)))
        planned_s = max(0.0, self.weights_s[node.measurement] - node.measured_s)
        of_this = node.left_s if node.left_s is not None else planned_s
        return min(until_limit_s, seconds + of_this)


class CampaignProgress:
    """The progress of a campaign's directory, read repeatedly while its nodes are measured."""

    def __init__(
        self,
        folder: Path,
        jobs: Mapping[str, Path],
        steps: Sequence[Step],
        planned_s: Mapping[str, float],
        limit_s: float = math.inf,
        title: str = "",
        limits: Collection[str] = (),
    ) -> None:
        """`jobs` are the directories of the nodes' current jobs by node. `planned_s` are the kernels' own plans,
        `limit_s` is the scheduler's time limit for a job, and `title` is how sentences name the scheduler. The plans of
        `limits` are the time limits of the site's commands, which say nothing of the speed of kernels."""
        self.folder, self.jobs, self.steps = folder, jobs, list(steps)
        self._seen: State | None = None
        self._until = 0.0
        self._planned, self._taken, self._limit_s = dict(planned_s), dict[str, float](), limit_s
        self._title, self._limits = title, frozenset(limits)
        self._slowdown = 1.0
        self._ended: dict[str, NodeProgress] = {}
        self._done = {name: complete(job, self.steps) for name, job in jobs.items()}
        self._before = sum(map(len, self._done.values()))
        # what a former attempt logged and noted is none of this one's progress
        self._begin = {name: (_size(job / "node-run.log"), _size(job / _NOTES)) for name, job in jobs.items()}

    def measured_before(self) -> int:
        """Measurements that were complete before this call."""
        return self._before

    def forget_begin(self) -> None:
        """Count the log of the attempt that is running, or was the last."""
        self._begin = dict.fromkeys(self.jobs, (0, 0))

    def assume_load(self, busy_cpus: float, cpus: int) -> None:
        """Plan for background load that takes `busy_cpus` of `cpus`: a kernel gets its share of each CPU."""
        self._slowdown = 1 + busy_cpus / max(cpus, 1)

    def unfinished(self) -> list[str]:
        """Nodes whose job has no outcome, nor a reason why none will come."""
        return [name for name, job in self.jobs.items() if not _has_ended(job)]

    def look(self) -> State:
        """How far it is now."""
        queue, lost = queue_rows(self.folder), _lost_hosts(self.folder)
        nodes = [self._node(name, queue.get(name), name in lost) for name in self.jobs]
        reason = _most_wait_for(queue)
        waits_for = f"{self._title}: {reason}" if reason else ""
        return State(nodes, self.steps, self._weights(), waits_for, self._limit_s)

    def glance(self) -> State:
        """How far it was a moment ago: with many nodes it takes a hundredth of the time to look."""
        now = time.monotonic()
        if self._seen is None or now >= self._until:
            self._seen = self.look()
            self._until = time.monotonic() + 100 * (time.monotonic() - now)
        return self._seen

    def _weights(self) -> dict[str, float]:
        """Return the seconds of each measurement: as it took, or its plan on the scale of the others.

        The first, short measurements say little of the others. So the expected slowdown counts as if a fifth of the
        plan had confirmed it.
        """
        both = (set(self._planned) & set(self._taken)) - self._limits
        planned_s, taken_s = (sum(seconds[name] for name in both) for seconds in (self._planned, self._taken))
        expected_s = _EARLY * sum(seconds for name, seconds in self._planned.items() if name not in self._limits)
        scale = (self._slowdown * expected_s + taken_s) / (expected_s + planned_s) if expected_s else 1.0
        planned = {
            name: seconds if name in self._limits else seconds * scale for name, seconds in self._planned.items()
        }
        return planned | self._taken

    def _node(self, name: str, row: Sequence[str] | None, lost: bool) -> NodeProgress:
        if name in self._ended:
            return self._ended[name]
        job, (log_begin, notes_begin) = self.jobs[name], self._begin[name]
        ended = lost or _has_ended(job)
        notes = text_of(job / _NOTES)
        self._taken |= seconds_of(notes)
        # a record that is found damaged is measured again, and counts once
        self._done[name] |= complete(job, self.steps)
        if ended:
            self._ended[name] = NodeProgress(name, self._done[name], ended=True)
            return self._ended[name]
        untaken = frozenset(self.steps.index(step) for step in untaken_of(notes[notes_begin:]) if step in self.steps)
        so_far = NodeProgress(name, self._done[name], untaken - self._done[name])
        now = time.time()
        before, logged = _logged(job / "node-run.log", log_begin)
        running = at_work(so_far, logged, now)
        if running is so_far and _is_of_kernel(logged):  # of an attempt that was at work before this call looked
            running = at_work(so_far, before + logged, now)
        if (running.run, running.measurement) in self.steps:
            return replace(running, since_s=_since(_MOMENT.match(logged), now))
        # before the first measurement the node is surveyed; a job that waits for another has not said that it begins
        begun_s = _begun_s(row)
        since_s = begun_s if begun_s is not None else _since(_ATTEMPT.search(logged), now)
        return replace(so_far, since_s=since_s, called=_is_called(row))


def _has_ended(job: Path) -> bool:
    """Whether a job has an outcome."""
    return (job / job_status.NAME).exists()


def complete(job: Path, steps: Sequence[Step]) -> frozenset[int]:
    """Places of a job's measurements whose records are complete."""
    recorded = run_files.complete(job)
    return frozenset(place for place, step in enumerate(steps) if step in recorded)


def at_work(node: NodeProgress, log: str, now: float) -> NodeProgress:
    """A node with the measurement at the end of its log, `now` in seconds since 1970; itself if there is none."""
    for line in log.replace("\r", "\n").splitlines():
        if begins := _BEGINS.match(line):
            measured_s = max(0.0, now - _seconds(begins["time"], now))
            node = replace(node, measurement=begins["name"], run=int(begins["run"]), measured_s=measured_s, left_s=None)
        elif node.measurement and (time_left := _LEFT.search(line.rstrip())):
            node = replace(node, left_s=float(time_left["seconds"]))
    return node


def seconds_of(outcomes: str) -> dict[str, float]:
    """The times of measurements in an outcomes.tsv in seconds, by name; the last of each counts."""
    rows = (line.split("\t") for line in outcomes.splitlines())
    return {row[1]: float(row[4]) for row in rows if len(row) == 7 and row[2] == "done" and _is_number(row[4])}


def untaken_of(outcomes: str) -> set[Step]:
    """Run and name of the measurements that failed or were rejected, by lines of an outcomes.tsv; the last one
    counts."""
    rows = (line.split("\t") for line in outcomes.splitlines())
    last = {
        (run, row[1]): row[2] for row in rows if len(row) == 7 and (run := reading.whole_number(row[0])) is not None
    }
    return {step for step, outcome in last.items() if outcome != "done"}


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) is not None


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


def _logged(path: Path, begin: int) -> tuple[str, str]:
    """The end of a log in two: before byte `begin`, and after it; all of a new log that is shorter."""
    try:
        with reading.opened(path) as file:
            end = file.seek(0, os.SEEK_END)
            first = file.seek(max(0, end - _TAIL_BYTES))
            log = file.read()
    except OSError:
        return "", ""
    at = max(0, begin - first) if end >= begin else 0
    return log[:at].decode(errors="replace"), log[at:].decode(errors="replace")


def _is_of_kernel(logged: str) -> bool:
    """Whether a log has a kernel's own line: node-run logs which measurement it begins with before."""
    return any(line.strip() and not _MOMENT.match(line) for line in logged.splitlines()[-1:])


def _since(line: re.Match[str] | None, now: float) -> float | None:
    """The seconds since a line was logged; None without one."""
    return max(0.0, now - _seconds(line["time"], now)) if line else None


def text_of(path: Path) -> str:
    """A file's text, empty where there is none that can be read."""
    try:
        return reading.text(path)
    except OSError:
        return ""


def watch(folder: Path, only: Collection[str] = ()) -> CampaignProgress:
    """A campaign to watch, or `only` some of its nodes, with the planned time of each measurement.

    Raises NodeprintError if there is none.
    """
    config = configuration.kept(folder)
    named = launcher(config.launch)
    nodes = [node for node in node_sheet.read_sheet(folder / "nodes.tsv") if node.measure]
    nodes = [node for node in nodes if not only or node.node in only]
    jobs = {node.node: campaigns.job_folder(folder, node) for node in nodes}
    most = max((node.cpus for node in nodes), default=0)
    elsewhere = ["--cpus", f"0-{max(most, 2) - 1}"] if not named.is_here else []
    plan = configuration.read_plan(reading.required(folder / "plan.tsv"), config.runs)
    planned = {}
    # of an inventory the number of CPUs is not known, and no time before the first node is done
    for row in plan if most or not elsewhere else []:
        with suppress(NodeprintError):  # without it no time can be estimated
            arguments = [*row.arguments.split(), *elsewhere]
            planned[row.name] = plans.process_seconds(Path("kernels/build"), row.kernel, arguments)
    minutes = named.jobs(config).minutes if isinstance(named, Scheduler) else 0
    limit_s = 60.0 * minutes if minutes else math.inf
    limits = [row.name for row in plan if row.kernel == COMMAND]
    return CampaignProgress(folder, jobs, configuration.steps(plan), planned, limit_s, named.title, limits)


def queue_rows(folder: Path) -> dict[str, list[str]]:
    """The rows of launch/jobs.tsv by node."""
    rows = (line.split("\t") for line in text_of(folder / "launch/jobs.tsv").splitlines())
    return {row[0]: row for row in rows if len(row) == 5}


def by_engine(row: Sequence[str]) -> bool:
    """Whether a row of jobs.tsv is of an engine such as Ansible, which gives no numbers to its jobs."""
    return row[2] == ""


def _begun_s(row: Sequence[str] | None) -> float | None:
    """The seconds since an engine began to measure on a host; None where it does not."""
    now = time.time()
    return max(0.0, now - _seconds(row[4], now)) if row and row[3] in RUNS and by_engine(row) else None


def _is_called(row: Sequence[str] | None) -> bool:
    """Whether its scheduler has nothing against that a job begins, or has begun it."""
    if not row or by_engine(row):
        return False
    return row[3] in (*RUNS, "CONFIGURING") or (row[3] == "PENDING" and row[4] in ("", "None"))


def _lost_hosts(folder: Path) -> set[str]:
    """The hosts that an engine has given up, while it goes on with the others."""
    lists = (folder / "launch").glob("*.reasons")
    return {line.partition("\t")[0] for path in lists for line in text_of(path).splitlines()}


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


def time_left(seconds: float | None, measured: float) -> str:
    """Return the time left in words, empty if it is unknown; a range until the share `measured` is a fifth."""
    if seconds is None:
        return ""
    if measured >= _EARLY:
        return f"{span(seconds)} left"
    least, most = (_rough(factor * seconds).split() for factor in (_LEAST, _MOST))
    unit = "" if least[1] == most[1] else f" {least[1]}"
    return f"{least[0]}{unit} to {most[0]} {most[1]} left" if least != most else f"about {' '.join(most)} left"


def _rough(seconds: float) -> str:
    """Return a time in tens of seconds, minutes or hours."""
    if seconds < 95:
        return f"{max(10, 10 * round(seconds / 10))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600, 1):g} h"


def counted(number: int, noun: str) -> str:
    """`number` with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def progress(state: State) -> str:
    """How far the campaign is, the most important first: the end of the line may be cut."""
    ended = sum(node.ended for node in state.nodes)
    parts = [f"{state.done} of {state.total} measurements"]
    if len(state.nodes) > 1:
        parts.insert(0, f"{ended} of {len(state.nodes)} nodes")
    if state.untaken:
        parts.append(f"{state.untaken} not taken")
    if text := time_left(state.left_s(), share(state)):
        parts.append(text)
    now = next((node for node in state.nodes if node.measurement and not node.ended), None)
    if now:
        where = f"{now.name} " if len(state.nodes) > 1 else ""
        parts.append(f"{where}{now.measurement}, run {now.run}/{state.runs_of(now.measurement)}")
    elif begun := sum(node.at_work for node in state.nodes):
        waiting = len(state.nodes) - ended - begun
        parts.append(f"{counted(begun, 'node')} at work" + (f", {waiting} waiting" if waiting else ""))
    elif ended < len(state.nodes):
        why = f" ({state.waits_for})" if state.waits_for else ""
        parts.append(f"{counted(len(state.nodes) - ended, 'node')} not begun{why}")
    return ", ".join(parts)


def share(state: State) -> float:
    """The part of the campaign that is measured, or will not be, from 0 to 1."""
    return (state.done + state.untaken) / max(1, state.total)
