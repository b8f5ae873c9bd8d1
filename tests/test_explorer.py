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
from nodeprint.report.old_figures import Floats
from nodeprint.report.shown import Shown

from nodeprint.report import documents as report
from nodeprint.report import explorer

from .browser import Page, browser
from .made_up import FINDING, MACHINES, Campaign

pytestmark = pytest.mark.machine


def decode(step: float, text: str, n: int, directed: bool) -> Floats:
    raw = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).astype(np.float64)
    whole = raw[: len(raw) // 2] * 256 + raw[len(raw) // 2 :]
    values = np.where(whole == 65535, np.nan, whole * step)
    if directed:
        return values.reshape(n, n)
    out = np.full((n, n), np.nan)
    upper = np.triu_indices(n, 1)
    out[upper] = values
    out.T[upper] = values
    return out


@given(
    arrays(np.float64, (5, 5), elements=st.one_of(st.floats(0.5, 1e7), st.just(float("nan")))), st.booleans()
)  # fmt: skip
def test_a_matrix_keeps_its_values_to_half_a_step(values: Floats, directed: bool) -> None:
    if not directed:
        values = np.where(np.triu(np.ones((5, 5)), 1) > 0, values, values.T)
        np.fill_diagonal(values, np.nan)
    step, text = explorer.encode(values, directed)
    np.testing.assert_allclose(decode(step, text, 5, directed), values, atol=0.5001 * step)
    known = values[np.isfinite(values)]
    assert not known.size or step <= known.max() / 6000, "four digits of the largest value are kept"


def made(folder: Path) -> Path:
    fleet = Campaign(folder)
    for number in range(4):
        fleet.add(f"cn{number}", MACHINES[64], seed=number)
    hostile = "</script><script>alert(1)</script>"
    fleet.add(
        "odd", MACHINES[64], factor=1.1, verdict="DEVIATES", text=hostile, findings=[{**FINDING, "text": hostile}]
    )
    path = fleet.install()
    report.write(path, nodes=[])
    return path


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("explorer") / "main")


@pytest.fixture(scope="module")
def page(campaign: Path) -> Iterator[Page]:
    with browser() as found:
        found.open(campaign / "report/cluster.html", "document.body?.dataset.ready === 'yes'")
        yield found
        assert found.errors == []
        assert [url for url in found.requests if not url.startswith(("file:", "data:", "blob:", "about:"))] == []


def data_of(campaign: Path) -> dict[str, Any]:
    text = (campaign / "report/cluster.html").read_text()
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match
    found: dict[str, Any] = json.loads(match[1])
    return found


def choose(page: Page, **values: str) -> None:
    for name, value in values.items():
        page.run(f"(async (s) => {{ s.value = {value!r}; await s.onchange() }})(document.getElementById({name!r}))")


def hovered(page: Page, row: int, column: int) -> str:
    where = (
        "(() => { const map = document.getElementById('map'), r = map.getBoundingClientRect();"
        " return [r.x, r.y, r.width / map.width] })()"
    )
    x, y, cell = page.run(where)
    page.run(f"window.scrollTo(0, {y} + window.scrollY - 20)")
    x, y, cell = page.run(where)
    page.move(x + (column + 0.5) * cell, y + (row + 0.5) * cell)
    return str(page.run("document.getElementById('tip').textContent"))


def test_what_is_hovered_is_what_was_measured(page: Page, campaign: Path) -> None:
    matrices = {node: Shown.of(campaign / "nodes" / node).matrices[0] for node in ("odd", "cn2")}
    own, other = matrices["odd"], matrices["cn2"]
    choose(page, of="odd", against="cn2", show="value")
    for row, column in ((0, 1), (5, 60), (63, 2), (17, 16)):
        said = hovered(page, row, column).split("\n")
        assert said[0] == f"CPU {own.cpus[row]} to CPU {own.cpus[column]}"
        a, b = own.values[row, column], other.values[row, column]
        assert float(said[1].removesuffix(" ns")) == pytest.approx(a, abs=0.006)
        assert said[2].startswith("cn2: ") and float(said[2].split()[1]) == pytest.approx(b, abs=0.006)
        ns, percent = re.findall(r"[+-][\d.]+", said[3])
        assert float(ns) == pytest.approx(a - b, abs=0.02)
        assert float(percent) == pytest.approx(100 * (a / b - 1), abs=0.05)
        assert re.match(r"socket 0, quadrant \d, ccd \d", said[4])
        assert "3 passes in each of 2 runs" in said[-1]
    assert "the same CPU" in hovered(page, 3, 3)


def test_the_fleet_is_the_median_of_nodes_that_are_the_same(page: Page, campaign: Path) -> None:
    choose(page, of="odd", against="", show="percent")
    peers = np.median([Shown.of(campaign / f"nodes/cn{i}").matrices[0].values for i in range(4)], axis=0)
    said = hovered(page, 8, 40).split("\n")
    assert float(said[2].removeprefix("the fleet: ").removesuffix(" ns")) == pytest.approx(peers[8, 40], abs=0.011)


def test_keys_move_and_change_the_node(page: Page) -> None:
    choose(page, of="cn1", against="", show="value")
    hovered(page, 4, 4)
    page.run("document.getElementById('map').focus()")
    page.press("ArrowRight")
    assert str(page.run("document.getElementById('tip').textContent")).startswith("CPU 4 to CPU 5")
    page.press("n")
    assert page.run("document.getElementById('of').value") == "cn2"
    page.press("d")
    assert page.run("document.getElementById('show').value") == "percent"


def test_the_table_is_searched_sorted_and_filtered(page: Page, campaign: Path) -> None:
    assert len(data_of(campaign)["nodes"]) == 5
    shown = "[...document.querySelectorAll('#list tr[data-node]')].map((row) => row.dataset.node)"
    assert page.run(shown)[0] == "odd", "what asks for attention comes first"
    page.run("document.querySelector('#list th').click()")
    assert page.run(shown) == ["cn0", "cn1", "cn2", "cn3", "odd"]
    page.run("document.getElementById('search').value = 'CN3'; document.getElementById('search').oninput()")
    assert page.run(shown) == ["cn3"]
    page.run("document.getElementById('search').value = ''; document.getElementById('search').oninput()")
    page.run("[...document.querySelectorAll('#filters button')].find((b) => b.textContent === 'SAME').click()")
    assert page.run(shown) == ["odd"]
    page.run("[...document.querySelectorAll('#filters button')].find((b) => b.textContent === 'SAME').click()")


def test_hostile_text_stays_text(page: Page) -> None:
    assert "alert(1)" in page.run("document.getElementById('list').textContent")
    assert page.run("document.querySelectorAll('script').length") == 2


def test_dark_pages_are_dark(page: Page) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.call("Emulation.setEmulatedMedia", media)
    dark = page.run("getComputedStyle(document.body).backgroundColor")
    page.call("Emulation.setEmulatedMedia", {"features": []})
    assert (dark, page.run("getComputedStyle(document.body).backgroundColor")) == (
        "rgb(20, 24, 28)",
        "rgb(255, 255, 255)",
    )


def test_pages_without_a_matrix_have_no_explorer(tmp_path: Path) -> None:
    fleet = Campaign(tmp_path)
    for name in ("a", "b"):
        fleet.add(name, MACHINES[2])
    _, html, *_ = report.write(fleet.install(), nodes=[])
    assert "<script" not in html.read_text()
