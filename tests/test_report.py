"""The report: what is on its pages, that it is the same every time, and that no text can break it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nodeprint import discover, outcomes, sources
from nodeprint.errors import NodeprintError
from nodeprint.fleet.jobs import Measured
from nodeprint.report import (
    cluster,
    findings,
    fleet_resolution,
    fleet_verdict,
    formatting,
    methods,
    node_table,
    pdf,
    quantities,
    runs,
    scale,
)
from nodeprint.report import documents as report
from nodeprint.report import (
    old_figures as figures,
)
from nodeprint.report.drawing import Segments
from nodeprint.report.node import node_page
from nodeprint.report.pages import Advice, Unmeasured
from nodeprint.report.peers import Peers
from nodeprint.report.shown import Shown
from nodeprint.simulate import Plan, write
from nodeprint.topology.presets import preset
from nodeprint.verdict import outputs
from nodeprint.verdict.campaign_verdict import judge
from nodeprint.words import cause_findings
from nodeprint.words.names import name_list

from .conftest import need
from .made_up import ALONE, FINDING, MACHINES, WARNING, Campaign, alone, fleet, machine

HOSTILE = [
    "#panic()", "]", "$", "\\", "*_`<x>@y", '"#{1/0}"', '[#import "/etc/passwd"]', "a" * 300,
    "\u202eevil\x1b[31m", "名前 ✕ é", "Ω λ Жук ñ",
    "//", "/*", "~", "{{ 1 }}", "<script>alert(1)</script>", "",
]  # fmt: skip


def text(path: Path) -> str:
    """The text of a PDF, in reading order, with blanks collapsed and break opportunities removed."""
    need("pdftotext")
    out = subprocess.run(["pdftotext", "-layout", str(path), "-"], check=True, capture_output=True, timeout=300)
    return re.sub(r"\s+", " ", out.stdout.decode().replace("\u200b", ""))


def page_count(path: Path) -> int:
    need("pdfinfo")
    out = subprocess.run(["pdfinfo", str(path)], check=True, capture_output=True, timeout=300).stdout.decode()
    return int(re.search(r"Pages:\s+(\d+)", out)[1])  # type: ignore[index]


def assert_harmless(path: Path, hostile: str) -> None:
    """The page holds no element and no address that the template has not put there."""
    page = path.read_text()
    tags = set(re.findall(r"<([a-zA-Z!][a-zA-Z0-9]*)", page))
    ours = """!doctype html head meta title style body header h1 h2 h3 h4 p span b a table tr th td ul li dl dt dd pre
        div section svg image text rect path g circle defs linearGradient stop figure figcaption small i em br img
        label select option input canvas script"""
    assert tags <= set(ours.split()) and page.count("<script") in (0, 2)
    assert not re.search(r'(?:href|src)="(?!data:image/(?:png|svg\+xml);base64,|#node-)', page)
    if hostile.isascii() and hostile.isprintable():
        assert " ".join(hostile.split())[:200] in unescape(page)


@pytest.mark.parametrize("cpus", sorted(MACHINES))
def test_one_node(cpus: int, tmp_path: Path) -> None:
    made = alone(tmp_path / "main", cpus)
    cluster, html, node = report.write(made.install())
    assert (cluster.name, html.name, node.name) == ("cluster.pdf", "cluster.html", f"node{cpus}.pdf")
    assert cluster.read_bytes() == node.read_bytes(), "the page of an only node says all"
    seen = text(node)
    assert "NO PEER" in seen and ALONE["text"] in seen
    assert WARNING["text"] in seen and WARNING["advice"] in seen
    assert "AMD EPYC 7742 64-Core Processor" in seen
    if cpus == 1:
        assert "there is no pair to measure" in seen
        return
    for name in (c["name"] for c in made.verdict["nodes"][f"node{cpus}"]["classes"]):
        assert name in seen
    for fact in (
        "cas",
        "round trip / 2",
        "likwid-pin",
        "2.300 GHz",
        "0123456789abcdef",
        "gcc 12.2.0",
        "3 passes in each of 2 runs",
    ):
        assert fact in seen, fact
    assert node.stat().st_size < 400_000


def test_outlines_are_named(tmp_path: Path) -> None:
    *_, node = report.write(alone(tmp_path / "main", 128).install())
    seen = text(node)
    assert "Floor plan" in seen and "agrees ccx" in seen
    for name in ("CCX", "CCD", "quadrant", "NUMA = socket"):
        assert name in seen


def test_same_bytes_twice(tmp_path: Path) -> None:
    campaign = fleet(tmp_path / "main", 5).install()
    first = report.write(campaign, out=tmp_path / "a")
    second = report.write(campaign, out=tmp_path / "elsewhere" / "b")
    assert [p.name for p in first] == [p.name for p in second]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


@pytest.mark.parametrize("count", [3, 20, 64])
def test_fleet(count: int, tmp_path: Path) -> None:
    made = fleet(tmp_path / "main", count, cpus=4)
    written = report.write(made.install(), nodes=[])
    assert [p.name for p in written] == ["cluster.pdf", "cluster.html"]
    seen = text(written[0])
    assert "NOT UNIFORM" in seen and f"Of {count} nodes one deviates" in seen
    assert all(name in seen for name in made.verdict["nodes"])
    assert "DEVIATES" in seen and FINDING["text"][:40] in seen
    assert "Not responding [root@2026-01-01]" in seen
    if count > 4:
        assert "ended by signal 11" in seen and "Segmentation fault" in seen
    assert "all nodes" in seen


def test_marked_when_simulated_or_imported(tmp_path: Path) -> None:
    made = fleet(tmp_path / "simulated", 3, cpus=4)
    made.verdict["simulated"] = True
    cluster, html, *own = report.write(made.install())
    seen = html.read_text().count('class="origin">SIMULATED')
    assert seen == 3, "the cluster's page, the one that deviates, and the method"
    for path in (cluster, *own):
        assert text(path).count("SIMULATED") == page_count(path)
    brought = Campaign(tmp_path / "imported")
    source = {"format": "core-to-core-latency", "source": "x.csv", "unknown": ["home"]}
    brought.add("cn1", MACHINES[4], header={"imported": source, "home": None}, **ALONE)
    node = report.write(brought.install())[-1]
    assert text(node).count("IMPORTED, not measured") == page_count(node)
    assert "home unknown" in text(node) and "x.csv" in text(node)
    brought.add("cn2", MACHINES[4], header={"imported": source, "home": None}, **ALONE)
    cluster = report.write(brought.install(), nodes=[])[0]
    assert text(cluster).count("IMPORTED, not measured") == page_count(cluster)


def test_long_names_of_nodes_leave_room_for_what_was_found(tmp_path: Path) -> None:
    """The column of findings is what is left of the page; a name must not take all of it."""
    pages = []
    for name in ("cn{}", "-".join(["a-name"] * 14) + "-{}"):
        made = Campaign(tmp_path / name.format(0))
        for i in range(12):
            made.add(name.format(i), MACHINES[4], verdict="SUSPECT", findings=[FINDING])
        pages.append(page_count(report.write(made.install(), nodes=[])[0]))
    assert pages[1] <= pages[0] + 2


def test_names_of_several_lines_stay_in_their_cells(tmp_path: Path) -> None:
    """No part of a name is written over another, and rows are farther apart than the lines of a name."""
    need("pdftotext")
    names = [f"compute{i:04d}.rackofnodes.cluster.research.example-university.org" for i in range(4)]
    made = Campaign(tmp_path / "main")
    for name in names:
        made.add(name, MACHINES[4], verdict="SUSPECT", findings=[FINDING])
    cluster = report.write(made.install(), nodes=[])[0]
    boxes = subprocess.run(["pdftotext", "-bbox", cluster, "-"], check=True, capture_output=True, text=True).stdout
    box = re.compile(r'xMin="(.+?)" yMin="(.+?)" xMax="(.+?)" yMax="(.+?)">(.*?)<')
    pages = [[(*map(float, at), word) for *at, word in box.findall(page)] for page in boxes.split("<page")[1:]]
    for words in pages:
        name = [one for one in words if "example-" in one[-1] or "research" in one[-1]]
        assert not [
            (one, other)
            for one in name
            for other in words
            if one is not other
            and min(one[2], other[2]) - max(one[0], other[0]) > 1
            and min(one[3], other[3]) - max(one[1], other[1]) > 4
        ]
    heights = [y for x, y, *_, word in pages[0] if x < 60 and re.search(r"compute0|rackofn|cluster\.|example-", word)]
    gaps = np.diff(sorted(heights))
    assert len(gaps) > 7 and gaps.max() > 1.2 * gaps.min()


@pytest.mark.parametrize(
    "name, shown",
    [
        ("cn0001", "cn0001"),
        ("compute0001.cluster.example.org", "compute0001"),
        ("production-compute-0001.example.org", "produc\u2026e-0001"),
        ("192.168.100.101", "192.16\u202600.101"),
    ],
)
def test_short_names_in_figures_still_differ(name: str, shown: str) -> None:
    assert figures.shortened(name, 13) == shown


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_prints_harmlessly(hostile: str, tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    said = {
        "text": hostile, "reason": hostile, "log_tail": [hostile], "quality": [hostile], "verdict": hostile,
        "warnings": [{"id": hostile, "text": hostile, "advice": hostile}],
        "fingerprint": {hostile: hostile, "bios": hostile},
        "findings": [{**FINDING, "text": hostile, "where": hostile, "evidence": [hostile]}],
    }  # fmt: skip
    made.add("cn1", MACHINES[4], header={"host": hostile, "compiler": hostile, "arguments": [hostile]}, **said)
    made.verdict["nodes"][hostile or "-"] = said
    made.verdict["campaign"] = hostile
    made.verdict["fleet"] = {
        "outcome": hostile,
        "text": hostile,
        "groups": {hostile: [hostile]},
        "smallest_effect": {hostile: 1.0},
    }
    for path in report.write(made.install()):
        if path.suffix == ".html":
            assert_harmless(path, hostile)
            continue
        assert path.parent == tmp_path / "main" / "report"
        seen = text(path).replace(" ", "")
        expected = "".join(c if c.isprintable() else "?" for c in hostile).replace(" ", "")
        lacking = "名" in hostile
        assert expected.replace("名前", "□□")[:20] in seen
        assert ("fontsofthisPDF" in seen) == lacking, "and what a box stands for is said"


@given(st.text(max_size=80))
def test_every_string_reaches_the_page_as_one_printable_line(anything: str) -> None:
    shown = pdf.breakable(anything).replace("\u200b", "")
    assert shown.isprintable() or shown == ""
    assert len(shown) <= 600


def test_long_words_are_broken_where_they_divide() -> None:
    assert pdf.breakable("isolcpus=1,2,3,4,5,6,7,8,9,10").split("\u200b")[0] == "isolcpus="
    assert pdf.breakable("BOOT_IMAGE=/vmlinuz-6.1.0-18-amd64").startswith("BOOT_IMAGE=\u200b/vmlinuz-\u200b6.1.")
    first = pdf.breakable("cn0001.rack-12.research.example.org").split("\u200b")[:3]
    assert first == ["cn0001.", "rack-", "12.research."]
    assert max(map(len, pdf.breakable("a" * 100).split("\u200b"))) == 8


@given(st.text(max_size=300))
def test_file_names_stay_in_their_folder(node: str) -> None:
    name = report.file_name(node)
    assert Path(name).name == name and len(name.encode()) < 255
    assert name not in ("cluster.pdf", ".pdf") and not name.startswith(".")


def test_file_names_differ() -> None:
    names = ["cluster", "a/b", "a_b", "a b", "..", ".", "x" * 300, "x" * 301]
    assert len({report.file_name(name) for name in names}) == len(names)


def test_no_verdict_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="verdict"):
        report.write(tmp_path)


def test_unknown_node_is_named(tmp_path: Path) -> None:
    campaign = alone(tmp_path / "main", 2).install()
    with pytest.raises(NodeprintError, match="cn9 is not part"):
        report.write(campaign, nodes=["cn9"])


def test_flagged_nodes_stand_beside_a_healthy_one(tmp_path: Path) -> None:
    cluster = text(report.write(fleet(tmp_path / "main", 9, cpus=4).install(), nodes=[])[0])
    assert "cn002, with a finding" in cluster and "cn004, with a finding" in cluster
    assert "against the median of 4 unsuspected nodes" in cluster
    assert not {f"cn{i:03d}, a usual peer" for i in (2, 3, 4, 5)} & set(re.findall(r"cn\d+, a usual peer", cluster))


def test_nodes_without_a_finding_have_no_pages_in_the_clusters_document(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    for i in range(5):
        made.add(f"cn{i}", MACHINES[16], seed=i, verdict="INCONCLUSIVE", text="noise hides core-in")
    made.add("odd", MACHINES[16], factor=1.1, verdict="DEVIATES", text="CCD 1 is slow.", findings=[FINDING])
    cluster, html, *_ = report.write(made.install(), nodes=[])
    assert re.findall(r'data-node="(\w+)"', html.read_text()) == ["odd"]
    seen = text(cluster)
    assert "INCONCLUSIVE, cn[0-4]: noise hides core-in" in seen
    assert "odd, with a finding" in seen and "of 4 unsuspected nodes" in seen, "inconclusive ones stand in for the same"
    assert FINDING["text"] in seen


def test_a_flagged_node_without_peers_says_so(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    for name in ("cn1", "cn2"):
        made.add(name, MACHINES[4], verdict="DEVIATES", text="slow", findings=[FINDING])
    assert "no difference map: it needs 3 peers without a finding, of which there are 0" in text(
        report.write(made.install(), nodes=[])[0]
    )


def test_the_runs_that_show_a_finding_are_marked(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    made.add("cn1", MACHINES[4], text="slow", rack="r7", findings=[{**FINDING, "runs": ["job1/run2"]}])
    shown = Shown.of(made.install() / "nodes/cn1")
    table = runs.table(shown.jobs, made.verdict["nodes"]["cn1"])
    (row,) = table.rows
    assert (row[1], row[table.header.index("runs with findings")]) == ("coherence-cas", "2")
    assert re.fullmatch(r"\d+(\.\d+)?, \d+(\.\d+)? ns", row[table.header.index("median of each run")])
    page = node_page(made.verdict, "cn1", shown, {}, {})
    assert "(rack r7)" in page.lead
    assert [section.blocks[0].title for section in page.sections if section.title == "Findings"] == ["CCD 5"]


def test_runs_that_are_no_evidence_are_marked_and_all_measurements_listed(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    quality = ["invalid: coherence-cas, job1/run2: 41 % of the pairs were disturbed"]
    made.add("cn1", MACHINES[4], verdict="INVALID", text="disturbed; measure it again", quality=quality)
    told = {"cells": {"values": {"latency_ns": "ns"}}, "kernel": "chase", "operation": "latency", "host": "cn1"}
    columns = {"latency_ns": np.full((1, 2, 4), 95.0), "flags": np.zeros((1, 2, 4), np.uint8)}
    run = {"run": 1, "start_time": "", "trailer": {}}
    chase = Measured("chase-latency", told, (run,), (0, 1), {"cpu": np.arange(4)}, {}, columns)
    made.jobs["cn1"][0]["chase-latency"] = chase
    table = runs.table(Shown.of(made.install() / "nodes/cn1").jobs, made.verdict["nodes"]["cn1"])
    assert table.marked == (0,)
    assert [row[1] for row in table.rows] == ["coherence-cas", "chase-latency"]
    assert [row[-1] for row in table.rows] == ["✕ invalid: run 2", ""]
    assert table.rows[1][table.header.index("median of each run")] == "95 ns"


def test_the_place_of_a_finding_in_cells_is_marked(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    row = {
        "measurement": "bandwidth-nodes", "name": "copy, own node", "unit": "B/s", "median": 1.1e11, "ci_low": None,
        "ci_high": None, "group": 1.1e11, "worst": "", "worst_value": 1e11, "cells": 1, "deviates": False,
    }  # fmt: skip
    place = {**row, "name": "memory of NUMA node 1", "median": 7.7e10, "deviates": True}
    made.add("cn1", MACHINES[4], verdict="SUSPECT", cells=[row, place])
    campaign = made.install()
    table = quantities.quantities([row, place])
    assert table.header == ("measurement", "of", "median", "group's median", "to it"), "no empty column"
    assert table.rows[1] == ("", "▲ memory of NUMA node 1", "77 GB/s", "110 GB/s", "-30.0 %")
    assert table.marked == (1,)
    assert "▲ memory of NUMA node 1" in text(report.write(campaign)[0])


def test_the_healthy_node_beside_a_flagged_one_is_the_most_usual(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    for number, factor in enumerate((1.02, 0.98, 1.0, 1.01, 0.99)):
        made.add(f"cn{number}", MACHINES[4], seed=number, factor=factor)
    made.add("odd", MACHINES[4], factor=1.2, verdict="DEVIATES", text="slow", findings=[FINDING])
    assert "cn2, a usual peer" in text(report.write(made.install(), nodes=[])[0])


def test_jobs_are_counted_where_the_method_is_told(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    made.add("cn1", MACHINES[4], **ALONE)
    made.jobs["cn1"] *= 2
    (method,) = methods.methods(Shown.of(made.install() / "nodes/cn1"), made.verdict)
    assert dict(method.facts)["passes, runs"] == "3 passes in each of 2 runs, in each of 2 jobs"


def test_warnings_that_differ_in_figures_share_a_line() -> None:
    nodes = {
        f"cn{i}": {
            "warnings": [{"id": "loud-cpus", "text": f"time was taken from CPU {i} (4{i}.5 %)", "advice": "look"}]
        }
        for i in range(9)
    }
    (only,) = cluster._shared_warnings(nodes, list(nodes), {})
    assert isinstance(only, Advice)
    assert (only.text, only.nodes) == ("time was taken from CPU 0 (40.5 %)", "all nodes")


def test_nodes_that_are_no_evidence_share_a_row() -> None:
    def said(outcome: str, text: str, **more: str) -> dict[str, str]:
        return {"verdict": outcome, "text": text, **more}

    nodes = {
        f"cn{i:03}": said("INVALID", f"coherence-cas, job1/run1: {30 + i % 40} % of the pairs were disturbed")
        for i in range(300)
    }
    nodes |= {f"down{i}": said("NOT MEASURED", "", reason="Slurm: DOWN", rack=f"r{i}") for i in range(4)}
    nodes |= {f"s{i}": said("SUSPECT", f"core {i} is slow") for i in range(4)}
    nodes |= {f"left{i}": said("NOT MEASURED", "", reason="left out by the sheet") for i in range(3)}
    looks = fleet_verdict.marks({"nodes": nodes})
    rows = node_table.folded(node_table.node_rows({"nodes": nodes}, looks, {}))
    shown = {row.node: (row.mark.word, row.note) for row in rows}
    first = "coherence-cas, job1/run1: 30 % of the pairs were disturbed (figures of cn000, those of the others differ)"
    assert shown.pop("cn[000-299]") == ("INVALID", first)
    assert shown.pop("down[0-3]") == ("NOT MEASURED", "Slurm: DOWN")
    assert set(shown) == {f"s{i}" for i in range(4)} | {f"left{i}" for i in range(3)}, "accusations and few stay single"
    assert [one.node for one in cluster.unmeasured(nodes, looks) if isinstance(one, Unmeasured)] == [
        "down[0-3]",
        "left0",
        "left1",
        "left2",
    ]


@pytest.mark.parametrize(
    "term, where, title",
    [
        ("core", {"core": 37, "cpu": 37}, "core 37 (CPU 37)"),
        ("link", {"quadrant": 0, "to_quadrant": 3}, "link quadrant 0 to quadrant 3"),
        ("jitter", {"core": 3, "cpu": 7}, "jitter: core 3 (CPU 7)"),
        ("clock", {}, "clock: the whole node"),
        ("class", {"class": 77}, "class class 77"),
        ("class", {"class": 6, "socket": 0}, "every pair"),
        ("spread", {}, "runs or passes that differ"),
        ("", "somewhere", "somewhere"),
    ],
)
def test_a_finding_is_titled_by_its_place(term: str, where: object, title: str) -> None:
    assert findings.title({"term": term, "where": where}) == title


def test_before_and_after(tmp_path: Path) -> None:
    """A node that was measured again is shown with its newest job, and what has changed."""
    made = Campaign(tmp_path / "main")
    made.add("cn1", MACHINES[4], seed=1, **ALONE)
    made.add("again", MACHINES[4], seed=2, factor=1.5, **ALONE)
    made.jobs["cn1"] += made.jobs.pop("again")
    seen = text(report.write(made.install(), nodes=["cn1"])[-1])
    assert "each pair in job 2 against job 1" in seen
    assert re.search(r"\b36\.\d\b", seen) and "job 2" in seen


def test_a_node_that_cannot_be_read_does_not_stop_the_report(tmp_path: Path) -> None:
    campaign = fleet(tmp_path / "main", 3, cpus=4).install()
    (campaign / "nodes" / "cn001" / "job1" / "topology.json").write_text("not what it says")
    cluster = report.write(campaign)[0]
    assert "is not a topology of nodeprint" in text(cluster) and "DEVIATES" in text(cluster)


def test_refused_node_shows_no_figures(tmp_path: Path) -> None:
    """Records of another host stay in the folder; what they hold is not this node's."""
    made = Campaign(tmp_path / "main")
    reason = "its records were written on host other, not on cn1: measure it again"
    made.add("cn1", MACHINES[4], header={"host": "other"}, verdict="NOT MEASURED", text="", reason=reason, classes=[])
    cluster, *_ = report.write(made.install())
    assert reason in text(cluster)
    assert "Core to core" not in text(cluster)


def test_unwritable_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NodeprintError, match="cannot be written"):
        report.write(alone(tmp_path / "main", 2).install(), out=tmp_path / "file" / "report")


def test_a_detection_limit_of_a_heavy_tail_is_no_figure() -> None:
    table = fleet_resolution._certainty({"smallest_effect": {"core": 0.19, "ccd": 0.6, "link": None}})
    assert {row[0]: row[1] for row in table.rows} == {
        "a core": "19.0 %", "a CCD to other CCDs": "cannot be detected with this data",
    }  # fmt: skip


def test_verdicts_differ_without_colour() -> None:
    for table in (outcomes.NODE, outcomes.FLEET):
        assert all(word == one.word for word, one in table.items())
    assert len({one.symbol for one in outcomes.NODE.values()}) == len(outcomes.NODE)
    assert len({one.rank for one in outcomes.NODE.values()}) == len(outcomes.NODE)


@pytest.mark.parametrize("cpus", [4, 64, 128, 256, 512])
def test_outlines_nest_and_cover(cpus: int) -> None:
    topology = MACHINES[cpus]
    drawn = figures.order([c.cpu for c in topology.cpus], topology)
    finer: set[int] | None = None
    for band in figures.bands(drawn, topology):
        cuts = {group.start for group in band.groups} | {group.stop for group in band.groups}
        assert sum(group.stop - group.start for group in band.groups) == cpus
        assert finer is None or cuts <= finer, "a coarser level cuts through a finer one"
        finer = cuts


def test_drawn_in_topology_order_whatever_the_numbers(tmp_path: Path) -> None:
    """Two machines that differ in their numbering alone are drawn alike."""
    made = Campaign(tmp_path)
    topology = machine(2, 1, 1, 2, 2)
    made.add("straight", topology, seed=3)
    turned = {c.cpu: 7 - c.cpu for c in topology.cpus}
    renumbered = sorted((replace(c, cpu=turned[c.cpu]) for c in topology.cpus), key=lambda c: c.cpu)
    made.add("turned", topology, seed=3)
    data = made.jobs["turned"][0]["coherence-cas"]
    places = {"home": data.places["home"], **{end: 7 - data.places[end] for end in "ab"}}
    made.jobs["turned"] = [{"coherence-cas": structs.replace(data, places=places)}]
    made.topologies["turned"] = replace(topology, cpus=tuple(renumbered))
    made.install()
    (straight,), (other,) = (Shown.of(tmp_path / "nodes" / name).matrices for name in ("straight", "turned"))
    assert other.cpus == tuple(turned[cpu] for cpu in straight.cpus) and other.cpus != straight.cpus
    np.testing.assert_array_equal(straight.values, other.values)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=20), st.floats(0.1, 1e6))
def test_scale_is_monotonic_and_missing_stays_missing(values: list[float], spread: float) -> None:
    low = min(values)
    entries = scale.Scale(low, low + spread).index([*sorted(values), np.nan])
    assert (np.diff(entries[:-1].astype(int)) >= 0).all() and entries[0] == 0
    assert entries[-1] == scale.MISSING and entries[:-1].max() < scale.LEVELS


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_lie_on_the_scale(low: float, length: float) -> None:
    found = scale.ticks(low, low + length)
    assert len(found) <= 10
    for value, label in found:
        assert low - 1e-6 * length <= value <= low + 1.000001 * length
        assert abs(float(label) - value) <= 1e-6 * max(1.0, abs(value), length)


def test_one_broken_node_keeps_the_contrast_of_the_others() -> None:
    healthy = scale.of_nodes([(20.0, 200.0)] * 40)
    assert scale.of_nodes([(20.0, 200.0)] * 40 + [(20.0, 2000.0)]) == healthy


def test_what_is_zero_is_shown_as_zero() -> None:
    """Nodes with the same records have no spread: rounding must not fill the colour bar with digits, or have a sign."""
    assert all(len(text) <= 7 for _, text in scale.of_nodes([(0.0, 1e-14)]).ticks())
    assert formatting.percent(-1e-5, signed=True) == "+0.0 %" and formatting.percent(-1e-5) == "0.0 %"


def test_node_lists_are_short() -> None:
    assert name_list([f"cn{i:03d}" for i in range(1, 401)]) == "cn[001-400]"
    assert name_list(["cn8", "cn9", "cn10"]) == "cn[8-10]"
    assert name_list(["a", "b"]) == "a, b"
    seen = cause_findings.seen_in([f"job{job}/run{run}" for job in (1, 2) for run in range(1, 10)])
    assert seen == "in job1/run[1-9], job2/run[1-9]"
    assert formatting.without_runs(f"core 7 is slower, {seen}") == "core 7 is slower"
    assert formatting.without_runs("core 7 is slower, in job1/run1, job1/run2") == "core 7 is slower"
    assert "and 3 more" in name_list([f"{c}x" for c in "abcdefghijklmno"])


def test_the_first_page_says_which_node_what_was_found_and_how_it_was_tested(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    for number in range(4):
        made.add(f"cn{number}", MACHINES[64], seed=number)
    known = {
        "bios": "2.4.1", "product": "R7525", "serials": "product 4711", "dimms": "16 x 64 GiB DDR4",
        "dimm_speed": "3200 MT/s", "cpu": "EPYC 7742", "sockets": 2, "cores": 128,
    }  # fmt: skip
    found = {**FINDING, "text": "CCD 5 is slow, in job1/run1, job1/run2", "where": {"ccd": 5}}
    made.add(
        "odd", MACHINES[64], factor=1.1, verdict="DEVIATES", text=found["text"], findings=[found], fingerprint=known
    )
    pages = text(report.write(made.install(), nodes=["odd"])[-1])
    first = pages[: pages.index("Core to core")]
    for words_ in (
        "CCD 5 is slow", "4711", "2.4.1", "R7525", "16 x 64 GiB DDR4, 3200 MT/s", "2 x EPYC 7742, 128 cores",
        "2026-01-01 to 2026-01-02", "pass a cache line to and fro", "make run NODES=odd",
        "kernels/build/coherence --passes 3 --out", "against the median of 4 peers",
    ):  # fmt: skip
        assert words_ in first, words_
    assert "CCD 5 is slow, in job1" not in first, "the runs are listed once, beside the finding"
    assert "degrees of freedom" not in first and "Method" not in first


def test_every_finding_has_a_figure_of_its_quantity(tmp_path: Path) -> None:
    plan = Plan(
        preset("naples-2x32"), nodes=5, jobs=2, runs=2, passes=1, cells=True,
        defects=("node001: memory-channel node 1 -20%", "node002: core-clock 9 -20%", "node003: ccd 3 +12%"),
    )  # fmt: skip
    campaign = write(plan, tmp_path / "sim")
    verdict = judge(campaign).to_dict()
    shown = {node: Shown.of(campaign / "nodes" / node) for node in verdict["nodes"]}
    peers = Peers()
    for node in ("node000", "node004"):
        peers.add(node, "", shown[node])
    seen = set()
    for node, said in verdict["nodes"].items():
        for item, one in zip(
            said["findings"], findings.findings(said, node, shown[node], peers, verdict["fleet"]["bound"]), strict=True
        ):
            seen.add(item["measurement"])
            (figure,) = one.figures
            assert len(figure.data["value"]) > 1, one.title
    assert {"bandwidth-nodes", "clock-together", "coherence-cas"} <= seen


@pytest.mark.parametrize(
    "word, node, command",
    [
        ("NOT MEASURED", "cn1", "make run"),
        ("SUSPECT", "cn1", "make run NODES=cn1"),
        ("DEVIATES", "cn1", "see its page, drain.sh"),
        ("DIFFERENT CONFIGURATION", "cn1", "nodeprint drift CAMPAIGN"),
        ("INCONCLUSIVE", "cn1", "see its page"),
        ("SAME", "cn1", ""),
    ],
)
def test_every_outcome_has_its_next_command(word: str, node: str, command: str) -> None:
    verdict = {"nodes": {node: {"verdict": word, "text": ""}}}
    (row,) = node_table.node_rows(verdict, fleet_verdict.marks(verdict), {})
    assert row.next == command


def test_the_columns_are_the_classes_in_which_a_flagged_node_differs(tmp_path: Path) -> None:
    names = ("same core", "same CCX", "same CCD", "same quadrant", "same socket", "other socket")

    def said(other: float, **more: object) -> dict[str, object]:
        return {
            "verdict": "SAME", "text": "", **more,
            "classes": [
                {"measurement": "coherence-cas", "home": -1, "name": name, "pairs": 9,
                 "median_ns": 100.0 * (other if name == "other socket" else 1.0)}
                for name in names
            ],
        }  # fmt: skip

    nodes = {f"cn{i}": said(1.0) for i in range(5)}
    assert node_table.explorer_rows({"nodes": nodes})[1] == ["same core, ns", "same CCX, ns", "same CCD, ns"]
    nodes["odd"] = said(1.1, verdict="DEVIATES", findings=[{**FINDING, "measurement": "coherence-cas"}])
    assert "other socket, ns" in node_table.explorer_rows({"nodes": nodes})[1]


def test_nodes_that_differ_in_configuration_are_listed(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    for number in range(4):
        made.add(f"cn{number}", MACHINES[4], seed=number, fingerprint={"bios": "2.1" if number == 3 else "2.0"})
    assert "BIOS 2.0 (3) 2.1: cn3" in text(report.write(made.install(), nodes=[])[0])


def test_large_fleets_have_files_of_flagged_nodes_alone(tmp_path: Path) -> None:
    made = fleet(tmp_path / "main", 130, cpus=2)
    names = {path.name for path in report.write(made.install())}
    assert names == {"cluster.pdf", "cluster.html", "cn002.pdf", "cn004.pdf"}


def test_places_of_nodes_are_shown(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    sheet = []
    for number in range(6):
        made.add(f"cn{number}", MACHINES[4], seed=number, rack=f"r{number // 3}")
        sheet.append(discover.Node(f"cn{number}", f"cn{number}", switch=f"leaf{number % 2}"))
    campaign = made.install()
    discover.write_sheet(campaign / "nodes.tsv", sheet)
    report.write(campaign, nodes=[], figures=True)
    drawn = (campaign / "report/figures/cluster/by-switch.svg").read_text()
    assert "leaf0" in drawn and "leaf1" in drawn
    assert "r0" in (campaign / "report/figures/cluster/by-rack.svg").read_text()


def test_a_campaign_without_nodes_has_a_page(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "main")
    assert "Cluster report" in text(report.write(made.install())[0])


def test_every_node_has_its_difference_from_the_fleet(tmp_path: Path) -> None:
    """In percent and in ns, pair by pair, and core by core with the bound and the margin as lines."""
    made = fleet(tmp_path / "main", 8)
    quiet = next(node for node, said in made.verdict["nodes"].items() if said.get("verdict") == "SAME")
    made.verdict["nodes"][quiet]["margins"] = {"core-near": {"within": 0.012}, "core-far": {"within": 0.015}}
    made.verdict["fleet"]["bound"] = {"core": 0.04}
    made.install()
    verdict = outputs.read(tmp_path / "main")
    task = report.prepared(tmp_path / "main", verdict, tmp_path / "out", [quiet])
    page = node_page(verdict, quiet, Shown.of(task.folders[quiet]), task.scales, task.fleet, task.peers)
    drawn = {one.name: one for one in page.figures()}
    percent, ns = (drawn[f"difference-{kind}-coherence-cas"] for kind in ("percent", "ns"))
    matrix = next(one for name, one in drawn.items() if name.startswith("coherence-cas"))
    base = np.asarray(matrix.data["value"]) - np.asarray(ns.data["value"])
    assert np.allclose(np.asarray(percent.data["value"]), 100 * np.asarray(ns.data["value"]) / base)
    cores = drawn["cores-coherence-cas"]
    assert "dashed: the bound" in cores.caption and "dotted" in cores.caption
    dashes = [mark.pen.dash for mark in cores.drawing.marks if isinstance(mark, Segments) and mark.pen.dash]
    assert dashes.count("1.2 0.8") == 2 and dashes.count("0.3 0.6") == 2


def test_every_caption_is_used_and_there() -> None:
    """A caption that no figure has is a leftover, and one that is not in the file would end the report."""
    texts = "".join(path.read_text() for path in (sources.folder() / "nodeprint/report").glob("*.py"))
    used = {*re.findall(r'captions\.of\(\s*"(\w+)"', texts), *re.findall(r'_(?:by_cpu|against)\(.*"(\w+)"\),', texts)}
    used |= set(re.findall(r"captions\.of\('(\w+)'", texts))
    assert used == set(yaml.safe_load((sources.folder() / "reports/captions.yaml").read_text()))
