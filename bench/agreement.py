"""Whether two programs that were measured in turns say the same: the ratio within rounds, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import bootstrap


@dataclass(frozen=True)
class Agreement:
    """The median of ratios within rounds, and its 95 % interval."""

    ratio: float
    low: float
    high: float
    rounds: int

    @property
    def farthest(self) -> float:
        """How far the interval reaches from 1."""
        return max(self.high - 1, 1 - self.low)

    def words(self, limit: float) -> str:
        """What it says: agreement or difference where the whole interval does, else that it is too wide."""
        if self.farthest <= limit:
            said = f"within {limit:.0%}"
        elif self.high < 1 - limit or self.low > 1 + limit:
            said = f"NOT within {limit:.0%}"
        else:
            said = f"UNDECIDED: the interval is not on one side of {limit:.0%}; repeat it while nothing else runs"
        return f"ratio {self.ratio:.3f} (95 % interval {self.low:.3f} to {self.high:.3f}, {self.rounds} rounds): {said}"


def agreement(ours: Sequence[float], theirs: Sequence[float]) -> Agreement:
    """The ratio ours / theirs of values that were measured in the same rounds; at least two."""
    ratios = np.array(ours) / np.array(theirs)
    interval = bootstrap((ratios,), np.median, method="percentile", rng=1).confidence_interval
    return Agreement(float(np.median(ratios)), float(interval.low), float(interval.high), len(ratios))
