"""Every part of every node over campaigns, as one labelled table, from the campaigns' verdicts and deviations.

What is comparable over campaigns is the *value* of a part, in the measurement's unit. The difference from the peers
is not: a node that was left alone differs where most of the others were changed, or where others were its peers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint.data.export import netcdf_table
from nodeprint.errors import NodeprintError
from nodeprint.history.judged import PART, JudgedCampaign
from nodeprint.judge.campaign import deviations
from nodeprint.judge.table import VARIABLES
from nodeprint.judge.terms import FAMILIES

Floats = npt.NDArray[np.float64]

#: Of the table of deviations what a series has, and its labels of a sample.
_VALUES, _SAMPLE = ("value", "difference", "error", "degrees", "bound"), ("node", "job", "started")
#: What is read of it.
_READ = ("value", "difference", "error_runs", "error_jobs", "degrees", "bound")


def series(judged: Sequence[JudgedCampaign], nodes: Collection[str] | None = None) -> xr.Dataset:
    """The series of campaigns as `joined` has it; with `nodes` of these alone. Jobs that were disturbed are in none.

    Raises NodeprintError where a table is missing, or was written before it had times.
    """
    return joined([(campaign, table(campaign, nodes)) for campaign in judged])


def joined(campaigns: Sequence[tuple[JudgedCampaign, xr.Dataset]]) -> xr.Dataset:
    """The series (sample, part) of campaigns with their tables (`table`): a sample is a node in one independent job of
    a campaign, in the order of time; `number` is that of its campaign among these.

    `value` is in the part's unit, `difference` and `bound` as in deviations.nc, and `error` that of the value: from run
    to run and from job to job, with its `degrees` of freedom. What a sample does not have is NaN. What lies in several
    campaigns, as in a copy of one, is there once, and the attribute `copies` names the folders of the others.
    """
    judged = [campaign for campaign, _ in campaigns]
    numbered = [(number, of_campaign) for number, (_, of_campaign) in enumerate(campaigns)]
    parts: dict[tuple[object, ...], int] = {}
    columns = []
    for _, table in numbered:
        labels = zip(*(table[key].values.tolist() for key in PART), strict=True)
        columns.append(np.array([parts.setdefault(label, len(parts)) for label in labels], dtype=np.int64))
    samples = sum(table.sizes["sample"] for _, table in numbered)
    values = {name: np.full((samples, len(parts)), np.nan, dtype=np.float32) for name in _VALUES}
    begin = 0
    for (_, table), column in zip(numbered, columns, strict=True):
        end = begin + table.sizes["sample"]
        for name in _VALUES:
            values[name][begin:end, column] = table[name].values
        begin = end
    coordinates = {key: ("part", [label[number] for label in parts]) for number, key in enumerate(PART)} | {
        key: ("sample", [entry for _, table in numbered for entry in table[key].values.tolist()]) for key in _SAMPLE
    }
    numbers = [number for number, table in numbered for _ in range(table.sizes["sample"])]
    coordinates["campaign"] = ("sample", [judged[number].name for number in numbers])
    coordinates["number"] = ("sample", numbers)
    whole = xr.Dataset({name: (("sample", "part"), array) for name, array in values.items()}, coordinates)
    whole = whole.isel(sample=np.argsort(whole["started"].values, kind="stable"))
    repeated = _repeated(whole, simulated=any(campaign.simulated for campaign in judged))
    copies = {judged[number].folder.name for number in whole["number"].values[repeated].tolist()}
    return whole.isel(sample=np.flatnonzero(~repeated)).assign_attrs(copies=sorted(copies))


def _repeated(whole: xr.Dataset, *, simulated: bool) -> npt.NDArray[np.bool_]:
    """Which samples are one that came before (sample): of one node, begun in the same second. Simulated campaigns may
    all begin at one time; of these the values are the same, too."""
    out = np.zeros(whole.sizes["sample"], dtype=np.bool_)
    values, begun = whole["value"].values, whole["started"].values.astype(str)
    first: dict[tuple[str, str], list[int]] = {}
    for number, key in enumerate(zip(whole["node"].values.astype(str).tolist(), begun.tolist(), strict=True)):
        former = first.setdefault(key, [])
        same = (not simulated or np.array_equal(values[number], values[other], equal_nan=True) for other in former)
        out[number] = bool(key[1]) and any(same)
        former.append(number)
    return out


def table(campaign: JudgedCampaign, nodes: Collection[str] | None = None) -> xr.Dataset:
    """A campaign's table of deviations without pooled jobs, which are in it one by one: of the nodes that it has here,
    with `nodes` of these alone. The `error` is that of a value, without that of the peers' centre.

    Raises NodeprintError where it cannot be read, or was written before it had times.
    """
    path, again = deviations(campaign.folder), f"run `nodeprint judge {campaign.folder}`"
    whole = netcdf_table.read(path, again, unread=set(VARIABLES) - set(_READ))
    if "started" not in whole.coords:
        raise NodeprintError("has no times", where=path, advice=again)
    names = whole["node"].values.astype(str)
    kept = (whole["job"].values != "pooled") & np.isin(names, list(campaign.nodes))
    kept &= nodes is None or np.isin(names, list(nodes or ()))
    whole = whole.assign(error=np.hypot(whole["error_runs"], whole["error_jobs"]))
    return whole.drop_vars(["error_runs", "error_jobs"]).isel(sample=np.flatnonzero(kept))


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
