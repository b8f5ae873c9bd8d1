"""From a campaign's records to its packed fleet; unchanged nodes are taken from the former one. Several processes read
nodes. Each leaves a node's values in files of its own, and the fleet's files are made from these. So a fleet is never
in memory at once.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nodeprint import files
from nodeprint.campaign import derived, gathered, node_sheet
from nodeprint.campaign.directories import not_a_campaign
from nodeprint.campaign.gathered import NodeState
from nodeprint.data.job import job_points
from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.data.places.layout import Layout
from nodeprint.data.places.measured import Ints, Measured, is_metric, models
from nodeprint.data.store import kept, node_states, packed_node, store
from nodeprint.data.store.packed import FOLDER, PackedFleet, PackedNode, read, write_index
from nodeprint.data.store.packed_node import OfNode
from nodeprint.errors import UNEXPECTED_CONTENT, NodeprintError, unexpected
from nodeprint.machine.topology import processors
from nodeprint.processes import mapped
from nodeprint.settings.config_file import site_measurements
from nodeprint.waiting import counted


def pack(campaign: Path) -> PackedFleet:
    """The campaign's nodes as arrays: as packed, where its records are the same, else packed anew; and fleet.json.

    A packed fleet without records and sheet is read as it is. Raises NodeprintError if the campaign does not exist,
    records have no sheet or it lists no node. Raises CannotWriteError if a file cannot be written.
    """
    sheet = campaign / "nodes.tsv"
    if not sheet.exists():
        if (campaign / "nodes").is_dir():  # what was packed of them may be old
            advice = "copy it from where the campaign was measured"
            raise NodeprintError("is missing, but its directory has nodes", where=sheet, advice=advice)
        if (campaign / FOLDER / "index.json").exists():
            return read(campaign)
        raise not_a_campaign(campaign)
    made_of, place = _made_of(campaign), store.base(campaign)
    if not made_of:
        raise NodeprintError("lists no node", where=sheet, advice="write it with `nodeprint discover`")
    stamp = kept.stamp((), campaign.name, made_of)
    for folder in dict.fromkeys((campaign, place)):
        with suppress(NodeprintError):
            fleet = read(folder, stamp)
            if not (folder / derived.STATES).exists():  # Snakemake removes it before it is made again
                _write_states(campaign, fleet)
            return fleet
    _pack(campaign, stamp, made_of, place)
    fleet = read(place)
    _write_states(campaign, fleet)
    if place == campaign:
        store.remove_former(campaign)
    return fleet


def _write_states(campaign: Path, fleet: PackedFleet) -> None:
    states = [
        NodeState(node.name, node.host, node.state, node.reason, node.log_tail, node.problems) for node in fleet.nodes
    ]
    simulated = any(row.state == "simulated" for row in node_sheet.read_sheet(campaign / "nodes.tsv"))
    gathered.write(store.base(campaign), states, simulated=simulated)


def nodes_read_whole(campaign: Path) -> frozenset[str]:
    """The nodes that were packed from the files that they have now, and none of these was damaged."""
    try:
        fleet, made_of = read(campaign), _made_of(campaign)
    except NodeprintError:
        return frozenset()
    return frozenset(
        node.name
        for node in fleet.nodes
        if made_of.get(node.name) == node.made_of and node.state == "measured" and not node.problems
    )


def _made_of(campaign: Path) -> dict[str, str]:
    """Return the stamp of each node's sources: its row of the sheet, and its files."""
    rules = processors.digest(), str(models()), str(site_measurements(campaign))
    stamps = {}
    for row in node_sheet.read_sheet(campaign / "nodes.tsv"):
        place = campaign / "nodes" / row.node
        stamps[row.node] = kept.stamp(store.sources(place) if place.is_dir() else (), *rules, row)
    return stamps


def _pack(campaign: Path, stamp: str, made_of: Mapping[str, str], target: Path) -> None:
    earlier = _earlier(target)
    unchanged, others = _unchanged(earlier, made_of)
    rows, shared = _rows_by_node(earlier), _sharing()
    with files.replacing_folder(target / FOLDER) as partial:
        values = partial / "nodes"
        values.mkdir()

        def read_anew(apart_from: Collection[str]) -> dict[str, OfNode]:
            of_nodes = _read_anew(campaign, made_of, values, apart_from)
            return {node.name: (node, [shared(job) for job in of_jobs]) for node, of_jobs in of_nodes}

        anew = read_anew(unchanged)
        # a quantity has the places of all its nodes: those that only a changed or removed node had would stay
        if not all(_has_places_of(rows.get(at, ()), anew.get(name)) for name, at in others.items()):
            anew |= read_anew(anew)
        of_nodes = [
            anew.get(name)
            or (
                earlier.nodes[unchanged[name]],
                [_as_packed(number, *of_job) for of_job in rows.get(unchanged[name], ())],
            )
            for number, name in enumerate(sorted(made_of))
        ]
        nodes = tuple(node for node, _ in of_nodes)
        sheet = node_sheet.read_sheet(campaign / "nodes.tsv")  # says so of nodes that have no record, too
        simulated = any(node.simulated for node in nodes) or any(row.state == "simulated" for row in sheet)
        versions = {key: value for node in nodes for key, value in node.versions.items()}
        quantities = job_points.assemble([shared(job) for _, of_jobs in of_nodes for job in of_jobs], partial, values)
        shutil.rmtree(values)
        write_index(PackedFleet(campaign.name, simulated, nodes, quantities, versions), partial, stamp)


#: So few nodes are read without other processes.
_FEW = 2


def _read_anew(
    campaign: Path, made_of: Mapping[str, str], values: Path, apart_from: Collection[str]
) -> Iterator[OfNode]:
    """Read all other nodes from their records, on all allowed processors; their values are in a directory."""
    numbers = {name: number for number, name in enumerate(sorted(made_of))}
    rows = [row for row in node_sheet.read_sheet(campaign / "nodes.tsv") if row.node not in apart_from]
    tasks = [(numbers[row.node], made_of[row.node], row) for row in rows]
    read_node = functools.partial(_read_node, campaign, values)
    if len(tasks) <= _FEW:
        yield from counted(map(read_node, tasks), len(tasks), "nodes read")
        return
    yield from counted(mapped(read_node, tasks, len(os.sched_getaffinity(0))), len(tasks), "nodes read")


def _read_node(campaign: Path, values: Path, task: tuple[int, str, node_sheet.Node]) -> OfNode:
    """Pack a node. Files with content that no reader expects affect only this node."""
    _, made_of, row = task
    try:
        return _read_expected(campaign, values, task)
    except UNEXPECTED_CONTENT as error:
        reason = f"nodes/{row.node} {unexpected(error)}"
        why = (reason,)
        node = PackedNode(row.node, row.host, reason=reason, quality=why, unusable=why, made_of=made_of, problems=why)
        return node, []


def _read_expected(campaign: Path, values: Path, task: tuple[int, str, node_sheet.Node]) -> OfNode:
    number, made_of, row = task
    state, of_jobs = node_states.read(campaign, row)
    node, at_points = packed_node.from_jobs(campaign, number, made_of, row, state, of_jobs)
    return node, [_in_file(measured, values) for measured in at_points]


def _in_file(measured: JobMeasurement, folder: Path) -> JobMeasurement:
    """The same with its values in a file."""
    np.save(job_points.values_file(folder, measured), measured.columns[job_points.VALUE])
    return msgspec.structs.replace(measured, columns={})


def _sharing() -> Callable[[JobMeasurement], JobMeasurement]:
    """A function that gives a job the layout and points of the first job that has equal ones: nodes are alike by the
    hundred."""
    layouts: dict[bytes, Layout] = {}
    places: dict[tuple[Any, ...], Mapping[str, Ints]] = {}

    def shared(measured: JobMeasurement) -> JobMeasurement:
        assert measured.layout is not None
        columns = tuple((dim, column.tobytes()) for dim, column in measured.places.items())
        return msgspec.structs.replace(
            measured,
            layout=layouts.setdefault(measured.layout.key, measured.layout),
            places=places.setdefault(columns, measured.places),
        )

    return shared


#: A node's rows of each of its jobs in each quantity.
_Rows = Sequence[tuple[Measured, slice]]


def _earlier(target: Path) -> PackedFleet:
    """The fleet that was packed before; an empty one if there is none that can be used."""
    with suppress(NodeprintError):
        return read(target)
    return PackedFleet("", simulated=False, nodes=(), quantities=())


def _unchanged(earlier: PackedFleet, made_of: Mapping[str, str]) -> tuple[dict[str, int], dict[str, int]]:
    """The numbers of the measured nodes that have the files now that they were packed from, and of those that have not.

    A node whose log is shown is in neither: it is read anew, because its log is none of these files.
    """
    measured = {node.name: (at, node) for at, node in enumerate(earlier.nodes) if node.state == "measured"}
    same = {name for name, (_, node) in measured.items() if made_of.get(name) == node.made_of}
    unchanged = {name: at for name, (at, node) in measured.items() if name in same and not node.log_tail}
    return unchanged, {name: at for name, (at, _) in measured.items() if name not in same}


def _rows_by_node(earlier: PackedFleet) -> dict[int, list[tuple[Measured, slice]]]:
    out: dict[int, list[tuple[Measured, slice]]] = {}
    for quantity in earlier.quantities:
        begins = np.flatnonzero(np.diff(quantity.node, prepend=-1) | np.diff(quantity.job, prepend=-1)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(quantity.node)], strict=True):
            out.setdefault(int(quantity.node[begin]), []).append((quantity, slice(begin, end)))
    return out


def _has_places_of(rows: _Rows, of_node: OfNode | None) -> bool:
    """Whether a node has all places now that it had in its earlier `rows`."""
    now = of_node[1] if of_node is not None else []
    return all(job_points.has_places_of(_as_packed(0, *of_job), now) for of_job in rows)


def _as_packed(number: int, quantity: Measured, of_job: slice) -> JobMeasurement:
    """The measurement of a job of the node that now has this number, from its earlier rows."""
    header = {name: getattr(quantity, name) for name in ("operation", "quantity", "unit", "tick_ns")}
    runs = job_points.runs_of(
        quantity.run[of_job].tolist(), quantity.started[of_job], quantity.disturbed[of_job].tolist()
    )
    job, values = int(quantity.job[of_job.start]), quantity.values[of_job]
    described = (quantity.measurement, header, runs, quantity.layout, quantity.places, quantity.names)
    at_points = job_points.at_points(number, job, *described, values)
    return msgspec.structs.replace(at_points, model=quantity.model) if is_metric(quantity.measurement) else at_points
