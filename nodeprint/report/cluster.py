"""The pages of the cluster, from verdict.json. Nothing is judged here; keys that are absent are left off the page.

The outcome, who, and what to do next come first; then the fleet in figures; statistics and method come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from nodeprint import outcomes
from nodeprint.fleet import homes
from nodeprint.outcomes import Outcome
from nodeprint.report import fabric_figure, fleet_figures, formatting
from nodeprint.report import old_figures as figures
from nodeprint.report.fleet_figures import Overview
from nodeprint.report.fleet_resolution import resolved
from nodeprint.report.fleet_verdict import by_class_of, groups_of, marks
from nodeprint.report.matrices import axis_ticks, percent_reach
from nodeprint.report.node import advice
from nodeprint.report.node_table import asks, columns_of, compact_rows, folded, node_rows, node_table
from nodeprint.report.pages import (
    Advice,
    Block,
    Bullets,
    Cell,
    FactList,
    Page,
    Section,
    Table,
    Text,
    Unmeasured,
    sections,
)
from nodeprint.report.shown import ClassKey
from nodeprint.words.names import name_list
from nodeprint.words.outcome import MOST_SINGLE, alike, told_once

#: From this many nodes on, those that are like the others are listed by name and value only.
MOST_ROWS = 60

#: Reasons of inconclusive nodes that the first page gives.
_MOST_REASONS = 3


def cluster_page(
    verdict: Mapping[str, Any], problems: Mapping[str, Sequence[str]], elsewhere: int, overview: Overview
) -> Page:
    """The cluster's pages. `problems` are the files of each node that could not be used, `elsewhere` how many nodes
    have their pages in files of their own alone, `overview` what the figures of the fleet need beside the verdict."""
    nodes: Mapping[str, Any] = verdict["nodes"]
    of_fleet = verdict.get("fleet") or {}
    looks = marks(verdict)
    by_class = by_class_of(verdict)
    groups = groups_of(of_fleet.get("groups"))
    rows = node_rows(verdict, looks, by_class)
    columns = columns_of(verdict, by_class)
    many = len(rows) > MOST_ROWS
    shown = folded([row for row in rows if not many or asks(row)])
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
            Section("Groups", (FactList(tuple((n, name_list(m)) for n, m in groups) if len(groups) > 1 else ()),)),
            Section("Nodes", (node_table(shown, columns),)),
            *fleet_figures.sections(verdict, looks, by_class, overview),
            _class_section(by_class, looks),
            *fabric_figure.sections(verdict),
            Section("Nodes without a result", unmeasured(nodes, looks)),
            fleet_figures.differences(nodes),
            Section("Warnings", _shared_warnings(nodes, list(looks), problems)),
            Section("What this data can resolve", resolved(of_fleet)),
            compact_rows([row for row in rows if many and not asks(row)], columns),
            Section(
                "",
                (Text(f"{elsewhere} more nodes have their pages in files of their own." if elsewhere else "", True),),
            ),
        ),
    )


def _who(looks: Mapping[str, Outcome]) -> str:
    """The nodes that something was found of, by outcome."""
    found: dict[str, list[str]] = {}
    for node in sorted(looks, key=lambda node: looks[node].rank):
        if not looks[node].quiet:
            found.setdefault(looks[node].word, []).append(node)
    return "; ".join(f"{word}: {name_list(names)}" for word, names in found.items())


def _undecided(nodes: Mapping[str, Any], looks: Mapping[str, Outcome]) -> list[str]:
    """Why nodes are inconclusive, each reason once."""
    why: dict[str, list[str]] = {}
    for node, look in looks.items():
        if look.word == "INCONCLUSIVE" and nodes[node].get("text"):
            why.setdefault(str(nodes[node]["text"]), []).append(node)
    most = sorted(why.items(), key=lambda item: -len(item[1]))[:_MOST_REASONS]
    return [f"INCONCLUSIVE, {name_list(on)}: {text}" for text, on in most]


def _counts(looks: Iterable[Outcome]) -> tuple[tuple[Outcome, int], ...]:
    found = list(looks)
    return tuple((m, found.count(m)) for m in sorted(set(found), key=lambda m: -m.rank))


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
    header = (title, "nodes", f"median {unit}", "lowest", "highest", "a dot per node; triangles: nodes with a finding")
    return Table(header, tuple(rows), align="lrrlll", dense=True)


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
            name_list([one.node for one in group]),
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
    return tuple(replace(one, nodes="all nodes" if len(on) == everywhere > 1 else name_list(on)) for one, on in ordered)
