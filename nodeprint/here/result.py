"""What came of measuring this machine: its card, and what keeps the figures from being the hardware's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from nodeprint.campaign import run_files
from nodeprint.cards.card import Card
from nodeprint.cards.fleet_reference import FleetReference, of_card
from nodeprint.cards.of_campaign import Measured
from nodeprint.cards.reference import Standing, standing
from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Disturbance
from nodeprint.machine import preflight
from nodeprint.machine.topology.model import Warning
from nodeprint.machine.tree import open_tree
from nodeprint.report import beside_fleet
from nodeprint.settings.config import read_plan


class Result(msgspec.Struct, frozen=True):
    """A measurement of this machine. `unmeasured` says why a measurement of the plan is not there, `warnings` what the
    machine shows that is in the way, `standing` how its figures are beside those of published machines, and
    `beside_fleet` in sentences beside those of a fleet."""

    folder: str
    outcome: Outcome
    card: Card
    disturbances: tuple[Disturbance, ...]
    warnings: tuple[Warning, ...]
    unmeasured: Mapping[str, str]
    standing: Standing
    beside_fleet: tuple[str, ...] = ()


def read(folder: Path, fleet: FleetReference | None = None) -> Result:
    """The result of a measured campaign of this room, beside a `fleet` where there is one. Raises NodeprintError where
    nothing was measured."""
    unmeasured = _unmeasured(folder)
    try:
        measured = Measured(folder)
    except NodeprintError as error:
        why = "; ".join(f"{name}: {reason}" for name, reason in unmeasured.items())
        raise NodeprintError(why or str(error), where=folder, advice="see node-run.log there") from error
    outcome = Outcome.NOT_MEASURED if _any_failed(folder) else Outcome.INVALID if measured.invalid else Outcome.NO_PEER
    warnings = tuple(preflight.check(open_tree(Path("/"))))
    card = measured.card
    disturbances = tuple(measured.disturbances)
    beside = () if fleet is None else beside_fleet.sentences(fleet, card.processor.name, of_card(card))
    return Result(
        str(folder), outcome, card, disturbances, warnings, unmeasured, standing(card), tuple(beside)
    )  # fmt: skip


def _any_failed(folder: Path) -> bool:
    """Whether a measurement was refused or failed; one that is unavailable here is named alone."""
    return any(
        step["outcome"] not in ("done", run_files.UNAVAILABLE)
        for path in folder.glob("nodes/*/job1/status.json")
        for step in json.loads(path.read_text())["measurements"]
    )


def _unmeasured(folder: Path) -> dict[str, str]:
    """Why measurements of the plan are missing, by name."""
    planned = [row.name for row in read_plan((folder / "plan.tsv").read_text())]
    out: dict[str, str] = {}
    for path in folder.glob("nodes/*/job1/status.json"):
        for step in json.loads(path.read_text())["measurements"]:
            if step["outcome"] != "done" and step["name"] in planned:
                out[step["name"]] = step["message"] or step["outcome"]
    return out
