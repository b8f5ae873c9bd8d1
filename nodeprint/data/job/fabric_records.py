"""Messages between nodes as a matrix: LinkTest's records of a campaign, over (run, from, to)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.campaign import job_status
from nodeprint.campaign.followed import Followed
from nodeprint.campaign.followed import read as read_followed
from nodeprint.campaign.job_status import RunOutcome
from nodeprint.campaign.node_sheet import Node, read_sheet
from nodeprint.data.format import records
from nodeprint.data.format.record_format import FLAGS
from nodeprint.data.job.fabric_times import Fabric, Floats
from nodeprint.errors import NodeprintError, printable
from nodeprint.settings import config
from nodeprint.settings.texts import say

#: Below a campaign: job<J>/<partition>/run<R>/<measurement>.jsonl[.gz]
FOLDER = "fabric"
#: What a partition without a name is called in paths.
NO_PARTITION = "any"
#: What is said of an outcome that is not done: a partition of one node has nothing to measure.
_WORDS = {"unavailable": "left out", "refused": "refused", "failed": "failed"}
#: The dimensions of messages of several sizes.
_DIMS = ("a", "b", "size_bytes")
#: From here on a record's arguments say where was measured, and no more what.
_WHERE = "--nodes"


def read(campaign: Path) -> tuple[tuple[Fabric, ...], tuple[str, ...]]:
    """Everything measured between the nodes of a campaign, by name and partition, and notes on missing parts.

    A file that cannot be read, or was measured with other arguments than the first, is left out with a note.
    """
    asked = _asked(campaign)
    if not asked and not (campaign / FOLDER).is_dir():
        return (), ()
    sheet = campaign / "nodes.tsv"
    nodes = read_sheet(sheet) if sheet.exists() else []
    by_name: dict[tuple[str, str], list[tuple[str, records.Records]]] = {}
    notes: list[str] = []
    for path, name, partition, run in _paths(campaign):
        try:
            file = records.read(path, f"{name}, {run}")
        except NodeprintError as error:
            notes.append(str(error))
            continue
        same = by_name.get((name, partition), [])
        wrong = _misplaced(file, path) or _unusable(file)
        if not wrong and same and _arguments(file) != _arguments(same[0][1]):
            wrong = say("messages_missing", "other_arguments", run=same[0][0])
        if wrong:
            notes.append(f"{name}, {run}: {wrong}")
        elif len(_columns(file)["a"]):
            by_name[name, partition] = [*same, (run, file)]
    followed = {
        int(folder.name.removeprefix("job")): times
        for folder in (campaign / FOLDER).glob("job*")
        if folder.name.removeprefix("job").isdecimal() and (times := read_followed(folder)).submitted
    }
    measured = tuple(_fabric(*key, files, nodes, followed) for key, files in sorted(by_name.items()))
    return measured, (*notes, *_missing(campaign, measured, nodes, asked))


def _asked(campaign: Path) -> list[str]:
    """Return the measurements between nodes in the campaign's configuration; none without a readable one."""
    try:
        return [name for name, _ in config.fabric_plan(config.kept(campaign))]
    except NodeprintError:
        return []


def _paths(campaign: Path) -> Iterator[tuple[Path, str, str, str]]:
    """The record files in the order of jobs and runs, each with its measurement, partition and run (job1/run1)."""

    def order(path: Path) -> tuple[list[int], str]:
        job, partition, run = path.parts[-4:-1]
        return _numbers(f"{job} {run}"), f"{partition}/{path.name}"

    for path in sorted((campaign / FOLDER).glob("job*/*/run*/*.jsonl*"), key=order):
        job, partition, run = path.parts[-4:-1]
        ours = re.fullmatch(r"job\d+/run\d+", f"{job}/{run}") and path.name.endswith((".jsonl", ".jsonl.gz"))
        if ours and not path.with_name(f"{path.name}.gz").exists():
            yield path, path.name.split(".")[0], partition, f"{job}/{run}"


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def _misplaced(file: records.Records, path: Path) -> str:
    """Return the header's key that contradicts the path, or nothing.

    A merge of campaigns may renumber a job; its status.json keeps the number that the headers have.
    """
    job, run = path.parents[2], path.parent.name
    try:
        status = job_status.read(job)
    except NodeprintError:
        status = None
    written = status.job if status is not None else _numbers(job.name)[0]
    for key, expected in (("job", written), ("run", _numbers(run)[0])):
        if file.header[key] != expected:
            return say("messages_missing", "misplaced", key=key, value=file.header[key], expected=expected)
    return ""


def _unusable(file: records.Records) -> str:
    """Why a file cannot be compared between nodes; empty where it can."""
    if file.dims not in ((), _DIMS):
        return say("messages_missing", "other_cells", dims=", ".join(file.dims), expected=", ".join(_DIMS))
    ranks = file.header.get("ranks")
    listed = ranks if isinstance(ranks, list) else []
    hosts = [isinstance(rank, list) and len(rank) == 2 and isinstance(rank[0], str) for rank in listed]
    most = max(int(_columns(file)[end].max(initial=-1)) for end in ("a", "b"))
    return "" if all(hosts) and most < len(hosts) else say("messages_missing", "other_ranks")


def _columns(file: records.Records) -> Mapping[str, npt.NDArray[Any]]:
    """Pairs of ranks, or with several message sizes cells."""
    return file.cells if file.dims else file.pairs


def _arguments(file: records.Records) -> tuple[str, ...]:
    """The arguments of a measurement, without where it was made."""
    arguments = [str(word) for word in file.header.get("arguments", ())]
    return tuple(arguments[: arguments.index(_WHERE)] if _WHERE in arguments else arguments)


def _fabric(
    name: str,
    partition: str,
    files: list[tuple[str, records.Records]],
    sheet: Sequence[Node],
    followed: Mapping[int, Followed],
) -> Fabric:
    names = {node.host: node.node for node in sheet}
    places = {node.node: node.switch or node.rack for node in sheet}
    ranks = [[names.get(host, printable(host)) for host, _ in file.header["ranks"]] for _, file in files]
    nodes = sorted(
        {node for of_file in ranks for node in of_file},
        key=lambda node: (places.get(node, ""), _numbers(node), node),
    )
    at = [np.array([nodes.index(node) for node in of_file]) for of_file in ranks]
    sizes = sorted({int(size) for _, file in files if file.dims for size in file.cells["size_bytes"]})
    by_size = {
        size: np.stack([_medians(file, at[r], len(nodes), size) for r, (_, file) in enumerate(files)])
        for size in sizes or [0]
    }
    started = tuple(str(file.header.get("start_time", "")) for _, file in files)
    runs = tuple(run for run, _ in files)
    values, header = by_size[max(by_size)], files[0][1].header
    return Fabric(
        measurement=name,
        partition=partition,
        nodes=tuple(nodes),
        places=tuple(places.get(node, "") for node in nodes),
        runs=runs,
        started=started,
        values=values,
        disturbed=tuple(_disturbed(file) for _, file in files),
        header=header,
        followed=followed,
        by_size=by_size if sizes else {},
    )


def _disturbed(file: records.Records) -> float:
    """Return the share of CPU time that background load took, or of flagged values if larger."""
    flagged = (_columns(file)["flags"] & FLAGS["disturbed"]) != 0
    trailer = file.trailer or {}
    lost = (float(trailer.get(share) or 0.0) for share in ("lost_share", "steal_share"))
    return max(float(flagged.mean()), *lost)


def _medians(file: records.Records, node_of_rank: npt.NDArray[np.int64], nodes: int, size: int) -> Floats:
    """The median time of the messages of a run from node to node, of those of `size` where a file has several."""
    columns = _columns(file)
    here = columns["size_bytes"] == size if file.dims else slice(None)
    a, b, times = node_of_rank[columns["a"][here]], node_of_rank[columns["b"][here]], columns["latency_ns"][here]
    if not file.header.get("directed"):
        a, b, times = np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([times, times])
    values = np.full((nodes, nodes), np.nan)
    order = np.argsort(a * nodes + b, kind="stable")
    places_of = (a * nodes + b)[order]
    for group in np.split(order, np.flatnonzero(np.diff(places_of)) + 1):
        if len(group) and a[group[0]] != b[group[0]]:  # ranks of one node are no link
            values[a[group[0]], b[group[0]]] = np.median(times[group])
    return values


def _newest_runs(campaign: Path) -> Sequence[RunOutcome]:
    """What came of the runs of the newest job that has an outcome. Raises NodeprintError where it cannot be read."""
    outcomes = (campaign / FOLDER).glob(f"job*/{job_status.NAME}")
    newest = max((path.parent for path in outcomes), key=lambda job: _numbers(job.name), default=None)
    status = job_status.read(newest) if newest is not None else None
    return status.measurements if status is not None else ()


def _missing(campaign: Path, measured: Sequence[Fabric], sheet: Sequence[Node], asked: Sequence[str]) -> list[str]:
    """Return a sentence for each measurement that the newest job lacks, with the reason, and nodes with records but no
    link."""
    runs_of: dict[str, list[str]] = {}
    without = set()
    try:
        tried = _newest_runs(campaign)
    except NodeprintError as error:
        return [str(error)]
    for run in tried:
        if run.outcome != "done":
            without.add(run.partition)
            sentence = f"{run.name}, partition {run.partition}: {_WORDS[run.outcome]}: {run.message}"
            runs_of.setdefault(sentence, []).append(str(run.run))
    names = {run.name for run in tried}
    notes = [f"{text} (run {', '.join(runs)})" for text, runs in runs_of.items()]
    notes += [say("messages_missing", "not_measured", measurement=name) for name in asked if name not in names]
    linked = {node for of in measured for node in of.nodes}
    strangers = sorted(linked - {node.node for node in sheet}) if sheet else []
    if strangers:
        notes.append(say("messages_missing", "strangers", nodes=", ".join(strangers)))
    later = [
        node.node
        for node in sheet
        if measured
        and node.node not in linked
        and (node.partition or NO_PARTITION) not in without
        and any((campaign / "nodes" / node.node).glob(f"job*/{job_status.NAME}"))
    ]
    if later:
        notes.append(say("messages_missing", "later", nodes=", ".join(later), command=config.again(campaign, later[0])))
    return notes
