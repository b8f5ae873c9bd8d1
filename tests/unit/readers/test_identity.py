"""Logs of known truth, as people gather them: each is read right, or rejected with what is missing.

The inputs are names of nodes x what separates results x loops x tools, and files under names of all kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.readers import tool_logs

OUTPUTS = Path(__file__).parent / "outputs"
NODES, RUNS = 4, 2
LOOPS = ("nodes", "runs", "once")


def _stream(value: float) -> str:
    return (OUTPUTS / "stream.txt").read_text().replace("3033.0", f"{value:.1f}")


def _hpl(value: float) -> str:
    head = "HPLinpack 2.3  --  High-Performance Linpack\nT/V   N    NB   P   Q   Time   Gflops\n"
    return f"{head}WR11C2R4       95360   288     4     1     8.21 {value:.1f}\n"


def _osu(value: float) -> str:
    return f"# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n4194304              {value:.2f}\n"


def _likwid(value: float) -> str:
    return f"LIKWID MICRO BENCHMARK\nTest: triad_avx512\nSize (Byte):\t\t16000\nMByte/s:\t\t{value:.2f}\n"


def _hpcg(value: float) -> str:
    return f"HPCG-Benchmark\nversion=3.1\nHPCG result is VALID with a GFLOP/s rating of: {value:.2f}\n"


def _sysbench(value: float) -> str:
    text = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\nRunning the test with following options:\n"
    return f"{text}Number of threads: 8\nPrime numbers limit: 10000\nThreads started!\nevents per second: {value:.2f}\n"


def _mlc(value: float) -> str:
    text = "Intel(R) Memory Latency Checker - v3.9\nMeasuring Peak Injection Memory Bandwidths for the system\n"
    return f"{text}ALL Reads        :      {value:.1f}\n"


TOOLS: dict[str, Callable[[float], str]] = {
    "stream": _stream,
    "hpl": _hpl,
    "osu": _osu,
    "likwid-bench": _likwid,
    "hpcg": _hpcg,
    "sysbench": _sysbench,
    "mlc": _mlc,
}
NAMES: dict[str, tuple[str, ...]] = {
    "numbered": ("cn001", "cn002", "cn003", "cn004"),
    "with hyphens": ("gpu-a-01", "gpu-a-02", "gpu-b-01", "gpu-b-02"),
    "xnames": ("x1000c0s0b0n0", "x1000c0s0b0n1", "x1000c1s0b0n0", "x1000c1s0b0n1"),
    "words": ("athena", "zeus", "hermes", "ares"),
    "domains": ("n1.site.edu", "n2.site.edu", "n3.site.edu", "n4.site.edu"),
    "numbers": ("101", "102", "103", "104"),
}


def value_of(node: int, run: int) -> float:
    return 3000.0 + 10 * node + run


@dataclass(frozen=True)
class Result:
    """A result of known truth."""

    node: int
    name: str
    run: int
    text: str


def results(tool: str, names: tuple[str, ...], loop: str) -> list[Result]:
    """All results in the order of a loop over runs of nodes, nodes of runs, or one run of each node."""
    pairs = {
        "nodes": list(product(range(NODES), range(RUNS))),
        "runs": [(node, run) for run in range(RUNS) for node in range(NODES)],
        "once": [(node, 0) for node in range(NODES)],
    }[loop]
    return [Result(node, names[node], run, TOOLS[tool](value_of(node, run))) for node, run in pairs]


def _before(form: str) -> Callable[[list[Result]], str]:
    def gathered(all_results: list[Result]) -> str:
        return "".join(
            form.format(node=one.name, run=one.run, index=one.node) + ("\n" if form else "") + one.text
            for one in all_results
        )

    return gathered


def _each_line(form: str) -> Callable[[list[Result]], str]:
    def gathered(all_results: list[Result]) -> str:
        return "".join(
            (form.format(node=one.name, index=one.node) + line).rstrip() + "\n"
            for one in all_results
            for line in one.text.splitlines()
        )

    return gathered


def _mixed(all_results: list[Result]) -> str:
    lines = [(n, f"{one.node}: {line}\n") for one in all_results for n, line in enumerate(one.text.splitlines())]
    return "".join(line for _, line in sorted(lines, key=lambda pair: pair[0]))


def _first(line: str, then: Callable[[list[Result]], str]) -> Callable[[list[Result]], str]:
    def gathered(all_results: list[Result]) -> str:
        named = [one.name for one in all_results]
        return line.format(first=named[0], all=",".join(dict.fromkeys(named)), count=NODES) + "\n" + then(all_results)

    return gathered


RULE = "-" * 16
#: What is read today, and nothing else: what marks whose each line is.
MARKED = ("pdsh", "dshbak", "tail")
GATHERED: dict[str, Callable[[list[Result]], str]] = {
    "nothing": _before(""),
    "hashes": _before("### {node}"),
    "equals": _before("=== {node} ==="),
    "rule": _before("--- {node} ---"),
    "brackets": _before("[{node}]"),
    "HOST=": _before("HOST={node}"),
    "HOSTNAME=": _before("HOSTNAME={node}"),
    "SLURMD_NODENAME": _before("SLURMD_NODENAME={node}"),
    "hostname:": _before("hostname: {node}"),
    "running on": _before("Running on node {node}"),
    "running on host:": _before("running on host: {node}"),
    "node": _before("node {node}"),
    "its name": _before("{node}"),
    "salt": _before("{node}:"),
    "ansible": _before("{node} | CHANGED | rc=0 >>"),
    "ssh": _before("ssh {node} ./benchmark"),
    "shell": _before("+ srun -w {node} ./benchmark"),
    "run of": _before("run {run} on {node}"),
    "numbers": _before("Run {index}"),
    "date": _before("Thu Nov 26 10:0{run}:00 UTC 2026"),
    "srun --label": _each_line("{index}: "),
    "srun --label, mixed": _mixed,
    "mpirun --tag-output": _each_line("[1,{index}]<stdout>:"),
    "xdsh": _each_line("{node}: "),
    "pdsh": _each_line("{node}: "),
    "dshbak": _before(f"{RULE}\n{{node}}\n{RULE}"),
    "tail": _before("==> logs/{node}.out <=="),
    "a job's list": _first("SLURM_JOB_NODELIST={all}", _before("")),
    "a job's number of nodes": _first("SLURM_NNODES={count}", _before("")),
    "the first host, then a list": _first("Running on host {first}\nNODELIST={all}", _before("")),
    "the first host, then hashes": _first("hostname: {first}", _before("### {node}")),
    "the first host, then ssh": _first("hostname: {first}", _before("ssh {node} ./benchmark")),
}


def read(path: Path, pattern: str = "") -> dict[float, str] | str:
    """By value whose it is said to be, or why the input was rejected."""
    try:
        frame = tool_logs.read_logs(path, pattern=pattern).frame
    except NodeprintError as error:
        return str(error)
    return dict(zip(frame["value"], frame["node"], strict=True))


def is_right(found: dict[float, str] | str, truth: list[Result]) -> bool:
    """Whether every result is there, those of a node under one name and those of two under two."""
    if isinstance(found, str):
        return False
    labels: dict[int, set[str | None]] = {}
    for one in truth:
        labels.setdefault(one.node, set()).add(found.get(value_of(one.node, one.run)))
    names = [name for of_node in labels.values() for name in of_node]
    return all(len(of_node) == 1 for of_node in labels.values()) and None not in names and len({*names}) == len(labels)


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("tool", TOOLS)
def test_no_text_of_several_nodes_is_silently_one_node(tool: str, tmp_path: Path) -> None:
    right: list[tuple[str, str, str]] = []
    wrong: list[tuple[str, str, str]] = []
    every = tool == "likwid-bench"  # the shortest
    kinds = NAMES if every else ("numbered", "words")
    for kind, how, loop in product(kinds, GATHERED, LOOPS if every else ("nodes",)):
        truth = results(tool, NAMES[kind], loop)
        (path := tmp_path / ("cn001.log" if loop == "once" else "all.log")).write_text(GATHERED[how](truth))
        found = read(path)
        if isinstance(found, dict):
            (right if is_right(found, truth) else wrong).append((kind, how, loop))
        else:
            assert found.startswith(f"{path}"), found
    assert not wrong
    assert {*MARKED} <= {how for _, how, _ in right}, "what marks each line is read as before"


#: Names of files of nodes and runs, without any host in the text; the pattern that states the node, which must do.
LAYOUTS: dict[str, str] = {
    "{node}/run{run}.out": "{node}/run*.out",
    "{node}/{run}.log": "{node}/*.log",
    "run{run}/{node}.log": "{node}.log",
    "{run}/{node}.log": "{node}.log",
    "r{run}/{node}/result.txt": "{node}/result.txt",
    "slurm-{job}-{node}.out": "slurm-*-{node}.out",
    "slurm-{node}-{job}.out": "slurm-{node}-*.out",
    "slurm-{job}.out": "",
    "slurm-{job}_{index}.out": "slurm-*_{node}.out",
    "2026112{run}/{node}.txt": "{node}.txt",
    "2026-11-2{run}/{node}.txt": "{node}.txt",
    "{node}_2026112{run}T100000.log": "{node}_*.log",
    "{node}.{run}.log": "{node}.*.log",
    "stream-1-iter-{run}-node-{index}-12345{uid}.out": "stream-1-iter-*-node-{node}-*.out",
    "iter{run}-{node}.log": "iter*-{node}.log",
    "rack{rack}/{node}/r{run}.log": "{node}/r*.log",
    "run{uid}.out": "",
    "iter-{uid}.out": "",
    "{uid}.log": "",
    "job{job}.log": "",
    "out.{uid}": "",
    "day{uid}/stream.log": "",
    "stream{uid}.txt": "",
    "core{uid}.txt": "",
    "result_{uid}.txt": "",
}


def files_of(layout: str, truth: list[Result]) -> Iterator[tuple[str, str]]:
    for number, one in enumerate(truth):
        facts = {"node": one.name, "run": one.run + 1, "index": one.node, "job": 4711 + number, "uid": number}
        yield layout.format(**facts, rack=one.node // 2), one.text


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["numbered", "with hyphens", "xnames", "words"])
def test_no_file_of_a_run_is_silently_a_node(layout: str, kind: str, tmp_path: Path) -> None:
    truth = results("stream", NAMES[kind], "runs")
    folder = written(tmp_path, dict(files_of(layout, truth)))
    found = read(folder)
    assert isinstance(found, str) or is_right(found, truth), found
    assert isinstance(found, dict) or re.search(r"--node-name: .*state where the node's name is", found), found
    stated = LAYOUTS[layout]
    found = read(folder, stated) if stated else ""
    is_twofold = isinstance(found, str) and " in two ways " in found
    assert not stated or (is_twofold and kind == "with hyphens") or (is_right(found, truth)), found


@pytest.mark.parametrize("kind", ["numbered", "xnames", "words", "domains"])
@pytest.mark.parametrize("form", ["{node}.log", "{node}/stream.out", "stream-{node}.txt", "logs/{node}/1/out.log"])
def test_files_that_are_named_after_their_nodes_alone_are_read(kind: str, form: str, tmp_path: Path) -> None:
    truth = results("stream", NAMES[kind], "nodes")
    texts: dict[str, str] = {}
    for one in truth:
        name = form.format(node=one.name)
        texts[name] = texts.get(name, "") + one.text
    found = read(written(tmp_path, texts))
    assert isinstance(found, dict) and is_right(found, truth), found
    assert {name.partition(".")[0] for name in found.values()} == {name.partition(".")[0] for name in NAMES[kind]}


#: Nothing in these texts names a host, and a number alone may count runs: `apollo.log` may well be one node's.
UNMARKED = ("nothing", "numbers", "date", "srun --label", "srun --label, mixed", "mpirun --tag-output")
KEYED = ("HOST=", "HOSTNAME=", "SLURMD_NODENAME", "hostname:", "running on", "running on host:", "node")


@pytest.mark.parametrize("form", ["{}.log", "rack{}.log", "2026-11-0{}.log"])
@pytest.mark.parametrize("kind", NAMES)
def test_no_file_of_several_nodes_is_silently_a_node_of_a_folder(form: str, kind: str, tmp_path: Path) -> None:
    """Two days, or racks, of four nodes each; a day's name is a word that may be a host's."""
    days = ("apollo", "venus") if form == "{}.log" else ("1", "2")
    truth = results("likwid-bench", NAMES[kind], "runs")
    wrong: set[str] = set()
    for at, (how, gather) in enumerate(GATHERED.items()):
        texts = {form.format(day): gather([one for one in truth if one.run == run]) for run, day in enumerate(days)}
        found = read(written(tmp_path / str(at), texts))
        wrong |= {how} if isinstance(found, dict) and not is_right(found, truth) else set()
    may_be_runs = {*UNMARKED} if kind != "numbers" else {*GATHERED} - {*KEYED, *MARKED}
    assert wrong <= (may_be_runs if form == "{}.log" else set())


def test_copies_of_which_one_is_slow_are_seen(tmp_path: Path) -> None:
    """One of eight GPUs at half its rate moves no median."""
    texts = {}
    for node in range(1, 7):
        rates = [3000.0 + node + copy / 10 for copy in range(8)]
        rates[5] *= 0.5 if node == 3 else 1
        lines = [f"{copy}: {line}\n" for copy, rate in enumerate(rates) for line in _stream(rate).splitlines()]
        texts[f"gn{node:02d}.log"] = "".join(lines)
    frame = tool_logs.read_logs(written(tmp_path, texts)).frame
    of_triad = frame[frame["metric"].str.startswith("stream-triad")].pivot(
        index="node", columns="metric", values="value"
    )
    assert of_triad["stream-triad-of-copies"]["gn03"] > 2900
    slowest = of_triad["stream-triad-of-copies-minimum"]
    assert slowest["gn03"] < 1600 and (slowest.drop("gn03") > 2900).all()
    judged = CliRunner().invoke(app, ["judge", str(tmp_path)]).output
    assert "PASS (UNIFORM)" not in judged and re.search(r"gn03: [A-Z]", judged), judged
