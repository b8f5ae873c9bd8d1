"""Values that were copied: two nodes, or two runs of a node, agree in every digit more often than chance allows.

The table itself gives the chance that two values of one measurement point are equal, for example by rounding. The
suspect values count among them, which overestimates the chance. So a copy may be missed if there are few values, and
rounding alone is not reported as a copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

#: So many coincidences are expected of chance where it is called a copy (a choice: one table in a thousand).
CHANCE = 1e-3


def copied_nodes(frame: pd.DataFrame, parts: Sequence[str]) -> list[list[str]]:
    """The nodes with the same figures in all metrics, places and runs, as lists of two or more names."""
    place = ["metric", *parts]
    weight = _log_chance(frame, place)
    own = frame.assign(digest=_digest(frame, [*place, "value"]), weight=weight)
    of_node = own.groupby("node", sort=True, observed=True).agg({"digest": "sum", "weight": "sum"})
    pairs = math.log(max(len(of_node) * (len(of_node) - 1) / 2, 1))
    same = of_node[of_node.duplicated("digest", keep=False) & (of_node["weight"] + pairs < math.log(CHANCE))]
    return [[str(name) for name in group.index] for _, group in same.groupby("digest", sort=False) if len(group) > 1]


def repeated_runs(frame: pd.DataFrame, parts: Sequence[str]) -> list[Any]:
    """The rows (labels of the frame's index) of runs that a node has already, where all runs of it are there twice or
    more."""
    place = ["metric", *parts]
    weight = _log_chance(frame, ["node", *place], place)
    own = frame.assign(digest=_digest(frame, [*place, "value"]), weight=weight, row=frame.index)
    runs = own.groupby(["node", "job", "run"], sort=False, observed=True).agg(
        {"digest": "sum", "weight": "sum", "row": "min"}
    )
    keys = runs.reset_index()
    times = keys.groupby(["node", "digest"], sort=False)["row"].transform("size")
    every = times.groupby(keys["node"]).transform("min") > 1
    again = keys[every & keys.duplicated(["node", "digest"])]
    if not len(again):
        return []
    affected, all_nodes = again["node"].nunique(), keys["node"].nunique()
    chosen = math.log(math.comb(all_nodes, affected)) if all_nodes < 10_000 else affected * math.log(all_nodes)
    return again["row"].tolist() if again["weight"].sum() + chosen < math.log(CHANCE) else []


def _digest(frame: pd.DataFrame, columns: list[str]) -> npt.NDArray[np.uint64]:
    """A number for each row; the sum of several does not depend on their order."""
    return np.asarray(pd.util.hash_pandas_object(frame[columns], index=False), dtype=np.uint64)


def _log_chance(frame: pd.DataFrame, among: list[str], place: list[str] | None = None) -> npt.NDArray[np.float64]:
    """By row the logarithm of the chance that two values `among` whose pairs are counted are equal.

    The chance is separate for each `place` (by default `among`).
    """
    by = place or among

    def pairs(columns: list[str]) -> pd.Series[float]:
        sizes = frame.groupby(columns, sort=False, observed=True).size().astype(np.float64)
        return (sizes * (sizes - 1) / 2).groupby(level=by, sort=False, observed=True).sum()

    equal, every = pairs([*among, "value"]), pairs(among)
    chance = ((equal + 1) / (every + 1)).to_frame("chance")
    return np.log(np.asarray(frame[by].join(chance, on=by)["chance"], dtype=np.float64))
