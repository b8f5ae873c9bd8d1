"""What docs/method/verdict.md says of the numbers that decide is what the statistics do."""

from __future__ import annotations

import pytest

from nodeprint.stats import disagreement, intervals, measuring_order, peers, rounds, runs, strata
from tests.support.method import constants, in_code, percent, text, word

SAID = (
    f"half_90 = t({1 - intervals.EQUIVALENCE:g}) e",
    f"**A majority is {'two thirds' if peers.MAJORITY == 2 / 3 else peers.MAJORITY}.**",
    f"(nodes - 2 degrees; from {word(peers.FEWEST)} nodes on)",
    f"which moves values to {peers.HUBER:g} standard deviations from their median",
    f"its variance is {peers.TEMPLATE_ERROR:g} times that of a mean",
    f"as long as {word(round(10 * peers.REMAINDER, 9))} of ten remain",
    f"neighbors differ by the tolerance and {word(strata.BEYOND)} standard errors",
    f"with at least {percent(strata.EMPTY)} of that difference empty between them",
    f"The test needs {word(measuring_order.FEWEST)} nodes",
    f"A node noisier than one in {'a thousand' if 1000 * runs.RARE == 1 else runs.RARE} takes no part",
    f"with {word(runs.OWN_DEGREES)} degrees of freedom of the pooled variance against its own",
    f"A component of a node counts at most {word(runs.OUTLIER)} times what is usual",
    f"in other rounds ({word(rounds.FEWEST)} at least)",
    f"off its job's others ({percent(round(disagreement.LEAST - 1, 9))} and",
    f"{word(disagreement._BY_CHANCE)} times what runs usually differ by)",
)


@pytest.mark.parametrize("sentence", SAID)
def test_the_method_says_the_numbers_that_decide(sentence: str) -> None:
    assert sentence in text()


@pytest.mark.parametrize(("module", "name", "value"), list(constants("stats")))
def test_the_page_of_constants_has_those_of_the_code(module: str, name: str, value: float) -> None:
    assert in_code(module, name) == value
