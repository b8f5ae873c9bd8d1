"""One campaign beside another, node by node, and fields of fingerprints that drift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nodeprint import fingerprint
from nodeprint.distributions import stdtrit
from nodeprint.errors import NodeprintError, printable
from nodeprint.fingerprint import label
from nodeprint.fleet import homes
from nodeprint.fleet.quantity import models
from nodeprint.judge import configuration
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.thresholds import PRIOR_DF, RUN_PRIOR
from nodeprint.packed import PackedNode
from nodeprint.words.outcome import Verdict, some_names
from nodeprint.words.units import said


class Change(msgspec.Struct, frozen=True):
    """A class of pairs, or a row of cells, of one node in two campaigns: medians in `unit`.

    `change` is relative (of a share of the time the difference of the shares); beyond `threshold` it is `changed`.
    """

    node: str
    measurement: str
    home: int
    name: str
    unit: str
    before: float
    after: float
    change: float
    threshold: float
    changed: bool


class _Figure(msgspec.Struct, frozen=True):
    """A median over runs, their number and standard deviation; what is accepted and assumed of them. All but `median`
    are shares of it (of a share of the time that share itself)."""

    unit: str
    median: float
    runs: int
    run_sd: float
    bound: float
    run_prior: float


def compare(first: Verdict | Mapping[str, Any], second: Verdict | Mapping[str, Any], rules: Acceptance) -> list[Change]:
    """Classes of pairs and rows of cells that nodes have in two judged campaigns, node by node.

    One is changed where it moved by more than its bound in `rules` and by more than runs differ by, with the chance of
    a false alarm for all of them together; the spread of runs is pooled over the nodes of both.
    Raises NodeprintError where a verdict does not say how its runs spread.
    """
    before, after = (_figures(v.to_dict() if isinstance(v, Verdict) else v, rules) for v in (first, second))
    kinds = {kind: sorted(set(before.get(kind, ())) & set(nodes)) for kind, nodes in after.items()}
    alpha = rules.false_alarm / max(sum(map(len, kinds.values())), 1)
    out = []
    for (measurement, home, name), nodes in kinds.items():
        old_of, new_of = (of[measurement, home, name] for of in (before, after)) if nodes else ({}, {})
        figures = [*old_of.values(), *new_of.values()]
        degrees = PRIOR_DF + sum(one.runs - 1 for one in figures)
        squares = sum((one.runs - 1) * one.run_sd**2 for one in figures)
        for node in nodes:
            old, new = old_of[node], new_of[node]
            variance = (squares + PRIOR_DF * new.run_prior**2) / degrees * (1 / old.runs + 1 / new.runs)
            threshold = max(old.bound, -float(stdtrit(degrees, alpha / 2)) * variance**0.5)
            change = new.median - old.median if new.unit == "share" else new.median / old.median - 1
            values = new.unit, old.median, new.median, change, threshold
            out.append(Change(node, measurement, home, name, *values, abs(change) > threshold))
    return sorted(out, key=lambda change: change.node)


#: What makes it another machine under the same name; settings of one machine may change.
_MACHINE = ("cpu", "cpu_family", "cpu_model", "cpu_stepping", "sockets", "cores", "cpus", "cores_per_l3")


def machines_apart(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Which nodes of two verdicts (as in verdict.json) are other machines under the same name, and by what; empty where
    none is. Without fingerprints (imported matrices) by how many pairs each class has."""
    found: dict[str, list[str]] = {}
    for name in sorted(set(before["nodes"]) & set(after["nodes"])):
        difference = _other_machine(before["nodes"][name], after["nodes"][name])
        if difference:
            found.setdefault(difference, []).append(name)
    said = "; ".join(f"{some_names(names)}: {difference}" for difference, names in found.items())
    end = "; what follows are differences of two machines, not changes of one"
    return f"the machines differ: {said}{end}" if said else ""


def _other_machine(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    known = [(one.get("fingerprint") or {}) for one in (old, new)]
    keys = [key for key in _MACHINE if all(one.get(key) is not None for one in known)]
    facts = [{label(key): one[key] for key in keys} for one in known]
    if not keys:
        facts = [{f"pairs of {c['name']}": c["pairs"] for c in one.get("classes", ())} for one in (old, new)]
    first, second = facts
    if not first or not second:
        return ""
    for key in dict.fromkeys([*first, *second]):
        values = [printable(str(one.get(key, "none")), 80) for one in facts]
        if values[0] != values[1]:
            return f"{key} {values[0]} before, {values[1]} after"
    return ""


def _figures(verdict: Mapping[str, Any], rules: Acceptance) -> dict[tuple[str, int, str], dict[str, _Figure]]:
    """By measurement, home and name the figures of each node; cells have the home -1."""
    out: dict[tuple[str, int, str], dict[str, _Figure]] = {}
    try:
        for node, told in verdict["nodes"].items():
            for one in told["classes"]:
                median, sd = one["median_ns"], one["run_sd_ns"] or 0.0
                bound = max(rules.bounds["class"], rules.least_ns["class"] / median)
                figure = _Figure("ns", median, one["runs"], sd / median, bound, RUN_PRIOR)
                out.setdefault((one["measurement"], one["home"], one["name"]), {})[node] = figure
            for one in (row for row in told["cells"] if not row["deviates"]):
                limit = rules.cell(models()[one["measurement"]].term)
                share, sd = one["unit"] == "share", one["run_sd"] or 0.0
                relative, prior = (1.0, limit.prior * limit.bound) if share else (one["median"], limit.prior)
                figure = _Figure(one["unit"], one["median"], one["runs"], sd / relative, limit.bound, prior)
                out.setdefault((one["measurement"], -1, one["name"]), {})[node] = figure
    except (KeyError, TypeError, ZeroDivisionError, AttributeError) as error:
        advice = "judge both campaigns again with this nodeprint"
        raise NodeprintError(
            f"a verdict.json is damaged or of another version of nodeprint ({error!r})", advice=advice
        ) from error
    return out


def as_text(changes: Sequence[Change], rules: Acceptance) -> str:
    """For a terminal: what changed, a line each, how much did not, and by which rule."""
    moved = [change for change in changes if change.changed]
    lines = []
    for c in moved:
        place = ", ".join(filter(None, (c.measurement, c.name, homes.named(c.home).replace("NUMA node ", ""))))
        values = f"{said(c.before, c.unit)} to {said(c.after, c.unit)}"
        lines.append(f"{c.node}: {place}: {values}, {c.change * 100:+.1f} % (threshold {c.threshold * 100:.1f} %)")
    nodes = {change.node for change in changes}
    calm = nodes - {change.node for change in moved}
    lines.append(
        f"{len(moved)} of {len(changes)} figures changed; nothing changed on {len(calm)} of {len(nodes)} nodes"
    )
    lines.append(
        "a figure is reported as changed if it moved by more than its bound in acceptance.yaml and by more than runs "
        f"differ by (spread pooled over the nodes; chance of any false alarm {rules.false_alarm * 100:g} %)"
    )
    return "\n".join(lines)


def drift(nodes: Iterable[PackedNode], rules: Acceptance) -> dict[str, list[configuration.FieldDifference]]:
    """By node, the fields of its fingerprint that differ from the majority; nodes without any are left out."""
    known = [node for node in nodes if node.fingerprint]
    found = configuration.differences(known, rules, fingerprint.DRIFT)
    return {name: differing for name, differing in found.items() if differing}
