"""nodes.tsv as it lies in a folder that several may write."""

import os
import re
from pathlib import Path

import pytest

from nodeprint import reading
from nodeprint.campaign import node_sheet
from nodeprint.errors import NodeprintError


@pytest.mark.parametrize(
    ("kind", "why"), [("link", "symbolic link"), ("pipe", "no regular file"), ("2 GiB", "larger than 4 MiB")]
)
def test_a_sheet_that_is_no_list_is_refused(tmp_path: Path, kind: str, why: str) -> None:
    """What a link leads to is not said, a pipe is not waited for, and a sparse file costs no memory."""
    path, private = tmp_path / "nodes.tsv", tmp_path / "private"
    private.write_text("SECRET\n")
    if kind == "link":
        path.symlink_to(private)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.touch()
        os.truncate(path, 2 << 30)
    with pytest.raises(NodeprintError, match=f"{why}.*remove it, then run `nodeprint discover`") as refusal:
        node_sheet.read_sheet(path)
    assert "SECRET" not in str(refusal.value)


def test_a_sheet_of_ten_thousand_nodes_is_no_more_than_a_list_may_be(tmp_path: Path) -> None:
    reason = "Not responding since the morning [root@2026-11-26T18:00:00]"
    nodes = [
        node_sheet.Node(
            f"r{number // 64:03d}n{number % 64:02d}", f"r{number // 64:03d}n{number % 64:02d}", reason=reason
        )
        for number in range(10_000)
    ]
    node_sheet.write_sheet(tmp_path / "nodes.tsv", nodes)
    assert (tmp_path / "nodes.tsv").stat().st_size < reading.TEXT_BYTES / 2
    assert len(node_sheet.read_sheet(tmp_path / "nodes.tsv")) == 10_000


@pytest.mark.parametrize(
    ("name", "advice"), [("cn017", "its nodes are node[0-3]"), ("noed1", "did you mean node[0-3]?")]
)
def test_a_node_that_is_to_be_measured_again_is_one_of_the_sheet(name: str, advice: str) -> None:
    nodes = [node_sheet.Node(f"node{number}", f"node{number}") for number in range(4)]
    with pytest.raises(NodeprintError, match=f"^NODES: no node {name} in this campaign; ") as refusal:
        node_sheet.again(nodes, ["node0", name])
    assert re.search(advice if "mean" in advice else re.escape(advice), str(refusal.value))
