"""Slow nodes and links of a fabric in words: findings of their nodes, and a measurement's part of verdict.json."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from nodeprint import remedies
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.messages import LINK, NODE, JudgedFabric, SlowPart
from nodeprint.words.cause_findings import seen_in
from nodeprint.words.names import name_list
from nodeprint.words.outcome import GONE, ONCE, SEVERITY, Finding
from nodeprint.words.units import duration

#: By state what is said of it.
_STATES: Mapping[str, str] = {
    "confirmed": "confirmed by a second job",
    "fresh": ONCE,
    "refuted": "not confirmed by the jobs after",
}


def findings(judged: JudgedFabric, node: str, rules: Acceptance, day: str) -> list[tuple[str, Finding]]:
    """What was found of a node, each with its reason for an outcome of the node.

    A confirmed link leaves open which of its ends is at fault, or neither: they DIFFER. `day` ends suppressions.
    """
    out = []
    for one in (found for found in judged.found if node in found.ends):
        reason = "differs" if one.term == LINK and one.state == "confirmed" else one.state
        out.append((reason, Finding(
            GONE if reason == "refuted" else one.term, SEVERITY[one.state], one.term, said(one),
            where={"link": f"{one.node} to {one.to}"} if one.to else {}, effect=one.effect, effect_ns=one.effect_ns,
            interval=one.interval, runs=one.runs, consistent_with=remedies.consistent_with(one.term),
            remedy=remedies.of(one.term), measurement=judged.fabric.measurement,
            suppressed=_suppressed(one, rules, day),
        )))  # fmt: skip
    return out


def _suppressed(one: SlowPart, rules: Acceptance, day: str) -> str:
    """Why it is accepted at either of its ends; empty where it is not."""
    return next(filter(None, (rules.suppressed(end, one.term, day) for end in one.ends)), "")


def said(one: SlowPart) -> str:
    """A slow node or link in a sentence."""
    size = one.effect
    slower = f"is {100 * size:.1f} % slower" if size < 1 else f"is {1 + size:.1f} times as slow"
    both = one.sends and one.receives
    if one.term == NODE:
        how = "in both directions" if both else "when it sends" if one.sends else "when it receives"
        text = f"{one.node} {slower} with every other node, {how}"
    elif both:
        text = f"the link between {one.node} and {one.to} {slower}"
    else:
        text = f"the link from {one.node} to {one.to} {slower} in this direction, and not in the other"
    return f"{text} (+{duration(one.effect_ns)} a message), {seen_in(one.runs)}; {_STATES[one.state]}"


def entry(judged: JudgedFabric, rules: Acceptance, day: str) -> dict[str, Any]:
    """A measurement's part of verdict.json (docs/formats.md)."""
    fabric = judged.fabric
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        median = np.nanmedian(fabric.values, axis=0)
    finite = median[np.isfinite(median)]
    return {
        "measurement": fabric.measurement, "partition": fabric.partition, "nodes": list(fabric.nodes),
        "places": list(fabric.places), "text": _in_a_line(judged), "runs": list(fabric.runs),
        "minimum_ns": float(finite.min()), "mean_ns": float(finite.mean()), "maximum_ns": float(finite.max()),
        "message_bytes": fabric.header.get("message_bytes"), "operation": str(fabric.header["operation"]),
        "at_once": int(fabric.header.get("parallel", 1)),
        "median_ns": [[None if np.isnan(v) else float(v) for v in row] for row in median],
        "bounds": {NODE: rules.fabric_node, LINK: rules.fabric_link}, "smallest_effect": dict(judged.smallest),
        "findings": [
            {"term": f.term, "node": f.node, "to": f.to, "sends": f.sends, "receives": f.receives, "effect": f.effect,
             "effect_ns": f.effect_ns, "runs": list(f.runs), "severity": SEVERITY[f.state], "text": said(f),
             "suppressed": _suppressed(f, rules, day)}
            for f in judged.found
        ],
    }  # fmt: skip


def _in_a_line(judged: JudgedFabric) -> str:
    nodes, found = len(judged.fabric.nodes), sum(one.state != "refuted" for one in judged.found)
    if judged.too_small:
        return f"{nodes} nodes; {judged.too_small}"
    slow = f"{found or 'no'} slow {'nodes or links' if found > 1 else 'node or link'}"
    limits = f"{100 * judged.smallest[NODE]:.1f} % (a node), {100 * judged.smallest[LINK]:.1f} % (a link)"
    alone = (
        f"; not compared, as no other node's links are like theirs: {name_list(judged.alone)}" if judged.alone else ""
    )
    return f"{nodes} nodes, {slow}; detection limit {limits}{alone}"
