"""Load of other programs on this machine: which process takes how much time of which CPUs, while ours measure."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nodeprint import files, reading
from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.topology.facts import list_text
from nodeprint.settings.texts import say

if TYPE_CHECKING:
    import pandas as pd

#: A process with a smaller share of a CPU is no load, because the kernels' medians cannot show it.
LEAST_SHARE = 0.05
#: The number of processes listed in a sentence.
_NAMED = 3
#: A sentence has the numbers of so many Slurm jobs.
_JOBS = 5
_PROC = Path("/proc")
#: In a stat file after the name: parent, utime, stime, cutime, cstime, and the CPU (proc_pid_stat(5)).
_FIELDS = (1, 11, 12, 13, 14, 36)
_FILE = "other_load.json"


class Process(msgspec.Struct, frozen=True):
    """A process and its load: `share` in CPUs (1 is all the time of one), `cpus` that its threads were seen on."""

    name: str
    pid: int
    share: float
    cpus: tuple[int, ...]

    @property
    def text(self) -> str:
        """As in `stress (pid 4711) took 98% of CPU 1`, after the verb."""
        numbers = f"CPU {list_text(self.cpus)}"
        if self.share > 1:  # in percent, as all shares of CPU time are
            return f"{self.share / max(len(self.cpus), 1) * 100:.0f}% of {numbers}"
        return f"{self.share * 100:.0f}% of {numbers if len(self.cpus) == 1 else f'a CPU, on {numbers}'}"


class OtherLoad(msgspec.Struct, frozen=True):
    """Load of other processes over `seconds`, the largest first, without those below LEAST_SHARE.

    `ended` is the share, in CPUs, of processes that ended in this time, such as those of a compiler. `jobs` are the
    numbers of Slurm jobs on the node besides ours (node-run), `others` the total load besides ours at that time, in
    CPUs.
    """

    seconds: float
    processes: tuple[Process, ...]
    ended: float = 0.0
    jobs: tuple[str, ...] = ()
    others: float = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether any of it is to be said."""
        return bool(self.processes or self.jobs) or self.ended >= LEAST_SHARE

    @property
    def taken(self) -> float:
        """The CPUs that all other processes take."""
        return sum(process.share for process in self.processes) + self.ended

    def text(self, verb: str) -> str:
        """Which process takes how much of which CPU; `verb` is `takes` or `took`."""
        named = [f"{process.name} (pid {process.pid}) {verb} {process.text}" for process in self.processes[:_NAMED]]
        if (more := len(self.processes) - _NAMED) > 0:
            named.append(f"and {more} more")
        if self.ended >= LEAST_SHARE:
            named.append(say("other_load", "ended", share=f"{self.ended * 100:.0f}% of a CPU"))
        if self.jobs:
            jobs = f"Slurm job{'s' if len(self.jobs) > 1 else ''} {printable(', '.join(self.jobs[:_JOBS]))}"
            jobs += f" and {len(self.jobs) - _JOBS} more" if len(self.jobs) > _JOBS else ""
            named.append(say("other_load", "jobs", jobs=jobs, verb=verb, others=f"{self.others:.1f}"))
        return ", ".join(named)


def readings(proc: Path = _PROC) -> pd.DataFrame:
    """The visible threads and processes at this moment, a row each by its number (`task`); see proc_pid_stat(5).

    `is_thread` distinguishes the threads of a process from the whole of it. `read_s` is the time of a monotonic clock.
    `ticks` are those of the row, `of_children` those of its children that ended.
    """
    import pandas as pd  # noqa: PLC0415 (what is printed without it starts faster)

    rows = []
    for process in proc.glob("[0-9]*"):
        for folder in (process, *_tasks(process)):
            with suppress(OSError, ValueError, IndexError):  # it has ended
                text = (folder / "stat").read_text(errors="replace")
                name, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
                parent, user, system, children, children_system, cpu = (int(fields[at]) for at in _FIELDS)
                ticks, of_children = user + system, children + children_system
                is_thread = folder is not process
                task, pid = int(folder.name), int(process.name)
                rows.append((is_thread, task, pid, printable(name, 40), parent, ticks, of_children, cpu))
    table = pd.DataFrame(rows, columns=["is_thread", "task", "pid", "name", "parent", "ticks", "of_children", "cpu"])
    return table.set_index("task").assign(read_s=time.monotonic())


def between(before: pd.DataFrame, after: pd.DataFrame) -> OtherLoad:
    """What processes took between two readings, but this one and those that it started."""
    seconds = float(after["read_s"].max() - before["read_s"].max())
    ours = _family(os.getpid(), after)
    ticks = os.sysconf("SC_CLK_TCK") * max(seconds, 1e-9)
    threads = after[after["is_thread"]].join(before.loc[before["is_thread"], ["ticks", "cpu"]], rsuffix="_before")
    threads["share"] = (threads["ticks"] - threads["ticks_before"].fillna(0)) / ticks
    threads = threads[(threads["share"] > 0) & ~threads["pid"].isin(ours)]
    shares = threads.groupby("pid")["share"].sum()
    # where a thread that did little runs shows nothing of the process
    seen = threads[threads["share"] >= LEAST_SHARE / 2]
    cpus = {pid: {*of["cpu"], *of["cpu_before"].dropna().astype(int)} for pid, of in seen.groupby("pid")}
    names = after.loc[after["is_thread"] & (after.index == after["pid"]), "name"]
    loud = [pid for pid in shares.sort_values(ascending=False, kind="stable").index if pid in cpus]
    return OtherLoad(
        seconds,
        tuple(
            Process(names.get(pid, "a process"), int(pid), float(shares[pid]), tuple(sorted(map(int, cpus[pid]))))
            for pid in loud
            if shares[pid] >= LEAST_SHARE
        ),
        _ended(before, after, ours | _family(os.getpid(), before)) / ticks,
    )


def now(seconds: float = 1.0) -> OtherLoad:
    """Measure the current load of other processes."""
    before = readings()
    time.sleep(seconds)
    return between(before, readings())


def keep(load: OtherLoad, job: Path) -> None:
    """Write the load of other processes during a job into the job's directory."""
    files.write(job / _FILE, msgspec.json.format(msgspec.json.encode(load), indent=1) + b"\n")


def kept(node_folder: Path) -> OtherLoad | None:
    """Load of other processes during the newest job of a node; None if it was not recorded."""
    jobs = [job for job in node_folder.glob("job*") if job.name[3:].isdecimal()]
    for job in sorted(jobs, key=lambda job: -int(job.name[3:]))[:1]:
        with suppress(OSError):
            text = reading.content(job / _FILE)
            try:
                return msgspec.json.decode(text, type=OtherLoad)
            except (ValueError, msgspec.MsgspecError) as error:
                advice = "remove the file; it says only what else ran"
                raise NodeprintError(printable(str(error)), where=job / _FILE, advice=advice) from error
    return None


def _tasks(process: Path) -> list[Path]:
    """The directories of a process's threads; none if it has ended."""
    try:
        return list((process / "task").iterdir())
    except OSError:
        return []


def _ended(before: pd.DataFrame, after: pd.DataFrame, ours: Collection[int]) -> int:
    """The ticks of processes that ended between two readings, without `ours`.

    A parent that waits for an ended process inherits its total, and may end in its turn. The sum over all processes
    therefore grows by the ticks since. If a parent does not wait, its child is not counted, and the sum may fall.
    """
    before, after = (table[~table["is_thread"] & ~table["pid"].isin(ours)] for table in (before, after))
    grown = after["of_children"].sum() - before["of_children"].sum()
    return max(0, int(grown - before.loc[~before.index.isin(after.index), "ticks"].sum()))


def _family(root: int, table: pd.DataFrame) -> set[int]:
    """A process and all that it started, as far as they have not been adopted."""
    children: dict[int, set[int]] = {}
    for parent, pid in zip(table["parent"].tolist(), table["pid"].tolist(), strict=True):
        children.setdefault(parent, set()).add(pid)
    family: set[int] = set()
    new: Sequence[int] = [root]
    while new:
        family.update(new)
        new = [child for parent in new for child in children.get(parent, ()) if child not in family]
    return family
