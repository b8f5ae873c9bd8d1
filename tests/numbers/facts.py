"""The facts of a campaign: every value that a page may print, from what `nodeprint export` writes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.numbers import findings, fleet, medians, values
from tests.numbers.campaign import Campaign, Fact


def facts(campaign: Campaign) -> Iterator[Fact]:
    """All facts of a campaign."""
    for name, node in campaign.nodes.items():
        yield from findings.of_node(node, name, campaign.called(name))
        yield from medians.of_node(node, name, campaign.called(name))
    yield from medians.of_fleet(campaign)
    yield from fleet.of_fleet(campaign)
    yield from values.of_values(campaign)
