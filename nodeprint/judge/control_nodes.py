"""The nodes that a recheck measures: those that a further job would decide, and random control nodes."""

from __future__ import annotations

import random
from collections.abc import Mapping

from nodeprint.judge.population import Population
from nodeprint.judge.verdict import NodeVerdict
from nodeprint.settings.config_file import MOST_JOBS

#: Number of nodes without a finding that have two jobs after a recheck. Compared with a known variance between jobs, an
#: interval is a fifth wider with six degrees of freedom, and nearly twice as wide with two.
CONTROLS = 6
#: Minimum number of control nodes in each recheck, which show the shift of all nodes since the first round.
FEWEST = 3


def recheck(population: Population, nodes: Mapping[str, NodeVerdict]) -> tuple[str, ...]:
    """The names of the nodes to remeasure, in order.

    Control nodes are drawn at random from the others of the same configuration, seeded by the campaign's name. A choice
    by results or by neighborhood would bias the variance between jobs, which is estimated from them.
    """
    names = [node.name for node in population.fleet.nodes]
    chosen: set[str] = set()
    for configuration in population.configurations:
        members = configuration.tolist()
        again = [i for i in members if nodes[names[i]].outcome.entry.again and len(population.jobs(i)) < MOST_JOBS]
        calm = [i for i in members if not nodes[names[i]].counted and i in population.group_of and i not in again]
        if not again:
            continue
        measured_twice = sum(len(population.jobs(i)) > 1 for i in calm)
        fresh = [i for i in calm if len(population.jobs(i)) < MOST_JOBS]
        count = min(max(CONTROLS - measured_twice, FEWEST), len(fresh))
        drawn = random.Random(f"{population.fleet.campaign} {len(chosen)}").sample(sorted(fresh), count)
        chosen |= {names[i] for i in (*again, *drawn)}
    return tuple(sorted(chosen))
