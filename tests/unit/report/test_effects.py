"""The effect of a finding in each job: the deciding one is the one that its figures are of."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nodeprint.judge.outcome import Certainty
from nodeprint.report import names
from nodeprint.report.figures import differences, strips
from nodeprint.report.figures.node_levels import levels, median_of_runs
from tests.support.fleets import judged, made


@pytest.mark.parametrize("state", [Certainty.CONFIRMED, Certainty.INTERMITTENT])
def test_what_a_job_does_not_show_is_drawn_as_the_job_that_shows_it_most(state: Certainty) -> None:
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
    of_job = strips._of_job(drawn, "node003", finding)
    rows = drawn.quantity.rows[3]
    assert of_job.tolist() == median_of_runs(drawn.quantity, rows[1 + deciding]).tolist()


def test_heading_of_an_effect_has_the_effect_that_its_factor_is_of() -> None:
    """Of an intermittent difference that only some runs of a job show, the effect is theirs and not the job's."""
    (finding,) = judged("node003: core 17 +12%").verdict.nodes["node003"].findings
    finding = replace(finding, state=Certainty.INTERMITTENT, effect=0.436, tolerance=0.106)
    assert differences.of_finding(finding).attrs["heading"].startswith("+43.6%: 4.1 times its tolerance")
