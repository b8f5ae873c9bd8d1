"""The nodes that do not pass, by class, with component, effect, tolerance and action: of page 1 and the open items of
the acceptance report.

Nodes with the same finding share a row, which has their names and the range of their effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from nodeprint.judge.outcome import OUTCOME_OF, FleetOutcome, Outcome
from nodeprint.judge.verdict import Finding, NodeVerdict, Verdict
from nodeprint.report import names, text
from nodeprint.report.pages.blocks import Cell, Mark, Reference, Table
from nodeprint.report.pages.order import class_rank, harm, natural, severity, worst_finding
from nodeprint.report.pages.tables import state_mark, tabulated
from nodeprint.settings.texts import say

#: With more rows of findings than these, nodes share a row by the type of the component, as one in each of 750 nodes is
#: nothing to read on six pages; the PDF of each node and the HTML name the component.
_MOST_ROWS = 60
#: The columns that every table of rows has.
COLUMNS = ("outcome", "what differs", "by", "tolerance", "what to do")


class Row(msgspec.Struct, frozen=True):
    """Nodes with the same finding or reason. Rows are in the order of `rank`: class, kind and size of the harm, node.

    `has_figure`: it is about findings of the nodes, which may have figures.
    """

    rank: tuple[Any, ...]
    nodes: tuple[str, ...]
    mark: Mark
    differs: str
    effect: str = ""
    tolerance: str = ""
    action: str = ""
    has_figure: bool = False

    @property
    def called(self) -> str:
        """Its nodes as a list."""
        return names.nodes(self.nodes) or say("spread_row", "node")

    @property
    def cells(self) -> dict[str, Cell]:
        """Its cells by column."""
        cells = (self.mark, self.differs, self.effect, self.tolerance, self.action)
        return dict(zip(COLUMNS, cells, strict=True))


def rows(verdict: Verdict) -> list[Row]:
    """Return the rows of a campaign, the worst first."""
    with_findings = {name: node for name, node in verdict.nodes.items() if node.counted}
    words: Callable[[Finding], str] = text.component_in_words
    sets = _alike(with_findings, words)
    if len(sets) > _MOST_ROWS:
        words = text.component_type_in_words
        sets = _alike(with_findings, words)
    findings = (_finding(of_set, verdict.nodes, words) for of_set in sets)
    return sorted(
        (*findings, *_links(verdict), *_groups(verdict), *_spreads(verdict), *_others(verdict)),
        key=lambda row: row.rank,
    )


def table(verdict: Verdict, linked: Mapping[str, Reference], anchors: Mapping[str, str]) -> Table:
    """The table of page 1; `linked` leads to the files of nodes, `anchors` by node to its finding that has a figure."""
    cells = []
    for row in rows(verdict) if verdict.fleet.outcome is not FleetOutcome.NO_PEERS else ():
        node = linked.get(row.nodes[0]) if len(row.nodes) == 1 else None
        anchor = next((anchors[name] for name in row.nodes if name in anchors), "") if row.has_figure else ""
        page: Cell = Reference("", anchor=anchor) if anchor else ""
        cells.append({"node": node or row.called, **row.cells, "page": page})
    return tabulated(cells, "lllrrlr")


def _alike(nodes: Mapping[str, NodeVerdict], words: Callable[[Finding], str]) -> list[dict[str, NodeVerdict]]:
    """Nodes by outcome and worst finding: its component in `words`, its direction and what to do, the worst node of
    each set first."""
    sets: dict[tuple[object, ...], dict[str, NodeVerdict]] = {}
    for name in sorted(nodes, key=lambda name: (severity(nodes[name]), natural(name))):
        worst = worst_finding(nodes[name])
        assert worst is not None
        key = (nodes[name].outcome, words(worst), worst.effect > 0, text.remedy(worst, nodes))
        sets.setdefault(key, {})[name] = nodes[name]
    return list(sets.values())


def _finding(
    nodes: Mapping[str, NodeVerdict], of_fleet: Mapping[str, NodeVerdict], words: Callable[[Finding], str]
) -> Row:
    worst = [finding for node in nodes.values() if (finding := worst_finding(node)) is not None]
    first, more = worst[0], max(len(node.counted) for node in nodes.values()) - 1
    (outcome,) = {node.outcome for node in nodes.values()}
    further = say("row_further", "one" if len(nodes) == 1 else "several", count=more) if more else ""
    sizes = [finding for finding in worst if finding.measurement]
    digits = max((names.digits_beyond(of.effect, of.tolerance) for of in sizes if not of.of_limit), default=1)
    unit = names.of_measurement(first.unit, first.measurement)
    accepted = [of.peers if of.of_limit else of.tolerance for of in sizes]  # a finding may be beyond a limit
    allowed = names.between(
        accepted,
        lambda of: names.quantity(of, unit) if first.of_limit else names.tolerance(of, first.measurement, digits),
    )
    return Row(
        _rank(outcome, *harm(first), next(iter(nodes))),
        tuple(nodes),
        Mark.of(outcome),
        words(first) + further,
        names.signed_range([finding.effect for finding in sizes], first.of_effect, digits),
        allowed,
        text.action(first, of_fleet),
        has_figure=True,
    )


def _rank(outcome: Outcome | FleetOutcome, kind: int, size: float, node: str) -> tuple[Any, ...]:
    return class_rank(outcome)[0], -kind, -size, natural(node)


def _links(verdict: Verdict) -> Iterator[Row]:
    """A row for each slow link between two nodes, of which neither is slow itself."""
    links = (finding for fabric in verdict.fabric for finding in fabric.findings if "to" in finding.component.where)
    for link in (link for link in links if link.counts):
        node, outcome = str(link.component.where["node"]), OUTCOME_OF[link.state]
        mark = replace(state_mark(link), word=f"{outcome.outcome_class} ({say('messages_of', 'outcome')})")
        differs = text.component_in_words(link), *names.with_tolerance(link.effect, link.tolerance)
        yield Row(_rank(outcome, *harm(link), node), (node,), mark, *differs, text.action(link, verdict.nodes))


def _groups(verdict: Verdict) -> Iterator[Row]:
    """A row for the nodes of each group of a split fleet that have no finding of their own."""
    groups, mark = verdict.fleet.split_groups, Mark.of(Outcome.SPLIT)
    by_name = {group.name: group for group in groups}
    without = {of.name: tuple(n for n in of.nodes if verdict.nodes[n].outcome is Outcome.SPLIT) for of in groups}
    for number, group in enumerate(groups):
        nodes = without[group.name]
        if not nodes:
            continue
        rank = _rank(Outcome.SPLIT, 3, len(groups) - number, nodes[0])
        words = {"name": group.name, "fields": text.goes_with(group)}
        if group.component is None:
            first, apart = say("split_row", "first", **words), [of for of in groups if of.than == group.name]
            has_row = any(without[of.name] for of in apart)  # else their nodes have findings of their own
            step = say("split_row", "compare") if has_row or not apart else text.to_do(apart[0], group)
            yield Row(rank, nodes, mark, first, action=step)
        else:
            differs = say("split_row", "apart", place=text.place(group), **words)
            sizes = names.with_tolerance(group.effect, group.tolerance, group.measurement)
            yield Row(rank, nodes, mark, differs, *sizes, text.to_do(group, by_name[group.than]))


def _spreads(verdict: Verdict) -> Iterator[Row]:
    """A row for a fleet that is not uniform: its measurements in which nodes differ much and no node is at fault."""
    outcome, wide = FleetOutcome.NON_UNIFORM, verdict.fleet.wide_spreads
    if verdict.fleet.outcome is not outcome or not wide:
        return
    widest = [spreads[0] for spreads in wide.values()]
    differs = text.sentence(names.listed(map(text.measured, wide)))
    by = say("spread_row", "by", chips=names.between([of.chips for of in widest], names.percent))
    tolerances = names.between([of.tolerance for of in widest], names.tolerance)
    rank = _rank(outcome, 2, widest[0].chips / widest[0].tolerance, "")
    yield Row(rank, (), Mark.of(outcome), differs, by, tolerances, say("spread_row", "action"))


def _others(verdict: Verdict) -> Iterator[Row]:
    """A row for each node that does not pass without a finding, or for several with the same reason and action."""
    without = {name: node for name, node in verdict.nodes.items() if not node.counted}
    others = {name: node for name, node in without.items() if node.outcome not in (Outcome.SAME, Outcome.SPLIT)}
    of_words: dict[tuple[Outcome, str, str], list[str]] = {}
    for line in text.node_lines(others):
        of_words.setdefault((line.outcome, text.sentence(line.text), line.action), []).extend(line.nodes)
    for (outcome, words, step), on in of_words.items():
        yield Row(_rank(outcome, -1, 0.0, on[0]), tuple(on), Mark.of(outcome), words, action=step)
