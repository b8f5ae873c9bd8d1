"""Whether two programs that were measured in turns say the same: the ratio within rounds, with its interval."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import bootstrap

#: More of the CPUs than idle daemons take.
MOST_OTHERS = 0.03


class Others:
    """What other programs, and the host, take of the CPUs from now on."""

    def __init__(self) -> None:
        self._start = self._now()

    def share(self) -> float:
        """Of the time of all CPUs since the start."""
        busy, every, own = (now - then for now, then in zip(self._now(), self._start, strict=True))
        return min(1.0, max(0.0, busy - own) / max(every, 0.01))

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Seconds that the CPUs were busy or stolen, of all, and those of this process and its ended children."""
        user, nice, system, idle, iowait, *more = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
        busy = (user + nice + system + sum(more)) / os.sysconf("SC_CLK_TCK")
        return busy, busy + (idle + iowait) / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


@dataclass(frozen=True)
class Agreement:
    """The median of ratios within rounds, and its 95% interval."""

    ratio: float
    low: float
    high: float
    rounds: int

    @property
    def farthest(self) -> float:
        """How far the interval reaches from 1."""
        return max(self.high - 1, 1 - self.low)

    def words(self, limit: float, others: float = 0.0) -> str:
        """Its figures and the `conclusion`."""
        said = conclusion(self, self, limit, others)
        return f"ratio {self.ratio:.3f} (95% interval {self.low:.3f} to {self.high:.3f}, {self.rounds} rounds): {said}"


def conclusion(least: Agreement, most: Agreement, limit: float, others: float = 0.0) -> str:
    """Whether the other program's value lies between our `least` and our `most` (which may be one), each `limit` wider:
    where their whole intervals say so or say the contrary, else that they are too wide. No difference where other
    programs took more than MOST_OTHERS of the CPUs (`others`, a share), as not all count that alike.
    """
    if least.high <= 1 + limit and most.low >= 1 - limit:
        return f"within {limit:.0%}"
    if others > MOST_OTHERS:
        return f"UNDECIDED: other programs took {others:.0%} of the CPUs; repeat it while nothing else runs"
    if least.low > 1 + limit or most.high < 1 - limit:
        return f"NOT within {limit:.0%}"
    return f"UNDECIDED: the interval is not on one side of {limit:.0%}; repeat it while nothing else runs"


def agreement(ours: Sequence[float], theirs: Sequence[float]) -> Agreement:
    """The ratio ours / theirs of values that were measured in the same rounds; at least two."""
    ratios = np.array(ours) / np.array(theirs)
    interval = bootstrap((ratios,), np.median, method="percentile", rng=1).confidence_interval
    return Agreement(float(np.median(ratios)), float(interval.low), float(interval.high), len(ratios))
