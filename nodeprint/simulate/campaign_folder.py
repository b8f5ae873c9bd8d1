"""A simulated fleet as a campaign directory: records in the kernels' own format."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint import files
from nodeprint.campaign import job_status, node_sheet
from nodeprint.campaign.job_status import JobStatus, RunOutcome
from nodeprint.data.format import integrity
from nodeprint.data.places import layout
from nodeprint.data.places.homes import FAR, NEAR
from nodeprint.errors import NodeprintError
from nodeprint.settings.measurements import measurements
from nodeprint.simulate import cells as drawn
from nodeprint.simulate import lines, silicon
from nodeprint.simulate.drawn_run import DrawnRun
from nodeprint.simulate.line_values import line_texts, line_values
from nodeprint.simulate.machines import socket_index
from nodeprint.simulate.plan import (
    EPOCH,
    MESSAGE_BYTES,
    MESSAGES,
    PAIRS,
    Plan,
    draw_cells,
    draw_messages,
    draw_pairs,
    home_nodes,
    homes_of,
    planned_nodes,
    pools_of,
    run_of,
    started,
    time_text,
)
from nodeprint.simulate.simulated_node import NodePlan
from nodeprint.simulate.survey import survey


def write(plan: Plan, campaign: Path) -> Path:
    """Write the plan's fleet as a campaign directory, with every file marked as simulated.

    The same plan gives the same bytes.

    Returns the directory.
    Raises NodeprintError if the directory is not empty or cannot be written.
    """
    if campaign.exists() and not (campaign.is_dir() and not any(campaign.iterdir())):
        raise NodeprintError(
            "is not an empty directory", where=campaign, advice="name a new directory for a simulated campaign"
        )
    for _ in planned_nodes(plan):  # a defect that cannot be is named before anything is written
        pass
    sheet = []
    for number, node in enumerate(planned_nodes(plan)):
        sheet.append(
            node_sheet.Node(
                node.name,
                node.name,
                job=plan.job_numbers[-1],
                cpus=len(node.topology.cpus),
                state="simulated",
            )
        )
        if not node.state.missing:
            _write_node(plan, number, node, campaign / "nodes" / node.name)
    definitions = measurements()
    measured = [PAIRS, *([MESSAGES] if plan.linktest else []), *(drawn.MEASUREMENTS if plan.cells else ())]
    runs = dict.fromkeys(measured, plan.runs) | {PAIRS: plan.runs_of_pairs}
    rows = [f"{name}\t{definitions[name].kernel}\t{definitions[name].arguments}\t{runs[name]}\n" for name in measured]
    files.write(campaign / "plan.tsv", "# simulated\n" + "".join(rows))
    node_sheet.write_sheet(campaign / "nodes.tsv", sheet)
    return campaign


def _write_node(plan: Plan, number: int, node: NodePlan, folder: Path) -> None:
    captured = survey(node.topology, node.name, node.state.fingerprint)
    for job in plan.job_numbers:
        job_dir = folder / f"job{job}"
        began = EPOCH + timedelta(hours=job)
        measurements = []
        for run in range(1, plan.runs_of_pairs + 1):
            values = draw_pairs(plan, number, node, job, run)
            cut = node.state.cut and run == plan.runs_of_pairs
            text = _records(plan, number, node, values, job=job, run=run, cut=cut)
            path = job_dir / f"run{run}" / f"{PAIRS}.jsonl{'' if cut else '.gz'}"
            files.write(path, text.encode() if cut else gzip.compress(text.encode(), compresslevel=1, mtime=0))
            measurements.append(_outcome(PAIRS, run, cut))
            if run > plan.runs:
                continue
            if plan.linktest:
                text = _message_records(plan, number, node, job=job, run=run)
                path = job_dir / f"run{run}" / f"{MESSAGES}.jsonl.gz"
                files.write(path, gzip.compress(text.encode(), compresslevel=1, mtime=0))
                measurements.append(_outcome(MESSAGES, run, cut=False))
            for drawn_run in draw_cells(plan, number, node, job, run):
                text = _cell_records(plan, number, node, drawn_run, job=job, run=run)
                path = job_dir / f"run{run}" / f"{drawn_run.measurement}.jsonl.gz"
                files.write(path, gzip.compress(text.encode(), compresslevel=1, mtime=0))
                measurements.append(_outcome(drawn_run.measurement, run, cut=False))
        files.write(job_dir / "survey.tar.gz", captured)
        cpus = len(node.topology.cpus)
        status = JobStatus(
            schema=1,
            node=node.name,
            host=node.name,
            job=job,
            started=time_text(began),
            ended=time_text(began + timedelta(minutes=5)),
            runs=plan.runs,
            outcome=job_status.outcome_of(measurements),
            cpus_allowed=cpus,
            cpus_expected=cpus,
            simulated=True,
            measurements=tuple(measurements),
        )
        job_status.write(job_dir, status)


def _outcome(name: str, run: int, cut: bool) -> RunOutcome:
    return RunOutcome(
        name=name,
        run=run,
        outcome="failed" if cut else "done",
        exit_code=137 if cut else 0,
        seconds=8.0,
        pinned_by="native",
        message="simulated: killed" if cut else "",
    )


def _header(plan: Plan, number: int, node: NodePlan, *, job: int, run: int) -> dict[str, Any]:
    """The fields that all records of a run share."""
    return {
        "record": "header",
        "schema": 1,
        "segment": 0,
        "host": node.name,
        "boot_id": f"00000000-0000-4000-8000-{plan.seed % 16**6:06x}{number:06x}",
        "job": job,
        "run": run,
        "seed": plan.seed * 1_000_003 + number * 1009 + job * 101 + run,
        "start_time": started(job, run),
        "kernel_hash": "0000000000000000",
        "compiler": "simulated",
        "clock": {"source": "tsc", "hz": 2.0e9, "step_ns": 10.0},
        "passes": plan.passes,
        "pinned_by": "native",
        "placement": {},
        "simulated": True,
    }


def _ended(lines: Sequence[str], counted: str, count: int) -> str:
    """The text of a record file with its trailer."""
    trailer = {
        "record": "trailer",
        "elapsed_s": 8.0,
        counted: count,
        "voluntary_switches": 0,
        "involuntary_switches": 0,
        "steal_s": 0.0,
        "complete": True,
    }
    return integrity.sealed("\n".join(lines) + "\n", trailer)


def _cell_records(plan: Plan, number: int, node: NodePlan, drawn_run: DrawnRun, *, job: int, run: int) -> str:
    keys = list(drawn_run.coordinates)
    cpus = drawn_run.coordinates.get("cpu") or sorted(node.cpus)
    header = _header(plan, number, node, job=job, run=run) | {
        **drawn_run.identity,
        "arguments": ["--op", drawn_run.identity["operation"], "--cpus", "cores"],
        "cpus": sorted(int(cpu) for cpu in cpus),
        "cells": drawn_run.declared,
    }
    text = [json.dumps(header)]
    shape = next(iter(drawn_run.values.values()))[1].shape
    for index in np.ndindex(*shape):
        place = {key: drawn_run.coordinates[key][i] for key, i in zip(keys, index[1:], strict=True)}
        values = {key: float(f"{array[index]:.6g}") for key, (_, array) in drawn_run.values.items()}
        if not all(np.isfinite(value) for value in values.values()):
            continue  # there is no such cell
        text.append(json.dumps({"record": "cell", **place, "pass": index[0], **values, "flags": []}))
    return _ended(text, "cells", len(text) - 1)


_MESSAGE = (
    '{"record":"pair","a":%d,"b":%d,"home":-1,"pass":%d,"latency_ns":%.1f,"ci_low_ns":%.1f,"ci_high_ns":%.1f,'
    '"min_ns":%.1f,"median_ns":%.1f,"p99_ns":%.1f,"flags":[]}\n'
)


def _message_records(plan: Plan, number: int, node: NodePlan, *, job: int, run: int) -> str:
    values = draw_messages(plan, number, node, job, run)
    header = _header(plan, number, node, job=job, run=run) | {
        "kernel": "linktest",
        "operation": "semidirectional",
        "quantity": "message",
        "unit": "ns",
        "arguments": ["--mode", "semidirectional", "--schedule", "serial", "--sizes", str(MESSAGE_BYTES)],
        "cpus": sorted(node.cpus),
        "home": None,
        "message_bytes": MESSAGE_BYTES,
        "batches": 16,
        "directed": False,
        "clock": {"source": "clock_gettime", "hz": 1e9, "step_ns": 1.0},
    }
    ends = np.array(node.cpus)[node.layout.pairs[~node.path.in_core]]
    a, b = np.sort(ends, axis=1).T
    text = [json.dumps(header)]
    for p in range(values.shape[0]):
        ns = values[p, 0].astype(np.float64)
        shares = (1.0, 0.995, 1.005, 0.99, 1.005, 1.05)
        columns = [a, b, np.full(len(a), p), *(ns * share for share in shares)]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        text += (_MESSAGE * len(a) % tuple(itertools.chain.from_iterable(rows))).splitlines()
    return _ended(text, "pairs", int(values.size))


def _records(
    plan: Plan, number: int, node: NodePlan, values: npt.NDArray[np.float32], *, job: int, run: int, cut: bool
) -> str:
    header = _header(plan, number, node, job=job, run=run) | {
        "kernel": "coherence",
        "operation": "cas",
        "quantity": "hop",
        "unit": "ns",
        "arguments": ["--op", "cas", "--cpus", "cores", "--siblings", *(["--detail"] if plan.detail else [])],
        "cpus": sorted(node.cpus),
        "home": "sockets" if FAR in plan.homes else "first" if plan.homes == (NEAR,) else "each",
        "lines": plan.spread.lines,
        "batches": 2,
        "round_trips": 40,
    }
    rng = np.random.default_rng([plan.seed, number, job, run, 99])
    cpus, pairs = np.array(node.cpus), node.layout.pairs
    order = np.argsort(cpus[pairs], axis=1)
    a, b = np.take_along_axis(cpus[pairs], order, axis=1).T
    cores = np.take_along_axis(np.stack([node.path.core_a, node.path.core_b], axis=1), order, axis=1)
    clocks = run_of(plan, number, node, job, run).probed_ghz(np.tile(cores, (values.shape[0], values.shape[1], 1, 1)))
    pools, sockets = pools_of(plan, number, node, job, run), homes_of(plan, node.topology, node.path)
    nodes = [n.node for n in node.topology.numa_nodes if n.cpus] or [0]
    socket_of = {n.node: socket_index(node.topology, n.cpus) for n in node.topology.numa_nodes}
    at_home = [
        home_nodes(plan, home, node.topology, a, socket) for home, socket in zip(plan.homes, sockets, strict=True)
    ]
    homes = nodes if NEAR in plan.homes else list(plan.homes)
    text = [json.dumps(header)]
    for home in homes:
        socket = socket_of.get(home, 0)
        text += lines.records(pools[socket], home, socket, node.layout, node.cpus, rng)
    sd = plan.spread.line
    for p in range(values.shape[0]):
        for home in homes:
            pool = pools[socket_of.get(home, 0)]
            text.append(
                json.dumps({"record": "pass", "pass": p, "home": home, "line_set": pool.lines[pool.drawn[p]].tolist()})
            )
        for h in range(len(plan.homes)):
            each = None
            if plan.detail:
                each_ns = line_values(plan, node, pools, sockets[h], values[p, h], p, rng)
                each = line_texts(pools, sockets[h], each_ns, p)
            text += _pair_lines(
                values[p, h], clocks[p, h], (a, b, at_home[h]), p, sd, each, rng.permutation(len(pairs))
            )
    if cut:
        return "\n".join(text[: len(text) * 2 // 3]) + '\n{"record":"pair","a":'
    return _ended(text, "pairs", int(values.size))


_PAIR = (
    '{"record":"pair","a":%d,"b":%d,"home":%d,"pass":%d,"latency_ns":%.4f,"ci_low_ns":%.4f,"ci_high_ns":%.4f,'
    '"min_ns":%.4f,"median_ns":%.4f,"p99_ns":%.4f,"line_sd_ns":%.4f,"clock_a_ghz":%.4f,"clock_b_ghz":%.4f%s,"flags":[]}\n'
)


def _pair_lines(
    values: npt.NDArray[np.float32],
    clocks: silicon.Floats,
    ends: tuple[layout.Ints, layout.Ints, layout.Ints],
    run_pass: int,
    sd: float,
    each: Sequence[str] | None,
    order: layout.Ints,
) -> list[str]:
    """The records of a pass's pairs in their `order`, each with its text of `each` added.

    `values` is (p), `clocks` (p, 2). `ends` has both CPUs and the NUMA node of the lines, each (p).
    """
    ns = values[order].astype(np.float64)
    shares = (1.0, 1 - 0.6 * sd, 1 + 0.6 * sd, 1 - 2 * sd, 1.01, 1 + 4 * sd, sd)
    a, b, home = (side[order] for side in ends)
    columns = [a, b, home, np.full(len(a), run_pass)]
    columns += [ns * share for share in shares] + list(clocks[order].T)
    added = [""] * len(a) if each is None else [each[i] for i in order.tolist()]
    rows = zip(*(column.tolist() for column in columns), added, strict=True)
    return (_PAIR * len(a) % tuple(itertools.chain.from_iterable(rows))).splitlines()
