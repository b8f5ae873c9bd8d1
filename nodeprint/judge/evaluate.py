"""The evaluation of nodes of one kind: every matrix by itself, then what is known of each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nodeprint.judge import margins
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.confirmation import ShownCause, Unstable, instability, shown
from nodeprint.judge.evidence import Evidence, gather
from nodeprint.judge.margins import Margin
from nodeprint.judge.reduction import Matrix, Reduced
from nodeprint.judge.thresholds import FamilySpread
from nodeprint.layout import Ints

Floats = npt.NDArray[np.float64]

#: The matrices that share the rate of false alarms: pairs of CPUs, and all others.
Screened = Sequence[tuple[Reduced, int, Matrix]]


@dataclass
class NodeEvidence:
    """What is known of one node within its kind: causes, what is unstable and in which jobs, margins by name.

    `runs` are those of pairs, `untested` is whether a term of pairs has too few of them.
    """

    shown: list[ShownCause] = field(default_factory=list)
    unstable: list[Unstable] = field(default_factory=list)
    unstable_jobs: set[int] = field(default_factory=set)
    runs: int = 0
    margins: dict[str, Margin] = field(default_factory=dict)
    untested: bool = False

    def of(self, *, pairs: bool) -> dict[str, Margin]:
        """Its margins of pairs, or of all others."""
        return {name: one for name, one in self.margins.items() if one.matrix.quantity.of_pairs == pairs}


@dataclass(frozen=True)
class KindResult:
    """A kind's evidence by node, and what it could have found: detection limits and bounds by family or term. Without
    anything where there is nothing to compare with."""

    evidence: Sequence[Evidence] = ()
    by_node: Mapping[int, NodeEvidence] = field(default_factory=dict)
    smallest: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, float] = field(default_factory=dict)
    spreads: Mapping[str, FamilySpread] = field(default_factory=dict)
    wide: Mapping[str, float] = field(default_factory=dict)

    @property
    def pairs(self) -> list[Evidence]:
        """Of pairs of CPUs."""
        return [one for one in self.evidence if one.matrix.quantity.of_pairs]

    @property
    def others(self) -> list[Evidence]:
        """Of all else."""
        return [one for one in self.evidence if not one.matrix.quantity.of_pairs]


def tests_of(reduced: Sequence[Reduced]) -> int:
    """How many tests a node takes: terms, and the spread of every core over passes."""
    return sum(len(part.terms.terms) + _cores(one) for one in reduced for part in one.parts)


def families_of(reduced: Sequence[Reduced], *, pairs: bool) -> int:
    """Families of terms over all matrices of pairs, or of all others, the spread over passes counted as one."""
    mine = [one for one in reduced if one.quantity.of_pairs == pairs]
    return sum(len(np.unique(part.terms.pool)) + (_cores(one) > 0) for one in mine for part in one.parts)


def _cores(one: Reduced) -> int:
    return one.wobble.shape[2] if one.quantity.values.shape[1] > 1 else 0


def evaluate(screened: Screened, nodes: Ints, rules: Acceptance, alpha: Mapping[bool, float]) -> KindResult:
    """Judge the nodes of one kind, two or more, with false rate `alpha` a node and family of a matrix, of pairs (True)
    and of others. `screened` from `evidence.screen`."""
    evidence = [
        gather(reduced, number, matrix, rules, alpha[matrix.quantity.of_pairs]) for reduced, number, matrix in screened
    ]
    by_node = {int(node): NodeEvidence() for node in nodes}
    for one in evidence:
        found = shown(one)
        for i, number in enumerate(one.matrix.nodes.tolist()):
            node = by_node[number]
            node.shown += found[number]
            unstable_jobs, unstable = instability(one, number)
            node.unstable_jobs |= unstable_jobs
            node.unstable += unstable
            node.margins = margins.worst([node.margins, margins.equivalence(one, number)])
            if one.matrix.quantity.of_pairs:
                finite = np.isfinite(one.matrix.values[i])
                node.runs = max(node.runs, int(finite.any(axis=1).sum()))
                node.untested |= not bool(finite.any(axis=0).all())
    return KindResult(evidence, by_node, *margins.detection_limits(evidence), *margins.spreads(evidence))
