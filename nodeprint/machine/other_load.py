"""Load of other programs on this machine: which process takes how much time of which CPUs, while ours measure."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from nodeprint import files, reading
from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.topology.facts import list_text
from nodeprint.settings.texts import say

#: A process that takes less of a CPU is no load: what the kernels' medians cannot show.
LEAST_SHARE = 0.05
#: Processes that are named in a sentence.
_NAMED = 3
_PROC = Path("/proc")
_FILE = "other_load.json"


class Process(msgspec.Struct, frozen=True):
    """A process and its load: `share` in CPUs (1 is all the time of one), `cpus` that its threads were seen on."""

    name: str
    pid: int
    share: float
    cpus: tuple[int, ...]

    @property
    def text(self) -> str:
        """As in `stress (pid 4711) took 98 % of CPU 1`, after the verb."""
        numbers = f"CPU {list_text(self.cpus)}"
        if self.share > 1:  # in percent, as all shares of CPU time are
            return f"{self.share / max(len(self.cpus), 1) * 100:.0f} % of {numbers}"
        return f"{self.share * 100:.0f} % of {numbers if len(self.cpus) == 1 else f'a CPU, on {numbers}'}"


class OtherLoad(msgspec.Struct, frozen=True):
    """What other processes took while `seconds` went by, the most first; those below LEAST_SHARE are left out.

    `ended` is the share, in CPUs, of processes that ended meanwhile: a compiler or a test suite is many of them. `jobs`
    are the numbers of Slurm jobs that were seen beside ours (node-run), `others` what all that was not ours took then,
    in CPUs.
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

    def text(self, verb: str) -> str:
        """Which process takes how much of which CPU; `verb` is `takes` or `took`."""
        named = [f"{process.name} (pid {process.pid}) {verb} {process.text}" for process in self.processes[:_NAMED]]
        if (more := len(self.processes) - _NAMED) > 0:
            named.append(f"and {more} more")
        if self.ended >= LEAST_SHARE:
            named.append(say("other_load", "ended", share=f"{self.ended * 100:.0f} % of a CPU"))
        if self.jobs:
            jobs = f"Slurm job{'s' if len(self.jobs) > 1 else ''} {printable(', '.join(self.jobs))}"
            named.append(say("other_load", "jobs", jobs=jobs, verb=verb, others=f"{self.others:.1f}"))
        return ", ".join(named)


class _Thread(msgspec.Struct, frozen=True):
    """A thread's share in /proc: its process, that one's name and parent, the time that it had, and its CPU."""

    pid: int
    name: str
    parent: int
    ticks: int
    cpu: int


#: The ticks that a process had, and those of its children that ended.
_Ticks = tuple[int, int]


class Watch:
    """Reads the times of all threads at its beginning, and their load at any time later."""

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._began = time.monotonic()
        self._before = dict(_threads(proc))
        self._times_before = _times(proc)

    def load(self) -> OtherLoad:
        """What processes took since, but this one and those that it started."""
        seconds = time.monotonic() - self._began
        now = dict(_threads(self._proc))
        times = _times(self._proc)
        ours = _family(os.getpid(), now)
        ticks = os.sysconf("SC_CLK_TCK") * max(seconds, 1e-9)
        share: dict[int, float] = {}
        cpus: dict[int, set[int]] = {}
        for thread, after in now.items():
            before = self._before.get(thread)
            taken = (after.ticks - (before.ticks if before else 0)) / ticks
            if taken > 0 and after.pid not in ours:
                share[after.pid] = share.get(after.pid, 0.0) + taken
                if taken >= LEAST_SHARE / 2:  # where a thread that did little runs shows nothing of the process
                    cpus.setdefault(after.pid, set()).update({after.cpu} | ({before.cpu} if before else set()))
        names = {thread.pid: thread.name for number, thread in now.items() if number == thread.pid}
        loud = sorted((pid for pid in share if share[pid] >= LEAST_SHARE and pid in cpus), key=lambda pid: -share[pid])
        return OtherLoad(
            seconds,
            tuple(Process(names.get(pid, "a process"), pid, share[pid], tuple(sorted(cpus[pid]))) for pid in loud),
            _ended(self._times_before, times, ours | _family(os.getpid(), self._before)) / ticks,
        )


def now(seconds: float = 1.0) -> OtherLoad:
    """What other processes take at this moment."""
    watch = Watch()
    time.sleep(seconds)
    return watch.load()


def keep(load: OtherLoad, job: Path) -> None:
    """Write what other processes took while a job was measured into its folder."""
    files.write(job / _FILE, msgspec.json.format(msgspec.json.encode(load), indent=1) + b"\n")


def kept(node_folder: Path) -> OtherLoad | None:
    """What other processes took while the newest job of a node was measured; None where this was not watched."""
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
    """The folders of a process' threads; none where it has ended meanwhile."""
    try:
        return list((process / "task").iterdir())
    except OSError:
        return []


def _threads(proc: Path) -> Iterator[tuple[int, _Thread]]:
    """All threads that can be seen, by their number."""
    folders = (folder for process in proc.glob("[0-9]*") for folder in _tasks(process))
    for folder in folders:
        with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            text = (folder / "stat").read_text(errors="replace")
            name, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            pid = int(folder.parts[-3])
            yield (
                int(folder.name),
                _Thread(pid, printable(name, 40), int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[36])),
            )


def _times(proc: Path) -> dict[int, _Ticks]:
    """The times of all processes that can be seen, by their number (proc_pid_stat(5): utime, stime, cutime, cstime)."""
    times = {}
    for process in proc.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            text = (process / "stat").read_text(errors="replace")
            own, system, children, children_system = map(int, text[text.rindex(")") + 2 :].split()[11:15])
            times[int(process.name)] = own + system, children + children_system
    return times


def _ended(before: Mapping[int, _Ticks], after: Mapping[int, _Ticks], ours: set[int]) -> int:
    """The ticks of processes that ended between two readings, without `ours`.

    All that an ended process had goes to the parent that waited for it, which may end in its turn, so the sum over all
    grows by what they took since. One whose parent does not wait is not counted, and the sum may fall.
    """
    grown = sum(children for pid, (_, children) in after.items() if pid not in ours)
    grown -= sum(children for pid, (_, children) in before.items() if pid not in ours)
    return max(0, grown - sum(ticks for pid, (ticks, _) in before.items() if pid not in ours and pid not in after))


def _family(root: int, threads: Mapping[int, _Thread]) -> set[int]:
    """A process and all that it started, as far as they have not been adopted."""
    children: dict[int, set[int]] = {}
    for thread in threads.values():
        children.setdefault(thread.parent, set()).add(thread.pid)
    family: set[int] = set()
    new: Sequence[int] = [root]
    while new:
        family.update(new)
        new = [child for parent in new for child in children.get(parent, ()) if child not in family]
    return family
