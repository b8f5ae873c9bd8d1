"""Measure this machine into a directory of the user's cache, and resume an interrupted measurement."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from nodeprint import files
from nodeprint.campaign import job_status, node_sheet, plans
from nodeprint.errors import NodeprintError, printable
from nodeprint.here import time_budget
from nodeprint.settings import sources

_BOOT = Path("/proc/sys/kernel/random/boot_id")
#: likwid-pin takes so long to start, s; static kernels pin themselves.
_LIKWID_S = 1.5

#: Gets what is measured now: the measurement's name, and its run as in `1 of 3`.
Progress = Callable[[str, str], None]


def cache() -> Path:
    """The directory of all measurements of this user: one for each call that did not resume an earlier one."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "nodeprint" / "here"


def prepare(place: Path) -> Path:
    """The campaign to measure into, below `place`: the newest one if it was interrupted since this boot, else a new
    one.

    The plan of a new one fits into the time. Raises NodeprintError if there is no kernel, only one CPU is allowed, or
    nothing can be written.
    """
    boot = _BOOT.read_text().strip()
    for folder in sorted(place.glob("*Z"), reverse=True)[:1]:
        if not is_complete(folder) and (folder / "boot_id").is_file() and (folder / "boot_id").read_text() == boot:
            return folder
    kernels = sources.kernels()
    here = node_sheet.local()
    if here.cpus < 2:
        raise NodeprintError(
            "this process may use only one CPU, and a measurement needs two",
            advice="call it without taskset, and give the container or the job more CPUs",
        )
    start_s = time_budget.START_S
    if shutil.which("likwid-pin") and (kernels / "coherence").exists():
        start_s += _LIKWID_S
    rows = time_budget.rows(here.cpus, lambda kernel, words: plans.seconds(kernels, kernel, words), start_s)
    folder = place / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}"
    files.write(folder / "plan.tsv", time_budget.text(rows))
    node_sheet.write_sheet(folder / "nodes.tsv", [here])
    files.write(folder / "boot_id", boot)
    return folder


def newest(place: Path) -> Path:
    """The newest complete measurement below `place`. Raises NodeprintError if there is none."""
    for folder in sorted(place.glob("*Z"), reverse=True):
        if is_complete(folder):
            return folder
    raise NodeprintError("nothing was measured here yet", where=place, advice="measure this machine: `nodeprint here`")


def is_complete(folder: Path) -> bool:
    """Whether a campaign of this room came to its end, whatever it was."""
    return next(folder.glob(f"nodes/*/job1/{job_status.NAME}"), None) is not None


def measure(folder: Path, progress: Progress) -> None:
    """Measure what the plan in `folder` asks for and is not there. An interrupt stops the kernel first.

    Raises NodeprintError where node-run refuses.
    """
    node = node_sheet.read_sheet(folder / "nodes.tsv")[0]
    command: list[str | Path] = [
        sources.folder() / "kernels/node-run",
        "--campaign",
        folder,
        "--node",
        node.node,
        "--job",
        "1",
        "--kernels",
        sources.kernels(),
    ]
    with subprocess.Popen(
        ["sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            last = _follow(process, progress)
        except KeyboardInterrupt:
            process.wait()  # it got the signal, too, and ends when its kernel has
            raise
    if process.returncode:
        raise NodeprintError(last or "node-run failed", where=folder, advice="see node-run.log there")


def _follow(process: subprocess.Popen[str], progress: Progress) -> str:
    """Pass on what node-run does; returns the last sentence of it."""
    last = ""
    for line in process.stderr or ():
        if line.startswith("node-run: "):
            last = printable(line.removeprefix("node-run: ").strip())
            for run, measurement in _began(last):
                progress(measurement, run)
    return last


def _began(sentence: str) -> Iterator[tuple[str, str]]:
    """`1 of 3` and the measurement of a sentence `run 1 of 3: coherence-cas`."""
    run, _, measurement = sentence.partition(": ")
    if run.startswith("run ") and measurement:
        yield run.removeprefix("run "), measurement
