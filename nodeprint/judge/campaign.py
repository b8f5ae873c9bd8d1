"""Judge a campaign directory: its verdict and its table of deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from nodeprint.campaign import derived, node_lists
from nodeprint.data import seal
from nodeprint.data.export import netcdf_table
from nodeprint.data.job.fabric_records import read as read_fabrics
from nodeprint.data.places.measured import models
from nodeprint.data.store import packing, store
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance as accepted
from nodeprint.judge import baseline as baselines
from nodeprint.judge import baseline_folder
from nodeprint.judge import judge as method
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.judge import Judged
from nodeprint.judge.table import DIMS, VARIABLES
from nodeprint.judge.verdict import Finding, NodeVerdict, Note, Verdict, rounded
from nodeprint.settings.config import planned

#: The version of the method. It increases with each change that may give the same data another outcome.
METHOD = 2

#: The table of deviations in a campaign directory (netCDF).
DEVIATIONS = "deviations.nc"
_SEAL = f"{derived.FOLDER}/deviations.seal.json"


def judge(campaign: Path, *, baseline: Path | None = None, acceptance: Path | None = None) -> Judged:
    """Judge a campaign from its current records, and write its table of deviations.

    Packs the fleet first if necessary. `baseline` is a directory of `baseline_folder.save`. The campaign keeps a copy
    of `acceptance`; without this argument, the copy or else the defaults apply. If the campaign is not writable, files
    are in the directory of its store (`store.base`).

    Raises NodeprintError if the campaign does not exist, or if `acceptance` or `baseline` cannot be used.
    """
    rules = (
        accepted.with_site_measurements(accepted.load(acceptance), campaign)
        if acceptance
        else accepted.rules_of(campaign)
    )
    fleet = packing.pack(campaign)
    place = store.base(campaign)
    kept = accepted.keep_rules(rules, place) if acceptance is not None else accepted.kept(campaign)
    judged = _judged(campaign, fleet, rules, kept, baseline)
    path = netcdf_table.write(place / DEVIATIONS, judged.labels, DIMS, VARIABLES, judged.blocks)
    seal.write(place, [path], place / _SEAL)
    return judged


def deviations(campaign: Path) -> Path:
    """The path of the table of deviations of a judged campaign. If the table was modified, the campaign is judged
    again.

    Raises NodeprintError if the table is missing, or if it is damaged and the records are missing.
    """
    judged_now = store.base(campaign)  # another directory if the campaign is not writable
    place = judged_now if (judged_now / DEVIATIONS).is_file() else campaign
    path = place / DEVIATIONS
    if not path.is_file():
        raise NodeprintError("no table of deviations yet", where=path, advice=f"run `nodeprint judge {campaign}`")
    if (place / _SEAL).is_file():
        try:
            seal.check(place, place / _SEAL)
        except (OSError, ValueError):
            judge(campaign)
            return judged_now / DEVIATIONS
    return path


def one_node(campaign: Path, name: str) -> tuple[NodeVerdict, Verdict]:
    """The verdict of a node compared with its peers, and the verdict of the campaign, by the campaign's acceptance.
    Only its store is written.

    Raises NodeprintError if the campaign or node does not exist.
    """
    kept = accepted.kept(campaign)
    fleet = packing.pack(campaign)
    names = [node.name for node in fleet.nodes]
    if name not in names:
        raise node_lists.unknown_node(name, names, where=campaign)
    verdict = _judged(campaign, fleet, accepted.rules_of(campaign), kept, None).verdict
    return verdict.nodes[name], verdict


def _judged(campaign: Path, fleet: PackedFleet, rules: Acceptance, kept: Path | None, baseline: Path | None) -> Judged:
    """The verdict by `rules`, which are those of the file `kept`."""
    rules = accepted.of_surveys(rules, fleet)
    changed: Mapping[str, Sequence[Finding]] = {}
    notes: tuple[Note, ...] = ()
    if baseline is not None:
        changed, notes = baselines.against(fleet, baseline_folder.points(baseline), baseline, rules)
    fabrics, fabric_notes = read_fabrics(campaign)
    notes += tuple(Note("fabric", detail=text) for text in fabric_notes)
    wanted = [name for name in planned(campaign) if name in models()]
    judged = method.judge(fleet, rules, planned=wanted, fabrics=fabrics, changed=changed, notes=notes)
    verdict = judged.verdict
    verdict = replace(
        verdict,
        versions={**verdict.versions, "acceptance": accepted.name(kept)},
        method=METHOD,
        rules=to_builtins(rules),
    )
    return replace(judged, verdict=rounded(verdict))
