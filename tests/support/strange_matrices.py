"""Matrices of made-up machines, usual and strange, with the levels that they show: for the tests and the bench."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.support.latencies import Made, epyc, homed, made, mesh, with_ports


def _in_order(counts: Mapping[str, int], shared_ns: Mapping[str, float], far_ns: float, threads: int = 1) -> Made:
    """A machine of so many parts in each part of the level before, in order, second threads after all first ones."""
    total = int(np.prod(list(counts.values())))
    parts, below = {}, total
    for level, count in counts.items():
        below //= count
        parts[level] = np.tile(np.arange(total) // below, threads)
    return made({level: parts[level] for level in shared_ns}, shared_ns, far_ns, spread=0.03)


def sub_numa(sockets: int, clusters: int, cores: int) -> Made:
    """Xeons whose meshes are in clusters that are a little nearer inside, with two threads a core."""
    mesh_of = np.arange(cores)
    steps = np.abs(mesh_of[:, None] // 4 - mesh_of[None, :] // 4) + np.abs(mesh_of[:, None] % 4 - mesh_of[None, :] % 4)
    machine = _in_order(
        {"socket": sockets, "group": clusters, "smt": cores}, {"socket": 66.0, "group": 52.0, "smt": 8.0}, 130.0, 2
    )
    core = machine.parts["smt"]
    return Made(machine.matrix + 1.2 * steps[core[:, None] % cores, core[None, :] % cores], machine.parts)


def packages(count: int, cores: int, far: float, offset: float = 4.0) -> Made:
    """Packages in which latency grows along a ring from 45 to 85 ns, and cores that have an offset of their own."""
    generator = np.random.default_rng(count)
    socket, place = np.arange(count * cores) // cores, np.arange(count * cores) % cores
    matrix = 45 + 40 * np.abs(place[:, None] - place[None, :]) / cores
    matrix = np.where(socket[:, None] == socket[None, :], matrix, matrix + far)
    own = generator.normal(0, offset, len(socket))
    noise = np.triu(generator.normal(0, 0.03, matrix.shape), 1)
    matrix = (matrix + own[:, None] + own[None, :]) * np.exp(noise + noise.T)
    np.fill_diagonal(matrix, np.nan)
    return Made(matrix, {"socket": socket})


def _owned(machine: Made, cost_ns: float) -> Made:
    """The same with every line at home in the first socket: pairs inside another one pay so much more."""
    socket = machine.parts["socket"]
    pays = (socket[:, None] == socket[None, :]) & (socket > 0)[:, None]
    return Made(np.where(pays, machine.matrix + cost_ns, machine.matrix), machine.parts)


def _slow_port(machine: Made, ccx: int) -> Made:
    """The same where all ways out of one CCX take 8% longer."""
    own = machine.parts["ccx"] == ccx
    return Made(np.where(own[:, None] ^ own[None, :], machine.matrix * 1.08, machine.matrix), machine.parts)


ROME = epyc(2, 4, 4, 4)
MILAN = epyc(1, 4, 2, 8)
GENOA = epyc(2, 4, 3, 8, 1)
SMALL_CCX = epyc(1, 4, 2, 2, 1, spread=0.01)
XEON = made(
    {"socket": np.tile(np.arange(48) // 24, 2), "smt": np.tile(np.arange(48), 2)},
    {"socket": 48.0, "smt": 8.0},
    140.0,
    spread=0.04,
)
#: A machine, and the levels that its matrix shows.
LEVELS: dict[str, tuple[Made, tuple[str, ...]]] = {
    "rome": (ROME, ("smt", "ccx", "quadrant", "socket")),
    "rome, line at home in socket 1": (homed(ROME, 1, 105.0), ("smt", "ccx", "quadrant", "socket")),
    "milan": (MILAN, ("smt", "ccx", "quadrant")),
    "genoa without threads": (GENOA, ("ccx", "quadrant", "socket")),
    "two cores a ccx": (SMALL_CCX, ("ccx", "quadrant")),
    "no quadrants to see": (epyc(2, 4, 2, 6, quadrant_steps=False), ("smt", "ccx", "socket")),
    "two xeons": (XEON, ("smt", "socket")),
    "xeon": (mesh(28, 2), ("smt",)),
    "mesh": (mesh(64), ()),
    "one ccx": (epyc(1, 1, 1, 8), ("smt",)),
    "desktop of two ccxs": (epyc(1, 1, 2, 8), ("smt", "ccx")),
    "harvested": (
        made({"ccx": np.repeat(np.arange(8), (8, 8, 7, 8, 6, 8, 8, 7))}, {"ccx": 24.0}, 110.0),
        ("ccx",),
    ),
    "three sockets of EPYC": (epyc(3, 4, 4, 4, 1), ("ccx", "quadrant", "socket")),
    "three sockets, no quadrants": (epyc(3, 1, 4, 8, 1, quadrant_steps=False), ("ccx", "socket")),
    "three xeons": (_in_order({"socket": 3, "smt": 16}, {"socket": 48.0, "smt": 8.0}, 140.0, 2), ("smt", "socket")),
    "eight xeons": (_in_order({"socket": 8, "smt": 16}, {"socket": 48.0, "smt": 8.0}, 160.0, 2), ("smt", "socket")),
    "four sockets of three dies": (
        _in_order({"socket": 4, "ccx": 3, "core": 8}, {"socket": 85.0, "ccx": 20.0}, 250.0),
        ("ccx", "socket"),
    ),
    "clusters of four, four dies, two sockets": (
        _in_order(
            {"socket": 2, "group": 2, "cluster": 8, "core": 4}, {"socket": 81.0, "group": 40.0, "cluster": 36.0}, 190.0
        ),
        ("group", "socket"),
    ),
    "sub-NUMA clusters": (sub_numa(2, 4, 14), ("smt", "group", "socket")),
    "hybrid with cores beside the ring": (
        made(
            {"group": np.repeat((0, 1), (20, 2)), "smt": np.r_[np.repeat(np.arange(6), 2), 6:16]},
            {"group": 40.0, "smt": 6.0},
            120.0,
        ),
        ("smt", "group"),
    ),
    "four dies of two CCXs": (
        _in_order({"quadrant": 4, "ccx": 2, "core": 4}, {"quadrant": 90.0, "ccx": 26.0}, 155.0),
        ("ccx", "quadrant"),
    ),
    "uneven quadrants": (
        made(
            {"quadrant": np.repeat(np.arange(4), (24, 16, 16, 16)), "ccx": np.arange(72) // 8},
            {"quadrant": 112.0, "ccx": 24.0},
            125.0,
        ),
        ("ccx", "quadrant"),
    ),
    "ccxs at half the clock": (_in_order({"ccx": 8, "smt": 8}, {"ccx": 50.0, "smt": 17.0}, 140.0, 2), ("smt", "ccx")),
    "packages on rings": (packages(2, 16, 70.0), ("socket",)),
    "one ring": (packages(1, 32, 0.0), ()),
    "four ccxs of eight cores at a low clock": (
        _in_order({"ccx": 4, "smt": 8}, {"ccx": 34.0, "smt": 12.0}, 118.0, 2),
        ("smt", "ccx"),
    ),
    "no quadrants, a slow port": (_slow_port(epyc(1, 4, 2, 8, 1, quadrant_steps=False), 3), ("ccx",)),
    "two rings, one of which owns the line": (_owned(packages(2, 16, 70.0), 80.0), ("socket",)),
    "one socket, no quadrants": (epyc(1, 4, 2, 8, quadrant_steps=False, spread=0.01, seed=4), ("smt", "ccx")),
    "ports of their own": (Made(with_ports(epyc(1, 4, 3, 8, 1), 20.0), epyc(1, 4, 3, 8, 1).parts), ("ccx", "quadrant")),
    "no noise, near groups": (made({"group": np.arange(12) // 4}, {"group": 50.0}, 52.0, spread=0.0), ("group",)),
    "no noise, far groups": (made({"group": np.arange(12) // 4}, {"group": 50.0}, 60.0, spread=0.0), ("group",)),
    "a mesh without noise": (mesh(64, spread=0.0), ()),
    "big and little": (made({"group": [0, 0, 1, 1, 1, 2, 2, 2]}, {"group": 45.0}, 145.0), ("group",)),
    "tiles": (made({"group": np.arange(64) // 2}, {"group": 42.0}, 90.0), ("group",)),
}
