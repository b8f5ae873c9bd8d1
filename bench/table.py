"""What every benchmark prints and keeps: a table of medians and spreads beside limits and the last time's values."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
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
    """A line of the table: the single values of what was measured, and the limit of their median, which it must not
    exceed, or reach if `at_least` (None: reported only). `most` is a second limit, which it must not exceed. `interval`
    is that of a share, 95%.
    """

    name: str
    values: tuple[float, ...]
    limit: float | None = None
    unit: str = ""
    at_least: bool = False
    most: float | None = None
    interval: tuple[float, float] | None = None

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
        """Whether there is a limit and the median is on the wrong side of it."""
        if self.limit is None:
            return False
        too_much = self.most is not None and self.median > self.most
        return too_much or (self.median < self.limit if self.at_least else self.median > self.limit)


def row(name: str, values: float | Sequence[float], limit: float | None = None, unit: str = "") -> Row:
    """A row of one value or of several."""
    return Row(name, (float(values),) if isinstance(values, int | float) else tuple(map(float, values)), limit, unit)


@dataclass(frozen=True)
class Last:
    """The newest measurement before: when it ended, of which commit, and its medians by row's name."""

    ended: str
    commit: str
    medians: dict[str, float]


def text(rows: Sequence[Row], last: Last | None) -> str:
    """The table, beside the last time's medians and the change since, and what it is compared with."""
    lines = [f"{'':54}{'median':>11}{'spread':>12}{'limit':>9}{'last':>11}{'change':>9}"]
    lines += [_line(one, last) for one in rows]
    if last is None:
        lines.append("nothing to compare with: no earlier measurement of this host in bench/results")
    else:
        lines.append(f"last: {last.ended}, commit {last.commit or 'unknown'}")
        new = [one.name for one in rows if one.name not in last.medians]
        if new:
            lines.append(f"not measured then: {', '.join(new)}")
    return "\n".join(lines)


def _line(one: Row, last: Last | None) -> str:
    """A row of the table."""
    spread = "" if one.spread is None else f"{one.spread:.1%}"
    if one.interval is not None:
        spread = "-".join(f"{end:.3g}" for end in one.interval)
    limit = "" if one.limit is None else f"{one.limit:g}" + ("" if one.most is None else f"-{one.most:g}")
    former = last.medians.get(one.name) if last is not None else None
    before = "" if former is None else f"{former:.4g}"
    change = f"{one.median / former - 1:+.1%}" if former else ""
    end = "" if one.limit is None else ("  MISSED" if one.missed else "  holds")
    columns = f"{one.median:11.4g}{spread:>12}{limit:>9}{before:>11}{change:>9}"
    return f"{one.name:54}{columns} {one.unit}{end}".rstrip()


def as_they_come(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of a benchmark that takes long, each printed as soon as it is there."""
    for one in rows:
        print(_line(one, None), flush=True)
        yield one


def last_time(bench: str) -> Last | None:
    """The newest measurement of `bench` on this host; None where there is none. A file that is none is passed over."""
    for path in sorted(KEPT.glob(f"{bench}-*.json"), reverse=True):
        try:
            kept = json.loads(path.read_text())
            if kept["host"] == platform.node():
                medians = {one["name"]: float(np.median(one["values"])) for one in kept["rows"]}
                return Last(kept["ended"], kept["commit"], medians)
        except (OSError, ValueError, KeyError, TypeError):
            print(f"{path}: no measurement of this benchmark; remove it")
    return None


def keep(bench: str, rows: Sequence[Row], load: float, **raw: Any) -> None:
    """Print the table of `bench`, compared with the last time's, and keep it as bench/results/<bench>-<time>.json.

    `load` is the load average before; `raw` whatever else is worth keeping.
    """
    now = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    print(f"\n{bench}\n{text(rows, last_time(bench))}")
    if load > QUIET_LOAD:
        print(f"load average {load:.1f} before: the machine was not quiet")
    KEPT.mkdir(exist_ok=True)
    kept = {
        "bench": bench,
        "host": platform.node(),
        "ended": now,
        "commit": commit,
        "load_before": load,
        "load_after": os.getloadavg()[0],
        "rows": [asdict(row) for row in rows],
        "raw": raw,
    }
    (KEPT / f"{bench}-{now}.json").write_text(json.dumps(kept, indent=1) + "\n")
