"""The acceptance protocol: outcomes of several campaigns, the rules they were judged by, and a manifest that holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.judge.outcome import Accepted, Outcome, Why
from nodeprint.judge.verdict import Limit, NodeVerdict, Reason
from nodeprint.report import files, protocol
from tests.support import verdicts
from tests.support.real_parts import need

SAME, DEVIATES, MISSED = Outcome.SAME, Outcome.DEVIATES, Outcome.NOT_MEASURED


def node(outcome: Outcome) -> NodeVerdict:
    fingerprint = {"serials": "product S4711"}
    if outcome is DEVIATES:
        return verdicts.node(outcome, Why.CONFIRMED, findings=(verdicts.finding(),), fingerprint=fingerprint)
    if outcome is MISSED:
        reasons = (Reason(Why.NOT_MEASURED, detail="drained: DIMM 7 is bad"),)
        return verdicts.node(outcome, Why.NOT_MEASURED, reasons=reasons, fingerprint={})
    return verdicts.node(outcome, fingerprint=fingerprint)


def campaign(folder: Path, site: str = "", **outcomes: Outcome) -> Path:
    folder.mkdir(parents=True)
    nodes = {name: node(outcome) for name, outcome in outcomes.items()}
    files.write(verdicts.verdict(nodes, campaign=folder.name), folder)
    if site:
        (folder / "config.yaml").write_text(f"site: {site}\n")
    return folder


def words(campaigns: list[Path], to: Path) -> str:
    need("pdftotext")
    pdf = protocol.write(campaigns, to)[1]
    done = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split())


def test_pages_have_parties_bounds_list_and_then_signatures(tmp_path: Path) -> None:
    site = "{customer: 'University X', supplier: 'Vendor Y', system: 'cluster Z', contract: 'number 4711', place: Ulm}"
    first = campaign(tmp_path / "first", cn1=SAME, cn2=DEVIATES, cn3=MISSED)
    (tmp_path / "own.yaml").write_text(
        "limits: [{measurement: coherence-cas, class: same socket, at_most: 220, reason: clause 8}]\n"
    )
    acceptance.keep(tmp_path / "own.yaml", first)
    second = campaign(tmp_path / "second", site, cn1=SAME, cn2=SAME, cn3=SAME)
    text = words([first, second], tmp_path / "to")
    for part in ("University X", "Vendor Y", "cluster Z", "number 4711", "Ulm", "S4711", "clause 8", "112 ns"):
        assert part in text, part
    order = ["Acceptance protocol", "Result", "Bounds", "Reference values", "All nodes", "Versions", "Signatures"]
    at = [text.index(word) for word in order]
    assert at == sorted(at)
    assert "Core 37 (CPU 37) is 5.9 % slower" in text and "drained: DIMM 7 is bad" in text


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


def test_system_is_accepted_where_every_node_is() -> None:
    accepted, still_open, deviation = Accepted.ACCEPTED, Accepted.OPEN, Accepted.DEVIATION
    assert protocol.overall([accepted, accepted]) == "accepted"
    assert protocol.overall([accepted, still_open]) == "open"
    assert protocol.overall([still_open, deviation]) == "deviation"
    assert protocol.overall([]) == "open"


def test_manifest_holds_and_the_same_campaigns_give_the_same_bytes(tmp_path: Path) -> None:
    made = campaign(tmp_path / "first", cn1=SAME)
    paths = protocol.write([made], tmp_path / "to")
    subprocess.run(["sha256sum", "-c", "MANIFEST.sha256"], cwd=tmp_path / "to", check=True, capture_output=True)
    before = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in protocol.write([made], tmp_path / "to")] == before


def test_mixed_and_repeated_campaigns_are_refused(tmp_path: Path) -> None:
    first = campaign(tmp_path / "first", cn1=SAME)
    with pytest.raises(NodeprintError, match="named twice"):
        protocol.write([first, first], tmp_path)
    second = campaign(tmp_path / "second", cn1=SAME)
    files.write(replace(files.read(second), simulated=True), second)
    with pytest.raises(NodeprintError, match="simulated and measured campaigns are mixed"):
        protocol.write([first, second], tmp_path)


def test_open_nodes_of_one_reason_share_a_row(tmp_path: Path) -> None:
    made = campaign(tmp_path / "first", **{f"cn{n:03}": MISSED for n in range(1, 9)})
    assert "cn[001-008]" in words([made], tmp_path / "to")


def test_bounds_of_cells_are_a_row_and_say_whether_they_decide(tmp_path: Path) -> None:
    made = campaign(tmp_path / "first", cn1=SAME)
    limits = [
        Limit(subject, measurement, family, "numa", effect, 0.05)
        for subject, measurement, family, effect in (
            ("memory", "chase-latency", "ccd", 0.06), ("memory", "chase-latency", "cpu", 0.08),
            ("jitter", "jitter-detours", "cpu", 0.08),
        )
    ]  # fmt: skip
    verdict = files.read(made)
    files.write(replace(verdict, fleet=replace(verdict.fleet, limits=tuple(limits))), made)
    text = words([made], tmp_path / "to")
    assert "memory latency, every part chase-latency 5 % 6.0 to 8.0 % yes" in text
    assert "lost time, every part jitter-detours 5 % 8.0 % no" in text
