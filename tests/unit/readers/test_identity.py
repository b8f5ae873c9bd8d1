"""Logs of known truth, as people gather them: each is read right, or rejected with what is missing.

The inputs are names of nodes x what separates results x loops x tools, and files under names of all kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
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
#: What names a host by a key, a command or a program whose form is known: any name is read.
KEYED = (
    "HOST=", "HOSTNAME=", "SLURMD_NODENAME", "hostname:", "running on", "running on host:", "ansible", "ssh", "shell",
    "prompt", "uname", "the first host, then ssh",
)  # fmt: skip
#: What has a name without a key: read if the name is numbered, as those of hosts are.
NUMBERED = (
    "hashes", "equals", "rule", "brackets", "its name", "salt", "run of", "node", "xdsh", "pdsh", "dshbak", "tail",
    "brackets before lines", "a bar before lines", "syslog", "LSF",
    "the first host, then hashes",
)  # fmt: skip
#: Names that are no words of other things, and no numbers alone.
OF_HOSTS = ("numbered", "with hyphens", "xnames", "domains")
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
    "brackets before lines": _each_line("[{node}] "),
    "a bar before lines": _each_line("{node} | "),
    "syslog": _each_line("Nov 26 14:29:01 {node} stream[123]: "),
    "prompt": _before("[bench@{node} ~]$ ./stream"),
    "uname": _before("Linux {node} 5.14.0-362.el9.x86_64 #1 SMP x86_64 GNU/Linux"),
    "LSF": _before("Job ran on host <{node}>, in queue <batch>"),
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
        values = tool_logs.identified(path, pattern)
    except NodeprintError as error:
        return str(error)
    return {value.value: value.node for value in values}


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


def _cases(tool: str) -> list[tuple[str, str, str]]:
    """Kinds of names, what gathers, and loops: all for one tool, two kinds of names for the others."""
    kinds = NAMES if tool == "likwid-bench" else ("numbered", "words")
    return list(product(kinds, GATHERED, LOOPS if tool == "likwid-bench" else ("nodes",)))


@pytest.mark.parametrize("tool", TOOLS)
def test_texts_of_several_nodes_are_read_right_or_rejected(tool: str, tmp_path: Path) -> None:
    right: set[tuple[str, str]] = set()
    wrong: list[tuple[str, str, str]] = []
    for kind, how, loop in _cases(tool):
        truth = results(tool, NAMES[kind], loop)
        (path := tmp_path / ("cn001.log" if loop == "once" else "all.log")).write_text(GATHERED[how](truth))
        found = read(path)
        if isinstance(found, str):
            assert found.startswith(f"{path}"), found
        elif is_right(found, truth):
            right.add((kind, how))
        else:
            wrong.append((kind, how, loop))
    assert not wrong
    kinds = {kind for kind, *_ in _cases(tool)}
    assert {(kind, how) for kind in kinds for how in KEYED} <= right
    named = {(kind, how) for kind in kinds & {*OF_HOSTS} for how in NUMBERED}
    assert named - right <= {("with hyphens", "tail")}, "a file's name may be of a run there"


def test_a_list_of_hosts_above_a_result_is_no_heading(tmp_path: Path) -> None:
    """Ranks of a job on two nodes are printed before its result, which is of neither."""
    ranks = "".join(f"Rank {rank} on cn00{rank + 1}\n" for rank in range(2))
    (path := tmp_path / "cn001.log").write_text("".join(ranks + _osu(value) for value in (900.5, 901.5)))
    assert "several hosts are named (cn001, cn002)" in str(read(path))


def test_a_heading_that_is_missing_is_noticed(tmp_path: Path) -> None:
    texts = [f"### cn00{node}\n{_stream(3000 + node)}" for node in range(1, 6)]
    texts[2] = texts[2].partition("\n")[2]
    (path := tmp_path / "all.log").write_text("".join(texts))
    assert "2 results after the line that names cn002, and 1 after others" in str(read(path))


def test_the_count_of_nodes_in_a_heading_of_clush_is_no_name(tmp_path: Path) -> None:
    heading = "{rule}\n{nodes}\n{rule}\n"
    texts = [
        heading.format(rule="-" * 15, nodes=nodes) + _stream(3000.0 + at) for at, nodes in enumerate(("cn1 (1)", "cn2"))
    ]
    (path := tmp_path / "all.log").write_text("".join(texts))
    found = read(path)
    assert isinstance(found, dict) and (found[3000.0], found[3001.0]) == ("cn1", "cn2")
    path.write_text("".join(texts).replace("cn1 (1)", "gcc 12"))
    assert isinstance(read(path), str), "lines between rules that are no node are not dropped"


@pytest.mark.parametrize("heading", ["### {}", "GPU {}", "### cn{:03d}"])
def test_what_stands_before_the_first_name_is_nobodys(heading: str, tmp_path: Path) -> None:
    texts = [_stream(2990.0), *(f"{heading.format(node)}\n{_stream(3000.0 + node)}" for node in range(1, 4))]
    (path := tmp_path / "all.log").write_text("".join(texts))
    assert isinstance(read(path), str)


#: Names of files of nodes and runs, without any host in the text; the pattern that states the node, which must do.
LAYOUTS: dict[str, str] = {
    "{node}/run{run}.out": "{node}/run{run}.out",
    "{node}/{run}.log": "{node}/{run}.log",
    "run{run}/{node}.log": "run{run}/{node}.log",
    "{run}/{node}.log": "{run}/{node}.log",
    "r{run}/{node}/result.txt": "r{run}/{node}/result.txt",
    "slurm-{job}-{node}.out": "slurm-{job}-{node}.out",
    "slurm-{node}-{job}.out": "slurm-{node}-*.out",
    "slurm-{job}.out": "",
    "slurm-{job}_{index}.out": "slurm-*_{node}.out",
    "2026112{run}/{node}.txt": "{run}/{node}.txt",
    "2026-11-2{run}/{node}.txt": "{node}.txt",
    "{node}_2026112{run}T100000.log": "{node}_*.log",
    "{node}.{run}.log": "{node}.{run}.log",
    "stream-1-iter-{run}-node-{index}-12345{uid}.out": "stream-1-iter-{run}-node-{node}-*.out",
    "iter{run}-{node}.log": "iter{run}-{node}.log",
    "rack{rack}/{node}/r{run}.log": "{node}/r{run}.log",
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
#: What is read without a pattern: a word, a date or a count states the run, the form of a name the node.
READ = (
    "{node}/run{run}.out", "{node}/{run}.log", "run{run}/{node}.log", "{run}/{node}.log", "slurm-{job}-{node}.out",
    "slurm-{node}-{job}.out", "2026112{run}/{node}.txt", "2026-11-2{run}/{node}.txt", "{node}_2026112{run}T100000.log",
    "stream-1-iter-{run}-node-{index}-12345{uid}.out", "iter{run}-{node}.log",
)  # fmt: skip


def files_of(layout: str, truth: list[Result]) -> Iterator[tuple[str, str]]:
    for number, one in enumerate(truth):
        facts = {"node": one.name, "run": one.run + 1, "index": one.node, "job": 4711 + number, "uid": number}
        yield layout.format(**facts, rack=one.node // 2), one.text


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["numbered", "with hyphens", "xnames", "words"])
def test_files_of_nodes_and_runs_are_read_right_or_rejected(layout: str, kind: str, tmp_path: Path) -> None:
    truth = results("likwid-bench", NAMES[kind], "runs")
    folder = written(tmp_path, dict(files_of(layout, truth)))
    found = read(folder)
    assert isinstance(found, str) or (is_right(found, truth) and runs_are_right(folder, truth)), found
    assert isinstance(found, dict) or ("--path" in found and len(found) < 400), found
    assert isinstance(found, dict) == (layout in READ and (kind in OF_HOSTS or "{node}" not in layout))
    stated = LAYOUTS[layout]
    found = read(folder, stated) if stated else ""
    is_twofold = isinstance(found, str) and " in two ways " in found
    assert not stated or (is_twofold and kind == "with hyphens") or (is_right(found, truth)), found


def runs_are_right(folder: Path, truth: list[Result]) -> bool:
    """Whether the runs of each node are numbered, and in their order."""
    runs: dict[str, list[str]] = {}
    for value in sorted(tool_logs.identified(folder), key=lambda value: value.value):
        runs.setdefault(value.node, []).append(value.run)
    return all(own == sorted({*own}) and len(own) == len(truth) / len(runs) for own in runs.values())


@pytest.mark.parametrize(
    "form", ["stream.o47{uid}", "J47{uid}.out", "cn001.{word}.log", "cn001/mlx5_{uid}.log", "cn001/1.{uid}.log"]
)
def test_outputs_of_jobs_variants_and_ports_are_rejected(form: str, tmp_path: Path) -> None:
    words = ("gcc", "icc", "clang")
    files = {form.format(uid=uid, word=words[uid]): _stream(3000.0 + uid) for uid in range(3)}
    assert "--path" in str(read(written(tmp_path, files)))


@pytest.mark.parametrize("kind", ["numbered", "xnames", "domains"])
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


EXPERIMENTS = (
    ("small", "large"), ("gcc", "clang"), ("a100", "h100"), ("n1", "n2", "n4"), ("r1", "r2"), ("bios21", "bios22"),
    ("sda1", "sdb1"), ("py310", "py311"), ("before", "after"), ("mtu1500", "mtu9000"),
)  # fmt: skip


@pytest.mark.parametrize("names", EXPERIMENTS)
def test_words_and_sizes_are_no_names_of_hosts(names: tuple[str, ...], tmp_path: Path) -> None:
    """In the names of files, of folders with runs, and before results."""
    texts = {name: _stream(3000.0 + at) for at, name in enumerate(names)}
    for form in ("{}.log", "{}/stream.out", "{}/run1.log"):
        folder = tmp_path / form.replace("/", "-")
        assert "state it by --path" in str(
            read(written(folder, {form.format(name): text for name, text in texts.items()}))
        )
    (path := tmp_path / "all.log").write_text("".join(f"### {name}\n{text}" for name, text in texts.items()))
    assert isinstance(read(path), str)


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
    assert not wrong


#: Between results of a node: what was changed, or the GPU, in forms that are not told apart.
VARIED = {
    "compilers": ("### gcc12", "### gcc13", "### icc"),
    "a key": ("Compiler: gcc", "Compiler: icc", "Compiler: clang"),
    "a state": ("== before BIOS update ==", "== after BIOS update ==", "== after reboot =="),
    "GPUs of a command": tuple(f"$ ssh cn001 CUDA_VISIBLE_DEVICES={gpu} ./stream" for gpu in range(3)),
    "NUMA nodes of a command": tuple(f"+ numactl -N {node} -m {node} ./stream" for node in range(3)),
}


@pytest.mark.parametrize("how", VARIED)
@pytest.mark.parametrize("heading", ["hostname: {}", "### {}", "{} | CHANGED | rc=0 >>"])
def test_what_was_changed_between_results_is_no_run(how: str, heading: str, tmp_path: Path) -> None:
    texts = [
        heading.format(f"cn00{node}") + "\n" + "".join(f"{line}\n{_stream(3000.0 + node)}" for line in VARIED[how])
        for node in range(1, 4)
    ]
    (path := tmp_path / "all.log").write_text("".join(texts))
    assert isinstance(read(path), str)


@pytest.mark.parametrize(
    "between", ["Run {}", "### iteration {}", "Thu Nov 26 10:0{}:00 UTC 2026", "Seed: {}", "# run{}"]
)
def test_what_counts_between_results_are_runs(between: str, tmp_path: Path) -> None:
    texts = [
        f"hostname: cn00{node}\n"
        + "".join(f"{between.format(run)}\n{_stream(value_of(node, run))}" for run in range(3))
        for node in range(3)
    ]
    (path := tmp_path / "all.log").write_text("".join(texts))
    found = read(path)
    assert isinstance(found, dict) and found[value_of(1, 2)] == "cn001"


def _between(lines: Sequence[str], node: str = "cn001") -> str:
    return f"hostname: {node}\n" + "".join(f"{line}\n{_stream(3000.0 + at)}" for at, line in enumerate(lines))


@pytest.mark.parametrize(
    "lines",
    [
        ("gcc", "icc"),
        ("1k", "4k", "16k"),
        ("=== v5.9 ===", "=== v5.10 ==="),
        ("threads: 8", "threads: 24"),
        ("core 0", "core 1", "core 2"),
        ("mlx5_0", "mlx5_1"),
        ("300w", "400w"),
        ("", "after the BIOS update"),
    ],
)
def test_a_line_that_tells_results_of_a_node_apart_is_asked_for(lines: tuple[str, ...], tmp_path: Path) -> None:
    """On one node, on several, and as the outer loop over nodes."""
    (path := tmp_path / "all.log").write_text(_between(lines))
    found = read(path)
    assert "tells results apart" in str(found) and any(f"`{line}`" in str(found) for line in lines[1:])
    path.write_text("".join(_between(lines, f"cn00{node}") for node in range(1, 4)))
    assert "tells results apart" in str(read(path))
    loops = (f"{line}\n" + "".join(f"### cn00{node}\n{_stream(3000.0 + node)}" for node in (1, 2)) for line in lines)
    path.write_text("".join(loops))
    assert "tells results apart" in str(read(path))


@pytest.mark.parametrize(
    "lines",
    [
        ("", "slurmstepd: error: task 3 was killed"),
        ("Sat Nov 28 10:00:00 CET 2026", "Sat Nov 28 10:05:00 CET 2026"),
        ("run 1", "run 2"),
        ("Linux cn001 5.14.0 x86_64", "Linux cn001 5.14.0 x86_64"),
    ],
)
def test_a_line_that_says_nothing_of_results_is_no_obstacle(lines: tuple[str, ...], tmp_path: Path) -> None:
    (path := tmp_path / "all.log").write_text(_between(lines))
    found = read(path)
    assert isinstance(found, dict) and {*found.values()} == {"cn001"} and found[3001.0]


def test_the_user_states_what_a_line_means(tmp_path: Path) -> None:
    """Nodes whose names are words, with compilers as parts of them."""
    text = "".join(
        f"# {name}\n"
        + "".join(f"with {compiler}\n{_stream(3000.0 + 10 * at + own)}" for own, compiler in enumerate(("gcc", "icc")))
        for at, name in enumerate(("athena", "zeus"))
    )
    (path := tmp_path / "all.log").write_text(text)
    assert "`with icc` tells results apart" in str(read(path))
    values = tool_logs.identified(path, lines=("# {node}", "with {compiler}"))
    found = {(value.node, value.copy["compiler"]): value.value for value in values if value.metric == "stream-triad"}
    assert found == {("athena", "gcc"): 3000, ("athena", "icc"): 3001, ("zeus", "gcc"): 3010, ("zeus", "icc"): 3011}
    with pytest.raises(NodeprintError, match="fits --line and states its node"):
        tool_logs.identified(path, lines=("## {node}",))
    with pytest.raises(NodeprintError, match=r"--line: .* has \{node\} twice"):
        tool_logs.identified(path, lines=("{node} {node}",))


def test_an_inner_line_that_is_missing_is_noticed(tmp_path: Path) -> None:
    text = f"# athena\nGPU 0\n{_stream(3000.0)}# zeus\n{_stream(3001.0)}"
    (path := tmp_path / "all.log").write_text(text)
    with pytest.raises(
        NodeprintError, match=r"all\.log, line \d+: no line before this result fits --line and states its gpu"
    ):
        tool_logs.identified(path, lines=("# {node}", "GPU {gpu}"))


def test_names_that_differ_in_their_endings_alone_state_no_node(tmp_path: Path) -> None:
    texts = {"run.out": _stream(3000.0), "run.dat": _stream(3001.0)}
    assert "nothing in the paths of its 2 files states the node" in str(read(written(tmp_path, texts)))


@pytest.mark.parametrize(
    ("files", "advice"),
    [
        (("cn000/gcc.log", "cn000/icc.log", "cn001/gcc.log", "cn001/icc.log"), "{node}/{?}.log"),
        (("node-7-1.log", "node-7-2.log", "node-8-1.log", "node-8-2.log"), "node-{node}-{?}.log"),
        (
            tuple(f"p.cn00{a}.cn00{b}.{run}.log" for a, b in ((1, 2), (1, 3), (2, 3)) for run in (1, 2)),
            "{node}.{peer}.{?}.log",
        ),
        (("gpu-00/run1.log", "gpu-00/run2.log", "gpu-01/run1.log", "gpu-01/run2.log"), "gpu-{?}/run{run}.log"),
    ],
)
def test_the_advice_takes_no_variant_for_a_run(files: tuple[str, ...], advice: str, tmp_path: Path) -> None:
    folder = written(tmp_path, {name: _stream(3000.0 + at) for at, name in enumerate(files)})
    found = str(read(folder))
    assert advice in found
    pattern = re.search("--path '(.*?)'", found)
    assert pattern and "has {?}" in str(read(folder, pattern[1])), "the advice itself is no statement"


def test_a_result_of_one_node_is_no_link(tmp_path: Path) -> None:
    texts = {f"cn00{a}-cn00{b}.log": _stream(3000.0 + 10 * a + b) for a in range(3) for b in range(3, 6)}
    folder = written(tmp_path, texts)
    assert "is named after two hosts (cn000 and cn003), but its benchmark needs one" in str(read(folder))
    assert isinstance(read(folder, "{node}-{peer}.log"), dict)


@pytest.mark.parametrize("ending", [".log.bak", ".log~", ".log.1", "-old.log", " (copy).log", ".orig.log"])
def test_a_file_with_the_name_of_another_is_asked_for(ending: str, tmp_path: Path) -> None:
    texts = {f"cn{node:03d}.log": _stream(3000.0 + node) for node in range(4)} | {f"cn001{ending}": _stream(2990.0)}
    assert "has the name of cn001.log and more" in str(read(written(tmp_path, texts)))


def test_tasks_that_print_their_hosts_count_on_each_host(tmp_path: Path) -> None:
    def gathered(nodes: Sequence[str]) -> Path:
        texts = [f"hostname: {node}\n{_stream(3000.0 + task)}" for task, node in enumerate(nodes)]
        lines = (f"{task}: {line}\n" for task, text in enumerate(texts) for line in text.splitlines())
        (path := tmp_path / "all.log").write_text("".join(lines))
        return path

    def copies(path: Path) -> list[tuple[str, object]]:
        values = tool_logs.identified(path)
        return [(value.node, value.copy.get("task")) for value in values if value.metric == "stream-triad"]

    assert copies(gathered(("cn1", "cn2"))) == [("cn1", None), ("cn2", None)]
    assert copies(gathered(("cn1", "cn1", "cn2", "cn2"))) == [("cn1", "0"), ("cn1", "1"), ("cn2", "0"), ("cn2", "1")]


def test_numbers_of_threads_are_no_runs(tmp_path: Path) -> None:
    texts = [re.sub(r"(Number of Threads \w+ =) \d+", rf"\1 {threads}", _stream(3000.0)) for threads in (8, 16)]
    (path := tmp_path / "cn001.log").write_text("hostname: cn001\n" + "".join(texts))
    assert "results with 8 and 16 threads, which are no runs" in str(read(path))


@pytest.mark.parametrize(
    ("part", "gather"),
    [
        ("task", lambda copy, text: "".join(f"{copy}: {line}\n" for line in text.splitlines())),
        ("task", lambda copy, text: "".join(f"[1,{copy}]<stdout>:{line}\n" for line in text.splitlines())),
        ("gpu", lambda copy, text: f"GPU {copy}\n{text}"),
        ("gpu", lambda copy, text: f"+ CUDA_VISIBLE_DEVICES={copy} ./stream\nCUDA_VISIBLE_DEVICES={copy}\n{text}"),
        ("numa", lambda copy, text: f"=== NUMA node {copy} ===\n{text}"),
    ],
)
def test_the_copy_that_is_slow_is_named(part: str, gather: Callable[[int, str], str], tmp_path: Path) -> None:
    """One of eight GPUs at half its rate moves no median."""
    texts = {}
    for node in range(1, 7):
        rates = [3000.0 + node + copy / 10 for copy in range(8)]
        rates[5] *= 0.5 if node == 3 else 1
        texts[f"gn{node:02d}.log"] = "".join(gather(copy, _stream(rate)) for copy, rate in enumerate(rates))
    judged = CliRunner().invoke(app, ["judge", str(written(tmp_path, texts))]).stdout
    assert judged.startswith(f"6 nodes x 1 run, 8 {part}s each: node from the file name, {part} from the text."), judged
    assert re.search(rf"gn03: WARN \(SUSPECT\)\. stream-triad of (?i:{part}) (?:node )?5 is 50\.0% lower", judged), (
        judged
    )


def test_copies_in_files_of_their_own_are_parts_of_their_node(tmp_path: Path) -> None:
    texts = {
        f"gn{node}/gpu{copy}.log": _stream((3000.0 + 10 * node + copy) * (0.5 if (node, copy) == (2, 1) else 1))
        for node in range(4)
        for copy in range(4)
    }
    judged = CliRunner().invoke(app, ["judge", str(written(tmp_path, texts))]).stdout
    assert judged.startswith("4 nodes x 1 run, 4 gpus each: node from the directory name, gpu from `gpuN`."), judged
    assert re.search(r"gn2: WARN \(SUSPECT\)\. stream-triad of gpu 1 is 49\.9% lower", judged), judged
