"""Nodes that are compared with no other: what they have in every component stands in the table all the same, so that it
can be compared with what they have at another time."""

from __future__ import annotations

import numpy as np

from nodeprint.judge import tolerances
from nodeprint.judge.deviations import SUSPECT, Deviations, PeerReference, campaign_tail, job_tail, spreads, table
from nodeprint.judge.population import Population
from nodeprint.judge.reduction import Matrix, matrix


def tables(population: Population) -> tuple[Deviations, ...]:
    """Every measurement and home of each measured node that is in no group, by its valid jobs.

    A node has no difference from peers, and no interval of one: in no component it is inside its tolerance, or outside.
    Of shares of the time the difference is that from no lost time, as these are compared on the scale of their
    tolerance.
    """
    nodes = population.fleet.nodes
    alone = [i for i, node in enumerate(nodes) if i not in population.group_of and not node.unusable]
    of_nodes = (
        matrix(component, np.array([i])) for i in alone for component in population.components if component.terms.terms
    )
    measured = (of_node for of_node in of_nodes if of_node is not None and np.isfinite(of_node.values).any())
    return tuple(_table(of_node, population) for of_node in measured)


def _table(of_node: Matrix, population: Population) -> Deviations:
    rules = population.rules
    shape = 1, len(of_node.terms.terms)
    unknown, none = np.full(shape, np.nan), np.zeros(shape)
    center = none if of_node.terms.share else unknown
    reference = PeerReference(
        center, np.zeros(1), np.zeros(1, dtype=np.int64), unknown, none, none, none, none, np.ones(shape)
    )
    tails = (
        job_tail(of_node.terms, SUSPECT, population.compared_jobs),
        campaign_tail(rules.false_alarm, population.tests),
    )
    referenced = np.ones(shape[1], dtype=np.bool_)
    return table(of_node, spreads(of_node, rules), tolerances.of_matrix(of_node, rules), reference, referenced, *tails)
