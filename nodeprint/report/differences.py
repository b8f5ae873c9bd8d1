"""Difference maps: a flagged node against its peers beside one that was not, and a node against its former job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nodeprint.report import figures, scale
from nodeprint.report.figures import Band, Floats
from nodeprint.report.node import Drawn, Shown, drawn
from nodeprint.report.pages import Comparison

#: Nodes whose cell by cell median is what a node is held against, and one more to be shown beside it.
_TEMPLATE = 9
#: One peer to show, and two to hold it against.
_LEAST_PEERS = 3
#: A difference scale reaches at least so far, in percent: noise must not fill it.
_LEAST_REACH = 5.0

#: What matrices that can be subtracted have in common: measurement, home, group of nodes, CPUs and parts.
_Key = tuple[str, int, str, int, tuple[Band, ...]]


def chosen(nodes: Mapping[str, Any]) -> list[str]:
    """Unsuspected nodes that serve as peers, spread evenly over the fleet's order.

    INCONCLUSIVE nodes without findings are used as well where too few are the same.
    """
    same = [node for node, said in nodes.items() if said.get("verdict") in ("SAME", "SAME AS GROUP")]
    if len(same) < _LEAST_PEERS:
        same = [n for n, s in nodes.items() if n in same or (s.get("verdict") == "INCONCLUSIVE" and not s["findings"])]
    count = min(len(same), _TEMPLATE + 1)
    return [same[i * len(same) // count] for i in range(count)]


@dataclass(slots=True)
class Peers:
    """The matrices of the chosen nodes."""

    _matrices: dict[_Key, list[tuple[str, Floats]]] = field(default_factory=dict)

    def add(self, node: str, group: str, shown: Shown) -> None:
        """Keep the matrices of a peer."""
        for one in shown.matrices:
            self._matrices.setdefault(_key(group, shown, one), []).append((node, one.values))

    def compare(self, node: str, group: str, shown: Shown) -> tuple[Comparison, ...]:
        """A comparison for each matrix of `node`: of its peers one stands beside, the others are the template."""
        out = []
        for one in shown.matrices:
            if len(one.cpus) < 3:
                continue
            peers = [peer for peer in self._matrices.get(_key(group, shown, one), ()) if peer[0] != node]
            if len(peers) < _LEAST_PEERS:
                found = f"{len(peers)} unsuspected nodes of its kind were measured, {_LEAST_PEERS} are needed"
                out.append(Comparison(f"{_name(one)}: no difference map: {found}.", (), ()))
                continue
            (beside, healthy), rest = _most_usual(peers)
            template = np.median(np.stack(rest), axis=0)
            text = f"{_name(one)}: each pair against the median of {len(rest)} unsuspected nodes"
            captions = (f"{node}, flagged", f"{beside}, not flagged")
            out.append(_comparison(text, captions, (one.values, healthy), template, one, shown))
        return tuple(out)


def _most_usual(peers: Sequence[tuple[str, Floats]]) -> tuple[tuple[str, Floats], list[Floats]]:
    """The peer whose pairs are nearest to the median of all peers, in ratio, and the matrices of the others."""
    template = np.median(np.stack([values for _, values in peers]), axis=0)
    away = [float(np.nanmedian(np.abs(values / template - 1))) for _, values in peers]
    nearest = int(np.argmin(away))
    return peers[nearest], [values for i, (_, values) in enumerate(peers) if i != nearest]


def since_former_job(shown: Shown) -> tuple[Comparison, ...]:
    """What changed since the job before the one that is shown, for each matrix that both have."""
    measured = [job for job in shown.bundle.jobs if job.measurements] if shown.bundle is not None else []
    if len(measured) < 2:
        return ()
    former, newest = measured[-2:]
    before = {(one.measurement, one.home, one.cpus): one.values for one in drawn(former, shown.topology)}
    out = []
    for one in shown.matrices:
        values = before.get((one.measurement, one.home, one.cpus))
        if values is not None and len(one.cpus) > 2:
            text = f"{_name(one)}: each pair in job {newest.number} against job {former.number}"
            out.append(_comparison(text, (f"since job {former.number}",), (one.values,), values, one, shown))
    return tuple(out)


def _comparison(
    text: str, captions: tuple[str, ...], values: Sequence[Floats], base: Floats, one: Drawn, shown: Shown
) -> Comparison:
    """The maps of `values` against `base`, in percent, on one scale."""
    maps = [100 * (each / base - 1) for each in values]
    colours = scale.of_differences(np.stack(maps), _LEAST_REACH)
    matrices = tuple(figures.matrix(m, one.cpus, shown.topology, colours, "%", 70.0) for m in maps)
    return Comparison(text, captions, matrices)


def _name(one: Drawn) -> str:
    return f"{one.measurement}, home NUMA node {one.home}" if one.home >= 0 else one.measurement


def _key(group: str, shown: Shown, one: Drawn) -> _Key:
    return one.measurement, one.home, group, len(one.cpus), figures.bands(one.cpus, shown.topology)
