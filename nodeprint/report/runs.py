"""The runs of a node in a table: what each measured, how steady they were, and what of them is no evidence."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from nodeprint.fleet.jobs import Job, Measured
from nodeprint.fleet.quantity import cell_models
from nodeprint.order_statistics import row_medians
from nodeprint.report import formatting
from nodeprint.report.old_figures import Floats
from nodeprint.report.pages import Table
from nodeprint.report.quantities import without_empty_columns
from nodeprint.report.shown import pairwise
from nodeprint.words.names import name_list

#: The mark of an invalid run.
_INVALID = "✕"


def table(found: Sequence[Job], said: Mapping[str, Any]) -> Table:
    """A row for each measurement of each job: the median of every run, the largest spread between passes and share of
    flagged values, when its first run began, which runs show a finding, and which are invalid; these rows are marked.

    `said` is the node's part of the verdict.
    """
    header = (
        "job", "measurement", "passes", "median of each run", "between passes", "flagged", "s", "start",
        "runs with findings", "",
    )  # fmt: skip
    showing = {
        (item.get("measurement"), run) for item in said.get("findings", ()) for run in item.get("runs") or ()
    }  # fmt: skip
    quality = [formatting.sentence(item) for item in said.get("quality", ())]
    rows: list[tuple[str, ...]] = []
    marked = []
    for job in found:
        for one in (*pairwise(job), *job.cells):
            row = _row(one, job.number, showing, quality)
            if row is not None:
                marked += [len(rows)] if row[-1] else []
                rows.append(row)
    return replace(without_empty_columns(header, rows, "llrrrrrlrl"), marked=tuple(marked), dense=True)


def _row(one: Measured, job: int, showing: set[tuple[Any, Any]], quality: Sequence[str]) -> tuple[str, ...] | None:
    """The row of a measurement; None where no run measured anything."""
    value, unit = _measured(one)
    medians: dict[int, float] = {}
    spreads, passes, seconds = [0.0], 0, 0.0
    middles = row_medians(value.reshape(-1, value.shape[2])).reshape(value.shape[:2])
    for r, run in enumerate(one.runs if value.size else ()):
        each = middles[r][np.isfinite(middles[r])].tolist()
        if each:
            medians[int(run["run"])] = statistics.median(each)
            spreads.append(max(each) / min(each) - 1 if min(each) else 0.0)
            passes = max(passes, len(each))
        seconds += formatting.number(run["trailer"].get("elapsed_s")) or 0.0
    if not medians:
        return None
    places = {run: f"job{job}/run{run}" for run in medians}
    invalid = [
        str(run) for run, place in places.items()
        if any(text.startswith(f"invalid: {one.name}, {place}:") for text in quality)
    ]  # fmt: skip
    found = [str(run) for run, place in places.items() if (one.name, place) in showing]
    flagged = float((one.columns["flags"] != 0).mean())
    return (
        str(job),
        one.name,
        str(passes),
        _together(list(medians.values()), unit),
        formatting.percent(max(spreads)) if max(spreads) else "",
        formatting.percent(flagged) if flagged else "",
        f"{seconds:.1f}" if seconds else "",
        min(str(run["start_time"]) for run in one.runs),
        name_list(found),
        f"{_INVALID} invalid: run {name_list(invalid)}" if invalid else "",
    )


def _together(values: Sequence[float], unit: str) -> str:
    """Values with one unit: `125.7, 126, 125 ns`; where their units differ, each with its own."""
    texts = [formatting.with_unit(value, unit).split(" ") for value in values]
    if len({tuple(rest) for _, *rest in texts}) == 1:
        return " ".join([", ".join(text[0] for text in texts), *texts[0][1:]])
    return ", ".join(" ".join(text) for text in texts)


def _measured(one: Measured) -> tuple[Floats, str]:
    """What a measurement is compared by, as (run, pass, place), and its unit; nothing where no model says what."""
    model = cell_models().get(one.name)
    key = "latency_ns" if one.pairs else model.value if model is not None else ""
    if key not in one.columns:
        return np.zeros((0, 0, 0)), ""
    share = model is not None and model.scale == "share"
    return one.columns[key].astype(np.float64), "share" if share else one.units[key]
