"""Data of the interactive part of cluster.html: nodes, machines, compact matrices, and colors.

reports/explorer.js reads the data and computes only differences and medians of it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec
import numpy as np
from msgspec.structs import asdict

from nodeprint.data.places import homes
from nodeprint.data.places.layout import NAMES
from nodeprint.errors import printable
from nodeprint.judge.outcome import Outcome
from nodeprint.report import text
from nodeprint.report.figures.node_levels import Floats
from nodeprint.report.figures.part_levels import of_slots
from nodeprint.report.figures.style import Map
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.order import natural, severity

#: The most nodes whose matrices are in the file; in a larger fleet the nodes that need attention come first.
MOST_NODES = 64
#: The value that stands for NaN; any other is a whole number of steps.
_NOTHING = 65535
#: Steps of the largest value: four digits. More digits would be noise, which does not compress.
_STEPS = 8000
#: Colors of a map.
_COLORS = 128


class Encoded(msgspec.Struct, frozen=True):
    """A matrix for the browser: the pairs above the diagonal, row by row.

    `data` is base64 of zlib of 16-bit numbers in units of `step` ns, all high bytes before all low bytes. `components`
    are the machine's components as level, start, end and number, the finest level first.
    """

    measurement: str
    home: int
    title: str
    step: float
    data: str
    cpus: tuple[int, ...]
    labels: tuple[tuple[int, ...], ...]
    components: tuple[tuple[str, int, int, str], ...]


def explored(campaign: Campaign) -> list[str]:
    """The nodes whose matrices the file holds."""
    nodes = campaign.verdict.nodes
    measured = [name for name in nodes if nodes[name].outcome.entry.measured]
    return sorted(measured, key=lambda name: (severity(nodes[name]), natural(name)))[:MOST_NODES]


def encoded(campaign: Campaign, node: str) -> tuple[Encoded, ...]:
    """The matrices of a node with three CPUs or more."""
    out = []
    for measurement in campaign.measurements(node, pairs=True):
        levels = campaign.levels(measurement, node)
        if len(levels.slots) < 3:
            continue
        labels = levels.quantity.layout.slots[levels.slots]
        components = tuple((level.name, *group) for level in of_slots(labels) for group in level.groups)
        cpus = levels.cpus(node, levels.slots)
        for home in levels.quantity.homes:
            square = levels.square(levels.of(node), home)
            if not np.isfinite(square).any():
                continue
            title = ", ".join(filter(None, (measurement, homes.named(home), campaign.shown_job(node, measurement))))
            places = tuple(map(tuple, labels[:, :4].tolist()))
            out.append(Encoded(measurement, home, title, *encode(square), cpus, places, components))
    return tuple(out)


def encode(values: Floats) -> tuple[float, str]:
    """Return the step (ns) and the encoded text of a matrix (n x n, NaN if not measured)."""
    flat = values[np.triu_indices(len(values), 1)]
    finite = flat[np.isfinite(flat)]
    highest = float(finite.max()) if finite.size else 1.0
    step = float(f"{max(highest, 1e-3) / _STEPS:.3g}")
    whole = np.where(np.isfinite(flat), np.round(flat / step), _NOTHING).astype(np.uint16)
    planes = np.concatenate([whole >> 8, whole & 255]).astype(np.uint8)
    return float(step), base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode("ascii")


def document(campaign: Campaign, matrices: Mapping[str, Sequence[Encoded]]) -> str:
    """The JSON of the explorer; empty where no node has a matrix."""
    machines: list[dict[str, Any]] = []
    entries = []
    for node in sorted(matrices, key=natural):
        for node_matrix in matrices[node]:
            fields = asdict(node_matrix)
            machine = {key: fields.pop(key) for key in ("cpus", "labels", "components")}
            if machine not in machines:
                machines.append(machine)
            entries.append({"node": printable(node, 120), "machine": machines.index(machine), **fields})
    if not entries:
        return ""
    verdict, palettes, rows = campaign.verdict, dict[str, str](), list[dict[str, Any]]()
    for name in sorted(verdict.nodes, key=natural):
        node_verdict = verdict.nodes[name]
        entry, outcome = node_verdict.outcome.entry, node_verdict.outcome
        head = {"node": printable(name, 120), "word": outcome.with_class, "symbol": entry.symbol, "color": entry.color}
        finding = text.noun_phrase(node_verdict.counted[0]) if node_verdict.counted else ""
        place = printable(node_verdict.rack, 40)
        rows.append({**head, "same": outcome is Outcome.SAME, "place": place, "finding": finding})
    for name in get_args(Map):
        colors = campaign.style.map(name)(np.linspace(0, 1, _COLORS))[:, :3]
        palettes[name] = np.round(colors * 255).astype(np.uint8).tobytes().hex()
    content = {
        "campaign": printable(verdict.campaign, 80),
        "origin": campaign.origin,
        "nodes": rows,
        "labels": NAMES,
        "machines": machines,
        "matrices": entries,
        "palettes": palettes,
    }
    return json.dumps(content, separators=(",", ":"), allow_nan=False)
