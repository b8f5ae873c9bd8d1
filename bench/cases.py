"""Cases of a benchmark that counts: each is drawn from its seed, is counted by itself, and can be made again alone.

Cases of all sections take turns, so that a run that is cut short by `--minutes` has counted some of each. With
`--resume FILE` what was counted is kept there, a line each case, and is not counted again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from bench import table
from bench.table import Row

#: What identifies a case: JSON values by name.
Case = Mapping[str, Any]
#: Misses of a promise of which the cases are printed.
_EXAMPLES = 3


@dataclass(frozen=True)
class Tally:
    """What a case counted for a promise: how many of how many, and an example of what should not be (empty: none)."""

    promise: str
    count: int
    of: int
    example: str = ""


@dataclass(frozen=True)
class Promise:
    """A row: its limit in percent (None: reported only), whether it must be reached, what must not be exceeded then,
    and whether shares of cases are averaged, as what is counted in one case is correlated."""

    limit: float | None = None
    at_least: bool = False
    most: float | None = None
    mean: bool = False


@dataclass(frozen=True)
class Section:
    """Cases of a round in order, of which a generator draws what is open, and what counts one."""

    cases: Callable[[np.random.Generator], Iterator[Case]]
    count: Callable[[Case], Sequence[Tally]]


@dataclass
class Counts:
    """The tallies of a promise by case."""

    tallies: list[tuple[int, int]] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)


def percent_interval(count: int, of: int) -> tuple[float, float]:
    """95% interval of a share in percent (Clopper and Pearson)."""
    low = 0.0 if count == 0 else beta.ppf(0.025, count, of - count + 1)
    high = 1.0 if count >= of else beta.ppf(0.975, count + 1, of - count)
    return float(100 * low), float(100 * high)


def row(name: str, promise: Promise, counts: Counts) -> Row:
    """A promise's row."""
    count, of = (sum(column) for column in zip(*counts.tallies, strict=True))
    if promise.mean:
        shares = 100 * np.array([part / whole for part, whole in counts.tallies if whole])
        value, error = float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else 0
        interval = value - 1.96 * error, value + 1.96 * error
    else:
        value, interval = 100 * count / max(of, 1), percent_interval(count, of)
    return Row(name, (value,), promise.limit, f"% of {of:,}", promise.at_least, promise.most, interval)


def parser(description: str | None, sections: Mapping[str, Section]) -> argparse.ArgumentParser:
    """The arguments of a benchmark of cases."""
    out = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--section", choices=list(sections), action="append", help="this one alone (may be repeated)")
    out.add_argument("--rounds", type=int, default=10, help="rounds of the cases of each section (10)")
    out.add_argument("--seed", type=int, default=0, help="another number draws other fleets (0)")
    out.add_argument("--minutes", type=float, default=0.0, help="stop after so many (0: count all)")
    out.add_argument("--quick", action="store_true", help="one round: about ten minutes")
    out.add_argument(
        "--resume", type=Path, metavar="FILE", help="keep what was counted here, and do not count it again"
    )
    out.add_argument("--case", type=json.loads, metavar="JSON", help="count this case alone")
    return out


def run(
    bench: str, sections: Mapping[str, Section], promises: Mapping[str, Promise], arguments: argparse.Namespace
) -> int:
    """Count the cases of the chosen sections and print a row for each promise; 1 if one is missed."""
    load, begun = os.getloadavg()[0], time.monotonic()
    counts: dict[str, Counts] = {}
    former = _former(arguments.resume)
    for case in _turns(sections, arguments):
        key = json.dumps(case, sort_keys=True)
        if key not in former:
            if arguments.minutes and time.monotonic() - begun > 60 * arguments.minutes:
                continue  # what was kept is counted nevertheless
            former[key] = list(sections[case["section"]].count(case))
            _append(arguments.resume, key, former[key])
        _enter(counts, key, former[key])
    ordered = [name for name in promises if name in counts] + sorted(set(counts) - set(promises))
    rows = [row(name, promises.get(name, Promise()), counts[name]) for name in ordered]
    for one in rows:
        for example in counts[one.name].examples if one.limit is not None else ():
            print(f"{one.name}: {example}", flush=True)
    if arguments.case:
        print(*map(str, rows), sep="\n")
    else:
        table.keep(bench, rows, load)
    return int(any(one.missed for one in rows))


def _turns(sections: Mapping[str, Section], arguments: argparse.Namespace) -> Iterator[Case]:
    """The cases of the chosen sections in turns, each section spread over each round."""
    if arguments.case:
        yield arguments.case
        return
    for number in range(1 if arguments.quick else arguments.rounds):
        of_round = []
        for name in arguments.section or sections:
            begin = 1000 * (100 * arguments.seed + number)
            of_section = list(sections[name].cases(np.random.default_rng(begin)))
            of_round += [
                (k / len(of_section), {"section": name, **case, "seed": begin + k}) for k, case in enumerate(of_section)
            ]
        yield from (case for _, case in sorted(of_round, key=lambda entry: entry[0]))


def _former(path: Path | None) -> dict[str, list[Tally]]:
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return {line["case"]: [Tally(*of) for of in line["tallies"]] for line in lines}


def _append(path: Path | None, key: str, tallies: Sequence[Tally]) -> None:
    if path is not None:
        of_case = [(tally.promise, tally.count, tally.of, tally.example) for tally in tallies]
        with path.open("a") as file:
            file.write(json.dumps({"case": key, "tallies": of_case}) + "\n")


def _enter(counts: dict[str, Counts], key: str, tallies: Sequence[Tally]) -> None:
    for tally in tallies:
        of_promise = counts.setdefault(tally.promise, Counts())
        of_promise.tallies.append((tally.count, tally.of))
        if tally.example and len(of_promise.examples) < _EXAMPLES:
            of_promise.examples.append(f"{tally.example} --case '{key}'")
