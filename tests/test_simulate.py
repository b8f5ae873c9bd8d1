"""The simulator: the same plan gives the same bytes, runs differ, defects do what their text says."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.layout import CLASSES
from nodeprint.simulate import EXAMPLES, Plan, Spread, fleet, write
from nodeprint.simulate.defects import parse
from nodeprint.topology.presets import preset

SMALL = preset("naples-2x32")


def digest(folder: Path) -> str:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return hashlib.sha256(b"".join(str(p.relative_to(folder)).encode() + p.read_bytes() for p in files)).hexdigest()


def test_a_seed_gives_the_same_bytes_and_another_gives_others(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        write(Plan(SMALL, nodes=2, runs=1, passes=1, seed=seed), tmp_path / name)
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")
    with pytest.raises(NodeprintError, match="is no empty folder"):
        write(Plan(SMALL, nodes=2), tmp_path / "a")


def test_everything_simulated_says_so(tmp_path):
    write(Plan(SMALL, nodes=1, runs=1, passes=1), tmp_path / "a")
    job = tmp_path / "a/nodes/node000/job1"
    assert json.loads((job / "status.json").read_text())["simulated"] is True
    header = json.loads(gzip.decompress((job / "run1/coherence-cas.jsonl.gz").read_bytes()).splitlines()[0])
    assert header["simulated"] is True
    assert fleet(Plan(SMALL, nodes=1)).simulated


def test_runs_of_a_node_differ_less_than_nodes_and_are_not_copies():
    values = np.asarray(fleet(Plan(SMALL, nodes=6, runs=2)).stacks[0].values)
    runs = values.reshape(6, 2, -1)
    assert not np.allclose(runs[:, 0], runs[:, 1])
    means = np.log(values.mean(axis=(1, 2, 3))).reshape(6, 2)
    assert np.abs(np.diff(means, axis=1)).max() < 0.05


def test_classes_are_in_the_order_of_distance():
    stack = fleet(Plan(preset("rome-2x64"), nodes=1)).stacks[0]
    medians = [np.median(stack.values[..., stack.layout.classes == k]) for k in range(len(CLASSES))]
    assert medians[0] < medians[1] < medians[2] <= 1.02 * medians[3] < 1.05 * medians[4] < medians[5]


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_understood(text):
    what = text.replace("37", "7").replace("core 9", "core 3")
    found = fleet(Plan(SMALL, nodes=2, spread=Spread(), defects=(f"node001: {what}",)))
    assert len(found.nodes) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [("node001", "not 'node: what'"), ("node001: melted", "unknown defect"), ("node001: core 999 +5%", "no core 999")],
)
def test_wrong_defects_are_named(text, message):
    with pytest.raises(NodeprintError, match=message):
        fleet(Plan(SMALL, nodes=2, defects=(text,)))
    if "999" not in text:
        with pytest.raises(NodeprintError, match=message):
            parse(text)


def test_a_defect_of_an_absent_node_is_named():
    with pytest.raises(NodeprintError, match="node009"):
        fleet(Plan(SMALL, nodes=2, defects=("node009: missing",)))
