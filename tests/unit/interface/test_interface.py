"""The Python interface opens what a campaign has: data, tables, verdict and figures."""

from __future__ import annotations

import inspect
import itertools
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from typer.testing import CliRunner

import nodeprint
from nodeprint.cli import app
from nodeprint.cli.shared import judge_and_write
from nodeprint.data.export import datasets
from nodeprint.errors import NodeprintError
from nodeprint.interface import export
from nodeprint.interface.open_campaign import OpenCampaign
from nodeprint.judge.outcome import Outcome
from nodeprint.machine.topology.presets import preset
from nodeprint.report.figures import differences, figure_data, strips
from nodeprint.simulate import Plan, write

SLOW = "node002"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> OpenCampaign:
    folder = tmp_path_factory.mktemp("interface") / "sim"
    plan = Plan(preset("rome-2x64"), nodes=5, jobs=2, runs=2, passes=1, cells=True, defects=(f"{SLOW}: core 37 +12%",))
    judge_and_write(write(plan, folder))
    return nodeprint.open(folder)


def test_a_dependency_that_is_not_installed_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nodeprint.interface.open_campaign", None)
    with pytest.raises(NodeprintError, match=r"nodeprint.open needs \S+, which is not installed; .*pip install"):
        _ = nodeprint.open


def test_nodes_and_verdict(campaign: OpenCampaign) -> None:
    assert campaign.nodes == tuple(f"node{number:03d}" for number in range(5))
    assert campaign.verdict.nodes[SLOW].outcome is Outcome.DEVIATES


def test_data_is_a_measurement_on_all_nodes(campaign: OpenCampaign) -> None:
    assert campaign.measurements[0] == "coherence-cas"
    for measurement in campaign.measurements:
        data = campaign.data(measurement)
        assert data["value"].dims == ("row", "pass", "point") and data["value"].attrs["units"]
        assert set(data["node"].values) == set(campaign.nodes)
    with pytest.raises(NodeprintError, match="has no node node099"):
        campaign.data("coherence-cas", "node099")


def test_deviations_are_the_table_that_the_judge_wrote(campaign: OpenCampaign) -> None:
    dataset = campaign.deviations()
    assert set(dataset.dims) == {"sample", "component"}
    rows = export.deviation_rows(dataset)
    assert {"node", "job", "measurement", "component_type", "place", "difference", "half_90", "tolerance"} <= set(
        rows.columns
    )
    slow = rows[(rows.node == SLOW) & (rows.component_type == "core-near")]
    assert float(slow.difference.max()) > 0.08


def test_what_was_judged_is_read_where_nothing_can_be_written(
    campaign: OpenCampaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "archive/sim"
    shutil.copytree(campaign.folder, folder)
    before = sorted(folder.rglob("*"))
    monkeypatch.setattr(os, "access", lambda path, _: not Path(path).is_relative_to(folder))
    archived = nodeprint.open(folder)
    assert archived.deviations().sizes == campaign.deviations().sizes
    assert archived.data("coherence-cas").identical(campaign.data("coherence-cas"))
    assert export.write(folder, tmp_path / "deviations.csv", "deviations").exists()
    assert sorted(folder.rglob("*")) == before


def test_classes_are_a_table(campaign: OpenCampaign) -> None:
    classes = campaign.classes()
    assert set(classes.node) == set(campaign.nodes)
    assert float(classes[classes["class"] == "same CCX"].median_ns.iloc[0]) == pytest.approx(23, abs=3)


@pytest.mark.parametrize("table", ["coherence-cas", *(table for table in export.TABLES if table != "messages")])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_export_writes_each_table(campaign: OpenCampaign, tmp_path: Path, table: str, ending: str) -> None:
    to = tmp_path / f"{table}.{ending}"
    done = CliRunner().invoke(app, ["export", str(campaign.folder), "--to", str(to), "--table", table])
    assert done.exit_code == 0, done.output
    read = pd.read_csv(to) if ending == "csv" else pd.read_parquet(to)
    tables: dict[str, Callable[[], pd.DataFrame]] = {
        "coherence-cas": lambda: pd.concat(datasets.frames(campaign.data("coherence-cas"))),
        "details": campaign.details,
        "classes": campaign.classes,
        "deviations": lambda: export.deviation_rows(campaign.deviations()),
    }
    expected = tables[table]()
    assert list(read.columns) == list(expected.columns)
    assert len(read) == len(expected)


def test_export_writes_each_measurement_as_netcdf(campaign: OpenCampaign) -> None:
    done = CliRunner().invoke(app, ["export", str(campaign.folder)])
    assert done.exit_code == 0, done.output
    written = [Path(line) for line in done.output.splitlines()]
    assert [path.stem for path in written] == list(campaign.measurements)
    with xr.open_dataset(written[0], engine="h5netcdf") as read:
        assert read.load().identical(campaign.data("coherence-cas"))


def test_export_of_what_was_not_measured_names_what_was(campaign: OpenCampaign, tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match=r"--table: .* no pairs; choose from coherence-cas, .*details"):
        export.write(campaign.folder, tmp_path / "out.csv", "pairs")


def test_export_of_messages_between_nodes_that_were_not_measured_says_so(
    campaign: OpenCampaign, tmp_path: Path
) -> None:
    assert len(campaign.messages()) == 0
    with pytest.raises(NodeprintError, match="the campaign has no messages"):
        export.write(campaign.folder, tmp_path / "out.csv", "messages")


def test_export_refuses_other_endings(campaign: OpenCampaign, tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match=r"neither \.parquet nor \.csv"):
        export.write(campaign.folder, tmp_path / "out.xlsx")


def test_parquet_without_its_package_says_what_to_install(
    campaign: OpenCampaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(NodeprintError, match=r"pip install pyarrow`, or name a file that ends in \.csv"):
        export.write(campaign.folder, tmp_path / "out.parquet")
    assert not list(tmp_path.glob(".out*"))


def test_campaign_without_verdict_says_what_to_run(tmp_path: Path) -> None:
    folder = write(Plan(preset("graviton3-64"), nodes=1, runs=1, passes=1), tmp_path / "sim")
    fresh = nodeprint.open(folder)
    assert fresh.data("coherence-cas").sizes["point"] == 64 * 63 // 2
    with pytest.raises(NodeprintError, match="nodeprint judge"):
        fresh.deviations()
    with pytest.raises(NodeprintError, match="nodeprint judge"):
        fresh.plot.effect("node000")
    with pytest.raises(NodeprintError, match="not a campaign directory"):
        nodeprint.open(tmp_path / "absent")


Drawn = Callable[[OpenCampaign, Axes], Axes]


@pytest.mark.parametrize(
    "draw",
    [
        lambda campaign, ax: campaign.plot.matrix(SLOW, ax=ax),
        lambda campaign, ax: campaign.plot.strip(SLOW, ax=ax),
        lambda campaign, ax: campaign.plot.numa(SLOW, ax=ax),
        lambda campaign, ax: campaign.plot.maps(ax=ax),
        lambda campaign, ax: campaign.plot.finding(SLOW, ax=ax),
    ],
    ids=["matrix", "strip", "numa", "maps", "finding"],
)
@pytest.mark.parametrize("columns", [1, 2])
def test_nothing_is_cut_on_plain_axes(campaign: OpenCampaign, draw: Drawn, columns: int) -> None:
    """Labels and scales stay beside their axes, in a figure whose caller knows nothing of layouts."""
    figure = Figure()
    cells = figure.subplots(1, columns, squeeze=False)[0]
    ax = draw(campaign, cells[0])
    figure.draw_without_rendering()
    drawn = ax.get_tightbbox()
    right = cells[1].get_tightbbox().x0 if columns > 1 else figure.bbox.width
    assert drawn is not None
    assert drawn.x0 > -1 and drawn.y0 > -1 and drawn.x1 < right + 1 and drawn.y1 < figure.bbox.height + 1
    assert ax.get_window_extent().width > 0.25 * figure.bbox.width / columns


def test_figures_draw_on_given_axes_and_on_their_own(campaign: OpenCampaign) -> None:
    figure = Figure(figsize=(4, 4))
    ax = figure.add_subplot()
    assert campaign.plot.matrix(SLOW, ax=ax) is ax
    assert ax.images and ax.get_xlabel() == "CPU"
    plot = campaign.plot
    for drawn in (
        plot.difference(SLOW),
        plot.quadrants(SLOW),
        plot.floorplan(SLOW),
        plot.strip(SLOW),
        plot.floorplan(SLOW, "clock-together"),
        plot.numa(SLOW),
        plot.effect(SLOW),
        plot.finding(SLOW),
        plot.maps(),
        plot.side_by_side("node000", SLOW),
        plot.side_by_side(SLOW),
    ):
        assert drawn.has_data() or drawn.texts
    with pytest.raises(NodeprintError, match="node000 has 0 findings"):
        plot.effect("node000")


def test_every_finding_of_the_judge_is_drawn_beyond_its_own_tolerance(campaign: OpenCampaign) -> None:
    for finding in campaign.verdict.nodes[SLOW].counted:
        levels = campaign.levels(finding.measurement, SLOW)
        data = strips.own_places(levels, SLOW, finding)
        side = np.sign(finding.effect)
        tolerance = data[figure_data.ABOVE if side > 0 else figure_data.BELOW].item()
        assert side * np.nanmean(data.value_0) > tolerance, finding
        assert tolerance == pytest.approx(100 * finding.tolerance)
        assert figure_data.tolerance_text(differences.of_finding(finding)) == figure_data.tolerance_text(data)


#: No name of anything, and no number of a finding or home.
ODD: tuple[object, ...] = (
    None,
    "",
    "nowhere",
    "x" * 3000,
    "\x1b[31m",
    -2,
    10**6,
    1.5,
    True,
    b"x",
    ["node000"],
    {},
    object(),
    np.arange(2),
)
#: What is right where another argument is wrong.
RIGHT = {
    "node": "node000",
    "measurement": "coherence-cas",
    "over": "size_bytes",
    "component_type": "core",
    "place": "core 1",
}


def functions(campaign: OpenCampaign) -> dict[str, Callable[..., object]]:
    """Every public function of the interface by its name."""
    owners = {"": campaign, "plot.": campaign.plot}
    public = {
        f"{prefix}{name}": function
        for prefix, owner in owners.items()
        for name, function in inspect.getmembers(owner, inspect.ismethod)
        if not name.startswith("_")
    }
    return {"open": nodeprint.open, **public}


def with_one_wrong(function: Callable[..., object], wrong: str, value: object) -> object:
    """Call a function with one argument of a value, and right ones where they are needed."""
    positional, keywords = [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.append(value if name == wrong else "node000")
        elif name == wrong:
            keywords[name] = value
        elif parameter.default is parameter.empty:
            keywords[name] = RIGHT[name]
    return function(*positional, **keywords)


def test_wrong_arguments_of_every_function_end_in_a_sentence(campaign: OpenCampaign) -> None:
    asked = 0
    for called, function in functions(campaign).items():
        for (name, parameter), value in itertools.product(inspect.signature(function).parameters.items(), ODD):
            if value is not None or parameter.default is not None:
                with pytest.raises(NodeprintError) as refused:
                    with_one_wrong(function, name, value)
                sentence = str(refused.value)
                assert "; " in sentence and sentence.isprintable() and len(sentence) < 500, (called, name, value)
                asked += 1
    assert asked > 500


def test_what_is_not_of_pairs_or_names_nothing_is_said(campaign: OpenCampaign) -> None:
    for draw in (campaign.plot.quadrants, campaign.plot.matrix, campaign.plot.difference):
        with pytest.raises(NodeprintError, match="chase-latency does not measure pairs of CPUs"):
            draw("node000", "chase-latency")
    for empty in (campaign.plot.side_by_side, campaign.plot.fabric):
        with pytest.raises(NodeprintError, match="; "):
            empty()
    with pytest.raises(NodeprintError, match=r"matrix: missing a required argument: 'node'; call it as matrix\(node: "):
        campaign.plot.matrix()  # type: ignore[call-arg]
