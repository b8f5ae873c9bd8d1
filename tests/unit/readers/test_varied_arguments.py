"""Outputs of one tool that solved different problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.readers import tool_logs
from nodeprint.readers.value_table import ValueTable

_HEAD = "HPLinpack 2.1  --\nT/V         N    NB     P     Q         Time          Gflops\n"


def read(folder: Path, orders: dict[str, int]) -> ValueTable:
    for number, (name, order) in enumerate(orders.items()):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{_HEAD}WR00L2L2  {order}  80  1  2  2.00  {order + number}.5e-03\n")
    return tool_logs.read_logs(folder)


def test_problems_of_several_files_are_no_runs_of_one(tmp_path: Path) -> None:
    orders = {f"cn{node:03d}/run{run}.out": 1000 * run for node in (1, 2, 3) for run in (1, 2)}
    frame = read(tmp_path, orders).frame
    assert sorted(zip(frame["node"], frame["N"], strict=True)) == [
        (f"cn{node:03d}", order) for node in (1, 2, 3) for order in ("1000", "2000")
    ]


def test_the_same_problem_is_no_point(tmp_path: Path) -> None:
    assert read(tmp_path, {f"cn{node:03d}.out": 1000 for node in (1, 2, 3)}).parts == ()


def test_node_with_another_problem_is_named(tmp_path: Path) -> None:
    orders = {f"cn{node:03d}.out": 2000 if node == 3 else 1000 for node in (1, 2, 3)}
    what = "hpl has results of different problems, as N 1000 on cn001 and N 2000 on cn003; give results of one problem"
    with pytest.raises(NodeprintError, match=what):
        read(tmp_path, orders)
