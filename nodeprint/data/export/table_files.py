"""Tables (pandas) of data without a dataset of their own, and tables as CSV or Parquet files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from nodeprint import files
from nodeprint.data.job.fabric_times import Fabric
from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.data.store import node_states
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError

#: Endings of files that tables are written as.
ENDINGS = (".parquet", ".csv")
#: By kernel and operation the columns of cells that no dataset has, and the value that is compared beside them.
_DETAILS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("bandwidth", "groups"): ("rate_bytes_per_s",),
    ("bandwidth", "machine"): ("rate_bytes_per_s", "best_bytes_per_s"),
    ("coherence", "state"): ("latency_ns", "single_ns"),
    ("chase", "curve"): ("latency_ns",),
    ("coherence", "loaded"): ("latency_ns",),
    **{("linktest", mode): ("latency_ns",) for mode in ("semidirectional", "bidirectional", "unidirectional")},
    ("loaded", "latency"): ("latency_ns", "rate_bytes_per_s"),
    ("remap", "pairs"): ("rate_bytes_per_s",),
    ("remap", "ring"): ("writer_s", "reader_s", "writer_staggered_s", "reader_staggered_s"),
    ("coherence", "contend-pairs"): ("rate_per_s", "success_share", "fairness"),
    ("touch", "ratio"): ("ratio", "a_own_ns", "a_other_ns", "b_own_ns", "b_other_ns"),
}


def write(first: pd.DataFrame, rest: Iterable[pd.DataFrame], to: Path) -> None:
    """Write a table as `to` (.parquet or .csv), a frame at a time, all of which have the columns of the first.

    Raises NodeprintError where pyarrow is missing for Parquet, or where the file cannot be written.
    """
    with files.replacing(to) as partial:
        (_parquet if to.suffix == ".parquet" else _csv)(first, rest, partial)


def details(fleet: PackedFleet) -> Iterator[pd.DataFrame]:
    """Yield the recorded values of cells that are not compared, a measurement of a job at a time. Examples are seconds
    of writers and readers, success shares and fairness. Each cell, pass and run has a row with all of its columns,
    named after their units; CPUs and NUMA nodes are OS numbers."""
    dims: dict[str, None] = {}
    keys: dict[str, None] = {}
    for _, _, measured, names in _detailed(fleet):  # twice over the nodes: every frame has the columns of all
        dims.update(dict.fromkeys(measured.places))
        keys.update(dict.fromkeys(names))
    for node, job, measured, names in _detailed(fleet):
        columns = {key: np.asarray(measured.columns[key], dtype=np.float64) for key in names}
        run, number_of_pass, place = np.nonzero(np.any([np.isfinite(column) for column in columns.values()], axis=0))
        of_run = {
            "node": node,
            "measurement": measured.name,
            "operation": str(measured.header["operation"]),
            "job": job,
            "run": np.array(measured.numbers)[run],
            "pass": np.array(measured.passes)[number_of_pass],
        }
        none = np.full(len(run), "")
        places = {
            dim: np.array(measured.keys(dim)).astype(str)[place] if dim in measured.places else none for dim in dims
        }
        values = {key: columns[key][run, number_of_pass, place] if key in columns else np.nan for key in keys}
        yield pd.DataFrame({**of_run, **places, **values, "simulated": fleet.simulated}, index=range(len(run)))


def _detailed(fleet: PackedFleet) -> Iterator[tuple[str, int, JobMeasurement, list[str]]]:
    """Node, job, measurement and names of the columns of all cells that have details."""
    if fleet.folder is None:
        return
    for node in fleet.nodes:
        for job in node_states.jobs_of(fleet.folder, node.name):
            for measured in job.cells:
                kernel = str(measured.header.get("kernel")), str(measured.header.get("operation"))
                if names := [name for name in _DETAILS.get(kernel, ()) if name in measured.columns]:
                    yield node.name, job.number, measured, names


def messages(fabrics: Iterable[Fabric]) -> Iterator[pd.DataFrame]:
    """Yield every link between nodes, a measurement at a time. A row has the time in ns of a message of `message_bytes`
    from the node `from` to the node `to`. It is the median over pairs of ranks and passes of a run. If a table has
    pairs in another unit, all rows have `value` and `unit` instead."""
    fabrics = tuple(fabrics)
    is_in_ns = all(measured.unit == "ns" for measured in fabrics)
    for measured in fabrics:
        has_sizes = bool(measured.by_size) and measured.unit == "ns"
        by_size = measured.by_size if has_sizes else {measured.message_bytes: measured.values}
        values = np.stack(list(by_size.values()))
        size, run, sender, receiver = np.nonzero(np.isfinite(values))
        columns = {
            "partition": measured.partition,
            "measurement": measured.measurement,
            "operation": str(measured.header.get("operation", "")),
            "run": np.array(measured.runs)[run],
            "message_bytes": np.array(list(by_size))[size],
            "from": np.array(measured.nodes)[sender],
            "to": np.array(measured.nodes)[receiver],
        }
        found = values[size, run, sender, receiver]
        columns |= {"latency_ns": found} if is_in_ns else {"value": found, "unit": measured.unit}
        yield pd.DataFrame(columns, index=range(len(run)))


def _parquet(first: pd.DataFrame, rest: Iterable[pd.DataFrame], path: Path) -> None:
    try:
        import pyarrow as pa  # noqa: PLC0415 (large, and only for Parquet)
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        advice = f"`{sys.executable} -m pip install pyarrow`, or name a file that ends in .csv"
        raise NodeprintError("Parquet needs pyarrow, which is not installed", where=path, advice=advice) from None
    table = pa.Table.from_pandas(first, preserve_index=False)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        for frame in rest:
            writer.write_table(pa.Table.from_pandas(frame, schema=table.schema, preserve_index=False))


def _csv(first: pd.DataFrame, rest: Iterable[pd.DataFrame], path: Path) -> None:
    with path.open("w", newline="") as file:
        first.to_csv(file, index=False, float_format="%.7g", lineterminator="\n")
        for frame in rest:
            frame.to_csv(file, index=False, float_format="%.7g", lineterminator="\n", header=False)
