"""The table of deviations: every outcome follows from it, by a few lines that know nothing of the judge."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from tests.support.fleets import judged, with_outcomes

DEFECTS = (
    (), ("node001: core 17 +9%",), ("node002: ccd 3 +6%",), ("node003: global +5%",), ("node001: core 5 +4.5%",),
    ("node001: socket-link +4%", "node005: core 40 +12%"), ("node004: link q0-q2 +6%",), ("node006: core 9 +6ns",),
)  # fmt: skip
CELLS = (("node001: memory-channel node 1 -12%",), ("node002: core-clock 37 -15%",))


def outcomes(table: pandas.DataFrame) -> dict[str, str]:
    """A statistician's own reading of the table: two one-sided tests, simultaneous intervals, two stages."""
    t = table.dropna(subset=["difference"]).reset_index()
    jobs, t = t[t.job != "pooled"].copy(), t.assign(last=t.groupby("node").job.transform("max"))
    jobs["size"], jobs["side"] = jobs.difference.abs(), np.sign(jobs.difference)
    jobs["outside"] = jobs["size"] - jobs.half_simultaneous > jobs.bound
    first, second = (jobs[jobs.job == f"job{k}"].set_index(["node", "part"]) for k in (1, 2))
    before = first.outside.reindex(second.index, fill_value=False)
    beyond = second.difference * first.side.reindex(second.index)
    confirmed = before & (beyond - second.half_confirming > second.bound)
    suspect = (before & ~confirmed & (beyond > second.bound)) | (second.outside & ~confirmed)
    alone = first[~first.index.get_level_values("node").isin(second.index.get_level_values("node"))]
    open_ = pandas.concat([suspect, alone.outside])
    deciding = t[t.subject.isin(["core-to-core", "numa", "bandwidth", "clock"]) & (t.job == t["last"])]
    within = (deciding.difference.abs() + deciding.half_90 <= deciding.bound).groupby(deciding.node).all()
    named = {"DEVIATES": confirmed.groupby("node").any(), "SUSPECT": open_.groupby("node").any(), "SAME": within}
    return {
        node: next((name for name, flags in named.items() if flags.get(node, False)), "INCONCLUSIVE")
        for node in within.index
    }


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_outcomes_of_simulated_fleets_follow_from_the_table_alone(jobs: int) -> None:
    seen: set[str] = set()
    for number in range(25):
        cells = number % 5 == 4
        defects = CELLS[number // 5 % 2] if cells else DEFECTS[number % len(DEFECTS)]
        campaign = judged(*defects, jobs=jobs, seed=number, cells=cells, pair_runs=2 + 2 * (number % 3))
        if any(node.group for node in campaign.verdict.nodes.values()):
            continue
        expected = with_outcomes(campaign)
        assert outcomes(campaign.deviations.to_dataframe()) == expected, (number, defects)
        seen |= set(expected.values())
    assert {"SAME", "SUSPECT" if jobs == 1 else "DEVIATES"} <= seen


def test_table_has_a_row_for_each_node_job_and_part_with_its_error_recomputable() -> None:
    table = judged(jobs=2, cells=True).deviations
    assert set(table.job.values.tolist()) == {"job1", "job2", "pooled"}
    assert set(table.node.values.tolist()) == {f"node{i:03d}" for i in range(8)}
    of_jobs = table.isel(sample=table.job.values != "pooled")
    parts = of_jobs.error_runs**2 + of_jobs.error_jobs**2 + of_jobs.error_template**2
    np.testing.assert_allclose(of_jobs.error**2, parts, rtol=1e-4)
    assert all("long_name" in table[name].attrs for name in table.data_vars)


def test_value_and_peers_are_in_the_measurements_unit() -> None:
    table = judged(cells=True).deviations
    linear = table.isel(part=table.subject.values == "core-to-core")
    np.testing.assert_allclose(linear.value, linear.peers * (1 + linear.difference), rtol=1e-4)
    assert {"ns", "B/s", "Hz", "share"} <= set(table.unit.values.tolist())
