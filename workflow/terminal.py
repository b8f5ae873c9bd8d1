"""What a call of the main job shows while it works: the progress of the campaign, read from its folder, and what of
Snakemake's output is worth a line on the terminal."""

from __future__ import annotations

import calendar
import os
import re
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

#: What node-run writes into its log when it begins with a measurement, and what a kernel writes while it measures.
_BEGINS = re.compile(r"^(?P<time>\S+) node-run: run (?P<run>\d+) of \d+: (?P<name>\S+)$")
_LEFT = re.compile(r": \d+ of \d+ \(\d+ %\), (?P<seconds>\d+) s left$")
#: So much of the end of a log is read; a measurement's own lines are less.
_TAIL_BYTES = 16_384

#: Lines of our own programs are shown, apart from those that the progress line replaces.
_OURS = re.compile(r"^(nodeprint|node-run|sweep|ansible): ")
_ROUTINE = re.compile(
    r"^node-run: (node \S+, job |environment: |run \d+ of \d+: |(complete|partial|failed): .*/status\.json$)"
)
_STEP = re.compile(r"^(?:localrule|rule|onerror:) (?P<name>measure|sweep|gather|judge|report)\b")
_FAILED = re.compile(r"^Error in rule (?P<name>\w+):$")
#: How Snakemake begins to say why it ends; the message is the next line.
_ERROR = re.compile(r"^\w+(Error|Exception)( in |:$)")
_UNWRITTEN = re.compile(r"cannot be written|could not be compressed|No space left on device|Disk quota exceeded")
_PLACE = re.compile(r"(?P<path>[^\s:'][^:']*?): (?:measured, but the record file )?(?:cannot be written|could not be)")


@dataclass(frozen=True)
class Current:
    """The measurement that a node is at, the seconds since it began, and those that its kernel says are left."""

    run: int
    name: str
    since_s: float
    left_s: float | None = None


@dataclass(frozen=True)
class Node:
    """How far a node is: the places (of runs x plan, in order) that are behind it; `finished` by its status.json."""

    name: str
    done: frozenset[int]
    finished: bool = False
    current: Current | None = None


@dataclass(frozen=True)
class State:
    """How far a campaign is. `names` is the plan, `weights_s` what a measurement takes; empty where that is unknown."""

    nodes: Sequence[Node]
    names: Sequence[str]
    runs: int
    weights_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def places(self) -> int:
        """Measurements of a node in all of its runs."""
        return self.runs * len(self.names)

    def left_s(self) -> float | None:
        """Seconds until all nodes are measured, if as many go on measuring at a time as do now; None if unknown."""
        at_work = [node for node in self.nodes if node.current and not node.finished]
        if not at_work or not set(self.names) <= set(self.weights_s):
            return None
        left = {node.name: self._of_node(node) for node in self.nodes if not node.finished}
        return max(*(left[node.name] for node in at_work), sum(left.values()) / len(at_work))

    def _of_node(self, node: Node) -> float:
        ahead = [self.weights_s[self.names[place % len(self.names)]] for place in self.ahead(node)]
        now = node.current
        if now is None:
            return sum(ahead)
        of_this = now.left_s if now.left_s is not None else max(0.0, self.weights_s[now.name] - now.since_s)
        return sum(ahead) - self.weights_s[now.name] + of_this

    def ahead(self, node: Node) -> list[int]:
        """Places that a node has not behind it."""
        return [place for place in range(self.places) if place not in node.done]


class Campaign:
    """A campaign's folder, looked at again and again while its nodes are measured."""

    def __init__(self, folder: Path, jobs: Mapping[str, Path], runs: int, planned_s: Mapping[str, float]) -> None:
        """`jobs` are the folders of the nodes' current jobs by node; `planned_s` the kernels' own plans."""
        self.jobs, self.runs = jobs, runs
        rows = (line.split("\t") for line in (folder / "plan.tsv").read_text().splitlines())
        self.names = [row[0] for row in rows]
        self._weights = dict(planned_s)
        self._finished: set[str] = set()
        self._former = {name: complete(job, self.names, runs) for name, job in jobs.items()}
        # what a former attempt logged is none of this one's progress
        self._begin = {name: _size(job / "node-run.log") for name, job in jobs.items()}

    def there(self) -> int:
        """Measurements that were complete before this call."""
        return sum(map(len, self._former.values()))

    def unfinished(self) -> list[str]:
        """Nodes whose job has no outcome."""
        return [name for name, job in self.jobs.items() if not (job / "status.json").exists()]

    def look(self) -> State:
        """How far it is now."""
        nodes = [self._node(name) for name in self.jobs]
        return State(nodes, self.names, self.runs, self._weights)

    def _node(self, name: str) -> Node:
        job, everything = self.jobs[name], frozenset(range(self.runs * len(self.names)))
        if name in self._finished:
            return Node(name, everything, finished=True)
        if (job / "status.json").exists():
            self._finished.add(name)
            self._weights |= seconds_of(_text(job / "outcomes.tsv"))
            return Node(name, everything, finished=True)
        current = at_work(_tail(job / "node-run.log", self._begin[name]), time.time())
        if current is None or current.name not in self.names:
            return Node(name, self._former[name])
        self._weights |= seconds_of(_text(job / "outcomes.tsv"))
        place = (current.run - 1) * len(self.names) + self.names.index(current.name)
        return Node(name, (self._former[name] - {place}) | frozenset(range(place)), current=current)


def complete(job: Path, names: Sequence[str], runs: int) -> frozenset[int]:
    """Places of a job's measurements whose record files are complete."""
    places = ((run, number) for run in range(runs) for number in range(len(names)))
    return frozenset(
        run * len(names) + number for run, number in places if (job / f"run{run + 1}/{names[number]}.jsonl.gz").exists()
    )


def at_work(log: str, now: float) -> Current | None:
    """What node-run is at by the end of its log, `now` in seconds since 1970; None before it measures."""
    current: Current | None = None
    for line in log.replace("\r", "\n").splitlines():
        if begins := _BEGINS.match(line):
            current = Current(int(begins["run"]), begins["name"], max(0.0, now - _seconds(begins["time"], now)))
        elif current and (left := _LEFT.search(line.rstrip())):
            current = Current(current.run, current.name, current.since_s, float(left["seconds"]))
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


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


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


def counted(number: int, of: str) -> str:
    """`number` with its noun."""
    return f"{number} {of}" if number == 1 else f"{number} {of}s"


def progress(state: State) -> str:
    """How far the campaign is, the most important first: the end of the line may be cut."""
    total = len(state.nodes) * state.places
    done = sum(len(node.done) for node in state.nodes)
    finished = sum(node.finished for node in state.nodes)
    parts = [f"{done} of {total} measurements"]
    if len(state.nodes) > 1:
        parts.insert(0, f"{finished} of {len(state.nodes)} nodes")
    left = state.left_s()
    if left is not None:
        parts.append(f"{span(left)} left")
    now = next(((node.name, node.current) for node in state.nodes if node.current and not node.finished), None)
    if now:
        name, current = now
        where = f"{name} " if len(state.nodes) > 1 else ""
        parts.append(f"{where}{current.name}, run {current.run}/{state.runs}")
    elif finished < len(state.nodes):
        parts.append(f"{counted(len(state.nodes) - finished, 'node')} not begun")
    return ", ".join(parts)


def share(state: State) -> float:
    """The part of the campaign that is measured, from 0 to 1."""
    return sum(len(node.done) for node in state.nodes) / max(1, len(state.nodes) * state.places)


def already(there: int, nodes: int, places: int, unfinished: int) -> str:
    """What was measured before this call, in a sentence; empty where nothing was."""
    total = nodes * places
    of = "this node" if nodes == 1 else f"these {nodes} nodes"
    if there == 0:
        return ""
    if not unfinished:
        return f"all measurements of {of} were there already; `make run NODES=a,b` measures nodes again"
    return f"{there} of {total} measurements of {of} were there already and are kept"


def bar(part: float, width: int = 8) -> str:
    """A bar of `width` characters in brackets, `part` of it filled."""
    filled = round(min(1.0, max(0.0, part)) * width)
    return f"[{'#' * filled}{'.' * (width - filled)}]"


# --- Snakemake's output ---


def is_shown(line: str) -> bool:
    """Whether a line of what Snakemake and its jobs write is shown: our programs' own sentences, no routine."""
    return bool(_OURS.match(line)) and not _ROUTINE.match(line)


def step(line: str) -> str | None:
    """The step that begins with a line of Snakemake's output."""
    found = _STEP.match(line)
    return found["name"] if found else None


def failed_step(line: str) -> str | None:
    """The rule that failed by a line of Snakemake's output."""
    found = _FAILED.match(line)
    return found["name"] if found else None


def unwritten(line: str) -> str | None:
    """One sentence where a line says that a file could not be written (a full disk, a quota, a right)."""
    if not _UNWRITTEN.search(line):
        return None
    place = _PLACE.search(line.partition("exit code ")[2].partition(": ")[2] or _OURS.sub("", line))
    reasons = ("No space left on device", "Disk quota exceeded", "Read-only file system", "Permission denied")
    why = next((f" ({reason})" for reason in reasons if reason in line), "")
    what = place["path"] if place else "a file"
    return f"{what}: cannot be written{why}; make room there, then call it again: what was measured is kept"


def reason(lines: Iterable[str]) -> str:
    """Why Snakemake failed, from its output: the rules that failed, or else the message of its own error."""
    kept = [line.strip() for line in lines if line.strip()]
    failed = sorted({name for line in kept if (name := failed_step(line))})
    if failed:
        return f"{' and '.join(failed)} failed"
    for before, line in pairwise(kept):
        if _ERROR.match(before):
            return line.rstrip(".")
    return kept[-1] if kept else "Snakemake was killed"


# --- the screen ---


class Screen:
    """Standard error: sentences, and below them one line that is redrawn in place where it is a terminal.

    Where it is none, the line is written now and then: more rarely the longer it takes, so that a night is no
    thousand lines. A reader who leaves is no error.
    """

    FIRST_S, MOST_S, SHARE = 10.0, 600.0, 0.05

    def __init__(self, verbose: bool) -> None:
        self._live = not verbose and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._drawn = False
        self._line = ""
        self._began = self._written = 0.0

    def say(self, text: str) -> None:
        """Write a line, and the progress below it again."""
        if self._live:
            text = textwrap.fill(text, _columns(), break_long_words=False, break_on_hyphens=False)
        self._write(("\r\x1b[K" if self._drawn else "") + text + "\n")
        self._drawn = False

    def show(self, what: str, text: str, part: float | None = None) -> None:
        """Show what a step does now; with `part`, its share from 0 to 1, also where there is no terminal."""
        if self._live:
            self._draw(what, text, part)
        elif part is not None:
            self._now_and_then(f"nodeprint: {what}: {text}")

    def _now_and_then(self, line: str) -> None:
        now = time.monotonic()
        self._began, self._written = self._began or now, self._written or now
        every = min(self.MOST_S, max(self.FIRST_S, self.SHARE * (now - self._began)))
        if now - self._written >= every and (line != self._line or now - self._written >= 3 * every):
            self._write(line + "\n")
            self._line, self._written = line, now

    def _draw(self, what: str, text: str, part: float | None) -> None:
        drawn = f"{bar(part)} " if part is not None else ""
        self._write("\r" + f"{what} {drawn}{text}"[: _columns() - 1] + "\x1b[K")
        self._drawn = True

    def clear(self) -> None:
        """Take the progress line away."""
        if self._drawn:
            self._write("\r\x1b[K")
        self._drawn = False

    @staticmethod
    def _write(text: str) -> None:
        write(2, text.encode(errors="replace"))


def _columns() -> int:
    return os.get_terminal_size(2).columns or 80


def write(descriptor: int, text: bytes) -> None:
    """Write all of `text`, or as much as somebody reads."""
    with suppress(OSError):
        while text:
            text = text[os.write(descriptor, text) :]
