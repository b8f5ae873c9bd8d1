"""launch/slurm.py: a small Slurm job for each node that has no outcome yet, submitted and followed from the login node.

USAGE   slurm.py CONFIG PENDING OUTCOMES     PENDING: a line a node with name, job and CPUs, separated by tabs
EXIT    0 OUTCOMES is written, whatever came back; 1 it could not be; 2 bad configuration; 128 + the signal

OUTCOMES has node, job, outcome (of status.json, or `absent`) and, for an absent one, the reason. While it works, the
folder of PENDING has jobs.tsv: node, job, Slurm's number, state and reason. What is true of a job is what its
status.json says, then squeue, scontrol, and sacct where there is accounting; "no answer" never means "gone". Every job
is called nodeprint-<campaign's id>-<job> and names its node, so that a call after one that was killed finds what is in
the queue and submits nothing twice, also where the kill came between sbatch and the note of its number.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from signals import Interrupted, block, pause, start

from nodeprint import campaign as campaigns
from nodeprint import config as configuration
from nodeprint import discover, files
from nodeprint.discover import Node, plans, slurm
from nodeprint.errors import NodeprintError, printable

KERNELS = Path("kernels")
#: squeue is asked this long after something changed, then more and more rarely; with many jobs less often.
FIRST_POLL_S, MOST_POLL_S, GROWTH, JOBS_A_SECOND = 1.0, 30.0, 1.3, 100
#: The folders are looked at this often, or so rarely that it takes a hundredth of the time.
LOOK_S = 0.25
#: Jobs are submitted for so long before the others are looked at again.
FILL_S = 1.0
#: A command of Slurm may wait this long for its controller.
ANSWER_S = 60.0
#: A job that ended without an order may have written its outcome a moment before; an orderly one surely has.
CUT_S = 5.0
#: After an interruption the kernels have this long to stop (node-run waits 30 s for its own).
STOP_S = 60.0
#: sbatch refuses for now: the user has as many jobs in the queue as is allowed.
_ENOUGH = re.compile(r"violates accounting/QOS policy|Max(Submit)?Jobs?(PerUser)?Limit|SubmitJobsLimit", re.IGNORECASE)
#: sbatch refuses for good; anything else that it says may be a controller that did not answer.
_REFUSED = re.compile(r"Batch job submission failed: (?P<why>.*)|(?P<usage>(unrecognized|invalid) option.*)")
_NO_ANSWER = re.compile(
    r"unable to contact|connection refused|timed out|Zero Bytes|standby mode|temporarily unable|Unexpected message",
    re.IGNORECASE,
)
#: Only steps of srun follow --cpu-freq (man sbatch). Since 22.05 srun does not inherit the number of CPUs.
_STEP = "srun --ntasks=1 --cpus-per-task=$SLURM_CPUS_ON_NODE --mpi=none --cpu-bind=none"
#: What a pending job waits for that does not come by itself (man squeue, "JOB REASON CODES"): its node is out of
#: service, or it asks for more than it may have.
_STUCK = re.compile(r"UnavailableNodes:|DOWN, DRAINED|Partition(Time|Node)Limit|BadConstraints|Invalid(Account|QOS)")
#: So many nodes with the same reason are said, the others counted.
SAID = 3


def say(text: str) -> None:
    """A line for the terminal and the log; nobody may read along any more."""
    with suppress(OSError):
        print(f"slurm: {printable(text, 600)}", file=sys.stderr, flush=True)


@dataclass
class Job:
    """The job of a node: what Slurm said of it last, and what came of it."""

    node: Node
    folder: Path
    id: str = ""
    state: str = ""
    reason: str = ""
    #: When it was first seen to have ended without status.json, to linger after it, or to wait for its node (seconds).
    since: float | None = None
    outcome: str = ""
    why: str = ""


@dataclass(frozen=True)
class Listed:
    """A job as squeue lists it."""

    id: str
    state: str
    reason: str


class NoAnswerError(Exception):
    """Slurm did not answer, or not with what was asked: nothing is known."""


class RefusedError(Exception):
    """sbatch will not take this job."""


# --- Slurm's commands -------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """Ours without what would change options or output; accounts and the like are the user's to set."""
    kept = {"SLURM_CONF", "SBATCH_ACCOUNT", "SBATCH_QOS", "SBATCH_WCKEY"}
    own = ("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SCANCEL_", "SINFO_", "SCONTROL_")
    return {key: value for key, value in os.environ.items() if key in kept or not key.startswith(own)} | {"LC_ALL": "C"}


def ask(*words: str, lock: int | None = None) -> str:
    """What a command of Slurm prints; one that gets our `lock` is never interrupted.

    Raises NoAnswerError with its last line, Interrupted, and NodeprintError where there is no such command.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        try:
            process = start(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=error, env=environment(),
                start_new_session=True,  # a Ctrl-C is not for it
                pass_fds=() if lock is None else (lock,),
            )  # fmt: skip
        except FileNotFoundError as missing:
            advice = "run it on a login node of the cluster"
            raise NodeprintError(f"{words[0]} is not on PATH", key="launch", advice=advice) from missing
        until = time.monotonic() + ANSWER_S
        try:
            while process.poll() is None and time.monotonic() < until:
                pause(1) if lock is None else time.sleep(0.005)
        finally:
            if late := process.poll() is None:
                process.kill()
                process.wait()
        if late:
            raise NoAnswerError(f"{words[0]}: no answer in {ANSWER_S:.0f} s")
        out.seek(0)
        error.seek(0)
        if process.returncode:
            lines = error.read().decode(errors="replace").strip().splitlines()
            raise NoAnswerError(lines[-1] if lines else f"{words[0]} ended with {process.returncode}")
        return out.read().decode(errors="replace")


def submit(words: Sequence[str], lock: int) -> str:
    """Submit a job; its number. Raises RefusedError, or NoAnswerError where the job may or may not be in the queue."""
    try:
        return ask("sbatch", "--parsable", *words, lock=lock).strip().partition(";")[0]
    except NoAnswerError as silence:
        refused = _REFUSED.search(str(silence))
        if refused and not _NO_ANSWER.search(str(silence)):
            raise RefusedError(refused["why"] or refused["usage"]) from silence
        raise


def queue(names: Iterable[str]) -> dict[tuple[str, str], Listed]:
    """All our jobs by job name and node, ended ones too while Slurm knows them. Raises NoAnswerError."""
    text = ask("squeue", "--me", "--states=all", "--noheader", f"--name={','.join(names)}", "--format=%j|%n|%i|%T|%r")
    return parse_queue(text)


def others_of_this_user() -> bool:
    """Whether this user has any job in the queue."""
    with suppress(NoAnswerError):
        return bool(ask("squeue", "--me", "--noheader", "--format=%i").strip())
    return True


def parse_queue(text: str) -> dict[tuple[str, str], Listed]:
    """squeue's lines. Of several jobs of a node the one that is in the queue counts, then the newest."""
    rows = [cells for line in text.splitlines() if len(cells := line.split("|", 4)) == 5 and cells[2].isdigit()]
    rows.sort(key=lambda cells: (cells[3] not in slurm.ENDED, int(cells[2])))
    return {(name, node): Listed(number, state, printable(why, 120)) for name, node, number, state, why in rows}


def how_it_ended(number: str) -> tuple[str, str]:
    """State and exit code of a job that squeue does not list: by scontrol, then sacct; empty where nobody knows."""
    with suppress(NoAnswerError):
        return slurm.parse_job(ask("scontrol", "-o", "show", "job", number))
    with suppress(NoAnswerError, NodeprintError):
        if "accounting_storage/none" not in ask("scontrol", "show", "config"):
            return slurm.parse_accounting(ask("sacct", "-n", "-X", "-P", "-j", number, "-o", "State,ExitCode"))
    return "", ""


def state_of(node: str) -> str:
    """Slurm's state and reason of a node that is out of service; empty where it is not, or Slurm does not say."""
    with suppress(NoAnswerError, NodeprintError):
        for row in slurm.parse_sinfo(ask("sinfo", "-h", "-N", "-n", node, "-o", slurm.SINFO_FORMAT)):
            if slurm.why_not(row.state, ours=True, wake=True):
                return f"{row.state}: {row.reason}" if row.reason else row.state
    return ""


# --- what a job said --------------------------------------------------------------------------------------------------


def outcome(folder: Path) -> str:
    """What status.json says; empty while there is none that can be read."""
    try:
        os.scandir(folder).close()  # NFS asks its server for a folder that is opened
        content = json.loads((folder / "status.json").read_text())
    except (OSError, ValueError, RecursionError):
        return ""
    found = content.get("outcome") if isinstance(content, dict) else None
    return found if found in ("complete", "partial", "failed") else ""


def last_words(folder: Path) -> str:
    """Why a job ended by its own words: node-run's last sentence, or else the last line that it wrote."""
    try:
        with (folder / "launch.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 65536))
            text = log.read().decode(errors="replace")
    except OSError:
        return f"it wrote nothing; does the node see {folder.absolute()}, and may it write there?"
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    own = [line for line in lines if line.startswith("node-run: ") and "SIG" not in line]
    other = [line for line in lines if not line.startswith("slurmstepd: ")]
    return next((found[-1] for found in (own, other, lines) if found), "it wrote nothing into launch.log")


# --- the call ---------------------------------------------------------------------------------------------------------


class Launch:
    """All jobs of a call, submitted and followed until each has an outcome or a reason."""

    def __init__(self, config: Mapping[str, Any], pending: Path, lock: int) -> None:
        """The jobs of PENDING's nodes; `lock` is held."""
        self.config, self.slurm, self.home, self.lock = config, config["slurm"], pending.parent, lock
        self.campaign = configuration.campaign_folder(config)
        sheet = {node.node: node for node in discover.read_sheet(self.campaign / "nodes.tsv")}
        names = [line.split("\t")[0] for line in pending.read_text().splitlines()]
        nodes = [sheet[name] for name in names if name in sheet and sheet[name].measure]
        self.jobs = [Job(node, campaigns.job_folder(self.campaign, node)) for node in nodes]
        self.id = (self.campaign / "id").read_text().strip()
        self.most = int(self.slurm["jobs_at_a_time"])
        self.known = False  # whether squeue has answered since the last submission that may have gone through
        self.interval, self.polled, self.looked, self.cost_s = FIRST_POLL_S, -1e9, -1e9, 0.0
        self.silent_since: float | None = None
        self.written = ""
        self.minutes: dict[tuple[int, int], int] = {}  # by CPUs and cores
        self.said: Counter[str] = Counter()

    def run(self) -> None:
        """Follow all jobs to their ends. Raises Interrupted."""
        for job in self.jobs:
            self.options(job.node)  # an impossible time limit or deadline is reported before anything is submitted
        while self.open():
            now = time.monotonic()
            if now - self.looked >= max(LOOK_S, 100 * self.cost_s):
                self.look()
            if now - self.polled >= self.interval and self.open():
                self.poll(now)
            more = self.known and self.fill()
            self.note()
            if self.open():
                pause(0 if more else LOOK_S)
        for why, count in self.said.items():
            if count > SAID:
                say(f"{count - SAID} more nodes for the same reason ({why})")

    def open(self) -> list[Job]:
        """Jobs without an outcome or a reason."""
        return [job for job in self.jobs if not job.outcome]

    def name(self, job: Job) -> str:
        """The name of a job in Slurm."""
        return f"nodeprint-{self.id}-{job.node.job}"

    def options(self, node: Node) -> list[str]:
        """Options of sbatch for a node's job. Raises NodeprintError."""
        size = (node.cpus, node.cores)
        if size not in self.minutes:
            plan = configuration.plan(self.config)
            self.minutes[size] = plans.job_minutes(self.config, plan, *size, KERNELS / "build")
        return slurm.sbatch_words(node, self.slurm, self.minutes[size])

    def look(self) -> None:
        """See which nodes have written their outcome."""
        began = time.monotonic()
        for job in self.open():
            if found := outcome(job.folder):
                self.came_back(job, found)
        self.looked = time.monotonic()
        self.cost_s = self.looked - began

    def changed(self) -> None:
        """Something happened: ask soon again."""
        self.interval = FIRST_POLL_S + len(self.jobs) / JOBS_A_SECOND / 10

    def poll(self, now: float) -> None:
        """Ask squeue of all jobs at once, and settle those that ended."""
        try:
            listed = queue(sorted({self.name(job) for job in self.jobs}))
        except NoAnswerError as silence:
            self.silence(now, str(silence))
            return
        self.known, self.polled = True, time.monotonic()
        self.interval = min(MOST_POLL_S, self.interval * GROWTH)
        if self.silent_since is not None:
            say("Slurm answers again")
            self.silent_since = None
        found = 0
        for job in self.open():
            mine = listed.get((self.name(job), job.node.node))
            if mine and not job.id and mine.state not in slurm.ENDED:
                job.id, found = mine.id, found + 1
            if job.id:
                self.settle(job, mine if mine and mine.id == job.id else None, now)
        if found:
            say(f"{found} of its jobs are in the queue already, and are followed")

    def silence(self, now: float, said: str) -> None:
        """No answer: nothing is known, nothing is given up; said once, and the end of the deadline is the end."""
        self.known, self.polled = False, time.monotonic()
        self.interval = min(MOST_POLL_S, self.interval * GROWTH)
        if self.silent_since is None:
            say(f"no answer from Slurm ({said}); jobs that run go on, and it is asked again until it answers")
            self.silent_since = now
        if now - self.silent_since > self.slurm["deadline_hours"] * 3600:
            raise NodeprintError(
                f"no answer from Slurm for {self.slurm['deadline_hours']:g} h", key="squeue",
                advice="its jobs were left as they are; the next call continues them",
            )  # fmt: skip

    def settle(self, job: Job, listed: Listed | None, now: float) -> None:
        """Take what squeue says of a job; one that ended without an outcome gets its reason when none can come."""
        former, code = job.state, ""
        job.state, job.reason = (listed.state, listed.reason) if listed else ("", "")
        if listed is None or listed.state == "FAILED":
            state, code = how_it_ended(job.id)
            job.state = state or job.state or "ENDED"
        if job.state not in slurm.ENDED and job.state != "ENDED":
            stuck = job.state == "PENDING" and _STUCK.search(job.reason)
            job.since = (job.since or now) if stuck else None
            if stuck:
                self.stuck(job, now)
        elif found := outcome(job.folder):
            self.came_back(job, found)
        else:
            job.since = job.since if former == job.state and job.since else now
            late = float(self.slurm["late_seconds"])
            if now - job.since >= (late if job.state in ("COMPLETED", "ENDED") else min(CUT_S, late)):
                said = slurm.ended(job.id, "" if job.state == "ENDED" else job.state, code)
                if job.state == "ENDED" and (down := state_of(job.node.node)):
                    said += f"; the node is {down}"
                self.absent(job, f"{said}; {last_words(job.folder)}")
        if job.state != former:
            self.changed()

    def stuck(self, job: Job, now: float) -> None:
        """A job that waits for what does not come by itself waits no longer than for a while."""
        if job.since is None or now - job.since < self.slurm["unavailable_minutes"] * 60:
            return
        with suppress(NoAnswerError):
            ask("scancel", job.id)
            state = state_of(job.node.node) if "odes" in job.reason else ""
            why = f"for the node, which is {state}" if state else f"({job.reason})"
            minutes = f"{self.slurm['unavailable_minutes']:g}"
            self.absent(job, f"Slurm job {job.id} waited {minutes} minutes {why}; it was cancelled")

    def came_back(self, job: Job, found: str) -> None:
        """Its node wrote an outcome, which no former failure outlives."""
        job.outcome = found
        files.remove(job.folder / "submission.txt")
        self.changed()

    def absent(self, job: Job, why: str) -> None:
        """No outcome will come, and this is why."""
        job.outcome, job.why = "absent", printable(why, 400)
        alike = re.sub(r"\d+", "N", job.why.replace(job.node.node, "NODE"))
        self.said[alike] += 1
        if self.said[alike] <= SAID:
            say(f"{job.node.node}: {job.why}")
        with suppress(NodeprintError):  # the list has it, too
            files.write(job.folder / "submission.txt", job.why + "\n")
        self.changed()

    def fill(self) -> bool:
        """Submit as many as may be in the queue, or for a second; whether more may be."""
        until = time.monotonic() + FILL_S
        queued = sum(bool(job.id) for job in self.open())
        todo = [job for job in self.open() if not job.id]
        for job in todo[: max(0, self.most - queued)]:
            if time.monotonic() > until:
                return True
            job.folder.mkdir(parents=True, exist_ok=True)
            words = [f"--job-name={self.name(job)}", f"--output={job.folder}/launch.log", *self.options(job.node)]
            try:
                job.id = submit([*words, f"--wrap={self.script(job.node)}"], self.lock)
            except RefusedError as refusal:
                if _ENOUGH.search(str(refusal)) and (queued or others_of_this_user()):
                    self.enough(queued, str(refusal))
                    break
                self.absent(job, f"sbatch refused it: {refusal}")
                continue
            except NoAnswerError as silence:
                self.silence(time.monotonic(), str(silence))  # it may be in the queue: squeue knows it by its name
                break
            job.state, queued = "PENDING", queued + 1
            self.changed()
        return False

    def enough(self, queued: int, said: str) -> None:
        """The user may have no more jobs for now: some are to end first."""
        if self.most != max(queued, 1):
            say(f"{queued} of its jobs are in the queue, and no more are allowed now ({said}); it waits")
        self.most, self.known = max(queued, 1), False  # squeue is asked before the next try

    def script(self, node: Node) -> str:
        """The job: node-run in the batch step, which has the whole node, or in a step that sets the frequency."""
        step = f"{_STEP} --cpu-freq={self.slurm['cpu_freq']} " if self.slurm["cpu_freq"] else ""
        program = [str(KERNELS.absolute() / "node-run"), *campaigns.node_run(self.config, node)]
        return f"exec {step}{shlex.join(program)}"

    def note(self) -> None:
        """jobs.tsv, where it changed; a full disk must not end the call."""
        rows = (
            (job.node.node, str(job.node.job), job.id, job.outcome or job.state, job.why or job.reason)
            for job in self.jobs
        )
        text = "".join("\t".join(row) + "\n" for row in rows)
        if text != self.written:
            with suppress(NodeprintError):
                files.write(self.home / "jobs.tsv", text)
                self.written = text

    def outcomes(self) -> str:
        """The list of what came back."""
        rows = ((job.node.node, str(job.node.job), job.outcome, job.why) for job in self.jobs)
        return "".join("\t".join(row) + "\n" for row in rows)

    def cancel(self) -> None:
        """End all jobs that are in the queue, those too whose numbers are not known, and wait for the kernels' end."""
        until = time.monotonic() + STOP_S
        cancelled: set[str] = set()
        while time.monotonic() < until:
            try:
                listed = queue(sorted({self.name(job) for job in self.jobs})).items()
                nodes = {(self.name(job), job.node.node) for job in self.jobs}
                left = [one.id for key, one in listed if key in nodes and one.state not in slurm.ENDED]
                if not left:
                    return
                if new := [number for number in left if number not in cancelled]:
                    say(f"cancelling {len(new)} Slurm jobs" if len(new) > 1 else f"cancelling Slurm job {new[0]}")
                    ask("scancel", *new)
                    cancelled |= set(new)
            except NoAnswerError as silence:
                say(f"no answer from Slurm ({silence}); its jobs may go on: `squeue --me` lists them")
                return
            pause(LOOK_S)
        say("jobs are still ending; `squeue --me` lists them")


def locked(path: Path) -> int:
    """Hold the lock of the campaign's queue: one call at a time submits, also from two login nodes.

    sbatch inherits it, so that the call after one that was killed waits until the job which was just being submitted
    is in the queue.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    waits = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if not waits:
                say(f"waiting: another call submits the jobs of this campaign ({path.absolute()})")
            waits = True
            pause(LOOK_S)


def main(config_file: Path, pending: Path, outcomes: Path) -> int:
    """Submit, follow, and write the list."""
    config = configuration.load(config_file)
    launch = Launch(config, pending, locked(pending.with_name("lock")))
    began = time.monotonic()
    try:
        launch.run()
    except Interrupted as interruption:
        launch.cancel()
        return 128 + interruption.number
    files.write(outcomes, launch.outcomes())
    back = sum(job.outcome != "absent" for job in launch.jobs)
    say(f"{back} of {len(launch.jobs)} nodes came back in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    block()
    try:
        sys.exit(main(*map(Path, sys.argv[1:4])))
    except Interrupted as interruption:
        sys.exit(128 + interruption.number)
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
    except OSError as error:
        advice = "jobs in the queue go on, and the next call follows them"
        sys.exit(f"nodeprint: {error.filename}: {error.strerror}; {advice}")
