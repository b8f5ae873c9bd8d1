"""Memory, caches, clock and jitter of a simulated node: cells as the kernels write them."""

from __future__ import annotations

from functools import partial

import numpy as np

from nodeprint.simulate import load_cells, memory_cells, system_cells
from nodeprint.simulate.drawn_run import DrawnRun, with_noise
from nodeprint.simulate.simulated_node import NodeRun

#: Measurements that `draw` returns. They share one model of the chip: a slow clock affects all of them. A single value
#: in a kernel's measurements.yaml cannot describe them.
MEASUREMENTS = (
    "chase-latency",
    "chase-levels",
    "jitter-detours",
    "clock-together",
    "bandwidth-nodes",
    "bandwidth-ccx",
    "bandwidth-machine",
    "bandwidth-ladder",
    "load-alone",
    "load-ladder",
    "load-together",
    "coherence-loaded",
    *system_cells.MEASUREMENTS,
)


def draw(of: NodeRun) -> list[DrawnRun]:
    """One run of each of `MEASUREMENTS`, in their order."""
    rng = np.random.default_rng([*of.seeds, 7])
    measure = partial(with_noise, rng, of.passes)
    # in this order, as all take from one stream of random numbers: with another the same seed gives another fleet
    lost = load_cells.lost_time(of, rng)
    drawn = [load_cells.clocks(of, lost, measure)]
    drawn += memory_cells.chases(of, measure)
    drawn += memory_cells.bandwidths(of, measure)
    drawn.append(load_cells.hops_beside_load(of, measure))
    drawn += load_cells.loads(of, measure)
    drawn.append(load_cells.jitter(of, lost))
    drawn.append(memory_cells.ladder(of, measure))  # the newest
    drawn += system_cells.draw(of)
    return sorted(drawn, key=lambda drawn_run: MEASUREMENTS.index(drawn_run.measurement))
