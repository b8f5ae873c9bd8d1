"""What benchmarks print becomes figures of nodes. `outputs` holds what the tools printed; where a tool cannot be had
its own documentation or print statements are the source of the lines below, named beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.readers import table_file, tool_logs, units
from nodeprint.settings.texts import say
from tests.support.tool_output import OUTPUTS, of_text, stream, values

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
    figures = tool_logs.read_logs(OUTPUTS / name, pattern="{node}.*")
    assert PRINTED[name].items() <= values(figures).items()
    between_two = [say("read", "between_two")] if name in ("osu-latency.txt", "osu-bw.txt") else []
    assert list(figures.notes) == between_two
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
    runs = tool_logs.read_logs(OUTPUTS / "hyperfine.json", pattern="{node}.json").frame["run"]
    assert sorted(runs.unique()) == ["1", "2", "3"]


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


@pytest.mark.parametrize("text", ["a triad\ncn1 3000\n", '{\n "triad": 3\n}\n', "# a log\nof something else\n"])
def test_what_is_neither_output_nor_table_is_named_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(NodeprintError, match="no output of a known tool, and no table; give outputs of cuda-bandwidth"):
        table_file.read_table(tmp_path / "x.txt")


def test_several_results_of_nobody_are_rejected(tmp_path: Path) -> None:
    """Of a file, where an option states the node, and of what comes in, where a line does."""
    runs = stream(3000) + stream(3050)
    (tmp_path / "cn001.log").write_text(runs)
    with pytest.raises(NodeprintError, match=r"cn001\.log: 2 results, and nothing says of which nodes; print"):
        tool_logs.read_logs(tmp_path / "cn001.log")
    with pytest.raises(NodeprintError, match=r"standard input: 2 results, .*; print `hostname: NAME` first"):
        tool_logs.read_logs(tmp_path / "cn001.log", "standard input")
    (tmp_path / "cn001.log").write_text(f"hostname: cn7\n{runs}")
    assert set(tool_logs.read_logs(tmp_path / "cn001.log", "standard input").frame["node"]) == {"cn7"}


def test_outputs_of_json_behind_each_other_are_rejected(tmp_path: Path) -> None:
    text = (OUTPUTS / "hyperfine.json").read_text()
    with pytest.raises(NodeprintError, match="several JSON objects, and nothing says of which nodes"):
        of_text(tmp_path, text + text)


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


def test_single_file_without_a_host_is_rejected(tmp_path: Path) -> None:
    """It may be of a job on several nodes: a word in its name is not a node because there is no other file."""
    for name in ("Osu_bw.out", "slurm-4711.out", "hpl.log", "2-nodes.log", "gcc12.log", "cn001-cn002.log"):
        (tmp_path / name).write_text(stream(3000))
        with pytest.raises(NodeprintError, match=f"{name}: --path: nothing states the node of its result; print"):
            tool_logs.read_logs(tmp_path / name)
    with pytest.raises(NodeprintError, match="standard input: nothing states the node of its result; print"):
        tool_logs.read_logs(tmp_path / "hpl.log", "standard input")
    assert set(tool_logs.read_logs(tmp_path / "hpl.log", pattern="{node}.log").frame["node"]) == {"hpl"}


@pytest.mark.parametrize("nodes", ["SLURM_JOB_NODELIST=cn[001-004]", "Nodes: cn001 cn002 cn003", "SLURM_NNODES=4"])
def test_result_of_a_job_on_several_nodes_is_not_of_the_first(tmp_path: Path, nodes: str) -> None:
    """A script prints its host and the job's nodes. STREAM is of this host, but HPL may be of all of them."""
    (tmp_path / "job.log").write_text(f"hostname: cn001\n{nodes}\n{(OUTPUTS / 'hpl.txt').read_text()}")
    with pytest.raises(NodeprintError, match=r"several hosts are named|a job on 4 nodes, and nothing marks which"):
        tool_logs.read_logs(tmp_path / "job.log")
    (tmp_path / "job.log").write_text(f"hostname: cn001\n{nodes}\n{stream(3000)}")
    assert set(tool_logs.read_logs(tmp_path / "job.log").frame["node"]) == {"cn001"}


def test_number_of_a_node_may_be_of_a_numa_node(tmp_path: Path) -> None:
    """As `node=0` in a script that is in a text with one result."""
    (tmp_path / "numa.md").write_text(f"{stream(3000)}node=0\n")
    with pytest.raises(NodeprintError, match="nothing states the node of its result"):
        tool_logs.read_logs(tmp_path / "numa.md")


@pytest.mark.parametrize("name", ["cn017.log", "stream-cn017.txt", "cn017_64threads.log", "slurm-4711-cn017.out"])
def test_single_file_is_named_after_its_host(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(stream(3000))
    frame = tool_logs.read_logs(tmp_path / name)
    assert set(frame.frame["node"]) == {"cn017"} and frame.sources["node"] == "the file name"


def test_pair_of_hosts_is_no_node(tmp_path: Path) -> None:
    texts = {f"cn001-cn{node:03d}.{run}.txt": stream(3000 + node + run) for node in (2, 3, 4) for run in (1, 2)}
    with pytest.raises(NodeprintError, match="takes cn001-cn002 for a node, but it names two hosts; state the second"):
        tool_logs.read_logs(folder(tmp_path, texts), pattern="{node}.{run}.txt")


def test_time_of_a_pattern_has_separators(tmp_path: Path) -> None:
    texts = {
        f"stream-2026-11-2{run}T10-0{node}-13-cn{node:03d}.out": stream(3000 + 10 * node + run)
        for node in (1, 2)
        for run in (1, 2)
    }
    frame = tool_logs.read_logs(folder(tmp_path, texts), pattern="stream-{time}-{node}.out").frame
    assert set(frame["node"]) == {"cn001", "cn002"}


def test_names_that_may_be_runs_are_asked_for(tmp_path: Path) -> None:
    texts = {f"cn{node:03d}-{run}.log": stream(3000 + run) for node in (1, 2) for run in (1, 2)}
    with pytest.raises(
        NodeprintError, match=r"differ in 1 and 2, and nothing .*; state it by --path '{node}-{\?}.log'"
    ):
        tool_logs.read_logs(folder(tmp_path, texts))
    with pytest.raises(NodeprintError, match=r"--path: {node}-{\?}\.log has {\?}; write node, run, job or"):
        tool_logs.read_logs(tmp_path, pattern="{node}-{?}.log")
    with pytest.raises(NodeprintError, match=r"fits no file, as cn001-1\.log"):
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
    assert re.search(r"cn007: WARN \(SUSPECT\)\. .*stream-triad.* 10(\.\d)?% ", done.output.replace("\n", " ")), (
        done.output
    )


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
    assert done.exit_code == 3 and "cn3: FAIL (WRONG RESULT). A benchmark" in done.output, done.output
