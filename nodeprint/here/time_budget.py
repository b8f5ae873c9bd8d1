"""The plan for a time budget: for each kernel the richest arguments with which three runs fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from nodeprint.settings.config import PlanRow
from nodeprint.settings.measurements import Measurement, measurements

#: The kernels' time in all, s: of up to 16 CPUs, and of 256 and more. The survey and the start need the rest of half a
#: minute and of two minutes.
_LEAST_S, _MOST_S = 22.0, 100.0
_FEW_CPUS, _MANY_CPUS = 16, 256
#: An interval needs runs, each a new process with other pages, lines and order.
_RUNS, _MOST_RUNS = 3, 5
#: Start and end of one run: node-run, the kernel's calibration of its clock, compression of its records, s.
START_S = 0.4


#: Seconds of one run of a kernel with these arguments.
Seconds = Callable[[str, Sequence[str]], float]


@cache
def steps() -> Mapping[str, Measurement]:
    """The measurements of kernels that declare arguments for this use, by name, in the order of measuring. Those that
    heat the processor come last."""
    return {name: known for name, known in measurements().items() if known.here is not None}


def budget_s(cpus: int) -> float:
    """The time for the kernels on a machine of so many CPUs, s."""
    share = (min(max(cpus, _FEW_CPUS), _MANY_CPUS) - _FEW_CPUS) / (_MANY_CPUS - _FEW_CPUS)
    return _LEAST_S + share * (_MOST_S - _LEAST_S)


def rows(cpus: int, seconds: Seconds, start_s: float = START_S) -> list[PlanRow]:
    """The rows of a plan for `cpus` CPUs. `seconds` says how long a run takes, `start_s` what each costs beside.

    From one run of the poorest arguments everything is made better step by step, as long as all of it fits.
    """
    choices = {name: known.here.arguments for name, known in steps().items() if known.here is not None}
    chosen = {name: (arguments[0], 1) for name, arguments in choices.items()}
    needed = {
        (name, words): seconds(steps()[name].kernel, words.split()) + start_s
        for name, arguments in choices.items()
        for words in arguments
    }
    for improved, words, runs in _improvements(choices):
        better = chosen | {improved: (words or chosen[improved][0], runs or chosen[improved][1])}
        total = sum(needed[name, arguments] * count for name, (arguments, count) in better.items())
        if total <= budget_s(cpus):
            chosen = better
    return [PlanRow(name, steps()[name].kernel, *arguments_and_runs) for name, arguments_and_runs in chosen.items()]


def _improvements(choices: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, int]]:
    """A measurement with richer arguments or more runs (empty and 0: unchanged), the most valuable first."""
    yield from ((name, "", _RUNS) for name in choices)
    for level in range(1, max(map(len, choices.values()))):
        yield from ((name, arguments[level], 0) for name, arguments in choices.items() if level < len(arguments))
    yield from ((name, "", _MOST_RUNS) for name in choices)


def text(plan: Sequence[PlanRow]) -> str:
    """A plan as plan.tsv has it."""
    return "".join(f"{row.name}\t{row.kernel}\t{row.arguments}\t{row.runs}\n" for row in plan)
