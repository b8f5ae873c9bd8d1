"""Measurements and deviations as tables (pandas) for other programs, and as netCDF, CSV or Parquet files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, get_args

import pandas as pd
import xarray as xr

from nodeprint.campaign import derived
from nodeprint.data.export import datasets, netcdf_table, table_files
from nodeprint.data.job import fabric_records
from nodeprint.data.job.fabric_times import Fabric
from nodeprint.data.store import packing
from nodeprint.errors import NodeprintError
from nodeprint.judge import campaign as judging
from nodeprint.judge.verdict import ClassFigure, Verdict
from nodeprint.report import verdict_files
from nodeprint.settings import former_keys

Table = Literal["details", "messages", "classes", "deviations"]
TABLES: tuple[Table, ...] = get_args(Table)


#: Where datasets are written as netCDF.
FOLDER = "export"


def write(campaign: Path, to: Path, table: str = "") -> Path:
    """Write a table of a campaign as `to` (.parquet or .csv), some runs at a time; returns the path. A table is one of
    TABLES, or the values of the measurement of that name, of the first one if none is named.

    Raises NodeprintError for another ending, where the table would be empty, where pyarrow is missing for Parquet, or
    where the file cannot be written.
    """
    if to.suffix not in table_files.ENDINGS:
        raise NodeprintError("neither .parquet nor .csv", where=to, advice="name a file with one of these endings")
    make = _FRAMES.get(table)
    frames = make(campaign) if make is not None else _values(campaign, table)
    first = next(frames, None)
    if first is None:
        advice = f"choose another of {', '.join(other for other in TABLES if other != table)} (--table)"
        raise NodeprintError(f"the campaign has no {table or 'values'}", where=to, advice=advice)
    table_files.write(first, frames, to)
    return to


def write_datasets(campaign: Path) -> Iterator[Path]:
    """Write each dataset of a campaign as netCDF below it and yield the paths. Raises CannotWriteError."""
    fleet, written = packing.pack(campaign), Counter[str]()
    for measured in fleet.quantities:
        stem = derived.file_stem(measured.measurement)
        written[stem] += 1
        name = f"{stem}.nc" if written[stem] == 1 else f"{stem}-{written[stem]}.nc"
        yield datasets.write_netcdf(datasets.dataset(fleet, measured), campaign / FOLDER / name)


def _values(campaign: Path, measurement: str) -> Iterator[pd.DataFrame]:
    """The values of a measurement on all kinds of machines."""
    fleet = packing.pack(campaign)
    name = measurement or next((measured.measurement for measured in fleet.quantities), "")
    measurements = dict.fromkeys(measured.measurement for measured in fleet.quantities)
    if name not in measurements:
        advice = f"choose from {', '.join((*measurements, *TABLES))}"
        raise NodeprintError(f"the campaign has no {name or 'values'}", key="--table", advice=advice)
    of_name = (measured for measured in fleet.quantities if measured.measurement == name)
    yield from _not_empty(frame for of in of_name for frame in datasets.frames(datasets.dataset(fleet, of)))


def classes(verdict: Verdict) -> pd.DataFrame:
    """The medians of each class of pairs on each node, with their 95% intervals in ns."""
    fields = [field for field in ClassFigure.__struct_fields__ if field != "groups"]
    rows = [
        {"node": name} | {field: getattr(figure, field) for field in fields}
        for name, node in verdict.nodes.items()
        for figure in node.classes
    ]
    return pd.DataFrame(rows).rename(columns={"name": "class"})


def deviations(campaign: Path) -> xr.Dataset:
    """The table that every outcome is read off (sample, part), as the judge wrote it. Raises NodeprintError where the
    campaign has not been judged."""
    path = judging.deviations(campaign)
    advice = f"run `nodeprint judge {campaign}` again"
    table = netcdf_table.read(path, advice)
    if former := former_keys.named([str(name) for name in table.variables]):
        raise NodeprintError(f"has former names of columns: {former}", where=path, advice=advice)
    return table


def deviation_rows(dataset: xr.Dataset) -> pd.DataFrame:
    """The table of deviations with a row for each node, job and part that was compared."""
    frame = dataset.to_dataframe().reset_index().dropna(subset=["difference"])
    return frame.drop(columns=["sample", "component"], errors="ignore")


def _deviations(campaign: Path) -> Iterator[pd.DataFrame]:
    yield from _not_empty([deviation_rows(deviations(campaign))])


def _classes(campaign: Path) -> Iterator[pd.DataFrame]:
    yield from _not_empty([classes(verdict_files.read(campaign))])


def fabrics(campaign: Path) -> tuple[Fabric, ...]:
    """Everything measured between the nodes of a campaign, or the pairs of nodes of its table."""
    return (*packing.pack(campaign).fabrics, *fabric_records.read(campaign)[0])


def _not_empty(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    return (frame for frame in frames if len(frame))


_FRAMES: dict[str, Callable[[Path], Iterator[pd.DataFrame]]] = {
    "details": lambda campaign: _not_empty(table_files.details(packing.pack(campaign))),
    "messages": lambda campaign: _not_empty(table_files.messages(fabrics(campaign))),
    "classes": _classes,
    "deviations": _deviations,
}
