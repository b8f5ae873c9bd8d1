"""Sentences about groups of nodes that differ: component, difference, settings of one group only, and next step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

from nodeprint.data.places import homes
from nodeprint.errors import printable
from nodeprint.judge.outcome import FleetOutcome
from nodeprint.judge.verdict import Finding, Group, NodeVerdict, Verdict
from nodeprint.machine import fingerprint
from nodeprint.report import names
from nodeprint.report.text.wording import changed, difference, in_unit, measured, place
from nodeprint.settings.texts import say


def group(group: Group) -> str:
    """The size of a group, its difference from another group of a split fleet, and the fields that only it has."""
    apart = ""
    if group.component is not None and group.measurement:
        added = in_unit(in_its_unit(group), group.unit)
        apart = say("group_apart", group=group, place=_in(group), added=added, **difference(group))
    return say("group", group=group, apart=apart, fields=goes_with(group))


def in_its_unit(group: Group) -> float:
    """The difference of a group in the unit of its component; NaN if the component has pairs of several classes."""
    several = group.component is not None and "beyond_class" in group.component.where
    return math.nan if several else group.effect_unit


def gap(group: Group) -> str:
    """A group of nodes that differs from the others, but less than each tolerance."""
    return say("gap", of=group, place=_in(group), fields=goes_with(group), **difference(group))


def _in(group: Group) -> str:
    assert group.component is not None
    return f"{names.within(group.component)} ({measured(group.measurement)})"


def goes_with(group: Group) -> str:
    """The end of a sentence: the fields that only this group has, and its time of measuring."""
    later = ""
    if group.later_h:
        side = "after" if group.later_h > 0 else "before"
        later = say("group_later", hours=f"{abs(group.later_h):.1f} h", side=side)
    return fields(group.fields) + later


def fields(values: Mapping[str, str]) -> str:
    """Fields of the fingerprint that some nodes alone have, as the end of a sentence."""
    pairs = (f"{fingerprint.label(key)} {printable(value, 120)}" for key, value in values.items())
    return say("group_fields", fields=names.listed(pairs)) if values else ""


def belongs(letter: str, groups: Sequence[Group]) -> str:
    """The difference between a node's group and another group of a split fleet."""
    own = {of.name: of for of in groups}.get(letter)
    if own is not None and own.component is not None:
        return say("split", "apart", name=letter, than=own.than, **_apart(own))
    others = (say("split", "other", name=of.name, **_apart(of)) for of in groups if of.than == letter)
    return say("split", "first", name=letter, others="; ".join(others))


def _apart(group: Group) -> dict[str, str]:
    assert group.component is not None
    return {"place": place(group), **difference(group, several=names.is_plural(group.component))}


def most_apart(groups: Sequence[Group]) -> str:
    """The largest difference between groups of a split fleet, in tolerances, with the fields of its group; empty
    without one."""
    most = max((of for of in groups if of.component is not None), key=_in_tolerances, default=None)
    if most is None:
        return ""
    words = say("split", "other", name=most.name, **_apart(most))
    return say("split", "headline", most=words, than=most.than, fields=fields(most.fields))


def _in_tolerances(group: Group) -> float:
    return abs(group.effect) / group.tolerance


def next_step(letter: str, groups: Sequence[Group]) -> str:
    """Return the experiment that explains a group's difference; empty for the first group, which is the reference."""
    by_name = {of.name: of for of in groups}
    own = by_name.get(letter)
    return to_do(own, by_name[own.than]) if own is not None and own.component is not None else ""


def to_do(group: Group, than: Group) -> str:
    """The experiment that explains a difference: equal fields, equal time of measuring, or a search without a clue."""
    first, second = (printable(of.nodes[0], 40) for of in (group, than))
    differing = []
    for key in dict.fromkeys((*group.fields, *than.fields)):
        ends = ((first, group.fields), (second, than.fields))
        values = ", ".join(f"{printable(of[key], 60)} on {node}" for node, of in ends if key in of)
        differing.append(say("split", "field", field=fingerprint.label(key), values=values))
    if differing:
        return say("split", "make_alike", node=first, than=second, fields=names.listed(differing))
    return say("split", "later" if group.later_h else "nothing", node=first, than=second)


def which_is_right(verdict: Verdict) -> list[str]:
    """Name the group of a split fleet that meets limits, matches the baseline, or has more of the peak."""
    fleet = verdict.fleet
    if fleet.outcome is not FleetOutcome.SPLIT:
        return []
    of_groups = {of.name: members(verdict, of) for of in fleet.groups}
    sentences = [
        *_those_with("outside", of_groups, lambda finding: finding.of_limit),
        *_those_with("changed", of_groups, lambda finding: bool(finding.baseline)),
    ]
    decided = bool(sentences)
    sentences += _achieved(fleet.groups, of_groups)
    return sentences if decided else [*sentences, say("which_is_right", "open")]


#: A class of pairs or a row of a measurement: measurement, name and unit.
Figure = tuple[str, str, str]


def also_apart(verdict: Verdict) -> Iterator[str]:
    """Describe further measurements in which a group differs from its reference group."""
    for group in verdict.fleet.groups:
        words = [
            f"{measured(of[0])} ({names.row(of[1])}: {names.percent(abs(ratio - 1))}"
            f" {changed(ratio - 1, of[0], of_value=True)['change']})"
            for of, ratio in _farthest(verdict, group).items()
            if of[0] != group.measurement
        ]
        if group.component is not None and words:
            yield say("group_also", name=group.name, than=group.than, measured=names.listed(words))


def _farthest(verdict: Verdict, group: Group) -> Mapping[Figure, float]:
    """Return how many times as high a group's median is as that of its reference group, the largest first.

    A measurement has its farthest row. The medians differ by more than the smallest tolerance of the measurement, and
    the ranges of the groups do not overlap.
    """
    tolerances: dict[str, float] = {}
    for limit in verdict.fleet.limits:
        tolerances[limit.measurement] = min(limit.tolerance, tolerances.get(limit.measurement, math.inf))
    of_groups = {of.name: medians_over(members(verdict, of)) for of in verdict.fleet.groups}
    own, others = of_groups[group.name], of_groups.get(group.than, {})
    ratios: dict[Figure, float] = {}
    for figure in own.keys() & others.keys():
        first, second = own[figure], others[figure]
        ratio = median(first) / median(second)
        apart = min(len(first), len(second)) > 1 and (max(first) < min(second) or max(second) < min(first))
        if abs(ratio - 1) > tolerances.get(figure[0], math.inf) and apart:
            ratios[figure] = ratio
    in_order = sorted(ratios, key=lambda of: (abs(math.log(ratios[of])), of), reverse=True)
    of_each = {figure[0]: figure for figure in reversed(in_order)}
    return {figure: ratios[figure] for figure in in_order if of_each[figure[0]] == figure}


def members(verdict: Verdict, group: Group) -> list[NodeVerdict]:
    """Return the nodes of a group."""
    return [verdict.nodes[name] for name in group.nodes if name in verdict.nodes]


def medians_over(nodes: Sequence[NodeVerdict]) -> Mapping[Figure, list[float]]:
    """Return the medians of each metric that all nodes have."""
    each: list[dict[Figure, float]] = []
    for node in nodes:
        classes = ((figure, name, value) for figure in node.classes for name, value in figure.medians.items())
        of_node: dict[Figure, float] = {
            (figure.measurement, ", ".join(filter(None, (name, homes.named(figure.home)))), "ns"): value
            for figure, name, value in classes
        }
        cells = (cell for cell in node.cells if cell.unit != "share" and cell.median > 0)
        each.append(of_node | {(cell.measurement, cell.name, cell.unit): cell.median for cell in cells})
    shared = [figure for figure in each[0] if all(figure in of for of in each)] if each else []
    return {figure: [of[figure] for of in each] for figure in shared}


def _those_with(key: str, of_groups: Mapping[str, list[NodeVerdict]], of_kind: Callable[[Finding], bool]) -> list[str]:
    counts = {name: sum(any(map(of_kind, node.counted)) for node in nodes) for name, nodes in of_groups.items()}
    if not any(counts.values()) or all(counts.values()):
        return []
    words = (f"{counts[name]} of {len(nodes)} of group {name}" for name, nodes in of_groups.items())
    return [say("which_is_right", key, counts=names.listed(words))]


def _achieved(groups: Sequence[Group], of_groups: Mapping[str, list[NodeVerdict]]) -> list[str]:
    out = []
    for measurement in dict.fromkeys(of.measurement for of in groups if of.component is not None):
        shares = dict[str, str]()
        for name, nodes in of_groups.items():
            cells = [[cell for cell in node.cells if cell.measurement == measurement and cell.peak] for node in nodes]
            most = [share for of_node in cells if of_node and (share := max(cell.achieved for cell in of_node)) > 0]
            shares |= {name: names.whole_percent(median(most))} if most else {}
        if len(shares) == len(of_groups) and len(set(shares.values())) > 1:
            words = names.listed(f"{share} (group {name})" for name, share in shares.items())
            out.append(say("which_is_right", "achieved", measured=measured(measurement), shares=words))
    return out
