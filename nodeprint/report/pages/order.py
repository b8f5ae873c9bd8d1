"""In which order nodes are shown."""

from __future__ import annotations

import re

from nodeprint.judge.verdict import NodeVerdict


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts cn2 before cn10."""
    return [
        (0, int(component), "") if component.isdecimal() else (1, 0, component)
        for component in re.split(r"(\d+)", name)
    ]


def severity(node: NodeVerdict) -> tuple[int, float]:
    """A key that sorts nodes by urgency, then by how far beyond its tolerance their first finding is."""
    worst = max((finding.times_tolerance for finding in node.counted), default=0.0)
    return node.outcome.rank, -worst
