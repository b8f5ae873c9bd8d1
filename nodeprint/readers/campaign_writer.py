"""An imported matrix as a campaign of records, which all that follows takes for a measured one."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nodeprint import files
from nodeprint.campaign import job_status, node_sheet
from nodeprint.campaign.job_status import JobStatus, RunOutcome
from nodeprint.campaign.node_sheet import Node
from nodeprint.data.format import integrity
from nodeprint.data.places.measured import IMPORTED_HOPS, UNKNOWN_NODE
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import serialized
from nodeprint.machine.topology.model import Topology
from nodeprint.readers import path_fields
from nodeprint.readers.tool_output import CoreMatrix, ToolOutput, ToolValue
from nodeprint.settings.measurements import measurements

Record = dict[str, Any]

#: The name of a record's value by its unit.
_RECORDED = {"ns": "latency_ns", "B/s": "bytes_per_s"}
#: Matrices of so many CPUs are not alike in all figures unless one is a copy of the other.
_SURELY_ITS_OWN = 8


def node_names(sources: Sequence[Path]) -> list[str]:
    """A node name for every file, by its name: letters, digits, `_` and `-`, each once."""
    names: list[str] = []
    for source in sources:
        base = re.sub(r"[^A-Za-z0-9_]+", "-", path_fields.stem(source.name)).strip("-")[:60].strip("-") or "node"
        name, number = base, 1
        while name in names:
            number += 1
            name = f"{base}-{number}"
        names.append(name)
    return names


def are_nodes(sources: Sequence[Path]) -> bool:
    """Whether the names of files state that each is of another node: a host's name is all that they differ in.

    Any other files, such as `run1.csv` and `run2.csv`, may be of one machine, whose runs would accuse each other.
    """
    if len(sources) == 1:
        return True
    try:
        stated = path_fields.read_paths([source.as_posix() for source in sources], "").values
    except NodeprintError:
        return False
    return len({axes["node"] for axes in stated.values()}) == len(sources)


def write_campaign(
    imported: Sequence[ToolOutput],
    campaign: Path,
    topologies: Topology | Sequence[Topology | None] | None = None,
    *,
    of_nodes: bool = True,
) -> list[str]:
    """Write every file as a node with one job of one run into the directory `campaign`; returns the nodes' names.

    `topologies` is one for all nodes or one each; it is stored in the job and gives the labels. `of_nodes` is whether
    each file is of another node; files that may be of one machine are not compared. Raises NodeprintError
    if the campaign exists already, nothing or a duplicate is given, or a topology lacks the matrix's CPUs.
    """
    if not imported:
        raise NodeprintError("no file to import", advice="name at least one")
    if (campaign / "nodes.tsv").exists() or (campaign / "nodes").exists():
        raise NodeprintError("holds a campaign already", where=campaign, advice="import into a new directory")
    _check_once(imported)
    each = topologies if isinstance(topologies, Sequence) else [topologies] * len(imported)
    for item, machine in zip(imported, each, strict=True):
        _check(item, machine)
    names = node_names([item.source for item in imported])
    sheet = []
    for name, item, machine in zip(names, imported, each, strict=True):
        job = campaign / "nodes" / name / "job1"
        written = _records(name, item, of_nodes=of_nodes)
        for measurement, records in written.items():
            _write(job / "run1" / f"{measurement}.jsonl.gz", records)
        if machine is not None:
            files.write(job / "topology.json", json.dumps(serialized.as_json(machine), indent=1) + "\n")
        cpus = len(item.cores.cpus) if item.cores else 0
        job_status.write(job, _status(name, cpus, list(written)))
        sheet.append(Node(name, name, cpus=cpus, state="imported", reason=f"from {item.source.name}", measure=False))
    node_sheet.write_sheet(campaign / "nodes.tsv", sheet)
    return names


def _check_once(imported: Sequence[ToolOutput]) -> None:
    """A copy would be judged as another node that is the same."""
    seen: dict[Path | bytes, Path] = {}
    for item in imported:
        own = item.cores is not None and len(item.cores.cpus) >= _SURELY_ITS_OWN
        figures = item.cores.ns.tobytes() if item.cores is not None and own else files.real(item.source)
        if figures in seen:
            advice = "name each measurement once"
            raise NodeprintError(f"has the same figures as {seen[figures]}", where=item.source, advice=advice)
        seen[figures] = item.source


def _check(item: ToolOutput, machine: Topology | None) -> None:
    """Raise NodeprintError where nothing can be written as a record, or a topology lacks CPUs of the matrix."""
    if item.cores is None and not any(map(_is_recorded, item.values)):
        raise NodeprintError(
            "no matrix of latencies or bandwidths", where=item.source, advice="give an output that has one"
        )
    if machine is None or item.cores is None:
        return
    machine_cpus = {cpu.cpu for cpu in machine.cpus}
    absent = [cpu for cpu in item.cores.cpus if cpu not in machine_cpus]
    if absent:
        raise NodeprintError(
            f"CPU {absent[0]} of the matrix is not in the topology, which has {len(machine_cpus)} CPUs",
            where=item.source,
            advice="give the topology of this machine, with the number of sockets and threads that it had",
        )
    if len(machine_cpus) != len(item.cores.cpus):
        raise NodeprintError(
            f"{len(item.cores.cpus)} CPUs, but the topology has {len(machine_cpus)}: which of them were measured is "
            "unknown",
            where=item.source,
            advice="give the sockets that the machine had (--sockets), and --no-smt where siblings were left out",
        )


def _records(node: str, item: ToolOutput, *, of_nodes: bool) -> dict[str, list[Record]]:
    """The records of each measurement, by its name."""
    header = {
        "record": "header",
        "schema": 1,
        "segment": 0,
        "host": node,
        "job": 1,
        "run": 1,
        "arguments": [],
        "passes": 1,
        "imported": {
            "format": item.tool,
            "source": item.source.name,
            "unknown": [*item.unknown, *([] if of_nodes else [UNKNOWN_NODE])],
            "notes": [*item.notes, *_left_out(item), *filter(None, [item.cores.differing if item.cores else ""])],
        },
    }
    out = {}
    if item.cores is not None:
        name, records = _pairs(header, item.cores)
        out[name] = records
    by_metric: dict[str, list[ToolValue]] = {}
    for value in item.values:
        if _is_recorded(value):
            by_metric.setdefault(value.metric, []).append(value)
    return out | dict(_cells(header, item, metric, values) for metric, values in by_metric.items())


def _left_out(item: ToolOutput) -> list[str]:
    """A note on each metric that no record has."""
    return [f"left out: {metric}" for metric in dict.fromkeys(v.metric for v in item.values if not _is_recorded(v))]


def _is_recorded(value: ToolValue) -> bool:
    """Whether records have such values: of a quantity of theirs, in one of their units."""
    return bool(value.quantity) and value.unit in _RECORDED


def _cells(header: Record, item: ToolOutput, metric: str, values: Sequence[ToolValue]) -> tuple[str, list[Record]]:
    """Name and records of a metric with a cell for each value. Raises NodeprintError if a place appears twice."""
    places = [value.place for value in values]
    if len({tuple(place.items()) for place in places}) < len(places):
        raise NodeprintError("the same table twice", where=item.source, advice="give the output of one run a file")
    kernel, operation, first = item.tool.rpartition("-")[2], metric.removeprefix(f"{item.tool}-"), values[0]
    name = _RECORDED[first.unit]
    cells: list[Record] = [
        {"record": "cell", **place, "pass": 0, name: value.value, "flags": []}
        for place, value in zip(places, values, strict=True)
    ]
    cells_header = header | {
        "kernel": kernel,
        "operation": operation,
        "quantity": first.quantity,
        "unit": first.unit,
        "cpus": [],
        "cells": {"dims": list(first.place), "values": {name: first.unit}},
    }
    trailer = {"record": "trailer", "elapsed_s": 0.0, "cells": len(cells), "complete": True}
    return f"{kernel}-{operation}", [cells_header, *cells, trailer]


def _pairs(header: Record, cores: CoreMatrix) -> tuple[str, list[Record]]:
    """Name and records of a core-to-core matrix; the two directions of a pair are averaged."""
    there, back = cores.ns, cores.ns.T
    both = np.where(np.isnan(back), there, np.where(np.isnan(there), back, (there + back) / 2))
    measured = np.argwhere(np.triu(~np.isnan(both), 1))
    pairs: list[Record] = []
    for i, j in measured:
        a, b = sorted((cores.cpus[i], cores.cpus[j]))
        ns = round(float(both[i, j]), 6)
        pairs.append({"record": "pair", "a": a, "b": b, "home": -1, "pass": 0, "latency_ns": ns, "flags": []})
    pairs_header = header | {
        "kernel": cores.kernel,
        "operation": cores.operation,
        "quantity": cores.quantity,
        "unit": "ns",
        "cpus": sorted(cores.cpus),
        "home": cores.home,
        **cores.facts,
    }
    beginning: list[Record] = [{"record": "pass", "pass": 0, "home": -1, "line_set": []}]
    trailer = {"record": "trailer", "elapsed_s": 0.0, "pairs": len(pairs), "complete": True}
    begin = beginning if cores.kernel == "coherence" else []
    return _measurement(cores), [pairs_header, *begin, *pairs, trailer]


def _measurement(cores: CoreMatrix) -> str:
    """The measurement of pairs that a matrix is of, by its kernel and operation."""
    for name, known in measurements().items():
        of_pairs = known.model is not None and known.model.places == "pairs"
        if of_pairs and (known.kernel, known.operation) == (cores.kernel, cores.operation):
            return name
    return IMPORTED_HOPS


def _write(path: Path, records: Sequence[Record]) -> None:
    *before, trailer = records
    text = integrity.sealed("".join(json.dumps(record) + "\n" for record in before), trailer)
    files.write(path, gzip.compress(text.encode(), mtime=0))


def _status(node: str, cpus: int, done: Sequence[str]) -> JobStatus:
    measurements = tuple(
        RunOutcome(name=name, run=1, outcome="done", exit_code=0, seconds=0.0, pinned_by="", message="imported")
        for name in done
    )
    return JobStatus(
        schema=1,
        node=node,
        host=node,
        job=1,
        started=None,
        ended=None,
        runs=1,
        outcome="complete",
        cpus_allowed=cpus,
        cpus_expected=cpus,
        simulated=False,
        imported=True,
        measurements=measurements,
    )
