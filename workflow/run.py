"""workflow/run: the main job, which `make run` calls. It lists the nodes, then calls Snakemake to measure and judge
them, to remeasure suspects, and to write the report.

Exit statuses:

    0        success, no finding
    1        nothing was measured, or the campaign is not finished
    2        wrong configuration or options
    3        --fail-on counts an outcome
    128 + N  signal N interrupted it; results are kept, and the next call resumes
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import call_options
import pandas as pd
import terminal
from signals import Interrupted, block, pause, start, wait
from terminal import Log, Screen

from nodeprint import files
from nodeprint.campaign import node_lists, node_status, preparation, progress, recheck, run_files
from nodeprint.campaign.launchers.launcher import Scheduler
from nodeprint.campaign.launchers.launcher_registry import launcher
from nodeprint.cli.measure_commands import check_call
from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import Kind
from nodeprint.machine import other_load
from nodeprint.report.verdict_files import read as read_verdict
from nodeprint.settings import config as configuration
from nodeprint.settings.texts import say, texts

WORKFLOW = Path(__file__).parent
#: A lock for each campaign, so that several are measured from one checkout.
LOCKS = Path(".snakemake/nodeprint")


def nodeprint(*words: str | Path) -> int:
    """Call `nodeprint`, whose standard error is shown; return its exit status."""
    return wait(start(["nodeprint", *words], stdout=subprocess.DEVNULL))


def failing_kinds(campaign: Path, kinds: Sequence[Kind]) -> list[Kind]:
    """The kinds of --fail-on that the campaign's verdict has."""
    verdict = read_verdict(campaign)
    return [kind for kind in kinds if verdict.fails([kind])]


class Call:
    """A call of the main job."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.config_file = call_options.configuration_file(arguments, LOCKS)
        self.again, self.report_only = arguments.again, arguments.report_only
        self.words = call_options.call_words(arguments)
        self.fail_on: Sequence[Kind] = arguments.fail_on
        self.screen = Screen(verbose=os.environ.get("VERBOSE", "0") not in ("", "0"))
        self.config = configuration.load(self.config_file)
        self.campaign = configuration.campaign_folder(self.config)
        self.launcher = launcher(self.config.launch)
        self.load_before: pd.DataFrame | None = None
        self.snakemake: subprocess.Popen[bytes] | None = None

    def say(self, text: str) -> None:
        self.screen.say(f"nodeprint: {text}")

    def check(self) -> None:
        """Raise NodeprintError if this call cannot be done, before it waits for another one."""
        if self.report_only:
            return
        try:  # the site's own file is named, also where options replace keys of it
            check_call(self.config, Path(self.arguments.config), self.again or "", Path("kernels/build"))
        except preparation.OtherCampaignError as error:
            call = call_options.call_as_another_campaign(self.arguments, self.campaign)
            raise NodeprintError(f"{error}, as in `{call}`") from error

    def run(self) -> int:
        """Do the main job; return the exit status."""
        self.take_lock()
        if code := self.discover(self.again or ""):
            return code
        if self.report_only:
            self.judge_and_report()
            return self.result("")
        # what is shown at the end is of this call: a fault must not leave a former verdict as if it were new
        pdf = self.campaign / "report/cluster.pdf"
        former = modified(pdf)
        failure = self.measure()
        if failure and (rebooted := preparation.rebooted(self.campaign)):
            self.say(f"measured in a new job, as they were booted again within the former: {node_lists.fold(rebooted)}")
            if code := self.discover(""):
                return code
            failure = self.measure()
        if failure and modified(pdf) == former:
            self.say(f"{failure}{self.unfinished()}")
            return 1
        return self.result(failure)

    def discover(self, again: str) -> int:
        """List the nodes and clear failed jobs, with a new job for the nodes of `again`; return the exit status."""
        return nodeprint("discover", "--config", self.config_file, *(["--again", again] if again else []))

    def take_lock(self) -> None:
        """One call of a campaign at a time. The lock ends with this process, however it ends: nothing inherits it."""
        lock = files.opened((LOCKS / f"{quote(str(self.campaign), safe='')}.lock").absolute())
        waits = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waits:
                    holder = os.pread(lock, 200, 0).decode(errors="replace").strip() or "it has just begun"
                    self.say(f"another call is at work on {self.campaign} ({holder}); waiting for it")
                waits = True
                pause(0.5)
        os.ftruncate(lock, 0)
        moment = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        os.write(lock, f"pid {os.getpid()} on {socket.gethostname()} since {moment}\n".encode())

    def judge_and_report(self) -> None:
        """Judge and report again. Raises NodeprintError where that fails."""
        for name in ("judge", "report"):
            began = time.monotonic()
            self.screen.show(name, "")
            if nodeprint(name, self.campaign):
                raise NodeprintError("the nodes could not be judged or the report not written; the reason is above")
            self.say(f"{name}: {progress.span(time.monotonic() - began)}")

    # --- Snakemake ---

    def measure(self) -> str:
        """Let Snakemake do all missing steps; return the reason of a failure, or an empty text."""
        log = Log(self.campaign / "logs/run.log")
        watched = progress.watch(self.campaign, recheck.at_work(self.campaign))
        measured, unfinished = watched.measured_before(), len(watched.unfinished())
        lines = terminal.already(measured, len(watched.jobs), len(watched.steps), unfinished, self.words)
        if lines:
            self.say(lines)
        if self.launcher.is_here and watched.unfinished():
            self.look_around(watched)
        is_local = self.launcher.executor == "local"
        profile = "default" if is_local else "slurm"
        words = ["snakemake", "--nolock", "--configfile", str(self.config_file)]
        words += ["--workflow-profile", str(WORKFLOW.parent / "profiles" / profile)]
        if not is_local:
            words += ["--jobs", str(self.launcher.jobs(self.config).jobs_at_a_time)]
            words += ["--executor", self.launcher.executor] * (not isinstance(self.launcher, Scheduler))
        # Its locks outlive it where it is killed; ours do not. A session of its own: a Ctrl-C reaches it by us alone.
        path = [str(WORKFLOW), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.snakemake = start(
            words,
            with_us=True,
            stdin=subprocess.DEVNULL,
            stdout=log.descriptor,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": ":".join(path)},
        )
        steps = Steps(self.campaign, watched)
        while self.snakemake.poll() is None:
            self.watch(log, steps)
            pause(0.5)
        self.watch(log, steps)
        code = self.snakemake.returncode
        self.snakemake = None
        if code == 0:
            return ""
        how = f"Snakemake was killed (signal {-code})" if code < 0 else "not everything could be done"
        return f"{how}; all that was written meanwhile is in {log.path}"

    def look_around(self, watched: progress.CampaignProgress) -> None:
        """Report the background load of this machine before it is measured, and watch it from now on."""
        load = other_load.now()
        watched.assume_load(load.taken, len(os.sched_getaffinity(0)))
        if load.is_busy:
            change = texts()["change"]["time"]["more"]
            self.say(say("commands", "busy_machine", load=load.text("takes"), change=change))
        self.load_before = other_load.readings()

    def keep_other_load(self, watched: progress.CampaignProgress) -> None:
        """Record the background load during the measurement of this machine."""
        if self.load_before is not None:
            for job in watched.jobs.values():
                with suppress(NodeprintError):  # a full disk costs this remark alone
                    other_load.keep(other_load.between(self.load_before, other_load.readings()), job)
        self.load_before = None

    def watch(self, log: Log, steps: Steps) -> None:
        """Show new lines of nodeprint's programs, steps that ended, and the progress of the current one."""
        for line in log.new_lines():
            if self.screen.verbose or terminal.is_shown(line):
                self.screen.say(line)
        for text in steps.ended():
            self.say(text)
        if not steps.measuring:
            self.keep_other_load(steps.watched)
        self.screen.show(*steps.present())

    def interrupted(self, number: int) -> str:
        """End all started programs in order, and return a message about the kept results. Nothing is judged."""
        jobs = ""
        if self.snakemake is not None:
            stays = number == signal.SIGHUP and isinstance(self.launcher, Scheduler)
            self.screen.show("interrupted", "waiting for the measurement to stop")
            os.killpg(self.snakemake.pid, signal.SIGKILL if stays else signal.SIGINT)
            self.snakemake.wait()
            jobs = self.launcher.at_an_interruption(self.config, jobs_go_on=stays)
        complete = sum(len(run_files.complete(job)) for job in self.campaign.glob("nodes/*/job*"))
        begun = len(list(self.campaign.glob("nodes/*/job*/run*/*.jsonl")))
        if not complete and not begun and not jobs:
            return "interrupted before anything was measured"
        return (
            f"interrupted: what was measured is kept in {self.campaign} ({complete} measurements complete, {begun} "
            f"begun); `{self.words}` continues it.{jobs}"
        )

    # --- the end ---

    def result(self, failure: str) -> int:
        """Print the result; return the exit status. The reader may be gone."""
        out = None if sys.stdout.isatty() else subprocess.PIPE  # on a terminal in color
        with start(["nodeprint", "show", self.campaign], stdout=out) as process:
            text, _ = process.communicate()
        terminal.write(1, text or b"")
        if failure:
            self.say(f"{failure}{self.unfinished()}")
        if failure or process.returncode:
            return 1
        if kinds := failing_kinds(self.campaign, self.fail_on):
            self.say(f"exit status 3: there are outcomes that --fail-on names ({', '.join(kinds)})")
            return 3
        if unfinished := self.unfinished():
            self.say(f"exit status 1{unfinished}")
            return 1
        return 0

    def unfinished(self) -> str:
        """The nodes that are not measured, or in part, as the second half of a sentence; empty where all are."""
        with suppress(NodeprintError):
            if text := node_status.read(self.campaign).unfinished():
                return f". Not finished: {text}; `{self.words}` tries it again"
        return ""


class Steps:
    """The steps of a call, observed by the files that they write."""

    FILES = (("gather", "store/fleet.json"), ("judge", "verdict.json"), ("report", "report/cluster.pdf"))

    def __init__(self, campaign: Path, watched: progress.CampaignProgress) -> None:
        self.campaign, self.watched = campaign, watched
        self.lists = [recheck.path(campaign, number) for number in range(1, recheck.ROUNDS + 1)]
        self.listed = [*map(modified, self.lists)]
        self.measuring = bool(watched.unfinished())
        self.name = "measure again" if recheck.at_work(campaign) else "measure"
        self.former = {name: modified(campaign / file) for name, file in self.FILES}
        self.done: set[str] = set()
        self.began = time.monotonic()

    def ended(self) -> list[str]:
        """Return the steps that ended since the last call of this, with their duration."""
        if self.listed != [*map(modified, self.lists)]:
            self.listed = [*map(modified, self.lists)]
            if suspects := recheck.at_work(self.campaign):
                self.watched, self.name = progress.watch(self.campaign, suspects), "measure again"
                self.watched.forget_begin()  # their jobs are new, and may be at work before this looks
                self.measuring, self.began = True, time.monotonic()
        texts = []
        if self.measuring and not self.watched.unfinished():
            texts.append(f"{self.name}: {progress.progress(self.watched.look())}; {self.span()}")
            self.measuring = False
        for name, file in self.FILES:
            if modified(self.campaign / file) not in (0, self.former[name]) and name not in self.done:
                self.done.add(name)
                texts.append(f"{name}: {self.span()}")
        return texts

    def span(self) -> str:
        """The time since the last step ended."""
        seconds, self.began = time.monotonic() - self.began, time.monotonic()
        return progress.span(seconds)

    def present(self) -> tuple[str, str, float | None]:
        """Return the current step, its progress in words, and as a share."""
        if self.measuring:
            state = self.watched.glance()
            return self.name, progress.progress(state), progress.share(state)
        return "judge and report", progress.span(time.monotonic() - self.began), None


def modified(path: Path) -> int:
    """When a file was written, in ns; 0 where it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def main() -> int:
    block()
    screen = Screen(verbose=False)
    try:
        call = Call(call_options.parser(__doc__).parse_args())
        screen = call.screen
        call.check()
    except NodeprintError as error:
        screen.say(f"nodeprint: {error}")
        return 2
    try:
        return call.run()
    except Interrupted as interruption:
        call.say(call.interrupted(interruption.number))
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
        screen.clear()


if __name__ == "__main__":
    sys.exit(main())
