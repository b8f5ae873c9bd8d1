"""Tables of core-to-core-latency in all forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nodeprint import structure
from nodeprint.readers import matrix_file
from tests.support.tool_output import C2CLAT, LOWER, TRIANGLE, refused

Write = Callable[..., Path]


@pytest.mark.parametrize(
    "text",
    [
        LOWER,
        LOWER.replace("\n", "\r\n"),
        LOWER.rstrip("\n"),
        LOWER + "\n\n",
        "x,25.5,90.25\n25.5,x,91\n90.25,91,x\n",
        "0,25.5,90.25\n25.5,0,91\n90.25,91,0\n",
        ",25.5,90.25\n,,91\n,,\n",
        "x\n25.5,x\n90.25,91,x\n",
        "25.5\n90.25,91\n",
        "\n25.5\n90.25,91\n",
        ";;\n25.5;;\n90.25;91;\n",
        "x\t25.5\t90.25\n25.5\tx\t91\n90.25\t91\tx\n",
        "0 25.5 90.25\n25.5 0 91\n90.25 91 0\n",
        ",,,\n25.5,,,\n90.25,91,,\n",
        " , ,\n 25.5 , ,\n 90.25 , 91 ,\n",
        "CPU,0,1,2\n0,,,\n1,25.5,,\n2,90.25,91,\n",
        ",0,1,2\n0,x,25.5,90.25\n1,25.5,x,91\n2,90.25,91,x\n",
    ],
)
def test_tables_of_core_to_core_latency(write: Write, text: str) -> None:
    imported = matrix_file.read_output(write(text))
    assert imported.tool == "core-to-core-latency"
    cores = imported.core_matrix()
    assert (cores.cpus, cores.operation, cores.quantity, cores.home) == ((0, 1, 2), "cas", "hop", None)
    assert np.array_equal(cores.ns, TRIANGLE, equal_nan=True)
    assert {"home", "topology"} <= set(imported.unknown)


def test_cpu_numbers_of_the_table_are_kept(write: Write) -> None:
    imported = matrix_file.read_output(write("CPU,4,5,9\n4,,,\n5,25.5,,\n9,90.25,91,\n"))
    assert imported.core_matrix().cpus == (4, 5, 9)
    assert "cpu numbers" not in imported.unknown


def test_directions_stay_apart(write: Write) -> None:
    cores = matrix_file.read_output(write(",6.1,27.8\n6.2,,23.8\n22.9,26.8,\n")).core_matrix()
    assert (cores.ns[0, 1], cores.ns[1, 0]) == (6.1, 6.2)


def test_missing_pairs_are_counted(write: Write) -> None:
    imported = matrix_file.read_output(write(",,\n25.5,,\n,91,\n"))
    assert np.isnan(imported.core_matrix().ns[0, 2])
    assert imported.notes == ("1 of 3 pairs have no latency",)


@pytest.mark.parametrize("cell", ["0", "0.000", "nan", "NaN", "-"])
def test_zero_and_nan_are_pairs_that_were_not_measured(write: Write, cell: str) -> None:
    for text in (f",,\n25.5,,\n{cell},91,\n", C2CLAT.replace("   66", f" {cell}").replace("   62", f" {cell}")):
        imported = matrix_file.read_output(write(text))
        assert np.isnan(imported.core_matrix().ns).sum() > len(imported.core_matrix().cpus)
        assert "pairs have no latency" in imported.notes[0]


def test_numbers_on_the_diagonal_are_left_out_and_said(write: Write) -> None:
    imported = matrix_file.read_output(write("3,25.5,90.25\n25.5,3,91\n90.25,91,3\n"))
    assert np.array_equal(imported.core_matrix().ns, TRIANGLE, equal_nan=True)
    assert imported.notes == ("numbers on the diagonal were left out",)


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        (",,\n25,,\n90,abc,\n", 3, 2, "not a number"),
        (",,\nabc,,\n90,91,\n", 2, 1, "not a number"),
        (",,\n25,,\n90,1_0,\n", 3, 2, "not a number"),
        (",,\n25,,\n90,0x1A,\n", 3, 2, "not a number"),
        (",,\n25,,\n90,inf,\n", 3, 2, "instead of"),
        (",,\n25,,\n90,1e999,\n", 3, 2, "too large"),
        (",,\n-25,,\n90,91,\n", 2, 1, "negative"),
        (",,\n25,,\n90;91,\n", 3, 1, "separator"),
        (",,\n25,,\n90\t91,\n", 3, 1, "separator"),
        (",,\n25,,\n90,91\n", 3, 2, "2 cells"),
        (",,\n25,,,\n90,91,\n", 2, 3, "4 cells"),
        (",,,\n25,,,\n90,91,,\n90,91,92,\n90,91,92,93\n", 1, 4, "4 cells in a table of 5 lines"),
        (",,\n25,?,\n90,91,\n", 2, 2, "not a number"),
        ("CPU,0,1\n0,,\n2,25,\n", 3, 1, "CPU 1"),
        ("Num cores: 2\nUsing RDTSC to measure time: false\n", 2, 1, "no line of CPU numbers"),
        ("hello\nworld\n", 1, 1, "format"),
    ],
)
def test_faults_of_tables(write: Write, text: str, line: int, column: int, what: str) -> None:
    assert what in refused(write(text), line, column)


def test_published_matrices(data: Path) -> None:
    """Every published file is read; one of them holds a terminal's output."""
    files = sorted((data / "c2c/core-to-core-latency").glob("*.csv"))
    assert len(files) > 30
    for path in files:
        cores = matrix_file.read_output(path).core_matrix()
        in_terminal = path.name.startswith("IBM PPC970")
        assert len(cores.cpus) == (2 if in_terminal else len(path.read_text().strip("\n").split("\n")))
        assert structure.find(cores.ns, cores.cpus).as_json()
