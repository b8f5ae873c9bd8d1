"""hwloc's XML with figures; that lstopo reads it is a test of the cards, which have a node's figures."""

from __future__ import annotations

import io
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nodeprint.data.export import hwloc
from nodeprint.errors import NodeprintError

XML = """<topology><object type="Machine"><object type="NUMANode" os_index="1" cpuset="0x3" gp_index="9"/>
<object type="PU" os_index="0"/><object type="PU" os_index="4"/></object></topology>"""


def node(folder: Path, xml: str) -> Path:
    """A node's folder whose survey has this XML."""
    survey = folder / "campaign/nodes/a/job1/survey.tar.gz"
    survey.parent.mkdir(parents=True)
    with tarfile.open(survey, "w:gz") as archive:
        for name, content in (("proc/cpuinfo", ""), ("nodeprint/lstopo.xml", xml)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))
    return survey.parents[1]


def test_figures_are_of_cpus_and_numa_nodes_that_are_known(tmp_path: Path) -> None:
    root = hwloc.surveyed(node(tmp_path, XML))
    assert (hwloc.cpus_of(root, 1), hwloc.cpus_of(root, 0)) == ("0x3", None)
    hwloc.add_distances(root, [0, 4], [0, 70_000, 70_000, 0])
    hwloc.add_distances(root, [0, 5], [0, 1, 1, 0])
    hwloc.add_attribute(root, "Latency", [("0x00000010", 1, 96), ("0x00000010", 0, 97)])
    hwloc.add_attribute(root, "Bandwidth", [("0x3", 0, 1000)])
    root = ET.fromstring(hwloc.document(root))
    (distances,) = root.iter("distances2")
    assert [part.text for part in distances] == ["0 4 ", "0 70000 70000 0 "]
    assert [part.get("length") for part in distances] == ["4", "16"]
    (attribute,) = root.iter("memattr")
    assert (attribute.get("name"), attribute.get("flags")) == ("Latency", "6")
    (value,) = attribute
    assert value.get("initiator_cpuset") == "0x00000010"
    assert (value.get("target_obj_gp_index"), value.get("value")) == ("9", "96")


def test_an_xml_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="is not XML"):
        hwloc.surveyed(node(tmp_path, "<topology"))


@pytest.mark.parametrize(("cpus", "text"), [([0], "0x00000001"), ([33, 0], "0x00000002,0x00000001"), ([], "0x0")])
def test_cpusets_as_hwloc_writes_them(cpus: list[int], text: str) -> None:
    assert hwloc.cpuset(cpus) == text
