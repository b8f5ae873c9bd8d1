"""Bandwidth: which cores stream together, on trees of machines that this one is not, and what a stream is made of."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import machines
from tests.support.real_parts import ALLOWED, ROOT, built, need
from tests.support.small_machine import small_machine

pytestmark = pytest.mark.machine

#: What is added to an array of a power of two of bytes.
CHUNK = 128 << 10
#: CCXs and CCDs of several CCXs in a machine of two sockets.
GROUPS = {"rome": (32, 16), "milan": (16, 0), "genoa": (24, 0), "bergamo": (32, 16), "dense": (24, 0)}


def plan(
    root: Path, cpus: str, *under: str, of: tuple[str, str] = ("bandwidth", "groups"), streams: str = ""
) -> dict[str, str]:
    environment = os.environ | {"NODEPRINT_SYSFS": str(root / "sys"), "NODEPRINT_PROCFS": str(root / "proc")}
    command: list[str | Path] = [*under, built() / of[0], "--op", of[1], "--plan", "--passes", "1", "--cpus", cpus]
    command += ["--streams", streams] if streams else []
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("nps", [1, 4])
def test_every_ccx_and_ccd_is_measured(tmp_path: Path, name: str, nps: int) -> None:
    machine = machines.epyc(machines.WHOLE[name], sockets=2, threads=1, nps=nps)
    root = machine.write(tmp_path)
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/status").write_text(f"Mems_allowed_list:\t0-{2 * nps - 1}\n")
    said = plan(root, f"0-{len(machine.rows) - 1}")
    ccxs, ccds = GROUPS[name]
    assert int(said["cells"]) == (ccxs + ccds) * 3 * 2  # own, other socket, all; load, store
    assert 1 < float(said["seconds"]) < 30


def test_the_buffers_of_all_nodes_share_what_the_process_may_have(tmp_path: Path) -> None:
    need("prlimit")
    machine = machines.epyc(machines.WHOLE["rome"], sockets=2, threads=1, nps=4)
    root = machine.write(tmp_path)
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/status").write_text("Mems_allowed_list:\t0-7\n")
    for level in root.glob("sys/devices/system/cpu/cpu*/cache/index*/level"):
        level.with_name("size").write_text({"3": "16384K"}.get(level.read_text().strip(), "32K"))
    cpus = f"0-{len(machine.rows) - 1}"
    most, limit = int(plan(root, cpus)["memory_bytes"]), 640 << 20
    assert most > limit > int(plan(root, cpus, "prlimit", f"--as={limit}")["memory_bytes"])


def memory_of(root: Path, cpus: str) -> int:
    return int(plan(root, cpus)["memory_bytes"])


@pytest.fixture
def rome(tmp_path: Path) -> Path:
    """One socket of four NUMA nodes, all allowed."""
    machines.epyc(machines.WHOLE["rome"], sockets=1, threads=1, nps=4).write(tmp_path)
    (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc/self/status").write_text("Mems_allowed_list:\t0-3\n")
    return tmp_path


def test_memory_beside_cpus_that_do_not_take_part_is_not_another_socket_s(rome: Path) -> None:
    """A cpuset of the first node's CPUs in a machine of one socket: their own memory and that of all nodes."""
    assert int(plan(rome, "0-15")["cells"]) == (4 + 2) * 2 * 2


def test_few_cores_of_a_large_l3_leave_it_all_the_same(rome: Path) -> None:
    """They read more than it holds, also where one core alone has 96 MiB."""
    for level in rome.glob("sys/devices/system/cpu/cpu*/cache/index*/level"):
        level.with_name("size").write_text({"3": "98304K"}.get(level.read_text().strip(), "32K"))
    quarters = 4 * 96 // 4 << 20  # what is read from four nodes by turns is in each of them a quarter
    assert memory_of(rome, "0") == (4 * 96 << 20) + 3 * quarters + 4 * CHUNK
    assert memory_of(rome, "0-3") == memory_of(rome, "0") + 4 * 3 * CHUNK, "cores that share it share the array, too"
    beside = int(plan(rome, "0-1,8", of=("coherence", "loaded"))["memory_bytes"])
    assert beside == (16 + 4 * 96) << 20, "a pair's lines, and what the one core of the other L3 reads"


def test_an_l3_that_is_not_reported_may_be_there(rome: Path) -> None:
    for level in list(rome.glob("sys/devices/system/cpu/cpu*/cache/index*/level")):
        if level.read_text().strip() == "3":
            level.unlink()
    assert memory_of(rome, "0") == ((4 * 64 + 3 * 64) << 20) + 4 * CHUNK


def test_dies_that_the_system_reports_are_taken(tmp_path: Path) -> None:
    """A processor in no table, two L3s on a die by die_cpus_list."""
    root = tmp_path
    machine = machines.epyc(machines.MILAN, sockets=1, threads=1)
    machine.write(root)
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/status").write_text("Mems_allowed_list:\t0\n")
    for cpu in range(64):
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        (folder / "die_cpus_list").write_text(f"{cpu // 16 * 16}-{cpu // 16 * 16 + 15}\n")
        (folder / "package_cpus_list").write_text("0-63\n")
    assert int(plan(root, "0-63")["cells"]) == (8 + 4) * 2  # one socket, one NUMA node: its own memory alone
    assert int(plan(root, "0-7")["cells"]) == 2  # one CCX takes part: no CCD of several


def test_a_rate_is_of_whole_sweeps(tmp_path: Path) -> None:
    """Ten or more, and the best of the first ten is STREAM's figure; what others take lowers the mean, not the best."""
    need(cpus=2)
    out = tmp_path / "r.jsonl"
    command = [f"{built()}/bandwidth", "--op", "groups", "--cpus", f"{ALLOWED[0]},{ALLOWED[-1]}", "--passes", "4"]
    environment = small_machine(tmp_path, 2, 4000)
    with subprocess.Popen([*command, "--out", out], stderr=subprocess.DEVNULL, env=environment) as process:
        while process.poll() is None:
            time.sleep(0.01)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.02)
            process.send_signal(signal.SIGCONT)
    assert process.returncode == 0
    cells = [r for r in map(json.loads, out.read_text().splitlines()) if r["record"] == "cell"]
    assert cells and all(10 <= cell["sweeps"] <= 64 for cell in cells)
    for cell in cells:
        assert cell["threads"] * cell["slowest_thread_bytes_per_s"] >= 0.99999 * cell["mean_bytes_per_s"]
        assert cell["mean_bytes_per_s"] < cell["best_bytes_per_s"]
        assert cell["ci_low_bytes_per_s"] <= cell["rate_bytes_per_s"] <= cell["ci_high_bytes_per_s"]


#: What moves a vector of a stream or calculates with it, by machine: loads, stores, stores past the caches, sums.
MOVES = {
    "x86_64": {
        "load": r"v?mova\w+\s+\S*\(%\w+.*\),%[xyz]mm",
        "store": r"v?mova\w+\s+%[xyz]mm\d+,.*\(%\w+.*\)",
        "past": r"v?movntp\w\s+%[xyz]mm\d+,.*\(%\w+.*\)",
        "sum": r"v?(mul|add)pd\s|vfmadd\d+pd\s",
    },
    "aarch64": {
        "load": r"ldp\s+q\d+, q\d+, \[",
        "store": r"stp\s+q\d+, q\d+, \[",
        "past": r"stnp\s+q\d+, q\d+, \[",
        "sum": r"f(mul|add|mla)\s",
    },
}

#: How many of each there are for a line of 64 bytes of each array; a turn moves eight of them.
TURNS = {
    "load_chunk_16": {"load": 4},
    "store_mem_chunk_16": {"past": 4},
    "store_chunk_16": {"store": 4},
    "copy_chunk_16": {"load": 4, "store": 4},
    "copy_mem_chunk_16": {"load": 4, "past": 4},
    "triad_chunk_16": {"load": 8, "sum": 8, "store": 4},
    "triad_mem_chunk_16": {"load": 8, "sum": 8, "past": 4},
    "load_chunk_32": {"load": 2},
    "store_mem_chunk_32": {"past": 2},
    "store_chunk_32": {"store": 2},
    "copy_chunk_32": {"load": 2, "store": 2},
    "copy_mem_chunk_32": {"load": 2, "past": 2},
    "triad_chunk_32": {"load": 4, "sum": 2, "store": 2},
    "triad_mem_chunk_32": {"load": 4, "sum": 2, "past": 2},
    "load_chunk_64": {"load": 1},
    "store_mem_chunk_64": {"past": 1},
    "store_chunk_64": {"store": 1},
    "copy_chunk_64": {"load": 1, "store": 1},
    "copy_mem_chunk_64": {"load": 1, "past": 1},
    "triad_chunk_64": {"load": 2, "sum": 1, "store": 1},
    "triad_mem_chunk_64": {"load": 2, "sum": 1, "past": 1},
    "read1_write1_chunk_16": {"load": 4, "sum": 4, "store": 4},
    "read2_write1_chunk_16": {"load": 8, "sum": 4, "store": 4},
    "read3_write1_chunk_16": {"load": 12, "sum": 4, "store": 4},
    "read1_write1_chunk_32": {"load": 2, "sum": 2, "store": 2},
    "read2_write1_chunk_32": {"load": 4, "sum": 2, "store": 2},
    "read3_write1_chunk_32": {"load": 6, "sum": 2, "store": 2},
    "read1_write1_chunk_64": {"load": 1, "sum": 1, "store": 1},
    "read2_write1_chunk_64": {"load": 2, "sum": 1, "store": 1},
    "read3_write1_chunk_64": {"load": 3, "sum": 1, "store": 1},
}


@pytest.mark.parametrize("stream", [name for name in TURNS if name.endswith("_16") or platform.machine() == "x86_64"])
def test_a_stream_is_nothing_but_its_loads_sums_and_stores(stream: str) -> None:
    """Its loop has beside them only what counts and jumps, at most nine instructions for eight lines, and no other
    memory."""
    need("objdump")
    command = ["objdump", "-d", "--no-show-raw-insn", f"{built()}/bandwidth"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    body = re.findall(rf"<{stream}>:\n(.*?)\n\n", listing, re.DOTALL)[0]
    instructions = [(int(at, 16), text) for at, text in re.findall(r"^\s*([0-9a-f]+):\t(.*)$", body, re.MULTILINE)]
    jumps = [(at, int(m[1], 16)) for at, text in instructions if (m := re.match(r"[jb]\S+\s+([0-9a-f]+)", text))]
    back, to = next(jump for jump in jumps if jump[1] < jump[0])
    loop = [text for at, text in instructions if to <= at <= back]
    kinds = {
        kind: [text for text in loop if re.match(pattern, text)] for kind, pattern in MOVES[platform.machine()].items()
    }
    if platform.machine() == "x86_64":  # elsewhere an instruction moves two or calculates with a product
        counted = {kind: len(texts) for kind, texts in kinds.items() if texts}
        assert counted == {kind: 8 * count for kind, count in TURNS[stream].items()}
    others = [text for text in loop if not any(text in texts for texts in kinds.values())]
    assert len(others) <= 9, loop
    assert not any(("(" in text or "[" in text) and not text.startswith("lea") for text in others), loop


@pytest.fixture
def sockets(tmp_path: Path) -> Path:
    """Two sockets of Milan, 64 cores and one NUMA node each."""
    machines.epyc(machines.MILAN, sockets=2, threads=1, nps=1).write(tmp_path)
    (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc/self/status").write_text("Mems_allowed_list:\t0-1\n")
    return tmp_path


def test_each_socket_and_the_whole_machine_are_measured(sockets: Path) -> None:
    of = ("bandwidth", "machine")
    assert int(plan(sockets, "0-127", of=of)["cells"]) == 3 * 6
    assert int(plan(sockets, "0-63", of=of)["cells"]) == 6, "one socket is the machine"
    assert int(plan(sockets, "0-2,4-63", of=of)["cells"]) == 6, "a CPU is missing in the middle"


def test_every_core_of_the_machine_has_memory_beyond_the_caches(sockets: Path) -> None:
    for level in sockets.glob("sys/devices/system/cpu/cpu*/cache/index*/level"):
        level.with_name("size").write_text({"3": "32768K"}.get(level.read_text().strip(), "32K"))
    of = ("bandwidth", "machine")
    assert int(plan(sockets, "0-127", of=of)["memory_bytes"]) == (3 * 16 * 4 * 32 << 20) + 3 * 128 * CHUNK
    assert int(plan(sockets, "0", of=of)["memory_bytes"]) == (3 * 4 * 32 << 20) + 3 * CHUNK, (
        "a core alone has an L3 for itself"
    )


@pytest.mark.parametrize("l3_mib", [320, 504])
@pytest.mark.parametrize("snc", [1, 3])
def test_a_core_of_intel_s_allocates_in_all_of_its_socket(tmp_path: Path, l3_mib: int, snc: int) -> None:
    """One core, and a part of the socket that is a NUMA node, need as large an array as all of the socket."""
    machine = machines.xeon(sockets=2, cores=63, threads=1, snc=snc)
    write = machine.write(tmp_path)
    (write / "proc/self").mkdir(parents=True, exist_ok=True)
    (write / "proc/self/status").write_text(f"Mems_allowed_list:\t0-{2 * snc - 1}\n")
    for level in write.glob("sys/devices/system/cpu/cpu*/cache/index*/level"):
        level.with_name("size").write_text({"3": f"{l3_mib << 10}K"}.get(level.read_text().strip(), "32K"))
    for node in write.glob("sys/devices/system/node/node*/meminfo"):
        node.write_text("Node 0 MemTotal: 1048576 kB")
    l3_bytes = l3_mib << 20
    from_one_to_all = 4 + 4 * (snc - 1) / snc  # a core in the memory of its node, all others of its socket in theirs
    of_each = {"machine": 8, "groups": 8, "cpus": 8 * snc, "nodes": 8 * snc, "scaling": from_one_to_all}
    for operation, l3s in of_each.items():
        said = plan(write, "0-125", of=("bandwidth", operation), streams="load")
        assert 1 <= int(said["memory_bytes"]) / (l3s * l3_bytes) < 1.05, operation
    triad = plan(write, "0-125", of=("bandwidth", "machine"), streams="triad")
    assert 1 <= int(triad["memory_bytes"]) / (3 * 8 * l3_bytes) < 1.05, "so is each of its three arrays"
    beside = int(plan(write, "0-125", of=("loaded", "latency"))["memory_bytes"])
    assert beside >= 8 * l3_bytes, "injectors of both sockets read beyond theirs"


def test_kinds_of_pages_are_cells_of_their_own(tmp_path: Path) -> None:
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    huge = enabled.exists() and "[never]" not in enabled.read_text()
    out = tmp_path / "r.jsonl"
    command = [f"{built()}/bandwidth", "--op", "cpus", "--cpus", str(ALLOWED[0]), "--passes", "1", "--pages", "both"]
    environment = small_machine(tmp_path, 2, 4000)
    size = "kernel/mm/transparent_hugepage/hpage_pmd_size"
    (tmp_path / "sys" / size).parent.mkdir(parents=True)
    if huge:
        (tmp_path / "sys" / size).write_text(Path("/sys", size).read_text())
    subprocess.run([*command, "--out", out], check=True, capture_output=True, env=environment)
    header, *records = map(json.loads, out.read_text().splitlines())
    pages = {cell["pages"]: cell["page_bytes"] for cell in records if cell["record"] == "cell"}
    assert pages["base"] == os.sysconf("SC_PAGE_SIZE")
    assert ("huge" in pages) != ("huge pages" in header["not_measured"])
    if huge:
        assert pages["huge"] > pages["base"]


def test_what_has_too_little_memory_has_no_figure_and_a_reason(tmp_path: Path) -> None:
    """Three arrays of four times the L3 do not fit, one does: never smaller ones, whose figure is the caches'."""
    out = tmp_path / "r.jsonl"
    command = [f"{built()}/bandwidth", "--op", "machine", "--cpus", f"{ALLOWED[0]}", "--streams", "load,triad"]
    command += ["--passes", "1", "--pages", "base", "--out", str(out)]

    def call(free_mib: int) -> subprocess.CompletedProcess[str]:
        environment = small_machine(tmp_path, 32, free_mib)
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    assert call(400).returncode == 0
    header, *lines = map(json.loads, out.read_text().splitlines())
    cells = {line["stream"]: line for line in lines if line["record"] == "cell"}
    assert cells["load"]["rate_bytes_per_s"] > 0 and cells["load"]["slice_bytes"] == (128 << 20) + CHUNK
    assert "rate_bytes_per_s" not in cells["triad"]
    assert "384 MiB on NUMA node 0, where 252 MiB may be taken" in header["not_measured"]["1 of 2 cells"]
    before = out.read_bytes()
    assert call(8000).returncode == 0 and out.read_bytes() == before, "complete, also where there is more memory now"
    out.unlink()
    none = call(100)
    assert none.returncode == 3 and "arrays of four times the L3s take up to 384 MiB" in none.stderr


#: L1, L2 and L3 in KiB; how many cells of `load` a machine of two sockets has, and the MiB of the cores that stream at
#: once. Four cores of Bergamo have 2 MiB of their L3, twice their L2, each; eight have not.
CACHES = {
    "rome": ((32, 512, 16384), 32 * 3 * 3 + 16 * 3, 8 * 2),  # 1, 2, 4 of a CCX; 8 of a CCD
    "milan": ((32, 512, 32768), 16 * 4 * 3, 8 * 2),
    "bergamo": ((32, 1024, 16384), 32 * (4 * 2 + 3) + 16 * 2, 4 * 2),
}


def with_caches(root: Path, sizes: tuple[int, ...]) -> Path:
    """The tree with caches of so many KiB."""
    for level in root.glob("sys/devices/system/cpu/cpu*/cache/index*/level"):
        level.with_name("size").write_text(f"{sizes[int(level.read_text()) - 1]}K\n")
    return root


@pytest.mark.parametrize("name", CACHES)
def test_each_cache_is_measured_by_the_number_of_cores(tmp_path: Path, name: str) -> None:
    sizes, cells, mib = CACHES[name]
    machine = machines.epyc(machines.WHOLE[name], sockets=2, threads=1)
    root = with_caches(machine.write(tmp_path), sizes)
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/status").write_text("Mems_allowed_list:\t0-1\n")
    of = ("bandwidth", "caches")
    said = plan(root, f"0-{len(machine.rows) - 1}", of=of, streams="load")
    assert int(said["cells"]) == cells
    assert int(said["memory_bytes"]) == 2 * mib << 20, "in the memory of each socket"
    assert 0.04 < float(said["seconds"]) / cells < 0.1
    assert int(plan(root, "0-3", of=of)["cells"]) == 3 * 3 * 3, "load, store and copy of each level and 1, 2, 4 cores"


def caches(program: Path, out: Path, *words: str, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    command: list[str | Path] = [program, "--op", "caches", "--cpus", f"{ALLOWED[0]},{ALLOWED[-1]}", "--out", out]
    subprocess.run([*command, *words], check=True, capture_output=True, env=env)
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_a_higher_cache_is_faster_and_no_byte_is_wrong(tmp_path: Path) -> None:
    header, *records = caches(built() / "bandwidth", tmp_path / "r.jsonl", "--passes", "3")
    cells = [record for record in records if record["record"] == "cell"]
    assert {cell["stream"] for cell in cells} == {"load", "store", "copy"}
    assert all(cell["wrong_bursts"] == 0 for cell in cells)
    for cell in cells:  # at most three vectors come or go in a cycle: more were not moved
        per_cycle = cell["best_bytes_per_s"] / cell["threads"] / cell["core_hz"]
        assert per_cycle < 3.3 * header["vector_bytes"], cell
    best = {
        level: max(c["best_bytes_per_s"] for c in cells if (c["level"], c["cores"], c["stream"]) == (level, 1, "load"))
        for level in {cell["level"] for cell in cells}
    }
    assert {"l1", "l2"} <= set(best)
    assert best["l1"] > 1.2 * best["l2"]
    assert best["l1"] > 1.5 * best.get("l3", 0)


def ladder(program: Path, root: Path, *words: str) -> list[dict[str, Any]]:
    out = root / "ladder.jsonl"
    command: list[str | Path] = [program, "--op", "ladder", "--cpus", f"{ALLOWED[0]},{ALLOWED[-1]}", "--out", out]
    environment = small_machine(root, 2, 4000)
    subprocess.run([*command, "--passes", "1", *words], check=True, capture_output=True, env=environment)
    records = map(json.loads, out.read_text().splitlines())
    return [record for record in records if record["record"] == "cell"]


def test_a_core_that_stores_wrongly_is_counted(tmp_path: Path) -> None:
    need("make", "gcc", cpus=2)
    flip = f"CPPFLAGS=-DFLIP_A_BIT_ON_CPU={ALLOWED[-1]}"
    make: list[str | Path] = ["make", "-C", ROOT / "kernels", f"BUILD={tmp_path}", flip, tmp_path / "bandwidth"]
    subprocess.run(make, check=True, capture_output=True)
    environment = small_machine(tmp_path, 16, 4000)
    cells = caches(tmp_path / "bandwidth", tmp_path / "r.jsonl", "--passes", "1", env=environment)
    assert {c["cores"]: c["wrong_bursts"] for c in cells if c["record"] == "cell"} == {1: 0, 2: 1}
    rungs = {
        (c["scope"], c["wrong_bursts"]) for c in ladder(tmp_path / "bandwidth", tmp_path, "--streams", "read1_write1")
    }
    assert rungs == {("core", 0), ("machine", 1)}


def test_a_machine_that_reports_no_caches_is_measured_by_none(tmp_path: Path) -> None:
    environment = os.environ | {"NODEPRINT_SYSFS": str(tmp_path)}
    header, trailer = caches(built() / "bandwidth", tmp_path / "r.jsonl", "--passes", "1", env=environment)
    assert header["applicable"] is False and "sysfs reports no cache" in header["reason"] and trailer["complete"]


#: Rungs of the ladder in a machine of two sockets, with one and four NUMA nodes each: the first core and all cores of
#: each CCD, NUMA nodes, the machine. Where a CCD is a NUMA node it counts as this.
RUNGS = {
    "rome": (machines.WHOLE["rome"], {1: 2 * 16 + 2 + 1, 4: 2 * 16 + 8 + 1}),
    "milan": (machines.MILAN, {1: 2 * 16 + 2 + 1, 4: 2 * 16 + 8 + 1}),
    "xeon": (None, {1: 2 + 2 + 1}),
}


@pytest.mark.parametrize(("name", "nps"), [(name, nps) for name, (_, rungs) in RUNGS.items() for nps in rungs])
def test_the_ladder_has_five_ratios_of_each_part(tmp_path: Path, name: str, nps: int) -> None:
    part, rungs = RUNGS[name]
    machine = (
        machines.xeon(sockets=2, cores=8, threads=1)
        if part is None
        else machines.epyc(part, sockets=2, threads=1, nps=nps)
    )
    root = with_caches(machine.write(tmp_path), (32, 512, 32768))
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/status").write_text(f"Mems_allowed_list:\t0-{2 * nps - 1}\n")
    said = plan(root, f"0-{len(machine.rows) - 1}", of=("bandwidth", "ladder"))
    assert int(said["cells"]) == 5 * rungs[nps]
    assert float(said["seconds"]) < 40, "twice in a thorough job"


def test_reads_and_writes_of_a_ladder_are_counted_and_checked(tmp_path: Path) -> None:
    """Each array has four times the L3 of 2 MiB. What is read and written counts twice. No two arrays are a power of
    two apart, where a memory can be a third slower."""
    need(cpus=2)
    cells = ladder(built() / "bandwidth", tmp_path)
    arrays = {"load": 1, "read3_write1": 3, "read2_write1": 2, "read1_write1": 1, "store_mem": 1}
    assert {(cell["scope"], cell["stream"]) for cell in cells} == {(s, w) for s in ("core", "machine") for w in arrays}
    for cell in cells:
        assert cell["wrong_bursts"] == 0
        assert cell["threads"] == {"core": 1, "machine": 2}[cell["scope"]]
        part = cell["slice_bytes"] // arrays[cell["stream"]]
        assert part == (8 << 20) // cell["threads"] + CHUNK


@pytest.mark.parametrize("words", [("--streams", "triad"), ("--streams", "store")])
def test_what_the_ladder_does_not_have_is_refused(tmp_path: Path, words: tuple[str, str]) -> None:
    command: list[str | Path] = [built() / "bandwidth", "--op", "ladder", "--out", tmp_path / "r.jsonl", *words]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize("words", [("--streams", "triad"), ("--pages", "both")])
def test_what_caches_do_not_have_is_refused(tmp_path: Path, words: tuple[str, str]) -> None:
    command: list[str | Path] = [built() / "bandwidth", "--op", "caches", "--out", tmp_path / "r.jsonl", *words]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
