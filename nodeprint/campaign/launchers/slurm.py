"""Slurm: a job of sbatch for each node, followed by squeue.

The state of a job follows from squeue, then scontrol, and sacct if there is accounting. Each command is called once.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Literal

from nodeprint.campaign.launchers import scheduler_commands, slurm_nodes
from nodeprint.campaign.launchers.launcher import (
    ENDED,
    UNKNOWN_END,
    JobKey,
    JobState,
    NoAnswerError,
    RefusedError,
    Scheduler,
    Submission,
)
from nodeprint.campaign.node_sheet import Node
from nodeprint.errors import NodeprintError, printable
from nodeprint.settings.config_file import Config, Slurm
from nodeprint.settings.texts import say, texts

#: sbatch refuses for good; anything else that it says may be a controller that did not answer.
_REFUSED = re.compile(r"Batch job submission failed: |(unrecognized|invalid) option")
#: What begins the lines of Slurm's commands, and says nothing.
_PREFIX = re.compile(r"^\w+: (error: )?(Batch job submission failed: )?")
#: sbatch refuses by a limit of the user, the account or the QOS. Which one it is stands in a line of its own, where
#: Slurm writes that (man squeue, "JOB REASON CODES"): as many jobs as are allowed, or more than a job may have.
_LIMIT = re.compile(r"violates accounting/QOS policy|(QOS|Assoc)\w+")
_FULL = re.compile(r"\b(QOS|Assoc)\w*(SubmitJob|MaxJobs|GrpJobs)\w*", re.IGNORECASE)
_TOO_MUCH = re.compile(r"\b(QOS|Assoc)(Max|Min|Grp)\w*")
#: What a pending job waits for that does not come by itself: its node is out of service, or it asks for more than it
#: may have, or for what it may not use.
_STUCK = re.compile(
    r"UnavailableNodes:|DOWN, DRAINED|Partition(Time|Node)Limit|BadConstraints|Invalid(Account|QOS)|"
    r"not permitted to use this partition|(Account|QOS)NotAllowed|(QOS|Assoc)Max\w*PerJob|QOSMin\w*|"
    r"(QOS|Assoc)\w*MaxWall\w*"
)
#: What Slurm gives as the reason of every job that ended so, or says with the state.
_NO_REASON = ("", "None", "NonZeroExitCode", "TimeLimit")


#: Accounts and the like are the user's to set.
_KEPT = ("SLURM_CONF", "SBATCH_ACCOUNT", "SBATCH_QOS", "SBATCH_WCKEY")
_DROPPED = ("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SCANCEL_", "SINFO_", "SCONTROL_")


class SlurmLauncher(Scheduler):
    """Submits each node's job with sbatch."""

    name, title, section = "slurm", "Slurm", "slurm"
    has_deadlines = True
    submit_command, list_command, cancel_command = "sbatch", "squeue --me", "scancel JOB"
    call_keys: ClassVar = {"partition": "slurm.partition"}

    def nodes(self, config: Config) -> list[Node]:
        return slurm_nodes.find(config.slurm)

    def idle_nodes(self, config: Config) -> Collection[str]:
        return {node.node for node in slurm_nodes.find(config.slurm) if node.state == "idle"}

    def other_nodes(self, former: Mapping[str, Any], config: Config) -> tuple[str, str, str] | None:
        before, now = former.get("slurm", {}).get("partition", config.slurm.partition), config.slurm.partition
        return ("slurm.partition", before, now) if before != now else None

    def fabric_command(self, config: Config, partition: str, minutes: int) -> str:
        asked = shlex.join(allocation_words(partition, config.slurm, minutes))
        return (
            f"srun --mpi=pmix --job-name=linktest {asked}"
            " --nodelist={nodes} --nodes={count} --ntasks={ranks} --ntasks-per-node={per_node} --exclusive --mem=0"
            " --cpu-bind=none --kill-on-bad-exit=1"
        )

    def step(self, config: Config) -> str:
        # Only steps of srun follow --cpu-freq (man sbatch). Since 22.05 srun does not inherit the number of CPUs.
        frequency = config.slurm.cpu_freq
        step = "srun --ntasks=1 --cpus-per-task=$SLURM_CPUS_ON_NODE --mpi=none --cpu-bind=none --cpu-freq="
        return f"{step}{frequency} " if frequency else ""

    def options(self, config: Config, node: Node, minutes: int) -> list[str]:
        return sbatch_words(node, config.slurm, minutes)

    def submit(self, job: Submission) -> str:
        words = [f"--job-name={job.name}", "--output=/dev/null", *job.options, f"--wrap={job.script}"]
        try:
            number, *_ = ask("sbatch", "--parsable", *words, lock=job.lock).strip().split(";")  # and the cluster's name
            return number
        except NoAnswerError as silence:
            if _REFUSED.search(str(silence)) and not slurm_nodes.NO_ANSWER.search(str(silence)):
                lines = [_PREFIX.sub("", line).strip(" .") for line in str(silence).splitlines()]
                reason = "; ".join(filter(None, lines))
                raise RefusedError(reason, limit_of(reason)) from silence
            raise

    def follow(self, names: Collection[str]) -> dict[JobKey, JobState]:
        return queue(names)

    def how_ended(self, jobs: Mapping[str, JobKey]) -> dict[str, JobState]:
        listed = queue({name for name, _ in jobs.values()}, ended=True)
        return {number: _how_ended(number, listed.get(key)) for number, key in jobs.items()}

    def cancel(self, numbers: Collection[str]) -> None:
        ask("scancel", *numbers)

    def reason(self, node: str, job: JobState) -> str:
        why = ended(job.id, "" if job.state == UNKNOWN_END else job.state, job.exit_code, job.reason)
        if job.state == UNKNOWN_END and (down := self.node_state(node)):
            why += f"; the node is {down}"
        return why

    def node_state(self, node: str) -> str:
        with suppress(NoAnswerError, NodeprintError):
            for row in slurm_nodes.parse_sinfo(ask("sinfo", "-h", "-N", "-n", node, "-o", slurm_nodes.SINFO_FORMAT)):
                if slurm_nodes.why_not(row.state, ours=True, wake=True):
                    return f"{row.state}: {row.reason}" if row.reason else row.state
        return ""

    def user_has_jobs(self) -> bool:
        # another one than that which runs this program (by scrontab, say)
        with suppress(NoAnswerError):
            numbers = ask("squeue", "--me", "--noheader", "--format=%A").split()
            return any(number != os.environ.get("SLURM_JOB_ID") for number in numbers)
        return True


def environment() -> dict[str, str]:
    """The caller's, without what would change options or output."""
    return scheduler_commands.environment(_DROPPED, _KEPT)


def ask(*words: str, lock: int | None = None) -> str:
    """Return the output of a command of Slurm. Raises NoAnswerError, and NodeprintError if it does not exist."""
    return scheduler_commands.ask(*words, environment=environment(), lock=lock)


# --- submission -------------------------------------------------------------------------------------------------------


def sbatch_words(node: Node, slurm: Slurm, minutes: int) -> list[str]:
    """Options of sbatch for a job of `minutes` that has all of `node`: every CPU and, whatever DefMemPerNode says, all
    memory. Raises NodeprintError."""
    words = ["--nodes=1", "--ntasks=1", "--exclusive", "--mem=0", "--no-requeue"]
    return [*words, *allocation_words(node.partition, slurm, minutes), f"--nodelist={node.node}"]


def allocation_words(partition: str, slurm: Slurm, minutes: int) -> list[str]:
    """Options of sbatch and srun that say where, for whom and how long. Raises NodeprintError."""
    named = {"--partition": partition} | {f"--{key}": getattr(slurm, key) for key in ("account", "qos", "reservation")}
    options = [f"{option}={value}" for option, value in named.items() if value]
    return [*options, f"--time={minutes}", _deadline(slurm, minutes), *shlex.split(slurm.extra)]


def _deadline(slurm: Slurm, minutes: int) -> str:
    """The option that ends a job which cannot start; Slurm refuses one before the time limit's end."""
    seconds = math.ceil(slurm.deadline_hours * 3600)
    if seconds <= minutes * 60:
        raise NodeprintError(
            f"a job of {minutes} minutes cannot end within {seconds} seconds",
            key="slurm.deadline_hours",
            advice="raise it, or set slurm.minutes",
        )
    return f"--deadline=now+{seconds}seconds"


def limit_of(refusal: str) -> Literal["", "full", "unknown"]:
    """Which limit a rejection of sbatch is about, as `RefusedError` has it."""
    if _FULL.search(refusal):
        return "full"
    return "unknown" if _LIMIT.search(refusal) and not _TOO_MUCH.search(refusal) else ""


# --- the queue --------------------------------------------------------------------------------------------------------


def queue(names: Iterable[str], *, ended: bool = False) -> dict[JobKey, JobState]:
    """Return the user's jobs by job name and node: those that wait, run or are ending.

    With `ended`, also all other jobs that Slurm still knows. Raises NoAnswerError.
    """
    which = [f"--name={','.join(names)}", *(["--states=all"] if ended else [])]
    return parse_queue(ask("squeue", "--me", *which, "--noheader", "--format=%j|%n|%i|%T|%r"))


def parse_queue(text: str) -> dict[JobKey, JobState]:
    """Parse the lines of squeue. A queued job of a node counts before ended ones, and a newer one before older ones."""
    rows = [cells for line in text.splitlines() if len(cells := line.split("|", 4)) == 5 and cells[2].isdigit()]
    rows.sort(key=lambda cells: (cells[3] not in ENDED, int(cells[2])))
    listed = ((name, node, number, state, printable(why, 120)) for name, node, number, state, why in rows)
    return {
        (name, node): JobState(number, state, why, stuck=_stuck(state, why))
        for name, node, number, state, why in listed
    }


def _stuck(state: str, reason: str) -> Literal["", "node", "job"]:
    if state != "PENDING" or not _STUCK.search(reason):
        return ""
    return "node" if "odes" in reason else "job"


def _how_ended(number: str, listed: JobState | None) -> JobState:
    """How a job ended: by squeue, then scontrol, then sacct."""
    of_job = listed if listed and listed.id == number else None
    if of_job is not None and of_job.state != "FAILED":
        return of_job
    state, code, reason = how_it_ended(number)
    before = of_job or JobState(number, "")
    return replace(before, state=state or before.state or UNKNOWN_END, exit_code=code, reason=reason or before.reason)


def how_it_ended(number: str) -> tuple[str, str, str]:
    """State, exit code and reason of a job that ended: by scontrol, then sacct; empty where nobody knows."""
    with suppress(NoAnswerError):
        return parse_job(ask("scontrol", "-o", "show", "job", number))
    with suppress(NoAnswerError, NodeprintError):
        if "accounting_storage/none" not in ask("scontrol", "show", "config"):
            return (*parse_accounting(ask("sacct", "-n", "-X", "-P", "-j", number, "-o", "State,ExitCode")), "")
    return "", "", ""


def ended(job_id: str, state: str, exit_code: str = "", why: str = "") -> str:
    """The end of job `job_id` in a sentence.

    `exit_code` is as scontrol prints it (`2:0`, a code and a signal). `why` is Slurm's word for the reason, the only
    information on a job that never began on its node (man squeue).
    """
    if not state:
        return say("slurm", "forgotten", job=job_id)
    code, _, number = exit_code.partition(":")
    how = f"killed by signal {number}" if number not in ("", "0") else f"exit code {code}" if code else ""
    reason = texts()["slurm"]["ended"].get(state, "") or (how if state == "FAILED" else "")
    by_slurm = f" (Slurm's reason: {printable(why, 120)})" if why not in _NO_REASON else ""
    return f"Slurm job {job_id}: {state}" + (f", {reason}" if reason else "") + by_slurm


def parse_job(text: str) -> tuple[str, str, str]:
    """State, exit code and reason of a job, from `scontrol -o show job ID`; empty where it has none."""
    fields = slurm_nodes.fields_of(text)
    return fields.get("JobState", ""), fields.get("ExitCode", ""), fields.get("Reason", "")


def parse_accounting(text: str) -> tuple[str, str]:
    """State and exit code of a job, from `sacct -n -X -P -o State,ExitCode`; empty where it is not known there."""
    state, _, code = text.strip().partition("\n")[0].partition("|")
    return state.split(" ")[0], code  # CANCELLED by 1000
