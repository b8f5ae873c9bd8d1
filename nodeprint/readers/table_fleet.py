"""Values of a table as the arrays of a fleet, which the judge compares as it does its own measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import UNSET

from nodeprint.campaign.derived import State
from nodeprint.data.places.layout import Layout
from nodeprint.data.places.measured import Ints, Measured, models
from nodeprint.data.store.identity import Identity
from nodeprint.data.store.packed import PackedFleet, PackedNode
from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import node_pairs, table_fabric, units
from nodeprint.readers.value_table import MOST_PLACES, ValueTable
from nodeprint.settings.measurements import METRIC_WORDS, Model, measurements
from nodeprint.settings.texts import say

#: No table says which CPUs a node has: figures are at the places that it names.
_NO_LAYOUT = Layout(np.zeros((0, 6), dtype=np.int64))
#: More dimensions of a place than these make no sets of their own.
_MOST_DIMENSIONS = 4


def packed_table(figures: ValueTable, campaign: str, better: Mapping[str, units.Better]) -> PackedFleet:
    """The fleet of a table, called `campaign`; `better` has by metric which side is better where it is known.

    A metric is a quantity of one pass a run, whose places are the parts that the table names. Raises NodeprintError
    where a metric has too many places.
    """
    frame = figures.frame
    names = sorted(node_pairs.nodes_of([*frame["node"].unique(), *figures.unmeasured], figures.pairs))
    of_pairs = frame["node"].isin(list(figures.pairs)).to_numpy()
    _check_kinds(frame, of_pairs, figures)
    number = {name: i for i, name in enumerate(names)}
    in_order = frame.assign(job=_ordered(frame, "job"), run=_ordered(frame, "run"))
    fabrics, of_fabrics = table_fabric.fabrics(in_order[of_pairs], figures.pairs, figures.parts, figures.source, better)
    fabrics = tuple(replace(fabric, measurement=called(fabric.measurement)) for fabric in fabrics)
    numbered = in_order[~of_pairs]
    numbered = numbered.assign(node=numbered["node"].map(number).astype(np.int64))
    quantities = tuple(
        _quantity(str(metric), rows, figures, better) for metric, rows in numbered.groupby("metric", sort=True)
    )
    unmeasured: tuple[State, str] = ("not measured", say("unmeasured", "no_figure"))
    wrong: tuple[State, str] = ("wrong", say("unmeasured", "own_check"))
    without = figures.unmeasured if not of_pairs.any() else {*names} - {*frame["node"]} if not of_pairs.all() else ()
    states = dict.fromkeys(without, unmeasured) | dict.fromkeys(figures.wrong, wrong)
    nodes = tuple(
        PackedNode(
            name,
            name,
            *states.get(name, ("measured", "")),
            fingerprint=dict(figures.fields.get(name, {})),
            imported=True,
        )
        for name in names
    )
    # what a protocol rests on is named by it, as the table itself is not in the campaign's folder
    versions = {"table": f"{Path(figures.source).name}, SHA-256 {figures.digest}"} if figures.digest else {}
    notes = (*figures.notes, *_unknown_units(frame, better), *of_fabrics)
    identity = _identity(figures, names)
    return PackedFleet(campaign, False, nodes, quantities, versions, notes=notes, identity=identity, fabrics=fabrics)


def _check_kinds(frame: pd.DataFrame, of_pairs: npt.NDArray[np.bool_], figures: ValueTable) -> None:
    """Raise NodeprintError if a metric has values of nodes and of pairs of nodes."""
    both = {*frame["metric"][of_pairs]} & {*frame["metric"][~of_pairs]}
    if both:
        what = f"{printable(min(both), 60)} has values of nodes and of pairs of nodes"
        raise NodeprintError(what, where=figures.source, advice="call them by two names")


def _identity(figures: ValueTable, nodes: Sequence[str]) -> Identity:
    """Whose the values are: a part that varies within a node, or else is one of its places, is counted."""
    frame = figures.frame
    runs = frame.groupby("node", observed=True)[["job", "run"]].apply(lambda own: len(own.drop_duplicates()))
    parts = {
        part: int(frame.groupby("node", observed=True)[part].nunique().max())
        for part in figures.parts
        if part in figures.sources
    }
    stated = {axis: words for axis, words in figures.sources.items() if axis in ("node", "run", "job", *parts)}
    pairs = frame["node"][frame["node"].isin(list(figures.pairs))].nunique()
    return Identity(len(nodes), int(runs.min()), int(runs.max()), parts, stated, pairs or UNSET)


def _unknown_units(frame: pd.DataFrame, better: Mapping[str, units.Better]) -> list[str]:
    """Return a note for each unit without a known better direction: a typing error would turn worse into better."""
    of_units: dict[tuple[str, str], list[str]] = {}
    for metric, unit in frame[["metric", "unit"]].drop_duplicates().itertuples(index=False):
        if unit and metric not in better and units.known(unit) is None:
            of_units.setdefault((unit, _side(metric, unit, better)), []).append(metric)
    return [
        say(
            "read",
            "unknown_unit",
            unit=printable(unit, 20),
            metrics=", ".join(printable(metric, 40) for metric in metrics),
            side=side,
            option=f"--better '{printable(metrics[0], 40)}={'lower' if side == 'higher' else 'higher'}'",
        )
        for (unit, side), metrics in of_units.items()
    ]


def _side(metric: str, unit: str, better: Mapping[str, units.Better]) -> units.Better:
    return better.get(metric) or units.better(metric, unit) or "higher"


def called(metric: str) -> str:
    """A metric's name as a measurement: its own, unless nodeprint has a measurement or a term of that name."""
    taken = {*measurements(), *(model.term for model in models().values()), *METRIC_WORDS}
    return f"{metric} (table)" if metric in taken else metric


def _ordered(frame: pd.DataFrame, column: str) -> npt.NDArray[np.int64]:
    """Jobs or runs as numbers. If all are numbers, they stay; else they are numbered by the time of their first value,
    or by their first line."""
    texts = frame[column].astype(str)
    unique = pd.unique(texts)
    if all(text.isdecimal() and len(text) < 10 for text in unique):
        return np.array(texts, dtype=np.int64)
    if set(unique) == {""}:
        return np.ones(len(frame), dtype=np.int64)
    first = frame.assign(name=texts).groupby("name", sort=False)[["time", "line"]].min()
    order = {name: place for place, name in enumerate(first.sort_values(["time", "line"]).index, start=1)}
    return np.array(texts.map(order), dtype=np.int64)


def _quantity(metric: str, rows: pd.DataFrame, figures: ValueTable, better: Mapping[str, units.Better]) -> Measured:
    dims = [part for part in figures.parts if (rows[part] != "").all()]
    places, names, place = _places(rows, dims)
    size = len(next(iter(places.values()))) if places else 1
    if size > MOST_PLACES:
        what = f"{printable(metric, 60)} has {size} places on a node ({', '.join(dims)})"
        raise NodeprintError(what, where=figures.source, advice=f"give at most {MOST_PLACES}, or one median a part")
    keys = rows[["node", "job", "run"]].to_numpy()
    unique, row = np.unique(keys, axis=0, return_inverse=True)
    values = np.full((len(unique), 1, size), np.nan, dtype=np.float32)
    values[row, 0, place] = rows["value"].to_numpy()
    started = np.full(len(unique), "", dtype=object)
    for at, time in zip(row[::-1].tolist(), rows["time"].to_numpy()[::-1].tolist(), strict=True):
        started[at] = time
    unit = str(rows["unit"].iloc[0])
    model = Model("value", "log", called(metric), _side(metric, unit, better), _terms(dims), {}, tuple(dims))
    node, job, run = unique.T.copy()
    return Measured.from_arrays(
        called(metric),
        metric,
        "figure",
        unit,
        model,
        _NO_LAYOUT,
        places or {"node": np.zeros(1, dtype=np.int64)},
        values,
        node,
        job,
        run,
        tuple(started),
        np.zeros(len(unique)),
        names,
    )


def _places(rows: pd.DataFrame, dims: list[str]) -> tuple[dict[str, Ints], dict[str, tuple[str, ...]], Ints]:
    """The places of a metric by dimension, the words of those that are no numbers, and the place of each row."""
    names: dict[str, tuple[str, ...]] = {}
    columns = []
    for dim in dims:
        texts = rows[dim].astype(str)
        if all(text.isdecimal() and len(text) < 16 for text in pd.unique(texts)):
            columns.append(texts.astype(np.int64).to_numpy())
        else:
            codes, words = pd.factorize(texts, sort=True)
            columns.append(codes.astype(np.int64))
            names[dim] = tuple(map(str, words))
    if not columns:
        return {}, {}, np.zeros(len(rows), dtype=np.int64)
    unique, place = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return dict(zip(dims, unique.T.copy(), strict=True)), names, place


def _terms(dims: list[str]) -> tuple[tuple[str, ...], ...]:
    """The labels that name a set of places together: each dimension alone, then several, then all of them."""
    sizes = range(1, len(dims) + 1) if len(dims) <= _MOST_DIMENSIONS else (1, len(dims))
    return tuple(term for size in sizes for term in combinations(dims, size))
