"""What was measured in hwloc's own words: the node's XML with distances between PUs and attributes of its memory.

As `hwloc-annotate` writes them, so that lstopo shows them and `hwloc_distances_get` and `hwloc_memattr_get_value` find
them: hops between CPUs as distances called `nodeprint-hop-ps` in picoseconds (hwloc has whole numbers alone), the
latency of memory in ns from each CPU, and its bandwidth in MiB/s from the CPUs of each NUMA node.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from nodeprint import files
from nodeprint.campaign import node_sheet
from nodeprint.cards.card import TENTH_NS, Matrix
from nodeprint.cards.of_campaign import Measured
from nodeprint.data.store import store
from nodeprint.errors import NodeprintError

#: In a survey, and what is written beside a node's jobs.
_SURVEYED, WRITTEN = "nodeprint/lstopo.xml", "hwloc.xml"
#: hwloc.h, hwloc_distances_kind_e: from the user, of latencies.
_KIND = 0x2 | 0x4
#: hwloc has these two attributes and no other, each of which is one measurement here.
#: hwloc/memattrs.h: higher first and lower first, both with initiators.
_BANDWIDTH, _LATENCY = ("Bandwidth", "5"), ("Latency", "6")
_MIB = float(1 << 20)

#: The CPUs (hwloc's cpuset), the NUMA node, and the value of an attribute.
Value = tuple[str, int, int]


def export(campaign: Path) -> list[Path]:
    """Write hwloc.xml into the folder of each measured node; returns the paths.

    Raises NodeprintError where a survey has no XML of lstopo, or where nothing was measured.
    """
    out = []
    for row in node_sheet.read_sheet(campaign / "nodes.tsv"):
        folder = campaign / "nodes" / row.node
        if folder.is_dir():
            out.append(files.write(folder / WRITTEN, annotated(folder, Measured(campaign, row.node))))
    if not out:
        raise NodeprintError("no node was measured", where=campaign, advice="measure it first")
    return out


def annotated(folder: Path, measured: Measured) -> bytes:
    """The XML of a node's survey with what was measured. Raises NodeprintError where there is none."""
    survey = store.tree(folder)
    surveyed = survey.read_bytes(_SURVEYED) if survey is not None else None
    advice = "install hwloc on the node and measure it again"
    if surveyed is None:
        raise NodeprintError("its survey has no XML of lstopo", where=folder, advice=advice)
    try:
        root = ET.fromstring(surveyed)
    except ET.ParseError as error:
        raise NodeprintError("the XML of lstopo in its survey is not XML", where=folder, advice=advice) from error
    nodes = {
        int(element.get("os_index", -1)): element
        for element in root.iter("object")
        if element.get("type") == "NUMANode"
    }
    cpus = {int(element.get("os_index", -1)) for element in root.iter("object") if element.get("type") == "PU"}
    matrix = measured.card.matrix
    if matrix is not None and len(matrix.places.cpus) > 1 and cpus.issuperset(matrix.places.cpus):
        root.append(_distances(matrix))
    for (name, flags), values in ((_BANDWIDTH, _bandwidths(measured, nodes)), (_LATENCY, _latencies(measured))):
        on_nodes = [(initiator, nodes[node], value) for initiator, node, value in values if node in nodes]
        if on_nodes:
            root.append(_attribute(name, flags, on_nodes))
    ET.indent(root)
    head = b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
    return head + ET.tostring(root) + b"\n"


def _distances(matrix: Matrix) -> ET.Element:
    """Hops between PUs in ps; 0 where nothing was measured and on the diagonal."""
    cpus = matrix.places.cpus
    tenths = np.nan_to_num(np.rint(matrix.latency_ns / TENTH_NS)).astype(np.int64)
    picoseconds = (tenths * 100).ravel().tolist()
    out = ET.Element(
        "distances2", type="PU", nbobjs=str(len(cpus)), kind=str(_KIND), name="nodeprint-hop-ps", indexing="os"
    )
    for name, numbers in (("indexes", cpus), ("u64values", picoseconds)):
        text = "".join(f"{number} " for number in numbers)
        ET.SubElement(out, name, length=str(len(text))).text = text
    return out


def _attribute(name: str, flags: str, values: Iterable[tuple[str, ET.Element, int]]) -> ET.Element:
    out = ET.Element("memattr", name=name, flags=flags)
    for initiator, node, value in values:
        ET.SubElement(
            out,
            "memattr_value",
            target_obj_type="NUMANode",
            target_obj_gp_index=node.get("gp_index", ""),
            value=str(value),
            initiator_cpuset=initiator,
        )
    return out


def _latencies(measured: Measured) -> Iterator[Value]:
    """ns from each CPU to each NUMA node."""
    for place, value in _places(measured, "chase-latency"):
        cpu = _number(measured, "cpu", place["cpu"])
        yield cpuset([cpu]), _number(measured, "node", place["memory_node"]), round(value)


def _bandwidths(measured: Measured, nodes: dict[int, ET.Element]) -> Iterator[Value]:
    """MiB/s that the CPUs of each NUMA node read from each."""
    for place, value in _places(measured, "bandwidth-nodes"):
        cpu_node = _number(measured, "node", place["cpu_node"])
        if place.get("stream") == "load" and place.get("pages", "huge") == "huge" and cpu_node in nodes:
            initiator = nodes[cpu_node].get("cpuset", "0x0")
            yield initiator, _number(measured, "node", place["memory_node"]), round(value / _MIB)


def _places(measured: Measured, measurement: str) -> Iterator[tuple[dict[str, int | str], float]]:
    """The places of a measurement with their values, the mean over runs."""
    for reduced in measured.reduced:
        if reduced.quantity.measurement == measurement:
            rows = reduced.quantity.newest_rows[measured.number]
            values = np.asarray(reduced.level[rows], dtype=np.float64).mean(axis=0)
            for number, value in enumerate(values.tolist()):
                if np.isfinite(value):
                    yield reduced.quantity.place(number), value


def _number(measured: Measured, kind: str, place: int | str) -> int:
    """The system's number of a CPU or NUMA node by its place."""
    return measured.node.numbers[kind][int(place)]


def cpuset(cpus: Iterable[int]) -> str:
    """CPUs as hwloc writes them: hexadecimal words of 32, the highest first."""
    mask = sum(1 << cpu for cpu in set(cpus))
    words = []
    while mask:
        words.append(f"0x{mask & 0xFFFFFFFF:08x}")
        mask >>= 32
    return ",".join(reversed(words)) or "0x0"
