"""Nodes that are compared with no other: what they have in every part stands in the table all the same, so that it can
be compared with what they have at another time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.confirmation import Series
from nodeprint.judge.deviations import Block, Levels, Template, built, priors, run_means, with_jobs
from nodeprint.judge.population import Population
from nodeprint.judge.reduction import Matrix, Reduced, of_jobs
from nodeprint.stats.runs import run_spread


def series(population: Population, levels: Levels) -> tuple[Series, ...]:
    """The blocks of every measurement and home of each measured node that is in no group, by its valid jobs.

    A node has no difference from peers, and no interval of one: in no part it is inside its bound, or outside. Of
    shares of the time the difference is that from no lost time, as these are compared on the scale of their bound.
    """
    nodes = population.fleet.nodes
    alone = [i for i, node in enumerate(nodes) if i not in population.group_of and not node.unusable]
    return tuple(
        Series(with_jobs(blocks))
        for i in alone
        for reduced in population.reduced
        for number in range(len(reduced.parts))
        if (blocks := tuple(_blocks(i, reduced, number, population.rules, levels)))
    )


def _blocks(i: int, reduced: Reduced, number: int, rules: Acceptance, levels: Levels) -> Iterator[Block]:
    """The node's first, second, ... independent jobs, all relative to the level of the first."""
    part = reduced.parts[number]
    if not part.terms.terms:
        return
    template = np.zeros(part.places.stop - part.places.start) if part.terms.share else None
    for job, jobs in enumerate(reduced.sittings.get(i, ())):
        matrix = of_jobs(reduced, number, np.array([i]), {i: jobs[-1:]}, template)
        if matrix is not None and np.isfinite(matrix.values).any():
            template = matrix.template
            yield _block(matrix, job, rules, levels)


def _block(matrix: Matrix, job: int, rules: Acceptance, levels: Levels) -> Block:
    means, spread = run_means(matrix), run_spread(matrix.values, matrix.terms.pool, priors(matrix, rules).run)
    unknown, none = np.full_like(means, np.nan), np.zeros_like(means)
    template = Template(np.zeros(1, dtype=np.int64), unknown, none, none, none, np.ones_like(means))
    difference = means if matrix.terms.share else unknown
    return built(matrix, job, rules, levels, spread, template, np.zeros(1), difference)
