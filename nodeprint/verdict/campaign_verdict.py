"""From a campaign to its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from nodeprint import __version__, discover, outcomes, packing, run_files
from nodeprint.config import planned
from nodeprint.errors import nearest
from nodeprint.fabric import Fabrics
from nodeprint.fabric import read as read_fabrics
from nodeprint.fleet import store
from nodeprint.fleet.quantity import models
from nodeprint.iodie import node_lines
from nodeprint.judge import acceptance as accepted
from nodeprint.judge import messages
from nodeprint.judge.acceptance import Acceptance, Suppression
from nodeprint.judge.judged import JudgedFleet, judged
from nodeprint.packed import PackedFleet
from nodeprint.verdict import history, outputs
from nodeprint.words import fleet_outcome, links
from nodeprint.words.node_outcome import Nodes
from nodeprint.words.outcome import NodeVerdict, Verdict

#: A node is measured again at most so often.
_MOST_JOBS = 3
_NOTHING_BETWEEN = Fabrics()


def judge(campaign: Path, *, baseline: Path | None = None, acceptance: Path | None = None) -> Verdict:
    """Judge a campaign from what is there and write verdict.json, JUnit, Prometheus text and drain.sh.

    Packs the fleet first where needed; `baseline` is a folder of `history.save`. By `acceptance`, of which the campaign
    keeps a copy; by that copy where none is named, else by the defaults. Where the campaign cannot be written, the
    files go where its store is then (`store.base`).

    Raises NodeprintError when there is no campaign, or `acceptance` or `baseline` cannot be used.
    """
    rules = accepted.load(acceptance or accepted.kept(campaign))
    fleet = packing.pack(campaign)
    place = store.base(campaign)
    kept = accepted.keep(acceptance, place) if acceptance is not None else accepted.kept(campaign)
    since = history.against(fleet, baseline, rules) if baseline is not None else None
    result = judge_fleet(_with_dies(fleet, campaign), rules, since, read_fabrics(campaign))
    result = replace(result, versions={**result.versions, "acceptance": accepted.name(kept)})
    unjudged = _unjudged(campaign, result)
    if unjudged:
        note = f"measured but not compared, as no model is stated: {', '.join(unjudged)}; the records are in nodes/"
        result = replace(result, fleet=replace(result.fleet, notes=(*result.fleet.notes, note)))
    outputs.write(result, place, _slurm_reasons(campaign))
    return result


def _with_dies(fleet: PackedFleet, campaign: Path) -> PackedFleet:
    """The fleet with the parts of its nodes' I/O dies where its first node was measured with --detail."""
    first = next((node.name for node in fleet.nodes if node.state == "measured"), None)
    if first is None or not node_lines.has_lines(campaign / "nodes" / first):
        return fleet
    from nodeprint.iodie.die_quantities import with_dies  # noqa: PLC0415 (its scipy takes a third of a second)

    return with_dies(fleet, campaign)


def _unjudged(campaign: Path, result: Verdict) -> list[str]:
    """Measurements without a model, those of pairs excepted; none where nothing was judged."""
    seen = {figure.measurement for node in result.nodes.values() for figure in node.classes}
    left = [name for name in planned(campaign) if name not in seen | set(models())] if seen else []
    there = {name for job in campaign.glob("nodes/*/job*") for _, name in run_files.complete(job)} if left else set()
    return [name for name in left if name in there]


def _slurm_reasons(campaign: Path) -> dict[str, tuple[str, str]]:
    sheet = campaign / "nodes.tsv"
    nodes = discover.read_sheet(sheet) if sheet.exists() else []
    return {node.node: (node.state, node.reason) for node in nodes}


def judge_fleet(
    fleet: PackedFleet,
    rules: Acceptance | None = None,
    since: history.Since | None = None,
    between: Fabrics = _NOTHING_BETWEEN,
) -> Verdict:
    """The verdict of a packed fleet, with what changed in it `since` a baseline, and with the messages `between` its
    nodes; writes nothing."""
    rules = rules if rules is not None else accepted.load()
    known = judged(fleet, rules)
    # a verdict depends on its input, not on when it is made
    day = max((known.began, *(time for one in between.measured for time in one.started)))[:10]
    fabrics = [messages.judge(one, rules, rules.false_alarm / len(between.measured)) for one in between.measured]
    writer = Nodes(known, day)
    place = {i: k for k, kind in enumerate(known.populations) for i in kind.nodes.tolist()}
    nodes = {}
    for i, node in enumerate(known.fleet.nodes):
        more = [one for of in fabrics for one in links.findings(of, node.name, rules, day)]
        thin = []
        if since is not None:
            more = [*writer.marked(node, (("changed", one) for one in since.findings.get(node.name, ()))), *more]
            thin = [since.warnings[node.name]] if node.name in since.warnings else []
        group = fleet_outcome.letter(place[i]) if i in place and len(known.populations) > 1 else ""
        told = writer.of(i, group, more)
        nodes[node.name] = replace(told, warnings=(*told.warnings, *thin))
    idle = _rules_without_effect(rules, day, writer, nodes)
    notes = [*between.notes, *idle, *([since.note] if since is not None else [])]
    return Verdict(
        fleet.campaign, fleet.simulated, {"nodeprint": __version__, **fleet.versions},
        fleet_outcome.verdict(known, nodes, sum(one.tests for one in fabrics), notes), nodes, _recheck(known, nodes),
        tuple(links.entry(one, rules, day) for one in fabrics),
    )  # fmt: skip


def _rules_without_effect(rules: Acceptance, day: str, writer: Nodes, nodes: Mapping[str, NodeVerdict]) -> list[str]:
    """Suppressions that have ended or suppress nothing of a node of this fleet, and limits that no figure was compared
    with: a name may be misspelt."""
    figures = {(one.measurement, one.name) for mine in writer.classes for one in mine}
    figures |= {(one.measurement, one.name) for mine in writer.rows for one in mine}
    measured = {name: node for name, node in nodes.items() if node.verdict != outcomes.by("not measured")}
    return [
        *(
            f"the suppression of {one.finding} on {one.node} ended on {one.until}; the finding counts again"
            for one in rules.suppressions
            if one.until.isoformat() < day
        ),
        *(
            f"suppression without effect ({one.reason}): {one.node} has no finding {one.finding}"
            + _asked(one.finding, [found.id for found in measured[one.node].findings])
            for one in rules.suppressions
            if one.until.isoformat() >= day and one.node in measured and not _suppresses(one, measured[one.node])
        ),
        *(
            f"suppression without effect ({one.reason}): there is no node {one.node}" + _asked(one.node, nodes)
            for one in rules.suppressions
            if one.until.isoformat() >= day and one.node not in nodes
        ),
        *(
            f"limit not applied ({one.reason}): no node reports {one.measurement}, {one.of}"
            + _asked(one.of, [name for measurement, name in figures if measurement == one.measurement])
            for one in rules.limits
            if (one.measurement, one.of) not in figures
        ),
    ]


def _asked(name: str, names: Iterable[str]) -> str:
    """How a note about a name that has no effect ends."""
    return f"; {question}" if (question := nearest(name, names)) else ""


def _suppresses(rule: Suppression, node: NodeVerdict) -> bool:
    return any(found.suppressed and rule.finding in ("*", found.id) for found in node.findings)


def _recheck(known: JudgedFleet, nodes: Mapping[str, NodeVerdict]) -> tuple[str, ...]:
    """Suspects and invalid nodes, and two unsuspected ones of their kind, and best of their rack, beside each."""
    chosen: set[str] = set()
    rack = {node.name: node.rack for node in known.fleet.nodes}
    for kind in known.kinds:
        names = [known.fleet.nodes[i].name for i in kind.nodes.tolist()]
        calm = [name for name in names if outcomes.NODE[nodes[name].verdict].quiet]
        for i, name in zip(kind.nodes.tolist(), names, strict=True):
            if outcomes.NODE[nodes[name].verdict].again and len(known.jobs(i)) < _MOST_JOBS:
                near = sorted(calm, key=lambda other: _apart(rack, names, name, other))
                chosen |= {name, *near[:2]}
    return tuple(sorted(chosen))


def _apart(rack: Mapping[str, str], names: Sequence[str], one: str, other: str) -> tuple[bool, int, str]:
    """How far two nodes are apart: whether in other racks, then in the order of names."""
    return rack[one] != rack[other], abs(names.index(other) - names.index(one)), other
