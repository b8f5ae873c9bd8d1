"""The figure of a fabric: who waits how long for whose messages, from verdict.json. Nothing is judged here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from nodeprint.report import figures, linktest, scale, words
from nodeprint.report.figures import Band, Group, Tick, three_digits
from nodeprint.report.pages import FabricPlate

#: In mm: the side of the matrix with its brackets.
_ROOM = 118.0


def plates(verdict: Mapping[str, Any]) -> tuple[FabricPlate, ...]:
    """A figure for each measurement between nodes."""
    return tuple(_plate(one) for one in verdict.get("fabric") or ())


def _plate(one: Mapping[str, Any]) -> FabricPlate:
    nodes = [str(name) for name in one["nodes"]]
    values = np.array([[np.nan if v is None else v for v in row] for row in one["median_ns"]], dtype=np.float64) / 1e3
    ends = scale.ends(values)
    colours = linktest.in_us(scale.of_nodes([(1e3 * ends[0], 1e3 * ends[1])] if ends else []))
    drawn = figures.matrix(values, range(len(nodes)), None, colours, "us a message", _ROOM)
    bands = _bands(one["places"])
    step = max(1, -(-len(nodes) * 3 // int(_ROOM)))
    ticks = tuple(Tick((i + 0.5) / len(nodes), nodes[i]) for i in range(0, len(nodes), step))
    size = words.number(one.get("message_bytes"))
    rates = {
        key: f", {three_digits(size / one[f'{key}_ns'])} GB/s" if size else "" for key in ("minimum", "mean", "maximum")
    }
    return FabricPlate(
        title=f"Between nodes: {one['measurement']}, partition {one['partition']}",
        subtitle=f"{one['operation']}: time of a message, from the row's node to the column's; median over runs",
        text=str(one["text"]),
        findings=tuple(_finding(finding) for finding in one["findings"]),
        matrix=figures.replaced(drawn, bands, ticks),
        histogram=linktest.histogram(values, colours),
        facts=(
            *((key, f"{three_digits(one[f'{key}_ns'] / 1e3)} us{rates[key]}") for key in rates),
            ("nodes", str(len(nodes))),
            ("message", f"{words.thousands(int(size))} B" if size else ""),
            ("runs", ", ".join(map(str, one["runs"]))),
        ),
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
