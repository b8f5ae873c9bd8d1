"""The same machine from lstopo's XML, from CPUID and from Linux has the same labels; and what garbled files say."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeprint import topology
from nodeprint.errors import NodeprintError
from nodeprint.layout import slots_of
from nodeprint.topology.model import Topology
from nodeprint.tree import open_tree
from tests import machines
from tests.conftest import built
from tests.machines import Epyc, epyc, xeon
from tests.test_topology import assert_labelled, ids, parts

#: Leaf 0x80000026: shifts of core, CCX, CCD and socket, as dumps of such parts have them.
SHIFTS = {"genoa": (1, 4, 4, 8), "bergamo": (1, 4, 5, 8), "turin": (1, 4, 4, 8), "dense": (1, 5, 5, 9)}


@pytest.mark.parametrize(("nps", "version"), [(1, 2), (2, 1), (4, 2)])
@pytest.mark.parametrize("name", ["naples", "rome", "milan"])
def test_xml_of_parts_whose_numbers_follow_apic_ids(tmp_path: Path, name: str, version: int, nps: int) -> None:
    fake = epyc(machines.WHOLE[name], nps=nps)
    labels = topology.read_xml(fake.write_xml(tmp_path / "m.xml", version))
    assert_labelled(labels, fake, "socket", "quadrant", "ccd", "ccx", "core", "numa")
    assert labels.machine.nps == nps
    assert {n.node: (n.memory_bytes, len(n.distances)) for n in labels.numa_nodes} == dict.fromkeys(
        range(2 * nps), (1 << 30, 2 * nps)
    )
    assert {row.cpu: row.quadrant for row in fake.rows} == {c.cpu: c.quadrant for c in labels.cpus}


def test_xml_of_genoa_has_no_order_and_so_no_quadrants(tmp_path: Path) -> None:
    fake = epyc(machines.GENOA)
    labels = topology.read_xml(fake.write_xml(tmp_path / "m.xml"))
    assert_labelled(labels, fake, "socket", "ccd", "ccx", "core")
    assert parts(labels, "quadrant") == set() and "quadrant-unknown" in ids(labels)
    fake = epyc(machines.GENOA, nps=4)
    assert_labelled(topology.read_xml(fake.write_xml(tmp_path / "n.xml")), fake, "quadrant", "ccd", "numa")


def test_xml_of_a_limited_view(tmp_path: Path) -> None:
    fake = epyc(machines.ROME)
    fake = fake.but(offline=frozenset(r.cpu for r in fake.rows if r.ccd == 0), name="AMD EPYC unlisted")
    labels = topology.read_xml(fake.write_xml(tmp_path / "m.xml"))
    assert "cpus-not-allowed" in ids(labels)
    assert parts(labels, "quadrant") == parts(labels, "ccd") == set()
    assert_labelled(labels, fake, "socket", "ccx", "core")


def test_xml_keeps_memory_nodes_apart(tmp_path: Path) -> None:
    fake = xeon(snc=2).but(empty_nodes=(4, 5))
    labels = topology.read_xml(fake.write_xml(tmp_path / "m.xml"))
    assert_labelled(labels, fake, "socket", "ccx", "core", "numa")
    assert [n.node for n in labels.numa_nodes if not n.cpus] == [4, 5]


def test_xml_of_hwloc_3_and_of_a_memory_side_cache(tmp_path: Path) -> None:
    path = xeon().with_rows(lambda row: replace(row, ccx=row.socket)).write_xml(tmp_path / "m.xml")
    text = path.read_text().replace('type="L3Cache"', 'type="L3Cache" subtype="MemorySideCache"')
    path.write_text(text.replace("</topology>", '<info name="Backend" value="x86"/></topology>'))
    labels = topology.read_xml(path)
    assert parts(labels, "ccx") == set() and "no-l3" in ids(labels)
    assert labels.provenance["socket"] == "cpuid"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1), junk=st.binary(max_size=6), cut=st.integers(0, 40))
@pytest.mark.parametrize("source", ["xml", "cpuid", "sysfs"])
def test_bytes_gone_wrong_give_labels_or_one_sentence(
    tmp_path: Path, source: str, at: float, junk: bytes, cut: int
) -> None:
    fake = xeon(sockets=1, cores=2)
    if source == "xml":
        path, reads = fake.write_xml(tmp_path / "m.xml"), lambda: topology.read_xml(tmp_path / "m.xml")
    elif source == "cpuid":
        path, reads = fake.write_cpuid(tmp_path, None) / "pu1", lambda: topology.read_cpuid(tmp_path)
    else:
        path, reads = fake.write(tmp_path) / "proc/cpuinfo", lambda: topology.read(open_tree(tmp_path))
    data = path.read_bytes()
    place = int(at * len(data))
    path.write_bytes(data[:place] + junk + data[place + cut :])
    try:
        labels = reads()
    except NodeprintError as error:
        assert tmp_path.name in str(error)
    else:
        assert [cpu.cpu for cpu in labels.cpus] == sorted({cpu.cpu for cpu in labels.cpus})
        json.dumps(topology.as_json(labels))
        assert len(np.unique(slots_of(labels, [cpu.cpu for cpu in labels.cpus])[0], axis=0)) == len(labels.cpus)


@pytest.mark.parametrize("name", SHIFTS)
def test_cpuid_with_the_amd_leaf(tmp_path: Path, name: str) -> None:
    fake = epyc(machines.WHOLE[name])
    labels = topology.read_cpuid(fake.write_cpuid(tmp_path, SHIFTS[name]))
    assert_labelled(labels, fake, "socket", "quadrant", "ccd", "ccx", "core")
    assert labels.provenance["ccd"] == labels.provenance["ccx"] == "cpuid"
    assert labels.provenance["quadrant"] == "table"
    assert {row.cpu: row.apicid for row in fake.rows} == {c.cpu: c.apicid for c in labels.cpus}
    assert not ids(labels)


@pytest.mark.parametrize("name", ["rome", "milan"])
def test_cpuid_without_it(tmp_path: Path, name: str) -> None:
    fake = epyc(machines.WHOLE[name])
    labels = topology.read_cpuid(fake.write_cpuid(tmp_path, None))
    assert_labelled(labels, fake, "socket", "quadrant", "ccd", "ccx", "core")
    assert labels.provenance["ccd"] == "table"


@pytest.mark.parametrize("threads", [1, 2])
def test_cpuid_of_harvested_ccxs_uses_the_leaf_and_not_the_count_of_sharers(tmp_path: Path, threads: int) -> None:
    recipe = Epyc(0x11, 0x19, "AMD EPYC 9124 16-Core Processor", (0, 2, 3, 1), 1, 4, 8, lambda c: c % 4)
    fake = epyc(recipe, sockets=1, threads=threads)
    labels = topology.read_cpuid(fake.write_cpuid(tmp_path, (1, 4, 4, 6)))
    assert_labelled(labels, fake, "socket", "ccd", "ccx", "core")
    assert parts(labels, "quadrant") == set()
    assert {"cores-fused-off", "ccds-fused-off"} <= ids(labels)
    assert sorted({c.ccd for c in labels.cpus if c.ccd is not None}) == [0, 1, 2, 3]


def test_cpuid_of_a_view_without_some_cpus(tmp_path: Path) -> None:
    fake = epyc(machines.GENOA)
    fake = fake.but(offline=frozenset(r.cpu for r in fake.rows if r.ccd in (0, 1, 2)))
    labels = topology.read_cpuid(fake.write_cpuid(tmp_path, SHIFTS["genoa"]))
    assert "offline-cpus" in ids(labels)
    assert_labelled(labels, fake, "socket", "quadrant", "ccd", "ccx", "core")


def test_cpuid_of_a_virtual_machine(tmp_path: Path) -> None:
    fake = epyc(machines.GENOA).but(flags="hypervisor")
    labels = topology.read_cpuid(fake.write_cpuid(tmp_path, SHIFTS["genoa"]))
    assert labels.machine.virtual and parts(labels, "quadrant") == set()


def test_a_survey_has_linux_and_cpuid(tmp_path: Path) -> None:
    fake = epyc(machines.BERGAMO, sockets=1)
    root = fake.write(tmp_path / "root")
    plain = topology.read(open_tree(root))
    fake.write_cpuid(root / "nodeprint/cpuid", SHIFTS["bergamo"])
    with tarfile.open(tmp_path / "survey.tar.gz", "w:gz") as tar:
        tar.add(root, ".")
    labels = topology.read(open_tree(tmp_path / "survey.tar.gz"))
    assert (plain.provenance["ccd"], labels.provenance["ccd"]) == ("table", "cpuid")
    assert labels.cpus == plain.cpus
    for path in (root / "nodeprint/cpuid").glob("pu1*"):
        path.unlink()  # a job that was allowed only some CPUs
    assert topology.read(open_tree(root)) == labels


@pytest.mark.parametrize("depth", ["", "dump", "a/dump"])
def test_dumps_in_an_archive(tmp_path: Path, depth: str) -> None:
    fake = epyc(machines.ROME, sockets=1)
    fake.write_cpuid(tmp_path / "d", None)
    with tarfile.open(tmp_path / "d.tar.bz2", "w:bz2") as tar:
        tar.add(tmp_path / "d", depth or ".")
    assert_labelled(topology.read_cpuid(tmp_path / "d.tar.bz2"), fake, "socket", "ccx", "core")


@pytest.mark.parametrize("line", ["junk", "1 0 0 0 0 => 1 2 3", "z 0 0 0 0 => 1 2 3 4", "1 0 0 0 0 => 1 2 3 123456789"])
def test_a_garbled_dump_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    epyc(machines.ROME, sockets=1).write_cpuid(tmp_path, None)
    (tmp_path / "pu3").write_text(f"# comment\n{line}\n")
    with pytest.raises(NodeprintError, match="pu3, line 2"):
        topology.read_cpuid(tmp_path)
    (tmp_path / "pu3").write_text("")
    with pytest.raises(NodeprintError, match="pu3"):
        topology.read_cpuid(tmp_path)


def test_dumps_of_one_cpu_under_all_names(tmp_path: Path) -> None:
    epyc(machines.ROME, sockets=1).with_rows(lambda row: replace(row, apicid=0)).write_cpuid(tmp_path, None)
    labels = topology.read_cpuid(tmp_path)
    assert "apicids-repeat" in ids(labels)
    assert {c.socket for c in labels.cpus} == {None}


def test_a_folder_without_dumps_is_named(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match=tmp_path.name):
        topology.read_cpuid(tmp_path)


BILLION = '<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><topology>&b;</topology>'


@pytest.mark.parametrize(
    "content",
    ["", "junk", "<topology>", "<html/>", "<topology/>", BILLION, "\0", "<topology><object type='PU'/></topology>"],
)
def test_a_garbled_xml_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(content)
    with pytest.raises(NodeprintError, match=r"bad\.xml"):
        topology.read_xml(path)


@pytest.mark.parametrize("old", ['os_index="3"', 'cpuset="0x00000001"'])
def test_a_number_that_is_none_in_an_xml(tmp_path: Path, old: str) -> None:
    path = xeon(cores=2).write_xml(tmp_path / "m.xml")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, old.split("=", maxsplit=1)[0] + '="x"'))
    with pytest.raises(NodeprintError, match=r"m\.xml"):
        topology.read_xml(path)


def test_the_helper_writes_what_the_reader_reads(tmp_path: Path) -> None:
    done = subprocess.run(
        [built() / "cpuid", tmp_path / "dumps"], capture_output=True, text=True, check=False, timeout=60
    )
    if platform.machine() not in ("x86_64", "i686"):
        assert done.returncode == 3 and "x86" in done.stderr
        return
    assert done.returncode == 0 and done.stderr == ""
    allowed = sorted(os.sched_getaffinity(0))
    assert sorted(p.name for p in (tmp_path / "dumps").glob("pu*")) == sorted(f"pu{cpu}" for cpu in allowed)
    labels = topology.read_cpuid(tmp_path / "dumps")
    live = {cpu.cpu: cpu for cpu in topology.read(open_tree(Path("/"))).cpus}
    assert [cpu.cpu for cpu in labels.cpus] == allowed
    assert all(live[cpu.cpu].apicid in (None, cpu.apicid) for cpu in labels.cpus)


def _captured(data: Path, name: str) -> Topology:
    path = next(p for p in (data / "topology").rglob("*") if p.name.startswith(name))
    if path.suffix == ".xml":
        return topology.read_xml(path)
    return topology.read_cpuid(path) if "x86-cpuid" in str(path.parent) else topology.read(open_tree(path))


def _counts(labels: Topology) -> dict[str, int]:
    shape = {level["name"]: level["count"] for level in topology.as_json(labels)["levels"]}
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
        assert parts(a, level) == parts(b, level)  # type: ignore[arg-type]
