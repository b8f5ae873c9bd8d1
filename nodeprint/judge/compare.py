"""One judged campaign beside another, node by node, and fields of fingerprints that drift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
from scipy.special import stdtrit

from nodeprint.data.packed import PackedNode
from nodeprint.data.quantity import models
from nodeprint.errors import printable
from nodeprint.judge import bounds, configuration
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.verdict import NodeVerdict, Verdict
from nodeprint.machine import fingerprint
from nodeprint.machine.fingerprint import label
from nodeprint.stats.runs import PRIOR_DEGREES


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


def compare(first: Verdict, second: Verdict, rules: Acceptance) -> list[Change]:
    """Classes of pairs and rows of cells that nodes have in two judged campaigns, node by node; of a class that is a
    mixture its groups.

    One is changed where it moved by more than its bound in `rules` and by more than runs differ by, with the chance of
    a false alarm for all of them together; the spread of runs is pooled over the nodes of both.
    """
    before, after = (_figures(verdict, rules, _of_other_groups(first, second)) for verdict in (first, second))
    kinds = {kind: sorted(set(before.get(kind, ())) & set(nodes)) for kind, nodes in after.items()}
    alpha = rules.false_alarm / max(sum(map(len, kinds.values())), 1)
    out = []
    for (measurement, home, name), nodes in kinds.items():
        old_of, new_of = (of[measurement, home, name] for of in (before, after)) if nodes else ({}, {})
        figures = [*old_of.values(), *new_of.values()]
        degrees = PRIOR_DEGREES + sum(figure.runs - 1 for figure in figures)
        squares = sum((figure.runs - 1) * figure.run_sd**2 for figure in figures)
        for node in nodes:
            old, new = old_of[node], new_of[node]
            variance = (squares + PRIOR_DEGREES * new.run_prior**2) / degrees * (1 / old.runs + 1 / new.runs)
            threshold = max(old.bound, -float(stdtrit(degrees, alpha / 2)) * variance**0.5)
            change = new.median - old.median if new.unit == "share" else new.median / old.median - 1
            values = new.unit, old.median, new.median, change, threshold
            out.append(Change(node, measurement, home, name, *values, abs(change) > threshold))
    return sorted(out, key=lambda change: change.node)


#: The fields of a fingerprint that only another processor changes.
PROCESSOR = ("cpu", "cpu_family", "cpu_model", "cpu_stepping", "sockets")
#: What makes it another machine under the same name; settings of one machine may change.
_MACHINE = (*PROCESSOR, "cores", "cpus", "cores_per_l3")


class OtherMachine(msgspec.Struct, frozen=True):
    """Nodes that are another machine under the same name, and by what: a fact with its values before and after."""

    nodes: tuple[str, ...]
    fact: str
    before: str
    after: str


def machines_apart(before: Verdict, after: Verdict) -> list[OtherMachine]:
    """Which nodes of two campaigns are other machines under the same name. Without fingerprints (imported matrices) by
    how many pairs each class has."""
    by_row: dict[tuple[str, str, str], list[str]] = {}
    for name in sorted(set(before.nodes) & set(after.nodes)):
        difference = _other_machine(before.nodes[name], after.nodes[name])
        if difference is not None:
            by_row.setdefault(difference, []).append(name)
    return [OtherMachine(tuple(names), *difference) for difference, names in by_row.items()]


def _other_machine(old: NodeVerdict, new: NodeVerdict) -> tuple[str, str, str] | None:
    keys = [key for key in _MACHINE if all(node.fingerprint.get(key) is not None for node in (old, new))]
    facts = [{label(key): str(node.fingerprint[key]) for key in keys} for node in (old, new)]
    if not keys:
        facts = [{f"pairs of {figure.name}": str(figure.pairs) for figure in node.classes} for node in (old, new)]
    first, second = facts
    if not first or not second:
        return None
    for key in dict.fromkeys([*first, *second]):
        values = [printable(fact.get(key, "none"), 80) for fact in facts]
        if values[0] != values[1]:
            return key, values[0], values[1]
    return None


#: A class of pairs on a node: node, measurement, home and name.
_Class = tuple[str, str, int, str]


def _of_other_groups(first: Verdict, second: Verdict) -> dict[_Class, str]:
    """Classes of nodes that are a mixture in one campaign alone, or one of other groups, with how they are called:
    there the medians of all pairs are compared, which are those of few."""
    groups_in = [
        {
            (name, figure.measurement, figure.home, figure.name): tuple(figure.groups)
            for name, node in verdict.nodes.items()
            for figure in node.classes
        }
        for verdict in (first, second)
    ]
    words = {
        (True, True): "a mixture of other groups",
        (True, False): "a mixture before",
        (False, True): "a mixture now",
    }
    return {
        of: f"{of[3]}, {words[bool(groups), bool(groups_in[1][of])]}"
        for of, groups in groups_in[0].items()
        if groups_in[1].get(of, groups) != groups
    }


def _figures(
    verdict: Verdict, rules: Acceptance, mixed: Mapping[_Class, str]
) -> dict[tuple[str, int, str], dict[str, _Figure]]:
    """By measurement, home and name the figures of each node; cells have the home -1. Of a mixture they are those of
    its groups, where `mixed` does not say how it is called."""
    out: dict[tuple[str, int, str], dict[str, _Figure]] = {}
    run_prior = rules.prior("run")
    for name, node in verdict.nodes.items():
        for of_class in node.classes:
            spread = _known(of_class.run_sd_ns) / of_class.median_ns
            called = mixed.get((name, of_class.measurement, of_class.home, of_class.name))
            medians = of_class.medians if called is None else {called: of_class.median_ns}
            for kind, median in medians.items():
                bound = bounds.of_class(median, rules, tick_ns=of_class.tick_ns, harvested=of_class.harvested)
                figure = _Figure("ns", median, of_class.runs, spread, bound, run_prior)
                out.setdefault((of_class.measurement, of_class.home, kind), {})[name] = figure
        for row in node.cells:
            limit = rules.cell(models()[row.measurement].term)
            share = row.unit == "share"
            relative, prior = (1.0, limit.node_sd * limit.bound) if share else (row.median, limit.node_sd)
            figure = _Figure(row.unit, row.median, row.runs, _known(row.run_sd) / relative, limit.bound, prior)
            out.setdefault((row.measurement, -1, row.name), {})[name] = figure
    return out


def _known(spread: float) -> float:
    """A standard deviation, 0 of a single run."""
    return spread if np.isfinite(spread) else 0.0


def drift(nodes: Iterable[PackedNode], rules: Acceptance) -> dict[str, list[configuration.FieldDifference]]:
    """By node, the fields of its fingerprint that differ from the majority; nodes without any are left out."""
    identified = [node for node in nodes if node.fingerprint]
    differences = configuration.differences(identified, rules, fingerprint.DRIFT)
    return {name: differing for name, differing in differences.items() if differing}
