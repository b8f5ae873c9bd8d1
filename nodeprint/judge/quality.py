"""Disturbances that the kernels recorded: stolen time, throttling, memory errors, heat, a falling clock; and gaps.

Those that make a run invalid are quality remarks (`invalid: `), the others are warnings; docs/method.md, quality. Time
that a hypervisor took from the whole machine is a warning: kernels leave out the batches that it hit, and flag a pair
of which too many were hit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nodeprint.fleet.quantity import Quantity
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.reduction import Reduced
from nodeprint.packed import INVALID, PackedNode

#: CPUs that are named.
_NAMED = 3


def gaps(i: int, job: int, reduced: Sequence[Reduced], rules: Acceptance) -> list[str]:
    """The runs of pairs of a node's job in which too many pairs are missing or were disturbed."""
    out = []
    for one in reduced:
        quantity = one.quantity
        if not quantity.of_pairs or job not in quantity.rows.get(i, ()):
            continue
        mine = quantity.rows[i][job]
        missing = one.missing[mine]
        measured = missing.min(axis=0) < 1  # at other homes the job was not measured: another configuration, and no gap
        absent = missing[:, measured].mean(axis=1) if measured.any() else np.ones(len(mine))
        for shares, limit, what in (
            (absent, rules.missing_pairs, "are missing"),
            (quantity.disturbed[mine], rules.disturbed_pairs, "were disturbed"),
        ):
            if shares.mean() <= limit:
                continue
            out += [
                f"{INVALID}{quantity.measurement}, job{job}/run{quantity.run[row]}: "
                f"{share * 100:.0f} % of the pairs {what}"
                for row, share in zip(mine, shares.tolist(), strict=True)
                if share > limit
            ]
    return out


def invalid(node: PackedNode, job: int) -> list[str]:
    """The reasons that make runs of a node's job invalid."""
    out = []
    for run in (run for run in node.seen if run["job"] == job):
        reasons = {
            f"{run.get('throttled')} thermal throttling events while it ran": run.get("throttled"),
            f"{run.get('uncorrected')} uncorrected memory errors while it ran": run.get("uncorrected"),
        }
        where = f"{run['measurement']}, job{run['job']}/run{run['run']}"
        out += [f"{INVALID}{where}: {reason}" for reason, holds in reasons.items() if holds]
    return out


def warnings(
    node: PackedNode, i: int, quantities: Sequence[Quantity], rules: Acceptance, explained: Callable[[], str]
) -> list[dict[str, str]]:
    """What an administrator should know of a node's newest job: heat, corrected errors, clocks that fell, loud CPUs.

    `explained` says how far lost time explains what deviates elsewhere.
    """
    out: list[dict[str, str]] = []

    def add(identity: str, text: str, advice: str) -> None:
        out.append({"id": identity, "text": text, "advice": advice})

    runs = _newest(node)
    hot, heat = _worst(runs, "hottest_c")
    if heat >= rules.hottest_c:
        text = f"{hot['hottest']} reached {heat:.0f} °C after {hot['measurement']}, run {hot['run']}"
        add("hot", text, "look after fans, airflow and thermal paste")
    robbed, share = _worst(runs, "steal_share")
    if share > rules.steal:
        text = (
            f"the hypervisor took {share * 100:.1f} % of the CPUs' time during run {robbed['run']} of "
            f"{robbed['measurement']}; pairs that it disturbed are flagged in the records"
        )
        add("stolen-time", text, "use a dedicated host, or compare virtual machines of one host type only")
    corrected = sum(int(run.get("corrected") or 0) for run in runs)
    if corrected:
        text = f"{corrected} memory errors were corrected while it was measured"
        add("memory-errors", text, "find the DIMM in the system's event log and replace it if they continue")
    fell, by = _worst(runs, "clock_fell")
    if by > rules.clock_fell:
        text = f"the clock fell by {by * 100:.1f} % during run {fell['run']} of {fell['measurement']}"
        add("clock-fell", text, "compare power limits and cooling with a node that holds its clock")
    said = loud(node, i, quantities, rules)
    if said:
        text = "time was taken from " + ", ".join(f"CPU {cpu} ({share * 100:.1f} %)" for cpu, share in said[:_NAMED])
        text += f" and {len(said) - _NAMED} more CPUs" if len(said) > _NAMED else ""
        how_far = explained()
        text += f"; {how_far}" if how_far else ""
        add("loud-cpus", text, "look for daemons and interrupts there; figures of these CPUs may be affected")
    return out


def loud(node: PackedNode, i: int, quantities: Sequence[Quantity], rules: Acceptance) -> list[tuple[int, float]]:
    """OS numbers of CPUs that lost more than the bound of their time in a run of the newest job, the loudest first."""
    out: dict[int, float] = {}
    numbers = node.numbers.get("cpu", ())
    for one in quantities:
        if one.model.scale != "share" or one.dims != ("cpu",) or i not in one.rows:
            continue
        values = np.asarray(one.values[one.newest_rows[i]], dtype=np.float64)
        worst = np.nan_to_num(values).reshape(-1, one.size).max(axis=0)
        for place in np.flatnonzero(worst > rules.cell(one.model.term).bound):
            slot = int(one.places["cpu"][place])
            cpu = numbers[slot] if slot < len(numbers) else slot
            out[cpu] = max(float(worst[place]), out.get(cpu, 0.0))
    return sorted(out.items(), key=lambda entry: (-entry[1], entry[0]))


def _worst(runs: Sequence[Mapping[str, Any]], key: str) -> tuple[Mapping[str, Any], float]:
    """The run with most of something, and how much that is; 0 where nothing is known of it."""
    run = max(runs, key=lambda run: float(run.get(key) or 0.0), default={})
    return run, float(run.get(key) or 0.0)


def _newest(node: PackedNode) -> list[Mapping[str, Any]]:
    last = max((int(run["job"]) for run in node.seen), default=0)
    return [run for run in node.seen if run["job"] == last]
