"""Packed fleets come back as they were, and bad ones are named."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from nodeprint.data import seal
from nodeprint.data.store import packed
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan, fleet


def test_nothing_is_known_of_a_node_but_that_it_was_measured() -> None:
    node = packed.PackedNode("cn01")
    known = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    assert {name: value for name, value in known.items() if value} == {
        "name": "cn01",
        "state": "measured",
        "identified": True,
    }


def test_packed_fleets_come_back_and_bad_ones_are_named(tmp_path: Path) -> None:
    campaign = fleet(Plan(preset("naples-2x32"), nodes=3, passes=1))
    packed.write(campaign, tmp_path)
    back = packed.read(tmp_path)
    assert back.nodes == campaign.nodes
    assert (back.campaign, back.versions, back.notes) == (campaign.campaign, campaign.versions, campaign.notes)
    assert np.array_equal(back.pairs[0].values, campaign.pairs[0].values)
    index = tmp_path / "store/fleet/index.json"
    whole = index.read_text()
    index.write_text(whole.replace('"name":"node001"', '"name":"node002"'))
    with pytest.raises(NodeprintError, match="is not as it was written"):
        packed.read(tmp_path)
    seal.write_folder(index.parent)
    with pytest.raises(NodeprintError, match="node002 appears twice"):
        packed.read(tmp_path)
    index.write_text(whole.replace('"dims":["home","a","b"]', '"dims":["a","b"]'))
    seal.write_folder(index.parent)
    with pytest.raises(NodeprintError, match="shape"):
        packed.read(tmp_path)
    index.write_text("{")
    with pytest.raises(NodeprintError, match="not a packed fleet"):
        packed.read(tmp_path)


@pytest.mark.parametrize("simulated", [True, False])
def test_a_packed_fleet_says_whether_it_was_simulated(tmp_path: Path, simulated: bool) -> None:
    packed.write(packed.PackedFleet("main", simulated, (packed.PackedNode("cn01"),), ()), tmp_path)
    assert packed.read(tmp_path).simulated is simulated
