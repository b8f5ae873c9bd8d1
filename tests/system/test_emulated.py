"""The whole driver inside emulated machines, most of two sockets, four NUMA nodes and 16 CPUs: `make test-emulated`.

It proves discovery, pinning, memory placement and plumbing on real NUMA nodes, and no figure: latencies inside are the
emulator's. Needs QEMU and Debian's cloud kernel, which is downloaded once into build/emulated/.
"""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodeprint.data.format import records
from nodeprint.data.job import jobs
from nodeprint.data.places import homes
from nodeprint.data.store import store
from nodeprint.machine.node_configuration import read_fingerprint
from nodeprint.machine.topology import captured
from tests.support.made_records import record_files, record_texts
from tests.support.real_parts import ROOT, need
from tests.support.schemas import valid_campaign

pytestmark = pytest.mark.emulated

SOCKETS, NODES, CPUS = 2, 4, 16
PER_NODE = CPUS // NODES
#: As on EPYC: 12 inside a socket, 32 between.
DISTANCES = [[10 if a == b else 12 if a // 2 == b // 2 else 32 for b in range(NODES)] for a in range(NODES)]
#: A CPU of each node, as in tests/system/emulated/all.tsv.
ONE_OF_EACH = (0, 5, 10, 15)


#: The machine of the plan `uneven`: the threads of each core of its eight sockets, each a NUMA node. The last one has
#: no memory, and node 8 has nothing else. Two CPUs are offline: one thread of two, and one core of two.
UNEVEN = ((2, 1), (2, 1), (1,), (1,), (1,), (1,), (1, 1), (1, 1))
WITHOUT_MEMORY, WITHOUT_CPUS = 7, 8
OFFLINE = (4, 11)
#: Socket, core and number of each CPU that is online.
UNEVEN_CPUS = {
    cpu: place
    for cpu, place in enumerate(
        (socket, core)
        for socket, cores in enumerate(UNEVEN)
        for core, threads in enumerate(cores)
        for _ in range(threads)
    )
    if cpu not in OFFLINE
}


VENDORS = pytest.mark.parametrize("name", ["emulated", "intel"])


@dataclass(frozen=True)
class Emulated:
    """A machine by QEMU's name of its CPU, and what it measured."""

    cpu: str
    node: Path


def uneven_distance(a: int, b: int) -> int:
    """All nodes with memory are equally far from that without, so that only Linux knows which it takes."""
    return 10 if a == b else 14 if {a, b} == {0, WITHOUT_CPUS} else 32


def uneven_parts(cpu: str) -> list[str]:
    """QEMU's words for the CPUs and NUMA nodes of UNEVEN: only the first CPU is there without its own."""
    mib, nodes = 384, range(len(UNEVEN) + 1)
    parts = f"1,maxcpus={4 * len(UNEVEN)},sockets={len(UNEVEN)},cores=2,threads=2"
    words = ["-m", str((len(nodes) - 1) * mib), "-smp", parts]
    for node in nodes:
        memory = "" if node == WITHOUT_MEMORY else f",memdev=m{node}"
        words += ["-object", f"memory-backend-ram,id=m{node},size={mib}M"] if memory else []
        words += ["-numa", f"node,nodeid={node}{memory}"]
    for socket, cores in enumerate(UNEVEN):
        words += ["-numa", f"cpu,node-id={socket},socket-id={socket}"]
        for core, threads in enumerate(cores):
            for thread in range(threads):
                place = f"socket-id={socket},core-id={core},thread-id={thread}"
                words += ["-device", f"{cpu}-x86_64-cpu,{place}"] if (socket, core, thread) != (0, 0, 0) else []
    for a, b in itertools.permutations(nodes, 2):
        words += ["-numa", f"dist,src={a},dst={b},val={uneven_distance(a, b)}"]
    return words


def command(cpu: str, plan: str, folder: Path, out: Path) -> list[str]:
    """QEMU's, without KVM, so that it starts everywhere. QEMU gives each die one L3, on EPYC each NUMA node.

    The machine of the plan `threads` is another: a NUMA node a socket, two L3 in each, and a core of two threads in
    each L3. So is that of `uneven`, whose CPUs are plugged in one by one.
    """
    threads = plan == "threads"
    nodes, per_node, mib = (2, 4, 1024) if threads else (NODES, PER_NODE, 640)
    words = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", cpu]
    given = f"console=ttyS0 quiet panic=-1 tsc=unstable nokaslr mitigations=off plan={plan}"
    if plan == "uneven":
        words += uneven_parts(cpu)
        given += f" offline={','.join(map(str, OFFLINE))}"
    else:
        inside = "cores=1,threads=2" if threads else f"cores={PER_NODE},threads=1"
        words += ["-m", str(nodes * mib), "-smp", f"{nodes * per_node},sockets={SOCKETS},dies=2,{inside}"]
        for node in range(nodes):
            cpus = f"{node * per_node}-{(node + 1) * per_node - 1}"
            words += ["-object", f"memory-backend-ram,id=m{node},size={mib}M"]
            words += ["-numa", f"node,nodeid={node},cpus={cpus},memdev=m{node}"]
        for a, b in itertools.permutations(range(nodes), 2):
            words += ["-numa", f"dist,src={a},dst={b},val={32 if threads else DISTANCES[a][b]}"]
    words += ["-nic", "none", "-vga", "none", "-display", "none", "-no-reboot"]
    words += ["-kernel", str(folder / "vmlinuz"), "-initrd", str(folder / "initramfs.gz")]
    if threads:  # Linux would move pages to whoever reads them while first touch is looked at
        given += " numa_balancing=disable"
    return [*words, "-append", given, "-serial", f"file:{out}/console.log", "-serial", f"file:{out}/out.b64"]


def measured_by(command: list[str], out: Path) -> Path:
    """Boot the machine of `command` and unpack what it sent; returns the node's folder."""
    subprocess.run(command, check=True, capture_output=True, timeout=840)
    console = (out / "console.log").read_text(errors="replace")
    sent = base64.b64decode((out / "out.b64").read_bytes())
    assert sent, f"the machine sent nothing; its console:\n{console[-3000:]}"
    (out / "campaign").mkdir()
    subprocess.run(["tar", "-xz", "-C", out / "campaign"], input=sent, check=True)
    assert "node-run ended with 0" in console
    assert valid_campaign(out / "campaign") == ["records", "status.json"]
    return out / "campaign" / "nodes" / "emulated"


@pytest.fixture(scope="module")
def initramfs() -> Path:
    need("qemu-system-x86_64", "busybox", "flock", "apt-get", "dpkg-deb", "gcc", "make")
    folder = ROOT / "build" / "emulated"
    done = subprocess.run(
        [ROOT / "tests/system/emulated/initramfs", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def machine(cpu: str, plan: str, initramfs: Path, factory: pytest.TempPathFactory) -> Emulated:
    out = factory.mktemp(plan)
    return Emulated(cpu, measured_by(command(cpu, plan, initramfs, out), out))


@pytest.fixture(scope="module")
def emulated(initramfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    """The whole plan (tests/system/emulated/all.tsv)."""
    return machine("EPYC-Rome", "all", initramfs, tmp_path_factory)


@pytest.fixture(scope="module")
def intel(initramfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    """The same machine with another vendor's processor, and what depends on the vendor (emulated/intel.tsv)."""
    return machine("Icelake-Server", "intel", initramfs, tmp_path_factory)


@pytest.fixture(scope="module")
def threads(initramfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    """Two nodes of two L3, each with a core of two threads (tests/system/emulated/threads.tsv)."""
    return machine("Icelake-Server", "threads", initramfs, tmp_path_factory)


@pytest.fixture(scope="module")
def uneven(initramfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    """Eight sockets of cores with one or two threads, and nodes with CPUs or memory alone (emulated/uneven.tsv)."""
    return machine("Icelake-Server", "uneven", initramfs, tmp_path_factory)


@pytest.fixture(scope="module")
def of_the_system(initramfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    """Pages, faults, wake-ups and barriers, and CPUs that go offline (tests/system/emulated/system.tsv)."""
    return machine("EPYC-Rome", "system", initramfs, tmp_path_factory)


def node_of(cpu: int) -> int:
    return cpu // PER_NODE


def measured(emulated: Emulated, measurement: str) -> records.Records:
    return next(file for file in record_files(emulated.node / "job1") if file.path.name == f"{measurement}.jsonl")


def pairs(emulated: Emulated, measurement: str) -> list[tuple[int, int, int]]:
    """`a`, `b` and home of each pair record, sorted."""
    columns = measured(emulated, measurement).pairs
    return sorted(zip(*(columns[key].tolist() for key in ("a", "b", "home")), strict=True))


@VENDORS
def test_everything_asked_for_was_measured(name: str, request: pytest.FixtureRequest) -> None:
    emulated: Emulated = request.getfixturevalue(name)
    job = jobs.read(emulated.node / "job1")
    assert job.status is not None and job.status.outcome == "complete"
    assert (job.status.host, job.status.cpus_allowed) == ("emulated", CPUS)
    assert {run.pinned_by for run in job.rows} == {"native"}


def test_every_pair_is_there_once_at_the_home_of_its_first_cpu(emulated: Emulated) -> None:
    expected = [(a, b, node_of(a)) for a, b in itertools.combinations(range(CPUS), 2)]
    assert pairs(emulated, "all-pairs") == expected


def test_a_pair_is_measured_at_each_home_where_asked(emulated: Emulated) -> None:
    expected = [(a, b, home) for a, b in itertools.combinations(ONE_OF_EACH, 2) for home in range(NODES)]
    assert pairs(emulated, "all-homes") == expected


def test_a_pair_is_measured_near_and_far(emulated: Emulated) -> None:
    """Far is the node at the same place in the other socket."""
    near = [(a, b, node_of(a)) for a, b in itertools.combinations(ONE_OF_EACH, 2)]
    assert pairs(emulated, "near-and-far") == sorted(near + [(a, b, (home + 2) % NODES) for a, b, home in near])
    hops, survey = jobs.read(emulated.node / "job1").measured["near-and-far"], store.tree(emulated.node)
    assert survey is not None
    far = hops.places["home"] != np.array([node_of(a) for a in hops.places["a"].tolist()])
    seen = homes.of_pairs(hops.places, str(hops.header["home"]), captured.read(survey))
    assert seen.tolist() == np.where(far, homes.FAR, homes.NEAR).tolist()


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


#: The cases of touch: own arrays, each alone and both at once, and both on the array of the first or second.
CASES = ("alone", "both", "first", "second")


def test_arrays_lie_where_their_core_touched_them(emulated: Emulated) -> None:
    file = measured(emulated, "own-and-other")
    assert file.header["nodes"] == {str(cpu): node_of(cpu) for cpu in ONE_OF_EACH}
    placement = file.header["placement"]
    assert {name: placed["home"] for name, placed in placement.items()} == {
        f"cpu{cpu}": node_of(cpu) for cpu in ONE_OF_EACH
    }
    assert not any(placed["bound"] for placed in placement.values())
    found = sorted(zip(*(file.cells[dim].tolist() for dim in file.dims), strict=True))
    assert found == sorted((a, b, how) for a, b in itertools.combinations(ONE_OF_EACH, 2) for how in CASES)


def test_injectors_are_where_they_are_said_to_be(emulated: Emulated) -> None:
    file = measured(emulated, "loaded")
    assert file.header["injectors"] == {
        "own_l3": [1, 2, 3],
        "other_node": [4, 5, 6, 7],
        "other_socket": [8],
        "other_socket_writes": [8],
        "across": [1, 2, 3, 4, 5, 6, 7],
        "both_ways": [1, 2, 3, 4, 5, 6, 7, 8],
        "both_ways_back": [0, 1, 2, 3, 4, 5, 6, 7],
    }
    assert set(file.cells["place"]) == set(file.header["injectors"]) == set(file.header["measurers"])
    assert {place for place, cpu in file.header["measurers"].items() if cpu == 8} == {"both_ways_back"}
    homes = {name: placed["home"] for name, placed in file.header["placement"].items()}
    assert homes == {"injectors0": 0, "chase0": 0, "injectors2": 2, "chase2": 2}


def test_every_measurement_of_cells_is_there(emulated: Emulated) -> None:
    job = jobs.read(emulated.node / "job1")
    assert {one.name for one in job.cells} == {
        "memory",
        "own-and-other",
        "loaded",
        "mapped-twice",
        "clocks",
        "jitter",
    } | {
        *(
            "bandwidth",
            "bandwidth-scaling",
            "bandwidth-machine",
            "bandwidth-ccx",
            "hops-loaded",
            "oneway",
            "payload",
            "contend",
            "state",
        )
    }
    assert not job.not_applicable


def threads_by_cell(emulated: Emulated, measurement: str, *keys: str) -> dict[tuple[Any, ...], int]:
    """How many threads streamed in each cell, whose rate and memory are checked."""
    file = measured(emulated, measurement)
    assert file.complete
    assert ((file.cells["rate_bytes_per_s"] > 0) & np.isfinite(file.cells["rate_bytes_per_s"])).all()
    for name, where in file.header["placement"].items():
        assert int(name) == where["home"] and where["verified_by"] == "move_pages"
    columns = [file.cells[key].tolist() for key in keys]
    return dict(zip(zip(*columns, strict=True), file.cells["threads"].astype(int).tolist(), strict=True))


def test_bandwidth_of_every_node_from_the_cpus_of_every_node(emulated: Emulated) -> None:
    threads = threads_by_cell(emulated, "bandwidth", "cpu_node", "memory_node", "stream")
    assert threads == {(c, m, "load"): 2 if c == 0 else 1 for c in range(NODES) for m in range(NODES)}


def test_bandwidth_by_cores_of_a_node_and_of_two(emulated: Emulated) -> None:
    """The L3 is the node, which is left out as no larger; a socket's cores have the memory of both its nodes."""
    threads = threads_by_cell(emulated, "bandwidth-scaling", "scope", "cores", "stream")
    steps = [("ccx", 1), ("ccx", 2), ("socket", 1), ("socket", 2), ("socket", 3)]
    assert threads == {(*step, stream): step[1] for step in steps for stream in ("load", "copy")}


def test_bandwidth_of_each_socket_and_of_the_machine(emulated: Emulated) -> None:
    threads = threads_by_cell(emulated, "bandwidth-machine", "cpu", "scope")
    assert threads == {(0, "socket"): 8, (8, "socket"): 8, (0, "machine"): 16}


@VENDORS
def test_the_survey_tells_what_the_machine_is(name: str, request: pytest.FixtureRequest) -> None:
    emulated: Emulated = request.getfixturevalue(name)
    survey = store.tree(emulated.node)
    assert survey is not None
    labels = captured.read(survey)
    assert {cpu.cpu: cpu.socket for cpu in labels.cpus} == {cpu: cpu // (CPUS // SOCKETS) for cpu in range(CPUS)}
    assert {cpu.cpu: cpu.numa for cpu in labels.cpus} == {cpu: node_of(cpu) for cpu in range(CPUS)}
    l3s = set(labels.groups("ccx").values())
    assert l3s == {tuple(range(node * PER_NODE, (node + 1) * PER_NODE)) for node in range(NODES)}
    assert [list(node.distances) for node in labels.numa_nodes] == DISTANCES
    assert labels.machine.virtual is True
    assert labels.machine.vendor == {"Icelake-Server": "GenuineIntel", "EPYC-Rome": "AuthenticAMD"}[emulated.cpu]


@VENDORS
def test_the_fingerprint_of_the_machine(name: str, request: pytest.FixtureRequest) -> None:
    emulated: Emulated = request.getfixturevalue(name)
    survey = store.tree(emulated.node)
    assert survey is not None
    said = read_fingerprint(survey)
    assert (said["sockets"], said["numa_nodes"], said["cores"], said["cpus"]) == (SOCKETS, NODES, CPUS, CPUS)
    assert said["cores_per_l3"] == str(PER_NODE)
    assert said["numa_distances"] == "; ".join(" ".join(map(str, row)) for row in DISTANCES)
    assert said["virtual"] is True and said["smt"] is False and said["cpus_allowed"] == CPUS


@pytest.mark.parametrize("operation", ["faa", "flag1", "flag2"])
def test_the_other_operations_measure_every_pair(emulated: Emulated, operation: str) -> None:
    assert [pair[:2] for pair in pairs(emulated, f"all-{operation}")] == list(itertools.combinations(range(CPUS), 2))


def test_pairs_at_once_share_neither_cpu_nor_l3(emulated: Emulated) -> None:
    """Slots of one call follow each other in the file; every pair is still there once."""
    lines = [json.loads(line) for line in record_texts(emulated.node / "job1")["run1/parallel"].splitlines()]
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


@VENDORS
def test_states_with_a_sharer(name: str, request: pytest.FixtureRequest) -> None:
    """A third CPU makes S, F and O, from the owner's L3, its socket and the other; MESIF has no O, MOESI no F."""
    emulated: Emulated = request.getfixturevalue(name)
    file = measured(emulated, "state")
    absent = "O" if emulated.cpu == "Icelake-Server" else "F"
    assert set(file.cells["state"].tolist()) == {"M", "E", "S", "F", "O", "memory"} - {absent}
    assert set(file.header["not_measured"]) == {absent}
    where = set(zip(file.cells["state"].tolist(), file.cells["sharer"].tolist(), strict=True))
    assert {sharer for state, sharer in where if state in ("S", "F", "O")} >= {"l3", "other_socket"}
    assert {sharer for state, sharer in where if state not in ("S", "F", "O")} == {"none"}
    assert len(set(zip(file.cells["a"].tolist(), file.cells["b"].tolist(), strict=True))) == 6


@pytest.mark.parametrize("operation", ["place", "stream"])
def test_shared_lines_are_held_in_each_cache(intel: Emulated, operation: str) -> None:
    """With a third CPU lines are held in S and F as well, near and far. Their values mean nothing here."""
    cells = measured(intel, operation).cells
    held = set(zip(cells["closeness"].tolist(), cells["state"].tolist(), cells["place"].tolist(), strict=True))
    assert held >= set(itertools.product(("same_l3", "other_socket"), "MESF", ("l1", "l2")))


def test_census_is_taken_from_each_l3_and_its_lines_are_those_of_the_clusters(emulated: Emulated) -> None:
    file = measured(emulated, "census")
    taken = [r for r in file.companions if r["record"] == "census"]
    found = {r["home"]: r for r in file.companions if r["record"] == "clusters"}
    assert sorted((r["home"], r["cpu"]) for r in taken) == sorted(itertools.product(found, ONE_OF_EACH))
    for census in taken:
        assert [len(half) for half in census["reload_ns"]] == 2 * [len(found[census["home"]]["lines"])]
    for drawn in file.passes:
        clusters = found[drawn["home"]]
        assert clusters["clusters"] == 1 or set(drawn["line_set"]) <= set(clusters["lines"])


def test_hops_beside_the_traffic_of_another_l3(emulated: Emulated) -> None:
    file = measured(emulated, "hops-loaded")
    assert file.header["injectors"] == [4]  # the last L3 of the first CPU's socket, without the pairs' CPUs
    found = {(a, b) for a, b in zip(file.cells["a"].tolist(), file.cells["b"].tolist(), strict=True)}
    assert found == {(0, 1), (0, 8), (8, 12)}  # in an L3, between sockets, between the nodes of one
    for load, injectors in (("idle", 0), ("light", 1), ("full", 1)):
        mine = file.cells["load"] == load
        assert set(file.cells["injectors"][mine].tolist()) == {injectors}
        assert ((file.cells["rate_bytes_per_s"][mine] > 0) == (injectors > 0)).all()


def test_bandwidth_of_every_ccx(emulated: Emulated) -> None:
    """Memory of the own node, of the other socket's two nodes, and of all four; no die is more than an L3 here."""
    file = measured(emulated, "bandwidth-ccx")
    assert set(file.cells["cpu"].tolist()) == {0, 4, 8, 12}
    assert set(file.cells["scope"].tolist()) == {"ccx"}
    assert len(file.cells["cpu"]) == 4 * 3 * 2
    assert set(file.cells["threads"].tolist()) == {4}
    assert {int(name): what["home"] for name, what in file.header["placement"].items()} == {n: n for n in range(4)}


def test_pages_that_move_are_put_back_and_measured_again(emulated: Emulated) -> None:
    path = emulated.node.parent.parent / "moved.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[-1]["complete"] is True
    assert lines[-1]["moved_pages"] > 0
    found = [line for line in lines if line["record"] == "pair"]
    assert len({(r["a"], r["b"], r["pass"]) for r in found}) == len(found) == 6 * 60
    assert any("moved" in r["flags"] for r in found)


def test_arrays_that_are_not_bound_are_put_back_too(emulated: Emulated) -> None:
    """touch's arrays lie where they were touched first: automatic NUMA balancing may move them."""
    path = emulated.node.parent.parent / "touched.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[-1]["complete"] is True and lines[-1]["moved_pages"] > 0
    found = [line for line in lines if line["record"] == "cell"]
    assert len({(r["together"], r["pass"]) for r in found}) == len(found) == 2 * len(CASES)
    assert any("moved" in r["flags"] for r in found)


def test_threads_everything_asked_for_was_measured(threads: Emulated) -> None:
    job = jobs.read(threads.node / "job1")
    assert job.status is not None and job.status.outcome == "complete"
    assert list(job.not_applicable) == ["two-cores"]
    assert "sibling threads" in job.not_applicable["two-cores"]


@pytest.mark.parametrize(
    ("measurement", "injectors"),
    [
        (
            "loaded",
            {
                "own_node": [2],
                "own_node_writes": [2],
                "other_ccd": [0],
                "other_socket": [4, 6],
                "other_socket_writes": [4, 6],
                "across": [2],
                "both_ways": [2, 4, 6],
                "both_ways_back": [0, 2, 6],
            },
        ),
        (
            "loaded-threads",
            {
                "own_l3": [1],
                "own_node": [2, 3],
                "own_node_writes": [2, 3],
                "other_ccd": [0, 1],
                "other_socket": [5],
                "other_socket_writes": [5],
                "across": [1, 2, 3],
                "both_ways": [1, 2, 3, 5],
                "both_ways_back": [0, 1, 2, 3],
            },
        ),
    ],
)
def test_threads_injectors_of_each_place(threads: Emulated, measurement: str, injectors: dict[str, list[int]]) -> None:
    file = measured(threads, measurement)
    assert file.header["injectors"] == injectors
    assert set(file.cells["place"]) == set(injectors)
    assert {placed["home"] for placed in file.header["placement"].values()} == {0, 1}
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


def test_barriers_of_every_l3_socket_and_the_machine(of_the_system: Emulated) -> None:
    """The tree has three levels here: whoever is missing in it would stop everybody."""
    cells = measured(of_the_system, "barriers").cells
    groups = {
        (scope, cpu): int(threads)
        for scope, cpu, threads in zip(*(cells[key].tolist() for key in ("scope", "cpu", "threads")), strict=True)
    }
    l3s = {("ccx", node * PER_NODE): PER_NODE for node in range(NODES)}
    assert groups == {**l3s, ("socket", 0): 8, ("socket", 8): 8, ("machine", 0): 16}
    assert set(cells["kind"].tolist()) == {"counter", "tree"} and len(cells["kind"]) == 2 * len(groups)


def test_pages_and_faults_of_every_node(of_the_system: Emulated) -> None:
    pages = measured(of_the_system, "pages").cells
    assert {(cpu, kind) for cpu, kind in zip(pages["cpu"].tolist(), pages["pages"].tolist(), strict=True)} >= {
        (node * PER_NODE, "base") for node in range(NODES)
    }
    assert sorted(measured(of_the_system, "huge").cells["memory_node"].tolist()) == list(range(NODES))
    faults = measured(of_the_system, "faults").cells
    assert set(faults["cpu"].tolist()) == set(ONE_OF_EACH) and (faults["faults_a_page"] >= 1).all()


def test_a_sleeper_is_woken_out_of_its_own_l3(of_the_system: Emulated) -> None:
    records_of_node = record_texts(of_the_system.node / "job1")["run1/wakes"].splitlines()
    wakers = {r["cpu"]: r["waker"] for r in map(json.loads, records_of_node) if r["record"] == "cell"}
    assert (wakers[0], wakers[1]) == (1, 0) and set(wakers) == {0, 1, 5, 10, 15}


@pytest.mark.parametrize(
    ("name", "cpu"),
    [("pairs-unplugged", 5), ("barriers-unplugged", 10), ("clocks-unplugged", 15), ("wakes-unplugged", 5)],
)
def test_a_cpu_that_goes_offline_is_named(of_the_system: Emulated, name: str, cpu: int) -> None:
    """Taken out by the system while a kernel runs: what was measured before stays readable."""
    campaign = of_the_system.node.parent.parent
    said = (campaign / f"{name}.log").read_text().splitlines()
    assert said[-1] == f"{name} ended with 3", said
    assert f"CPU {cpu} went offline while it was measured" in said[-2]
    file = records.read(campaign / f"{name}.jsonl")
    assert not file.complete and (len(file.pairs["a"]) or len(file.cells["pass"]))


def test_uneven_every_operation_is_measured_or_a_sentence_says_why(uneven: Emulated) -> None:
    job = jobs.read(uneven.node / "job1")
    assert job.status is not None and job.status.outcome == "complete"
    assert job.status.cpus_allowed == len(UNEVEN_CPUS)
    assert job.not_applicable == {}


def test_uneven_labels(uneven: Emulated) -> None:
    survey = store.tree(uneven.node)
    assert survey is not None
    labels, said = captured.read(survey), read_fingerprint(survey)
    assert {cpu.cpu: (cpu.socket, cpu.numa) for cpu in labels.cpus} == {
        cpu: (socket, socket) for cpu, (socket, _) in UNEVEN_CPUS.items()
    }
    cores = {tuple(cpu for cpu, place in UNEVEN_CPUS.items() if place == core) for core in UNEVEN_CPUS.values()}
    assert set(labels.groups("core").values()) == cores
    assert [list(node.distances) for node in labels.numa_nodes] == [
        [uneven_distance(a, b) for b in range(len(UNEVEN) + 1)] for a in range(len(UNEVEN) + 1)
    ]
    assert (said["sockets"], said["numa_nodes"]) == (len(UNEVEN), len(UNEVEN) + 1)
    assert (said["cores"], said["cpus"], said["smt"]) == (len(cores), len(UNEVEN_CPUS), True)


def test_uneven_all_memory_was_found_where_it_is_said_to_be(uneven: Emulated) -> None:
    """By move_pages; that of the node without memory came from another one."""
    for file in record_files(uneven.node / "job1"):
        for name, placed in file.header.get("placement", {}).items():
            assert placed["verified_by"] == "move_pages", (file.path.name, name)
            assert not name.isdecimal() or int(name) == placed.get("home", int(name)) != WITHOUT_MEMORY


def test_uneven_lines_of_pairs_are_on_the_node_of_the_first_cpu_or_on_one_with_memory(uneven: Emulated) -> None:
    homes_of = {(a, b): home for a, b, home in pairs(uneven, "cas")}
    assert set(homes_of) == {*itertools.combinations((0, 2, 3, 5, 13), 2), (0, 1)}, (
        "CPU 4, the sibling of 3, is offline"
    )
    for (a, _), home in homes_of.items():
        assert home == UNEVEN_CPUS[a][0] or (UNEVEN_CPUS[a][0] == WITHOUT_MEMORY and home != WITHOUT_MEMORY)
    every = [node for node in range(len(UNEVEN) + 1) if node != WITHOUT_MEMORY]
    assert [home for _, _, home in pairs(uneven, "homes")] == every
    assert {home for _, _, home in pairs(uneven, "sockets")} == {*every} - {WITHOUT_CPUS}


def test_uneven_a_node_without_cpus_is_measured_from_others_and_one_without_memory_is_not(uneven: Emulated) -> None:
    for name in ("latency", "nodes"):
        cells = measured(uneven, name).cells
        assert WITHOUT_CPUS in cells["memory_node"] and WITHOUT_MEMORY not in cells["memory_node"]
    assert WITHOUT_MEMORY in measured(uneven, "nodes").cells["cpu_node"]
    assert sorted(measured(uneven, "huge").cells["memory_node"].tolist()) == [
        node for node in range(len(UNEVEN) + 1) if node != WITHOUT_MEMORY
    ]


def test_uneven_hops_beside_traffic(uneven: Emulated) -> None:
    """`coherence loaded` with idle and drawing L3s; its values mean nothing here."""
    file = measured(uneven, "hops-loaded")
    assert set(file.cells["load"].tolist()) == {"idle", "light", "full"}
    assert not {*file.header["injectors"]} & {*file.cells["a"].tolist(), *file.cells["b"].tolist()}
    busy = file.cells["load"] != "idle"
    assert (file.cells["rate_bytes_per_s"][busy] > 0).all() and (file.cells["rate_bytes_per_s"][~busy] == 0).all()


def test_uneven_barriers_are_of_each_l3_and_of_the_machine(uneven: Emulated) -> None:
    cells = measured(uneven, "barriers").cells
    columns = (cells[key].tolist() for key in ("scope", "cpu", "threads"))
    threads = {(scope, cpu): int(count) for scope, cpu, count in zip(*columns, strict=True)}
    assert threads == {("ccx", 0): 2, ("ccx", 12): 2, ("machine", 0): 5}


def test_uneven_an_array_of_a_cpu_without_memory_lies_where_linux_put_it(uneven: Emulated) -> None:
    file = measured(uneven, "touch-elsewhere")
    assert file.header["nodes"] == {"12": WITHOUT_MEMORY, "13": WITHOUT_MEMORY}
    assert all(placed["home"] != WITHOUT_MEMORY for placed in file.header["placement"].values())


def test_uneven_hops_beside_traffic_lose_pages_and_a_cpu(uneven: Emulated) -> None:
    """Faults of `coherence loaded`, which `python -m bench.faults` cannot make on two CPUs."""
    campaign = uneven.node.parent.parent
    moved = [json.loads(line) for line in (campaign / "hops-moved.jsonl").read_text().splitlines()]
    assert moved[-1]["complete"] is True and moved[-1]["moved_pages"] > 0
    assert any("moved" in line["flags"] for line in moved if line["record"] == "cell")
    said = (campaign / "hops-unplugged.log").read_text().splitlines()
    assert said[-1] == "hops-unplugged ended with 3" and "CPU 12 went offline while it was measured" in said[-2]
