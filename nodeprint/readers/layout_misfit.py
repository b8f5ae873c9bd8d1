"""Check that imported matrices have the layout of the stated topology."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodeprint.machine.topology.level_names import level_plural
from nodeprint.machine.topology.model import Topology
from nodeprint.readers.tool_output import ToolOutput
from nodeprint.settings.texts import say
from nodeprint.structure import find
from nodeprint.structure.found import Structure, sizes_text

#: Levels that a matrix shows surely, so that finer or coarser labels are wrong, too.
_SURE = ("smt", "ccx", "socket")


def warnings(imported: Sequence[ToolOutput], topology: Topology) -> Iterator[str]:
    """A sentence for each matrix in which the groups of a level are others than in the topology."""
    for item in imported:
        if item.cores is not None:
            structure = find(item.cores.ns, item.cores.cpus, topology)
            if text := next(_misfits(structure, topology), ""):
                yield say("layout_misfit", "warning", source=item.source, misfit=text)


def _misfits(structure: Structure, topology: Topology) -> Iterator[str]:
    """Yield, for each level whose groups differ from the topology's, both in words."""
    for item in structure.agreement:
        level, label_groups = structure.level(item.level), tuple(topology.groups(item.label).values())
        wrong = item.relation == "contradicts" or (item.relation in ("finer", "coarser") and item.level in _SURE)
        if level is not None and wrong:
            yield say(
                "layout_misfit",
                "groups",
                groups=len(level.groups),
                cpus=sizes_text(level.groups),
                labels=len(label_groups),
                parts=level_plural(item.label),
                of_cpus=sizes_text(label_groups),
            )
