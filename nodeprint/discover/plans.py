"""What the kernels say of a plan before anything is measured: what they refuse, and how long they will take."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from nodeprint.errors import NodeprintError, printable
from nodeprint.topology.facts import cpu_list

_SECONDS = 60.0
#: What a refusal says that depends on the machine: on the node that is to be measured it may be none.
_OF_THIS_MACHINE = "on this machine"
_ONLINE = Path("/sys/devices/system/cpu/online")


def check(plan: str, kernels: Path, config: Path, here: bool) -> None:
    """Ask the built kernels whether they take the arguments of `plan` (plan.tsv's text), which follows from `config`.

    `here`: this is the machine that is measured. A kernel that was not built here, or does not start here, is not
    asked. Raises NodeprintError naming file, key and the kernel's sentence.
    """
    for row in plan.splitlines():
        name, kernel, words = row.split("\t")
        key, arguments = f"arguments.{name}", words.split()
        if idle := sorted({"--plan", "--help"} & set(arguments)):
            raise NodeprintError(f"nothing is measured with {idle[0]}", where=config, key=key, advice="leave it out")
        done = _asked(kernels, kernel, arguments)
        if done is None:
            continue
        refusal = _last_words(done)
        if done.returncode == 0 and here and (absent := _absent(done.stdout)):
            refusal = f"CPU {absent[0]} is not online {_OF_THIS_MACHINE}, whose CPUs are {_ONLINE.read_text().strip()}"
        elif done.returncode != 2:
            continue
        if here or _OF_THIS_MACHINE not in refusal:
            advice = f"`kernels/build/{kernel} --help` lists what it takes; files are named by their full path"
            raise NodeprintError(refusal, where=config, key=key, advice=advice)


def seconds(kernels: Path, kernel: str, arguments: Sequence[str]) -> float:
    """How long a run takes at a slow interconnect's 195 ns a hop. Raises NodeprintError with the kernel's sentence."""
    done = _asked(kernels, kernel, arguments)
    if done is None:
        raise NodeprintError("cannot be asked how long it takes", key=kernel, advice="build it, or set slurm.minutes")
    fields = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line)
    time = fields.get("seconds_at_195_ns", fields.get("seconds"))
    if done.returncode or time is None:
        raise NodeprintError(_last_words(done) or "no time in its plan", key=kernel, advice="or set slurm.minutes")
    return float(time)


def _asked(kernels: Path, kernel: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """What a kernel answers to --plan, the dynamic build before the static one; None where none starts.

    Asked from the root folder, as a relative path would not be found from a job's folder either.
    """
    for program in (kernels / kernel, kernels / "static" / kernel):
        try:
            done = subprocess.run(
                [program.absolute(), *arguments, "--plan"],
                cwd="/", capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            continue
        if 0 <= done.returncode < 126:  # beyond: the loader or the shell could not start it, or it crashed
            return done
    return None


def _absent(answer: str) -> list[int]:
    """The CPUs of a plan that are not online here."""
    listed = next((line.removeprefix("cpus ") for line in answer.splitlines() if line.startswith("cpus ")), "")
    if not listed or not _ONLINE.exists():
        return []
    online = set(cpu_list(_ONLINE.read_text(), _ONLINE))
    return [cpu for cpu in cpu_list(listed, "--plan") if cpu not in online]


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return printable(lines[-1].partition(": ")[2] or lines[-1]) if lines else ""
