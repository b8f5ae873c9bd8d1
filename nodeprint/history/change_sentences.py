"""History of nodes as text: a line for each change, and a sparkline for each node."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from statistics import median

import pandas as pd

from nodeprint.errors import printable
from nodeprint.history.changes import Change, Course, Histories, NodeHistory
from nodeprint.history.next_nodes import Why
from nodeprint.history.selection import ALL_NODES
from nodeprint.machine.fingerprint import LISTS, label
from nodeprint.report import names
from nodeprint.report import text as report_text
from nodeprint.report.pages.blocks import Block, Table, Text
from nodeprint.settings.texts import say

#: A course from a tolerance below its first level to a tolerance above it, in eighths of a line.
_BARS = "▁▂▃▄▅▆▇█"
#: The most characters of a sparkline.
_WIDTH = 26
#: Fields of a fingerprint that a line names before it counts the others.
_FIELDS = 3


def sparkline(course: Sequence[float]) -> str:
    """A course in tolerances from its first level, from -2 (`▁`) to 2 (`█`); a long one has the medians of equal
    spans."""
    count = min(len(course), _WIDTH)
    edges = [round(number * len(course) / count) for number in range(count + 1)] if count else [0]
    spans = [median(course[low:high]) for low, high in itertools.pairwise(edges)]
    return "".join(_BARS[min(max(round(3.5 + 1.75 * value), 0), len(_BARS) - 1)] for value in spans)


def unchanged(history: NodeHistory) -> str:
    """The sentence for a node without a change. It says if the node was measured only once, or if a component is now
    beyond its tolerance without a change."""
    if _is_single(history):
        return say("history", "once")
    if not is_open(history):
        return say("history", "calm")
    course = history.courses[0]
    distance, component = course.distance[-1], component_name(course)
    side = "above" if distance > 0 else "below"
    return say("history", "open", component=component, distance=f"{abs(distance):.1f}", side=side)


def _is_single(history: NodeHistory) -> bool:
    """Whether a node was measured once, so that nothing is compared."""
    return len(history.measured) < 2


def is_open(history: NodeHistory) -> bool:
    """Whether a node without a change has a component that is now a tolerance or more from its first level. The printed
    value decides."""
    last = history.courses[0].distance[-1:] if not history.changes else ()
    return any(round(abs(distance), 1) >= 1 for distance in last)


def sentence(change: Change, nodes: Sequence[str]) -> str:
    """A change of one or several nodes: `cn017: core 37 changed by +4.1% since 2026-03-03`."""
    size = f"{change.effect * 100:+.1f}%" if len(nodes) == 1 else f"{change.effect * 100:+.1f}% (median)"
    alone = "" if change.compared else say("history", "alone")
    return f"{names.nodes(nodes)}: {component_name(change)} changed by {size} {_when(change)}{alone}{_doubt(change)}"


def common(histories: Histories) -> list[str]:
    """The changes that all nodes share: `all 8 nodes: the whole node changed by +2.0% since 2026-03-03`."""
    if histories.common is None:
        return []
    return [_of_all(change, len(histories.nodes)) for change in histories.common.changes]


def _of_all(change: Change, measured: int) -> str:
    count = len(change.nodes)
    nodes = f"all {count} nodes" if count == measured else f"{count} of {measured} nodes ({names.nodes(change.nodes)})"
    place = f"{nodes}: {component_name(change)}"
    ends = names.interval(change.interval.low, change.interval.high, change.effect, change.measurement)
    if change.moves is None:
        size = f"{names.signed(change.effect, change.measurement)} (95% interval {ends})"
        return f"{place} changed by {size} {_when(change)}{_doubt(change)}"
    moves = change.moves
    return say(
        "history",
        "moves",
        place=place,
        low=names.signed(moves.low, change.measurement),
        lowest=moves.lowest[:10] or "?",
        high=names.signed(moves.high, change.measurement),
        highest=moves.highest[:10] or "?",
    )


def shared_with(node: str, histories: Histories) -> list[str]:
    """The sentences on the changes that a node shares with the others."""
    of_all = histories.common.changes if histories.common is not None else ()
    lines = [_of_all(change, len(histories.nodes)) for change in of_all if node in change.nodes]
    return [report_text.sentence(f"{line}.") for line in lines]


def of_node(change: Change) -> str:
    """The sentence on a change in a node's own report, with its interval and tolerance."""
    ends = names.interval(change.interval.low, change.interval.high, change.effect, change.measurement)
    effect, tolerance = names.with_tolerance(change.effect, change.tolerance, change.measurement)
    size = f"{effect} (95% interval {ends}; tolerance {tolerance})"
    further = f", {names.counted(change.further, 'further component')} with it" if change.further else ""
    alone = "" if change.compared else say("history", "alone")
    place = f"{component_name(change)} changed by {size}"
    return report_text.sentence(f"{place} {_when(change)}{further}{alone}{_doubt(change)}.")


def _when(change: Change) -> str:
    """The date of a change, and the changes of the configuration."""
    if not change.since:  # tables may have no times
        fields = _fields(change.fields)
        return say("history", "no_time") + (f", with {fields}" if fields else "")
    since = f"since {change.since[:10]}"
    if change.unchanged[:10] != change.since[:10]:
        since += f" (unchanged {change.unchanged[:10]})"
    return since + "".join(f", with {fields}" for fields in [_fields(change.fields)] if fields)


def _doubt(change: Change) -> str:
    """The measurement that would confirm it: the level after can be remeasured, the level before cannot."""
    if change.counts[1] < 2:
        return say("history", "doubt", "once")
    return "" if change.confirmed else say("history", "doubt", "single")


def component_name(of: Change | Course) -> str:
    """A component, with its measurement unless it is core-to-core."""
    component = names.scoped(of.component)
    return component if of.metric == "core-to-core" else f"{component} ({report_text.measured(of.measurement)})"


def _fields(fields: Mapping[str, tuple[str, str]]) -> str:
    texts = [f"{label(key)} {_moved(key, *values)}" for key, values in fields.items()]
    more = len(texts) - _FIELDS
    shown = texts[:_FIELDS] + ([names.counted(more, "more field")] if more > 0 else [])
    return names.listed(shown) if shown else ""


def _moved(key: str, before: str, after: str) -> str:
    """A field's values; for a long list, the items added and removed."""
    if separator := LISTS.get(key):
        old, new = (set(text.split(separator)) for text in (before, after))
        before, after = (separator.join(sorted(items)) or "nothing" for items in (old - new, new - old))
    return f"{printable(before, 60)} to {printable(after, 60)}"


def shared(histories: Sequence[NodeHistory]) -> list[tuple[Change, list[str]]]:
    """The changes, each with the nodes that have it since the same day in the same component; it has their median
    effect.

    If the same fields of the configuration changed with it, components of one component type are one change.
    """
    groups: dict[tuple[object, ...], list[Change]] = {}
    for history in histories:
        for change in history.changes:
            place = () if change.fields else tuple(sorted(change.component.where.items()))
            since = change.unchanged[:10], change.since[:10]
            key = (change.measurement, change.home, change.component.component_type, place, *since, change.effect > 0)
            groups.setdefault((*key, _doubt(change), tuple(change.fields.items())), []).append(change)
    of_median = [
        (sorted(changes, key=lambda change: change.effect)[len(changes) // 2], [change.node for change in changes])
        for changes in groups.values()
    ]
    return sorted(of_median, key=lambda pair: (pair[0].since, pair[1]))


def summary(histories: Sequence[NodeHistory], campaigns: int) -> str:
    """The number of unchanged nodes among those measured more than once. Undetermined nodes and those measured once
    follow."""
    compared = [history for history in histories if not _is_single(history)]
    undecided = [history.node for history in compared if is_open(history)]
    once = [history.node for history in histories if _is_single(history)]
    calm = sum(not history.changes for history in compared) - len(undecided)
    said = (
        (say("history", "summary", calm=calm, nodes=names.counted(len(compared), "node")), compared),
        (say("history", "summary_open", nodes=names.nodes(undecided)), undecided),
        (say("history", "summary_once", nodes=names.nodes(once)), once),
    )
    return "; ".join([names.counted(campaigns, "campaign"), *(words for words, of in said if of)])


def left_out(histories: Histories) -> list[str]:
    """The campaigns that are excluded or counted only once, and the excluded nodes."""
    count = names.counted(len(histories.left_out), "simulated campaign")
    simulated = say("history", "left_out", "simulated", count=count, campaigns=few(histories.left_out))
    copies = say("history", "left_out", "copies", campaigns=few(histories.copies))
    machines = "; ".join(_other_machines(histories.other_machines))
    nodes = [name for name in _measured(histories) if name not in {history.node for history in histories.nodes}]
    unknown = say("history", "left_out", "unknown", nodes=names.nodes(nodes))
    left_out = (
        (simulated, histories.left_out),
        (machines, machines),
        (copies, histories.copies),
        (unknown, nodes),
    )
    return [words for words, of in left_out if of]


def _other_machines(others: pd.DataFrame) -> list[str]:
    """The nodes that had another processor, and in which campaigns. They are not compared with the current node of that
    name."""
    out = []
    for _, of_kind in others.groupby(["field", "before", "now"], sort=False):
        field, before, now = of_kind[["field", "before", "now"]].iloc[0]
        nodes, campaigns = names.nodes(of_kind["node"].unique().tolist()), few(of_kind["campaign"].unique().tolist())
        shown = {"before": printable(before, 80), "now": printable(now, 80)}
        fields = say("history", "other_fields", field=label(field), **shown)
        out.append(say("history", "other_machine", nodes=nodes, campaigns=campaigns, fields=fields))
    return out


def _measured(histories: Histories) -> list[str]:
    """The nodes that any of the campaigns measured."""
    nodes = (entry for campaign in histories.judged for entry in campaign.nodes.items())
    return list(dict.fromkeys(name for name, node in nodes if node.outcome.entry.measured))


def few(campaigns: Sequence[str]) -> str:
    """The names of some campaigns, and how many more there are."""
    more = len(campaigns) - _FIELDS
    shown = [printable(name, 60) for name in campaigns[:_FIELDS]]
    return names.listed([*shown, names.counted(more, "more", "more")] if more > 0 else shown)


def page(of_campaigns: Histories) -> tuple[Block, ...]:
    """A line for each change, shared ones first, the courses of changed nodes, the number of unchanged nodes, and the
    exclusions. In a small fleet, all remeasured nodes have a course."""
    histories, of_all = of_campaigns.nodes, of_campaigns.common
    lines = [*common(of_campaigns), *(sentence(change, nodes) for change, nodes in shared(histories))]
    changed = [history for history in histories if history.changes]
    compared = [history for history in histories if not _is_single(history)]
    shown = compared if len(histories) <= ALL_NODES else changed[:ALL_NODES]
    rows = []
    for history in [*([of_all] if of_all is not None and of_all.changes else []), *shown]:
        course = history.courses[0]
        last = f"{course.distance[-1]:+z.1f} tolerances" if course.distance else ""
        name = printable(history.node, 40) or say("history", "all")
        rows.append((name, sparkline(course.distance), last, component_name(course)))
    more = [history.node for history in changed if history not in shown]
    beyond = [say("history", "more_nodes", more=names.counted(len(more), "more node"), nodes=names.nodes(more))]
    ending = [*(beyond if more else []), summary(histories, len(of_campaigns.judged)), *left_out(of_campaigns)]
    table = (Table((), tuple(rows), "llrl", 3),) if rows else ()
    return *map(Text, lines), *table, *map(Text, ending)


def reasons(chosen: pd.DataFrame) -> str:
    """The nodes to measure next, a line for each reason, and their total time."""
    by_why = {why: chosen["node"][chosen["why"] == why].tolist() for why in Why}
    lines = [f"{why}: {names.nodes(nodes)}" for why, nodes in by_why.items() if nodes]
    hours = chosen["seconds"].sum() / 3600
    return "\n".join(
        [*lines, say("history", "node_hours", nodes=names.counted(len(chosen), "node"), hours=f"{hours:.1f}")]
    )
