"""The interactive part of cluster.html: what it shows is what was measured, and nothing leaves the page."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nodeprint.report import documents, explorer
from nodeprint.report.figures.node_levels import Floats
from tests.support import verdicts
from tests.support.browser import Page, browser

pytestmark = pytest.mark.machine
READY = "document.body && document.body.dataset.ready === 'yes'"


def decode(step: float, text: str, n: int) -> Floats:
    raw = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).astype(np.float64)
    whole = raw[: len(raw) // 2] * 256 + raw[len(raw) // 2 :]
    out = np.full((n, n), np.nan)
    upper = np.triu_indices(n, 1)
    out[upper] = np.where(whole == 65535, np.nan, whole * step)
    out.T[upper] = out[upper]
    return out


@given(arrays(np.float64, (5, 5), elements=st.one_of(st.floats(0.5, 1e7), st.just(float("nan")))))
def test_matrix_keeps_its_values_to_half_a_step(values: Floats) -> None:
    values = np.where(np.triu(np.ones((5, 5)), 1) > 0, values, values.T)
    np.fill_diagonal(values, np.nan)
    step, text = explorer.encode(values)
    np.testing.assert_allclose(decode(step, text, 5), values, atol=0.5001 * step)
    finite = values[np.isfinite(values)]
    assert not finite.size or step <= finite.max() / 6000, "four digits of the largest value are kept"


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explored")
    verdicts.campaign(folder, "milan-2x64", nodes=3)
    return documents.write(folder, of_nodes=False)[1]


@pytest.fixture
def page(html: Path) -> Iterator[Page]:
    with browser() as opened:
        opened.open(html, READY)
        yield opened
        assert opened.errors == [] and {url.partition(":")[0] for url in opened.requests} <= {"file", "data", "blob"}


def tip(page: Page) -> str:
    return str(page.run("document.getElementById('tip').textContent"))


def chosen(page: Page) -> list[str]:
    return list(page.run("['of', 'show'].map((id) => document.getElementById(id).value)"))


def content(html: Path) -> dict[str, Any]:
    match = re.search(r'id="data">(.*?)</script>', html.read_text(), re.DOTALL)
    assert match is not None
    data: dict[str, Any] = json.loads(match[1])
    return data


def press(page: Page, *keys: str) -> None:
    page.run("document.getElementById('map').focus()")
    for key in keys:
        page.press(key)


def test_difference_of_the_flagged_node_comes_first_and_pairs_are_named(html: Path, page: Page) -> None:
    assert page.run("[document.getElementById('of').value, document.getElementById('show').value]") == [
        "node001",
        "percent",
    ]
    assert "SIMULATED" in tip(page) and "difference from the median of 2 peers, %" in tip(page)
    press(page, "ArrowRight", "ArrowRight")
    data = content(html)
    entry = next(m for m in data["matrices"] if m["node"] == "node001")
    machine = data["machines"][entry["machine"]]
    value = decode(entry["step"], entry["data"], len(machine["cpus"]))[0, 2]
    assert tip(page).startswith(f"CPU {machine['cpus'][0]} to CPU {machine['cpus'][2]}\n{value:.2f} ns")
    assert "socket 0" in tip(page)


def test_keys_enlarge_and_turn_and_the_link_brings_the_view_back(html: Path, page: Page) -> None:
    press(page, "ArrowRight", "+", "d", "n")
    link = page.run("document.getElementById('link').getAttribute('href')")
    assert "area=0%2C0%2C64" in link and "show=value" in link and "node=node002" in link
    page.open(html, READY)
    page.run(f"location.hash = {json.dumps(link)}")
    page.run("new Promise((done) => setTimeout(done, 300))")
    assert page.run("[document.getElementById('of').value, document.getElementById('show').value]") == [
        "node002",
        "value",
    ]


def test_downloads_have_what_is_shown(page: Page) -> None:
    page.run("window.saved = []; URL.createObjectURL = (blob) => { saved.push(blob); return 'data:,'; }")
    page.run("document.getElementById('csv').click(); document.getElementById('svg').click()")
    csv, svg = (str(page.run(f"saved[{number}].text()")) for number in (0, 1))
    first, header, *rows = csv.splitlines()
    assert "SIMULATED" in first and header == 'CPU a,CPU b,"difference, %"' and len(rows) == 128 * 127
    assert svg.startswith("<svg") and "SIMULATED" in svg and "data:image/png" in svg
    assert {">CCX = CCD<", ">quadrant<", ">socket<"} <= set(re.findall(r">[^<]*<", svg))  # brackets above the matrix


def test_colors_go_over_one_socket_where_its_classes_are_near_each_other(page: Page) -> None:
    page.run("document.getElementById('show').value = 'value'; document.getElementById('show').onchange()")
    page.run("window.saved = []; URL.createObjectURL = (blob) => { saved.push(blob); return 'data:,'; }")
    wait = "new Promise((done) => setTimeout(done, 300))"
    for scale in ("all", "inside"):
        page.run(f"document.getElementById('scale').value = '{scale}'; document.getElementById('scale').onchange()")
        page.run(wait)
        page.run("document.getElementById('svg').click()")
    every, inside = (
        [float(word) for word in re.findall(r'text-anchor="start">([0-9.]+)<', str(page.run(f"saved[{n}].text()")))]
        for n in (0, 1)
    )
    assert max(inside) - min(inside) < 0.2 * (max(every) - min(every))
    assert "inside a socket" in tip(page)


@pytest.mark.parametrize("width", [1200, 768, 390])
def test_page_is_readable_at_every_width(html: Path, page: Page, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.call("Emulation.setDeviceMetricsOverride", size)
    page.open(html, READY)
    assert page.run("document.documentElement.scrollWidth") <= width
    letters = page.run(
        "[...document.querySelectorAll('svg text')].filter((e) => e.getBoundingClientRect().height > 0)"
        ".map((e) => { const m = e.getScreenCTM(); return parseFloat(getComputedStyle(e).fontSize)"
        " * Math.hypot(m.a, m.b) })"
    )
    assert min(letters) > 10.9
    page.run("document.getElementById('of').add(new Option('n'.repeat(80)))")
    assert page.run("document.documentElement.scrollWidth") <= width


def test_a_lone_matrix_differs_from_nothing(html: Path, page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "lone"
    verdicts.campaign(folder, "milan-2x64", nodes=1)
    hidden = "['against', 'show'].map((id) => document.getElementById(id).closest('label').hidden)"
    page.open(html, READY)
    assert page.run(hidden) == [False, False]
    page.open(documents.write(folder, of_nodes=False)[1], READY)
    assert page.run(hidden) == [True, True]


def test_finger_shows_a_pair_and_encloses_an_area(page: Page) -> None:
    box = page.run(
        "(() => { const b = document.getElementById('map'); b.scrollIntoView(); const r = b.getBoundingClientRect();"
        " return [r.x, r.y] })()"
    )
    x, y = box[0] + 80, box[1] + 60
    for kind, points in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x + 100, "y": y + 100}]),
        ("touchEnd", []),
    ):
        page.call("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert "area=" in page.run("document.getElementById('link').getAttribute('href')")
