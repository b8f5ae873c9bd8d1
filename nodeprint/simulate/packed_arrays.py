"""A simulated fleet as packed arrays, from the same draws as its records."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nodeprint.data.job import job_points
from nodeprint.data.job.job_points import NodePlaces
from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.data.places import layout
from nodeprint.data.places.layout import Layout
from nodeprint.data.places.measured import models
from nodeprint.data.store.packed import PackedFleet, PackedNode
from nodeprint.simulate.drawn_run import DrawnRun
from nodeprint.simulate.plan import MESSAGES, PAIRS, Plan, draw_cells, draw_messages, draw_pairs, planned_nodes, started
from nodeprint.simulate.survey import FINGERPRINT


def fleet(plan: Plan) -> PackedFleet:
    """The plan's fleet as packed arrays, from the same draws as `write`."""
    nodes: list[PackedNode] = []
    jobs: list[JobMeasurement] = []
    for number, node in enumerate(planned_nodes(plan)):
        missing = node.state.missing
        machine = job_points.machine(node.topology)
        nodes.append(
            PackedNode(
                node.name,
                node.name,
                state="not measured" if missing else "measured",
                reason="simulated: missing" if missing else "",
                cpus=tuple(node.cpus),
                cores=node.cores,
                fingerprint={**FINGERPRINT, **node.state.fingerprint},
                numbers={"cpu": machine.cpus, "core": machine.cores, "node": machine.nodes},
            )
        )
        if missing:
            continue
        runs = range(1, plan.runs + 1)
        for job in plan.job_numbers:
            drawn = [draw_pairs(plan, number, node, job, run) for run in range(1, plan.runs_of_pairs + 1)]
            jobs.append(_of_pairs(PAIRS, plan.homes, number, job, node.layout, drawn))
            if plan.linktest:
                between = replace(node.layout, pairs=node.layout.pairs[~node.path.in_core])
                drawn_messages = [draw_messages(plan, number, node, job, run) for run in runs]
                jobs.append(_of_pairs(MESSAGES, (-1,), number, job, between, drawn_messages))
            for run in runs:
                jobs += [
                    _of_cells(number, job, run, machine, cells) for cells in draw_cells(plan, number, node, job, run)
                ]
    return PackedFleet("simulated", True, tuple(nodes), job_points.assemble(jobs))


def _of_pairs(
    name: str, homes: tuple[int, ...], number: int, job: int, places: Layout, drawn_runs: list[npt.NDArray[np.float32]]
) -> JobMeasurement:
    """The runs of a job, each (pass, home, pair)."""
    operation, quantity = ("cas", "hop") if name == PAIRS else ("semidirectional", "message")
    values = np.stack(drawn_runs).reshape(len(drawn_runs), len(drawn_runs[0]), -1)
    header = {"operation": operation, "quantity": quantity, "unit": "ns", "tick_ns": 0.0}
    numbers = range(1, len(drawn_runs) + 1)
    runs = job_points.runs_of(numbers, [started(job, run) for run in numbers])
    at = _places_of(places.pairs.tobytes(), homes)
    return job_points.at_points(number, job, name, header, runs, job_points.pair_layout(places), at, {}, values)


@lru_cache(maxsize=8)
def _places_of(pairs: bytes, homes: tuple[int, ...]) -> dict[str, layout.Ints]:
    return job_points.pair_places(homes, np.frombuffer(pairs, dtype=np.int64).reshape(-1, 2))


def _of_cells(number: int, job: int, run: int, machine: NodePlaces, cells: DrawnRun) -> JobMeasurement:
    _, values = cells.values[models()[cells.measurement].value]
    header = {**cells.identity, "cells": cells.declared}
    places = zip(*itertools.product(*cells.coordinates.values()), strict=True)
    return job_points.cells_at_points(
        number,
        job,
        cells.measurement,
        header,
        machine,
        dict(zip(cells.coordinates, places, strict=True)),
        values.reshape(1, len(values), -1),
        job_points.runs_of([run], [started(job, run)]),
    )
