"""The same machine from lstopo's XML, from CPUID and from Linux has the same labels; and what garbled files say."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeprint.data.places.layout import layout_of, slots_of
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import captured, hwloc_xml, serialized
from nodeprint.machine.topology.machine import virtual_by_name
from nodeprint.machine.topology.model import Topology
from nodeprint.machine.tree import open_tree
from tests.support import machines
from tests.support.labels import assert_labeled, ids, parts
from tests.support.machines import Epyc, Fake, epyc, xeon
from tests.support.real_parts import built

#: Leaf 0x80000026: shifts of core, CCX, CCD and socket, as dumps of such parts have them.
SHIFTS = {"genoa": (1, 4, 4, 8), "bergamo": (1, 4, 5, 8), "turin": (1, 4, 4, 8), "dense": (1, 5, 5, 9)}


@pytest.mark.parametrize(("nps", "version"), [(1, 2), (2, 1), (4, 2)])
@pytest.mark.parametrize("name", ["naples", "rome", "milan"])
def test_xml_of_parts_whose_numbers_follow_apic_ids(tmp_path: Path, name: str, version: int, nps: int) -> None:
    fake = epyc(machines.WHOLE[name], nps=nps)
    labels = captured.read_xml(fake.write_xml(tmp_path / "m.xml", version))
    assert_labeled(labels, fake, "socket", "quadrant", "ccd", "ccx", "core", "numa")
    assert labels.machine.nps == nps
    assert {n.node: (n.memory_bytes, len(n.distances)) for n in labels.numa_nodes} == dict.fromkeys(
        range(2 * nps), (1 << 30, 2 * nps)
    )
    assert {row.cpu: row.quadrant for row in fake.rows} == {c.cpu: c.quadrant for c in labels.cpus}


#: lstopo from release to release, by the levels whose objects have a number of the system.
LSTOPO = {
    "2.0": (),
    "2.4": ("socket", "core"),
    "2.8": ("socket", "ccx", "core"),
    "2.12": ("socket", "ccx", "die", "core"),
}


def _sources(fake: Fake, folder: Path, shifts: tuple[int, int, int, int] | None) -> dict[str, Topology]:
    """The labels of one machine by every source."""
    root = fake.write(folder / "root")
    out = {"sysfs": captured.read(open_tree(root))}
    for release, levels in LSTOPO.items():
        out[f"lstopo {release}"] = captured.read_xml(fake.write_xml(folder / f"{release}.xml", ids=levels))
    out["lstopo 1"] = captured.read_xml(fake.write_xml(folder / "1.xml", 1, ids=("socket", "core")))
    out["cpuid"] = captured.read_cpuid(fake.write_cpuid(folder / "dumps", shifts))
    (root / "proc/cpuinfo").unlink()
    out["sysfs alone"] = captured.read(open_tree(root))
    return out


HARVESTED_AND_NOT = {
    **{name: (machines.WHOLE[name], SHIFTS.get(name)) for name in ("naples", "rome", "genoa", "bergamo")},
    "9454": (
        Epyc(0x11, 0x19, "AMD EPYC 9454 48-Core Processor", (0, 4, 2, 6, 3, 7, 1, 5), 1, 6, 8, lambda c: c % 4),
        (1, 4, 4, 7),
    ),
    "7402": (Epyc(0x31, 0x17, "AMD EPYC 7402 24-Core Processor", (0, 1, 2, 3), 2, 3, 4, lambda c: c), None),
}


@pytest.mark.parametrize("nps", [1, 4])
@pytest.mark.parametrize("name", HARVESTED_AND_NOT)
def test_the_same_machine_has_the_same_labels_by_every_source_or_a_named_gap(
    tmp_path: Path, name: str, nps: int
) -> None:
    recipe, shifts = HARVESTED_AND_NOT[name]
    fake = epyc(recipe, nps=nps, threads=1 if shifts else 2)
    # on Zen 4 and later Linux reports the CCD as the die
    fake = fake.with_rows(lambda row: replace(row, die=row.ccd)) if shifts else fake
    found = _sources(fake, tmp_path, shifts)
    best = found["sysfs"]
    assert best.machine.order_known and "order-unknown" not in ids(best)
    for source, labels in found.items():
        assert labels.machine.order_known is ("order-unknown" not in ids(labels)), source
        for level in ("socket", "quadrant", "ccd", "ccx", "core"):
            mine, its = labels.groups(level), best.groups(level)
            if not mine or not its:  # a gap: the level says so itself
                assert (best if mine else labels).provenance[level] == "unknown"
                assert (
                    level != "quadrant"
                    or "quadrant-unknown" in ids(labels) | ids(best)
                    or "unknown-part" in ids(labels)
                )
            elif labels.machine.order_known:
                assert mine == its, (source, level)
            else:
                assert set(mine.values()) == set(its.values()), (source, level)
        if labels.machine.order_known:
            ranks = {cpu.cpu: (cpu.rank, cpu.thread) for cpu in best.cpus}
            assert {cpu.cpu: (cpu.rank, cpu.thread) for cpu in labels.cpus} == ranks, source
    unknown = {source for source, labels in found.items() if not labels.machine.order_known}
    assert unknown == (set() if shifts is None else {"lstopo 2.0"})


def test_nodes_whose_order_is_unknown_are_not_compared_place_by_place_with_others(tmp_path: Path) -> None:
    fake = epyc(machines.GENOA, sockets=1)
    known, again, unknown = (
        captured.read_xml(fake.write_xml(tmp_path / f"{i}.xml", ids=levels))
        for i, levels in enumerate((LSTOPO["2.12"], LSTOPO["2.4"], LSTOPO["2.0"]))
    )
    cpus = [row.cpu for row in fake.rows]
    pairs = np.array([[0, 1]])
    keys = [layout_of(labels, slots_of(labels, cpus)[0], pairs).key for labels in (known, again, unknown)]
    assert keys[0] == keys[1] != keys[2]


def test_xml_of_genoa_has_no_order_and_so_no_quadrants(tmp_path: Path) -> None:
    fake = epyc(machines.GENOA)
    labels = captured.read_xml(fake.write_xml(tmp_path / "m.xml"))
    assert_labeled(labels, fake, "socket", "ccd", "ccx", "core")
    assert parts(labels, "quadrant") == set() and {"quadrant-unknown", "order-unknown"} <= ids(labels)
    fake = epyc(machines.GENOA, nps=4)
    assert_labeled(captured.read_xml(fake.write_xml(tmp_path / "n.xml")), fake, "quadrant", "ccd", "numa")


def test_xml_of_a_limited_view(tmp_path: Path) -> None:
    fake = epyc(machines.ROME)
    fake = fake.but(offline=frozenset(r.cpu for r in fake.rows if r.ccd == 0), name="AMD EPYC unlisted")
    labels = captured.read_xml(fake.write_xml(tmp_path / "m.xml"))
    assert "cpus-not-allowed" in ids(labels)
    assert parts(labels, "quadrant") == parts(labels, "ccd") == set()
    assert_labeled(labels, fake, "socket", "ccx", "core")


def test_xml_keeps_memory_nodes_apart(tmp_path: Path) -> None:
    fake = xeon(snc=2).but(empty_nodes=(4, 5))
    labels = captured.read_xml(fake.write_xml(tmp_path / "m.xml"))
    assert_labeled(labels, fake, "socket", "ccx", "core", "numa")
    assert [n.node for n in labels.numa_nodes if not n.cpus] == [4, 5]


def test_xml_of_hwloc_3_and_of_a_memory_side_cache(tmp_path: Path) -> None:
    path = xeon().with_rows(lambda row: replace(row, ccx=row.socket)).write_xml(tmp_path / "m.xml")
    text = path.read_text().replace('type="L3Cache"', 'type="L3Cache" subtype="MemorySideCache"')
    path.write_text(text.replace("</topology>", '<info name="Backend" value="x86"/></topology>'))
    labels = captured.read_xml(path)
    assert parts(labels, "ccx") == set() and "no-l3" in ids(labels)
    assert labels.provenance["socket"] == "cpuid"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1), junk=st.binary(max_size=6), cut=st.integers(0, 40))
@pytest.mark.parametrize("source", ["xml", "cpuid", "sysfs"])
def test_bytes_gone_wrong_give_labels_or_one_sentence(
    tmp_path: Path, source: str, at: float, junk: bytes, cut: int
) -> None:
    fake = xeon(sockets=1, cores=2)
    reads: Callable[[], Topology]
    if source == "xml":
        path, reads = fake.write_xml(tmp_path / "m.xml"), lambda: captured.read_xml(tmp_path / "m.xml")
    elif source == "cpuid":
        path, reads = fake.write_cpuid(tmp_path, None) / "pu1", lambda: captured.read_cpuid(tmp_path)
    else:
        path, reads = fake.write(tmp_path) / "proc/cpuinfo", lambda: captured.read(open_tree(tmp_path))
    data = path.read_bytes()
    place = int(at * len(data))
    path.write_bytes(data[:place] + junk + data[place + cut :])
    try:
        labels = reads()
    except NodeprintError as error:
        assert tmp_path.name in str(error)
    else:
        assert [cpu.cpu for cpu in labels.cpus] == sorted({cpu.cpu for cpu in labels.cpus})
        json.dumps(serialized.as_json(labels))
        assert len(np.unique(slots_of(labels, [cpu.cpu for cpu in labels.cpus])[0], axis=0)) == len(labels.cpus)


@pytest.mark.parametrize("name", SHIFTS)
def test_cpuid_with_the_amd_leaf(tmp_path: Path, name: str) -> None:
    fake = epyc(machines.WHOLE[name])
    labels = captured.read_cpuid(fake.write_cpuid(tmp_path, SHIFTS[name]))
    assert_labeled(labels, fake, "socket", "quadrant", "ccd", "ccx", "core")
    assert labels.provenance["ccd"] == labels.provenance["ccx"] == "cpuid"
    assert labels.provenance["quadrant"] == "table"
    assert {row.cpu: row.apicid for row in fake.rows} == {c.cpu: c.apicid for c in labels.cpus}
    assert not ids(labels)


@pytest.mark.parametrize("name", ["rome", "milan"])
def test_cpuid_without_it(tmp_path: Path, name: str) -> None:
    fake = epyc(machines.WHOLE[name])
    labels = captured.read_cpuid(fake.write_cpuid(tmp_path, None))
    assert_labeled(labels, fake, "socket", "quadrant", "ccd", "ccx", "core")
    assert labels.provenance["ccd"] == "table"


@pytest.mark.parametrize("threads", [1, 2])
def test_cpuid_of_harvested_ccxs_uses_the_leaf_and_not_the_count_of_sharers(tmp_path: Path, threads: int) -> None:
    recipe = Epyc(0x11, 0x19, "AMD EPYC 9124 16-Core Processor", (0, 2, 3, 1), 1, 4, 8, lambda c: c % 4)
    fake = epyc(recipe, sockets=1, threads=threads)
    labels = captured.read_cpuid(fake.write_cpuid(tmp_path, (1, 4, 4, 6)))
    assert_labeled(labels, fake, "socket", "ccd", "ccx", "core")
    assert parts(labels, "quadrant") == set()
    assert {"cores-fused-off", "ccds-fused-off"} <= ids(labels)
    assert sorted({c.ccd for c in labels.cpus if c.ccd is not None}) == [0, 1, 2, 3]


def test_cpuid_of_a_view_without_some_cpus(tmp_path: Path) -> None:
    fake = epyc(machines.GENOA)
    fake = fake.but(offline=frozenset(r.cpu for r in fake.rows if r.ccd in (0, 1, 2)))
    labels = captured.read_cpuid(fake.write_cpuid(tmp_path, SHIFTS["genoa"]))
    assert "offline-cpus" in ids(labels)
    assert_labeled(labels, fake, "socket", "quadrant", "ccd", "ccx", "core")


def test_cpuid_of_a_virtual_machine(tmp_path: Path) -> None:
    fake = epyc(machines.GENOA).but(flags="hypervisor")
    labels = captured.read_cpuid(fake.write_cpuid(tmp_path, SHIFTS["genoa"]))
    assert labels.machine.virtual and parts(labels, "quadrant") == set()


def dump(
    folder: Path, cpu: int, apicid: int, *, vendor: str = "AMD", version: int, leaves: dict[str, str], logical: int = 0
) -> None:
    """A CPUID dump of a CPU: leaves 0 and 1, and others as `leaf sub` to registers."""
    name = {"AMD": "68747541 444d4163 69746e65", "Intel": "756e6547 6c65746e 49656e69"}[vendor]
    lines = [f"1 0 0 0 0 => 20 {name}", f"1 1 0 0 0 => {version:x} {apicid << 24 | logical << 16:x} 0 178bfbff"]
    lines += [f"5 {key.split()[0]} 0 {key.split()[1]} 0 => {registers}" for key, registers in leaves.items()]
    folder.mkdir(exist_ok=True)
    (folder / f"pu{cpu}").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("version", "cores"), [(0x40F12, 2), (0x100F42, 4), (0x100F80, 6)])
def test_old_amd_processors_have_their_cores(tmp_path: Path, version: int, cores: int) -> None:
    """K8 and K10 have neither leaf 0xB nor leaf 4: leaf 0x80000008 has the cores and the width of their numbers."""
    width = (cores - 1).bit_length()
    for number in range(2 * cores):
        apicid = (number // cores << width) + number % cores
        size = f"3028 0 {width << 12 | cores - 1:x} 0"
        dump(tmp_path, number, apicid, version=version, logical=cores, leaves={"80000008 0": size})
    labels = captured.read_cpuid(tmp_path)
    assert parts(labels, "socket") == {tuple(range(cores)), tuple(range(cores, 2 * cores))}
    assert len(parts(labels, "core")) == 2 * cores
    assert "offline-cpus" not in ids(labels)


def test_l3_groups_of_an_old_amd_processor_follow_each_other_without_gaps(tmp_path: Path) -> None:
    """Two dies of six: APIC ids 0 to 11, and six of them share an L3."""
    for number in range(12):
        leaves = {"80000008 0": "3028 0 400b 0", "8000001d 0": "14163 0 0 0", "8000001d 1": "0 0 0 0"}
        dump(tmp_path, number, number, version=0x600F12, logical=12, leaves=leaves)
    labels = captured.read_cpuid(tmp_path)
    assert parts(labels, "ccx") == {tuple(range(6)), tuple(range(6, 12))}


def test_hybrid_cores_without_an_l3_and_with_wider_clusters(tmp_path: Path) -> None:
    """Two P cores with two threads, a cluster of four E cores, two LP cores without an L3; leaf 0x1F has a count that
    is that of another model."""
    layout = [(0, 1, 1), (1, 1, 1), (8, 1, 1), (9, 1, 1), *((64 + 2 * i, 7, 1) for i in range(4))]
    layout += [(96, 7, 0), (98, 7, 0)]
    for cpu, (apicid, l2_sharers, l3) in enumerate(layout):
        caches = [f"{l2_sharers << 14 | 2 << 5 | 3:x} 0 0 0"]
        caches += [f"{127 << 14 | 3 << 5 | 3:x} 0 0 0"] if l3 else []
        leaves = {f"4 {i}": text for i, text in enumerate([*caches, "0 0 0 0"])}
        leaves |= {"1f 0": f"1 2 100 {apicid:x}", "1f 1": f"7 16 201 {apicid:x}", "1f 2": f"0 0 2 {apicid:x}"}
        kind = 0x40 if l2_sharers == 1 else 0x20
        dump(tmp_path, cpu, apicid, vendor="Intel", version=0xA06A4, leaves={**leaves, "1a 0": f"{kind << 24:x} 0 0 0"})
    labels = captured.read_cpuid(tmp_path)
    assert parts(labels, "ccx") == {tuple(range(8))}
    assert {cpu.cpu for cpu in labels.cpus if cpu.ccx is None} == {8, 9}
    assert parts(labels, "cluster") == {(0, 1), (2, 3), (4, 5, 6, 7), (8, 9)}
    assert parts(labels, "core") == {(0, 1), (2, 3), *((cpu,) for cpu in range(4, 10))}
    assert "offline-cpus" not in ids(labels)


def test_parts_of_different_widths_are_not_one_by_chance(tmp_path: Path) -> None:
    """APIC id 16 over 2 and 64 over 8 are both 8; they are different clusters."""
    for cpu, (apicid, sharers) in enumerate([(16, 2), (17, 2), *((64 + i, 8) for i in range(8))]):
        leaves = {"4 0": f"{sharers - 1 << 14 | 2 << 5 | 3:x} 0 0 0", "4 1": "0 0 0 0"}
        leaves |= {"b 0": f"0 1 100 {apicid:x}", "b 1": f"8 a 201 {apicid:x}"}
        dump(tmp_path, cpu, apicid, vendor="Intel", version=0x906A4, leaves=leaves)
    assert parts(captured.read_cpuid(tmp_path), "cluster") == {(0, 1), tuple(range(2, 10))}


@pytest.mark.parametrize(
    ("maker", "quadrants", "why"), [("Supermicro", 4, None), ("", 0, "does not show"), ("QEMU", 0, "hypervisor")]
)
def test_quadrants_of_the_table_need_a_machine_that_is_known_to_be_bare(
    tmp_path: Path, maker: str, quadrants: int, why: str | None
) -> None:
    labels = captured.read_xml(epyc(machines.ROME, sockets=1).write_xml(tmp_path / "m.xml", maker=maker))
    assert labels.machine.virtual is {"Supermicro": False, "": None, "QEMU": True}[maker]
    assert len(parts(labels, "quadrant")) == quadrants
    if why:
        assert why in next(w.text for w in labels.warnings if w.id == "quadrant-unknown")
        assert labels.machine.ccd_positions is None


@pytest.mark.parametrize(
    ("names", "virtual"),
    [
        (("Dell Inc.", "PowerEdge R7525"), False),
        (("Amazon EC2", "c5.metal"), False),
        (("Amazon EC2", "c5.large"), True),
        (("DigitalOcean", "Droplet"), True),
        (("", " "), None),
        ((), None),
    ],
)
def test_names_of_makers(names: tuple[str, ...], virtual: bool | None) -> None:
    assert virtual_by_name(*names) is virtual


def test_a_survey_has_linux_and_cpuid(tmp_path: Path) -> None:
    fake = epyc(machines.BERGAMO, sockets=1)
    root = fake.write(tmp_path / "root")
    plain = captured.read(open_tree(root))
    fake.write_cpuid(root / "nodeprint/cpuid", SHIFTS["bergamo"])
    with tarfile.open(tmp_path / "survey.tar.gz", "w:gz") as tar:
        tar.add(root, ".")
    labels = captured.read(open_tree(tmp_path / "survey.tar.gz"))
    assert (plain.provenance["ccd"], labels.provenance["ccd"]) == ("table", "cpuid")
    assert labels.cpus == plain.cpus
    for path in (root / "nodeprint/cpuid").glob("pu1*"):
        path.unlink()  # a job that was allowed only some CPUs
    assert captured.read(open_tree(root)) == labels


@pytest.mark.parametrize("depth", ["", "dump", "a/dump"])
def test_dumps_in_an_archive(tmp_path: Path, depth: str) -> None:
    fake = epyc(machines.ROME, sockets=1)
    fake.write_cpuid(tmp_path / "d", None)
    with tarfile.open(tmp_path / "d.tar.bz2", "w:bz2") as tar:
        tar.add(tmp_path / "d", depth or ".")
    assert_labeled(captured.read_cpuid(tmp_path / "d.tar.bz2"), fake, "socket", "ccx", "core")


@pytest.mark.parametrize("line", ["junk", "1 0 0 0 0 => 1 2 3", "z 0 0 0 0 => 1 2 3 4", "1 0 0 0 0 => 1 2 3 123456789"])
def test_a_garbled_dump_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    epyc(machines.ROME, sockets=1).write_cpuid(tmp_path, None)
    (tmp_path / "pu3").write_text(f"# comment\n{line}\n")
    with pytest.raises(NodeprintError, match="pu3, line 2"):
        captured.read_cpuid(tmp_path)
    (tmp_path / "pu3").write_text("")
    with pytest.raises(NodeprintError, match="pu3"):
        captured.read_cpuid(tmp_path)


def test_dumps_of_one_cpu_under_all_names(tmp_path: Path) -> None:
    epyc(machines.ROME, sockets=1).with_rows(lambda row: replace(row, apicid=0)).write_cpuid(tmp_path, None)
    labels = captured.read_cpuid(tmp_path)
    assert "apicids-repeat" in ids(labels)
    assert {c.socket for c in labels.cpus} == {None}


def test_a_folder_without_dumps_is_named(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match=tmp_path.name):
        captured.read_cpuid(tmp_path)


@pytest.mark.parametrize(
    ("infos", "kinds"),
    [
        (("IntelCore", "IntelAtom"), ["performance", "efficiency"]),
        (("IntelCore", "IntelCore"), [None, None]),
        (("big", "little"), ["big", "little"]),
        (("", ""), ["kind 0", "kind 1"]),
        (("", 'forced_efficiency="7"'), ["kind 0", "kind 7"]),
    ],
)
def test_kinds_of_cores_are_those_of_the_xml(tmp_path: Path, infos: tuple[str, str], kinds: list[str | None]) -> None:
    path = xeon(sockets=1, cores=2).write_xml(tmp_path / "m.xml")
    said = ""
    for cpu, info in enumerate(infos):
        named = f'<info name="CoreType" value="{info}"/>' if info and "=" not in info else ""
        said += f'<cpukind cpuset="0x{5 << cpu:x}" {info if "=" in info else ""}>{named}</cpukind>'
    path.write_text(path.read_text().replace("</topology>", f"{said}</topology>"))
    assert [cpu.kind for cpu in captured.read_xml(path).cpus] == kinds * 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("<topology>\n <object>\n</topology>", r"m\.xml, line 3, column 2: is not XML \(mismatched tag"),
        (f"<{'t' * 41}/>", r"m\.xml: is not a topology but <t{37}\.\.\.>$"),
        (f"<{'t' * 40}/>", r"m\.xml: is not a topology but <t{40}>$"),
        ('<!DOCTYPE t [<!ENTITY a "a">]><topology/>', r"m\.xml: is not an XML file of lstopo; "),
    ],
)
def test_what_is_no_topology_is_named_with_its_line(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "m.xml").write_text(content)
    with pytest.raises(NodeprintError, match=says):
        captured.read_xml(tmp_path / "m.xml")


@pytest.mark.parametrize(
    ("attributes", "level"),
    [
        ({"type": "Package"}, "socket"),
        ({"type": "L3Cache"}, "ccx"),
        ({"type": "L3Cache", "subtype": "MemorySideCache"}, None),
        ({"type": "Cache", "depth": "3", "cache_type": "0"}, "ccx"),
        ({"type": "Cache", "depth": "2"}, "cluster"),
        ({"type": "Cache", "depth": "1"}, None),
        ({"type": "Cache", "depth": "2", "cache_type": "2"}, None),
        ({"type": "Group", "subtype": "Cluster"}, "cluster"),
        ({"type": "Group", "subtype": "Die"}, "die"),
        ({"type": "Group", "subtype": "Book"}, None),
        ({"type": "Bridge"}, None),
    ],
)
def test_objects_of_an_xml_are_levels(attributes: dict[str, str], level: str | None) -> None:
    """A cache before a memory and one of instructions are shared by no cores of a level."""
    assert hwloc_xml._level(ElementTree.Element("object", attributes)) == level


BILLION = '<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><topology>&b;</topology>'


@pytest.mark.parametrize(
    "content",
    ["", "junk", "<topology>", "<html/>", "<topology/>", BILLION, "\0", "<topology><object type='PU'/></topology>"],
)
def test_a_garbled_xml_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(content)
    with pytest.raises(NodeprintError, match=r"bad\.xml"):
        captured.read_xml(path)


@pytest.mark.parametrize("old", ['os_index="3"', 'cpuset="0x00000011"'])
def test_a_number_that_is_none_in_an_xml(tmp_path: Path, old: str) -> None:
    path = xeon(cores=2).write_xml(tmp_path / "m.xml")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, old.split("=", maxsplit=1)[0] + '="x"'))
    with pytest.raises(NodeprintError, match=r"m\.xml"):
        captured.read_xml(path)


def test_the_helper_writes_what_the_reader_reads(tmp_path: Path) -> None:
    done = subprocess.run(
        [built() / "cpuid", tmp_path / "dumps"], capture_output=True, text=True, check=False, timeout=300
    )
    if platform.machine() not in ("x86_64", "i686"):
        assert done.returncode == 3 and "x86" in done.stderr
        return
    assert done.returncode == 0 and done.stderr == ""
    allowed = sorted(os.sched_getaffinity(0))
    assert sorted(p.name for p in (tmp_path / "dumps").glob("pu*")) == sorted(f"pu{cpu}" for cpu in allowed)
    labels = captured.read_cpuid(tmp_path / "dumps")
    live = {cpu.cpu: cpu for cpu in captured.read(open_tree(Path("/"))).cpus}
    assert [cpu.cpu for cpu in labels.cpus] == allowed
    assert all(live[cpu.cpu].apicid in (None, cpu.apicid) for cpu in labels.cpus)


def _captured(data: Path, name: str) -> Topology:
    path = next(p for p in (data / "topology").rglob("*") if p.name.startswith(name))
    if path.suffix == ".xml":
        return captured.read_xml(path)
    return captured.read_cpuid(path) if "x86-cpuid" in str(path.parent) else captured.read(open_tree(path))


def _counts(labels: Topology) -> dict[str, int]:
    shape = {level["name"]: level["count"] for level in serialized.as_json(labels)["levels"]}
    return {level: shape.get(level, 0) for level in ("socket", "quadrant", "ccd", "ccx", "numa", "cluster", "core")}


#: Captured machines: how many parts of socket, quadrant, CCD, CCX, NUMA, cluster and core, and the generation.
CAPTURED = {
    "AMD-17h-Zen-2xEpyc-7451": ((2, 8, 8, 16, 0, 0, 48), "Naples"),
    "AMD-19h-Zen4-2xEpyc-9654": ((2, 8, 24, 24, 0, 0, 192), "Genoa"),
    "Intel-SapphireRapids": ((2, 0, 0, 2, 0, 0, 80), "Sapphire Rapids"),
    "Intel-KnightsLanding": ((1, 0, 0, 0, 0, 32, 64), "Knights Landing"),
    "128arm": ((2, 0, 0, 4, 4, 32, 128), "Kunpeng 920"),
    "fakecpuid1f": ((4, 0, 8, 8, 16, 0, 32), None),
    "mpibind_eas-tioga": ((1, 4, 8, 8, 4, 0, 64), "Trento"),
    "mpibind_epyc-corona": ((2, 0, 8, 16, 2, 0, 48), "Rome"),
    "clx112": ((2, 0, 0, 2, 4, 0, 56), "Skylake-SP, Cascade Lake or Cooper Lake"),
    "x86_64-epyc_7451": ((2, 8, 8, 16, 8, 0, 48), "Naples"),
    "qemu-rome16": ((2, 0, 0, 8, 2, 0, 16), "Rome"),
    "qemu-milan32": ((2, 8, 16, 16, 8, 0, 16), "Milan"),
}


@pytest.mark.parametrize("name", CAPTURED)
def test_captured_machines(data: Path, name: str) -> None:
    labels = _captured(data, name)
    counts, generation = CAPTURED[name]
    assert tuple(_counts(labels).values()) == counts
    assert labels.machine.generation == generation


def test_captured_genoa_visits_its_ccds_out_of_order(data: Path) -> None:
    labels = _captured(data, "AMD-19h-Zen4-2xEpyc-9654")
    visited = list(dict.fromkeys(cpu.ccd for cpu in labels.cpus))
    assert visited[:12] == [0, 4, 8, 2, 6, 10, 3, 7, 11, 1, 5, 9]
    assert list(dict.fromkeys(cpu.quadrant for cpu in labels.cpus))[:4] == [0, 2, 3, 1]


def test_captured_trento_has_a_ccd_pair_a_node(data: Path) -> None:
    labels = _captured(data, "mpibind_eas-tioga")
    assert parts(labels, "quadrant") == parts(labels, "numa")
    assert labels.provenance["quadrant"] == "numa" and "numa-contradicts-table" not in ids(labels)


def test_captured_snc_has_four_nodes_without_cpus(data: Path) -> None:
    labels = _captured(data, "clx112")
    assert [n.node for n in labels.numa_nodes if not n.cpus] == [4, 5, 6, 7]
    assert [len(n.cpus) for n in labels.numa_nodes[:4]] == [28] * 4


def test_captured_naples_is_one_machine_by_two_sources(data: Path) -> None:
    a, b = _captured(data, "AMD-17h-Zen-2xEpyc-7451"), _captured(data, "x86_64-epyc_7451")
    for level in ("socket", "quadrant", "ccd", "ccx", "core"):
        assert parts(a, level) == parts(b, level)
