"""The seconds of pairs that work in memory that is mapped twice, as xcpumemperf's table has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.report import names, readings, text
from nodeprint.report.pages.blocks import Block, Table, Text

_SECONDS = ("writer_s", "reader_s", "writer_staggered_s", "reader_staggered_s")
_HEADER = ("pair", "writer", "reader", "writer's time", "reader's time", "writer, staggered", "reader, staggered")
#: Rows of a table that is read; with more pairs half of them are the first and half the last.
MOST_ROWS = 16


def of_curves(curves: Sequence[JobMeasurement]) -> Iterator[Block]:
    """For each measurement of the ring a table of its pairs with their averages, medians over passes and runs; nothing
    of records without seconds."""
    for data in curves:
        if (data.header["kernel"], data.header["operation"]) == ("remap", "ring") and set(_SECONDS) <= set(
            data.columns
        ):
            yield Text(f"{text.sentence(text.measured(data.name))}, seconds of each pair:")
            yield _table(data)


def _table(data: JobMeasurement) -> Table:
    seconds = np.stack([readings.over_runs(data.columns[key]) for key in _SECONDS], axis=1)
    ends = list(zip(data.keys("writer"), data.keys("reader"), strict=True))
    rows = [
        (str(number), f"CPU {writer}", f"CPU {reader}", *(names.duration(1e9 * value) for value in of_pair))
        for number, ((writer, reader), of_pair) in enumerate(zip(ends, seconds.tolist(), strict=True), 1)
    ]
    left = len(rows) - MOST_ROWS
    if left > 0:
        between = (f"{left} more", *[""] * (len(_HEADER) - 1))
        rows = [*rows[: MOST_ROWS // 2], between, *rows[-(MOST_ROWS // 2) :]]
    average = ("average", "", "", *(names.duration(1e9 * value) for value in np.nanmean(seconds, axis=0).tolist()))
    return Table(_HEADER, (*rows, average), "lllrrrr")
