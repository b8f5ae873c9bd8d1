"""LinkTest: its schedule and words by themselves, and the program on this machine's CPUs. Never how fast it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from math import comb
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.data.format import record_format, records
from nodeprint.data.job import jobs
from nodeprint.errors import NodeprintError
from nodeprint.settings import config
from tests.support.real_parts import ALLOWED, ROOT, need
from tests.support.schemas import valid_campaign, valid_records

sys.path.insert(0, str(ROOT / "kernels"))
from linktest import figure, launch, ranks, samples, schedule, settings, transport
from linktest import records as link_records

RANKS = st.integers(2, 257)
#: Open MPI's line above and below what it says.
FRAME = 60 * "-"
PAIRS = {"semidirectional": 1, "bidirectional": 1, "unidirectional": 2}


def needs_two_cpus(test: Callable[..., None]) -> Callable[..., None]:
    """It measures: with two CPUs, and nothing else beside it."""
    marked: Callable[..., None] = pytest.mark.machine(pytest.mark.usefixtures("two_cpus")(test))
    return marked


# --- the schedule ---


@given(RANKS)
def test_every_pair_once_and_no_rank_twice_in_a_round(count: int) -> None:
    rounds = schedule.all_pairs(count)
    pairs = [pair for one in rounds for pair in one]
    assert sorted(pairs) == [(a, b) for a in range(count) for b in range(a + 1, count)]
    for one in rounds:
        ends = [rank for pair in one for rank in pair]
        assert len(ends) == len(set(ends))
        assert len(one) == count // 2
    assert len(rounds) == count - 1 + count % 2


@given(RANKS)
def test_a_bisection_has_every_pair_of_the_halves_once(count: int) -> None:
    rounds = schedule.bisection(count)
    half = count // 2
    pairs = sorted(pair for one in rounds for pair in one)
    assert pairs == [(a, b) for a in range(half) for b in range(half, count)]
    for one in rounds:
        assert len({rank for pair in one for rank in pair}) == 2 * len(one) == 2 * half


@given(RANKS, st.integers(0, 2**32))
def test_a_mixed_order_has_the_same_pairs(count: int, seed: int) -> None:
    rounds = schedule.all_pairs(count)
    mixed = schedule.mixed(rounds, count, seed)
    assert sorted(p for one in mixed for p in one) == sorted(p for one in rounds for p in one)
    assert all(len({rank for pair in one for rank in pair}) == 2 * len(one) for one in mixed)


def test_another_seed_is_another_order() -> None:
    rounds = schedule.all_pairs(16)
    assert schedule.mixed(rounds, 16, 1) != schedule.mixed(rounds, 16, 2)
    assert schedule.mixed(rounds, 16, 1) == schedule.mixed(rounds, 16, 1)


@given(st.integers(2, 40), st.data())
def test_what_is_left_is_what_was_not_done(count: int, data: st.DataObject) -> None:
    rounds = schedule.both_ways(schedule.all_pairs(count))
    pairs = [pair for one in rounds for pair in one]
    assert len(set(pairs)) == count * (count - 1)
    done = set(data.draw(st.lists(st.sampled_from(pairs))))
    left = schedule.without(rounds, done)
    assert sorted(p for one in left for p in one) == sorted(set(pairs) - done)
    assert all(left)


# --- statistics ---


def test_the_interval_holds_the_low_quantile_as_often_as_it_says() -> None:
    # order statistics of a binomial: by exact sums, not by drawing
    for count in (13, 16, 20, 64):
        low, high = samples.interval(count)
        below = [comb(count, k) * 0.25**k * 0.75 ** (count - k) for k in range(count + 1)]
        # the quantile lies between the two when at least low + 1 and at most high of the samples are below it
        assert sum(below[low + 1 : high + 1]) >= 0.94
        assert sum(below[: low + 1]) <= 0.025
    assert samples.interval(1) == (0, 0)


def test_a_burst_moves_neither_value_nor_interval() -> None:
    quiet = [100.0 + i for i in range(16)]
    loud = [*quiet[:14], 1e6, 1e6]
    assert samples.summary(loud)["latency_ns"] == samples.summary(quiet)["latency_ns"]
    assert samples.summary(quiet)["flags"] == []
    assert samples.summary([*quiet[:8], *([1e6] * 8)])["flags"] == ["disturbed"]


def test_samples_that_all_lost_time_are_disturbed() -> None:
    """None is slow beside another; of 16 samples of two messages of 40 ms a rank did not run for half of the time."""
    slow = [40e6 + i for i in range(16)]
    assert samples.summary(slow, 2)["flags"] == []
    assert samples.summary(slow, 2, 16 * 40e6)["flags"] == ["disturbed"]
    assert samples.summary(slow, 2, 16 * 2e6)["flags"] == [], "less than a tenth"


def test_what_was_lost_in_slow_samples_alone_disturbs_no_value() -> None:
    loud = [*[100.0 + i for i in range(14)], 1e6, 1e6]
    assert samples.summary(loud, 2, 2 * 2 * (1e6 - 110))["flags"] == []
    assert samples.summary(loud, 2, 2 * 2 * (1e6 - 110) + 2000)["flags"] == ["disturbed"], (
        "the other samples lost some, too"
    )


# --- its words ---


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files", "srun --mpi=list"),
        ("srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types", "srun --mpi=list"),
        ("[cn02:00025] OPAL ERROR: Unreachable in file ext3x_client.c at line 112", "srun --mpi=pmix"),
        ("slurmstepd: error: *** JOB 7 ON cn01 CANCELLED AT 2026-11-22 DUE TO TIME LIMIT ***", "slurm.minutes"),
        ("There are not enough slots available in the system to satisfy the 5", "--oversubscribe"),
        ("You were supposed to get help about:\n    prte-rmaps-base:alloc-error\nBut I couldn't", "--oversubscribe"),
        (
            "The application appears to have been direct launched using srun, but OMPI was not built with SLURM's PMI",
            "srun --mpi=pmix",
        ),
        ("WARNING: Open MPI failed to TCP connect to a peer: connect() failed: No route to host (113)", "firewall"),
        ("srun: error: cn02: task 1: Killed", "rank 1 on cn02 ended: Killed"),
        (
            "srun: error: cn01: tasks 0-1: Terminated\nsrun: error: cn04: tasks 6-7: Segmentation fault (core dumped)",
            "rank 6-7 on cn04 ended: Segmentation fault",
        ),
        ("linktest-refused: cn01 and cn02 exchanged no message\nmpirun: aborted", "cn01 and cn02 exchanged"),
        (
            "opal_ifinit: unable to find network interfaces.\nThe PMIx server's listener thread failed to start.",
            "ip link set lo up",
        ),
        ("one line\nsomething nobody knows", "exit code 7 (something nobody knows)"),
        (
            "before\n" + 60 * "-" + "\nA daemon failed. We cannot\ncontinue.\n" + 60 * "-" + "\nafter",
            "exit code 7 (A daemon failed. We cannot continue.)",
        ),
        (
            "\n".join((FRAME, "A component was not found.", FRAME, FRAME, "MPI_INIT failed.", FRAME)),
            "(A component was not found.)",
        ),
        (
            "\n".join((FRAME, "ORTE was unable to reliably start one or more daemons.", "routing).", FRAME)),
            "start its daemon on a node by ssh",
        ),
    ],
)
def test_what_a_launcher_says_becomes_one_sentence(said: str, sentence: str) -> None:
    found = launch.meaning(said.splitlines(), 7)
    assert sentence in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("said", "code", "sentence"),
    [
        (
            "mpirun noticed that process rank 3 with PID 0 on node cn02 exited on signal 9 (Killed).",
            137,
            "rank 3 on cn02 was killed by signal 9",
        ),
        (
            "prterun noticed that process rank 3 with PID 0 on node cn02 exited on\nsignal 11 (Segmentation fault).",
            139,
            "rank 3 on cn02 was killed by signal 11",
        ),
        ("words of a launcher that nobody knows", 137, "a rank was killed by signal 9"),
        ("", 143, "a rank was killed by signal 15"),
        ("", -9, "the launcher was killed by signal 9"),
        ("ssh: nobody answers", 255, "MPI ended with exit code 255 (ssh: nobody answers)"),
    ],
)
def test_the_exit_code_tells_which_signal_killed_a_rank(said: str, code: int, sentence: str) -> None:
    assert launch.meaning(said.splitlines(), code).startswith(sentence)


def test_the_transport_is_what_mpi_has_selected() -> None:
    """From categories as Open MPI 4.1.4 and 5.0.7 give them: settings of the MTLs stay without a PML that uses them."""
    shared = ["ompi_pml", "ompi_pml_base", "opal_btl_base", "opal_btl_self", "opal_btl_tcp", "opal_btl_vader"]
    unused = ["ompi_mtl_psm2", "ompi_mtl_ofi", "ompi_fbtl_posix"]
    messages = {"pml": ["ob1"], "mtl": []}
    four, five = [*shared, *unused, "ompi_pml_ob1"], ["opal_btl_sm", "opal_smsc_base", "opal_smsc_cma"]
    assert transport.selected(four) == {**messages, "btl": ["self", "tcp", "vader"], "smsc": []}
    assert transport.selected([*four, *five]) == {**messages, "btl": ["self", "sm", "tcp"], "smsc": ["cma"]}
    ucx = transport.selected([*shared, *unused, *five, "ompi_pml_ucx"])
    assert ucx == {"pml": ["ucx"], "btl": [], "mtl": [], "smsc": []}
    assert transport.selected(["ompi_pml_cm", "ompi_mtl_ofi", "opal_btl_tcp"])["mtl"] == ["ofi"]
    assert transport.selected(["CH4_OFI", "PT2PT"]) == {"pml": [], "btl": [], "mtl": [], "smsc": []}


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        (["--sizes", "12X"], "a size is a number of bytes", 2),
        (["--sizes", "8,8"], "each size once", 2),
        (["--sizes", "8,64K", "--retest", "2"], "--retest is for one message size", 2),
        (["--samples", "0"], "--samples must be from 1 to 1e+06, not 0", 2),
        (["--messages", "4294967297"], "--messages must be from 0", 2),  # as a C int it would be 1
        (["--warm-up", "4294967297"], "--warm-up must be from 0", 2),
        (["--samples", "3000000000"], "--samples must be from 1", 2),
        (["--passes", "99999999999"], "--passes must be from 1", 2),
        (["--ranks", "-3"], "--ranks must be from 0", 2),
        (["--retest", "-1"], "--retest must be from 0", 2),
        (["--seed", "-1"], "--seed must be from 0", 2),
        (["--patience", "nan"], "--patience must be from 1", 2),
        (["--cpus", "0-99999", "--plan"], "100000 ranks are more than 4096", 2),
        (["--nodes", "a,b,a"], "a node appears twice", 2),
        (["--launcher", "%20"], "the launcher is blank", 2),
        (["--launcher", "mpirun%20'-n"], "cannot be read (No closing quotation)", 2),
        (["--launcher", "mpirun%20-n%20{ranks"], "cannot be read", 2),
        (["--cpus", "0-"], "not a list of CPUs", 2),
        (["--cpus", "0,0"], "twice", 2),
        (["--cpus", "99999"], "not online", 2),
        (["--nodes", "a,b", "--cpus", "0"], "leave one out", 2),
        (["--nodes", "a"], "a pair needs two", 3),
        (["--mode", "sideways"], "invalid choice", 2),
        (["--launcher", "mpirun%20-n%20{many}", "--nodes", "a,b"], "unknown placeholder {many}", 2),
    ],
)
def test_bad_arguments_get_one_sentence(words: list[str], sentence: str, code: int, tmp_path: Path) -> None:
    with pytest.raises(settings.RefusalError, match=re.escape(sentence)) as error:
        settings.parse(["--out", str(tmp_path / "x"), *words]).command()
    assert error.value.code == code


def test_a_plan_needs_neither_mpi_nor_the_cpus() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "kernels/linktest/__main__.py", "--plan", "--cpus", "0-127"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/nowhere"},
    )
    facts = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert facts["pairs"] == str(128 * 127 // 2)
    assert 0 < float(facts["seconds"]) < 180


# --- the program ---


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LinkTest with its library, built apart."""
    need("mpicc", "mpirun", "make")
    folder = tmp_path_factory.mktemp("linktest")
    shutil.copytree(ROOT / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("build", "__pycache__"))
    (folder / ".venv").symlink_to(ROOT / ".venv")
    subprocess.run(
        ["make", "-s", "-C", folder / "kernels", "build/linktest", "build/linktest.so"], check=True, capture_output=True
    )
    return folder / "kernels/build/linktest"


def two() -> str:
    return ",".join(map(str, ALLOWED[:2]))


def call(kernel: Path, out: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [kernel, "--cpus", two(), "--out", out, "--sizes", "64K", "--samples", "3", *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env=dict(os.environ, **environment)
    )


def content(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()]


@needs_two_cpus
@pytest.mark.parametrize("schedule_", ["serial", "parallel"])
@pytest.mark.parametrize("mode", PAIRS)
@pytest.mark.parametrize("ranks", [2, 5])
def test_every_pair_of_every_mode(kernel: Path, tmp_path: Path, mode: str, schedule_: str, ranks: int) -> None:
    out = tmp_path / "r.jsonl"
    done = call(
        kernel,
        out,
        "--mode",
        mode,
        "--schedule",
        schedule_,
        "--ranks",
        str(ranks),
        "--mix",
        "--seed",
        "5",
        "--load",
        "1K",
        "--passes",
        "2",
    )
    assert done.returncode == 0, done.stderr
    valid_records(out)
    file = records.read(out)
    assert file.complete
    found = list(zip(file.pairs["pass"], file.pairs["a"], file.pairs["b"], strict=True))
    assert len(found) == len(set(found)) == 2 * PAIRS[mode] * ranks * (ranks - 1) // 2
    assert (file.pairs["ci_low_ns"] <= file.pairs["latency_ns"]).all()
    assert (file.pairs["latency_ns"] <= file.pairs["ci_high_ns"]).all()
    shared = {bool(flags & record_format.FLAGS["oversubscribed"]) for flags in file.pairs["flags"]}
    assert shared == {ranks > 2}
    assert ("share 2 CPUs" in done.stderr) == (ranks > 2)
    assert file.header["timed_by"] == "c"
    carriers = file.header["transport"]
    assert carriers["pml"] == ["ob1"]
    assert {"self"} < set(carriers["btl"])
    assert carriers["mtl"] == []
    again = [one for one in file.companions if one["record"] == "again"]
    assert len(again) == min(3, PAIRS[mode] * ranks * (ranks - 1) // 2)
    assert "s left" in done.stderr


def written(path: Path, times_ns: dict[tuple[int, int], float], **header: Any) -> Path:
    """A complete record file of messages of 1 MiB."""
    said = {"operation": "semidirectional", "message_bytes": 1 << 20, "passes": 1, "arguments": [], **header}
    pairs = [{"record": "pair", "a": a, "b": b, "pass": 0, "latency_ns": ns} for (a, b), ns in times_ns.items()]
    again = {"record": "again", "a": 0, "b": 3, "pass": 1, "latency_ns": 80e3}
    trailer = {"record": "trailer", "alltoall_s": 0.5e-3, "alltoall_bytes": 1 << 20, "alltoall_ranks": 4}
    lines = [{"record": "header", **said}, *pairs, again, trailer]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_figure_of_a_call_by_hand(tmp_path: Path) -> None:
    """Minimum, mean and maximum with rates, the slowest pairs with their second look, a matrix, all at once."""
    times = {(0, 1): 74e3, (2, 3): 74e3, (0, 2): 84e3, (1, 3): 84e3, (1, 2): 84e3, (0, 3): 104e3}
    path = written(tmp_path / "r.jsonl", times, parallel=2, arguments=["--bisection"])
    said = figure.text(figure.read(path)).splitlines()
    assert "minimum       74 µs  14.2 GB/s" in said
    assert "mean          84 µs  12.5 GB/s" in said
    assert "slowest     0 to 3    104 µs, again alone 80 µs" in said
    assert "    1      74       -      84      84" in said
    assert "bisection: 2 pairs at once 25 GB/s" in said
    assert "all-to-all of 1 MiB: 500 µs, 2.0 times as fast as one message at a time" in said
    head, first, *_ = figure.csv(figure.read(path)).splitlines()
    assert (head, first) == ("a,b,size_bytes,latency_ns,bytes_per_s", "0,1,1048576,74000,1.41699e+10")


@needs_two_cpus
def test_passes_go_on_for_as_long_as_is_asked(kernel: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = call(kernel, out, "--ranks", "2", "--sizes", "64K", "--samples", "2", "--min-seconds", "1")
    assert done.returncode == 0, done.stderr
    file = records.read(out)
    assert file.complete and file.trailer is not None
    assert file.trailer["elapsed_s"] >= 1
    assert sorted(set(file.pairs["pass"].tolist())) == list(range(len(file.pairs["pass"])))
    assert len(file.pairs["pass"]) == file.trailer["pairs"] > 1


@needs_two_cpus
def test_csv_is_printed_and_an_all_to_all_is_timed(kernel: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = call(kernel, out, "--ranks", "2", "--sizes", "64K", "--load", "64K", "--csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "a,b,size_bytes,latency_ns,bytes_per_s"
    trailer = json.loads(out.read_text().splitlines()[-1])
    assert trailer["alltoall_bytes"] == 64 << 10
    assert trailer["alltoall_s"] > 0
    valid_records(out)


@needs_two_cpus
def test_a_bisection_and_several_sizes(kernel: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = call(kernel, out, "--ranks", "4", "--bisection", "--sizes", "8,1K,64K")
    assert done.returncode == 0, done.stderr
    valid_records(out)
    file = records.read(out)
    assert len(file.cells["a"]) == 3 * 4
    assert set(file.cells["size_bytes"]) == {8, 1024, 65536}
    assert set(zip(file.cells["a"], file.cells["b"], strict=True)) == {(a, b) for a in (0, 1) for b in (2, 3)}


@needs_two_cpus
def test_a_complete_file_is_left_alone_and_other_arguments_are_refused(kernel: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    assert call(kernel, out).returncode == 0
    before = out.read_bytes()
    again = call(kernel, out)
    assert (again.returncode, out.read_bytes()) == (0, before)
    other = call(kernel, out, "--passes", "2")
    assert other.returncode == 3
    assert "start a new job" in other.stderr.splitlines()[-1]
    out.write_text("{}\n")
    assert call(kernel, out).returncode == 2


@pytest.mark.parametrize("content", ["a letter without a newline", '{"record":"pair"}\n', "\0" * 300])
def test_a_file_that_is_no_record_is_left_as_it_is(content: str, tmp_path: Path) -> None:
    out = tmp_path / "letter.txt"
    out.write_text(content)
    with pytest.raises(settings.RefusalError, match=r"line 1: no header"):
        link_records.read(out, {})
    with pytest.raises(settings.RefusalError, match="not a regular file"):
        link_records.read(Path("/dev/full"), {})
    assert out.read_text() == content


def test_a_header_that_was_cut_is_begun_again(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    for text in ("", '{"rec', '{"record":"header","sch'):
        out.write_text(text)
        assert link_records.read(out, {}).length == 0


def started(kernel: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    command = [str(kernel), "--cpus", two(), "--ranks", "6", "--sizes", "64K", "--samples", "8", *words]
    return subprocess.Popen([*command, "--out", out], stderr=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def ranks_of(launcher: int) -> list[int]:
    """The processes below one, by their number of generations."""
    out = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            words = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == launcher and b"--as-rank" in words and b"mpirun" not in words.split(b"\0")[0]:
            out.append(int(stat.parent.name))
    return out


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@needs_two_cpus
@pytest.mark.parametrize("how", ["signal", "rank"])
def test_what_was_measured_is_kept_and_continued(kernel: Path, tmp_path: Path, how: str) -> None:
    out = tmp_path / "r.jsonl"
    words = ("--passes", "200", "--mix")
    process = started(kernel, out, *words)
    wait_for(lambda: out.exists() and out.read_text().count('"pair"') > 20)
    if how == "signal":
        process.terminate()
    else:
        (mpirun,) = children(process.pid)
        os.kill(ranks_of(mpirun)[3], signal.SIGKILL)
    said = process.communicate(timeout=300)[1].splitlines()[-1]
    text = out.read_text()
    assert "trailer" not in text
    kept = text.count('"pair"')
    if how == "signal":
        assert process.returncode == 128 + signal.SIGTERM
        assert "the same call continues" in said
    else:
        assert process.returncode == 3
        assert re.search(r"(a rank|rank \d on \S+) was killed by signal 9", said)
        assert f"{kept} pairs are kept" in said
    # the rest of 200 passes would take a minute: cut to what a shorter plan holds
    out.write_text(text + '{"record":"pair","a":0,')  # a line that was cut
    process = started(kernel, out, *words)
    wait_for(lambda: out.read_text().count('"pair"') > kept + 20)
    process.terminate()
    process.communicate(timeout=300)
    found = content_of(out)
    headers = [one for one in found if one["record"] == "header"]
    assert [one["segment"] for one in headers] == [0, 1]
    assert headers[0]["seed"] == headers[1]["seed"]
    keys = [(one["pass"], one["a"], one["b"]) for one in found if one["record"] == "pair"]
    assert len(keys) == len(set(keys))


def content_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().split("\n")[:-1]]


@needs_two_cpus
@pytest.mark.parametrize("crashes", [2, 3])
def test_ranks_that_crash_before_the_first_record_are_started_three_times(
    kernel: Path, tmp_path: Path, crashes: int
) -> None:
    launcher, out, starts = tmp_path / "launcher", tmp_path / "r.jsonl", tmp_path / "starts"
    launcher.write_text(
        f'#!/bin/sh\necho >> {starts}\n[ "$(wc -l < {starts})" -gt {crashes} ] && exec mpirun --oversubscribe "$@"\n'
        "echo 'srun: error: cn01: task 1: Segmentation fault' >&2\nexit 139\n"
    )
    launcher.chmod(0o755)
    done = call(kernel, out, "--launcher", f"{launcher}%20-n%20{{ranks}}")
    assert len(starts.read_text()) == 3
    assert done.stderr.count("starting the ranks again") == 2
    assert (done.returncode, out.exists()) == ((0, True) if crashes == 2 else (3, False)), done.stderr
    assert crashes == 2 or "rank 1 on cn01 ended: Segmentation fault" in done.stderr.splitlines()[-1]


@needs_two_cpus
def test_a_continued_file_becomes_complete(kernel: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    assert call(kernel, out, "--ranks", "5").returncode == 0
    whole = out.read_text().splitlines(keepends=True)
    out.write_text("".join(whole[:4]))
    other = "mpirun --host localhost:5 --oversubscribe --bind-to none -n {ranks}"  # it may be started in another way
    done = call(kernel, out, "--ranks", "5", "--launcher", other.replace(" ", "%20"))
    assert done.returncode == 0, done.stderr
    file = records.read(out)
    assert file.complete
    assert len(file.pairs["a"]) == 10
    assert len(file.headers) == 2


@needs_two_cpus
def test_without_the_library_small_messages_are_refused(kernel: Path, tmp_path: Path) -> None:
    shutil.copytree(kernel.parent.parent, tmp_path / "kernels")
    (tmp_path / "kernels/build/linktest.so").unlink()
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    bare = tmp_path / "kernels/build/linktest"
    small = call(bare, tmp_path / "small.jsonl", "--sizes", "1K")
    assert small.returncode == 3
    assert "below 64 KiB" in small.stderr.splitlines()[-1]
    out = tmp_path / "r.jsonl"
    for mode in PAIRS:
        out = tmp_path / f"{mode}.jsonl"
        assert call(bare, out, "--mode", mode).returncode == 0
        assert records.read(out).header["timed_by"] == "python"


@needs_two_cpus
def test_without_mpi_it_is_unavailable(kernel: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = call(kernel, out, "--launcher", "no-such-mpirun%20-n%20{ranks}")
    assert done.returncode == 4 and not out.exists()
    assert "no-such-mpirun is not installed" in done.stderr
    plan = call(kernel, out, "--launcher", "no-such-mpirun", "--plan").stdout
    assert "unavailable no MPI here: no-such-mpirun is not installed" in plan and "seconds " in plan
    assert "unavailable" not in call(kernel, out, "--plan").stdout


@needs_two_cpus
def test_buffers_of_a_gpu_say_what_is_missing(kernel: Path, tmp_path: Path) -> None:
    """Whichever is the first that is not there: a package, CUDA in MPI, or a GPU."""
    out = tmp_path / "r.jsonl"
    done = call(kernel, out, "--buffers", "cuda")
    assert done.returncode in (3, 4) and "Traceback" not in done.stderr
    missing = "needs CuPy or torch|this MPI is built without CUDA|sees no GPU|cannot use a GPU"
    assert re.search(f"--buffers cuda:? ?.*({missing})", done.stderr)
    assert call(kernel, out).returncode == 0, "a file that holds nothing is no obstacle"
    assert "--buffers" not in content(out)[0]["arguments"]


@needs_two_cpus
def test_on_a_node_with_an_old_python_it_is_unavailable(kernel: Path, tmp_path: Path) -> None:
    shutil.copytree(kernel.parent.parent, tmp_path / "kernels")  # without nodeprint's environment beside it
    old = tmp_path / "bin/python3"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho SyntaxError >&2\nexit 1\n")
    old.chmod(0o755)
    campaign = tmp_path / "main"
    campaign.mkdir()
    (campaign / "plan.tsv").write_text("linktest-node\tlinktest\t--cpus cores --sizes 64K\n")
    command = [f"{ROOT}/kernels/node-run", "--campaign", str(campaign), "--node", "n1", "--job", "1", "--runs", "1"]
    done = subprocess.run(
        [*command, "--kernels", tmp_path / "kernels/build"],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ, PATH=f"{old.parent}:{os.environ['PATH']}"),
    )
    assert done.returncode == 0, done.stderr
    assert valid_campaign(campaign) == ["status.json"]
    job = jobs.read(campaign / "nodes/n1/job1")
    assert job.status is not None and job.status.outcome == "failed", "nothing else is in the plan"
    assert "no Python 3.11 or later here" in job.not_applicable["linktest-node"]


@needs_two_cpus
@pytest.mark.parametrize(
    ("launcher", "sentence"),
    [
        ("mpirun --host localhost:2 -n 1", "every process is an MPI of its own"),
        ("mpirun --host localhost:3 --bind-to none -n 3", "started 3 ranks, not 2"),
        ("mpirun --host localhost:1 -n {ranks}", "fewer slots than ranks"),
        ("false", "MPI ended with exit code 1"),
    ],
)
def test_a_launcher_that_does_not_do_is_named(kernel: Path, tmp_path: Path, launcher: str, sentence: str) -> None:
    done = call(kernel, tmp_path / "r.jsonl", "--launcher", launcher.replace(" ", "%20"))
    assert done.returncode == 3
    assert sentence in done.stderr.splitlines()[-1]


@needs_two_cpus
def test_silent_ranks_are_given_up(kernel: Path, tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 1000\n")
    silent.chmod(0o755)
    done = call(kernel, tmp_path / "r.jsonl", "--launcher", str(silent), "--patience", "2")
    assert done.returncode == 3
    assert "the ranks reported nothing for 2 s" in done.stderr.splitlines()[-1]


@needs_two_cpus
def test_what_a_launcher_leaves_behind_keeps_nobody_waiting(kernel: Path, tmp_path: Path) -> None:
    """As ssh to a host that does not answer, which holds the launcher's output open."""
    leaving = tmp_path / "leaving"
    leaving.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! >{tmp_path}/left\nexit 5\n")
    leaving.chmod(0o755)
    process = subprocess.Popen(
        [kernel, "--cpus", two(), "--out", tmp_path / "r.jsonl", "--launcher", leaving],
        stderr=(tmp_path / "said").open("w"),
    )
    wait_for(lambda: process.poll() is not None)
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)
    assert process.returncode == 3
    assert "MPI ended with exit code 5" in (tmp_path / "said").read_text().splitlines()[-1]


def test_a_result_that_arrives_early_is_of_its_own_step(tmp_path: Path) -> None:
    """The first pair of pass 1 is measured as soon as the last of pass 0 is, whose result may still be on its way."""
    asked = settings.parse(["--cpus", "0,1", "--ranks", "4", "--passes", "2", "--out", str(tmp_path / "r.jsonl")])
    work = ranks.steps(asked, 1, set(), lambda rank: rank)
    scribe = ranks.Scribe(SimpleNamespace(host="h"), asked, lambda rank: rank)  # type: ignore[arg-type]
    scribe.expect(work)
    result = {"latency_ns": 1.0, "flags": []}
    first_of_one = next(at for at, step in enumerate(work) if step.number == 1)
    late = (first_of_one - 1, *work[first_of_one - 1].pairs[-1])
    for at, a, b in ((first_of_one, *work[first_of_one].pairs[0]), late):
        scribe.take(at, a, b, result)
    assert set(scribe.former.done) == {(1, 0, *work[first_of_one].pairs[0]), (0, 0, *late[1:])}


def test_the_launcher_of_the_configuration_is_one_word_of_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("measure: [linktest-node]\nmpi: {launcher: 'srun --mpi=pmix -n {ranks}'}\n")
    plan = config.plan(config.load(file))
    *_, arguments, _ = plan.rstrip("\n").split("\t")
    words = arguments.split()
    assert settings.parse(["--out", "x", "--cpus", two(), *words[words.index("--launcher") :]]).command() == [
        "srun",
        "--mpi=pmix",
        "-n",
        "2",
    ]
    file.write_text("mpi: {launcher: 'srun; reboot'}\n")
    with pytest.raises(NodeprintError, match=r"mpi\.launcher"):
        config.load(file)


@needs_two_cpus
def test_node_run_measures_it_and_the_job_has_its_pairs(kernel: Path, tmp_path: Path) -> None:
    campaign = tmp_path / "main"
    campaign.mkdir()
    words = "--cpus cores --sizes 64K --samples 3"
    (campaign / "plan.tsv").write_text(
        f"linktest-node\tlinktest\t{words}\nlinktest-none\tlinktest\t{words} --launcher no-such-mpirun\n"
    )
    command = [f"{ROOT}/kernels/node-run", "--campaign", str(campaign), "--node", "n1", "--job", "1", "--runs", "1"]
    done = subprocess.run([*command, "--kernels", kernel.parent], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    job = jobs.read(campaign / "nodes/n1/job1")
    assert job.status is not None and job.status.outcome == "complete"
    one = job.measured["linktest-node"]
    assert one.header["quantity"] == "message" and set(one.cpus) >= {ALLOWED[0], ALLOWED[-1]}
    assert (one.columns["latency_ns"] > 0).all()
    assert "no-such-mpirun is not installed" in job.not_applicable["linktest-none"]
    outcomes = {run.name: run.outcome for run in job.rows}
    assert outcomes == {"linktest-node": "done", "linktest-none": "unavailable"}, "what did nothing is not done"
    assert set(job.untaken) == {"linktest-none"}
    assert list((campaign / "nodes/n1/job1").glob("run1.tar.*")), "the rest of the run is packed"

    # Open MPI is installed meanwhile, and the same job goes on
    mpirun = tmp_path / "bin/no-such-mpirun"
    mpirun.parent.mkdir()
    mpirun.write_text('#!/bin/sh\nexec mpirun --host localhost:2 --bind-to none -n 2 "$@"\n')
    mpirun.chmod(0o755)
    before = one.columns["latency_ns"]
    path = f"{mpirun.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [*command, "--kernels", kernel.parent],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": path},
    )
    assert done.returncode == 0, done.stderr
    job = jobs.read(campaign / "nodes/n1/job1")
    assert not job.untaken and set(job.measured) == {"linktest-node", "linktest-none"}
    assert (job.measured["linktest-node"].columns["latency_ns"] == before).all(), "nothing is measured twice"
