"""Tables of other tools that are no square CSV: terminals, long tables, Chips and Cheese, records and pipes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeprint import structure
from nodeprint.errors import NodeprintError
from nodeprint.judge.campaign import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.readers import campaign_writer, matrix_file
from nodeprint.readers.tool_output import ToolOutput
from tests.support.made_records import TRAILER, header, lines, pair

TRIANGLE = np.array([[np.nan, 25.5, 90.25], [25.5, np.nan, 91], [90.25, 91, np.nan]])
TERMINAL = """CPU: AMD EPYC 7742 64-Core Processor
Num cores: 3
Num iterations per samples: 5000
Num samples: 300

1) CAS latency on a single shared cache line

           0       1       2   \n      0
      1   25±0 \n      2   90±0    91±12\n
    Min  latency: 25.2ns ±0.0 cores: (1,0)
    Max  latency: 91.0ns ±0.3 cores: (2,1)
    Mean latency: 68.6ns
"""
OFFSETS = "Cache line offset: {}\nx,25.5,90.25\n25.5,x,91\n90.25,91,x\n"
PAIRS = "a,b,ns\n0,1,25.5\n0,2,90.25\n1,2,91\n"
FILES = {
    "long-table": PAIRS,
    "chips-and-cheese": OFFSETS.format(0),
    "core-to-core-latency-terminal": TERMINAL,
    "core-to-core-latency": ",0,1,2\n0,0.0,25.5,90.25\n1,25.5,0.0,91.0\n2,90.25,91.0,0.0\n",
    "c2clat": " CPU    0    1    2\n   0    0   92   66\n   1   92    0   50\n   2   66   50    0\n",
}


def read(tmp_path: Path, text: str) -> ToolOutput:
    path = tmp_path / "m.txt"
    path.write_text(text)
    return matrix_file.read_output(path)


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
    assert np.array_equal(read(tmp_path, text).core_matrix().latency_ns, TRIANGLE, equal_nan=True)


def test_numbers_of_cpus_with_gaps_are_a_head_and_no_latencies(tmp_path: Path) -> None:
    """As pandas writes a table of CPUs 4, 5 and 9: read as latencies, they made a fourth CPU."""
    cores = read(tmp_path, ",4,5,9\n4,0.0,25.5,90.25\n5,25.5,0.0,91.0\n9,90.25,91.0,0.0\n").core_matrix()
    assert cores.cpus == (4, 5, 9)
    assert np.array_equal(cores.latency_ns, TRIANGLE, equal_nan=True)


def test_the_terminal_table(tmp_path: Path) -> None:
    imported = read(tmp_path, TERMINAL)
    assert (imported.format, imported.core_matrix().operation) == ("core-to-core-latency-terminal", "cas")
    assert np.array_equal(imported.core_matrix().latency_ns[2, :2], [90, 91])
    assert "rounded" in imported.notes[0]


def test_a_csv_after_the_terminal_table_is_taken(tmp_path: Path) -> None:
    imported = read(tmp_path, TERMINAL + ",,\n25.5,,\n90.25,91,\n")
    assert np.array_equal(imported.core_matrix().latency_ns, TRIANGLE, equal_nan=True)


def test_the_median_over_addresses(tmp_path: Path) -> None:
    text = "cpu1,cpu2,addr,latency_ns\n" + "".join(f"0,1,{n},{ns}\n" for n, ns in enumerate((20, 30, 900)))
    imported = read(tmp_path, text)
    assert imported.core_matrix().latency_ns[0, 1] == 30
    assert "median of up to 3" in imported.notes[0]


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
        read(tmp_path, text)
    assert f", line {line}, column {column}: " in str(error.value) and what in str(error.value)


def test_a_record_of_our_own_kernels_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "coherence-cas.jsonl"
    path.write_text(lines(header(), pair(0, 1), TRAILER))
    cores = matrix_file.read_output(path).core_matrix()
    assert (cores.operation, cores.home, cores.latency_ns[0, 1]) == ("cas", "first", 50.0)
    assert campaign_writer.write_campaign([matrix_file.read_output(path)], tmp_path / "campaign") == ["coherence-cas"]


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
        structure.find(cores.latency_ns, cores.cpus)
    except NodeprintError as error:
        assert "\n" not in str(error)


COLOURED = TERMINAL.replace("25±0", "\x1b[1;37m  25\x1b[0m\x1b[2;37m±0 \x1b[0m")


@pytest.mark.parametrize(
    "text",
    [
        COLOURED,
        TERMINAL[TERMINAL.index("           0") :],  # the table alone
        TERMINAL.replace("±", "Â±"),  # through a viewer of another encoding
        TERMINAL.replace("\n      2   90", "\n      2\n   90"),  # a line broken by a terminal
        "".join(f"> {line}\n" for line in TERMINAL.splitlines()),
        f"```text\n{TERMINAL}```\n",
        TERMINAL + TERMINAL[TERMINAL.index("1) CAS") :].replace("1) CAS", "2) Single-writer single-reader"),
    ],
)
def test_a_terminal_s_table_as_it_is_pasted(tmp_path: Path, text: str) -> None:
    imported = read(tmp_path, text)
    assert (imported.format, imported.core_matrix().operation) == ("core-to-core-latency-terminal", "cas")
    assert np.array_equal(imported.core_matrix().latency_ns[2, :2], [90, 91])


def test_a_log_with_its_csv_among_other_lines(tmp_path: Path) -> None:
    imported = read(tmp_path, COLOURED + ",,\n25.5,,\n90.25,91,\n" + "Elapsed: 1, 2 and 3 s\n")
    assert np.array_equal(imported.core_matrix().latency_ns, TRIANGLE, equal_nan=True)


@pytest.mark.parametrize(("factor", "limit"), [(1e-3, "below 1 ns"), (1e6, "above 100000 ns")])
def test_latencies_in_another_unit_are_refused(tmp_path: Path, factor: float, limit: str) -> None:
    rows = "\n".join(",".join(f"{25.5 * factor:.6f}" if b < a else "" for b in range(4)) for a in range(4))
    with pytest.raises(NodeprintError, match=f"no hop between CPUs is {limit}; give nanoseconds"):
        read(tmp_path, rows)


# As linktest_spec.c prints a serial run with two ranks a line and a pass over both directions.
LINKTEST = """\
 Serial   PingPong for step     1:
      0->     1:    78.00000us (12820.51 MB/s) (l=0)
      1->     0:    78.20000us (12787.72 MB/s) (l=1)
      2->     3:    74.00000us (13513.51 MB/s) (l=2)
      3->     2:    74.00000us (13513.51 MB/s) (l=3)
  avg=    76.050us (13149.2 MB/s) min=    74.000us (13513.51 MB/s) max=    78.200us (12787.72 MB/s)
 Serial   PingPong for step     2:
      0->     2:    84.00000us (11904.76 MB/s) (l=0)
      2->     0:    84.00000us (11904.76 MB/s) (l=2)
RESULT: Min Time:                     74.00000000us (13513.51 MB/s) [iter  1 ]
     0: PINGPONG      0  <->       2:  1st:    84.0000us (11904.76 MB/s)    2nd:    83.9000us (11918.95 MB/s)
"""


def test_linktest_of_juelich_prints_pairs_in_a_serial_run(tmp_path: Path) -> None:
    imported = read(tmp_path, LINKTEST)
    cores = imported.core_matrix()
    assert (imported.format, cores.kernel, cores.quantity) == ("linktest", "linktest", "message")
    assert cores.facts == {"message_bytes": 1 << 20}
    assert [cores.latency_ns[0, 1], cores.latency_ns[1, 0], cores.latency_ns[3, 2]] == [78000, 78200, 74000]
    summaries = "".join(line for line in LINKTEST.splitlines(True) if "->" not in line)
    with pytest.raises(NodeprintError, match="a parallel run prints summaries alone; run LinkTest serially"):
        read(tmp_path, summaries)


RECORDS = (
    '{"record":"header","schema":1,"segment":0,"kernel":"linktest","operation":"%s","quantity":"message","unit":"ns","host":"n",'
    '"job":1,"run":1,"cpus":[0,1,2],"home":null,"message_bytes":1048576,"arguments":[],"passes":1,"directed":%s}\n'
    '{"record":"pair","a":0,"b":1,"home":-1,"pass":0,"latency_ns":178000.0,"flags":[]}\n'
    '{"record":"pair","a":0,"b":2,"home":-1,"pass":0,"latency_ns":174000.0,"flags":[]}\n'
    '{"record":"pair","a":1,"b":2,"home":-1,"pass":0,"latency_ns":184000.0,"flags":[]}\n'
    '{"record":"trailer","elapsed_s":0.1,"pairs":3,"complete":true}\n'
)
#: What of each file the judge has: every format that is imported can be judged.
MEASUREMENTS = {
    **dict.fromkeys(("long-table", "chips-and-cheese", "c2clat"), "coherence-imported"),
    **dict.fromkeys(("core-to-core-latency-terminal", "core-to-core-latency"), "coherence-cas"),
}


@pytest.mark.parametrize(
    ("text", "measurement"),
    [
        *((FILES[name], measurement) for name, measurement in MEASUREMENTS.items()),
        (LINKTEST, "linktest-node"),
        (RECORDS % ("semidirectional", "false"), "linktest-node"),
        (RECORDS % ("bidirectional", "false"), "linktest-node-bidirectional"),
        (RECORDS % ("unidirectional", "true"), "linktest-node-unidirectional"),
    ],
)
def test_what_is_imported_can_be_judged(tmp_path: Path, text: str, measurement: str) -> None:
    campaign = tmp_path / "campaign"
    campaign_writer.write_campaign([read(tmp_path, text)], campaign)
    node = judge(campaign).verdict.nodes["m"]
    assert node.outcome is Outcome.NO_PEERS
    assert {figure.measurement for figure in node.classes} == {measurement}
