"""What benchmarks print becomes figures of nodes. `outputs` holds what the tools printed; where a tool cannot be had
its own documentation or print statements are the source of the lines below, named beside them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.readers import table_file, tool_logs, units
from nodeprint.readers.value_table import ValueTable

OUTPUTS = Path(__file__).parent / "outputs"


def values(figures: ValueTable) -> dict[tuple[str, ...], float]:
    """By metric, and its parts, the values of the runs' last."""
    keys = figures.frame[["metric", *figures.parts]].astype(str).itertuples(index=False, name=None)
    return dict(zip(keys, figures.frame["value"].tolist(), strict=True))


def of_text(tmp_path: Path, text: str, name: str = "cn001.log") -> ValueTable:
    """The figures of a file that is stated to be one node's."""
    (tmp_path / name).write_text(text)
    return tool_logs.read_logs(tmp_path / name, pattern="{node}.*")


PRINTED: dict[str, dict[tuple[str, ...], float]] = {
    "stream.txt": {
        ("stream-triad",): 3033.0,
        ("stream-copy",): 1471.8,
        ("stream-scale",): 742.9,
        ("stream-add",): 1377.5,
    },
    "likwid-bench.txt": {("likwid-bench-triad",): 4068.08, ("likwid-flops-triad",): 254.26},
    "hpl.txt": {("hpl",): 0.02814},
    "osu-latency.txt": {("osu-mpi-latency", "1"): 0.24, ("osu-mpi-latency", "256"): 0.37},
    "osu-bw.txt": {("osu-mpi-bandwidth", "2"): 26.89},
    "osu-allreduce.txt": {("osu-mpi-allreduce-latency", "4"): 1.60},
    "imb.txt": {("imb-pingpong", "64"): 0.32, ("imb-pingpong-rate", "64"): 197.50, ("imb-allreduce", "64"): 0.47},
    "sysbench-cpu.txt": {("sysbench-cpu",): 506.0},
    "sysbench-memory.txt": {("sysbench-memory",): 1092.66},
    "hyperfine.json": {("sleep 0.01",): 0.14736716900000002},
    "google-benchmark.json": {("BM_copy/4096",): 192.25536851016233},
    "reframe.log": {("stream_like triad",): 4345.5, ("stream_like copy",): 3987.1},
}


@pytest.mark.parametrize("name", PRINTED)
def test_what_a_tool_printed(name: str) -> None:
    figures = tool_logs.read_logs(OUTPUTS / name)
    assert PRINTED[name].items() <= values(figures).items()
    assert figures.notes == ()
    assert all(units.known(unit) for unit in figures.frame["unit"])
    assert (
        set(figures.frame["unit"]) - {"MB/s", "MiB/s", "Mflop/s", "Gflop/s", "us", "s", "ns", "B/s", "events/s"}
        == set()
    )


def test_every_output_has_its_expected_figures() -> None:
    assert {path.name for path in OUTPUTS.iterdir()} == {*PRINTED, "README"}


def test_nodes_runs_and_times_of_the_text() -> None:
    log = tool_logs.read_logs(OUTPUTS / "reframe.log").frame
    assert set(log["node"]) == {"vm"} and sorted(set(log["job"])) == ["11401", "11516"]
    assert log["time"].str.startswith("2026-11-26T14:33").all()
    assert set(tool_logs.read_logs(OUTPUTS / "google-benchmark.json").frame["node"]) == {"vm"}
    assert sorted(tool_logs.read_logs(OUTPUTS / "hyperfine.json").frame["run"].unique()) == ["1", "2", "3"]


# --- lines after the tools' documentation ---

#: https://github.com/NVIDIA/nvbandwidth, README.md (its example's form), output.cpp (host and devices)
NVBANDWIDTH = """nvbandwidth Version: v0.8
Driver Version: 560.35.05

gpu07
Device 0: NVIDIA H100 (00000000:19:00)
Device 1: NVIDIA H100 (00000000:3b:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     55.31     55.29

SUM host_to_device_memcpy_ce 110.60

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    381.02
 1    382.11       N/A

SUM device_to_device_memcpy_read_ce 763.13

Running host_device_latency_sm.
memory latency SM CPU(row) <-> GPU(column) (ns)
           0         1
 0    772.58    773.10

Running multinode_device_to_device_memcpy_read_ce.
Waived: system has too few nodes
"""


def test_nvbandwidth(tmp_path: Path) -> None:
    figures = of_text(tmp_path, NVBANDWIDTH)
    assert set(figures.frame["node"]) == {"gpu07"}
    assert values(figures) == {
        ("nvbandwidth-host_to_device_memcpy_ce", "0", ""): 55.31,
        ("nvbandwidth-host_to_device_memcpy_ce", "1", ""): 55.29,
        ("nvbandwidth-device_to_device_memcpy_read_ce", "1", "0"): 381.02,
        ("nvbandwidth-device_to_device_memcpy_read_ce", "0", "1"): 382.11,
        ("nvbandwidth-host_device_latency_sm", "0", ""): 772.58,
        ("nvbandwidth-host_device_latency_sm", "1", ""): 773.1,
    }
    assert set(figures.frame["unit"]) == {"GB/s", "ns"}


def test_nvbandwidth_as_json(tmp_path: Path) -> None:
    """Keys and texts of json_output.cpp."""
    case = {
        "name": "device_to_device_memcpy_read_ce",
        "status": "Passed",
        "sum": 763.1,
        "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
        "bandwidth_matrix": [["N/A", "381.02"], ["382.11", "N/A"]],
    }
    content = {
        "CUDA Runtime Version": 12060,
        "GPU Device list": ["0: NVIDIA H100 (00000000:19:00): (gpu07)"],
        "testcases": [case, {"name": "host_to_device_bidirectional_memcpy_ce", "status": "Waived"}],
    }
    figures = of_text(tmp_path, json.dumps({"nvbandwidth": content}, indent=1))
    assert set(figures.frame["node"]) == {"gpu07"}
    assert sorted(figures.frame["value"]) == [381.02, 382.11]


#: https://github.com/hpcg-benchmark/hpcg, src/ReportResults.cpp: the keys of version 3.1 and the sentence of 3.0
@pytest.mark.parametrize(
    "line",
    [
        "Final Summary::HPCG result is VALID with a GFLOP/s rating of=51.7859",
        "  HPCG result is VALID with a GFLOP/s rating of: 51.7859",
    ],
)
def test_hpcg(tmp_path: Path, line: str) -> None:
    text = f"HPCG-Benchmark\nversion=3.1\nMachine Summary::Distributed Processes=96\n{line}\n"
    assert values(of_text(tmp_path, text)) == {("hpcg",): 51.7859}
    with pytest.raises(NodeprintError, match="HPCG's result is invalid"):
        of_text(tmp_path, text.replace("VALID", "INVALID"))
    with pytest.raises(NodeprintError, match="no HPCG result"):
        of_text(tmp_path, text.rpartition(line)[0])


def dcgm(status: str, info: list[str]) -> str:
    """NVIDIA DCGM 3, nvvs/include/JsonOutput.h: categories, tests, results with their information."""
    results = [{"gpu_ids": "3", "status": status, "info": info}]
    tests = [
        {"name": "PCIe", "results": results},
        {"name": "NVML Library", "results": [{"gpu_ids": "3", "status": "Pass"}]},
    ]
    return json.dumps(
        {"DCGM GPU Diagnostic": {"test_categories": [{"category": "Integration", "tests": tests}]}}, indent=1
    )


def test_dcgm(tmp_path: Path) -> None:
    info = ["GPU 3 GPU to Host bandwidth:\t\t52.41 GB/s", "GPU 3 GPU to Host latency:\t\t1.56 us"]
    figures = of_text(tmp_path, f"Successfully ran diagnostic for group.\n{dcgm('Pass', info)}")
    assert values(figures) == {("dcgm-gpu-to-host-bandwidth", "3"): 52.41, ("dcgm-gpu-to-host-latency", "3"): 1.56}
    with pytest.raises(NodeprintError, match="test PCIe of GPU 3 failed"):
        of_text(tmp_path, dcgm("Fail", info))
    with pytest.raises(NodeprintError, match="its tests only pass or fail; give level 3"):
        of_text(tmp_path, dcgm("Pass", []))


def test_superbench(tmp_path: Path) -> None:
    """https://github.com/microsoft/superbenchmark, docs/user-tutorial/data-diagnosis.md: results-summary.jsonl."""
    line = {
        "node": "gpu01",
        "mem-bw/h2d_bw:0": 25.6,
        "mem-bw/h2d_bw:1": 25.5,
        "mem-bw/return_code": 0,
        "bert_models/pytorch-bert-base/throughput_train_float16": 382.1,
    }
    figures = of_text(tmp_path, "".join(json.dumps(line | {"node": node}) + "\n" for node in ("gpu01", "gpu02")))
    assert set(figures.frame["node"]) == {"gpu01", "gpu02"}
    assert values(figures) == {
        ("mem-bw/h2d_bw", "0"): 25.6,
        ("mem-bw/h2d_bw", "1"): 25.5,
        ("bert_models/pytorch-bert-base/throughput_train_float16", ""): 382.1,
    }


#: Written after the forms that the importer of MLC documents.
MLC = """Intel(R) Memory Latency Checker - v3.9
Measuring idle latencies (in ns)...
                Numa node
Numa node            0       1
       0          81.2   139.7
       1         140.1    80.9

Measuring Peak Injection Memory Bandwidths for the system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
ALL Reads        :      233234.1
3:1 Reads-Writes :      218871.9
Stream-triad like:      200111.5
"""


@pytest.mark.parametrize("result", [MLC, MLC.partition("\n")[2]])
def test_results_of_mlc_in_one_file_are_runs(tmp_path: Path, result: str) -> None:
    runs = [re.sub(r"(\.\d)\b", rf"\g<1>{run}", result) for run in range(3)]
    figures = of_text(tmp_path, "".join(runs))
    of_pair = figures.frame[(figures.frame["from"] == "node 0") & (figures.frame["memory"] == "memory of node 1")]
    assert of_pair["run"].tolist() == ["1", "2", "3"]
    with pytest.raises(NodeprintError, match="cells for 2 nodes"):
        of_text(tmp_path, runs[1] + result.replace("139.7", ""))


def test_mlc(tmp_path: Path) -> None:
    figures = of_text(tmp_path, MLC)
    assert values(figures)["intel-mlc-idle-latency", "node 0", "memory of node 1"] == 139.7
    assert values(figures)["intel-mlc-peak-all-reads", "", ""] == 233234.1
    assert len(figures.frame) == 7


@pytest.mark.parametrize(
    ("head", "figure"),
    [
        ("Maximum prime number checked in CPU test: 10000\n", {("sysbench-cpu-time",): 10.0212}),
        ("Running memory speed test with the following options:\n", {("sysbench-memory-time",): 10.0212}),
    ],
)
def test_sysbench_of_before(tmp_path: Path, head: str, figure: dict[tuple[str, ...], float]) -> None:
    """Version 0.4 printed no rate of cpu (sysbench.c, its summary of a test's execution)."""
    text = f"sysbench 0.4.12:  multi-threaded system evaluation benchmark\n\nNumber of threads: 1\n\n{head}\n"
    assert values(of_text(tmp_path, f"{text}    total time:                          10.0212s\n")) == figure
    with pytest.raises(NodeprintError, match="without its figure"):
        of_text(tmp_path, text)


#: Forms that other versions of the tools print, with made-up figures.
OTHER_FORMS: dict[str, tuple[str, dict[tuple[str, ...], float]]] = {
    "osu with validation": (
        "# OSU MPI Bandwidth Test v7.5\n# Datatype: MPI_CHAR.\n"
        "# Size  Bandwidth (MB/s)  Validation\n"
        "1     0.93    Pass\n",
        {("osu-mpi-bandwidth", "1"): 0.93},
    ),
    "osu of messages": (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v5.6\n# [ pairs: 1 ] [ window size: 64 ]\n"
        "# Size                  MB/s        Messages/s\n1     7.79   7790845.03\n",
        {
            ("osu-mpi-multiple-bandwidth-/-message-rate", "1"): 7.79,
            ("osu-mpi-multiple-bandwidth-/-message-rate-messages/s", "1"): 7790845.03,
        },
    ),
    "osu without sizes": (
        "# OSU MPI Hello World Test v5.6\nThis is a test with 2 processes\n"
        "# OSU MPI Init Test v5.6\nnprocs: 2, min: 13 ms, max: 14 ms, avg: 13 ms\n"
        "# OSU MPI Barrier Latency Test v5.6\n# Avg Latency(us)\n   1.25\n",
        {("osu-mpi-init",): 13.0, ("osu-mpi-barrier-latency",): 1.25},
    ),
    "imb of all at once": (
        "#Benchmarking  #procs  #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
        "Allreduce      96      4      1000         297.88   298.07     297.95\n",
        {("imb-allreduce", "4"): 297.95},
    ),
    "stream for gpus": (
        "Function      Rate (GiB/s)  Avg time(s)  Min time(s)  Max time(s)\n-----\n"
        + "".join(f"{kernel}:  734.1  0.0013  0.0012  0.0014\n" for kernel in ("Copy", "Scale", "Add", "Triad")),
        {("stream-triad",): 734.1},
    ),
    "hpcg of before": ("HPCG result is VALID with a GFLOP/s rating of 3.289080\n", {("hpcg",): 3.28908}),
    "hpl of nvidia": (
        "HPLinpack 2.1  --\nT/V         N    NB     P     Q         Time          Gflops (   per GPU)\n"
        "WC0          95360   288     4     1        8.21        7.043e+04 ( 1.761e+04)\n",
        {("hpl",): 70430.0},
    ),
    "likwid-bench of before": (
        "LIKWID MICRO BENCHMARK\nTest: clload\nSize:                   16000\nMByte/s:  21000.5\n",
        {("likwid-bench-clload",): 21000.5},
    ),
    "sysbench of files": (
        "sysbench 0.4.12:  multi\n\n128 files, 8192Kb each\n\nsysbench 0.4.12:  multi\n\n"
        "Running the test with following options:\nNumber of threads: 1\nThreads started!\n"
        "Read 305.98Mb  Written 203.98Mb  Total transferred 509.97Mb  (1.6996Mb/sec)\n",
        {("sysbench-fileio",): 1.6996},
    ),
    "superbench of one node": (
        '{\n  "mem-bw/h2d_bw:0": 25.6,\n  "mem-bw/return_code": 0\n}\n',
        {("mem-bw/h2d_bw", "0"): 25.6},
    ),
}


#: Version 1 prints the same of threads and mutexes, but for figures.
SYSBENCH_1 = """{command}
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Threads started!

General statistics:
    total time:                          {seconds}s
    total number of events:              {events}
"""


def test_sysbench_of_threads_and_mutexes(tmp_path: Path) -> None:
    """A script's log: which test it is says the line before it; without it there is no figure of that name."""
    threads = SYSBENCH_1.format(command="====== sysbench threads run", seconds="10.0000", events=16120)
    mutex = SYSBENCH_1.format(command="====== sysbench mutex run", seconds="0.1415", events=1)
    figures = of_text(tmp_path, threads + mutex)
    assert values(figures) == {("sysbench-threads",): 1612.0, ("sysbench-mutex-time",): 0.1415}
    with pytest.raises(NodeprintError, match="line 2: a test that sysbench does not name"):
        of_text(tmp_path, SYSBENCH_1.format(command="", seconds="10.0", events=16120))


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_other_forms(tmp_path: Path, form: str) -> None:
    text, expected = OTHER_FORMS[form]
    figures = of_text(tmp_path, text)
    assert {tuple(key for key in place if key): value for place, value in values(figures).items()} == expected or (
        expected.items() <= values(figures).items()
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# OSU MPI Bandwidth Test v7.5\n# Size  Bandwidth (MB/s)  Validation\n1  0.93  Fail\n", "does not validate"),
        ("# OSU MPI Latency Test v5.8\n# Size   Latency (us)\n[cn16:70] Bus error\n", "line 2: a table without a line"),
        ("HPLinpack 2.1  --\nmpirun: killed\n", "line 2: HPL solved no problem"),
        ("sysbench 1.0.20\nRunning the test with following options:\n", "a test of sysbench without its figure"),
    ],
)
def test_outputs_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NodeprintError, match=message):
        of_text(tmp_path, text)


@pytest.mark.parametrize("text", ["node triad\ncn1 3000\n", '{\n "triad": 3\n}\n', "# a log\nof something else\n"])
def test_what_is_neither_output_nor_table_is_named_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(NodeprintError, match="begins no output of a known tool, and no table; give outputs of stream"):
        table_file.read_table(tmp_path / "x.txt")


# --- several results in one text ---


def stream(triad: float, threads: int = 2) -> str:
    text = (OUTPUTS / "stream.txt").read_text().replace("3033.0", f"{triad:.1f}")
    return text if threads > 1 else "".join(line for line in text.splitlines(True) if "Threads" not in line)


def test_threads_of_stream_that_differ_are_said(tmp_path: Path) -> None:
    said = re.findall(r"Number of Threads \w+ = \d+", stream(3000))
    assert said
    for number in range(1, 6):
        threads = "32" if number == 4 else "64"
        text = re.sub(r"(Number of Threads \w+ =) \d+", rf"\1 {threads}", stream(3000 + number))
        (tmp_path / f"cn{number:03d}.txt").write_text(text)
    figures = tool_logs.read_logs(tmp_path)
    assert figures.notes == ("threads is 64 on most nodes, 32 on cn004",)
    assert figures.fields["cn004"] == {"threads": "32"}


def test_stream_again_and_again_is_runs(tmp_path: Path) -> None:
    figures = of_text(tmp_path, stream(3000) + stream(3050) + stream(2990))
    triad = figures.frame[figures.frame["metric"] == "stream-triad"]
    assert list(zip(triad["run"], triad["value"], strict=True)) == [("1", 3000.0), ("2", 3050.0), ("3", 2990.0)]


@pytest.mark.parametrize("end", ["Copy:            1471.8     0.05", "STREAM version"])
def test_a_result_of_stream_that_is_cut_is_refused(tmp_path: Path, end: str) -> None:
    last = stream(2990)
    with pytest.raises(NodeprintError, match=r"1 lines of .* for 2 results; let STREAM end"):
        of_text(tmp_path, stream(3000) + last[: last.index(end) + len(end)])


def test_several_results_of_nobody_are_rejected(tmp_path: Path) -> None:
    """Of a file, where an option states the node, and of what comes in, where a line does."""
    runs = stream(3000) + stream(3050)
    (tmp_path / "cn001.log").write_text(runs)
    with pytest.raises(NodeprintError, match=r"cn001\.log: 2 results, and nothing says of which nodes; .*--node-name"):
        tool_logs.read_logs(tmp_path / "cn001.log")
    with pytest.raises(NodeprintError, match=r"standard input: 2 results, .*; print `hostname: NAME` first"):
        tool_logs.read_logs(tmp_path / "cn001.log", "standard input")
    (tmp_path / "cn001.log").write_text(f"hostname: cn7\n{runs}")
    assert set(tool_logs.read_logs(tmp_path / "cn001.log", "standard input").frame["node"]) == {"cn7"}


def test_outputs_of_json_behind_each_other_are_rejected(tmp_path: Path) -> None:
    text = (OUTPUTS / "hyperfine.json").read_text()
    with pytest.raises(NodeprintError, match="several JSON objects, and nothing says of which nodes"):
        of_text(tmp_path, text + text)


def test_nvbandwidth_of_several_hosts_in_one_file(tmp_path: Path) -> None:
    other = NVBANDWIDTH.replace("gpu07", "gpu08").replace("381.02", "191.02")
    frame = of_text(tmp_path, NVBANDWIDTH + other).frame
    assert frame.groupby("node")["value"].min().to_dict() == {"gpu07": 55.29, "gpu08": 55.29}
    assert frame[frame["value"] == 191.02]["node"].tolist() == ["gpu08"]


def test_copies_of_stream_have_a_median_and_a_slowest(tmp_path: Path) -> None:
    """Of processes with one thread each, and of tasks whose lines are mixed, as srun --label prints them."""
    copies = [stream(rate, threads=1) for rate in (3000, 3100, 2000)]
    figures = of_text(tmp_path, "".join(copies))
    assert values(figures)["stream-triad-of-copies",] == 3000.0 and len(figures.frame) == 8
    assert values(figures)["stream-triad-of-copies-minimum",] == 2000.0
    lines = [f"{task}: {line}" for task, text in enumerate(copies) for line in text.splitlines()]
    mixed = "\n".join(sorted(lines, key=lambda line: copies[int(line[0])].splitlines().index(line[3:])))
    assert values(of_text(tmp_path, mixed)) == values(figures)


def test_a_log_with_several_tools(tmp_path: Path) -> None:
    text = "".join(
        (OUTPUTS / name).read_text() for name in ("stream.txt", "hpl.txt", "osu-latency.txt", "sysbench-cpu.txt")
    )
    figures = of_text(tmp_path, f"Loading gcc/13\n\x1b[32mready\x1b[0m\n```\n{text}\n```\n")
    assert {metric.partition("-")[0] for metric in figures.frame["metric"]} == {"stream", "hpl", "osu", "sysbench"}


@pytest.mark.parametrize("how", ["pdsh", "dshbak", "tail"])
def test_outputs_of_nodes_gathered_in_one_file(tmp_path: Path, how: str) -> None:
    texts = {f"cn{number:03d}": stream(3000 + number) for number in (1, 2, 3)}
    if how == "pdsh":
        lines = [f"{node}: {line}".rstrip() for node, text in texts.items() for line in text.splitlines()]
        gathered = "\n".join(sorted(lines, key=lambda line: line.partition(":")[0] != "cn002"))
    elif how == "dshbak":
        gathered = "".join(f"{'-' * 16}\n{node}\n{'-' * 16}\n{text}" for node, text in texts.items())
    else:
        gathered = "".join(f"==> logs/{node}.out <==\n{text}\n" for node, text in texts.items())
    frame = of_text(tmp_path, gathered, "all.txt").frame
    triad = frame[frame["metric"] == "stream-triad"]
    assert dict(zip(triad["node"], triad["value"], strict=True)) == {"cn001": 3001.0, "cn002": 3002.0, "cn003": 3003.0}


# --- folders ---


def folder(tmp_path: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (("stream-{}.log", "stream-{}.log"), ""),
        (("{}/stream.out", "{}/stream.out"), ""),
        (("{}_run1.txt", "{}_run2.txt"), "{node}_run*.txt"),
        (("job17/{}.1.log", "job18/{}.2.log"), "*/{node}.*.log"),
    ],
)
def test_nodes_by_the_names_of_files(tmp_path: Path, names: tuple[str, str], pattern: str) -> None:
    texts = {
        name.format(node): stream(3000 + run) for node in ("cn001", "cn002", "cn013") for run, name in enumerate(names)
    }
    frame = tool_logs.read_logs(folder(tmp_path, texts), pattern=pattern).frame
    assert set(frame["node"]) == {"cn001", "cn002", "cn013"}


def test_names_that_may_be_runs_are_asked_for(tmp_path: Path) -> None:
    texts = {f"cn{node:03d}.{run}.log": stream(3000 + run) for node in (1, 2) for run in (1, 2)}
    with pytest.raises(NodeprintError, match=r"cn001\.1 and cn001\.2 may be two nodes, or two runs of cn001;"):
        tool_logs.read_logs(folder(tmp_path, texts))
    with pytest.raises(NodeprintError, match=r"fits no file, as cn001\.1\.log"):
        tool_logs.read_logs(tmp_path, pattern="gpu{node}.log")


def test_a_faulty_output_is_a_node_that_was_not_measured(tmp_path: Path) -> None:
    broken = (OUTPUTS / "stream.txt").read_text().replace("Solution Validates", "Failed Validation on array a[]")
    texts = {"cn001.log": stream(3000), "cn002.log": stream(3010), "cn003.log": broken, "notes.md": "nothing"}
    figures = tool_logs.read_logs(folder(tmp_path, texts))
    assert figures.unmeasured == ("cn003",)
    assert any("notes.md" in note for note in figures.notes)
    assert any("does not validate" in note for note in figures.notes)
    with pytest.raises(
        NodeprintError, match=r"cn003\.log: line 37: STREAM's result does not validate|does not validate"
    ):
        tool_logs.read_logs(tmp_path / "cn003.log")


def test_a_folder_is_judged(tmp_path: Path) -> None:
    """Five runs a node; one of twelve is a tenth slower."""
    texts = {
        f"stream-cn{node:03d}.log": "".join(
            stream(3000 * (0.9 if node == 7 else 1) * (1 + 0.002 * run)) for run in range(5)
        )
        for node in range(12)
    }
    done = CliRunner().invoke(app, ["judge", str(folder(tmp_path, texts))])
    assert done.exit_code == 0, done.output
    assert re.search(r"cn007: SUSPECT\. .*stream-triad.* 10(\.\d)? % ", done.output.replace("\n", " ")), done.output


@pytest.mark.parametrize("text", ["", "nothing of any tool\n", '{"results": 3}\n'])
def test_no_output_at_all(tmp_path: Path, text: str) -> None:
    with pytest.raises(NodeprintError):
        tool_logs.read_logs(folder(tmp_path, {"a.log": text, "b.log": text}))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(PRINTED)), st.data())
def test_broken_outputs_end_with_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    """Lines lost, cut and doubled, letters changed: a refusal, or figures that stand in the text."""
    lines = (OUTPUTS / name).read_text().splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(lines) - 1, 0)))
        kind = data.draw(st.sampled_from(["lost", "cut", "twice", "letter", "end"]))
        line = lines[at] if lines else ""
        if kind == "end":
            lines = lines[:at]
        elif kind == "letter" and line:
            place = data.draw(st.integers(0, len(line) - 1))
            lines[at] = (
                line[:place] + data.draw(st.characters(codec="utf-8", exclude_categories=["Cs"])) + line[place + 1 :]
            )
        elif lines:
            lines[at : at + 1] = {"lost": [], "cut": [line[: len(line) // 2]], "twice": [line, line]}.get(kind, [line])
    path = tmp_path_factory.mktemp("x") / "out.txt"
    path.write_text("\n".join(lines), errors="replace")
    try:
        figures = tool_logs.read_logs(path)
    except NodeprintError as error:
        assert len(str(error)) < 700
        return
    assert (figures.frame["value"] > 0).all()


@pytest.mark.parametrize("name", ["hpl.txt", "stream.txt"])
def test_a_node_whose_benchmark_finds_its_result_wrong_is_found(tmp_path: Path, name: str) -> None:
    text = (OUTPUTS / name).read_text()
    for node in range(4):
        (tmp_path / f"cn{node}.log").write_text(re.sub(r"\b(\d+\.\d)(?=\s|\d*e)", rf"\g<1>{node}", text))
    wrong = text.replace("PASSED", "FAILED").replace("Solution Validates", "Failed Validation on array a[]")
    (tmp_path / "cn3.log").write_text(wrong)
    done = CliRunner().invoke(app, ["judge", str(tmp_path), "--fail-on", "found"])
    assert done.exit_code == 3 and "cn3: WRONG RESULT. A benchmark" in done.output, done.output
