"""The node under full load, second by second: the clock and the rate of each socket's cores, so that a power limit and
throttling show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from nodeprint.report.figures.node_levels import Floats
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.settings.texts import say

#: What of a second is drawn, by the key of its record: the title of the axis, and how many make one of its unit.
QUANTITIES: Mapping[str, tuple[str, float]] = {"core_hz": ("clock, GHz", 1e9), "flops_per_s": ("rate, Gflop/s", 1e9)}
_DASHES: Sequence[tuple[float, ...]] = ((), (4, 2), (1, 1), (6, 2, 1, 2))


class SocketSeconds(msgspec.Struct, frozen=True):
    """A socket's cores by second from the start of the load: the median over runs and passes, the lowest and the
    highest of these, and with the clock that of the slowest core (None where it is not drawn)."""

    socket: int
    second: Floats
    middle: Floats
    low: Floats
    high: Floats
    slowest: Floats | None = None


class LoadData(msgspec.Struct, frozen=True):
    """The sockets of a node in the unit of `title`."""

    node: str
    sockets: tuple[SocketSeconds, ...]
    title: str

    def frame(self, width: float) -> Frame:
        """Axes, with the legend above."""
        return Frame(width, 56.0, 14.0, 3.0, 9.0, 9.0)

    def table(self) -> pd.DataFrame:
        """A row for each second of each socket."""
        parts = [
            pd.DataFrame(
                {
                    "socket": socket.socket,
                    "second": socket.second,
                    self.title: socket.middle,
                    "lowest": socket.low,
                    "highest": socket.high,
                    _slowest(): np.nan if socket.slowest is None else socket.slowest,
                }
            )
            for socket in self.sockets
        ]
        return pd.concat(parts, ignore_index=True)


def by_second(node: str, seconds: Sequence[Mapping[str, Any]], quantity: str) -> LoadData:
    """`quantity` (a key of QUANTITIES) of records load_second of one job: of all runs and passes, a second each."""
    title, size = QUANTITIES[quantity]
    cores = [{**cores, "second": record["second"]} for record in seconds for cores in record["sockets"]]
    table = pd.DataFrame(cores)
    sockets = []
    for number, of_socket in table.groupby("socket"):
        by = of_socket.groupby("second")
        middle, low, high = (by[quantity].agg(how) / size for how in ("median", "min", "max"))
        slowest = by["lowest_core_hz"].median().to_numpy() / size if quantity == "core_hz" else None
        sockets.append(
            SocketSeconds(
                int(str(number)),
                middle.index.to_numpy(dtype=np.float64),
                middle.to_numpy(),
                low.to_numpy(),
                high.to_numpy(),
                slowest,
            )
        )
    return LoadData(node, tuple(sockets), title)


def seconds(ax: Axes, data: LoadData, style: Style) -> None:
    """Draw a line for each socket with the range over runs and passes, and thinly its slowest core."""
    for number, socket in enumerate(data.sockets):
        colour = style.series[number % len(style.series)]
        name = f"socket {socket.socket}" if socket.socket >= 0 else "all cores"
        dashes = _DASHES[number % len(_DASHES)]
        ax.fill_between(socket.second, socket.low, socket.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(
            socket.second,
            socket.middle,
            color=colour,
            linestyle=(0, dashes) if dashes else "-",
            label=name,
            marker="o" if len(socket.second) <= 24 else "",
            markersize=2,
        )
        if socket.slowest is not None:
            apart = style.series[(number + len(data.sockets)) % len(style.series)]
            ax.plot(socket.second, socket.slowest, color=apart, linewidth=0.8, label=f"{name}, {_slowest()}")
    ax.set_ylim(bottom=0)
    ax.grid(visible=True)
    ax.set_xlabel("seconds of full load")
    ax.set_ylabel(data.title)
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=4, borderaxespad=0.2, columnspacing=1.2)


def _slowest() -> str:
    return say("slowest_core", change=say("change", "time", "most"))
