"""Matrices as tidy tables for other programs: a row per pair and pass, as Parquet or CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nodeprint import files
from nodeprint.errors import NodeprintError
from nodeprint.fleet.quantity import Quantity
from nodeprint.packed import PackedFleet

COLUMNS = (
    "node",
    "measurement",
    "operation",
    "quantity",
    "unit",
    "job",
    "run",
    "pass",
    "home",
    "a",
    "b",
    "class",
    "value",
    "simulated",
)


def export(fleet: PackedFleet, path: Path) -> Path:
    """Write every measured pair of `fleet` to `path` (.parquet or .csv), a run at a time; returns the path.

    `a` and `b` are OS numbers of the node's CPUs. Raises NodeprintError for another ending, without pairs, where
    pyarrow is missing for Parquet, or where the file cannot be written.
    """
    if path.suffix not in (".parquet", ".csv"):
        raise NodeprintError("neither .parquet nor .csv", where=path, advice="name a file with one of these endings")
    if not fleet.pairs:
        advice = "read node.nc of each node (docs/formats.md)"
        raise NodeprintError("no pairs of CPUs were measured in this campaign", where=path, advice=advice)
    with files.replacing(path) as partial:
        (_parquet if path.suffix == ".parquet" else _csv)(fleet, partial)
    return path


def _tables(fleet: PackedFleet) -> Iterator[dict[str, Any]]:
    """The columns of one run at a time, without what was not measured."""
    for one in fleet.pairs:
        for row in range(len(one.node)):
            yield _table(fleet, one, row)


def _table(fleet: PackedFleet, of: Quantity, row: int) -> dict[str, Any]:
    values = np.asarray(of.by_home[row])
    number_of_pass, home, pair = np.nonzero(np.isfinite(values))
    node = fleet.nodes[int(of.node[row])]
    cpus = np.array(node.cpus or range(len(of.layout.slots)), dtype=np.int64)
    n = len(pair)
    one = {
        "node": node.name, "measurement": of.measurement, "operation": of.operation, "quantity": of.quantity,
        "unit": of.unit, "job": int(of.job[row]), "run": int(of.run[row]), "simulated": fleet.simulated,
    }  # fmt: skip
    columns: dict[str, Any] = {key: [value] * n for key, value in one.items()}
    columns |= {
        "pass": number_of_pass.astype(np.int32),
        "home": np.array(of.homes, dtype=np.int32)[home],
        "a": cpus[of.pairs[pair, 0]],
        "b": cpus[of.pairs[pair, 1]],
        "class": [of.pair_layout.class_names[number] for number in of.pair_layout.classes[pair].tolist()],
        "value": values[number_of_pass, home, pair],
    }
    return {key: columns[key] for key in COLUMNS}


def _parquet(fleet: PackedFleet, path: Path) -> None:
    try:
        import pyarrow as pa  # noqa: PLC0415 (large, and only for Parquet)
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        advice = f"`{sys.executable} -m pip install pyarrow`, or name a file that ends in .csv"
        raise NodeprintError("Parquet needs pyarrow, which is not installed", where=path, advice=advice) from None

    text, whole = pa.string(), pa.int32()
    kinds = {"value": pa.float32(), "simulated": pa.bool_(), "a": pa.int64(), "b": pa.int64()}
    kinds |= dict.fromkeys(("job", "run", "pass", "home"), whole)
    schema = pa.schema([(name, kinds.get(name, text)) for name in COLUMNS])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for columns in _tables(fleet):
            writer.write_table(pa.table(columns, schema=schema))


def _csv(fleet: PackedFleet, path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for columns in _tables(fleet):
            lists = [list(columns[name]) for name in COLUMNS]
            lists[COLUMNS.index("value")] = [f"{value:.7g}" for value in lists[COLUMNS.index("value")]]
            writer.writerows(zip(*lists, strict=True))
