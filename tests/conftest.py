"""What the tests share: real parts that may be missing, reference data, and campaigns made up in the real formats."""

from __future__ import annotations

import fcntl
import functools
import gzip
import json
import os
import secrets
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

# Before numpy is loaded, here and in whatever the tests start: with two processes on two cores, threads of a linear
# algebra library only wait for each other.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pytest
from hypothesis import HealthCheck, settings

from nodeprint.campaign import run_files
from nodeprint.data import records

ROOT = Path(__file__).parent.parent

# No test depends on how fast or quiet the machine is, nor on the day: examples are the same in every run but those of
# `make fuzz`.
_any_machine = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", _any_machine)
settings.register_profile("repeatable", _any_machine, derandomize=True)
settings.load_profile("repeatable")

# What nohup and a shell's background start ignores these and hands that down; tests send them to what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

#: CPUs that the tests may use.
ALLOWED = sorted(os.sched_getaffinity(0))


def need(*tools: str, root: str = "", cpus: int = 1) -> None:
    """Skip the test where a real part is missing: `tools`, rights (`root` says what for), or a number of CPUs."""
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    if lacking:
        missing(f"not installed: {', '.join(lacking)}")
    if root and os.geteuid() != 0:
        missing(f"only root may {root}")
    if len(ALLOWED) < cpus:
        missing(f"{cpus} CPUs are needed")


def missing(reason: str) -> NoReturn:
    """Skip the test, with the reason; with NODEPRINT_REQUIRE=all a skipped test is a failure."""
    if os.environ.get("NODEPRINT_REQUIRE") == "all":
        pytest.fail(reason)
    pytest.skip(reason)


# --- the machine stays as it is ---------------------------------------------------------------------------------------

#: What a test that runs as root could break, and nothing else on a machine changes within a test: devices that all
#: programs use, and files of the administrator. (The virtual cluster has an /etc of its own in a namespace.)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout", "stderr", "fd", "shm")
_FILES = ("passwd", "group", "shadow", "hosts", "hostname", "fstab", "profile", "environment", "ld.so.preload")
_FILES += ("sudoers", "slurm", "slurm-llnl", "munge", "crontab", "ssh", "apt", "pip.conf")
WATCHED = (*(Path("/dev", name) for name in _DEVICES), *(Path("/etc", name) for name in _FILES))


def condition(paths: Iterable[Path]) -> dict[Path, tuple[int, ...] | None]:
    """What each path is: kind, rights and device number; outside /dev also which file or folder, and how old."""
    found: dict[Path, tuple[int, ...] | None] = {}
    for path in paths:
        try:
            facts = path.lstat()
        except OSError:
            found[path] = None
            continue
        own = () if path.parent == Path("/dev") or path.is_symlink() else (facts.st_ino, facts.st_mtime_ns)
        found[path] = (facts.st_mode, facts.st_rdev, *own)
    return found


@pytest.fixture(autouse=True)
def _machine_untouched() -> Iterator[None]:
    """No test changes anything of the machine outside its own folders. (Some 30 calls of lstat.)"""
    before = condition(WATCHED)
    yield
    after = condition(WATCHED)
    assert [str(path) for path in before if after[path] != before[path]] == [], "this test changed the machine"


#: Handed down to all processes that the tests start.
MARK = {"NODEPRINT_TESTS": f"{os.getpid()}-{secrets.token_hex(8)}"}
os.environ.update(MARK)


def is_ours(pid: int) -> bool:
    """Whether these tests started a process: it, or one above it, has our mark in its environment."""
    try:  # the name of a program may hold blanks and brackets
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        environment = Path(f"/proc/{pid}/environ").read_bytes() if state not in "ZX" else b""
    except OSError:
        return False
    (mark,) = (f"{name}={value}".encode() for name, value in MARK.items())
    return pid == os.getpid() or mark in environment.split(b"\0") or is_ours(int(parent))


def _lives(pid: int) -> bool:
    """Whether there is such a process that did not end yet (then it has an environment)."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes() != b""
    return Path(f"/proc/{pid}").exists()


def _guarded(send: Callable[[int, int], None]) -> Callable[[int, int], None]:
    def kill(pid: int, number: int) -> None:
        if pid <= 0 or (_lives(pid) and not is_ours(pid) and _lives(pid)):  # it may end meanwhile
            raise AssertionError(f"signal {number} for process {pid}, which these tests did not start")
        send(pid, number)

    return kill


# Signals go to processes of these tests alone: others may run beside them, of other users and of a second call.
os.kill, os.killpg = _guarded(os.kill), _guarded(os.killpg)


def private_device(path: Path) -> None:
    """Make a device node at `path` that is /dev/null by another name, for what is done to devices."""
    need(root="make a device node")
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError as error:
        missing(f"no device node can be made here: {error.strerror}")


@functools.cache
def built(flavour: str = "") -> Path:
    """The folder with the kernels of a flavour of kernels/Makefile, made where they are not up to date.

    Without a flavour they are those that measure. All tests and make targets share them; the lock is for tests in
    several processes.
    """
    need("make", "gcc")
    folder = ROOT / "kernels/build"
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "-s", "-j2", "-C", ROOT / "kernels", *([flavour] if flavour else [])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    return folder / flavour


def copy_programs(folder: Path) -> None:
    """The kernels that measure in `folder`, new, without objects and other flavours."""
    folder.mkdir(exist_ok=True)
    for path in built().iterdir():
        if path.is_file():
            shutil.copy2(path, folder)


@pytest.fixture
def two_cpus() -> None:
    """For tests that measure a pair."""
    need(cpus=2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails with a virtual cluster shows the end of what its daemons logged."""
    report = yield
    if report.failed:
        folders = {path for path in getattr(item, "funcargs", {}).values() if isinstance(path, Path)}
        for log in sorted(log for folder in folders for log in (folder / "log").glob("*.log")):
            if last := log.read_text(errors="replace").splitlines()[-12:]:
                report.sections.append((log.name, "\n".join(last)))
    return report


@contextmanager
def small_file_system(folder: Path, size: str) -> Iterator[None]:
    """`folder`, new, as a tmpfs of `size`."""
    need(root="mount a small file system")
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
    made = subprocess.run(mount, check=False, capture_output=True, text=True)
    if made.returncode != 0:
        missing(f"no tmpfs can be mounted here: {made.stderr}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def environment() -> dict[str, str]:
    # the call is a user's: nothing of the test run's own make, and Python keeps what it compiled
    mine = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PYTHONDONTWRITEBYTECODE"))}
    return mine | {"SYSTEM": "no", "PYTHONPATH": ".:workflow"}


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working copy of the project with the environment and the kernels of this one, so that results stay apart."""
    copy = tmp_path_factory.mktemp("house")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for name in listed:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    copy_programs(copy / "kernels/build")
    (copy / ".venv").symlink_to(ROOT / ".venv")
    return copy


@pytest.fixture
def data() -> Path:
    """Published matrices and captured machines; tests that use them run where NODEPRINT_DATA names them."""
    folder = os.environ.get("NODEPRINT_DATA")
    if not folder:
        pytest.skip(
            "this compares with published matrices and captured machines, which are not part of the project; where you "
            "have them, NODEPRINT_DATA names their folder: nothing is wrong without them"
        )
    return Path(folder)


def header(**changes: object) -> dict[str, object]:
    """A record file's header as the coherence kernel writes it."""
    return {
        "record": "header", "schema": 1, "segment": 0, "kernel": "coherence", "operation": "cas", "quantity": "hop",
        "unit": "ns", "host": "n1", "boot_id": "b", "job": 1, "run": 1, "seed": 7, "start_time": "2026-01-01T00:00:00Z",
        "arguments": ["--op", "cas"], "kernel_hash": "0123456789abcdef", "compiler": "gcc 12",
        "clock": {"source": "tsc", "hz": 2.3e9, "step_ns": 0.43}, "cpus": [0, 1], "home": "first", "passes": 2,
        "lines": 32, "batches": 2, "round_trips": 25, "pinned_by": "native", "placement": {},
    } | changes  # fmt: skip


def pair(a: int, b: int, number: int = 0, latency_ns: float = 50.0, **changes: object) -> dict[str, object]:
    """A pair's record."""
    return {
        "record": "pair", "a": a, "b": b, "home": 0, "pass": number, "latency_ns": latency_ns,
        "ci_low_ns": latency_ns * 0.99, "ci_high_ns": latency_ns * 1.01, "min_ns": latency_ns * 0.95,
        "median_ns": latency_ns * 1.02, "p99_ns": latency_ns * 1.4, "line_sd_ns": latency_ns * 0.03, "flags": [],
    } | changes  # fmt: skip


def cell_header(**changes: object) -> dict[str, object]:
    """A record file's header as a kernel writes it whose results are no pairs."""
    cells = {"dims": ["cpu", "level"], "values": {"latency_ns": "ns", "core_hz": "Hz"}}
    return header(kernel="chase", operation="levels", quantity="load", cells=cells) | changes


def cell(cpu: int, level: str, number: int = 0, latency_ns: float = 5.0, **changes: object) -> dict[str, object]:
    """A cell's record, as cell_header() declares it."""
    return {
        "record": "cell", "cpu": cpu, "level": level, "pass": number, "latency_ns": latency_ns, "core_hz": 3e9,
        "flags": [],
    } | changes  # fmt: skip


TRAILER: dict[str, object] = {
    "record": "trailer", "elapsed_s": 0.1, "pairs": 2, "voluntary_switches": 1, "involuntary_switches": 2,
    "steal_s": 0.0, "complete": True,
}  # fmt: skip


def lines(*content: dict[str, object]) -> str:
    """Records as JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in content)


def record_texts(job: Path) -> dict[str, bytes]:
    """The records of a job as text, by `run1/coherence-cas`, from archives and from files."""
    problems: list[str] = []
    found = list(run_files.contents(job, problems))
    assert not problems
    return {
        f"{path.parent.name}/{path.name.split('.')[0]}": gzip.decompress(raw) if path.suffix == ".gz" else raw
        for path, raw in found
        if raw is not None
    }


def record_files(job: Path) -> list[records.Records]:
    """The record files of a job, read, by run and name."""
    problems: list[str] = []
    found = [records.read(path, raw=raw) for path, raw in run_files.contents(job, problems)]
    assert not problems
    return found


def one_record_file(job: Path) -> records.Records:
    """The only record file of a job."""
    (file,) = record_files(job)
    return file


@pytest.fixture
def campaign(tmp_path: Path) -> Callable[..., Path]:
    """`campaign(nodes...)` makes a campaign of two-CPU nodes, two runs of two passes each; returns its folder."""

    def make(*nodes: str) -> Path:
        folder = tmp_path / "results" / "main"
        rows = ["node\thost\tjob\tgroup\tpartition\tcpus\track\tswitch\tstate\treason\tmeasure"]
        for node in nodes:
            rows.append(f"{node}\t{node}\t1\t\t\t2\t\t\there\t\tyes")
            job = folder / "nodes" / node / "job1"
            for run in (1, 2):
                (job / f"run{run}").mkdir(parents=True)
                passes = (pair(0, 1, number, 50.0 + run + number / 10) for number in (0, 1))
                text = lines(header(host=node, run=run), *passes, TRAILER)
                (job / f"run{run}" / "coherence-cas.jsonl").write_text(text)
            done = [
                {"name": "coherence-cas", "run": run, "outcome": "done", "exit_code": 0, "seconds": 0.1,
                 "pinned_by": "native", "message": ""}
                for run in (1, 2)
            ]  # fmt: skip
            status = {
                "schema": 1, "node": node, "host": node, "job": 1, "started": "2026-01-01T00:00:00Z",
                "ended": "2026-01-01T00:00:10Z", "runs": 2, "outcome": "complete", "cpus_allowed": 2,
                "cpus_expected": 2, "simulated": False, "measurements": done,
            }  # fmt: skip
            (job / "status.json").write_text(json.dumps(status))
        (folder / "nodes.tsv").write_text("\n".join(rows) + "\n")
        (folder / "plan.tsv").write_text("coherence-cas\tcoherence\t--op cas\n")
        return folder

    return make
