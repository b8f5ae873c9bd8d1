"""I/O dies made apart from nodeprint's simulator: messages over routers, and rougher noise.

A hop is half of what three messages take in both directions: from a core to the line's memory controller, from there to
the core that has the line, and from it to the first. Routers are joined by links that all differ a little. What
nodeprint's simulator does not have: heavy tails of all noise, passes that depend on the one before, lines that some
CCDs reach slower whatever their place, a fabric clock that drifts, and CCDs at their sites in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint.machine.topology.model import Topology
from nodeprint_addons.iodie.data import pass_over_lines

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Links between routers by the name of a die.
LINKS: dict[str, tuple[tuple[int, int], ...]] = {
    "2x2": ((0, 1), (2, 3), (0, 2), (1, 3)),
    "2x3": ((0, 1), (2, 3), (4, 5), (0, 2), (2, 4), (1, 3), (3, 5)),
    "ring6": ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)),
    "crossbar4": tuple((a, b) for a in range(4) for b in range(a)),
    "none": (),
}
SITES = {"2x2": 4, "2x3": 6, "ring6": 6, "crossbar4": 4, "none": 4}


@dataclass(frozen=True)
class Noise:
    """Standard deviations: of a line for all pairs, of a line for a pair, of a visit (shares of a hop), of a line for
    a CCD (ns), of a pair in a pass (share) with the correlation of neighboring passes, of links (share); the drift of
    the fabric clock over a run (share); degrees of freedom of all tails."""

    line: float = 0.022
    line_pair: float = 0.022
    visit: float = 0.01
    line_ccd_ns: float = 0.2
    pair: float = 0.01
    rho: float = 0.6
    link: float = 0.03
    drift: float = 0.005
    tail: float = 4.0


@dataclass(frozen=True)
class Made:
    """A node: its passes, the site of each CCD in order, the site of each line by run and pass, and what the way from
    site to site truly adds (site, site)."""

    passes: list[xr.Dataset]
    site_of_ccd: Ints
    site_of_line: dict[tuple[str, int], Ints]
    apart_ns: Floats


def make(
    topology: Topology,
    die: str,
    hop_ns: float,
    rng: np.random.Generator,
    *,
    runs: int = 2,
    passes: int = 3,
    lines: int = 32,
    noise: Noise | None = None,
    slow_port: tuple[int, float] | None = None,
    clusters: bool = False,
    design: int | None = None,
    ccds_at: Sequence[int] = (),
    shares: Sequence[float] = (),
) -> Made:
    """A node of one socket. `clusters` gives lines that live in two groups which each CCD reaches at random, without
    any geometry; `slow_port` adds ns to the hops of a CCD, by its order. Nodes of one `design` have their CCDs at the
    same sites. CCDs are at the sites `ccds_at` and lines at each site by `shares`; without them, at all sites alike."""
    noise = noise or Noise()

    def rough(*shape: int) -> Floats:
        return np.asarray(rng.standard_t(noise.tail, shape) * np.sqrt((noise.tail - 2) / noise.tail))

    ccds = sorted({cpu.ccd for cpu in topology.cpus if cpu.ccd is not None})
    cpus = np.array([cpu.cpu for cpu in topology.cpus])
    ccd = np.array([ccds.index(cpu.ccd) for cpu in topology.cpus if cpu.ccd is not None])
    ccx = np.array([-1 if cpu.ccx is None else cpu.ccx for cpu in topology.cpus])
    sites = SITES[die]
    apart = _shortest(die, sites, hop_ns * (1 + noise.link * rough(len(LINKS[die]))))
    order = rng if design is None else np.random.default_rng(design)
    with_ccds = np.array(ccds_at or range(sites))
    site_of_ccd = order.permutation(with_ccds[np.arange(len(ccds)) % len(with_ccds)])
    first, second = np.triu_indices(len(cpus), 1)
    leave = ccx[first] != ccx[second]
    first, second = first[leave], second[leave]
    # chips are alike up to these: a port far out in a tail would be a slow port
    core = 12 + 0.25 * rng.standard_normal(len(cpus))
    port = 20 + 0.3 * rng.standard_normal(len(ccds))
    if slow_port is not None:
        port[slow_port[0]] += slow_port[1]
    a, b = ccd[first], ccd[second]
    fixed = core[first] + core[second] + port[a] + port[b] + 45
    way = apart[site_of_ccd[a], site_of_ccd[b]]
    by_chance = 3 * rough(len(ccds), 2) * clusters
    out, truth = [], {}
    for run in range(1, runs + 1):
        pool = rng.permutation(1 << 18)
        home = rng.choice(sites, passes * lines, p=shares) if shares else rng.integers(sites, size=passes * lines)
        of_ccd = noise.line_ccd_ns * rough(len(ccds), passes * lines) + by_chance[:, home % 2]
        own = noise.line * rough(passes * lines)
        stays = np.zeros(len(first))
        for p in range(passes):
            own_lines = slice(p * lines, (p + 1) * lines)
            at = home[own_lines]
            fabric = 1 + noise.drift * (p / max(passes - 1, 1) - 0.5)
            legs = way[:, None] + apart[site_of_ccd[a]][:, at] + apart[site_of_ccd[b]][:, at]
            ns = fixed[:, None] + fabric * legs + of_ccd[a, own_lines] + of_ccd[b, own_lines]
            fresh = noise.pair * rough(len(first))
            stays = fresh if p == 0 else noise.rho * stays + np.sqrt(1 - noise.rho**2) * fresh
            shape = (len(first), lines)
            factor = 1 + own[own_lines] + stays[:, None] + noise.line_pair * rough(*shape) + noise.visit * rough(*shape)
            factor += 0.4 * (rng.random((len(first), 1)) < 0.002)
            name = f"job1/run{run}"
            ghz = np.full((len(first), 2), 3.4)
            set_ = pool[own_lines]
            out.append(
                pass_over_lines(name, p, topology.numa_nodes[0].node, cpus[first], cpus[second], set_, ns * factor, ghz)
            )
            truth[name, p] = at
    return Made(out, site_of_ccd, truth, apart)


def _shortest(die: str, sites: int, costs: Floats) -> Floats:
    """Shortest ways over the links (Floyd 1962)."""
    apart = np.where(np.eye(sites) > 0, 0.0, np.inf)
    for (p, q), cost in zip(LINKS[die], costs, strict=True):
        apart[p, q] = apart[q, p] = cost
    for via in range(sites):
        apart = np.minimum(apart, apart[:, [via]] + apart[[via]])
    return np.where(np.isfinite(apart), apart, 0.0)
