"""The whole driver inside an emulated machine of two sockets, four NUMA nodes and 16 CPUs: `make test-emulated`.

It proves discovery, pinning, memory placement and plumbing on real NUMA nodes, and no figure: latencies inside are the
emulator's. Needs QEMU and Debian's cloud kernel, which is downloaded once into build/emulated/.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import math
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nodeprint import bundle, fingerprint, records, topology
from nodeprint.bundle import Bundle

from .conftest import ROOT, need
from .schemas import valid_campaign

pytestmark = pytest.mark.emulated

SOCKETS, NODES, CPUS = 2, 4, 16
PER_NODE = CPUS // NODES
#: As on EPYC: 12 inside a socket, 32 between.
DISTANCES = [[10 if a == b else 12 if a // 2 == b // 2 else 32 for b in range(NODES)] for a in range(NODES)]
#: A CPU of each node, as in tests/emulated/plan.tsv.
ONE_OF_EACH = (0, 5, 10, 15)


@dataclass(frozen=True)
class Emulated:
    """A machine by QEMU's name of its CPU, and what it measured."""

    cpu: str
    bundle: Bundle


def command(cpu: str, folder: Path, out: Path, threads: bool = False) -> list[str]:
    """QEMU's, without KVM, so that it starts everywhere. QEMU gives each die one L3, on EPYC each NUMA node.

    With `threads` it is the other machine: a NUMA node a socket, two L3 in each, and a core of two threads in each L3.
    """
    nodes, per_node, mib = (2, 4, 768) if threads else (NODES, PER_NODE, 512)
    words = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", cpu, "-m", str(nodes * mib)]
    inside = "cores=1,threads=2" if threads else f"cores={PER_NODE},threads=1"
    words += ["-smp", f"{nodes * per_node},sockets={SOCKETS},dies=2,{inside}"]
    for node in range(nodes):
        cpus = f"{node * per_node}-{(node + 1) * per_node - 1}"
        words += ["-object", f"memory-backend-ram,id=m{node},size={mib}M"]
        words += ["-numa", f"node,nodeid={node},cpus={cpus},memdev=m{node}"]
    for a, b in itertools.permutations(range(nodes), 2):
        words += ["-numa", f"dist,src={a},dst={b},val={32 if threads else DISTANCES[a][b]}"]
    words += ["-nic", "none", "-vga", "none", "-display", "none", "-no-reboot"]
    words += ["-kernel", str(folder / "vmlinuz"), "-initrd", str(folder / "initramfs.gz")]
    given = "console=ttyS0 quiet panic=-1 tsc=unstable nokaslr mitigations=off" + (" threads" if threads else "")
    return [*words, "-append", given, "-serial", f"file:{out}/console.log", "-serial", f"file:{out}/out.b64"]


def measured_by(command: list[str], out: Path) -> Bundle:
    """Boot the machine of `command` and load what it sent."""
    subprocess.run(command, check=True, capture_output=True, timeout=840)
    console = (out / "console.log").read_text(errors="replace")
    sent = base64.b64decode((out / "out.b64").read_bytes())
    assert sent, f"the machine sent nothing; its console:\n{console[-3000:]}"
    (out / "campaign").mkdir()
    subprocess.run(["tar", "-xz", "-C", out / "campaign"], input=sent, check=True)
    assert "node-run ended with 0" in console
    assert valid_campaign(out / "campaign") == ["records", "status.json"]
    return bundle.load(out / "campaign" / "nodes" / "emulated")


@pytest.fixture(scope="module")
def initramfs() -> Path:
    need("qemu-system-x86_64", "busybox", "flock", "apt-get", "dpkg-deb", "gcc", "make", "likwid-bench")
    folder = ROOT / "build" / "emulated"
    done = subprocess.run([ROOT / "tests/emulated/initramfs", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module", params=["Icelake-Server", "EPYC-Rome"])
def emulated(
    request: pytest.FixtureRequest, initramfs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Emulated]:
    out = tmp_path_factory.mktemp("emulated")
    yield Emulated(request.param, measured_by(command(request.param, initramfs, out), out))


@pytest.fixture(scope="module")
def threads(initramfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    """Two nodes of two L3, each with a core of two threads (tests/emulated/threads.tsv)."""
    out = tmp_path_factory.mktemp("threads")
    return Emulated("Icelake-Server", measured_by(command("Icelake-Server", initramfs, out, threads=True), out))


def node_of(cpu: int) -> int:
    return cpu // PER_NODE


def measured(emulated: Emulated, measurement: str) -> records.Records:
    return records.read(emulated.bundle.path / "job1" / "run1" / f"{measurement}.jsonl.gz")


def pairs(emulated: Emulated, measurement: str) -> list[tuple[int, int, int]]:
    """`a`, `b` and home of each pair record, sorted."""
    columns = measured(emulated, measurement).pairs
    return sorted(zip(*(columns[key].tolist() for key in ("a", "b", "home")), strict=True))


def test_everything_asked_for_was_measured(emulated: Emulated) -> None:
    (job,) = emulated.bundle.jobs
    assert job.status["outcome"] == "complete"
    assert (job.status["host"], job.status["cpus_allowed"]) == ("emulated", CPUS)
    assert {m["pinned_by"] for m in job.status["measurements"]} == {"native"}


def test_every_pair_is_there_once_at_the_home_of_its_first_cpu(emulated: Emulated) -> None:
    expected = [(a, b, node_of(a)) for a, b in itertools.combinations(range(CPUS), 2)]
    assert pairs(emulated, "all-pairs") == expected


def test_a_pair_is_measured_at_each_home_where_asked(emulated: Emulated) -> None:
    expected = [(a, b, home) for a, b in itertools.combinations(ONE_OF_EACH, 2) for home in range(NODES)]
    assert pairs(emulated, "all-homes") == expected


@pytest.mark.parametrize("measurement", ["all-pairs", "all-homes"])
def test_lines_were_found_on_their_home_nodes(emulated: Emulated, measurement: str) -> None:
    file = measured(emulated, measurement)
    header = file.header
    assert header["cpus"] == (list(range(CPUS)) if measurement == "all-pairs" else list(ONE_OF_EACH))
    assert set(header["placement"]) == set(map(str, range(NODES)))
    for placed in header["placement"].values():
        assert placed["bound"] and placed["verified_by"] == "move_pages" and placed["pages"] == "base"
    assert file.complete and header["host"] == "emulated"


def test_memory_of_every_node_from_every_cpu(emulated: Emulated) -> None:
    file = measured(emulated, "memory")
    cells = sorted(zip(file.cells["cpu"].tolist(), file.cells["memory_node"].tolist(), strict=True))
    assert cells == [(cpu, node) for cpu in ONE_OF_EACH for node in range(NODES)]
    assert (file.cells["latency_ns"] > 0).all()
    assert {name: placed["home"] for name, placed in file.header["placement"].items()} == {
        str(node): node for node in range(NODES)
    }
    assert all(p["bound"] and p["verified_by"] == "move_pages" for p in file.header["placement"].values())


def test_arrays_lie_where_their_core_touched_them(emulated: Emulated) -> None:
    file = measured(emulated, "own-and-other")
    assert file.header["nodes"] == {str(cpu): node_of(cpu) for cpu in ONE_OF_EACH}
    placement = file.header["placement"]
    assert {name: placed["home"] for name, placed in placement.items()} == {
        f"cpu{cpu}": node_of(cpu) for cpu in ONE_OF_EACH
    }
    assert not any(placed["bound"] for placed in placement.values())
    found = sorted(zip(*(file.cells[dim].tolist() for dim in file.dims), strict=True))
    assert found == sorted((a, b, how) for a, b in itertools.combinations(ONE_OF_EACH, 2) for how in ("alone", "both"))


def test_injectors_are_where_they_are_said_to_be(emulated: Emulated) -> None:
    file = measured(emulated, "loaded")
    assert file.header["injectors"] == {"own_l3": [1, 2, 3], "own_node": [], "other_node": [4, 5, 6, 7]}
    assert set(file.cells["place"]) == {"own_l3", "other_node"}
    assert all(placed["home"] == 0 for placed in file.header["placement"].values())


def test_every_measurement_of_cells_is_there(emulated: Emulated) -> None:
    (job,) = emulated.bundle.jobs
    assert set(job.cells) == {"memory", "own-and-other", "loaded", "mapped-twice", "clocks", "jitter"} | {
        *("bandwidth", "bandwidth-scaling", "oneway", "payload", "contend", "state")
    }
    assert not job.not_applicable


def ran_on(raw: str) -> list[int]:
    """The CPUs that likwid-bench's threads say they ran on."""
    return sorted(int(cpu) for cpu in re.findall(r"^Group: .* running on hwthread (\d+) ", raw, re.MULTILINE))


def bandwidths(emulated: Emulated, measurement: str) -> list[dict[str, Any]]:
    """The cell records, whose rates and placement are checked."""
    assert measured(emulated, measurement).complete
    path = emulated.bundle.path / "job1" / "run1" / f"{measurement}.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    cells = [line for line in lines if line["record"] == "cell"]
    for cell in cells:
        assert 0 < cell["rate_bytes_per_s"] < math.inf and cell["placed_share"] >= 0.95
        assert cell["threads"] == len(ran_on(cell["raw"]))
    return cells


def test_bandwidth_of_every_node_from_the_cpus_of_every_node(emulated: Emulated) -> None:
    cells = bandwidths(emulated, "bandwidth")
    found = {(c["cpu_node"], c["memory_node"], c["stream"]): ran_on(c["raw"]) for c in cells}
    cpus = {0: [0, 1], 1: [5], 2: [10], 3: [15]}
    assert found == {(c, m, "load"): cpus[c] for c in range(NODES) for m in range(NODES)}
    assert len(cells) == NODES * NODES


def test_bandwidth_by_cores_of_a_node_and_of_two(emulated: Emulated) -> None:
    """The L3 is the node, which is left out as no larger; a socket's memory is that of both its nodes."""
    cells = bandwidths(emulated, "bandwidth-scaling")
    found = {(c["scope"], c["cores"], c["stream"]): ran_on(c["raw"]) for c in cells}
    steps = {("ccx", 1): [0], ("ccx", 2): [0, 1], ("socket", 1): [0], ("socket", 2): [0, 1], ("socket", 3): [0, 1, 5]}
    assert found == {(*step, stream): cpus for step, cpus in steps.items() for stream in ("load", "copy")}


def test_the_survey_tells_what_the_machine_is(emulated: Emulated) -> None:
    survey = emulated.bundle.survey
    assert survey is not None
    labels = topology.read(survey)
    assert {cpu.cpu: cpu.socket for cpu in labels.cpus} == {cpu: cpu // (CPUS // SOCKETS) for cpu in range(CPUS)}
    assert {cpu.cpu: cpu.numa for cpu in labels.cpus} == {cpu: node_of(cpu) for cpu in range(CPUS)}
    l3s = set(labels.groups("ccx").values())
    assert l3s == {tuple(range(node * PER_NODE, (node + 1) * PER_NODE)) for node in range(NODES)}
    assert [list(node.distances) for node in labels.numa_nodes] == DISTANCES
    assert labels.machine.virtual is True
    assert labels.machine.vendor == {"Icelake-Server": "GenuineIntel", "EPYC-Rome": "AuthenticAMD"}[emulated.cpu]


def test_the_fingerprint_of_the_machine(emulated: Emulated) -> None:
    survey = emulated.bundle.survey
    assert survey is not None
    said = fingerprint.read(survey)
    assert (said["sockets"], said["numa_nodes"], said["cores"], said["cpus"]) == (SOCKETS, NODES, CPUS, CPUS)
    assert said["cores_per_l3"] == str(PER_NODE)
    assert said["numa_distances"] == "; ".join(" ".join(map(str, row)) for row in DISTANCES)
    assert said["virtual"] is True and said["smt"] is False and said["cpus_allowed"] == CPUS


@pytest.mark.parametrize("operation", ["faa", "flag1", "flag2"])
def test_the_other_operations_measure_every_pair(emulated: Emulated, operation: str) -> None:
    assert [pair[:2] for pair in pairs(emulated, f"all-{operation}")] == list(itertools.combinations(range(CPUS), 2))


def test_pairs_at_once_share_neither_cpu_nor_l3(emulated: Emulated) -> None:
    """Slots of one call follow each other in the file; every pair is still there once."""
    path = emulated.bundle.path / "job1" / "run1" / "parallel.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    found = [line for line in lines if line["record"] == "pair"]
    assert sorted((r["a"], r["b"]) for r in found) == list(itertools.combinations(range(CPUS), 2))
    calls: list[list[dict[str, int]]] = []
    for record in found:
        if record.get("slot", 0) == 0:
            calls.append([])
        calls[-1].append(record)
    assert any(len(call) == 2 for call in calls)
    for call in calls:
        assert all(r.get("at_once", 1) == len(call) for r in call)
        l3s = [{node_of(r["a"]), node_of(r["b"])} for r in call]
        assert all(not x & y for x, y in itertools.combinations(l3s, 2))


def test_one_way_closes_over_more_than_two_cpus(emulated: Emulated) -> None:
    file = measured(emulated, "oneway")
    assert len(file.cells["a"]) == 6
    assert "asymmetry" not in file.header["not_measured"]
    assert file.trailer is not None and file.trailer["closure_rms_ns"] >= 0
    assert [r["cpu"] for r in file.companions if r["record"] == "offset"] == list(ONE_OF_EACH)


def test_payload_has_a_pair_of_each_closeness(emulated: Emulated) -> None:
    """One in an L3 (here a NUMA node), one between nodes of a socket, one between sockets."""
    cells = measured(emulated, "payload").cells
    assert len(set(zip(cells["a"].tolist(), cells["b"].tolist(), strict=True))) == 3


def test_contention_grows_from_an_l3_to_the_machine(emulated: Emulated) -> None:
    cells = measured(emulated, "contend").cells
    found = set(zip(cells["among"].tolist(), cells["threads"].tolist(), strict=True))
    assert found == {
        (among, n) for among, top in (("l3", 4), ("socket", 8), ("machine", 16)) for n in (2, 4, 8, 16) if n <= top
    }


def test_states_with_a_helper(emulated: Emulated) -> None:
    """A third CPU in the owner's L3 makes S, F and O; MESIF has no O, MOESI no F."""
    file = measured(emulated, "state")
    absent = "O" if emulated.cpu == "Icelake-Server" else "F"
    assert set(file.cells["state"].tolist()) == {"M", "E", "S", "F", "O", "memory"} - {absent}
    assert set(file.header["not_measured"]) == {absent}
    assert len(set(zip(file.cells["a"].tolist(), file.cells["b"].tolist(), strict=True))) == 6


def test_census_is_taken_from_each_l3_and_lines_are_balanced(emulated: Emulated) -> None:
    file = measured(emulated, "census")
    taken = [r for r in file.companions if r["record"] == "census"]
    homes = {r["home"] for r in taken}
    assert sorted((r["home"], r["cpu"]) for r in taken) == sorted(itertools.product(homes, ONE_OF_EACH))
    for drawn in file.passes:
        (lines,) = {tuple(r["lines"]) for r in taken if r["home"] == drawn["home"]}
        assert set(drawn["line_set"]) <= set(lines)


def test_pages_that_move_are_put_back_and_measured_again(emulated: Emulated) -> None:
    path = emulated.bundle.path.parent.parent / "moved.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[-1]["complete"] is True
    assert lines[-1]["moved_pages"] > 0
    found = [line for line in lines if line["record"] == "pair"]
    assert len({(r["a"], r["b"], r["pass"]) for r in found}) == len(found) == 6 * 60
    assert any("moved" in r["flags"] for r in found)


def test_threads_everything_asked_for_was_measured(threads: Emulated) -> None:
    (job,) = threads.bundle.jobs
    assert job.status["outcome"] == "complete"
    assert list(job.not_applicable) == ["two-cores"]
    assert "sibling threads" in job.not_applicable["two-cores"]


@pytest.mark.parametrize(
    ("measurement", "injectors"),
    [
        ("loaded", {"own_l3": [], "own_node": [2], "other_node": [4, 6]}),
        ("loaded-threads", {"own_l3": [1], "own_node": [2, 3], "other_node": [5]}),
    ],
)
def test_threads_injectors_of_each_place(threads: Emulated, measurement: str, injectors: dict[str, list[int]]) -> None:
    file = measured(threads, measurement)
    assert file.header["injectors"] == injectors
    assert set(file.cells["place"]) == {place for place, cpus in injectors.items() if cpus}
    assert all(placed["home"] == 0 for placed in file.header["placement"].values())
    idle = file.cells["delay"] < 0
    assert idle.any() and (file.cells["rate_bytes_per_s"][~idle] > 0).all()


@pytest.mark.parametrize(("measurement", "alias"), [("aliased", "same"), ("not-aliased", "different")])
def test_threads_of_a_core_alias(threads: Emulated, measurement: str, alias: str) -> None:
    """The second mapping lies a multiple of 2^28 away, or 4 KiB beside one."""
    file = measured(threads, measurement)
    assert (file.header["alias"], file.header["same_cpu"]) == (alias, False)
    assert (file.header["address_distance_bytes"] % 2**28 == 0) is (alias == "same")
    assert len(file.cells["pairs"]) > 0 and (file.cells["rate_bytes_per_s"] > 0).all()


def test_threads_own_and_other_node(threads: Emulated) -> None:
    file = measured(threads, "own-and-other")
    assert file.header["nodes"] == {"0": 0, "4": 1}
    assert {placed["home"] for placed in file.header["placement"].values()} == {0, 1}


def test_threads_siblings_are_measured_beside_cores(threads: Emulated) -> None:
    expected = [*itertools.combinations((0, 2, 4, 6), 2), (0, 1), (2, 3), (4, 5), (6, 7)]
    assert [pair[:2] for pair in pairs(threads, "siblings")] == sorted(expected)
