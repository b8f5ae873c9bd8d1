"""The terms of a quantity, each a row of weights over its measurement points.

The value of a term is the weighted sum of the points' residuals. For pairs of CPUs, a term is a contrast
(`judge.pairs`). For other points, it is a mean over those with a label in common (`judge.sets`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints, Layout
from nodeprint.data.places.measured import Key

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.floating]

_NONE: Ints = np.zeros(0, dtype=np.int64)


class ComponentType(msgspec.Struct, frozen=True):
    """A component type of terms of pairs. `term` is the name of its findings, and of its tolerance in percent in
    acceptance.yaml. `tolerance_ns` is the key there of its tolerance in ns. `scope` is the set of pairs of a core."""

    term: str
    tolerance_ns: str = "least_ns"
    scope: str = ""


#: Component types of terms of pairs, from coarse to fine.
COMPONENT_TYPES: Mapping[str, ComponentType] = {
    "class": ComponentType("class"),
    "quadrant": ComponentType("quadrant"),
    "link": ComponentType("link"),
    "ccd": ComponentType("ccd"),
    "block": ComponentType("block"),
    "ccx": ComponentType("block", "ccx_ns"),
    "core-in": ComponentType("core", "core_in_ccx_ns", scope="inside"),
    "core-near": ComponentType("core", scope="near"),
    "core-far": ComponentType("core", scope="across"),
}


def scoped(component_type: str, where: Mapping[str, Key]) -> Mapping[str, Key]:
    """A place with the pairs that a component type of core terms counts: inside the CCX, near or across."""
    scope = COMPONENT_TYPES[component_type].scope if component_type in COMPONENT_TYPES else ""
    return {**where, scope: 1} if scope else where


class Term(msgspec.Struct, frozen=True):
    """One term: its component type and the name of its findings, where it is, and the places that it covers and is
    compared with."""

    component_type: str
    name: str
    where: Mapping[str, Key]
    covers: Ints
    against: Ints


class Cause(msgspec.Struct, frozen=True):
    """A cause: the name and place of its component or components, their numbers (`members`), and all places that it
    `covers`. A possible cause has no `head`.

    The `head` is the component with the largest deviation, or of cells the widest set that is outside. The `finer`
    components deviate with it."""

    term: str
    where: Mapping[str, Key]
    members: Ints
    covers: Ints
    head: int = -1
    finer: Ints = _NONE


class Terms(msgspec.Struct, frozen=True, dict=True):
    """The terms of a layout. `contrast` (term, place) gives every term's value from residuals.

    `component_types` are from coarse to fine, and `component_type` (term) is each term's number among them. `pool`
    (term) is a number for the terms that share a scale, and `pools` maps it to their component type. `unwitnessed` are
    component types of the layout that no term examines: with any of these, no node is SAME. `scale` is the model's
    scale, on which values are compared with their template. For shares of the time (`share`), a term is the median of
    its points, and only an increase is a deviation. `floor` is the share that matters.
    """

    layout: Layout
    terms: tuple[Term, ...]
    contrast: npt.NDArray[np.floating]
    composites: tuple[Cause, ...]
    component_types: tuple[str, ...]
    component_type: Ints
    pool: Ints
    pools: Mapping[int, str]
    unwitnessed: tuple[str, ...]
    scale: str = "linear"
    floor: float = 0.0

    @property
    def share(self) -> bool:
        """Whether values are shares of the time."""
        return self.scale == "share"

    def residual(self, values: Reals, template: Reals) -> Reals:
        """Values (..., place) on the model's scale, from the template; NaN if they have none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.scale == "linear":
                out = values / template
                out -= 1
                return out
            if self.share:  # nearly linear below the floor, where nothing matters; far above it a logarithm
                return np.asarray(np.log1p(np.maximum(values, 0) / self.floor))
            out = np.log(values / template)
        return np.where(np.isfinite(out), out, np.nan)

    def relative(self, effect: float, peers: float = 0.0) -> float:
        """An effect on the model's scale as a share of the value; of shares of the time, the difference from the
        `peers`."""
        if self.scale == "linear":
            return float(effect)
        return float(np.expm1(effect)) * (self.floor + peers if self.share else 1.0)

    def allowed(self, tolerance: float, effect: float) -> float:
        """A tolerance as a share of the value in the direction of an effect. For a rate, 10% is a ratio of 1.1: 10%
        higher or 9.1% lower."""
        return abs(self.relative(float(np.copysign(tolerance, effect))))

    @cached_property
    def by_component_type(self) -> list[tuple[int, Ints]]:
        """The numbers of the component types that have terms, each with the numbers of these."""
        return [
            (number, np.flatnonzero(self.component_type == number))
            for number in np.unique(self.component_type).tolist()
        ]

    def indices(self, component_type: str) -> Ints:
        """Numbers of the terms of a component type, empty for an unknown type."""
        number = self.component_types.index(component_type) if component_type in self.component_types else -1
        return np.flatnonzero(self.component_type == number).astype(np.int64)

    def values(self, residual: npt.NDArray[np.floating]) -> Floats:
        """Every term's value (..., term) of residuals (..., place) without gaps."""
        out = np.asarray(residual.astype(self.contrast.dtype, copy=False) @ self.contrast.T, dtype=np.float64)
        return self.medians(out, residual)

    def medians(self, values: Floats, residual: npt.NDArray[np.floating]) -> Floats:
        """`values`, but medians for shares of the time: OS noise on some CPUs is not a shift of all."""
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # what no place has stays NaN
            for number, term in enumerate(self.terms if self.share else ()):
                values[..., number] = np.nanmedian(residual[..., term.covers], axis=-1)
        return values
