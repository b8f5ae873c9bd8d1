"""Counts of likwid's performance groups around two kernels during a survey (kernels/node/counters.sh).

They are the core clocks, and the memory traffic while the bandwidth kernel reads a recorded volume.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from nodeprint.errors import printable
from nodeprint.machine.tree import Tree
from nodeprint.settings.texts import say

#: Their directory in a survey.
FOLDER = "nodeprint/likwid-perfctr"
_CLOCK, _MEMORY = "CLOCK", "MEM"


class Counters(msgspec.Struct, frozen=True):
    """Counted values (0 if not counted), and the reason for each missing group by name (`not_readable`).

    `counted_hz` and `timed_hz` are median clocks of the `cores` that the kernel timed, all busy at once.
    `counted_bytes` passed the memory controllers in `seconds`. The kernel read at least `read_bytes` of them and wrote
    `filled_bytes` once before.
    """

    counted_hz: float = 0.0
    timed_hz: float = 0.0
    cores: int = 0
    counted_bytes: float = 0.0
    read_bytes: float = 0.0
    filled_bytes: float = 0.0
    seconds: float = 0.0
    not_readable: Mapping[str, str] = {}


class _Space(msgspec.Struct):
    bytes: float = 0.0


class _CountedLine(msgspec.Struct):
    """The keys of a record's line that are read."""

    record: str = ""
    cpu: int = -1
    core_hz: float | None = None
    threads: float = 0.0
    slice_bytes: float = 0.0
    sweeps: float | None = None
    placement: dict[str, _Space] = {}


_LINE = msgspec.json.Decoder(_CountedLine)


def read(tree: Tree) -> Counters | None:
    """The counts of a survey; None if the survey predates them."""
    files = frozenset(tree.names(FOLDER))
    if not files:
        return None
    groups = sorted({name.partition(".")[0] for name in files})
    memory_groups = [group for group in groups if group.startswith(_MEMORY)]
    clock, memory = _clock(tree), [_memory(tree, group) for group in memory_groups or [_MEMORY]]
    not_readable = dict(item for counted in (clock, *reversed(memory)) for item in counted.not_readable.items())
    if _MEMORY not in not_readable:
        # groups that each count some of the channels, in a call of the kernel each: all channels, of a call
        moved = sum(counted.counted_bytes for counted in memory)
        of_calls = ([getattr(counted, key) for counted in memory] for key in ("read_bytes", "filled_bytes", "seconds"))
        read_bytes, filled_bytes, seconds = map(statistics.fmean, of_calls)
        clock = replace(clock, counted_bytes=moved, read_bytes=read_bytes, filled_bytes=filled_bytes, seconds=seconds)
    return replace(clock, not_readable=not_readable)


def metrics(text: str) -> dict[str, dict[int, float]]:
    """The metrics of a group by CPU, from the output of `likwid-perfctr -O`, without non-numeric values."""
    found: dict[str, dict[int, float]] = {}
    cpus: list[int] | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] in ("TABLE", "STRUCT"):
            cpus = None
        elif cells[0] == "Metric":
            words = [cell.split() for cell in cells[1:] if cell]
            threads = [word[1] for word in words if len(word) == 2 and word[0] == "HWThread" and word[1].isdecimal()]
            cpus = list(map(int, threads)) if len(threads) == len(words) else None  # not the table of sums
        elif cpus is not None:
            values = {
                cpu: value for cpu, cell in zip(cpus, cells[1:], strict=False) if math.isfinite(value := _number(cell))
            }
            found[cells[0]] = values
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _clock(tree: Tree) -> Counters:
    counted = metrics(_text(tree, f"{_CLOCK}.csv")).get("Clock [MHz]", {})
    cells = (line for line in _lines(tree, _CLOCK) if line.record == "cell")
    timed = {cell.cpu: cell.core_hz for cell in cells if cell.core_hz}
    cpus = counted.keys() & timed.keys()
    if not cpus:
        return Counters(not_readable={_CLOCK: _reason(tree, _CLOCK)})
    counted_mhz, timed_hz = (statistics.median(values[cpu] for cpu in cpus) for values in (counted, timed))
    return Counters(1e6 * counted_mhz, timed_hz, len(cpus))


def _memory(tree: Tree, group: str) -> Counters:
    counted = metrics(_text(tree, f"{group}.csv"))
    volume = next((values for name, values in counted.items() if name.startswith("Memory data volume")), {})
    seconds = max(counted.get("Runtime (RDTSC) [s]", {}).values(), default=0.0)
    lines = list(_lines(tree, group))
    cells = [line for line in lines if line.record == "cell" and line.sweeps]
    if not volume or not cells or not seconds:
        return Counters(not_readable={_MEMORY: _reason(tree, group)})
    # one sweep at least goes before those that are counted (kernels/bandwidth/flow.c)
    read_bytes = sum(cell.threads * cell.slice_bytes * ((cell.sweeps or 0) + 1) for cell in cells)
    filled_bytes = sum(space.bytes for line in lines for space in line.placement.values())
    moved = 1e9 * sum(volume.values())
    return Counters(counted_bytes=moved, read_bytes=read_bytes, filled_bytes=filled_bytes, seconds=seconds)


def _reason(tree: Tree, group: str) -> str:
    """The last words of likwid-perfctr, or of the kernel that it ran."""
    said = [line.strip() for line in _text(tree, f"{group}.err").splitlines() if line.strip()]
    return printable(said[-1], 200) if said else say("counters_no_metric")


def _lines(tree: Tree, group: str) -> Iterator[_CountedLine]:
    for line in _text(tree, f"{group}.jsonl").splitlines():
        try:
            yield _LINE.decode(line)
        except (ValueError, msgspec.MsgspecError):
            return  # cut off, as by the time limit of the survey


def _text(tree: Tree, name: str) -> str:
    return tree.read_text(f"{FOLDER}/{name}") or ""
