"""Tables of nodes without peers. Their values are in the table, for comparisons with other times."""

from __future__ import annotations

import numpy as np

from nodeprint.judge.deviations import SUSPECT, Deviations, campaign_tail, job_tail, spreads, table
from nodeprint.judge.population import Population
from nodeprint.judge.reduction import Matrix
from nodeprint.stats.peers import Peers


def tables(population: Population) -> tuple[Deviations, ...]:
    """Every measurement and home of each measured node without a group, by its valid jobs.

    Such a node has no difference from peers and no interval, so no component is inside or outside its tolerance. The
    difference of shares of the time is relative to zero, as the tolerance applies on that scale.
    """
    nodes = population.fleet.nodes
    alone = [i for i, node in enumerate(nodes) if i not in population.group_of and not node.unusable]
    return tuple(_table(of_node, population) for i in alone for of_node in population.each_matrix(np.array([i])))


def _table(of_node: Matrix, population: Population) -> Deviations:
    rules = population.rules
    shape = 1, len(of_node.terms.terms)
    unknown, none = np.full(shape, np.nan), np.zeros(shape)
    center = none if of_node.terms.share else unknown
    reference = Peers(center, np.zeros(1), unknown, np.ones(shape), none, none, none, np.zeros(1))
    tails = (
        job_tail(of_node.terms, SUSPECT, population.compared_jobs),
        campaign_tail(rules.false_alarm, population.tests),
    )
    referenced = np.ones(shape[1], dtype=np.bool_)
    return table(spreads(of_node, rules), reference, referenced, *tails)
