"""A matrix of pairs in sentences: the groups found in it, where to pin threads, and how quadrants differ."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import CCX, QUADRANT, SOCKET, THREAD, Layout, codes
from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.level_names import level_name
from nodeprint.report import names, text
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.figures.part_levels import structure_at
from nodeprint.report.text import changed
from nodeprint.settings.texts import say
from nodeprint.stats.robust import median_of_passes
from nodeprint.structure import quadrants
from nodeprint.structure.found import FoundLevel, PairClass, Structure, sizes_text
from nodeprint.structure.placement import extreme_pairs, rooms
from nodeprint.structure.quadrants import LevelDifference, QuadrantBlocks, SocketDie

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.int64]
#: Settings on the kernel's command line that keep other work off CPUs.
_ISOLATION = ("isolcpus", "nohz_full", "rcu_nocbs")

# --- groups found in a matrix ---


def structure_summary(structure: Structure) -> str:
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
    count = names.counted(len(several), "group")
    groups = say("structure", "count", groups=count, cores=sizes_text(several), unit=unit)
    return groups + (say("structure", "alone", cores=names.counted(alone, unit)) if alone else "")


def _clause(classes: Sequence[PairClass], place: str, level: FoundLevel | None = None) -> str:
    """Return the latency of the pairs of a place: one value, or one per component and the slowest-to-fastest ratio."""
    if not classes:
        return ""
    where = say("structure", place, level=level_name(level.name) if level else "")
    in_words = []
    for pairs in classes:
        kind = "kinds" if "cores" in pairs.part else "halves" if pairs.part.endswith("half") else "components"
        of = f" {say('structure', kind, component=pairs.part)}" if pairs.part else ""
        in_words.append(f"{names.quantity(pairs.median_ns, 'ns')}{of}")
    first, *others = in_words
    if not others:
        return f"{first} {where}"
    medians = [pairs.median_ns for pairs in classes]
    times = say("structure", "times", times=f"{max(medians) / min(medians):.1f}")
    return f"{where} {names.listed([first, *others])} {times}"


# --- where to pin threads ---


def placement_sentences(
    matrix: Floats, cpus: Sequence[int], groups: Mapping[str, Sequence[Sequence[int]]]
) -> list[str]:
    """Describe where threads fit, and the lowest and the highest pair."""
    out, fits, of_rooms = list[str](), rooms(matrix, cpus, groups), list[str]()
    for number, room in enumerate(fits if len(fits) > 1 else ()):
        times = say("placement", "times", times=f"{room.median_ns / fits[0].median_ns:.1f}") if number else ""
        values = {"threads": str(len(room.cpus)), "component": room.name, "cpus": list_text(room.cpus), "times": times}
        key = "room" if number + 1 < len(fits) else "all"
        of_rooms.append(say("placement", key, level=names.duration(room.median_ns), **values))
    if of_rooms:
        out.append(say("placement", "pin", rooms="; ".join(of_rooms)))
    if pairs := extreme_pairs(matrix, cpus):
        values = {"low": names.duration(pairs.low_ns), "high": names.duration(pairs.high_ns)}
        of_pairs = {key: names.listed(map(str, getattr(pairs, key))) for key in ("low", "high")}
        out.append(say("placement", "ends", **values, low_pair=of_pairs["low"], high_pair=of_pairs["high"]))
    return out


def placement_of_node(levels: NodeLevels, node: str, fingerprint: Mapping[str, object]) -> list[str]:
    """Describe placement by latency at the first home, by labels or detected groups, and CPU isolation settings."""
    quantity = levels.quantity
    if quantity.quantity != "hop" or len(quantity.layout.slots) < 3:
        return []
    matrix, drawn = levels.square(levels.of(node)), levels.slots
    cpus, structure = levels.cpus(node, drawn), structure_at(levels, node)
    if structure is not None:
        sentences = placement_of_structure(matrix, cpus, structure)
    else:
        sentences = _of_labels(matrix, cpus, quantity.layout, drawn)
    is_known = bool(fingerprint.get("cmdline") or fingerprint.get("governor"))
    return [*sentences, isolation(fingerprint)] if sentences and is_known else sentences


def _of_labels(matrix: Floats, cpus: Sequence[int], layout: Layout, drawn: Ints) -> list[str]:
    first = np.flatnonzero(layout.slots[drawn, THREAD] == layout.slots[drawn, THREAD].min())
    slots, kept = layout.slots[drawn[first]], [cpus[row] for row in first.tolist()]
    groups: dict[str, list[list[int]]] = {}
    for column in (CCX, QUADRANT, SOCKET):
        if slots[:, column].min(initial=0) >= 0:
            kinds = codes(slots[:, : column + 1])
            members = [[kept[n] for n in np.flatnonzero(kinds == kind)] for kind in range(int(kinds.max()) + 1)]
            groups[level_name(layout.levels[column])] = members
    return placement_sentences(matrix[np.ix_(first, first)], kept, groups)


def isolation(fingerprint: Mapping[str, object]) -> str:
    """Describe the current settings that keep other work off CPUs: isolcpus, nohz_full, governor."""
    words = dict(re.findall(r"(\w+)=(\S+)", str(fingerprint.get("cmdline", ""))))
    settings = [f"{key} {words.get(key, 'not set')}" for key in _ISOLATION[:2]]
    settings += [f"{key} {words[key]}" for key in _ISOLATION[2:] if key in words]
    governor = str(fingerprint.get("governor") or "not reported")
    return say("placement", "isolation", found=", ".join([*settings, f"governor {governor}"]))


def placement_of_structure(matrix: Floats, cpus: Sequence[int], structure: Structure) -> list[str]:
    """The sentences of a matrix by the groups that were found in it, one CPU of each core."""
    smt = structure.level("smt")
    first = {cpu for group in smt.groups for cpu in group[:1]} if smt is not None else set(cpus)
    rows = [number for number, cpu in enumerate(cpus) if cpu in first]
    kept = [cpus[number] for number in rows]
    groups = {
        level_name(level.name): [[cpu for cpu in group if cpu in first] for group in level.groups]
        for level in structure.levels
        if level.name != "smt"
    }
    both = np.fmin(matrix, matrix.T)[np.ix_(rows, rows)]
    return placement_sentences(both, kept, groups)


# --- quadrants ---


def quadrant_blocks(levels: NodeLevels, node: str) -> QuadrantBlocks | None:
    """The blocks of a node at the first home of the measurement; None without two known quadrants."""
    quantity = levels.quantity
    number = list(quantity.newest_rows)[levels.rows[node]]
    rows = [row for of_job in quantity.rows[number].values() for row in of_job]
    values = median_of_passes(np.stack([np.asarray(quantity.values[row]) for row in rows]))
    at_first_home = np.asarray(values[:, : len(quantity.pairs)], dtype=np.float64)
    return quadrants.of_pairs(at_first_home, quantity.layout.slots, quantity.pairs)


def quadrants_of_node(levels: NodeLevels, node: str) -> list[str]:
    """Return the sentences of a node; empty without two known quadrants."""
    if (crossing := quadrant_blocks(levels, node)) is None:
        return []
    return quadrant_sentences(crossing, level_name(levels.quantity.layout.levels[QUADRANT]))


def quadrant_sentences(blocks: QuadrantBlocks, component: str = "quadrant") -> list[str]:
    """Describe each socket: each `component`, its partner and others, the slowest path to other sockets, and
    differences."""
    out = []
    for die in quadrants.dies(blocks):
        pairs, in_words = ", ".join(f"{a} and {b}" for a, b in die.partners), []
        ends = {of.first: of.first_ns for of in die.inside} | {of.second: of.second_ns for of in die.inside}
        for name, level in ends.items():  # own, partner and others, as far as they are there
            key = name if name in ("own", "partner") else "others" if die.partners else "all_others"
            of_name = say("quadrants", "sets", key, component=component, pairs=pairs)
            in_words.append(f"{of_name} {names.duration(level)}")
        if levels := ", ".join(in_words):
            sentences_of_die = " ".join((*_inside(die, component), *_paths(die, blocks)))
            out.append(f"{say('quadrants', 'levels', socket=die.socket, levels=levels)} {sentences_of_die}".strip())
        if die.outside is not None and die.across is not None:
            both = (say("quadrants", "briefly", key, component=component) for key in ("others", "sockets"))
            out.append(" ".join((_outside(die, die.outside, component), *_compared(die.across, *both))))
    if out and len(blocks.values) < 2:
        out.append(say("quadrants", "one_run"))
    return out


def _inside(die: SocketDie, component: str) -> Iterator[str]:
    for difference in die.inside:
        first, second = (
            say("quadrants", "briefly", name if die.partners or name == "own" else "all_others", component=component)
            for name in (difference.first, difference.second)
        )
        yield from _compared(difference, first, second)
    if die.faster_than_own and not die.partners:
        of = "every" if die.faster_than_own == die.quadrants else names.listed(map(str, die.faster_than_own))
        key = "faster_every" if of == "every" else "faster_some"
        yield say("quadrants", key, component=component, of=of, change=text.change(-1.0, ""))


def _compared(difference: LevelDifference, first: str, second: str) -> Iterator[str]:
    if math.isnan(difference.half_ns):
        return
    if not difference.is_apart:
        most = names.duration(difference.most_ns)
        yield text.sentence(say("quadrants", "alike", first=first, second=second, most=most))
        return
    values = {"first": first, "second": second, "by": names.duration(abs(difference.ns))}
    key = "more" if difference.ns > 0 else "less"
    yield text.sentence(say("quadrants", key, interval=_interval(difference), **values))


def _paths(die: SocketDie, blocks: QuadrantBlocks) -> Iterator[str]:
    for key, paths in (("least", die.fastest), ("most", die.slowest)):
        if paths and not die.partners:
            level = float(np.mean([blocks.medians[blocks.ends.index(path)] for path in paths]))
            ends = names.listed(f"{a} to {b}" for a, b in paths)
            yield say("quadrants", "paths", word=say("change", "time", key), ends=ends, level=names.duration(level))


def _outside(die: SocketDie, difference: LevelDifference, component: str) -> str:
    if difference.is_apart:
        several, by = len(die.far) > 1, names.duration(difference.ns)
        values = {key: names.listed(map(str, of)) for key, of in (("near", die.near), ("far", die.far))}
        ends = (("near_level", difference.first_ns), ("far_level", difference.second_ns))
        values |= {key: names.duration(level) for key, level in ends} | text.changed(several=several)
        of = f"{component}s" if several else component
        return say(
            "quadrants", "outside", socket=die.socket, component=of, by=by, interval=_interval(difference), **values
        )
    level = float(np.average([difference.first_ns, difference.second_ns], weights=[len(die.near), len(die.far)]))
    words = [say("quadrants", "outside_level", socket=die.socket, level=names.duration(level))]
    if not math.isnan(difference.half_ns):
        words.append(say("quadrants", "outside_alike", component=component, most=names.duration(difference.most_ns)))
    return " ".join(words)


def _interval(difference: LevelDifference) -> str:
    """The interval of a difference's size, both ends in the unit of the larger."""
    low, high = abs(difference.ns) - difference.half_ns, difference.most_ns
    size, unit = names.shown_unit(high, "ns")
    return f"{low / size:.1f} to {high / size:.1f} {unit}"
