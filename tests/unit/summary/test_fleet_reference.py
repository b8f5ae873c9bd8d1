"""A fleet's figures as a file: centers and spreads without names, and how a single node is beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.judge.judge import judge
from nodeprint.report import beside_fleet
from nodeprint.summary import fleet_reference
from nodeprint.summary.fleet_reference import FleetReference
from tests.support.fleets import made

KEY = ("triad", "all", -1)


def table(path: Path, nodes: int, group: str = "AMD EPYC 9654", scale: float = 1.0) -> Path:
    rng = np.random.default_rng(3)
    rows = [
        f"secret{node},{run},triad,MB/s,{scale * 2600 * (1 + 0.005 * chip) * (1 + 0.01 * noise):.1f},{group}"
        for node, chip in enumerate(rng.standard_normal(nodes))
        for run, noise in enumerate(rng.standard_normal(4))
    ]
    path.write_text("\n".join(["node,run,metric,unit,value,group", *rows]))
    return path


def call(*words: object) -> str:
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    call("judge", table(tmp_path / "fleet.csv", 24), "--to", tmp_path / "fleet")
    call("baseline", "export", tmp_path / "fleet", "--to", tmp_path / "reference.json")
    return tmp_path / "reference.json"


def test_the_file_has_center_and_spread_and_no_name(exported: Path) -> None:
    text = exported.read_text()
    assert "secret" not in text and len(text) < 4000
    (figure,) = fleet_reference.read(exported).figures
    assert (figure.measurement, figure.name, figure.nodes, figure.tolerance) == ("triad", "all", 24, 0.05)
    assert figure.median == pytest.approx(2600, rel=0.01)
    assert 0.003 < figure.nodes_sd < 0.012 and 0.006 < figure.runs_sd < 0.015


def test_a_single_node_is_compared_with_it(tmp_path: Path, exported: Path) -> None:
    said = call("judge", table(tmp_path / "one.csv", 1), "--reference", exported)
    assert "secret0: Beside a fleet of 24 nodes (AMD EPYC 9654): 1 of 1 figure as there." in said
    said = call("judge", table(tmp_path / "one.csv", 1, scale=0.8), "--reference", exported)
    assert "0 of 1 figure as there" in said and "% lower than the fleet's" in said
    other = call("judge", table(tmp_path / "one.csv", 1, group="AMD EPYC 7742"), "--reference", exported)
    assert "Not compared with the fleet of AMD EPYC 9654: this processor is AMD EPYC 7742" in other


def test_what_nodes_of_the_fleet_differ_by_is_alike(exported: Path) -> None:
    reference = fleet_reference.read(exported)
    (figure,) = reference.figures
    (within,) = fleet_reference.beside(reference, "", {KEY: figure.median * 1.049}).itertuples()
    (beyond,) = fleet_reference.beside(reference, "", {KEY: figure.median * 1.06}).itertuples()
    assert (within.alike, beyond.alike) == (True, False)
    assert beside_fleet.sentences(reference, "AMD EPYC 9654", {("x", "all", -1): 1.0})[0].startswith("Not compared")


def test_a_campaign_of_nodeprint_is_exported_by_class() -> None:
    judged = judge(made(nodes=8, pair_runs=3)).verdict
    reference = fleet_reference.of_fleet(judged, acceptance.load())
    names = {figure.name for figure in reference.figures}
    assert {"same CCX", "same socket"} & names
    assert reference.simulated and all(figure.nodes >= 5 for figure in reference.figures)
    node = next(iter(judged.nodes.values()))
    compared = fleet_reference.beside(reference, "", fleet_reference.of_verdict(node))
    assert not compared.empty and compared["alike"].all()


def test_few_nodes_are_no_fleet(tmp_path: Path) -> None:
    call("judge", table(tmp_path / "fleet.csv", 4), "--to", tmp_path / "fleet")
    result = CliRunner().invoke(app, ["baseline", "export", str(tmp_path / "fleet"), "--to", str(tmp_path / "x.json")])
    assert result.exit_code != 0


@pytest.mark.parametrize("change", [{"schema": 9}, {"figures": [{"median": 0}]}, {"names": ["n1"]}])
def test_what_is_no_reference_is_refused(exported: Path, change: dict[str, object]) -> None:
    content = json.loads(exported.read_text())
    if "figures" in change:
        content["figures"][0]["median"] = 0
    else:
        content |= change
    exported.write_text(json.dumps(content))
    with pytest.raises(NodeprintError, match="baseline export"):
        fleet_reference.read(exported)
    exported.write_text("{")
    with pytest.raises(NodeprintError, match="is no figures of a fleet"):
        fleet_reference.read(exported)
    with pytest.raises(NodeprintError, match="cannot be read"):
        fleet_reference.read(exported.with_name("absent"))


def test_an_empty_reference_has_no_opinion() -> None:
    assert fleet_reference.beside(FleetReference("", "x", False, ()), "", {KEY: 1.0}).empty
