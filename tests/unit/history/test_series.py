"""Series of nodes, of those that are compared with none, too: all from the table of deviations."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.history import changes, selection, series
from nodeprint.history.changes import NodeHistory
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan
from tests.support.campaigns import judged_weeks

PLAN = Plan(preset("naples-2x32"), nodes=1, runs=2, passes=1, pair_runs=4, cells=True)


def history(folder: Path) -> NodeHistory:
    judged = selection.campaigns([folder]).judged
    (of_node,) = changes.histories(series.series(judged), judged)
    return of_node


def test_a_change_of_an_only_node_is_found(tmp_path: Path) -> None:
    judged_weeks(tmp_path, PLAN, range(4), {2: ["node000: fabric +8%", "node000: fingerprint bios=2.1"]})
    of_node = history(tmp_path)
    assert len(of_node.measured) == 4
    (change,) = [change for change in of_node.changes if change.measurement == "coherence-cas"]
    assert change.part.term == "class" and change.further > 2
    assert change.effect == pytest.approx(0.08, abs=0.02) and change.confirmed and change.since[:10] == "2026-01-15"
    assert change.interval.low < 0.08 < change.interval.high and change.bound == pytest.approx(0.02)
    assert change.fields == {"bios": ("1.2.3", "2.1")}
    printed = CliRunner().invoke(app, ["since", str(tmp_path)], catch_exceptions=False).stdout
    assert "node000: pairs of the " in printed and "on 0 of 1 node" in printed


def test_an_unchanged_only_node_has_none(tmp_path: Path) -> None:
    judged_weeks(tmp_path, PLAN, range(6))
    of_node = history(tmp_path)
    assert not of_node.changes and len(of_node.courses[0].distance) == 6


def test_a_core_of_an_only_node_is_a_part_of_it(tmp_path: Path) -> None:
    """The medians of classes alone do not show it."""
    judged_weeks(tmp_path, PLAN, range(4), {2: ["node000: core 17 +9%"]})
    changes_of_pairs = [change for change in history(tmp_path).changes if change.subject == "core-to-core"]
    assert {change.part.where.get("core") for change in changes_of_pairs} == {17}
