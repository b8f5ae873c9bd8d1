"""Sentences that explain the outcome of a node; nodes with the same explanation share a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nodeprint.data.places.measured import is_metric
from nodeprint.errors import printable
from nodeprint.judge.outcome import Outcome, ReasonDetail
from nodeprint.judge.verdict import Agreement, Disturbance, Epoch, Group, NodeVerdict
from nodeprint.machine import fingerprint
from nodeprint.report import names
from nodeprint.report.pages.order import natural, severity, worst_finding
from nodeprint.report.text.agreement_sentences import agreement_remedies, node_of, open_agreement, short_agreement
from nodeprint.report.text.disturbances import disturbance, taken_most
from nodeprint.report.text.finding_sentences import accepted, finding_sentence, findings_of
from nodeprint.report.text.group_sentences import belongs, next_step
from nodeprint.report.text.wording import named, named_metric, sentence, without_cpus
from nodeprint.settings.config_file import MOST_JOBS
from nodeprint.settings.texts import say, texts

#: Above this number, alike nodes share a line.
MOST_SINGLE = 3
#: Longer values of a field are omitted from a sentence.
_LONGEST_VALUE = 60


class NodeLine(msgspec.Struct, frozen=True):
    """The reason for the outcome of one node, or of several alike nodes, and the next step."""

    nodes: tuple[str, ...]
    outcome: Outcome
    text: str
    action: str = ""

    @property
    def sentence(self) -> str:
        """Return reason and next step together."""
        return _joined(self.text, self.action)

    @property
    def names(self) -> str:
        """Return the nodes as a list."""
        return names.nodes(self.nodes)


def node_lines(nodes: Mapping[str, NodeVerdict], groups: Sequence[Group] = ()) -> list[NodeLine]:
    """Return a line per node, the worst first; nodes share it if more than MOST_SINGLE, or a group, are alike."""
    alike: dict[tuple[Any, ...], list[str]] = {}
    for name, node in nodes.items():
        alike.setdefault(_kind(node), []).append(name)
    lines = []
    for of_kind in alike.values():
        is_group = nodes[of_kind[0]].outcome is Outcome.SPLIT
        sets = [of_kind] if is_group or len(of_kind) > MOST_SINGLE else [[name] for name in of_kind]
        for members in sets:
            words = reason_and_action({name: nodes[name] for name in members}, groups)
            lines.append(NodeLine(tuple(members), nodes[members[0]].outcome, *words))
    return sorted(lines, key=lambda line: (min(severity(nodes[name]) for name in line.nodes), natural(line.nodes[0])))


def _kind(node: NodeVerdict) -> tuple[Any, ...]:
    """Return a key that is equal for nodes with the same explanation: reasons, message of another program, findings."""
    findings = tuple(
        (finding.id, finding.measurement, finding.component.term, without_cpus(finding.component.where))
        for finding in node.counted
    )
    known = tuple((finding.id, without_cpus(finding.component.where), finding.waived) for finding in node.accepted)
    details = tuple(reason.detail for reason in node.reasons[:1])
    reasons = tuple((reason.key, reason.of, *reason.values.items()) for reason in node.reasons)
    return node.outcome, node.group, reasons, details, findings, known


def node_sentence(node: NodeVerdict, groups: Sequence[Group] = ()) -> str:
    """Explain a node's outcome, in a split fleet by its `groups`, with the next step."""
    return _joined(*reason_and_action({"": node}, groups))


def _joined(reason: str, action: str) -> str:
    stop = "." if reason and action and not reason.endswith((".", "!", "?")) else ""
    return " ".join(filter(None, (f"{reason}{stop}", action)))


def reason_and_action(nodes: Mapping[str, NodeVerdict], groups: Sequence[Group] = ()) -> tuple[str, str]:
    """Return the reason for the outcome of one node, or of several alike ones with their worst values, and the next
    step."""
    alike = list(nodes.values())
    first = alike[0]
    if not first.reasons:
        return "", ""
    reason = first.reasons[0]
    key, why, of, is_split = reason.key, reason.why, reason.of, reason.outcome is Outcome.SPLIT
    reasons = [reason for member in alike for reason in member.reasons[:1]]
    fields = _both_values({field: reason.values[field] for field in of if field in reason.values})
    detail = next((printable(reason.detail, 300) for reason in reasons if reason.detail), "")
    findings = {name: worst_finding(member) or next(iter(member.findings), None) for name, member in nodes.items()}
    of_nodes = {name: finding for name, finding in findings.items() if finding is not None}
    more, nexts = len(first.counted) - 1, texts()["next_job"]
    values = {
        "finding": findings_of(of_nodes) if of_nodes else detail or key,
        "more": say("more_findings", count=more) if more > 0 else "",
        "nothing": say("nothing", "else" if first.accepted else "at all"),
        "disturbances": names.listed(_worst_disturbances(nodes)) or detail or names.listed(of),
        "share": names.percent(max(reason.share for reason in reasons)),
        "agreements": _agreements(nodes) or f"{names.listed(named_metric(key) for key in of)}.",
        "fields": fields or names.listed(map(fingerprint.label, of)) or say("layout"),
        "component_types": names.listed(named("terms", key) for key in of),
        "components": names.listed(of),
        "measurements": names.listed(dict.fromkeys(map(named_metric, of))),
        "of": f" of {names.listed(of)}" if of else "",
        "group": say("of_group", group=first.group) if first.group else "",
        "split": f"{belongs(first.group, groups)} {next_step(first.group, groups)}" if is_split else "",
        "next_job": say("next_job", key, "last" if len(first.jobs) >= MOST_JOBS else "again") if key in nexts else "",
        "detail": f" ({detail})" if detail else "",
    }
    if reason.outcome is Outcome.NOT_MEASURED or why is ReasonDetail.UNUSABLE:  # another program's message
        values["detail"] = sentence(detail or say("unknown_reason"))
    known = [] if first.counted else [accepted(finding) for finding in first.accepted]
    busy = why is ReasonDetail.UNRESOLVED and any(taken_most(member.disturbances) for member in alike)
    of_table = [agreement for agreement in first.agreements if is_metric(agreement.measurement)]
    if why is ReasonDetail.ONE_RUN and of_table:
        of_pairs = any(agreement.component.term.startswith("fabric-") for agreement in of_table)
        key = "one run of pairs" if of_pairs else "one run of a table"
    key = "busy" if busy else key
    words = say("reasons", key, open=_agreements(nodes, short=True) if busy else "", **values)
    action = str(texts()["reason_actions"].get(key, ""))
    return " ".join([*known, words.rstrip()]), action or (
        agreement_remedies(_open(nodes)) if why is ReasonDetail.UNRESOLVED else ""
    )


def _both_values(values: Mapping[str, tuple[str, str]]) -> str:
    words = [
        say("field_differs", field=fingerprint.label(key), value=printable(own, 60), usual=printable(usual, 60))
        if key != "kernel_hash" and max(len(own), len(usual)) <= _LONGEST_VALUE
        else fingerprint.label(key)
        for key, (own, usual) in values.items()
    ]
    return "; ".join(words)


def _agreements(nodes: Mapping[str, NodeVerdict], *, short: bool = False) -> str:
    """Describe the deciding agreements of SAME nodes, or the unverified agreements of any others (`short`: listed)."""
    if next(iter(nodes.values())).outcome is Outcome.SAME:
        closest = names.listed(short_agreement(agreement, node_of(agreement, nodes)) for agreement in _worst(nodes))
        return say("closest", agreements=closest) if closest else say("within_every_tolerance")
    if short:
        return names.listed(map(short_agreement, _open(nodes)))
    sentences = []
    for agreement in _open(nodes):
        on = sum(of.metric == agreement.metric and of.share > 1 for node in nodes.values() for of in node.agreements)
        worst = node_of(agreement, nodes)
        most = sentence(say("most_of_nodes", count=on, node=worst)) if on > 1 else ""
        sentences.append(f"{most}{open_agreement(agreement)}.")
    return " ".join(sentences)


def _worst(nodes: Mapping[str, NodeVerdict]) -> list[Agreement]:
    """The deciding agreements by metric, each of the node that is nearest to its tolerance or farthest beyond it."""
    worst: dict[str, Agreement] = {}
    for agreement in (of for member in nodes.values() for of in member.agreements if of.criterion):
        if agreement.metric not in worst or agreement.share > worst[agreement.metric].share:
            worst[agreement.metric] = agreement
    return list(worst.values())


def _open(nodes: Mapping[str, NodeVerdict]) -> list[Agreement]:
    """Those beyond their tolerances, the farthest first."""
    return sorted((of for of in _worst(nodes) if of.share > 1), key=lambda agreement: -agreement.share)


def _worst_disturbances(nodes: Mapping[str, NodeVerdict]) -> list[str]:
    """Describe the disturbances that made nodes invalid, once per kind, with the largest value and its node."""
    of_kind: dict[tuple[str, str], dict[str, Disturbance]] = {}
    for name, node in nodes.items():
        for seen in (seen for seen in node.disturbances if seen.invalid):
            on = of_kind.setdefault((seen.kind, seen.measurement), {})
            if name not in on or (seen.share, seen.value) > (on[name].share, on[name].value):
                on[name] = seen
    sentences = []
    for on in of_kind.values():
        worst = max(on, key=lambda name: (on[name].share, on[name].value))
        most = say("most_of_nodes", count=len(on), node=worst) if len(set(on.values())) > 1 else ""
        sentences.append(f"{most}{disturbance(on[worst]).rstrip('.')}")
    return list(dict.fromkeys(sentences))


def jobs_changed(node: NodeVerdict, now: Sequence[str]) -> str:
    """Report that a node's records belong to other jobs, those of `now`, than the judged ones."""
    verb = "were" if len(node.jobs) > 1 else "was"
    return say("jobs_changed", now=names.listed(now) or "no job", judged=f"{names.listed(node.jobs) or 'none'} {verb}")


def further(node: NodeVerdict) -> list[str]:
    """Return further facts about a node: excluded jobs, and other disturbances."""
    disturbed = node.outcome is Outcome.INVALID
    seen = [sentence(disturbance(seen)) for seen in node.disturbances if not (seen.invalid and disturbed)]
    return [*map(_epoch, node.former), *seen]


def _epoch(epoch: Epoch) -> str:
    verb, fields = "do" if len(epoch.jobs) > 1 else "does", map(fingerprint.label, epoch.fields)
    return say("epoch", "repair" if epoch.repair else "changed", epoch=epoch, verb=verb, fields=fields)


def one_node(name: str, node: NodeVerdict, groups: Sequence[Group] = ()) -> list[str]:
    """Describe a node for a terminal; `groups` are the fleet's groups."""
    lines = [f"{printable(name)}: {node.outcome.with_class}. {node_sentence(node, groups)}"]
    lines += [finding_sentence(finding) for finding in node.counted[1:]]
    return [*lines, *map(_epoch, node.former)]
