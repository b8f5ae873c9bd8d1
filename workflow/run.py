"""workflow/run: the main job: discover, measure, gather, judge, report. `make run` calls it.

Exit code: 0 at least one node has records, and its verdict and report are written; 1 not so; 2 bad configuration or
options; 3 it was done, and an outcome is among those that --fail-on names; 128 + the signal that interrupted it: what
was measured is kept, and the next call continues it.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, NoReturn

import terminal
from signals import Interrupted, block, pause, start, wait
from terminal import Screen

from nodeprint import checked_yaml, files, other_load, outcomes, progress, run_files
from nodeprint.errors import NodeprintError, printable
from nodeprint.verdict import outputs

LOCK = Path(".snakemake/nodeprint.lock")
ROUNDS = 2
#: What Snakemake wrote is there after its end at once; a node-run that outlives a killed Snakemake may go on writing.
DRAIN_S = 2.0
#: What node-run needs at most to stop its kernel, with some reserve.
STOP_S = 40.0


def nodeprint(*words: str | Path) -> int:
    """Call `nodeprint`; what it says on standard error is shown."""
    return wait(start(["nodeprint", *words], stdout=subprocess.DEVNULL))


# --- the call ---------------------------------------------------------------------------------------------------------


class Call:
    """A call of the main job."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.config = Path(arguments.config)
        self.again, self.report_only = arguments.again, arguments.report_only
        self.fail_on: list[str] = arguments.fail_on
        self.verbose = os.environ.get("VERBOSE", "0") not in ("", "0")
        self.screen = Screen(self.verbose)
        self.campaign: Path | None = None
        self.snakemake: Snakemake | None = None
        self.beside: other_load.Watch | None = None
        self.lock = -1

    def say(self, text: str) -> None:
        self.screen.say(f"nodeprint: {text}")

    def run(self) -> int:
        """Do the main job; returns the exit code."""
        self.take_lock()
        code = self.discover(self.again)
        if code or self.campaign is None:
            return code
        # what is shown at the end is of this call: a fault must not leave a former verdict as if it were new
        pdf = self.campaign / "report/cluster.pdf"
        former = modified(pdf)
        for left in (self.campaign / ".interrupted", self.log):
            files.remove(left)
        if self.report_only:
            self.judge_and_report()
        else:
            failed = self.measure()
            if self.setting("recheck"):
                self.recheck()
            if failed and modified(pdf) == former:
                self.say(failed)
                return 1
            if failed:
                self.say(f"not everything was done, call it again to continue: {failed}")
        return self.show()

    def take_lock(self) -> None:
        """One call at a time: whoever holds the lock may remove Snakemake's, which a killed call leaves behind.

        Snakemake inherits it, its jobs do not: a node-run that outlives a killed Snakemake blocks no next call.
        """
        self.lock = files.opened(LOCK.absolute())
        waits = False
        while True:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waits:
                    self.say(
                        f"another call is at work ({LOCK.read_text().strip() or 'it has just begun'}); waiting for it"
                    )
                waits = True
                pause(0.5)
        os.ftruncate(self.lock, 0)
        os.write(self.lock, f"pid {os.getpid()} since {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n".encode())

    def discover(self, again: str) -> int:
        """Check the configuration and write the sample sheet; sets the campaign's folder. Returns the exit code."""
        words: list[str | Path] = ["nodeprint", "discover", "--config", self.config, "--again", again]
        with start(words, stdout=subprocess.PIPE) as process:
            code = wait(process)
            if code == 0 and process.stdout is not None:
                self.campaign = Path(os.fsdecode(process.stdout.read().rstrip(b"\n")))
        return code

    def setting(self, key: str) -> object:
        """A key of the configuration, as `discover` completed it."""
        return checked_yaml.read(self.folder / "config.yaml")[key]

    @property
    def folder(self) -> Path:
        assert self.campaign is not None
        return self.campaign

    @property
    def log(self) -> Path:
        """All that Snakemake and its jobs said in this call."""
        return self.folder / "logs/run.log"

    def judge_and_report(self) -> None:
        """Judge and report again. Raises NodeprintError where that fails."""
        for name in ("judge", "report"):
            began = time.monotonic()
            self.screen.show(name, "")
            if nodeprint(name, self.folder):
                raise NodeprintError("the nodes could not be judged or the report not written; the reason is above")
            self.say(f"{name}: {progress.span(time.monotonic() - began)}")

    def recheck(self) -> None:
        """A suspicion is confirmed or cleared by a second job, later, beside unsuspected nodes."""
        suspects = self.folder / "recheck.txt"
        for number in range(1, ROUNDS + 1):
            if nodeprint("judge", self.folder, "--recheck", suspects):
                return
            names = suspects.read_text().split()
            if not names:
                return
            minutes = float(str(self.setting("recheck_minutes")))
            self.say(f"recheck {number} of at most {ROUNDS}, in {minutes:g} minutes: {' '.join(names)}")
            until = time.monotonic() + 60 * minutes
            while (left := until - time.monotonic()) > 0:
                self.screen.show("recheck", f"in {progress.span(left)}")
                pause(min(1.0, left))
            if self.discover(",".join(names)):
                return
            self.measure()

    def show(self) -> int:
        """Print what was found; 0 where it is of a measured node and has a PDF. Whoever read along may be gone."""
        out = None if sys.stdout.isatty() else subprocess.PIPE  # on a terminal in colour
        with start(["nodeprint", "show", self.folder], stdout=out) as process:
            text, _ = process.communicate()
        terminal.write(1, text or b"")
        if process.returncode:
            return 1
        return 3 if self.counts_as_failure() else 0

    def counts_as_failure(self) -> bool:
        """Whether the verdict has an outcome that --fail-on names; says which."""
        verdict = outputs.read(self.folder) if self.fail_on else {}
        words = [str(node["verdict"]) for node in verdict.get("nodes", {}).values()]
        found = [kind for kind in self.fail_on if outcomes.fails(kind, words, verdict.get("fabric", ()))]
        if found:
            self.say(f"exit status 3: there are outcomes that --fail-on names ({', '.join(found)})")
        return bool(found)

    # --- Snakemake ---

    def measure(self) -> str:
        """Measure all that is missing, then judge and report. Returns why that failed, or nothing."""
        if any(Path(".snakemake/locks").glob("*")):
            subprocess.run(
                ["snakemake", "--configfile", self.config, "--unlock"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        watched = progress.watch(self.folder)
        places = len(watched.steps)
        there = terminal.already(watched.there(), len(watched.jobs), places, len(watched.unfinished()))
        if there:
            self.say(there)
        if self.setting("launch") == "here" and watched.unfinished():
            self.look_around()
        self.snakemake = Snakemake(self, watched, ["--configfile", str(self.config)])
        failed = self.snakemake.run()
        self.snakemake = None
        return failed

    def look_around(self) -> None:
        """Say what else is at work on this machine before it is measured, and watch it from now on."""
        load = other_load.now()
        if load.processes:
            advice = "end it or wait, as busy CPUs measure slower; the figures will be marked"
            self.say(f"this machine is busy: {load.text('takes')}; {advice}")
        self.beside = other_load.Watch()

    def keep_other_load(self, watched: progress.CampaignProgress) -> None:
        """Keep what else was at work while this machine was measured."""
        if self.beside is not None:
            for job in watched.jobs.values():
                with suppress(NodeprintError):  # a full disk costs this remark alone
                    other_load.keep(self.beside.load(), job)
        self.beside = None

    def interrupted(self) -> str:
        """End all that was started, in order, and say what is kept. Nothing is judged that is half measured."""
        if self.campaign is None:
            return "interrupted before anything was measured"
        jobs = ""
        if self.snakemake is not None:
            mark = self.campaign / ".interrupted"  # Snakefile: onerror judges nothing then
            with suppress(OSError):  # a full disk must not keep it from ending
                mark.touch()
            self.screen.show("interrupted", "waiting for the measurement to stop")
            self.snakemake.stop()
            mark.unlink(missing_ok=True)
            if self.setting("launch") == "slurm":
                jobs = " Its Slurm jobs were cancelled: `squeue --me` lists any that are left, `scancel JOB` ends one."
            if self.setting("launch") == "ansible":
                fetch = f"ansible-playbook -i {self.setting('inventory')} ansible/fetch.yml"
                jobs = f" The rest stays on the nodes: `{fetch} -e nodeprint_campaign={self.campaign}` fetches it."
        complete = sum(len(run_files.complete(job)) for job in self.campaign.glob("nodes/*/job*"))
        begun = len(list(self.campaign.glob("nodes/*/job*/run*/*.jsonl")))
        return (
            f"interrupted: what was measured is kept in {self.campaign} ({complete} measurements complete, {begun} "
            f"begun); `make run` continues it.{jobs}"
        )


class Snakemake:
    """One run of Snakemake: in a session of its own, so that a Ctrl-C reaches it by us alone.

    It hangs where its output cannot be written any more (the thread of its logging ends). So it writes into a pipe
    that we read to its end, whatever becomes of the terminal and of the log.
    """

    def __init__(self, call: Call, watched: progress.CampaignProgress, options: Sequence[str]) -> None:
        """Start it."""
        self.call, self.watched, self.screen = call, watched, call.screen
        self.lines: SimpleQueue[str] = SimpleQueue()
        self.last: deque[str] = deque(maxlen=4000)
        self.step, self.began = "", time.monotonic()
        self.failed: set[str] = set()
        self.unwritten = ""
        self.process = start(
            ["snakemake", *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, pass_fds=[call.lock],
        )  # fmt: skip
        assert self.process.stdout is not None
        self.copier = Thread(target=self.copy, args=(self.process.stdout,), daemon=True)
        self.copier.start()

    def run(self) -> str:
        """Show what it does until it ends; returns why it failed in a sentence, or nothing."""
        while self.process.poll() is None:
            self.take()
            self.draw()
            pause(0.5)
        self.copier.join(DRAIN_S)
        self.take()
        self.end_step()
        if self.process.returncode == 0:
            return ""
        return self.unwritten or f"{terminal.reason(self.last)}; the output of Snakemake is in {self.call.log}"

    def stop(self) -> None:
        """End it and its jobs as a Ctrl-C does."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait()
        self.copier.join(STOP_S)

    def copy(self, output: IO[bytes]) -> None:
        """The copier: all lines into the log and the queue, to the end; a full disk costs the log alone."""
        log: IO[bytes] | None = None
        with suppress(NodeprintError):
            log = os.fdopen(files.opened(self.call.log), "ab", buffering=0)
        for line in output:
            if log is not None:
                try:
                    log.write(line)
                except OSError:
                    log = None
            self.lines.put(line.decode(errors="replace").rstrip("\r\n"))

    def take(self) -> None:
        """Show what came since the last time: steps that begin and end, and the lines that are worth it."""
        while True:
            try:
                line = self.lines.get_nowait()
            except Empty:
                return
            self.last.append(line)
            step, failed, unwritten = terminal.step(line), terminal.failed_step(line), terminal.unwritten(line)
            self.unwritten = self.unwritten or unwritten or ""
            if failed:
                self.failed.add(failed)
            if self.call.verbose:
                self.screen.say(line)
            if step and step != self.step:
                self.end_step()
                self.step, self.began = step, time.monotonic()
            elif terminal.is_shown(line) and not unwritten and not self.call.verbose:
                self.screen.say(printable(line, 400))

    def end_step(self) -> None:
        """Say what a step took."""
        if self.step:
            how = "failed after " if self.step in self.failed else ""
            state = self.watched.look()
            of = f"{progress.progress(state)}; " if self.step == "measure" else ""
            self.call.say(f"{self.step}: {of}{how}{progress.span(time.monotonic() - self.began)}")
        if self.step == "measure":
            self.call.keep_other_load(self.watched)
        self.step = ""

    def draw(self) -> None:
        """The progress of the step."""
        if self.step == "measure":
            state = self.watched.glance()
            self.screen.show(self.step, progress.progress(state), progress.share(state))
        elif self.step:
            self.screen.show(self.step, progress.span(time.monotonic() - self.began))


def modified(path: Path) -> int:
    """When a file was written, in ns; 0 where it is not there."""
    return path.stat().st_mtime_ns if path.exists() else 0


class Parser(argparse.ArgumentParser):
    """Bad options get one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"nodeprint: {message}; see {self.prog} --help\n")


def fail_kinds(text: str) -> list[str]:
    """The argument of --fail-on."""
    try:
        return outcomes.fail_kinds(text)
    except NodeprintError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def parser() -> Parser:
    """The options of workflow/run."""
    out = Parser("workflow/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                 allow_abbrev=False, epilog="VERBOSE=1 in the environment shows Snakemake's output.")  # fmt: skip
    out.add_argument("--config", metavar="FILE", default="config/config.yaml", help="the configuration")
    out.add_argument("--again", metavar="NODE,...", default="", help="measure these nodes again as a new job")
    out.add_argument(
        "--fail-on", metavar="KIND,...", default=[], type=fail_kinds,
        help="end with 3 where a node is: " + ", ".join(outcomes.FAIL_ON),
    )  # fmt: skip
    out.add_argument("--report-only", action="store_true", help="judge and report again what is there")
    return out


def main() -> int:
    block()
    call = Call(parser().parse_args())
    try:
        return call.run()
    except Interrupted as interruption:
        call.say(call.interrupted())
        return 128 + interruption.number
    except NodeprintError as error:
        call.say(str(error))
        return 1
    except OSError as error:
        call.say(
            f"{error.filename or 'input or output'}: {error.strerror}; check the path, its file system and free space"
        )
        return 1
    finally:
        call.screen.clear()


if __name__ == "__main__":
    sys.exit(main())
