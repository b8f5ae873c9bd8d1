"""Do the intervals of the verdict hold the truth as often as they say? Tables drawn with known differences.

    python -m bench.calibration                 every section, a quarter of an hour on one core
    python -m bench.calibration --draws 50      fewer draws each

Values are drawn by part, so that what runs and jobs share is exactly known: nothing of it, half of their variance, or
all of it is common to all parts of a measurement. Spreads are those of acceptance.yaml times a factor.

runs    one job: how often the 90 % interval holds the truth, and in how many fleets any node is outside its
        simultaneous interval in a family of parts
jobs    two jobs whose spread is 1 to 10 times the assumed one: how often the 90 % interval of both holds the truth
defect  two jobs of a node that is 1.2 bounds off in one part: how often that part is inside
odd     runs of a job, as quiet ones and as those under load: how often one is said to be off the others where none is,
        and how often one that is 20 or 30 % off is named, by the constants that there are and by others beside
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from bench import table
from bench.fleets import nominal
from bench.table import Row, row
from nodeprint.judge import acceptance, bounds, deviations
from nodeprint.judge.confirmation import PooledNodes, Series
from nodeprint.judge.deviations import Block, Levels
from nodeprint.judge.judge import SUSPECT
from nodeprint.judge.population import Population
from nodeprint.judge.reduction import Matrix
from nodeprint.stats import disagreement

Floats = npt.NDArray[np.float64]

#: Measurements that decide, with a machine and the runs that a job of the standard preset makes.
MEASURED = {
    "coherence-cas": ("naples-2x32", 6),
    "bandwidth-nodes": ("rome-2x64", 2),
    "clock-together": ("rome-2x64", 2),
}
NODES, SHARED, FACTORS = (3, 4, 8, 16), (0.0, 0.5, 1.0), (1 / 6, 1.0, 6.0)
JOB_FACTORS, JOB_PERCENTS = (1.0, 3.0, 10.0), (0.1, 0.3, 0.6, 1.0)
#: What 90 % intervals may hold, and in how many percent of fleets any node may be outside.
COVER, ANY_OUTSIDE, INSIDE = (87.0, 93.0), 6.0, 5.0
RULES = acceptance.load()


@lru_cache
def parts_of(name: str) -> Matrix:
    """A measurement's parts at two equal nodes, whose values are replaced."""
    base = nominal(MEASURED[name][0])
    quantities = tuple(
        replace(
            quantity,
            values=np.repeat(quantity.values[:1, :1], 2, axis=0),
            node=np.arange(2),
            job=np.ones(2, dtype=int),
            run=np.ones(2, dtype=int),
            started=("", ""),
            disturbed=np.zeros(2),
        )
        for quantity in base.quantities
    )
    nodes = tuple(replace(base.nodes[0], name=f"node{number}") for number in range(2))
    population = Population.of(replace(base, nodes=nodes, quantities=quantities), RULES, ())
    return next(matrix for _, _, matrix in population.matrices(np.arange(2)) if matrix.name == name)


def drawn(rng: np.random.Generator, shape: tuple[int, ...], sd: Floats | float, shared: float) -> Floats:
    """Normal values (..., part), of whose variance a share is common to all parts."""
    common, each = rng.standard_normal((*shape[:-1], 1)), rng.standard_normal(shape)
    return np.asarray(sd * (np.sqrt(shared) * common + np.sqrt(1 - shared) * each))


def series(
    name: str, rng: np.random.Generator, truth: Floats, shared: float, runs: float, jobs: Sequence[Floats | float]
) -> Series:
    """The table of nodes with a `truth` (node, part), whose runs spread `runs` times what is assumed, and each of whose
    `jobs` has a standard deviation of its own."""
    matrix, repeats = parts_of(name), MEASURED[name][1]
    nodes, parts = truth.shape
    assumed, levels = deviations.priors(matrix, RULES), Levels(SUSPECT, RULES.false_alarm, nodes)
    matrices = []
    for sd in jobs:
        values = truth[:, None] + drawn(rng, (nodes, 1, parts), sd, shared)
        values = values + drawn(rng, (nodes, repeats, parts), runs * assumed.run, shared)
        names = (("job1/run1",) * repeats,) * nodes
        matrices.append(msgspec.structs.replace(matrix, values=values, nodes=np.arange(nodes), runs=names))
    first = deviations.first_jobs(matrices[0], RULES, levels)
    later = [
        deviations.later_job(first, of_job, number, RULES, levels) for number, of_job in enumerate(matrices[1:], 1)
    ]
    return Series(deviations.with_jobs((first, *later)))


def covered(block: Block, truth: Floats) -> float:
    """The share of the 90 % intervals of a job that hold the truth."""
    return float(np.mean(np.abs(block.difference - truth) <= block.quantile_90 * block.error()))


def runs_section(draws: int) -> Iterator[Row]:
    """One job."""
    outside: dict[int, list[bool]] = {}
    for name in MEASURED:
        matrix = parts_of(name)
        job = deviations.priors(matrix, RULES).job
        for nodes in NODES:
            for factor in FACTORS:
                held = []
                for shared in SHARED:
                    rng = np.random.default_rng([1, nodes, int(100 * factor), int(10 * shared)])
                    for _ in range(draws):
                        block = series(name, rng, np.zeros((nodes, len(job))), shared, factor, [job]).first
                        held.append(covered(block, np.zeros_like(block.difference)))
                        if shared == 1:
                            beyond = np.abs(block.difference) > block.half_simultaneous
                            outside.setdefault(nodes, []).extend(
                                bool(beyond[:, columns].any()) for _, columns in block.terms.by_family
                            )
                yield from cover_rows(f"{name}, {nodes} nodes, runs x {factor:.2g}", held)
    for nodes, is_outside in outside.items():
        yield row(
            f"{nodes} nodes, run effects shared: any node outside in a family",
            100 * float(np.mean(is_outside)),
            ANY_OUTSIDE,
            "%",
        )


def cover_rows(name: str, held: Sequence[float]) -> Iterator[Row]:
    """How often intervals hold the truth, and how far that is from 90 %."""
    percent = 100 * float(np.mean(held))
    yield row(f"{name}: 90 % intervals hold {percent:.1f} %, off by", abs(percent - 90), COVER[1] - 90, "%")


def jobs_section(draws: int) -> Iterator[Row]:
    """Two jobs of each node."""
    for name in MEASURED:
        job = deviations.priors(parts_of(name), RULES).job
        for nodes in NODES:
            for factor in JOB_FACTORS:
                held = []
                for shared in SHARED:
                    rng = np.random.default_rng([2, nodes, int(factor), int(10 * shared)])
                    for _ in range(draws):
                        of_both = series(name, rng, np.zeros((nodes, len(job))), shared, 1.0, [factor * job] * 2)
                        held += [
                            float(np.mean(np.abs(pooled.difference) <= pooled.half_90))
                            for pooled in PooledNodes(of_both).values()
                        ]
                percent = 100 * float(np.mean(held))
                yield row(f"{name}, {nodes} nodes, two jobs x {factor:g}: 90 % intervals hold", percent, None, "%")


def defect_section(draws: int) -> Iterator[Row]:
    """A node 1.2 bounds off in one part."""
    for name in MEASURED:
        matrix = parts_of(name)
        bound = bounds.of_matrix(matrix, RULES)
        for nodes in NODES[1:3]:
            for percent in JOB_PERCENTS:
                rng = np.random.default_rng([3, nodes, int(10 * percent)])
                inside = []
                for _ in range(3 * draws):
                    truth = np.zeros((nodes, len(bound)))
                    part = int(rng.integers(len(bound)))
                    truth[0, part] = 1.2 * bound[part]
                    pooled = PooledNodes(series(name, rng, truth, 0.5, 1.0, [percent / 100] * 2))[0]
                    inside.append(abs(pooled.difference[part]) + pooled.half_90[part] <= bound[part])
                name_of = f"{name}, {nodes} nodes, jobs {percent} %: a part at 1.2 bounds inside"
                yield row(name_of, 100 * float(np.mean(inside)), INSIDE, "%")


def odd_section(draws: int) -> Iterator[Row]:
    """Runs of a job of which none or one is off."""
    kept = disagreement.LEAST, disagreement._BY_CHANCE
    for least, by_chance in (kept, (1.05, kept[1]), (1.2, kept[1]), (kept[0], 2.0), (kept[0], 3.0), (kept[0], 6.0)):
        disagreement.LEAST, disagreement._BY_CHANCE = least, by_chance
        name = f"odd, from {least - 1:.0%} and {by_chance:g} deviations on"
        limit = None if (least, by_chance) != kept else 1.0
        for spread in (0.01, 0.034, 0.08):
            found = {size: _named(size, spread, 10 * draws) for size in (0.0, 0.2, 0.3)}
            false = 100 * found.pop(0.0)
            yield row(f"{name}: runs of {spread:.1%}: one is named where none is off", false, limit, "%")
            for size, share in found.items():
                yield row(f"{name}: runs of {spread:.1%}, one {size:.0%} off: not named", 100 * (1 - share), None, "%")
    disagreement.LEAST, disagreement._BY_CHANCE = kept


def _named(size: float, spread: float, draws: int) -> float:
    """In which share of jobs of three to six runs the first is named, which is off by `size` (0: in which any is)."""
    rng, count = np.random.default_rng([4, int(1000 * spread), int(100 * size)]), 0
    for draw in range(draws):
        runs = 1 + spread * rng.standard_normal((3 + draw % 4, 1))
        runs[0] *= 1 + size
        odd = disagreement.disagreement(100 * runs * (1 + 0.02 * rng.standard_normal((len(runs), 200))), spread)
        count += odd is not None and (0 in odd.odd if size else bool(odd.odd))
    return count / draws


SECTIONS = {"runs": runs_section, "jobs": jobs_section, "defect": defect_section, "odd": odd_section}


def main() -> int:
    """Draw and print; 1 where an interval does not hold what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", choices=list(SECTIONS), help="this one alone")
    parser.add_argument("--draws", type=int, default=100, help="fleets of each kind (100)")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    chosen = [arguments.section] if arguments.section else list(SECTIONS)
    rows = [of for section in chosen for of in table.as_they_come(SECTIONS[section](arguments.draws))]
    table.keep("calibration", rows, load)
    return int(any(of.missed for of in rows))


if __name__ == "__main__":
    sys.exit(main())
