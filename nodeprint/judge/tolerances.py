"""The tolerance of everything that is compared: how far it may be from its peers, or from itself earlier, before it
matters. Judge, comparisons over time and pages ask here, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import SAME_CCX
from nodeprint.data.places.measured import Key, Measured
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.reduction import Matrix
from nodeprint.judge.terms import Terms
from nodeprint.settings.measurements import Model

Floats = npt.NDArray[np.float64]


def of_matrix(matrix: Matrix, rules: Acceptance) -> Floats:
    """The tolerance of each component of a measurement, on the scale of its model."""
    quantity = matrix.measured
    if not quantity.of_pairs:
        return np.full(len(matrix.terms.terms), of_cells(quantity.model, rules))
    return of_pairs(matrix.terms, matrix.levels, rules, quantity.tick_ns)


def of_pairs(terms: Terms, levels: Floats, rules: Acceptance, tick_ns: float = 0.0) -> Floats:
    """Relative tolerances of terms of pairs (component) at their `levels` in ns. `tick_ns` is the resolution of the
    latency."""
    percent = [rules.tolerance(term.name) for term in terms.terms]
    harvested = terms.layout.harvested
    least = [
        _least_ns(
            term.component_type, rules, tick_ns, harvested=harvested and _inside_ccx(term.component_type, term.where)
        )
        for term in terms.terms
    ]
    return np.asarray(np.maximum(percent, np.array(least) / levels), dtype=np.float64)


def of_whole(quantity: Measured, rules: Acceptance) -> float:
    """The relative tolerance of all points of a measurement together."""
    return rules.tolerance("class") if quantity.of_pairs else rules.cell(quantity.model.term).tolerance


def of_cells(model: Model, rules: Acceptance) -> float:
    """The tolerance of points other than pairs, on the scale of their model. For a rate, 10% is a ratio of 1.1."""
    accepted = rules.cell(model.term).tolerance
    return {"linear": accepted, "log": float(np.log1p(accepted)), "share": float(np.log(2))}[model.scale]


def _inside_ccx(component_type: str, where: Mapping[str, Key]) -> bool:
    """Whether a term is a mean over pairs inside one CCX, or inside all of them."""
    return component_type == "ccx" or where.get("class") == SAME_CCX


def _least_ns(component_type: str, rules: Acceptance, tick_ns: float, *, harvested: bool) -> float:
    """The least tolerance of a component type, in ns: the larger of the value in acceptance.yaml and some ticks of the
    clock. In a CCX with cores fused off (`harvested`), it is at least the natural difference of such CCXs."""
    least = max(rules.least_ns(component_type), rules.tolerances.clock_ticks * tick_ns)
    return max(least, rules.tolerances.harvested_ccx_ns) if harvested else least
