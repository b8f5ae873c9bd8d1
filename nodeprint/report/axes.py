"""Axes of a plot: where a value is, round values, lines at bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from nodeprint.report import scale
from nodeprint.report.drawing import ALARM, HAIR, QUIET, SMALL, Drawing
from nodeprint.report.old_figures import (
    Floats,
)


class Axis(msgspec.Struct, frozen=True):
    """From low to high, even in the value or in its logarithm."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Floats, log: bool, zero: bool = False) -> Axis:
        good = values[np.isfinite(values) & ((values > 1e-12) | (not log))]
        low, high = (float(good.min()), float(good.max())) if good.size else (1.0, 2.0)
        if log:
            return cls(low / 1.15, high * 1.15, True)
        low = min(0.0, low) if zero else low
        pad = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return cls(low if zero and low == 0 else low - pad, high + pad, False)

    def at(self, value: Any) -> Any:
        """Where a value, or each of several, is from 0 to 1."""
        if self.log:
            return np.log(np.maximum(value, self.low) / self.low) / np.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        if not self.log:
            return scale.ticks(self.low, self.high, 5)
        decades = np.log10(self.high / self.low)
        steps = (1, 2, 5) if decades < 2.5 else (1,)
        powers = range(int(np.floor(np.log10(self.low))), int(np.ceil(np.log10(self.high))) + 1)
        found = [step * 10.0**power for power in powers for step in steps]
        return [(value, f"{value:g}") for value in found if self.low <= value <= self.high]


class Plane(msgspec.Struct, frozen=True):
    """Where a plot is on its drawing (left, top, width, height in mm), and its axes."""

    left: float
    top: float
    width: float
    height: float
    sideways: Axis
    upwards: Axis

    def x(self, value: Any) -> Any:
        """Where a value, or each of several, is from the left."""
        return self.left + self.sideways.at(value) * self.width

    def y(self, value: Any) -> Any:
        """Where a value, or each of several, is from the top."""
        return self.top + (1 - self.upwards.at(value)) * self.height

    def levels(self, drawing: Drawing, unit: str) -> None:
        """Hairlines at round values of the vertical axis, with their numbers and its unit."""
        for value, text in self.upwards.ticks():
            drawing.line(self.left, self.y(value), self.left + self.width, self.y(value), stroke=HAIR, width=0.12)
            drawing.text(self.left - 0.8, self.y(value), text, size=SMALL, anchor="end")
        drawing.text(1.4, self.top + self.height / 2, unit, size=SMALL, anchor="middle", fill=QUIET, turned=True)

    def bounds(self, drawing: Drawing, bound: float | None) -> None:
        """Dashed lines at +-`bound`."""
        for limit in (bound, -bound) if bound else ():
            drawing.line(self.left, self.y(limit), self.left + self.width, self.y(limit), **BOUND)
        if bound:
            drawing.text(
                self.left + self.width, self.y(bound) - 1.4, "bound", size=SMALL, anchor="end", fill=ALARM
            )  # fmt: skip

    def margin(self, drawing: Drawing, within: float | None) -> None:
        """Dotted lines at +-`within`, in which the node is shown to be the same."""
        for limit in (within, -within) if within else ():
            y = self.y(limit)
            drawing.line(self.left, y, self.left + self.width, y, stroke=QUIET, width=0.2, dash="0.3 0.6")
        if within:
            drawing.text(self.left + 0.5, self.y(within) - 1.4, "same within", size=SMALL, fill=QUIET)


#: The line of a bound.
BOUND: Mapping[str, Any] = {"stroke": ALARM, "width": 0.2, "dash": "1.2 0.8"}
