"""The node under full load, second by second: the clock and the rate of each socket's cores, so that a power limit and
throttling show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nodeprint.report.figures.curves import CurveData, CurveLine
from nodeprint.settings.texts import say

#: What of a second is drawn, by the key of its record: the title of the axis, and how many make one of its unit.
QUANTITIES: Mapping[str, tuple[str, float]] = {"core_hz": ("clock, GHz", 1e9), "flops_per_s": ("rate, Gflop/s", 1e9)}


def by_second(seconds: Sequence[Mapping[str, Any]], quantity: str) -> CurveData:
    """`quantity` (a key of QUANTITIES) of records load_second of one job by second from the start of the load, a line
    for each socket's cores: the median over runs and passes with the range of these, and of the clock that of the
    slowest core."""
    title, size = QUANTITIES[quantity]
    table = pd.DataFrame([{**cores, "second": record["second"]} for record in seconds for cores in record["sockets"]])
    lines = []
    for number, of_socket in table.groupby("socket"):
        by = of_socket.groupby("second")
        middle, low, high = ((by[quantity].agg(how) / size).to_numpy() for how in ("median", "min", "max"))
        at = np.array(list(by.groups), dtype=np.float64)
        name = f"socket {number}" if int(str(number)) >= 0 else "all cores"
        lines.append(CurveLine(name, at, middle, low, high))
        if quantity == "core_hz":
            slowest = say("slowest_core", change=say("change", "time", "most"))
            clock = by["lowest_core_hz"].median().to_numpy() / size
            lines.append(CurveLine(f"{name}, {slowest}", at, clock, thin=True))
    return CurveData(tuple(lines), "seconds of full load", title, from_zero=True)
