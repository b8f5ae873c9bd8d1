"""The simulated year that docs/year.md tells: `python docs/year.py FOLDER` makes it and prints what it shows there.

Eleven campaigns of six nodes, four weeks apart. tests/house/test_year.py reads the page back.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan
from tests.support.campaigns import judged_weeks

PLAN = Plan(preset("naples-2x32"), nodes=6, runs=2, passes=1, pair_runs=4)
#: By week what changes: a new BIOS slows a core, then a new kernel slows the way between CCXs on all nodes; one node
#: drifts from the summer on.
CHANGES = {
    12: ("node002: core 17 +6%", *(f"node{i:03d}: fingerprint bios=1.8" for i in range(6))),
    20: tuple(f"node{i:03d}: {what}" for i in range(6) for what in ("fabric +4%", "fingerprint kernel=6.12.9")),
    **dict.fromkeys((28, 32, 36, 40), ("node004: global +0.9%",)),
}
MAINTENANCE, END = range(0, 17, 4), range(20, 41, 4)


def shown(*words: str) -> str:
    """What a command prints on its output."""
    return CliRunner().invoke(app, list(words), catch_exceptions=False).stdout.rstrip()


def blocks(folder: Path) -> Iterator[str]:
    """The outputs on the page in their order, from campaigns that are made in `folder`."""
    judged_weeks(folder, PLAN, MAINTENANCE, CHANGES)
    yield shown("history", str(folder))
    judged_weeks(folder, PLAN, END, CHANGES)
    yield shown("history", str(folder))


if __name__ == "__main__":
    for block in blocks(Path(sys.argv[1])):
        print(block, end="\n\n")
