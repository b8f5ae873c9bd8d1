"""The simulator: the same plan gives the same bytes, runs differ, defects do what their text says."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from nodeprint.cli import app, data_commands
from nodeprint.errors import NodeprintError
from nodeprint.judge.campaign import judge
from nodeprint.machine.topology.captured import read
from nodeprint.machine.topology.presets import PRESETS, from_part, preset
from nodeprint.machine.tree import open_tree
from nodeprint.simulate import EXAMPLES, Modes, Plan, Variation, fleet, modes_named, write
from tests.support.schemas import valid_records

SMALL = preset("naples-2x32")


def digest(folder: Path) -> str:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return hashlib.sha256(b"".join(str(p.relative_to(folder)).encode() + p.read_bytes() for p in files)).hexdigest()


def test_the_help_lists_the_presets() -> None:
    assert set(data_commands.PRESETS) == set(PRESETS)
    said = "".join(CliRunner().invoke(app, ["simulate", "--help"]).stdout.split())
    assert [name for name in PRESETS if name not in said] == []


def test_a_seed_gives_the_same_bytes_and_another_gives_others(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        write(Plan(SMALL, nodes=2, runs=1, passes=1, seed=seed), tmp_path / name)
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")
    with pytest.raises(NodeprintError, match="is not an empty directory"):
        write(Plan(SMALL, nodes=2), tmp_path / "a")


def test_everything_simulated_says_so(tmp_path: Path) -> None:
    write(Plan(SMALL, nodes=1, runs=1, passes=1), tmp_path / "a")
    job = tmp_path / "a/nodes/node000/job1"
    assert json.loads((job / "status.json").read_text())["simulated"] is True
    header = json.loads(gzip.decompress((job / "run1/coherence-cas.jsonl.gz").read_bytes()).splitlines()[0])
    assert header["simulated"] is True
    assert fleet(Plan(SMALL, nodes=1)).simulated


def test_every_command_says_that_it_is_simulated(tmp_path: Path) -> None:
    campaign = write(Plan(SMALL, nodes=3, runs=2, passes=1, defects=("node001: fingerprint bios=2",)), tmp_path / "a")
    node = campaign / "nodes/node000"
    for command in (
        f"judge {campaign}",
        f"drift {campaign}",
        f"history {campaign}",
        f"structure {node}",
        f"structure {node}/job1/run1/coherence-cas.jsonl.gz",
        f"topology --root {node}/job1/survey.tar.gz",
    ):
        said = CliRunner().invoke(app, command.split()).output
        assert said.startswith("SIMULATED"), command
        facts = json.loads(CliRunner().invoke(app, [*command.split(), "--json"]).output)
        assert facts.get("machine", facts)["simulated"] is True, command
    assert CliRunner().invoke(app, ["show", str(campaign)]).output.startswith("SIMULATED")
    assert CliRunner().invoke(app, ["export", str(campaign), "--to", str(tmp_path / "pairs.csv")]).exit_code == 0
    header, *rows = (tmp_path / "pairs.csv").read_text().splitlines()
    assert header.endswith(",simulated") and rows and all(row.endswith(",True") for row in rows)
    for name, mark in (("xml", "(simulated)"), ("prom", 'simulated="true"')):
        assert mark in (campaign / f"verdict.{name}").read_text()
    assert "# SIMULATED" in (campaign / "drain.sh").read_text()
    assert json.loads((campaign / "store/fleet.json").read_text())["simulated"] is True


def test_runs_of_a_node_differ_less_than_nodes_and_are_not_copies() -> None:
    values = np.asarray(fleet(Plan(SMALL, nodes=6, runs=2)).pairs[0].values)
    runs = values.reshape(6, 2, -1)
    assert not np.allclose(runs[:, 0], runs[:, 1])
    means = np.log(values.mean(axis=(1, 2))).reshape(6, 2)
    assert np.abs(np.diff(means, axis=1)).max() < 0.05


def test_classes_are_in_the_order_of_distance() -> None:
    stack = fleet(Plan(preset("rome-2x64"), nodes=1)).pairs[0]
    medians = [np.median(stack.values[..., stack.pair_layout.classes == k]) for k in range(6)]
    assert medians[0] < medians[1] < medians[2] <= 1.02 * medians[3] < 1.05 * medians[4] < medians[5]


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_understood(text: str) -> None:
    what = text.replace("37", "7").replace("core 9", "core 3")
    found = fleet(Plan(SMALL, nodes=2, spread=Variation(), defects=(f"node001: {what}",)))
    assert len(found.nodes) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node001", "not 'node: what'"),
        ("node001: melted", "unknown defect"),
        ("node001: core 3 +99999%", "unknown defect"),
        ("node001: core 999 +5%", "no core 999"),
        ("node001: core 3 -100%", "leaves nothing; take off less"),
        ("node001: core-clock 3 -100%", "leaves nothing; take off less"),
        ("node001: half-row 3 +5ns", "takes a percentage"),
        ("node001: link q1-q1 +5%", "name two quadrants"),
        ("node001: nps 4", "unknown defect"),
        ("node001: busy core 5 run 3", "run 3; runs are 1 to 2"),
        ("node001: memory-channel node 7 -12%", "node 7; NUMA nodes here are 0, 1"),
        ("node001: cooling socket 2 -12%", "socket 2; sockets here are 0, 1"),
        ("node001: fingerprint color=red", "no field 'color'; known are microcode"),
    ],
)
def test_wrong_defects_are_named_and_nothing_is_written(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NodeprintError, match=message):
        write(Plan(SMALL, nodes=2, runs=2, passes=1, defects=(text,)), tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_every_defect_of_a_chip_or_node_shows(tmp_path: Path) -> None:
    """None is taken and does nothing: the records and surveys of its node are others than without it."""
    plan = Plan(preset("rome-2x64"), nodes=1, runs=1, passes=1, cells=True)
    healthy = digest(write(plan, tmp_path / "healthy"))
    for number, text in enumerate(EXAMPLES):
        planted = replace(plan, defects=(f"node000: {text}",))
        assert digest(write(planted, tmp_path / str(number))) != healthy, text


def test_the_clock_probe_sees_a_slow_core(tmp_path: Path) -> None:
    write(Plan(SMALL, nodes=1, runs=1, passes=1, defects=("node000: core-clock 5 -15%",)), tmp_path / "a")
    clocks: dict[int, list[float]] = {}
    for line in gzip.decompress(
        (tmp_path / "a/nodes/node000/job1/run1/coherence-cas.jsonl.gz").read_bytes()
    ).splitlines():
        record = json.loads(line)
        for side in "ab" if record["record"] == "pair" else "":
            clocks.setdefault(record[side], []).append(record[f"clock_{side}_ghz"])
    medians = {cpu: float(np.median(seen)) for cpu, seen in clocks.items()}
    usual = np.median(list(medians.values()))
    assert {cpu for cpu, clock in medians.items() if clock < 0.95 * usual} == {5, 69}
    assert medians[5] == pytest.approx(0.85 * usual, rel=0.02)


def test_one_numa_node_a_socket_is_another_configuration(tmp_path: Path) -> None:
    write(Plan(from_part("EPYC 7601", 2, nps=4), nodes=2, runs=1, passes=1, defects=("node001: nps 1",)), tmp_path)
    surveys = [read(open_tree(tmp_path / f"nodes/node{i:03d}/job1/survey.tar.gz")) for i in (0, 1)]
    assert [len(one.numa_nodes) for one in surveys] == [8, 2]
    assert [one.machine.nps for one in surveys] == [4, 1]
    assert surveys[1].numa_nodes[1].distances[1] == 10


def test_a_defect_of_an_absent_node_is_named() -> None:
    with pytest.raises(NodeprintError, match="node009"):
        fleet(Plan(SMALL, nodes=2, defects=("node009: missing",)))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_machine_of_one_core_is_refused(tmp_path: Path, threads: int) -> None:
    machine = preset("naples-2x32")
    cpus = [cpu for cpu in machine.cpus if cpu.core == machine.cpus[0].core][:threads]
    assert len(cpus) == threads
    with pytest.raises(NodeprintError, match="one core"):
        write(Plan(replace(machine, cpus=tuple(cpus)), nodes=1), tmp_path / "c")
    assert not list(tmp_path.iterdir())


def _lines(campaign: Path) -> list[dict[str, Any]]:
    path = campaign / "nodes/node000/job1/run1/coherence-cas.jsonl.gz"
    valid_records(path)
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_lines_live_in_quadrants_and_the_records_say_so(tmp_path: Path) -> None:
    """The value of a pair is the mean of its clusters' medians, and lines are as far as their cluster is from a CPU."""
    machine = from_part("EPYC 7742", 1, smt=False)
    found = _lines(write(Plan(machine, nodes=1, runs=1, passes=2, detail=True), tmp_path / "a"))
    of = {kind: [r for r in found if r["record"] == kind] for kind in ("clusters", "census", "pass", "pair")}
    assert [(r["home"], r["clusters"], sum(r["sizes"])) for r in of["clusters"]] == [(0, 4, 512)]
    assert len(of["census"]) == len({cpu.ccx for cpu in machine.cpus})
    cluster = {(r["home"], line): c for r in of["clusters"] for line, c in zip(r["lines"], r["cluster"], strict=True)}
    drawn = {(r["home"], r["pass"]): [cluster[r["home"], line] for line in r["line_set"]] for r in of["pass"]}
    assert all(lines.count(c) == 8 for lines in drawn.values() for c in range(4))
    for pair in of["pair"]:
        lines = drawn[pair["home"], pair["pass"]]
        medians = [np.median([ns for ns, at in zip(pair["line_ns"], lines, strict=True) if at == c]) for c in range(4)]
        assert pair["cluster_ns"] == pytest.approx(medians, abs=0.01)
        assert pair["latency_ns"] == pytest.approx(np.mean(medians), abs=0.01)
    first = of["census"][0]
    near = [
        np.mean([ns for ns, c in zip(first["reload_ns"][0], of["clusters"][0]["cluster"], strict=True) if c == k])
        for k in range(4)
    ]
    assert max(near) - min(near) == pytest.approx(15, abs=1.5)  # two steps


def test_lines_without_quadrants(tmp_path: Path) -> None:
    none = _lines(write(Plan(SMALL, nodes=1, runs=1, passes=1, modes=Modes()), tmp_path / "none"))
    assert {(r["clusters"], r["reason"]) for r in none if r["record"] == "clusters"} == {(1, "nothing separates")}
    flat = _lines(write(Plan(preset("graviton3-64"), nodes=1, runs=1, passes=1), tmp_path / "flat"))
    assert {r["clusters"] for r in flat if r["record"] == "clusters"} == {1}
    # quadrants that are NUMA nodes of their own have their lines for themselves
    nps4 = _lines(
        write(Plan(from_part("EPYC 7742", 1, smt=False, nps=4), nodes=1, runs=1, passes=1), tmp_path / "nps4")
    )
    assert [(r["home"], r["clusters"]) for r in nps4 if r["record"] == "clusters"] == [(n, 1) for n in range(4)]
    said = CliRunner().invoke(app, ["simulate", "rome-2x64", "--out", str(tmp_path / "x"), "--modes", "many"])
    assert isinstance(said.exception, NodeprintError)
    assert str(said.exception).startswith("--modes: 'many' is not known")
    assert modes_named("quadrants") is None and modes_named("none") == Modes()
    assert modes_named("mesh6") == Modes(7.5, die="mesh", sites=6)
    for wrong in ("mesh5", "ring1", "ring99", "crossbar", "mesh-4"):
        with pytest.raises(NodeprintError, match=f"'{wrong}' is not known"):
            modes_named(wrong)


def test_lines_of_the_clusters_vary_less_than_lines_of_the_whole_pool() -> None:
    def spread(modes: Modes) -> float:
        """The largest relative SD over runs of pairs that leave their quadrant."""
        (stack,) = fleet(Plan(preset("rome-2x64"), nodes=1, runs=8, modes=modes)).pairs
        runs = np.median(stack.by_home[:, :, 0], axis=1)[:, stack.pair_layout.classes == 4]
        return float(np.median(runs.std(axis=0, ddof=1) / runs.mean(axis=0)))

    none, pool, clusters = spread(Modes()), spread(Modes(7.5, clustered=False)), spread(Modes(7.5))
    assert pool > 2 * clusters
    assert clusters < 1.3 * none


def test_a_campaign_of_which_no_node_has_a_record_is_simulated_all_the_same(tmp_path: Path) -> None:
    folder = write(Plan(preset("naples-2x32"), nodes=2, runs=1, passes=1), tmp_path / "sim")
    shutil.rmtree(folder / "nodes")
    assert judge(folder).verdict.simulated
