"""Other programs that ran during the measurement of a node: known on the machine that the main job runs on."""

from __future__ import annotations

from pathlib import Path

from nodeprint.errors import printable
from nodeprint.machine import other_load
from nodeprint.settings.texts import say


def busy(campaign: Path, name: str) -> str:
    """Which other programs took time from the CPUs during the newest job of a node; empty if none is known."""
    load = other_load.kept(campaign / "nodes" / name)
    return load.text("took") if load is not None and load.is_busy else ""


def sentence(campaign: Path, name: str) -> str:
    """The sentence on other programs that ran during the measurement of a node; empty if none is known."""
    load = busy(campaign, name)
    return say("remarks", "other_load", name=printable(name), load=load) if load else ""
