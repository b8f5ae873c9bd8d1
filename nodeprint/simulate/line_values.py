"""The value of each line of a simulated run, as records of `--detail` have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nodeprint.simulate import lines, silicon
from nodeprint.simulate.plan import Plan
from nodeprint.simulate.simulated_node import NodePlan


def line_values(
    plan: Plan,
    node: NodePlan,
    pools: Sequence[lines.LinePool],
    home: npt.NDArray[np.int64],
    values: npt.NDArray[np.float32],
    run_pass: int,
    rng: np.random.Generator,
) -> silicon.Floats:
    """Core-to-core latency of each pair on each line of a pass (pair, line).

    The pair's value is that of its lines' clusters.
    """
    out = np.empty((len(values), plan.spread.lines))
    over = np.asarray(values, dtype=np.float64)
    if not node.path.in_ccx.all():  # the mean of a path over the die excludes pairs inside a CCX
        over = np.where(node.path.in_ccx, over[~node.path.in_ccx].mean(), over)
    for socket, pool in enumerate(pools):
        way_of, on = lines.ways(node.layout, over, pool.modes, socket)
        at_home = np.flatnonzero(home == socket)
        added = lines.line_ns(pool, on, run_pass)[way_of[at_home]]
        added[node.path.in_ccx[at_home]] = 0
        own = plan.spread.line * np.sqrt(0.5) * values[at_home, None] * rng.standard_normal(added.shape)
        each = values[at_home, None] + added + own
        out[at_home] = each + (values[at_home] - lines.figure(pool, run_pass, each))[:, None]
    return out


def line_texts(
    pools: Sequence[lines.LinePool], home: npt.NDArray[np.int64], each: silicon.Floats, run_pass: int
) -> list[str]:
    """What `--detail` adds to the record of each pair."""
    out = [""] * len(each)
    for socket, pool in enumerate(pools):
        at_home = np.flatnonzero(home == socket)
        clusters = lines.medians(pool, run_pass, each[at_home])
        for i, of_lines, of_clusters in zip(at_home.tolist(), each[at_home].tolist(), clusters.tolist(), strict=True):
            out[i] = (
                f',"line_ns":[{",".join(f"{ns:.2f}" for ns in of_lines)}]'
                f',"cluster_ns":[{",".join(f"{ns:.3f}" for ns in of_clusters)}]'
            )
    return out
