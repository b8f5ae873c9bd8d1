"""A scheduler whose commands print columns: a launcher states the commands (docs/how-to/add-a-launcher.md).

Commands are split into words as a shell does, but no shell runs them. In a pipeline, a scheduler that does not answer
would look like an empty queue.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from string import Template
from typing import ClassVar

from nodeprint.campaign import node_lists
from nodeprint.campaign.launchers import scheduler_commands
from nodeprint.campaign.launchers.launcher import (
    ENDED,
    JobKey,
    JobState,
    NoAnswerError,
    RefusedError,
    Scheduler,
    Submission,
)
from nodeprint.campaign.node_sheet import Node, checked_name, short
from nodeprint.errors import NodeprintError, NoServiceError, printable
from nodeprint.settings.config_file import Config
from nodeprint.settings.texts import say


class CommandScheduler(Scheduler):
    """Calls four commands.

    `submit_command` has `$node`, `$minutes` or `$seconds`, `$name` and `$script`. Its word `$extra` stands for the
    options in scheduler.extra. The word `$jobs` of `cancel_command` stands for the numbers of jobs.
    """

    #: Prints lines of a state and of nodes in it, each a name or a list such as cn[1-4].
    nodes_command: ClassVar[str]
    #: The states of nodes that can run a job, now or after others. Nodes in other states are not measured.
    usable_states: ClassVar[Collection[str]]
    #: The states of jobs as `list_command` prints them, in lines of number, state and name; values as in `JobState`.
    #: A state that is missing here is PENDING.
    job_states: ClassVar[Mapping[str, str]]
    #: What `list_command` writes if it fails because the user has no jobs (a regular expression).
    no_jobs: ClassVar[str] = r"(?!)"
    #: The number of a job in what `submit_command` prints: the first group of a regular expression.
    job_number: ClassVar[str] = r"(\S+)"

    def nodes(self, config: Config) -> list[Node]:
        try:
            states = {
                name: state for state, names in self.listed_nodes() for name in node_lists.expand(names, self.name)
            }
        except NoAnswerError as silence:
            raise NoServiceError(f"no answer ({_line(silence)})", key=shlex.split(self.nodes_command)[0]) from silence
        keys = config.scheduler
        selected = node_lists.expand(keys.nodes, "scheduler.nodes") if keys.nodes else list(states)
        if missing := [name for name in selected if name not in states]:
            advice = f"`{self.nodes_command}` lists the nodes"
            problem = f"{self.title} has no node {printable(missing[0], 60)}"
            raise NodeprintError(problem, key="scheduler.nodes", advice=advice)
        if not selected:
            raise NodeprintError(
                "no node is listed", key=self.nodes_command, advice=f"see whether {self.title} has nodes"
            )
        return [self._node(name, states[name]) for name in selected]

    def _node(self, name: str, state: str) -> Node:
        usable = state in self.usable_states
        name = checked_name(name, self.nodes_command)
        return Node(name, short(name), state=state, reason="" if usable else state, measure=usable)

    def options(self, config: Config, node: Node, minutes: int) -> list[str]:
        words = _replaced(shlex.split(self.submit_command), "$extra", config.scheduler.extra.split())
        return _filled(words, node=node.node, minutes=str(minutes), seconds=str(60 * minutes))

    def submit(self, job: Submission) -> str:
        words = _filled(job.options, name=f"{job.name}.{job.node}", script=job.script)
        try:
            printed = scheduler_commands.ask(*words, lock=job.lock)
        except NoAnswerError as failure:
            listed = self.follow([job.name]).get((job.name, job.node))
            if listed:
                return listed.id
            if isinstance(failure.__cause__, subprocess.TimeoutExpired):  # it may come later
                raise
            raise RefusedError(_line(failure), "unknown") from failure
        number = re.search(self.job_number, printed)
        if not number:
            raise NoAnswerError(f"{words[0]} printed {printable(repr(printed), 60)}")
        return number[1]

    def follow(self, names: Collection[str]) -> dict[JobKey, JobState]:
        states: dict[JobKey, JobState] = {}
        for number, word, name in self.listed_jobs():
            job, _, node = name.partition(".")
            state = self.job_states.get(word, "PENDING")
            if job in names and state not in ENDED:
                states[job, node] = JobState(number, state)
        return states

    def cancel(self, numbers: Collection[str]) -> None:
        scheduler_commands.ask(*_replaced(shlex.split(self.cancel_command), "$jobs", numbers))

    def reason(self, node: str, job: JobState) -> str:
        return say("launch", "ended", title=self.title, job=job.id)

    def listed_nodes(self) -> Iterable[tuple[str, str]]:
        """Yield states and lists of nodes. Raises NoAnswerError."""
        rows = (
            line.split(maxsplit=1) for line in scheduler_commands.ask(*shlex.split(self.nodes_command)).splitlines()
        )
        return [(row[0], row[1]) for row in rows if len(row) == 2]

    def listed_jobs(self) -> Iterable[tuple[str, str, str]]:
        """Yield number, state and name of each of the user's jobs that has not ended. Raises NoAnswerError."""
        try:
            text = scheduler_commands.ask(*shlex.split(self.list_command))
        except NoAnswerError as failure:
            if re.search(self.no_jobs, str(failure)):
                return []
            raise
        rows = [row for line in text.splitlines() if len(row := line.split(maxsplit=2)) == 3]
        if text.strip() and not rows:
            raise NoAnswerError(f"{shlex.split(self.list_command)[0]} printed {printable(repr(text), 60)}")
        return [(row[0], row[1], row[2].strip()) for row in rows]


def _filled(words: Iterable[str], **values: str) -> list[str]:
    """Words with values for their `$` names; other names stay."""
    return [Template(word).safe_substitute(values) for word in words]


def _replaced(words: Sequence[str], name: str, values: Iterable[str]) -> list[str]:
    """Words with several for the word `name`."""
    values = list(values)
    return [value for word in words for value in (values if word == name else [word])]


def _line(failure: NoAnswerError) -> str:
    """The last lines of a command in one line."""
    return "; ".join(filter(None, map(str.strip, str(failure).splitlines())))
