"""The fleet of `nodeprint demo`: small enough for a minute, large enough to find a slow core and confirm it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from nodeprint import files
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import presets
from nodeprint.settings.texts import say, texts
from nodeprint.simulate.campaign_folder import write as write_campaign
from nodeprint.simulate.lines import modes_named
from nodeprint.simulate.plan import Plan


def description() -> str:
    """A description of the simulated fleet."""
    return say("commands", "demo", change=texts()["change"]["time"]["more"])


def write(folder: Path) -> None:
    """Write the demo campaign; replace an earlier simulated campaign in `folder`.

    Raises NodeprintError if the directory holds anything else or cannot be written.
    """
    if folder.exists() and not _is_simulated(folder):
        raise NodeprintError(
            "is there and holds no simulated campaign", where=folder, key="--out", advice="name a new directory"
        )
    plan = Plan(
        presets.preset("rome-2x64"),
        nodes=8,
        jobs=2,
        runs=2,
        pair_runs=3,
        passes=1,
        defects=("node005: core 37 +6%",),
        cells=True,
        modes=modes_named("quadrants"),
    )
    files.make_directories(folder.parent)
    # beside its place until it is whole: a demo that was interrupted leaves nothing
    with tempfile.TemporaryDirectory(prefix=".demo-", dir=folder.parent) as beside:
        write_campaign(plan, Path(beside, "campaign"))
        shutil.rmtree(folder, ignore_errors=True)
        Path(beside, "campaign").rename(folder)


def _is_simulated(folder: Path) -> bool:
    sheet = folder / "plan.tsv"
    return sheet.is_file() and sheet.read_text().startswith("# simulated")
