"""Nodes that are compared with no other: what they have in every component stands in the table all the same, so that it
can be compared with what they have at another time."""

from __future__ import annotations

import numpy as np

from nodeprint.judge.deviations import SUSPECT, Deviations, campaign_tail, job_tail, spreads, table
from nodeprint.judge.population import Population
from nodeprint.judge.reduction import Matrix
from nodeprint.stats.peers import Peers


def tables(population: Population) -> tuple[Deviations, ...]:
    """Every measurement and home of each measured node that is in no group, by its valid jobs.

    A node has no difference from peers, and no interval of one: in no component it is inside its tolerance, or outside.
    Of shares of the time the difference is that from no lost time, as these are compared on the scale of their
    tolerance.
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
