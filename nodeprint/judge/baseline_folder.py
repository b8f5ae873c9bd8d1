"""Baseline directories: add judged campaigns of known-good runs, and read them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from nodeprint import files
from nodeprint.data.store import packed, packing
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError
from nodeprint.judge.baseline import MIN_BOOTS, MIN_RUNS, begun, boots_of, runs_of

#: The results of judging a campaign. `nodeprint diff` reads them from a baseline as from a campaign.
_JUDGED = ("verdict.json", "deviations.nc")


def judged_folders(folder: Path) -> list[Path]:
    """The directory of a judged campaign, or those in a directory of several judged campaigns; empty without any."""
    if (folder / "verdict.json").exists():
        return [folder]
    return [path.parent for path in sorted(folder.glob("*/verdict.json"))]


def save(folders: Sequence[Path], folder: Path) -> tuple[list[Path], list[str]]:
    """Add judged campaigns (`folders`: each of one or several) to the baseline directory `folder`, as points of its
    history.

    Returns the paths of the points, and the nodes with too few runs or boots in the baseline. Raises NodeprintError if
    a campaign is not judged or is in the baseline already. Raises it also if no node would have MIN_RUNS runs over
    MIN_BOOTS boots, as such a baseline cannot show changes.
    """
    campaigns = [campaign for named in folders for campaign in judged_folders(named) or [named]]
    for campaign in campaigns:
        if not (campaign / "verdict.json").is_file():
            raise NodeprintError("is not judged", where=campaign, advice=f"call `nodeprint judge {campaign}` first")
    fleets = [packing.pack(campaign) for campaign in campaigns]
    targets = [folder / fleet.campaign for fleet in fleets]
    for number, target in enumerate(targets):
        if target.exists() or target in targets[:number]:
            advice = "remove that folder first where the campaign was measured again"
            raise NodeprintError("is in the baseline already", where=target, advice=advice)
    past = points(folder) if any(folder.glob(f"*/{packed.FOLDER}/index.json")) else []
    boots, runs = boots_of([*past, *fleets]), runs_of([*past, *fleets])
    thin = sorted(node for node in boots if runs.get(node, 0) < MIN_RUNS or len(boots[node]) < MIN_BOOTS)
    if len(thin) == len(boots):
        most_runs, most_boots = max(runs.values(), default=0), max(map(len, boots.values()), default=0)
        problem = (
            f"a baseline needs {MIN_RUNS} runs over {MIN_BOOTS} boots of a node, and with {targets[-1].name} it has "
            f"{most_runs} over {most_boots} at most"
        )
        advice = "measure the nodes again after a reboot, in a campaign of another name, and save both in one call"
        raise NodeprintError(problem, where=folder, advice=advice)
    for campaign, fleet, target in zip(campaigns, fleets, targets, strict=True):
        note = {"schema": 1, "campaign": fleet.campaign, "simulated": fleet.simulated}
        with files.replacing_folder(target) as partial:
            shutil.copytree(campaign / packed.FOLDER, partial / packed.FOLDER)
            for name in _JUDGED:
                if (campaign / name).is_file():
                    shutil.copy2(campaign / name, partial / name)
            (partial / "baseline.json").write_text(json.dumps(note, indent=1) + "\n")
    return targets, thin


def points(folder: Path) -> list[PackedFleet]:
    """The campaigns of a baseline in the order of their first run. The directory of a campaign is a baseline with one
    point.

    Raises NodeprintError without any campaign.
    """
    if not folder.is_dir():
        raise NodeprintError("no such baseline", where=folder, advice="make one with `nodeprint baseline save`")
    if (folder / packed.FOLDER).is_dir() or (folder / "nodes.tsv").exists():
        return [packing.pack(folder)]
    kept = (place for place in sorted(folder.iterdir()) if (place / packed.FOLDER / "index.json").exists())
    fleets = [packed.read(place) for place in kept]
    if not fleets:
        raise NodeprintError("holds no campaign", where=folder, advice="add one with `nodeprint baseline save`")
    return sorted(fleets, key=lambda fleet: (begun(fleet), fleet.campaign))
