"""A scheduler's jobs of a campaign, submitted and followed until each has an outcome or a reason.

The state of a job follows from its status.json, then from its launcher. "No answer" never means "gone". Name and node
identify a job. So a call after a killed one finds the queued jobs and submits nothing twice, even if the kill
came right after a submission.

The campaign's launch/jobs.tsv has node, job, the scheduler's number, state and reason of each. The call holds
launch/lock.
"""

from __future__ import annotations

import fcntl
import math
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

from nodeprint import files, reading
from nodeprint.campaign import followed, job_status, node_lists
from nodeprint.campaign.launchers.launcher import (
    ENDED,
    QUEUED,
    UNKNOWN_END,
    JobKey,
    JobState,
    NoAnswerError,
    RefusedError,
    Submission,
)
from nodeprint.campaign.launchers.launcher_registry import scheduler
from nodeprint.errors import CannotWriteError, NodeprintError, printable
from nodeprint.settings import config as configuration

#: The queue is asked for a second later for each hundred jobs in it.
JOBS_A_SECOND = 100
#: So many jobs that ended without an outcome are asked about in one turn.
ASKED_EACH = 20
#: The folders are looked at this often, or so rarely that it takes a hundredth of the time.
LOOK_S, LONGEST_LOOK_S = 0.25, 5.0
#: Jobs are submitted for so long before the others are looked at again: with 5,000 jobs that takes 60 ms.
FILL_S = 5.0
#: So many submissions wait for their answer at a time: a busy controller answers late.
AT_ONCE = 8
#: A job that ended without an order may have written its outcome a moment before; an orderly one surely has.
CUT_S = 5.0
#: After an interruption the kernels have this long to stop (node-run waits less for its own).
STOP_S = 60.0
#: So many nodes with the same reason are named at once, the others in one line at the end.
NAMED = 3


@dataclass
class Job:
    """The job of a node: its request to the scheduler, its last state there, and its outcome."""

    folder: Path
    #: What the scheduler runs.
    command: str
    #: Options of the submit command.
    options: list[str]
    #: Its name in the scheduler.
    name: str
    #: How long its node, its files and the scheduler itself are waited for.
    unavailable_s: float
    late_s: float
    silence_s: float
    #: So many jobs of its campaign may be in the queue, and so many are submitted in a second.
    at_a_time: int
    per_second: float
    #: The queue is asked for this often.
    poll_s: float
    id: str = ""
    state: str = ""
    reason: str = ""
    #: Its exit code, once it has ended, as the launcher has it.
    code: str = ""
    #: When it was first seen to wait for its node, and to have ended without an outcome (seconds).
    since: float | None = None
    ended_s: float | None = None
    outcome: str = ""
    why: str = ""
    #: Whether the queue was asked for it: a former call may have submitted it.
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

    @property
    def key(self) -> JobKey:
        """Its name and node, which identify it in the scheduler."""
        return self.name, self.node


def job_of(folder: Path, command: str, resources: Mapping[str, object]) -> Job:
    """The job of a rule that writes into `folder`."""

    def number(key: str) -> float:
        return float(str(resources[key]))

    return Job(
        folder,
        command,
        shlex.split(str(resources["submit_options"])),
        str(resources["job_name"]),
        number("unavailable_s"),
        number("late_s"),
        number("silence_s"),
        int(number("at_a_time")),
        number("per_second"),
        number("poll_s"),
    )


def script(folder: Path, command: str) -> str:
    """Return the script that the scheduler runs: `command`, with its output in launch.log in `folder`.

    A scheduler would open a log by its name. That may be a symbolic link of another user in a shared directory, or a
    pipe without a reader. So it writes nothing (into /dev/null). The script opens a new file (`set -C` is O_EXCL)
    and renames it. It changes into the directory of this call, as some schedulers start a job elsewhere.
    """
    log = shlex.quote(str(folder.absolute() / "launch.log"))
    new = f"{shlex.quote(str(folder.absolute()))}/.launch.$(cat /proc/sys/kernel/random/uuid)"
    begin = f'set -C\nlog={new}\nexec >"$log" 2>&1\nset +C\n[ -d {log} ] || mv -f "$log" {log}'
    return f"{begin}\ncd {shlex.quote(str(Path.cwd()))}\nexec {command}"


# --- what a job said --------------------------------------------------------------------------------------------------


def outcome(folder: Path) -> str:
    """Return the outcome of a job from its status.json; empty while no readable one exists."""
    with suppress(OSError):
        os.scandir(folder).close()  # NFS asks its server for a folder that is opened
    status = job_status.known(folder)
    return status.outcome if status is not None else ""


def is_late(job: Job) -> bool:
    """Return whether a job that waits was submitted longer ago than its deadline; a call after this one sees it too."""
    try:
        submitted = datetime.fromisoformat(followed.read(job.folder).submitted)
    except ValueError:  # nobody noted when
        return False
    return (datetime.now(UTC) - submitted).total_seconds() > job.silence_s


def last_words(folder: Path) -> str:
    """Why a job ended by its own words: node-run's last sentence, or else the last line that it wrote."""
    try:
        with reading.opened(folder / "launch.log") as log:
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
    """The jobs of one campaign. `step` is called repeatedly; `cancel` may run at the same time."""

    def __init__(self, campaign: Path) -> None:
        self.home = campaign / "launch"
        self.launcher = scheduler(configuration.kept(campaign).launch)
        self.jobs: dict[Path, Job] = {}
        self.most = sys.maxsize  # jobs in the queue, as far as the site asks for and the scheduler lets this user
        self.lock = -1
        self.known = False  # whether the queue is known since the last submission that may have gone through
        self.polled, self.looked, self.cost_s = -1e9, -1e9, 0.0
        self.next_submission = -1e9  # when the next one may be
        self.poll_s = math.inf
        self.asked: set[str] = set()  # the names of jobs that the queue was asked for
        self.listed: dict[JobKey, JobState] = {}  # its last answer
        self.noted = -1e9
        self.silent_since: float | None = None
        self.refused_since: float | None = None  # it takes none of the jobs, and does not say by which limit
        self.written = ""
        self.alike: dict[str, list[str]] = {}  # nodes without an outcome, by the reason
        self.began = time.monotonic()
        self.waits = self.canceled = False
        self.stepping = threading.Lock()

    def say(self, text: str) -> None:
        """Print a line for the terminal and the log, whose reader may be gone."""
        with suppress(OSError):
            print(f"{self.launcher.name}: {printable(text, 600)}", file=sys.stderr)

    def take(self, job: Job) -> None:
        """Follow a job, too, which may be a new attempt of one."""
        if self.jobs.get(job.folder) is not job:
            self.jobs[job.folder] = job
            self.most = min(self.most, job.at_a_time)
            self.poll_s = min(self.poll_s, job.poll_s)
            self.adopt(job)

    def adopt(self, job: Job) -> bool:
        """Take over a job that a former call has submitted; whether it did. Only this call submits while it has the
        lock, so any answer about the queue since then has it."""
        job.looked_for = job.name in self.asked
        in_queue = self.listed.get(job.key)
        if job.id or not in_queue or in_queue.state in ENDED:
            return False
        job.id = in_queue.id
        return True

    def open(self) -> list[Job]:
        """Jobs without an outcome or a reason."""
        return [job for job in self.jobs.values() if not job.outcome]

    @property
    def is_submitting(self) -> bool:
        """Whether jobs are to be submitted that the queue has room for."""
        return self.known and any(not job.id for job in self.open()[: self.most])

    def step(self) -> None:
        """See what came back, ask the scheduler where it is time, and submit what may be. Raises NodeprintError."""
        with self.stepping:
            if self.canceled or not self.jobs or not self.has_lock():
                return
            now = time.monotonic()
            if now - self.looked >= max(LOOK_S, 100 * self.cost_s):
                self.look()
            if self.is_time_to_ask(now):
                self.poll(now)
            self.settle(now)
            if self.known:
                self.fill()
            if now - self.noted >= max(LOOK_S, 100 * self.cost_s):
                self.note()
                self.noted = now

    def has_lock(self) -> bool:
        """Hold the lock of the campaign's queue: one call at a time submits, also from two login nodes.

        The submit command inherits it. So the call after one that was killed waits until the job which was just being
        submitted is in the queue.
        """
        if self.lock >= 0:
            return True
        descriptor = files.opened(self.home / "lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "it has just begun"
            os.close(descriptor)
            if not self.waits:
                self.say(f"waiting: another call submits the jobs of this campaign ({holder})")
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
            self.is_back(job)
        self.looked = time.monotonic()
        self.cost_s = self.looked - began

    def is_time_to_ask(self, now: float) -> bool:
        """Whether the queue is asked for: at once where it may have jobs of a former call, and then at intervals."""
        in_queue = [job for job in self.open() if job.id]
        is_new = any(not job.looked_for for job in self.open())  # as those of a recheck, which have another name
        if now - self.polled < self.poll_s + len(in_queue) / JOBS_A_SECOND:
            return self.silent_since is None and is_new
        return bool(in_queue) or is_new or not self.known

    def names(self) -> list[str]:
        """The names of its jobs in the scheduler, each once."""
        return sorted({job.name for job in self.jobs.values()})

    def poll(self, now: float) -> None:
        """Ask for the state of all jobs at once, and look at each that is new in the queue or gone from it."""
        names = self.names()
        try:
            self.listed = self.launcher.follow(names)
            gone = [job for job in self.open() if job.id and not self.is_listed(job) and job.ended_s is None]
            gone = [job for job in gone if not self.is_back(job)]
            gone = gone[:ASKED_EACH]
            ends = self.launcher.how_ended({job.id: job.key for job in gone}) if gone else {}
        except NoAnswerError as silence:
            self.silence(now, str(silence))
            return
        self.known, self.polled, self.asked = True, time.monotonic(), set(names)
        if self.silent_since is not None:
            self.say(f"{self.launcher.title} answers again")
            self.silent_since = None
        if count := sum(self.adopt(job) for job in self.open()):
            self.say(f"{count} of its jobs are in the queue already, and are followed")
        for job in self.open():
            if job.id and self.is_listed(job):
                self.wait_or_run(job, self.listed[job.key], now)
        for job in gone:
            self.gone(job, ends.get(job.id, JobState(job.id, UNKNOWN_END)), now)
        self.settle(now)

    def is_listed(self, job: Job) -> bool:
        """Whether a job is in the queue."""
        listed = self.listed.get(job.key)
        return listed is not None and listed.id == job.id and listed.state not in ENDED

    def silence(self, now: float, answer: str) -> None:
        """Report once that the scheduler does not answer, and raise NodeprintError after the longest wait."""
        self.known, self.polled = False, time.monotonic()
        if self.silent_since is None:
            silent = f"no answer from {self.launcher.title} ({answer})"
            self.say(f"{silent}; jobs that run go on, and it is asked again until it answers")
            self.silent_since = now
        patience_s = min(job.silence_s for job in self.jobs.values())
        if now - self.silent_since > patience_s:
            raise NodeprintError(
                f"no answer from {self.launcher.title} for {patience_s / 3600:g} h",
                key=self.launcher.list_command.split()[0],
                advice="its jobs were left as they are; the next call continues them",
            )

    def wait_or_run(self, job: Job, listed: JobState, now: float) -> None:
        """Take the state of a queued job, also of one that ended and was requeued."""
        job.state, job.reason, job.ended_s = listed.state, listed.reason, None
        job.since = (job.since or now) if listed.stuck else None
        if listed.stuck:
            self.stuck(job, listed, now)
        elif job.state in QUEUED and not self.launcher.has_deadlines and is_late(job):
            with suppress(NoAnswerError):
                self.launcher.cancel([job.id])
                why = f"did not start within {job.silence_s / 3600:g} hours; it was canceled"
                self.absent(job, f"{self.launcher.title} job {job.id} {why}")

    def gone(self, job: Job, end: JobState, now: float) -> None:
        """Record how a job ended that left the queue, once."""
        job.state, job.code, job.reason = end.state, end.exit_code, end.reason
        if job.state in ENDED or job.state == UNKNOWN_END:
            job.ended_s = now

    def settle(self, now: float) -> None:
        """Give the jobs that ended without an outcome their reason when none can come any more."""
        for job in [job for job in self.open() if job.ended_s is not None][:ASKED_EACH]:
            orderly = job.state in ("COMPLETED", UNKNOWN_END)
            patience_s = job.late_s if orderly else min(CUT_S, job.late_s)
            if not self.is_back(job) and job.ended_s is not None and now - job.ended_s >= patience_s:
                why = self.launcher.reason(job.node, JobState(job.id, job.state, job.reason, job.code))
                self.absent(job, f"{why}; {last_words(job.folder)}")

    def is_back(self, job: Job) -> bool:
        """Whether a job's node has written its outcome."""
        if ended := outcome(job.folder):
            self.came_back(job, ended)
        return bool(ended)

    def stuck(self, job: Job, listed: JobState, now: float) -> None:
        """Cancel a job that has waited too long for something that needs an administrator."""
        if job.since is None or now - job.since < job.unavailable_s:
            return
        with suppress(NoAnswerError):
            self.launcher.cancel([job.id])
            state = self.launcher.node_state(job.node) if listed.stuck == "node" else ""
            why = f"for the node, which is {state}" if state else f"({job.reason})"
            minutes, name = f"{job.unavailable_s / 60:g} minutes", f"{self.launcher.title} job {job.id}"
            waited = f"waited {minutes} {why}" if job.state in QUEUED else f"was followed for {minutes} {why}"
            self.absent(job, f"{name} {waited}; it was canceled")

    def came_back(self, job: Job, outcome_word: str) -> None:
        """Its node wrote an outcome."""
        job.outcome = outcome_word
        self.follow(job, ended=True)

    def absent(self, job: Job, why: str) -> None:
        """No outcome will come, and this is why."""
        self.listed.pop(job.key, None)
        job.outcome, job.why = "absent", printable(why, 400)
        alike = re.sub(r"\d+", "N", job.why.replace(job.node, "NODE"))
        nodes = self.alike.setdefault(alike, [])
        nodes.append(job.node)
        if len(nodes) <= NAMED:
            self.say(f"{job.node}: {job.why}")
        self.follow(job, ended=True)

    def fill(self) -> None:
        """Submit as many as may be in the queue, so many a second and AT_ONCE at a time, or for FILL_S."""
        until = time.monotonic() + FILL_S
        queued = sum(bool(job.id) for job in self.open())
        room = max(0, self.most - queued)
        todo = deque([job for job in self.open() if not job.id and job.looked_for][:room])
        refusals: list[str] = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            waiting: dict[Future[str], Job] = {}
            while todo or waiting:
                while todo and len(waiting) < AT_ONCE and self.may_submit(todo[0]):
                    job = todo.popleft()
                    waiting[pool.submit(self.submit, job)] = job
                if self.canceled or time.monotonic() > until:
                    todo.clear()
                pause_s = max(0.0, min(self.next_submission, until) - time.monotonic()) if todo else None
                if not waiting:
                    time.sleep(pause_s or 0.0)
                for done in wait(waiting, pause_s, FIRST_COMPLETED).done if waiting else ():
                    refusal = self.submitted(waiting.pop(done), done)
                    refusals += [refusal] if refusal else []
                if refusals or not self.known:
                    todo.clear()
        if refusals:
            self.enough(sum(bool(job.id) for job in self.open()), refusals[-1])

    def may_submit(self, job: Job) -> bool:
        """Whether the controller's next turn has come; then it is taken."""
        now, gap_s = time.monotonic(), 1 / job.per_second
        if now < self.next_submission:
            return False
        # a turn that came while others were waited for is not lost, but no more than one
        self.next_submission = max(self.next_submission, now - gap_s) + gap_s
        return True

    def submit(self, job: Job) -> str:
        """Submit a job in a thread of its own; return its number. `submitted` records the result."""
        for folder in (job.folder.parent, job.folder):
            files.own_folder(folder)
        files.check(job.folder / "launch.log")
        text = script(job.folder, job.command)
        return self.launcher.submit(Submission(job.name, job.node, job.options, text, self.lock))

    def submitted(self, job: Job, done: Future[str]) -> str:
        """Take the answer to a submission; return the reason of a rejection if the user has as many jobs as allowed."""
        try:
            job.id = done.result()
        except CannotWriteError as error:  # its folder is a link, or the disk is full
            self.absent(job, str(error))
        except RefusedError as refusal:
            if self.is_full(job, refusal, time.monotonic()):
                return str(refusal)
            self.absent(job, f"{self.launcher.submit_command.split()[0]} refused it: {refusal}")
        except NoAnswerError as silence:
            self.silence(time.monotonic(), str(silence))  # it may be in the queue, which has its name
        else:
            job.state, self.refused_since = "PENDING", None
            self.follow(job, ended=False)
        return ""

    def is_full(self, job: Job, refusal: RefusedError, now: float) -> bool:
        """Return whether a rejected job will be accepted after others have ended.

        If that is unknown, it is tried for as long as a job waits for its node.
        """
        if not refusal.limit:
            return False
        if any(other.id for other in self.open()):
            return True  # ours, which ask for the same, were taken
        self.refused_since = now if self.refused_since is None else self.refused_since
        waited_too_long = now - self.refused_since >= job.unavailable_s
        return self.launcher.user_has_jobs() and (refusal.limit == "full" or not waited_too_long)

    def follow(self, job: Job, *, ended: bool) -> None:
        """Note when a job was submitted or had ended by our clock; a full disk must not end the call."""
        now = datetime.now(UTC)
        with suppress(NodeprintError):
            followed.note(job.folder, ended=now) if ended else followed.note(job.folder, submitted=now)

    def enough(self, queued: int, refusal: str) -> None:
        """The user may have no more jobs for now: some are to end first."""
        if self.most != max(queued, 1):
            self.say(f"{queued} of its jobs are in the queue, and no more are allowed now ({refusal}); it waits")
        self.most, self.known = max(queued, 1), False  # the queue is asked for before the next try

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
        self.canceled = True  # what is being submitted is the last
        with self.stepping:
            until = time.monotonic() + STOP_S
            canceled: set[str] = set()
            ours = {job.key for job in self.jobs.values()}
            while ours and self.lock >= 0 and time.monotonic() < until:
                try:
                    listed = self.launcher.follow(self.names())
                    left = [job.id for key, job in listed.items() if key in ours and job.state not in ENDED]
                    if not left:
                        break
                    if new := [number for number in left if number not in canceled]:
                        title = self.launcher.title
                        self.say(
                            f"canceling {len(new)} {title} jobs" if len(new) > 1 else f"canceling {title} job {new[0]}"
                        )
                        self.launcher.cancel(new)
                        canceled |= set(new)
                except NoAnswerError as silence:
                    answer = f"no answer from {self.launcher.title} ({silence})"
                    self.say(f"{answer}; its jobs may go on: `{self.launcher.list_command}` lists them")
                    return
                time.sleep(LOOK_S)
            else:
                if ours and self.lock >= 0:
                    self.say(f"jobs are still ending; `{self.launcher.list_command}` lists them")
            for job in self.open():
                job.state = "CANCELLED" if job.id else ""
            self.note()

    def end(self) -> None:
        """Say what came of all."""
        if self.jobs and self.lock >= 0:
            self.note()
        for why, nodes in self.alike.items():
            if len(nodes) > NAMED:
                self.say(f"{node_lists.fold(nodes[NAMED:])}: for the same reason ({why})")
        if self.jobs and not self.canceled:
            back = sum(job.outcome not in ("", "absent") for job in self.jobs.values())
            self.say(f"{back} of {len(self.jobs)} nodes came back in {time.monotonic() - self.began:.0f} s")
