"""The Slurm jobs of a campaign, submitted and followed until each has an outcome or a reason.

What is true of a job is what its status.json says, then squeue, scontrol, and sacct where there is accounting; "no
answer" never means "gone". A job is known by its name and its node, so that a call after one that was killed finds what
is in the queue and submits nothing twice, also where the kill came between sbatch and the note of its number.

The campaign's launch/jobs.tsv has node, job, Slurm's number, state and reason of each; launch/lock is held meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nodeprint import files
from nodeprint.campaign import followed, node_lists, slurm
from nodeprint.errors import NodeprintError, printable
from snakemake_executor_plugin_nodeprint import commands
from snakemake_executor_plugin_nodeprint.commands import Listed, NoAnswerError, RefusedError

#: squeue is asked this long after something changed, then more and more rarely; with many jobs less often.
FIRST_POLL_S, MOST_POLL_S, GROWTH, JOBS_A_SECOND = 1.0, 30.0, 1.3, 100
#: The folders are looked at this often, or so rarely that it takes a hundredth of the time.
LOOK_S, LONGEST_LOOK_S = 0.25, 5.0
#: Jobs are submitted for so long before the others are looked at again.
FILL_S = 1.0
#: So many calls of sbatch wait for their answer at a time: a controller takes some tens a second, each alone a tenth of
#: that.
AT_ONCE = 8
#: A job that ended without an order may have written its outcome a moment before; an orderly one surely has.
CUT_S = 5.0
#: After an interruption the kernels have this long to stop (node-run waits less for its own).
STOP_S = 60.0
#: sbatch refuses by a limit of the user, the account or the QOS. Which one it is stands in a line of its own, where
#: Slurm writes that (man squeue, "JOB REASON CODES"): as many jobs as are allowed, or more than a job may have.
_LIMIT = re.compile(r"violates accounting/QOS policy|(QOS|Assoc)\w+")
_FULL = re.compile(r"\b(QOS|Assoc)\w*(SubmitJob|MaxJobs|GrpJobs)\w*", re.IGNORECASE)
_TOO_MUCH = re.compile(r"\b(QOS|Assoc)(Max|Min|Grp)\w*")
#: What a pending job waits for that does not come by itself: its node is out of service, or it asks for more than it
#: may have, or for what it may not use.
_STUCK = re.compile(
    r"UnavailableNodes:|DOWN, DRAINED|Partition(Time|Node)Limit|BadConstraints|Invalid(Account|QOS)|"
    r"(Account|QOS)NotAllowed|(QOS|Assoc)Max\w*PerJob|QOSMin\w*|(QOS|Assoc)\w*MaxWall\w*"
)
#: So many nodes with the same reason are named at once, the others in one line at the end.
NAMED = 3


def say(text: str) -> None:
    """A line for the terminal and the log; nobody may read along any more."""
    with suppress(OSError):
        print(f"slurm: {printable(text, 600)}", file=sys.stderr, flush=True)


@dataclass
class Job:
    """The job of a node: what it is to Slurm, what Slurm said of it last, and what came of it."""

    folder: Path
    #: What Slurm runs.
    command: str
    #: Options of sbatch.
    options: list[str]
    #: Its name in Slurm.
    name: str
    #: How long its node, its files and Slurm itself are waited for.
    unavailable_s: float
    late_s: float
    silence_s: float
    #: So many jobs of its campaign may be in the queue.
    at_a_time: int = sys.maxsize
    id: str = ""
    state: str = ""
    reason: str = ""
    #: When it was first seen to have ended without status.json, to linger after it, or to wait for its node (seconds).
    since: float | None = None
    outcome: str = ""
    why: str = ""
    #: Whether squeue was asked for it: a former call may have submitted it.
    looked_for: bool = False

    @property
    def node(self) -> str:
        return self.folder.parent.name

    @property
    def campaign(self) -> Path:
        return self.folder.parents[2]

    @property
    def number(self) -> str:
        """Its number among the node's jobs."""
        return self.folder.name.removeprefix("job")


def job_of(folder: Path, command: str, resources: Mapping[str, object]) -> Job:
    """The job of a rule that writes into `folder`."""
    unavailable_s, late_s, silence_s = (float(str(resources[key])) for key in ("unavailable_s", "late_s", "silence_s"))
    options, at_a_time = shlex.split(str(resources["sbatch"])), int(str(resources["at_a_time"]))
    return Job(folder, command, options, str(resources["slurm_name"]), unavailable_s, late_s, silence_s, at_a_time)


# --- what a job said --------------------------------------------------------------------------------------------------


def outcome(folder: Path) -> str:
    """What status.json says; empty while there is none that can be read."""
    try:
        os.scandir(folder).close()  # NFS asks its server for a folder that is opened
        content = json.loads((folder / "status.json").read_text())
    except (OSError, ValueError, RecursionError):
        return ""
    outcome_word = content.get("outcome") if isinstance(content, dict) else None
    return outcome_word if outcome_word in ("complete", "partial", "failed") else ""


def last_words(folder: Path) -> str:
    """Why a job ended by its own words: node-run's last sentence, or else the last line that it wrote."""
    try:
        with (folder / "launch.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 65536))
            text = log.read().decode(errors="replace")
    except OSError:
        return f"it wrote nothing; does the node see {folder.absolute()}, and may it write there?"
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    sentences = [line for line in lines if line.startswith("node-run: ") and "SIG" not in line]
    not_slurms = [line for line in lines if not line.startswith("slurmstepd: ")]
    return next(
        (lines_of[-1] for lines_of in (sentences, not_slurms, lines) if lines_of), "it wrote nothing into launch.log"
    )


# --- the call ---------------------------------------------------------------------------------------------------------


class Launch:
    """The jobs of one campaign. `step` is called again and again; `cancel` may be called beside it."""

    def __init__(self, campaign: Path) -> None:
        self.home = campaign / "launch"
        self.jobs: dict[Path, Job] = {}
        self.most = sys.maxsize  # jobs in the queue, as far as the site asks for and Slurm lets this user
        self.lock = -1
        self.known = False  # whether squeue has answered since the last submission that may have gone through
        self.interval, self.polled, self.looked, self.cost_s = FIRST_POLL_S, -1e9, -1e9, 0.0
        self.silent_since: float | None = None
        self.refused_since: float | None = None  # sbatch takes none of the jobs, and Slurm does not say by which limit
        self.written = ""
        self.alike: dict[str, list[str]] = {}  # nodes without an outcome, by the reason
        self.began = time.monotonic()
        self.waits = self.cancelled = False
        self.stepping = threading.Lock()

    def take(self, job: Job) -> None:
        """Follow a job, too, which may be a new attempt of one."""
        if self.jobs.get(job.folder) is not job:
            self.jobs[job.folder] = job
            self.most = min(self.most, job.at_a_time)
            self.changed()

    def open(self) -> list[Job]:
        """Jobs without an outcome or a reason."""
        return [job for job in self.jobs.values() if not job.outcome]

    @property
    def is_submitting(self) -> bool:
        """Whether jobs are to be submitted that the queue has room for."""
        return self.known and any(not job.id for job in self.open()[: self.most])

    def step(self) -> None:
        """See what came back, ask Slurm where it is time, and submit what may be. Raises NodeprintError."""
        with self.stepping:
            if self.cancelled or not self.jobs or not self.has_lock():
                return
            now = time.monotonic()
            if now - self.looked >= max(LOOK_S, 100 * self.cost_s):
                self.look()
            if now - self.polled >= self.interval and self.open():
                self.poll(now)
            if self.known:
                self.fill()
            self.note()

    def has_lock(self) -> bool:
        """Hold the lock of the campaign's queue: one call at a time submits, also from two login nodes.

        sbatch inherits it, so that the call after one that was killed waits until the job which was just being
        submitted is in the queue.
        """
        if self.lock >= 0:
            return True
        descriptor = files.opened(self.home / "lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            if not self.waits:
                holder = (self.home / "lock").read_text().strip() or "it has just begun"
                say(f"waiting: another call submits the jobs of this campaign ({holder})")
            self.waits = True
            return False
        os.ftruncate(descriptor, 0)
        line = f"pid {os.getpid()} on {socket.gethostname()} since {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n"
        with suppress(OSError):  # a full disk
            os.write(descriptor, line.encode())
        self.lock = descriptor
        return True

    def look(self) -> None:
        """See which nodes have written their outcome."""
        began = time.monotonic()
        for job in self.open():
            if ended := outcome(job.folder):
                self.came_back(job, ended)
        self.looked = time.monotonic()
        self.cost_s = self.looked - began

    def changed(self) -> None:
        """Something happened: ask soon again."""
        self.interval = FIRST_POLL_S + len(self.jobs) / JOBS_A_SECOND / 10

    def names(self) -> list[str]:
        """The names of its jobs in Slurm, each once."""
        return sorted({job.name for job in self.jobs.values()})

    def poll(self, now: float) -> None:
        """Ask squeue of all jobs at once, and settle those that ended."""
        try:
            listed = commands.queue(self.names())
        except NoAnswerError as silence:
            self.silence(now, str(silence))
            return
        self.known, self.polled = True, time.monotonic()
        self.interval = min(MOST_POLL_S, self.interval * GROWTH)
        if self.silent_since is not None:
            say("Slurm answers again")
            self.silent_since = None
        count = 0
        for job in self.open():
            job.looked_for = True
            in_queue = listed.get((job.name, job.node))
            if in_queue and not job.id and in_queue.state not in slurm.ENDED:
                job.id, count = in_queue.id, count + 1
            if job.id:
                self.settle(job, in_queue if in_queue and in_queue.id == job.id else None, now)
        if count:
            say(f"{count} of its jobs are in the queue already, and are followed")

    def silence(self, now: float, answer: str) -> None:
        """No answer: nothing is known, nothing is given up; said once, and the end of the patience is the end."""
        self.known, self.polled = False, time.monotonic()
        self.interval = min(MOST_POLL_S, self.interval * GROWTH)
        if self.silent_since is None:
            say(f"no answer from Slurm ({answer}); jobs that run go on, and it is asked again until it answers")
            self.silent_since = now
        patience_s = min(job.silence_s for job in self.jobs.values())
        if now - self.silent_since > patience_s:
            raise NodeprintError(
                f"no answer from Slurm for {patience_s / 3600:g} h", key="squeue",
                advice="its jobs were left as they are; the next call continues them",
            )  # fmt: skip

    def settle(self, job: Job, listed: Listed | None, now: float) -> None:
        """Take what squeue says of a job; one that ended without an outcome gets its reason when none can come."""
        former, code = job.state, ""
        job.state, job.reason = (listed.state, listed.reason) if listed else ("", "")
        if listed is None or listed.state == "FAILED":
            state, code = commands.how_it_ended(job.id)
            job.state = state or job.state or "ENDED"
        if job.state not in slurm.ENDED and job.state != "ENDED":
            stuck = job.state == "PENDING" and _STUCK.search(job.reason)
            job.since = (job.since or now) if stuck else None
            if stuck:
                self.stuck(job, now)
        elif ended := outcome(job.folder):
            self.came_back(job, ended)
        else:
            job.since = job.since if former == job.state and job.since else now
            orderly = job.state in ("COMPLETED", "ENDED")
            if now - job.since >= (job.late_s if orderly else min(CUT_S, job.late_s)):
                why = slurm.ended(job.id, "" if job.state == "ENDED" else job.state, code)
                if job.state == "ENDED" and (down := commands.state_of(job.node)):
                    why += f"; the node is {down}"
                self.absent(job, f"{why}; {last_words(job.folder)}")
        if job.state != former:
            self.changed()

    def stuck(self, job: Job, now: float) -> None:
        """A job that waits for what does not come by itself waits no longer than for a while."""
        if job.since is None or now - job.since < job.unavailable_s:
            return
        with suppress(NoAnswerError):
            commands.ask("scancel", job.id)
            state = commands.state_of(job.node) if "odes" in job.reason else ""
            why = f"for the node, which is {state}" if state else f"({job.reason})"
            self.absent(job, f"Slurm job {job.id} waited {job.unavailable_s / 60:g} minutes {why}; it was cancelled")

    def came_back(self, job: Job, outcome_word: str) -> None:
        """Its node wrote an outcome."""
        job.outcome = outcome_word
        self.follow(job, ended=True)

    def absent(self, job: Job, why: str) -> None:
        """No outcome will come, and this is why."""
        job.outcome, job.why = "absent", printable(why, 400)
        alike = re.sub(r"\d+", "N", job.why.replace(job.node, "NODE"))
        nodes = self.alike.setdefault(alike, [])
        nodes.append(job.node)
        if len(nodes) <= NAMED:
            say(f"{job.node}: {job.why}")
        self.follow(job, ended=True)

    def fill(self) -> None:
        """Submit as many as may be in the queue, AT_ONCE at a time, or for a second."""
        until = time.monotonic() + FILL_S
        queued = sum(bool(job.id) for job in self.open())
        room = max(0, self.most - queued)
        todo = deque([job for job in self.open() if not job.id and job.looked_for][:room])
        refusals: list[str] = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            waiting: dict[Future[str], Job] = {}
            while todo or waiting:
                while todo and len(waiting) < AT_ONCE and time.monotonic() <= until:
                    job = todo.popleft()
                    waiting[pool.submit(self.submit, job)] = job
                if not waiting:
                    break
                for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                    refusal = self.submitted(waiting.pop(done), done)
                    refusals += [refusal] if refusal else []
                if refusals or not self.known:
                    todo.clear()
        if refusals:
            self.enough(sum(bool(job.id) for job in self.open()), refusals[-1])

    def submit(self, job: Job) -> str:
        """Submit a job; its number. In a thread of its own: what comes of it is noted by `submitted`."""
        job.folder.mkdir(parents=True, exist_ok=True)
        words = [f"--job-name={job.name}", f"--output={job.folder.absolute()}/launch.log", *job.options]
        return commands.submit([*words, f"--wrap=exec {job.command}"], self.lock)

    def submitted(self, job: Job, done: Future[str]) -> str:
        """Take what sbatch said of a job; why it was refused where the user has as many as is allowed."""
        try:
            job.id = done.result()
        except RefusedError as refusal:
            if self.is_full(job, str(refusal), time.monotonic()):
                return str(refusal)
            self.absent(job, f"sbatch refused it: {refusal}")
        except NoAnswerError as silence:
            self.silence(time.monotonic(), str(silence))  # it may be in the queue: squeue knows it by its name
        else:
            job.state, self.refused_since = "PENDING", None
            self.follow(job, ended=False)
        return ""

    def is_full(self, job: Job, refusal: str, now: float) -> bool:
        """Whether a job that sbatch refused is taken when others have ended; where that is not known it is tried for as
        long as a job waits for its node."""
        if not _LIMIT.search(refusal) or (_TOO_MUCH.search(refusal) and not _FULL.search(refusal)):
            return False
        if any(other.id for other in self.open()):
            return True  # ours, which ask for the same, were taken
        self.refused_since = now if self.refused_since is None else self.refused_since
        waited_too_long = now - self.refused_since >= job.unavailable_s
        return commands.user_has_jobs() and (bool(_FULL.search(refusal)) or not waited_too_long)

    def follow(self, job: Job, *, ended: bool) -> None:
        """Note when a job was submitted or had ended by our clock; a full disk must not end the call."""
        now = datetime.now(UTC)
        with suppress(NodeprintError):
            followed.note(job.folder, ended=now) if ended else followed.note(job.folder, submitted=now)
        self.changed()

    def enough(self, queued: int, refusal: str) -> None:
        """The user may have no more jobs for now: some are to end first."""
        if self.most != max(queued, 1):
            say(f"{queued} of its jobs are in the queue, and no more are allowed now ({refusal}); it waits")
        self.most, self.known = max(queued, 1), False  # squeue is asked before the next try

    def note(self) -> None:
        """jobs.tsv, where it changed; a full disk must not end the call."""
        rows = (
            (job.node, job.number, job.id, job.outcome or job.state, job.why or job.reason)
            for job in self.jobs.values()
        )
        text = "".join("\t".join(row) + "\n" for row in rows)
        if text != self.written:
            with suppress(NodeprintError):
                files.write(self.home / "jobs.tsv", text)
                self.written = text

    def cancel(self) -> None:
        """End all jobs that are in the queue, those too whose numbers are not known, and wait for the kernels' end."""
        with self.stepping:
            self.cancelled = True
            until = time.monotonic() + STOP_S
            cancelled: set[str] = set()
            ours = {(job.name, job.node): job for job in self.jobs.values()}
            while ours and self.lock >= 0 and time.monotonic() < until:
                try:
                    listed = commands.queue(self.names())
                    left = [job.id for key, job in listed.items() if key in ours and job.state not in slurm.ENDED]
                    if not left:
                        break
                    if new := [number for number in left if number not in cancelled]:
                        say(f"cancelling {len(new)} Slurm jobs" if len(new) > 1 else f"cancelling Slurm job {new[0]}")
                        commands.ask("scancel", *new)
                        cancelled |= set(new)
                except NoAnswerError as silence:
                    say(f"no answer from Slurm ({silence}); its jobs may go on: `squeue --me` lists them")
                    return
                time.sleep(LOOK_S)
            else:
                if ours and self.lock >= 0:
                    say("jobs are still ending; `squeue --me` lists them")
            for job in self.open():
                job.state = "CANCELLED" if job.id else ""
            self.note()

    def end(self) -> None:
        """Say what came of all."""
        for why, nodes in self.alike.items():
            if len(nodes) > NAMED:
                say(f"{node_lists.fold(nodes[NAMED:])}: for the same reason ({why})")
        if self.jobs and not self.cancelled:
            back = sum(job.outcome not in ("", "absent") for job in self.jobs.values())
            say(f"{back} of {len(self.jobs)} nodes came back in {time.monotonic() - self.began:.0f} s")
