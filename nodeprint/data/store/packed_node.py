"""The packed form of a node: its facts, and its jobs at canonical points."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from nodeprint.campaign import node_sheet, preparation
from nodeprint.campaign.followed import read as read_followed
from nodeprint.campaign.gathered import NodeState
from nodeprint.data.job import job_points, sensors
from nodeprint.data.job.job_points import NodePlaces
from nodeprint.data.job.jobs import Job, JobMeasurement, number_of
from nodeprint.data.places.layout import Layout, layout_of, slots_of
from nodeprint.data.places.measured import UNKNOWN_NODE, cell_models
from nodeprint.data.store import node_states, store
from nodeprint.data.store.packed import PackedNode
from nodeprint.data.store.store import Survey
from nodeprint.machine.topology import serialized
from nodeprint.machine.topology.model import Cpu, Machine, Topology, warning

#: The places of a site's own values: no output says which CPUs they are of.
_NOWHERE = NodePlaces(Layout(np.zeros((0, 6), dtype=np.int64)), (), (), ())
#: A node and the measurements of its jobs at canonical points.
OfNode = tuple[PackedNode, list[JobMeasurement]]


def from_jobs(
    campaign: Path, number: int, made_of: str, row: node_sheet.Node, state: NodeState, of_jobs: Sequence[Job]
) -> OfNode:
    """Pack a node, `number` in the fleet, from its row of the sheet, its status and its jobs."""
    node = PackedNode(
        state.node,
        state.host,
        state.state,
        state.reason,
        state.log_tail,
        quality=state.problems,
        warnings=tuple(_clock(campaign, row, of_jobs)),
        rack=row.rack,
        switch=row.switch,
        made_of=made_of,
        problems=state.problems,
    )
    place = campaign / "nodes" / state.node
    survey = store.survey(place) if place.is_dir() else Survey()
    if state.state != "measured":
        return replace(node, fingerprint=survey.fingerprint), []
    node, of_node = _of_node(node, number, place, of_jobs, survey)
    headers = [measured.header for job in of_jobs for measured in job.measured.values()]
    outcomes = [job.status for job in of_jobs if job.status is not None]
    simulated = any(bool(header.get("simulated")) for header in headers) or any(
        outcome.simulated for outcome in outcomes
    )
    versions = {f"kernel {header.get('kernel')}": str(header.get("kernel_hash", "")) for header in headers}
    return replace(node, simulated=simulated, versions=versions), of_node


def _of_node(
    node: PackedNode, number: int, place: Path, of_jobs: Sequence[Job], survey: Survey
) -> tuple[PackedNode, list[JobMeasurement]]:
    measured_cpus = {
        int(cpu) for job in of_jobs for measured in job.measured.values() for cpu in measured.header["cpus"]
    }
    paired = {cpu for job in of_jobs for measured in job.pairs for cpu in measured.cpus}
    everywhere = tuple(sorted(measured_cpus))
    machine = _labeled(survey.topology, everywhere)
    of_pairs, whole = _places(survey.topology, everywhere, tuple(sorted(paired)))
    warnings = list(node.warnings)
    if not survey.topology:
        warnings.append(asdict(warning("no-topology")))
    of_labels = [{"id": w.id, "text": w.text, "advice": w.advice} for w in machine.warnings]
    # both may have seen the same fact
    warnings += {w["id"]: w for w in (*of_labels, *survey.warnings)}.values()
    parts = []
    for job in of_jobs:
        parts += [job_points.of_pairs(number, job.number, measured, machine, of_pairs) for measured in job.pairs]
        parts += [
            job_points.of_cells(number, job.number, measured, whole)
            for measured in job.cells
            if measured.name in cell_models() and not measured.source
        ]
        parts += [
            job_points.of_cells(number, job.number, measured, _NOWHERE) for measured in job.cells if measured.source
        ]
    boots = {boot for job in of_jobs for boot in _boots(job)}
    newest = of_jobs[-1] if of_jobs else Job(0, None, {})
    described = replace(
        node,
        quality=(*node.quality, *(survey.problems if survey.topology else ())),
        # without its topology a node that has a survey would be taken for one of another configuration
        unusable=() if survey.topology else tuple(survey.problems),
        not_applicable=tuple(sorted({name for job in of_jobs for name in job.not_applicable})),
        untaken=newest.untaken,
        lacking=tuple(sorted({*newest.unread, *(run.name for run in newest.status.untaken)})) if newest.status else (),
        followed={
            job.number: times for job in of_jobs if (times := read_followed(place / f"job{job.number}")).submitted
        },
        former={number_of(Path(job)): fields for job, fields in survey.former.items()},
        rebooted=tuple(f"job{job.number}" for job in of_jobs if len(_boots(job)) > 1),
        imported=any("imported" in measured.header for job in of_jobs for measured in job.measured.values()),
        identified=bool(survey.topology),
        anonymous=any(_may_be_another(measured.header) for job in of_jobs for measured in job.measured.values()),
        cpus=of_pairs.cpus,
        cores=of_pairs.cores,
        fingerprint=_fingerprint(of_jobs, survey, machine.machine),
        warnings=tuple(warnings),
        boots=tuple(sorted(boots)),
        slurm_jobs={job.number: job.status.slurm_job for job in of_jobs if job.status and job.status.slurm_job},
        numbers={"cpu": whole.cpus, "core": whole.cores, "node": whole.nodes},
        sensors=sensors.of(of_jobs, of_pairs.cpus) | survey.sensors,
        seen=tuple(
            run
            for job in of_jobs
            for measured in (*job.pairs, *job.cells)
            for run in sensors.beside(job.number, measured)
        ),
    )
    return described, parts


def _clock(campaign: Path, row: node_sheet.Node, of_jobs: Sequence[Job]) -> Iterator[Mapping[str, str]]:
    """A warning where the node's clock is off: its records are used all the same."""
    status = next((job.status for job in of_jobs if job.number == row.job), None)
    if status is not None and (text := node_states.clock_is_off(preparation.job_folder(campaign, row), status)):
        yield {"id": "clock", "text": text, "advice": "let NTP set it"}


def _may_be_another(header: Mapping[str, Any]) -> bool:
    """Whether nothing states that an imported file is of another machine than the others."""
    return UNKNOWN_NODE in header.get("imported", {}).get("unknown", ())


def _boots(job: Job) -> set[str]:
    """The boots that runs of a job are of; of an imported one there is none."""
    return {str(run["boot_id"]) for measured in job.measured.values() for run in measured.runs} - {""}


@functools.lru_cache(maxsize=256)
def _labeled(labels: str, cpus: tuple[int, ...]) -> Topology:
    """The machine of these labels; without any, of these CPUs alone."""
    return serialized.from_text(labels) if labels else Topology(Machine(), tuple(Cpu(cpu=cpu) for cpu in cpus))


@functools.lru_cache(maxsize=256)
def _places(labels: str, everywhere: tuple[int, ...], paired: tuple[int, ...]) -> tuple[NodePlaces, NodePlaces]:
    """The places of the CPUs that pairs were measured of, and of the whole machine; equal nodes share them."""
    machine = _labeled(labels, everywhere)
    slots, order = slots_of(machine, paired)
    core_of = {cpu.cpu: cpu.core for cpu in machine.cpus}
    cores = tuple(cpu if (core := core_of.get(cpu)) is None else core for cpu in order)
    layout = job_points.pair_layout(layout_of(machine, slots, np.zeros((0, 2), dtype=np.int64), order))
    return NodePlaces(layout, tuple(order), cores, ()), job_points.machine(machine, everywhere)


def _fingerprint(jobs: Sequence[Job], survey: Survey, machine: Machine) -> dict[str, Any]:
    """The survey's fields, and the kernel of the newest records. The processor of an imported matrix is that of its
    topology."""
    fields = dict(survey.fingerprint)
    if machine.name:
        fields.setdefault("cpu", machine.name)
    headers = [measured.header for job in jobs for measured in job.pairs]
    if headers:
        fields |= {key: headers[-1][key] for key in ("kernel_hash", "compiler") if headers[-1].get(key)}
    return fields
