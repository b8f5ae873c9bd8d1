"""The acceptance protocol: outcomes of several campaigns, the rules they were judged by, and a manifest that holds."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from nodeprint import simulate
from nodeprint.campaign import derived
from nodeprint.cli.shared import judge_and_write
from nodeprint.data.store import packed
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance, of_table
from nodeprint.judge.outcome import Accepted, Certainty, FleetOutcome, Outcome
from nodeprint.judge.verdict import Component, Group, Limit, NodeVerdict, Reason
from nodeprint.machine.topology.presets import preset
from nodeprint.report import protocol, verdict_files
from nodeprint.report.pages import accepted, not_passing
from nodeprint.report.pages.blocks import SiteTexts, word
from nodeprint.report.pdf import Printer
from nodeprint.settings.texts import say
from nodeprint.simulate import Plan
from tests.support import blocks, verdicts
from tests.support.real_parts import ROOT, need

SAME, DEVIATES, MISSED = Outcome.SAME, Outcome.DEVIATES, Outcome.NOT_MEASURED


def node(outcome: Outcome) -> NodeVerdict:
    fingerprint = {"serials": "product S4711"}
    if outcome is DEVIATES:
        return verdicts.node(outcome, findings=(verdicts.finding(),), fingerprint=fingerprint)
    if outcome is MISSED:
        reasons = (Reason(Outcome.NOT_MEASURED, detail="drained: DIMM 7 is bad"),)
        return verdicts.node(outcome, reasons=reasons, fingerprint={})
    return verdicts.node(outcome, fingerprint=fingerprint)


def campaign(folder: Path, site: str = "", **outcomes: Outcome) -> Path:
    folder.mkdir(parents=True)
    nodes = {name: node(outcome) for name, outcome in outcomes.items()}
    verdict_files.write(verdicts.verdict(nodes, campaign=folder.name), folder)
    if site:
        (folder / "config.yaml").write_text(f"site: {site}\n")
    return folder


def words(campaigns: list[Path], to: Path) -> str:
    need("pdftotext")
    pdf = protocol.write(campaigns, to)[1]
    done = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split())


def test_pages_have_parties_tolerances_list_and_then_signatures(tmp_path: Path) -> None:
    site = "{customer: 'University X', supplier: 'Vendor Y', system: 'cluster Z', contract: 'number 4711', place: Ulm}"
    first = campaign(tmp_path / "first", cn1=SAME, cn2=DEVIATES, cn3=MISSED)
    (tmp_path / "own.yaml").write_text(
        "limits: [{measurement: coherence-cas, class: same socket, at_most: 220, reason: clause 8}]\n"
    )
    acceptance.keep(tmp_path / "own.yaml", first)
    second = campaign(tmp_path / "second", site, cn1=SAME, cn2=SAME, cn3=SAME)
    text = words([first, second], tmp_path / "to")
    for component in ("University X", "Vendor Y", "cluster Z", "number 4711", "Ulm", "S4711", "clause 8"):
        assert component in text, component
    order = ["Acceptance report", "Decision", "Open items", "Tolerances", "Signatures", "All nodes", "Versions"]
    at = [text.index(word) for word in order]
    assert at == sorted(at)
    assert "(CPU 37)" in text and "+5.9%" in text and "Drained: DIMM 7" in text
    assert "A node is SAME only if the data show" in text
    assert "Look for interrupts" in text and "until (date)" in text, "a remedy and a deadline"


@pytest.mark.parametrize(
    ("outcomes", "result"),
    [
        ([SAME, SAME], "accepted"),
        ([SAME, MISSED], "open"),
        ([SAME, None], "open"),
        ([SAME, DEVIATES], "deviation"),
        ([Outcome.INCONCLUSIVE], "open"),
        ([Outcome.SPLIT, SAME], "deviation"),
        ([], "open"),
    ],
)
def test_node_is_accepted_where_it_is_same_in_every_campaign(outcomes: list[Outcome | None], result: str) -> None:
    assert protocol.result(outcomes) == result


@pytest.mark.parametrize(
    ("outcomes", "fleet", "decided"),
    [
        ([SAME] * 10, FleetOutcome.UNIFORM, "accepted"),
        ([SAME] * 9 + [DEVIATES], FleetOutcome.DEVIATIONS, "accepted with reservations"),
        ([SAME] * 9 + [MISSED], FleetOutcome.UNIFORM, "accepted with reservations"),
        ([SAME] * 6 + [MISSED] * 4, FleetOutcome.UNIFORM, "accepted with reservations"),
        ([SAME] * 5 + [MISSED] * 5, FleetOutcome.UNIFORM, "not decided"),
        ([SAME] * 5 + [DEVIATES] * 5, FleetOutcome.DEVIATIONS, "rejected"),
        ([SAME] * 3 + [DEVIATES] * 3 + [MISSED] * 4, FleetOutcome.DEVIATIONS, "not decided"),
        ([SAME] * 9 + [DEVIATES], FleetOutcome.NON_UNIFORM, "rejected"),
        ([SAME] * 10, FleetOutcome.SPLIT, "rejected"),
        ([Outcome.NO_PEERS], FleetOutcome.NO_PEERS, "not decided"),
        ([], FleetOutcome.NOT_MEASURED, "not decided"),
    ],
)
def test_decision_follows_from_the_list(outcomes: list[Outcome], fleet: FleetOutcome, decided: str) -> None:
    made = verdicts.verdict({f"cn{number}": node(outcome) for number, outcome in enumerate(outcomes)})
    made = replace(made, fleet=replace(made.fleet, outcome=fleet), fabric=())
    assert protocol.decision([protocol.result([outcome]) for outcome in outcomes], [made]) == decided


def test_slow_messages_are_no_acceptance_without_reservations() -> None:
    made = verdicts.verdict({"cn1": node(SAME)})
    fabric = verdicts.fabric()
    made = replace(made, fleet=replace(made.fleet, outcome=FleetOutcome.UNIFORM), fabric=(fabric,))
    assert fabric.findings and protocol.decision([Accepted.ACCEPTED], [made]) == "accepted with reservations"


def test_tolerances_are_a_file_whose_hash_is_printed(tmp_path: Path) -> None:
    made = campaign(tmp_path / "first", cn1=SAME)
    (tmp_path / "own.yaml").write_text("tolerances: {percent: {core: 8}}\n")
    acceptance.keep(tmp_path / "own.yaml", made)
    judged_by = {"acceptance": acceptance.name(acceptance.kept(made))}
    verdict_files.write(replace(verdict_files.read(made), versions=judged_by), made)
    text = words([made], tmp_path / "to")
    digest = hashlib.sha256((tmp_path / "to/acceptance-first.yaml").read_bytes()).hexdigest()
    assert digest in text.replace(" ", "") and "judged by another file" not in text
    assert "acceptance-first.yaml" in (tmp_path / "to/MANIFEST.sha256").read_text()
    acceptance.keep_rules(acceptance.load(), made)
    assert "judged by another file" in words([made], tmp_path / "to"), "rules that changed after the verdict"


def test_what_another_version_packed_has_its_dates(tmp_path: Path) -> None:
    """The protocol of a campaign of which no date is known says so."""
    made = tmp_path / "first"
    simulate.write(Plan(preset("graviton3-64"), nodes=3, runs=1, passes=1), made)
    judge_and_write(made)
    index = made / "store" / "fleet" / "index.json"
    index.write_text(index.read_text().replace(f'"schema":{derived.SCHEMA}', '"schema":1'))
    with pytest.raises(NodeprintError, match="schema version 1"):
        packed.read(made)
    assert protocol.judged(made).first[:4] == "2026"
    alone = campaign(tmp_path / "second", cn1=SAME)
    assert "not recorded" in words([alone], tmp_path / "to")


def test_manifest_holds_and_the_same_campaigns_give_the_same_bytes(tmp_path: Path) -> None:
    made = campaign(tmp_path / "first", cn1=SAME)
    table = tmp_path / "table.csv"
    table.write_text("node,triad\ncn1,3000\n")
    (made / of_table.TABLES).write_text(f"{hashlib.sha256(table.read_bytes()).hexdigest()}  ../table.csv\n")
    paths = protocol.write([made], tmp_path / "to")
    assert "  ../table.csv\n" in paths[0].read_text()
    subprocess.run(["sha256sum", "-c", "MANIFEST.sha256"], cwd=tmp_path / "to", check=True, capture_output=True)
    before = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in protocol.write([made], tmp_path / "to")] == before
    table.write_text("node,triad\ncn1,3500\n")
    protocol.write([made], tmp_path / "to")
    changed = subprocess.run(
        ["sha256sum", "-c", "MANIFEST.sha256"], cwd=tmp_path / "to", check=False, capture_output=True
    )
    assert b"../table.csv: FAILED" in changed.stdout, (
        "a table that changed after it was judged is none of the protocol's"
    )


def test_mixed_and_repeated_campaigns_are_refused(tmp_path: Path) -> None:
    first = campaign(tmp_path / "first", cn1=SAME)
    with pytest.raises(NodeprintError, match="named twice"):
        protocol.write([first, first], tmp_path)
    second = campaign(tmp_path / "second", cn1=SAME)
    verdict_files.write(replace(verdict_files.read(second), simulated=True), second)
    with pytest.raises(NodeprintError, match="simulated and measured campaigns are mixed"):
        protocol.write([first, second], tmp_path)


def test_two_machines_of_one_name_are_refused(tmp_path: Path) -> None:
    """A report of a Milan and a Genoa fleet with the same names had one system, that of the second."""
    folders = [campaign(tmp_path / name, cn1=SAME) for name in ("first", "second")]
    for folder, cpu in zip(folders, ("AMD EPYC 7763", "AMD EPYC 9654"), strict=True):
        made = verdict_files.read(folder)
        nodes = {name: replace(node, fingerprint={"cpu": cpu}) for name, node in made.nodes.items()}
        verdict_files.write(replace(made, nodes=nodes), folder)
    with pytest.raises(NodeprintError, match=r"cn1 is not one machine: .* EPYC 7763 in first and AMD EPYC 9654 in s"):
        protocol.write(folders, tmp_path)


def test_a_copy_of_a_campaign_is_refused_also_under_another_name(tmp_path: Path) -> None:
    """One measurement is no evidence twice, also where the copy was judged by itself."""
    made = tmp_path / "first"
    simulate.write(Plan(preset("graviton3-64"), nodes=3, runs=1, passes=1), made)
    judge_and_write(made)
    copy = shutil.copytree(made, tmp_path / "second")
    sheet = copy / "nodes.tsv"
    sheet.write_text(sheet.read_text().replace("node000", "cn1"))
    (copy / "nodes/node000").rename(copy / "nodes/cn1")
    judge_and_write(copy)
    with pytest.raises(NodeprintError, match=r"nodes/cn1/job1/run1.*is also a record of first"):
        protocol.write([made, copy], tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_open_items_are_the_rows_of_page_1_of_each_campaign_and_absent_nodes(tmp_path: Path) -> None:
    suspect = verdicts.node(Outcome.SUSPECT, findings=(verdicts.finding(state=Certainty.SUSPECTED),))
    intermittent = replace(suspect, outcome=Outcome.INTERMITTENT)
    missed = {f"cn{n:03}": node(MISSED) for n in range(10, 30)}
    first = verdicts.verdict({"cn1": suspect, "cn2": intermittent, "cn3": node(SAME), **missed}, campaign="first")
    second = verdicts.verdict({name: node(SAME) for name in first.nodes if name != "cn3"}, campaign="second")
    campaigns = [protocol.JudgedCampaign(tmp_path, verdict, "", "", {}) for verdict in (first, second)]
    rows = blocks.rows(protocol.content(campaigns, "", SiteTexts()), "Open items")
    page_1 = not_passing.table(first, {}, {})
    shared = [name for name in page_1.header if name != "page"]
    expected = [dict(zip(page_1.header, map(word, row), strict=True)) for row in page_1.rows]
    of_first = [{name: row[name] for name in shared} for row in rows if row["campaign"] == "first"]
    assert of_first == [{name: row[name] for name in shared} for row in expected] and len(of_first) == 3
    assert {row["rack"] for row in rows[:2]} == {"r1"} and rows[0]["done"] and rows[0]["until (date)"]
    assert all(
        row["what to do"].startswith("Confirm it by another job. If it is confirmed: Look for") for row in rows[:2]
    )
    assert [(row["campaign"], row["node"], row["what differs"]) for row in rows[3:]] == [
        ("second", "cn3", "Not part of this campaign")
    ]


def test_open_nodes_of_one_reason_share_a_row_and_all_reasons_have_one(tmp_path: Path) -> None:
    reasons = {f"cn{n:03}": Reason(MISSED, detail=f"fan {n // 2} is bad") for n in range(40)}
    nodes = {name: verdicts.node(MISSED, reasons=(reason,), fingerprint={}) for name, reason in reasons.items()}
    made = protocol.JudgedCampaign(tmp_path, verdicts.verdict(nodes), "", "", {})
    rows = blocks.rows(protocol.content([made], "", SiteTexts()), "Open items")
    assert [row["node"] for row in rows[:2]] == ["cn[000-001]", "cn[002-003]"] and len(rows) == 20
    assert "campaign" not in rows[0]


def test_signatures_stand_below_the_list_of_files_on_every_length_of_a_page(tmp_path: Path) -> None:
    need("pdftotext")
    alone = list[int]()
    with Printer() as printer:
        for rows in range(24):
            reasons = {f"cn{n}": (Reason(MISSED, detail=f"fan {n} is bad"),) for n in range(rows)}
            nodes = {name: verdicts.node(MISSED, reasons=of, fingerprint={}) for name, of in reasons.items()}
            verdict = verdicts.verdict({**nodes, "cn98": node(SAME), "cn99": node(SAME)})
            content = protocol.content([protocol.JudgedCampaign(tmp_path, verdict, "", "", {})], "", SiteTexts())
            read = subprocess.run(["pdftotext", "-", "-"], input=printer.pdf(content), capture_output=True, check=True)
            (signed,) = (page for page in read.stdout.decode().split("\f") if "Signatures" in page)
            alone += [] if "MANIFEST.sha256 lists" in signed else [rows]
    assert not alone


@pytest.mark.parametrize(
    ("outcome", "headers"),
    [
        (FleetOutcome.UNIFORM, {"measurement": "memory bandwidth", "median": "161 GB/s"}),
        (FleetOutcome.SPLIT, {"medians of the groups": "memory bandwidth", "A": "161 GB/s", "B": "161 GB/s"}),
    ],
)
def test_the_accepted_performance_is_a_table_for_each_campaign(
    tmp_path: Path, outcome: FleetOutcome, headers: dict[str, str]
) -> None:
    made = verdicts.verdict({"cn1": node(SAME), "cn2": node(SAME)})
    fleet = replace(made.fleet, outcome=outcome, groups=(Group("A", ("cn1",)), Group("B", ("cn2",))))
    of_each = [replace(made, fleet=fleet, campaign=name) for name in ("first", "second")]
    content = protocol.content([protocol.JudgedCampaign(tmp_path, of, "", "", {}) for of in of_each], "", SiteTexts())
    for name in ("first", "second"):
        rows = blocks.rows(content, f"Measured values of {name}")
        assert any(headers.items() <= row.items() for row in rows), rows


def test_tolerances_of_a_metric_that_decides_are_a_row(tmp_path: Path) -> None:
    made = campaign(tmp_path / "first", cn1=SAME)
    limits = [
        Limit(metric, measurement, component_type, "numa", effect, 0.05)
        for metric, measurement, component_type, effect in (
            ("memory", "chase-latency", "ccd", 0.06),
            ("memory", "chase-latency", "cpu", 0.08),
            ("jitter", "jitter-detours", "cpu", 0.08),
        )
    ]
    verdict = verdict_files.read(made)
    verdict_files.write(replace(verdict, fleet=replace(verdict.fleet, limits=tuple(limits))), made)
    text = words([made], tmp_path / "to")
    assert "memory latency 5% 6.0 to 8.0%" in text and "OS noise" not in text
    slow = verdicts.finding(measurement="jitter-detours", component=Component("jitter", "jitter", {"core": 3}))
    found = replace(verdict, fleet=replace(verdict.fleet, limits=tuple(limits)))
    found = replace(found, nodes={"cn1": replace(node(DEVIATES), findings=(slow,))})
    near = verdicts.agreement("memory")
    of_noise = replace(near, metric="jitter", criterion=False, within=0.44)
    found = replace(found, fleet=replace(found.fleet, agreements=(near, of_noise)))
    (memory, noise) = accepted.tolerances(found)[0].rows
    assert (memory[0], noise[0]) == ("memory latency", "OS noise")
    assert all(memory[3:]) and not any(noise[3:]), "only for metrics that decide SAME, a node is named as closest"


@pytest.mark.parametrize("path", ["README.md", "docs/how-to/outcomes.md"])
def test_the_same_is_defined_in_one_sentence(path: str) -> None:
    """Reports, README and docs state it in the same words."""
    defined = say("method", "same").partition(" (")[0]
    assert defined in " ".join((ROOT / path).read_text().replace("`", "").split())
