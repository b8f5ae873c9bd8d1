"""Messages between nodes as a matrix: LinkTest's records of a campaign, over (run, from, to)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint import records
from nodeprint.discover import read_sheet
from nodeprint.errors import NodeprintError

#: Below a campaign: job<J>/run<R>/<measurement>.jsonl[.gz]
FOLDER = "fabric"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fabric:
    """One measurement over the nodes of a campaign: `values` (run, from, to) in ns a message, NaN where not measured.

    A value is the median over pairs of ranks and passes. Nodes are in the order of their `places` (switch or rack,
    empty where unknown). `runs` are named job1/run1, `started` when they began; `problems` say what was left out.
    """

    measurement: str
    nodes: tuple[str, ...]
    places: tuple[str, ...]
    runs: tuple[str, ...]
    started: tuple[str, ...]
    values: Floats
    header: Mapping[str, Any]
    problems: tuple[str, ...] = ()


def read(campaign: Path) -> list[Fabric]:
    """Everything measured between the nodes of a campaign, by name; none where nothing was.

    A file that cannot be read, or was measured with other arguments than the first, is a problem and left out.
    """
    found: dict[str, list[tuple[str, records.Records]]] = {}
    problems: list[str] = []
    for path in sorted((campaign / FOLDER).glob("job*/run*/*.jsonl*"), key=_natural):
        if not path.name.endswith((".jsonl", ".jsonl.gz")):
            continue
        run = f"{path.parent.parent.name}/{path.parent.name}"
        try:
            file = records.read(path, f"{path.name.split('.')[0]}, {run}")
        except NodeprintError as error:
            problems.append(str(error))
            continue
        if "ranks" in file.header and len(file.pairs["a"]):
            found.setdefault(path.name.split(".")[0], []).append((run, file))
    if not found:
        return []
    sheet = campaign / "nodes.tsv"
    places = {node.host: node.switch or node.rack for node in read_sheet(sheet)} if sheet.exists() else {}
    return [_fabric(name, files, places, problems) for name, files in sorted(found.items())]


def _natural(path: Path) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"\d+", f"{path.parent.parent.name} {path.parent.name}")], path.name


def _fabric(
    name: str, files: list[tuple[str, records.Records]], places: Mapping[str, str], problems: list[str]
) -> Fabric:
    header = files[0][1].header
    alike = [(run, file) for run, file in files if file.header["operation"] == header["operation"]]
    hosts = {host for _, file in alike for host, _ in file.header["ranks"]}
    nodes = sorted(hosts, key=lambda host: (places.get(host, ""), [int(n) for n in re.findall(r"\d+", host)], host))
    values = np.full((len(alike), len(nodes), len(nodes)), np.nan)
    for r, (_, file) in enumerate(alike):
        at = np.array([nodes.index(host) for host, _ in file.header["ranks"]])
        a, b, times = at[file.pairs["a"]], at[file.pairs["b"]], file.pairs["latency_ns"]
        if not file.header.get("directed"):
            a, b, times = np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([times, times])
        order = np.argsort(a * len(nodes) + b, kind="stable")
        places_of = (a * len(nodes) + b)[order]
        for group in np.split(order, np.flatnonzero(np.diff(places_of)) + 1):
            if a[group[0]] != b[group[0]]:  # ranks of one node are no link
                values[r, a[group[0]], b[group[0]]] = np.median(times[group])
    other = [
        f"{name}, {run}: another mode than {files[0][0]}; left out" for run, file in files if (run, file) not in alike
    ]
    started = tuple(str(file.header.get("start_time", "")) for _, file in alike)
    runs = tuple(run for run, _ in alike)
    where = tuple(places.get(host, "") for host in nodes)
    return Fabric(name, tuple(nodes), where, runs, started, values, header, (*problems, *other))
