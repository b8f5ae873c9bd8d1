"""The effect of a finding: its jobs, and the pairs that carry it, are those of its figure and its sentence."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from nodeprint.data.places.layout import SOCKET
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Certainty
from nodeprint.report import names, text
from nodeprint.report.figures import differences, strips
from nodeprint.report.figures.node_levels import levels, mean_of_runs
from nodeprint.report.pages import pictures, tables
from nodeprint.report.pages.judged_campaign import Campaign
from tests.support.fleets import judged, made, times


@pytest.mark.parametrize("state", [Certainty.CONFIRMED, Certainty.INTERMITTENT])
def test_the_figure_of_a_finding_has_the_runs_of_the_jobs_that_show_it(state: Certainty) -> None:
    (finding,) = judged("node003: core 17 +12%", jobs=2).verdict.nodes["node003"].findings
    first, second = finding.by_job
    intermittent = state is Certainty.INTERMITTENT
    healthy = replace(second, effect=0.0, shows=False) if intermittent else second
    deciding = 0 if intermittent or first.effect > second.effect else 1
    finding = replace(finding, state=state, effect=finding.by_job[deciding].effect, by_job=(first, healthy))
    data = differences.of_finding(finding)
    assert (finding.deciding, int(data.marked.values.argmax())) == (deciding, deciding)
    assert data.attrs["heading"].startswith(f"{names.signed(finding.effect)}: ")
    drawn = levels(made("node003: core 17 +12%", jobs=2), finding.measurement, "node003")
    rows = drawn.quantity.rows[3]
    of_jobs = [mean_of_runs(drawn.quantity, rows[job]) for job in ((1,) if intermittent else (1, 2))]
    assert strips._of_finding(drawn, "node003", finding).tolist() == np.mean(of_jobs, axis=0).tolist()


@pytest.mark.parametrize("by", [1.5, 0.6])
def test_an_effect_of_few_pairs_says_how_many_have_it_and_the_figure_shows_them(by: float) -> None:
    """A mean over the pairs of a core was carried by a few of them, and nothing said so."""
    (of_pairs,) = made(jobs=2).pairs
    factor = np.ones(of_pairs.size)
    slot = made(jobs=2).nodes[3].cpus.index(17)
    far = of_pairs.layout.slots[of_pairs.places["b"], SOCKET] == 1
    factor[np.flatnonzero((of_pairs.places["a"] == slot) & far)[:10]] = by
    fleet = times(made(jobs=2), of_pairs.measurement, lambda node, _: factor if node == 3 else 1.0)
    (finding, *_) = judge(fleet).verdict.nodes["node003"].findings
    assert (finding.component.component_type, finding.places, finding.places_beyond) == ("core-far", 32, 10)
    assert "Only 10 of its 32 pairs are beyond the tolerance." in text.finding_sentence(finding)
    numbers = tables.finding_numbers(finding)
    assert numbers is not None and numbers.rows[0][numbers.header.index("pairs beyond")] == "10 of 32"
    drawn = levels(fleet, finding.measurement, "node003")
    data = strips.own_places(drawn, "node003", finding)
    own = np.sign(finding.effect) * data.value_0.values
    assert (len(own), int((own > 100 * finding.tolerance).sum())) == (32, 10)
    assert np.mean(own) == pytest.approx(100 * abs(finding.effect), abs=0.5)


def test_the_figure_of_an_intermittent_core_has_the_mean_that_the_sentence_states() -> None:
    """It had the median over the runs, in which most pairs lay within the tolerance."""
    campaign = judged("node003: intermittent core 17 +40%", jobs=2)
    (finding, *_) = campaign.verdict.nodes["node003"].findings
    page = Campaign(campaign.verdict, made("node003: intermittent core 17 +40%", jobs=2))
    data = strips.own_places(page.levels(finding.measurement, "node003"), "node003", finding)
    assert float(data.value_0.mean()) == pytest.approx(100 * finding.effect, abs=1.0)
    (picture,) = pictures.of_finding(page, "node003", finding, 1)
    assert f"means over {len(finding.runs)} runs of job1 and job2" in picture.caption
    assert "in core 17 (CPU 17) to the " in picture.caption
    wanted = {cpu for a, of in finding.pairs.items() for cpu in (a, *of)} - {17}
    assert set(data.place.values.tolist()) == set(map(str, wanted)), "the pairs of the stated effect"
    sockets = {cpu // 32 for cpu in wanted}
    assert sockets == ({1} if finding.component.component_type == "core-far" else {0})


def test_heading_of_an_effect_has_the_effect_that_its_factor_is_of() -> None:
    """Of an intermittent difference that only some runs of a job show, the effect is theirs and not the job's."""
    (finding,) = judged("node003: core 17 +12%").verdict.nodes["node003"].findings
    finding = replace(finding, state=Certainty.INTERMITTENT, effect=0.436, tolerance=0.106)
    assert differences.of_finding(finding).attrs["heading"].startswith("+43.6%: 4.1 times its tolerance")
