"""Comparisons over time.

A baseline of known-good runs, what changed since it, one campaign beside another, and fields that drift.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from nodeprint import files, fingerprint, packed
from nodeprint.cells import Cells, models
from nodeprint.errors import NodeprintError, printable
from nodeprint.fingerprint import label
from nodeprint.layout import Ints
from nodeprint.packed import PackedFleet, PackedNode, Stack
from nodeprint.verdict import cell_words, cells, configuration, matrices, terms, wording
from nodeprint.verdict.acceptance import Acceptance
from nodeprint.verdict.attribution import RUN_SHARE, shown_by_runs
from nodeprint.verdict.evaluate import bounds_of
from nodeprint.verdict.outcome import Finding, Verdict, some_names
from nodeprint.verdict.terms import TERM_OF_FAMILY
from nodeprint.verdict.thresholds import PRIOR_DF, RUN_PRIOR

Floats = npt.NDArray[np.float64]

#: A baseline is at least so many runs over so many boots of a node.
MIN_RUNS, MIN_BOOTS = 3, 2
#: EWMA of a node's terms over campaigns: weight of the newest, and the limit in its standard deviations. A healthy term
#: then runs about 2,600 campaigns between alarms (simulated, 40,000 normal series).
EWMA_WEIGHT, EWMA_LIMIT = 0.25, 3.5


@dataclass(frozen=True)
class Change:
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


@dataclass(frozen=True)
class _Series:
    """One measurement over campaigns: by name of a node its values (run, column), relative to one template, now and in
    each campaign `before`. `bound` is each column's, `finding` puts an effect with its interval into words."""

    measurement: str
    bound: Floats
    run_prior: float
    now: Mapping[str, Floats]
    before: Sequence[Mapping[str, Floats]]
    finding: Callable[[PackedNode, int, float, float], Finding]


def save(campaign: Path, folder: Path) -> Path:
    """Add a judged campaign to the baseline in `folder`, as one more point of its history; returns the point's path.

    Raises NodeprintError when the campaign is not there, or is in the baseline already.
    """
    fleet = packed.pack(campaign)
    target = folder / fleet.campaign
    if target.exists():
        advice = "remove that folder first where the campaign was measured again"
        raise NodeprintError("is in the baseline already", where=target, advice=advice)
    note = {"schema": 1, "campaign": fleet.campaign, "simulated": fleet.simulated}
    with files.replacing_folder(target) as partial:
        shutil.copytree(campaign / packed.FOLDER, partial / packed.FOLDER)
        (partial / "baseline.json").write_text(json.dumps(note, indent=1) + "\n")
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
    return sorted(found, key=lambda fleet: (_begun(fleet), fleet.campaign))


def _begun(fleet: PackedFleet) -> str:
    """When its first run began; empty where that is not known."""
    started = [one.started for one in fleet.stacks] + [one.started for one in fleet.cells]
    return min((moment for one in started for moment in one), default="")


@dataclass(frozen=True)
class Since:
    """What changed since a baseline: by node the findings, and of nodes that it holds too little of a warning that says
    so; `note` says which baseline it was and whether it can be trusted."""

    findings: Mapping[str, Sequence[Finding]]
    warnings: Mapping[str, Mapping[str, str]]
    note: str


def against(fleet: PackedFleet, baseline: Path, rules: Acceptance) -> Since:
    """What changed in each node of `fleet` since its own baseline, of pairs and of cells.

    A node is compared with itself, term by term and set by set: the EWMA over the baseline's campaigns and the newest,
    against the run-to-run spread pooled over the nodes. A change beyond the bound that every run shows is a finding. Of
    a node with less than three runs over two boots in the baseline nothing is said to have changed.
    Raises NodeprintError where there is no baseline, or one of the two is simulated and the other is not.
    """
    past = points(baseline)
    simulated = {point.simulated for point in past} | {fleet.simulated}
    if len(simulated) > 1:
        raise NodeprintError("mixes simulated and measured campaigns", where=baseline, advice="name another baseline")
    series = [*_of_pairs(fleet, past, rules), *_of_cells(fleet, past, rules)]
    tests = sum(len(one.bound) * len(one.now) for one in series)
    boots = _boots(past)
    changes: dict[str, list[Finding]] = {}
    thin: dict[str, list[str]] = {}
    for one in series:
        for name, found in _changes(one, fleet, rules.false_alarm / max(tests, 1)):
            runs = sum(len(point[name]) for point in one.before if name in point)
            if runs < MIN_RUNS or len(boots[name]) < MIN_BOOTS:
                thin.setdefault(name, []).append(one.measurement)
            elif found is not None:
                changes.setdefault(name, []).append(found)
    warnings = {}
    for name, measurements in thin.items():
        few = f"{name} has fewer than {MIN_RUNS} runs or {MIN_BOOTS} boots in the baseline of"
        warnings[name] = {
            "id": "thin-baseline",
            "text": f"{few} {', '.join(sorted(set(measurements)))}",
            "advice": "add campaigns to the baseline",
        }
    note = f"baseline {printable(str(baseline))} ({'; '.join(map(_point, past))}): {_trust(past, fleet, thin)}"
    return Since(changes, warnings, note + (f"; {some_names(sorted(changes))} changed since" if changes else ""))


def _point(fleet: PackedFleet) -> str:
    """A campaign of a baseline: its name, the day it began and the jobs that it has."""
    numbers = [one.job for one in fleet.stacks] + [one.job for one in fleet.cells]
    jobs = sorted({job for of_row in numbers for job in of_row.tolist()})
    told = f"jobs {jobs[0]} to {jobs[-1]}" if len(jobs) > 1 else f"job {jobs[0]}" if jobs else "nothing measured"
    return ", ".join(filter(None, (printable(fleet.campaign), _begun(fleet)[:10], told)))


def _trust(past: Sequence[PackedFleet], fleet: PackedFleet, thin: Mapping[str, object]) -> str:
    """Whether a change since a baseline can be trusted."""
    known = {node.name for point in past for node in point.nodes if node.state == "measured"}
    measured = [node.name for node in fleet.nodes if node.state == "measured"]
    new = [name for name in measured if name not in known]
    if thin:
        said = (
            f"too small yet, as {some_names(sorted(thin))} of {len(measured)} have fewer than {MIN_RUNS} runs "
            f"or {MIN_BOOTS} boots in it; no change is reported for these"
        )
    elif len(new) == len(measured):
        said = "none of the measured nodes is in it"
    else:
        said = f"sufficient, as each node has at least {MIN_RUNS} runs over {MIN_BOOTS} boots in it"
    return said + (f"; not in it: {some_names(new)}" if 0 < len(new) < len(measured) else "")


def _boots(past: Sequence[PackedFleet]) -> dict[str, set[str]]:
    """By node, the boots that a baseline's campaigns are of; those of a campaign that does not know count as one."""
    out: dict[str, set[str]] = {}
    for point in past:
        for node in point.nodes:
            out.setdefault(node.name, set()).update(node.boots or (f"of {point.campaign}",))
    return out


def _of_pairs(fleet: PackedFleet, past: Sequence[PackedFleet], rules: Acceptance) -> list[_Series]:
    return [
        _pair_series(stack, fleet, past, rules)
        for stack in fleet.stacks
        if len(stack.layout.pairs) and terms.of(stack.layout).terms
    ]


def _pair_series(stack: Stack, fleet: PackedFleet, past: Sequence[PackedFleet], rules: Acceptance) -> _Series:
    """Every term at every home."""
    built = terms.of(stack.layout)
    template = np.nanmedian(matrices.reduce(stack, built).latency, axis=0)

    def values(of: PackedFleet) -> dict[str, Floats]:
        out: dict[str, Floats] = {}
        for other in of.stacks:
            same_pairs = other.layout.key == stack.layout.key and len(other.layout.pairs) == template.shape[-1]
            if other.measurement == stack.measurement and other.homes == stack.homes and same_pairs:
                found = matrices.contrasts(matrices.reduce(other, built).latency, template, built)
                out |= _by_node(of, other.node, found.reshape(len(found), -1))
        return out

    families = [TERM_OF_FAMILY[term.family] for term in built.terms]
    level = np.array([np.nanmean(template[0][term.covers]) for term in built.terms])
    bound = bounds_of(built, level, rules)

    def finding(node: PackedNode, column: int, effect: float, half: float) -> Finding:
        home, term = divmod(column, len(built.terms))
        where = wording.numbered(built.terms[term].where, stack.layout, node)
        text = f"{wording.spoken(families[term], where)} changed by {effect * 100:+.1f} % since the baseline"
        ns = effect * float(level[term])
        interval = (effect - half, effect + half)
        return _finding(families[term], where, effect, ns, interval, text, stack.measurement, stack.homes[home])

    past_values = [values(point) for point in past]
    return _Series(
        stack.measurement, np.tile(bound, len(stack.homes)), RUN_PRIOR, values(fleet), past_values, finding
    )  # fmt: skip


def _of_cells(fleet: PackedFleet, past: Sequence[PackedFleet], rules: Acceptance) -> list[_Series]:
    return [_cell_series(one, fleet, past, rules) for one in fleet.cells if one.measurement in models() and one.places]


def _cell_series(one: Cells, fleet: PackedFleet, past: Sequence[PackedFleet], rules: Acceptance) -> _Series:
    """Every set of a measurement's model."""
    model = models()[one.measurement]
    sets, limit = cells.sets_of(one, model), rules.cell(model.term)
    alike = [(point, other) for point in past for other in point.cells if cells.kind_of(other) == cells.kind_of(one)]
    values, template = cells.over_time([one, *(other for _, other in alike)], sets, model, limit.bound)
    before = [_by_node(point, other.node, found) for (point, other), found in zip(alike, values[1:], strict=True)]
    share = model.scale == "share"

    def finding(node: PackedNode, column: int, effect: float, half: float) -> Finding:
        where = cell_words.numbered(sets.labels[column], sets.where[column], node, model)
        size = cells.relative(effect, model, limit.bound)
        low, high = (cells.relative(effect + side, model, limit.bound) for side in (-half, half))
        what = "% of its time lost" if share else "%"
        text = f"{one.measurement}, {cell_words.spoken(where)} changed by {size * 100:+.1f} {what} since the baseline"
        ns = (
            size * float(np.nanmedian(template[sets.member[column]]))
            if one.unit == "ns" and not share
            else float("nan")
        )
        return _finding(model.term, where, size, ns, (low, high), text, one.measurement, -1)

    bound = np.full(len(sets.labels), np.log(2) if share else limit.bound)
    now = _by_node(fleet, one.node, values[0])
    return _Series(one.measurement, bound, limit.prior, now, before, finding)


def _finding(
    term: str, where: Mapping[str, int | str], effect: float, effect_ns: float, interval: tuple[float, float],
    text: str, measurement: str, home: int,
) -> Finding:  # fmt: skip
    return Finding(
        "changed", "warning", term, where, effect, effect_ns, interval, (),
        ("work done on the node since",), (), "compare with what was changed on the node, measure it again",
        text, measurement, home,
    )  # fmt: skip


def _by_node(fleet: PackedFleet, node: Ints, values: Floats) -> dict[str, Floats]:
    """By name, the rows of `values` of each node."""
    return {fleet.nodes[number].name: values[node == number] for number in np.unique(node).tolist()}


def _changes(one: _Series, fleet: PackedFleet, alpha: float) -> list[tuple[str, Finding | None]]:
    """Of every node that was there before, what changed most; `alpha` is a column's chance of a false alarm."""
    nodes = {node.name: node for node in fleet.nodes}
    groups = [values for point in (one.now, *one.before) for values in point.values()]
    out: list[tuple[str, Finding | None]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column that no run measured stays NaN and is left out
        run, degrees = _run_scale(groups, one.run_prior)
        z = -float(stdtrit(degrees, alpha / 2))
        for name, values in sorted(one.now.items()):
            history = [point[name] for point in one.before if name in point]
            if not history:
                continue
            newest, *means = (np.nanmean(each, axis=0) for each in (values, *history))
            reference = np.mean(means, axis=0)
            jump, level = newest - reference, np.zeros_like(reference)
            for mean in (*means[1:], newest):
                level = (1 - EWMA_WEIGHT) * level + EWMA_WEIGHT * (mean - reference)
            sd = run * np.sqrt(1 / len(values) + 1 / sum(map(len, history)))
            ewma_sd = run / np.sqrt(len(values)) * np.sqrt(EWMA_WEIGHT / (2 - EWMA_WEIGHT))
            changed = np.abs(jump) > np.maximum(one.bound, z * sd)
            changed &= shown_by_runs(values, reference, RUN_SHARE * jump)
            if len(history) > 1:
                changed &= np.abs(level) > EWMA_LIMIT * ewma_sd
            most = int(np.argmax(np.where(changed, np.abs(jump) / one.bound, 0.0)))
            told = one.finding(nodes[name], most, float(jump[most]), 1.96 * float(sd[most])) if changed[most] else None
            out.append((name, told))
    return out


def _run_scale(groups: Sequence[Floats], prior: float) -> tuple[Floats, float]:
    """Run-to-run standard deviation of each column over the runs of each group (run, column), and its degrees of
    freedom, the prior's among them."""
    squares = np.zeros(groups[0].shape[1])
    for values in groups:
        squares += np.nansum((values - np.nanmean(values, axis=0)) ** 2, axis=0)
    degrees = sum(len(values) - 1 for values in groups) + PRIOR_DF
    return np.sqrt((squares + PRIOR_DF * prior**2) / degrees), degrees


@dataclass(frozen=True)
class _Figure:
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
            moved = abs(change) > threshold
            out.append(
                Change(node, measurement, home, name, new.unit, old.median, new.median, change, threshold, moved)
            )
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
            f"a verdict cannot be compared ({type(error).__name__}: {error})", advice=advice
        ) from error
    return out


def as_text(changes: Sequence[Change], rules: Acceptance) -> str:
    """For a terminal: what changed, a line each, how much did not, and by which rule."""
    moved = [change for change in changes if change.changed]
    lines = []
    for c in moved:
        place = f"{c.measurement}, {c.name}" + (f", home {c.home}" if c.home >= 0 else "")
        values = f"{cell_words.said(c.before, c.unit)} to {cell_words.said(c.after, c.unit)}"
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


def drift(nodes: Iterable[PackedNode], rules: Acceptance) -> dict[str, list[configuration.Difference]]:
    """By node, the fields of its fingerprint that differ from the majority; nodes without any are left out."""
    known = [node for node in nodes if node.fingerprint]
    found = configuration.differences(known, rules, fingerprint.DRIFT)
    return {name: differing for name, differing in found.items() if differing}
