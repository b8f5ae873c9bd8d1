"""The table of nodes: what was found of each, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from nodeprint import outcomes
from nodeprint.outcomes import Outcome
from nodeprint.report import explorer, formatting
from nodeprint.report.fleet_verdict import by_class_of, groups_of, marks
from nodeprint.report.pages import (
    Cell,
    Section,
    Table,
    Text,
)
from nodeprint.report.shown import ClassKey, largest_shift
from nodeprint.words.names import name_list
from nodeprint.words.outcome import MOST_SINGLE, alike, told_once

#: Class medians in the table of nodes.
MOST_COLUMNS = 3


class NodeRow(msgspec.Struct, frozen=True):
    """A line of the cluster's table: its class medians in the order of the columns, what was found, what to do."""

    node: str
    mark: Outcome
    place: str
    values: tuple[str, ...]
    note: str
    next: str


def node_rows(
    verdict: Mapping[str, Any], looks: Mapping[str, Outcome], by_class: Mapping[ClassKey, Mapping[str, float]]
) -> list[NodeRow]:
    """A row for each node, the worst first."""
    nodes = verdict["nodes"]
    groups, columns = groups_of((verdict.get("fleet") or {}).get("groups")), columns_of(verdict, by_class)
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
    by_class, looks = by_class_of(verdict), marks(verdict)
    rows = [
        explorer.ExplorerRow(
            row.node, row.mark.word, row.mark.symbol, row.mark.colour, row.mark.same, row.place, row.values, row.note
        )
        for row in node_rows(verdict, looks, by_class)
    ]
    return rows, [f"{name}, ns" for _, _, name in columns_of(verdict, by_class)]


def _value(ns: float) -> str:
    return f"{ns:.1f}" if ns < 1e4 else f"{ns / 1e3:.1f} us"


def _next(node: str, said: Mapping[str, Any], look: Outcome) -> str:
    """What to do about a node, as a command where there is one."""
    if look.word == "NOT MEASURED":
        return "make run"
    if look.again:
        return f"make run NODES={node}"
    if look.drain:
        return "see its page, drain.sh"
    if look.word == "DIFFERENT CONFIGURATION":
        return "nodeprint drift CAMPAIGN"
    return "see its page" if look.accuses or look.word == "INCONCLUSIVE" else ""


def columns_of(verdict: Mapping[str, Any], by_class: Mapping[ClassKey, Mapping[str, float]]) -> list[ClassKey]:
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


def node_table(rows: Sequence[NodeRow], columns: Sequence[ClassKey]) -> Table:
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


def compact_rows(rows: Sequence[NodeRow], columns: Sequence[ClassKey]) -> Section | None:
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


def asks(row: NodeRow) -> bool:
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
            name_list([row.node for row in group]),
            told_once([(row.node, row.note) for row in group]),
        )
        out.append(replace(group[0], node=names, place="", values=("",) * len(group[0].values), note=note))
    return tuple(out)


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


def _group_of(groups: Sequence[tuple[str, list[str]]], said: Mapping[str, Any], node: str) -> str:
    if len(groups) < 2:
        return ""
    return str(said.get("group") or next((name for name, members in groups if node in members), ""))
