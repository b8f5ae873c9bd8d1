"""The outcome of a fleet in words: how many nodes are the same within what, what was not resolved, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from nodeprint import outcomes
from nodeprint.fingerprint import label
from nodeprint.fleet.quantity import models
from nodeprint.judge import configuration, decision
from nodeprint.judge.judged import JudgedFleet
from nodeprint.judge.margins import worst
from nodeprint.judge.populations import Kind
from nodeprint.judge.terms import FAMILIES, Terms
from nodeprint.layout import CLASSES
from nodeprint.packed import PackedNode
from nodeprint.words import places
from nodeprint.words.node_outcome import LAYOUT
from nodeprint.words.outcome import GONE, Finding, FleetVerdict, MarginFigure, NodeVerdict, exceeded, said_within
from nodeprint.words.units import counted

#: Where more than this share of nodes have a configuration of their own, the key that separates them is reported.
_ALONE_SHARE = 0.05
#: Nodes with damaged records that are named with the reason.
_MOST_BROKEN = 3


def verdict(
    known: JudgedFleet, nodes: Mapping[str, NodeVerdict], more_tests: int, more_notes: Sequence[str]
) -> FleetVerdict:
    """The verdict of a fleet from those of its nodes, in the order of the fleet; `more_tests` are those of messages
    between nodes, `more_notes` what else is to be said."""
    found, groups = Counter(node.verdict for node in nodes.values()), _groups(known)
    counts = {outcome: found[outcome] for outcome in outcomes.NODE if found[outcome]}
    wide = _largest([kind.wide for kind in known.populations])
    measured = sum(node.state == "measured" for node in known.fleet.nodes)
    several = len(known.populations) > 1
    outcome = decision.of_fleet([node.verdict for node in nodes.values()], several=several, wide=bool(wide))
    margins = worst(node.margins for node in nodes.values() if outcomes.NODE[node.verdict].same)
    smallest = _largest([kind.smallest for kind in known.populations])
    bounds = _largest([kind.bounds for kind in known.populations])
    return FleetVerdict(
        outcome,
        _headline(outcome, measured, len(nodes), counts, margins) + _split_by(known, nodes, measured),
        tuple(groups),
        {**dict.fromkeys((*FAMILIES, "core", "node", "socket")), **smallest},
        bounds,
        {name: asdict(spread) for kind in known.populations[:1] for name, spread in kind.spreads.items()},
        counts,
        margins,
        known.tests + more_tests,
        known.rules.false_alarm * (bool(known.tests) + bool(more_tests)),
        (*_notes(known, nodes, wide, groups), *more_notes),
    )


def _split_by(known: JudgedFleet, nodes: Mapping[str, NodeVerdict], measured: int) -> str:
    """The key that separates nodes with a configuration of their own, where these are many."""
    own = outcomes.by("configured otherwise")
    single = [known.fleet.nodes[kind.nodes[0]].name for kind in known.kinds if len(kind.nodes) == 1]
    alone = [name for name in single if nodes[name].verdict == own]
    if len(known.kinds) < 2 or len(alone) <= _ALONE_SHARE * measured:
        return ""
    keys = Counter(label(d.key) for name in nodes for d in known.differing.get(name, ()) if d.hard)
    key = keys.most_common(1)[0][0] if keys else LAYOUT
    whose = "its" if len(alone) == 1 else "their"
    return f"; the fleet is split by {key}: {counted(len(alone), 'node')} with a configuration of {whose} own"


def _headline(
    outcome: str, measured: int, nodes: int, counts: Mapping[str, int], margins: Mapping[str, MarginFigure]
) -> str:
    """The fleet's outcome and, first of all, how many nodes are the same within what."""
    same = sum(n for name, n in counts.items() if outcomes.NODE[name].same)
    if same:
        as_what = "as their group " if counts.get("SAME AS GROUP") else ""
        are = "is" if same == 1 else "are"
        within = said_within(margins) or "the bounds of what is resolved"
        text = f"{outcome}: {same} of {nodes} nodes {are} the same {as_what}within {within}"
    else:
        text = f"{outcome}: {measured} of {nodes} nodes measured"
    others = {name: n for name, n in counts.items() if not outcomes.NODE[name].same}
    if not same and others.get(outcome) == 1:  # the outcome of an only node is the fleet's
        del others[outcome]
    return "; ".join(filter(None, (text, ", ".join(f"{n} {name}" for name, n in others.items()))))


def letter(number: int) -> str:
    """What a group is called."""
    return chr(ord("A") + number) if number < 26 else f"Z{number}"


def _groups(known: JudgedFleet) -> list[dict[str, Any]]:
    return [
        {
            "name": letter(k),
            "nodes": [known.fleet.nodes[i].name for i in kind.nodes.tolist()],
            "told_apart_by": places.part(*kind.separated_by, PackedNode("")) if kind.separated_by else "",
            "fields": _fields(known, kind),
        }
        for k, kind in enumerate(known.populations)
    ]


def _fields(known: JudgedFleet, kind: Kind) -> list[str]:
    """Fingerprint fields in which all nodes of a kind have one value, and no other node has it."""
    nodes, rules = known.fleet.nodes, known.rules
    inside = set(kind.nodes.tolist())
    mine = [configuration.normalised(nodes[i].fingerprint, rules) for i in sorted(inside)]
    others = [
        configuration.normalised(node.fingerprint, rules)
        for i, node in enumerate(nodes)
        if i not in inside and node.state == "measured"
    ]
    out = []
    for key, value in (mine[0] if mine else {}).items():
        if all(f.get(key) == value for f in mine) and others and all(key in f and f[key] != value for f in others):
            out.append(f"{key}={value}")
    return sorted(out)


def _notes(
    known: JudgedFleet, nodes: Mapping[str, NodeVerdict], wide: Mapping[str, float], groups: Sequence[Mapping[str, Any]]
) -> list[str]:
    notes = ["identical nodes may share the same fault: check their fingerprint and warnings"] if groups else []
    same = [node for node in nodes.values() if outcomes.NODE[node.verdict].same]
    open_ = Counter(name for node in same for name in exceeded(node.margins))
    notes += [f"not resolved within its bound on {counted(n, 'node')}: {name}" for name, n in sorted(open_.items())]
    notes += _broken(known)
    for name, chip in sorted(wide.items()):
        what = places.TESTED.get(name, name)
        notes.append(f"{what}: chips differ by {chip * 100:.1f} % (standard deviation), more than half of the bound")
    pairs = [one.matrix.terms for kind in known.populations for one in kind.pairs]
    if any(_no_core_inside(terms) for terms in pairs):
        notes.append("with two cores per CCX a core that is slow inside it is reported as its CCX")
    shared = Counter(
        deviation
        for node in nodes.values()
        if node.verdict in ("DEVIATES", "SUSPECT")
        for deviation in {
            _deviation(found) for found in node.findings if found.id != GONE and not found.term.startswith("fabric-")
        }
    )
    notes += [f"{count} nodes share a deviation: {what}" for what, count in sorted(shared.items()) if count > 1]
    for group in groups if len(groups) > 1 else ():
        by = f", separated by {group['told_apart_by']}" if group["told_apart_by"] else ""
        fields = [f"{label(key)} {value}" for key, _, value in (one.partition("=") for one in group["fields"])]
        said = f"; {', '.join(fields)}" if fields else ""
        notes.append(f"group {group['name']}: {len(group['nodes'])} nodes{by}{said}")
    return notes


def _broken(known: JudgedFleet) -> list[str]:
    """Nodes whose records cannot be used as they are."""
    broken = [(n.name, n.quality[0]) for n in known.fleet.nodes if n.state == "measured" and n.quality]
    notes = [f"{name}: {why}" for name, why in broken[:_MOST_BROKEN]]
    if len(broken) > _MOST_BROKEN:
        more = counted(len(broken) - _MOST_BROKEN, "more node")
        notes.append(f"records of {more} cannot be used as they are; their pages say why")
    return notes


def _no_core_inside(tested: Terms) -> bool:
    """Whether there are pairs inside CCXs, but none that name a core: with two cores there is one pair."""
    inside = tested.layout.classes == CLASSES.index("same CCX")
    return bool(inside.any()) and not len(tested.indices("core-in"))


def _deviation(found: Finding) -> str:
    """What deviates and how, in the same words on every node: without the OS's number of a CPU."""
    where = {key: value for key, value in found.where.items() if key != "cpu"}
    model = models().get(found.measurement)
    of_pairs = model is None or model.places == "pairs"
    place = places.spoken(found.term, where) if of_pairs else f"{found.measurement}, {places.of_labels(where)}"
    return f"{place or found.term} ({found.id.removeprefix(f'{found.term}-')})"


def _largest(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    out: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            out[name] = max(value, out.get(name, 0.0))
    return out
