"""What else was recorded of cells, as a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from nodeprint.data.export import table_files
from nodeprint.data.job.fabric_times import Fabric
from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.data.store import kept
from nodeprint.data.store.packed import PackedFleet, PackedNode

FLAGS = {"flags": np.zeros((1, 2, 2), dtype=np.uint8)}


def measured(name: str, operation: str, places: dict[str, list[int]], **columns: list[list[float]]) -> JobMeasurement:
    cells = {"values": dict.fromkeys(columns, "s")}
    header = {"kernel": name.partition("-")[0], "operation": operation, "cells": cells, "cpus": [0, 2]}
    runs = ({"run": 3, "start_time": "2026-01-01T00:00:00Z", "seed": 0, "trailer": {"complete": True}},)
    values = {key: np.array([column]) for key, column in columns.items()} | FLAGS
    return JobMeasurement(name, header, runs, (0, 1), {dim: np.array(at) for dim, at in places.items()}, {}, values)


def test_messages_between_nodes_are_a_row_a_link_size_and_run() -> None:
    values = np.array([[[np.nan, 9e4], [8e4, np.nan]]])
    by_size = {8: values / 40, 1 << 20: values}
    one_size = Fabric(
        measurement="linktest-fabric",
        partition="main",
        nodes=("a", "b"),
        places=("", ""),
        runs=("job1/run1",),
        started=("2026-01-01T00:00:00Z",),
        values=values,
        disturbed=(0.0,),
        header={"operation": "unidirectional", "message_bytes": 1 << 20},
    )
    sizes = replace(one_size, measurement="linktest-fabric-sizes", by_size=by_size)
    single, several = table_files.messages((one_size, sizes))
    assert single[["from", "to", "message_bytes", "latency_ns"]].values.tolist() == [
        ["a", "b", 1 << 20, 9e4],
        ["b", "a", 1 << 20, 8e4],
    ]
    assert several["message_bytes"].tolist() == [8, 8, 1 << 20, 1 << 20]
    assert several["latency_ns"].tolist() == [2250.0, 2000.0, 9e4, 8e4]


def test_every_column_of_a_cell_is_in_one_row_by_os_number(tmp_path: Path) -> None:
    seconds = {"writer_s": [[1.0, 2.0], [3.0, np.nan]], "reader_s": [[5.0, 6.0], [7.0, np.nan]]}
    ring = measured("remap-ring", "ring", {"writer": [0, 2], "reader": [2, 0]}, **seconds)
    touch = measured("touch-ratio", "ratio", {"a": [0, 0], "b": [2, 2]}, ratio=[[1.5, 1.5], [1.5, 1.5]])
    jobs = (Job(2, None, {"remap-ring": ring, "touch-ratio": touch}),)
    kept.write(tmp_path / "store/nodes/cn1/jobs.msgpack.zst", jobs, "")
    frames = list(table_files.details(PackedFleet("main", False, (PackedNode("cn1"),), (), folder=tmp_path)))
    rows = frames[0]
    assert [list(frame.columns) for frame in frames] == [list(rows.columns)] * 2
    assert rows[["writer", "reader", "a"]].values.tolist() == [["0", "2", ""], ["2", "0", ""], ["0", "2", ""]]
    assert rows[["job", "run", "pass", "writer_s", "reader_s"]].values.tolist() == [
        [2, 3, 0, 1.0, 5.0],
        [2, 3, 0, 2.0, 6.0],
        [2, 3, 1, 3.0, 7.0],
    ]
    assert rows["ratio"].isna().all()
