"""The table of page 1: every node that does not pass, by class, with component, effect, tolerance and action.

Nodes with the same finding share a row, which has their names and the range of their effects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from nodeprint.errors import printable
from nodeprint.judge.outcome import OUTCOME_OF, FleetOutcome, Outcome
from nodeprint.judge.verdict import Finding, NodeVerdict, Verdict
from nodeprint.report import names, text
from nodeprint.report.pages.blocks import Cell, Mark, Reference, Table
from nodeprint.report.pages.common import state_mark, without_empty
from nodeprint.report.pages.order import by_harm, class_rank, harm, natural, severity, worst_finding
from nodeprint.settings.texts import say

#: With more rows of findings than these, nodes share a row by the type of the component, as one in each of 750 nodes is
#: nothing to read on six pages; the PDF of each node and the HTML name the component.
_MOST_ROWS = 60
_HEADER = ("node", "outcome", "what differs", "by", "tolerance", "what to do", "page")

#: A row behind what it is sorted by: class, kind and size of its harm, and the first node.
_Row = tuple[tuple[object, ...], tuple[Cell, ...]]


def table(verdict: Verdict, linked: Mapping[str, Reference], anchors: Mapping[str, str]) -> Table:
    """The table; `linked` leads to the files of nodes, `anchors` by node to its finding that has a figure."""
    if verdict.fleet.outcome is FleetOutcome.NO_PEERS:
        return Table(_HEADER, ())
    with_findings = {name: node for name, node in verdict.nodes.items() if node.counted}
    words: Callable[[Finding], str] = text.component_in_words
    sets = _alike(with_findings, words)
    if len(sets) > _MOST_ROWS:
        words = text.component_type_in_words
        sets = _alike(with_findings, words)
    findings = (_finding(of_set, words, linked, anchors) for of_set in sets)
    rows = [*findings, *_links(verdict), *_groups(verdict, linked), *_others(verdict, linked)]
    return without_empty(Table(_HEADER, tuple(row for _, row in sorted(rows, key=lambda row: row[0])), "lllrrlr"))


def _alike(nodes: Mapping[str, NodeVerdict], words: Callable[[Finding], str]) -> list[dict[str, NodeVerdict]]:
    """Nodes by outcome and worst finding: its component in `words`, its direction and what to do, the worst node of
    each set first."""
    sets: dict[tuple[object, ...], dict[str, NodeVerdict]] = {}
    for name in sorted(nodes, key=lambda name: (severity(nodes[name]), natural(name))):
        worst = worst_finding(nodes[name])
        assert worst is not None
        key = (nodes[name].outcome, words(worst), worst.effect > 0, text.remedy(worst))
        sets.setdefault(key, {})[name] = nodes[name]
    return list(sets.values())


def _finding(
    nodes: Mapping[str, NodeVerdict],
    words: Callable[[Finding], str],
    linked: Mapping[str, Reference],
    anchors: Mapping[str, str],
) -> _Row:
    worst = [node.counted[by_harm(node)[0] - 1] for node in nodes.values()]
    first, more = worst[0], max(len(node.counted) for node in nodes.values()) - 1
    (outcome,) = {node.outcome for node in nodes.values()}
    further = say("row_further", "one" if len(nodes) == 1 else "several", count=more) if more else ""
    sizes = [finding for finding in worst if finding.measurement]
    anchor = next((anchors[name] for name in nodes if name in anchors), "")
    kind, size = harm(first)
    digits = max((names.digits_beyond(of.effect, of.tolerance) for of in sizes if not of.of_limit), default=1)
    tolerances = (  # or the limit that a finding is beyond
        names.quantity(of.peers, names.of_measurement(of.unit, of.measurement))
        if of.of_limit
        else names.tolerance(of.tolerance, digits)
        for of in sorted(sizes, key=lambda of: (of.tolerance, of.peers))
    )
    return (class_rank(outcome)[0], -kind, -size, natural(next(iter(nodes)))), (
        _called(tuple(nodes), linked),
        Mark.of(outcome),
        words(first) + further,
        names.signed_range([finding.effect for finding in sizes], digits),
        " to ".join(dict.fromkeys(tolerances)),
        say("confirm_first", remedy=text.remedy(first)) if outcome is Outcome.SUSPECT else text.remedy(first),
        Reference("", anchor=anchor) if anchor else "",
    )


def _links(verdict: Verdict) -> list[_Row]:
    """A row for each slow link between two nodes, of which neither is slow itself."""
    rows: list[_Row] = []
    links = (finding for fabric in verdict.fabric for finding in fabric.findings if "to" in finding.component.where)
    for link in (link for link in links if link.counts):
        (kind, size), node, outcome = harm(link), str(link.component.where["node"]), OUTCOME_OF[link.state]
        mark = replace(state_mark(link), word=f"{outcome.outcome_class} ({say('messages_of', 'outcome')})")
        differs = (text.component_in_words(link), *names.with_tolerance(link.effect, link.tolerance))
        row = (printable(node, 40), mark, *differs, text.remedy(link), "")
        rows.append(((class_rank(outcome)[0], -kind, -size, natural(node)), row))
    return rows


def _groups(verdict: Verdict, linked: Mapping[str, Reference]) -> list[_Row]:
    groups = verdict.fleet.groups if verdict.fleet.outcome is FleetOutcome.SPLIT else ()
    by_name, rows = {group.name: group for group in groups}, list[_Row]()
    for number, group in enumerate(groups):
        words = {"name": group.name, "fields": text.goes_with(group)}
        if group.component is None:
            cells = (say("split_row", "first", **words), "", "", "")
        else:
            differs = say("split_row", "apart", place=text.place(group), **words)
            to_do = text.to_do(group, by_name[group.than])
            cells = (differs, *names.with_tolerance(group.effect, group.tolerance), to_do)
        order = class_rank(Outcome.SPLIT)[0], -3, -float(len(groups) - number), natural(group.nodes[0])
        rows.append((order, (_called(group.nodes, linked), Mark.of(Outcome.SPLIT), *cells, "")))
    return rows


def _others(verdict: Verdict, linked: Mapping[str, Reference]) -> list[_Row]:
    """A row for each node that does not pass without a finding, or for several with the same reason and action."""
    without = {name: node for name, node in verdict.nodes.items() if not node.counted}
    others = {name: node for name, node in without.items() if node.outcome not in (Outcome.SAME, Outcome.SPLIT)}
    of_words: dict[tuple[Outcome, str, str], list[str]] = {}
    for line in text.node_lines(others):
        of_words.setdefault((line.outcome, text.sentence(line.text), line.action), []).extend(line.nodes)
    rows: list[_Row] = []
    for (outcome, words, action), on in of_words.items():
        order = class_rank(outcome)[0], 1, 0.0, natural(on[0])
        rows.append((order, (_called(on, linked), Mark.of(outcome), words, "", "", action, "")))
    return rows


def _called(nodes: Sequence[str], linked: Mapping[str, Reference]) -> Cell:
    return linked.get(nodes[0], printable(nodes[0], 40)) if len(nodes) == 1 else names.nodes(nodes)
