"""Pairs of nodes of a table as fabrics, which the judge compares as it does messages between nodes of a campaign."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nodeprint.data.job.fabric_times import FEWEST_LINKS, Fabric
from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import node_pairs, units
from nodeprint.readers.node_pairs import Pairs
from nodeprint.settings.texts import say

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
#: The columns with the size of a message.
_SIZES = frozenset(("message_bytes", "message_size", "msg_size", "msg_bytes", "bytes", "size"))
#: A table is directed if at least this share of its pairs has both orders, and undirected if none has.
_BOTH_WAYS = 0.5
#: More metrics of pairs, each with its GPU, port or other part, are not judged together.
_MOST = 64


def fabrics(
    frame: pd.DataFrame, pairs: Pairs, parts: Sequence[str], source: str, better: Mapping[str, units.Better]
) -> tuple[tuple[Fabric, ...], tuple[str, ...]]:
    """A fabric of each metric of pairs and each of its parts, such as a GPU. The notes name links without a value.

    `frame` has the values of pairs, with numbers of jobs and runs.

    Raises NodeprintError if no node has links to three others, or if some pairs alone have values in both directions.
    """
    out: list[Fabric] = []
    notes: list[str] = []
    for name, rows, by_size in _metrics(frame, parts):
        if len(out) == _MOST:
            raise NodeprintError(
                f"has more than {_MOST} metrics of pairs of nodes", where=source, advice="give one value per pair"
            )
        fabric, of_fabric = _fabric(name, rows, by_size, pairs, source, better)
        out.append(fabric)
        notes += of_fabric
    return tuple(out), tuple(dict.fromkeys(notes))


def _metrics(frame: pd.DataFrame, parts: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame, str]]:
    """Each metric with its rows, and the column of the sizes of its messages; a metric with other parts is one for each
    of them."""
    for metric, rows in frame.groupby("metric", sort=True):
        used = [part for part in parts if (rows[part] != "").any()]
        unit = units.known(str(rows["unit"].iloc[0]))
        sized = [part for part in used if part.lower().replace(" ", "_") in _SIZES and rows[part].str.isdecimal().all()]
        by_size = sized[0] if len(sized) == 1 and unit is not None and unit[0] in ("s", "1/s", "B/s", "bit/s") else ""
        others = [part for part in used if part != by_size]
        if not others:
            yield str(metric), rows, by_size
            continue
        for key, of_parts in rows.groupby(others, sort=True):
            texts = ", ".join(f"{part} {text}" for part, text in zip(others, key, strict=True))
            yield f"{metric}, {texts}", of_parts, by_size


def _fabric(
    name: str, rows: pd.DataFrame, by_size: str, pairs: Pairs, source: str, better: Mapping[str, units.Better]
) -> tuple[Fabric, list[str]]:
    metric, unit = str(rows["metric"].iloc[0]), str(rows["unit"].iloc[0])
    kind = units.known(unit)
    side = better.get(metric) or units.better(metric, unit) or "higher"
    nodes = sorted(node_pairs.nodes_of(rows["node"].unique(), pairs), key=_natural)
    is_directed = _is_directed(rows, pairs, source, name)
    in_ns = kind is not None and kind[0] == "s"
    scale = kind[1] * 1e9 if in_ns and kind is not None else 1.0
    sizes = sorted({int(size) for size in rows[by_size]}) if by_size else [0]
    runs = rows[["job", "run"]].drop_duplicates().sort_values(["job", "run"])
    keys = list(runs.itertuples(index=False, name=None))
    place = {node: number for number, node in enumerate(nodes)}
    values = np.full((len(sizes), len(keys), len(nodes), len(nodes)), np.nan)
    ends = np.array([[place[end] for end in pairs[name]] for name in rows["node"]])
    at_size = rows[by_size].astype(np.int64).map(sizes.index).to_numpy() if by_size else np.zeros(len(rows), dtype=int)
    at_run = np.array([keys.index(key) for key in rows[["job", "run"]].itertuples(index=False, name=None)])
    for first, second in ((0, 1),) if is_directed else ((0, 1), (1, 0)):
        values[at_size, at_run, ends[:, first], ends[:, second]] = scale * rows["value"].to_numpy()
    kept_nodes, kept_runs, few = _compared(values[-1])
    if not kept_nodes.any():
        what = f"{printable(name, 60)} has values between fewer than four nodes that are each linked to three others"
        advice = "a slow node cannot be distinguished from a slow link: measure each node with three others or more"
        raise NodeprintError(what, where=source, advice=advice)
    values = np.where(few[None, :, :, None] | few[None, :, None, :], np.nan, values)
    values = values[:, kept_runs][:, :, kept_nodes][:, :, :, kept_nodes]
    started = rows.groupby(["job", "run"])["time"].min()
    compared = [node for node, is_kept in zip(nodes, kept_nodes, strict=True) if is_kept]
    labels = [key for key, is_kept in zip(keys, kept_runs, strict=True) if is_kept]
    times = {size: _times(of_size, size, kind, in_ns) for size, of_size in zip(sizes, values, strict=True)}
    header: dict[str, Any] = {"directed": is_directed, "message_bytes": sizes[-1]}
    fabric = Fabric(
        measurement=name,
        partition="",
        nodes=tuple(compared),
        places=("",) * len(compared),
        runs=tuple(f"job{job}/run{run}" for job, run in labels),
        started=tuple(str(started.loc[key]) for key in labels),
        values=values[-1],
        disturbed=(0.0,) * len(labels),
        header=header,
        by_size=times if len(sizes) > 1 else {},
        unit="ns" if in_ns else unit,
        better=side,
        metric=metric,
    )
    return fabric, _notes(fabric, [node for node in nodes if node not in compared])


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def _is_directed(rows: pd.DataFrame, pairs: Pairs, source: str, name: str) -> bool:
    """Whether pairs have values in both directions within a run. Raises NodeprintError if few of them have."""
    of_runs = {(job, run, pairs[pair]) for job, run, pair in rows[["job", "run", "node"]].itertuples(index=False)}
    both = {frozenset(ends) for job, run, ends in of_runs if (job, run, ends[::-1]) in of_runs}
    every = {frozenset(ends) for *_, ends in of_runs}
    if both and len(both) < _BOTH_WAYS * len(every):
        first, second = sorted(min(both, key=sorted))
        what = (
            f"{len(both)} of {len(every)} pairs of {printable(name, 60)} have values in both directions, as"
            f" {printable(first, 30)} and {printable(second, 30)}"
        )
        raise NodeprintError(what, where=source, advice="give both directions of each pair, or one value per pair")
    return bool(both)


def _compared(values: Floats) -> tuple[Bools, Bools, Bools]:
    """Which nodes and which runs are compared, and in which run a node has links to too few others (run, node)."""
    few = np.zeros(values.shape[:2], dtype=np.bool_)
    while True:
        measured = np.isfinite(values) & ~few[:, :, None] & ~few[:, None, :]
        links = np.minimum(measured.sum(axis=2), measured.sum(axis=1))
        again = np.asarray(few | (links < FEWEST_LINKS))
        if (again == few).all():
            return np.asarray(~few.all(axis=0)), np.asarray(~few.all(axis=1)), few
        few = again


def _times(values: Floats, size: int, kind: tuple[str, float] | None, in_ns: bool) -> Floats:
    """The times of a message in ns: of a rate of bytes that of so many, of a rate of messages that of one."""
    if in_ns or kind is None:
        return values
    of_message = {"B/s": size, "bit/s": 8 * size}.get(kind[0], 1)
    return np.asarray(1e9 * of_message / (values * kind[1]))


def _notes(fabric: Fabric, few: Sequence[str]) -> list[str]:
    n, measured = len(fabric.nodes), np.isfinite(fabric.values).any(axis=0)
    every = n * (n - 1) // (1 if fabric.header["directed"] else 2)
    present = int(measured.sum()) // (1 if fabric.header["directed"] else 2)
    notes = [say("read", "few_links", nodes=", ".join(printable(node, 40) for node in few))] if few else []
    if present < every:
        notes.append(
            say("read", "missing_pairs", metric=printable(fabric.measurement, 60), missing=every - present, pairs=every)
        )
    return notes
