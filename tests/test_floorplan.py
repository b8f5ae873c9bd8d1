"""The floor plan shows every core once, where it is known to be; nothing lies over anything, or out of the page."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest

from nodeprint.report.floorplan import floorplan
from nodeprint.report.svg import svg as painted
from nodeprint.topology.facts import cpu_list
from nodeprint.topology.model import Topology
from tests import machines
from tests.machines import arm, epyc, xeon
from tests.test_topology import HARVESTED, read

SVG = "{http://www.w3.org/2000/svg}"

MACHINES = {
    **{name: epyc(recipe) for name, recipe in machines.WHOLE.items()},
    **{f"harvested {name}": epyc(recipe) for name, recipe in HARVESTED.items()},
    "rome-nps2": epyc(machines.ROME, nps=2),
    "genoa-nps4": epyc(machines.GENOA, sockets=1, nps=4),
    "virtual": epyc(machines.ROME).but(flags="hypervisor"),
    "snc": xeon(snc=2),
    "four sockets": xeon(sockets=4),
    "arm": arm(64, cluster=4),
    "flat": arm(80),
    "no-l3": arm(8).with_rows(lambda row: replace(row, ccx=None)),
    "two": arm(2),
}


@pytest.fixture(params=MACHINES, scope="module")
def labels(request: pytest.FixtureRequest) -> Topology:
    return read(MACHINES[request.param])


def _texts(svg: str) -> list[tuple[str, float, float, float, float]]:
    """Text, left, top, right and bottom of every line, letters taken as 0.6 of their size wide."""
    out = []
    for element in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        size, text = float(element.attrib["font-size"]), element.text or ""
        width = 0.6 * size * len(text)
        left = float(element.attrib["x"]) - (width / 2 if element.get("text-anchor") == "middle" else 0)
        bottom = float(element.attrib["y"])
        out.append((text, left, bottom - 0.75 * size, left + width, bottom))
    return out


def test_every_core_is_drawn_once(labels: Topology) -> None:
    svg = painted(
        floorplan(labels, {cpu.cpu: 100.0 + cpu.cpu for cpu in labels.cpus}, unit="ns", quantity="hop")
    ).decode()
    drawn = [title.text or "" for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    cpus = [cpu for tip in drawn for cpu in cpu_list(re.sub(r"^CPU |:.*$", "", tip), "svg")]
    assert sorted(cpus) == [cpu.cpu for cpu in labels.cpus]
    assert len(drawn) == len(labels.groups("core"))


@pytest.mark.parametrize("with_values", [False, True])
def test_nothing_overlaps_or_leaves_the_page(labels: Topology, with_values: bool) -> None:
    values = {cpu.cpu: 1234.5 + cpu.cpu for cpu in labels.cpus[1:]} if with_values else None
    svg = painted(floorplan(labels, values, unit="ns", quantity="median latency of a core")).decode()
    root = ElementTree.fromstring(svg)
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    texts = _texts(svg)
    for text, left, top, right, bottom in texts:
        assert left >= 0 and right <= width and top >= 0 and bottom <= height, text
    for rect in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
    ordered = sorted(texts, key=lambda t: t[2])
    for a, b in combinations(ordered[:400], 2):
        apart = a[3] <= b[1] or b[3] <= a[1] or a[4] <= b[2] or b[4] <= a[2]
        assert apart, (a, b)


def test_what_has_no_place_is_said_to_have_none(labels: Topology) -> None:
    svg = painted(floorplan(labels)).decode()
    said = " ".join(text for text, *_ in _texts(svg))
    for warning in labels.warnings:
        if warning.id in ("cores-fused-off", "ccds-fused-off", "quadrant-unknown"):
            assert ("unknown" in said and "stroke-dasharray" in svg) or labels.machine.virtual
    for quadrant in labels.groups("quadrant"):
        assert f"quadrant {quadrant}" in said
    for half in labels.groups("half"):
        assert f"half {half}" in said
    if not labels.groups("quadrant"):
        assert "quadrant 0" not in said


def test_a_value_gives_its_colour_and_no_value_none() -> None:
    labels = read(epyc(machines.ROME, sockets=1))
    low = {cpu.cpu: 100.0 for cpu in labels.cpus}

    def fills(values: dict[int, float] | None, level: str = "core") -> dict[str, str]:
        svg = painted(floorplan(labels, values, level=level)).decode()  # type: ignore[arg-type]
        rects = ElementTree.fromstring(svg).iter(f"{SVG}rect")
        return {(r[0].text or "").split(":")[0]: r.attrib["fill"] for r in rects if len(r)}

    plain, even, odd = fills(None), fills(low), fills({**low, 3: 150.0, 67: 150.0})
    assert len(set(plain.values())) == len(set(even.values())) == 1
    assert [tip for tip in odd if odd[tip] != odd["CPU 0,64"]] == ["CPU 3,67"]
    missing = fills({cpu: value for cpu, value in low.items() if cpu not in (5, 69)})
    assert [tip for tip in missing if missing[tip] != missing["CPU 0,64"]] == ["CPU 5,69"]
    assert "not measured" in painted(floorplan(labels, {0: 1.0})).decode()
    by_ccd = fills({**low, **dict.fromkeys(labels.groups("ccd")[1], 150.0)}, "ccd")
    assert len(by_ccd) == 8, "a CCD is one cell"
    assert [tip for tip in by_ccd if by_ccd[tip] != by_ccd["CPU 0-7,64-71"]] == ["CPU 8-15,72-79"]
    assert fills({cpu: float("nan") for cpu in low}) == fills({})


def test_one_socket_of_two() -> None:
    labels = read(epyc(machines.MILAN))
    svg = painted(floorplan(labels, socket=1)).decode()
    assert "socket 1" in svg and "socket 0" not in svg


def test_names_of_unknown_origin_are_escaped() -> None:
    labels = read(epyc(machines.ROME).but(model=0xFE, family=0x1F, name="<script>&"))
    ElementTree.fromstring(painted(floorplan(labels)))
