"""The data of the interactive part of cluster.html: nodes, machines, matrices as small as they can be, and colours.

reports/explorer.js reads it and computes nothing but differences and medians of what is here.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from nodeprint.report import formatting, scale
from nodeprint.report import old_figures as figures
from nodeprint.report.old_figures import Band, Floats
from nodeprint.report.pages import line
from nodeprint.report.scale import LEVELS, Scale
from nodeprint.report.shown import Shown
from nodeprint.topology.model import Topology

#: Nodes whose matrices are in the file; of a larger fleet those that ask for attention come first.
MOST_NODES = 64
#: A value is a whole number of steps; this one stands for nothing.
_NOTHING = 65535
#: Labels of a CPU, from coarse to fine.
_LABELS = ("socket", "quadrant", "ccd", "ccx", "numa", "core")


class Encoded(msgspec.Struct, frozen=True):
    """A matrix for the browser: `data` is zlib in base64 of its values as 16-bit numbers of `step` ns, all high bytes
    before all low ones; of an undirected one the pairs above the diagonal, row by row."""

    measurement: str
    home: int
    directed: bool
    step: float
    data: str
    passes: str
    cpus: tuple[int, ...]
    labels: tuple[tuple[int | None, ...], ...]
    bands: tuple[Band, ...]


def encoded(shown: Shown) -> tuple[Encoded, ...]:
    """The matrices of a node."""
    job, out = shown.job, []
    for one in shown.matrices if job is not None else ():
        assert job is not None
        data = job.measured[one.measurement]
        directed = bool(data.header.get("directed"))
        step, text = encode(one.values, directed)
        passes = f"{len(data.passes)} passes in each of {len(data.runs)} runs"
        labels = _labels(one.cpus, shown.topology)
        bands = figures.bands(one.cpus, shown.topology)
        out.append(Encoded(one.measurement, one.home, directed, step, text, passes, one.cpus, labels, bands))
    return tuple(out)


def encode(values: Floats, directed: bool) -> tuple[float, str]:
    """The step (ns, a power of ten) and the text of a matrix (n x n, NaN where nothing)."""
    n = len(values)
    flat = values.ravel() if directed else values[np.triu_indices(n, 1)]
    known = flat[np.isfinite(flat)]
    highest = float(known.max()) if known.size else 1.0
    step = 10.0 ** np.ceil(np.log10(max(highest, 1e-3) / (_NOTHING - 1)))
    whole = np.where(np.isfinite(flat), np.round(flat / step), _NOTHING).astype(np.uint16)
    planes = np.concatenate([whole >> 8, whole & 255]).astype(np.uint8)
    return float(step), base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode("ascii")


def _labels(cpus: Sequence[int], topology: Topology | None) -> tuple[tuple[int | None, ...], ...]:
    known = {cpu.cpu: cpu for cpu in topology.cpus} if topology is not None else {}
    return tuple(tuple(getattr(known.get(cpu), name, None) for name in _LABELS) for cpu in cpus)


class ExplorerRow(msgspec.Struct, frozen=True):
    """A node in the explorer's table."""

    node: str
    word: str
    symbol: str
    colour: str
    same: bool
    place: str
    values: tuple[str, ...]
    note: str


def document(
    rows: Sequence[ExplorerRow],
    columns: Sequence[str],
    matrices: Mapping[str, Sequence[Encoded]],
    scales: Mapping[str, Scale],
) -> str:
    """The JSON of the explorer; empty where no node has a matrix of three or more CPUs."""
    machines: list[dict[str, Any]] = []
    entries = []
    for node in sorted(matrices, key=formatting.natural):
        for one in matrices[node]:
            if len(one.cpus) < 3:
                continue
            bands = [
                {"name": band.name, "groups": [[g.start, g.stop, g.label] for g in band.groups]} for band in one.bands
            ]
            machine = {"cpus": one.cpus, "labels": one.labels, "bands": bands}
            if machine not in machines:
                machines.append(machine)
            entries.append({
                "node": line(node), "measurement": line(one.measurement), "home": one.home, "directed": one.directed,
                "step": one.step, "passes": one.passes, "machine": machines.index(machine), "data": one.data,
            })  # fmt: skip
    if not entries:
        return ""
    palettes = {name: bytes(c for rgb in scale.palette(name)[:LEVELS] for c in rgb).hex() for name in ("batlow", "vik")}
    content = {
        "columns": columns,
        "nodes": [
            {
                "node": line(row.node), "word": row.word, "symbol": row.symbol, "colour": row.colour, "same": row.same,
                "place": line(row.place), "values": row.values, "note": line(row.note),
            }
            for row in rows
        ],
        "labels": _LABELS,
        "machines": machines,
        "matrices": entries,
        "scales": {line(name): [one.low, one.high] for name, one in scales.items()},
        "palettes": palettes,
    }  # fmt: skip
    return json.dumps(content, separators=(",", ":"), allow_nan=False)
