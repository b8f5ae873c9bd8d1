"""The topology of the live system or of captured files: a root, a survey, lstopo's XML or CPUID dumps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nodeprint.machine.topology import cpuid, hwloc_xml, likwid, sysfs
from nodeprint.machine.topology.label import label
from nodeprint.machine.topology.model import Topology
from nodeprint.machine.tree import Tree


def read(tree: Tree) -> Topology:
    """The topology of the live system, a captured root or a survey, with a warning where likwid-topology differs.

    Raises NodeprintError where it lists no CPU.
    """
    topology = label(sysfs.read(tree))
    said = tuple(likwid.warnings(topology, tree.read_text(likwid.PATH) or ""))
    return replace(topology, warnings=(*topology.warnings, *said)) if said else topology


def read_xml(path: Path) -> Topology:
    """The topology in an lstopo XML. Raises NodeprintError naming the file."""
    return label(hwloc_xml.read(path))


def read_cpuid(path: Path) -> Topology:
    """Topology from a directory or archive of CPUID dumps, one per CPU. Raises NodeprintError naming file and line."""
    return label(cpuid.read(path))
