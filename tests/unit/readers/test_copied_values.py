"""Copied figures are named and not judged; figures that are equal by rounding are no copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.readers import table_file


def of_nodes(digits: int, nodes: int = 6, runs: int = 3) -> dict[str, list[str]]:
    """Lines by node, with two metrics a run."""
    figures = np.random.default_rng(1).normal(300, 1, (nodes, runs, 2))
    return {
        f"n{node}": [f"n{node},{triad:.{digits}f},{copy:.{digits}f}" for triad, copy in figures[node]]
        for node in range(nodes)
    }


def written(tmp_path: Path, lines: dict[str, list[str]]) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["node,triad,copy", *(line for of_node in lines.values() for line in of_node)]) + "\n")
    return path


def test_two_nodes_with_the_same_figures_are_named_and_not_judged(tmp_path: Path) -> None:
    lines = of_nodes(3)
    lines["n5"] = [line.replace("n4", "n5") for line in lines["n4"]]
    figures = table_file.read_table(written(tmp_path, lines))
    assert figures.unmeasured == ("n4", "n5") and set(figures.frame["node"]) == {"n0", "n1", "n2", "n3"}
    assert figures.notes[0].startswith("n4 and n5 have the same figures in every digit")


def test_equal_by_rounding_is_no_copy(tmp_path: Path) -> None:
    assert not table_file.read_table(written(tmp_path, of_nodes(0, nodes=40))).unmeasured
    assert not table_file.read_table(written(tmp_path, of_nodes(0, nodes=20, runs=4))).unmeasured


@pytest.mark.parametrize("order", ["blocks", "lines"])
def test_a_table_pasted_twice_is_refused(tmp_path: Path, order: str) -> None:
    once = of_nodes(2)
    twice = {node: of_node * 2 if order == "blocks" else sorted(of_node * 2) for node, of_node in once.items()}
    with pytest.raises(NodeprintError, match="the figures of n0 are there twice, run by run; take the copies out"):
        table_file.read_table(written(tmp_path, twice))
