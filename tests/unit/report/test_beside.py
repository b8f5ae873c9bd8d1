"""Two campaigns beside each other on one scale."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.data import seal
from nodeprint.data.store import packed
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.presets import preset
from nodeprint.report import beside
from nodeprint.simulate import Plan, fleet


def campaign(folder: Path, machine: str, nodes: int = 2) -> Path:
    packed.write(fleet(Plan(preset(machine), nodes=nodes, runs=1, passes=1)), folder)
    return folder


def test_common_nodes_are_drawn_beside_themselves_those_that_changed_first(tmp_path: Path) -> None:
    both = [campaign(tmp_path / name, "graviton3-64") for name in ("before", "after")]
    paths = beside.write(both, tmp_path / "figures", ["node001"])
    assert [path.name for path in paths[::3]] == ["node001-coherence-cas.svg", "node000-coherence-cas.svg"]
    table = pd.read_csv(paths[2], comment="#")
    assert len(table) == 2 * (64 * 63 // 2)
    assert paths[2].read_text().startswith("# campaign ") and "SIMULATED" in paths[2].read_text().splitlines()[0]


def test_two_parts_without_a_common_node_are_on_one_scale(tmp_path: Path) -> None:
    components = [campaign(tmp_path / "small", "graviton3-64", 1), campaign(tmp_path / "large", "naples-2x32", 1)]
    _replace(tmp_path / "large/store/fleet/index.json", "node000", "other000")
    svg, _, csv = beside.write(components, tmp_path / "figures")
    assert svg.name == "node000-other000-coherence-cas.svg"
    assert set(pd.read_csv(csv, comment="#")["matrix"].str.partition(": ")[2]) == {"node000", "other000"}


def _replace(index: Path, old: str, new: str) -> None:
    """A fleet that was packed with other words."""
    index.write_text(index.read_text().replace(old, new))
    seal.write_folder(index.parent)


def test_campaigns_of_other_operations_are_refused(tmp_path: Path) -> None:
    both = [campaign(tmp_path / name, "graviton3-64", 1) for name in ("before", "after")]
    _replace(both[1] / "store/fleet/index.json", '"cas"', '"faa"')
    with pytest.raises(NodeprintError, match="no matrix of the same operation"):
        beside.write(both, tmp_path / "figures")


def test_help_says_where_they_go() -> None:
    assert "--figures" in CliRunner().invoke(app, ["diff", "--help"]).output
