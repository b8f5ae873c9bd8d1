"""The tolerance on both sides of no difference: the same for a time, and a ratio for a rate."""

from __future__ import annotations

import math

import xarray as xr
from matplotlib.axes import Axes

from nodeprint.data.places.measured import is_metric, models
from nodeprint.judge.verdict import Agreement, Finding
from nodeprint.report.figures.figure_data import named
from nodeprint.report.figures.style import Style

#: Coordinates of the tolerance on each side of no difference, both positive.
BELOW, ABOVE = "tolerance_below", "tolerance_above"
TOLERANCES = "tolerances"


def coordinates(below: float, above: float, unit: str = "%") -> dict[str, xr.Variable]:
    """How much less and how much more than the peers is accepted."""
    return {BELOW: named((), below, f"tolerance below, {unit}"), ABOVE: named((), above, f"tolerance above, {unit}")}


def of_finding(finding: Finding) -> dict[str, xr.Variable]:
    """The tolerance of a finding, which has that on the side of its effect.

    Rates and messages are compared by ratios: they may be 1.05 times as much or as little, 5% more or 4.76% less.
    """
    tolerance, model = finding.tolerance, models().get(finding.measurement)
    if not (finding.component.term.startswith("fabric-") or (model is not None and model.scale == "log")):
        return coordinates(100 * tolerance, 100 * tolerance)
    ratio = 1 + tolerance if finding.effect > 0 else 1 / (1 - tolerance)
    return coordinates(100 * (1 - 1 / ratio), 100 * (ratio - 1))


def toward(agreement: Agreement) -> float:
    """The tolerance on the side of an agreement's effect, which has that above."""
    model = models().get(agreement.measurement)
    is_ratio = is_metric(agreement.measurement) or (model is not None and model.scale == "log")
    return agreement.tolerance / (1 + agreement.tolerance) if is_ratio and agreement.effect < 0 else agreement.tolerance


def text(data: xr.Dataset, effect: float = math.nan) -> str:
    """`±4%` if it is the same on both sides, else `-4.76 to +5%`, or the side of an effect."""
    below, above = float(data[BELOW]), float(data[ABOVE])
    if abs(below - above) < 1e-9:
        return f"±{above:.3g}%"
    if math.isfinite(effect):
        return f"{above if effect > 0 else -below:+.3g}%"
    return f"-{below:.3g} to +{above:.3g}%"


def draw(ax: Axes, data: xr.Dataset, style: Style, *, upright: bool = False) -> None:
    """Draw the tolerance, its two ends and no difference; nothing if the data have no tolerance.

    They lie over the width of axes, or `upright` over the height, if differences lie along the x axis.
    """
    if BELOW not in data.coords:
        return
    span, line = (ax.axvspan, ax.axvline) if upright else (ax.axhspan, ax.axhline)
    below, above = -float(data[BELOW]), float(data[ABOVE])
    line(0, color=style.colors["hair"], linewidth=0.5)
    span(below, above, color=style.colors["wash"], linewidth=0)
    for side in (below, above):
        line(side, color=style.colors["tolerance"], linewidth=0.7, linestyle=(0, (4, 2)))
