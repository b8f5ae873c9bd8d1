"""The report: pages of nodes and of the cluster, as PDF and HTML, from typed verdicts and packed fleets."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from typer.testing import CliRunner

from nodeprint import simulate
from nodeprint.cli import app
from nodeprint.cli.shared import judge_and_write
from nodeprint.data.places.measured import models
from nodeprint.errors import CannotWriteError, NodeprintError
from nodeprint.judge.outcome import Certainty, Outcome, ReasonDetail
from nodeprint.judge.verdict import CellFigure, Component, Reason, Verdict
from nodeprint.machine.topology.presets import preset
from nodeprint.report import documents, names, pdf, text, verdict_files
from nodeprint.report.pages import accepted, cluster, medians, method
from nodeprint.report.pages import node as node_pages
from nodeprint.report.pages.blocks import FindingBlock, Page, Reference, Table, Text
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.tables import class_table, finding_numbers, state_mark
from nodeprint.settings.texts import say
from nodeprint.simulate import Plan
from tests.support import verdicts
from tests.support.fleets import judged, made
from tests.support.real_parts import need

HOSTILE = [
    "#panic()",
    "]$\\",
    "*_`<x>@y",
    '"#{1/0}"',
    "a" * 300,
    "<script>alert(1)</script>",
    "\u202e\x1b[31m",
    "{{ 7 * 7 }}",
    "名前",
    "\u0e01" * 14,
    "\u0928\u092e\u0938\u094d\u0924\u0947" * 3,
    "\u6f22" * 41,
    "a\u0300\u0301\u0302" * 10,
    "\U0001f469\u200d\U0001f467" * 8,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged campaign of four nodes of 2 x 64 cores, one of which has a slow core."""
    path = tmp_path_factory.mktemp("campaign")
    verdicts.campaign(path, "milan-2x64", nodes=4)
    return path


@pytest.fixture(scope="module")
def written(folder: Path) -> list[Path]:
    """Its report."""
    return documents.write(folder)


def source(folder: Path) -> Campaign:
    return documents.Task(folder, folder / "report", None, figures=None, pseudonyms=False).source


def words(path: Path, *, page: int = 0) -> str:
    """The text of a PDF, or of a page of it."""
    need("pdftotext")
    pages = ["-f", str(page), "-l", str(page)] if page else []
    done = subprocess.run(["pdftotext", "-layout", *pages, path, "-"], capture_output=True, text=True, check=True)
    return done.stdout


def changed(folder: Path, tmp_path: Path, change: Callable[[Verdict], Verdict]) -> Path:
    """The same measurements with another verdict."""
    target = tmp_path / "changed"
    (target / "store").mkdir(parents=True)
    (target / "store/fleet").symlink_to(folder / "store/fleet")
    verdict_files.write(change(verdict_files.read(folder)), target)
    return target


def findings(page: Page) -> list[FindingBlock]:
    return [block for section in page.sections for block in section.blocks if isinstance(block, FindingBlock)]


# --- documents ---


def test_pdf_is_tagged_with_outline_links_and_page_numbers(written: list[Path]) -> None:
    need("pdfinfo")
    info = subprocess.run(["pdfinfo", written[0]], capture_output=True, text=True, check=True).stdout
    assert re.search(r"Tagged: +yes", info)
    tree = subprocess.run(["pdfinfo", "-struct", written[0]], capture_output=True, text=True, check=True).stdout
    assert {"H1", "H2", "Table", "Figure", "Link"} <= set(re.findall(r"^ *(\w+)", tree, re.MULTILINE))
    assert re.search(r"1 of \d+", words(written[0], page=1))


def test_same_campaign_gives_same_bytes(folder: Path, written: list[Path], tmp_path: Path) -> None:
    again = documents.write(folder, tmp_path)
    assert [path.name for path in again] == [path.name for path in written]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(again, written, strict=True))


def test_every_page_is_marked_simulated(written: list[Path]) -> None:
    for path in (written[0], written[-1]):
        assert all("SIMULATED" in page for page in words(path).split("\f")[:-1])
    assert ">SIMULATED</p>" in written[1].read_text()


def test_pages_have_no_names_of_measurements_nor_words_of_records(written: list[Path]) -> None:
    """`store_mem`, `l1`, `cas`: what files call things; kernel parameters of Linux are the reader's own words."""
    records = re.compile(r"[a-z]+_[a-z_]+|\b(?:l[123]|cas|None|nan)\b|\d us\b|\\mathdefault")
    for path in (path for path in written if path.suffix == ".pdf"):
        read = words(path).replace("nohz_full", "")
        assert not records.findall(read) and not [name for name in models() if name in read]


def test_html_has_contents_and_the_same_sentences(written: list[Path]) -> None:
    html = written[1].read_text()
    assert 'href="#node-node001"' in html and 'id="node-node001"' in html
    anchors = set(re.findall(r'id="([^"]+)"', html))
    assert set(re.findall(r'<a href="#([^"?]+)"', html)) <= anchors
    assert "Core 37 (CPU 37) is 5.9% slower to the other cores of its socket than on its peers" in html
    assert len(html) < 4_000_000


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_and_settings_print_harmlessly(hostile: str, tmp_path: Path) -> None:
    node = verdicts.node(fingerprint={"cpu": hostile, "bios": hostile}, rack=hostile, log_tail=(hostile,))
    hostile_node = verdicts.node(Outcome.NOT_MEASURED, reasons=(Reason(Outcome.NOT_MEASURED, detail=hostile),))
    verdict_files.write(
        verdicts.verdict({hostile: node, "cn2": hostile_node, "cn3": verdicts.node()}, campaign=hostile), tmp_path
    )
    written = documents.write(tmp_path)
    assert all(path.resolve().is_relative_to(tmp_path / "report") and path.stat().st_size for path in written)
    html = written[1].read_text()
    assert "<script>alert" not in html and "\x1b" not in html and "49" not in re.findall(r"<h1>(.*?)</h1>", html)[0]


@given(st.text())
def test_every_string_becomes_one_printable_line(anything: str) -> None:
    assert pdf.line(anything).isprintable()


def test_hashes_and_commands_can_be_copied(folder: Path, tmp_path: Path) -> None:
    digest = "0123456789abcdef" * 4
    made = changed(folder, tmp_path, lambda v: replace(v, versions={"kernel coherence": digest}))
    written = documents.write(made)
    text = words(written[0])
    assert digest in written[1].read_text() and "\u200b" not in text
    assert "make run NODES=node001" in re.sub(r"\s+", " ", text)


def pages_of(path: Path) -> int:
    need("pdfinfo")
    done = subprocess.run(["pdfinfo", path], capture_output=True, text=True, check=True)
    return int(done.stdout.partition("Pages:")[2].split()[0])


def test_documents_are_as_long_as_a_person_reads(folder: Path, tmp_path: Path) -> None:
    finding = verdict_files.read(folder).nodes["node001"].findings[0]

    def all_deviate(verdict: Verdict) -> Verdict:
        nodes = {
            name: replace(node, outcome=Outcome.DEVIATES, findings=(finding,) * 30, log_tail=("a line",) * 40)
            for name, node in verdict.nodes.items()
        }
        many = {f"{name}-{number}": node for number in range(4) for name, node in nodes.items()}
        return replace(verdict, nodes={**nodes, **many})

    written = documents.write(changed(folder, tmp_path, all_deviate))
    printed = {path.name: pages_of(path) for path in written if path.suffix == ".pdf"}
    assert pdf.pages_of(written[0].read_bytes()) == printed["cluster.pdf"], "what the length is held by"
    assert 3 <= printed.pop("cluster.pdf") <= documents.MOST_PAGES
    assert len(printed) == 20 and max(printed.values()) <= documents.MOST_OF_NODE
    (same,) = documents.write(folder, tmp_path, nodes=["node002"])
    assert pages_of(same) == pdf.pages_of(same.read_bytes()) == documents.MOST_OF_SAME


def test_what_is_not_printed_is_in_the_html_and_in_tables(written: list[Path]) -> None:
    tables = {path.name: path.read_text() for path in written if path.parent.name == "tables"}
    assert tables["medians-over-the-fleet.csv"].startswith("measurement,of,nodes,median,lowest")
    html, paper = written[1].read_text(), words(written[0])
    for title in ("Medians over the fleet", "What these data can resolve", "How to cite this"):
        assert title in html and title not in paper


# --- the node's page ---


def test_first_page_has_finding_tolerance_machine_and_what_is_expected(written: list[Path]) -> None:
    page = words(next(path for path in written if path.name == "node001.pdf"), page=1)
    assert "DEVIATES" in page and "AMD EPYC 7713" in page and "serial numbers" in page
    assert "interval 5.5 to 6.2%; tolerance 4%: 1.5 times" in re.sub(r"\s+", " ", page)
    assert "CPU 37: socket 0" in page and "117 ns" in page and "at most 122 ns" in page


def test_every_finding_has_a_figure_of_its_own_places(folder: Path, tmp_path: Path) -> None:
    cell = {"core": 8, "cpu": 8, "memory_node": 1}
    memory = verdicts.memory_finding(component=Component("numa", "numa", cell), cells=({"cpu": 8, "memory_node": 1},))

    def with_memory(verdict: Verdict) -> Verdict:
        node = verdict.nodes["node001"]
        return replace(verdict, nodes={**verdict.nodes, "node001": replace(node, findings=(*node.findings, memory))})

    blocks = findings(node_pages.page(source(changed(folder, tmp_path, with_memory)), "node001"))
    assert [bool(block.figures) for block in blocks] == [True, True]
    core, cells = (block.figures[0].caption for block in blocks)
    assert core.startswith("Core-to-core latency of node001 in core 37 (CPU 37)"), core
    assert cells.startswith("Memory latency of node001"), cells


def test_nodes_that_were_not_measured_show_their_reason_and_no_figure(folder: Path, tmp_path: Path) -> None:
    def refused(verdict: Verdict) -> Verdict:
        reasons = (Reason(Outcome.NOT_MEASURED, detail="drained: bad fan"),)
        node = verdicts.node(Outcome.NOT_MEASURED, reasons=reasons, classes=(), cells=(), agreements=())
        return replace(verdict, nodes={**verdict.nodes, "node002": node})

    written = documents.write(changed(folder, tmp_path, refused))
    assert "node002.pdf" not in {path.name for path in written}
    assert re.search(r"node002 .* Drained: bad fan", words(written[0]))


def test_single_node_has_one_document_without_a_page_of_the_cluster(tmp_path: Path) -> None:
    verdicts.campaign(tmp_path, "graviton3-64", nodes=1)
    text = words(documents.write(tmp_path)[0])
    assert "Cluster report" not in text and "node000" in text and "How it was measured" in text


def test_mixtures_are_named_by_group_and_have_no_median() -> None:
    mixed = replace(verdicts.classes()[1], median_ns=191.0, groups={"socket 0": 132.0, "socket 1": 267.0})
    table = class_table((mixed,))
    name = mixed.name
    assert [row[1:3] for row in table.rows] == [(f"{name}, socket 0", "132 ns"), (f"{name}, socket 1", "267 ns")]
    assert not any("191" in str(cell) for cell in table.rows[0])


# --- the cluster's page ---


def test_first_page_says_who_deviates_with_figure_command_and_link(folder: Path) -> None:
    page = cluster.page(source(folder), {"node001": Reference("node001", file="node001.pdf")})
    found = "; FAIL (DEVIATES): node001 (core-to-core latency of core 37 (CPU 37) +5.9%, tolerance 4%)."
    assert page.lead[0].startswith("3 of 4 nodes match; ") and page.lead[0].endswith(found)
    assert text.first_line(source(folder).verdict).endswith(" ".join(page.lead)), "page 1 and terminal say the same"
    (block,) = findings(page)
    assert block.figures and block.links[0].file == "node001.pdf"
    assert block.numbers is not None and block.numbers.rows[0][:3] == ("124 ns", "117 ns", "+5.9%")
    titles = [section.title for section in page.sections]
    assert titles[:3] == ["What was measured, and when", "Tolerances", "Nodes that do not pass"]
    (row,) = next(block for block in page.sections[2].blocks if isinstance(block, Table)).rows
    assert row[0] == Reference("node001", file="node001.pdf") and row[2:5] == (
        "core-to-core latency of core 37 (CPU 37)",
        "+5.9%",
        "4%",
    )
    assert row[-1] == Reference("", anchor=block.anchor)


def test_a_limit_is_shown_as_a_limit_and_not_as_a_tolerance_of_peers(tmp_path: Path) -> None:
    component = Component("limit", "limit", {"figure": "same socket", "reason": "contract"})
    beyond = verdicts.finding(
        1.05, id="limit", component=component, value=205.0, peers=100.0, tolerance=0.0, times_tolerance=0.0
    )
    table = finding_numbers(beyond)
    assert table is not None and table.header == ("measured", "limit", "beyond it", "interval")
    assert table.rows[0][:3] == ("205 ns", "at most 100 ns", "+105.0%")
    nodes = {f"cn{n}": verdicts.node(Outcome.OUT_OF_SPEC, findings=(beyond,)) for n in range(3)}
    verdict_files.write(verdicts.verdict(nodes), tmp_path)
    page = cluster.page(source(tmp_path), {})
    (found,) = (section for section in page.sections if section.title == "Nodes that do not pass")
    (block,) = found.blocks
    assert isinstance(block, Table) and [(row[0], *row[3:5]) for row in block.rows] == [
        ("cn[0-2]", "+105.0%", "100 ns")
    ]
    assert any("FAIL (OUT OF SPEC): cn[0-2]" in words for words in page.lead)
    (shown,) = (section for section in page.sections if section.title == "Findings")
    blocks = [block for block in shown.blocks if isinstance(block, FindingBlock)]
    assert len(blocks) == 3 and not any(block.figures for block in blocks)
    assert {block.mark.word for block in blocks} == {"outside a limit of the contract"}
    assert blocks[0].title.endswith("core-to-core latency (same socket)")


def test_nodes_are_sorted_by_severity() -> None:
    weak = verdicts.node(Outcome.DEVIATES, findings=(verdicts.finding(),))
    strong = verdicts.node(Outcome.DEVIATES, findings=(verdicts.memory_finding(),))
    assert cluster.shown_nodes({"a": weak, "b": verdicts.node(), "c": strong}) == ["c", "a"]


def test_machines_without_a_peer_have_no_median_over_the_fleet(tmp_path: Path) -> None:
    alone = {f"cn{n}": verdicts.node(Outcome.NO_PEERS) for n in range(3)}
    verdict_files.write(verdicts.verdict(alone), tmp_path)
    page = cluster.page(source(tmp_path), {})
    assert "Medians over the fleet" not in [section.title for section in page.sections]


def test_first_page_of_a_table_has_its_file_and_says_that_no_time_is_known(tmp_path: Path) -> None:
    nodes = {f"cn{n}": verdicts.node(measured="") for n in range(3)}
    verdict_files.write(replace(verdicts.verdict(nodes), versions={"table": "figures.csv, SHA-256 00ff"}), tmp_path)
    rows = dict(accepted.rows(source(tmp_path)))
    assert (rows["table"], rows["measured"]) == ("figures.csv", "not recorded")


def test_pages_of_a_table_have_the_values_of_its_metrics() -> None:
    """They show which performance was accepted, as those of a measured campaign do."""
    plain: Any = (99.0, 103.0, 101.0, {}, math.nan, 1, 3, 0.1)
    cells = [CellFigure("gb_per_s", "all", "GB/s", 100.0 + n, *plain) for n in range(3)]
    table = medians.on_paper({f"cn{n}": verdicts.node(cells=(cell,)) for n, cell in enumerate(cells)})
    assert table.rows[-1][0] == "gb_per_s"
    assert {"101 GB/s", "100 GB/s", "cn0", "102 GB/s", "cn2"} <= {str(cell) for cell in table.rows[-1]}


@pytest.mark.parametrize("jobs", [1, 2])
def test_figures_and_sentences_name_their_job_beside_medians_of_several(jobs: int) -> None:
    """Their values are those of one job: 46.9 GB/s beside a median of 47.0 GB/s."""
    changes: Any = {"jobs": jobs, "nodes": 3, "cells": True, "machine": "naples-2x32"}
    campaign = Campaign(judged(**changes).verdict, made(**changes))
    page = node_pages.page(campaign, "node001", [])
    said = {
        section.title: block.text
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Text) and block.text.startswith("Figures and sentences")
    }
    words = "Figures and sentences here are of job2. Medians in tables are over 2 jobs."
    titles = ("headings", "pairs"), ("headings", "cells")
    assert said == ({say(*key): words for key in titles} if jobs > 1 else {})


def test_configuration_differences_are_listed() -> None:
    nodes = {f"cn{n}": verdicts.node() for n in range(4)}
    nodes["cn9"] = verdicts.node(fingerprint={**verdicts.node().fingerprint, "bios": "2.5"})
    assert cluster.differences(nodes).rows == (("BIOS", "", "2.4.8 (4)", "2.5: cn9"),)


def test_large_fleets_have_files_of_nodes_with_something_found(tmp_path: Path) -> None:
    nodes = {f"cn{n:03}": verdicts.node() for n in range(80)}
    nodes |= {f"cn{n:03}": verdicts.node(Outcome.INCONCLUSIVE, ReasonDetail.UNRESOLVED) for n in range(10, 40)}
    nodes["cn007"] = verdicts.node(Outcome.DEVIATES, findings=(verdicts.finding(),))
    verdict_files.write(verdicts.verdict(nodes), tmp_path)
    written = [path.name for path in documents.write(tmp_path)]
    assert [name for name in written if not name.endswith(".csv")] == ["cluster.pdf", "cluster.html", "cn007.pdf"]


def test_nodes_that_are_named_are_written_alone(tmp_path: Path) -> None:
    nodes = {f"cn{n:03}": verdicts.node() for n in range(80)}
    verdict_files.write(verdicts.verdict(nodes), tmp_path)
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--nodes", "cn[017-018],cn040"])
    written = [f"{tmp_path}/report/{name}.pdf" for name in ("cn017", "cn018", "cn040")]
    assert done.output.split() == written and sorted(map(str, (tmp_path / "report").iterdir())) == written
    for wrong, sentence in (
        ("cn[017-018],cn9", "no node cn9 in this campaign"),
        ("cn[", "is no list of nodes"),
        ("", "no node"),
    ):
        done = CliRunner().invoke(app, ["report", str(tmp_path), "--nodes", wrong])
        assert isinstance(done.exception, NodeprintError) and sentence in str(done.exception)


def test_method_answers_follow_the_campaign(folder: Path) -> None:
    campaign = source(folder)
    nodes = list(campaign.verdict.nodes.values())
    answers = dict(method.answers(campaign, nodes))
    assert answers["subsets"] == "4 nodes of 4 measured" and answers["spread"].startswith("9 runs a figure")
    one_run = [replace(node, classes=tuple(replace(c, runs=1) for c in node.classes), cells=()) for node in nodes]
    answers = dict(method.answers(campaign, one_run))
    assert "12 figures of one run without an interval" in answers["spread"] and "normality" not in answers


# --- files ---


@pytest.mark.parametrize("node", ["..", "a/b", "cluster", "figures", "x" * 300, "", "\x00", "-"])
def test_file_names_stay_in_their_folder(node: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]*-[0-9a-f]{8}\.pdf", documents.file_name(node))
    assert documents.file_name("cn001") == "cn001.pdf" and names.file_stem("a b") != names.file_stem("a_b")


def test_without_verdict_or_with_an_unknown_node_the_error_is_a_sentence(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="not a campaign directory; specify one"):
        documents.write(tmp_path)
    (tmp_path / "nodes.tsv").touch()
    with pytest.raises(NodeprintError, match="no verdict yet"):
        documents.write(tmp_path)
    with pytest.raises(NodeprintError, match="no node cn9 in this campaign; its nodes are "):
        documents.write(folder, tmp_path, nodes=["node001", "cn9"])
    assert [path.name for path in tmp_path.iterdir()] == ["nodes.tsv"]


@pytest.mark.parametrize("name", ["report", "report/tables", "report/figures"])
def test_no_report_goes_through_a_link_in_the_campaign(name: str, folder: Path, tmp_path: Path) -> None:
    """Who may write into a shared folder could have files of the caller replaced by ours."""
    campaign, theirs = tmp_path / "c", tmp_path / "theirs"
    shutil.copytree(folder, campaign, ignore=shutil.ignore_patterns("report"))
    theirs.mkdir()
    (theirs / "cluster.pdf").write_text("theirs")
    (campaign / name).parent.mkdir(exist_ok=True)
    (campaign / name).symlink_to(theirs)
    with pytest.raises(CannotWriteError, match=f"{name}: is a symbolic link"):
        documents.write(campaign)
    assert [(path.name, path.read_text()) for path in theirs.iterdir()] == [("cluster.pdf", "theirs")]


def test_pseudonyms_leave_no_name(folder: Path, tmp_path: Path) -> None:
    def named(verdict: Verdict) -> Verdict:
        node = replace(verdict.nodes["node001"], rack="row7", fingerprint={"serials": "product S4711", "cpu": "EPYC"})
        return replace(verdict, nodes={**verdict.nodes, "node001": node})

    made = changed(folder, tmp_path, named)
    written = documents.write(made, pseudonyms=True)
    assert {path.parent.name for path in written} == {"published", "tables"} and (made / "pseudonyms.tsv").exists()
    elsewhere = documents.write(made, tmp_path / "www/pages", pseudonyms=True)[0]
    assert elsewhere.exists() and not list((tmp_path / "www").rglob("*.tsv"))
    text = written[1].read_text() + words(written[0])
    assert not any(name in text for name in ("node001", "row7", "S4711")) and "N002" in text


def test_figures_are_files_with_their_origin(folder: Path, tmp_path: Path) -> None:
    written = documents.write(folder, tmp_path, nodes=["node002"], figures=True)
    tables = [path for path in written if path.suffix == ".csv"]
    assert {path.parent.name for path in tables} == {"node002"}
    first = (tmp_path / "figures/node002/coherence-cas.csv").read_text().splitlines()
    assert first[0].startswith("# campaign") and first[0].endswith("SIMULATED")
    assert "latency (round trip / 2), ns" in first[1]


# --- jobs ---


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged campaign of two nodes with records."""
    plan = Plan(preset("naples-2x32"), nodes=2, jobs=2, runs=2, cells=True)
    path = simulate.write(plan, tmp_path_factory.mktemp("measured") / "main")
    judge_and_write(path)
    return path


def test_pages_of_a_campaign_whose_records_are_gone_are_the_same(measured: Path, tmp_path: Path) -> None:
    gone = tmp_path / "main"
    shutil.copytree(measured, gone)
    shutil.rmtree(gone / "nodes")
    (gone / "nodes.tsv").unlink()
    page, without = (node_pages.page(source(folder), "node001") for folder in (measured, gone))
    titles = [section.title for section in page.sections]
    assert "Runs" in titles and titles == [section.title for section in without.sections]
    assert page.sections == without.sections
    of_jobs = [source(folder).jobs("node001") for folder in (measured, gone)]
    assert of_jobs[0] and method.of_jobs(of_jobs[0]) == method.of_jobs(of_jobs[1])


def test_pages_say_where_records_have_other_jobs_than_were_judged(measured: Path, tmp_path: Path) -> None:
    fewer = tmp_path / "main"
    shutil.copytree(measured, fewer)
    shutil.rmtree(fewer / "nodes/node001/job2")
    before, after = (" ".join(node_pages.page(source(folder), "node001").lead) for folder in (measured, fewer))
    said = "Its records are of job1 now, and job1 and job2 were judged: judge the campaign again."
    assert said not in before and said in after
    assert said not in " ".join(node_pages.page(source(fewer), "node000").lead)


@pytest.mark.parametrize("certainty", Certainty)
def test_every_certainty_of_a_finding_has_a_mark_and_words(certainty: Certainty) -> None:
    mark = state_mark(verdicts.finding(state=certainty))
    assert mark.symbol and mark.word and mark.color in {"alarm", "warning"}
