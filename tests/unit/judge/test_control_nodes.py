"""A recheck measures what another job would decide, and control nodes that nobody chose."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from nodeprint.judge.control_nodes import CONTROLS, FEWEST
from nodeprint.judge.judge import judge
from tests.support.fleets import made


def test_six_control_nodes_are_measured_with_a_suspect() -> None:
    again = judge(made("node003: core 17 +12%", nodes=16)).verdict.recheck
    assert "node003" in again and len(again) == 1 + CONTROLS
    assert again == judge(made("node003: core 17 +12%", nodes=16)).verdict.recheck


def test_a_small_fleet_is_measured_as_a_whole_and_a_healthy_one_not_at_all() -> None:
    assert len(judge(made("node003: core 17 +12%", nodes=5)).verdict.recheck) == 5
    assert judge(made(nodes=5)).verdict.recheck == ()


def test_control_nodes_are_drawn_anew_in_each_campaign() -> None:
    fleet = made("node003: core 17 +12%", nodes=16)
    drawn = [judge(replace(fleet, campaign=f"week{week}")).verdict.recheck for week in range(12)]
    chosen = Counter(name for of_week in drawn for name in of_week if name != "node003")
    assert len(chosen) > 2 * CONTROLS
    assert FEWEST < CONTROLS
