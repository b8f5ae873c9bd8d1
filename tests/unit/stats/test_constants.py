"""What docs/method/verdict.md says of the numbers that decide is what the statistics do."""

from __future__ import annotations

import pytest

from nodeprint.stats import disagreement, intervals, measuring_order, peers, runs, strata
from tests.support.method import constants, in_code, percent, text, word

SAID = (
    f"t({1 - intervals.EQUIVALENCE:g}, f) e",
    f"of which fewer than {percent(peers.MAJORITY)} of the nodes are within the bound of the centre",
    f"of {word(peers.FEWEST)} nodes or more, as of fewer each is named",
    f"values moved to {peers.HUBER:g} standard deviations from their median",
    f"The variance of the centre is {peers.TEMPLATE_ERROR:g} times that of a mean",
    f"neighbours differ by the bound and {word(strata.BEYOND)} standard errors",
    f"at least {percent(strata._EMPTY)} of that difference is empty",
    f"A group has {word(strata._LEAST)} nodes and {percent(strata._LEAST_SHARE)} of them at least",
    f"To see it takes {word(measuring_order.FEWEST)} nodes",
    f"noisier than chance makes one in {'a thousand' if 1000 * runs.RARE == 1 else runs.RARE}",
    f"with {word(runs.OWN_DEGREES)} degrees of freedom of the pooled variance against its own",
    f"in which the assumption counts {word(runs.JOB_DEGREES)} degree of freedom",
    f"off its job's others ({percent(round(disagreement.LEAST - 1, 9))} and",
    f"{word(disagreement._BY_CHANCE)} times what runs usually differ by)",
)


@pytest.mark.parametrize("sentence", SAID)
def test_the_method_says_the_numbers_that_decide(sentence: str) -> None:
    assert sentence in text()


@pytest.mark.parametrize(("module", "name", "value"), list(constants("stats")))
def test_the_page_of_constants_has_those_of_the_code(module: str, name: str, value: float) -> None:
    assert in_code(module, name) == value
