"""The kernels as programs: what they write, refuse, survive and continue. Invariants only, never a figure."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nodeprint.data.format.records import read as read_records
from tests.support.real_parts import ALLOWED, built, need, small_file_system
from tests.support.schemas import valid_records
from tests.support.terminal import read_to_end

pytestmark = pytest.mark.machine

KERNELS = Path(__file__).parents[2] / "kernels"

needs_two_cpus = pytest.mark.usefixtures("two_cpus")


@pytest.fixture(scope="session")
def coherence() -> Path:
    return built() / "coherence"


def run(
    program: Path, out: Path | None, *arguments: str, timeout: float = 120, **more: Any
) -> subprocess.CompletedProcess[str]:
    """`program` with `--op cas` unless the arguments have another, writing to `out`."""
    command = [str(program), *arguments]
    if "--op" not in arguments:
        command += ["--op", "cas"]
    if out is not None:
        command += ["--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **more)
    if done.returncode == 0 and out is not None and out.is_file():
        valid_records(out)
    return done


def records(path: Path, kind: str) -> list[dict[str, Any]]:
    return [r for r in map(json.loads, path.read_text().splitlines()) if r["record"] == kind]


def coordinates(path: Path) -> list[tuple[int, int, int, int]]:
    return sorted((r["a"], r["b"], r["home"], r["pass"]) for r in records(path, "pair"))


def refused(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """One sentence, the right exit code, and the sentence names what it is about."""
    assert result.returncode == code, result.stderr
    said = [
        line for line in result.stderr.splitlines() if " s left" not in line
    ]  # on a slow machine progress comes first
    assert len(said) == 1, result.stderr
    assert said[0].startswith("coherence: ")
    for word in words:
        assert word in said[0]


def wait_for_pairs(process: subprocess.Popen[bytes], out: Path, count: int) -> None:
    """Until the file holds `count` pairs, so that a signal comes in the middle."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        assert process.poll() is None, "the kernel ended before it could be stopped"
        if out.exists() and out.read_bytes().count(b'"record":"pair"') >= count:
            return
        time.sleep(0.005)
    pytest.fail("the kernel wrote nothing in a minute")


# ---- what is written ----


@needs_two_cpus
def test_complete_file(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    result = run(coherence, out, "--cpus", f"{ALLOWED[1]},{ALLOWED[0]}", "--passes", "4", "--seed", "5", "--job", "2")
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    header = lines[0]
    assert header["record"] == "header"
    assert header["schema"] == 1
    assert header["segment"] == 0
    assert (header["kernel"], header["operation"], header["quantity"], header["unit"]) == (
        "coherence",
        "cas",
        "hop",
        "ns",
    )
    assert (header["job"], header["run"], header["seed"], header["passes"]) == (2, 1, 5, 4)
    assert header["host"] == os.uname().nodename.split(".")[0]
    assert header["cpus"] == [ALLOWED[1], ALLOWED[0]]
    assert header["pinned_by"] == "native"
    assert header["clock"]["hz"] > 1e6
    assert len(header["kernel_hash"]) == 16
    assert not {"--out", "--seed", "--job", "--run"} & set(header["arguments"])
    assert lines[-1]["record"] == "trailer"
    assert lines[-1]["complete"] is True
    assert lines[-1]["pairs"] == 4
    assert [(r["a"], r["b"], r["pass"]) for r in records(out, "pair")] == [(*ALLOWED[:2], p) for p in range(4)]


@needs_two_cpus
def test_values_are_ordered_and_lines_differ_by_pass(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--passes", "5", "--cpus", "all").returncode == 0
    for pair in records(out, "pair"):
        assert 0 < pair["min_ns"] <= pair["ci_low_ns"] <= pair["latency_ns"] <= pair["ci_high_ns"] <= pair["p99_ns"]
        assert pair["latency_ns"] <= pair["median_ns"] <= pair["p99_ns"]
        assert pair["line_sd_ns"] >= 0
        assert set(pair["flags"]) <= {"disturbed"}
    header = records(out, "header")[0]
    sets = [tuple(r["line_set"]) for r in records(out, "pass")]
    assert len(set(sets)) == len(sets) >= 5
    for lines in sets:
        assert len(set(lines)) == len(lines) == header["lines"]
        assert all(0 <= line < 16 * 1024 * 1024 // 64 for line in lines)
    for placement in header["placement"].values():
        assert placement["bytes"] == 16 * 1024 * 1024
        assert placement["verified_by"] in {"move_pages", "numa_maps", "one_node"}
        assert placement["pages"] in {"base", "mixed"}


@needs_two_cpus
def test_seed_decides_the_lines(coherence: Path, tmp_path: Path) -> None:
    sets = {}
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        out = tmp_path / name
        assert run(coherence, out, "--seed", seed).returncode == 0
        sets[name] = [r["line_set"] for r in records(out, "pass")]
    assert sets["a"] == sets["b"] != sets["c"]


def test_help_and_plan(coherence: Path) -> None:
    shown = run(coherence, None, "--help")
    assert shown.returncode == 0
    for word in ("USAGE", "REQUIREMENTS", "OVERHEAD", "WARNING", "example", "--cpus", "EXIT CODES"):
        assert word in shown.stdout
    planned = run(coherence, None, "--plan", "--cpus", "0-127", "--passes", "2")
    assert planned.returncode == 0
    plan = dict(line.split(" ", 1) for line in planned.stdout.splitlines())
    assert plan["pairs"] == str(128 * 127 // 2)
    assert float(plan["seconds"]) == pytest.approx(
        2 * float(plan["seconds_per_pass"]) + float(plan["seconds_once"]), abs=0.01
    )
    assert float(plan["seconds_once"]) > 0  # the census of lines
    assert float(plan["seconds_per_pass"]) < 8
    assert plan["pin_list"].split(",")[:2] == ["127", "0"]
    assert int(plan["memory_bytes"]) >= 16 * 1024 * 1024
    assert (
        float(
            dict(line.split(" ", 1) for line in run(coherence, None, "--plan", "--cpus", "0-255").stdout.splitlines())[
                "seconds_per_pass"
            ]
        )
        < 30
    )


def fake_sysfs(root: Path, cpus: int, threads: int, nodes: int) -> Path:
    """A machine of `cpus` CPUs, siblings cpus/threads apart, in `nodes` NUMA nodes of neighboring cores."""
    cores = cpus // threads
    (root / "devices/system/cpu").mkdir(parents=True)
    (root / "devices/system/cpu/online").write_text(f"0-{cpus - 1}\n")
    for cpu in range(cpus):
        folder = root / f"devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        folder.joinpath("thread_siblings_list").write_text(
            ",".join(str(cpu % cores + t * cores) for t in range(threads)) + "\n"
        )
    (root / "devices/system/node").mkdir(parents=True)
    (root / "devices/system/node/has_memory").write_text(f"0-{nodes - 1}\n")
    for node in range(nodes):
        folder = root / f"devices/system/node/node{node}"
        folder.mkdir()
        own = [c for c in range(cpus) if c % cores * nodes // cores == node]
        folder.joinpath("cpulist").write_text(",".join(map(str, own)) + "\n")
        folder.joinpath("distance").write_text(" ".join("10" if n == node else "32" for n in range(nodes)) + "\n")
    return root


@pytest.mark.parametrize(("home", "pools"), [("first", 2), ("second", 2), ("each", 2), ("1", 1)])
def test_plan_on_a_wide_machine(coherence: Path, tmp_path: Path, home: str, pools: int) -> None:
    root, proc = fake_sysfs(tmp_path / "sys", 2048, 2, 2), tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self/status").write_text("Mems_allowed_list:\t0-1\n")
    environment = os.environ | {"NODEPRINT_SYSFS": str(root), "NODEPRINT_PROCFS": str(proc)}
    planned = run(coherence, None, "--plan", "--cpus", "0-1023:16", "--home", home, env=environment)
    plan = dict(line.split(" ", 1) for line in planned.stdout.splitlines())
    assert planned.stderr == ""
    assert int(plan["pairs"]) == 64 * 63 // 2 * (2 if home == "each" else 1)
    assert int(plan["memory_bytes"]) == pools * 16 * 1024 * 1024


@needs_two_cpus
def test_the_plan_has_the_ramp_of_the_clock(coherence: Path, tmp_path: Path) -> None:
    """That of this machine's cores; of a tree that stands for another machine it is not known."""

    def planned(**more: str) -> dict[str, str]:
        done = run(coherence, None, "--plan", "--passes", "1", env=os.environ | more)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())

    here = planned()
    pairs, ramp_s = int(here["pairs"]), float(here["ramp_us"]) / 1e6
    assert 0 <= ramp_s <= 2e-3
    assert float(here["seconds"]) >= pairs * ramp_s
    assert planned(NODEPRINT_SYSFS=str(fake_sysfs(tmp_path / "sys", max(ALLOWED) + 1, 1, 1)))["ramp_us"] == "0.0"


@needs_two_cpus
def test_the_figure_is_printed_where_somebody_reads(coherence: Path, tmp_path: Path) -> None:
    """On a terminal as a matrix, with --csv to any standard output, else not at all; again of a complete file."""
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--passes", "2").stdout == ""
    header, *rows = run(coherence, out, "--passes", "2", "--csv").stdout.splitlines()
    assert header == "a,b,home,latency_ns"
    by_pair: dict[tuple[int, int, int], list[float]] = {}
    for pair in records(out, "pair"):
        by_pair.setdefault((pair["a"], pair["b"], pair["home"]), []).append(pair["latency_ns"])
    half_a_digit = 0.0051  # medians are printed with the digits of their field
    medians = [statistics.median(values) for _, values in sorted(by_pair.items())]
    cells = [row.split(",") for row in rows]
    assert [(int(a), int(b), int(home)) for a, b, home, _ in cells] == sorted(by_pair)
    assert [float(ns) for *_, ns in cells] == pytest.approx(medians, abs=half_a_digit)
    ours, theirs = os.openpty()
    command: list[str | Path] = [coherence, "--op", "cas", "--passes", "2", "--out", out]
    subprocess.run(command, stdout=theirs, stderr=subprocess.DEVNULL, check=True)
    os.close(theirs)
    output = read_to_end(ours)
    assert "coherence cas: ns, medians over 2 passes" in output and "lowest" in output
    assert "±" in output, "what the passes of a pair are apart, also of two CPUs"
    assert f" ns, CPUs {ALLOWED[0]} and " in output, "which pair is the lowest and the highest"


@needs_two_cpus
@pytest.mark.parametrize("how", ["flush", "page"])
@pytest.mark.parametrize("operation", ["cas", "flag2"])
def test_fresh_lines_are_played_on_and_recorded(coherence: Path, tmp_path: Path, how: str, operation: str) -> None:
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--op", operation, "--fresh", how, "--passes", "2").returncode == 0
    header = json.loads(out.read_text().splitlines()[0])
    assert header["arguments"][header["arguments"].index("--fresh") + 1] == how
    assert all(pair["latency_ns"] > 0 for pair in records(out, "pair"))


def test_fresh_lines_are_for_hand_overs_alone(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    refused(run(coherence, out, "--op", "state", "--fresh", "flush"), 2, "--fresh is for operation cas,faa,flag1,flag2")
    refused(run(coherence, out, "--fresh", "new"), 2, "flush or page")
    refused(run(coherence, out, "--fresh", "page", "--parallel", "2"), 2, "--parallel")


@needs_two_cpus
def test_cores_takes_one_thread_of_each_and_siblings_add_theirs(coherence: Path, tmp_path: Path) -> None:
    """Two CPUs that sysfs calls threads of one core: `cores` has one, and `--siblings` makes the pair."""
    root = fake_sysfs(tmp_path / "sys", max(ALLOWED) + 1, 1, 1)
    for cpu in ALLOWED:
        root.joinpath(f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").write_text(
            ",".join(map(str, ALLOWED)) + "\n"
        )
    environment = os.environ | {"NODEPRINT_SYSFS": str(root)}
    refused(run(coherence, tmp_path / "none", "--cpus", "cores", env=environment), 3, "two CPUs")
    out = tmp_path / "r.jsonl"
    result = run(coherence, out, "--cpus", "cores", "--siblings", "--passes", "1", env=environment)
    assert result.returncode == 0, result.stderr
    assert [c[:2] for c in coordinates(out)] == [(ALLOWED[0], other) for other in ALLOWED[1:]]


# ---- what is refused ----


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--cpus", "0,99999"], "99999"),
        (["--cpus", "3-1"], "3-1"),
        (["--cpus", ""], "--cpus"),
        (["--cpus", "0,0"], "twice"),
        (["--cpus", str(ALLOWED[0])], "two CPUs"),
        (["--op", "cass"], "cass"),
        (["--passes", "0"], "--passes"),
        (["--passes", "three"], "three"),
        (["--passes"], "--passes"),
        (["--home", "third"], "third"),
        (["--home", "977"], "977"),
        (["--siblings=yes"], "--siblings"),
        (["--speed", "9"], "--speed"),
        (["extra"], "extra"),
    ],
)
def test_bad_arguments(coherence: Path, tmp_path: Path, arguments: list[str], word: str) -> None:
    out = tmp_path / "r.jsonl"
    refused(run(coherence, out, *arguments), 2, word)
    assert not out.exists()


@pytest.mark.parametrize(
    ("kernel", "operation", "arguments", "words"),
    [
        ("wake", "futex", ["--home", "1"], "--home is not for operation futex, whose memory"),
        ("chase", "latency", ["--pages", "large"], "--pages takes base, thp or huge, not large"),
        ("chase", "curve", ["--per", "node"], "--per is for operation latency, not curve"),
        ("chase", "levels", ["--cells", "all"], "--cells is for operation latency, not levels"),
        ("chase", "latency", ["--cells", "77"], "--cells 77: no two NUMA nodes are so far apart; see `numactl"),
        ("touch", "ratio", ["--cells", "77"], "--cells 77: no two NUMA nodes are so far apart; see `numactl"),
        ("touch", "ratio", ["--cells", "9" * 20], "--cells takes sample, all or a distance between NUMA nodes, not 99"),
        ("bandwidth", "scaling", ["--cells", "all"], "--cells is for operation nodes, not scaling"),
    ],
)
def test_a_plan_refuses_what_would_change_nothing(
    kernel: str, operation: str, arguments: list[str], words: str
) -> None:
    done = run(built() / kernel, None, "--op", operation, "--plan", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_missing_arguments(coherence: Path, tmp_path: Path) -> None:
    refused(run(coherence, None), 2, "--out")
    bare = subprocess.run([str(coherence), "--out", str(tmp_path / "r")], capture_output=True, text=True, check=False)
    refused(bare, 2, "--op", "cas")


@needs_two_cpus
def test_cpu_that_is_not_allowed(coherence: Path, tmp_path: Path) -> None:
    result = run(
        coherence,
        tmp_path / "r",
        "--cpus",
        f"{ALLOWED[0]},{ALLOWED[1]}",
        preexec_fn=lambda: os.sched_setaffinity(0, {ALLOWED[0]}),
    )
    refused(result, 3, f"CPU {ALLOWED[1]}", "not allowed")


@pytest.mark.parametrize("name", ["absent/r.jsonl", "file/r.jsonl", "."])
def test_output_that_cannot_be(coherence: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    refused(run(coherence, tmp_path / name), 2, str(tmp_path))


@needs_two_cpus
def test_read_only_folder(coherence: Path, tmp_path: Path) -> None:
    mounted = tmp_path / "ro"
    with small_file_system(mounted, "64k"):
        subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)
        refused(run(coherence, mounted / "r.jsonl"), 3, "Read-only")


@needs_two_cpus
def test_full_disk_leaves_a_readable_file(coherence: Path, tmp_path: Path) -> None:
    mounted = tmp_path / "small"
    out = mounted / "r.jsonl"
    with small_file_system(mounted, "64k"):
        refused(run(coherence, out, "--passes", "400", "--lines", "6"), 3, "No space left", "continues")
        kept = len(records(out, "pair"))
        assert 0 < kept < 400
        subprocess.run(["mount", "-o", "remount,size=4m", str(mounted)], check=True)
        result = run(coherence, out, "--passes", "400", "--lines", "6")
        assert result.returncode == 0, result.stderr
        assert [c[3] for c in coordinates(out)] == list(range(400))


# ---- continuation ----

#: For what is stopped in the middle: few long passes, as on a busy machine every pass waits until both its CPUs are
#: given to it, however short it is.
LONG_PASSES = ("--lines", "512")


@needs_two_cpus
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_stopped_and_continued(coherence: Path, tmp_path: Path, number: signal.Signals) -> None:
    out, passes = tmp_path / "r.jsonl", 60
    arguments = ["--passes", str(passes), "--cpus", "all", *LONG_PASSES]
    command = [str(coherence), "--op", "cas", "--out", str(out), *arguments]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_for_pairs(process, out, 1)
        process.send_signal(number)
        code = process.wait(timeout=300)
    assert code == (-number if number == signal.SIGKILL else 128 + number)
    assert not records(out, "trailer")
    before = coordinates(out)
    assert 0 < len(before) < passes * len(ALLOWED) * (len(ALLOWED) - 1) // 2
    assert run(coherence, out, *arguments, timeout=300).returncode == 0
    after = coordinates(out)
    assert len(after) == len(set(after)) == passes * len(ALLOWED) * (len(ALLOWED) - 1) // 2
    assert set(before) <= set(after)
    assert [h["segment"] for h in records(out, "header")] == [0, 1]
    assert len(records(out, "trailer")) == 1


@needs_two_cpus
@pytest.mark.parametrize(("operation", "kind", "passes"), [("flag2", "pair", 120), ("state", "cell", 60)])
def test_stopped_at_any_moment(coherence: Path, tmp_path: Path, operation: str, kind: str, passes: int) -> None:
    """Before the first record, between two and in the middle of one: what is whole stays, nothing appears twice."""
    out, moments, kept = tmp_path / "r.jsonl", random.Random(4), b""
    arguments = ["--op", operation, "--passes", str(passes), *(LONG_PASSES if kind == "pair" else [])]
    for number in [signal.SIGKILL, signal.SIGTERM, signal.SIGKILL] * 2:
        with subprocess.Popen([str(coherence), *arguments, "--out", str(out)], stderr=subprocess.DEVNULL) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=moments.uniform(0, 1.5))
            process.send_signal(number)
        content = out.read_bytes() if out.exists() else b""
        assert content.startswith(kept[: kept.rfind(b"\n") + 1])
        kept = content
    assert run(coherence, out, *arguments, timeout=300).returncode == 0
    dims = records(out, "header")[0].get("cells", {}).get("dims", ["a", "b", "home"])
    found = Counter((*(r[dim] for dim in dims), r["pass"]) for r in records(out, kind))
    assert set(found.values()) == {1}
    assert len({place[:-1] for place in found}) * passes == len(found) == records(out, "trailer")[0][f"{kind}s"]


@pytest.fixture
def finished(coherence: Path, tmp_path: Path) -> Path:
    """A complete file of six passes."""
    need(cpus=2)
    out = tmp_path / "done.jsonl"
    result = run(coherence, out, "--passes", "6", "--seed", "3")
    assert result.returncode == 0, result.stderr
    return out


def test_complete_file_is_left_alone(coherence: Path, finished: Path) -> None:
    content = finished.read_bytes()
    result = run(coherence, finished, "--passes", "6")
    assert result.returncode == 0
    assert "complete" in result.stderr
    assert finished.read_bytes() == content


def test_cut_file_is_continued(coherence: Path, finished: Path, tmp_path: Path) -> None:
    """Cut between lines and within them: each pair once per pass, and every whole line is kept."""
    content = finished.read_bytes()
    lines = content.splitlines(keepends=True)
    middle = len(b"".join(lines[:5]))
    whole = coordinates(finished)
    for cut in [0, 1, len(lines[0]) - 1, len(lines[0]), middle, middle + 1, middle + 90, len(content) - 1]:
        out = tmp_path / f"cut{cut}.jsonl"
        out.write_bytes(content[:cut])
        result = run(coherence, out, "--passes", "6")
        assert result.returncode == 0, result.stderr
        kept = content[: content.rfind(b"\n", 0, cut) + 1]
        assert out.read_bytes().startswith(kept)
        assert ("dropped" in result.stderr) == (kept != content[:cut])
        assert coordinates(out) == whole
        assert len(records(out, "trailer")) == 1
        assert [h["segment"] for h in records(out, "header")] == list(range(2 if kept else 1))
        assert records(out, "header")[-1]["seed"] == 3 or not kept


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--passes", "7"], "other arguments"),
        (["--passes", "6", "--home", "second"], "other arguments"),
        (["--passes", "6", "--job", "2"], "another job"),
        (["--passes", "6", "--run", "2"], "another job or run"),
    ],
)
def test_other_arguments_start_a_new_job(coherence: Path, finished: Path, arguments: list[str], words: str) -> None:
    content = finished.read_bytes()
    refused(run(coherence, finished, *arguments), 3, words, "new job")
    assert finished.read_bytes() == content


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("kernel_hash", "0123456789abcdef", "version"),
        ("host", "cn017", "host"),
        ("operation", "faa", "operation"),
    ],
)
def test_files_of_others_are_not_continued(coherence: Path, finished: Path, key: str, value: str, words: str) -> None:
    lines = finished.read_text().splitlines()
    header = json.loads(lines[0]) | {key: value}
    finished.write_text("\n".join([json.dumps(header, separators=(",", ":")), *lines[1:-1]]) + "\n")
    refused(run(coherence, finished, "--passes", "6"), 3, words, "new job")


def damage(lines: list[bytes]) -> dict[str, tuple[list[bytes], int]]:
    """Damaged copies of a complete file's lines (header, clusters, pass, pairs), and the line that is wrong."""
    return {
        "text": ([lines[0], b"hello\n"], 2),
        "text without newline": ([lines[0], b"hello"], 2),
        "pair before header": (lines[3:], 1),
        "twice": ([*lines[:4], lines[3], *lines[4:]], 5),
        "not asked for": ([*lines[:3], lines[3].replace(b'"pass":0', b'"pass":17')], 4),
        "unknown record": ([*lines[:3], lines[3].replace(b'"pair"', b'"pear"')], 4),
        "broken in the middle": ([*lines[:3], lines[3][:40] + b"\n", *lines[4:]], 4),
        "zeros in the middle": ([*lines[:3], bytes(200) + b"\n", *lines[4:]], 4),
        "zeros at the end": ([*lines[:3], bytes(4096)], 4),
        "behind the trailer": ([*lines, lines[3]], len(lines) + 1),
        "early trailer": ([*lines[:5], lines[-1]], 6),
        "header again": ([lines[0], lines[0]], 2),
    }


@pytest.mark.parametrize("kind", damage([b"{}\n"] * 5))
def test_damaged_file_is_refused(coherence: Path, finished: Path, kind: str) -> None:
    damaged, line = damage(finished.read_bytes().splitlines(keepends=True))[kind]
    finished.write_bytes(b"".join(damaged))
    content = finished.read_bytes()
    refused(run(coherence, finished, "--passes", "6"), 2, f"{finished}, line {line}:")
    assert finished.read_bytes() == content


def test_file_of_zeros_is_refused(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "zeros.jsonl"
    out.write_bytes(bytes(10000))
    refused(run(coherence, out), 2, "line 1")
    assert out.read_bytes() == bytes(10000)


@needs_two_cpus
def test_two_kernels_never_write_one_file(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    command = [str(coherence), "--op", "cas", "--out", str(out), "--passes", "10000", "--lines", "6"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_for_pairs(process, out, 1)
        refused(run(coherence, out, "--passes", "10000", "--lines", "6"), 3, "another process")
        process.kill()


# ---- operations ----


PAIR_OPERATIONS = ["cas", "faa", "flag1", "flag2"]
#: Dimensions of the cells of each other operation.
CELL_OPERATIONS = {
    "oneway": {"a", "b", "home"},
    "payload": {"a", "b", "home", "size_bytes"},
    "contend": {"kind", "among", "threads", "home"},
    "contend-pairs": {"kind", "a", "b", "home"},
    "state": {"a", "b", "home", "state", "sharer"},
    "place": {"a", "b", "closeness", "state", "place"},
    "stream": {"a", "b", "closeness", "state", "place"},
}


@needs_two_cpus
@pytest.mark.parametrize("operation", PAIR_OPERATIONS)
def test_pair_operation(coherence: Path, tmp_path: Path, operation: str) -> None:
    out = tmp_path / "r.jsonl"
    result = run(coherence, out, "--op", operation, "--cpus", "all", "--passes", "2")
    assert result.returncode == 0, result.stderr
    assert records(out, "header")[0]["operation"] == operation
    assert records(out, "header")[0]["quantity"] == "hop"
    assert len(coordinates(out)) == len(ALLOWED) * (len(ALLOWED) - 1)
    assert read_records(out).complete
    if operation == "flag2":  # its second line lies half a pool further, so all first ones lie in the first half
        assert all(line < 16 * 1024 * 1024 // 128 for r in records(out, "pass") for line in r["line_set"])


@needs_two_cpus
@pytest.mark.parametrize("operation", CELL_OPERATIONS)
def test_cell_operation(coherence: Path, tmp_path: Path, operation: str) -> None:
    """Every cell that is planned is there once per pass, with all its values; the package reads it."""
    out = tmp_path / "r.jsonl"
    arguments = ["--op", operation, "--cpus", ",".join(map(str, ALLOWED[:2])), "--passes", "2"]
    plan = run(coherence, None, "--plan", *arguments).stdout
    assert run(coherence, out, *arguments).returncode == 0
    header, cells = records(out, "header")[0], records(out, "cell")
    assert set(header["cells"]["dims"]) == CELL_OPERATIONS[operation]
    places = [tuple(cell[key] for key in (*header["cells"]["dims"], "pass")) for cell in cells]
    planned = int(dict(line.split(" ", 1) for line in plan.splitlines())["cells"])
    assert len(places) == len(set(places)) == 2 * planned
    values = set(header["cells"]["values"])
    if operation in ("place", "stream"):  # a value only where its lines are proved to be in their place
        values &= {"owner_ns", "block_bytes", "page_bytes"}
    assert all(values <= set(cell) for cell in cells)
    assert read_records(out).complete


@needs_two_cpus
@pytest.mark.parametrize("operation", [*PAIR_OPERATIONS, *CELL_OPERATIONS])
def test_every_operation_is_continued(coherence: Path, tmp_path: Path, operation: str) -> None:
    out = tmp_path / "r.jsonl"
    arguments = ["--op", operation, "--cpus", ",".join(map(str, ALLOWED[:2])), "--passes", "2"]
    assert run(coherence, out, *arguments).returncode == 0
    kind = "pair" if operation in PAIR_OPERATIONS else "cell"
    lines = out.read_text().splitlines(keepends=True)
    units = [i for i, line in enumerate(lines) if f'"record":"{kind}"' in line]
    whole = len(units)
    out.write_text("".join(lines[: units[whole // 2]]) + lines[units[whole // 2]][:30])
    result = run(coherence, out, *arguments)
    assert result.returncode == 0, result.stderr
    assert len(records(out, kind)) == whole
    assert records(out, "trailer")[0][f"{kind}s"] == whole


@needs_two_cpus
def test_oneway_sums_to_a_round_trip(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    two = ",".join(map(str, ALLOWED[:2]))
    assert run(coherence, out, "--op", "oneway", "--cpus", two, "--passes", "3").returncode == 0
    cells, offsets = records(out, "cell"), records(out, "offset")
    for cell in cells:
        assert cell["round_trip_ns"] == pytest.approx(cell["ab_ns"] + cell["ba_ns"], abs=0.01)
        assert cell["round_trip_ns"] > 0
    assert [o["cpu"] for o in offsets] == ALLOWED[:2]
    assert offsets[0]["offset_ns"] == 0
    mean = sum(cell["offset_ns"] for cell in cells) / len(cells)
    assert offsets[1]["offset_ns"] == pytest.approx(mean, abs=0.01)  # one pair closes by itself
    assert "third CPU" in records(out, "header")[0]["not_measured"]["asymmetry"]
    assert "closure_rms_ns" not in records(out, "trailer")[0]


@needs_two_cpus
def test_contention_counts(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--op", "contend", "--cpus", "all", "--passes", "1").returncode == 0
    cells = records(out, "cell")
    assert {c["kind"] for c in cells} == {"faa", "cas"}
    for cell in cells:
        assert len(cell["cpus"]) == len(set(cell["cpus"])) == len(cell["each_per_s"]) == cell["threads"] >= 2
        assert 1 / cell["threads"] - 1e-4 <= cell["fairness"] <= 1
        assert cell["success_share"] == 1 if cell["kind"] == "faa" else 0 < cell["success_share"] <= 1


@needs_two_cpus
def test_states_that_cannot_be_are_named(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    two = ",".join(map(str, ALLOWED[:2]))
    assert run(coherence, out, "--op", "state", "--cpus", two, "--passes", "1").returncode == 0
    measured = {(c["a"], c["b"], c["state"]) for c in records(out, "cell")}
    absent = records(out, "header")[0]["not_measured"]
    assert {(a, b, s) for a, b in [ALLOWED[:2], ALLOWED[1::-1]] for s in ("M", "E", "memory")} == measured
    assert set(absent) == {"S", "F", "O"}
    for reason in absent.values():
        assert "third core" in reason or "on this CPU" in reason


def test_owners_whose_lines_nobody_can_share_are_named(coherence: Path, tmp_path: Path) -> None:
    """Three CPUs share an L3, one is alone: S, F and O of that one are not measured, those of the three are."""
    root = fake_sysfs(tmp_path / "sys", 4, 1, 1)
    for cpu in range(4):
        cache = root / f"devices/system/cpu/cpu{cpu}/cache/index0"
        cache.mkdir(parents=True)
        for name, text in (("level", "3"), ("type", "Unified"), ("size", "16384K")):
            cache.joinpath(name).write_text(text + "\n")
        cache.joinpath("shared_cpu_list").write_text("0-2\n" if cpu < 3 else f"{cpu}\n")
    environment = os.environ | {"NODEPRINT_SYSFS": str(root)}
    pairs = tmp_path / "pairs"
    pairs.write_text("0 1\n0 3\n")
    planned = run(coherence, None, "--op", "state", "--plan", "--cpus", "0-3", "--pairs", str(pairs), env=environment)
    absent = json.loads(dict(line.split(" ", 1) for line in planned.stdout.splitlines())["not_measured"])
    reasons = [reason for reason in absent.values() if "third core" in reason]
    assert reasons
    assert all(reason.endswith("without one: 3") for reason in reasons)


@needs_two_cpus
def test_lines_of_states_lie_one_a_page(coherence: Path, tmp_path: Path) -> None:
    """What is written of them is what is chased: 64 for each of nine rounds, no two in a page of 4 KiB."""
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--op", "state", "--passes", "2", "--seed", "1").returncode == 0
    drawn = [r["line_set"] for r in records(out, "pass")]
    assert len(drawn) == 2 and drawn[0] != drawn[1]
    for lines in drawn:
        assert len({line // 64 for line in lines}) == len(lines) == records(out, "header")[0]["lines"] == 9 * 64
        assert len({line % 64 for line in lines}) > 32


@needs_two_cpus
def test_single_loads_are_finer_than_the_clock(coherence: Path, tmp_path: Path) -> None:
    """Zen's counter advances by 10 ns, ARM's by up to 40: a median of such readings is one of them, or between two."""
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--op", "state", "--passes", "2").returncode == 0
    step = records(out, "header")[0]["clock"]["step_ns"]
    shares = [2 * c[name] / step % 1 for c in records(out, "cell") for name in ("single_ns", "owner_store_ns")]
    assert step < 1 or any(0.05 < share < 0.95 for share in shares)


@pytest.mark.parametrize(
    ("pairs", "decidable"),
    [("0 1", False), ("0 1\n1 2\n2 3\n1 0\n", False), ("0 1\n1 2\n2 0\n", True), ("7 8\n0 1\n1 2\n2 3\n3 0\n", True)],
)
def test_asymmetry_needs_pairs_that_close(coherence: Path, tmp_path: Path, pairs: str, decidable: bool) -> None:
    named = tmp_path / "pairs"
    named.write_text(pairs)
    planned = run(coherence, None, "--op", "oneway", "--plan", "--pairs", str(named), "--home", "each").stdout
    assert ("undecidable" in planned) == (not decidable)


@needs_two_cpus
def test_payload_sizes(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--op", "payload", "--passes", "1").returncode == 0
    sizes = sorted({c["size_bytes"] for c in records(out, "cell")})
    assert sizes[0] == 64
    assert sizes[-1] == 1 << 20
    for cell in records(out, "cell"):
        assert cell["bytes_per_s"] == pytest.approx(cell["size_bytes"] / cell["latency_ns"] * 1e9, rel=1e-3)


# ---- sampling and selection ----


@needs_two_cpus
def test_lines_and_detail(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--lines", "9", "--detail", "--passes", "2").returncode == 0
    assert all(len(r["line_set"]) == 9 for r in records(out, "pass"))
    for pair in records(out, "pair"):
        assert pair["lines"] == len(pair["line_ns"]) == 9
        assert sorted(pair["line_ns"])[4] == pytest.approx(pair["latency_ns"], abs=0.01)


@needs_two_cpus
def test_pairs_file(coherence: Path, tmp_path: Path) -> None:
    """A pair that is named repeatedly is measured so often; an interrupted pass of it is finished and flagged."""
    a, b = ALLOWED[:2]
    pairs = tmp_path / "pairs"
    pairs.write_text(f"# made for a test\n{b} {a}\n\n{a},{b}  # again\n" * 5)
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--pairs", str(pairs), "--passes", "2").returncode == 0
    assert coordinates(out) == sorted([(a, b, records(out, "pair")[0]["home"], p) for p in range(2)] * 10)
    lines = out.read_text().splitlines(keepends=True)
    third = [i for i, line in enumerate(lines) if '"record":"pair"' in line][2]
    out.write_text("".join(lines[: third + 1]))
    assert run(coherence, out, "--pairs", str(pairs), "--passes", "2").returncode == 0
    after = records(out, "pair")
    assert [p["pass"] for p in after].count(0) == [p["pass"] for p in after].count(1) == 10
    assert [p["pass"] for p in after if "mixed_lines" in p["flags"]] == [0] * 7


@pytest.mark.parametrize("times", [1, 4, 6])
@pytest.mark.parametrize("complete", [True, False])
def test_another_list_of_pairs_is_a_new_job(coherence: Path, tmp_path: Path, times: int, complete: bool) -> None:
    """Under the same name; the file is fine, so it is not called malformed, which would have it measured again."""
    a, b = ALLOWED[:2]
    pairs, out = tmp_path / "pairs", tmp_path / "r.jsonl"
    pairs.write_text(f"{a} {b}\n" * 5)
    arguments = ("--pairs", str(pairs), "--passes", "1", "--lines", "6")
    assert run(coherence, out, *arguments).returncode == 0
    if not complete:
        out.write_text("".join(out.read_text().splitlines(keepends=True)[:-2]))
    content = out.read_bytes()
    pairs.write_text(f"{a} {b}\n" * times)
    refused(run(coherence, out, *arguments), 3, "other pairs", "new job")
    assert out.read_bytes() == content
    pairs.write_text(f"# as before\n{a} {b}\n{b},{a}\n" + f"{a} {b}\n" * 3)
    assert run(coherence, out, *arguments).returncode == 0


@needs_two_cpus
def test_pairs_from_a_pipe_behind_a_long_comment(coherence: Path, tmp_path: Path) -> None:
    """The file is read once, and a line of any length is one line."""
    a, b = ALLOWED[:2]
    out = tmp_path / "r.jsonl"
    text = f"# {'why these ' * 50}\n{a} {b}  # {'-' * 300}\n"
    result = run(coherence, out, "--pairs", "/dev/stdin", "--passes", "1", input=text)
    assert result.returncode == 0, result.stderr
    assert len(records(out, "pair")) == 1


@pytest.mark.parametrize("content", ["", "# nobody\n\n"])
@pytest.mark.parametrize("more", [[], ["--cpus", "all"]])
def test_pairs_file_without_a_pair(coherence: Path, tmp_path: Path, content: str, more: list[str]) -> None:
    pairs = tmp_path / "pairs"
    pairs.write_text(content)
    refused(run(coherence, tmp_path / "r", "--pairs", str(pairs), *more), 2, f"{pairs} names no pair")


@pytest.mark.parametrize(
    "content",
    ["0\n", "0 0\n", "0 1 2\n", "a b\n", "0 1x\n", "-1 0\n", f"{max(ALLOWED)} 99998\n", "0 1\0 2\n", "0" * 9999],
)
def test_bad_pairs_file(coherence: Path, tmp_path: Path, content: str) -> None:
    pairs = tmp_path / "pairs"
    pairs.write_text("# a comment\n" + content)
    result = run(coherence, tmp_path / "r", "--pairs", str(pairs), "--cpus", "all")
    refused(result, 2, f"{pairs}, line 2")


@needs_two_cpus
def test_sentinels_and_seconds(coherence: Path, tmp_path: Path) -> None:
    """Measured until each of them is there, then stopped."""
    out = tmp_path / "r.jsonl"
    command = [str(coherence), "--op", "cas", "--lines", "6", "--passes", "10000", "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline and process.poll() is None:
            text = out.read_text() if out.exists() else ""
            if '"record":"sentinel"' in text and '"record":"second"' in text:
                break
            time.sleep(0.05)
        process.terminate()
    sentinels, seconds = records(out, "sentinel"), records(out, "second")
    assert sentinels
    assert all(r["latency_ns"] > 0 and r["at_s"] >= 0.25 for r in sentinels)
    assert seconds
    assert all(r["span_s"] >= 0.999 and r["interrupts"] > 0 and r["steal_s"] >= 0 for r in seconds)
    assert seconds[0]["span_s"] <= seconds[0]["at_s"]


@needs_two_cpus
def test_spread_and_second_looks(coherence: Path, tmp_path: Path) -> None:
    a, b = ALLOWED[:2]
    pairs = tmp_path / "pairs"
    pairs.write_text(f"{a} {b}\n" * 40)
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--pairs", str(pairs), "--passes", "3", "--lines", "6").returncode == 0
    trailer = records(out, "trailer")[0]
    for share in ("line_sd_share", "line_pair_sd_share", "revisit_sd_share"):
        assert 0 <= trailer[share] < 1
    by_pass: dict[int, list[float]] = {}
    for pair in records(out, "pair"):
        assert 0 <= pair["retries"] <= 2
        assert pair["round_trips"] >= 25
        assert 2 * pair["round_trips"] * pair["min_ns"] > 1999  # no batch below 2 us
        assert (pair["slow_share"] > 0.25) == ("disturbed" in pair["flags"])
        assert pair["clock_a_ghz"] > 0
        by_pass.setdefault(pair["pass"], []).append(pair["latency_ns"])
    again = records(out, "again")
    assert trailer["again"] == len(again)
    assert all(r["reason"] == "passes_differ" and r["pass"] >= 3 for r in again)


@needs_two_cpus
def test_census_and_clusters(coherence: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--census", "--detail", "--passes", "2").returncode == 0
    taken, found = records(out, "census"), records(out, "clusters")
    assert taken
    for clusters in found:
        assert len(clusters["lines"]) == len(set(clusters["lines"])) == len(clusters["cluster"]) == 512
        assert sum(clusters["sizes"]) == 512
        assert len(clusters["sizes"]) == clusters["clusters"]
        assert 2 ** clusters["address_bits"] == os.sysconf("SC_PAGESIZE")
        assert (clusters["clusters"] == 1) == ("reason" in clusters)
    for census in taken:
        assert [len(half) for half in census["reload_ns"]] == [512, 512]
        for half in census["reload_ns"]:
            assert min(half) > 0
            assert len(set(half)) > 8  # finer than a counter that advances by several ns at once
    of_home = {r["home"]: r for r in found}
    drawn = {(r["home"], r["pass"]): r["line_set"] for r in records(out, "pass")}
    for pair in records(out, "pair"):
        clusters = of_home[pair["home"]]
        known = dict(zip(clusters["lines"], clusters["cluster"], strict=True))
        lines = drawn[pair["home"], pair["pass"]]
        of_line = [known[line] if clusters["clusters"] > 1 else 0 for line in lines]
        for number, value in enumerate(pair["cluster_ns"]):
            mine = [ns for ns, cluster in zip(pair["line_ns"], of_line, strict=True) if cluster == number]
            assert value == pytest.approx(statistics.median(mine), abs=0.01)
        assert pair["latency_ns"] == pytest.approx(statistics.mean(pair["cluster_ns"]), abs=0.01)
    assert read_records(out).companions


@needs_two_cpus
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--any-lines"], "not asked for"),
        (["--op", "flag2"], "a hop has two lines"),
        (["--parallel", "2", "--lines", "512", "--any-lines"], "not asked for"),
    ],
)
def test_lines_without_a_census(coherence: Path, tmp_path: Path, arguments: list[str], reason: str) -> None:
    out = tmp_path / "r.jsonl"
    assert run(coherence, out, "--passes", "1", *arguments).returncode == 0
    assert {(r["clusters"], r["reason"]) for r in records(out, "clusters")} == {(1, reason)}
    assert not records(out, "census")


def frames_of(pid: int, start: int, count: int) -> list[int]:
    """Numbers of the physical frames of so many pages, 0 where they may not be seen."""
    page = os.sysconf("SC_PAGESIZE")
    with Path(f"/proc/{pid}/pagemap").open("rb") as file:
        file.seek(start // page * 8)
        return [number & (1 << 55) - 1 for number in struct.unpack(f"<{count}Q", file.read(8 * count))]


@needs_two_cpus
def test_lines_in_huge_pages_have_more_known_bits_of_their_addresses(coherence: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "r.jsonl", os.sysconf("SC_PAGESIZE")
    words = ["--op", "cas", "--cpus", f"{ALLOWED[0]},{ALLOWED[1]}", "--passes", "10000", "--census", "--out", str(out)]
    with subprocess.Popen([coherence, "--huge-pages", *words], stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_pairs(process, out, 1)
            maps = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw", Path(f"/proc/{process.pid}/maps").read_text(), re.M)
            (pool,) = (int(start, 16) for start, end in maps if int(end, 16) - int(start, 16) == 16 << 20)
            frames = frames_of(process.pid, pool, (16 << 20) // page)
        finally:
            process.terminate()
    known = 2 ** int(records(out, "clusters")[0]["address_bits"])
    assert (known > page) == (records(out, "header")[0]["placement"]["0"]["pages"] == "thp")
    assert not any(frames) or all(frame * page % known == at * page % known for at, frame in enumerate(frames))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--lines", "5"], "--lines"),
        (["--lines", "513"], "--lines"),
        (["--parallel", "1"], "--parallel"),
        (["--share-l3"], "--parallel"),
        (["--census", "--any-lines"], "--any-lines"),
        (["--lines", ""], "--lines must not be empty"),
        (["--op", "cas", "--cpus", str(ALLOWED[0])], "two CPUs"),
        (["--op", "contend", "--lines", "32"], "--lines"),
        (["--op", "payload", "--lines", "32"], "--lines"),
        (["--op", "state", "--detail"], "--detail"),
        (["--pairs", "/nonexistent"], "/nonexistent"),
    ],
)
def test_refused_options(coherence: Path, tmp_path: Path, arguments: list[str], word: str) -> None:
    if len(ALLOWED) < 2 and "--cpus" not in arguments:
        arguments = [*arguments, "--cpus", "0"]
    refused(run(coherence, tmp_path / "r", *arguments), 2, word)
    assert not (tmp_path / "r").exists()


def test_pairs_that_stand_for_others_are_one_of_each_closeness(coherence: Path, tmp_path: Path) -> None:
    """128 CPUs, two threads a core, four cores an L3, two sockets that are NUMA nodes."""
    root = fake_sysfs(tmp_path / "sys", 128, 2, 2)
    for cpu in range(128):
        folder = root / f"devices/system/cpu/cpu{cpu}"
        core = cpu % 64
        (folder / "topology/physical_package_id").write_text(f"{core // 32}\n")
        cache = folder / "cache/index0"
        cache.mkdir(parents=True)
        for name, text in (("level", "3"), ("type", "Unified"), ("size", "16384K")):
            cache.joinpath(name).write_text(text + "\n")
        first = core // 4 * 4
        cache.joinpath("shared_cpu_list").write_text(f"{first}-{first + 3},{first + 64}-{first + 67}\n")
    environment = os.environ | {"NODEPRINT_SYSFS": str(root)}
    state = run(coherence, None, "--plan", "--op", "state", "--cpus", "0-127", env=environment).stdout
    assert "third CPU" not in state  # every CPU has a neighbor in its L3
    payload = dict(
        line.split(" ", 1)
        for line in run(
            coherence, None, "--plan", "--op", "payload", "--cpus", "0-127", env=environment
        ).stdout.splitlines()
    )
    assert int(payload["cells"]) % 4 == 0  # one pair each: same core, same L3, same node, other socket
    contend = dict(
        line.split(" ", 1)
        for line in run(
            coherence, None, "--plan", "--op", "contend", "--cpus", "0-63", env=environment
        ).stdout.splitlines()
    )
    assert int(contend["cells"]) == 2 * (2 + 5 + 6)  # 2 to 4 in an L3, 2 to 32 in a socket, 2 to 64 in all


# ---- pinning ----


def test_under_likwid_pin(coherence: Path, tmp_path: Path) -> None:
    need("likwid-pin", cpus=2)
    plan = run(coherence, None, "--plan", "--cpus", "all").stdout
    pin_list = dict(line.split(" ", 1) for line in plan.splitlines())["pin_list"]
    arguments = ["--op", "cas", "--cpus", "all", "--passes", "2"]

    def pinned(cpus: str, out: Path) -> subprocess.CompletedProcess[str]:
        command = ["likwid-pin", "-q", "-c", cpus, str(coherence), *arguments, "--out", str(out)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    right = pinned(pin_list, tmp_path / "right")
    assert right.returncode == 0, right.stderr
    assert records(tmp_path / "right", "header")[0]["pinned_by"] == "likwid-pin"
    wrong = pinned(",".join(map(str, ALLOWED)), tmp_path / "wrong")
    assert wrong.returncode == 0, wrong.stderr
    assert "likwid-pin put the worker of CPU" in wrong.stderr
    assert records(tmp_path / "wrong", "header")[0]["pinned_by"] == "native"


# ---- idle states ----

DEVICE = Path("/dev/cpu_dma_latency")
#: Kernels by whether their workers wait for one another, with what keeps them short.
WAITING = {"coherence": ("--op", "oneway"), "loaded": ("--op", "latency")}
SLEEPING = {"wake": ("--op", "futex"), "jitter": ("--op", "detours", "--seconds", "1")}


def devices_held(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process ever had the device open."""
    held = False
    while process.poll() is None:
        with contextlib.suppress(OSError):
            held = held or any(fd.readlink() == DEVICE for fd in Path(f"/proc/{process.pid}/fd").iterdir())
        time.sleep(0.002)
    return held


@needs_two_cpus
@pytest.mark.parametrize("kernel", [*WAITING, *SLEEPING])
def test_idle_states_are_held_off_where_workers_wait_and_nowhere_else(tmp_path: Path, kernel: str) -> None:
    out = tmp_path / "r.jsonl"
    arguments = [*(WAITING | SLEEPING)[kernel], "--passes", "1", "--cpus", f"{ALLOWED[0]},{ALLOWED[-1]}"]
    (tmp_path / "devices/system/cpu").mkdir(parents=True)
    (tmp_path / "devices/system/cpu/online").write_text(f"0-{ALLOWED[-1]}\n")
    no_large_caches = os.environ | {"NODEPRINT_SYSFS": str(tmp_path)}
    command = [built() / kernel, *arguments, "--out", out]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=no_large_caches
    ) as process:
        held = devices_held(process)
    valid_records(out)
    header = records(out, "header")[0]
    assert process.returncode == 0 and ("cpu_dma_latency" in header) == (kernel in WAITING)
    assert held == (kernel in WAITING and os.access(DEVICE, os.W_OK))
    assert held == header.get("cpu_dma_latency", {}).get("held_off", False)


@needs_two_cpus
def test_idle_states_that_may_not_be_held_off_are_recorded() -> None:
    """An ordinary user measures all the same, and the header has the reason."""
    need(root="measure as another user")
    nobody = 65534
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)
        program, out = Path(shutil.copy(built() / "coherence", folder)), folder / "r.jsonl"
        command: list[str | Path] = [
            program,
            "--op",
            "cas",
            "--cpus",
            f"{ALLOWED[0]},{ALLOWED[-1]}",
            "--passes",
            "1",
            "--out",
            out,
        ]
        done = subprocess.run(command, capture_output=True, user=nobody, group=nobody, check=False)
        assert done.returncode == 0, done.stderr
        idle = records(out, "header")[0]["cpu_dma_latency"]
    assert idle["held_off"] is False and str(DEVICE) in idle["reason"]


def test_lost_time_is_measured(tmp_path: Path) -> None:
    """Beside a loop on the same CPU a worker loses half of its time, whatever else runs."""
    cpu, out = ALLOWED[0], tmp_path / "r.jsonl"
    command = ["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]
    with subprocess.Popen(command) as loop:
        try:
            run = [str(built() / "clock"), "--op", "alone", "--cpus", str(cpu), "--seconds", "1", "--passes", "1"]
            subprocess.run([*run, "--out", str(out)], check=True, capture_output=True, timeout=120)
        finally:
            loop.kill()
    (trailer,) = records(out, "trailer")
    assert 0.3 < trailer["lost_share"] <= 1
    valid_records(out)


@needs_two_cpus
@pytest.mark.parametrize("operation", ["contend-pairs", "state"])
def test_what_was_measured_while_time_was_lost_is_flagged(operation: str, tmp_path: Path) -> None:
    """Beside four loops on both CPUs a worker loses most of its time, unless the scheduler spares it in that call."""
    out = tmp_path / "r.jsonl"
    cpus = f"{ALLOWED[0]},{ALLOWED[-1]}"
    loop = ["sh", "-c", "while :; do :; done"]
    loops = [subprocess.Popen(["taskset", "-c", str(cpu), *loop]) for cpu in cpus.split(",") for _ in range(4)]
    flagged = []
    try:
        for _ in range(8):
            out.unlink(missing_ok=True)
            done = run(built() / "coherence", out, "--op", operation, "--cpus", cpus, "--passes", "8")
            assert done.returncode == 0, done.stderr
            (trailer,) = records(out, "trailer")
            flagged = [cell for cell in records(out, "cell") if "disturbed" in cell["flags"]]
            if trailer["lost_share"] > 0.05 and flagged:  # from which share on values are marked
                break
    finally:
        for process in loops:
            process.kill()
            process.wait()
    assert flagged


@needs_two_cpus
@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [("bandwidth", ("--op", "machine", "--streams", "load")), ("wake", ("--op", "futex"))],
)
def test_clocks_that_are_apart_are_refused(kernel: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    """In a build where the clocks of CPU 1 are 0.1 s ahead, which made a tenth of a rate without a flag."""
    done = run(built("skewed") / kernel, tmp_path / "r.jsonl", *arguments, "--cpus", "0,1", "--passes", "1")
    assert done.returncode == 3
    assert re.match(rf"{kernel}: the clock of CPU 1 is .* us ahead of that of CPU 0.*cannot be subtracted", done.stderr)


@needs_two_cpus
def test_every_trailer_proves_its_file_also_when_it_was_continued(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    arguments = ("--cpus", f"{ALLOWED[0]},{ALLOWED[-1]}", "--passes", "40", "--seed", "1")
    assert run(built() / "coherence", out, *arguments).returncode == 0
    whole = out.read_text().splitlines(keepends=True)
    out.write_text("".join(whole[: len(whole) // 2]) + '{"record":"pair","a":')
    assert run(built() / "coherence", out, *arguments).returncode == 0
    text = out.read_bytes()
    assert len(records(out, "header")) == 2
    (trailer,) = records(out, "trailer")
    assert trailer["crc32"] == zlib.crc32(text[: text.rindex(b',"crc32":')])
    kinds = Counter(json.loads(line)["record"] for line in text.splitlines())
    assert trailer["lines_by_kind"] == {kind: count for kind, count in kinds.items() if kind != "trailer"}
