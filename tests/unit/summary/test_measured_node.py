"""The summary of a node: its values and labels are those of its records; and what other programs read of it."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

from nodeprint import simulate as simulator
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import captured, presets
from nodeprint.machine.tree import open_tree
from nodeprint.summary import hwloc_export, measured_node
from nodeprint.summary.node_summary import NodeSummary, processor_key
from tests.support.real_parts import need


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated node of 2 x 64 cores."""
    folder = tmp_path_factory.mktemp("cards") / "main"
    simulator.write(simulator.Plan(presets.preset("rome-2x64"), 1, cells=True), folder)
    return folder


@pytest.fixture(scope="module")
def summary(campaign: Path) -> NodeSummary:
    return measured_node.MeasuredNode(campaign).summary


def test_the_matrix_is_that_of_the_records_to_a_tenth(summary: NodeSummary) -> None:
    assert summary.matrix is not None
    same = np.array(summary.matrix.places.parts["ccx"])
    inside = (same[:, None] == same[None, :]) & ~np.eye(len(same), dtype=bool)
    figure = next(figure for figure in summary.figures if figure.name == "same CCX")
    assert np.nanmedian(summary.matrix.ns[inside]) == pytest.approx(figure.median, rel=0.02)
    assert np.array_equal(summary.matrix.ns, summary.matrix.ns.T, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("AMD EPYC 7742 64-Core Processor", "amd epyc 7742"),
        ("Intel(R) Xeon(R) Gold 6242 CPU @ 2.80GHz", "intel xeon gold 6242"),
        ("Intel(R) Xeon Gold 6242 @ 2.8GHz", "intel xeon gold 6242"),
        ("AMD Ryzen Threadripper 3960X, 3.80GHz, 24 Cores", "amd ryzen threadripper 3960x"),
        ("AMD Ryzen 7 2700X Eight-Core Processor", "amd ryzen 7 2700x"),
    ],
)
def test_one_key_for_all_names_of_a_processor(name: str, key: str) -> None:
    assert processor_key(name) == key


# --- hwloc ---


def test_lstopo_reads_what_was_measured(tmp_path: Path) -> None:
    """The XML of this machine's own lstopo with a simulated node's figures on its CPUs."""
    need("lstopo-no-graphics", cpus=2)
    folder = tmp_path / "main"
    simulator.write(simulator.Plan(captured.read(open_tree(Path("/"))), 1, cells=True), folder)
    (node,) = (folder / "nodes").iterdir()
    xml = subprocess.run(["lstopo-no-graphics", "--of", "xml"], capture_output=True, check=True).stdout
    survey = node / "job1/survey.tar.gz"
    with tarfile.open(survey) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        contents = {name: file.read() for name, file in files.items() if file is not None}
    with tarfile.open(survey, "w:gz") as archive:
        for name, content in (contents | {"nodeprint/lstopo.xml": xml}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    (path,) = hwloc_export.export(folder)

    def shown(what: str) -> str:
        command: list[str | Path] = ["lstopo-no-graphics", "--input", path, f"--{what}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "nodeprint-hop-ps" in shown("distances")
    figure = next(
        figure for figure in measured_node.MeasuredNode(folder).summary.figures if figure.measurement == "chase-latency"
    )
    latencies = re.findall(r"NUMANode L#0 = (\d+) from cpuset", shown("memattrs").partition("Latency")[2])
    assert latencies and all(abs(int(ns) - figure.median) < 0.2 * figure.median for ns in latencies)


def test_without_an_xml_in_the_survey_there_is_a_sentence(campaign: Path) -> None:
    with pytest.raises(NodeprintError, match="no XML of lstopo"):
        hwloc_export.export(campaign)
