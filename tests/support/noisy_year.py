"""A year of weekly campaigns of a small fleet, in memory, with noise that is not the simulator's: correlated from week
to week, shared by the cores of a node, with heavy tails, bursts and a season that all nodes have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedFleet
from nodeprint.history import changes
from nodeprint.history.changes import Histories
from nodeprint.history.judged import JudgedNode, PastCampaign
from nodeprint.judge import acceptance, joined
from nodeprint.judge.outcome import Outcome
from tests.support.fleets import made

Floats = npt.NDArray[np.float64]

_RUNS = 2


@dataclass(frozen=True)
class Noise:
    """Standard deviations, relative: of a node's job (all of its cores), of a core in a job, of a run, of a pair in a
    run; how alike successive weeks are (a correlation); the share of runs with a burst; what all nodes move by from the
    middle of a season to its ends (`season`)."""

    job: float = 0.002
    core: float = 0.001
    run: float = 0.001
    pair: float = 0.004
    alike: float = 0.0
    bursts: float = 0.0
    season: float = 0.0


#: Independent noise, and what real fleets have.
CALM, ROUGH = Noise(), Noise(job=0.004, core=0.002, alike=0.7, bursts=0.03, season=0.02)


@dataclass(frozen=True)
class Shift:
    """From a week on some nodes (all if none is named) are slower by `factor`, in a core's pairs or in all."""

    week: int
    factor: float
    nodes: Sequence[int] = ()
    core: int | None = None


def fleets(seed: int, noise: Noise, nodes: int = 8, weeks: int = 52, shifts: Sequence[Shift] = ()) -> list[PackedFleet]:
    """The campaigns of such a year."""
    rng = np.random.default_rng(seed)
    base = made(nodes=nodes, runs=_RUNS, pair_runs=4)
    (quantity,) = base.pairs
    level = np.array([quantity.values[quantity.node == node].mean(axis=(0, 1)) for node in range(nodes)])
    ends = _cores(quantity)
    cores = int(ends.max()) + 1
    job, core = np.zeros(nodes), np.zeros((nodes, cores))
    out = []
    for week in range(weeks):
        fresh = np.sqrt(1 - noise.alike**2) if week else 1.0
        job = noise.alike * job + fresh * noise.job * rng.standard_normal(nodes)
        core = noise.alike * core + fresh * noise.core * rng.standard_normal((nodes, cores))
        season = noise.season * np.sin(2 * np.pi * week / 52)
        effect = season + job[:, None] + core[:, ends[0]] + core[:, ends[1]]
        for shift in shifts:
            if week >= shift.week:
                places = slice(None) if shift.core is None else (ends == shift.core).any(axis=0)
                for node in shift.nodes or range(nodes):
                    effect[node, places] += np.log(shift.factor)
        rows = []
        for node in range(nodes):
            for _ in range(_RUNS):
                of_run = effect[node] + noise.run * rng.standard_normal()
                of_run = of_run + noise.pair * rng.standard_t(3, len(of_run)) / np.sqrt(3)
                if rng.random() < noise.bursts:  # a daemon on a core, or on all
                    hit = (ends == rng.integers(cores)).any(axis=0) if rng.random() < 0.5 else slice(None)
                    of_run[hit] += 0.03 * abs(rng.standard_t(3))
                rows.append(level[node] * np.exp(of_run))
        out.append(_week(base, quantity, week, np.array(rows, dtype=np.float32)))
    return out


def _cores(quantity: Measured) -> npt.NDArray[np.int64]:
    """The core at both ends of each place (end, place)."""
    places = np.stack([quantity.places["a"], quantity.places["b"]])
    slots = quantity.layout.slots[:, :5]
    _, core = np.unique(slots, axis=0, return_inverse=True)
    return np.asarray(core[places])


def _week(base: PackedFleet, quantity: Measured, week: int, values: npt.NDArray[np.float32]) -> PackedFleet:
    nodes = len(base.nodes)
    day = np.datetime64("2026-01-01T00:00:00") + np.timedelta64(7 * week, "D")
    node = np.repeat(np.arange(nodes), _RUNS)
    started = tuple(f"{day + np.timedelta64(10 * number, 'm')}Z" for number in node.tolist())
    of_week = quantity.assign(
        values=values[:, None, :],
        node=node,
        job=np.ones(len(node), dtype=np.int64),
        run=np.tile(np.arange(1, _RUNS + 1), nodes),
        started=started,
        disturbed=np.zeros(len(node)),
    )
    return replace(base, campaign=f"week{week:02d}", quantities=(of_week,))


def histories(of: Sequence[PackedFleet], fingerprints: Mapping[int, Mapping[str, str]] | None = None) -> Histories:
    """The histories of campaigns, whose nodes have these fingerprints from a week on."""
    judged = []
    for week, fleet in enumerate(of):
        known = {
            key: value for first, more in (fingerprints or {}).items() if first <= week for key, value in more.items()
        }
        nodes = {node.name: JudgedNode(Outcome.SAME, "", {"bios": "1", **known}) for node in fleet.nodes}
        judged.append(PastCampaign(fleet.campaign, True, nodes, folder=Path(fleet.campaign)))
    rules = acceptance.load()
    return changes.of_joined(*joined.join(of, rules), rules, Histories(tuple(judged)))


#: What `counted` plants, in tolerances: in a core's pairs, whose tolerance is 4%, and in all pairs, 2%.
TIMES_TOLERANCE = 1.5
_CORE, _WHOLE = 0.04, 0.02


def counted(groups: int, weeks: int, seed: int) -> tuple[list[bool], list[bool]]:
    """Of fleets of eight nodes over some weeks, of which one has a slower core from a random week on and another is
    slower as a whole: whether each change was found, confirmed, two measurements after it began; and whether anything
    was reported of an unchanged node over the whole time."""
    rng = np.random.default_rng(seed)
    caught, false = [], []
    for group in range(groups):
        week, core = int(rng.integers(2, weeks - 2)), int(rng.integers(64))
        first, second = rng.permutation(8)[:2].tolist()
        shifts = (
            Shift(week, 1 + TIMES_TOLERANCE * _CORE, (first,), core),
            Shift(week, 1 + TIMES_TOLERANCE * _WHOLE, (second,)),
        )
        year = fleets(seed * 1000 + group, CALM, 8, weeks, shifts)
        names = [node.name for node in year[0].nodes]
        early, whole = histories(year[: week + 2]), histories(year)
        for number in (first, second):
            (history,) = (history for history in early.nodes if history.node == names[number])
            since = history.measured[week]
            caught.append(any(c.confirmed and c.unchanged < since <= c.by for c in history.changes))
        unchanged = [history for history in whole.nodes if history.node not in (names[first], names[second])]
        false += [any(change.confirmed for change in history.changes) for history in unchanged]
    return caught, false
