"""From a campaign's records to its packed fleet: what was packed before and is the same is taken from there.

Nodes are read by several processes, each of which leaves the values of a node in files beside those that are made of
all of them: a fleet is never in memory at once.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nodeprint import files
from nodeprint.campaign import derived, gathered, node_sheet
from nodeprint.campaign.gathered import NodeState
from nodeprint.data.places import job_parts
from nodeprint.data.places.job_parts import JobPart
from nodeprint.data.places.measured import Ints, Measured, NodeLayout, Values, models
from nodeprint.data.store import kept, node_states, packed_jobs, packed_node, store
from nodeprint.data.store.packed import FOLDER, PackedFleet, PackedFrom, PackedNode, read, write_index
from nodeprint.data.store.packed_node import OfNode
from nodeprint.errors import UNEXPECTED_CONTENT, NodeprintError, unexpected
from nodeprint.machine.topology import processors, serialized
from nodeprint.processes import mapped
from nodeprint.waiting import counted


def pack(campaign: Path) -> PackedFleet:
    """The campaign's nodes as arrays: as packed, where its records are the same, else packed anew; and fleet.json.

    A packed fleet without records and sheet is read as it is. Raises NodeprintError when there is no campaign, records
    have no sheet or it lists no node, CannotWriteError where something cannot be written.
    """
    sheet = campaign / "nodes.tsv"
    if not sheet.exists():
        if (campaign / "nodes").is_dir():  # what was packed of them may be old
            advice = "copy it from where the campaign was measured"
            raise NodeprintError("is missing, though there are nodes beside it", where=sheet, advice=advice)
        if (campaign / FOLDER / "index.json").exists():
            return read(campaign)
        raise NodeprintError("no campaign is there", where=campaign, advice="name a folder that holds nodes.tsv")
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
        NodeState(node.name, node.host, node.state, node.reason, node.log_tail, of_node.problems)
        for node, of_node in zip(fleet.nodes, fleet.packed_from, strict=True)
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
        for node, of_node in zip(fleet.nodes, fleet.packed_from, strict=False)
        if made_of.get(node.name) == of_node.made_of and node.state == "measured" and not of_node.problems
    )


def _made_of(campaign: Path) -> dict[str, str]:
    """By node the stamp of what it is packed from: its row of the sheet, and its files."""
    rules = processors.digest(), str(models())
    stamps = {}
    for row in node_sheet.read_sheet(campaign / "nodes.tsv"):
        place = campaign / "nodes" / row.node
        stamps[row.node] = kept.stamp(store.sources(place) if place.is_dir() else (), *rules, row)
    return stamps


def _pack(campaign: Path, stamp: str, made_of: Mapping[str, str], target: Path) -> None:
    earlier, alike = _Earlier(target, made_of), _Alike()
    with files.replacing_folder(target / FOLDER) as partial:
        values = partial / "nodes"
        values.mkdir()
        (partial / packed_jobs.FOLDER).mkdir()
        anew = {of[0].name: alike.node(of) for of in _read_anew(campaign, made_of, values, apart_from=earlier.nodes)}
        if not earlier.places_are_in(anew):
            anew |= {of[0].name: alike.node(of) for of in _read_anew(campaign, made_of, values, apart_from=anew)}
        of_nodes = [
            anew.get(name) or alike.node(earlier.of(name, number)) for number, name in enumerate(sorted(made_of))
        ]
        for name in made_of.keys() - anew.keys():
            shutil.copyfile(*(packed_jobs.file_of(folder, name) for folder in (target / FOLDER, partial)))
        packed_from = tuple(of_node for _, of_node, _ in of_nodes)
        sheet = node_sheet.read_sheet(campaign / "nodes.tsv")  # says so of nodes that have no record, too
        simulated = any(of_node.simulated for of_node in packed_from) or any(row.state == "simulated" for row in sheet)
        versions = {key: value for of_node in packed_from for key, value in of_node.versions.items()}
        quantities = job_parts.assemble([part for _, _, parts in of_nodes for part in parts], partial)
        shutil.rmtree(values)
        packed_nodes = tuple(node for node, _, _ in of_nodes)
        write_index(
            PackedFleet(campaign.name, simulated, packed_nodes, quantities, versions, packed_from), partial, stamp
        )


#: So few nodes are read without other processes.
_FEW = 2


def _read_anew(
    campaign: Path, made_of: Mapping[str, str], values: Path, apart_from: Collection[str]
) -> Iterator[OfNode]:
    """All nodes but some, from their records, on all processors that we may use; their values in a folder."""
    numbers = {name: number for number, name in enumerate(sorted(made_of))}
    rows = [row for row in node_sheet.read_sheet(campaign / "nodes.tsv") if row.node not in apart_from]
    tasks = [(numbers[row.node], made_of[row.node], row) for row in rows]
    read_node = functools.partial(_read_node, campaign, values)
    if len(tasks) <= _FEW:
        yield from counted(map(read_node, tasks), len(tasks), "nodes read")
        return
    yield from counted(mapped(read_node, tasks, len(os.sched_getaffinity(0))), len(tasks), "nodes read")


def _read_node(campaign: Path, values: Path, task: tuple[int, str, node_sheet.Node]) -> OfNode:
    """What is packed of a node. Where its files have what no reader expects, that costs this node alone."""
    _, made_of, row = task
    try:
        return _read_expected(campaign, values, task)
    except UNEXPECTED_CONTENT as error:
        reason = f"nodes/{row.node} {unexpected(error)}"
        node = PackedNode(row.node, row.host, reason=reason, quality=(reason,), unusable=(reason,))
        return node, PackedFrom(made_of, (reason,)), []


def _read_expected(campaign: Path, values: Path, task: tuple[int, str, node_sheet.Node]) -> OfNode:
    number, made_of, row = task
    state, of_jobs = node_states.read(campaign, row)
    node, packed_from, parts = packed_node.from_jobs(campaign, number, made_of, row, state, of_jobs)
    if of_jobs:
        labels = store.survey(campaign / "nodes" / row.node).topology
        processor = serialized.from_text(labels).machine if labels else None
        kept = packed_jobs.NodeJobs(tuple(map(packed_jobs.packed_job, of_jobs)), processor)
        packed_jobs.write(values.parent, row.node, kept)
    return node, packed_from, [_in_file(part, values / f"{number}-{at}.npy") for at, part in enumerate(parts)]


@dataclass(frozen=True)
class _ValuesOfFile:
    """The values of a part (run, pass, place), read where they are needed."""

    path: Path

    def __call__(self) -> Values:
        values: Values = np.load(self.path)
        return values


def _in_file(part: JobPart, path: Path) -> JobPart:
    np.save(path, part.values())
    return msgspec.structs.replace(part, values=_ValuesOfFile(path))


class _Alike:
    """Layouts and places of parts, of which those that are equal become one object: nodes are alike by the hundred."""

    def __init__(self) -> None:
        self._layouts: dict[bytes, NodeLayout] = {}
        self._places: dict[tuple[Any, ...], Mapping[str, Ints]] = {}

    def part(self, part: JobPart) -> JobPart:
        """The same part with the layout and places of the first one that has equal ones."""
        columns = tuple((dim, column.tobytes()) for dim, column in part.places.items())
        return msgspec.structs.replace(
            part,
            layout=self._layouts.setdefault(part.layout.key, part.layout),
            places=self._places.setdefault(columns, part.places),
        )

    def node(self, of_node: OfNode) -> OfNode:
        """A node with such parts."""
        node, packed_from, parts = of_node
        return node, packed_from, [self.part(part) for part in parts]


class _Earlier:
    """The nodes that were packed before from the files that they have now (`nodes`), and what was packed of them.

    A node whose log is shown is read anew, as its log is none of these files, and so is one whose jobs are not there.
    """

    def __init__(self, target: Path, made_of: Mapping[str, str]) -> None:
        self.nodes: dict[str, int] = {}
        self._others: dict[str, int] = {}
        try:
            self._fleet = read(target)
        except NodeprintError:
            return
        # none is packed from a campaign where the fleet is that of a table
        for number, (node, packed_from) in enumerate(zip(self._fleet.nodes, self._fleet.packed_from, strict=False)):
            if node.state != "measured":
                continue
            if made_of.get(node.name) != packed_from.made_of:
                self._others[node.name] = number
            elif not node.log_tail and packed_jobs.file_of(target / FOLDER, node.name).is_file():
                self.nodes[node.name] = number

    def places_are_in(self, anew: Mapping[str, OfNode]) -> bool:
        """Whether the nodes that are read `anew` have all places now that they had then.

        Where they have not, the others cannot be taken as they were packed: a quantity has the places of all its nodes,
        and those of a node that has them no more, or is gone, would stay.
        """
        return all(
            job_parts.has_places_of(_as_packed(0, quantity, rows), anew[name][2] if name in anew else ())
            for name, at in self._others.items()
            for quantity, rows in self._rows.get(at, ())
        )

    @functools.cached_property
    def _rows(self) -> dict[int, list[tuple[Measured, slice]]]:
        """By node the rows of each of its jobs in each quantity."""
        out: dict[int, list[tuple[Measured, slice]]] = {}
        for quantity in self._fleet.quantities:
            begins = np.flatnonzero(np.diff(quantity.node, prepend=-1) | np.diff(quantity.job, prepend=-1)).tolist()
            for begin, end in zip(begins, [*begins[1:], len(quantity.node)], strict=True):
                out.setdefault(int(quantity.node[begin]), []).append((quantity, slice(begin, end)))
        return out

    def of(self, name: str, number: int) -> OfNode:
        """What was packed of one of `nodes`, which now has this number."""
        at = self.nodes[name]
        parts = [_as_packed(number, quantity, rows) for quantity, rows in self._rows.get(at, ())]
        return self._fleet.nodes[at], self._fleet.packed_from[at], parts


def _as_packed(number: int, quantity: Measured, rows: slice) -> JobPart:
    return JobPart(
        number,
        int(quantity.job[rows.start]),
        quantity.measurement,
        quantity.operation,
        quantity.quantity,
        quantity.unit,
        quantity.layout,
        quantity.places,
        quantity.names,
        tuple(quantity.run[rows].tolist()),
        quantity.values.shape[1],
        quantity.started[rows],
        lambda: quantity.values[rows],
        quantity.disturbed[rows],
        quantity.tick_ns,
    )
