"""What a quantity is tested for: terms, each a row of weights over its places.

The value of a term is the weighted sum of the places' residuals. Of pairs of CPUs a term is a contrast (`judge.pairs`),
of all other places a mean over those that have a label in common (`judge.sets`).
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


class Family(msgspec.Struct, frozen=True):
    """A family of terms of pairs: the `term` that its findings are called by and its tolerance in percent has in
    acceptance.yaml, the key there of its tolerance in ns, and of cores the pairs that it counts (`scope`)."""

    term: str
    tolerance_ns: str = "least_ns"
    scope: str = ""


#: Families of terms of pairs, from coarse to fine.
FAMILIES: Mapping[str, Family] = {
    "class": Family("class"),
    "quadrant": Family("quadrant"),
    "link": Family("link"),
    "ccd": Family("ccd"),
    "block": Family("block"),
    "ccx": Family("block", "ccx_ns"),
    "core-in": Family("core", "core_in_ccx_ns", scope="inside"),
    "core-near": Family("core", scope="near"),
    "core-far": Family("core", scope="across"),
}


def scoped(family: str, where: Mapping[str, Key]) -> Mapping[str, Key]:
    """A place with the pairs that a family of core terms counts: inside the CCX, near or across."""
    scope = FAMILIES[family].scope if family in FAMILIES else ""
    return {**where, scope: 1} if scope else where


class Term(msgspec.Struct, frozen=True):
    """One term: its family and the name of its findings, where it is, and the places that it covers and is compared
    with."""

    family: str
    name: str
    where: Mapping[str, Key]
    covers: Ints
    against: Ints


class Candidate(msgspec.Struct, frozen=True):
    """What may be one cause: its name, place, the numbers of the terms that it shows in and all places it covers."""

    term: str
    where: Mapping[str, Key]
    members: Ints
    covers: Ints


class Terms(msgspec.Struct, frozen=True, dict=True):
    """The terms of a layout. `contrast` (term x place) gives every term's value from residuals.

    `families` are from coarse to fine, `family` is each term's number among them, `pool` (term) a number for the terms
    that share a scale, `pools` its family's name by number. `unwitnessed` are families whose kind of part is there and
    examined by no term: where there is one, no node is SAME. With `share` values are shares of the time: a term is the
    median of its places, and only more is a deviation.
    """

    layout: Layout
    terms: tuple[Term, ...]
    contrast: npt.NDArray[np.floating]
    composites: tuple[Candidate, ...]
    families: tuple[str, ...]
    family: Ints
    pool: Ints
    pools: Mapping[int, str]
    unwitnessed: tuple[str, ...]
    share: bool = False

    @cached_property
    def by_family(self) -> list[tuple[int, Ints]]:
        """The numbers of the families that have terms, each with the numbers of these."""
        return [(number, np.flatnonzero(self.family == number)) for number in np.unique(self.family).tolist()]

    def indices(self, family: str) -> Ints:
        """Numbers of the terms of a family; none where it is no family of these."""
        number = self.families.index(family) if family in self.families else -1
        return np.flatnonzero(self.family == number).astype(np.int64)

    def values(self, residual: npt.NDArray[np.floating]) -> Floats:
        """Every term's value (..., term) of residuals (..., place) without gaps."""
        out = np.asarray(residual.astype(self.contrast.dtype, copy=False) @ self.contrast.T, dtype=np.float64)
        return self.medians(out, residual)

    def medians(self, values: Floats, residual: npt.NDArray[np.floating]) -> Floats:
        """`values` with those of shares of the time: time taken from some CPUs is no shift of all."""
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # what no place has stays NaN
            for number, term in enumerate(self.terms if self.share else ()):
                values[..., number] = np.nanmedian(residual[..., term.covers], axis=-1)
        return values
