"""Strips: values by place over the range of the peers, with a row for each quantity of the same places."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import offset_copy

from nodeprint.data.job.fabric_times import slowness
from nodeprint.data.places.layout import SOCKET, Ints, codes
from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedNode, os_places
from nodeprint.errors import NodeprintError
from nodeprint.judge import messages
from nodeprint.judge.verdict import FabricVerdict, Finding
from nodeprint.report import text
from nodeprint.report.figures import figure_data
from nodeprint.report.figures.drawing import BRACKET_PT, letters, name_below, root_of, size_pt, subplots, wrapped
from nodeprint.report.figures.figure_data import named, title_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels, mean_of_runs, shown_unit
from nodeprint.report.figures.part_levels import PartLevel, part_coordinates, part_levels
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.report.names import counted, dimension, shortened
from nodeprint.report.names import place as place_in_words
from nodeprint.report.names import row as row_in_words
from nodeprint.settings.texts import say

#: In mm: the height of a single row and of one among others; the most rows of a figure.
_ONLY_ROW_MM, _ROW_MM, _MOST_ROWS = 26.0, 17.0, 8
#: Letters of a node's name below the rows.
_NODE_LETTERS = 24


def strip_of(dim: str, values: Floats, peers: Floats, title: str, of_peers: str) -> dict[str, xr.Variable]:
    """Return the values of places, and the lowest and highest of the peers' values (peer, place).

    `of_peers` is the peers' title, with {} for `lowest` or `highest`.
    """
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        ends = np.nanmin(peers, axis=0), np.nanmax(peers, axis=0)
    low, high = (named(dim, end, of_peers.format(word)) for end, word in zip(ends, ("lowest", "highest"), strict=True))
    return {"value_0": named(dim, values, title), "low_0": low, "high_0": high}


def in_rows(strips: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Combine strips of a node into figures that fit on a page.

    Strips of the same CPUs become rows of one figure. They must have equally many peers, which the legend counts.
    """
    alike: dict[tuple[int, tuple[str, ...]], list[xr.Dataset]] = {}
    for strip in strips:
        alike.setdefault((strip.attrs["peers"], tuple(strip.cpu.to_numpy().tolist())), []).append(strip)
    return [
        xr.merge(
            [
                strip.rename({name: f"{str(name)[:-1]}{row}" for name in strip.variables if str(name).endswith("_0")})
                for row, strip in enumerate(of_cpus[start : start + _MOST_ROWS])
            ],
            combine_attrs="override",
            compat="override",
        )
        for of_cpus in alike.values()
        for start in range(0, len(of_cpus), _MOST_ROWS)
    ]


def rows_of(data: xr.Dataset) -> list[int]:
    """Return the row numbers of a figure."""
    return list(takewhile(lambda row: f"value_{row}" in data, count()))


def by_cpu(
    levels: NodeLevels,
    node: str,
    fixed: Mapping[str, int | str] | None = None,
    *,
    peers: Sequence[str] = (),
    marked: Sequence[int] = (),
) -> xr.Dataset:
    """Return the values of a measurement by CPU, at `fixed` coordinates of its other dimensions.

    Coordinates are words or canonical numbers, the first by default. `marked` are OS numbers of CPUs. Raises
    NodeprintError if the measurement has no CPUs.
    """
    quantity = levels.quantity
    if "cpu" not in quantity.dims:
        raise NodeprintError(f"{quantity.measurement} has no value for each CPU", advice="draw it as a curve or table")
    at, chosen = dict[str, int](), np.ones(quantity.size, dtype=np.bool_)
    for dim in (dim for dim in quantity.dims if dim != "cpu"):
        wanted = (fixed or {}).get(dim, int(quantity.places[dim].min()))
        at[dim] = quantity.names[dim].index(wanted) if isinstance(wanted, str) else wanted
        chosen &= quantity.places[dim] == at[dim]
    places = np.flatnonzero(chosen)
    slots = quantity.places["cpu"][places]
    names = tuple(map(str, levels.cpus(node, slots)))
    size = levels.unit.size
    others = levels.of_peers(node, peers)[:, places] / size
    none = np.full((1, len(places)), np.nan)
    at_words = [place_in_words({dim: quantity.named(dim, number)}) for dim, number in at.items()]
    shows = ", ".join([text.measured(quantity.measurement), *at_words])
    variables = strip_of(
        "cpu",
        levels.of(node)[places] / size,
        others if len(others) else none,
        f"{shows}: {levels.title}",
        f"{shows}: peers' {{}}, {levels.unit.name}",
    )
    coordinates = {
        "cpu": named("cpu", names, "CPU"),
        **part_coordinates("cpu", quantity.layout.slots[slots]),
        "marked_0": named("cpu", np.isin(names, list(map(str, marked))), f"{shows}: of a finding"),
    }
    return xr.Dataset(variables, coordinates, {"node": node, "peers": len(others)})


@primitive(lambda data, width: Frame(width, _ROW_MM if (rows := len(rows_of(data))) > 1 else _ONLY_ROW_MM, rows=rows))
def strip(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw the rows: values as dots, those of a finding as triangles, over the range of the peers.

    The effect and the tolerance of a finding are lines. `ax` becomes the lowest row, with the ticks and brackets.
    """
    dim, rows = str(data.value_0.dims[0]), rows_of(data)
    labels, levels = list(map(str, data[dim].to_numpy().tolist())), part_levels(data, dim)
    for of_row, row in zip(subplots(ax, len(rows), 1), rows, strict=True):
        _draw_row(of_row, data, row, levels, style)
        of_row.set_xticks([])
    longest = max(map(len, labels))
    turned = longest > 3 and (longest + 1.5) * len(labels) > letters(ax, 1.0, style)
    name_below(ax, labels, levels, title_of(data[dim]), style, turned=turned)
    if data.attrs["peers"]:
        along = longest * 0.62 if turned else 1.2
        below = len(levels) * BRACKET_PT + (2.0 + along) * style.letters_pt
        ax.xaxis.label.set(x=0.0, ha="left")  # the legend is on the right, or below
        _legend(ax, data, below, style)


def _legend(ax: Axes, data: xr.Dataset, below: float, style: Style) -> None:
    lines = {line.get_label(): line for line in ax.get_lines()}
    handles: list[Any] = [lines["_node"], lines["_peers"]]
    words = [shortened(str(data.attrs["node"]), _NODE_LETTERS), counted(data.attrs["peers"], "peer")]
    if figure_data.BELOW in data.coords:
        handles.append(Line2D([], [], color=style.colors["tolerance"], linewidth=0.7, linestyle=(0, (4, 2))))
        words.append(f"tolerance {figure_data.tolerance_text(data)}")
    needed = len("".join(words)) + 6 * len(words)
    has_room = needed + len(ax.get_xlabel()) < letters(ax, 1.0, style)
    down = below + (0.0 if has_room else 0.8 * style.letters_pt)
    where = offset_copy(ax.transAxes, root_of(ax), 0, -down, units="points")
    ncols = len(words) if needed < letters(ax, 1.2, style) else 1
    look: dict[str, Any] = {"bbox_to_anchor": (1.0, 0.0), "bbox_transform": where, "borderpad": 0, "columnspacing": 1.2}
    ax.legend(handles, words, loc="center right" if has_room else "upper right", ncols=ncols, **look)


def _draw_row(ax: Axes, data: xr.Dataset, row: int, levels: Sequence[PartLevel], style: Style) -> None:
    values, low, high = (data[f"{name}_{row}"].to_numpy() for name in ("value", "low", "high"))
    x = np.arange(len(values))
    if levels:  # components have the same borders in every row
        borders = [[(start - 0.5, 0), (start - 0.5, 1)] for start, _, _ in levels[-1].groups[1:]]
        across = ax.get_xaxis_transform()
        lines = LineCollection(borders, linewidths=0.4, colors=style.colors["hair"], transform=across)
        ax.add_collection(lines, autolim=False)
    figure_data.draw_tolerance(ax, data, style)
    if data.attrs["peers"]:  # a line from the lowest to the highest at each place, all as one path
        ends = np.column_stack([low, high, np.full(len(x), np.nan)]).ravel()
        pen: dict[str, Any] = {"linewidth": 1.2, "color": style.colors["peers"], "alpha": 0.7, "label": "_peers"}
        ax.plot(np.repeat(x, 3), ends, solid_capstyle="butt", **pen)
    title = title_of(data[f"value_{row}"])
    if "effect" in data.coords:
        effect = float(data.effect)
        ax.axhspan(float(data.effect_low), float(data.effect_high), color=style.color("alarm"), alpha=0.15, linewidth=0)
        ax.axhline(effect, color=style.color("alarm"), linewidth=0.7)
        words = f"{effect:+.1f} {data.effect.attrs['units']}"
        ax.set_title(words, loc="right", fontsize=style.letters_pt, color=style.color("alarm"))
    marked = data[f"marked_{row}"].to_numpy().astype(np.bool_)
    size = float(np.clip(200 / max(len(x), 1), 1.6, 3.5))
    pen = {"linestyle": "", "label": "_finding" if not marked.all() else "_node"}
    dots = pen | {"label": "_node", "marker": "o", "markersize": size}
    if not marked.all():
        ax.plot(x[~marked], values[~marked], color=style.colors["node"], **dots)
    if marked.any():
        size = 4.0 if marked.sum() <= 40 else 160 / marked.sum()
        ax.plot(x[marked], values[marked], marker="^", color=style.color("alarm"), markersize=max(size, 1.8), **pen)
    ax.margins(y=0.1)
    ax.set_xlim(-0.7, len(x) - 0.3)
    ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    room = size_pt(ax)[0] - (8 * style.letters_pt if "effect" in data.coords else 0.0)
    ax.set_title(wrapped(title, room, style), fontsize=style.letters_pt)


# --- the places of a finding ---


#: More pairs than these are reduced to the means by CPU.
MOST_PAIRS = 128


def own_places(levels: NodeLevels, node: str, finding: Finding, peers: Sequence[str] = ()) -> xr.Dataset:
    """Return the differences of a finding's pairs or cells from their expected values, in percent (a share: points).

    The node's values are means over the runs of the finding. Those of the peers (all others if none are named) are
    means over the runs of their newest job. The expected value is the median of the peers. It shifts with the
    node's other pairs of the same class. A finding of a core is thus the difference that the core adds to its node. The
    places of the finding are marked. Raises NodeprintError if the finding names no places of the measurement, or there
    is no peer.
    """
    quantity = levels.quantity
    of_peers = _of_peers(levels, node, peers)
    if not len(of_peers):
        raise NodeprintError(f"{node} has no peer to differ from", advice="draw its values instead")
    of_node = levels.nodes[levels.rows[node]]
    at = _pair_places(levels, node, finding) if quantity.of_pairs else _cell_places(quantity, of_node, finding)
    strata, of_finding = _strata(quantity, finding.home) if quantity.of_pairs and len(at) else None, at
    if not len(at):
        advice = "judge the campaign again with this version"
        raise NodeprintError(f"finding {finding.id} of {node} names no measured places", advice=advice)
    if not quantity.of_pairs and len(at) == 1 and "cpu" in quantity.dims:
        # a single value needs the node's other CPUs for comparison
        alike = np.ones(quantity.size, dtype=np.bool_)
        for column in (quantity.places[dim] for dim in quantity.dims if dim != "cpu"):
            alike &= column == column[at[0]]
        at = np.flatnonzero(alike)
    values, middle = np.vstack([_of_finding(levels, node, finding), of_peers]), np.nanmedian(of_peers, axis=0)
    share = quantity.model.scale == "share"
    percent = _differences(values, middle, at, strata, share)
    percent_title = f"difference from the peers, {'percentage points' if share else '%'}"
    names, axis, groups, slots = (
        _pair_names(levels, node, at) if quantity.of_pairs else _cell_names(quantity, of_node, at)
    )
    measured, percent = (
        np.array([[np.nanmean(row[places]) for places in groups] for row in of])
        for of in (values[:, at] / levels.unit.size, percent)
    )
    own = np.array([np.isin(at[places], of_finding).any() for places in groups])
    data = finding_strip(finding, node, (axis, names), measured, levels.title, percent, percent_title, own)
    parts = part_coordinates("place", slots) if slots is not None else {}
    return data.assign_coords(parts).assign_attrs(peers=len(of_peers))


def finding_strip(
    finding: Finding,
    node: str,
    places: tuple[str, Sequence[str]],
    measured: Floats,
    title: str,
    percent: Floats,
    percent_title: str,
    own: npt.NDArray[np.bool_],
) -> xr.Dataset:
    """Return the strip of a finding: values and differences of its places on the node, and then on its peers.

    `places` are the axis and names of the places, `own` selects those of the finding. Effect, interval and tolerance
    are those of the finding.
    """
    axis, names = places
    unit, percent_unit = (of.rpartition(", ")[2] for of in (title, percent_title))
    values = {"node_value": named("place", measured[0], f"{node}, {unit}")}
    for word, reduce in (("lowest", np.nanmin), ("median", np.nanmedian), ("highest", np.nanmax)):
        values[f"peers_{word}"] = named("place", reduce(measured[1:], axis=0), f"peers' {word}, {unit}")
    ends = (("effect", finding.effect), ("effect_low", finding.interval.low), ("effect_high", finding.interval.high))
    coordinates = {
        "place": named("place", np.array(names, dtype=object), axis),
        "marked_0": named("place", own, "of the finding"),
        **{name: named((), 100 * end, f"{name.replace('_', ' ')}, {percent_unit}") for name, end in ends},
        **figure_data.tolerance_of(finding),
    }
    of_peers = f"peers' {{}} difference, {percent_unit}"
    values |= strip_of("place", percent[0], percent[1:], percent_title, of_peers)
    return xr.Dataset(values, coordinates, {"node": node, "measured": title})


def _of_finding(levels: NodeLevels, node: str, finding: Finding) -> Floats:
    """Return the mean over jobs of the means over the runs of a finding (place)."""
    quantity = levels.quantity
    rows = quantity.rows[list(quantity.newest_rows)[levels.rows[node]]]
    at = {f"job{quantity.job[row]}/run{quantity.run[row]}": row for of_job in rows.values() for row in of_job}
    of_jobs = [[at[run] for run in runs if run in at] for runs in finding.runs_of_effect]
    means = [mean_of_runs(quantity, of_job) for of_job in of_jobs if of_job]
    return np.asarray(np.nanmean(means, axis=0)) if means else levels.of(node)


def _of_peers(levels: NodeLevels, node: str, peers: Sequence[str]) -> Floats:
    """Return the means over the runs of each peer's newest job (peer, place)."""
    rows = dict(zip(levels.rows, levels.quantity.newest_rows.values(), strict=True))
    chosen = [name for name in peers or rows if name in rows and name != node]
    return np.array([mean_of_runs(levels.quantity, rows[name]) for name in chosen])


def _differences(values: Floats, middle: Floats, at: Ints, strata: Ints | None, share: bool) -> Floats:
    """Return the difference from the expected value by node and place of the finding, in percent."""
    if share:
        return np.asarray(100 * (values[:, at] - middle[at]))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = values / middle - 1
    out = relative[:, at].astype(np.float64)
    if strata is not None:
        rest = np.ones(len(middle), dtype=np.bool_)
        rest[at] = False
        for stratum in np.unique(strata[at]):
            beside = rest & (strata == stratum)
            if beside.any():
                of_stratum = strata[at] == stratum
                out[:, of_stratum] -= np.nanmedian(relative[:, beside], axis=1, keepdims=True)
    return np.asarray(100 * out)


def _strata(quantity: Measured, home: int) -> Ints:
    """Return the class of each place's pair with its sockets; -1 for places at other homes."""
    pairs = quantity.pairs
    sockets = np.sort(quantity.layout.slots[pairs, SOCKET], axis=1)
    of_pair = codes(np.column_stack([quantity.pair_layout.classes, sockets]))
    out = np.full(quantity.size, -1, dtype=np.int64)
    start = quantity.homes.index(home) * len(pairs)
    out[start : start + len(pairs)] = of_pair
    return out


def _pair_places(levels: NodeLevels, node: str, finding: Finding) -> Ints:
    quantity = levels.quantity
    if finding.home not in quantity.homes:
        return np.zeros(0, dtype=np.int64)
    cpus = levels.cpus(node, range(len(quantity.layout.slots)))
    wanted = {frozenset((a, b)) for a, partners in finding.pairs.items() for b in partners}
    of_finding = [frozenset((cpus[a], cpus[b])) in wanted for a, b in quantity.pairs.tolist()]
    return np.flatnonzero(of_finding) + quantity.homes.index(finding.home) * len(quantity.pairs)


def _pair_names(levels: NodeLevels, node: str, at: Ints) -> tuple[tuple[str, ...], str, list[Ints], Ints | None]:
    """Return the names of the places, the title of the axis, the pairs of each place, and their slots."""
    quantity = levels.quantity
    cpus = levels.cpus(node, range(len(quantity.layout.slots)))
    ends = np.stack([quantity.places["a"][at], quantity.places["b"][at]], axis=1)
    first = ends[0].tolist()
    common = [cpu for cpu in first if len(at) > 1 and (ends == cpu).any(axis=1).all()]
    if common:
        partner = np.where(ends[:, 0] == common[0], ends[:, 1], ends[:, 0])
        order = np.argsort(partner)
        names = tuple(str(cpus[slot]) for slot in partner[order].tolist())
        axis, slots = f"partner of CPU {cpus[common[0]]}", quantity.layout.slots[partner[order]]
        return names, axis, list(order[:, None]), slots
    if len(at) <= MOST_PAIRS:
        names = tuple(f"{cpus[a]}\N{EN DASH}{cpus[b]}" for a, b in ends.tolist())
        return names, "pair of CPUs", list(np.arange(len(at))[:, None]), None
    slots = np.unique(ends)
    groups = [np.flatnonzero((ends == slot).any(axis=1)) for slot in slots.tolist()]
    names = tuple(str(cpus[slot]) for slot in slots.tolist())
    return names, say("axes", "own_cpus"), groups, quantity.layout.slots[slots]


def _cell_places(quantity: Measured, node: PackedNode, finding: Finding) -> Ints:
    cells, places = [dict(cell).items() for cell in finding.cells], os_places(quantity, node)
    return np.flatnonzero([any(cell <= place.items() for cell in cells) for place in places])


def _cell_names(quantity: Measured, node: PackedNode, at: Ints) -> tuple[tuple[str, ...], str, list[Ints], Ints | None]:
    every = os_places(quantity, node)
    places = [every[number] for number in at.tolist()]
    varying = [dim for dim in quantity.dims if len({place[dim] for place in places}) > 1] or list(quantity.dims)
    fixed = {dim: places[0][dim] for dim in quantity.dims if dim not in varying}
    names = tuple(row_in_words(", ".join(str(place[dim]) for dim in varying)) for place in places)
    axis = ", ".join(map(dimension, varying)) + (f" ({place_in_words(fixed)})" if fixed else "")
    of_cpus = len(varying) == 1 and quantity.model.labels.get(varying[0]) == "cpu"
    slots = quantity.layout.slots[quantity.places[varying[0]][at]] if of_cpus else None
    return names, axis, list(np.arange(len(at))[:, None]), slots


# --- the messages of a finding ---


def messages_of(finding: Finding, fabrics: Iterable[FabricVerdict]) -> FabricVerdict:
    """Return the messages of a finding. Raises NodeprintError if they are not among `fabrics`."""
    ends = {str(finding.component.where[key]) for key in ("node", "to") if key in finding.component.where}
    for fabric in fabrics:
        if fabric.measurement == finding.measurement and ends <= set(fabric.nodes):
            return fabric
    raise NodeprintError(f"{finding.measurement} between {', '.join(sorted(ends))} was not measured")


def own_messages(verdict: FabricVerdict, finding: Finding) -> xr.Dataset:
    """Return the messages of a finding, compared with their expected times.

    For a slow node these are its messages with every other node, in the slow direction. For a slow link they are the
    messages between its two ends. Expected times come from the kind of link and the other end (for a link, both ends).
    They are the sums in the judge's fit (`judge.messages.terms`) of the medians over all runs. Peers are the messages
    of the other nodes with the same end. Raises NodeprintError if no message of the finding was measured.
    """
    shown = verdict.shown
    logs = slowness(np.array(shown.median, dtype=np.float64), shown.better)
    fitted = messages.terms(logs[None], verdict.places)
    out, into, link = (fitted[of].values[0] for of in ("sends", "receives", "link"))
    number = {name: at for at, name in enumerate(verdict.nodes)}
    where = finding.component.where
    node, of_link = number[str(where["node"])], "to" in where
    ways = [(node, number[str(where["to"])])] if of_link else [(node, at) for at in range(len(logs)) if at != node]
    backward = verdict.directed and where.get("receives")
    forward = of_link or not verdict.directed or where.get("sends")
    ends = [*(ways if forward else []), *((b, a) for a, b in ways if backward)]
    ends = [(a, b) for a, b in ends if np.isfinite(logs[a, b])]
    if not ends:
        raise NodeprintError(f"no message of {where['node']} was measured", advice="draw the matrix of the fabric")
    rows = []
    for a, b in ends:
        sends = not of_link and a == node
        beside = [at for at in range(len(logs)) if at not in (a, b)]
        if of_link:
            own, peers = link[a, b], np.concatenate([link[a, beside], link[beside, b]])
        elif sends:
            own, peers = link[a, b] + out[a], link[beside, b] + out[beside]
        else:
            own, peers = link[a, b] + into[b], link[a, beside] + into[beside]
        peers = peers[np.isfinite(peers)] if np.isfinite(peers).any() else np.array([np.nan])
        rows.append([own, float(peers.min()), float(np.median(peers)), float(peers.max())])
    sign = 1 if shown.better == "lower" else -1
    relative = np.expm1(sign * np.array(rows).T)  # (own, peers' lowest, median and highest; place)
    relative[1:] = np.sort(relative[1:], axis=0)
    unit = shown_unit(shown.unit, np.array(shown.median, dtype=np.float64))
    usual = np.exp(sign * np.array([logs[a, b] for a, b in ends])) / unit.size / (1 + relative[0])
    names = tuple(f"{verdict.nodes[a]} to {verdict.nodes[b]}" for a, b in ends)
    title, percent_title = f"{measured_messages(verdict)}, {unit.name or '1'}", "difference from what is expected, %"
    places, of_finding = ("message from node to node", names), np.ones(len(names), dtype=np.bool_)
    measured, percent = usual * (1 + relative), 100 * relative
    data = finding_strip(finding, str(where["node"]), places, measured, title, percent, percent_title, of_finding)
    return data.assign_attrs(peers=len(verdict.nodes) - 1 - of_link)


def measured_messages(verdict: FabricVerdict, *, smallest: bool = False) -> str:
    """Return what is measured of messages between nodes: their time, or the value of a table."""
    return "time of a message" if smallest or verdict.shown.unit == "ns" else verdict.measurement
