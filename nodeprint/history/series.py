"""Every part of every node over campaigns, as one labelled table, from the campaigns' verdicts and deviations.

What is comparable over campaigns is the *value* of a part, in the measurement's unit. The difference from the peers
is not: a node that was left alone differs where most of the others were changed, or where others were its peers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint.errors import NodeprintError
from nodeprint.judge.campaign import DEVIATIONS
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.table import VARIABLES
from nodeprint.judge.terms import FAMILIES

Floats = npt.NDArray[np.float64]

#: Labels of a part, which together name it in every campaign.
PART = ("measurement", "home", "subject", "term", "family", "place", "unit")
#: Of the table of deviations what a series has, and its labels of a sample.
_VALUES, _SAMPLE = ("value", "difference", "error", "bound"), ("node", "job", "started")


class JudgedNode(msgspec.Struct, frozen=True):
    """What a campaign's verdict says of a node: when its newest run began (ISO 8601; empty where that is unknown), and
    the fields of its fingerprint."""

    outcome: Outcome
    measured: str = ""
    fingerprint: Mapping[str, Any] = {}


class JudgedCampaign(msgspec.Struct, frozen=True):
    """A campaign's folder, its name and nodes, and when its last run began (ISO 8601; empty where none did)."""

    folder: Path
    name: str
    simulated: bool
    nodes: Mapping[str, JudgedNode]
    last: str


def series(judged: Sequence[JudgedCampaign], nodes: Collection[str] | None = None) -> xr.Dataset:
    """The series (sample, part) of all parts: a sample is a node in one independent job of a campaign, in the order of
    time. Jobs that were disturbed are in no table. With `nodes` of these alone.

    `value` is in the part's unit, `difference`, `error` and `bound` as in deviations.nc. What a sample does not have is
    NaN. Raises NodeprintError where a table is missing, or was written before it had times.
    """
    return joined([(campaign, table(campaign, nodes)) for campaign in judged])


def joined(campaigns: Sequence[tuple[JudgedCampaign, xr.Dataset]]) -> xr.Dataset:
    """The series of campaigns with their tables (`table`); `number` is that of a sample's campaign among these."""
    judged, tables = [campaign for campaign, _ in campaigns], [of_campaign for _, of_campaign in campaigns]
    parts: dict[tuple[object, ...], int] = {}
    columns = []
    for of_campaign in tables:
        labels = zip(*(of_campaign[key].values.tolist() for key in PART), strict=True)
        columns.append(np.array([parts.setdefault(label, len(parts)) for label in labels], dtype=np.int64))
    samples = sum(of_campaign.sizes["sample"] for of_campaign in tables)
    values = {name: np.full((samples, len(parts)), np.nan, dtype=np.float32) for name in _VALUES}
    begin = 0
    for of_campaign, column in zip(tables, columns, strict=True):
        end = begin + of_campaign.sizes["sample"]
        for name in _VALUES:
            values[name][begin:end, column] = of_campaign[name].values
        begin = end
    coordinates = {key: ("part", [label[number] for label in parts]) for number, key in enumerate(PART)} | {
        key: ("sample", [entry for of_campaign in tables for entry in of_campaign[key].values.tolist()])
        for key in _SAMPLE
    }
    numbers = [number for number, of_campaign in enumerate(tables) for _ in range(of_campaign.sizes["sample"])]
    coordinates["campaign"] = ("sample", [judged[number].name for number in numbers])
    coordinates["number"] = ("sample", numbers)
    whole = xr.Dataset({name: (("sample", "part"), array) for name, array in values.items()}, coordinates)
    return whole.isel(sample=np.argsort(whole["started"].values, kind="stable"))


def table(campaign: JudgedCampaign, nodes: Collection[str] | None = None) -> xr.Dataset:
    """A campaign's table of deviations without pooled jobs, which are in it one by one; with `nodes` of these alone.

    Raises NodeprintError where it cannot be read, or was written before it had times.
    """
    path, again = campaign.folder / DEVIATIONS, f"run `nodeprint judge {campaign.folder}`"
    try:
        with xr.open_dataset(path, engine="h5netcdf", drop_variables=set(VARIABLES) - set(_VALUES)) as file:
            if "started" not in file.coords:
                raise NodeprintError("has no times", where=path, advice=again)
            whole = file.load()
    except (OSError, ValueError) as error:
        raise NodeprintError("no table of deviations can be read", where=path, advice=again) from error
    kept = (whole["job"].values != "pooled") & (nodes is None or np.isin(whole["node"].values, list(nodes or ())))
    return whole.isel(sample=np.flatnonzero(kept))


def comparable(of_node: xr.Dataset) -> Floats:
    """The series (sample, part) of one node on a scale that is comparable over campaigns: logarithms of the values.

    A part that is compared with others of its machine (a core with those of its CCX) is so here, too: less the mean
    over its family, which takes out what moves all of them. Of shares of the time it is the difference on its own
    scale, as these are near 0.
    """
    values = of_node["value"].values.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.log(np.where(values > 0, values, np.nan))
    shares = of_node["unit"].values == "share"
    out[:, shares] = of_node["difference"].values[:, shares]
    for family in families(of_node):
        if str(of_node["family"].values[family[0]]) in _CONTRASTS:
            moved = out[:, family] - _mean(out[:, family], 0)[None, :]
            out[:, family] -= _mean(moved, 1)[:, None]
    return out


#: Families of parts that are compared with others of their machine: of pairs of CPUs all but the classes.
_CONTRASTS = frozenset(FAMILIES) - {"class"}


def families(of_parts: xr.Dataset) -> list[npt.NDArray[np.int64]]:
    """The numbers of the parts of each measurement, home and family."""
    keys = list(zip(*(of_parts[key].values.tolist() for key in ("measurement", "home", "family")), strict=True))
    numbers: dict[tuple[object, ...], list[int]] = {}
    for number, key in enumerate(keys):
        numbers.setdefault(key, []).append(number)
    return [np.array(members, dtype=np.int64) for members in numbers.values()]


def _mean(values: Floats, axis: int) -> Floats:
    """The mean of what is there, 0 where nothing is."""
    present = np.isfinite(values)
    return np.asarray(np.where(present, values, 0.0).sum(axis=axis) / np.maximum(present.sum(axis=axis), 1))
