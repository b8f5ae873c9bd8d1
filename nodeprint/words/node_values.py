"""Figures of every node: class medians of pairs, rows of the other measurements' tables, with intervals over runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nodeprint.distributions import stdtrit
from nodeprint.fleet.homes import FAR
from nodeprint.fleet.quantity import Quantity
from nodeprint.judge import sets
from nodeprint.judge.confirmation import ShownCause
from nodeprint.judge.reduction import Reduced, newest_rows
from nodeprint.layout import CLASSES, SOCKET, Ints, codes
from nodeprint.packed import PackedNode
from nodeprint.words import places, set_findings
from nodeprint.words.outcome import CellFigure, ClassFigure

Floats = npt.NDArray[np.float64]

#: Rows that are in memory twice at once, as a median sorts a copy.
_ROWS = 256


def of_classes(reduced: Sequence[Reduced], nodes: int) -> list[list[ClassFigure]]:
    """By node: per measurement, home and class the median over runs of each run's figure, with its 95 % interval.

    A run's figure is its median; at one NUMA node, which is near the pairs of one socket and far from those of others,
    the mean of the sockets' medians. The interval is Student's over runs, NaN with one run.
    """
    out: list[list[ClassFigure]] = [[] for _ in range(nodes)]
    for one in reduced:
        if not one.quantity.of_pairs:
            continue
        rows_of = newest_rows(one.quantity.node, one.quantity.job)
        for number, name in enumerate(CLASSES):
            mine = np.flatnonzero(one.quantity.pair_layout.classes == number)
            for part in one.parts if len(mine) else ():
                apart = _by_sockets(one.quantity, mine) if 0 <= part.home < FAR else [mine]
                medians, pairs = _mean_of_medians(one.level[:, part.places], apart)
                for node, rows in rows_of.items():
                    of_runs = [medians[row] for row in rows if medians[row] == medians[row]]
                    if of_runs:
                        counted = max(pairs[row] for row in rows)
                        out[node].append(_class(name, one.quantity.measurement, part.home, of_runs, counted))
    return out


def _by_sockets(quantity: Quantity, pairs: Ints) -> list[Ints]:
    """Pairs by the sockets of their CPUs."""
    sockets = codes(np.sort(quantity.layout.slots[quantity.pairs[pairs], SOCKET], axis=1))
    return [pairs[sockets == number] for number in np.unique(sockets)]


def _mean_of_medians(
    level: npt.NDArray[np.floating], apart: Sequence[Sequence[int] | Ints]
) -> tuple[list[float], list[int]]:
    """Of each row the mean of the medians of places `apart`, NaN where one has none, and the number measured."""
    medians, counts = zip(*(medians_of(level[:, places]) for places in apart), strict=True)
    return np.mean(medians, axis=0).tolist(), np.sum(counts, axis=0).tolist()


def medians_of(cells: npt.NDArray[np.floating]) -> tuple[list[float], list[int]]:
    """Median and number of what was measured in each row, NaN without any."""
    medians: list[float] = []
    counts: list[int] = []
    for start in range(0, len(cells), _ROWS):
        rows = cells[start : start + _ROWS]
        known = ~np.isnan(rows)
        counts += known.sum(axis=1).tolist()
        if known.all():
            medians += np.median(rows, axis=1).astype(np.float64).tolist()
        else:
            some = zip(rows, known, strict=True)
            medians += [float(np.median(row[mine])) if mine.any() else float("nan") for row, mine in some]
    return medians, counts


@lru_cache(maxsize=64)
def _t95(degrees: int) -> float:
    return float(stdtrit(degrees, 0.975))


def _class(name: str, measurement: str, home: int, of_runs: list[float], pairs: int) -> ClassFigure:
    centre, sd, half = over_runs(of_runs)
    low = max(centre - half, 0.0)  # of two runs that differ much Student's interval is wider than the median
    return ClassFigure(name, measurement, home, centre, low, centre + half, pairs, len(of_runs), sd)


def over_runs(values: Sequence[float]) -> tuple[float, float, float]:
    """Median of a few values, their standard deviation and half of Student's 95 % interval, both NaN of one."""
    n = len(values)
    ordered = sorted(values)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    if n < 2:
        return middle, float("nan"), float("nan")
    mean = sum(values) / n
    sd = (sum((value - mean) ** 2 for value in values) / (n - 1)) ** 0.5
    return middle, sd, _t95(n - 1) * sd / n**0.5


def of_rows(reduced: Sequence[Reduced], nodes: Sequence[PackedNode]) -> list[list[CellFigure]]:
    """By node: per row of a measurement's table the median of its places, with its interval over runs and worst place.

    Where they were measured at several homes it is the mean of the homes' medians, and the name says the homes. Of each
    node's latest job; the interval (95 %) is Student's over runs, NaN with fewer than three.
    """
    out: list[list[CellFigure]] = [[] for _ in nodes]
    for one in reduced:
        if one.quantity.of_pairs or not one.quantity.size:
            continue
        level = np.asarray(one.level, dtype=np.float64)
        rows = newest_rows(one.quantity.node, one.quantity.job)
        means = _means(level, list(rows.values()))
        for row, mine in _table_rows(one.quantity):
            homes = _by_home(one.quantity, mine)
            name = f"{row}, mean of homes {'+'.join(map(str, homes))}" if len(homes) > 1 else row
            medians, _ = _mean_of_medians(level, list(homes.values()))
            for (number, of_node), mean in zip(rows.items(), means[:, mine], strict=True):
                of_runs = [medians[row] for row in of_node if medians[row] == medians[row]]
                if of_runs:
                    out[number].append(_row(one.quantity, nodes[number], name, mine, of_runs, mean))
    return out


def beside(rows: Sequence[CellFigure], shown: Sequence[ShownCause], node: PackedNode) -> tuple[CellFigure, ...]:
    """The rows of a node's table, and behind those of each measurement one for every place that deviates in it."""
    out = list(rows)
    for one in shown:
        matrix = one.matrix
        if one.state == "refuted" or matrix.quantity.of_pairs:
            continue
        term = matrix.terms.terms[int(one.cause.members[0])]
        seen = one.one.newest(int(one.node))
        peers = set_findings.level(one)
        assert seen is not None
        effects = [matrix.scale.relative(float(v)) for v in seen.values[:, one.cause.members[0]] if np.isfinite(v)]
        of_runs = effects if matrix.terms.share else [peers * (1 + effect) for effect in effects]
        mean = _means(np.asarray(seen.level, dtype=np.float64), [range(len(seen.level))])[0, term.covers]
        name = places.of_labels(places.place(matrix, term.where, node))
        figure = _row(matrix.quantity, node, name, term.covers.tolist(), of_runs, mean)
        out.append(replace(figure, group=peers, deviates=True))
    order = list(dict.fromkeys(row.measurement for row in out))
    return tuple(sorted(out, key=lambda row: order.index(row.measurement)))


def beside_groups(rows: Sequence[Sequence[CellFigure]], groups: Sequence[Ints]) -> list[tuple[CellFigure, ...]]:
    """Figures with the median over the nodes of each group of two or more."""
    out = [tuple(mine) for mine in rows]
    for nodes in (group.tolist() for group in groups if len(group) > 1):
        known: dict[tuple[str, str], list[float]] = {}
        for figure in (figure for i in nodes for figure in rows[i]):
            known.setdefault((figure.measurement, figure.name), []).append(figure.median)
        group = {key: float(np.median(medians)) for key, medians in known.items()}
        for i in nodes:
            out[i] = tuple(replace(f, group=group[f.measurement, f.name]) for f in rows[i])
    return out


def _means(level: Floats, rows: Sequence[Sequence[int]]) -> Floats:
    """Per entry of `rows` the mean over its rows (., place), NaN where none was measured."""
    chosen = level[np.concatenate([np.asarray(mine) for mine in rows])]
    starts = np.cumsum([0, *map(len, rows[:-1])])
    there = np.isfinite(chosen)
    with np.errstate(invalid="ignore"):
        total = np.add.reduceat(np.where(there, chosen, 0.0), starts, axis=0)
        return np.asarray(total / np.add.reduceat(there.astype(np.int64), starts, axis=0))


def _table_rows(quantity: Quantity) -> list[tuple[str, list[int]]]:
    """Rows of the table: their names and places."""
    labels, model = sets.labels(quantity), quantity.model
    kept: Sequence[int] = range(quantity.size)
    for dim, at in model.at.items():
        found = [int(key) for key in labels[dim] if isinstance(key, int)]
        wanted = {"least": min(found, default=0), "most": max(found, default=0)}.get(str(at), at)
        kept = [place for place in kept if labels[dim][place] == wanted]
    if not set(model.rows) <= set(labels):
        return [("all", list(kept))]
    rows: dict[str, list[int]] = {}
    for place in kept:
        keys = [labels[label][place] for label in model.rows]
        rows.setdefault(", ".join(str(key) for key in keys if key is not None) or "all", []).append(place)
    return list(rows.items())


def _by_home(quantity: Quantity, of: list[int]) -> dict[int, list[int]]:
    """Places by the home of their lines where the same cells were measured at several, else all as one."""
    if "home" not in quantity.places:
        return {-1: of}
    others = np.stack([column[of] for dim, column in quantity.places.items() if dim != "home"], axis=1)
    homes = quantity.places["home"][of]
    if len(np.unique(others, axis=0)) == len(of):
        return {-1: of}
    return {int(home): [place for place, at in zip(of, homes, strict=True) if at == home] for home in np.unique(homes)}


def _row(
    quantity: Quantity, node: PackedNode, name: str, of: Sequence[int], of_runs: Sequence[float], by_place: Floats
) -> CellFigure:
    """A row's figure from its medians by run and its means by place."""
    model = quantity.model
    middle, sd, half = over_runs(of_runs)
    if len(of_runs) < 3:  # of two runs Student's interval is 12.7 times their spread, which is of no use
        half = float("nan")
    known = np.isfinite(by_place)
    order = np.where(known, by_place, -np.inf if model.better == "lower" else np.inf)
    worst = int(np.argmax(order) if model.better == "lower" else np.argmin(order))
    where = places.numbered(quantity.place(of[worst]), node, model)
    shown = {key: value for key, value in where.items() if str(value) not in name.split(", ")}
    return CellFigure(
        quantity.measurement, name, "share" if model.scale == "share" else quantity.unit,
        middle, max(middle - half, 0.0), middle + half, float("nan"),
        places.brief(shown) if len(of) > 1 else "", float(by_place[worst]), len(of),
        len(of_runs), sd,
    )  # fmt: skip
