"""Which faults does each kernel detect? They are injected from outside or by builds that exist for tests.

    python -m bench.faults                          every operation and fault, three times each: 40 minutes on two CPUs
    python -m bench.faults --rounds 2 chase wake    some operations

Two CPUs measure. All programs of this benchmark run at the highest ordinary priority, in scheduling groups of their
own, where that is allowed, so that other programs are not counted as a fault. A fault is detected if the kernel ends
with 2 or 3, if a reader rejects the record, or if the record says that it was disturbed, as far as the report marks
values for it (`nodeprint.judge.verdict.LOST`). One that is not detected is harmful if the median of the values that
nodes are compared by moved by 10%; if these are shares, by the tolerance of their comparison.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bench import table
from bench.operations import chosen
from bench.real_time import real_time
from bench.table import ROOT, Row
from nodeprint.data.format import records
from nodeprint.errors import NodeprintError
from nodeprint.judge.verdict import LOST
from nodeprint.settings.measurements import Model, measurements, terms
from tests.support.real_parts import ALLOWED, built
from tests.support.small_machine import small_machine
from tests.support.two_nodes import two_nodes

#: A run takes about this long; a fault begins in its first third.
RUN_S, LONGEST_S = 0.5, 60.0
#: What preempts, stops or throttles takes so much of a period of 0.1 s.
PERIOD_S, TAKEN_S = 0.1, 0.04
HARMFUL, STEAL = 0.1, 0.01
#: Flipped bits of a complete record file.
RECORD_BITS = 100
GROUPS = (
    ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "{quota}", "cpu.shares", "262144"),
    ("/sys/fs/cgroup", "cpu.max", "{quota} 100000", "cpu.weight", "10000"),
)


@dataclass(frozen=True)
class Operation:
    """An operation with arguments that keep it short, and what can go wrong with it.

    `memory`: it asks for the NUMA node of its pages. `checks`: it looks at the numbers that it calculates. `count`: the
    number of CPUs that it measures; an operation on one CPU leaves the second free.
    """

    name: str
    more: str = ""
    memory: bool = False
    checks: bool = False
    count: int = 2

    @property
    def model(self) -> Model | None:
        """What nodes are compared by."""
        models = (of.model for of in measurements().values() if f"{of.kernel} {of.operation}" == self.name)
        return next(models, None)

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs it measures."""
        return tuple(ALLOWED[: self.count])

    @property
    def other(self) -> int:
        """A CPU that is not its last: one that it does not measure, where it measures one."""
        return ALLOWED[1] if self.count == 1 else ALLOWED[0]

    def environment(self, folder: Path) -> dict[str, str]:
        """This machine, with small caches if the operation is short only there."""
        if not self.name.startswith(("bandwidth", "chase", "loaded")):
            return os.environ.copy()
        return with_inner_caches(folder, small_machine(folder, 4, 4000))

    def command(self, folder: Path) -> list[str]:
        """The call without `--passes` and `--out`."""
        kernel, operation = self.name.split()
        return [str(folder / kernel), "--op", operation, "--cpus", ",".join(map(str, self.cpus)), *self.more.split()]

    def record(self, folder: Path, passes: int) -> Path:
        """The record of a run without a fault."""
        out = folder / "r.jsonl"
        command = [*self.command(built()), "--passes", str(passes), "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True, env=self.environment(folder), preexec_fn=lift)
        return out


_PAIRS = "cas faa flag1 flag2 oneway payload contend contend-pairs state place stream"
OPERATIONS = (
    *(Operation(f"coherence {name}", memory=True) for name in _PAIRS.split()),
    Operation("coherence loaded", memory=True, count=3),
    Operation("chase latency", "--size-mib 8", memory=True, count=1),
    Operation("chase levels", memory=True, count=1),
    Operation("chase curve", "--size-mib 8", memory=True, count=1),
    Operation("chase pages", "--size-mib 8", memory=True, count=1),
    Operation("bandwidth machine", "--streams triad", memory=True),
    Operation("bandwidth nodes", "--streams triad", memory=True),
    Operation("bandwidth groups", "--streams triad", memory=True),
    Operation("bandwidth scaling", memory=True),
    Operation("bandwidth cpus", "--streams triad", memory=True, count=1),
    Operation("bandwidth ladder", "--streams read2_write1", memory=True, checks=True),
    Operation("bandwidth caches", "--streams load,copy", memory=True, checks=True),
    Operation("loaded latency", memory=True),
    Operation("touch ratio"),  # its memory is where it was touched first, which elsewhere.c cannot know
    Operation("remap pairs", memory=True),
    Operation("remap ring", memory=True),
    Operation("fault rate", count=1),
    Operation("fault huge", "--size-mib 64", count=1),
    Operation("wake futex"),
    Operation("barrier all"),
    Operation("jitter detours", "--seconds 1", count=1),
    Operation("clock alone", count=1),
    Operation("clock together", "--seconds 1"),
    Operation("load alone", checks=True),
    Operation("load ladder", checks=True),
    Operation("load together", "--seconds 1", checks=True),
    Operation("load check", "--seconds 1", checks=True),
)


def with_inner_caches(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """A tree that reports no other caches than the L3, with an L1 and an L2."""
    for cpu in ALLOWED:
        for level, kib in (1, 32), (2, 512):
            cache = folder / f"sys/devices/system/cpu/cpu{cpu}/cache/index{level}"
            cache.mkdir()
            for name, text in {"level": level, "type": "Unified", "size": f"{kib}K", "shared_cpu_list": cpu}.items():
                (cache / name).write_text(f"{text}\n")
    return environment


Values: TypeAlias = Mapping[tuple[Any, ...], float]


@dataclass
class Trial:
    """What came of a run: how the fault was detected (empty: it was not), what it said, and its values."""

    how: str
    values: Values = field(default_factory=dict)


# ---- programs with a priority, on a CPU ----


def lift(cpu: int | None = None, group: Path | None = None, idle: bool = False) -> None:
    """In a child: a session and scheduling group of its own at the highest ordinary priority, on `cpu` alone, and in a
    control group; `idle`: as if nothing else ran here, at real-time priority."""
    os.setsid()
    if idle and real_time():
        return
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("-20")
    if group is not None:
        (group / "cgroup.procs").write_text(str(os.getpid()))
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})


@contextmanager
def program(code: str, cpu: int) -> Iterator[None]:
    """A Python program on a CPU while something else goes on."""
    with subprocess.Popen([sys.executable, "-c", code], preexec_fn=partial(lift, cpu)) as process:  # noqa: PLW1509
        try:
            yield
        finally:
            process.kill()


BUSY = "while True: pass"
BURSTS = f"""
import time
while True:
    end = time.monotonic() + {TAKEN_S}
    while time.monotonic() < end: pass
    time.sleep({PERIOD_S - TAKEN_S})
"""
TRAFFIC = """
import numpy
a = numpy.ones(1 << 24); b = a.copy()
while True: a[:] = b
"""


# ---- faults of a process that runs ----


def threads_on(process: int, cpu: int) -> list[int]:
    """The threads of a process that may run on `cpu` alone."""
    tasks = [int(task.name) for task in Path(f"/proc/{process}/task").iterdir()]
    return [task for task in tasks if os.sched_getaffinity(task) == {cpu}]


def lose_cpu(process: subprocess.Popen[bytes], operation: Operation, back: bool) -> None:
    """Take the last CPU from its worker, for good or for 50 ms, as who changes a cpuset or calls taskset does."""
    ours = operation.cpus[-1]
    (worker,) = threads_on(process.pid, ours)
    os.sched_setaffinity(worker, {operation.other})
    if back:
        time.sleep(0.05)
        os.sched_setaffinity(worker, {ours})


def stop_again_and_again(process: subprocess.Popen[bytes], _operation: Operation) -> None:
    """Stop the whole process in each period, as a scheduler of gangs and the freezer do."""
    while process.poll() is None:
        process.send_signal(signal.SIGSTOP)
        time.sleep(TAKEN_S)
        process.send_signal(signal.SIGCONT)
        time.sleep(PERIOD_S - TAKEN_S)


def flip_bits(process: subprocess.Popen[bytes], _operation: Operation) -> None:
    """Flip a bit in the first word of 1,000 lines of each large buffer: of pointers, where they are a chase's."""
    with Path(f"/proc/{process.pid}/mem").open("r+b", buffering=0) as memory:
        for mapping in Path(f"/proc/{process.pid}/maps").read_text().splitlines():
            span, rights, _, _, inode, *name = mapping.split()
            begin, end = (int(address, 16) for address in span.split("-"))
            if not rights.startswith("rw") or inode != "0" or name or end - begin < 1 << 20:
                continue
            for _ in range(1000):
                with suppress(OSError, IndexError):  # a page that is not there, or the process ended
                    memory.seek(begin + random.randrange((end - begin) // 64) * 64 + random.randrange(8))
                    byte = memory.read(1)[0]
                    memory.seek(-1, os.SEEK_CUR)
                    memory.write(bytes([byte ^ 1 << random.randrange(8)]))


@contextmanager
def quota(cpus: int) -> Iterator[Path | None]:
    """A control group that has 60% of `cpus`; None where none can be made."""
    for root, limit, text, weight, most in GROUPS:
        group = Path(root) / f"nodeprint-bench-faults-{os.getpid()}"
        with suppress(OSError):
            group.mkdir()
            try:
                (group / limit).write_text(text.format(quota=int(1e5 * cpus * (1 - TAKEN_S / PERIOD_S))))
                (group / weight).write_text(most)
                yield group
            finally:
                group.rmdir()
            return
    yield None


# ---- runs ----


def detected(process: subprocess.Popen[bytes], out: Path, messages: str, model: Model | None) -> Trial:
    """Whether the end of a run or its record says that something was wrong, and its values: those of `model`."""
    if process.returncode in (2, 3):
        return Trial(f"exit {process.returncode}" if messages else "")
    if process.returncode:
        return Trial(f"killed ({-process.returncode})")
    try:
        file = records.read(out)
    except NodeprintError:
        return Trial("rejected")
    trailer = file.trailer or {}
    lines = [line for line in map(json.loads, out.read_text().splitlines()) if line["record"] in ("pair", "cell")]
    flagged = float(np.mean([bool({"disturbed", "moved"} & set(line["flags"])) for line in lines]))
    steal = trailer["steal_s"] - 0.01 * len(file.header["cpus"])
    value = model.value if model else next(iter(file.units))
    dims = file.dims or ("a", "b", "home")
    by_place: dict[tuple[Any, ...], list[float]] = {}
    for line in lines:
        by_place.setdefault(tuple(line[dim] for dim in dims), []).append(line.get(value, np.nan))
    values = {place: float(np.median(of_passes)) for place, of_passes in by_place.items()}
    signs = {
        "wrong result": any(line.get("wrong_bursts") for line in lines),
        "offset": any(abs(line.get("offset_ns", 0)) > 1e4 for line in lines),
        "loud CPU": any(line.get("share", 0) > LOST for line in lines if "detours" in line),
        "flag": flagged >= LOST,
        "moved_pages": trailer["moved_pages"] > 0 or any("moved" in line["flags"] for line in lines),
        "lost_share": trailer.get("lost_share", 0) >= LOST,
        "steal": steal > STEAL * trailer["elapsed_s"] * len(file.header["cpus"]),
    }
    return Trial(", ".join(name for name, is_seen in signs.items() if is_seen), values)


@dataclass(frozen=True)
class Fault:
    """`to` says to which operations it can happen. It is another build, a page that is elsewhere, a program on the last
    CPU or on the one left free, or what is done to the process once it measures. Only what `says` it detects it: other
    programs may lead to flags, too; empty: all."""

    name: str
    to: Callable[[Operation], bool] = lambda _: True
    build: str = ""
    page: str = ""
    beside: str = ""
    act: Callable[[subprocess.Popen[bytes], Operation], None] | None = None
    quota: bool = False
    idle: bool = False
    says: tuple[str, ...] = ()


FAULTS = (
    Fault("none", idle=True),
    Fault("busy machine", beside=BUSY),
    Fault("flipped bit in a result", lambda o: o.checks, build="flipped", says=("wrong result",)),
    Fault("flipped pointers", lambda o: o.name.startswith("chase"), act=flip_bits, says=("killed", "exit")),
    Fault("skewed clock", lambda o: o.count > 1, build="skewed", says=("exit", "offset")),
    Fault("lost CPU", act=partial(lose_cpu, back=False)),
    Fault("lost CPU for 50 ms", act=partial(lose_cpu, back=True)),
    Fault("preempted worker", beside=BURSTS),
    Fault("page placed elsewhere", lambda o: o.memory, page="placed", says=("exit", "moved_pages")),
    Fault("page moves", lambda o: o.memory, page="moved", says=("exit", "moved_pages")),
    Fault("page moves for good", lambda o: o.memory, page="stuck", says=("exit", "moved_pages")),
    Fault("quota", quota=True),
    Fault("stopped", act=stop_again_and_again),
    Fault("memory traffic beside it", lambda o: o.count == 1, beside=TRAFFIC),
)


def trial(operation: Operation, fault: Fault, passes: int) -> Trial | None:
    """A run with a fault; None where the fault cannot be made here."""
    loaded = operation.other if fault.beside == TRAFFIC else operation.cpus[-1]
    with tempfile.TemporaryDirectory() as made, quota(operation.count) if fault.quota else nullcontext() as group:
        if fault.quota and group is None:
            return None
        folder, out = Path(made), Path(made) / "r.jsonl"
        elsewhere = with_inner_caches(folder, two_nodes(folder, fault.page)) if fault.page else None
        environment = elsewhere or operation.environment(folder)
        command = [*operation.command(built() / fault.build), "--passes", str(passes), "--out", str(out)]
        with program(fault.beside, loaded) if fault.beside else nullcontext():
            if fault.beside:
                time.sleep(0.3)
            with (folder / "messages").open("wb") as messages:
                idle = fault.idle and "--seconds" not in operation.more  # Linux takes a CPU from who runs 0.95 s so
                lifted = partial(lift, None, group, idle)
                process = subprocess.Popen(command, stderr=messages, env=environment, preexec_fn=lifted)  # noqa: PLW1509
                if fault.act is not None and measures(process, out):
                    time.sleep(random.uniform(0.05, RUN_S / 3))
                    with suppress(OSError, ValueError):  # it has ended
                        fault.act(process, operation)
                try:
                    process.wait(LONGEST_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    return Trial("")
        return detected(process, out, (folder / "messages").read_text(errors="replace"), operation.model)


def measures(process: subprocess.Popen[bytes], out: Path) -> bool:
    """Wait until it has written its header; False if it ended before."""
    while process.poll() is None:
        if out.exists() and b'"record":"header"' in out.read_bytes():
            return True
        time.sleep(0.002)
    return False


def passes_of(operation: Operation) -> int:
    """How many passes take about RUN_S, by the shortest of a few runs."""
    took_s = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            last = operation.record(Path(folder), 3).read_text().splitlines()[-1]
            took_s.append(float(json.loads(last)["elapsed_s"]) / 3)
    return max(1, min(500, round(RUN_S / min(took_s))))


def flipped_record(operation: Operation) -> Counter[str]:
    """How a reader rejects a complete record file in which a bit is flipped."""
    hows = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        out = operation.record(Path(folder), 1)
        content = out.read_bytes()
        for _ in range(RECORD_BITS):
            damaged = bytearray(content)
            damaged[random.randrange(len(content))] ^= 1 << random.randrange(8)
            try:
                hows["" if records.read(out, raw=bytes(damaged)).complete else "incomplete"] += 1
            except NodeprintError:
                hows["rejected"] += 1
    return hows


# ---- the table ----


def shift(values: Values, clean: Sequence[Values], is_share: bool = False) -> float:
    """By how much the median place is off, as a ratio less 1 (shares: as a difference), from the nearest run without a
    fault: a hypervisor moves CPUs, so that these differ from each other. 0 if there is nothing to compare."""
    off = []
    for usual in clean:
        pairs = [(value, usual[place]) for place, value in values.items() if place in usual]
        if is_share:
            changes = [value - before for value, before in pairs]
        else:
            changes = [value / before - 1 for value, before in pairs if before > 0 and value > 0]
        off += [float(np.median(changes))] if changes else []
    return min(off, key=abs, default=0.0)


def is_harmful(values: Values, clean: Sequence[Values], model: Model | None) -> bool:
    """Whether the values moved by HARMFUL; shares, which may be next to 0, by the tolerance of nodes."""
    is_share = model is not None and model.scale == "share"
    limit = terms()[model.term].tolerance / 100 if model is not None and is_share else HARMFUL
    return abs(shift(values, clean, is_share)) > limit


def of_operation(operation: Operation, rounds: int) -> Iterator[tuple[str, Counter[str], int]]:
    """By fault, how the runs of an operation detected it ('': not), and how many of those were harmful."""
    bits = flipped_record(operation)
    yield "flipped bit in the record", bits, bits[""]
    passes, clean = passes_of(operation), list[Values]()
    for fault in FAULTS:
        hows, harmful = Counter[str](), 0
        for _ in range(rounds if fault.to(operation) else 0):
            if (faulty := trial(operation, fault, passes)) is None:
                continue
            faulty.how = ", ".join(how for how in faulty.how.split(", ") if how.startswith(fault.says or ("",)))
            hows[faulty.how] += 1
            if fault is FAULTS[0]:
                clean.append(faulty.values)
            elif not faulty.how and is_harmful(faulty.values, clean, operation.model):
                again = trial(operation, FAULTS[0], passes)  # the machine may have changed since
                clean.append(again.values if again else {})
                harmful += is_harmful(faulty.values, clean, operation.model)
        if fault.to(operation):
            yield fault.name, hows, harmful


def line(operation: str, fault: str, hows: Counter[str], harmful: int) -> str:
    """A row of the table: injected, detected, rate, harmful, and how."""
    injected, detected_runs = hows.total(), hows.total() - hows[""]
    by_how = ", ".join(f"{how} {count}" for how, count in hows.most_common() if how)
    rate = f"{detected_runs / injected:6.0%}" if injected else "     -"
    return f"{operation:25}{fault:27}{injected:9}{detected_runs:9}{rate}{harmful:8}  {by_how}".rstrip()


def main() -> int:
    """Inject, print and keep the table; 0 whatever came out."""
    operations, rounds = chosen("faults", __doc__, OPERATIONS)
    if not operations:
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no program of a fault stays behind
    built("skewed")
    flip = f"CPPFLAGS=-DFLIP_A_BIT_ON_CPU={ALLOWED[1]}"
    programs = [f"build/flipped/{kernel}" for kernel in ("load", "bandwidth")]
    flipped = ["make", "-s", "-C", str(ROOT / "kernels"), "BUILD=build/flipped", flip, *programs]
    subprocess.run(flipped, check=True)
    load, rows, kept = os.getloadavg()[0], list[Row](), list[Sequence[Any]]()
    print(f"{'operation':25}{'fault':27}{'injected':>9}{'detected':>9}{'rate':>6}{'harmful':>8}  how")
    for operation in operations:
        if operation.count > len(ALLOWED):
            print(
                f"{operation.name:25}unverified: {operation.count} CPUs are needed and {len(ALLOWED)} are allowed here"
            )
            continue
        for fault, hows, harmful in of_operation(operation, rounds):
            print(line(operation.name, fault, hows, harmful), flush=True)
            if hows.total():
                rate = 100 * (1 - hows[""] / hows.total())
                rows.append(table.row(f"{operation.name}: {fault}", rate, unit="% detected"))
                kept.append((operation.name, fault, dict(hows), harmful))
    table.keep("faults", rows, load, found=kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
