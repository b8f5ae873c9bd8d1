"""The table of deviations: every outcome follows from it, by a few lines that know nothing of the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas
import pytest
from scipy import stats

from nodeprint.judge import deviations
from nodeprint.judge import table as table_of
from nodeprint.judge.judge import judge
from tests.support.fleets import judged, made, times, with_outcomes

DEFECTS = (
    (),
    ("node001: core 17 +9%",),
    ("node002: ccd 3 +6%",),
    ("node003: global +5%",),
    ("node001: core 5 +4.5%",),
    ("node001: socket-link +4%", "node005: core 40 +12%"),
    ("node004: link q0-q2 +6%",),
    ("node006: core 9 +6ns",),
)
CELLS = (("node001: memory-channel node 1 -12%",), ("node002: core-clock 37 -15%",))


def outcomes(table: pandas.DataFrame) -> dict[str, str]:
    """A statistician's own reading of the table: two one-sided tests, simultaneous intervals, k of n jobs."""
    t = table.dropna(subset=["difference"]).reset_index()
    t["above"] = t.difference - t.half_simultaneous > t.tolerance
    t["below"] = -t.difference - t.half_simultaneous > t.tolerance
    t["inside"] = t.difference.abs() + t.half_90 <= t.tolerance
    t["high"], t["low"] = t.difference > t.tolerance, t.difference < -t.tolerance
    jobs, keys = t[t.job != "pooled"], ["node", "component"]
    of = jobs.groupby(keys)[["above", "below", "high", "low", "inside", "runs_far"]].sum()
    pooled = t[t.job == "pooled"].set_index(keys)[["above", "below"]].any(axis=1).reindex(of.index, fill_value=False)
    k, n = of[["above", "below"]].max(axis=1), jobs.groupby(keys).size()
    confirmed = (k > 1) | (pooled & (of[["high", "low"]].max(axis=1) > 1))
    intermittent = ~confirmed & (((k > 0) & (n > 1) & (of.inside > 0)) | ((k == 0) & (of.runs_far > 0)))
    deciding = t[t.metric.isin(["core-to-core", "numa", "bandwidth", "clock"])]
    last = deciding[deciding.job == deciding.groupby("node").job.transform("max")]  # pooled, or the only job
    within = last.groupby("node").inside.all()
    named = {
        "DEVIATES": confirmed.groupby("node").any(),
        "INTERMITTENT": intermittent.groupby("node").any(),
        "SUSPECT": (k > 0).groupby("node").any(),
        "SAME": within,
    }
    return {
        node: next((name for name, flags in named.items() if flags.get(node, False)), "INCONCLUSIVE")
        for node in within.index
    }


#: By what each job of a fleet differs from what is planted: a burst in a job, a node that is slow in one alone, one
#: that is slow in two of three, and one that is off by what a job alone does not show.
CHANGES = (
    lambda node, job: 1.0,
    lambda node, job: 1.05 if (node, job) == (4, 2) else 1.0,
    lambda node, job: 1.06 if node == 5 and job != 2 else 1.0,
    lambda node, job: 1.024 if node == 2 else 1.0,
    lambda node, job: 1.0 + 0.004 * ((3 * node + 5 * job) % 4),
)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("fleets", [(1, 3, 4, 7), pytest.param((0, 2, *range(5, 25)), marks=pytest.mark.long)])
def test_outcomes_of_simulated_fleets_follow_from_the_table_alone(fleets: Sequence[int], jobs: int) -> None:
    seen: set[str] = set()
    for number in fleets:
        cells = number % 5 == 4
        defects = CELLS[number // 5 % 2] if cells else DEFECTS[number % len(DEFECTS)]
        fleet = made(*defects, jobs=jobs, seed=number, cells=cells, pair_runs=2 + 2 * (number % 3))
        campaign = judge(times(fleet, "coherence-cas", CHANGES[(number + jobs) % len(CHANGES)]))
        if any(node.group for node in campaign.verdict.nodes.values()):
            continue
        expected = with_outcomes(campaign)
        assert outcomes(campaign.deviations.to_dataframe()) == expected, (number, defects)
        seen |= set(expected.values())
    assert {"SAME", "SUSPECT" if jobs == 1 else "DEVIATES"} <= seen
    assert jobs == 1 or "INTERMITTENT" in seen


def test_outcomes_of_a_node_whose_runs_differ_follow_from_the_table_alone() -> None:
    fleet = made(jobs=2)
    (quantity,) = fleet.pairs
    values = quantity.values.copy()
    values[(quantity.node == 3) & (quantity.job == 2) & (quantity.run < 3)] *= 1.06
    campaign = judge(replace(fleet, quantities=(quantity.assign(values=values),)))
    assert with_outcomes(campaign)["node003"] == "INTERMITTENT"
    assert outcomes(campaign.deviations.to_dataframe()) == with_outcomes(campaign)


def test_table_has_a_row_for_each_node_job_and_part_with_its_error_recomputable() -> None:
    table = judged(jobs=2, cells=True).deviations
    assert set(table.job.values.tolist()) == {"job1", "job2", "pooled"}
    assert set(table.node.values.tolist()) == {f"node{i:03d}" for i in range(8)}
    components = table.error_runs**2 + table.error_jobs**2 + table.error_template**2
    np.testing.assert_allclose(table.error**2, components, rtol=1e-4)
    first = table.isel(sample=table.job.values == "job1", component=table.component_type.values == "core-near")
    shared = 0.05 / (2 * 16 * first.sizes["component"])  # of eight nodes with two jobs
    half = first.error_different * stats.t.isf(shared, first.degrees_different)
    np.testing.assert_allclose(first.half_simultaneous, half, rtol=1e-3)
    assert (first.error_different >= 0.999 * first.error).all()
    pooled = table.isel(sample=table.job.values == "pooled")
    shared = 0.01 / (2 * int(np.isfinite(pooled.difference).sum()))  # of all nodes and components
    half = pooled.error_different * stats.t.isf(shared, pooled.degrees_different)
    np.testing.assert_allclose(pooled.half_simultaneous, half, rtol=1e-3)
    assert all("long_name" in table[name].attrs for name in table.data_vars)


def test_value_and_peers_are_in_the_measurements_unit() -> None:
    table = judged(cells=True).deviations
    linear = table.isel(component=table.metric.values == "core-to-core")
    np.testing.assert_allclose(linear.value, linear.peers * (1 + linear.difference), rtol=1e-4)
    assert {"ns", "B/s", "Hz", "share"} <= set(table.unit.values.tolist())


def test_a_clock_is_the_mean_over_runs_of_what_the_core_has() -> None:
    """Of logarithms, as the effect of a rate is."""
    campaign = judged(cells=True)
    (quantity,) = (q for q in campaign.population.fleet.quantities if q.measurement == "clock-together")
    core = (campaign.deviations.measurement == "clock-together") & (campaign.deviations.place == "core=3")
    for number in (0, 7):
        of_node = campaign.deviations.node == f"node{number:03d}"
        value = campaign.deviations.isel(sample=of_node.values, component=core.values).value.values.item()
        (place,) = (at for at in range(quantity.size) if quantity.place(at)["cpu"] == 2 * 3)  # two threads a core
        runs = np.median(quantity.values[quantity.node == number], axis=1)[:, place]
        assert value == pytest.approx(stats.gmean(runs.astype(np.float64)), rel=1e-5)


def test_pooled_values_are_between_those_of_the_jobs() -> None:
    table = judged(jobs=2, cells=True).deviations
    of_node = table.isel(sample=table.node.values == "node003").set_index(sample="job")
    values = [of_node.value.sel(sample=job).values for job in ("job1", "job2", "pooled")]
    room = 1e-3 * np.abs(values[0])
    assert (values[2] <= np.fmax(values[0], values[1]) + room).mean() > 0.99
    assert (values[2] >= np.fmin(values[0], values[1]) - room).mean() > 0.99


def test_places_are_counted_alike_in_all_measurements() -> None:
    table = judged(cells=True, machine="milan-2x64").deviations
    of_cores = {
        metric: set(table.place.values[(table.metric.values == metric) & (table.term.values == term)].tolist())
        for metric, term in (("core-to-core", "core"), ("clock", "clock"))
    }
    assert {f"core={core}" for core in range(128)} <= of_cores["core-to-core"] & of_cores["clock"]


def test_a_finding_has_what_the_table_has() -> None:
    """The finding of a rate: value, peers and the tolerance on its side."""
    campaign = judged("node002: core-clock 37 -15%", cells=True)
    finding = next(found for found in campaign.verdict.nodes["node002"].findings if found.unit == "Hz")
    table = campaign.deviations
    own = table.isel(sample=table.node.values == "node002", component=table.measurement.values == finding.measurement)
    at = int(np.nanargmax(np.abs(own.difference.values[0])))
    value, peers, tolerance = (float(own[name].values[0, at]) for name in ("value", "peers", "tolerance"))
    np.testing.assert_allclose((finding.value, finding.peers), (value, peers), rtol=1e-5)
    np.testing.assert_allclose(finding.effect_unit, value - peers, rtol=1e-3)
    lower = 1 - np.exp(-tolerance)
    np.testing.assert_allclose((finding.tolerance, finding.tolerance_unit), (lower, peers * lower), rtol=1e-5)


@pytest.mark.slow
def test_the_table_is_the_same_whatever_number_of_nodes_is_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = judged("node002: core 17 +9%", jobs=2, cells=True)
    whole = campaign.deviations
    monkeypatch.setattr(table_of, "AT_ONCE", 3)
    monkeypatch.setattr(deviations, "AT_ONCE", 3)
    components = list(campaign.blocks)
    assert [len(component["error"]) for component in components] == [9, 9, 6]
    again = table_of.whole(campaign.labels, campaign.blocks)
    assert again.identical(whole)
