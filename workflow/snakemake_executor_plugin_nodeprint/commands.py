"""Slurm's commands, each called once: their output, a rejection, or no answer."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from nodeprint.campaign import slurm
from nodeprint.errors import NodeprintError, printable

#: A command of Slurm may wait this long for its controller.
ANSWER_S = 60.0
#: sbatch refuses for good; anything else that it says may be a controller that did not answer.
_REFUSED = re.compile(r"Batch job submission failed: |(unrecognized|invalid) option")
#: What begins the lines of Slurm's commands, and says nothing.
_PREFIX = re.compile(r"^\w+: (error: )?(Batch job submission failed: )?")
#: So many of the last lines of a command are kept: a site's job_submit plugin writes its own before Slurm's.
_LINES = 6


class NoAnswerError(Exception):
    """Slurm did not answer, or answered something else: nothing is known."""


class RefusedError(Exception):
    """sbatch rejects this job."""


@dataclass(frozen=True)
class Listed:
    """A job as squeue lists it."""

    id: str
    state: str
    reason: str


def environment() -> dict[str, str]:
    """The caller's, without what would change options or output; accounts and the like are the user's to set."""
    kept = {"SLURM_CONF", "SBATCH_ACCOUNT", "SBATCH_QOS", "SBATCH_WCKEY"}
    dropped = ("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SCANCEL_", "SINFO_", "SCONTROL_")
    words = {key: value for key, value in os.environ.items() if key in kept or not key.startswith(dropped)}
    return words | {"LC_ALL": "C"}


def ask(*words: str, lock: int | None = None) -> str:
    """Return the output of a command of Slurm, which keeps the descriptor `lock` open while it runs.

    Raises NoAnswerError with its last lines, and NodeprintError if the command does not exist.
    """
    # into files: a command may leave a child that holds a pipe open
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        try:
            code = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=error,
                env=environment(),
                timeout=ANSWER_S,
                check=False,
                start_new_session=True,  # a Ctrl-C is not for it
                pass_fds=() if lock is None else (lock,),
            ).returncode
        except FileNotFoundError as missing:
            advice = "run it on a login node of the cluster"
            raise NodeprintError(f"{words[0]} is not on PATH", key="launch", advice=advice) from missing
        except subprocess.TimeoutExpired as late:
            raise NoAnswerError(f"{words[0]}: no answer in {ANSWER_S:.0f} s") from late
        out.seek(0)
        error.seek(0)
        if code:
            lines = error.read().decode(errors="replace").strip().splitlines()
            raise NoAnswerError("\n".join(lines[-_LINES:]) or f"{words[0]} ended with {code}")
        return out.read().decode(errors="replace")


def submit(words: Sequence[str], lock: int) -> str:
    """Submit a job; return its number. Raises RefusedError, or NoAnswerError if the job may or may not be queued."""
    try:
        number, *_ = ask("sbatch", "--parsable", *words, lock=lock).strip().split(";")  # and the cluster's name
        return number
    except NoAnswerError as silence:
        if _REFUSED.search(str(silence)) and not slurm.NO_ANSWER.search(str(silence)):
            lines = [_PREFIX.sub("", line).strip(" .") for line in str(silence).splitlines()]
            raise RefusedError("; ".join(filter(None, lines))) from silence
        raise


def queue(names: Iterable[str], *, ended: bool = False) -> dict[tuple[str, str], Listed]:
    """Return the user's jobs by job name and node: those that wait, run or are ending.

    With `ended`, also all other jobs that Slurm still knows. Raises NoAnswerError.
    """
    which = [f"--name={','.join(names)}", *(["--states=all"] if ended else [])]
    return parse_queue(ask("squeue", "--me", *which, "--noheader", "--format=%j|%n|%i|%T|%r"))


def parse_queue(text: str) -> dict[tuple[str, str], Listed]:
    """Parse the lines of squeue. A queued job of a node counts before ended ones, and a newer one before older ones."""
    rows = [cells for line in text.splitlines() if len(cells := line.split("|", 4)) == 5 and cells[2].isdigit()]
    rows.sort(key=lambda cells: (cells[3] not in slurm.ENDED, int(cells[2])))
    return {(name, node): Listed(number, state, printable(why, 120)) for name, node, number, state, why in rows}


def user_has_jobs() -> bool:
    """Return whether this user has another job in the queue than the one that runs this program (by scrontab, say)."""
    with suppress(NoAnswerError):
        numbers = ask("squeue", "--me", "--noheader", "--format=%A").split()
        return any(number != os.environ.get("SLURM_JOB_ID") for number in numbers)
    return True


def how_it_ended(number: str) -> tuple[str, str, str]:
    """State, exit code and reason of a job that ended: by scontrol, then sacct; empty where nobody knows."""
    with suppress(NoAnswerError):
        return slurm.parse_job(ask("scontrol", "-o", "show", "job", number))
    with suppress(NoAnswerError, NodeprintError):
        if "accounting_storage/none" not in ask("scontrol", "show", "config"):
            return (*slurm.parse_accounting(ask("sacct", "-n", "-X", "-P", "-j", number, "-o", "State,ExitCode")), "")
    return "", "", ""


def state_of(node: str) -> str:
    """Slurm's state and reason of a node that is out of service; empty where it is not, or Slurm does not say."""
    with suppress(NoAnswerError, NodeprintError):
        for row in slurm.parse_sinfo(ask("sinfo", "-h", "-N", "-n", node, "-o", slurm.SINFO_FORMAT)):
            if slurm.why_not(row.state, ours=True, wake=True):
                return f"{row.state}: {row.reason}" if row.reason else row.state
    return ""
