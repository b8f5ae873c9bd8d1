"""Homes of lines, seen from their pair: with the policy `sockets`, either near or far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.machine.topology.model import Topology

Array = npt.NDArray[Any]

#: The home follows from the policy; of `sockets`, the one that is near.
NEAR = -1
#: In the next socket, of several in the one after it, and so on: beyond the number of any NUMA node.
FAR = 10_000


def of_pairs(places: Mapping[str, Array], policy: str, topology: Topology | None) -> Array:
    """The home of each place of pairs of CPUs: its NUMA node, or, with the policy `sockets`, NEAR or FAR and more.

    Near is the socket of the pair, and the lower socket for a pair between sockets. So no home mixes pairs with a line
    in their socket and pairs without. If sockets are unknown, the home stays the NUMA node.
    """
    if policy != "sockets" or topology is None:
        return places["home"]
    of_cpu = {cpu.cpu: cpu.socket for cpu in topology.cpus if cpu.socket is not None}
    of_node = {node.node: of_cpu[cpu] for node in topology.numa_nodes for cpu in node.cpus[:1] if cpu in of_cpu}
    a, b = (_looked_up(of_cpu, places[end]) for end in "ab")
    at_home, own, sockets = _looked_up(of_node, places["home"]), np.minimum(a, b), np.unique(list(of_node.values()))
    if not (np.isin(at_home, sockets) & np.isin(own, sockets)).all():
        return places["home"]
    steps = (np.searchsorted(sockets, at_home) - np.searchsorted(sockets, own)) % len(sockets)
    return np.where(steps == 0, NEAR, FAR + steps - 1).astype(np.int64)


def _looked_up(values: Mapping[int, int], keys: Array) -> Array:
    """The values of keys, -1 where there is none."""
    table = np.full(max([*values, int(keys.max(initial=0))]) + 1, -1, dtype=np.int64)
    table[list(values)] = list(values.values())
    return np.asarray(table[keys])


def named(home: float) -> str:
    """A home as a page has it, empty where it follows from the policy."""
    if home >= FAR:
        return "far home" + (f" {home - FAR + 1:.0f}" if home > FAR else "")
    return f"home NUMA node {home:.0f}" if home >= 0 else ""
