"""The kernels on machines that this one is not: memory that may not be used, no right to place it, odd page sizes.

What cannot be had here is made: trees in place of /sys and /proc, a seccomp filter, files bound over those of /proc,
64 KiB pages under qemu-user. Invariants only, never a figure of a machine.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import json
import os
import platform
import re
import resource
import shlex
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from nodeprint.campaign import plans
from nodeprint.campaign.node_sheet import Node
from nodeprint.data.format import records
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import PRESET_MINUTES, Config
from nodeprint.settings.measurements import measurements as known_measurements
from tests.support.real_parts import (
    ALLOWED,
    ROOT,
    aarch64_emulator,
    built,
    missing,
    need,
    need_mount_namespace,
)
from tests.support.small_machine import small_machine

pytestmark = pytest.mark.machine

MIB = 2**20
CPUS = f"{ALLOWED[0]},{ALLOWED[-1]}"


def write(root: Path, files: Mapping[str, str]) -> None:
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")


def strange(folder: Path, free_mib: tuple[int, ...], allowed: str, **sysfs: str) -> dict[str, str]:
    """An environment in which NUMA node 0 has all CPUs and the others memory alone, so much of it free."""
    nodes = {
        f"devices/system/node/node{n}/{name}": content
        for n, mib in enumerate(free_mib)
        for name, content in (
            ("cpulist", f"0-{max(ALLOWED)}" if n == 0 else ""),
            ("meminfo", f"Node {n} MemTotal: 99999999 kB\nNode {n} MemFree: {mib << 10} kB"),
        )
    }
    memory = f"0-{len(free_mib) - 1}"
    known = {"devices/system/cpu/online": f"0-{max(ALLOWED)}", "devices/system/node/has_memory": memory}
    write(folder / "sys", {**known, **nodes, **sysfs})
    write(folder / "proc", {"self/status": f"Name:\tx\nMems_allowed:\t1\nMems_allowed_list:\t{allowed}"})
    maps = folder / "proc/self/numa_maps"  # where memory of the real process lies
    if not maps.is_symlink():
        maps.symlink_to("/proc/self/numa_maps")
    return os.environ | {"NODEPRINT_SYSFS": str(folder / "sys"), "NODEPRINT_PROCFS": str(folder / "proc")}


def call(kernel: str, out: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [*more.pop("under", ()), str(more.pop("folder", built()) / kernel), *arguments, "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **more)


def measured(kernel: str, out: Path, *arguments: str, **more: Any) -> records.Records:
    result = call(kernel, out, *arguments, **more)
    assert result.returncode == 0, result.stderr
    file = records.read(out)
    assert file.complete
    return file


# ---- memory nodes that may not be used, or are full ----

#: Every operation that goes through the memory of all nodes; on the real node 0 it is measured.
OF_ALL_NODES = {
    "chase": ["--op", "latency", "--cpus", CPUS, "--passes", "1"],
    "bandwidth": ["--op", "nodes", "--cpus", CPUS, "--passes", "1", "--streams", "load"],
    "coherence": ["--op", "cas", "--cpus", CPUS, "--passes", "1", "--home", "each"],
}


@pytest.mark.parametrize("kernel", OF_ALL_NODES)
def test_nodes_that_are_full_or_not_allowed_are_left_out_and_listed(tmp_path: Path, kernel: str) -> None:
    need(cpus=2)
    file = measured(
        kernel, tmp_path / "r.jsonl", *OF_ALL_NODES[kernel], env=strange(tmp_path, (4000, 12, 4000), allowed="0-1")
    )
    left_out = file.header["not_measured"]
    assert "12 MiB are free" in left_out["memory of NUMA node 1"]
    assert "not allowed to this process" in left_out["memory of NUMA node 2"]
    homes = set(file.pairs["home"]) if kernel == "coherence" else set(file.cells["memory_node"])
    assert homes == {0}


def test_the_last_node_with_memory_is_not_left_out_for_being_full(tmp_path: Path) -> None:
    need(cpus=2)
    arguments = ["--op", "latency", "--cpus", CPUS]
    result = call("chase", tmp_path / "r.jsonl", *arguments, env=strange(tmp_path, (100, 12), allowed="0-1"))
    assert result.returncode == 3 and "100 MiB are free on the NUMA node" in result.stderr


def test_a_node_without_room_for_the_curve_leaves_the_others_theirs(tmp_path: Path) -> None:
    """Two nodes of a CPU and an L3 of 96 MiB each; the second has room for more than a measurement of latency."""
    caches = {
        f"devices/system/cpu/cpu{cpu}/cache/index0/{name}": value
        for cpu in (0, 1)
        for name, value in {"level": "3", "type": "Unified", "size": "98304K", "shared_cpu_list": str(cpu)}.items()
    }
    cpus = {f"devices/system/node/node{node}/cpulist": str(node) for node in (0, 1)}
    arguments = ["--op", "curve", "--cpus", "0,1", "--plan"]
    result = call(
        "chase", tmp_path / "r.jsonl", *arguments, env=strange(tmp_path, (4000, 200), "0-1", **cpus, **caches)
    )
    assert result.returncode == 0, result.stderr
    plan = dict(line.split(" ", 1) for line in result.stdout.splitlines())
    assert int(plan["memory_bytes"]) == 4 * 96 * MIB
    assert "200 MiB are free" in json.loads(plan["not_measured"])["the curve in memory of NUMA node 1"]


def test_a_home_that_may_not_be_used_is_refused_with_the_reason(tmp_path: Path) -> None:
    need(cpus=2)
    arguments = ["--op", "cas", "--cpus", CPUS, "--home", "1"]
    result = call("coherence", tmp_path / "r.jsonl", *arguments, env=strange(tmp_path, (4000, 4000), allowed="0"))
    assert result.returncode == 3 and "not allowed to this process" in result.stderr


# ---- neither /sys nor /proc says anything ----

#: The short form of each operation; bandwidths and the curve take as much memory as unknown caches might have.
SHORT = {
    f"{of.kernel} {words[1]}": (of.kernel, words)
    for of in known_measurements().values()
    if of.kernel not in ("linktest", "bandwidth", "loaded")
    and (words := [*of.arguments.split(), *(of.short or "").split()])[1] != "curve"
    and "--alias" not in words
}


@pytest.mark.parametrize("operation", SHORT)
def test_without_sys_and_proc_a_record_is_complete_or_a_sentence_says_why(tmp_path: Path, operation: str) -> None:
    need(cpus=2)
    kernel, words = SHORT[operation]
    environment = os.environ | {"NODEPRINT_SYSFS": "/nonexistent", "NODEPRINT_PROCFS": "/nonexistent"}
    out = tmp_path / "r.jsonl"
    result = call(kernel, out, *words, "--cpus", CPUS, "--passes", "1", env=environment)
    said = [line for line in result.stderr.splitlines() if "left" not in line]
    if result.returncode == 0:
        assert records.read(out).complete
    else:
        assert result.returncode == 3 and len(said) == 1 and said[0].startswith(f"{kernel}: ")


@pytest.mark.parametrize("root", ["/proc", "/sys"])
def test_one_function_opens_the_files_of_a_root(root: str) -> None:
    """Others take paths below it, so that a test's tree stands for all of it."""
    sources = [path for path in (ROOT / "kernels").glob("*/*.[ch]") if path.parent.name != "tests"]
    named = {path.name for path in sources if f'"{root}' in path.read_text()}
    by_planner = {"kernel.c"} if root == "/sys" else set()  # it compares whether the root is this machine's
    assert named == {"proc.c" if root == "/proc" else "machine.c"} | by_planner


def test_a_record_and_its_memory_are_of_the_tree_of_proc(tmp_path: Path) -> None:
    need(cpus=2)
    library = "7f0000000000-7f0000001000 r-xp 00000000 00:00 0 /usr/lib/liblikwidpin.so"
    files = {"sys/kernel/random/boot_id": "of-a-tree", "self/maps": library, "meminfo": "Hugepagesize: 64 kB"}
    write(tmp_path, files)
    environment = os.environ | {"NODEPRINT_PROCFS": str(tmp_path)}
    out = tmp_path / "r.jsonl"
    huge = ("--op", "levels", "--pages", "huge", "--cpus", CPUS, "--passes", "1")
    result = call("chase", out, "--op", "latency", "--size-mib", "8", "--cpus", CPUS, "--passes", "1", env=environment)
    assert result.returncode == 0, result.stderr
    assert records.read(out).header["boot_id"] == "of-a-tree"
    assert "likwid-pin put the worker" in result.stderr, "which in truth did not pin anything"
    refused = call("chase", tmp_path / "huge.jsonl", *huge, env=environment)
    assert refused.returncode == 3 and "of 64 KiB" in refused.stderr, refused.stderr
    limited = ("prlimit", f"--as={4 << 30}")
    for used_mib, code in ((0, 0), (4000, 3)):
        write(tmp_path, {"self/statm": " ".join([str(used_mib * MIB // os.sysconf("SC_PAGESIZE"))] * 7)})
        chase = ("--op", "latency", "--size-mib", "64", "--cpus", CPUS, "--passes", "1")
        again = call("chase", tmp_path / f"{used_mib}.jsonl", *chase, env=environment, under=limited)
        assert again.returncode == code, again.stderr


# ---- no thread can be started ----


def test_a_thread_that_cannot_be_started_names_the_limit(tmp_path: Path) -> None:
    """Of a user without privileges, to whom ulimit -u applies; the control group is a tree in place of /sys."""
    need(root="measure as another user", cpus=2)
    folder = Path(tempfile.mkdtemp(prefix="nodeprint-threads-"))
    user = 61234  # nobody else's: its processes count
    try:
        folder.chmod(0o777)
        shutil.copy(built() / "clock", folder)
        group = {
            "proc/self/cgroup": "0::/job",
            "sys/fs/cgroup/job/pids.max": "40",
            "sys/fs/cgroup/job/pids.current": "39",
        }
        write(folder, group)

        def refusal() -> str:
            done = call(
                "clock",
                folder / "r.jsonl",
                "--op",
                "alone",
                "--cpus",
                CPUS,
                folder=folder,
                user=user,
                env=os.environ | {"NODEPRINT_SYSFS": f"{folder}/sys", "NODEPRINT_PROCFS": f"{folder}/proc"},
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)),
            )
            assert done.returncode == 3, done.stderr
            (line,) = done.stderr.splitlines()
            return line

        cause = f"no thread could be started on CPU {ALLOWED[0]} (pthread_create: Resource temporarily unavailable). "
        assert refusal().endswith(cause + "ulimit -u allows this user 1 processes and threads; raise it.")
        write(folder, {"sys/fs/cgroup/job/pids.current": "40"})
        assert refusal().endswith(cause + "The control group is full; raise its pids.max (TasksMax in systemd).")
    finally:
        shutil.rmtree(folder)


# ---- no right to place memory: containers without CAP_SYS_NICE ----

#: Of mbind, set_mempolicy and move_pages, by machine: AUDIT_ARCH and numbers (Linux, unistd.h).
PLACING = {"x86_64": (0xC000003E, (237, 238, 279)), "aarch64": (0xC00000B7, (235, 237, 239))}


def without_placement() -> Callable[[], None]:
    """What makes a child answer EPERM to those three calls, as Docker's default profile does (a seccomp filter)."""
    if platform.machine() not in PLACING:
        missing(f"no numbers of system calls for {platform.machine()}")
    arch, calls = PLACING[platform.machine()]
    load, jump_equal, give = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EPERM
    program = [(load, 0, 0, 4), (jump_equal, 0, len(calls) + 1, arch), (load, 0, 0, 0)]
    program += [(jump_equal, len(calls) - i, 0, number) for i, number in enumerate(calls)]
    program += [(give, 0, 0, allow), (give, 0, 0, refuse)]
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(packed)))
    libc = ctypes.CDLL(None, use_errno=True)

    def install() -> None:
        no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
        if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, filter_mode, header):
            raise OSError(ctypes.get_errno(), f"no seccomp filter of {len(packed)} bytes")

    return install


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        *((kernel, arguments) for kernel, arguments in OF_ALL_NODES.items()),
        ("bandwidth", ["--op", "scaling", "--cpus", CPUS, "--passes", "1"]),
        ("touch", ["--op", "ratio", "--cpus", CPUS, "--passes", "1"]),
    ],
)
def test_memory_is_measured_where_it_may_not_be_bound(tmp_path: Path, kernel: str, arguments: list[str]) -> None:
    need(cpus=2)
    environment = small_machine(tmp_path, 4, 4000) if kernel == "bandwidth" else os.environ.copy()
    file = measured(kernel, tmp_path / "r.jsonl", *arguments, env=environment, preexec_fn=without_placement())
    for where in file.header["placement"].values():
        assert not where["bound"] and where["verified_by"] in {"numa_maps", "one_node"}


def test_nodes_that_no_cpu_can_touch_are_left_out_where_memory_may_not_be_bound(tmp_path: Path) -> None:
    need(cpus=2)
    environment = strange(tmp_path, (4000, 4000), allowed="0-1")
    file = measured(
        "chase", tmp_path / "r.jsonl", *OF_ALL_NODES["chase"], env=environment, preexec_fn=without_placement()
    )
    assert "not permitted" in file.header["not_measured"]["memory of NUMA node 1"]
    assert set(file.cells["memory_node"]) == {0}


# ---- sizes of pages ----


def test_a_transparent_huge_page_has_a_size_of_its_own(tmp_path: Path) -> None:
    """default_hugepagesz=1G makes reserved pages larger, not transparent ones; with 64 KiB pages those have 512 MiB."""
    need("mount", cpus=2)
    need_mount_namespace("bind a file over /proc/meminfo")
    reserved = "".join(
        "Hugepagesize:    1048576 kB\n" if line.startswith("Hugepagesize:") else line
        for line in Path("/proc/meminfo").read_text().splitlines(keepends=True)
    )
    (tmp_path / "meminfo").write_text(reserved)
    inside = f'mount --bind {shlex.quote(str(tmp_path / "meminfo"))} /proc/meminfo && exec "$@"'
    under = ["unshare", "--mount", "sh", "-c", inside, "sh"]
    arguments = ["--op", "latency", "--cpus", str(ALLOWED[0]), "--passes", "1"]
    file = measured("chase", tmp_path / "r.jsonl", *arguments, under=under)
    assert {where["bytes"] for where in file.header["placement"].values()} == {64 * MIB}
    huge = {"kernel/mm/transparent_hugepage/hpage_pmd_size": str(512 * MIB)}
    file = measured(
        "chase", tmp_path / "s.jsonl", *arguments, env=strange(tmp_path, (8000,), allowed="0", **huge), under=under
    )
    assert {where["bytes"] for where in file.header["placement"].values()} == {64 * MIB}


#: Those of pairs, and one that maps memory twice; tests/kernels/test_numa_kernels.py has the other operations.
ON_64_KIB_PAGES = {name: call for name, call in SHORT.items() if name.startswith("coherence ")} | {
    "remap second address": ("remap", ["--op", "pairs", "--same-cpu", "--alias", "different", "--size-mib", "8"])
}


@pytest.mark.parametrize("operation", ON_64_KIB_PAGES)
def test_lines_are_on_64_kib_pages(tmp_path: Path, operation: str) -> None:
    need(cpus=2)
    if "-p" not in aarch64_emulator():
        missing("this QEMU cannot set the page size")
    kernel, words = ON_64_KIB_PAGES[operation]
    arguments = [*words, "--cpus", CPUS, "--passes", "1"]
    file = measured(kernel, tmp_path / "r.jsonl", *arguments, folder=built("aarch64-lse"), under=aarch64_emulator())
    if operation == "coherence loaded":
        assert file.not_applicable
    for where in file.header["placement"].values():
        assert where["bytes"] % 65536 == 0


# ---- uptime ----


def test_clocks_of_cores_after_a_century_of_uptime(tmp_path: Path) -> None:
    """In a double, ns since the start come in steps of 512 then (2 after 104 days), a quarter of a probe of 2 us."""
    need("unshare", root="give a process another uptime, in a namespace of its own", cpus=2)
    under = ["unshare", "--time", "--monotonic", "3000000000"]
    file = measured("coherence", tmp_path / "r.jsonl", "--op", "cas", "--cpus", CPUS, "--passes", "12", under=under)
    clocks = sorted({float(ghz) for end in "ab" for ghz in file.pairs[f"clock_{end}_ghz"]})
    assert min(b / a for a, b in itertools.pairwise(clocks)) < 1.05  # in such steps at least a sixth apart


# ---- interrupts ----


def test_what_is_measured_from_one_cpu_avoids_interrupts(tmp_path: Path) -> None:
    need(cpus=2)
    first, second = ALLOWED[0], ALLOWED[-1]
    alone = {
        f"devices/system/cpu/cpu{cpu}/cache/index0/{name}": value
        for cpu in (first, second)
        for name, value in (("level", "3"), ("type", "Unified"), ("size", "1024K"), ("shared_cpu_list", str(cpu)))
    }
    environment = strange(tmp_path, (4000,), allowed="0", **alone)

    def begins(counts: dict[int, int], *arguments: str) -> dict[str, Any]:
        columns = " ".join(f"CPU{cpu}" for cpu in counts)
        rows = [f" 24: {' '.join(str(count // 2) for count in counts.values())} PCI-MSI eth0 9"] * 2 + [" ERR: 5"]
        write(tmp_path / "proc", {"interrupts": "\n".join([f"    {columns}", *rows])})
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        short = ["--op", "pairs", "--size-mib", "1", "--passes", "1"]
        found: dict[str, Any] = measured("remap", out, *short, *arguments, env=environment).header["begins"]
        return found

    quiet = {first: 100_000, second: 1000}
    assert begins(quiet) == {"cpu": second, "interrupts": 1000, "interrupts_of": {str(first): 100_000}}
    assert begins({first: 1000, second: 1000})["cpu"] == first  # within a factor of two they are equal
    assert begins({first: 1000, second: 100_000})["cpu"] == first
    assert begins(quiet, "--cpus", CPUS)["cpu"] == first  # the caller's order


# ---- many NUMA nodes ----


def layout(folder: Path, sockets: int, nodes: int, cpus: int, l3_mib: int = 32) -> dict[str, str]:
    """An environment with so many NUMA nodes a socket, each with so many CPUs that share an L3 of their own (AMD)."""
    total = sockets * nodes
    where = {node: node // nodes for node in range(total)}
    write(
        folder,
        {
            "cpuinfo": "vendor_id\t: AuthenticAMD",
            "devices/system/cpu/online": f"0-{total * cpus - 1}",
            **{f"devices/system/node/node{n}/cpulist": f"{n * cpus}-{n * cpus + cpus - 1}" for n in where},
            **{
                f"devices/system/node/node{n}/distance": " ".join(
                    "10" if m == n else "12" if where[m] == where[n] else "32" for m in where
                )
                for n in where
            },
            **{
                f"devices/system/cpu/cpu{c}/topology/physical_package_id": str(where[c // cpus])
                for c in range(total * cpus)
            },
            **{
                f"devices/system/cpu/cpu{c}/cache/index0/{name}": text
                for c in range(total * cpus)
                for name, text in (
                    ("level", "3"),
                    ("type", "Unified"),
                    ("size", f"{l3_mib << 10}K"),
                    ("shared_cpu_list", f"{c // cpus * cpus}-{c // cpus * cpus + cpus - 1}"),
                )
            },
        },
    )
    return os.environ | {"NODEPRINT_SYSFS": str(folder), "NODEPRINT_PROCFS": str(folder)}


def planned(environment: Mapping[str, str], kernel: str, *arguments: str) -> dict[str, str]:
    command = [str(built() / kernel), *arguments, "--plan"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=dict(environment))
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_above_eight_nodes_each_distance_is_sampled(tmp_path: Path) -> None:
    eight, many = layout(tmp_path / "eight", 2, 4, 4), layout(tmp_path / "many", 2, 16, 8)

    def cells(environment: Mapping[str, str], kernel: str, op: str, *more: str) -> int:
        cpus = "0-31" if environment is eight else "0-255"
        return int(planned(environment, kernel, "--op", op, "--cpus", cpus, *more)["cells"])

    assert cells(eight, "touch", "ratio") == 4 * 28
    assert cells(many, "touch", "ratio") == 4 * (8 + 8)
    assert cells(many, "touch", "ratio", "--cells", "all") == 4 * 496
    assert cells(many, "touch", "ratio", "--cells", "32") == 4 * 256
    assert cells(eight, "bandwidth", "nodes") == 64
    assert cells(many, "bandwidth", "nodes") == 32 + 8 + 8
    assert cells(many, "bandwidth", "nodes", "--cells", "10") == 32
    assert cells(eight, "chase", "latency") == 32 * 8
    assert cells(many, "chase", "latency") == 256 * 3
    assert cells(many, "chase", "latency", "--cells", "all") == 256 * 32
    said = planned(many, "touch", "--op", "ratio", "--cpus", "0-255")["not_measured"]
    assert "8 of 240 at distance 12, 8 of 256 at distance 32" in said


def test_above_64_cpus_each_cpu_contends_with_one_of_each_class(tmp_path: Path) -> None:
    """Sockets of nodes of an L3 of 8 CPUs: classes are the L3, the socket at distance 12 and the other one at 32."""
    few, many = layout(tmp_path / "few", 2, 4, 8), layout(tmp_path / "many", 2, 16, 8)
    huge = layout(tmp_path / "huge", 2, 64, 8)

    def plan(environment: Mapping[str, str], cpus: int, *more: str) -> dict[str, str]:
        return planned(environment, "coherence", "--op", "contend-pairs", "--cpus", f"0-{cpus - 1}", *more)

    pairs = 64 * 63 // 2
    assert int(plan(few, 64)["cells"]) == 2 * pairs and plan(few, 64).get("not_measured", "{}") == "{}"
    assert int(plan(many, 256, "--cells", "all")["cells"]) == 256 * 255
    assert int(plan(many, 256, "--cells", "32")["cells"]) == 2 * 128 * 128
    said = json.loads(plan(many, 256)["not_measured"])["pairs of CPUs"]
    shares = {name: (int(kept), int(of)) for kept, of, name in re.findall(r"(\d+) of (\d+) \((.*?)\)", said)}
    assert {name: of for name, (_, of) in shares.items()} == {
        "l3, distance 10": 32 * 28,
        "socket, distance 12": 2 * 120 * 64,
        "machine, distance 32": 128 * 128,
    }
    # each CPU has a pair of each class, and a pair has two CPUs
    assert all(256 // 2 <= kept <= 256 for kept, _ in shares.values())
    assert int(plan(many, 256)["cells"]) == 2 * sum(kept for kept, _ in shares.values())
    assert float(plan(many, 256)["seconds_per_pass"]) < 12
    assert float(plan(huge, 1024)["seconds_per_pass"]) < 48


def test_what_takes_longer_than_an_hour_says_so_before_it_begins(tmp_path: Path) -> None:
    kernel = [str(built() / "jitter"), "--op", "detours", "--cpus", str(ALLOWED[0]), "--out", str(tmp_path / "r.jsonl")]

    def first_line(seconds: int, passes: int) -> str:
        command = [*kernel, "--seconds", str(seconds), "--passes", str(passes)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            line = process.stderr.readline()
            process.terminate()
            return line

    assert first_line(1800, 3) == (
        "jitter: all of it takes about 1.5 hours; Ctrl-C ends it, and the same call continues it later\n"
    )
    (tmp_path / "r.jsonl").unlink()
    assert "hours" not in first_line(1, 1)


@pytest.mark.parametrize("operation", ["payload", "state", "loaded"])
def test_sockets_in_one_numa_node_are_sockets_all_the_same(tmp_path: Path, operation: str) -> None:
    """NPS0, or numa=off: a pair across sockets stands beside one inside, as where each socket is a node."""
    two = layout(tmp_path / "two", 2, 1, 4)
    one = layout(tmp_path / "one", 2, 1, 4)
    for cpu in range(8):
        for folder in ("one", "two"):
            write(tmp_path / folder, {f"devices/system/cpu/cpu{cpu}/cache/index0/shared_cpu_list": str(cpu)})
    shutil.rmtree(tmp_path / "one/devices/system/node/node1")
    write(tmp_path / "one", {"devices/system/node/node0/cpulist": "0-7", "devices/system/node/node0/distance": "10"})
    words = ("coherence", "--op", operation, "--cpus", "0-7")
    assert planned(one, *words)["cells"] == planned(two, *words)["cells"]


def test_lines_are_at_home_near_and_far_in_the_time_of_one(tmp_path: Path) -> None:
    def plan_of(sockets: int, nodes: int, passes: int) -> tuple[int, int, int]:
        machine = layout(tmp_path / f"{sockets}x{nodes}x{passes}", sockets, nodes, 2)
        cpus = f"0-{sockets * nodes * 2 - 1}"
        found = planned(machine, "coherence", "--op", "cas", "--cpus", cpus, "--home", "sockets", f"--passes={passes}")
        return int(found["pairs"]), int(found["passes"]), int(found["memory_bytes"]) // (16 * MIB)

    assert plan_of(1, 1, 3) == (1, 3, 1)
    assert plan_of(1, 4, 3) == (28, 3, 4)  # as `first`: each pair at the node of its first CPU
    assert plan_of(2, 1, 3) == (2 * 6, 2, 2)
    assert plan_of(2, 4, 4) == (2 * 120, 2, 8)  # the node at the same place in the other socket

    words = ("coherence", "--op", "cas", "--cpus", "0-63", "--passes", "3")
    machine = layout(tmp_path / "time", 2, 1, 32)
    one, both = (float(planned(machine, *words, *more)["seconds"]) for more in ((), ("--home", "sockets")))
    assert 0.9 < both / one < 1.1


@pytest.mark.parametrize("preset", ["standard", "thorough"])
def test_a_preset_measures_hops_at_homes_of_both_sockets(
    tmp_path: Path, preset: Literal["standard", "thorough"]
) -> None:
    config = Config(preset=preset, measure=("coherence-cas",))
    (row,) = configuration.read_plan(configuration.plan(config))
    pairs = [
        int(
            planned(
                layout(tmp_path / str(sockets), sockets, 2 // sockets, 4),
                row.kernel,
                *row.arguments.split(),
                "--cpus",
                "0-7",
            )["pairs"]
        )
        for sockets in (1, 2)
    ]
    assert pairs[1] == 2 * pairs[0]


def test_many_homes_are_looked_at_from_some_l3s(tmp_path: Path) -> None:
    """A census of 13 ms for each L3 and home: of 32 L3s at 32 homes that would be most of a short run."""

    def census(l3s: int) -> float:
        machine, words = layout(tmp_path / str(l3s), 2, l3s, 1), ("--op", "cas", "--cpus", f"0-{2 * l3s - 1}")
        with_one, without = (planned(machine, "coherence", *words, *more) for more in ((), ("--any-lines",)))
        return float(with_one["seconds"]) - float(without["seconds"])

    assert 3 < census(8) < 4  # 16 homes seen from 16 L3s
    assert census(16) < 1.1 * census(8)


def dies_of_two_l3s(tmp_path: Path, sockets: int, l3s: int, cpus: int) -> dict[str, str]:
    """An environment with so many L3s a socket, two on a die, of so many CPUs each."""
    machine = layout(tmp_path / "machine", sockets, l3s, cpus)
    for cpu in range(sockets * l3s * cpus):
        parts = {"die_cpus_list": 2 * cpus, "package_cpus_list": l3s * cpus}
        lists = {name: f"{cpu // of * of}-{cpu // of * of + of - 1}" for name, of in parts.items()}
        write(tmp_path / f"machine/devices/system/cpu/cpu{cpu}/topology", lists)
    return machine


def test_lines_are_shared_from_every_distance(tmp_path: Path) -> None:
    """Of a pair in one L3 of two CPUs the sharer is in the die's other L3, on another die, in the other socket."""
    machine = dies_of_two_l3s(tmp_path, 2, 4, 2)
    write(tmp_path, {"pairs": "0 1"})
    found = planned(machine, "coherence", "--op", "state", "--cpus", "0-15", "--pairs", str(tmp_path / "pairs"))
    shared = {"S", "F", "O"} - set(json.loads(found.get("not_measured", "{}")))
    assert int(found["cells"]) == 2 * (3 + 3 * len(shared))


def test_traffic_beside_a_hop_comes_from_another_die(tmp_path: Path) -> None:
    """Four L3s on two dies: a pair with a CPU on the die of those that draw on memory shares their port."""
    machine = dies_of_two_l3s(tmp_path, 1, 4, 1)
    write(tmp_path, {"pairs": "0 1\n0 2"})
    arguments = ("--op", "loaded", "--cpus", "0-3", "--pairs", str(tmp_path / "pairs"))
    assert int(planned(machine, "coherence", *arguments)["cells"]) == 3


def test_injectors_share_four_times_an_l3_of_any_size(tmp_path: Path) -> None:
    """Of eight cores with 96 MiB one measures in 64 MiB, and the others share four times the L3, also with siblings."""
    machine = layout(tmp_path, 1, 1, 16)
    for cpu in range(16):
        write(
            tmp_path,
            {
                f"devices/system/cpu/cpu{cpu}/cache/index0/size": "98304K",
                f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 8},{cpu % 8 + 8}",
            },
        )
    said = planned(machine, "loaded", "--op", "latency", "--cpus", "0-7")
    assert 0 <= int(said["memory_bytes"]) - (64 + 4 * 96) * MIB < MIB


def test_the_check_from_another_ccd_is_not_made_on_the_own_one(tmp_path: Path) -> None:
    """One NUMA node of eight CPUs, two on an L3, two L3s on a die: the first four CPUs are one CCD."""
    machine = layout(tmp_path, 1, 1, 8)
    for cpu in range(8):
        folder = f"devices/system/cpu/cpu{cpu}"
        lists = {f"{folder}/cache/index0/shared_cpu_list": 2, f"{folder}/topology/die_cpus_list": 4}
        write(tmp_path, {name: f"{cpu // of * of}-{cpu // of * of + of - 1}" for name, of in lists.items()})
        write(tmp_path, {f"{folder}/topology/package_cpus_list": "0-7"})
    one, both = (int(planned(machine, "loaded", "--op", "latency", "--cpus", f"0-{last}")["cells"]) for last in (3, 7))
    assert 3 * both == 4 * one  # places own_l3, own_node and own_node_writes, and with a second CCD other_ccd


def test_a_job_of_the_standard_preset_takes_minutes_on_any_layout(tmp_path: Path) -> None:
    """By the kernels' own plans at 195 ns a hop: the times of docs/method/index.md."""
    rows = configuration.read_plan(configuration.plan(configuration.load(ROOT / "config/config.yaml")))
    limits = ((2, 1, 64, 32, 10), (2, 1, 64, 504, 11), (2, 4, 16, 32, 14), (2, 16, 8, 32, 21))
    for sockets, nodes, cpus, l3_mib, most_minutes in limits:
        environment = layout(tmp_path / f"{nodes}x{cpus}x{l3_mib}", sockets, nodes, cpus, l3_mib)
        words = ("--cpus", f"0-{sockets * nodes * cpus - 1}")
        seconds = sum(
            row.runs * float(planned(environment, row.kernel, *row.arguments.split(), *words)["seconds_at_195_ns"])
            for row in rows
        )
        assert seconds / 60 < most_minutes, (sockets, nodes, cpus)


#: One and four NUMA nodes in a socket, a large L3, and each L3 as a NUMA node: per socket, CPUs in each, and MiB.
LAYOUTS_OF_128 = ((1, 64, 32), (4, 16, 32), (1, 64, 504), (8, 8, 32))


@pytest.mark.parametrize("preset", PRESET_MINUTES)
def test_a_job_of_a_preset_takes_the_minutes_that_are_stated(tmp_path: Path, preset: str) -> None:
    """With all measurements that it has where none are listed."""
    file = tmp_path / "config.yaml"
    file.write_text(f"preset: {preset}\n")
    config = configuration.load(file)
    rows = configuration.read_plan(configuration.plan(config), config.runs)
    minutes = []
    for number, (nodes, cpus, l3_mib) in enumerate(LAYOUTS_OF_128):
        environment = layout(tmp_path / str(number), 2, nodes, cpus, l3_mib)
        all_plans = [planned(environment, row.kernel, *row.arguments.split(), "--cpus", "0-127") for row in rows]
        times_s = [float(plan["seconds_at_195_ns"]) for plan in all_plans]
        minutes.append(sum(row.runs * time_s for row, time_s in zip(rows, times_s, strict=True)) / 60)
    assert len(rows) > 5 and max(minutes) == pytest.approx(PRESET_MINUTES[preset], rel=0.04)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("Makefile", "PRESET=quick  {quick} minutes|standard takes {standard}, thorough {thorough}"),
        ("config/config.yaml", "quick ({quick} minutes on 2x64 cores)|standard ({standard})|thorough ({thorough})"),
        ("docs/how-to/accept.md", "quick` takes {quick} minutes per node|`thorough` {thorough} minutes per node"),
        (
            "docs/how-to/slurm.md",
            "`quick` takes about {quick} minutes, `standard` {standard} and `thorough` {thorough}",
        ),
    ],
)
def test_texts_state_the_minutes_of_the_presets(file: str, words: str) -> None:
    text = (ROOT / file).read_text().replace("\n", " ")
    assert all(each in text for each in words.format(**PRESET_MINUTES).split("|"))


def test_a_time_limit_is_planned_for_any_layout_of_the_node(tmp_path: Path) -> None:
    """Not for that of the login node, which has one NUMA node here."""
    config = Config(measure=("touch-ratio", "chase-latency"))
    plan = configuration.plan(config)
    minutes = plans.job_minutes(config, plan, 128, 128, built())
    one, many = (layout(tmp_path / str(n), 2, n, 64 // n) for n in (1, 8))
    words = ("--cpus", "0-127")
    needed = [
        sum(
            row.runs * float(planned(machine, row.kernel, *row.arguments.split(), *words)["seconds_at_195_ns"])
            for row in configuration.read_plan(plan)
        )
        / 60
        for machine in (one, many)
    ]
    assert needed[0] < needed[1] < minutes < 5 + 2.1 * needed[1] + 1


def test_a_time_limit_is_planned_on_one_layout_with_all_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are held in the L1 and L2. To write a layout of many CPUs takes seconds."""
    config = Config(preset="thorough", measure=("coherence-place", "coherence-stream"))
    made, layout_of = list[int](), plans._layout

    def counted(cpus: int) -> AbstractContextManager[dict[str, str]]:
        made.append(cpus)
        return layout_of(cpus)

    monkeypatch.setattr(plans, "_layout", counted)
    assert plans.job_seconds(config, configuration.plan(config), 32, 32, built()) > 1
    assert made == [32]


def test_a_time_limit_is_planned_for_the_cores_of_the_node(tmp_path: Path) -> None:
    """As Slurm has the node's threads; the login node's are others."""
    config = Config(measure=("chase-latency",))

    def minutes(cpus: int, threads: int, **arguments: str) -> int:
        plan = configuration.plan(replace(config, arguments={"chase-latency": arguments.get("more", "")}))
        return plans.job_minutes(config, plan, cpus, Node("n", "n", cpus=cpus, threads=threads).cores, built())

    assert minutes(512, 2) == minutes(256, 1) < minutes(512, 1) == minutes(512, 2, more="--cpus all")
