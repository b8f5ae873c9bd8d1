"""In which order nodes are printed: by class, FAIL first, then the worst first in the direction that hurts."""

from __future__ import annotations

import re

from nodeprint.judge.outcome import OUTCOME_OF, FleetOutcome, Outcome, OutcomeClass
from nodeprint.judge.verdict import Finding, NodeVerdict

_CLASSES = list(OutcomeClass)


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts cn2 before cn10."""
    return [
        (0, int(component), "") if component.isdecimal() else (1, 0, component)
        for component in re.split(r"(\d+)", name)
    ]


def class_rank(outcome: Outcome | FleetOutcome) -> tuple[int, int]:
    """A key that sorts outcomes by class, and by rank within a class."""
    return _CLASSES.index(outcome.outcome_class), outcome.rank


def harm(finding: Finding) -> tuple[int, float]:
    """A key that grows with the harm of a finding. Wrong results and other events come first, then limits of the
    contract, then the bad side of a tolerance, by the number of tolerances."""
    if not finding.measurement and not finding.component.term.startswith("fabric-"):
        return 3, 0.0
    if finding.of_limit:
        return 2, abs(finding.effect)
    return int(finding.worse), finding.times_tolerance


def by_harm(node: NodeVerdict) -> list[int]:
    """The numbers (from 1) of a node's findings that count, the worst first. Those that give it its outcome come
    first: of a node that deviates, confirmed findings precede intermittent ones."""

    def key(number: int) -> tuple[bool, tuple[int, float]]:
        finding = node.counted[number - 1]
        return OUTCOME_OF[finding.state] is node.outcome, harm(finding)

    return sorted(range(1, len(node.counted) + 1), key=key, reverse=True)


def worst_finding(node: NodeVerdict) -> Finding | None:
    """The first finding of a node `by_harm`; None without one."""
    return next((node.counted[number - 1] for number in by_harm(node)), None)


def severity(node: NodeVerdict) -> tuple[int, int, float, int]:
    """A key that sorts nodes by class, then by the harm of their worst finding."""
    worst = worst_finding(node)
    kind, size = harm(worst) if worst is not None else (-1, 0.0)
    in_class, rank = class_rank(node.outcome)
    return in_class, -kind, -size, rank
