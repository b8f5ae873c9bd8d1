"""From a campaign to its verdict."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodeprint import __version__, discover, packed
from nodeprint import fabric as messages
from nodeprint.cells import models
from nodeprint.config import planned
from nodeprint.fingerprint import label
from nodeprint.layout import CLASSES, Ints
from nodeprint.packed import PackedFleet, PackedNode
from nodeprint.verdict import acceptance as accepted
from nodeprint.verdict import (
    cell_words,
    cells,
    configuration,
    evaluate,
    fabric,
    groups,
    history,
    matrices,
    outputs,
    quality,
    terms,
    thresholds,
    wording,
)
from nodeprint.verdict.acceptance import Acceptance
from nodeprint.verdict.cells import Judged
from nodeprint.verdict.configuration import Difference
from nodeprint.verdict.evaluate import KindResult, NodeEvidence, Shown
from nodeprint.verdict.figures import figures_of
from nodeprint.verdict.matrices import Matrix, Reduced
from nodeprint.verdict.outcome import (
    NODE_OUTCOMES,
    SAMES,
    CellFigure,
    ClassFigure,
    Finding,
    FleetVerdict,
    MarginFigure,
    NodeVerdict,
    Verdict,
    exceeded,
    said_within,
    widest,
)
from nodeprint.verdict.terms import FAMILIES, TERM_OF_FAMILY

#: Where more than this share of nodes have a configuration of their own, the key that separates them is reported first.
_ALONE_SHARE = 0.05
#: Families that two populations may differ in; a core or one CCX is a node's own.
_SPLIT_FAMILIES = ("class", "quadrant", "link", "ccd")
_MODEL = "pairs"
#: Causes that are measured directly and show in pairs, too: reported first.
_DIRECT = ("clock", "jitter")

Floats = npt.NDArray[np.float64]
#: What SUSPECT nodes need.
_ONCE = "a second job, at least 10 minutes later, can confirm it"
_TOO_SOON = "its second job began less than 10 minutes after the first and is not independent of it; measure it again"
#: The id of a finding that a later job did not confirm.
_GONE = "not-confirmed"
#: What nodes have in common beside their fingerprint.
_LAYOUT = "layout of sockets, CCDs and cores"
#: The beginning of quality remarks that make a job invalid.
_INVALID = "invalid: "
#: Nodes with damaged records that are named with the reason.
_MOST_BROKEN = 3
#: A node is measured again at most so often.
_MOST_JOBS = 3


@dataclass(frozen=True)
class _Kind:
    """Nodes that are compared with each other: a configuration, or a population of it that `term` separates."""

    nodes: Ints
    term: str
    result: KindResult | None
    cells: Sequence[Judged] = ()


def judge(campaign: Path, *, baseline: Path | None = None, acceptance: Path | None = None) -> Verdict:
    """Judge a campaign from what is there and write verdict.json, JUnit, Prometheus text and drain.sh.

    Packs the fleet first where needed; `baseline` is a folder of `history.save`. By `acceptance`, of which the campaign
    keeps a copy; by that copy where none is named, else by the defaults.

    Raises NodeprintError when there is no campaign, or `acceptance` or `baseline` cannot be used.
    """
    rules = accepted.load(acceptance or accepted.kept(campaign))
    fleet = packed.pack(campaign)
    if acceptance is not None:
        accepted.keep(acceptance, campaign)
    since = history.against(fleet, baseline, rules) if baseline is not None else None
    result = judge_fleet(fleet, rules, since)
    versions = {**result.versions, "acceptance": accepted.name(accepted.kept(campaign))}
    links = tuple(fabric.entry(one, fabric.judge(one)) for one in messages.read(campaign))
    result = replace(result, versions=versions, fabric=links)
    unjudged = _unjudged(campaign, result)
    if unjudged:
        note = f"measured but not compared, as no model is stated: {', '.join(unjudged)}; the records are in nodes/"
        result = replace(result, fleet=replace(result.fleet, notes=(*result.fleet.notes, note)))
    outputs.write(result, campaign, _slurm_reasons(campaign))
    return result


def _unjudged(campaign: Path, result: Verdict) -> list[str]:
    """Measured pairs apart, what was measured and states no model; none where nothing was judged."""
    judged = {figure.measurement for node in result.nodes.values() for figure in node.classes}
    left = [name for name in planned(campaign) if name not in judged | set(models())] if judged else []
    return [name for name in left if any(campaign.glob(f"nodes/*/job*/run*/{name}.jsonl.gz"))]


def _slurm_reasons(campaign: Path) -> dict[str, tuple[str, str]]:
    sheet = campaign / "nodes.tsv"
    nodes = discover.read_sheet(sheet) if sheet.exists() else []
    return {node.node: (node.state, node.reason) for node in nodes}


def judge_fleet(fleet: PackedFleet, rules: Acceptance | None = None, since: history.Since | None = None) -> Verdict:
    """The verdict of a packed fleet, with what changed in it `since` a baseline; writes nothing."""
    rules = rules if rules is not None else accepted.load()
    reduced = _reduced(fleet)
    fleet = _with_homes(fleet, reduced)
    measured = [node for node in fleet.nodes if node.state == "measured"]
    differing = configuration.differences(measured, rules)
    number = {node.name: i for i, node in enumerate(fleet.nodes)}
    named = configuration.groups(measured, _layouts(fleet), differing)
    kinds, tests = _kinds([np.array([number[name] for name in names]) for names in named], reduced, fleet, rules)
    figures = figures_of(reduced, len(fleet.nodes))
    rows = _beside_groups(cell_words.figures_of(fleet.cells, fleet.nodes), kinds)
    return _Writer(fleet, rules, kinds, figures, rows, differing, reduced, tests, since).verdict()


def _beside_groups(rows: Sequence[Sequence[CellFigure]], kinds: Sequence[_Kind]) -> list[tuple[CellFigure, ...]]:
    """Figures of cells with the median over the nodes of each kind."""
    out = [tuple(mine) for mine in rows]
    for kind in kinds:
        if len(kind.nodes) < 2:
            continue
        known: dict[tuple[str, str], list[float]] = {}
        for i in kind.nodes.tolist():
            for figure in rows[i]:
                known.setdefault((figure.measurement, figure.name), []).append(figure.median)
        group = {key: float(np.median(medians)) for key, medians in known.items()}
        for i in kind.nodes.tolist():
            out[i] = tuple(replace(f, group=group[f.measurement, f.name]) for f in rows[i])
    return out


def _reduced(fleet: PackedFleet) -> list[Reduced]:
    return [
        matrices.reduce(stack, terms.of(stack.layout))
        for stack in fleet.stacks
        if stack.model == _MODEL and len(stack.layout.pairs)
    ]


def _with_homes(fleet: PackedFleet, reduced: Sequence[Reduced]) -> PackedFleet:
    """The home nodes of the lines that each node's pairs were measured with, as a field of its fingerprint.

    The home decides a pair's latency, so that nodes measured with other homes are other configurations.
    """
    homes: dict[int, set[str]] = {}
    for one in reduced:
        if one.stack.quantity != evaluate.HOP:
            continue
        names = ["not controlled" if home < 0 else str(home) for home in one.stack.homes]
        for node, sittings in one.sittings.items():
            rows = (one.stack.node == node) & np.isin(one.stack.job, evaluate.first_of(sittings))
            measured = [name for name, missing in zip(names, one.missing[rows].min(axis=0), strict=True) if missing < 1]
            if measured:
                homes.setdefault(node, set()).add(", ".join(measured))
    nodes = tuple(
        replace(node, fingerprint={**node.fingerprint, "homes": " / ".join(sorted(homes[i]))}) if i in homes else node
        for i, node in enumerate(fleet.nodes)
    )
    return replace(fleet, nodes=nodes)


def _layouts(fleet: PackedFleet) -> dict[str, str]:
    """By name of each node with a matrix, what its places look like."""
    keys: dict[int, set[str]] = {}
    for stack in fleet.stacks:
        digest = hashlib.sha256(stack.layout.key).hexdigest()
        for node in np.unique(stack.node).tolist():
            keys.setdefault(node, set()).add(digest)
    layouts = {node: " ".join(sorted(found)) for node, found in keys.items()}
    machines: dict[bytes, set[int]] = {}
    for one in fleet.cells:
        machines.setdefault(one.slots.tobytes() + one.numa.tobytes(), set()).update(one.node.tolist())
    for machine, nodes in machines.items():  # a node without pairs is like those that have its CPUs and NUMA nodes
        known = Counter(layouts[node] for node in sorted(nodes) if node in layouts)
        common = known.most_common(1)[0][0] if known else hashlib.sha256(machine).hexdigest()
        layouts |= {node: common for node in nodes if node not in layouts}
    return {fleet.nodes[node].name: layout for node, layout in layouts.items()}


def _kinds(
    configurations: Sequence[Ints], reduced: Sequence[Reduced], fleet: PackedFleet, rules: Acceptance
) -> tuple[list[_Kind], int]:
    """The kinds within each configuration, and the number of tests.

    Where there are both pairs and cells, each gets half of the rate of false alarms.
    """
    largest = len(configurations[0]) if configurations else 0
    judged = [nodes for nodes in configurations if len(nodes) >= groups.MIN_NODES or 1 < len(nodes) == largest]
    tests = sum(evaluate.tests_of(_with(reduced, nodes), len(nodes)) for nodes in judged)
    # an equal share to every node, matrix and family, within it to every term
    families = sum(len(nodes) * evaluate.families_of(_with(reduced, nodes)) for nodes in judged)
    quantities = [cells.of_kind(fleet.cells, nodes) for nodes in judged]
    others = sum(len(nodes) * cells.families_of(mine) for nodes, mine in zip(judged, quantities, strict=True))
    tests += sum(len(nodes) * cells.tests_of(mine) for nodes, mine in zip(judged, quantities, strict=True))
    share = 0.5 if families and others else 1.0
    alpha, alpha_cells = (share * rules.false_alarm / max(count, 1) for count in (families, others))
    kinds: list[_Kind] = []
    for nodes in configurations:
        if any(nodes is one for one in judged):
            kinds += [
                replace(kind, cells=cells.evaluate_kind(fleet.cells, kind.nodes, rules, alpha_cells))
                if kind.result is not None
                else kind
                for kind in _populations(nodes, _with(reduced, nodes), fleet, rules, alpha)
            ]
        else:
            kinds.append(_Kind(nodes, "", None))
    return sorted(kinds, key=lambda kind: (kind.result is None, -len(kind.nodes), int(kind.nodes[0]))), tests


def _with(reduced: Sequence[Reduced], nodes: Ints) -> list[Reduced]:
    return [one for one in reduced if np.isin(one.stack.node, nodes).any()]


def _populations(
    nodes: Ints, reduced: Sequence[Reduced], fleet: PackedFleet, rules: Acceptance, alpha: float
) -> list[_Kind]:
    """The populations of a configuration, each evaluated with a template of its own.

    They are separated where the coarse terms form two groups, or where a fifth of the nodes share a deviation.
    """
    screened = evaluate.screen(reduced, nodes)
    parts = _split(screened, fleet, nodes, rules)
    kinds = []
    for part, term in parts:
        again = screened if len(parts) == 1 else evaluate.screen(reduced, part)
        result = evaluate.evaluate(reduced, again, part, rules, alpha) if len(part) > 1 else None
        sides = _shared(part, result) if result is not None else None
        if sides is None:
            kinds.append(_Kind(part, term, result))
            continue
        for side in sides[0]:
            of_side = evaluate.evaluate(reduced, evaluate.screen(reduced, side), side, rules, alpha)
            kinds.append(_Kind(side, sides[1], of_side))
    return kinds


def _split(screened: Sequence[Matrix], fleet: PackedFleet, nodes: Ints, rules: Acceptance) -> list[tuple[Ints, str]]:
    """Nodes that differ in a coarse term of pairs or set of cells, and the term that separates them."""
    if len(nodes) < 2 * groups.MIN_NODES:
        return [(nodes, "")]
    whole = [m for m in screened if len(m.nodes) == len(nodes)]
    means, bounds, floors, names = [], [], [], []
    prior = rules.prior_of_family()
    for matrix in whole:
        mine = np.isin(matrix.terms.family, [FAMILIES.index(name) for name in _SPLIT_FAMILIES])
        values = matrix.values[:, :, mine]
        if not np.isfinite(values).any(axis=1).all():
            continue
        pool = matrix.terms.pool[mine]
        run = thresholds.run_scales(values, pool)
        chip = np.array([prior[terms.family_of_pool(int(p))] for p in pool])
        means.append(np.nanmean(values, axis=1))
        bounds.append(evaluate.bounds_of(matrix.terms, evaluate.levels(matrix), rules, matrix.stack.tick_ns)[mine])
        floors.append(np.sqrt(run**2 / values.shape[1] + chip**2))
        names += [_term_name(matrix, int(i)) for i in np.flatnonzero(mine)]
    for one in cells.coarse(fleet.cells, nodes, rules):
        means.append(one.means)
        bounds.append(np.full(len(one.labels), one.bound))
        floors.append(one.floor)
        names += [
            f"{one.measurement}, {cell_words.spoken(dict(zip(labels, where, strict=True)))}"
            for labels, where in zip(one.labels, one.where, strict=True)
        ]
    if not means:
        return [(nodes, "")]
    parts = groups.split(np.concatenate(means, axis=1), np.concatenate(bounds), np.concatenate(floors))
    return [(nodes[part], names[term] if term >= 0 else "") for part, term in parts]


def _term_name(matrix: Matrix, term: int) -> str:
    one = matrix.terms.terms[term]
    where = wording.numbered(one.where, matrix.terms.layout, PackedNode(""))
    return wording.spoken(TERM_OF_FAMILY[one.family], where)


def _shared(nodes: Ints, result: KindResult) -> tuple[tuple[Ints, Ints], str] | None:
    """The two sides of the term that most nodes deviate in, if these are too many to be reported one by one."""
    least = max(groups.MIN_NODES, int(np.ceil(groups.MIN_SHARE * len(nodes))))
    if len(nodes) < 2 * groups.MIN_NODES:
        return None
    for number, term, _ in sorted(result.shared, key=lambda entry: -len(entry[2])):
        one = result.evidence[number]
        if len(one.matrix.nodes) != len(nodes):
            continue
        values = np.nanmean(one.matrix.values[:, :, term], axis=1)
        sides = groups.cut_at(values, least, float(one.stats.bound[term]))
        if sides is not None:
            return (one.matrix.nodes[sides[0]], one.matrix.nodes[sides[1]]), _term_name(one.matrix, term)
    return None


@dataclass  # not frozen: its properties are computed once
class _Writer:
    """Puts all results into outcomes and words."""

    fleet: PackedFleet
    rules: Acceptance
    kinds: Sequence[_Kind]
    figures: Sequence[Sequence[ClassFigure]]
    quantities: Sequence[tuple[CellFigure, ...]]
    differing: Mapping[str, Sequence[Difference]]
    reduced: Sequence[Reduced]
    tests: int
    since: history.Since | None

    @cached_property
    def rows(self) -> list[dict[int, dict[int, list[int]]]]:
        """Per stack, the rows of each node's jobs."""
        out = []
        for one in self.reduced:
            rows: dict[int, dict[int, list[int]]] = {}
            for row, (node, job) in enumerate(zip(one.stack.node.tolist(), one.stack.job.tolist(), strict=True)):
                rows.setdefault(node, {}).setdefault(job, []).append(row)
            out.append(rows)
        return out

    @cached_property
    def jobs(self) -> dict[int, set[int]]:
        """The jobs that each node has."""
        out: dict[int, set[int]] = {}
        rows = [(one.stack.node, one.stack.job) for one in self.reduced]
        for of_row, job_of_row in rows + [(one.node, one.job) for one in self.fleet.cells]:
            for node, job in zip(of_row.tolist(), job_of_row.tolist(), strict=True):
                out.setdefault(node, set()).add(job)
        return out

    def verdict(self) -> Verdict:
        """The whole."""
        populations = [kind for kind in self.kinds if kind.result is not None]
        place = {i: k for k, kind in enumerate(populations) for i in kind.nodes.tolist()}
        nodes = {}
        for i, node in enumerate(self.fleet.nodes):
            letter = _letter(place[i]) if i in place and len(populations) > 1 else ""
            told = self._judged(i, node, populations[place[i]], letter) if i in place else self._unjudged(i, node)
            nodes[node.name] = self._over_time(node, told)
        counts = Counter(verdict.verdict for verdict in nodes.values())
        ordered = {outcome: counts[outcome] for outcome in NODE_OUTCOMES if counts[outcome]}
        fleet = self._fleet(nodes, populations, ordered)
        versions = {"nodeprint": __version__, **self.fleet.versions}
        return Verdict(self.fleet.campaign, self.fleet.simulated, versions, fleet, nodes, self._recheck(nodes))

    def _base(self, i: int, node: PackedNode) -> NodeVerdict:
        soft = tuple(
            {
                "id": f"fingerprint-{d.key}",
                "text": d.text,
                "advice": "make it equal on all nodes, or accept the difference in acceptance.yaml",
            }
            for d in self.differing.get(node.name, ())
        )
        return NodeVerdict(
            "INCONCLUSIVE",
            "",
            quality=(*node.quality, *self._lacking(i), *self._invalid(i, node).get(self._newest(i), ())),
            fingerprint=node.fingerprint,
            warnings=(
                *node.warnings,
                *soft,
                *quality.warnings(node, i, self.fleet.cells, self.rules, lambda: self._explained(i)),
            ),
            classes=tuple(self.figures[i]),
            cells=self.quantities[i],
            reason=node.reason,
            log_tail=node.log_tail,
            rack=node.rack,
        )

    def _explained(self, i: int) -> str:
        return next((cell_words.explained(kind.cells, i) for kind in self.kinds if i in kind.nodes and kind.cells), "")

    def _newest(self, i: int) -> int:
        return max(self.jobs.get(i, ()), default=0)

    def _lacking(self, i: int) -> list[str]:
        present = {one.stack.measurement for one, rows in zip(self.reduced, self.rows, strict=True) if i in rows}
        present |= {figure.measurement for figure in self.quantities[i]}
        return [f"invalid: {name} was not measured" for name in self.rules.required if name not in present]

    def _invalid(self, i: int, node: PackedNode) -> dict[int, list[str]]:
        """The invalid jobs of a node, and the reasons."""
        found = {job: [*self._gaps(i, job), *quality.invalid(node, job, self.rules)] for job in self.jobs.get(i, ())}
        return {job: why for job, why in found.items() if why}

    def _gaps(self, i: int, job: int) -> list[str]:
        out = []
        for one, rows in zip(self.reduced, self.rows, strict=True):
            mine = rows.get(i, {}).get(job)
            if not mine:
                continue
            stack = one.stack
            missing = one.missing[mine]
            # at other homes the job was not measured: that is another configuration, and no gap
            measured = missing.min(axis=0) < 1
            gaps = missing[:, measured].mean(axis=1) if measured.any() else np.ones(len(mine))
            disturbed = stack.disturbed if len(stack.disturbed) else np.zeros(len(one.missing))
            for shares, limit, what in (
                (gaps, self.rules.missing_pairs, "are missing"),
                (disturbed[mine], self.rules.disturbed_pairs, "were disturbed"),
            ):
                out += [
                    f"invalid: {stack.measurement}, job{stack.job[row]}/run{stack.run[row]}: "
                    f"{share * 100:.0f} % of the pairs {what}"
                    for row, share in zip(mine, shares.tolist(), strict=True)
                    if np.mean(shares) > limit and share > limit
                ]
        return out

    def _unjudged(self, i: int, node: PackedNode) -> NodeVerdict:
        base = self._base(i, node)
        if node.state != "measured":
            return replace(base, verdict="NOT MEASURED", text=node.reason or "not measured")
        base = replace(base, findings=self._marked(node, self._limits(i)))
        limits = [found for found in base.findings if not found.suppressed]
        if limits:
            return replace(base, verdict="OUTSIDE LIMIT", text=limits[0].text)
        invalid = [text for text in base.quality if text.startswith(_INVALID)]
        if invalid:
            outcome, text = _no_evidence(invalid[0], twice=len(self._invalid(i, node)) > 1)
            return replace(base, verdict=outcome, text=text)
        if sum(other.state == "measured" for other in self.fleet.nodes) == 1:
            text = "the only measured node; measure others of this configuration to compare it with"
            return replace(base, verdict="NO PEER", text=text)
        return replace(base, verdict="DIFFERENT CONFIGURATION", text=self._configured(i, node))

    def _marked(self, node: PackedNode, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Findings with why they are known and accepted."""
        return tuple(replace(f, suppressed=self.rules.suppressed(node.name, f.id, self._day)) for f in findings)

    def _configured(self, i: int, node: PackedNode) -> str:
        """How a node differs from those of another configuration, with its class medians against theirs."""
        peers = self.kinds[0].nodes.tolist() if self.kinds else []
        if i in peers:
            peers = [j for kind in self.kinds[1:] for j in kind.nodes.tolist()]
        keys = [label(d.key) for d in self.differing.get(node.name, ()) if d.hard] or [f"its {_LAYOUT}"]
        said = []
        for figure in self.figures[i]:
            others = [
                f.median_ns
                for j in peers
                for f in self.figures[j]
                if (f.name, f.measurement, f.home) == (figure.name, figure.measurement, figure.home)
            ]
            if others:
                said.append(f"{figure.name} {(figure.median_ns / float(np.median(others)) - 1) * 100:+.1f} %")
        return f"differs in {', '.join(keys)}; against the others: {', '.join(said) or 'nothing to compare'}"

    def _limits(self, i: int) -> list[Finding]:
        figures = [(f.measurement, f.name, f.median_ns, "ns", f.home) for f in self.figures[i]]
        figures += [(f.measurement, f.name, f.median, f.unit, -1) for f in self.quantities[i]]
        out = []
        for limit in self.rules.limits:
            for measurement, name, median, unit, home in figures:
                if (measurement, name) != (limit.measurement, limit.of):
                    continue
                over = limit.at_most is not None and median > limit.at_most
                under = limit.at_least is not None and median < limit.at_least
                if over or under:
                    allowed = limit.at_most if over else limit.at_least
                    assert allowed is not None
                    out.append(_outside(measurement, name, median, unit, allowed, home, limit.reason))
        return out

    def _judged(self, i: int, node: PackedNode, kind: _Kind, letter: str) -> NodeVerdict:
        assert kind.result is not None
        known = kind.result.by_node[i]
        seen = [one.by_node[i] for one in kind.cells if i in one.by_node]
        base = replace(
            self._base(i, node),
            group=letter,
            margins=margin_figures(known, node) | cell_words.margins(kind.cells, i, node),
        )
        told = self._told(i, node, kind)
        findings = [one for _, one in told]
        findings = [*self._marked(node, [self._with_evidence(one, findings, i, node) for one in findings])]
        texts: dict[str, str] = {}  # of what counts, the first of each state
        for (state, _), one in zip(told, findings, strict=True):
            if not one.suppressed:
                texts.setdefault(state, one.text)
        invalid = [text for text in base.quality if text.startswith(_INVALID)]
        unstable_jobs = set().union(known.unstable_jobs, *(other.unstable_jobs for other in seen))
        if "limit" in texts:
            outcome, text = "OUTSIDE LIMIT", texts["limit"]
        elif "confirmed" in texts:
            outcome, text = "DEVIATES", texts["confirmed"]
        elif "unstable" in texts and {1, 2} <= unstable_jobs:
            outcome, text = "UNSTABLE", texts["unstable"] + ", in two jobs"
        elif invalid:
            jobs = max((known.jobs, *(other.jobs for other in seen)))
            outcome, text = _no_evidence(invalid[0], twice=jobs > 1 and len(self._invalid(i, node)) > 1)
        elif "unstable" in texts:
            outcome, text = "INVALID", texts["unstable"] + "; measure it again"
        elif "fresh" in texts:
            too_soon = known.too_soon or any(other.too_soon for other in seen)
            outcome, text = "SUSPECT", f"{texts['fresh']}; {_TOO_SOON if too_soon else _ONCE}"
        elif "differs" in texts:
            outcome, text = "DIFFER", texts["differs"]
        elif "crowd" in texts:
            outcome, text = (
                "INCONCLUSIVE",
                texts["crowd"] + "; too many nodes deviate in the same way to decide which are right",
            )
        else:
            outcome, text = self._unaccused(i, kind, letter, findings)
        rows = cell_words.beside_rows(base.cells, kind.cells, i, node)
        return replace(base, verdict=outcome, text=text, findings=tuple(findings), cells=rows)

    def _over_time(self, node: PackedNode, told: NodeVerdict) -> NodeVerdict:
        """`told` of a node with what changed in it since the baseline: nothing is SAME then."""
        if self.since is None:
            return told
        changes = self._marked(node, self.since.findings.get(node.name, ()))
        thin = [self.since.warnings[node.name]] if node.name in self.since.warnings else []
        told = replace(told, findings=(*told.findings, *changes), warnings=(*told.warnings, *thin))
        if not changes or told.verdict not in ("SAME", "SAME AS GROUP", "INCONCLUSIVE", "NO PEER"):
            return told
        counted = [one.text for one in changes if not one.suppressed]
        outcome, text = ("SUSPECT", counted[0]) if counted else ("INCONCLUSIVE", f"suppressed: {changes[0].suppressed}")
        return replace(told, verdict=outcome, text=text)

    def _told(self, i: int, node: PackedNode, kind: _Kind) -> list[tuple[str, Finding]]:
        """A node's findings, each with its state that outcomes go by, in the order in which they are reported."""
        assert kind.result is not None
        known = kind.result.by_node[i]
        soft = [d.text for d in self.differing.get(node.name, ())]
        peers = [self.fleet.nodes[j] for j in kind.nodes.tolist()] if known.shown or known.differs else []
        steady = _merged([shown for shown in known.shown if shown.confirmed])
        fresh = _merged([shown for shown in known.shown if not shown.confirmed and not shown.refuted])
        gone = _merged([shown for shown in known.shown if shown.refuted])
        unstable = [told.format(wording.said(place, node)) for place, told in known.unstable]
        unstable += cell_words.unstable(kind.cells, i, node)
        found = cell_words.findings(kind.cells, i, node, soft)
        if len(self.jobs[i]) - len(self._invalid(i, node)) < 2:  # an invalid job confirms nothing
            steady, fresh = [], [*steady, *fresh]
            again = [replace(one, severity="warning") for one in found["confirmed"]]
            found = found | {"confirmed": [], "fresh": [*again, *found["fresh"]]}
        crowd = self._too_many(kind, [*steady, *fresh])

        def of_pairs(state: str, shown: Sequence[Shown], severity: str) -> list[tuple[str, Finding]]:
            return [(state, wording.finding(one, node, peers, soft, severity)) for one in shown]

        return [
            *(("limit", one) for one in self._limits(i)),
            *(("confirmed", one) for one in found["confirmed"] if one.term in _DIRECT),
            *of_pairs("crowd" if crowd else "confirmed", steady, "error"),
            *(("confirmed", one) for one in found["confirmed"] if one.term not in _DIRECT),
            *of_pairs("crowd" if crowd else "fresh", fresh, "warning"),
            *of_pairs("differs", _merged(known.differs), "warning"),
            *((state, one) for state in ("fresh", "differs", "crowd") for one in found[state]),
            *((state, replace(one, id=_GONE)) for state, one in of_pairs("gone", gone, "info")),
            *(("gone", one) for one in found["refuted"]),
            *(("unstable", _unstable_finding(text)) for text in unstable),
        ]

    def _unaccused(self, i: int, kind: _Kind, letter: str, findings: Sequence[Finding]) -> tuple[str, str]:
        """The outcome of a node without findings that count."""
        assert kind.result is not None
        known = [one.suppressed for one in findings if one.suppressed and one.id != _GONE]
        if known:
            return "INCONCLUSIVE", f"suppressed: {known[0]}"
        outcome, text = self._sameness(i, kind.result.by_node[i], kind, letter)
        pairs = {one.matrix.stack.measurement for one in kind.result.evidence}
        gone = next((one for one in findings if one.id == _GONE and one.measurement in pairs), None)
        if gone is not None:
            place = wording.spoken(gone.term, gone.where)
            text += f"; {place} was seen in {', '.join(gone.runs)} and not confirmed by the jobs after"
        return outcome, text

    def _with_evidence(self, found: Finding, others: Sequence[Finding], i: int, node: PackedNode) -> Finding:
        """A finding at a core with what else was seen there: clock, caches and memory, time taken from it."""
        if "core" not in found.where or found.term != "core":
            return found
        core, cpu = found.where["core"], found.where.get("cpu")
        seen = [f.text for f in others if f.term not in ("core", "spread") and f.where.get("core") == core]
        seen += [
            f"CPU {number} lost {share * 100:.1f} % of its time in a run of the newest job"
            for number, share in quality.loud(node, i, self.fleet.cells, self.rules)
            if number == cpu
        ]
        return replace(found, evidence=(*found.evidence, *seen))

    def _too_many(self, kind: _Kind, shown: Sequence[Shown]) -> bool:
        """Whether a fifth of the kind deviates in one and the same term: then no single node is reported."""
        assert kind.result is not None
        crowd = {
            (id(kind.result.evidence[number].matrix.stack), kind.result.evidence[number].matrix.home, term)
            for number, term, _ in kind.result.shared
        }
        return bool(shown) and all(
            any((id(s.matrix.stack), s.matrix.home, int(m)) in crowd for m in s.cause.members) for s in shown
        )

    def _sameness(self, i: int, known: NodeEvidence, kind: _Kind, letter: str) -> tuple[str, str]:
        """The outcome of a node without deviations: SAME if every term of pairs is within its bound."""
        assert kind.result is not None
        pairs = bool(kind.result.evidence)
        cells = cell_words.margins(kind.cells, i, self.fleet.nodes[i])
        beside = f"; not resolved within its bound: {', '.join(exceeded(cells))}" if exceeded(cells) else ""
        doubt = "" if len(cells) > len(exceeded(cells)) else "no measurement is resolved within its bound"
        if pairs:
            doubt = self._doubt(known, kind.result, self.fleet.nodes[i])
        if doubt:
            return "INCONCLUSIVE", f"nothing deviates, but {doubt}{beside}"
        which = f"group {letter}" if letter else "its peers"
        names = ", ".join(sorted({one.matrix.stack.measurement for one in kind.result.evidence}))
        alike = (
            [f"{said_within(margin_figures(known, self.fleet.nodes[i]))} for {names}, {known.runs} runs"]
            if pairs
            else []
        )
        others = [f"{one.within * 100:.1f} % for {name}" for name, one in cells.items() if one.within <= one.bound]
        said = "; ".join([*alike, *([", ".join(others)] if others else [])])
        return ("SAME AS GROUP" if letter else "SAME"), f"the same as {which} within {said}{beside}"

    @staticmethod
    def _doubt(known: NodeEvidence, result: KindResult, node: PackedNode) -> str:
        """Why a node's pairs cannot be called the same; empty where they can."""
        if known.runs < 2:
            return "the spread between runs is unknown with one run; measure two or more (`runs` in the configuration)"
        unseen = {family: wording.TESTED[family] for one in result.evidence for family in one.matrix.terms.unwitnessed}
        if unseen:
            return f"a defect of {' or '.join(unseen.values())} could not be found in this data"
        if known.untested:
            return "some terms have too few pairs to be examined; measure the missing pairs"
        open_ = sorted((m for m in known.margins.values() if m.share > 1), key=lambda m: -m.share)
        if not open_:
            return ""
        places = ", ".join(
            f"{wording.said(m.place, node)} may differ by up to {wording.both(m.reach, m.reach_ns)} "
            f"(bound {wording.both(m.bound, m.bound_ns)})"
            for m in open_
        )
        runs = [m.runs for m in open_ if m.runs is not None]
        remedy = (
            f"to resolve it, set `runs: {max(runs)}` in the configuration and call `make run`, which adds these runs"
            if len(runs) == len(open_)
            else "more runs would not resolve it, as the measured difference is close to the bound"
        )
        return f"this is not resolved within its bound: {places}; {remedy}"

    @cached_property
    def _day(self) -> str:
        """The day of the newest run: a verdict depends on its input, not on when it is made."""
        started = [one.stack.started for one in self.reduced] + [one.started for one in self.fleet.cells]
        return max((s for one in started for s in one), default="")[:10]

    def _recheck(self, nodes: Mapping[str, NodeVerdict]) -> tuple[str, ...]:
        """Suspects and invalid nodes, and two unsuspected ones of their kind beside each."""
        chosen: set[str] = set()
        for kind in self.kinds:
            names = [self.fleet.nodes[i].name for i in kind.nodes.tolist()]
            calm = [name for name in names if nodes[name].verdict in ("SAME", "SAME AS GROUP", "INCONCLUSIVE")]
            for i, name in zip(kind.nodes.tolist(), names, strict=True):
                if nodes[name].verdict in ("SUSPECT", "INVALID") and self._newest(i) < _MOST_JOBS:
                    near = sorted(calm, key=lambda other: (abs(names.index(other) - names.index(name)), other))
                    chosen |= {name, *near[:2]}
        return tuple(sorted(chosen))

    def _fleet(
        self, nodes: Mapping[str, NodeVerdict], populations: Sequence[_Kind], counts: Mapping[str, int]
    ) -> FleetVerdict:
        measured = [node for node in self.fleet.nodes if node.state == "measured"]
        results = [kind.result for kind in populations if kind.result is not None]
        smallest = _largest([r.smallest for r in results])
        wide = _largest([r.wide for r in results])
        bad = sum(counts.get(outcome, 0) for outcome in ("DEVIATES", "OUTSIDE LIMIT", "SUSPECT", "UNSTABLE", "DIFFER"))
        same = counts.get("SAME", 0)
        bounds = _largest([r.bounds for r in results])
        if not measured:
            outcome = "NOT MEASURED"
        elif len(measured) == 1:
            outcome = "NO PEER"
        elif len(populations) > 1:
            outcome = "TWO POPULATIONS"
        elif wide:
            outcome = "NOT UNIFORM"
        elif bad:
            outcome = "DEVIATIONS"
        elif same and same + counts.get("NOT MEASURED", 0) == len(nodes):
            outcome = "UNIFORM"
        else:
            outcome = "INCONCLUSIVE"
        margins = widest([node.margins for node in nodes.values() if node.verdict in SAMES])
        text = _headline(outcome, len(measured), len(nodes), counts, margins)
        alone = [kind for kind in self.kinds if len(kind.nodes) == 1]
        if len(self.kinds) > 1 and len(alone) > _ALONE_SHARE * len(measured):
            keys = Counter(label(d.key) for name in nodes for d in self.differing.get(name, ()) if d.hard)
            key = keys.most_common(1)[0][0] if keys else _LAYOUT
            text = (
                f"the fleet is split by {key}: {counted(len(alone), 'node')} with a configuration of their own. {text}"
            )
        notes = self._notes(nodes, populations, wide)
        spread = {
            name: {"total": s.total, "run": s.run, "chip": s.chip, "tail_df": s.tail_df, "z": s.z}
            for result in results[:1]
            for name, s in result.spreads.items()
        }
        return FleetVerdict(
            outcome,
            text,
            self._groups(populations),
            {**_by_term(smallest), **cell_words.smallest([one for kind in populations for one in kind.cells])},
            {
                **_bounds(bounds, smallest),
                **{one.model.term: one.floor for kind in populations for one in kind.cells},
            },
            spread,
            counts,
            margins,
            self.tests,
            self.rules.false_alarm if self.tests else 0.0,
            notes,
        )

    def _groups(self, populations: Sequence[_Kind]) -> tuple[Mapping[str, object], ...]:
        out: list[Mapping[str, object]] = []
        for k, kind in enumerate(populations):
            names = [self.fleet.nodes[i].name for i in kind.nodes.tolist()]
            out.append({"name": _letter(k), "nodes": names, "told_apart_by": kind.term, "fields": self._fields(kind)})
        return tuple(out)

    def _fields(self, kind: _Kind) -> list[str]:
        """Fingerprint fields in which all nodes of a kind have one value, and no other node has it."""
        mine = [configuration.normalised(self.fleet.nodes[i].fingerprint, self.rules) for i in kind.nodes.tolist()]
        inside = set(kind.nodes.tolist())
        others = [
            configuration.normalised(node.fingerprint, self.rules)
            for i, node in enumerate(self.fleet.nodes)
            if i not in inside and node.state == "measured"
        ]
        out = []
        for key, value in (mine[0] if mine else {}).items():
            if all(f.get(key) == value for f in mine) and others and all(key in f and f[key] != value for f in others):
                out.append(f"{key}={value}")
        return sorted(out)

    def _rules_without_effect(self) -> list[str]:
        """Suppressions that have ended, and limits that no figure was compared with: a name may be misspelt."""
        figures = {(one.measurement, one.name) for mine in self.figures for one in mine}
        figures |= {(one.measurement, one.name) for mine in self.quantities for one in mine}
        ended = [one for one in self.rules.suppressions if one.until.isoformat() < self._day]
        unheld = [one for one in self.rules.limits if (one.measurement, one.of) not in figures]
        return [
            *(
                f"the suppression of {one.finding} on {one.node} ended on {one.until}; the finding counts again"
                for one in ended
            ),
            *(f"limit not applied ({one.reason}): no node reports {one.measurement}, {one.of}" for one in unheld),
        ]

    def _notes(
        self, nodes: Mapping[str, NodeVerdict], populations: Sequence[_Kind], wide: Mapping[str, float]
    ) -> tuple[str, ...]:
        notes = (
            ["identical nodes may share the same fault: check their fingerprint and warnings"] if populations else []
        )
        open_ = Counter(name for node in nodes.values() if node.verdict in SAMES for name in exceeded(node.margins))
        notes += [f"not resolved within its bound on {counted(n, 'node')}: {name}" for name, n in sorted(open_.items())]
        broken = [
            (node.name, node.quality[0]) for node in self.fleet.nodes if node.state == "measured" and node.quality
        ]
        notes += [f"{name}: {why}" for name, why in broken[:_MOST_BROKEN]]
        if len(broken) > _MOST_BROKEN:
            more = counted(len(broken) - _MOST_BROKEN, "more node")
            notes.append(f"records of {more} cannot be used as they are; their pages say why")
        notes += self._rules_without_effect()
        for name, chip in sorted(wide.items()):
            notes.append(
                f"chips differ by {chip * 100:.1f} % (SD) in {wording.TESTED.get(name, name)}, too much for the bound"
            )
        matrices_of = [one.matrix for kind in populations if kind.result is not None for one in kind.result.evidence]
        if any(_no_core_inside(matrix.terms) for matrix in matrices_of):
            notes.append("with two cores per CCX a core that is slow inside it is reported as its CCX")
        shared = Counter(
            _deviation(found)
            for verdict in nodes.values()
            if verdict.verdict in ("DEVIATES", "SUSPECT")
            for found in verdict.findings
        )
        notes += [f"{count} nodes share a deviation: {what}" for what, count in sorted(shared.items()) if count > 1]
        for k, kind in enumerate(populations if len(populations) > 1 else ()):
            by = f", separated by {kind.term}" if kind.term else ""
            fields = [f"{label(key)} {value}" for key, _, value in (one.partition("=") for one in self._fields(kind))]
            notes.append(f"group {_letter(k)}: {len(kind.nodes)} nodes{by}{'; ' + ', '.join(fields) if fields else ''}")
        notes += [self.since.note] if self.since is not None else []
        return tuple(notes)


def _no_core_inside(tested: terms.Terms) -> bool:
    """Whether there are pairs inside CCXs, but none that name a core: with two cores there is one pair."""
    inside = tested.layout.classes == CLASSES.index("same CCX")
    return bool(inside.any()) and not len(tested.indices("core-in"))


def _deviation(found: Finding) -> str:
    """What deviates and how, in the same words on every node: without the OS's number of a CPU."""
    where = {key: value for key, value in found.where.items() if key != "cpu"}
    of_cells = found.measurement in models()
    place = f"{found.measurement}, {cell_words.spoken(where)}" if of_cells else wording.spoken(found.term, where)
    return f"{place or found.term} ({found.id.removeprefix(f'{found.term}-')})"


def _headline(
    outcome: str, measured: int, nodes: int, counts: Mapping[str, int], margins: Mapping[str, MarginFigure]
) -> str:
    """The fleet's outcome and, first of all, how many nodes are the same within what."""
    same = sum(counts.get(name, 0) for name in SAMES)
    if same:
        as_what = "as their group " if counts.get("SAME AS GROUP") else ""
        text = f"{outcome}: {same} of {nodes} nodes are the same {as_what}within {said_within(margins)}"
    else:
        text = f"{outcome}: {measured} of {nodes} nodes measured"
    # the outcome of an only node is the fleet's
    others = [f"{n} {name}" for name, n in counts.items() if name not in SAMES and (name != outcome or n > 1 or same)]
    return text + (f"; {', '.join(others)}" if others else "")


def margin_figures(known: NodeEvidence, node: PackedNode) -> dict[str, MarginFigure]:
    """By family how alike a node is to its peers, with the place in the node's own numbers."""
    return {
        family: MarginFigure(m.reach, m.reach_ns, m.bound, m.bound_ns, wording.said(m.place, node))
        for family, m in known.margins.items()
    }


def counted(count: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {what}{'s' if count != 1 else ''}"


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else f"Z{number}"


def _largest(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    out: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            out[name] = max(value, out.get(name, 0.0))
    return out


def _by_term(by_family: Mapping[str, float]) -> dict[str, float | None]:
    """By term and by family: a term that several families show is found by the best of them."""
    out: dict[str, float | None] = dict(by_family)
    cores = [by_family[family] for family, term in TERM_OF_FAMILY.items() if term == "core" and family in by_family]
    for family in FAMILIES:
        out.setdefault(family, None)
    out["core"] = min(cores, default=None)
    for cause in ("node", "socket"):  # a machine of one class or socket has no cause over several
        out.setdefault(cause, by_family.get("class"))
    return out


def _bounds(by_family: Mapping[str, float], tested: Mapping[str, float]) -> dict[str, float]:
    """By term and by family that was tested the bound; a cause over several classes has theirs."""
    terms = [term for term, value in _by_term(tested).items() if value is not None]
    cores = [bound for family, bound in by_family.items() if TERM_OF_FAMILY[family] == "core"]
    least = {"core": min(cores, default=0.0)}
    return {term: by_family.get(term, least.get(term, by_family.get("class", 0.0))) for term in terms}


def _merged(shown: Sequence[Shown]) -> list[Shown]:
    """One finding per cause: of the same cause in several matrices the largest is reported."""
    best: dict[tuple[str, tuple[tuple[str, int], ...]], Shown] = {}
    for one in shown:
        key = (one.cause.term, tuple(sorted(one.cause.where.items())))
        if key not in best or abs(one.effect) > abs(best[key].effect):
            best[key] = one
    return sorted(best.values(), key=lambda one: (-abs(one.effect) * len(one.cause.members), one.cause.term))


def _outside(measurement: str, name: str, median: float, unit: str, allowed: float, home: int, reason: str) -> Finding:
    """A figure beyond an absolute limit, both in `unit`."""
    effect = median / allowed - 1
    found, limit = (cell_words.said(value, unit) for value in (median, allowed))
    return Finding(
        "outside-limit",
        "error",
        "limit",
        {},
        effect,
        median - allowed if unit == "ns" else float("nan"),
        (effect, effect),
        (),
        (),
        (),
        "refer the vendor to the contract",
        f"{measurement}, {name}: {found}, the limit is {limit} ({reason})",
        measurement,
        home,
    )


def _no_evidence(why: str, *, twice: bool) -> tuple[str, str]:
    """The outcome of a node whose newest job is invalid, and its text."""
    reason = why.removeprefix(_INVALID)
    return (
        ("UNSTABLE", f"{reason}; an earlier job was invalid, too")
        if twice
        else ("INVALID", f"{reason}; measure it again")
    )


def _unstable_finding(text: str) -> Finding:
    return Finding(
        "unstable",
        "warning",
        "spread",
        {},
        0.0,
        0.0,
        (0.0, 0.0),
        (),
        ("a busy core", "an intermittent fault"),
        (),
        "look for other load on the node, then measure it again",
        text,
    )
