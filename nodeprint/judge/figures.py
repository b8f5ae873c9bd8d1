"""Values of every node: medians of pair classes and of the rows of other measurements, with intervals over runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace
from scipy.special import stdtrit

from nodeprint.data.places.homes import FAR
from nodeprint.data.places.layout import SOCKET, Ints, codes
from nodeprint.data.places.measured import Key, Measured
from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import naming, sets
from nodeprint.judge.reduction import over_passes, padded
from nodeprint.judge.verdict import CellFigure, ClassFigure
from nodeprint.machine.topology.level_names import level_name
from nodeprint.stats.disagreement import LEAST, agreeing
from nodeprint.stats.mixture import MIXED, few_near
from nodeprint.stats.robust import row_medians

Floats = npt.NDArray[np.float64]
Marked = TypeVar("Marked", ClassFigure, CellFigure)
#: With fewer pairs there are no groups, as their halves could be single pairs.
_LEAST_PAIRS = 8


class OverRuns(NamedTuple):
    """The median of a value over its `runs`, with standard deviation and interval (`low`, `high`).

    Both are of the majority that agrees, without the runs `left_out`. Without a majority they are of all runs, and the
    interval is from the lowest to the highest run.
    """

    median: float
    sd: float
    low: float
    high: float
    runs: int
    left_out: int


def of_classes(reduced: Sequence[Measured], nodes: int) -> list[list[ClassFigure]]:
    """By node: for each measurement, home and pair class, the median over runs of each run's value, with its 95%
    interval.

    A run's value is its median. With lines on one NUMA node, which is near one socket and far from others, it is the
    mean of the sockets' medians. The interval is Student's over the runs that agree, NaN with one run. If few pairs of
    a run are near its median, the distribution is a mixture, and the value includes the medians of its groups.
    """
    out: list[list[ClassFigure]] = [[] for _ in range(nodes)]
    for matrix in (matrix for matrix in reduced if matrix.of_pairs):
        rows = matrix.rows_used
        for name, home, apart, by_socket in _class_rows(matrix):
            mixed = _mixtures(matrix.level, by_socket, rows)
            for node, over, pairs in _of_nodes(matrix.level, apart, rows):
                groups = mixed.get(node) or _groups(matrix, rows[node], np.concatenate(apart))
                out[node].append(
                    ClassFigure(
                        name,
                        matrix.measurement,
                        home,
                        over.median,
                        over.low,
                        over.high,
                        pairs,
                        over.runs,
                        over.sd,
                        groups,
                        over.left_out,
                    )
                )
    return out


def places(
    reduced: Sequence[Measured], node: int, measurement: str, called: str, home: int
) -> tuple[Measured, Ints] | None:
    """The measurement points of a node for the value named `called`. None unless its median is over one set of places,
    as for a half of the pairs or the mean of several homes."""
    for candidate in reduced:
        if candidate.measurement != measurement or node not in candidate.rows:
            continue
        if not candidate.of_pairs:
            rows = ((row, _by_home(candidate, of_row)) for row, of_row in _table_rows(candidate))
            return next(((candidate, next(iter(by_home.values()))) for row, by_home in rows if row == called), None)
        for name, at_home, apart, by_socket in _class_rows(candidate):
            named = {f"{name}, {socket}": of_socket for socket, of_socket in by_socket.items()}
            named |= {name: apart[0]} if len(apart) == 1 else {}
            if at_home == home and called in named:
                return candidate, named[called]
    return None


def _mixtures(
    level: npt.NDArray[np.floating], by_socket: Mapping[str, Ints], rows: Mapping[int, list[int]]
) -> dict[int, dict[str, float]]:
    """By node, the median over runs of the median of each socket's places. It includes only nodes whose sockets differ
    by more than a factor MIXED, so that a common median has no meaning."""
    if len(by_socket) < 2 or sum(map(len, by_socket.values())) < _LEAST_PAIRS:
        return {}
    used = np.concatenate(list(rows.values()))
    of_rows = np.full((len(level), len(by_socket)), np.nan)
    of_rows[used] = np.stack([row_medians(level[np.ix_(used, places)]) for places in by_socket.values()], axis=1)
    medians = over_passes(padded(of_rows, list(rows.values())))
    mixed = medians.max(axis=1) > MIXED * medians.min(axis=1)
    return {
        node: dict(zip(by_socket, of_node.tolist(), strict=True))
        for node, of_node, apart in zip(rows, medians, mixed.tolist(), strict=True)
        if apart
    }


def marked(figures: Sequence[Marked], lost: Mapping[str, float]) -> list[Marked]:
    """Add the lost share of the measurement to each value."""
    return [replace(figure, disturbed=lost.get(figure.measurement, 0.0)) for figure in figures]


def _groups(reduced: Measured, rows: Sequence[int], places: Ints) -> dict[str, float]:
    """The medians over runs of the groups of a node's pairs (`places`).

    For a matrix without CPU labels these are the levels of the detected structure. Otherwise, if most runs have few
    pairs near the median, they are the faster and the slower half. Each run is examined by itself, so a disturbed run
    does not look like a second group.
    """
    values = reduced.level[np.ix_(np.array(rows), places)]
    values = values[np.isfinite(values).any(axis=1)]
    if np.count_nonzero(np.isfinite(values).any(axis=0)) < _LEAST_PAIRS:
        return {}
    unlabeled = reduced.layout.slots[:, SOCKET].max(initial=-1) < 0
    whole = unlabeled and len(places) == len(reduced.pairs)
    if whole and (found_groups := _found(reduced, over_passes(values[None])[0])):
        return found_groups
    mixed = [few_near(run, middle) for run, middle in zip(values, row_medians(values).tolist(), strict=True)]
    if 2 * sum(mixed) <= len(mixed):
        return {}
    quartiles = np.nanquantile(values, (0.25, 0.75), axis=1)
    lower, upper = np.median(quartiles, axis=1).tolist()
    return {"faster half": lower, "slower half": upper}


def _found(quantity: Measured, values: npt.NDArray[np.floating]) -> dict[str, float]:
    """By detected level of a latency matrix (by pair), the median of the pairs within it. For the largest components,
    also the median of the pairs between two of them."""
    from nodeprint import structure  # noqa: PLC0415 (half a second to import, for mixtures without labels alone)

    size = len(quantity.layout.slots)
    square = np.full((size, size), np.nan)
    a, b = quantity.pairs.T
    square[a, b] = square[b, a] = values
    levels = structure.find(square, range(size)).levels
    named = [(f"same {level_name(level.name)}?", level.within) for level in levels]
    if levels:
        named.append((f"other {level_name(levels[-1].name)}?", levels[-1].between))
    return {", ".join(filter(None, (name, pairs.part))): pairs.median_ns for name, of in named for pairs in of}


def of_rows(
    reduced: Sequence[Measured], nodes: Sequence[PackedNode], groups: Sequence[Ints] = ()
) -> list[list[CellFigure]]:
    """By node: for each row of a measurement's table, the median of its places with its interval over runs. Also the
    worst place, and the median over the nodes of its group of two or more.

    For cells measured at several homes, the value is the mean of the homes' medians, and the name lists the homes.
    Values are from each node's latest job. The 95% interval is Student's over runs, NaN with fewer than three.
    """
    out: list[list[CellFigure]] = [[] for _ in nodes]
    group_of = {node: number for number, group in enumerate(groups) if len(group) > 1 for node in group.tolist()}
    for cells in (cells for cells in reduced if not cells.of_pairs and cells.size):
        rows = cells.rows_used
        medians_of_runs = over_passes(padded(cells.level, list(rows.values())))
        at = {number: i for i, number in enumerate(rows)}
        for row, row_places in _table_rows(cells):
            homes = _by_home(cells, row_places)
            name = f"{row}, mean of homes {'+'.join(map(str, homes))}" if len(homes) > 1 else row
            nodes_of_row = _of_nodes(cells.level, list(homes.values()), rows)
            medians: dict[int, list[float]] = {}
            for number, over, _ in nodes_of_row:
                medians.setdefault(group_of.get(number, -1), []).append(over.median)
            worst = _worst(cells, row_places, medians_of_runs)
            called: dict[tuple[int, ...], Mapping[str, Key]] = {}  # nodes with the same numbers share them
            middle = {group: float(np.median(values)) for group, values in medians.items()} | {-1: float("nan")}
            for number, over, _ in nodes_of_row:
                group = middle[group_of.get(number, -1)]
                place, value = worst[at[number]]
                key = (place, *map(id, nodes[number].numbers.values())) if len(row_places) > 1 else ()
                if key not in called:
                    called[key] = _named(cells, place, nodes[number], name) if key else {}
                out[number].append(_row(cells, name, over, (called[key], value), len(row_places), group))
    return out


def _named(cells: Measured, place: int, node: PackedNode, name: str) -> Mapping[str, Key]:
    """The name of a place on a node, without the labels in the row's `name`."""
    where = naming.numbered(cells.place(place), node, cells.model)
    return {label: value for label, value in where.items() if str(value) not in name.split(", ")}


def _class_rows(reduced: Measured) -> Iterator[tuple[str, int, list[Ints], dict[str, Ints]]]:
    """Pair classes at each home: name, home, places, and the places of each socket. With lines on one NUMA node, places
    are separate by socket."""
    of, layout = reduced.pairs, reduced.pair_layout
    own = layout.slots[of, SOCKET]
    sockets = np.where(own[:, 0] == own[:, 1], own[:, 0], -1)
    ends = codes(np.sort(own, axis=1))
    for number, name in enumerate(layout.class_names):
        pairs = np.flatnonzero(layout.classes == number)
        for order, home in enumerate(reduced.homes) if len(pairs) else ():
            at = pairs + order * len(of)
            apart = [at[ends[pairs] == end] for end in np.unique(ends[pairs])]
            by_socket = {
                f"socket {socket}": at[sockets[pairs] == socket]
                for socket in np.unique(sockets[pairs]).tolist()
                if socket >= 0
            }
            yield name, home, apart if 0 <= home < FAR else [at], by_socket


def _of_nodes(
    level: npt.NDArray[np.floating], apart: Sequence[Ints], rows: dict[int, list[int]]
) -> list[tuple[int, OverRuns, int]]:
    """The nodes with a value: the mean of the medians of places `apart` over the node's `rows`, and the maximum number
    of these places."""
    used = np.concatenate(list(rows.values()))
    values = [level[np.ix_(used, places)] for places in apart]
    median_and_count = np.full((len(level), 2), np.nan)
    median_and_count[used, 0] = np.mean([row_medians(component) for component in values], axis=0, dtype=np.float64)
    median_and_count[used, 1] = sum(np.isfinite(component).sum(axis=1) for component in values)
    of_runs = padded(median_and_count, list(rows.values()))
    most = np.nanmax(of_runs[..., 1], axis=1).astype(int).tolist()
    over = over_runs(of_runs[..., 0])
    return [(node, figure, count) for node, figure, count in zip(rows, over, most, strict=True) if figure.runs]


def over_runs(values: npt.NDArray[np.floating]) -> list[OverRuns]:
    """The value over the runs of each node, from `values` (node, run). The 95% interval is Student's, NaN with one
    run."""
    present = np.isfinite(values)
    kept = present.copy()
    with np.errstate(invalid="ignore", divide="ignore"):  # of a node without any
        differing = np.fmax.reduce(values, axis=1) > LEAST * np.fmin.reduce(values, axis=1)
    for node in np.flatnonzero(differing):
        kept[node] = agreeing(values[node])
    alone = ~kept.any(axis=1)
    used = np.where(kept | alone[:, None], values, np.nan)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # of one run
        sd = np.nanstd(used, axis=1, ddof=1)
    middle, runs, count = row_medians(values), present.sum(axis=1), kept.sum(axis=1)
    half = stdtrit(np.maximum(count - 1, 1), 0.975) * sd / np.sqrt(np.maximum(count, 1))
    low = np.where(alone, np.fmin.reduce(values, axis=1), np.maximum(middle - half, 0.0))
    high = np.where(alone, np.fmax.reduce(values, axis=1), middle + half)
    columns = (middle, sd, low, high, runs, runs - count)
    return [OverRuns(*figure) for figure in zip(*(column.tolist() for column in columns), strict=True)]


def _table_rows(quantity: Measured) -> list[tuple[str, Ints]]:
    """Names and places of the rows of the table."""
    labels, model = sets.labels(quantity), quantity.model
    kept: Sequence[int] = range(quantity.size)
    for dim, at in model.at.items():
        numbers = [int(key) for key in labels[dim] if isinstance(key, int)]
        wanted = {"least": min(numbers, default=0), "most": max(numbers, default=0)}.get(str(at), at)
        kept = [place for place in kept if labels[dim][place] == wanted]
    rows: dict[str, list[int]] = {}
    for place in kept:
        keys = [labels[label][place] for label in model.rows if label in labels]
        rows.setdefault(", ".join(str(key) for key in keys if key is not None) or "all", []).append(place)
    return [(name, np.array(row_places)) for name, row_places in rows.items()]


def _by_home(quantity: Measured, of: Ints) -> dict[int, Ints]:
    """Places by the home of their lines if the same cells have several homes, else all in one group."""
    if "home" not in quantity.places:
        return {-1: of}
    others = np.stack([column[of] for dim, column in quantity.places.items() if dim != "home"], axis=1)
    homes = quantity.places["home"][of]
    if len(np.unique(others, axis=0)) == len(of):
        return {-1: of}
    return {int(home): of[homes == home] for home in np.unique(homes)}


def _worst(quantity: Measured, of: Ints, by_place: npt.NDArray[np.floating]) -> list[tuple[int, float]]:
    """The worst of the places `of` for each node, and its value there, from medians over runs (node, place)."""
    values = by_place[:, of]
    signed = values if quantity.model.better == "lower" else -values
    worst = of[np.where(np.isfinite(signed), signed, -np.inf).argmax(axis=1)]
    return list(zip(worst.tolist(), by_place[np.arange(len(worst)), worst].tolist(), strict=True))


def _row(
    quantity: Measured, name: str, over: OverRuns, worst: tuple[Mapping[str, Key], float], count: int, group: float
) -> CellFigure:
    """The value of a row. `worst` is the worst of its `count` places with the value there, and `group` the median of
    its group."""
    # with two runs Student's interval is useless: 12.7 times their spread
    wide = over.runs - over.left_out == 2 or over.runs < 2
    low, high = (float("nan"), float("nan")) if wide else (over.low, over.high)
    return CellFigure(
        quantity.measurement,
        name,
        "share" if quantity.model.scale == "share" else quantity.unit,
        over.median,
        low,
        high,
        group,
        *worst,
        count,
        over.runs,
        over.sd,
        over.left_out,
    )
