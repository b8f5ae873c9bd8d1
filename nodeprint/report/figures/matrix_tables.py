"""Tables in colors: node by metric, NUMA node by NUMA node, part by part of a machine, messages from node to node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from nodeprint.data.places.layout import CCD, CCX, NAMES, QUADRANT, SOCKET
from nodeprint.errors import NodeprintError
from nodeprint.judge.verdict import FabricVerdict, Verdict
from nodeprint.report import text
from nodeprint.report.figures import figure_data
from nodeprint.report.figures.drawing import value_limits
from nodeprint.report.figures.figure_data import named, title_of
from nodeprint.report.figures.matrix import scaled, square
from nodeprint.report.figures.node_levels import Floats, NodeLevels, shown_unit
from nodeprint.report.figures.part_levels import outlined
from nodeprint.report.figures.strips import measured_messages
from nodeprint.report.names import message_size
from nodeprint.report.names import row as row_in_words
from nodeprint.report.pages.blocks import MatrixBlock
from nodeprint.settings.texts import say
from nodeprint.stats.robust import finite_median

#: From coarse to fine; the first of these levels is shown of which a node has several parts, and at most so many.
_LEVELS = (CCD, CCX, QUADRANT, SOCKET)
_MOST_COMPONENTS = 32
#: Shares of a tolerance are drawn up to this.
_MOST_SHARE = 2.0


def table_of(
    values: Floats, rows: tuple[str, Sequence[str]], columns: tuple[str, Sequence[str]], title: str
) -> xr.Dataset:
    """A table (row, column) in colors, on the scale of its values; rows and columns have a title and names."""
    coordinates = {
        dim: named(dim, np.array(names, dtype=object), of) for dim, (of, names) in (("row", rows), ("column", columns))
    }
    return scaled(xr.Dataset({"value": named(("row", "column"), values, title)}, coordinates), *value_limits(values))


def agreements_of(verdict: Verdict, nodes: Sequence[str]) -> xr.Dataset:
    """The smallest tolerance at which nodes would be the same, as a share of it, by metric."""
    shares = {name: {of.metric: of.share for of in verdict.nodes[name].agreements} for name in nodes}
    metrics = list(dict.fromkeys(metric for of_node in shares.values() for metric in of_node))
    order = sorted(shares, key=lambda name: (-max(shares[name].values(), default=0.0), name))
    values = np.array([[shares[name].get(metric, np.nan) for metric in metrics] for name in order])
    marked = np.array([verdict.nodes[name].outcome.entry.found for name in order])  # asks for attention
    columns = tuple(text.named("metrics", metric) for metric in metrics)
    shares_title = "share of the tolerance, 1"
    data = table_of(np.minimum(values, _MOST_SHARE), ("node", order), ("metric", columns), say("axes", "share"))
    data = scaled(data.assign(number=named(("row", "column"), values, shares_title)), 0.0, _MOST_SHARE)
    coordinates = {"marked": xr.Variable("row", marked), **figure_data.tolerance_coordinates(1.0, 1.0, "1")}
    return data.assign_coords(coordinates).assign_attrs(digits=2)


def numa(levels: NodeLevels, node: str, stream: str = "") -> xr.Dataset:
    """The latency or bandwidth from the CPUs of each NUMA node to the memory of each, medians over CPUs; of bandwidth
    of one `stream`. Raises NodeprintError where the measurement has no memory nodes."""
    quantity = levels.quantity
    if "memory_node" not in quantity.dims:
        advice = "name a measurement of memory, such as chase-latency"
        raise NodeprintError(f"{quantity.measurement} does not measure memory nodes", advice=advice)
    memory = quantity.places["memory_node"]
    from_node = quantity.places.get("cpu_node")
    if from_node is None:
        from_node = quantity.layout.numa[quantity.places["cpu"]]
    wanted = np.ones(quantity.size, dtype=np.bool_)
    if "stream" in quantity.dims:
        stream = stream or quantity.names["stream"][0]
        wanted = quantity.places["stream"] == quantity.names["stream"].index(stream)
    values = pd.Series(levels.of(node)[wanted] / levels.unit.size)
    table = values.groupby([from_node[wanted], memory[wanted]]).median().unstack()
    numbers = levels.nodes[levels.rows[node]].numbers.get("node", ())
    names = [numbers[order] if 0 <= order < len(numbers) else order for order in range(quantity.layout.numa_nodes)]
    title = f"{f'{row_in_words(stream)}: ' if stream else ''}{levels.title}"
    own, others = (tuple(str(names[int(at)]) for at in order) for order in (table.index, table.columns))
    return table_of(table.to_numpy(), ("CPUs of NUMA node", own), ("memory of NUMA node", others), title)


def block_medians(levels: NodeLevels, node: str, of_levels: Sequence[int] = _LEVELS) -> xr.Dataset | None:
    """Medians of pairs between parts, at the first home, in the unit of figures; None if no level has several."""
    values, slots = levels.square(levels.of(node)), levels.slots
    for level in of_levels:
        of_slots = levels.quantity.layout.slots[slots][:, [SOCKET, level]]
        components, part_of = np.unique(of_slots, axis=0, return_inverse=True)
        if components.min() >= 0 and 2 <= len(components) <= _MOST_COMPONENTS:
            members = [np.flatnonzero(part_of.ravel() == number) for number in range(len(components))]
            medians = np.array([[finite_median(values[np.ix_(row, column)]) for column in members] for row in members])
            sockets, numbers = components.T.tolist()
            names = tuple(map(str, numbers))
            data = table_of(medians / levels.unit.size, (NAMES[level], names), (NAMES[level], names), levels.title)
            return data.assign_coords(socket=("row", sockets))
    return None


def blocks(levels: NodeLevels, node: str, of_levels: Sequence[int] = _LEVELS) -> xr.Dataset | None:
    """Medians between parts, in colors of those of one socket, which a scale of all would not tell apart."""
    data = block_medians(levels, node, of_levels)
    if data is None or len(levels.slots) <= data.sizes["row"]:
        return None
    sockets, medians = data.socket.to_numpy(), data.value.to_numpy()
    inside = (sockets[:, None] == sockets[None, :]) & ~np.eye(len(sockets), dtype=np.bool_)
    of_scale = medians[inside] if np.isfinite(medians[inside]).any() else medians
    low, high = value_limits(np.asarray(of_scale))
    level, several = title_of(data.row), len(set(sockets.tolist())) > 1
    numbers = zip(sockets.tolist(), data.row.to_numpy().tolist(), strict=True)
    names = [f"{socket}.{name}" if several else name for socket, name in numbers]
    axis = f"{'socket.' if several else ''}{level}"
    title = say("axes", "blocks", level=level, name=levels.unit.name)
    shown = table_of(np.clip(medians, low, high), (axis, names), (axis, names), title)
    return scaled(shown.assign(number=named(("row", "column"), medians, levels.title)), low, high)


def messages(verdict: FabricVerdict, *, smallest: bool = False) -> xr.Dataset:
    """Return medians over runs, node by node, of the deciding size or the `smallest`; nodes of findings are marked."""
    shown = verdict.shown
    values = np.array(verdict.smallest_ns if smallest else shown.median, dtype=np.float64)
    unit = shown_unit("ns" if smallest else shown.unit, values)
    values = values / unit.size
    size = verdict.by_size[0].message_bytes if smallest else verdict.message_bytes
    of_size = f" of {message_size(size)}" if verdict.by_size else ""
    title = f"{measured_messages(verdict, smallest=smallest)}{of_size}, {unit.name or '1'}"
    findings = () if smallest else verdict.findings
    odd = {str(finding.component.where.get(key)) for finding in findings for key in ("node", "to")}
    places, marked = verdict.places, [row for row, name in enumerate(verdict.nodes) if name in odd]
    several = all(places) and len(set(places)) > 1
    parts = {"place": outlined(np.array(places, dtype=object), "switch or rack", "group")} if several else {}
    return square(values, verdict.nodes, title, parts, axis="node", marked=marked, directed=verdict.directed)


# --- for a terminal ---


#: The most CPUs that get rows of their own.
_CPUS = 32


def in_short(levels: NodeLevels, node: str) -> MatrixBlock | None:
    """Return a node's matrix by CPU, or by component if there are too many; None if nothing is to be compared."""
    quantity = levels.quantity
    slots = levels.slots
    if len(slots) < 3:
        return None
    title = f"{node}: {quantity.measurement}, median in {levels.unit.name}"
    values = levels.square(levels.of(node)) / levels.unit.size
    if len(slots) <= _CPUS:
        names = tuple(map(str, levels.cpus(node, slots)))
        return MatrixBlock(f"{title}, CPU by CPU", names, tuple(map(tuple, values.tolist())))
    blocks = block_medians(levels, node)
    if blocks is None:
        return None
    level = title_of(blocks.row)
    names, rows = blocks.row.to_numpy().tolist(), blocks.value.to_numpy().tolist()
    return MatrixBlock(f"{title}, {level} by {level}", tuple(names), tuple(map(tuple, rows)))
