"""A node against its peers: what they measured in common, its template, and difference maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from nodeprint import outcomes
from nodeprint.fleet import homes
from nodeprint.fleet.jobs import Job, Measured
from nodeprint.fleet.quantity import cell_models
from nodeprint.order_statistics import median_over, row_medians
from nodeprint.report import matrix_figure, scale
from nodeprint.report import old_figures as figures
from nodeprint.report.drawing import Pixels
from nodeprint.report.old_figures import Band, Figure, Floats
from nodeprint.report.scale import Scale
from nodeprint.report.shown import DrawnMatrix, Shown, drawn, over_runs
from nodeprint.topology.model import Topology

#: Nodes whose cell by cell median is what a node is held against, and one more to be shown beside it.
_TEMPLATE = 9
#: One peer to show, and two to hold it against.
_LEAST_PEERS = 3
#: A difference scale reaches at least so far, in percent: noise must not fill it.
LEAST_REACH = 5.0
#: Difference maps in small reach so far, in percent: a defect is seen, noise is not.
MAP_SCALE = Scale(-8.0, 8.0, "vik", bins=32)

#: What matrices that can be subtracted have in common: measurement, home, group of nodes, CPUs and parts.
_Key = tuple[str, int, str, int, tuple[Band, ...]]
#: A place of a measurement that is not of pairs: its coordinates in the order of their names.
Place = tuple[int | str, ...]


class Maps(msgspec.Struct, frozen=True):
    """Difference maps on one scale and what they are of; without figures `text` says why there are none."""

    text: str
    figures: tuple[Figure, ...] = ()


class Template(msgspec.Struct, frozen=True, eq=False, dict=True):
    """What peers have of one matrix: `names` of the nodes, and their matrices (peers x n x n), in ns.

    Most nodes of a fleet are held against one template, so what follows from it is found once.
    """

    names: tuple[str, ...]
    values: Floats

    @cached_property
    def median(self) -> Floats:
        """Pair by pair the median over the peers (n x n)."""
        return median_over(self.values)

    @cached_property
    def by_cpu(self) -> Floats:
        """`cpu_shifts` of each peer (peers x n)."""
        return np.stack([self.cpu_shifts(values) for values in self.values])

    def cpu_shifts(self, values: Floats) -> Floats:
        """Of a matrix (n x n) CPU by CPU the median difference of its pairs from the peers', in percent."""
        shifts = 100 * (values / self.median - 1)
        np.fill_diagonal(shifts, np.nan)
        return row_medians(shifts)


def chosen(nodes: Mapping[str, Any]) -> list[str]:
    """Unsuspected nodes that serve as peers, spread evenly over the fleet's order.

    INCONCLUSIVE nodes without findings are used as well where too few are the same.
    """
    same = [node for node, said in nodes.items() if outcomes.of(str(said.get("verdict"))).same]
    if len(same) < _LEAST_PEERS:
        same = [
            n for n, s in nodes.items() if n in same or (s.get("verdict") == "INCONCLUSIVE" and not s.get("findings"))
        ]
    count = min(len(same), _TEMPLATE + 1)
    return [same[i * len(same) // count] for i in range(count)]


class Peers(msgspec.Struct):
    """The matrices and cells of the chosen nodes."""

    _matrices: dict[_Key, list[tuple[str, Floats]]] = {}
    _machines: dict[_Key, tuple[tuple[int, ...], Topology | None]] = {}
    _cells: dict[tuple[str, str], list[tuple[str, dict[Place, float]]]] = {}
    _templates: dict[tuple[_Key, str], Template | None] = {}

    def add(self, node: str, group: str, shown: Shown) -> None:
        """Keep what a peer measured."""
        self._templates.clear()
        for one in shown.matrices:
            self._matrices.setdefault(_key(group, shown, one), []).append((node, one.values))
            self._machines.setdefault(_key(group, shown, one), (one.cpus, shown.topology))
        for name, values in cell_values(shown.job).items():
            self._cells.setdefault((name, group), []).append((node, values))

    def template(self, node: str, group: str, shown: Shown, one: DrawnMatrix) -> Template | None:
        """What at least two peers other than `node` have of its matrix `one`."""
        key = _key(group, shown, one)
        known = self._matrices.get(key, [])
        without = node if any(peer == node for peer, _ in known) else ""
        if (key, without) not in self._templates:
            peers = [peer for peer in known if peer[0] != without]
            self._templates[key, without] = Template(*_stacked(peers)) if len(peers) > 1 else None
        return self._templates[key, without]

    def cells(self, node: str, group: str, name: str, places: Sequence[Place]) -> Floats:
        """What peers other than `node` have at `places` of a measurement (peers x p), NaN where nothing."""
        found = [values for peer, values in self._cells.get((name, group), ()) if peer != node]
        return np.array([[values.get(place, np.nan) for place in places] for values in found]).reshape(-1, len(places))

    def first(self) -> tuple[DrawnMatrix, Template, Topology | None] | None:
        """The matrix that most of the chosen nodes have, with its machine; None without any."""
        if not self._matrices:
            return None
        key = max(self._matrices, key=lambda key: (len(self._matrices[key]), key[0].startswith("coherence"), -key[1]))
        found = self._matrices[key]
        cpus, topology = self._machines[key]
        return DrawnMatrix(key[0], key[1], cpus, found[0][1]), Template(*_stacked(found)), topology

    def map_of(self, node: str, group: str, shown: Shown) -> Pixels | None:
        """The difference map of a node's first matrix in small; None without peers."""
        one = next((one for one in shown.matrices if len(one.cpus) > 2), None)
        found = self.template(node, group, shown, one) if one is not None else None
        if one is None or found is None:
            return None
        return figures.thumbnail(100 * (one.values / found.median - 1), MAP_SCALE)

    def compare(self, node: str, group: str, shown: Shown) -> tuple[Maps, ...]:
        """Maps for each matrix of `node`: beside it stands its most usual peer, both against the other peers."""
        out = []
        for one in shown.matrices:
            if len(one.cpus) < 3:
                continue
            found = self.template(node, group, shown, one)
            count = len(found.names) if found is not None else len(self._matrices.get(_key(group, shown, one), ()))
            if found is None or count < _LEAST_PEERS:
                why = f"it needs {_LEAST_PEERS} peers without a finding, of which there are {count}"
                out.append(Maps(f"{name_of(one)}: no difference map: {why}."))
                continue
            beside, rest = _most_usual(found)
            text = f"{name_of(one)}: each pair against the median of {len(rest)} unsuspected nodes"
            captions = (f"{node}, with a finding", f"{found.names[beside]}, a usual peer")
            base = median_over(rest)
            out.append(_maps(text, captions, (one.values, found.values[beside]), base, one, shown))
        return tuple(out)


def _stacked(peers: Sequence[tuple[str, Floats]]) -> tuple[tuple[str, ...], Floats]:
    return tuple(name for name, _ in peers), np.stack([values for _, values in peers])


def cell_values(job: Job | None) -> dict[str, dict[Place, float]]:
    """Of each measurement that is not of pairs, the value at each place: the median over passes, then over runs."""
    out = {}
    for one in job.cells if job is not None else ():
        found = places_and_values(one)
        if found is not None:
            out[one.name] = dict(zip(*found, strict=True))
    return out


def places_and_values(one: Measured) -> tuple[list[Place], list[float]] | None:
    """The places of a measurement and what it is compared by there; None where no model says what that is."""
    model = cell_models().get(one.name)
    if model is None or model.value not in one.columns:
        return None
    places = list(zip(*(one.keys(dim) for dim in one.places), strict=True))
    return places, over_runs(one.columns[model.value]).tolist()


def _most_usual(found: Template) -> tuple[int, Floats]:
    """The peer whose pairs are nearest to the median of all peers, in ratio, and the matrices of the others."""
    away = [float(np.nanmedian(np.abs(values / found.median - 1))) for values in found.values]
    nearest = int(np.argmin(away))
    return nearest, np.delete(found.values, nearest, axis=0)


def since_former_job(shown: Shown) -> tuple[Maps, ...]:
    """What changed since the job before the one that is shown, for each matrix that both have."""
    measured = [job for job in shown.jobs if job.pairs]
    if len(measured) < 2:
        return ()
    former, newest = measured[-2:]
    before = {(one.measurement, one.home, one.cpus): one.values for one in drawn(former, shown.topology)}
    out = []
    for one in shown.matrices:
        values = before.get((one.measurement, one.home, one.cpus))
        if values is not None and len(one.cpus) > 2:
            text = f"{name_of(one)}: each pair in job {newest.number} against job {former.number}"
            out.append(_maps(text, (f"since job {former.number}",), (one.values,), values, one, shown))
    return tuple(out)


def _maps(
    text: str, captions: Sequence[str], values: Sequence[Floats], base: Floats, one: DrawnMatrix, shown: Shown
) -> Maps:
    """The maps of `values` against `base` in percent, on one scale."""
    maps = [100 * (each / base - 1) for each in values]
    colours = scale.of_differences(np.stack(maps), LEAST_REACH)
    room = (figures.PAGE - 4.0) / len(maps) if len(maps) > 1 else 100.0
    drawn_maps = tuple(
        matrix_figure.matrix(
            each, one.cpus, shown.topology, colours, "% from the peers" if len(maps) > 1 else "% of change",
            # the last has the colour bar that all share
            room + (16.5 if i == len(maps) - 1 else -16.5) * (len(maps) > 1),
            name=f"difference-{one.measurement}-{i}", caption=captions[i], bar=i == len(maps) - 1,
        )
        for i, each in enumerate(maps)
    )  # fmt: skip
    return Maps(text, drawn_maps)


def name_of(one: DrawnMatrix) -> str:
    """A matrix by its measurement and home."""
    return ", ".join(filter(None, (one.measurement, homes.named(one.home))))


def _key(group: str, shown: Shown, one: DrawnMatrix) -> _Key:
    return one.measurement, one.home, group, len(one.cpus), figures.bands(one.cpus, shown.topology)
