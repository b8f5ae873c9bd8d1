"""The groups that are found in a matrix in one sentence: how many, of how many cores, and what a hop takes in and
between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from nodeprint.machine.topology.level_names import level_name
from nodeprint.report import names
from nodeprint.report.text import changed
from nodeprint.settings.texts import say
from nodeprint.structure.found import FoundLevel, PairClass, Structure, sizes_text


def summary(structure: Structure) -> str:
    """The sentence; empty where no groups of cores are found."""
    levels = [level for level in structure.levels if level.name != "smt"]
    if not levels:
        return ""
    finest, coarsest = levels[0], levels[-1]
    clauses = [_clause(finest.within, "inside")]
    for finer, level in pairwise(levels):
        if finer is not finest:
            clauses.append(_clause(level.within, "between", finer))
        else:
            clauses.append(_clause(level.within, "across" if level.name == "socket" else "across_in", level))
    clauses.append(_clause(coarsest.between, "across" if len(levels) == 1 else "between", coarsest))
    home = any(finding.id == "home-artefact" for finding in structure.findings)
    figures = ", ".join(filter(None, clauses))
    return say(
        "structure", "home" if home else "groups", groups=_groups(structure, finest), figures=figures, **changed()
    )


def _groups(structure: Structure, level: FoundLevel) -> str:
    """`12 groups of 8 cores`, CPUs where no threads of cores are found, and how many are in none."""
    smt = structure.level("smt")
    core_of = {cpu: core for core, cpus in enumerate(smt.groups if smt else ()) for cpu in cpus}
    cores = [tuple({core_of.get(cpu, cpu) for cpu in group}) for group in level.groups]
    several = [group for group in cores if len(group) > 1]
    alone = len(cores) - len(several)
    unit = "core" if smt else "CPU"  # threads of a core that are not nearest to each other are not found
    groups = say(
        "structure", "count", groups=names.counted(len(several), "group"), cores=sizes_text(several), unit=unit
    )
    return groups + (say("structure", "alone", cores=names.counted(alone, unit)) if alone else "")


def _clause(classes: Sequence[PairClass], place: str, level: FoundLevel | None = None) -> str:
    """What the pairs of a place take: one figure, or that of each part and how many times the fastest the slowest
    is."""
    if not classes:
        return ""
    where = say("structure", place, level=level_name(level.name) if level else "")
    first, *others = [f"{names.quantity(pairs.median_ns, 'ns')}{_component(pairs)}" for pairs in classes]
    if not others:
        return f"{first} {where}"
    medians = [pairs.median_ns for pairs in classes]
    times = say("structure", "times", times=f"{max(medians) / min(medians):.1f}")
    return f"{where} {names.listed([first, *others])} {times}"


def _component(pairs: PairClass) -> str:
    kind = "kinds" if "cores" in pairs.part else "halves" if pairs.part.endswith("half") else "components"
    return " " + say("structure", kind, component=pairs.part) if pairs.part else ""
