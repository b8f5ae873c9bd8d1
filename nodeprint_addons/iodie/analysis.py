"""The I/O dies of a node from its records, one die a socket, with the cost of each component."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pandas as pd
import xarray as xr
from msgspec.structs import replace

from nodeprint.machine.topology.model import Level, Topology
from nodeprint_addons.iodie import data
from nodeprint_addons.iodie.data import Estimate, rows_of
from nodeprint_addons.iodie.die import Die
from nodeprint_addons.iodie.die import find as find_die
from nodeprint_addons.iodie.iodie_texts import say

#: The columns that identify a part of a die.
PART = ["kind", "socket", "where"]


class NodeDies(msgspec.Struct, frozen=True):
    """A node with its dies, none before they are found, and what of its data is missing, a sentence each."""

    node: str
    measurement: str
    topology: Topology
    missing: tuple[str, ...]
    simulated: bool
    dies: tuple[Die, ...] = ()

    @property
    def level(self) -> Level:
        """The level of the ends of its paths; it has a die."""
        return self.dies[0].level


def analyze(node: NodeDies, passes: Sequence[xr.Dataset], censuses: Sequence[xr.Dataset]) -> NodeDies:
    """The node with the dies that its passes and censuses show."""
    tensors, missing_parts = data.tensors(passes, node.topology)
    dies = tuple(find_die(tensor, censuses, node.topology) for tensor in tensors)
    dies = tuple(_with_links(die, dies) for die in dies)
    no_census = [] if censuses else [say("missing", "census")]
    return replace(node, dies=dies, missing=(*node.missing, *missing_parts, *no_census))


def site_ends(die: Die) -> tuple[tuple[int, ...], ...]:
    """The ends of each site, none without a map."""
    if die.sites is None:
        return ()
    ends = die.ends[die.here]
    return tuple(tuple(ends[die.sites.of_end == site].tolist()) for site in range(die.sites.count))


def part_costs(dies: Sequence[Die]) -> pd.DataFrame:
    """The costs of the components of dies, a row each: `value` with `half` of its 95% interval, in `unit`.

    `kind` is an "end", the "way" between two sites to a line, a "link", or the "share" of lines at a site. `socket` is
    that of the lines. `where` has the numbers of its ends: for a way both sites' ends, for a link the other socket.
    """
    rows: list[tuple[str, int, tuple[tuple[int, ...], ...], str, float, float]] = []
    # dies of NUMA nodes that were kept apart are numbered by their first node, as they share a socket
    several = len(dies) > len({die.socket for die in dies})
    for die in dies:
        socket = die.homes[0] if several else die.socket
        rows += [("end", socket, ((end.Index,),), "ns", end.ns, end.half) for end in rows_of(die.own_parts)]
        sites = site_ends(die)
        if die.to_lines is not None:
            ways = die.to_lines.between
            for (p, q), ns, half in zip(ways.ends, ways.ns.tolist(), ways.half.tolist(), strict=True):
                rows.append(("way", socket, (sites[p], sites[q]), "ns", ns, half))
            shares = map(die.share, range(len(sites)))
            rows += [("share", socket, (e,), "share", s.value, s.half) for e, s in zip(sites, shares, strict=True)]
        rows += [("link", socket, ((to,),), "ns", link.value, link.half) for to, link in die.links.items()]
    return pd.DataFrame(rows, columns=[*PART, "unit", "value", "half"])


def _with_links(die: Die, every: Sequence[Die]) -> Die:
    """A die with the links to other sockets, from what their ends cost at home and from here."""
    far = die.fit.positions("far")
    links = {}
    for neighbor in every:
        if neighbor.socket == die.socket:
            continue
        index_of = neighbor.fit.positions("end")
        own = {int(neighbor.ends[end]): index for (end,), index in index_of.items()}
        both = [(index, own[int(die.ends[end])]) for (end,), index in far.items() if die.ends[end] in own]
        if both:
            here, there = np.array(both).T
            ns = die.fit.value[here] - neighbor.fit.value[there]
            variance = np.diag(die.fit.covariance)[here] + np.diag(neighbor.fit.covariance)[there]
            links[neighbor.socket] = Estimate(float(ns.mean()), 1.96 * float(np.sqrt(variance.mean())))
    return replace(die, links=links)
