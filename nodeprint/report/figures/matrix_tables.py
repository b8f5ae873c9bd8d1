"""Tables in colors with their numbers: node by metric, NUMA node by NUMA node, part by part of a machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from nodeprint.data.places import homes
from nodeprint.data.places.layout import CCD, CCX, NAMES, QUADRANT, SOCKET
from nodeprint.errors import NodeprintError
from nodeprint.judge.verdict import Verdict
from nodeprint.report import text
from nodeprint.report.figures import tolerance_band
from nodeprint.report.figures.figure_data import named, title_of
from nodeprint.report.figures.matrix import at_first_home, drawn_slots, home_of, of_differences, scaled, square_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.pixels import value_limits
from nodeprint.report.names import row as row_in_words
from nodeprint.report.pages.blocks import MatrixBlock
from nodeprint.settings.texts import say
from nodeprint.stats.robust import finite_median

#: From coarse to fine; the first of these levels is shown of which a node has several parts, and at most so many.
_LEVELS = (CCD, CCX, QUADRANT, SOCKET)
_MOST_COMPONENTS = 32
#: Shares of a tolerance are drawn up to this, differences of quadrants to at least this, percent.
_MOST_SHARE, _LEAST_QUADRANTS = 2.0, 2.0


def table_of(
    values: Floats, rows: tuple[str, Sequence[str]], columns: tuple[str, Sequence[str]], title: str
) -> xr.Dataset:
    """A table (row, column) in colors, on the scale of its values; rows and columns have a title and names."""
    coordinates = {
        dim: named(dim, np.array(names, dtype=object), of) for dim, (of, names) in (("row", rows), ("column", columns))
    }
    return scaled(xr.Dataset({"value": named(("row", "column"), values, title)}, coordinates), *value_limits(values))


def agreements_of(verdict: Verdict, nodes: Sequence[str] = ()) -> xr.Dataset | None:
    """The smallest tolerance at which nodes would be the same, as a share of it, by metric; None without any."""
    chosen = nodes or [name for name, node in verdict.nodes.items() if node.agreements]
    shares = {name: {of.metric: of.share for of in verdict.nodes[name].agreements} for name in chosen}
    metrics = list(dict.fromkeys(metric for of_node in shares.values() for metric in of_node))
    if not metrics:
        return None
    order = sorted(shares, key=lambda name: (-max(shares[name].values(), default=0.0), name))
    values = np.array([[shares[name].get(metric, np.nan) for metric in metrics] for name in order])
    marked = np.array([verdict.nodes[name].outcome.entry.found for name in order])  # asks for attention
    columns = tuple(text.named("metrics", metric) for metric in metrics)
    shares_title = "share of the tolerance, 1"
    data = table_of(np.minimum(values, _MOST_SHARE), ("node", order), ("metric", columns), say("axes", "share"))
    data = scaled(data.assign(number=named(("row", "column"), values, shares_title)), 0.0, _MOST_SHARE)
    coordinates = {"marked": xr.Variable("row", marked), **tolerance_band.coordinates(1.0, 1.0, "1")}
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


def block_medians(levels: NodeLevels, node: str) -> xr.Dataset | None:
    """Medians of pairs between parts, at the first home, in the unit of figures; None if no level has several."""
    values, slots = at_first_home(levels, node)
    for level in _LEVELS:
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


def blocks(levels: NodeLevels, node: str) -> xr.Dataset | None:
    """Medians between parts, in colors of those of one socket, which a scale of all would not tell apart."""
    data = block_medians(levels, node)
    if data is None or len(drawn_slots(levels.quantity)) <= data.sizes["row"]:
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


def quadrants(levels: NodeLevels, node: str, home: int | None = None) -> xr.Dataset | None:
    """Medians of the pairs between quadrants; None if the machine has no two known quadrants.

    Pairs of cores of the same CCX are left out, as they do not cross the I/O die. Numbers are medians. Colors are
    differences in percent from the median of similar blocks. These are inside a quadrant, between quadrants of one
    socket, or between two sockets. On one scale of values the difference between sockets would leave one color
    to all quadrants.
    """
    quantity = levels.quantity
    at_home = home_of(quantity, home)
    slots, pairs = quantity.layout.slots, quantity.pairs
    components = np.unique(slots[:, [SOCKET, QUADRANT]], axis=0)
    if slots[:, QUADRANT].min(initial=0) < 0 or len(components) < 2:
        return None
    number = {tuple(component): order for order, component in enumerate(components.tolist())}
    of_slot = np.array([number[tuple(component)] for component in slots[:, [SOCKET, QUADRANT]].tolist()])
    a, b = pairs.T
    start = quantity.homes.index(at_home) * len(pairs)
    values = levels.of(node)[start : start + len(pairs)] / levels.unit.size
    crossing = ((slots[a, CCX] != slots[b, CCX]) | (slots[a, CCX] < 0)) & np.isfinite(values)
    low, high = np.minimum(of_slot[a], of_slot[b])[crossing], np.maximum(of_slot[a], of_slot[b])[crossing]
    blocks = pd.Series(values[crossing]).groupby([low, high]).median()
    first, second = (blocks.index.get_level_values(end).to_numpy() for end in (0, 1))
    # similar blocks are inside a quadrant, between quadrants of one socket, or between two sockets
    kinds = [*np.sort(components[:, 0][np.stack([first, second])], axis=0), first == second]
    table, away = np.full((2, len(components), len(components)), np.nan)
    for out, each in ((table, blocks), (away, 100 * (blocks / blocks.groupby(kinds).transform("median") - 1))):
        out[first, second] = out[second, first] = each
    several = len(set(components[:, 0].tolist())) > 1
    names = tuple(f"{socket}.{quadrant}" if several else str(quadrant) for socket, quadrant in components.tolist())
    place = homes.named(at_home)
    title = f"{quantity.measurement}, {f'{place}: ' if place else ''}{levels.title}"
    axis = "socket.quadrant" if several else "quadrant"
    data = table_of(away, (f"from {axis}", names), (f"to {axis}", names), say("axes", "quadrants"))
    return of_differences(data.assign(number=named(("row", "column"), table, title)), None, _LEAST_QUADRANTS)


# --- for a terminal ---


#: The most CPUs that get rows of their own.
_CPUS = 32


def in_short(levels: NodeLevels, node: str) -> MatrixBlock | None:
    """Return a node's matrix by CPU, or by component if there are too many; None if nothing is to be compared."""
    quantity = levels.quantity
    slots = drawn_slots(quantity)
    if len(slots) < 3:
        return None
    title = f"{node}: {quantity.measurement}, median in {levels.unit.name}"
    values = square_of(quantity, levels.of(node), quantity.homes[0], slots) / levels.unit.size
    if len(slots) <= _CPUS:
        names = tuple(map(str, levels.cpus(node, slots)))
        return MatrixBlock(f"{title}, CPU by CPU", names, tuple(map(tuple, values.tolist())))
    blocks = block_medians(levels, node)
    if blocks is None:
        return None
    level = title_of(blocks.row)
    names, rows = blocks.row.to_numpy().tolist(), blocks.value.to_numpy().tolist()
    return MatrixBlock(f"{title}, {level} by {level}", tuple(names), tuple(map(tuple, rows)))
