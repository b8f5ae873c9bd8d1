"""Types for launchers, which list the nodes of a campaign and start node-run on them.

`launch` of config.yaml names one. Another package adds its own by an entry point of the group `nodeprint.launchers`,
which names a class (docs/how-to/add-a-launcher.md). There are three kinds:

    Launcher     lists nodes; Snakemake's `executor` starts node-run (`here`)
    Engine       measures all nodes of a list in one call (`ansible`)
    Scheduler    submits a job for each node; nodeprint's executor follows them all in one call (`slurm`)

A launcher knows its tool and nothing else. Its callers decide when jobs are submitted and how long they are waited for.
They also write status.json for a node that is not measured.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from nodeprint.campaign.node_sheet import Node
from nodeprint.settings.config_file import Config, Jobs
from nodeprint.settings.texts import say

#: Words for the state of a job, those of Slurm (man squeue, "JOB STATE CODES"). A scheduler with others translates
#: them: `launch/jobs.tsv` and `nodeprint status` know these.
QUEUED = ("PENDING", "CONFIGURING")
RUNS = ("RUNNING", "COMPLETING", "SUSPENDED")
ENDED = frozenset(
    (
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    )
)
#: The state of a job that left the queue, and of which the scheduler knows nothing any more.
UNKNOWN_END = "ENDED"

#: By a job's name and its node every call finds it.
JobKey = tuple[str, str]


class NoAnswerError(Exception):
    """The scheduler did not answer, or answered something else: nothing is known."""


class RefusedError(Exception):
    """The scheduler rejects a job.

    `limit` is `full` if the user has as many jobs as allowed, and others must end first. It is `unknown` if that is one
    of several possible reasons, and empty if the job is rejected for good.
    """

    def __init__(self, reason: str, limit: Literal["", "full", "unknown"] = "") -> None:
        super().__init__(reason)
        self.limit = limit


@dataclass(frozen=True)
class Submission:
    """A job to submit: `script`, in sh, on `node` alone, with `options` of the submit command (`Scheduler.options`).

    The submit command keeps the descriptor `lock` open. So a call after a killed one waits until the job which was just
    being submitted is in the queue.
    """

    name: str
    node: str
    options: Sequence[str]
    script: str
    lock: int


@dataclass(frozen=True)
class JobState:
    """A job as the scheduler lists it: its number, its state (`QUEUED`, `RUNS` or `ENDED`), and why it waits or ended.

    `stuck`: it waits until an administrator does something. Its `node` is out of service, or the `job` asks for more
    than it may have. `exit_code` is a code and a signal, such as 2:0, once it has ended; empty if unknown.
    """

    id: str
    state: str
    reason: str = ""
    exit_code: str = ""
    stuck: Literal["", "node", "job"] = ""


class Launcher(ABC):
    """Lists the nodes of a campaign; the Snakemake executor that it names starts node-run on them."""

    #: The value of `launch`.
    name: ClassVar[str]
    #: The tool, as sentences name it.
    title: ClassVar[str]
    #: The executor of Snakemake that starts node-run. Any other is rejected, as it would measure other hosts.
    executor: ClassVar[str] = "local"
    #: Whether this machine is what is measured.
    is_here: ClassVar[bool] = False
    #: Whether the nodes see the directory of the campaign.
    shares_directory: ClassVar[bool] = True
    #: The section of the configuration about its jobs.
    section: ClassVar[str] = "slurm"
    #: The key of the configuration that an option of `make run` replaces: `partition`, `hosts`.
    call_keys: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def nodes(self, config: Config) -> list[Node]:
        """Return the rows of the sample sheet, each node once, those too that are not to be measured and why.

        Raises NodeprintError if the tool does not answer or no node is selected.
        """

    def idle_nodes(self, config: Config) -> Collection[str] | None:
        """Return the nodes that can be measured at once; None if that is unknown."""
        return None

    def check(self, config: Config, path: Path) -> None:  # noqa: B027 (most need nothing)
        """Check what the launcher needs of a configuration. Raises NodeprintError naming `path`, the configuration."""

    def other_nodes(self, former: Mapping[str, Any], config: Config) -> tuple[str, str, str] | None:
        """Return the key by which `config` selects other nodes than the `former` configuration, and its two values."""
        return None

    def jobs(self, config: Config) -> Jobs:
        """Return the section of the configuration about its jobs."""
        return cast(Jobs, getattr(config, self.section))

    def fabric_command(self, config: Config, partition: str, minutes: int) -> str:
        """Return what starts LinkTest's ranks between nodes, with {nodes}, {count}, {ranks} and {per_node}; empty if
        the launcher has no such command."""
        return ""

    def at_an_interruption(self, config: Config, *, jobs_go_on: bool) -> str:
        """Return a sentence about the jobs of an interrupted call; empty if none is needed."""
        return ""


class Engine(Launcher):
    """Measures all nodes of a list in one call, and returns when each has ended."""

    @abstractmethod
    def measure(self, campaign: Path, config: Config, hosts: Sequence[str], listed: Path) -> Mapping[str, str]:
        """Measure `hosts`, and bring the directories of their jobs into the campaign.

        Files of its own begin with the path `listed`. Returns by node why it was given up.
        """


class Scheduler(Launcher):
    """Submits a job for each node, which has that node to itself, and follows it."""

    executor = "nodeprint"
    section = "scheduler"
    #: Whether it ends a job by itself that has not started after `deadline_hours`.
    has_deadlines: ClassVar[bool] = False
    #: The commands by which users submit a job, list theirs and end one, in messages and advice.
    submit_command: ClassVar[str]
    list_command: ClassVar[str]
    cancel_command: ClassVar[str]

    @abstractmethod
    def options(self, config: Config, node: Node, minutes: int) -> list[str]:
        """Return options of the submit command for a job of `minutes` that has all of `node`: its CPUs and its memory.

        Raises NodeprintError.
        """

    @abstractmethod
    def submit(self, job: Submission) -> str:
        """Submit a job, and return its number.

        Raises RefusedError, or NoAnswerError if the job may or may not be in the queue.
        """

    @abstractmethod
    def follow(self, names: Collection[str]) -> dict[JobKey, JobState]:
        """Return the state of each of the user's jobs with these names that wait, run or are ending, by one command.

        Raises NoAnswerError. "No answer" must never look like an empty queue: that would end every job.
        """

    @abstractmethod
    def cancel(self, numbers: Collection[str]) -> None:
        """End jobs. Raises NoAnswerError."""

    @abstractmethod
    def reason(self, node: str, job: JobState) -> str:
        """Return in a sentence why a job that has ended left no outcome: how it ended, and the state of its node.

        Its state is `UNKNOWN_END` if nothing is known of it.
        """

    def how_ended(self, jobs: Mapping[str, JobKey]) -> dict[str, JobState]:
        """Return by number how jobs ended that left the queue, as far as the scheduler knows. Raises NoAnswerError."""
        return {}

    def node_state(self, node: str) -> str:
        """Return the state of a node that is out of service, and why; empty if it is not, or nobody knows."""
        return ""

    def step(self, config: Config) -> str:
        """Return what precedes node-run in a job's command; empty for nothing."""
        return ""

    def user_has_jobs(self) -> bool:
        """Return whether another job of this user is in the queue, which may count for a limit."""
        return True

    def at_an_interruption(self, config: Config, *, jobs_go_on: bool) -> str:
        if jobs_go_on:
            return say("launch", "go_on", title=self.title)
        return say("launch", "canceled", title=self.title, listed=self.list_command, end=self.cancel_command)


def job_name(campaign: Path, job: int | str) -> str:
    """The name of the jobs number `job` of a campaign's nodes: by it and its node a later call finds each."""
    return f"nodeprint-{(campaign / 'id').read_text().strip()}-{job}"
