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
from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class Examination:
    """The facts, and the preflight's warnings of the live system."""

    facts: tuple[Fact, ...]
    warnings: tuple[Warning, ...]

    @property
    def can_measure(self) -> bool:
        """Whether this machine can be measured: what node-run cannot do without is there."""
        return not self.missing

    @property
    def missing(self) -> list[str]:
        """What of that is not there."""
        return [fact.name for fact in self.facts if fact.answer == "no" and fact.name in _NEEDED]


@dataclass(frozen=True, slots=True)
class _Program:
    name: str
    version: tuple[str, ...]
    without: str
    remedy: str


#: Without these nothing is measured here.
_NEEDED = {"flock", "setsid", "gzip", "tar", "kernels", "two CPUs"}

_PROGRAMS = (
    _Program("flock", ("--version",), "measuring fails: a node cannot be locked", "install util-linux"),
    _Program("setsid", ("--version",), "measuring fails: a kernel cannot be stopped", "install util-linux"),
    _Program("gzip", ("--version",), "measuring fails: records cannot be compressed", "install gzip"),
    _Program("tar", ("--version",), "measuring fails: surveys cannot be packed", "install tar"),
    _Program("zstd", ("--version",), "records are packed by xz, which is read more slowly", "install zstd"),
    _Program("xz", ("--version",), "without zstd records take twice the room", "install xz-utils or xz"),
    _Program("likwid-pin", ("-v",), "the kernels pin themselves", "apt-get install likwid, Spack, EasyBuild"),
    _Program("likwid-topology", ("-v",), "its topology is not in the survey", "comes with likwid"),
    _Program("lscpu", ("--version",), "its output is not in the survey", "install util-linux"),
    _Program("lstopo-no-graphics", ("--version",), "no topology XML in the survey", "install hwloc or hwloc-nox"),
    _Program("dmidecode", ("--version",), "memory modules are unknown", "install dmidecode; it needs root"),
    _Program("mpirun", ("--version",), "no LinkTest", "apt-get install openmpi-bin, dnf install openmpi"),
    _Program("mpicc", ("--version",), "LinkTest refuses messages below 64 KiB", "apt-get install libopenmpi-dev"),
    _Program("ansible-playbook", ("--version",), "no `launch: ansible`", ".venv/bin/pip install ansible-core"),
    _Program("ssh", ("-V",), "no `launch: ansible`", "apt-get install openssh-client, dnf install openssh-clients"),
    _Program("sbatch", ("--version",), "no `launch: slurm`", "start where Slurm's commands are"),
)

_PACKAGES = {
    "snakemake": "`make run` does not work; `nodeprint here` does",
    "typst": "no PDF",
    "mpi4py": "no LinkTest",
}

_COMPILERS = ("gcc", "clang", "cc")
_EXECUTOR = "snakemake_executor_plugin_nodeprint"

#: System call numbers, from the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl, asm-generic/unistd.h).
_CALLS = {"x86_64": {"mbind": 237, "move_pages": 279}, "aarch64": {"mbind": 235, "move_pages": 239}}
_MPOL_BIND = 2


def examine() -> Examination:
    """Look at this machine. Starts each program that is found with its option for the version, and nothing else."""
    programs = [_program(program) for program in _PROGRAMS]
    facts = [_kernels(), *programs, *_packages(), _executor(), *_permissions(), *_machine()]
    return Examination(tuple(facts), tuple(preflight.check(open_tree(Path("/")))))


def as_text(examination: Examination) -> str:
    """For a terminal: a line per fact, by area; below what is missing, what is done without it and how to get it."""
    lines = []
    for area in dict.fromkeys(fact.area for fact in examination.facts):
        lines.append(f"{area}:")
        for fact in (fact for fact in examination.facts if fact.area == area):
            lines.append(f"  {fact.answer:7} {fact.name}: {printable(fact.detail)}")
            if fact.answer != "yes" and fact.without:
                lines.append(f"          {fact.without}" + (f"; {fact.remedy}" if fact.remedy else ""))
    lines += [f"warning: {warning.text}; {warning.advice}" for warning in examination.warnings]
    missing = ", ".join(examination.missing)
    lines.append(f"This machine cannot be measured yet: {missing}." if missing else "This machine can be measured.")
    return "\n".join(lines)


def _program(program: _Program) -> Fact:
    # `make run` looks into the environment of this Python first; the administrator's folders are not in every PATH
    folders = (str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin", "/sbin")
    path = shutil.which(program.name, path=":".join(folders))
    if path is None:
        return Fact("programs", program.name, "no", "not installed", program.without, program.remedy)
    return Fact("programs", program.name, "yes", _version([path, *program.version]) if program.version else path)


def _kernels() -> Fact:
    """Whether kernels are there, or what builds them."""
    with suppress(NodeprintError):
        return Fact("programs", "kernels", "yes", str(sources.kernels()))
    builders = {"make": shutil.which("make"), "a C compiler": next(filter(None, map(shutil.which, _COMPILERS)), None)}
    missing = " and ".join(name for name, path in builders.items() if path is None)
    if not missing:
        return Fact("programs", "kernels", "yes", "not built yet; `make kernels` builds them, and `make run` does")
    remedy = f"install {missing}, or a wheel that has static kernels"
    detail = f"not built, and {missing} cannot be found"
    return Fact("programs", "kernels", "no", detail, "nothing can be measured", remedy)


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
        return f"{command[0]} does not report its version"
    lines = (done.stdout + "\n" + done.stderr).splitlines()
    return next((printable(line.strip(), 80) for line in lines if re.search(r"\d", line)), command[0])


def _packages() -> list[Fact]:
    facts = []
    for name, without in _PACKAGES.items():
        try:
            facts.append(Fact("packages", name, "yes", metadata.version(name)))
        except metadata.PackageNotFoundError:
            facts.append(Fact("packages", name, "no", "not installed", without, f"pip install {name}"))
    return facts


def _executor() -> Fact:
    """Whether Snakemake finds the executor of the workflow, the only one that measures under Slurm."""
    name = "the workflow's executor"
    if importlib.util.find_spec(_EXECUTOR):
        return Fact("packages", name, "yes", "`snakemake --workflow-profile profiles/slurm` finds it")
    if (Path(__file__).parents[2] / "workflow" / _EXECUTOR).is_dir():
        call = "PYTHONPATH=workflow snakemake --workflow-profile profiles/slurm"
        return Fact("packages", name, "yes", f"in this clone: `make run` finds it, and `{call}`")
    remedy = "install nodeprint again, or call `make setup` in a clone; no other executor puts jobs onto their nodes"
    return Fact("packages", name, "no", "not installed", "no `launch: slurm`", remedy)


def _permissions() -> list[Fact]:
    allow = "allow the system call (in containers CAP_SYS_NICE)"
    sentences = {
        "mbind": ("memory is placed by first touch alone", allow),
        "move_pages": ("the NUMA node of a page cannot be verified by it", allow),
    }
    facts = [
        Fact("permissions", name, answer, detail, *(sentences[name] if answer != "yes" else ("", "")))
        for name, (answer, detail) in _memory_calls().items()
    ]
    root, latency = os.geteuid() == 0, Path("/dev/cpu_dma_latency")
    unknown = "BIOS, memory modules and some counters are unknown"
    remedy = "run as root for a complete survey"
    name, idle = "cpu_dma_latency", "CPUs that wait for one another may fall into idle states between pairs"
    return [
        *facts,
        Fact("permissions", "root", "yes", "uid 0")
        if root
        else Fact("permissions", "root", "no", f"uid {os.geteuid()}", unknown, remedy),
        Fact("permissions", name, "yes", f"{latency} is held at 0 while CPUs wait for one another")
        if os.access(latency, os.W_OK)
        else Fact(
            "permissions", name, "no", f"{latency} cannot be opened", idle, "let the user write it, or run as root"
        ),
    ]


def _memory_calls() -> Mapping[str, tuple[Answer, str]]:
    """Whether a page may be bound to a NUMA node, and its node looked up."""
    numbers = _CALLS.get(platform.machine())
    if numbers is None:
        detail = f"not known for {platform.machine()}"
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
        "mbind": answer(refused, f"a page was bound to NUMA node {node}"),
        "move_pages": answer(moved, f"a page was found on NUMA node {node}"),
    }


def _machine() -> list[Fact]:
    tree = open_tree(Path("/"))
    allowed = len(os.sched_getaffinity(0))
    facts = [_needed("two CPUs", allowed > 1, f"{allowed} allowed", "nothing is measured of one CPU alone")]
    if platform.machine() == "x86_64":
        invariant = {"constant_tsc", "nonstop_tsc"} <= set((tree.read_text("proc/cpuinfo") or "").split())
        source = tree.read_text("sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown"
        slower = "clock_gettime is used; batches take longer"
        facts.append(_needed("invariant TSC", invariant, f"clock source {printable(source.strip(), 40)}", slower))
    memory = re.search(r"MemAvailable:\s*(\d{1,15}) kB", tree.read_text("proc/meminfo") or "")
    nodes = [name for name in tree.names("sys/devices/system/node") if re.fullmatch(r"node\d+", name)]
    need = (preflight.LEAST_FREE_BYTES >> 20) * max(1, len(nodes))  # MiB
    if memory:
        mib = int(memory[1]) // 1024
        text = f"{mib} MiB available, {need} MiB are enough"
        facts.append(_needed("memory", mib >= need, text, "NUMA nodes with too little free memory are left out"))
    return facts


def _needed(name: str, fulfilled: bool, detail: str, without: str) -> Fact:
    return Fact("machine", name, "yes", detail) if fulfilled else Fact("machine", name, "no", detail, without)
