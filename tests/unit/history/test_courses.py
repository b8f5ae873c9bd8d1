"""The courses of a node's components, and what they look like."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from nodeprint.history import changes, courses, selection
from nodeprint.history.changes import NodeHistory
from nodeprint.machine.topology.presets import preset
from nodeprint.report.figures import curves, render, style
from nodeprint.report.figures.figure_data import table
from nodeprint.simulate import Plan
from tests.support.campaigns import judged_weeks

PLAN = Plan(preset("naples-2x32"), nodes=4, runs=2, passes=1, pair_runs=4)
SLOW = "node002: core 17 +6%"


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, NodeHistory]:
    """Four weeks, of which a core of node002 is slow in the last two."""
    folder = tmp_path_factory.mktemp("results")
    judged_weeks(folder, PLAN, range(4), {2: [SLOW]})
    return {history.node: history for history in changes.histories(selection.campaigns([folder])).nodes}


def test_a_changed_part_is_drawn_in_tolerances_with_its_date(histories: dict[str, NodeHistory]) -> None:
    line = of_one(histories["node002"])
    assert str(line.line.item()).startswith("core 17") and str(line.line.item()).endswith(" (tolerance 4%)")
    assert line.campaign.values.tolist() == ["week00", "week01", "week02", "week03"]
    assert np.allclose(line.value, [0, 0, 1.5, 1.5], atol=0.4) and (line.low < line.high).all()
    assert [str(moment)[:10] for moment in line.x.values[line.changed == 1]] == ["2026-01-15"]


def of_one(history: NodeHistory) -> xr.Dataset:
    """What is drawn of a node of which one component is."""
    data = courses.data(history)
    assert data is not None and data.sizes["line"] == 1
    return data.isel(line=0)


def test_an_unchanged_node_has_the_course_of_the_part_that_moved_most(histories: dict[str, NodeHistory]) -> None:
    line = of_one(histories["node001"])
    assert np.abs(line.value).max() < 1 and not line.changed.any()


def test_the_figure_has_a_row_for_each_value_and_a_line_for_each_change(histories: dict[str, NodeHistory]) -> None:
    data, in_style = courses.data(histories["node002"]), style.load()
    assert data is not None
    figure = render.figure(curves.curve, data, in_style, 180.0)
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == data.line.values.tolist()  # type: ignore[union-attr]
    assert render.svg(figure, in_style) == render.svg(render.figure(curves.curve, data, in_style, 180.0), in_style)
    numbers = table(data)
    assert len(numbers) == 4 and set(numbers["campaign"]) == {"week00", "week01", "week02", "week03"}


def test_a_single_measurement_can_be_drawn() -> None:
    line = curves.line("core 1", [np.datetime64("2026-01-01", "ns")], [0.0], [-0.1], [0.1])
    data = curves.lines([line], "measured", "tolerances", bars=True)
    assert render.figure(curves.curve, data, style.load(), 88.0).axes


def test_a_page_has_campaigns_of_the_same_node_alone_and_names_them(tmp_path: Path) -> None:
    """Beside it lie two weeks, one of which has other nodes of these names, as an import: without fingerprints."""
    folders = judged_weeks(tmp_path, PLAN, range(3), {2: [SLOW]})
    verdict = json.loads((folders[1] / "verdict.json").read_text())
    for node in verdict["nodes"].values():
        node["fingerprint"] = {}
    (folders[1] / "verdict.json").write_text(json.dumps(verdict))
    shown = courses.beside(folders[2])(["node002", "node003"])
    assert set(shown) == {"node002", "node003"}
    assert shown["node002"].campaigns == (
        "Measured in 1 earlier campaign (week00) of the same node besides this one, since 2026-01-01."
    )
    course = shown["node002"].course
    assert course is not None and course.campaign.values.tolist() == [["week00", "week02"]]
