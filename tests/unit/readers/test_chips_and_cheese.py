"""The matrices of Chips and Cheese's coherency test."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import read_text


def test_several_offsets_are_one_matrix_of_medians(tmp_path: Path) -> None:
    tables = [f"Cache line offset: {64 * n}\nx,{50 + n},90\n{52 + n},x,91\n90,91,x\n" for n in range(3)]
    cores = read_text(tmp_path, "".join(tables)).core_matrix()
    assert (cores.ns[0, 1], cores.ns[1, 0], cores.operation) == (51, 53, "unknown")


def test_tables_of_two_machines_are_rejected(tmp_path: Path) -> None:
    small = "Cache line offset: 0\nx,50\n50,x\n"
    with pytest.raises(NodeprintError, match="line 4, column 1: a table of 3 CPUs after one of 2"):
        read_text(tmp_path, f"{small}Cache line offset: 64\nx,50,90\n50,x,91\n90,91,x\n")
    with pytest.raises(NodeprintError, match="line 3, column 1: 1 latencies for 2 CPUs"):
        read_text(tmp_path, "Cache line offset: 0\nx,50\n50\n")
