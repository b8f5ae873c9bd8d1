"""What is measured in the time that there is: for each kernel the richest arguments of which three runs fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nodeprint.settings.config import PlanRow

#: The kernels' time in all, s: of up to 16 CPUs, and of 256 and more. The survey and the start need the rest of half a
#: minute and of two minutes.
_LEAST_S, _MOST_S = 22.0, 100.0
_FEW_CPUS, _MANY_CPUS = 16, 256
#: An interval needs runs, each a new process with other pages, lines and order.
_RUNS, _MOST_RUNS = 3, 5
#: Start and end of one run: node-run, the kernel's calibration of its clock, compression of its records, s.
START_S = 0.4


@dataclass(frozen=True)
class Step:
    """A measurement: its kernel, and its arguments from poor to rich. It is `shown` as that."""

    measurement: str
    shown: str
    kernel: str
    arguments: tuple[str, ...]


#: In the order in which they are measured: what heats the processor comes last.
STEPS = (
    Step(
        "coherence-cas",
        "core to core",
        "coherence",
        tuple(
            f"--op cas --cpus cores --siblings {sweep}"
            for sweep in ("--passes 1 --lines 8", "--passes 1 --lines 16", "--passes 1", "--passes 2", "--passes 3")
        ),
    ),
    Step(
        "chase-latency",
        "memory latency",
        "chase",
        tuple(f"--op latency --cpus cores --passes 1{each}" for each in (" --per node", "")),
    ),
    Step(
        "bandwidth-machine",
        "bandwidth",
        "bandwidth",
        tuple(
            f"--op machine --cpus cores --passes 1 --streams {streams}"
            for streams in ("load", "load,store_mem,triad_mem")
        ),
    ),
    Step(
        "clock-together",
        "clock",
        "clock",
        tuple(f"--op together --cpus cores --passes 1 --seconds {seconds}" for seconds in (1, 2)),
    ),
    Step(
        "load-together",
        "vector load",
        "load",
        tuple(f"--op together --cpus cores --passes 1 --seconds {seconds}" for seconds in (1, 2)),
    ),
)

#: Seconds of one run of a kernel with these arguments.
Seconds = Callable[[str, Sequence[str]], float]


def budget_s(cpus: int) -> float:
    """The time for the kernels on a machine of so many CPUs, s."""
    share = (min(max(cpus, _FEW_CPUS), _MANY_CPUS) - _FEW_CPUS) / (_MANY_CPUS - _FEW_CPUS)
    return _LEAST_S + share * (_MOST_S - _LEAST_S)


def rows(cpus: int, seconds: Seconds, start_s: float = START_S) -> list[PlanRow]:
    """The rows of a plan for `cpus` CPUs. `seconds` says how long a run takes, `start_s` what each costs beside.

    From one run of the poorest arguments everything is made better step by step, as long as all of it fits.
    """
    chosen = {step: (step.arguments[0], 1) for step in STEPS}
    needed = {
        (step, arguments): seconds(step.kernel, arguments.split()) + start_s
        for step in STEPS
        for arguments in step.arguments
    }
    for step, arguments, runs in _improvements():
        better = chosen | {step: (arguments or chosen[step][0], runs or chosen[step][1])}
        total = sum(needed[planned_step, words] * count for planned_step, (words, count) in better.items())
        if total <= budget_s(cpus):
            chosen = better
    return [PlanRow(step.measurement, step.kernel, *chosen[step]) for step in STEPS]


def _improvements() -> Iterator[tuple[Step, str, int]]:
    """A step with richer arguments or more runs (empty and 0: as they are), from what is worth most to least."""
    yield from ((step, "", _RUNS) for step in STEPS)
    for level in range(1, max(len(step.arguments) for step in STEPS)):
        yield from ((step, step.arguments[level], 0) for step in STEPS if level < len(step.arguments))
    yield from ((step, "", _MOST_RUNS) for step in STEPS)


def text(plan: Sequence[PlanRow]) -> str:
    """A plan as plan.tsv has it."""
    return "".join(f"{row.name}\t{row.kernel}\t{row.arguments}\t{row.runs}\n" for row in plan)
