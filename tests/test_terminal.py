"""The last lines of a run: nobody misses settings that differ, and records that are damaged or refused."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nodeprint import packed
from nodeprint.report import terminal
from nodeprint.verdict.campaign_verdict import judge
from nodeprint.words.outcome import folded

from .conftest import TRAILER, cell, cell_header, header, lines, pair


def shown(campaign: Path, nodes: dict[str, Any]) -> str:
    campaign.mkdir(exist_ok=True)
    (campaign / "verdict.json").write_text(json.dumps({"nodes": nodes, "fleet": {"text": "20 of 20 nodes measured"}}))
    return terminal.summary(campaign)[0]


def test_what_many_quiet_nodes_hide_is_counted(tmp_path: Path) -> None:
    nodes: dict[str, Any] = {f"n{number:02}": {"verdict": "SAME", "text": ""} for number in range(20)}
    assert "differ" not in shown(tmp_path, nodes)
    assert "records" not in shown(tmp_path, nodes)
    for name in ("n03", "n05", "n07", "n11"):
        nodes[name]["warnings"] = [{"id": "fingerprint-microcode", "text": "..."}, {"id": "boost", "text": "..."}]
    nodes["n09"]["quality"] = ["run1/coherence-cas.jsonl.gz, line 3: cut"]
    aside = tmp_path / "nodes/n13/job1/run1/coherence-cas.jsonl.gz.bad"
    aside.parent.mkdir(parents=True)
    aside.touch()
    text = shown(tmp_path, nodes)
    assert f"4 nodes (n03, n05, n07, ...) differ from the majority in microcode; `nodeprint drift {tmp_path}`" in text
    assert "records are damaged, refused, missing or disturbed on 1 node (n09)" in text
    assert "1 malformed record file was kept as .bad" in text
    assert "boost" not in text


def test_nodes_of_the_same_words_share_a_line(tmp_path: Path) -> None:
    words = "nothing deviates, but one run says little"
    nodes: dict[str, Any] = {f"n{number:03}": {"verdict": "INCONCLUSIVE", "text": words} for number in range(400)}
    nodes["n007"] = {"verdict": "DEVIATES", "text": "core 37 is slower"}
    text = shown(tmp_path, nodes)
    assert f"399 nodes (n000, n001, n002, ...)  INCONCLUSIVE: {words}" in text
    assert "  n007" in text and "DEVIATES: core 37 is slower" in text
    assert len(text.splitlines()) == 4


def test_lines_are_in_the_order_of_names() -> None:
    said = [("n3", "slow"), ("n2", "calm"), ("n1", "slow"), ("n2", "a second remark")]
    assert folded(said) == [("n1", "slow"), ("n2", "a second remark"), ("n2", "calm"), ("n3", "slow")]


def test_what_differs_in_figures_alone_shares_a_line_and_accusations_do_not(tmp_path: Path) -> None:
    nodes: dict[str, Any] = {}
    for number in range(400):
        said = f"coherence-cas, job1/run1: {number % 60 + 30} % of the pairs were disturbed"
        nodes[f"n{number:03}"] = {
            "verdict": "INVALID", "text": f"{said}; measure it again",
            "quality": [f"invalid: {said}", f"run2/coherence-cas.jsonl.gz, line {number}: cut"],
        }  # fmt: skip
    for number in range(4):
        nodes[f"s{number}"] = {"verdict": "SUSPECT", "text": f"core {number} is {number}.5 % slower"}
    text = shown(tmp_path, nodes)
    assert "400 nodes (n000, n001, n002, ...)  INVALID: coherence-cas, job1/run1: 30 % of the pairs" in text
    assert "measure it again (figures of n000, those of the others differ)" in text
    assert "run2/coherence-cas.jsonl.gz, line 0: cut (figures of n000, those of the others differ)" in text
    assert text.count("were disturbed") == 1
    assert all(f"SUSPECT: core {number} is {number}.5 % slower" in text for number in range(4))
    assert len(text.splitlines()) == 9


def test_a_damaged_record_of_a_real_campaign_is_counted(campaign: Any) -> None:
    folder = campaign("a", "b", "c")
    (folder / "nodes/b/job1/run2/coherence-cas.jsonl").write_text(lines(header(host="b", run=2)) + "garbled\n")
    (folder / "nodes/c/job1/run1/coherence-cas.jsonl").write_text(lines(header(host="c"), pair(0, 1)) + '{"rec')
    quality = {name: node.quality for name, node in judge(folder).nodes.items()}
    assert quality["b"][0].startswith("coherence-cas, job1/run2, line 2: not a JSON record; set the file aside")
    assert quality["c"] == ("coherence-cas, job1/run1, line 3: cut in the middle, the line was dropped",)
    text = terminal.summary(folder)[0]
    assert "records are damaged, refused, missing or disturbed on 2 nodes (b, c)" in text
    assert f"{folder}/nodes" not in text


def test_what_was_packed_and_is_garbled_is_packed_again(campaign: Any) -> None:
    folder = campaign("a", "b", "c")
    before = judge(folder).json()
    for garbled in (folder / "packed").iterdir():
        for content in (b"", b"garbled", b"\x93NUMPY\x01\x00v\x00{'descr'", b"[" * 50_000):
            garbled.write_bytes(content)
            (folder / "packed/index.json").touch()
            assert judge(folder).json() == before, garbled
    assert packed.read(folder).nodes[0].name == "a"


def test_what_was_measured_and_states_no_model_is_named(campaign: Callable[..., Path]) -> None:
    folder = campaign("n1", "n2")
    with (folder / "plan.tsv").open("a") as plan:
        plan.write("mine\tmine\t--op mine\n")
    assert not any("mine" in note for note in judge(folder).fleet.notes), "there is nothing to compare"
    text = lines(cell_header(host="n1", kernel="mine"), cell(0, "l1"), TRAILER)
    (folder / "nodes/n1/job1/run1/mine.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert any("no model is stated: mine" in note for note in judge(folder).fleet.notes)
