"""Do the intervals of the verdict hold the truth as often as they say? Fleets whose nodes are equal in truth.

    python -m bench.calibration                     every section, ten rounds: half an hour on one core
    python -m bench.calibration --quick             one round
    python -m bench.calibration --section odd --quick

The fleets are those of bench.known_fleets without any silicon, so that every true difference is 0.

jobs    two jobs whose effects are shared by all cores of a node: how often the 90% interval of both holds the truth
runs    one job whose runs differ by a sixth to four times the usual: the same, and in how many fleets any node is
        outside the simultaneous interval of a component type of components
odd     runs of a job, as quiet ones and as those under load: how often one is named as off where none is, and how often
        one that is 20 or 30% off is named, with the constants of the code and with others
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import xarray as xr

from bench import cases
from bench.cases import Case, Promise, Section, Tally
from bench.known_fleets import RUNS, Kind, KnownFleet
from nodeprint.judge.judge import judge
from nodeprint.stats import disagreement

#: Nodes, standard deviations of jobs in percent, and of runs in times the usual.
NODES, JOB_PERCENTS, RUN_FACTORS = (3, 4, 8), (0.3, 0.6, 1.0), (1 / 6, 1.0, 4.0)
MACHINES = ("1x16", "2x8", "1x32")
#: Fleets of a round and kind.
_EACH = 3
#: What 90% intervals may hold, and in how many percent of fleets any node may be outside in a component type. Of one
#: job it is more if jobs move by less than is assumed.
HELD, ANY_OUTSIDE = Promise(85.0, at_least=True, most=95.0, mean=True), 6.0
HELD_BY_ONE = Promise(85.0, at_least=True, mean=True)
#: Constants of `stats.disagreement`: as they are, and others.
_KEPT = disagreement.LEAST, disagreement._BY_CHANCE
_CONSTANTS = (_KEPT, (1.05, _KEPT[1]), (1.2, _KEPT[1]), (_KEPT[0], 2.0), (_KEPT[0], 3.0), (_KEPT[0], 6.0))


def job_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Every number of nodes with every standard deviation of jobs."""
    for _, nodes, percent in itertools.product(range(_EACH), NODES, JOB_PERCENTS):
        yield {"machine": str(rng.choice(MACHINES)), "nodes": nodes, "percent": percent}


def jobs(case: Case) -> list[Tally]:
    """Two jobs of each node."""
    kind = Kind(chip=0.0, job=case["percent"] / 100, shared=1.0)
    table = judge(KnownFleet(case["machine"], case["nodes"], case["seed"], kind).measured(2)).deviations
    held = _held(table.isel(sample=np.flatnonzero(table["job"].values == "pooled")))
    tallies = [
        Tally(f"jobs of {case['percent']}%, N = {case['nodes']}: 90% intervals hold", int(held.sum()), held.size),
        Tally(f"jobs of 0.3 to 1%, N = {case['nodes']}: 90% intervals hold", int(held.sum()), held.size),
    ]
    for name in np.unique(table["measurement"].values.astype(str)).tolist():
        component = held[:, table["measurement"].values == name]
        tallies.append(Tally(_of_measurement(name, case["nodes"]), int(component.sum()), component.size))
    return tallies


def _of_measurement(name: str, nodes: int) -> str:
    return f"jobs of 0.3 to 1%, {name}, N = {nodes}"


def _held(table: xr.Dataset) -> npt.NDArray[np.bool_]:
    """Which intervals hold that there is no difference (sample, component)."""
    return np.asarray(np.abs(table["difference"].values) <= table["half_90"].values)


def run_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Every number of nodes with every spread of runs."""
    for _, nodes, factor in itertools.product(range(_EACH), NODES, RUN_FACTORS):
        yield {"machine": str(rng.choice(MACHINES)), "nodes": nodes, "factor": factor}


def runs(case: Case) -> list[Tally]:
    """One job of each node, which moves by what is assumed."""
    kind = Kind(chip=0.0, run=case["factor"], job=0.001, shared=0.5)
    table = judge(KnownFleet(case["machine"], case["nodes"], case["seed"], kind).measured(1)).deviations
    held = _held(table)
    outside = np.abs(table["difference"].values) > table["half_simultaneous"].values
    component_types = list(
        zip(*(table[key].values.tolist() for key in ("measurement", "home", "component_type")), strict=True)
    )
    beyond = dict.fromkeys(component_types, False)
    for number, component_type in enumerate(component_types):
        beyond[component_type] |= bool(outside[:, number].any())
    return [
        Tally(f"runs x {case['factor']:.2g}, N = {case['nodes']}: 90% intervals hold", int(held.sum()), held.size),
        Tally(f"one job, N = {case['nodes']}: any node outside in a component type", sum(beyond.values()), len(beyond)),
    ]


def odd_cases(_rng: np.random.Generator) -> Iterator[Case]:
    """Every constant with every spread of runs and size of what is off."""
    for (least, by_chance), spread, size in itertools.product(_CONSTANTS, (0.01, 0.034, 0.08), (0.0, 0.2, 0.3)):
        yield {"least": least, "by_chance": by_chance, "spread": spread, "off": size}


def odd(case: Case) -> list[Tally]:
    """A hundred jobs of three to six runs, of which none or the first is off."""
    rng, count, draws = np.random.default_rng(case["seed"]), 0, 100
    disagreement.LEAST, disagreement._BY_CHANCE = case["least"], case["by_chance"]
    for draw in range(draws):
        of_runs = 1 + case["spread"] * rng.standard_normal((3 + draw % 4, 1))
        of_runs[0] *= 1 + case["off"]
        noisy = 100 * of_runs * (1 + 0.02 * rng.standard_normal((len(of_runs), 200)))
        named = disagreement.disagreement(noisy, case["spread"])
        count += named is not None and (0 in named.odd if case["off"] else bool(named.odd))
    disagreement.LEAST, disagreement._BY_CHANCE = _KEPT
    name = f"odd, from {case['least'] - 1:.0%} and {case['by_chance']:g} SD on: runs of {case['spread']:.1%}"
    if case["off"]:
        return [Tally(f"{name}, one {case['off']:.0%} off: named", count, draws)]
    return [Tally(f"{name}: one named where none is off", count, draws)]


SECTIONS = {
    "jobs": Section(job_cases, jobs),
    "runs": Section(run_cases, runs),
    "odd": Section(odd_cases, odd),
}
PROMISES = {
    **{f"jobs of 0.3 to 1%, N = {nodes}: 90% intervals hold": HELD for nodes in NODES},
    **{f"jobs of {sd}%, N = {nodes}: 90% intervals hold": HELD for nodes in NODES for sd in JOB_PERCENTS},
    **{_of_measurement(name, nodes): Promise(mean=True) for nodes in NODES for name in RUNS},
    **{f"runs x {of:.2g}, N = {nodes}: 90% intervals hold": HELD_BY_ONE for nodes in NODES for of in RUN_FACTORS},
    **{
        f"one job, N = {nodes}: any node outside in a component type": Promise(ANY_OUTSIDE, mean=True)
        for nodes in NODES
    },
}


def main() -> int:
    """Draw and print; 1 where an interval does not hold what it says."""
    return cases.run("calibration", SECTIONS, PROMISES, cases.parser(__doc__, SECTIONS).parse_args())


if __name__ == "__main__":
    sys.exit(main())
