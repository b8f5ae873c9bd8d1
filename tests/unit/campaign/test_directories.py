"""How a campaign is recognized, and the error of a directory of campaigns."""

from pathlib import Path

import pytest

from nodeprint.campaign import derived
from nodeprint.campaign.directories import is_campaign, not_a_campaign


@pytest.mark.parametrize("part", ["nodes.tsv", "nodes", derived.FLEET])
def test_each_part_of_a_campaign_is_enough(tmp_path: Path, part: str) -> None:
    assert not is_campaign(tmp_path)
    (tmp_path / part).mkdir(parents=True)
    assert is_campaign(tmp_path)


def test_an_error_lists_ten_campaigns_and_counts_the_others(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"c{number:02}" / "nodes").mkdir(parents=True)
    assert str(not_a_campaign(tmp_path)).endswith(
        f"(c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 2 more); specify one, for example {tmp_path}/c00"
    )
