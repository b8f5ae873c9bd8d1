"""Small fleets as the sets of their jobs. Values are functions of the job alone: in whatever order jobs, nodes and runs
are listed, the same was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import SAME_CCX, Layout, pair_classes
from nodeprint.data.places.measured import Measured, models
from nodeprint.data.store.packed import PackedFleet, PackedNode
from nodeprint.judge.judge import judge

#: One socket of two CCXs with four cores each: slots and pairs.
_CORES, _RUNS = 8, 4
_SLOTS = np.array([(0, -1, core // 4, core // 4, core % 4, 0) for core in range(_CORES)])
_PAIRS = np.stack(np.triu_indices(_CORES, 1), axis=1)
_NOMINAL = np.where(pair_classes(_SLOTS, _PAIRS) == SAME_CCX, 25.0, 110.0)
#: Standard deviations of nodes, jobs and runs, common to all pairs and of each.
_NODE, _JOB, _COMMON, _EACH = 0.001, 0.001, 0.002, 0.005


@dataclass(frozen=True)
class Job:
    """A job of a node on a day: core 0 is `slower` by a share in some of its `runs` (all if empty), and all cores by
    `moved`."""

    node: str
    day: int
    slower: float = 0.0
    runs: tuple[int, ...] = ()
    moved: float = 0.0


def fleet(
    jobs: Sequence[Job], nodes: Sequence[str] = (), runs: Mapping[Job, Sequence[int]] | None = None
) -> PackedFleet:
    """The fleet of some jobs, which are numbered in the order of the sequence; `nodes` are the names in order, `runs`
    the order of each job's runs."""
    names = list(nodes) or list(dict.fromkeys(job.node for job in jobs))
    rows = []
    for number, name in enumerate(names):
        of_node = [job for job in jobs if job.node == name]
        for count, job in enumerate(of_node, 1):
            order = (runs or {}).get(job, range(_RUNS))
            rows += [(number, count, place, *_run(job, run)) for place, run in enumerate(order, 1)]
    node, number_of_job, run = (np.array(column) for column in list(zip(*rows, strict=True))[:3])
    a, b = _PAIRS.T
    quantity = Measured.from_arrays(
        "coherence-cas",
        "cas",
        "hop",
        "ns",
        models()["coherence-cas"],
        Layout(_SLOTS, numa=np.full(_CORES, -1)),
        {"home": np.full(len(a), -1), "a": a, "b": b},
        np.stack([row[4] for row in rows])[:, None].astype(np.float32),
        node,
        number_of_job,
        run,
        tuple(row[3] for row in rows),
        np.zeros(len(rows)),
    )
    cpus = tuple(range(_CORES))
    numbers = {"cpu": cpus, "core": cpus, "node": (0,)}
    blank = PackedNode("", cpus=cpus, cores=cpus, numbers=numbers)
    return PackedFleet("jobs", True, tuple(replace(blank, name=name, host=name) for name in names), (quantity,))


def _run(job: Job, run: int) -> tuple[str, npt.NDArray[np.float64]]:
    """When a run began, and its values (pair)."""
    node = int(job.node.removeprefix("n"))
    of_node, of_job = np.random.default_rng([1, node]), np.random.default_rng([2, node, job.day])
    of_run = np.random.default_rng([3, node, job.day, run])
    noise = _COMMON * of_run.standard_normal() + _EACH * of_run.standard_normal(len(_PAIRS))
    factor = 1 + _NODE * of_node.standard_normal() + _JOB * of_job.standard_normal() + job.moved + noise
    if not job.runs or run in job.runs:
        factor = factor + job.slower * (_PAIRS == 0).any(axis=1)
    return f"2026-01-{job.day:02d}T10:{10 * run:02d}:00Z", _NOMINAL * factor


def outcomes(measured: PackedFleet) -> dict[str, tuple[str, ...]]:
    """By node its outcome, and what was found of which component in how many jobs."""
    verdict = judge(measured).verdict
    return {
        name: (node.outcome.value, *sorted(f"{finding.id} {finding.state}" for finding in node.findings))
        for name, node in verdict.nodes.items()
    }
