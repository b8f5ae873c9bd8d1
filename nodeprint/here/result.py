"""What came of measuring this machine: its summary, and what keeps the figures from being the hardware's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from nodeprint.campaign import job_status
from nodeprint.campaign.job_status import JobStatus
from nodeprint.errors import NodeprintError
from nodeprint.judge import achieved
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Disturbance, MemoryAchieved
from nodeprint.machine import preflight
from nodeprint.machine.topology.model import Warning
from nodeprint.machine.tree import open_tree
from nodeprint.report import beside_fleet
from nodeprint.settings.config import read_plan
from nodeprint.summary.fleet_reference import FleetReference, of_summary
from nodeprint.summary.measured_node import MeasuredNode
from nodeprint.summary.node_summary import NodeSummary
from nodeprint.summary.references import ReferenceResult, references


class Result(msgspec.Struct, frozen=True):
    """A measurement of this machine.

    `unmeasured` has the reasons for missing measurements of the plan, and `warnings` the disturbances on the machine.
    `references` compares its results with machines of add-ons, `beside_fleet` with a fleet, in sentences. `memory` is
    set if memory could be faster or achieves little.
    """

    folder: str
    outcome: Outcome
    summary: NodeSummary
    disturbances: tuple[Disturbance, ...]
    warnings: tuple[Warning, ...]
    unmeasured: Mapping[str, str]
    references: Mapping[str, ReferenceResult]
    beside_fleet: tuple[str, ...] = ()
    memory: tuple[MemoryAchieved, ...] = ()


def read(folder: Path, fleet: FleetReference | None = None) -> Result:
    """The result of a measured campaign of this room, beside a `fleet` where there is one. Raises NodeprintError where
    nothing was measured."""
    unmeasured = _unmeasured(folder)
    try:
        measured = MeasuredNode(folder)
    except NodeprintError as error:
        why = "; ".join(f"{name}: {reason}" for name, reason in unmeasured.items())
        raise NodeprintError(why or str(error), where=folder, advice="see node-run.log there") from error
    outcome = Outcome.NOT_MEASURED if _any_failed(folder) else Outcome.INVALID if measured.invalid else Outcome.NO_PEERS
    warnings = tuple(preflight.check(open_tree(Path("/"))))
    summary = measured.summary
    compared = {name: compare(summary) for name, compare in references().items()}
    disturbances = tuple(measured.disturbances)
    beside = () if fleet is None else beside_fleet.sentences(fleet, summary.processor.name, of_summary(summary))
    memory = achieved.of_machines({measured.node.name: (measured.node.fingerprint, measured.rows)})
    return Result(str(folder), outcome, summary, disturbances, warnings, unmeasured, compared, tuple(beside), memory)


def _any_failed(folder: Path) -> bool:
    """Whether a measurement was rejected or failed; an unavailable one does not count."""
    return any(status.untaken for status in _outcomes(folder))


def _outcomes(folder: Path) -> list[JobStatus]:
    """The outcomes of the campaign's jobs. Raises NodeprintError where one cannot be read."""
    return [status for job in folder.glob("nodes/*/job1") if (status := job_status.read(job)) is not None]


def _unmeasured(folder: Path) -> dict[str, str]:
    """Why measurements of the plan are missing, by name."""
    planned = [row.name for row in read_plan((folder / "plan.tsv").read_text())]
    out: dict[str, str] = {}
    for run in (run for status in _outcomes(folder) for run in status.measurements):
        if run.outcome != "done" and run.name in planned:
            out[run.name] = run.message or run.outcome
    return out
