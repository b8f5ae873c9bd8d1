"""From a node's records to what its I/O dies look like, one die a socket, and what each part of them costs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from nodeprint.machine.topology.model import Level, Topology
from nodeprint.settings.texts import say
from nodeprint_addons.iodie import data
from nodeprint_addons.iodie.data import Floats
from nodeprint_addons.iodie.die import Die, Link
from nodeprint_addons.iodie.die import find as find_die
from nodeprint_addons.iodie.node_lines import NodeLines

#: What a part is (an "end", the "way" between two sites to a line, a "link", the "share" of lines at a site), the
#: socket of the lines, and the numbers of its ends: of a way those of both sites, of a link the other socket.
Key = tuple[str, int, tuple[tuple[int, ...], ...]]


class Costs(msgspec.Struct, frozen=True):
    """What the parts of a node's dies cost, ns (of "share" the share): `value` with `half` of its 95 % interval (p)."""

    parts: tuple[Key, ...]
    value: Floats
    half: Floats


class NodeDies(msgspec.Struct, frozen=True):
    """The dies of a node, what their parts cost, and what of its data is missing, a sentence each."""

    node: str
    measurement: str
    topology: Topology
    dies: tuple[Die, ...]
    costs: Costs
    missing: tuple[str, ...]
    simulated: bool

    @property
    def level(self) -> Level:
        """What the ends of its ways are; it has a die."""
        return self.dies[0].frame.level


def analyze(source: NodeLines) -> NodeDies:
    """The dies of a node."""
    tensors, missing = data.tensors(source.passes, source.topology)
    dies = tuple(find_die(tensor, source.censuses, source.topology) for tensor in tensors)
    if not source.censuses:
        missing.append(say("dies", "missing", "census"))
    dies = _linked(dies)
    return NodeDies(
        source.node,
        source.measurement,
        source.topology,
        dies,
        _costs(dies),
        (*source.missing, *missing),
        source.simulated,
    )


def site_ends(die: Die) -> tuple[tuple[int, ...], ...]:
    """The ends of each site, none without a map."""
    if die.sites is None:
        return ()
    ends = die.frame.ends[die.frame.here]
    return tuple(tuple(ends[die.sites.of_end == site].tolist()) for site in range(die.sites.count))


def _costs(dies: Sequence[Die]) -> Costs:
    """What the parts of dies cost."""
    parts = _parts(dies)
    value, half = (np.array([cost[i] for cost in parts.values()]) for i in (0, 1))
    return Costs(tuple(parts), value, half)


def _parts(dies: Sequence[Die]) -> dict[Key, tuple[float, float]]:
    """What each part costs with half of its interval."""
    out: dict[Key, tuple[float, float]] = {}
    # dies of NUMA nodes that were kept apart are numbered by their first node, as they share a socket
    several = len(dies) > len({die.frame.socket for die in dies})
    for die in dies:
        socket = die.homes[0] if several else die.frame.socket
        for end, ns, half, _ in zip(*die.end_ns, strict=True):
            out["end", socket, ((int(end),),)] = (float(ns), float(half))
        sites = site_ends(die)
        if die.distances is not None and die.sites is not None:
            for (p, q), ns, half in zip(die.distances.ends, die.distances.line, die.distances.line_half, strict=True):
                out["way", socket, (sites[p], sites[q])] = (float(ns), float(half))
            for site in range(die.sites.count):
                out["share", socket, (sites[site],)] = die.share(site)
        for link in die.links:
            out["link", socket, ((link.socket,),)] = (link.ns, link.half)
    return out


def _linked(dies: Sequence[Die]) -> tuple[Die, ...]:
    """Dies with the links between their sockets."""
    return tuple(_with_links(die, dies) for die in dies)


def _with_links(die: Die, every: Sequence[Die]) -> Die:
    """A die with the links to other sockets, from what their ends cost at home and from here."""
    if die.far is None:
        return die
    links = []
    for neighbor in every:
        if neighbor.frame.socket == die.frame.socket:
            continue
        index_of = neighbor.fit.positions("end")
        own = {int(neighbor.frame.ends[end]): index for (end,), index in index_of.items()}
        rows = [
            (ns - neighbor.fit.value[own[number]], variance + neighbor.fit.covariance[own[number], own[number]])
            for number, ns, variance in zip(
                die.frame.ends[die.far.ends].tolist(), die.far.ns.tolist(), die.far.variance.tolist(), strict=True
            )
            if number in own
        ]
        if rows:
            ns, variance = np.array(rows).T
            links.append(Link(neighbor.frame.socket, float(ns.mean()), 1.96 * float(np.sqrt(variance.mean()))))
    return replace(die, links=tuple(links))
