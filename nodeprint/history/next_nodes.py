"""Which nodes to measure in the time that is there: those of which the least is known first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from nodeprint.history.changes import NodeHistory
from nodeprint.history.judged import JudgedCampaign, JudgedNode
from nodeprint.judge.outcome import Outcome
from nodeprint.machine.fingerprint import DRIFT

#: So many nodes that are SAME are measured with the others, as a recheck has two companions: what changes on them, too,
#: is no fault of one node. They are a third of the nodes at most.
CONTROLS, _SHARE = 2, 3
#: A change is known by two measurements.
_ENOUGH = 2


class Why(StrEnum):
    """Why a node is to be measured, the most urgent first."""

    NEVER = "never measured"
    CHANGED = "another configuration than before, measured less than twice"
    SUSPICIOUS = "suspicious in its last measurement"
    CONTROL = "the same, to compare with"
    LONGEST = "measured longest ago"


class NextNode(msgspec.Struct, frozen=True):
    """A node to measure, why, when it was measured last (ISO 8601; empty if never) and how long it takes (seconds)."""

    node: str
    why: Why
    measured: str
    seconds: float


def choose(
    seconds: Mapping[str, float], judged: Sequence[JudgedCampaign], histories: Sequence[NodeHistory], budget_s: float
) -> list[NextNode]:
    """The nodes to measure within `budget_s` of node time, the most urgent first.

    `seconds` has the nodes that may be measured, each with how long it takes.
    """
    candidates = _ordered(seconds, judged, histories)
    urgent = [c for c in candidates if c.why not in (Why.CONTROL, Why.LONGEST)]
    rest = [c for c in candidates if c.why is Why.LONGEST]
    controls = [c for c in candidates if c.why is Why.CONTROL]
    fits = sum(total <= budget_s for total in _sums([*urgent, *rest, *controls]))
    kept = controls[: min(CONTROLS, fits // _SHARE)]
    names = {control.node for control in kept}
    left = budget_s - sum(control.seconds for control in kept)
    ordered = [*urgent, *(c for c in rest if c.node not in names)]
    chosen = [c for c, total in zip(ordered, _sums(ordered), strict=True) if total <= left]
    return [*chosen, *kept]


def _sums(nodes: Sequence[NextNode]) -> list[float]:
    total, out = 0.0, []
    for node in nodes:
        total += node.seconds
        out.append(total)
    return out


def _ordered(
    seconds: Mapping[str, float], judged: Sequence[JudgedCampaign], histories: Sequence[NodeHistory]
) -> list[NextNode]:
    """All nodes by urgency, then by how long ago they were measured; then those again that may be controls."""
    verdicts: dict[str, list[JudgedNode]] = {}
    for campaign in judged:
        for name, node in campaign.nodes.items():
            if node.outcome.entry.measured:
                verdicts.setdefault(name, []).append(node)
    # what only one measurement came before cannot be measured again
    doubtful = {h.node for h in histories if any(change.counts[1] < _ENOUGH for change in h.changes)}
    # of jobs of one campaign the verdict has the last, and the series all
    counts = {history.node: len(history.measured) for history in histories}
    out = []
    for name, duration in seconds.items():
        past = verdicts.get(name, [])
        last = past[-1].measured if past else ""
        if not past:
            why = Why.NEVER
        elif _changed(past):
            why = Why.CHANGED
        elif past[-1].outcome.entry.again or name in doubtful:
            why = Why.SUSPICIOUS
        else:
            why = Why.LONGEST
        out.append(NextNode(name, why, last, duration))
        if why is Why.LONGEST and past[-1].outcome is Outcome.SAME:
            out.append(NextNode(name, Why.CONTROL, last, duration))
    urgency = list(Why)
    out.sort(key=lambda candidate: (urgency.index(candidate.why), candidate.measured, candidate.node))
    # the best known controls: those that were measured most often, and of these the last
    controls = [candidate for candidate in out if candidate.why is Why.CONTROL]
    controls.sort(key=lambda c: (max(counts.get(c.node, 0), len(verdicts[c.node])), c.measured), reverse=True)
    return [*(candidate for candidate in out if candidate.why is not Why.CONTROL), *controls]


def _changed(past: Sequence[JudgedNode]) -> bool:
    """Whether the present configuration is another than before and was measured less than twice."""
    now = _configuration(past[-1])
    for same, node in enumerate(reversed(past)):
        former = _configuration(node)
        if any(former[key] != now[key] for key in former.keys() & now.keys()):
            return same < _ENOUGH
    return False


def _configuration(node: JudgedNode) -> dict[str, object]:
    return {key: value for key, value in node.fingerprint.items() if key not in DRIFT}
