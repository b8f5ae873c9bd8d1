"""Figures of a node in hwloc's own words: the XML of its survey with distances between PUs and attributes of memory.

They are written as by `hwloc-annotate`, so lstopo, `hwloc_distances_get` and `hwloc_memattr_get_value` find them.
Core-to-core latencies are the distances `nodeprint-hop-ps`, in picoseconds because hwloc has whole numbers only. Memory
has its latency in ns from each CPU, and its bandwidth in MiB/s from the CPUs of each NUMA node.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from nodeprint.data.store import store
from nodeprint.errors import NodeprintError

_SURVEYED = "nodeprint/lstopo.xml"
#: hwloc.h, hwloc_distances_kind_e: from the user, of latencies.
_KIND = 0x2 | 0x4
#: The two attributes that hwloc has; hwloc/memattrs.h: higher first and lower first, both with initiators.
_FLAGS = {"Bandwidth": "5", "Latency": "6"}

#: CPUs (`cpuset`), a NUMA node, and the value of an attribute from these to that.
Value = tuple[str, int, int]


def surveyed(node_dir: Path) -> ET.Element:
    """The XML of lstopo in the newest survey of a node, to which figures are added. Raises NodeprintError where there
    is none."""
    survey = store.tree(node_dir)
    content = survey.read_bytes(_SURVEYED) if survey is not None else None
    advice = "install hwloc on the node and measure it again"
    if content is None:
        raise NodeprintError("its survey has no XML of lstopo", where=node_dir, advice=advice)
    try:
        return ET.fromstring(content)
    except ET.ParseError as error:
        problem = "the XML of lstopo in its survey is not XML"
        raise NodeprintError(problem, where=node_dir, advice=advice) from error


def _by_number(root: ET.Element, kind: Literal["PU", "NUMANode"]) -> dict[int, ET.Element]:
    """The CPUs or NUMA nodes by their OS number."""
    return {int(item.get("os_index", -1)): item for item in root.iter("object") if item.get("type") == kind}


def cpus_of(root: ET.Element, node: int) -> str | None:
    """The CPUs of a NUMA node; None where it is not known."""
    nodes = _by_number(root, "NUMANode")
    return nodes[node].get("cpuset", "0x0") if node in nodes else None


def add_distances(root: ET.Element, cpus: Sequence[int], picoseconds: Iterable[int]) -> None:
    """Add the latencies between CPUs, row by row, 0 if not measured; add nothing unless all CPUs are known."""
    if len(cpus) < 2 or not _by_number(root, "PU").keys() >= set(cpus):
        return
    added = ET.SubElement(
        root,
        "distances2",
        type="PU",
        nbobjs=str(len(cpus)),
        kind=str(_KIND),
        name="nodeprint-hop-ps",
        indexing="os",
    )
    for name, numbers in (("indexes", cpus), ("u64values", picoseconds)):
        text = "".join(f"{number} " for number in numbers)
        ET.SubElement(added, name, length=str(len(text))).text = text


def add_attribute(root: ET.Element, name: Literal["Bandwidth", "Latency"], values: Iterable[Value]) -> None:
    """Add an attribute (MiB/s, ns) of the NUMA nodes that are known."""
    nodes = _by_number(root, "NUMANode")
    on_nodes = [(cpus, nodes[node], value) for cpus, node, value in values if node in nodes]
    if not on_nodes:
        return
    added = ET.SubElement(root, "memattr", name=name, flags=_FLAGS[name])
    for cpus, node, value in on_nodes:
        ET.SubElement(
            added,
            "memattr_value",
            target_obj_type="NUMANode",
            target_obj_gp_index=node.get("gp_index", ""),
            value=str(value),
            initiator_cpuset=cpus,
        )


def document(root: ET.Element) -> bytes:
    """The XML as a file."""
    ET.indent(root)
    head = b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
    return head + ET.tostring(root) + b"\n"


def cpuset(cpus: Iterable[int]) -> str:
    """CPUs as hwloc writes them: hexadecimal words of 32, the highest first."""
    mask = sum(1 << cpu for cpu in set(cpus))
    words = []
    while mask:
        words.append(f"0x{mask & 0xFFFFFFFF:08x}")
        mask >>= 32
    return ",".join(reversed(words)) or "0x0"
