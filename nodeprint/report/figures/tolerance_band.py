"""The tolerance of a finding on both sides of the peers: alike of a time, and a ratio of a rate."""

from __future__ import annotations

import msgspec
from matplotlib.axes import Axes

from nodeprint.data.places.measured import models
from nodeprint.judge.verdict import Finding
from nodeprint.report.figures.style import Style


class Tolerance(msgspec.Struct, frozen=True):
    """How much less and how much more than the peers is accepted, both positive, in percent."""

    below: float
    above: float

    @property
    def alike(self) -> bool:
        """Whether it is the same on both sides."""
        return abs(self.below - self.above) < 1e-9

    def on_side(self, effect: float) -> float:
        """The tolerance of an effect of this sign."""
        return self.above if effect > 0 else self.below

    @property
    def text(self) -> str:
        """`±4 %` where it is alike on both sides, else `-4.76 to +5 %`."""
        return f"±{self.above:.3g} %" if self.alike else f"-{self.below:.3g} to +{self.above:.3g} %"

    def draw(self, ax: Axes, style: Style, *, upright: bool = False) -> None:
        """Draw what is accepted, its two ends and no difference over the width of axes, or `upright` over the height of
        those that have differences along them."""
        span, line = (ax.axvspan, ax.axvline) if upright else (ax.axhspan, ax.axhline)
        line(0, color=style.colors["hair"], linewidth=0.5)
        span(-self.below, self.above, color=style.colors["wash"], linewidth=0)
        for side in (-self.below, self.above):
            line(side, color=style.colors["tolerance"], linewidth=0.7, linestyle=(0, (4, 2)))


#: Of differences that are counted in tolerances.
OF_ONE = Tolerance(1.0, 1.0)


def of_finding(finding: Finding) -> Tolerance:
    """The tolerance of a finding, which has that on the side of its effect. What is compared by ratios, as rates and
    messages are, may be 1.05 times as much or as little: 5 % more, 4.76 % less."""
    tolerance, model = finding.tolerance, models().get(finding.measurement)
    if not (finding.component.term.startswith("fabric-") or (model is not None and model.scale == "log")):
        return Tolerance(100 * tolerance, 100 * tolerance)
    ratio = 1 + tolerance if finding.effect > 0 else 1 / (1 - tolerance)
    return Tolerance(100 * (1 - 1 / ratio), 100 * (ratio - 1))
