"""How parts of a node went over its measurements, in tolerances from their first level, and when they changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import matplotlib.dates as mdates
import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from nodeprint.report.figures import tolerance_band
from nodeprint.report.figures.part_levels import letters, size_pt
from nodeprint.report.figures.pixels import wrapped
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened
from nodeprint.settings.texts import say

_DASHES: Sequence[tuple[float, ...]] = ((), (4, 1.5), (1, 1), (4, 1, 1, 1))
_MARKERS = "osD^"


class CourseLine(msgspec.Struct, frozen=True):
    """A part: its values in tolerances from its first level with half of their 95 % intervals, when each was measured
    (ISO 8601) and in which campaign, and since when it has a level of its own (`changed`). `tolerance` is relative."""

    name: str
    tolerance: float
    measured: tuple[str, ...]
    campaigns: tuple[str, ...]
    distance: tuple[float, ...]
    half: tuple[float, ...]
    changed: tuple[str, ...] = ()


class CourseData(msgspec.Struct, frozen=True):
    """The courses of parts of a node."""

    node: str
    lines: tuple[CourseLine, ...]

    def frame(self, width: float) -> Frame:
        """A strip, with a line of the legend below for each part."""
        return Frame(width, 34.0)

    def table(self) -> pd.DataFrame:
        """A row for each part and measurement."""
        rows = [
            (line.name, moment, campaign, distance, half, 100 * line.tolerance)
            for line in self.lines
            for moment, campaign, distance, half in zip(
                line.measured, line.campaigns, line.distance, line.half, strict=True
            )
        ]
        columns = [
            "component",
            "measured",
            "campaign",
            "from its first level, tolerances",
            "half of 95 %, tolerances",
            "tolerance, %",
        ]
        return pd.DataFrame(rows, columns=columns)


def course(ax: Axes, data: CourseData, style: Style) -> None:
    """Draw each part over time with its intervals before the range of a tolerance, and a line where it changed. Tables
    may have no times: then it is drawn over the number of the measurement."""
    timed = all(moment for line in data.lines for moment in line.measured)
    tolerance_band.OF_ONE.draw(ax, style)
    for number, line in enumerate(data.lines):
        color = style.series[number % len(style.series)]
        moments = [_day(moment) if timed else at for at, moment in enumerate(line.measured, start=1)]
        dashes = _DASHES[number % len(_DASHES)]
        ax.errorbar(
            moments,
            line.distance,
            yerr=np.asarray(line.half),
            color=color,
            elinewidth=0.5,
            linewidth=0.9,
            linestyle=(0, dashes) if dashes else "solid",
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=2.6,
            label=f"{shortened(line.name, letters(ax, 1.2, style) - 20)} (tolerance {100 * line.tolerance:.2g} %)",
        )
        for since in line.changed if timed else ():
            ax.axvline(_day(since), color=color, linewidth=0.6, linestyle=(0, (1, 2)))
    ax.margins(y=0.15)
    if timed:
        locator = mdates.AutoDateLocator(minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    ax.set_ylabel("from the first level, tolerances")
    title = say("axes", "course", node=data.node)
    ax.set_title(wrapped(title, size_pt(ax)[0], style), fontsize=style.letters_pt)
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.17), borderaxespad=0.0, labelspacing=0.35)


def _day(moment: str) -> float:
    """A moment in days since 1970, as matplotlib counts them."""
    return datetime.fromisoformat(moment).timestamp() / 86400
