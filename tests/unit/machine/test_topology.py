"""Labels of machines that were laid out by hand: every part where it was put, and what is not known unknown."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import amd, captured, serialized, sysfs
from nodeprint.machine.topology.facts import cpu_list, cpu_mask, list_text
from nodeprint.machine.topology.model import Cpu, Machine, Topology
from nodeprint.machine.topology.tree_text import as_text
from nodeprint.machine.tree import open_tree
from tests.support import machines
from tests.support.labels import assert_labeled, ids, parts, read
from tests.support.machines import Epyc, Fake, Files, Row, arm, epyc, xeon


@pytest.mark.parametrize("nps", [0, 1, 2, 4])
@pytest.mark.parametrize("name", machines.WHOLE)
def test_a_whole_epyc(name: str, nps: int) -> None:
    fake = epyc(machines.WHOLE[name], nps=nps)
    labels = read(fake)
    assert_labeled(labels, fake, "socket", "quadrant", "ccd", "ccx", "core", "numa")
    assert {row.cpu: row.quadrant for row in fake.rows} == {c.cpu: c.quadrant for c in labels.cpus}
    assert labels.machine.nps == nps
    assert labels.provenance["quadrant"] == ("numa" if nps == 4 else "table")
    has_halves = nps == 2 and name != "naples"
    assert parts(labels, "half") == (fake.partition("node") if has_halves else set())
    assert labels.provenance["half"] == ("numa" if has_halves else "unknown")
    assert labels.machine.core_positions and labels.machine.ccd_positions
    assert labels.machine.generation and labels.machine.generation.lower().split()[-1] == name
    assert not ids(labels)
    per_ccx = machines.WHOLE[name].cores
    assert [c.rank for c in labels.cpus[: 2 * per_ccx]] == [*range(per_ccx)] * 2
    assert {c.thread for c in labels.cpus} == {0, 1}


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(machines.WHOLE)))
def test_labels_follow_cpus_whatever_their_numbers(seed: int, name: str) -> None:
    fake = epyc(machines.WHOLE[name], sockets=1)
    numbers = random.Random(seed).sample(range(3 * len(fake.rows)), len(fake.rows))
    shuffled = fake.renumbered(numbers.__getitem__)
    labels = read(shuffled)
    assert_labeled(labels, shuffled, "socket", "quadrant", "ccd", "ccx", "core")
    plain = read(fake)
    place = {c.cpu: replace(c, cpu=0) for c in labels.cpus}
    assert all(replace(c, cpu=0) == place[numbers[c.cpu]] for c in plain.cpus)


HARVESTED = {
    "9454": Epyc(0x11, 0x19, "AMD EPYC 9454 48-Core Processor", (0, 4, 2, 6, 3, 7, 1, 5), 1, 6, 8, lambda c: c % 4),
    "9555": Epyc(0x02, 0x1A, "AMD EPYC 9555 64-Core Processor", (0, 4, 2, 6, 3, 7, 1, 5), 1, 8, 8, lambda c: c % 4),
    "7402": Epyc(0x31, 0x17, "AMD EPYC 7402 24-Core Processor", (0, 1, 2, 3), 2, 3, 4, lambda c: c),
    "7R13": Epyc(0x01, 0x19, "AMD EPYC 7R13 Processor", (0, 1, 2, 3, 4, 5), 1, 8, 8, lambda c: c),
}


@pytest.mark.parametrize("name", HARVESTED)
def test_a_harvested_part_has_no_positions(name: str) -> None:
    fake = epyc(HARVESTED[name])
    labels = read(fake)
    assert_labeled(labels, fake, "socket", "ccd", "ccx", "core", "numa")
    assert labels.machine.ccd_positions is False
    assert parts(labels, "quadrant") == set()
    assert labels.provenance["quadrant"] == "unknown"
    assert {"ccds-fused-off", "quadrant-unknown"} <= ids(labels)
    whole_ccx = HARVESTED[name].cores == HARVESTED[name].core_stride
    assert labels.machine.core_positions is whole_ccx
    assert ("cores-fused-off" in ids(labels)) is not whole_ccx


@pytest.mark.parametrize("name", ["9454", "9555", "7402"])
def test_nps4_gives_the_quadrants_of_a_harvested_part(name: str) -> None:
    fake = epyc(HARVESTED[name], nps=4)
    labels = read(fake)
    assert_labeled(labels, fake, "quadrant", "ccd", "numa")
    assert labels.provenance["quadrant"] == "numa"
    assert "numa-contradicts-table" not in ids(labels)


@pytest.mark.parametrize("name", machines.WHOLE)
def test_smt_off_in_the_firmware(name: str) -> None:
    fake = epyc(machines.WHOLE[name], threads=1)
    labels = read(fake)
    assert labels.machine.smt is False
    assert_labeled(labels, fake, "quadrant", "ccd", "ccx", "core")


def test_smt_off_by_the_kernel_hides_no_core() -> None:
    fake = epyc(machines.ROME)
    fake = fake.but(
        offline=frozenset(r.cpu for r in fake.rows if r.thread), files={"sys/devices/system/cpu/smt/control": "off"}
    )
    labels = read(fake)
    assert_labeled(labels, fake, "quadrant", "ccd", "ccx", "core")
    assert not ids(labels)


@pytest.mark.parametrize("name", ["rome", "milan"])
def test_offline_cpus_do_not_move_the_others(name: str) -> None:
    fake = epyc(machines.WHOLE[name])
    gone = {fake.rows[0].ccx, fake.rows[0].ccx + 2} if fake.rows[0].ccx is not None else set()
    fake = fake.but(offline=frozenset(r.cpu for r in fake.rows if r.ccx in gone))
    labels = read(fake)
    assert "offline-cpus" in ids(labels)
    assert_labeled(labels, fake, "socket", "quadrant", "ccd", "ccx", "core")
    assert {row.cpu: row.quadrant for row in fake.online} == {c.cpu: c.quadrant for c in labels.cpus}
    assert labels.machine.core_positions and labels.machine.ccd_positions


def test_offline_cpus_of_an_unlisted_part_leave_the_ccd_unknown() -> None:
    fake = epyc(machines.ROME)
    fake = fake.but(name="AMD EPYC 7xyz", offline=frozenset(r.cpu for r in fake.rows if r.ccx == 0))
    labels = read(fake)
    assert parts(labels, "quadrant") == parts(labels, "ccd") == set()
    assert_labeled(labels, fake, "ccx", "core")


@pytest.mark.parametrize("nps", [1, 4])
@pytest.mark.parametrize("name", ["rome", "milan", "genoa"])
def test_a_virtual_machine_knows_only_numa(name: str, nps: int) -> None:
    fake = epyc(machines.WHOLE[name], nps=nps).but(flags="fpu hypervisor")
    labels = read(fake)
    assert labels.machine.virtual
    assert labels.machine.ccd_positions is None and labels.machine.core_positions is None
    assert parts(labels, "quadrant") == (fake.partition("node") if nps == 4 else set())
    assert labels.provenance["quadrant"] == ("numa" if nps == 4 else "unknown")
    assert ("quadrant-unknown" in ids(labels)) is (nps == 1)


def test_numa_nodes_overrule_the_table() -> None:
    def swapped(row: Row) -> Row:
        return replace(row, node={0: 1, 1: 0}[row.node] if row.ccd in (0, 2) and row.node in (0, 1) else row.node)

    fake = epyc(machines.ROME, nps=4).with_rows(swapped)
    labels = read(fake)
    assert "numa-contradicts-table" in ids(labels)
    assert parts(labels, "quadrant") == fake.partition("node")
    assert labels.provenance["quadrant"] == "numa"


def test_numa_nodes_that_cut_ccds_are_no_quadrants() -> None:
    fake = epyc(machines.MILAN, nps=4)
    odd = fake.with_rows(lambda row: replace(row, node=1) if row.cpu in (0, 128) else row)
    labels = read(odd)
    assert "numa-contradicts-table" in ids(labels)
    assert labels.provenance["quadrant"] == "table"
    assert_labeled(labels, fake, "quadrant", "ccd")


def test_each_l3_a_numa_node_is_no_nps() -> None:
    fake = epyc(machines.MILAN).with_rows(lambda row: replace(row, node=row.ccx // 2 if row.ccx is not None else None))
    labels = read(fake)
    assert "l3-as-numa" in ids(labels)
    assert labels.machine.nps is None
    assert_labeled(labels, fake, "quadrant", "ccd", "numa")
    assert labels.provenance["quadrant"] == "table"


@pytest.mark.parametrize(("near", "nps"), [(11, None), (12, 4)])
def test_one_ccx_a_node_on_a_part_of_four(near: int, nps: int | None) -> None:
    fake = epyc(Epyc(1, 0x19, "AMD EPYC 7513 32-Core Processor", (0, 1, 2, 3), 1, 8, 8, lambda c: c), nps=4)
    labels = read(fake.but(distance=lambda a, b: 10 if a == b else near if a // 4 == b // 4 else 32))
    assert labels.machine.nps == nps
    assert len(parts(labels, "quadrant")) == (8 if nps else 0)


def test_a_part_with_one_ccd() -> None:
    fake = epyc(Epyc(0x21, 0x19, "AMD Ryzen 7 5800X 8-Core Processor", (0,), 1, 8, 8, lambda c: 0), sockets=1)
    labels = read(fake)
    assert_labeled(labels, fake, "socket", "ccd", "ccx", "core")
    assert parts(labels, "quadrant") == set()
    assert not ids(labels)


def test_an_unknown_part_is_said_to_be_one() -> None:
    labels = read(epyc(machines.ROME).but(model=0xFE, family=0x1F))
    assert "unknown-part" in ids(labels)
    assert parts(labels, "quadrant") == parts(labels, "ccd") == set()
    assert labels.machine.generation is None


@pytest.mark.parametrize("fake", [xeon().but(model=0xEE), arm(8, parts=(0xFFF,))], ids=["Intel", "Arm"])
def test_unknown_parts_of_other_makers_are_said_to_be_unknown(fake: Fake) -> None:
    labels = read(fake)
    assert "unknown-part" in ids(labels)
    assert "processors.toml" in next(w.advice for w in labels.warnings if w.id == "unknown-part")


@pytest.mark.parametrize(
    "recipe",
    [
        Epyc(0x90, 0x19, "AMD Instinct MI300A Accelerator", (0, 1, 2), 1, 8, 8, lambda c: 0),
        Epyc(0x08, 0x17, "AMD Ryzen Threadripper 2990WX 32-Core Processor", (0, 1, 2, 3), 2, 4, 4, lambda c: 0),
        Epyc(0x01, 0x17, "AMD EPYC 3451 16-Core Processor", (0, 1), 2, 4, 4, lambda c: 0),
        Epyc(0x61, 0x19, "AMD EPYC 4564P 16-Core Processor", (0, 1), 1, 8, 8, lambda c: 0),
    ],
    ids=lambda recipe: recipe.name.split()[-2],
)
def test_a_part_without_quadrants_by_design_misses_none(recipe: Epyc) -> None:
    fake = epyc(recipe, sockets=1)
    labels = read(fake)
    assert not ids(labels)
    assert_labeled(labels, fake, "socket", "ccd", "ccx", "core")
    assert labels.machine.ccd_positions and parts(labels, "quadrant") == set()


def test_a_part_of_which_little_is_published_has_what_it_reports() -> None:
    labels = read(epyc(machines.DENSE, sockets=1).but(model=0x50, name="AMD EPYC 9996 256-Core Processor"))
    assert labels.machine.generation == "Venice"
    assert "unknown-part" not in ids(labels)
    assert len(parts(labels, "ccx")) == 12


@pytest.mark.parametrize("nps", [1, 4])
@pytest.mark.parametrize("name", ["9454", "9555", "7402", "7R13"])
def test_nobody_is_advised_to_change_the_firmware_for_a_label(name: str, nps: int) -> None:
    fake = epyc(HARVESTED[name], nps=nps)
    for machine in (fake, fake.with_rows(lambda row: replace(row, node=row.ccx))):
        for warning in read(machine).warnings:
            assert "NPS" not in warning.advice and "firmware" not in warning.advice


def test_dies_of_linux_are_ccds_where_they_can_be() -> None:
    fake = epyc(machines.TURIN).with_rows(lambda row: replace(row, die=row.ccd))
    labels = read(fake)
    assert labels.provenance["ccd"] == "sysfs"
    assert_labeled(labels, fake, "quadrant", "ccd")
    unlisted = read(fake.but(with_die_lists=False))
    assert parts(unlisted, "ccd") == fake.partition("ccd")


def test_dies_are_ccds_where_no_l3_is_shown() -> None:
    fake = epyc(machines.TURIN).with_rows(lambda row: replace(row, die=row.ccd, ccx=None))
    labels = read(fake)
    assert labels.provenance["ccd"] == "sysfs" and labels.provenance["ccx"] == "unknown"
    assert parts(labels, "ccd") == fake.partition("ccd")


@pytest.mark.parametrize(("of_ccd", "of_cpu"), [(0.5, 0), (2, 1)], ids=["two CCDs", "cuts a CCX"])
def test_dies_that_are_no_ccds_are_not_taken(of_ccd: float, of_cpu: int) -> None:
    """On Rome Linux's die is the package; nothing cuts an L3."""
    fake = epyc(machines.ROME)
    fake = fake.with_rows(lambda row: replace(row, die=int((row.ccd or 0) * of_ccd) + of_cpu * (row.cpu % 2)))
    labels = read(fake)
    assert labels.provenance["ccd"] == "table"
    assert_labeled(labels, fake, "ccd", "ccx")


def test_snc_with_interleaved_numbers_and_memory_nodes() -> None:
    fake = xeon(snc=2, interleaved=True).but(empty_nodes=(4, 5))
    labels = read(fake)
    assert_labeled(labels, fake, "socket", "ccx", "numa", "core")
    assert labels.machine.nps == 2
    assert [n.node for n in labels.numa_nodes if not n.cpus] == [4, 5]
    assert all(len(n.distances) == 6 and n.memory_bytes == 1 << 30 for n in labels.numa_nodes)
    assert parts(labels, "quadrant") == parts(labels, "ccd") == parts(labels, "half") == set()


def test_big_and_little_cores() -> None:
    fake = arm(8, parts=(0xD46, 0xD47))
    labels = read(fake)
    assert [c.kind for c in labels.cpus] == ["part 0xd46"] * 4 + ["part 0xd47"] * 4
    assert_labeled(labels, fake, "socket", "ccx", "core")


def test_intel_hybrid_cores() -> None:
    rows = [Row(c, 0, c // 2, c % 2, ccx=0, l2=c // 2, apicid=c) for c in range(8)]
    rows += [Row(c, 0, c, 0, ccx=0, l2=10 + c // 4, apicid=2 * c) for c in range(8, 16)]
    fake = replace(
        xeon(1),
        rows=tuple(rows),
        model=0x97,
        files={"sys/devices/cpu_core/cpus": "0-7", "sys/devices/cpu_atom/cpus": "8-15"},
    )
    labels = read(fake)
    assert {c.kind for c in labels.cpus[:8]} == {"performance"}
    assert {c.kind for c in labels.cpus[8:]} == {"efficiency"}
    shown = [str(branch.label) for branch in as_text(labels).children]
    assert [line for line in shown if "kind" in line] == [
        "cores of kind performance  [cyan]0-7[/cyan]",
        "cores of kind efficiency  [cyan]8-15[/cyan]",
    ]
    assert parts(labels, "cluster") == fake.partition("l2")


def test_clusters_of_arm() -> None:
    fake = arm(32, sockets=2, cluster=4)
    assert parts(read(fake), "cluster") == fake.partition("l2")


def test_a_machine_is_named_once() -> None:
    """Where it has no name of its own its generation is the name."""
    named = Topology(Machine(name="AMD EPYC 7742", generation="Rome"), (Cpu(0),))
    unnamed = Topology(Machine(generation="Kunpeng 920"), (Cpu(0),))
    heads = [str(as_text(one).label) for one in (named, unnamed)]
    assert heads[0].startswith("[bold]AMD EPYC 7742[/bold]  Rome, 1 CPU")
    assert heads[1].startswith("[bold]Kunpeng 920[/bold]  1 CPU")


def test_a_numa_node_that_is_a_ccd_is_named_once() -> None:
    """Where CCDs differ, one of them may be a NUMA node and another have two."""
    cpus = tuple(Cpu(i, socket=0, ccd=min(i // 2, 1), core=i, numa=i // 2) for i in range(6))
    (socket, *_) = as_text(Topology(Machine(), cpus)).children
    one, other = socket.children
    assert str(one.label).startswith("CCD 0 = NUMA node 0  ") and one.children == []
    assert [str(child.label)[:11] for child in other.children] == ["NUMA node 1", "NUMA node 2"]


def test_no_l3() -> None:
    fake = arm(8, cluster=2).with_rows(lambda row: replace(row, ccx=None))
    labels = read(fake)
    assert "no-l3" in ids(labels)
    assert parts(labels, "ccx") == set() and {c.rank for c in labels.cpus} == {None}
    assert parts(labels, "cluster") == fake.partition("l2")


def test_more_than_a_thousand_cpus() -> None:
    fake = xeon(sockets=4, cores=160, threads=2)
    labels = read(fake)
    assert len(labels.cpus) == 1280
    assert_labeled(labels, fake, "socket", "ccx", "core", "numa")


def test_holes_in_the_numbers() -> None:
    fake = xeon().renumbered(lambda cpu: cpu * 3 + 100)
    assert_labeled(read(fake), fake, "socket", "ccx", "core", "numa")


@pytest.mark.parametrize("file", ["cache/index3/shared_cpu_list", "topology/physical_package_id", "topology/die_id"])
@pytest.mark.parametrize("nps", [1, 4])
def test_what_one_cpu_does_not_report_is_unknown_and_no_more(tmp_path: Path, file: str, nps: int) -> None:
    fake = epyc(machines.ROME, nps=nps)
    root = fake.write(tmp_path)
    for name in (file, "topology/core_siblings_list"):
        (root / "sys/devices/system/cpu/cpu5" / name).unlink()
    cpuinfo = (root / "proc/cpuinfo").read_text()
    (root / "proc/cpuinfo").write_text(cpuinfo.replace("physical id", "nothing"))
    labels = captured.read(open_tree(root))
    assert parts(labels, "core") == fake.partition("core")
    seen = {tuple(cpu for cpu in cpus if cpu != 5) for cpus in parts(labels, "ccx")}
    assert seen == {tuple(cpu for cpu in cpus if cpu != 5) for cpus in fake.partition("ccx")}


def test_a_socket_with_a_ccd_less_knows_its_parts_and_not_their_places() -> None:
    """A disabled CCD moves no label of the other parts to a wrong place."""
    whole = epyc(machines.MILAN, nps=4)
    fake = whole.with_rows(lambda row: None if row.ccd == 19 else row)
    labels = read(fake)
    assert_labeled(labels, fake, "socket", "ccd", "ccx", "quadrant")
    assert labels.machine.ccd_positions is False
    assert "ccds-fused-off" in ids(labels)


def test_three_sockets() -> None:
    fake = epyc(machines.ROME, 3)
    assert_labeled(read(fake), fake, "socket", "quadrant", "ccd", "ccx", "core")


def test_a_limited_view_is_said_to_be_one() -> None:
    fake = xeon().but(files={"proc/self/status": "Name:\tx\nCpus_allowed_list:\t0-3\n"})
    labels = read(fake)
    assert "cpus-not-allowed" in ids(labels)
    assert_labeled(labels, fake, "socket", "ccx", "core", "numa")


def test_an_l3_over_two_sockets_is_none() -> None:
    labels = read(xeon().with_rows(lambda row: replace(row, ccx=0)))
    assert "ccx-contradicts-socket" in ids(labels)
    assert parts(labels, "ccx") == set()


def test_only_proc_and_only_nodes(tmp_path: Path) -> None:
    fake = xeon()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("\n".join(fake._cpuinfo(row) for row in fake.rows))
    labels = captured.read(open_tree(tmp_path))
    assert_labeled(labels, fake, "socket", "core")
    assert parts(labels, "numa") == parts(labels, "ccx") == set()
    node = tmp_path / "nodes/sys/devices/system/node/node0"
    node.mkdir(parents=True)
    (node / "cpulist").write_text("0-3\n")
    labels = captured.read(open_tree(tmp_path / "nodes"))
    assert parts(labels, "numa") == {(0, 1, 2, 3)} and parts(labels, "socket") == set()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("sys/devices/system/cpu/online", "0-zz"),
        ("sys/devices/system/cpu/online", "0-99999999"),
        ("sys/devices/system/node/node0/cpulist", "a"),
        ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0;1"),
    ],
)
def test_a_garbled_file_is_named(path: str, content: str) -> None:
    with pytest.raises(NodeprintError, match=path):
        read(xeon().but(files={path: content}))


def test_json_is_the_same_after_a_round_trip(tmp_path: Path) -> None:
    labels = read(epyc(machines.ROME, sockets=1))
    shape = serialized.as_json(labels)
    assert list(shape) == ["machine", "levels", "cpus", "provenance", "warnings"]
    assert shape["cpus"][0].items() >= {"cpu": 0, "socket": 0, "half": None, "quadrant": 0, "apicid": 0}.items()
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(shape))
    assert serialized.from_json(path) == labels
    path.write_text('{"machine": 3}')
    with pytest.raises(NodeprintError, match=r"topology\.json"):
        serialized.from_json(path)


@given(st.frozensets(st.integers(0, 3000)))
def test_lists_and_masks_say_the_same(cpus: frozenset[int]) -> None:
    assert cpu_list(list_text(cpus), "x") == tuple(sorted(cpus))
    mask = sum(1 << cpu for cpu in cpus)
    words = [f"{mask >> shift & 0xFFFFFFFF:08x}" for shift in range(0, 3008, 32)][::-1]
    assert cpu_mask(",".join(words), "x") == tuple(sorted(cpus))


@pytest.mark.parametrize("part", [machines.ROME, machines.GENOA])
def test_an_l3_that_some_cpus_of_a_virtual_machine_lack_is_no_ccx(tmp_path: Path, part: Epyc) -> None:
    """QEMU and cloud images do so: it ended in a KeyError."""
    fake = replace(epyc(part), flags="hypervisor")
    root = fake.write(tmp_path)
    for cpu in range(4, 8):
        (root / f"sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list").unlink()
    labels = captured.read(open_tree(root))
    assert parts(labels, "ccx") == parts(labels, "ccd") == set()
    assert parts(labels, "core") == fake.partition("core")
    (warning,) = [warning for warning in labels.warnings if warning.id == "ccx-partial"]
    assert "CPUs 4-7 report no L3" in warning.text


def test_nodes_that_cross_sockets_are_a_contradiction() -> None:
    """As a hypervisor lays them out: half of each socket was said to be a node."""
    fake = xeon(sockets=2, cores=4, threads=1).with_rows(lambda row: replace(row, node=row.core % 4 // 2))
    labels = read(fake)
    assert "numa-contradicts-socket" in ids(labels)
    output = StringIO()
    Console(file=output, width=120).print(as_text(labels))
    text = output.getvalue()
    assert "NUMA node 0  2 cores" in text and "NUMA node 0 =" not in text and "= NUMA node" not in text
    one_node = xeon(sockets=2, cores=4, threads=1).with_rows(lambda row: replace(row, node=0))
    assert "numa-contradicts-socket" not in ids(read(one_node))


def test_cpus_in_no_node_are_named() -> None:
    fake = xeon(sockets=2, cores=4, threads=1).with_rows(lambda row: replace(row, node=None if row.cpu == 3 else 0))
    (warning,) = [warning for warning in read(fake).warnings if warning.id == "numa-partial"]
    assert "CPUs 3 are in no NUMA node" in warning.text


def test_labels_say_what_they_are_from_and_which_are_unknown() -> None:
    def last(**provenance: str) -> str:
        return str(as_text(Topology(Machine(), (Cpu(0),), provenance=provenance)).children[-1].label)  # type: ignore[arg-type]

    assert last(socket="sysfs", quadrant="unknown", ccd="cpuid") == (
        "[dim]labels from socket: sysfs, ccd: cpuid; unknown: quadrant[/dim]"
    )
    assert last(socket="sysfs").endswith("; unknown: none[/dim]")


@pytest.mark.parametrize(
    ("nodes", "cut"), [({0: 0, 1: 0, 2: 1}, False), ({0: 0, 1: 1, 2: 1}, True), ({0: 0, 2: 1}, True)]
)
def test_a_die_of_two_numa_nodes_is_cut(nodes: dict[int, int], cut: bool) -> None:
    assert amd._cuts(nodes, {0: 0, 1: 0, 2: 1}) is cut


@pytest.mark.parametrize(
    ("text", "number"),
    [("0\n", 0), ("65535", 65535), ("-1\n", None), ("", None), ("x", None), ("9" * 18, 10**18 - 1), ("9" * 19, None)],
)
def test_a_number_of_a_file_has_eighteen_digits_at_most(text: str, number: int | None) -> None:
    assert sysfs._int(Files({"n": text}), "n") == number
    assert sysfs._int(Files({}), "n") is None
