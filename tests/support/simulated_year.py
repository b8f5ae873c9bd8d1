"""A year of measurements of a fleet, with the noise of a few simulated campaigns and changes that are planted.

What nodes differ by from week to week, whole rows of all parts, is dealt anew to the nodes of the year. One node in two
has a change of 1.5 times the bound, in one part of a random family, from a random week on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from nodeprint.history import changes, selection, series
from nodeprint.history.judged import JudgedCampaign
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan
from tests.support.campaigns import judged_weeks

#: What is planted, in bounds.
TIMES_BOUND = 1.5
#: Simulated campaigns whose noise is dealt.
_SOURCE_WEEKS, _SOURCE_NODES = 8, 6


def source(folder: Path) -> tuple[xr.Dataset, JudgedCampaign]:
    """The series of a few simulated campaigns, and the last of these."""
    plan = Plan(preset("naples-2x32"), nodes=_SOURCE_NODES, runs=2, passes=1, pair_runs=6, cells=True)
    judged_weeks(folder, plan, range(_SOURCE_WEEKS))
    judged = selection.campaigns([folder]).judged
    return series.series(judged), judged[-1]


class Year:
    """Nodes of a year, each with the noise of whole rows of a source."""

    def __init__(self, of: xr.Dataset, seed: int) -> None:
        self.of, self.rng = of, np.random.default_rng(seed)
        values = np.log(np.maximum(of["value"].values.astype(np.float64), 1e-12))
        names = of["node"].values.astype(str)
        means = np.stack([values[names == name].mean(axis=0) for name in names])
        # of so few weeks the mean takes some of the noise with it
        self.noise = (values - means) * np.sqrt(_SOURCE_WEEKS / (_SOURCE_WEEKS - 1))
        sizes = np.zeros(of.sizes["part"], dtype=np.int64)
        for family in series.families(of):
            sizes[family] = len(family)
        contrast = of["family"].values != "class"
        pairs = of["measurement"].values == "coherence-cas"
        self.plantable = np.flatnonzero((of["unit"].values != "share") & (~(pairs & contrast) | (sizes >= 8)))

    def node(self, name: str, weeks: int, change: tuple[int, int] | None = None) -> xr.Dataset:
        """The series of a node over `weeks`; `change` is a part and its first week with it."""
        rows = self.rng.integers(0, len(self.noise), weeks)
        values = np.log(self.of["value"].values[0].astype(np.float64).clip(1e-12)) + self.noise[rows]
        out = self.of.isel(sample=rows).copy(deep=True)
        if change is not None:
            part, week = change
            values[week:, part] += self.rng.choice([-1, 1]) * TIMES_BOUND * float(self.of["bound"].values[0, part])
        out["value"].values[:] = np.exp(values)
        shares = self.of["unit"].values == "share"
        out["value"].values[:, shares] = self.of["value"].values[rows][:, shares]
        times = (np.datetime64("2026-01-01T00:00:00") + np.arange(weeks) * np.timedelta64(7, "D")).astype(str)
        return out.assign_coords(
            node=("sample", [name] * weeks), started=("sample", times), number=("sample", [0] * weeks)
        )


def counted(of: xr.Dataset, last: JudgedCampaign, nodes: int, weeks: int, seed: int) -> tuple[list[float], list[float]]:
    """Of nodes with a change whether it was found, confirmed, two measurements after it began; of nodes without one
    whether any was reported over the whole year."""
    year = Year(of, seed)
    caught, false = [], []
    for number in range(nodes):
        name = last_name(last, number)
        if number % 2:
            part, week = int(year.rng.choice(year.plantable)), int(year.rng.integers(2, weeks - 2))
            whole = year.node(name, week + 2, (part, week))
            since = str(whole["started"].values[week])
            (history,) = changes.histories(whole, [last])
            caught.append(float(any(c.confirmed and c.unchanged < since <= c.by for c in history.changes)))
        else:
            (history,) = changes.histories(year.node(name, weeks), [last])
            false.append(float(any(c.confirmed for c in history.changes)))
    return caught, false


def last_name(last: JudgedCampaign, number: int) -> str:
    """A name that the campaign has a fingerprint of."""
    names = sorted(last.nodes)
    return names[number % len(names)]
