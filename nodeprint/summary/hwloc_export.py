"""Export of core-to-core latency, memory latency and memory bandwidth as hwloc.xml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from nodeprint import files
from nodeprint.campaign import node_sheet
from nodeprint.data.export import hwloc
from nodeprint.errors import NodeprintError
from nodeprint.summary.measured_node import MeasuredNode
from nodeprint.summary.node_summary import TENTH_NS

#: What is written beside a node's jobs.
WRITTEN = "hwloc.xml"
_MIB = float(1 << 20)


def export(campaign: Path) -> list[Path]:
    """Write hwloc.xml into the directory of each measured node; returns the paths.

    Raises NodeprintError if a survey has no XML of lstopo, or if nothing was measured.
    """
    out = []
    for row in node_sheet.read_sheet(campaign / "nodes.tsv"):
        folder = campaign / "nodes" / row.node
        if folder.is_dir():
            out.append(files.write(folder / WRITTEN, annotated(folder, MeasuredNode(campaign, row.node))))
    if not out:
        raise NodeprintError("no node was measured", where=campaign, advice="measure it first")
    return out


def annotated(folder: Path, measured: MeasuredNode) -> bytes:
    """The XML of a node's survey with the measured values. Raises NodeprintError if there is none."""
    root = hwloc.surveyed(folder)
    matrix = measured.summary.matrix
    if matrix is not None:
        tenths = np.nan_to_num(np.rint(matrix.ns / TENTH_NS)).astype(np.int64)
        hwloc.add_distances(root, matrix.places.cpus, (tenths * 100).ravel().tolist())
    hwloc.add_attribute(root, "Bandwidth", _bandwidths(measured, root))
    hwloc.add_attribute(root, "Latency", _latencies(measured))
    return hwloc.document(root)


def _latencies(measured: MeasuredNode) -> Iterator[hwloc.Value]:
    """ns from each CPU to each NUMA node."""
    for place, value in _places(measured, "chase-latency"):
        cpu = _number(measured, "cpu", place["cpu"])
        yield hwloc.cpuset([cpu]), _number(measured, "node", place["memory_node"]), round(value)


def _bandwidths(measured: MeasuredNode, root: ET.Element) -> Iterator[hwloc.Value]:
    """MiB/s that the CPUs of each NUMA node read from each."""
    for place, value in _places(measured, "bandwidth-nodes"):
        cpu_node = _number(measured, "node", place["cpu_node"])
        cpus = hwloc.cpus_of(root, cpu_node)
        if place.get("stream") == "load" and place.get("pages", "huge") == "huge" and cpus is not None:
            yield cpus, _number(measured, "node", place["memory_node"]), round(value / _MIB)


def _places(measured: MeasuredNode, measurement: str) -> Iterator[tuple[dict[str, int | str], float]]:
    """The places of a measurement with their values, the mean over runs."""
    for reduced in measured.reduced:
        if reduced.measurement == measurement:
            rows = reduced.newest_rows[measured.number]
            values = np.asarray(reduced.level[rows], dtype=np.float64).mean(axis=0)
            for number, value in enumerate(values.tolist()):
                if np.isfinite(value):
                    yield reduced.place(number), value


def _number(measured: MeasuredNode, kind: str, place: int | str) -> int:
    """The system's number of a CPU or NUMA node by its place."""
    return measured.node.numbers[kind][int(place)]
