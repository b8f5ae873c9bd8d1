"""What pages are made from: which job of a node is drawn, and which measurements between its cores."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Certainty, Outcome
from nodeprint.machine.topology.presets import preset
from nodeprint.report.figures import matrix
from nodeprint.report.figures.node_levels import levels, median_of_runs
from nodeprint.report.pages import pictures
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.simulate import Plan, fleet
from tests.support.fleets import judged, made

DEFECT, NODE, MEASUREMENT = "node003: core 17 +12%", "node003", "coherence-cas"


@pytest.mark.parametrize("state", [Certainty.CONFIRMED, Certainty.INTERMITTENT])
def test_what_came_and_went_is_drawn_as_the_job_that_showed_it_and_named(state: Certainty) -> None:
    fleet, verdict = made(DEFECT, jobs=2), judged(DEFECT, jobs=2).verdict
    (finding,) = verdict.nodes[NODE].findings
    first, second = finding.by_job
    shows = state is not Certainty.INTERMITTENT
    seen = replace(finding, state=state, effect=first.effect, by_job=(first, replace(second, effect=0.0, shows=shows)))
    of_node = replace(verdict.nodes[NODE], findings=(seen,))
    campaign = Campaign(replace(verdict, nodes={**verdict.nodes, NODE: of_node}), fleet)
    drawn, newest = campaign.levels(MEASUREMENT, NODE), levels(fleet, MEASUREMENT, NODE)
    job = 1 if state is Certainty.INTERMITTENT else 2
    expected = median_of_runs(drawn.quantity, drawn.quantity.rows[3][job])
    np.testing.assert_array_equal(drawn.of(NODE), expected)
    np.testing.assert_array_equal(drawn.of("node002"), newest.of("node002"))
    captions = [
        *(picture.caption for picture in pictures.two_nodes(campaign)),
        *(picture.caption for picture in pictures.difference_maps(campaign)),
        *(picture.caption for picture in pictures.matrices(campaign, NODE, MEASUREMENT)),
        *(picture.caption for picture in pictures.difference(campaign, NODE, MEASUREMENT)),
    ]
    assert len(captions) == 4
    assert all(("in job1" in caption) is (state is Certainty.INTERMITTENT) for caption in captions)


def test_messages_between_cores_of_two_nodes_are_on_one_scale_with_their_histograms() -> None:
    """LinkTest's picture: the matrices by CCX and socket, and how many pairs have which value, with its ends."""
    plan = Plan(preset("naples-2x32"), nodes=4, runs=2, linktest=True, cells=False, defects=("node002: ccd 1 +20%",))
    campaign = Campaign(judge(simulated := fleet(plan)).verdict, simulated)
    matrices, first, second = pictures.two_nodes(campaign, messages=True)
    drawn = campaign.levels("linktest-node", "node002")
    names = [name for name in ("node000", "node001", "node003") if name in first.name] + ["node002"]
    assert second.name == "linktest-node-histogram-node002"
    for picture, node in zip((first, second), names, strict=True):
        values = drawn.of(node) / 1000
        ends = f"minimum {values.min():.3g} µs, mean {values.mean():.3g} µs, maximum {values.max():.3g} µs"
        assert ends in picture.caption
        assert ends in matrices.svg
    for level in ("CCX", "socket"):
        assert f">{level}<" in matrices.svg
    square = [matrix.of_node(drawn, node) for node in names]
    assert len({data.attrs["most"] for data in matrix.counted_alike(square)}) == 1
    (cas,) = pictures.two_nodes(campaign)
    assert cas.name != matrices.name
    assert pictures.between_cores(campaign, "node002", messages=True) == ["linktest-node"]
    assert "linktest-node" not in pictures.between_cores(campaign, "node002", messages=False)


def test_no_node_with_other_settings_is_typical() -> None:
    plan = Plan(preset("naples-2x32"), nodes=5, runs=2, cells=False, defects=("node002: ccd 1 +20%",))
    campaign = Campaign(judge(simulated := fleet(plan)).verdict, simulated)
    (picture,) = pictures.two_nodes(campaign)
    typical = picture.caption.partition(",")[0]
    node = replace(campaign.verdict.nodes[typical], warnings=({"id": "fingerprint-microcode"},))
    verdict = replace(campaign.verdict, nodes={**campaign.verdict.nodes, typical: node})
    (other,) = pictures.two_nodes(Campaign(verdict, simulated))
    assert "a typical node" in other.caption and not other.caption.startswith(f"{typical},")


@pytest.mark.parametrize("same", ["node000", "node001", "node002"])
def test_a_typical_node_is_same_if_any_is(same: str) -> None:
    """Even if its settings differ and an inconclusive node is nearer to the middle."""
    campaign = Campaign(judged(DEFECT).verdict, made(DEFECT))
    differs = {"warnings": ({"id": "fingerprint-microcode"},)}
    nodes = {name: replace(node, outcome=Outcome.INCONCLUSIVE) for name, node in campaign.verdict.nodes.items()}
    nodes |= {NODE: campaign.verdict.nodes[NODE], same: replace(campaign.verdict.nodes[same], **differs)}
    assert nodes[same].outcome is Outcome.SAME
    (picture,) = pictures.two_nodes(Campaign(replace(campaign.verdict, nodes=nodes), made(DEFECT)))
    assert picture.caption.startswith(f"{same}, a typical node, and {NODE}, ")


def test_two_nodes_have_the_colors_of_the_pairs_of_the_finding() -> None:
    """On a scale of all pairs a slow core inside its CCX has the color of every other pair there."""
    defect = "node003: core 17 +4ns"
    campaign = Campaign(judged(defect).verdict, made(defect))
    assert campaign.verdict.nodes[NODE].counted
    (picture,) = pictures.two_nodes(campaign)
    assert "the finding's pairs beyond their tolerance" in picture.caption


def test_two_nodes_are_called_the_same_only_if_both_are() -> None:
    campaign = Campaign(judged().verdict, made())
    (picture,) = pictures.two_nodes(campaign)
    assert "both SAME, on one scale" in picture.caption
    nodes = {name: replace(node, outcome=Outcome.INCONCLUSIVE) for name, node in campaign.verdict.nodes.items()}
    (other,) = pictures.two_nodes(Campaign(replace(campaign.verdict, nodes=nodes), made()))
    assert "SAME" not in other.caption and "a typical node" in other.caption


def test_captions_say_that_values_lie_beyond_the_scale() -> None:
    """The maximum below a matrix of messages may be beyond its scale, where no bar of the histogram is."""
    plan = Plan(preset("naples-2x32"), nodes=4, runs=2, linktest=True, cells=False)
    campaign = Campaign(judge(simulated := fleet(plan)).verdict, simulated)
    captions = [picture.caption for picture in pictures.two_nodes(campaign, messages=True)]
    assert not any("beyond" in caption for caption in captions)
    (of_messages,) = (of for of in simulated.quantities if of.measurement == "linktest-node")
    of_messages.values[..., 5] *= 3
    of_far = [picture.caption for picture in pictures.two_nodes(Campaign(campaign.verdict, simulated), messages=True)]
    assert all("beyond" in caption for caption in of_far)
