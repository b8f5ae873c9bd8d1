"""What a reader can check in a sentence is true there: effect over tolerance is the factor, ns are of the class
named."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.verdict import Finding, Verdict
from nodeprint.machine.topology.presets import preset
from nodeprint.report import names, text
from nodeprint.settings.texts import texts
from nodeprint.simulate import Plan, Variation, fleet
from tests.support import verdicts
from tests.support.fleets import judged, made

#: An effect, its interval, its tolerance and the factor in a sentence; effects of shares are in percentage points.
_FIGURES = re.compile(
    r"([\d.]+)(?:%| percentage points) [^(]*\(interval (-?[\d.]+) to (-?[\d.]+)(?:%| points); "
    r"tolerance ([\d.]+)(?:%| points): ([\d.]+) times\)"
)
DEFECTS = (
    ("node001: core 17 +9%", "node002: ccd 3 +6%"),
    ("node003: global +5%", "node004: memory node1-to-node0 +20%", "node005: power-limit socket 1 -15%"),
    ("node001: core-clock 37 -15%",),
    ("node001: memory-channel node 1 -40%",),
    ("node002: core-clock 5 +12%", "node006: core 9 +6ns"),
)


def _sentences(verdict: Verdict) -> Iterator[tuple[Finding, str]]:
    for node in verdict.nodes.values():
        for finding in node.findings:
            yield finding, text.finding_sentence(finding)


def _divides(words: str) -> bool:
    effect, _, _, tolerance, factor = map(float, _FIGURES.search(words).groups())  # type: ignore[union-attr]
    return factor == pytest.approx(effect / tolerance, abs=0.0501 if factor < 100 else 0.501)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", range(len(DEFECTS)))
def test_printed_effect_over_printed_tolerance_is_the_printed_factor(number: int, jobs: int) -> None:
    seen = 0
    for finding, words in _sentences(judged(*DEFECTS[number], jobs=jobs, cells=True, seed=number).verdict):
        if _FIGURES.search(words):
            seen += 1
            assert _divides(words), words
            assert finding.times_tolerance == pytest.approx(abs(finding.effect) / finding.tolerance)
            effect, low, high, tolerance, _ = map(float, _FIGURES.search(words).groups())  # type: ignore[union-attr]
            assert low <= effect <= high, words
            if finding.state in (Certainty.CONFIRMED, Certainty.SUSPECTED):
                assert low >= tolerance - 0.051, words  # the interval that decided
    assert seen


@given(effect=st.floats(-0.9, 3.0), tolerance=st.floats(0.005, 0.2))
def test_the_factor_is_of_the_figures_that_are_printed(effect: float, tolerance: float) -> None:
    words = text.finding_sentence(verdicts.finding(effect, tolerance=tolerance))
    assert _divides(words), words
    assert names.times(effect, tolerance) == _FIGURES.search(words)[5]  # type: ignore[index]


def test_ns_of_a_whole_node_are_of_the_class_that_is_named() -> None:
    """A node 6% slower: in pairs of 20 ns and of 200 ns, and the sentence says in which."""
    finding, *_ = judge(made("node003: global +6%", jobs=2)).verdict.nodes["node003"].findings
    assert finding.component.term == "node" and finding.figures_of is not None
    words = text.finding_sentence(finding)
    assert f"slower in {names.scoped(finding.figures_of)} than" in words
    assert finding.effect_unit == pytest.approx(finding.effect * finding.peers, rel=0.01)


def test_an_effect_on_several_classes_names_the_class_of_its_pairs() -> None:
    """Everything beyond the CCX was 6.1% slower, and the pairs that were counted were those of one class."""
    finding, *_ = judge(made("node003: fabric +6%", jobs=2)).verdict.nodes["node003"].findings
    assert finding.component.where == {"beyond_class": 1} and finding.figures_of is not None
    of_class = names.component(finding.figures_of)
    assert text.component_in_words(finding) == f"core-to-core latency of everything beyond the CCX, in {of_class}"
    assert of_class.startswith("pairs of the same ")
    assert f"slower in {of_class} than on its peers" in text.finding_sentence(finding)


def test_a_single_part_names_no_other() -> None:
    (finding,) = judge(made("node001: core 17 +9%", jobs=2)).verdict.nodes["node001"].findings
    assert finding.component.term == "core"
    assert re.search(" slower to the (other )?cores", text.finding_sentence(finding))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [1.0, 3.0, 8.0])
def test_remedies_are_few_and_can_be_done(seed: int, noise: float) -> None:
    plan = Plan(
        preset("naples-2x32"),
        nodes=3 + seed,
        runs=2,
        pair_runs=2,
        passes=1,
        seed=seed,
        cells=True,
        spread=Variation().times(noise),
    )
    for node in judge(fleet(plan)).verdict.nodes.values():
        for agreement in node.agreements:
            assert agreement.remedy in ("", *texts()["agreement_remedies"])
            assert agreement.needed <= {"runs": 20, "jobs": 4, "nodes": 64}.get(agreement.remedy, 0)
            assert (agreement.remedy == "quiet") == agreement.run.startswith("job1/run")
            if agreement.remedy == "job":
                assert abs(agreement.effect) > 0.9 * agreement.tolerance
            if agreement.remedy == "tolerance":
                assert 0.45 * agreement.tolerance <= abs(agreement.effect) <= 1.1 * agreement.tolerance
