"""The figure of a fabric: who waits how long for whose messages, from verdict.json. Nothing is judged here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from nodeprint import captions
from nodeprint.report import distribution_plots, formatting, linktest, matrix_figure, scale
from nodeprint.report.old_figures import Band, Group
from nodeprint.report.pages import Bullets, Figures, Section, Text

#: In mm: the side of the matrix with its brackets.
_ROOM = 160.0


def sections(verdict: Mapping[str, Any]) -> list[Section]:
    """A section for each measurement between nodes."""
    return [_section(one) for one in verdict.get("fabric") or ()]


def _section(one: Mapping[str, Any]) -> Section:
    nodes = [str(name) for name in one["nodes"]]
    values = np.array([[np.nan if v is None else v for v in row] for row in one["median_ns"]], dtype=np.float64) / 1e3
    ends = scale.ends(values)
    colours = linktest.in_us(scale.of_nodes([(1e3 * ends[0], 1e3 * ends[1])] if ends else []))
    drawn = matrix_figure.matrix(
        values, range(len(nodes)), None, colours, "us a message", _ROOM, name=f"fabric-{one['measurement']}",
        caption=captions.of("fabric"), labels=nodes, groups=_bands(one["places"]),
    )  # fmt: skip
    size, operation = formatting.number(one.get("message_bytes")), str(one["operation"])
    times = {key: one[f"{key}_ns"] / 1e3 for key in ("minimum", "mean", "maximum")}
    bars = distribution_plots.histogram(
        linktest.each_once(values, operation), colours, name="fabric-histogram", caption="", unit="us"
    )  # fmt: skip
    facts = (
        *linktest.figures(times, size, operation, int(one.get("at_once", 1))),
        ("nodes", str(len(nodes))),
        ("message", linktest.size_text(size)),
        ("runs", ", ".join(map(str, one["runs"]))),
    )
    return Section(
        f"Between nodes: {one['measurement']}, partition {one['partition']}",
        (
            Text(str(one["text"])),
            Bullets(tuple(_finding(finding) for finding in one["findings"])),
            Figures((drawn,)),
            Figures((bars,), facts),
        ),
        f"{operation}: time of a message, from the row's node to the column's; median over runs",
    )


def _finding(one: Mapping[str, Any]) -> str:
    return f"{one['text']} (suppressed: {one['suppressed']})" if one["suppressed"] else str(one["text"])


def _bands(places: Sequence[str]) -> tuple[Band, ...]:
    """Brackets of the nodes of a switch or rack, where there is more than one."""
    groups, at = [], 0
    for place, mine in groupby(places):
        count = len(list(mine))
        groups.append(Group(at, at + count, str(place)))
        at += count
    return (Band("socket", "switch or rack", tuple(groups)),) if len(groups) > 1 and all(places) else ()
