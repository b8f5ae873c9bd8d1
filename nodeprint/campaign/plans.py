"""The kernels' answers to a plan before measuring: rejected arguments and run times."""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

from nodeprint.campaign.launchers.launcher import Scheduler
from nodeprint.campaign.launchers.launcher_registry import launcher
from nodeprint.campaign.node_sheet import Node
from nodeprint.errors import NodeprintError, printable
from nodeprint.settings.config import plan as plan_of
from nodeprint.settings.config import read_plan
from nodeprint.settings.config_file import Config

_SECONDS = 60.0
#: A kernel's start and its pinning, which its plan does not count.
_START_S = 1.0
#: The smallest group of CPUs that shares memory controllers: an L3 where each is a NUMA node.
_CPUS_A_NODE = 8
#: What a refusal says that depends on the machine: on the node that is to be measured it may be none.
_OF_THIS_MACHINE = "on this machine"
_ONLINE = Path("/sys/devices/system/cpu/online")


def check(plan: str, kernels: Path, config: Path, here: bool) -> None:
    """Ask the built kernels whether they take the arguments of `plan` (plan.tsv's text), which follows from `config`.

    `here`: this is the machine that is measured. A kernel that was not built here, or does not start here, is not
    asked. Raises NodeprintError naming file, key and the kernel's sentence.
    """
    for row in read_plan(plan):
        kernel, key, arguments = row.kernel, f"arguments.{row.name}", row.arguments.split()
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


def seconds(kernels: Path, kernel: str, arguments: Sequence[str], machine: Mapping[str, str] | None = None) -> float:
    """Return the time of a run at a slow interconnect's 195 ns core-to-core latency, here or on the `machine` of this
    environment.

    Raises NodeprintError with the kernel's sentence.
    """
    return _seconds(_planned(kernels, kernel, arguments, machine))


def process_seconds(kernels: Path, kernel: str, arguments: Sequence[str]) -> float:
    """Return how long the process of a run exists: `seconds`, and its start. Raises NodeprintError as `seconds`."""
    return _START_S + seconds(kernels, kernel, arguments)


def _planned(
    kernels: Path, kernel: str, arguments: Sequence[str], machine: Mapping[str, str] | None = None
) -> dict[str, str]:
    done = _asked(kernels, kernel, arguments, machine)
    if done is None:
        raise NodeprintError("does not start here", key=kernel, advice="call `make kernels`")
    fields = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line)
    if done.returncode or not {"seconds_at_195_ns", "seconds"} & fields.keys():
        raise NodeprintError(_last_words(done) or "no time in its plan", key=kernel)
    return fields


def _seconds(fields: Mapping[str, str]) -> float:
    return float(fields.get("seconds_at_195_ns", fields.get("seconds", "nan")))


def unavailable(kernels: Path, kernel: str, arguments: Sequence[str]) -> str:
    """The reason why a kernel cannot measure on this machine, by its plan; empty if it can, or is not known."""
    done = _asked(kernels, kernel, arguments)
    lines = done.stdout.splitlines() if done is not None and done.returncode == 0 else []
    return next((line.partition(" ")[2] for line in lines if line.startswith("unavailable ")), "")


def job_minutes(config: Config, plan: str, cpus: int, cores: int, kernels: Path) -> int:
    """Time limit of a job that measures `plan` on a node of so many CPUs on so many cores; `minutes` of the launcher's
    section wins.

    Twice the time at a slow interconnect's 195 ns core-to-core latency, and five minutes for start, survey and pinning.
    The node's NUMA layout is unknown before it is measured, and the login node's may differ. So the plan assumes the
    longest of the usual ones (`_layout`). Raises NodeprintError naming the argument's key.
    """
    if minutes := launcher(config.launch).jobs(config).minutes:
        return minutes
    return 5 + math.ceil(2 * job_seconds(config, plan, cpus, cores, kernels) / 60)


def job_seconds(config: Config, plan: str, cpus: int, cores: int, kernels: Path) -> float:
    """The time of the kernels of `plan` at 195 ns core-to-core latency on a node of so many CPUs on so many cores.

    Raises NodeprintError naming the argument's key.
    """
    total, advice, machines = 0.0, f"set {launcher(config.launch).section}.minutes", dict[int, dict[str, str]]()
    with ExitStack() as layouts:
        for row in read_plan(plan, config.runs):
            words = row.arguments.split()
            chosen = [word for option, word in pairwise(words) if option == "--cpus"]
            count = max(cores if chosen[-1:] == ["cores"] else cpus, 2)
            if count not in machines:  # thousands of files
                machines[count] = layouts.enter_context(_layout(count))
            try:
                total += row.runs * seconds(kernels, row.kernel, [*words, "--cpus", f"0-{count - 1}"], machines[count])
            except NodeprintError as error:
                raise NodeprintError(str(error), key=f"arguments.{row.name}", advice=advice) from error
    return total


def check_jobs(config: Config, nodes: Sequence[Node], kernels: Path, path: Path) -> None:
    """See that a scheduler can be asked for a job of each size of nodes. Raises NodeprintError naming `path`, the
    configuration."""
    named, rows = launcher(config.launch), plan_of(config)
    if not isinstance(named, Scheduler):
        return
    for node in {(node.cpus, node.cores): node for node in nodes}.values():
        try:
            named.options(config, node, job_minutes(config, rows, node.cpus, node.cores, kernels))
        except NodeprintError as error:
            raise NodeprintError(str(error), where=path) from error


#: What a job takes beside its kernels: start, survey, packing of records.
_BESIDE_S = 60.0


def seconds_of(config: Config, plan: str, nodes: Sequence[Node], kernels: Path) -> dict[str, float]:
    """By node how long a job of `plan` takes; half the limit where `minutes` sets one.

    Raises NodeprintError as `job_seconds`.
    """
    limit = 60 * launcher(config.launch).jobs(config).minutes
    kinds = {(node.cpus, node.cores) for node in nodes}
    of_kind = {kind: limit / 2 if limit else job_seconds(config, plan, *kind, kernels) + _BESIDE_S for kind in kinds}
    return {node.node: of_kind[node.cpus, node.cores] for node in nodes}


@contextmanager
def _layout(cpus: int) -> Iterator[dict[str, str]]:
    """Environment that makes a kernel plan for two sockets in which each eight CPUs are an L3 and a NUMA node ("L3 as
    NUMA").

    No layout of so many CPUs in use has more memory nodes, and so more to measure.
    """
    half, last = -(-cpus // 2), (cpus - 1) // _CPUS_A_NODE
    with tempfile.TemporaryDirectory(prefix="nodeprint-plan-") as folder:
        system = Path(folder, "devices/system")

        def write(path: str, text: str) -> None:
            file = system / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")

        Path(folder, "cpuinfo").write_text("vendor_id\t: AuthenticAMD\n")  # whose cores allocate in their own L3 alone
        write("cpu/online", f"0-{cpus - 1}")
        write("node/has_memory", f"0-{last}")
        sockets = [int(node * _CPUS_A_NODE >= half) for node in range(last + 1)]
        for node, socket in enumerate(sockets):
            first = node * _CPUS_A_NODE
            write(f"node/node{node}/cpulist", f"{first}-{min(first + _CPUS_A_NODE, cpus) - 1}")
            write(
                f"node/node{node}/distance",
                " ".join(
                    "10" if target == node else "12" if sockets[target] == socket else "32"
                    for target in range(last + 1)
                ),
            )
        for cpu in range(cpus):
            node = cpu // _CPUS_A_NODE
            write(f"cpu/cpu{cpu}/topology/physical_package_id", str(sockets[node]))
            shared = f"{node * _CPUS_A_NODE}-{min((node + 1) * _CPUS_A_NODE, cpus) - 1}"
            for level, size, sharers in (("3", "32768K", shared), ("2", "1024K", f"{cpu}"), ("1", "32K", f"{cpu}")):
                cache = f"cpu/cpu{cpu}/cache/index{3 - int(level)}"
                facts = {"level": level, "type": "Unified", "size": size, "shared_cpu_list": sharers}
                for name, text in facts.items():
                    write(f"{cache}/{name}", text)
        yield {"NODEPRINT_SYSFS": folder, "NODEPRINT_PROCFS": folder}


def _asked(
    kernels: Path, kernel: str, arguments: Sequence[str], machine: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str] | None:
    """A kernel's answer to --plan, the dynamic build before the static one; None if neither starts.

    `machine` is environment that stands for another machine than this one. The kernel runs in the root directory, as a
    relative path would not be found from a job's directory either.
    """
    for program in (kernels / kernel, kernels / "static" / kernel):
        try:
            done = subprocess.run(
                [program.absolute(), *arguments, "--plan"],
                cwd="/",
                env=os.environ | dict(machine or {}),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if 0 <= done.returncode < 126:  # beyond: the loader or the shell could not start it, or it crashed
            return done
    return None


def _absent(answer: str) -> list[int]:
    """The CPUs of a plan that are not online here."""
    from nodeprint.machine.topology.facts import cpu_list  # noqa: PLC0415 (the workflow plans jobs with Snakemake alone)

    listed = next((line.removeprefix("cpus ") for line in answer.splitlines() if line.startswith("cpus ")), "")
    if not listed or not _ONLINE.exists():
        return []
    online = set(cpu_list(_ONLINE.read_text(), _ONLINE))
    return [cpu for cpu in cpu_list(listed, "--plan") if cpu not in online]


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return printable(lines[-1].partition(": ")[2] or lines[-1]) if lines else ""
