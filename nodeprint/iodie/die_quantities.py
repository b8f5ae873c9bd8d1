"""The parts of I/O dies as quantities of a fleet: what each costs in every run of every node, for the judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nodeprint.errors import CannotWriteError, NodeprintError
from nodeprint.fleet import job_parts
from nodeprint.fleet.quantity import Quantity, models
from nodeprint.iodie import campaign_dies, part_comparison
from nodeprint.iodie.analysis import NodeDies
from nodeprint.iodie.part_comparison import Judged
from nodeprint.packed import PackedFleet


def with_dies(fleet: PackedFleet, campaign: Path) -> PackedFleet:
    """The fleet with the parts of its nodes' I/O dies, itself where fewer than two nodes have the same map.

    Nodes with other maps than most have none of these quantities. Raises CannotWriteError.
    """
    try:
        found = campaign_dies.read(campaign).nodes
    except CannotWriteError:
        raise
    except NodeprintError:
        return fleet
    same = part_comparison.alike([node for node in found if all(die.sites is not None for die in node.dies)])
    return with_parts(fleet, same)


def with_parts(fleet: PackedFleet, nodes: Sequence[NodeDies]) -> PackedFleet:
    """The fleet with the parts of nodes whose dies are alike, itself where fewer than two of them were measured."""
    number = {node.name: i for i, node in enumerate(fleet.nodes) if node.state == "measured"}
    known = [node for node in nodes if node.node in number]
    if len(known) < 2:
        return fleet
    return replace(fleet, quantities=(*fleet.quantities, *_quantities(known, fleet, number)))


def judged(verdict: Mapping[str, Any]) -> Judged:
    """What a verdict, as verdict.json has it, says of the parts of dies."""
    names = set(part_comparison.QUANTITY.values())
    findings = {
        node: {
            str(one["where"].get("part", one["measurement"])): str(one["text"])
            for one in told["findings"]
            if one["measurement"] in names
        }
        for node, told in verdict["nodes"].items()
    }
    terms = {models()[name].term for name in names}
    limits = verdict["fleet"].get("smallest_effect", {}).items()
    return Judged(findings, {term: share for term, share in limits if term in terms and share is not None})


def _quantities(nodes: Sequence[NodeDies], fleet: PackedFleet, number: Mapping[str, int]) -> Iterator[Quantity]:
    """The parts of nodes whose dies are alike, by the runs of each."""
    known = part_comparison.shared(nodes)
    rows = [(at, row, run) for at, node in enumerate(nodes) for row, run in enumerate(node.costs.runs)]
    rows.sort(key=lambda one: (number[nodes[one[0]].node], _of(one[2])))
    values = np.array([[nodes[at].costs.by_run[row, places[at]] for _, places in known] for at, row, _ in rows])
    job, run = np.array([_of(name) for *_, name in rows]).T
    node = np.array([number[nodes[at].node] for at, *_ in rows])
    began = _began(fleet, nodes[0].measurement)
    for name in dict.fromkeys(part_comparison.QUANTITY.values()):
        mine = sorted(
            (part_comparison.part_name(nodes[0].level, key), i)
            for i, (key, _) in enumerate(known)
            if part_comparison.QUANTITY[key[0]] == name
        )
        if mine:
            words, columns = zip(*mine, strict=True)
            yield Quantity(
                name, nodes[0].measurement, "die", models()[name].value, models()[name],
                job_parts.machine(nodes[0].topology).layout, {"part": np.arange(len(words))},
                values[:, None, list(columns)].astype(np.float32), node, job, run,
                tuple(began.get(one, "") for one in zip(node.tolist(), job.tolist(), run.tolist(), strict=True)),
                np.zeros(len(rows)), {"part": tuple(words)},
            )  # fmt: skip


def _of(run: str) -> tuple[int, int]:
    """Job and run of a name such as job1/run2."""
    job, _, number = run.partition("/")
    return int(job.removeprefix("job")), int(number.removeprefix("run"))


def _began(fleet: PackedFleet, measurement: str) -> dict[tuple[int, int, int], str]:
    """When the runs of a measurement began, by node, job and run."""
    return {
        (node, job, run): time
        for one in fleet.quantities
        if one.measurement == measurement
        for node, job, run, time in zip(one.node.tolist(), one.job.tolist(), one.run.tolist(), one.started, strict=True)
    }
