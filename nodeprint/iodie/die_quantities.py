"""The parts of I/O dies as quantities of a fleet: what each costs in every run of every node, for the judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from nodeprint import records, run_files
from nodeprint.errors import NodeprintError
from nodeprint.fleet import jobs, parts
from nodeprint.fleet.quantity import Quantity, models
from nodeprint.iodie import campaign_dies, node_lines, part_comparison
from nodeprint.iodie.analysis import NodeDies
from nodeprint.iodie.listing import part_name
from nodeprint.packed import PackedFleet

#: Which quantity (nodeprint/derived.yaml) has the parts of a kind.
_OF_KIND = {"end": "die-ports", "link": "die-ports", "way": "die-ways", "share": "die-lines"}


def with_dies(fleet: PackedFleet, campaign: Path) -> PackedFleet:
    """The fleet with the parts of its nodes' I/O dies, itself where its first node was measured without --detail or
    fewer than two nodes have the same map. Nodes with other maps than most have none of these quantities."""
    first = next((node.name for node in fleet.nodes if node.state == "measured"), None)
    if first is None or not _has_lines(campaign / "nodes" / first):
        return fleet
    try:
        found = campaign_dies.read(campaign).nodes
    except NodeprintError:
        return fleet
    alike = part_comparison.alike([node for node in found if all(die.sites is not None for die in node.dies)])
    number = {node.name: i for i, node in enumerate(fleet.nodes) if node.state == "measured"}
    alike = [node for node in alike if node.node in number]
    if len(alike) < 2:
        return fleet
    return replace(fleet, quantities=(*fleet.quantities, *_quantities(alike, fleet, number)))


def _has_lines(node_dir: Path) -> bool:
    """Whether a node has records, and the first that a map could be made of has the values of lines."""
    for folder in jobs.folders(node_dir) if node_dir.is_dir() else ():
        for path, raw in run_files.contents(folder, []):
            if path.name.split(".")[0] in node_lines.MEASUREMENTS:
                with suppress(NodeprintError):
                    return bool(records.read_detail(path, raw=raw).ns.size)
    return False


def _quantities(nodes: Sequence[NodeDies], fleet: PackedFleet, number: Mapping[str, int]) -> Iterator[Quantity]:
    """The parts of nodes whose dies are alike, by the runs of each."""
    known, value, _ = part_comparison.shared(nodes)
    runs = part_comparison.by_run(nodes, known, value)
    rows = [(at, row, run) for at, node in enumerate(nodes) for row, run in enumerate(part_comparison.runs_of(node))]
    rows.sort(key=lambda one: (number[nodes[one[0]].node], _of(one[2])))
    at, row = np.array([one[:2] for one in rows]).T
    job, run = np.array([_of(name) for *_, name in rows]).T
    node = np.array([number[nodes[one].node] for one in at])
    level = nodes[0].dies[0].tensor.level
    began = _began(fleet, nodes[0].measurement)
    for name in dict.fromkeys(_OF_KIND.values()):
        mine = sorted((part_name(level, key), i) for i, key in enumerate(known) if _OF_KIND[key[0]] == name)
        if mine:
            words, columns = zip(*mine, strict=True)
            yield Quantity(
                name, nodes[0].measurement, "die", models()[name].value, models()[name],
                parts.machine(nodes[0].topology).layout, {"part": np.arange(len(words))},
                runs[at, row][:, None, list(columns)].astype(np.float32), node, job, run,
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
