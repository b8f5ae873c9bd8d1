"""Figures show what their data say: units on axes, the same bytes again, letters that can be read."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.text import Text
from msgspec import structs

from nodeprint.data.places.layout import QUADRANT
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Component, SizeFigure
from nodeprint.machine.topology.presets import preset
from nodeprint.report import names
from nodeprint.report.figures import (
    curves,
    differences,
    figure_data,
    floorplan,
    matrix,
    matrix_tables,
    node_levels,
    render,
    strips,
)
from nodeprint.report.figures import style as styles
from nodeprint.report.figures.figure_data import named, table, title_of
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.figures.part_levels import part_levels
from nodeprint.report.figures.render import Origin, Primitive
from nodeprint.report.pages import pictures
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.simulate import Plan, fleet
from tests.support import verdicts
from tests.support.findings import finding_of_cells, finding_of_pairs
from tests.support.real_parts import ROOT

STYLE = styles.load()
ORIGIN = Origin("main", "node002", "0.1.0", simulated=True)
TOLERANCE = 0.04
#: Figures of pairs of cells ask no campaign for peers.
NO_CAMPAIGN: Any = None


@cache
def simulated(*defects: str, machine: str = "rome-2x64") -> PackedFleet:
    plan = Plan(preset(machine), nodes=6, runs=2, jobs=2, passes=1, cells=True, homes=(-1, 10_000), defects=defects)
    return fleet(plan)


def levels_of(measurement: str, *defects: str, machine: str = "rome-2x64") -> NodeLevels:
    return node_levels.levels(simulated(*defects, machine=machine), measurement, "node002")


#: What draws a figure, and its data, which is of the kind that it draws.
Drawing = tuple[Primitive[Any], Any]


def figures(machine: str) -> dict[str, Drawing]:
    """Every figure of a node by its name."""
    pairs = levels_of("coherence-cas", "node002: core 17 +8%", machine=machine)
    memory = levels_of("chase-latency", "node002: core 17 +8%", machine=machine)
    core = [(17, cpu) for cpu in range(24, 32)]
    finding = finding_of_pairs(pairs, "node002", Component("core", "core-near"), core, effect=0.08, tolerance=TOLERANCE)
    cells = finding_of_cells(
        memory, Component("numa", "memory_node"), [{"memory_node": 0}], effect=0.05, tolerance=0.03
    )
    clock = levels_of("clock-together", "node002: core 17 +8%", machine=machine)
    square = matrix.of_node(pairs, "node002")
    crossing = matrix_tables.blocks(pairs, "node002", (QUADRANT,))
    nodes = list(pairs.rows)
    sizes = 2.0 ** np.arange(12, 30)
    line = curves.line("node002", sizes, sizes**0.2)
    curve = curves.lines([line], "working set, bytes", "latency, ns", log_x=True, log_y=True)
    times = {name: 112.0 + number for number, name in enumerate(nodes)}
    drawn: dict[str, Drawing] = {
        "histogram": (matrix.histogram, square),
        "strip": (strips.strip, strips.by_cpu(clock, "node002", marked=[17])),
        "strips": (strips.strip, strips.in_rows([strips.by_cpu(clock, "node002")] * 3)[0]),
        "numa": (matrix.matrix, matrix_tables.numa(memory, "node002")),
        "floor plan": (floorplan.floorplan, floorplan.of_pairs(pairs, "node002")),
        "clock plan": (floorplan.floorplan, floorplan.of_cells(clock, "node002")),
        "curve": (curves.curve, curve),
        "maps": (
            matrix.maps,
            matrix.difference_maps(pairs, nodes, marked=["node002"], tolerance=TOLERANCE),
        ),
        "order": (
            differences.points,
            differences.in_order(times, {}, "median, ns", "nodes in order", ["node002"]),
        ),
        "side by side": (
            matrix.side_by_side,
            matrix.on_one_scale(["a", "b"], [square, square], pairs.title),
        ),
        "matrix": (matrix.matrix, matrix.of_node(pairs, "node002")),
        "far home": (matrix.matrix, matrix.of_node(pairs, "node002", 10_000)),
        "difference": (matrix.matrix, matrix.difference(pairs, "node002", tolerance=TOLERANCE, marked=[17])),
        "effect": (differences.intervals, differences.of_finding(finding)),
        "own pairs": (strips.strip, strips.own_places(pairs, "node002", finding)),
        "own cells": (strips.strip, strips.own_places(memory, "node002", cells)),
    }
    if crossing is not None:
        drawn["quadrants"] = (matrix.matrix, crossing)
    return drawn


def test_names_of_places_lie_where_they_have_room() -> None:
    _, of_places = figures("rome-2x64")["own pairs"]
    words = named("place", ("copy", "load", "streaming store", "triad"), "stream")
    data = of_places.isel(place=slice(4)).drop_vars(["ccx", "ccd", "quadrant", "socket"]).assign_coords(place=words)
    wide, narrow = (render.figure(strips.strip, data, STYLE, width) for width in (180.0, 60.0))
    turned = [figure.axes[0].get_xticklabels()[0].get_rotation() for figure in (wide, narrow)]
    assert turned == [0, 90] and wide.get_figheight() < narrow.get_figheight()


def long_names() -> dict[str, Drawing]:
    """Figures whose names are longer than those of a simulated node."""
    hosts = tuple(f"rack-07-node-{number:03d}.cluster.example.org" for number in range(12))
    messages = verdicts.fabric(nodes=hosts, median_ns=((2e3,) * 12,) * 12, places=("leaf0",) * 6 + ("leaf1",) * 6)
    far = dict(zip(hosts, (np.eye(12)[3] * 16 - 0.1).tolist(), strict=True))
    rows = dict.fromkeys(("Memory latency of each NUMA node over the whole machine", "Core to core"), far)
    days = np.array([f"2026-0{month}-03T10:00:00" for month in range(1, 7)], dtype="datetime64[ns]")
    name, zeros = "core 37 to the other cores of its socket (tolerance 4%)", np.zeros(6)
    course = curves.lines([curves.line(name, days, zeros, zeros, zeros)], "measured", "tolerances", bars=True)
    sizes = 2.0 ** np.arange(12, 30)
    classes = ("same CCX", "same CCD", "same quadrant", "same socket", "other socket")
    each = [curves.line(name, sizes, sizes) for name in classes]
    messages_over = curves.lines(each, "message, bytes", "ns", log_x=True, log_y=True)
    return {
        "hosts": (matrix.matrix, matrix_tables.messages(messages)),
        "in tolerances": (
            differences.differences,
            differences.differences_of(rows, {}, "in tolerances", dict.fromkeys(rows, hosts[3:4])),
        ),
        "course": (curves.curve, course.assign_coords(figure_data.tolerance_coordinates(1.0, 1.0, "1"))),
        "messages": (curves.curve, messages_over),
    }


@pytest.mark.parametrize("machine", ["milan-2x64", "genoa-2x96"])
def test_table_of_blocks_has_its_numbers(machine: str) -> None:
    """Inside a CCX they have four letters."""
    data = matrix_tables.blocks(levels_of("coherence-cas", machine=machine), "node002")
    assert data is not None
    drawn = render.figure(matrix.matrix, data, STYLE, pictures.width_of_blocks(data))
    assert (
        sum(re.fullmatch(r"[0-9.]+", label.get_text()) is not None for label in drawn.axes[0].texts) == data.number.size
    )


def test_long_names_side_by_side_have_two_lines_and_are_whole() -> None:
    levels = levels_of("coherence-cas")
    square = matrix.of_node(levels, "node002")
    name = "Dual Intel Xeon Gold 6242, measured by night"
    data = matrix.on_one_scale([name, "b", "c"], [square] * 3, levels.title)
    drawn = render.figure(matrix.side_by_side, data, STYLE, 180.0)
    titles = [ax.get_title(loc="left") for ax in drawn.axes]
    assert titles[0].count("\n") == 1 and titles[0].replace("\n", " ") == name and titles[1:] == ["b", "c"]


#: Figures that stand for all where each takes a second.
FEW = ("difference", "effect", "own pairs", "clock plan")
MACHINES = ("rome-2x64", "graviton3-64")


@pytest.mark.parametrize("machine", MACHINES)
def test_axes_have_titles_with_units_in_letters_that_can_be_read(machine: str) -> None:
    for name, (draw, data) in figures(machine).items():
        drawn = render.figure(draw, data, STYLE, 88.0)
        texts = [text for text in texts_of(drawn) if text.get_text()]
        titles = " ".join(" ".join(text.get_text().split()) for text in texts)
        assert re.search(r", (ns|%|GB/s|GHz|pairs|bytes)( |$)", f"{titles} "), (name, titles)
        for text in texts:
            assert float(text.get_fontsize()) >= STYLE.smallest_letters_pt, (name, text.get_text())


def texts_of(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible()]


@pytest.mark.parametrize("width", [60.0, 180.0])
def test_nothing_is_written_outside_of_a_figure(width: float) -> None:
    for name, (draw, data) in (figures("rome-2x64") | long_names()).items():
        drawn = render.figure(draw, data, STYLE, width, ORIGIN)
        with STYLE.applied():
            box = drawn.get_tightbbox()
        across, down = drawn.get_size_inches()
        assert box.x0 > -0.01 and box.y0 > -0.01 and box.x1 < across + 0.01 and box.y1 < down + 0.01, (name, box)


def test_strips_of_the_same_cpus_share_a_figure() -> None:
    of_cpus = [strips.by_cpu(levels_of(name), "node002") for name in ("clock-together", "jitter-detours")]
    few = strips.by_cpu(levels_of("wake-futex"), "node002", {"state": "deep"})
    together, apart = strips.in_rows([of_cpus[0], few, of_cpus[1]])
    assert np.array_equal(together.value_1, of_cpus[1].value_0) and apart.value_0.equals(few.value_0)
    drawn = render.figure(strips.strip, together, STYLE, 180.0)
    lowest, upper = drawn.axes
    assert upper.get_position().y0 > lowest.get_position().y1
    assert (upper.get_position().x0, upper.get_xlim()) == (lowest.get_position().x0, lowest.get_xlim())
    assert [len(ax.get_xticks()) > 0 for ax in drawn.axes] == [True, False]
    numbers = table(together)
    assert len(numbers) == of_cpus[0].sizes["cpu"] and numbers.columns.is_unique
    assert all(title_of(strip.value_0) in numbers.columns for strip in of_cpus)


def test_a_figure_has_no_more_strips_than_a_page_holds() -> None:
    strip = strips.by_cpu(levels_of("clock-together"), "node002")
    rows = strips.in_rows([strip] * 9)
    assert [len(strips.rows_of(figure)) for figure in rows] == [8, 1]
    assert strips.strip.frame(rows[0], 180.0).height < 230


def test_same_data_give_the_same_bytes() -> None:
    for name, (draw, data) in figures("rome-2x64").items():
        first, again = (render.figure(draw, data, STYLE, 88.0, ORIGIN) for _ in range(2))
        assert render.svg(first, STYLE) == render.svg(again, STYLE), name
        if name in FEW:
            assert render.pdf(first, STYLE) == render.pdf(again, STYLE), name


def test_figures_need_no_pyplot() -> None:
    code = (
        "import sys, tests.unit.report.test_figures as t; t.figures('rome-2x64'); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_files_say_where_they_are_from(tmp_path: Path) -> None:
    drawn = figures("rome-2x64")
    for name in FEW:
        draw, data = drawn[name]
        svg, pdf, csv = render.save(tmp_path / name.replace(" ", "-"), draw, data, STYLE, 88.0, ORIGIN)
        assert csv.read_text().startswith("# campaign main, node node002, nodeprint 0.1.0, SIMULATED\n")
        assert pdf.read_bytes().startswith(b"%PDF")
        assert svg.read_text().startswith("<svg")
        assert b"/FontFile2" in pdf.read_bytes()
        table = pd.read_csv(csv, comment="#")
        assert len(table) and any(re.search(r", (ns|%|GHz|bytes)", str(column)) for column in table.columns), name


def test_matrix_has_the_values_of_the_node_in_both_halves() -> None:
    levels = levels_of("coherence-cas")
    data = matrix.of_node(levels, "node002")
    values = data.value.to_numpy()
    assert np.array_equal(values, values.T, equal_nan=True)
    assert len(table(data)) == 128 * 127 // 2
    quantity = levels.quantity
    pair = quantity.pairs.tolist().index([0, 2])
    expected = quantity.values[quantity.newest_rows[2], :, pair].mean()
    assert values[0, 1] == pytest.approx(expected, rel=1e-4)


def test_matrix_names_parts_of_the_machine() -> None:
    data = matrix.of_node(levels_of("coherence-cas"), "node002")
    assert [level.name for level in part_levels(data, "b")] == ["CCX", "CCD", "quadrant", "socket"]
    slots = levels_of("coherence-cas").quantity.layout.slots[levels_of("coherence-cas").slots]
    for end, (column, name) in product("ab", enumerate(("socket", "quadrant", "ccd", "ccx"))):
        assert np.array_equal(data[f"{name}_{end}"], slots[:, column])


def test_missing_node_measurement_and_home_are_named() -> None:
    levels = levels_of("coherence-cas")
    with pytest.raises(NodeprintError, match="node017 is not a node"):
        node_levels.levels(simulated(), "coherence-cas", "node017")
    with pytest.raises(NodeprintError, match="no values of linktest-node; choose from"):
        node_levels.levels(simulated(), "linktest-node", "node002")
    with pytest.raises(NodeprintError, match="home 3; choose from -1, 10000"):
        matrix.of_node(levels, "node002", 3)


def beyond_tolerance(data: xr.Dataset) -> bool:
    """Whether the node's places are in the mean beyond the tolerance, and its peers are not."""
    up = bool(data.effect > 0)
    side, tolerance = (1, data.tolerance_above) if up else (-1, data.tolerance_below)
    mean, peers = side * data.value_0.mean(), side * (data.high_0 if up else data.low_0).mean()
    return bool((mean > tolerance) & (peers < tolerance))


def between(some: Iterable[int], others: Iterable[int]) -> list[tuple[int, int]]:
    return list(product(some, others))


PAIR_FINDINGS = {
    "core-near": (
        "core 37 +6%",
        Component("core", "core-near"),
        [(37, cpu) for cpu in range(64) if cpu not in range(36, 40)],
    ),
    "core-in": ("core 37 +2.5ns", Component("core", "core-in"), [(37, cpu) for cpu in (36, 38, 39)]),
    "core-far": ("core 37 +6%", Component("core", "core-far"), [(37, cpu) for cpu in range(64, 128)]),
    "ccd": ("ccd 3 to-others +6%", Component("ccd", "ccd"), between(range(24, 32), (*range(24), *range(32, 64)))),
    "class": ("global +6%", Component("class", "class"), between(range(64), range(64, 128))),
    "link": ("link q0-q2 +6%", Component("link", "link"), between(range(16), range(32, 48))),
}


@pytest.mark.parametrize("kind", PAIR_FINDINGS)
def test_figure_of_a_finding_shows_its_pairs_beyond_its_tolerance(kind: str) -> None:
    defect, component, pairs = PAIR_FINDINGS[kind]
    levels = levels_of("coherence-cas", f"node002: {defect}")
    healthy = levels_of("coherence-cas")
    finding = finding_of_pairs(levels, "node002", component, pairs, effect=0.06, tolerance=0.03)
    data = strips.own_places(levels, "node002", finding)
    assert beyond_tolerance(data), data
    assert not beyond_tolerance(strips.own_places(healthy, "node002", finding))


def test_figure_of_a_core_is_that_of_the_core_on_a_node_that_is_slow_as_a_whole() -> None:
    levels = levels_of("coherence-cas", "node002: global +6%")
    _, component, pairs = PAIR_FINDINGS["core-near"]
    finding = finding_of_pairs(levels, "node002", component, pairs, effect=0.06, tolerance=0.03)
    assert not beyond_tolerance(strips.own_places(levels, "node002", finding))


def test_figure_of_cells_shows_them_beyond_their_tolerance() -> None:
    levels = levels_of("bandwidth-nodes", "node002: memory-channel node 1 -20%")
    component = Component("bandwidth", "memory_node", {"memory_node": 1})
    finding = finding_of_cells(levels, component, [{"memory_node": 1}], effect=-0.2, tolerance=0.05)
    data = strips.own_places(levels, "node002", finding)
    assert data.sizes["place"] == 8
    assert title_of(data.place) == "NUMA node of the CPUs, stream (memory of NUMA node 1, huge pages)"
    assert data.attrs["measured"] == "bandwidth, GB/s"
    assert beyond_tolerance(data)


def test_effect_shows_its_own_tolerance_and_every_run() -> None:
    levels = levels_of("coherence-cas")
    finding = finding_of_pairs(
        levels, "node002", Component("core", "core-near"), [(17, 20)], effect=0.08, tolerance=TOLERANCE
    )
    data = differences.of_finding(finding)
    drawn = render.figure(differences.intervals, data, STYLE, 88.0)
    titles = " ".join(text.get_text() for text in texts_of(drawn))
    assert "+8.0%: 2.0 times its tolerance" in titles
    assert len(table(data)) == 6
    lines = [line.get_xdata() for line in drawn.axes[0].get_lines()]
    assert any(np.allclose(line, 4.0) for line in lines)
    bars = [segment[:, 0] for lines in drawn.axes[0].collections for segment in getattr(lines, "get_segments", list)()]
    assert any(np.allclose(bar, (7.2, 8.8)) for bar in bars)


@pytest.mark.parametrize(
    ("measurement", "effect", "tolerance", "heading"),
    [
        ("bandwidth-nodes", -0.154, 1 - 1 / 1.1, "-15.4%: 1.7 times its tolerance"),
        ("bandwidth-nodes", 2.04, 0.05, "+204.0%: 40.8 times its tolerance"),
        ("chase-latency", 12.0, 0.05, "+1200.0%: 240 times its tolerance"),
        ("jitter-detours", 0.4, 0.05, "+40.0 points: 8.0 times its tolerance"),
    ],
)
def test_heading_of_an_effect_fits_a_small_figure(
    measurement: str, effect: float, tolerance: float, heading: str
) -> None:
    levels = levels_of(measurement)
    finding = finding_of_cells(
        levels, Component("memory", "memory_node"), [{"memory_node": 1}], effect=effect, tolerance=tolerance
    )
    drawn = render.figure(differences.intervals, differences.of_finding(finding), STYLE, pictures.SMALL)
    title = next(text for text in texts_of(drawn) if text.get_text() == heading)
    with STYLE.applied():
        drawn.draw_without_rendering()
        box = title.get_window_extent()
    assert box.x0 > 0 and box.x1 < drawn.bbox.x1, heading


def test_figures_of_a_rate_have_the_tolerance_of_each_side() -> None:
    rates = levels_of("bandwidth-nodes")
    component = Component("bandwidth", "memory_node", {"memory_node": 1})
    for effect, tolerance in ((-0.2, 1 - 1 / 1.05), (0.2, 0.05)):
        finding = finding_of_cells(rates, component, [{"memory_node": 1}], effect=effect, tolerance=tolerance)
        places = strips.own_places(rates, "node002", finding)
        for draw, data in ((strips.strip, places), (differences.intervals, differences.of_finding(finding))):
            drawn = render.figure(draw, data, STYLE, 88.0)
            words = [text.get_text() for text in texts_of(drawn)]
            assert ("tolerance -4.76 to +5%" in words) is (draw is strips.strip)
            lines = [line for line in drawn.axes[0].get_lines() if line.get_linestyle() == "--"]
            at = sorted(
                float(end)
                for line in lines
                for end in (np.asarray(line.get_ydata())[0], np.asarray(line.get_xdata())[0])
            )
            assert any(np.isclose(end, 5.0) for end in at) and any(np.isclose(end, -100 / 21) for end in at)
    times = levels_of("coherence-cas")
    of_pairs = finding_of_pairs(
        times, "node002", Component("core", "core-near"), [(17, 20)], effect=0.08, tolerance=TOLERANCE
    )
    assert figure_data.tolerance_text(strips.own_places(times, "node002", of_pairs)) == "±4%"


def test_far_nodes_have_plain_numbers_on_the_axis_and_their_names_inside_the_figure() -> None:
    """Beyond five tolerances the axis is logarithmic, of which matplotlib's numbers would be TeX."""
    row = {f"node{n:03d}": value for n, value in enumerate((0.2, -0.3, -16.0, 2.1, 2.2))}
    rows = {"Core to core": row, "Memory latency": row}
    marked = {key: ["node002", "node003", "node004"] for key in rows}
    data = differences.differences_of(rows, {}, "in tolerances", marked)
    drawn = render.figure(differences.differences, data, STYLE, 180.0)
    drawn.draw_without_rendering()
    (ax,) = drawn.axes
    words = [text.get_text() for text in ax.get_xticklabels()]
    assert "\N{MINUS SIGN}10" in words
    assert ax.get_xlabel() == "in tolerances (log scale beyond 1)", "an axis that is logarithmic is announced"
    frame = drawn.bbox
    named = [text.get_window_extent() for text in ax.texts if text.get_text().startswith("node")]
    assert len(named) == 6 and all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in named)


def test_names_of_marked_nodes_do_not_overlap() -> None:
    nodes = {f"rack-07-node-{number:03}": 100.0 + number for number in range(60)}
    data = differences.in_order(nodes, {}, "same socket: median, ns", "order", list(nodes)[5:20])
    drawn = render.figure(differences.points, data, STYLE, 180.0)
    with STYLE.applied():
        boxes = sorted((t.get_window_extent() for t in texts_of(drawn) if "rack" in t.get_text()), key=lambda b: b.x0)
        inside = drawn.get_tightbbox()
    assert len(boxes) > 1 and all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert inside.x0 > 0 and inside.x1 < drawn.get_size_inches()[0]


def test_letters_that_the_font_lacks_are_no_news_for_a_terminal() -> None:
    data = differences.in_order({"名前": 1.0, "node001": 2.0}, {}, "median, ns", "order", ["名前"])
    with warnings.catch_warnings(action="error"):
        render.svg(render.figure(differences.points, data, STYLE, 88.0), STYLE)


def test_style_on_top_changes_letters_and_refuses_small_ones(tmp_path: Path) -> None:
    larger, smaller = tmp_path / "larger.mplstyle", tmp_path / "smaller.mplstyle"
    larger.write_text("font.size: 9\n")
    smaller.write_text("font.size: 4\n")
    assert styles.load(larger).letters_pt == 9
    with pytest.raises(NodeprintError, match=r"font\.size: 4 pt is less than 6 pt"):
        styles.load(smaller)
    with pytest.raises(NodeprintError, match="is not there"):
        styles.load(tmp_path / "absent.mplstyle")


def test_values_may_go_from_green_to_red() -> None:
    low, high = (styles.load(ROOT / "reports/green-to-red.mplstyle").map("values")(end) for end in (0.0, 1.0))
    assert low[1] > low[0] and high[0] > high[1]
    assert styles.load().map("values").name == "batlow"


def of_pairs_of_cells(
    measurement: str,
    operation: str,
    quantity: str,
    unit: str,
    names: Mapping[str, tuple[str, ...]],
    places: Any,
    values: Any,
) -> Any:
    """Values (place) of a measurement of cells with CPUs a and b on a simulated Rome of two sockets."""
    levels = levels_of("chase-latency")
    told = levels.quantity.assign(
        measurement=measurement,
        operation=operation,
        quantity=quantity,
        unit=unit,
        names=names,
        places=places,
        values=np.tile(np.asarray(values, dtype=np.float32), (len(levels.quantity.node), 1, 1)),
    )
    return structs.replace(levels, quantity=told, values=np.tile(values, (len(levels.nodes), 1)))


def test_contended_atomics_are_a_matrix_of_each_kind() -> None:
    ends = [(0, 1), (0, 128), (1, 128)]  # slots: two of a core, and one of the other socket
    places = {
        "kind": np.repeat([0, 1], 3),
        "a": np.array([a for a, _ in ends] * 2),
        "b": np.array([b for _, b in ends] * 2),
        "home": np.zeros(6, np.int64),
    }
    names = {"kind": ("cas", "faa")}
    levels = of_pairs_of_cells(
        "coherence-contend-pairs", "contend-pairs", "rate", "1/s", names, places, [60e6, 10e6, 11e6, 200e6, 20e6, 21e6]
    )
    drawn = {suffix: data for suffix, _, data in pictures._of_cells(NO_CAMPAIGN, "node002", levels)}
    assert list(drawn) == ["cas", "faa"]
    np.testing.assert_allclose(drawn["faa"].value, [[np.nan, 200, 20], [200, np.nan, 21], [20, 21, np.nan]], rtol=1e-6)
    assert (title_of(drawn["faa"].value), drawn["cas"].value[0, 2]) == ("faa: rate, M/s", 10)
    numbers = levels.nodes[levels.rows["node002"]].numbers["cpu"]
    assert drawn["cas"].a.to_numpy().tolist() == [str(numbers[slot]) for slot in (0, 1, 128)]
    assert any("socket" in level.name for level in part_levels(drawn["cas"], "b"))


def test_messages_over_size_have_a_line_for_each_class() -> None:
    ends = np.repeat([2, 100, 128], 2)  # slots: of the same CCX, of another quadrant, of the other socket
    places = {"a": np.zeros(6, np.int64), "b": ends, "size_bytes": np.array([8, 1 << 20] * 3)}
    for mode, messages in (("semidirectional", 1), ("bidirectional", 2)):
        levels = of_pairs_of_cells(
            "linktest-node", mode, "message", "ns", {}, places, [250.0, 80e3, 300.0, 90e3, 600.0, 140e3]
        )
        drawn = {suffix: data for suffix, _, data in pictures._of_cells(NO_CAMPAIGN, "node002", levels)}
        time, bandwidth = drawn["time"].value, drawn["bandwidth"].value
        assert time.line.to_numpy().tolist() == ["same CCX", "same socket", "other socket"]
        np.testing.assert_allclose(time[2] * levels.unit.size, [600, 140e3])
        np.testing.assert_allclose(bandwidth[0], [messages * 8 / 250, messages * (1 << 20) / 80e3])
        assert title_of(bandwidth) == "bandwidth, GB/s"
        assert list(drawn) == ["time", "bandwidth", "8 B", "1 MiB"], "matrices of the smallest and largest"
        assert title_of(drawn["8 B"].value).startswith("8 B: ")
        assert drawn["1 MiB"].value[0, -1].item() * levels.unit.size == pytest.approx(140e3)


def test_messages_between_nodes_over_size_have_a_line_for_each_kind_of_link() -> None:
    """One line where the switches are not known, and triangles on the matrix that was judged alone."""
    by_size = tuple(
        SizeFigure(size, within, ns, 0.9 * ns, 2 * ns)
        for size, of_size in ((8, (2e3, 3e3)), (1 << 20, (1e5, 2e5)))
        for within, ns in zip((True, False), of_size, strict=True)
    )
    made = verdicts.fabric(by_size=by_size, places=("leaf0", "leaf0", "leaf1"), smallest_ns=((np.nan, 2e3, 2e3),) * 3)
    bandwidth = curves.of_links(made, bandwidth=True)
    assert bandwidth.line.to_numpy().tolist() == ["within a switch or rack", "between switches or racks"]
    np.testing.assert_allclose(bandwidth.value[1], [8 / 3e3, (1 << 20) / 2e5])
    assert (bandwidth.low < bandwidth.high).all()
    unknown = structs.replace(made, by_size=by_size[::2], places=("",) * 3)
    assert curves.of_links(unknown).line.to_numpy().tolist() == ["all links"]
    judged, smallest = matrix_tables.messages(made), matrix_tables.messages(made, smallest=True)
    assert [title_of(data.value) for data in (judged, smallest)] == [
        "time of a message of 1 MiB, µs",
        "time of a message of 8 B, ns",
    ]
    assert judged.marked.any() and "marked" not in smallest.coords
    campaign = Campaign(verdicts.verdict(fabric=(made,)), PackedFleet("main", False, (), ()))
    drawn = {
        picture.name.removeprefix("linktest-fabric-0"): picture.caption for picture in pictures.fabric(campaign, 0)
    }
    assert list(drawn) == ["", "-histogram", "-smallest", "-time", "-bandwidth"]
    assert drawn["-smallest"] == "The same of messages of 8 B, which are not judged."


def test_a_width_is_that_which_was_asked_for() -> None:
    """88 mm in inches and back are a little more, and two such figures are no row of a page."""
    for width in (pictures.SMALL, pictures.HALF, pictures.MAIN, pictures.LARGE, pictures.PAGE):
        assert render.width_mm(Figure(figsize=(width / 25.4 * (1 + 2e-16), 1.0))) == width


def test_a_logarithmic_axis_is_announced() -> None:
    sizes = 2.0 ** np.arange(12, 30)
    for log in (True, False):
        data = curves.lines([curves.line("a", sizes, sizes)], "working set, bytes", "latency, ns", log_x=log, log_y=log)
        (ax,) = render.figure(curves.curve, data, STYLE, 88.0).axes
        assert ["log scale" in label for label in (ax.get_xlabel(), ax.get_ylabel())] == [log, log]
        assert [ax.get_xscale(), ax.get_yscale()] == ["log" if log else "linear"] * 2


@pytest.mark.parametrize(("marked", "sign"), [((), "o"), ((17,), "o"), (tuple(range(256)), "^")])
def test_the_legend_of_a_strip_has_the_sign_of_the_node(marked: tuple[int, ...], sign: str) -> None:
    data = strips.by_cpu(levels_of("clock-together"), "node002", marked=marked)
    (ax,) = render.figure(strips.strip, data, STYLE, 88.0).axes
    legend = ax.get_legend()
    assert legend is not None and next(line.get_marker() for line in legend.get_lines()) == sign


def test_the_difference_of_a_metric_is_that_of_a_finding_in_any_of_its_measurements() -> None:
    """The agreement in bandwidth may be of all memory while a CCX is beyond its tolerance."""
    slow = verdicts.finding(-0.12, measurement="bandwidth-ccx", tolerance=0.05, unit="B/s")
    nodes = {"cn1": verdicts.node(), "cn2": verdicts.node(), "cn3": verdicts.node(findings=(slow,))}
    data = differences.of_nodes(nodes, {"bandwidth": "Bandwidth", "core-to-core": "Core to core"})
    assert data is not None
    assert data.value.sel(metric="Bandwidth", node="cn3").item() == pytest.approx(-2.4)
    assert differences.outside(data).sum() == 1
    # a triangle is a finding of its own row
    assert data.marked.sel(node="cn3").to_series().to_dict() == {"Bandwidth": True, "Core to core": False}


def test_a_metric_that_does_not_decide_has_a_row_if_a_finding_counts_in_it() -> None:
    """A clock below tolerance fails its node, whatever the criteria are."""
    slow = verdicts.finding(-0.12, measurement="clock-together", tolerance=0.05, unit="Hz")
    nodes = {"cn1": verdicts.node(), "cn2": verdicts.node(), "cn3": verdicts.node()}
    of_limit, waived = structs.replace(slow, id="limit"), structs.replace(slow, waived="ticket 42")
    for finding, has_row in ((slow, True), (of_limit, False), (waived, False)):
        nodes["cn3"] = structs.replace(nodes["cn3"], findings=(finding,))
        campaign = Campaign(verdicts.verdict(nodes, criteria=("core-to-core",)), PackedFleet("main", False, (), ()))
        (drawn,) = pictures.in_tolerances(campaign)
        assert [words in drawn.svg for words in ("Core-to-core", "Clock")] == [True, has_row]


def test_a_point_beyond_its_tolerance_without_a_finding_is_named_in_ink() -> None:
    """A node that is INCONCLUSIVE may be farther from its peers than one with a finding."""
    slow = verdicts.finding(0.06, tolerance=0.04)
    far = verdicts.agreement("core-to-core", 0.12, effect=0.1)
    nodes = {f"cn{number}": verdicts.node() for number in range(1, 6)}
    nodes["cn3"] = verdicts.node(Outcome.DEVIATES, findings=(slow,))
    for name in ("cn4", "cn5"):
        nodes[name] = verdicts.node(Outcome.INCONCLUSIVE, agreements=(far,))
    (drawn,) = pictures.in_tolerances(Campaign(verdicts.verdict(nodes), PackedFleet("main", False, (), ())))
    assert drawn.caption.endswith(
        "Triangles are nodes with findings beyond these tolerances. "
        "Dots beyond a tolerance have no finding in that metric that counts: cn[4-5] (INCONCLUSIVE)."
    )
    colors = {name: re.search(rf"fill: (#\w+)[^>]*>{name}</text>", drawn.svg) for name in nodes}
    assert {name: color[1] for name, color in colors.items() if color} == {
        "cn3": STYLE.color("alarm"),
        "cn4": STYLE.color("ink"),
        "cn5": STYLE.color("ink"),
    }


@pytest.mark.parametrize("far", [3, 4, 7])
def test_a_point_beyond_its_tolerance_has_its_name_in_the_figure_or_in_the_caption(far: int) -> None:
    slow = verdicts.finding(0.1, tolerance=0.04)
    nodes = {f"cn{number}": verdicts.node() for number in range(1, 6)}
    nodes |= {f"x{n}": verdicts.node(Outcome.SUSPECT, findings=(slow,)) for n in range(1, far + 1)}
    (drawn,) = pictures.in_tolerances(Campaign(verdicts.verdict(nodes), PackedFleet("main", False, (), ())))
    named = [name for name in nodes if f">{name}</text>" in drawn.svg]
    assert named == ["x1", "x2", "x3"]
    left = names.nodes(name for name in nodes if name.startswith("x") and name not in named)
    words = f"For some names there is no room at their points: {left} (SUSPECT)."
    assert drawn.caption.endswith(words if left else "findings beyond these tolerances.")


def test_the_names_of_findings_come_before_those_of_farther_dots() -> None:
    rows = {"Core to core": {"cn1": 0.1, "cn2": 1.1, "cn3": 4.0, "cn4": 3.0, "cn5": 2.0, "cn6": -1.1}}
    data = differences.differences_of(rows, {}, "in tolerances", {key: ["cn2"] for key in rows})
    (ax,) = render.figure(differences.differences, data, STYLE, 180.0).axes
    assert {text.get_text() for text in ax.texts} == {"cn2", "cn3", "cn4", "cn6", "tolerance"}
