"""Epochs of a node. The current epoch has the jobs since its last repair that have its current configuration.

Jobs of a former epoch are no evidence about the current machine, and are not pooled with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedFleet, PackedNode
from nodeprint.judge.acceptance_file import Acceptance, Repair
from nodeprint.judge.configuration import normalized
from nodeprint.judge.reduction import moment
from nodeprint.judge.verdict import Epoch
from nodeprint.settings.texts import say

#: The serial numbers of a node, in addition to the fields that are compared between nodes.
_SERIALS = "serials"


def current(fleet: PackedFleet, rules: Acceptance) -> tuple[PackedFleet, Mapping[str, tuple[Epoch, ...]]]:
    """The fleet without the jobs of former epochs, and these epochs by name of the node.

    An epoch begins with a repair (`repairs` of the rules), or if a field of the fingerprint or a serial number changes.
    A node without a job since its repair counts as not measured.
    """
    epochs = {i: tuple(_former(i, node, fleet, rules)) for i, node in enumerate(fleet.nodes)}
    former = {(i, int(job.removeprefix("job"))) for i, of_node in epochs.items() for of in of_node for job in of.jobs}
    if not former:
        return fleet, {}
    quantities = tuple(quantity.assign(former=_is_in(quantity, former)) for quantity in fleet.quantities)
    nodes = tuple(
        _without(node, {job for of, job in former if of == i}, epochs[i], any(i in q.rows for q in quantities))
        for i, node in enumerate(fleet.nodes)
    )
    said = {fleet.nodes[i].name: of_node for i, of_node in epochs.items() if of_node}
    return replace(fleet, quantities=quantities, nodes=nodes), said


def _is_in(quantity: Measured, former: Set[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Whether a row is from one of these jobs of nodes (row)."""
    jobs = zip(quantity.node.tolist(), quantity.job.tolist(), strict=True)
    return np.array([job in former for job in jobs], dtype=np.bool_)


def _without(node: PackedNode, former: set[int], epochs: Sequence[Epoch], is_measured: bool) -> PackedNode:
    """A node without the records of `former` jobs."""
    if not former:
        return node
    names = {f"job{job}" for job in former}
    node = replace(
        node,
        seen=tuple(run for run in node.seen if run["job"] not in former),
        rebooted=tuple(job for job in node.rebooted if job not in names),
    )
    if is_measured:
        return node
    reason = say("not_measured_since_repair", repair=epochs[-1].repair, what=epochs[-1].what)
    return replace(node, state="not measured", reason=reason)


def _former(i: int, node: PackedNode, fleet: PackedFleet, rules: Acceptance) -> Iterator[Epoch]:
    """The former epochs of a node, each with its jobs."""
    began = _beginnings(i, node, fleet)
    rest = dict(began)
    for repair in sorted(rules.repairs, key=lambda repair: repair.moment):
        before = [job for job, at in rest.items() if repair.node == node.name and at and at < repair.moment.timestamp()]
        if before:
            yield _repaired(repair, before)
            rest = {job: at for job, at in rest.items() if job not in before}
    by_fields: dict[tuple[str, ...], list[int]] = {}
    for job in rest:
        if changed := _changed(node, job, rules):
            by_fields.setdefault(changed, []).append(job)
    for fields, jobs in by_fields.items():
        yield Epoch(tuple(f"job{job}" for job in sorted(jobs)), fields=fields)


def _repaired(repair: Repair, jobs: Sequence[int]) -> Epoch:
    return Epoch(tuple(f"job{job}" for job in sorted(jobs)), repair.at, repair.what)


def _changed(node: PackedNode, job: int, rules: Acceptance) -> tuple[str, ...]:
    """The fields of the fingerprint in which a job differs from the current node. A field is compared only if both
    values are known."""
    then = normalized(node.former.get(job, {}), rules)
    now = normalized(node.fingerprint, rules)
    compared = (*rules.fingerprint.hard, *rules.fingerprint.soft, _SERIALS)
    return tuple(key for key in compared if key in then and key in now and then[key] != now[key])


def _beginnings(i: int, node: PackedNode, fleet: PackedFleet) -> dict[int, float]:
    """By job of a node, the start of its first run in seconds since 1970; 0 if unknown."""
    out: dict[int, float] = {}
    for quantity in fleet.quantities:
        for job, rows in quantity.rows.get(i, {}).items():
            known = [at.timestamp() for at in (moment(quantity.started[row]) for row in rows) if at is not None]
            first = min(known, default=0.0)
            out[job] = min(filter(None, (out.get(job, 0.0), first)), default=0.0)
    return out
