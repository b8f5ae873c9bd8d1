"""Nodes over time as words: a line for each change, and a sparkline for each node."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from statistics import median

from rich.console import Group
from rich.table import Table

from nodeprint.errors import printable
from nodeprint.history.changes import Change, NodeHistory
from nodeprint.history.next_nodes import NextNode, Why
from nodeprint.machine.fingerprint import LISTS, label
from nodeprint.report import names

#: A course from a bound below its first level to a bound above it, in eighths of a line.
_BARS = "▁▂▃▄▅▆▇█"
#: A sparkline has at most so many places, and a fleet so many nodes of which each has its own.
_WIDTH, _ALL_NODES = 26, 16
#: Fields of a fingerprint that a line names before it counts the others.
_FIELDS = 3


def sparkline(course: Sequence[float]) -> str:
    """A course in bounds from its first level, from -2 (`▁`) to 2 (`█`); of a long one the medians of equal spans."""
    count = min(len(course), _WIDTH)
    edges = [round(number * len(course) / count) for number in range(count + 1)] if count else [0]
    spans = [median(course[low:high]) for low, high in itertools.pairwise(edges)]
    return "".join(_BARS[min(max(round(3.5 + 1.75 * value), 0), len(_BARS) - 1)] for value in spans)


def sentence(change: Change, nodes: Sequence[str]) -> str:
    """A change of one or several nodes: `cn017: core 37 +4.1 % since 2026-03-03, with BIOS 1.7 to 1.8`."""
    part = names.scoped(change.part)
    of = part if change.subject == "core-to-core" else f"{part} ({change.measurement})"
    since = f"since {change.since[:10]}"
    if change.unchanged[:10] != change.since[:10]:
        since += f" (unchanged {change.unchanged[:10]})"
    fields = "".join(f", with {text}" for text in [_fields(change.fields)] if text)
    size = f"{change.effect * 100:+.1f} %" if len(nodes) == 1 else f"{change.effect * 100:+.1f} % (median)"
    doubt = "" if change.confirmed else ", in one measurement: measure again"
    return f"{names.nodes(nodes)}: {of} {size} {since}{fields}{doubt}"


def _fields(fields: Mapping[str, tuple[str, str]]) -> str:
    texts = [f"{label(key)} {_moved(key, *values)}" for key, values in fields.items()]
    more = len(texts) - _FIELDS
    shown = texts[:_FIELDS] + ([names.counted(more, "more field")] if more > 0 else [])
    return names.listed(shown) if shown else ""


def _moved(key: str, before: str, after: str) -> str:
    """A field's values; of a long list the items that came and went."""
    if separator := LISTS.get(key):
        old, new = (set(text.split(separator)) for text in (before, after))
        before, after = (separator.join(sorted(items)) or "nothing" for items in (old - new, new - old))
    return f"{printable(before, 60)} to {printable(after, 60)}"


def shared(histories: Sequence[NodeHistory]) -> list[tuple[Change, list[str]]]:
    """The changes, each with the nodes that have it since the same day in the same part; it has their median effect.

    Where the same fields of the configuration changed with it, parts of one family are one change.
    """
    groups: dict[tuple[object, ...], list[Change]] = {}
    for history in histories:
        for change in history.changes:
            place = () if change.fields else tuple(sorted(change.part.where.items()))
            since = change.unchanged[:10], change.since[:10]
            key = (change.measurement, change.home, change.part.family, place, *since, change.effect > 0)
            groups.setdefault((*key, change.confirmed, tuple(change.fields.items())), []).append(change)
    of_median = [
        (sorted(changes, key=lambda change: change.effect)[len(changes) // 2], [change.node for change in changes])
        for changes in groups.values()
    ]
    return sorted(of_median, key=lambda pair: (pair[0].since, pair[1]))


def as_text(histories: Sequence[NodeHistory], campaigns: int) -> Group:
    """A line for each change, the courses of the nodes that have one (of all in a small fleet), and how many have
    none."""
    lines = [sentence(change, nodes) for change, nodes in shared(histories)]
    changed = {history.node for history in histories if history.changes}
    shown = histories if len(histories) <= _ALL_NODES else [h for h in histories if h.node in changed][:_ALL_NODES]
    courses = Table(box=None, pad_edge=False, show_header=False)
    for history in shown:
        last = f"{history.course[-1]:+.1f} bounds" if history.course else ""
        part = names.scoped(history.part)
        courses.add_row(printable(history.node, 40), sparkline(history.course), last, part)
    calm = len(histories) - len(changed)
    what = "no part moved by its bound or more"
    counted = f"{names.counted(campaigns, 'campaign')}; {what} on {calm} of {names.counted(len(histories), 'node')}"
    return Group(*lines, *([courses] if shown else []), counted)


def reasons(chosen: Sequence[NextNode]) -> str:
    """The nodes to measure next by why, a line each, and how long they take together."""
    by_why = {why: [node.node for node in chosen if node.why is why] for why in Why}
    lines = [f"{why}: {names.nodes(nodes)}" for why, nodes in by_why.items() if nodes]
    hours = sum(node.seconds for node in chosen) / 3600
    return "\n".join([*lines, f"{names.counted(len(chosen), 'node')}, {hours:.1f} node hours"])
