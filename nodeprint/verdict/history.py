"""Over time.

A baseline of known-good runs, what changed since it, one campaign beside another, and fields that drift.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint import packed
from nodeprint.errors import NodeprintError
from nodeprint.packed import PackedFleet
from nodeprint.verdict import configuration, matrices, terms, wording
from nodeprint.verdict.acceptance import Acceptance
from nodeprint.verdict.outcome import Finding, Verdict
from nodeprint.verdict.terms import TERM_OF_FAMILY

Floats = npt.NDArray[np.float64]

#: A baseline is at least so many runs over so many boots of a node.
MIN_RUNS, MIN_BOOTS = 3, 2
#: EWMA of a node's terms over campaigns: weight of the newest, and the limit in its standard deviations. A healthy term
#: then runs about 2,600 campaigns between alarms (simulated, 40,000 normal series).
EWMA_WEIGHT, EWMA_LIMIT = 0.25, 3.5


@dataclass(frozen=True)
class Change:
    """A class of one node in two campaigns: medians in ns and the change with its 95 % interval, relative."""

    node: str
    measurement: str
    home: int
    class_name: str
    before_ns: float
    after_ns: float
    change: float
    interval: tuple[float, float]
    real: bool


def save(campaign: Path, folder: Path) -> Path:
    """Add a judged campaign to the baseline in `folder`, as one more point of its history; returns the point's path.

    Raises NodeprintError when the campaign is not there, or is in the baseline already.
    """
    fleet = packed.pack(campaign)
    target = folder / fleet.campaign
    if target.exists():
        raise NodeprintError(
            "is in the baseline already", where=target, advice="remove it first, or save under another name"
        )
    (target).mkdir(parents=True)
    shutil.copytree(campaign / packed.FOLDER, target / packed.FOLDER)
    note = {"schema": 1, "campaign": fleet.campaign, "simulated": fleet.simulated}
    (target / "baseline.json").write_text(json.dumps(note, indent=1) + "\n")
    return target


def points(folder: Path) -> list[PackedFleet]:
    """The campaigns of a baseline in the order of their first run; a campaign's own folder is a baseline of one.

    Raises NodeprintError where there is none.
    """
    if not folder.is_dir():
        raise NodeprintError("no such baseline", where=folder, advice="make one with `nodeprint baseline save`")
    if (folder / packed.FOLDER).is_dir() or (folder / "nodes.tsv").exists():
        return [packed.pack(folder)]
    found = [packed.read(path.parent.parent) for path in sorted(folder.glob(f"*/{packed.FOLDER}/index.json"))]
    if not found:
        raise NodeprintError("holds no campaign", where=folder, advice="add one with `nodeprint baseline save`")
    return sorted(
        found, key=lambda fleet: (min((s for st in fleet.stacks for s in st.started), default=""), fleet.campaign)
    )


def against(verdict: Verdict, fleet: PackedFleet, baseline: Path, rules: Acceptance) -> Verdict:
    """`verdict` with what changed in each node since its own baseline.

    A node is compared with itself, term by term: the EWMA over the baseline's campaigns and the newest, against its own
    run-to-run spread pooled over the nodes. A change beyond the bound is a finding; a node that was SAME becomes
    SUSPECT. A node with less than three runs over two boots in the baseline is told so by a warning.
    """
    past = points(baseline)
    simulated = {point.simulated for point in past} | {fleet.simulated}
    if len(simulated) > 1:
        raise NodeprintError("mixes simulated and measured campaigns", where=baseline, advice="name another baseline")
    nodes = dict(verdict.nodes)
    for stack in fleet.stacks:
        for name, found, thin in _changes(stack, fleet, past, rules):
            node = nodes[name]
            if thin:
                note = {
                    "id": "thin-baseline",
                    "text": f"{name} has fewer than {MIN_RUNS} runs over {MIN_BOOTS} boots in the baseline",
                    "advice": "add campaigns to it before trusting a change",
                }
                if note not in node.warnings:
                    node = replace(node, warnings=(*node.warnings, note))
            elif found is not None:
                worse = node.verdict in ("SAME", "SAME AS GROUP", "INCONCLUSIVE", "NO PEER")
                node = replace(
                    node,
                    findings=(*node.findings, found),
                    verdict="SUSPECT" if worse else node.verdict,
                    text=found.text if worse else node.text,
                )
            nodes[name] = node
    counts = Counter(node.verdict for node in nodes.values())
    return replace(verdict, nodes=nodes, fleet=replace(verdict.fleet, counts=dict(sorted(counts.items()))))


def _node_values(fleet: PackedFleet, measurement: str, key: bytes, template: Any) -> dict[str, tuple[Floats, int, int]]:
    """By name: a node's terms (run x home, term) relative to `template`, its runs and boots."""
    out: dict[str, tuple[Floats, int, int]] = {}
    for stack in fleet.stacks:
        if (
            stack.measurement != measurement
            or stack.layout.key != key
            or stack.layout.pairs.shape[0] != template.shape[-1]
        ):
            continue
        built = terms.of(stack.layout)
        latency = matrices.reduce(stack, built).latency
        values = matrices.contrasts(latency, template, built)  # (row, home, term)
        for number in np.unique(stack.node).tolist():
            node = fleet.nodes[number]
            mine = values[stack.node == number]
            out[node.name] = (mine, len(mine), max(len(node.boots), 1))
    return out


def _changes(
    stack: packed.Stack, fleet: PackedFleet, past: list[PackedFleet], rules: Acceptance
) -> list[tuple[str, Finding | None, bool]]:
    built = terms.of(stack.layout)
    if not built.terms:
        return []
    latency = matrices.reduce(stack, built).latency
    template = np.nanmedian(latency, axis=0)
    now = _node_values(fleet, stack.measurement, stack.layout.key, template)
    before = [_node_values(point, stack.measurement, stack.layout.key, template) for point in past]
    level = np.array([np.nanmean(template[0][term.covers]) for term in built.terms])
    percent = np.array([rules.bounds[TERM_OF_FAMILY[term.family]] for term in built.terms])
    bound = np.maximum(percent, rules.least_ns / level)
    residuals = [v - np.nanmean(v, axis=0) for point in (now, *before) for v, runs, _ in point.values() if runs > 1]
    if not residuals:
        return []
    stacked = np.concatenate(residuals)
    degrees = max(1, len(stacked) - len(residuals))
    run = np.sqrt(np.nansum(stacked**2, axis=0) / degrees)
    out: list[tuple[str, Finding | None, bool]] = []
    for name, (values, runs, _) in sorted(now.items()):
        history = [point[name] for point in before if name in point]
        if not history:
            continue
        thin = sum(h[1] for h in history) < MIN_RUNS or sum(h[2] for h in history) < MIN_BOOTS
        means = [np.nanmean(h[0], axis=0) for h in history]
        reference = np.mean(means, axis=0)
        level_of = np.zeros_like(reference)
        for mean in (*means[1:], np.nanmean(values, axis=0)):
            level_of = (1 - EWMA_WEIGHT) * level_of + EWMA_WEIGHT * (mean - reference)
        jump = np.nanmean(values, axis=0) - reference
        sd = run * np.sqrt(1 / runs + 1 / max(sum(h[1] for h in history), 1))
        ewma_sd = run / np.sqrt(runs) * np.sqrt(EWMA_WEIGHT / (2 - EWMA_WEIGHT))
        z = -_normal_quantile(rules.false_alarm / max(1, jump.size * len(now)) / 2)
        changed = (np.abs(jump) > np.maximum(bound, z * sd)) & (
            (np.abs(level_of) > EWMA_LIMIT * ewma_sd) | (len(history) < 2)
        )
        if not changed.any():
            out.append((name, None, thin))
            continue
        home, term = np.unravel_index(int(np.argmax(np.where(changed, np.abs(jump) / bound, 0))), jump.shape)
        number = next(i for i, node in enumerate(fleet.nodes) if node.name == name)
        where = wording.numbered(built.terms[term].where, stack.layout, fleet.nodes[number])
        effect, half = float(jump[home, term]), 1.96 * float(sd[home, term])
        spoken = wording.spoken(TERM_OF_FAMILY[built.terms[term].family], where)
        out.append(
            (
                name,
                Finding(
                    "changed",
                    "warning",
                    TERM_OF_FAMILY[built.terms[term].family],
                    where,
                    effect,
                    effect * float(level[term]),
                    (effect - half, effect + half),
                    (),
                    ("what was done to the node since",),
                    (),
                    "compare with what was changed on the node, measure it again",
                    f"{spoken} changed by {effect * 100:+.1f} % since the baseline",
                    stack.measurement,
                    stack.homes[int(home)],
                ),
                thin,
            )
        )
    return out


def _normal_quantile(p: float) -> float:
    from scipy.special import ndtri  # noqa: PLC0415 (beside its one use)

    return float(ndtri(p))


def compare(first: Verdict | Mapping[str, Any], second: Verdict | Mapping[str, Any]) -> list[Change]:
    """What changed between two judged campaigns, node by node and class by class, in the order of names.

    Intervals combine both classes' own over runs; a change is real where its interval has no zero and it is beyond
    0.5 ns.
    """
    before, after = (v.to_dict() if isinstance(v, Verdict) else v for v in (first, second))
    out = []
    for name in sorted(set(before["nodes"]) & set(after["nodes"])):
        known = {(c["measurement"], c["home"], c["name"]): c for c in before["nodes"][name]["classes"]}
        for figure in after["nodes"][name]["classes"]:
            old = known.get((figure["measurement"], figure["home"], figure["name"]))
            if old is None:
                continue
            change = figure["median_ns"] / old["median_ns"] - 1
            halves = [
                (c["ci_high_ns"] - c["ci_low_ns"]) / 2 / old["median_ns"]
                if c["ci_high_ns"] is not None
                else float("nan")
                for c in (old, figure)
            ]
            half = float(np.hypot(halves[0], halves[1]))
            real = bool(abs(change) > half and abs(figure["median_ns"] - old["median_ns"]) > 0.5)
            out.append(
                Change(
                    name,
                    figure["measurement"],
                    figure["home"],
                    figure["name"],
                    old["median_ns"],
                    figure["median_ns"],
                    change,
                    (change - half, change + half),
                    real,
                )
            )
    return out


def drift(fleet: PackedFleet, rules: Acceptance) -> dict[str, list[configuration.Difference]]:
    """By node, the fingerprint fields that differ from the majority, hard and soft; nodes without any are left out."""
    measured = [node for node in fleet.nodes if node.state == "measured"]
    return {name: found for name, found in configuration.differences(measured, rules).items() if found}
