"""Figures are drawings that any program reads, whatever the numbers and the words; and their data are the numbers."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nodeprint.report import distribution_plots, effects, matrix_figure, plots, scale
from nodeprint.report import old_figures as figures
from nodeprint.report.old_figures import Figure
from nodeprint.report.scale import Scale
from nodeprint.report.svg import svg

from .made_up import MACHINES

NAN = float("nan")
ANY = st.one_of(st.floats(-1e9, 1e9), st.just(NAN))
WORDS = st.text(max_size=30)
SVG = "{http://www.w3.org/2000/svg}"


def drawn(figure: Figure) -> ElementTree.Element:
    """The figure's SVG, which is well-formed, has no number that is none, and asks for nothing from elsewhere."""
    text = svg(figure.drawing).decode()
    root = ElementTree.fromstring(text)
    numbers = [
        value
        for element in root.iter()
        for key, value in element.attrib.items()
        if key in ("x", "y", "cx", "cy", "r", "d", "width", "height", "font-size")
    ]
    assert not [value for value in numbers if re.search(r"nan|inf", value)]
    assert not re.search(r'href="(?!data:image/png;base64,)', text)
    assert figure.drawing.width > 0 and figure.drawing.height > 0
    assert len({len(column) for column in figure.data.values()}) <= 1
    return root


@given(st.integers(1, 40), st.data())
def test_a_strip_of_anything(n: int, data: st.DataObject) -> None:
    values, peers = data.draw(arrays(float, n, elements=ANY)), data.draw(arrays(float, (3, n), elements=ANY))
    places = data.draw(st.lists(WORDS, min_size=n, max_size=n))
    flagged = data.draw(st.lists(st.integers(0, n - 1)))
    bound = data.draw(st.one_of(st.none(), st.floats(0.001, 50)))
    one = plots.strip(places, values, peers, name="x", caption="", unit="%", flagged=flagged, bound=bound)
    drawn(one)
    np.testing.assert_array_equal(np.array(one.data["value"]), values)


@given(st.lists(st.tuples(WORDS, ANY, st.floats(-1e6, 1e6), ANY, st.booleans()), min_size=1, max_size=70))
def test_a_forest_of_anything(rows: list[tuple[str, float, float, float, bool]]) -> None:
    drawn_rows = [effects.Effect(*row) for row in rows]
    root = drawn(effects.forest(drawn_rows, name="x", caption="", unit="%", bound=2.0))
    marks = [e for e in root.iter() if e.tag == f"{SVG}circle"]
    assert len(marks) == sum(not row[-1] for row in rows), "a dot for each node, a triangle for each odd one"


@given(arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=ANY), st.data())
def test_a_grid_of_anything(values: np.ndarray, data: st.DataObject) -> None:  # type: ignore[type-arg]
    rows, columns = (data.draw(st.lists(WORDS, min_size=n, max_size=n)) for n in values.shape)
    texts = [[f"{value:.3g}" for value in row] for row in values]
    drawn(figures.grid(values, texts, rows, columns, Scale(0.0, 9.0), "ns", name="x", caption=""))


@given(st.lists(st.tuples(arrays(float, 7, elements=ANY), arrays(float, 7, elements=ANY)), max_size=12), st.booleans())
def test_lines_of_anything(data: list[tuple[np.ndarray, np.ndarray]], log: bool) -> None:  # type: ignore[type-arg]
    series = [plots.Series(f"s{i}", x, y, y - 1, y + 1) for i, (x, y) in enumerate(data)]
    drawn(plots.lines(series, name="x", caption="", x="a", y="b", log_x=log, log_y=log))


@given(arrays(float, 30, elements=ANY), arrays(float, 30, elements=ANY))
def test_densities_and_distributions_of_anything(x: np.ndarray, y: np.ndarray) -> None:  # type: ignore[type-arg]
    drawn(distribution_plots.density(x, y, name="x", caption="", x_name="a", y_name="b"))
    known = [np.sort(values[np.isfinite(values)]) for values in (x, y)]
    drawn(
        distribution_plots.shapes(
            [("<&'\"", known[0], known[1]), ("none", known[0][:0], known[1])], name="x", caption=""
        )
    )


@pytest.mark.parametrize("cpus", sorted(MACHINES))
def test_a_matrix_shows_every_pair(cpus: int) -> None:
    topology = MACHINES[cpus]
    order = figures.order([cpu.cpu for cpu in topology.cpus], topology)
    values = np.random.default_rng(1).uniform(20, 200, (cpus, cpus))
    np.fill_diagonal(values, NAN)
    one = matrix_figure.matrix(values, order, topology, Scale(20.0, 200.0), "ns", 172.0, medians=[("same", 99.0)])
    root = drawn(one)
    assert len(one.data["a"]) == cpus * (cpus - 1)
    assert one.drawing.width <= 172.001
    height = max(float(e.attrib["y"]) for e in root.iter(f"{SVG}text")) if cpus > 1 else 0
    assert height <= one.drawing.height


def test_a_scale_keeps_its_ends() -> None:
    assert scale.of_differences([NAN], 5.0) == Scale(-5.0, 5.0, "vik")
    assert all(math.isfinite(float(text)) for _, text in Scale(-8, 8, "vik").ticks())
