"""Which nodes and links of a fabric are slower than the others, and in which direction.

The log of a message's time is the sum of its class (within a switch, between switches), what the sending node adds,
what the receiving node adds, and what this one link adds. The first three are medians, so that a slow link does not
make its nodes slow, nor a slow node all its links; docs/method.md has the formula and what it cannot tell.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from nodeprint.fabric import Fabric
from nodeprint.verdict.matrices import APART

Floats = npt.NDArray[np.float64]

#: From where on a slower node or link matters, in shares of the time. A link has one pair, a node all of its own.
NODE_BOUND, LINK_BOUND = 0.05, 0.10
#: At most this chance that a healthy fabric has any finding.
FALSE_ALARM = 0.01
#: A node's term is a median over its links: of fewer nodes a link cannot be told from a node.
FEWEST_NODES = 4
#: Rounds of medians; they settle in two or three.
_ROUNDS = 6
#: One direction is slower than the other where its effect is this much of both.
_ONE_WAY = 0.5


@dataclass(frozen=True)
class Found:
    """A slow node or link: `sends` and `receives` are the directions of a node, (True, False) of a link from `node`.

    `effect` is relative, the median over runs; `runs` show it; `confirmed` by a second job.
    """

    term: str
    node: str
    to: str
    sends: bool
    receives: bool
    effect: float
    effect_ns: float
    runs: tuple[str, ...]
    confirmed: bool
    text: str


@dataclass(frozen=True)
class Terms:
    """Of each run, in log: the level of each link's class, what a node adds when it sends (`out`) or receives (`into`),
    (run, node), and what a link adds beyond that (run, from, to)."""

    level: Floats
    out: Floats
    into: Floats
    link: Floats


def terms(fabric: Fabric) -> Terms:
    """Median polish of the log times, by run; NaN where nothing was measured."""
    logs = np.log(fabric.values)
    place = np.array(fabric.places)
    near = place[:, None] == place[None, :]
    level = np.zeros_like(logs)
    n = len(fabric.nodes)
    out, into = (np.zeros((len(logs), n)) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a class or node without a value stays NaN
        for _ in range(_ROUNDS):
            left = logs - out[:, :, None] - into[:, None, :]
            for kind in (near, ~near):
                level[:, kind] = np.nanmedian(left[:, kind], axis=1, keepdims=True) if kind.any() else 0
            out = np.nanmedian(logs - level - into[:, None, :], axis=2)
            out -= np.nanmedian(out, axis=1, keepdims=True)
            into = np.nanmedian(logs - level - out[:, :, None], axis=1)
            into -= np.nanmedian(into, axis=1, keepdims=True)
    return Terms(level, out, into, logs - level - out[:, :, None] - into[:, None, :])


def judge(fabric: Fabric) -> list[Found]:
    """The slow nodes and links of a fabric, largest first; none of fewer than four nodes."""
    if len(fabric.nodes) < FEWEST_NODES:
        return []
    fitted = terms(fabric)
    directed = bool(fabric.header.get("directed"))
    n = len(fabric.nodes)
    tests = 2 * n + n * (n - 1)
    z = float(-ndtri(FALSE_ALARM / 2 / tests))
    at_node = max(np.log1p(NODE_BOUND), z * _scale(np.stack([fitted.out, fitted.into])))
    at_link = max(np.log1p(LINK_BOUND), z * _scale(fitted.link))
    found = [
        one for i in range(n)
        if (one := _node(fabric, fitted, i, at_node, directed)) is not None
    ]  # fmt: skip
    found += [
        one for i in range(n) for j in range(i + 1, n)
        if (one := _link(fabric, fitted, i, j, at_link, directed)) is not None
    ]  # fmt: skip
    return sorted(found, key=lambda one: -one.effect)


def _scale(values: Floats) -> float:
    """Robust spread of what should be zero."""
    finite = values[np.isfinite(values)]
    return 1.4826 * float(np.median(np.abs(finite))) if finite.size else 0.0


def _shown(values: Floats, threshold: float, fabric: Fabric) -> tuple[str, ...]:
    """The runs in which a term stands out; none where less than all but one of three do."""
    measured = np.isfinite(values)
    high = measured & (values > threshold)
    enough = high.sum() >= max(1, measured.sum() - measured.sum() // 3)
    return tuple(np.array(fabric.runs)[high].tolist()) if enough else ()


def _node(fabric: Fabric, fitted: Terms, i: int, threshold: float, directed: bool) -> Found | None:
    out, into = (_shown(of[:, i], threshold, fabric) for of in (fitted.out, fitted.into))
    if not out and not into:
        return None
    term = fitted.out[:, i] if out else fitted.into[:, i]
    if out and into:
        term = np.fmax(fitted.out[:, i], fitted.into[:, i])
    how = "in both directions" if (out and into) or not directed else "when it sends" if out else "when it receives"
    name = fabric.nodes[i]
    level = fitted.level[:, i, :] if out else fitted.level[:, :, i]
    return _found(fabric, "node", name, "", bool(out), bool(into), term, np.exp(np.nanmedian(level)), out or into,
                  f"{name} {{slower}} with every other node, {how}")  # fmt: skip


def _link(fabric: Fabric, fitted: Terms, i: int, j: int, threshold: float, directed: bool) -> Found | None:
    ways = {
        (i, j): _shown(fitted.link[:, i, j], threshold, fabric),
        (j, i): _shown(fitted.link[:, j, i], threshold, fabric),
    }
    slow = [way for way, runs in ways.items() if runs]
    if not slow:
        return None
    effects = {way: float(np.nanmedian(fitted.link[:, way[0], way[1]])) for way in ways}
    a, b = max(slow, key=lambda way: effects[way])
    both = not directed or (len(slow) == 2 and effects[b, a] > _ONE_WAY * effects[a, b])
    first, second = fabric.nodes[a], fabric.nodes[b]
    way = (
        f"the link between {first} and {second} {{slower}}"
        if both
        else (f"the link from {first} to {second} {{slower}} in this direction, and not in the other")
    )
    level = float(np.exp(np.nanmedian(fitted.level[:, a, b] + fitted.out[:, a] + fitted.into[:, b])))
    return _found(fabric, "link", first, second, True, both, fitted.link[:, a, b], level, ways[a, b], way)


def _found(
    fabric: Fabric, term: str, node: str, to: str, sends: bool, receives: bool, values: Floats, level_ns: float,
    runs: Sequence[str], text: str,
) -> Found:  # fmt: skip
    effect = float(np.expm1(np.nanmedian(values)))
    by_job: dict[str, list[str]] = {}
    for run, start in zip(fabric.runs, fabric.started, strict=True):
        if run in runs:
            by_job.setdefault(run.partition("/")[0], []).append(start)
    confirmed = _apart([min(starts) for starts in by_job.values()])
    slower = f"is {effect:.1%} slower" if effect < 1 else f"is {1 + effect:.1f} times as slow"
    shown = f"{text.format(slower=slower)} (+{effect * level_ns / 1e3:.0f} us a message), in {', '.join(runs)}"
    status = "confirmed by a second job" if confirmed else "a second job, later, would confirm or clear it"
    return Found(
        term, node, to, sends, receives, effect, effect * level_ns, tuple(runs), confirmed, f"{shown}; {status}"
    )


def _apart(starts: Sequence[str]) -> bool:
    """Whether two jobs began so far apart that they count as independent."""
    moments = sorted(datetime.fromisoformat(start) for start in starts if start)
    return len(moments) > 1 and moments[-1] - moments[0] >= APART


def entry(fabric: Fabric, found: Sequence[Found]) -> dict[str, Any]:
    """A measurement's part of verdict.json (docs/formats.md)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        median = np.nanmedian(fabric.values, axis=0)
    finite = median[np.isfinite(median)]
    few = f"fewer than {FEWEST_NODES} nodes: a slow link cannot be told from a slow node"
    said = (
        f"{len(fabric.nodes)} nodes, {len(found) or 'no'} slow {'nodes or links' if len(found) > 1 else 'node or link'}"
    )
    return {
        "measurement": fabric.measurement, "nodes": list(fabric.nodes), "places": list(fabric.places),
        "text": few if len(fabric.nodes) < FEWEST_NODES else said, "runs": list(fabric.runs),
        "minimum_ns": float(finite.min()), "mean_ns": float(finite.mean()), "maximum_ns": float(finite.max()),
        "message_bytes": fabric.header.get("message_bytes"), "operation": str(fabric.header["operation"]),
        "median_ns": [[None if np.isnan(v) else float(v) for v in row] for row in median],
        "bounds": {"node": NODE_BOUND, "link": LINK_BOUND},
        "findings": [
            {"term": f.term, "node": f.node, "to": f.to, "sends": f.sends, "receives": f.receives, "effect": f.effect,
             "effect_ns": f.effect_ns, "runs": list(f.runs), "confirmed": f.confirmed, "text": f.text}
            for f in found
        ],
        "problems": list(fabric.problems),
    }  # fmt: skip
