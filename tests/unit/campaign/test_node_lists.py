"""Node lists: what ClusterShell reads and folds, and what is refused in one sentence."""

import pytest

from nodeprint.campaign import node_lists
from nodeprint.errors import NodeprintError


def test_lists_are_expanded() -> None:
    assert node_lists.expand("cn[001-003],gpu7 rack-J01,", "NODES") == ["cn001", "cn002", "cn003", "gpu7", "rack-J01"]
    assert node_lists.expand("  ", "NODES") == []


@pytest.mark.parametrize("text", ["cn[1", "cn[3-1]", "a,,b"])
def test_what_is_no_list_is_one_sentence(text: str) -> None:
    with pytest.raises(NodeprintError, match=r"^NODES: .* is no list of nodes \(.*\); write it as in "):
        node_lists.expand(text, "NODES")


def test_no_group_of_the_machine_is_asked_for() -> None:
    assert node_lists.expand("@all", "NODES") == ["@all"]


def test_names_are_folded() -> None:
    assert node_lists.fold(f"cn{i:03}" for i in (1, 2, 3, 7)) == "cn[001-003,007]"
    assert node_lists.fold(["rack-J01"]) == "rack-J01"
