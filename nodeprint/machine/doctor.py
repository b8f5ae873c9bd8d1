"""What this machine can and cannot do for nodeprint: programs, permissions, memory; and how to get what is missing."""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from nodeprint.errors import NodeprintError, printable
from nodeprint.machine import preflight
from nodeprint.machine.topology.model import Warning
from nodeprint.machine.tree import open_tree
from nodeprint.settings import sources
from nodeprint.settings.texts import say, texts

#: The status for scripts where this machine cannot be measured yet.
NOT_YET = 3
#: `yes` it is there and works, `no` it is not, `unknown` it could not be determined.
Answer = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Fact:
    """`detail` is what was found, `without` what is skipped or done otherwise without it, `remedy` how to get it."""

    area: Literal["programs", "packages", "permissions", "machine"]
    name: str
    answer: Answer
    detail: str
    without: str = ""
    remedy: str = ""


#: Without these nothing is measured here.
_NEEDED = {"flock", "setsid", "gzip", "tar", "kernels", "two CPUs"}

#: The programs to look for, with the option for their version; texts.yaml describes the consequences without them.
_PROGRAMS = {
    "flock": "--version",
    "setsid": "--version",
    "gzip": "--version",
    "tar": "--version",
    "zstd": "--version",
    "xz": "--version",
    "likwid-pin": "-v",
    "likwid-topology": "-v",
    "lscpu": "--version",
    "lstopo-no-graphics": "--version",
    "dmidecode": "--version",
    "mpirun": "--version",
    "mpicc": "--version",
    "ansible-playbook": "--version",
    "ssh": "-V",
    "sbatch": "--version",
}

_COMPILERS = ("gcc", "clang", "cc")
_EXECUTOR = "snakemake_executor_plugin_nodeprint"

#: System call numbers, from the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl, asm-generic/unistd.h).
_CALLS = {"x86_64": {"mbind": 237, "move_pages": 279}, "aarch64": {"mbind": 235, "move_pages": 239}}
_MPOL_BIND = 2


def facts() -> list[Fact]:
    """Look at this machine. Starts each program that is found with its option for the version, and nothing else."""
    programs = [_program(name, option) for name, option in _PROGRAMS.items()]
    return [_kernels(), *programs, *_packages(), _executor(), *_permissions(), *_machine()]


def warnings() -> list[Warning]:
    """The preflight's warnings of the live system."""
    return preflight.check(open_tree(Path("/")))


def missing(facts: Iterable[Fact]) -> list[str]:
    """The names of missing facts that node-run needs: without any, this machine can be measured."""
    return [fact.name for fact in facts if fact.answer == "no" and fact.name in _NEEDED]


def lines(facts: Sequence[Fact], warnings: Iterable[Warning]) -> list[str]:
    """A line per fact, by area; a missing item is followed by the consequence and the remedy."""
    out = []
    for area in dict.fromkeys(fact.area for fact in facts):
        out.append(f"{area}:")
        for fact in (fact for fact in facts if fact.area == area):
            out.append(f"  {fact.answer:7} {fact.name}: {printable(fact.detail)}")
            if fact.answer != "yes" and fact.without:
                out.append(f"          {fact.without}" + (f"; {fact.remedy}" if fact.remedy else ""))
    out += [f"warning: {warning.text}; {warning.advice}" for warning in warnings]
    gone = ", ".join(missing(facts))
    return [*out, say("doctor", "cannot", missing=gone) if gone else say("doctor", "can")]


def _program(name: str, version_option: str) -> Fact:
    # `make run` looks into the environment of this Python first; the administrator's directories are not in every PATH
    folders = (str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin", "/sbin")
    path = shutil.which(name, path=":".join(folders))
    if path is None:
        without, remedy = (say("doctor", "programs", name, key) for key in ("without", "remedy"))
        return Fact("programs", name, "no", say("doctor", "not_installed"), without, remedy)
    return Fact("programs", name, "yes", _version([path, version_option]))


def _kernels() -> Fact:
    """Whether kernels are there, or what builds them."""
    with suppress(NodeprintError):
        return Fact("programs", "kernels", "yes", str(sources.kernels()))
    builders = {"make": shutil.which("make"), "a C compiler": next(filter(None, map(shutil.which, _COMPILERS)), None)}
    missing = " and ".join(name for name, path in builders.items() if path is None)
    if not missing:
        return Fact("programs", "kernels", "yes", say("doctor", "kernels", "buildable"))
    detail, without, remedy = (
        say("doctor", "kernels", key, missing=missing) for key in ("missing", "without", "remedy")
    )
    return Fact("programs", "kernels", "no", detail, without, remedy)


def _version(command: list[str]) -> str:
    """The first line with a figure that a program prints, or its path."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return say("doctor", "no_version", program=command[0])
    lines = (done.stdout + "\n" + done.stderr).splitlines()
    return next((printable(line.strip(), 80) for line in lines if re.search(r"\d", line)), command[0])


def _packages() -> list[Fact]:
    facts = []
    for name, without in texts()["doctor"]["packages"].items():
        try:
            facts.append(Fact("packages", name, "yes", metadata.version(name)))
        except metadata.PackageNotFoundError:
            facts.append(Fact("packages", name, "no", say("doctor", "not_installed"), without, f"pip install {name}"))
    return facts


def _executor() -> Fact:
    """Whether Snakemake finds the executor of the workflow, the only one that measures under Slurm."""
    name = "the workflow's executor"
    if importlib.util.find_spec(_EXECUTOR):
        return Fact("packages", name, "yes", say("doctor", "executor", "installed"))
    if (Path(__file__).parents[2] / "workflow" / _EXECUTOR).is_dir():
        return Fact("packages", name, "yes", say("doctor", "executor", "clone"))
    return Fact("packages", name, "no", *(say("doctor", "executor", key) for key in ("missing", "without", "remedy")))


def _permissions() -> list[Fact]:
    def words(*keys: str, **values: object) -> str:
        return say("doctor", "permissions", *keys, **values)

    def fact(name: str, answer: Answer, detail: str, without: str, remedy: str) -> Fact:
        return Fact("permissions", name, answer, detail, *(() if answer == "yes" else (without, remedy)))

    user, latency = os.geteuid(), Path("/dev/cpu_dma_latency")
    held = os.access(latency, os.W_OK)
    return [
        *(fact(name, *found, words(name), words("allow")) for name, found in _memory_calls().items()),
        fact("root", "no" if user else "yes", f"uid {user}", words("root", "without"), words("root", "remedy")),
        fact(
            latency.name,
            "yes" if held else "no",
            words("latency", "held" if held else "missing", path=latency),
            words("latency", "without"),
            words("latency", "remedy"),
        ),
    ]


def _memory_calls() -> Mapping[str, tuple[Answer, str]]:
    """Whether a page may be bound to a NUMA node, and its node looked up."""
    numbers = _CALLS.get(platform.machine())
    if numbers is None:
        detail = say("doctor", "permissions", "unknown", architecture=platform.machine())
        return {"mbind": ("unknown", detail), "move_pages": ("unknown", detail)}
    libc = ctypes.CDLL(None, use_errno=True)
    size = mmap.PAGESIZE
    with mmap.mmap(-1, size) as page:
        page[0] = 1
        view = ctypes.c_char.from_buffer(page)
        address = ctypes.c_ulong(ctypes.addressof(view))
        pages = (ctypes.c_void_p * 1)(address.value)
        status = (ctypes.c_int * 1)(-1)
        result = libc.syscall(ctypes.c_long(numbers["move_pages"]), 0, ctypes.c_ulong(1), pages, None, status, 0)
        moved = ctypes.get_errno() if result != 0 else max(0, -status[0])
        node = status[0] if result == 0 and status[0] >= 0 else 0
        mask = (ctypes.c_ulong * 16)()  # 1024 nodes
        mask[node // 64] = 1 << node % 64
        bits = ctypes.c_ulong(16 * 64 + 1)  # the kernel counts one bit more than it uses
        bound = libc.syscall(ctypes.c_long(numbers["mbind"]), address, ctypes.c_ulong(size), _MPOL_BIND, mask, bits, 0)
        refused = ctypes.get_errno() if bound != 0 else 0
        del view

    def answer(error: int, good: str) -> tuple[Answer, str]:
        return ("yes", good) if error == 0 else ("no", os.strerror(error))

    return {
        "mbind": answer(refused, say("doctor", "permissions", "bound", node=node)),
        "move_pages": answer(moved, say("doctor", "permissions", "looked_up", node=node)),
    }


def _machine() -> list[Fact]:
    tree = open_tree(Path("/"))
    allowed = len(os.sched_getaffinity(0))
    facts = [_needed("two CPUs", allowed > 1, f"{allowed} allowed", say("doctor", "machine", "one_cpu"))]
    if platform.machine() == "x86_64":
        invariant = {"constant_tsc", "nonstop_tsc"} <= set((tree.read_text("proc/cpuinfo") or "").split())
        source = tree.read_text("sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown"
        slower = say("doctor", "machine", "other_clock")
        facts.append(_needed("invariant TSC", invariant, f"clock source {printable(source.strip(), 40)}", slower))
    memory = re.search(r"MemAvailable:\s*(\d{1,15}) kB", tree.read_text("proc/meminfo") or "")
    nodes = [name for name in tree.names("sys/devices/system/node") if re.fullmatch(r"node\d+", name)]
    need = (preflight.LEAST_FREE_BYTES >> 20) * max(1, len(nodes))  # MiB
    if memory:
        mib = int(memory[1]) // 1024
        text = say("doctor", "machine", "memory", mib=mib, needed=need)
        facts.append(_needed("memory", mib >= need, text, say("doctor", "machine", "little_memory")))
    return facts


def _needed(name: str, fulfilled: bool, detail: str, without: str) -> Fact:
    return Fact("machine", name, "yes", detail) if fulfilled else Fact("machine", name, "no", detail, without)
