"""Files of every tool: recognized, read or rejected."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeprint import structure
from nodeprint.cli import shared
from nodeprint.errors import NodeprintError
from nodeprint.readers import matrix_file
from nodeprint.readers.registry import readers
from tests.support.tool_output import (
    C2CLAT,
    FILES,
    GNUPLOT,
    LOWER,
    MLC,
    OFFSETS,
    PAIRS,
    PINGPONG,
    TERMINAL,
    TRIANGLE,
    read_text,
)

Write = Callable[..., Path]


def test_absent_file_and_unknown_format(tmp_path: Path, write: Write) -> None:
    with pytest.raises(NodeprintError, match="cannot be read"):
        matrix_file.read_output(tmp_path / "absent")
    with pytest.raises(NodeprintError, match="known are c2clat, chips-and-cheese"):
        matrix_file.read_output(write(LOWER), "excel")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([LOWER, C2CLAT, GNUPLOT, PINGPONG, MLC]),
    st.integers(0, 2000),
    st.integers(0, 6),
    st.text(alphabet="0123456789.,;- \n\tx:é\x00\x1b", max_size=6),
)
def test_garbled_files_are_read_or_refused_in_a_sentence(
    tmp_path: Path, text: str, place: int, cut: int, insert: str
) -> None:
    """Cut, spliced and overwritten: never a traceback, and what is read is positive."""
    at = place % (len(text) + 1)
    path = tmp_path / "garbled"
    path.write_text(text[:at] + insert + text[at + cut :])
    try:
        imported = matrix_file.read_output(path)
    except NodeprintError as error:
        assert "\n" not in str(error)
        assert str(error).startswith(str(path))
        return
    cells = [value.value for value in imported.values]
    if imported.cores:
        values = imported.cores.ns
        cells += values[~np.isnan(values)].tolist()
    assert cells
    assert all(value > 0 for value in cells)


def test_the_help_names_every_format() -> None:
    assert set(shared.FORMATS) == set(readers("matrix"))


@pytest.mark.parametrize(
    "text",
    [
        PAIRS,
        PAIRS.replace(",", ";"),
        PAIRS.replace(",", "\t"),
        "0,1,25.5\n0,2,90.25\n1,2,91.0\n1,0,25.5\n",
        "# made by hand\ncore_a,core_b,latency_ns,samples\n0,1,25.5,9\n0,2,90.25,9\n1,2,91,9\n",
        "core_a,core_b,address,mean,median\n0,1,0,99,25\n0,1,1,99,26\n0,2,0,99,90.25\n1,2,0,99,91\n",
        ",0,1,2\n0,0.0,25.5,90.25\n1,25.5,0.0,91.0\n2,90.25,91.0,0.0\n",
        ",cpu0,cpu1,cpu2\ncpu0,0.0,25.5,90.25\ncpu1,25.5,0.0,91.0\ncpu2,90.25,91.0,0.0\n",
        "0,1,2\n0.0,25.5,90.25\n25.5,0.0,91.0\n90.25,91.0,0.0\n",
        "0,,\n25.5,0,\n90.25,91,0\n",
        OFFSETS.format(0),
        "Number of CPUs: 3\n0 to 1: 51.0 ns\n" + OFFSETS.format(0) + OFFSETS.format(1),
    ],
)
def test_one_matrix_in_many_forms(tmp_path: Path, text: str) -> None:
    assert np.array_equal(read_text(tmp_path, text).core_matrix().ns, TRIANGLE, equal_nan=True)


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        (PAIRS + "1,x,3\n", 5, 2, "no CPU"),
        (PAIRS + "1,2\n", 5, 2, "2 cells"),
        (PAIRS.replace("91", "1e300"), 4, 3, "more than a second"),
        (",,\n25.5,,\n2e9,91,\n", 3, 1, "more than a second"),
        (OFFSETS.format(0) + "1,2\n", 2, 3, "3 latencies for 4 CPUs"),
        (TERMINAL.replace("91±12", ""), 11, 2, "CPU 2"),
    ],
)
def test_faults_are_named_by_their_place(tmp_path: Path, text: str, line: int, column: int, what: str) -> None:
    with pytest.raises(NodeprintError) as error:
        read_text(tmp_path, text)
    assert f", line {line}, column {column}: " in str(error.value) and what in str(error.value)


@pytest.mark.parametrize("argument", ["-", "/dev/stdin"])
def test_a_pipe(argument: str) -> None:
    command = [sys.executable, "-m", "nodeprint", "structure", argument, "--json"]
    done = subprocess.run(command, input=PAIRS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["levels"] == []


@settings(max_examples=2000)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_mutated_files_end_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    content = bytearray(FILES[name].encode())
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(content)))
        content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=6))
    path = tmp_path_factory.getbasetemp() / "mutated.txt"
    path.write_bytes(content)
    try:
        cores = matrix_file.read_output(path).core_matrix()
        structure.find(cores.ns, cores.cpus)
    except NodeprintError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(("factor", "limit"), [(1e-3, "below 1 ns"), (1e6, "above 100000 ns")])
def test_latencies_in_another_unit_are_refused(tmp_path: Path, factor: float, limit: str) -> None:
    rows = "\n".join(",".join(f"{25.5 * factor:.6f}" if b < a else "" for b in range(4)) for a in range(4))
    with pytest.raises(NodeprintError, match=f"no core-to-core latency is {limit}; give nanoseconds"):
        read_text(tmp_path, rows)


def test_the_next_reader_tries_if_the_surest_fails(tmp_path: Path) -> None:
    """A table with the head of c2clat, but by commas of another tool's: c2clat rejected it."""
    text = C2CLAT.replace("   0    0   92   66   62\n", "CPU0    0   92   66   62\n")
    imported = read_text(tmp_path, text)
    assert (imported.tool, imported.core_matrix().cpus) == ("core-to-core-latency", (0, 2, 4, 6))


def test_all_readers_that_failed_are_named(tmp_path: Path) -> None:
    reason = r"line 4, column 1: 3 lines for 4 CPUs \(read as c2clat, core-to-core-latency\); give the whole output"
    with pytest.raises(NodeprintError, match=reason):
        read_text(tmp_path, C2CLAT.rpartition("   6 ")[0] + "\n")


def test_a_cut_output_of_a_known_tool_is_no_table_of_another(tmp_path: Path) -> None:
    """The matrix of NUMA nodes of MLC would be one of two cores."""
    with pytest.raises(NodeprintError, match=r"no line of node numbers for bandwidth \(read as intel-mlc\)"):
        read_text(tmp_path, MLC[: MLC.index("Using Read-only")])
