"""The nodes to measure in the available time, least known first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import pandas as pd

from nodeprint.history.changes import NodeHistory
from nodeprint.history.judged import JudgedNode, PastCampaign
from nodeprint.judge.outcome import Outcome
from nodeprint.machine.fingerprint import DRIFT

#: So many SAME nodes are measured with the others, as a recheck has two control nodes: a change on them, too, is no
#: fault of one node. They are at most a third of the nodes.
CONTROLS, _SHARE = 2, 3
#: A change is known by two measurements.
_ENOUGH = 2


class Why(StrEnum):
    """The reason for measuring a node, the most urgent first."""

    NEVER = "never measured"
    CHANGED = "another configuration than before, measured less than twice"
    SUSPICIOUS = "suspicious in its last measurement"
    CONTROL = "the same, to compare with"
    LONGEST = "measured longest ago"


def choose(
    seconds: Mapping[str, float], judged: Sequence[PastCampaign], histories: Sequence[NodeHistory], budget_s: float
) -> pd.DataFrame:
    """The nodes to measure within `budget_s` of node time, a row each, the most urgent first.

    `seconds` has the nodes that may be measured, each with its duration. Columns are `node`, `why`, `measured` (last,
    ISO 8601, empty if never) and `seconds`.
    """
    candidates = _ordered(seconds, judged, histories)
    fits = int((candidates["seconds"].cumsum() <= budget_s).sum())
    is_control = candidates["why"] == Why.CONTROL
    controls = candidates[is_control].head(min(CONTROLS, fits // _SHARE))
    others = candidates[~is_control & ~candidates["node"].isin(controls["node"])]
    left = budget_s - controls["seconds"].sum()
    return pd.concat([others[others["seconds"].cumsum() <= left], controls])


def _ordered(
    seconds: Mapping[str, float], judged: Sequence[PastCampaign], histories: Sequence[NodeHistory]
) -> pd.DataFrame:
    """All nodes by urgency, then by the age of their last measurement; then possible controls again."""
    verdicts: dict[str, list[JudgedNode]] = {}
    for campaign in judged:
        for name, node in campaign.nodes.items():
            if node.outcome.entry.measured:
                verdicts.setdefault(name, []).append(node)
    # the level before a change cannot be remeasured, so only the level after it counts
    doubtful = {h.node for h in histories if any(change.counts[1] < _ENOUGH for change in h.changes)}
    # of jobs of one campaign the verdict has the last, and the series all
    counts = {history.node: len(history.measured) for history in histories}
    rows = []
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
        times = max(counts.get(name, 0), len(past))
        rows.append((name, why, last, duration, times))
        if why is Why.LONGEST and past[-1].outcome is Outcome.SAME:
            rows.append((name, Why.CONTROL, last, duration, times))
    table = pd.DataFrame(rows, columns=["node", "why", "measured", "seconds", "times"])
    table["why"] = pd.Categorical(table["why"], list(Why), ordered=True)
    table = table.sort_values(["why", "measured", "node"], ignore_index=True)
    # the best known controls: those that were measured most often, and of these the last
    is_control = table["why"] == Why.CONTROL
    controls = table[is_control].sort_values(["times", "measured"], ascending=False, kind="stable")
    return pd.concat([table[~is_control], controls]).drop(columns="times")


def _changed(past: Sequence[JudgedNode]) -> bool:
    """Whether the present configuration differs from the one before and was measured less than twice."""
    now = _configuration(past[-1])
    for same, node in enumerate(reversed(past)):
        former = _configuration(node)
        if any(former[key] != now[key] for key in former.keys() & now.keys()):
            return same < _ENOUGH
    return False


def _configuration(node: JudgedNode) -> dict[str, object]:
    return {key: value for key, value in node.fingerprint.items() if key not in DRIFT}
