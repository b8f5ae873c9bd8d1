"""The table of writers' and readers' seconds on a page."""

from __future__ import annotations

import numpy as np

from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.report.pages.blocks import Table, Text
from nodeprint.report.pages.node import mapped_twice


def ring(pairs: int, **columns: list[float]) -> JobMeasurement:
    """Two runs of one pass, of which the second takes twice as long."""
    writers = np.arange(pairs)
    places = {"writer": writers, "reader": (writers + 1) % pairs}
    header = {"kernel": "remap", "operation": "ring", "cells": {}}
    values = {key: np.array([[seconds], np.multiply([seconds], 2)]) for key, seconds in columns.items()}
    return JobMeasurement("remap-ring", header, ({"run": 1}, {"run": 2}), (0,), places, {}, values)


def seconds(pairs: int) -> dict[str, list[float]]:
    return {
        key: [first * (pair + 1) for pair in range(pairs)]
        for key, first in (
            ("writer_s", 2e-3),
            ("reader_s", 4e-3),
            ("writer_staggered_s", 6e-3),
            ("reader_staggered_s", 8e-3),
        )
    }


def test_each_pair_has_its_row_and_the_last_is_the_average() -> None:
    heading, table = mapped_twice([ring(2, **seconds(2))])
    assert isinstance(heading, Text)
    assert isinstance(table, Table)
    assert table.rows == (
        ("1", "CPU 0", "CPU 1", "3 ms", "6 ms", "9 ms", "12 ms"),
        ("2", "CPU 1", "CPU 0", "6 ms", "12 ms", "18 ms", "24 ms"),
        ("average", "", "", "4.5 ms", "9 ms", "13.5 ms", "18 ms"),
    )


def test_many_pairs_are_shown_from_both_ends_and_older_records_not_at_all() -> None:
    _, table = mapped_twice([ring(40, **seconds(40))])
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == [*map(str, range(1, 9)), "24 more", *map(str, range(33, 41)), "average"]
    assert not list(mapped_twice([ring(2, writer_s=[1e-3, 1e-3])]))
