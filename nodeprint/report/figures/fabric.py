"""Messages between nodes: how long one from the row's node to the column's takes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from nodeprint.judge.verdict import FabricVerdict
from nodeprint.report.figures.distributions import HistogramData, of_square
from nodeprint.report.figures.matrix import MatrixData, matrix
from nodeprint.report.figures.node_levels import shown_unit
from nodeprint.report.figures.part_levels import PartGroup, PartLevel
from nodeprint.report.figures.pixels import ColourScale, value_limits

fabric = matrix


def medians(verdict: FabricVerdict) -> MatrixData:
    """The medians over runs node by node, with the switches or racks as brackets; nodes of findings are marked."""
    values = np.array(verdict.median_ns, dtype=np.float64)
    unit = shown_unit("ns", values)
    values = values / unit.size
    low, high = value_limits(values)
    title = f"{verdict.measurement}, time of a message, {unit.name}"
    odd = {str(finding.part.where.get(key)) for finding in verdict.findings for key in ("node", "to")}
    return MatrixData(
        values, verdict.nodes, ColourScale(title, low, high), axis="node", levels=_places(verdict.places),
        marked=tuple(row for row, name in enumerate(verdict.nodes) if name in odd), directed=verdict.directed,
    )  # fmt: skip


def _places(places: tuple[str, ...]) -> tuple[PartLevel, ...]:
    changes = [0, *(row for row in range(1, len(places)) if places[row] != places[row - 1]), len(places)]
    if len(changes) < 3 or not all(places):
        return ()
    groups = tuple(PartGroup(start, stop, places[start]) for start, stop in pairwise(changes))
    return (PartLevel("group", "switch or rack", groups),)


def histogram(verdict: FabricVerdict) -> HistogramData:
    """All medians, in the colours of their matrix."""
    data = medians(verdict)
    return of_square(data.values, data.scale, directed=verdict.directed)
