"""The effect of a finding in each run and job, against its own tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from nodeprint.judge.verdict import Finding
from nodeprint.report import names
from nodeprint.report.figures import tolerance_band
from nodeprint.report.figures.node_levels import shown_unit
from nodeprint.report.figures.part_levels import size_pt
from nodeprint.report.figures.pixels import wrapped
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.figures.tolerance_band import Tolerance
from nodeprint.settings.texts import say


class JobEffects(msgspec.Struct, frozen=True):
    """A job: its effect with the simultaneous interval, and the effect in each of its runs, in percent."""

    job: str
    effect: float
    low: float
    high: float
    runs: Mapping[str, float]


class EffectData(msgspec.Struct, frozen=True):
    """A finding's effect in percent, or percentage points where it is a share of the time, job by job, of which that
    of number `deciding` decides. `times` is how many times its tolerance that is, as in the finding's sentence,
    `unit_size` how much of `unit` one percent is, 0 where that is not known."""

    jobs: tuple[JobEffects, ...]
    deciding: int
    tolerance: Tolerance
    times: str
    title: str
    unit: str = ""
    unit_size: float = 0.0

    @property
    def heading(self) -> str:
        """The deciding effect and the tolerance on its side, which is short enough for a small figure."""
        effect = self.jobs[self.deciding].effect
        tolerance = (
            self.tolerance.text
            if self.tolerance.alike
            else f"{math.copysign(self.tolerance.on_side(effect), effect):+.3g} %"
        )
        return f"{_two_digits(effect, '+')} %: {self.times} times its tolerance, {tolerance}"

    def frame(self, width: float) -> Frame:
        """A row for each job."""
        return Frame(width, 7.0 * len(self.jobs))

    def table(self) -> pd.DataFrame:
        """A row for each run, after those of the jobs with their intervals."""
        ends = (-self.tolerance.below, self.tolerance.above)
        rows = [(job.job, "", job.effect, job.low, job.high, *ends) for job in self.jobs]
        rows += [(job.job, run, effect, np.nan, np.nan, *ends) for job in self.jobs for run, effect in job.runs.items()]
        columns = ["job", "run", self.title, "interval from", "interval to", "tolerance below", "tolerance above"]
        return pd.DataFrame(rows, columns=columns)


def of_finding(finding: Finding, *, share: bool = False) -> EffectData:
    """The effect of a finding; `share` where its measurement is a share of the time."""
    jobs = tuple(
        JobEffects(
            job.job,
            100 * job.effect,
            100 * job.interval.low,
            100 * job.interval.high,
            {run.rpartition("/")[2]: 100 * effect for run, effect in job.runs.items()},
        )
        for job in finding.by_job
    )
    title = say("axes", "lost") if share else "difference from the peers, %"
    unit = shown_unit(names.of_measurement(finding.unit, finding.measurement), np.array([[finding.value]]))
    has_unit = bool(finding.effect and np.isfinite(finding.effect_unit)) and not share
    size = abs(finding.effect_unit / (100 * finding.effect) / unit.size) if has_unit else 0.0
    return EffectData(
        jobs,
        finding.deciding,
        tolerance_band.of_finding(finding),
        names.times(finding.effect, finding.tolerance),
        title,
        unit.name,
        size,
    )


def effect(ax: Axes, data: EffectData, style: Style) -> None:
    """Draw the effect of each job with its interval, its runs as dots below, and the tolerance."""
    ax.margins(x=0.08)
    ax.set_ylim(len(data.jobs) - 0.5, -0.5)
    data.tolerance.draw(ax, style, upright=True)
    alarm, node = style.color("alarm"), style.colors["node"]
    for row, job in enumerate(data.jobs):
        color = alarm if row == data.deciding else style.colors["quiet"]
        tolerances = [end if np.isfinite(end) else job.effect for end in (job.low, job.high)]
        ax.plot(tolerances, [row - 0.12] * 2, color=color, linewidth=1.4, solid_capstyle="butt")
        ax.plot([job.effect], [row - 0.12], marker="D", color=color, markersize=3.4)
        values = list(job.runs.values())
        ax.plot(values, [row + 0.22] * len(values), linestyle="", marker="o", color=node, markersize=2.2, alpha=0.8)
    ax.set_yticks(range(len(data.jobs)), [f"{job.job}\n{len(job.runs)} runs" for job in data.jobs])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(wrapped(data.title, size_pt(ax)[0], style))
    if data.unit_size:
        size = data.unit_size
        top = ax.secondary_xaxis("top", functions=(_times(size), _times(1 / size)))
        top.set_xlabel(f"the same in {data.unit}")
        ax.spines["top"].set_visible(False)
    above = 25 if data.unit_size else 4
    ax.set_title(data.heading, fontsize=style.letters_pt, color=alarm, pad=above)


def _two_digits(value: float, sign: str = "") -> str:
    """A number of two digits, or a whole one, without an exponent."""
    return f"{value:{sign}.2g}" if abs(value) < 99.5 else f"{value:{sign}.0f}"


def _times(factor: float) -> Callable[[Any], Any]:
    return lambda values: values * factor
