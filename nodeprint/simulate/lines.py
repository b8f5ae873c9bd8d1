"""Sites of the lines of a simulated home on its socket's I/O die, as with one NUMA node per socket.

The latency on a line includes the paths from both CPUs' sites to the line's. The kernel finds the clusters by a census
and draws equally from each (docs/method/core-to-core.md). The simulation writes the same records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from nodeprint.data.places.layout import CCD, CCX, QUADRANT, SOCKET, Ints, Layout
from nodeprint.errors import NodeprintError, printable
from nodeprint.machine import dies
from nodeprint.machine.topology.model import Topology

Floats = npt.NDArray[np.float64]
Hashing = Literal["random", "parity", "modulo 3"]

#: Lines of a census, and of the pool they are taken from (kernels/harness/census.h, memory.h).
CENSUS_LINES, POOL_LINES = 512, 1 << 18
#: Latency in a quadrant of an EPYC 7702 is 101 to 131 ns by the line's quadrant: two CPUs, two steps.
STEP_NS = 7.5
#: Extra latency per step between the ends of a pair.
PAIR_STEP_NS = 5.0
#: A load after a flush from a CPU at the line's site, the extra cost of another socket, SDs of lines and halves.
_RELOAD_NS, _FAR_NS, _LINE_NS, _HALF_NS = 118.0, 90.0, 3.0, 2.4
#: Bits of a line's number in its page of 4 KiB, whose parity chooses a site with hashing by parity.
_PAGE_BITS, _MASKS = 6, (0b001101, 0b110010)


@dataclass(frozen=True)
class Modes:
    """The sites of lines, and the die that they and the CCDs are on.

    `step_ns` is the cost of a step between sites on the path to a line (0: all lines are alike). `pair_step_ns` is that
    on the path from CPU to CPU. `shares` are the shares of lines at each site (empty: equal). If `clustered`, a pass
    draws equally from each site, else any lines. `die` and `sites` are the geometry (nodeprint/machine/dies.py). By
    default these are quadrants on a ring; with another number of sites they are the CCDs of a socket in order.
    `hashing` selects what a line's address reveals of its site: nothing, the parity of some bits, or (three or six
    sites) the address modulo 3. The page's own address, unknown to a program, contributes too. `slow_way` is two sites
    and the extra cost of their path beyond its steps, ns.
    """

    step_ns: float = 0.0
    shares: tuple[float, ...] = ()
    clustered: bool = True
    pair_step_ns: float = PAIR_STEP_NS
    die: dies.Kind = "ring"
    sites: int = 4
    hashing: Hashing = "random"
    slow_way: tuple[int, int, float] = (0, 0, 0.0)

    @property
    def slow_ns(self) -> Floats:
        """The extra cost of the path from site to site beyond its steps, ns (site, site)."""
        p, q, ns = self.slow_way
        out = np.zeros((self.sites, self.sites))
        out[[p, q], [q, p]] = ns
        return out

    @property
    def steps(self) -> Ints:
        """Steps from site to site."""
        return dies.steps(self.die, self.sites)


def modes_of(topology: Topology) -> Modes:
    """Quadrants where a socket has four and one NUMA node, else none."""
    sockets = {cpu.socket for cpu in topology.cpus}
    quadrants = {cpu.quadrant for cpu in topology.cpus} - {None}
    split = len(topology.numa_nodes) > len(sockets)
    return Modes(STEP_NS) if len(quadrants) == 4 * len(sockets) and not split else Modes()


def modes_named(name: str) -> Modes | None:
    """Modes by a word of the command line: `none`, or a die such as mesh6; None for `quadrants`, by each machine.

    Raises NodeprintError.
    """
    if name == "quadrants":
        return None
    if name == "none":
        return Modes()
    for kind in dies.KINDS:
        count = name.removeprefix(kind)
        if (
            name.startswith(kind)
            and count.isdecimal()
            and 2 <= int(count) <= 16
            and (kind != "mesh" or int(count) % 2 == 0)
        ):
            return Modes(STEP_NS, die=kind, sites=int(count))
    advice = "give quadrants, none, or a die of 2 to 16 sites such as mesh4, ring6 or crossbar4"
    raise NodeprintError(f"{printable(name, 40)!r} is not known", key="--modes", advice=advice)


def sites_of(layout: Layout, modes: Modes) -> Ints:
    """The site of each slot: its quadrant if there are four sites, else by the order of CCDs in its socket.

    If quadrants are unknown and all lines are alike, all slots have one site.
    """
    slots = layout.slots
    if modes.sites == 4 and (not modes.step_ns or slots[:, QUADRANT].min(initial=0) >= 0):
        return np.asarray(np.maximum(slots[:, QUADRANT], 0) % 4)
    out = np.zeros(len(slots), dtype=np.int64)
    for socket in np.unique(slots[:, SOCKET]):
        in_socket = slots[:, SOCKET] == socket
        ccds, order = np.unique(slots[in_socket, CCD], return_inverse=True)
        out[in_socket] = order.reshape(-1) * modes.sites // len(ccds)
    return out


def _drawn_sites(modes: Modes, lines: Ints, rng: np.random.Generator) -> Ints:
    """The site of each line of a pool, by its number there."""
    if not modes.step_ns:
        return np.zeros(len(lines), dtype=np.int64)
    if modes.hashing == "random":
        return rng.choice(modes.sites, len(lines), p=modes.shares or None)
    page, low = lines >> _PAGE_BITS, lines & ((1 << _PAGE_BITS) - 1)
    of_page = rng.integers(0, 12, POOL_LINES >> _PAGE_BITS)[page]  # the rest of the physical address
    first, second = (np.bitwise_count(low & mask).astype(np.int64) for mask in _MASKS)
    if modes.hashing == "parity":
        return np.asarray(((first + of_page) % 2 + 2 * ((second + of_page // 2) % 2)) % modes.sites)
    return np.asarray(((low + of_page) % 3 + 3 * ((first + of_page) % 2)) % modes.sites)


@dataclass(frozen=True)
class LinePool:
    """The lines of one home in a run: indices in the pool (n), the `site` of each (n), and those `drawn` (pass, lines).

    `own` is the share by which each is slower for all pairs (n).
    """

    lines: Ints
    site: Ints
    own: Floats
    drawn: Ints
    modes: Modes

    @cached_property
    def clusters(self) -> int:
        """How many clusters the kernel finds."""
        return len(np.unique(self.site)) if self.modes.step_ns and self.modes.clustered else 1

    @cached_property
    def cluster(self) -> Ints:
        """The cluster of each line (n), the largest being 0."""
        if self.clusters == 1:
            return np.zeros(len(self.lines), dtype=np.int64)
        sizes = np.bincount(self.site, minlength=self.modes.sites)
        rank = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")
        return np.asarray(rank[self.site], dtype=np.int64)


def pool(modes: Modes, line_sd: float, lines: int, passes: int, rng: np.random.Generator) -> LinePool:
    """Lines drawn anew; `line_sd` is the relative SD of a line that all pairs see alike, `lines` those of a pass."""
    count = max(CENSUS_LINES, 2 * lines)
    numbers = rng.permutation(POOL_LINES)[:count]
    site = _drawn_sites(modes, numbers, rng)
    own = line_sd * rng.standard_normal(count)
    where = LinePool(numbers, site, own, np.empty((0, lines), dtype=np.int64), modes)
    cluster, clusters = where.cluster, where.clusters
    drawn = np.empty((passes, lines), dtype=np.int64)
    for p in range(passes):
        order = rng.permutation(count)
        turns = np.empty(count)
        for c in range(clusters):  # the first of each cluster, then the second of each, ...
            members = order[cluster[order] == c]
            turns[members] = np.arange(len(members)) + c / clusters
        drawn[p] = np.argsort(turns, kind="stable")[:lines]
    return LinePool(numbers, site, own, drawn, modes)


def ways(layout: Layout, base_ns: Floats, modes: Modes, socket: int) -> tuple[Ints, pd.DataFrame]:
    """The way of each of a layout's pairs to the lines of a socket (p), and a table of the ways.

    Pairs take `base_ns` (p). A way has the sites of its ends (`a`, `b`) and the mean of its pairs (`base_ns`). An end
    in another socket has the number after the last site: it is equally far from all lines.
    """
    sockets = np.unique(layout.slots[:, SOCKET])
    here = layout.slots[:, SOCKET] == sockets[min(socket, len(sockets) - 1)]
    ends = np.where(here, sites_of(layout, modes), modes.sites)[layout.pairs]
    cross = layout.slots[layout.pairs[:, 0], SOCKET] != layout.slots[layout.pairs[:, 1], SOCKET]
    keys = (ends[:, 0] * (modes.sites + 1) + ends[:, 1]) * 2 + cross
    counts = np.bincount(keys)
    used = np.flatnonzero(counts)
    totals = np.bincount(keys, weights=base_ns)[used] / counts[used]
    first, second = np.divmod(used // 2, modes.sites + 1)
    return (np.cumsum(counts > 0) - 1)[keys], pd.DataFrame({"a": first, "b": second, "base_ns": totals})


def line_ns(pool: LinePool, on: pd.DataFrame, run_pass: int) -> Floats:
    """Extra latency of each line of a pass by the path `on` the die, ns (way, line), around the mean of all sites."""
    drawn, a, b = pool.drawn[run_pass], on["a"].to_numpy(), on["b"].to_numpy()
    none = np.zeros(pool.modes.sites)
    steps, slow = np.vstack([pool.modes.steps - pool.modes.steps.mean(), none]), np.vstack([pool.modes.slow_ns, none])
    steps, slow = (ways[a][:, pool.site[drawn]] + ways[b][:, pool.site[drawn]] for ways in (steps, slow))
    return np.asarray(pool.modes.step_ns * steps + slow + on["base_ns"].to_numpy()[:, None] * pool.own[drawn])


def figure(pool: LinePool, run_pass: int, values: Floats) -> Floats:
    """The kernel's value of `values` (..., line): the mean over clusters of the median over their lines."""
    if pool.clusters == 1:
        return np.asarray(np.median(values, axis=-1))
    cluster = pool.cluster[pool.drawn[run_pass]]
    return np.asarray(np.mean([np.median(values[..., cluster == c], axis=-1) for c in np.unique(cluster)], axis=0))


def medians(pool: LinePool, run_pass: int, values: Floats) -> Floats:
    """The median of each cluster's lines (..., cluster)."""
    cluster = pool.cluster[pool.drawn[run_pass]]
    return np.stack([np.median(values[..., cluster == c], axis=-1) for c in range(pool.clusters)], axis=-1)


def records(
    pool: LinePool, home: int, socket: int, layout: Layout, cpus: Sequence[int], rng: np.random.Generator
) -> Iterator[str]:
    """The records `census`, from one CPU of each CCX, and `clusters` of a home on a socket, as the kernel's."""
    first = np.unique(layout.slots[:, : CCX + 1], axis=0, return_index=True)[1]
    record: dict[str, object] = {"record": "clusters", "home": home, "address_bits": 12, "clusters": pool.clusters}
    if len(first) == 1 or not pool.modes.clustered:
        record["reason"] = "all CPUs share one L3" if len(first) == 1 else "not asked for"
        yield json.dumps(record)
        return
    sites = sites_of(layout, pool.modes)
    for slot in sorted(first, key=lambda slot: cpus[slot]):
        here = layout.slots[slot, SOCKET] == np.unique(layout.slots[:, SOCKET])[socket]
        steps = pool.modes.steps[sites[slot], pool.site] if here else np.full(len(pool.site), pool.modes.steps.mean())
        slow = pool.modes.slow_ns[sites[slot], pool.site] * here
        far = _FAR_NS * (not here)
        truth = _RELOAD_NS + far + pool.modes.step_ns * steps + slow + _LINE_NS * rng.standard_normal(len(pool.site))
        halves = truth + _HALF_NS * rng.standard_normal((2, len(pool.site)))
        reload_ns = ",".join(f"[{','.join(f'{ns:.1f}' for ns in half)}]" for half in halves.tolist())
        yield (
            f'{{"record":"census","home":{home},"cpu":{cpus[slot]},"reload_ns":[{reload_ns}],'
            f'"agreement":{np.corrcoef(halves[0], halves[1])[0, 1]:.4f}}}'
        )
    if pool.clusters == 1:
        record["reason"] = "nothing separates"
    else:
        record |= {"separation": 9.0, "agreement": 1.0}
    sizes = np.bincount(pool.cluster, minlength=pool.clusters)
    yield json.dumps(
        {**record, "sizes": sizes.tolist(), "lines": pool.lines.tolist(), "cluster": pool.cluster.tolist()}
    )
