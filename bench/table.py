"""What every benchmark prints and keeps: a table of medians and spreads beside limits and the last time's values."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "bench/results"
#: Above it, something else ran beside what was measured.
QUIET_LOAD = 0.5


@dataclass(frozen=True)
class Row:
    """A line of the table: the single values of what was measured, and what their median must not exceed (None:
    reported only).
    """

    name: str
    values: tuple[float, ...]
    limit: float | None = None
    unit: str = ""

    @property
    def median(self) -> float:
        """The middle of the values."""
        return float(np.median(self.values))

    @property
    def spread(self) -> float | None:
        """The interquartile range as a share of the median; None with less than three values."""
        if len(self.values) < 3 or not self.median:
            return None
        low, high = np.percentile(self.values, (25, 75))
        return float(abs((high - low) / self.median))

    @property
    def missed(self) -> bool:
        """Whether there is a limit and the median exceeds it."""
        return self.limit is not None and self.median > self.limit


def row(name: str, values: float | Sequence[float], limit: float | None = None, unit: str = "") -> Row:
    """A row of one value or of several."""
    return Row(name, (float(values),) if isinstance(values, int | float) else tuple(map(float, values)), limit, unit)


def text(rows: Sequence[Row], last: dict[str, float]) -> str:
    """The table; `last` are the medians of the last time by row's name."""
    lines = [f"{'':54}{'median':>11}{'spread':>9}{'limit':>9}{'last':>11}"]
    for one in rows:
        spread = "" if one.spread is None else f"{one.spread:.1%}"
        limit = "" if one.limit is None else f"{one.limit:g}"
        before = f"{last[one.name]:.4g}" if one.name in last else ""
        end = "" if one.limit is None else ("  MISSED" if one.missed else "  holds")
        lines.append(f"{one.name:54}{one.median:11.4g}{spread:>9}{limit:>9}{before:>11} {one.unit}{end}".rstrip())
    return "\n".join(lines)


def last_medians(bench: str) -> dict[str, float]:
    """Medians by row's name of the newest measurement of `bench` on this host; empty where there is none."""
    for path in sorted(KEPT.glob(f"{bench}-*.json"), reverse=True):
        kept = json.loads(path.read_text())
        if kept["host"] == platform.node():
            return {one["name"]: float(np.median(one["values"])) for one in kept["rows"]}
    return {}


def keep(bench: str, rows: Sequence[Row], load: float, **raw: Any) -> None:
    """Print the table of `bench`, compared with the last time's, and keep it as bench/results/<bench>-<time>.json.

    `load` is the load average before; `raw` whatever else is worth keeping.
    """
    now = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    print(f"\n{bench}\n{text(rows, last_medians(bench))}")
    if load > QUIET_LOAD:
        print(f"load average {load:.1f} before: the machine was not quiet")
    KEPT.mkdir(exist_ok=True)
    kept = {
        "bench": bench, "host": platform.node(), "ended": now, "commit": commit, "load_before": load,
        "load_after": os.getloadavg()[0], "rows": [asdict(one) for one in rows], "raw": raw,
    }  # fmt: skip
    (KEPT / f"{bench}-{now}.json").write_text(json.dumps(kept, indent=1) + "\n")
