"""Tables with a row for each pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.readers import matrix_file
from tests.support.tool_output import PAIRS, TRIANGLE, read_text


def test_the_median_over_addresses(tmp_path: Path) -> None:
    text = "cpu1,cpu2,addr,latency_ns\n" + "".join(f"0,1,{n},{ns}\n" for n, ns in enumerate((20, 30, 900)))
    imported = read_text(tmp_path, text)
    assert imported.core_matrix().ns[0, 1] == 30
    assert "median of up to 3" in imported.notes[0]


@pytest.mark.parametrize(
    "head",
    [
        "Core 1,Core 2,Latency (Nanoseconds)",
        "core_a,core_b,latency [ns]",
        "CPU A,CPU B,Median latency (nsec)",
        "from,to,one-way latency (ns)",
        "src,dst,lat_ns",
        "source_core,target_core,avg_latency_ns",
        "fromCore,toCore,ns",
        "reader_cpu,writer_cpu,latency_ns_med",
        '"core1","core2","time (ns)"',
    ],
)
@pytest.mark.parametrize("format", [None, "long-table"])
def test_spellings_of_columns(tmp_path: Path, head: str, format: str | None) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f"made by hand\n{head}\n" + PAIRS.partition("\n")[2])
    assert np.array_equal(matrix_file.read_output(path, format).core_matrix().ns, TRIANGLE, equal_nan=True)


@pytest.mark.parametrize(
    ("unit", "factor"), [("us", 1e3), ("\N{MICRO SIGN}s", 1e3), ("ps", 1e-3), ("microseconds", 1e3)]
)
def test_units_are_converted(tmp_path: Path, unit: str, factor: float) -> None:
    rows = "".join(f"0,{cpu},{ns / factor}\n" for cpu, ns in ((1, 25.5), (2, 90.25)))
    cores = read_text(tmp_path, f"core0,core1,latency ({unit})\n{rows}1,2,{91 / factor}\n").core_matrix()
    assert np.allclose(cores.ns, TRIANGLE, equal_nan=True)


def test_named_cpus_and_the_median_of_several_columns(tmp_path: Path) -> None:
    text = "| src | dst | p95_ns | min_ns | median_ns |\n|---|---|---|---|---|\n| C0 | C1 | 99 | 20 | 25.5 |\n"
    assert read_text(tmp_path, text).core_matrix().ns[0, 1] == 25.5


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("src,dst,cycles\n0,1,90\n", r"line 1, column 1: no column is a latency by its name \('cycles'\)"),
        ("core,a,b,ns\n0,0,1,25.5\n", "3 columns of CPUs"),
        ("src,dst,lines,ns\n0,1,1,25\n0,1,2,28\n0,2,1,90\n0,2,2,96\n", "rows of a pair, which differ in 'lines'"),
    ],
)
def test_columns_that_do_not_say_what_to_read(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(NodeprintError, match=reason):
        read_text(tmp_path, text)
