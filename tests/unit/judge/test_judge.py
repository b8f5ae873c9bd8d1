"""What docs/method/verdict.md says of the numbers that decide is what the code does."""

from __future__ import annotations

import pytest

from nodeprint.judge import (
    acceptance,
    agreements,
    baseline,
    causes,
    control_nodes,
    deviations,
    groups,
    measuring_time,
    reduction,
    standing,
)
from tests.support.method import percent, text, word

RULES = acceptance.load()
TOLERANCES, QUALITY = RULES.tolerances, RULES.quality

SAID = (
    f"t(1 - {deviations.SUSPECT:g} / (2 J p)) E",
    f"t(1 - {RULES.false_alarm:g} / (2 m)) E",
    f"within their tolerances, less than {percent(RULES.false_alarm)} (`false_alarm_percent`;",
    f"Jobs that begin less than {word(reduction.APART.total_seconds() / 60)} minutes after another count",
    f"of fewer than {deviations._FEW} nodes the farthest is left out first",
    f"two groups are more than {word(groups.GAP)} of it apart",
    f"with a chance of {percent(measuring_time.ALARM)} of any false alarm",
    f"within {percent(causes._AGREE_SHARE)} or {word(causes._AGREE_ERRORS)} errors",
    f"A core is named only if its own pairs show {word(causes._OWN_SHARE)} of the effect",
    f"The coarsest is reported if {word(round(10 * causes._MOST, 9))} tenths of the sets inside agree",
    f"{word(control_nodes.CONTROLS)} of a configuration have two jobs and {word(control_nodes.FEWEST)} are in",
    f"(outside by themselves, and {'twice' if deviations._FAR == 2 else deviations._FAR} the tolerance)",
    f"tolerance + half_simultaneous + {agreements.NINE_OF_TEN:.3g} e",
    f"whose detection limit is beyond {agreements.FAR:g} tolerances",
    f"A baseline needs {word(baseline.MIN_RUNS)} runs over {word(baseline.MIN_BOOTS)} boots",
    f"of three or {word(standing.FEW_NODES)} where the others do not agree",
    f"pairs are missing ({QUALITY.missing_pairs_percent:g}%)",
    f"or were disturbed ({QUALITY.disturbed_pairs_percent:g}%)",
    f"A tolerance is never below {TOLERANCES.least_ns:g} ns or {word(TOLERANCES.clock_ticks)} ticks of the clock",
    f"the mean inside a CCX and its class have {TOLERANCES.harvested_ccx_ns:g} ns",
)


@pytest.mark.parametrize("sentence", SAID)
def test_the_method_says_the_numbers_that_decide(sentence: str) -> None:
    assert sentence in text()
