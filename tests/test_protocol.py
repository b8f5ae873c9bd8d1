"""The acceptance protocol: outcomes of several campaigns, the rules they were judged by, and a manifest that holds."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.report import protocol
from nodeprint.verdict.campaign_verdict import judge

from .conftest import need
from .test_bad_input import call


def judged(folder: Path, **verdicts: str) -> Path:
    """The campaign judged, with outcomes as the test wants them."""
    judge(folder)
    path = folder / "verdict.json"
    content = json.loads(path.read_text())
    for name, word in verdicts.items():
        node = content["nodes"][name]
        node |= {"verdict": word, "rack": f"rack-{name}", "fingerprint": {"serials": f"product S-{name}"}}
        if word == "DEVIATES":
            node["findings"] = [{"text": f"core 3 of {name} is 6 % slower", "suppressed": ""}]
        if word == "NOT MEASURED":
            node["reason"] = "drained: DIMM 7 is bad"
    path.write_text(json.dumps(content))
    return folder


def text_of(pdf: Path) -> str:
    done = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True)
    return " ".join(done.stdout.replace("\u200b", "").split())


@pytest.fixture
def two(campaign: Callable[..., Path], tmp_path: Path) -> list[Path]:
    """Two campaigns of nodes a, b, c; the second on another day and boot."""
    first = campaign("a", "b", "c")
    own = tmp_path / "own.yaml"
    own.write_text(
        "bounds: {percent: {core: 8}}\n"
        "limits: [{measurement: coherence-cas, class: same socket, at_most: 220, reason: contract 4711}]\n"
    )
    acceptance.keep(own, first)
    second = tmp_path / "results/second"
    subprocess.run(["cp", "-r", first, second], check=True)
    for path in second.rglob("*.jsonl"):
        path.write_text(path.read_text().replace('"boot_id": "b"', '"boot_id": "c"'))
    for path in second.rglob("status.json"):
        path.write_text(path.read_text().replace("2026-01-01", "2026-01-08"))
    return [judged(first, a="SAME", b="DEVIATES", c="NOT MEASURED"), judged(second, a="SAME", b="SAME", c="INVALID")]


def test_what_is_on_the_pages(two: list[Path], tmp_path: Path) -> None:
    need("pdftotext", "sha256sum")
    manifest, pdf = protocol.write(two, tmp_path / "out")
    page = text_of(pdf)
    assert "2026-01-01" in page and "2026-01-08" in page
    assert "Of 3 nodes 1 are shown to be the same" in page
    assert "core 3 of b is 6 % slower" in page and "product S-b" in page and "rack-b" in page
    assert "drained: DIMM 7 is bad" in page
    assert "contract 4711" in page and "220" in page
    assert re.search("class 2 ?% nodeprint", page) and re.search("core 8 ?% the site", page)
    assert "For the customer" in page and "SIMULATED" not in page
    check = ["sha256sum", "-c", "--quiet", manifest.name]
    assert subprocess.run(check, cwd=manifest.parent, check=False).returncode == 0
    listed = manifest.read_text()
    assert listed.count("status.json") == 6 and listed.count("verdict.json") == 2 and listed.count(".jsonl") == 12
    next(two[1].rglob("*.jsonl")).write_text("changed")
    assert subprocess.run(check, cwd=manifest.parent, check=False, capture_output=True).returncode == 1


def test_the_same_campaigns_give_the_same_bytes(two: list[Path], tmp_path: Path) -> None:
    once = [path.read_bytes() for path in protocol.write(two, tmp_path / "out")]
    assert [path.read_bytes() for path in protocol.write(two, tmp_path / "out")] == once


def test_boots_are_counted_over_the_campaigns(two: list[Path], tmp_path: Path) -> None:
    read = [protocol._campaign(path) for path in two]
    rows = {row["node"]: row for row in protocol.content(read, "")["nodes"]}
    assert {name: row["boots"] for name, row in rows.items()} == {"a": 2, "b": 2, "c": 2}
    assert {name: row["result"] for name, row in rows.items()} == {"a": "accepted", "b": "deviation", "c": "open"}


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (("SAME", "INCONCLUSIVE"), "accepted"),
        (("SAME", "SUSPECT"), "deviation"),
        (("INCONCLUSIVE", "INVALID"), "open"),
        (("NOT MEASURED", ""), "open"),
        (("SAME AS GROUP",), "accepted"),
        (("OUTSIDE LIMIT", "SAME"), "deviation"),
    ],
)
def test_what_a_node_is_over_all_campaigns(words: tuple[str, ...], result: str) -> None:
    assert protocol.result(words) == result


def test_bad_campaigns_get_one_sentence(two: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("protocol", two[0], two[0], "--to", tmp_path / "out") == 2
    assert call("protocol", tmp_path, "--to", tmp_path / "out") == 2
    path = two[1] / "verdict.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"simulated": True}))
    with pytest.raises(NodeprintError, match="simulated and measured campaigns are mixed"):
        protocol.write(two, tmp_path / "out")
    said = capsys.readouterr().err
    assert said.count("\n") == 2 and "Traceback" not in said
    assert not (tmp_path / "out").exists()
