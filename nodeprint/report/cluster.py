"""The pages of the cluster, from verdict.json. Nothing is judged here; keys that are absent are left off the page.

The outcome, who, and what to do next come first; then the fleet in figures; statistics and method come last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nodeprint import outcomes
from nodeprint.fleet import homes
from nodeprint.fleet.quantity import cell_models
from nodeprint.outcomes import Outcome
from nodeprint.report import explorer, fabric_figure, figures, fleet_figures, formatting
from nodeprint.report.fleet_figures import Overview
from nodeprint.report.matrices import axis_ticks, percent_reach
from nodeprint.report.node import advice
from nodeprint.report.pages import (
    Advice,
    Block,
    Bullets,
    Cell,
    FactList,
    Facts,
    Page,
    Section,
    Table,
    Text,
    Unmeasured,
    sections,
)
from nodeprint.report.shown import ClassKey, class_medians, largest_shift
from nodeprint.words import places
from nodeprint.words.outcome import MOST_DETECTED, MOST_SINGLE, alike, told_once

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


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A line of the cluster's table: its class medians in the order of the columns, what was found, what to do."""

    node: str
    mark: Outcome
    place: str
    values: tuple[str, ...]
    note: str
    next: str


def node_names(verdict: Mapping[str, Any]) -> list[str]:
    """The nodes of a verdict in natural order (cn2 before cn10)."""
    return sorted(verdict["nodes"], key=formatting.natural)


def marks(verdict: Mapping[str, Any]) -> dict[str, Outcome]:
    """How each node's verdict looks."""
    return {node: outcomes.of(str(verdict["nodes"][node].get("verdict", ""))) for node in node_names(verdict)}


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
    odd = [
        n for n, m in found.items() if m.word != "NOT MEASURED" and (m.accuses or m.again or nodes[n].get("findings"))
    ]
    return sorted(odd, key=lambda node: found[node].rank)[:MOST_NODE_PAGES]


def cluster_page(
    verdict: Mapping[str, Any], problems: Mapping[str, Sequence[str]], elsewhere: int, overview: Overview
) -> Page:
    """The cluster's pages. `problems` are the files of each node that could not be used, `elsewhere` how many nodes
    have their pages in files of their own alone, `overview` what the figures of the fleet need beside the verdict."""
    nodes: Mapping[str, Any] = verdict["nodes"]
    of_fleet = verdict.get("fleet") or {}
    looks = marks(verdict)
    by_class = _by_class(verdict)
    groups = _groups(of_fleet.get("groups"))
    rows = node_rows(verdict, looks, by_class)
    columns = _columns(verdict, by_class)
    many = len(rows) > MOST_ROWS
    shown = folded([row for row in rows if not many or _asks(row)])
    return Page(
        campaign=str(verdict.get("campaign", "")),
        subject="cluster",
        title=f"Cluster report, campaign {verdict.get('campaign', '')}",
        origin=overview.origin,
        mark=outcomes.of(str(of_fleet.get("outcome", ""))),
        # the mark above the sentence says its first word
        lead=(str(of_fleet.get("text", "")).removeprefix(f"{of_fleet.get('outcome')}: "), _who(looks)),
        counts=_counts(looks.values()),
        sections=sections(
            Section("", (Bullets((*formatting.notes(verdict), *_undecided(nodes, looks))),)),
            Section(
                "Groups", (FactList(tuple((n, formatting.node_list(m)) for n, m in groups) if len(groups) > 1 else ()),)
            ),
            Section("Nodes", (_node_table(shown, columns),)),
            *fleet_figures.sections(verdict, looks, by_class, overview),
            _class_section(by_class, looks),
            *fabric_figure.sections(verdict),
            Section("Nodes without a result", unmeasured(nodes, looks)),
            fleet_figures.differences(nodes),
            Section("Warnings", _shared_warnings(nodes, list(looks), problems)),
            Section("What this data can resolve", _resolved(of_fleet)),
            _compact([row for row in rows if many and not _asks(row)], columns),
            Section(
                "",
                (Text(f"{elsewhere} more nodes have their pages in files of their own." if elsewhere else "", True),),
            ),
        ),
    )


def statistics(verdict: Mapping[str, Any]) -> Section:
    """The spreads behind the verdict, for the method page."""
    table = _statistics(verdict.get("fleet") or {})
    return Section("Statistics", (Text(_STATISTICS, True), table) if table.rows else ())


def node_rows(
    verdict: Mapping[str, Any], looks: Mapping[str, Outcome], by_class: Mapping[ClassKey, Mapping[str, float]]
) -> list[NodeRow]:
    """A row for each node, the worst first."""
    nodes = verdict["nodes"]
    groups, columns = _groups((verdict.get("fleet") or {}).get("groups")), _columns(verdict, by_class)
    return [
        NodeRow(
            node=node,
            mark=looks[node],
            place=", ".join(filter(None, (_group_of(groups, nodes[node], node), str(nodes[node].get("rack") or "")))),
            values=tuple(_value(by_class[key][node]) if node in by_class[key] else "" for key in columns),
            note=_note(nodes[node]),
            next=_next(node, nodes[node], looks[node]),
        )
        for node in sorted(looks, key=lambda node: (looks[node].rank, formatting.natural(node)))
    ]


def explorer_rows(verdict: Mapping[str, Any]) -> tuple[list[explorer.ExplorerRow], list[str]]:
    """Every node for the table of cluster.html, and the names of its columns of medians."""
    by_class, looks = _by_class(verdict), marks(verdict)
    rows = [
        explorer.ExplorerRow(
            row.node, row.mark.word, row.mark.symbol, row.mark.colour, row.mark.same, row.place, row.values, row.note
        )
        for row in node_rows(verdict, looks, by_class)
    ]
    return rows, [f"{name}, ns" for _, _, name in _columns(verdict, by_class)]


def _value(ns: float) -> str:
    return f"{ns:.1f}" if ns < 1e4 else f"{ns / 1e3:.1f} us"


def _who(looks: Mapping[str, Outcome]) -> str:
    """The nodes that something was found of, by outcome."""
    found: dict[str, list[str]] = {}
    for node in sorted(looks, key=lambda node: looks[node].rank):
        if not looks[node].quiet:
            found.setdefault(looks[node].word, []).append(node)
    return "; ".join(f"{word}: {formatting.node_list(names)}" for word, names in found.items())


def _next(node: str, said: Mapping[str, Any], look: Outcome) -> str:
    """What to do about a node, as a command where there is one."""
    if look.word == "NOT MEASURED" or look.again:
        return f"make run NODES={node}"
    if look.drain:
        return "sh drain.sh"
    if look.word == "DIFFERENT CONFIGURATION":
        return "nodeprint drift"
    if look.accuses:
        return "see its page"
    return "more runs" if look.word == "INCONCLUSIVE" else ""


def _columns(verdict: Mapping[str, Any], by_class: Mapping[ClassKey, Mapping[str, float]]) -> list[ClassKey]:
    """The classes in which nodes with findings are farthest from the fleet's median; the first ones without any."""
    first = next(iter(by_class), None)
    if first is None:
        return []
    odd = {node for node, said in verdict["nodes"].items() if said.get("findings")}
    measurements = {str(item.get("measurement")) for node in odd for item in verdict["nodes"][node]["findings"]}
    wanted = next((m for m in sorted(measurements) if any(key[0] == m for key in by_class)), first[0])
    homes = sorted({key[1] for key in by_class if key[0] == wanted})
    mine = [key for key in by_class if key[0] == wanted and key[1] == homes[0]]

    chosen = (
        sorted(mine, key=lambda key: largest_shift(by_class[key], odd), reverse=True)[:MOST_COLUMNS]
        if odd
        else mine[:MOST_COLUMNS]
    )
    return [key for key in mine if key in chosen]


def _node_table(rows: Sequence[NodeRow], columns: Sequence[ClassKey]) -> Table:
    placed, noted = any(row.place for row in rows), any(row.note or row.next for row in rows)
    header = (
        "node", "verdict", *(("group, rack",) if placed else ()), *(f"{name}, ns" for _, _, name in columns),
        *(("what was found, and what to do next",) if noted else ()),
    )  # fmt: skip
    body = tuple(
        (
            row.node,
            Cell(mark=row.mark),
            *((row.place,) if placed else ()),
            *row.values,
            *((_found(row),) if noted else ()),
        )
        for row in rows
    )
    align = "ll" + "l" * placed + "r" * len(columns) + "l" * noted
    return Table(header, body, align=align, wide=len(header) - 1 if noted else -1, dense=True)


def _found(row: NodeRow) -> str:
    return f"{row.note} \u2192 {row.next}" if row.note and row.next else row.note or row.next


def _compact(rows: Sequence[NodeRow], columns: Sequence[ClassKey]) -> Section | None:
    """Nodes that need no action, several in a row, each with its last value."""
    if not rows:
        return None
    words_of = {row.mark.word for row in rows}
    several, many = len(words_of) > 1, 6
    cells = [
        text
        for row in rows
        for text in (f"{row.mark.symbol} {row.node}" if several else row.node, row.values[-1] if row.values else "")
    ]
    cells += [""] * (-len(cells) % (2 * many))
    body = tuple(tuple(cells[i : i + 2 * many]) for i in range(0, len(cells), 2 * many))
    what = f"each with its median of {columns[-1][2]}, ns" if columns else ""
    heading = f"The other {len(rows)} nodes" + ("" if several else f": {next(iter(words_of))}")
    return Section(heading, (Text(what, True), Table(("", "") * many, body, align="lr" * many, dense=True)))


def _asks(row: NodeRow) -> bool:
    """Whether a node needs attention: it is not like the others, or it has a note."""
    return not row.mark.quiet or row.note != ""


def folded(rows: Sequence[NodeRow]) -> tuple[NodeRow, ...]:
    """Rows in which many nodes that are invalid for the same reason share one, without figures."""
    groups: dict[tuple[str, ...], list[NodeRow]] = {}
    for row in rows:
        key = (row.mark.word, alike(row.note)) if not row.mark.evidence else (row.node,)
        groups.setdefault(key, []).append(row)
    out: list[NodeRow] = []
    for group in groups.values():
        if len(group) <= MOST_SINGLE:
            out += group
            continue
        names, note = (
            formatting.node_list([row.node for row in group]),
            told_once([(row.node, row.note) for row in group]),
        )
        out.append(replace(group[0], node=names, place="", values=("",) * len(group[0].values), note=note))
    return tuple(out)


def _undecided(nodes: Mapping[str, Any], looks: Mapping[str, Outcome]) -> list[str]:
    """Why nodes are inconclusive, each reason once."""
    why: dict[str, list[str]] = {}
    for node, look in looks.items():
        if look.word == "INCONCLUSIVE" and nodes[node].get("text"):
            why.setdefault(str(nodes[node]["text"]), []).append(node)
    most = sorted(why.items(), key=lambda item: -len(item[1]))[:_MOST_REASONS]
    return [f"INCONCLUSIVE, {formatting.node_list(on)}: {text}" for text, on in most]


def _note(said: Mapping[str, Any]) -> str:
    findings = said.get("findings") or ()
    if not findings or said.get("verdict") in (
        "INVALID",
        "UNSTABLE",
    ):  # the reason why it is invalid goes before findings
        quiet = outcomes.of(str(said.get("verdict", ""))).quiet
        return str(said.get("reason") or ("" if quiet else said.get("text")) or "")
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return formatting.without_runs(str(findings[0].get("text") or findings[0].get("term", ""))) + more


def _counts(looks: Iterable[Outcome]) -> tuple[tuple[Outcome, int], ...]:
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


def _class_section(by_class: Mapping[ClassKey, Mapping[str, float]], looks: Mapping[str, Outcome]) -> Section:
    """A table per measurement and home, of the classes that at least two nodes have."""
    blocks: list[Block] = []
    shared = {key: by_node for key, by_node in by_class.items() if len(by_node) > 1}
    for measurement, home in dict.fromkeys(key[:2] for key in shared):
        mine = {key[2]: by_node for key, by_node in shared.items() if key[:2] == (measurement, home)}
        blocks.append(_fleet_table(measurement, home, mine, looks))
    return Section("Class medians over the fleet", tuple(blocks))


def _fleet_table(
    measurement: str, home: int, mine: Mapping[str, Mapping[str, float]], looks: Mapping[str, Outcome]
) -> Table:
    """Classes of one measurement on one axis of percent of each class's median over nodes."""
    shifts = {
        name: {node: 100 * (value / float(np.median(list(by_node.values()))) - 1) for node, value in by_node.items()}
        for name, by_node in mine.items()
    }
    reach = percent_reach([shift for by_node in shifts.values() for shift in by_node.values()])
    title = ", ".join(filter(None, (measurement, homes.named(home))))
    unit, of_ns = ("us", 1e3) if min(min(by_node.values()) for by_node in mine.values()) >= 1e3 else ("ns", 1.0)
    rows: list[tuple[str | Cell, ...]] = []
    for name, by_node in mine.items():
        low, high = min(by_node, key=lambda n: by_node[n]), max(by_node, key=lambda n: by_node[n])
        at = {node: float(np.clip(0.5 + shift / (2 * reach), 0.0, 1.0)) for node, shift in shifts[name].items()}
        strip = figures.dots(
            [x for node, x in at.items() if looks[node].quiet], [x for node, x in at.items() if not looks[node].quiet]
        )
        rows.append((
            name, formatting.thousands(len(by_node)), f"{np.median(list(by_node.values())) / of_ns:.1f}",
            f"{by_node[low] / of_ns:.1f} {low}", f"{by_node[high] / of_ns:.1f} {high}", Cell(strip),
        ))  # fmt: skip
    rows.append(("", "", "", "", "% from the median", Cell(figures.ruler(axis_ticks(-reach, reach), 64.0))))
    header = (title, "nodes", f"median {unit}", "lowest", "highest", "a dot per node; triangles: nodes that differ")
    return Table(header, tuple(rows), align="lrrlll", dense=True)


def _resolved(of_fleet: Mapping[str, Any]) -> tuple[Block, ...]:
    table, trust = _certainty(of_fleet), _trust(of_fleet)
    return (Text(_EXPLAINED, True) if table.rows else Text(""), table, FactList(trust))


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
        "bound": _by_term({**_margin_bounds(fleet.get("margins")), **(fleet.get("bound") or {})}, formatting.percent),
        "SAME within": _by_term(_margins(fleet.get("margins")), formatting.percent),
        "detection limit": _by_term(fleet.get("smallest_effect"), _detected),
    })  # fmt: skip


def _detected(limit: float) -> str:
    """A detection limit; one beyond MOST_DETECTED says nothing of a node."""
    return formatting.percent(limit) if limit <= MOST_DETECTED else "cannot be detected with this data"


def _statistics(fleet: Mapping[str, Any]) -> Table:
    """The spreads that were estimated, a row per family of terms."""
    spread = fleet.get("spread")
    levels = spread if isinstance(spread, Mapping) else {}
    columns = {}
    for key, name in _SPREADS.items():
        written = (lambda value: f"{value:.3g}") if key in ("z", "tail_df") else formatting.percent
        given = {term: of.get(key) for term, of in levels.items() if isinstance(of, Mapping)}
        columns[f"spread: {name}" if written is formatting.percent else name] = _by_term(given, written)
    return _of_terms(columns)


def _of_terms(columns: Mapping[str, Mapping[str, str]]) -> Table:
    """Columns by term as a table, in the order in which terms are tested."""
    known = {name: column for name, column in columns.items() if column}
    tested = {term for column in known.values() for term in column}
    terms = [*(term for term in places.TESTED if term in tested), *sorted(tested - set(places.TESTED))]
    rows = ((places.TESTED.get(term, term), *(column.get(term, "") for column in known.values())) for term in terms)
    return Table(("term", *known), tuple(rows), align="l" + "r" * len(known), dense=True) if terms else Table((), ())


def _margins(margins: Any) -> dict[str, float]:
    """The widest margin by term; other measurements than pairs have that of their model."""
    known, out = cell_models(), dict[str, float]()
    for name, one in margins.items() if isinstance(margins, Mapping) else ():
        within = formatting.number(one.get("within")) if isinstance(one, Mapping) else None
        if within is not None:
            measurement = str(name).partition(": ")[0]
            term = known[measurement].term if measurement in known else measurement
            out[term] = max(within, out.get(term, 0.0))
    return out


def _margin_bounds(margins: Any) -> dict[str, float]:
    """The bounds of measurements that are no hops, such as LinkTest's, which the margins alone have."""
    known, out = cell_models(), dict[str, float]()
    for name, one in margins.items() if isinstance(margins, Mapping) else ():
        measurement, apart, _ = str(name).partition(": ")
        bound = formatting.number(one.get("bound")) if isinstance(one, Mapping) else None
        if apart and measurement not in known and bound is not None:
            out[measurement] = min(bound, out.get(measurement, bound))
    return out


def _by_term(values: Any, written: Callable[[float], str]) -> dict[str, str]:
    """The numbers of an object in words."""
    items = values.items() if isinstance(values, Mapping) else ()
    return {str(term): written(number) for term, value in items if (number := formatting.number(value)) is not None}


def _trust(fleet: Mapping[str, Any]) -> Facts:
    """The number of tests, the expected false alarms, and what was not tested."""
    rows = []
    if formatting.number(fleet.get("tests")):
        rows.append(("tests made", formatting.thousands(fleet["tests"])))
    expected = formatting.number(fleet.get("expected_false_accusations"))
    if expected:
        rows.append(("expected false alarms", f"{expected:.3g}"))
    smallest = fleet.get("smallest_effect")
    untested = [term for term, value in smallest.items() if value is None] if isinstance(smallest, Mapping) else []
    if untested:
        rows.append(("not tested", ", ".join(places.TESTED.get(str(term), str(term)) for term in untested)))
    return tuple(rows)


def unmeasured(nodes: Mapping[str, Any], looks: Mapping[str, Outcome]) -> tuple[Block, ...]:
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
        names, reason = (
            formatting.node_list([one.node for one in group]),
            told_once([(u.node, u.reason) for u in group]),
        )
        out.append(replace(group[0], node=names, reason=reason))
    return tuple(out)


def _shared_warnings(
    nodes: Mapping[str, Any], names: Sequence[str], problems: Mapping[str, Sequence[str]]
) -> tuple[Block, ...]:
    """Each warning and what was wrong with data once, with the nodes that have it, the most frequent first.

    Nodes whose figures alone differ share the words of the first.
    """
    seen: dict[str, tuple[Advice, list[str]]] = {}
    for node in names:
        found = [advice(item) for item in nodes[node].get("warnings", ())]
        remarks = [*map(formatting.sentence, nodes[node].get("quality", ())), *problems.get(node, ())]
        found += [Advice(text, "") for text in dict.fromkeys(remarks)]
        for key, one in {alike(one.text): one for one in reversed(found)}.items():
            seen.setdefault(key, (one, []))[1].append(node)
    ordered = sorted(seen.values(), key=lambda item: -len(item[1]))
    everywhere = len(names)
    return tuple(
        replace(one, nodes="all nodes" if len(on) == everywhere > 1 else formatting.node_list(on))
        for one, on in ordered
    )
