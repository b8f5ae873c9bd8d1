"""Other tools' output, as they print it and as it comes out of mail and spreadsheets."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from nodeprint import structure
from nodeprint.campaign import node_sheet
from nodeprint.cli import app, shared
from nodeprint.data.format import records
from nodeprint.data.job import jobs
from nodeprint.data.store import store
from nodeprint.errors import NodeprintError
from nodeprint.judge.campaign import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.machine import topology
from nodeprint.machine.topology.model import Cpu, Machine, Topology
from nodeprint.readers import campaign_writer, layout_misfit, matrix_file, matrix_source
from nodeprint.report import glance
from tests.support import made_records
from tests.support.latencies import epyc
from tests.support.schemas import valid_campaign
from tests.support.tool_output import C2CLAT

Write = Callable[..., Path]

LOWER = ",,\n25.5,,\n90.25,91,\n"
GNUPLOT = """reset
set autoscale fix
set title "Inter-core one-way data latency between CPU cores"
set xlabel "Core N°"
unset key
$data << EOD
    0   92   66
   92    0   50
   66   50    0
EOD
plot '$data' matrix with image, '' matrix using 1:2:(sprintf('%d', $3)) with labels font ',auto'
"""
PINGPONG = """avg latency to communicate a modified line from one core to another
times are in ns

          1       2       5
 0:    12.5    88.0    89.5
 1:            87.0    90.0
 2:                    13.5

"""
MLC = """Intel(R) Memory Latency Checker - v3.9
Measuring idle latencies (in ns)...
\t\tNuma node
Numa node\t     0\t     1\t
       0\t  82.2\t 129.6\t
       1\t 131.1\t  81.6\t

Measuring Peak Injection Memory Bandwidths for the system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
ALL Reads        :\t225097.1\t

Measuring Memory Bandwidths between nodes within system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
Using all the threads from each core if Hyper-threading is enabled
Using Read-only traffic type
\t\tNuma node
Numa node\t     0\t     1\t
       0\t113139.4\t50923.4\t
       1\t50916.6\t113249.2\t

Measuring Loaded Latencies for the system
Inject\tLatency\tBandwidth
Delay\t(ns)\tMB/sec
==========================
 00000\t261.50\t 225452.5

Measuring cache-to-cache transfer latency (in ns)...
Local Socket L2->L2 HIT  latency\t51.6
Local Socket L2->L2 HITM latency\t51.7
Remote Socket L2->L2 HITM latency (data address homed in writer socket)
\t\t\tReader Numa Node
Writer Numa Node     0\t     1\t
            0\t     -\t 111.3\t
            1\t 111.1\t     -\t
Remote Socket L2->L2 HITM latency (data address homed in reader socket)
\t\t\tReader Numa Node
Writer Numa Node     0\t     1\t
            0\t     -\t 175.8\t
            1\t 176.7\t     -\t
"""
TRIANGLE = np.array([[np.nan, 25.5, 90.25], [25.5, np.nan, 91], [90.25, 91, np.nan]])


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of that content and name; returns its path."""

    def writer(content: str | bytes, name: str = "a.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return writer


def refused(path: Path, line: int, column: int) -> str:
    """The sentence with which a file is refused, which must begin with the place."""
    with pytest.raises(NodeprintError) as error:
        matrix_file.read_output(path)
    sentence = str(error.value)
    assert sentence.startswith(f"{path}, line {line}, column {column}: ")
    assert "\n" not in sentence
    return sentence


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
    assert imported.format == "core-to-core-latency"
    cores = imported.core_matrix()
    assert (cores.cpus, cores.operation, cores.quantity, cores.home) == ((0, 1, 2), "cas", "hop", None)
    assert np.array_equal(cores.latency_ns, TRIANGLE, equal_nan=True)
    assert {"home", "topology"} <= set(imported.unknown)


def test_windows_shell_writes_utf16(write: Write) -> None:
    cores = matrix_file.read_output(write(LOWER.encode("utf-16"))).core_matrix()
    assert np.array_equal(cores.latency_ns, TRIANGLE, equal_nan=True)


def test_cpu_numbers_of_the_table_are_kept(write: Write) -> None:
    imported = matrix_file.read_output(write("CPU,4,5,9\n4,,,\n5,25.5,,\n9,90.25,91,\n"))
    assert imported.core_matrix().cpus == (4, 5, 9)
    assert "cpu numbers" not in imported.unknown


def test_directions_stay_apart(write: Write) -> None:
    cores = matrix_file.read_output(write(",6.1,27.8\n6.2,,23.8\n22.9,26.8,\n")).core_matrix()
    assert (cores.latency_ns[0, 1], cores.latency_ns[1, 0]) == (6.1, 6.2)


def test_missing_pairs_are_counted(write: Write) -> None:
    imported = matrix_file.read_output(write(",,\n25.5,,\n,91,\n"))
    assert np.isnan(imported.core_matrix().latency_ns[0, 2])
    assert imported.notes == ("1 of 3 pairs have no latency",)


@pytest.mark.parametrize("cell", ["0", "0.000", "nan", "NaN", "-"])
def test_zero_and_nan_are_pairs_that_were_not_measured(write: Write, cell: str) -> None:
    for text in (f",,\n25.5,,\n{cell},91,\n", C2CLAT.replace("   66", f" {cell}").replace("   62", f" {cell}")):
        imported = matrix_file.read_output(write(text))
        assert np.isnan(imported.core_matrix().latency_ns).sum() > len(imported.core_matrix().cpus)
        assert "pairs have no latency" in imported.notes[0]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_tables(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "m.csv.gz"
    path.write_bytes(pack(b",,\n25.5,,\n90.25,91,\n"))
    assert np.array_equal(matrix_file.read_output(path).core_matrix().latency_ns, TRIANGLE, equal_nan=True)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(NodeprintError, match="cut or garbled"):
        matrix_file.read_output(path)


def test_a_table_that_unpacks_to_more_than_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.csv.gz"
    path.write_bytes(gzip.compress(bytes(65 << 20)))
    with pytest.raises(NodeprintError, match="larger than 64 MiB"):
        matrix_file.read_output(path)


def test_numbers_on_the_diagonal_are_left_out_and_said(write: Write) -> None:
    imported = matrix_file.read_output(write("3,25.5,90.25\n25.5,3,91\n90.25,91,3\n"))
    assert np.array_equal(imported.core_matrix().latency_ns, TRIANGLE, equal_nan=True)
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


@pytest.mark.parametrize("text", [b"", b"\n\n", b"\x00\x01\x02", b"\xff\xfe\x00", b"\x89PNG\r\n\x1a\n\xff"])
def test_what_is_no_text(write: Write, text: bytes) -> None:
    with pytest.raises(NodeprintError, match=r"not text|empty"):
        matrix_file.read_output(write(text))


def test_absent_file_and_unknown_format(tmp_path: Path, write: Write) -> None:
    with pytest.raises(NodeprintError, match="cannot be read"):
        matrix_file.read_output(tmp_path / "absent")
    with pytest.raises(NodeprintError, match="known are nodeprint, intel-mlc"):
        matrix_file.read_output(write(LOWER), "excel")


def test_c2clat(write: Write) -> None:
    imported = matrix_file.read_output(write("$ ./c2clat\n" + C2CLAT, "log"))
    cores = imported.core_matrix()
    assert (imported.format, cores.cpus, cores.operation) == ("c2clat", (0, 2, 4, 6), "store-load")
    assert cores.latency_ns[2, 1] == cores.latency_ns[1, 2] == 50


def test_c2clat_script(write: Write) -> None:
    imported = matrix_file.read_output(write(GNUPLOT, "plot"))
    assert (imported.format, imported.core_matrix().cpus) == ("c2clat", (0, 1, 2))
    assert "cpu numbers" in imported.unknown
    assert imported.core_matrix().latency_ns[0, 1] == 92


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (C2CLAT.replace("   4   66", "   5   66"), 4, 1),
        (C2CLAT.replace("48    0\n", "48\n"), 5, 4),
        (C2CLAT.replace("   6   62   54   48    0\n", ""), 4, 1),
        (GNUPLOT.replace("EOD\nplot", "plot"), 10, 1),
        (GNUPLOT.replace("   92    0   50", "   92    0"), 8, 2),
    ],
)
def test_faults_of_c2clat(write: Write, text: str, line: int, column: int) -> None:
    refused(write(text), line, column)


def test_pingpong(write: Write) -> None:
    imported = matrix_file.read_output(write(PINGPONG, "log"))
    cores = imported.core_matrix()
    assert (imported.format, cores.cpus, cores.home) == ("multichase-pingpong", (0, 1, 2, 5), "first")
    assert cores.latency_ns[0, 3] == cores.latency_ns[3, 0] == 89.5
    assert cores.latency_ns[2, 3] == 13.5
    assert "operation" in imported.unknown


def test_pingpong_of_some_cores(write: Write) -> None:
    imported = matrix_file.read_output(write(PINGPONG.replace(" 2:                    13.5\n", ""), "log"))
    assert imported.notes == ("1 of 6 pairs have no latency",)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (PINGPONG.replace("    90.0", ""), 6, 2),
        (PINGPONG.replace("88.0", "oops"), 5, 3),
        (PINGPONG.replace(" 1: ", " 2: "), 6, 1),
        (PINGPONG + "Killed\n", 9, 1),
    ],
)
def test_faults_of_pingpong(write: Write, text: str, line: int, column: int) -> None:
    refused(write(text), line, column)


def between(first: float, second: float) -> dict[tuple[str, str], float]:
    """What a writer on each of two nodes takes for a reader on the other."""
    return {("writer on node 0", "reader on node 1"): first, ("writer on node 1", "reader on node 0"): second}


def test_mlc(write: Write) -> None:
    imported = matrix_file.read_output(write(MLC, "mlc.txt"))
    assert imported.format == "intel-mlc"
    tables = {table.name: table for table in imported.tables}
    assert tables["idle-latency"].dims == ("from", "memory")
    idle = {(0, 0): 82.2, (0, 1): 129.6, (1, 0): 131.1, (1, 1): 81.6}
    assert dict(tables["idle-latency"].cells) == {
        (f"node {a}", f"memory of node {b}"): value for (a, b), value in idle.items()
    }
    assert tables["bandwidth"].unit == "B/s"
    assert dict(tables["bandwidth"].cells)["node 0", "memory of node 1"] == pytest.approx(50923.4e6)
    assert dict(tables["c2c-writer-homed"].cells) == between(111.3, 111.1)
    assert dict(tables["c2c-reader-homed"].cells) == between(175.8, 176.7)
    assert dict(tables["c2c-local"].cells) == {("hit",): 51.6, ("hitm",): 51.7}
    assert len(imported.notes) == 2
    with pytest.raises(NodeprintError, match="no latencies between cores"):
        imported.core_matrix()


def test_mlc_of_former_versions_and_memory_without_cpus(write: Write) -> None:
    text = "Measuring idle latencies (in ns)...\n        Memory node\nSocket       0       1\n     0   106.9   107.9\n"
    (table,) = matrix_file.read_output(write(text)).tables
    ends = [("socket 0", "memory of socket 0"), ("socket 0", "memory of socket 1")]
    assert dict(table.cells) == dict(zip(ends, (106.9, 107.9), strict=True))


def test_what_mlc_measured_is_shown(write: Write, tmp_path: Path) -> None:
    """Each table has its rows in the verdict, on the node's page and in what `show` prints."""
    campaign_writer.write_campaign([matrix_file.read_output(write(MLC, "mlc.txt"))], tmp_path / "c")
    (node,) = judge(tmp_path / "c").verdict.nodes.values()
    figures = {(cell.measurement, cell.name): cell.median for cell in node.cells}
    assert figures["mlc-idle-latency", "node 1, memory of node 0"] == pytest.approx(131.1)
    assert figures["mlc-bandwidth", "node 0, memory of node 1"] == pytest.approx(50923.4e6)
    assert figures["mlc-c2c-reader-homed", "writer on node 1, reader on node 0"] == pytest.approx(176.7)
    shown = glance.medians({"mlc": node})
    assert any("memory latency" in line for line in shown) and any("131 ns" in line for line in shown)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (MLC.replace("82.2", "fast"), 5, 2),
        (MLC.replace("50916.6", "-50916.6"), 19, 2),
        (MLC.replace(" 129.6\t", ""), 5, 2),
        (MLC.replace("HIT  latency\t51.6", "HIT  latency\t0"), 28, 6),
        ("Measuring idle latencies (in ns)...\n", 1, 1),
        ("Measuring Loaded Latencies for the system\n", 1, 1),
    ],
)
def test_faults_of_mlc(write: Write, text: str, line: int, column: int) -> None:
    refused(write(text), line, column)


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
    cells = [value for table in imported.tables for _, value in table.cells]
    if imported.cores:
        values = imported.cores.latency_ns
        cells += values[~np.isnan(values)].tolist()
    assert cells
    assert all(value > 0 for value in cells)


def labelled(cpus: int) -> Topology:
    """CPUs in CCXs of four."""
    return Topology(Machine(name="made up"), tuple(Cpu(i, socket=0, ccx=i // 4, core=i) for i in range(cpus)))


def test_campaign_of_imported_files(tmp_path: Path, write: Write) -> None:
    made = epyc(1, 2, 2, 4, 1)
    text = "\n".join(",".join("" if np.isnan(v) else f"{v:.3f}" for v in row) for row in made.matrix)
    items = [
        matrix_file.read_output(write(text, "EPYC a&b.csv")),
        matrix_file.read_output(write(C2CLAT, "EPYC a_b.txt")),
        matrix_file.read_output(write(MLC, "EPYC a+b.txt")),
    ]
    campaign = tmp_path / "out" / "campaign"
    names = campaign_writer.write_campaign(items, campaign, [labelled(16), None, None])
    assert names == ["EPYC-a-b", "EPYC-a_b", "EPYC-a-b-2"]
    sheet = node_sheet.read_sheet(campaign / "nodes.tsv")
    assert [(node.node, node.cpus, node.measure) for node in sheet] == list(
        zip(names, (16, 4, 0), [False] * 3, strict=True)
    )

    folders = [campaign / "nodes" / name for name in names]
    cores, other, mlc = (jobs.read(folder / "job1") for folder in folders)
    assert cores.problems == other.problems == mlc.problems == ()
    assert [job.hosts for job in (cores, other, mlc)] == [{name} for name in names]
    assert valid_campaign(campaign) == ["records", "status.json", "topology.json"]
    values = matrix_source.read_source(folders[0]).latency_ns
    assert np.allclose(values, items[0].core_matrix().latency_ns, rtol=1e-5, equal_nan=True)
    header = cores.measured["coherence-cas"].header
    assert header["home"] is None
    assert header["imported"] == {
        "format": "core-to-core-latency",
        "source": "EPYC a&b.csv",
        "unknown": ["home", "topology", "spread", "cpu numbers"],
        "notes": [],
    }
    assert topology.from_text(store.survey(folders[0]).topology).cpus == labelled(16).cpus
    assert store.survey(folders[1]).topology == ""
    assert set(other.measured) == {"coherence-imported"}
    idle = mlc.measured["mlc-idle-latency"].columns["latency_ns"]
    assert idle.ravel().tolist() == pytest.approx([82.2, 129.6, 131.1, 81.6])
    assert {job.status.outcome for job in (cores, other, mlc) if job.status} == {"complete"}

    with pytest.raises(NodeprintError, match="holds a campaign already"):
        campaign_writer.write_campaign(items, campaign)


def test_matrices_of_unknown_processors_are_no_peers(tmp_path: Path, write: Write) -> None:
    """Of as many CPUs and without labels: they may be of any machine."""
    noise = np.random.default_rng(1)
    for name, factor in (("a", 1.0), ("b", 1.1), ("c", 1.0), ("d", 1.0), ("e", 1.0)):
        rows = factor * (100 + 0.2 * noise.normal(size=(16, 16)))
        text = "\n".join(",".join(f"{rows[a, b]:.3f}" if b < a else "" for b in range(16)) for a in range(16))
        write(text, f"{name}.csv")
    files = sorted(tmp_path.rglob("?.csv"))
    campaign_writer.write_campaign([matrix_file.read_output(file) for file in files], tmp_path / "out")
    nodes = judge(tmp_path / "out").verdict.nodes
    assert {figure.name for node in nodes.values() for figure in node.classes} == {"every pair"}
    assert {node.outcome for node in nodes.values()} == {Outcome.NO_PEERS}
    assert not any(node.findings for node in nodes.values())
    assert all("--part or --xml" in node.reasons[0].detail for node in nodes.values())


def test_matrices_of_two_processors_with_one_layout_are_no_peers(tmp_path: Path, write: Write) -> None:
    """A 7742 and a 7702 have the same CCXs at other clocks."""
    noise = np.random.default_rng(1)
    parts = [topology.from_part(name, 1, smt=False) for name in ("EPYC 7742", "EPYC 7742", "EPYC 7702", "EPYC 7702")]
    for number in range(4):
        rows = 100 + noise.normal(size=(64, 64))
        text = "\n".join(",".join(f"{rows[a, b]:.3f}" if b < a else "" for b in range(64)) for a in range(64))
        write(text, f"{number}.csv")
    items = [matrix_file.read_output(file) for file in sorted(tmp_path.rglob("?.csv"))]
    campaign_writer.write_campaign(items, tmp_path / "out", parts)
    assert [group.tolist() for group in judge(tmp_path / "out").population.configurations] == [[0, 1], [2, 3]]


def cli(*words: object) -> tuple[int, str]:
    """Exit status and all that a command prints."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return result.exit_code, result.output


def test_published_matrices_of_different_processors_are_no_peers(data: Path, tmp_path: Path) -> None:
    names = (
        "AMD Ryzen 7 5700X",
        "AMD Ryzen 7 5800U",
        "AMD Ryzen 9 5900HX @ 3.3 GHz",
        "Intel Core i9-9900K CPU @ 3.60 GHz",
    )
    files = [data / f"c2c/core-to-core-latency/{name}.csv" for name in names]
    assert cli("import", *files, "--out", tmp_path / "out")[0] == 0
    status, output = cli("judge", tmp_path / "out")
    assert status == 0 and "name it by --part or --xml" in " ".join(output.split())
    nodes = judge(tmp_path / "out").verdict.nodes
    assert len(nodes) == 4 and {node.outcome for node in nodes.values()} == {Outcome.NO_PEERS}
    assert cli("judge", tmp_path / "out", "--fail-on", "not-same")[0] == 3


@pytest.mark.parametrize("part", ["EPYC 9999", "Quantum 1", "Ryzen 9 1234X", "7", "EPYC"])
def test_a_part_that_is_not_in_the_table_is_one_sentence(tmp_path: Path, write: Write, part: str) -> None:
    with pytest.raises(NodeprintError, match=r"part of the table|more than one part") as error:
        CliRunner().invoke(
            app, ["import", str(write(LOWER)), "--part", part, "--out", str(tmp_path / "out")], catch_exceptions=False
        )
    assert "\n" not in str(error.value) and "--xml" in str(error.value)
    assert not (tmp_path / "out").exists()


def test_records_of_an_import_are_complete(tmp_path: Path, write: Write) -> None:
    campaign_writer.write_campaign(
        [matrix_file.read_output(write(LOWER)), matrix_file.read_output(write(MLC, "b"))], tmp_path / "c"
    )
    files = sorted((tmp_path / "c").rglob("*.jsonl.gz"))
    assert len(files) == 6
    assert all(records.read(path).complete and not records.read(path).notes for path in files)


def test_empty_import(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="no file"):
        campaign_writer.write_campaign([], tmp_path / "c")


def test_what_is_there_twice_is_refused(tmp_path: Path, write: Write) -> None:
    rows = "\n".join(",".join("" if a == b else f"{40 + a + b}.5" for b in range(8)) for a in range(8))
    first, copy = matrix_file.read_output(write(rows, "first.csv")), matrix_file.read_output(write(rows, "copy.csv"))
    with pytest.raises(NodeprintError, match=r"copy.csv: has the same figures as .*first.csv"):
        campaign_writer.write_campaign([first, copy], tmp_path / "out")
    small = [matrix_file.read_output(write(",59\n59,\n", name)) for name in ("a.csv", "b.csv")]
    assert campaign_writer.write_campaign(small, tmp_path / "two") == ["a", "b"]  # alike by chance
    with pytest.raises(NodeprintError, match="same figures"):
        campaign_writer.write_campaign([small[0], small[0]], tmp_path / "again")


def test_topology_must_have_the_matrix_cpus(tmp_path: Path, write: Write) -> None:
    with pytest.raises(NodeprintError, match="CPU 4 of the matrix"):
        campaign_writer.write_campaign([matrix_file.read_output(write(C2CLAT))], tmp_path / "c", labelled(4))
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(("ccx", "said"), [(4, ""), (8, "4 groups of 4 CPUs, which are not the 2 CCXs of 8 CPUs")])
def test_a_layout_that_is_not_the_matrix_s_is_named(write: Write, ccx: int, said: str) -> None:
    made = epyc(1, 2, 2, 4, 1).matrix
    path = write("\n".join(",".join("" if np.isnan(v) else f"{v:.3f}" for v in row) for row in made))
    labels = Topology(Machine(), tuple(Cpu(i, socket=0, ccx=i // ccx, core=i) for i in range(16)))
    found = "; ".join(layout_misfit.warnings([matrix_file.read_output(path)], labels))
    assert said in found and bool(found) == bool(said)
    assert found == "" or (found.startswith(f"{path}: ") and "give the part, --sockets and --no-smt" in found)


def test_published_matrices(data: Path) -> None:
    """Every published file is read; one of them holds a terminal's output."""
    files = sorted((data / "c2c/core-to-core-latency").glob("*.csv"))
    assert len(files) > 30
    for path in files:
        cores = matrix_file.read_output(path).core_matrix()
        in_terminal = path.name.startswith("IBM PPC970")
        assert len(cores.cpus) == (2 if in_terminal else len(path.read_text().strip("\n").split("\n")))
        assert structure.find(cores.latency_ns, cores.cpus).as_json()


def test_the_help_names_every_format() -> None:
    assert set(shared.FORMATS) == set(matrix_file.FORMATS)


@pytest.mark.parametrize(("of_passes", "differ"), [((120.0, 120.0, 25.0), True), ((120.0, 118.0, 121.0), False)])
def test_passes_of_a_record_that_differ_are_said(tmp_path: Path, of_passes: tuple[float, ...], differ: bool) -> None:
    file = tmp_path / "one.jsonl"
    pairs = [made_records.pair(0, 1, number, ns) for number, ns in enumerate(of_passes)]
    file.write_text(made_records.lines(made_records.header(passes=3), *pairs, made_records.TRAILER))
    words = "pass 3 differs from the others by a factor of 4.8: CPUs 0 and 1 have 25 ns in pass 3 and 120 ns in pass 1"
    for command in (["structure", str(file)], ["import", str(file), "--out", str(tmp_path / "campaign")]):
        ended = CliRunner().invoke(app, command)
        assert ended.exit_code == 0, ended.output
        assert (words in ended.output) == differ
