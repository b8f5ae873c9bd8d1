"""Findings of all that is no pair of CPUs in words: places, values with units, remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nodeprint import remedies
from nodeprint.curves import explained_by_jitter
from nodeprint.fleet.quantity import Key
from nodeprint.judge.confirmation import STATES, ShownCause, by_cpu
from nodeprint.judge.evidence import Evidence
from nodeprint.packed import PackedNode
from nodeprint.words import places
from nodeprint.words.outcome import SEVERITY, Finding
from nodeprint.words.pair_findings import seen_in
from nodeprint.words.units import said

#: Of causes in one place the first term here is the finding, the others are its evidence: what takes time from a CPU or
#: slows its clock shows in everything that runs there.
_FIRST = ("jitter", "clock", "bandwidth", "numa", "cache")


def findings(shown: Sequence[ShownCause], node: PackedNode, evidence: Sequence[str]) -> dict[str, list[Finding]]:
    """A node's findings by state, one per place."""
    by_state: dict[str, dict[tuple[object, ...], list[Finding]]] = {state: {} for state in STATES}
    for one in sorted(shown, key=lambda one: _FIRST.index(one.cause.term) if one.cause.term in _FIRST else len(_FIRST)):
        told = finding(one, node, evidence)
        by_state[one.state].setdefault(_place(told.where), []).append(told)
    return {
        state: [
            replace(first, evidence=(*first.evidence, *(other.text for other in rest)))
            for first, *rest in by_place.values()
        ]
        for state, by_place in by_state.items()
    }


def _place(where: Mapping[str, Key]) -> tuple[object, ...]:
    """What two findings have in common that are one cause: the core, the memory, or all of it."""
    for key in ("core", "memory_node", "ccx", "ccd", "socket"):
        if key in where:
            return key, where[key]
    return tuple(sorted((key, str(value)) for key, value in where.items()))


def explained(evidence: Sequence[Evidence], i: int) -> str:
    """How far the time that CPUs lost goes with what deviates on them elsewhere; empty where it is unknown."""
    deviations = [(one, by_cpu(one, i)) for one in evidence]
    lost = next((mine for one, mine in deviations if one.matrix.terms.share and mine), {})
    said = []
    for one, elsewhere in deviations:
        both = sorted(set(lost) & set(elsewhere)) if not one.matrix.terms.share else []
        found = explained_by_jitter([lost[cpu] for cpu in both], [abs(elsewhere[cpu]) for cpu in both])
        if np.isfinite(found):
            said.append(f"{found:+.2f} in {one.matrix.name}")
    return f"rank correlation over CPUs of lost time with deviations: {', '.join(said)}" if lost and said else ""


def finding(shown: ShownCause, node: PackedNode, evidence: Sequence[str]) -> Finding:
    """A finding with its place in the node's own numbers."""
    matrix, model, term = shown.matrix, shown.matrix.quantity.model, shown.cause.term
    where = places.place(matrix, shown.cause.where, node)
    effect, low, high = (matrix.scale.relative(size) for size in (shown.effect, *shown.interval))
    worse = (effect > 0) == (model.better == "lower")
    more, less = _SIDES.get(term, ("slow", "fast") if model.better == "lower" else ("fast", "slow"))
    peers, unit = level(shown), matrix.quantity.unit
    if model.scale == "share":
        change = f"loses {effect * 100:.1f} % more of its time than its peers, which lose {peers * 100:.2g} %"
    else:
        change = (
            f"{said(peers * (1 + effect), unit)}, its peers {said(peers, unit)} "
            f"({effect * 100:+.1f} % [{low * 100:.1f} to {high * 100:.1f} %])"
        )
    return Finding(
        id=f"{term}-{more if effect > 0 else less}",
        severity=SEVERITY[shown.state],
        term=term,
        where=where,
        effect=effect,
        effect_ns=effect * peers if unit == "ns" and model.scale != "share" else float("nan"),
        interval=(low, high),
        runs=shown.runs,
        consistent_with=remedies.consistent_with(term) if worse else ("settings that differ from the peers'",),
        evidence=tuple(evidence),
        remedy=remedies.of(term),
        text=f"{matrix.name}, {places.of_labels(where)}: {change}, {seen_in(shown.runs)}",
        measurement=matrix.name,
        constant_in="percent" if model.scale == "log" else "either",
    )


def level(shown: ShownCause) -> float:
    """The peers' value of what deviates, in the measurement's unit."""
    (term,) = shown.cause.members
    return float(np.median(shown.matrix.template[shown.matrix.terms.terms[int(term)].covers]))


#: The two sides of a term that is neither fast nor slow: more and less of it.
_SIDES: Mapping[str, tuple[str, str]] = {"jitter": ("loud", "quiet"), "die-lines": ("many", "few")}
