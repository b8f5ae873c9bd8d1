"""The pages of the cluster, from verdict.json. Nothing is judged here; keys that are absent are left off the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nodeprint.cells import models
from nodeprint.report import fabric, words
from nodeprint.report.node import ClassKey, advice, axis_ticks, class_medians, percent_reach
from nodeprint.report.pages import (
    Advice,
    ClusterPage,
    Facts,
    FleetClass,
    FleetTable,
    Mark,
    Method,
    NodeRow,
    Table,
    Unmeasured,
    mark,
)
from nodeprint.verdict import wording
from nodeprint.verdict.outcome import MOST_SINGLE, alike, told_once

#: From this many nodes on, those that are like the others are listed by name and value only.
MOST_ROWS = 60
#: Fleets up to this size have every node's pages in cluster.pdf, larger ones only those of nodes with something found.
SMALL_FLEET = 2
#: At most this many nodes have their pages in cluster.pdf; the others have a file of their own anyway.
MOST_NODE_PAGES = 40
#: Reasons of inconclusive nodes that the first page gives.
_MOST_REASONS = 3
#: Class medians in the table of nodes.
MOST_COLUMNS = 3
#: Nodes with pages in cluster.pdf whether a part is named or not.
_ALARMS = ("OUTSIDE LIMIT", "DEVIATES", "DIFFER", "UNSTABLE", "SUSPECT", "INVALID")
#: Of these a reason is all there is to say.
_NO_EVIDENCE = ("INVALID", "NOT MEASURED")
#: Nodes that are not drawn as odd ones.
_LIKE_OTHERS = ("SAME", "NO PEER", "INCONCLUSIVE")


def node_names(verdict: Mapping[str, Any]) -> list[str]:
    """The nodes of a verdict in natural order (cn2 before cn10)."""
    return sorted(verdict["nodes"], key=words.natural)


def marks(verdict: Mapping[str, Any]) -> dict[str, Mark]:
    """How each node's verdict looks."""
    return {node: mark(str(verdict["nodes"][node].get("verdict", ""))) for node in node_names(verdict)}


def fleet_medians(verdict: Mapping[str, Any]) -> dict[ClassKey, float]:
    """The median over nodes of each class's median in ns, for classes that at least three nodes have."""
    return {
        key: float(np.median(list(by_node.values())))
        for key, by_node in _by_class(verdict).items()
        if len(by_node) >= 3
    }


def _by_class(verdict: Mapping[str, Any]) -> dict[ClassKey, dict[str, float]]:
    out: dict[ClassKey, dict[str, float]] = {}
    for node in node_names(verdict):
        for key, median in class_medians(verdict["nodes"][node]).items():
            out.setdefault(key, {})[node] = median
    return out


def with_pages(verdict: Mapping[str, Any]) -> list[str]:
    """The nodes whose own pages belong into cluster.pdf, worst first in a large fleet."""
    found = marks(verdict)
    if len(found) <= SMALL_FLEET:
        return list(found)
    nodes = verdict["nodes"]
    odd = [n for n, m in found.items() if m.word != "NOT MEASURED" and (m.word in _ALARMS or nodes[n].get("findings"))]
    return sorted(odd, key=lambda node: found[node].rank)[:MOST_NODE_PAGES]


def cluster_page(
    verdict: Mapping[str, Any], methods: Sequence[Method], problems: Mapping[str, Sequence[str]], elsewhere: int
) -> ClusterPage:
    """The cluster's pages. `methods` are the ways of measuring that no page behind them has (empty: versions at
    least), `problems` the files of each node's bundle that could not be used, `elsewhere` how many nodes have their
    pages in files of their own alone."""
    nodes: Mapping[str, Any] = verdict["nodes"]
    fleet = verdict.get("fleet") or {}
    looks = marks(verdict)
    by_class = _by_class(verdict)
    first = next(iter(by_class), None)
    columns = [key for key in by_class if first is not None and key[:2] == first[:2]][:MOST_COLUMNS]
    groups = _groups(fleet.get("groups"))
    rows = [
        NodeRow(
            node=node,
            mark=looks[node],
            place=", ".join(filter(None, (_group_of(groups, nodes[node], node), str(nodes[node].get("rack") or "")))),
            values=tuple(f"{by_class[key][node]:.1f}" if node in by_class[key] else "" for key in columns),
            note=_note(nodes[node]),
        )
        for node in sorted(looks, key=lambda node: (looks[node].rank, words.natural(node)))
    ]
    many = len(rows) > MOST_ROWS
    versions = words.facts(verdict.get("versions", {}))
    return ClusterPage(
        campaign=str(verdict.get("campaign", "")),
        origin="SIMULATED, not a measurement" if verdict.get("simulated") else "",
        mark=mark(str(fleet.get("outcome", ""))),
        text=str(fleet.get("text", "")).removeprefix(f"{fleet.get('outcome')}: "),  # the mark above says it
        counts=_counts(looks.values()),
        notes=(*words.notes(verdict), *_undecided(nodes, looks)),
        place="group, rack" if any(row.place for row in rows) else "",
        columns=tuple(name for _, _, name in columns),
        rows=_folded([row for row in rows if not many or _asks(row)]),
        compact=tuple(row for row in rows if many and not _asks(row)),
        classes=_fleet_tables(by_class, looks),
        groups=tuple((name, words.node_list(members)) for name, members in groups) if len(groups) > 1 else (),
        certainty=_certainty(fleet),
        explained=_EXPLAINED,
        statistics=_statistics(fleet),
        statistics_explained=_STATISTICS,
        trust=_trust(fleet),
        unmeasured=_unmeasured(nodes, looks),
        warnings=_shared_warnings(nodes, list(looks), problems),
        methods=tuple(methods) or ((Method("versions", versions),) if versions else ()),
        elsewhere=f"{elsewhere} more nodes have their pages in files of their own." if elsewhere else "",
        fabric=fabric.plates(verdict),
    )


def _asks(row: NodeRow) -> bool:
    """Whether a node needs attention: it is not like the others, or it has a note."""
    return row.mark.word not in _LIKE_OTHERS or row.note != ""


def _folded(rows: Sequence[NodeRow]) -> tuple[NodeRow, ...]:
    """Rows in which many nodes that are invalid for the same reason share one, without figures."""
    groups: dict[tuple[str, ...], list[NodeRow]] = {}
    for row in rows:
        key = (row.mark.word, alike(row.note)) if row.mark.word in _NO_EVIDENCE else (row.node,)
        groups.setdefault(key, []).append(row)
    out: list[NodeRow] = []
    for group in groups.values():
        if len(group) <= MOST_SINGLE:
            out += group
            continue
        names, note = words.node_list([row.node for row in group]), told_once([(row.node, row.note) for row in group])
        out.append(replace(group[0], node=names, place="", values=("",) * len(group[0].values), note=note))
    return tuple(out)


def _undecided(nodes: Mapping[str, Any], looks: Mapping[str, Mark]) -> list[str]:
    """Why nodes are inconclusive, each reason once."""
    why: dict[str, list[str]] = {}
    for node, look in looks.items():
        if look.word == "INCONCLUSIVE" and nodes[node].get("text"):
            why.setdefault(str(nodes[node]["text"]), []).append(node)
    most = sorted(why.items(), key=lambda item: -len(item[1]))[:_MOST_REASONS]
    return [f"INCONCLUSIVE, {words.node_list(on)}: {text}" for text, on in most]


def _note(said: Mapping[str, Any]) -> str:
    findings = said.get("findings") or ()
    if not findings or said.get("verdict") in (
        "INVALID",
        "UNSTABLE",
    ):  # the reason why it is invalid goes before findings
        quiet = said.get("verdict") in (*_LIKE_OTHERS, "SAME AS GROUP")
        return str(said.get("reason") or ("" if quiet else said.get("text")) or "")
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return str(findings[0].get("text") or findings[0].get("term", "")) + more


def _counts(looks: Iterable[Mark]) -> tuple[tuple[Mark, int], ...]:
    found = list(looks)
    return tuple((m, found.count(m)) for m in sorted(set(found), key=lambda m: -m.rank))


def _groups(groups: Any) -> list[tuple[str, list[str]]]:
    """Groups of nodes as (name, members), whether they come as a list of objects or by name."""
    named = groups.items() if isinstance(groups, Mapping) else enumerate(groups if isinstance(groups, list) else (), 1)
    out = []
    for key, group in named:
        name = group.get("name") or group.get("id") or key if isinstance(group, Mapping) else key
        members = group.get("nodes", ()) if isinstance(group, Mapping) else group
        out.append((str(name), [str(member) for member in members] if isinstance(members, list) else []))
    return out


def _group_of(groups: Sequence[tuple[str, list[str]]], said: Mapping[str, Any], node: str) -> str:
    if len(groups) < 2:
        return ""
    return str(said.get("group") or next((name for name, members in groups if node in members), ""))


def _fleet_tables(
    by_class: Mapping[ClassKey, Mapping[str, float]], looks: Mapping[str, Mark]
) -> tuple[FleetTable, ...]:
    """A table per measurement and home, of the classes that at least two nodes have."""
    out = []
    shared = {key: by_node for key, by_node in by_class.items() if len(by_node) > 1}
    for measurement, home in dict.fromkeys(key[:2] for key in shared):
        mine = {key[2]: by_node for key, by_node in shared.items() if key[:2] == (measurement, home)}
        shifts = {
            name: {
                node: 100 * (value / float(np.median(list(by_node.values()))) - 1) for node, value in by_node.items()
            }
            for name, by_node in mine.items()
        }
        reach = percent_reach([shift for by_node in shifts.values() for shift in by_node.values()])
        title = f"{measurement}, home NUMA node {home}" if home >= 0 else measurement
        rows = tuple(_fleet_class(name, mine[name], shifts[name], looks, reach) for name in mine)
        out.append(FleetTable(title, rows, axis_ticks(-reach, reach)))
    return tuple(out)


def _fleet_class(
    name: str, by_node: Mapping[str, float], shifts: Mapping[str, float], looks: Mapping[str, Mark], reach: float
) -> FleetClass:
    lowest, highest = min(by_node, key=lambda n: by_node[n]), max(by_node, key=lambda n: by_node[n])
    at = {node: float(np.clip(0.5 + shift / (2 * reach), 0.0, 1.0)) for node, shift in shifts.items()}
    return FleetClass(
        name=name,
        nodes=words.thousands(len(by_node)),
        median=f"{np.median(list(by_node.values())):.1f}",
        low=f"{by_node[lowest]:.1f}",
        low_node=lowest,
        high=f"{by_node[highest]:.1f}",
        high_node=highest,
        dots=tuple(x for node, x in at.items() if looks[node].word in _LIKE_OTHERS),
        odd=tuple(x for node, x in at.items() if looks[node].word not in _LIKE_OTHERS),
    )


#: What the columns of certainty mean.
_EXPLAINED = (
    "A difference beyond the bound matters (acceptance.yaml). 'SAME within' is the smallest bound at which all nodes "
    "that are SAME would still be: the 90 % interval of each of their differences lies within it. The detection limit "
    "is the smallest defect that would be found on nine of ten nodes."
)
#: And those of the statistics behind them.
_STATISTICS = (
    "Spreads are standard deviations: between nodes, of the chips alone, between runs. A deviation is at least z "
    "standard deviations from the peers; few degrees of freedom (d.f.) mean that healthy nodes far from the others are "
    "expected."
)
#: Columns of spread as the verdict names them: between nodes, of the chips alone, between runs; the threshold in
#: scales, and the degrees of freedom of the tail.
_SPREADS = {"total": "nodes", "chip": "chips", "run": "runs", "z": "z", "tail_df": "tail, d.f."}


def _certainty(fleet: Mapping[str, Any]) -> Table:
    """What the fleet's data resolves, a row for each term that was tested."""
    return _of_terms({
        "bound": _by_term(fleet.get("bound"), words.percent),
        "SAME within": _by_term(_margins(fleet.get("margins")), words.percent),
        "detection limit": _by_term(fleet.get("smallest_effect"), words.percent),
    })  # fmt: skip


def _statistics(fleet: Mapping[str, Any]) -> Table:
    """The spreads that were estimated, a row per family of terms."""
    spread = fleet.get("spread")
    levels = spread if isinstance(spread, Mapping) else {}
    columns = {}
    for key, name in _SPREADS.items():
        written = (lambda value: f"{value:.3g}") if key in ("z", "tail_df") else words.percent
        given = {term: of.get(key) for term, of in levels.items() if isinstance(of, Mapping)}
        columns[f"spread: {name}" if written is words.percent else name] = _by_term(given, written)
    return _of_terms(columns)


def _of_terms(columns: Mapping[str, Mapping[str, str]]) -> Table:
    """Columns by term as a table, in the order in which terms are tested."""
    known = {name: column for name, column in columns.items() if column}
    tested = {term for column in known.values() for term in column}
    terms = [*(term for term in wording.TESTED if term in tested), *sorted(tested - set(wording.TESTED))]
    rows = ((wording.TESTED.get(term, term), *(column.get(term, "") for column in known.values())) for term in terms)
    return Table(("term", *known), tuple(rows)) if terms else Table((), ())


def _margins(margins: Any) -> dict[str, float]:
    """The widest margin by term; other measurements than pairs have that of their model."""
    known, out = models(), dict[str, float]()
    for name, one in margins.items() if isinstance(margins, Mapping) else ():
        within = words.number(one.get("within")) if isinstance(one, Mapping) else None
        if within is not None:
            measurement = str(name).partition(": ")[0]
            term = known[measurement].term if measurement in known else measurement
            out[term] = max(within, out.get(term, 0.0))
    return out


def _by_term(values: Any, written: Callable[[float], str]) -> dict[str, str]:
    """The numbers of an object in words."""
    items = values.items() if isinstance(values, Mapping) else ()
    return {str(term): written(number) for term, value in items if (number := words.number(value)) is not None}


def _trust(fleet: Mapping[str, Any]) -> Facts:
    """The number of tests, the expected false alarms, and what was not tested."""
    rows = []
    if words.number(fleet.get("tests")):
        rows.append(("tests made", words.thousands(fleet["tests"])))
    expected = words.number(fleet.get("expected_false_accusations"))
    if expected:
        rows.append(("expected false alarms", f"{expected:.3g}"))
    smallest = fleet.get("smallest_effect")
    untested = [term for term, value in smallest.items() if value is None] if isinstance(smallest, Mapping) else []
    if untested:
        rows.append(("not tested", ", ".join(wording.TESTED.get(str(term), str(term)) for term in untested)))
    return tuple(rows)


def _unmeasured(nodes: Mapping[str, Any], looks: Mapping[str, Mark]) -> tuple[Unmeasured, ...]:
    """Nodes without a result; many of the same reason share a line, and the first one's log."""
    groups: dict[tuple[str, str], list[Unmeasured]] = {}
    for node, look in looks.items():
        said = nodes[node]
        tail = tuple(map(str, said.get("log_tail") or ()))
        if said.get("reason") or tail or look.word == "NOT MEASURED":
            reason = str(said.get("reason") or said.get("text") or "reason unknown")
            groups.setdefault((look.word, alike(reason)), []).append(Unmeasured(node, look, reason, tail))
    out: list[Unmeasured] = []
    for group in groups.values():
        if len(group) <= MOST_SINGLE:
            out += group
            continue
        names, reason = words.node_list([one.node for one in group]), told_once([(u.node, u.reason) for u in group])
        out.append(replace(group[0], node=names, reason=reason))
    return tuple(out)


def _shared_warnings(
    nodes: Mapping[str, Any], names: Sequence[str], problems: Mapping[str, Sequence[str]]
) -> tuple[Advice, ...]:
    """Each warning and what was wrong with data once, with the nodes that have it, the most frequent first.

    Nodes whose figures alone differ share the words of the first.
    """
    seen: dict[str, tuple[Advice, list[str]]] = {}
    for node in names:
        found = [advice(item) for item in nodes[node].get("warnings", ())]
        remarks = [*map(words.sentence, nodes[node].get("quality", ())), *problems.get(node, ())]
        found += [Advice(text, "") for text in dict.fromkeys(remarks)]
        for key, one in {alike(one.text): one for one in reversed(found)}.items():
            seen.setdefault(key, (one, []))[1].append(node)
    ordered = sorted(seen.values(), key=lambda item: -len(item[1]))
    everywhere = len(names)
    return tuple(
        replace(one, nodes="all nodes" if len(on) == everywhere > 1 else words.node_list(on)) for one, on in ordered
    )
