"""The outcome of each node in words: what was found in it, or how alike it is to its peers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace

from nodeprint import outcomes
from nodeprint.fingerprint import label
from nodeprint.judge import decision, quality
from nodeprint.judge.confirmation import Unstable
from nodeprint.judge.judged import JudgedFleet
from nodeprint.packed import INVALID, PackedNode
from nodeprint.words import cause_findings, node_values, places, sameness
from nodeprint.words.names import name_list
from nodeprint.words.outcome import GONE, ONCE, CellFigure, ClassFigure, Finding, MarginFigure, NodeVerdict
from nodeprint.words.units import said

#: What SUSPECT nodes need whose second job is none.
_TOO_SOON = "its second job began less than 10 minutes after the first and is not independent of it; measure it again"
#: What nodes have in common beside their fingerprint.
LAYOUT = "layout of sockets, CCDs and cores"
#: What is said behind the words of a finding, or instead, by the reason that it is for the node's outcome.
_ADDED: Mapping[str, str] = {
    "unstable twice": ", in two jobs",
    "unstable": "; measure it again",
    "crowd": "; a fifth of the nodes or more deviate there, so that none is accused",
    "alone": "the only measured node; measure others of this configuration to compare it with",
}


class Nodes:
    """Puts what is known of each node of a fleet into an outcome with its words; `day` ends suppressions."""

    def __init__(self, known: JudgedFleet, day: str) -> None:
        self.known, self.rules, self.day = known, known.rules, day
        self.fleet = known.fleet
        self.classes: list[list[ClassFigure]] = node_values.of_classes(known.reduced, len(self.fleet.nodes))
        groups = [kind.nodes for kind in known.kinds]
        self.rows: list[list[CellFigure]] = node_values.of_rows(known.reduced, self.fleet.nodes, groups)

    def of(self, i: int, letter: str, more: Sequence[tuple[str, Finding]]) -> NodeVerdict:
        """The outcome of a node, of the group `letter` where there are several; `more` are findings from elsewhere,
        each with its reason for an outcome."""
        node, known, base = self.fleet.nodes[i], self.known, self._base(i)
        if node.state != "measured":
            text, found = node.reason or "not measured", tuple(one for _, one in more)
            return replace(base, verdict=outcomes.by("not measured"), text=text, findings=found)
        told = [*self._told(i), *more]
        findings = tuple(one for _, one in told)
        texts: dict[str, str] = {}  # of what counts, the first of each state
        for state, one in told:
            if not one.suppressed:
                texts.setdefault(state, one.text)
        suppressed = [one.suppressed for one in findings if one.suppressed and one.id != GONE]
        why = decision.reason(known, i, texts, suppressed=bool(suppressed), several=bool(letter))
        texts |= {"suppressed": f"suppressed: {suppressed[0]}"} if suppressed else {}
        margins = sameness.margin_figures(known.evidence(i).margins, node) if i in known.kind_of else {}
        added = self._added(i, why, letter, margins)
        text = texts.get(why.removesuffix(" twice"), "").removesuffix(added) + added
        if why in (*outcomes.DOUBTS, "same", "same as group"):
            text += self._refuted(i, findings)
        told_of = replace(base, verdict=outcomes.by(why), text=text, findings=findings)
        if i not in known.kind_of:
            return told_of
        rows = node_values.beside(base.cells, known.evidence(i).shown, node)
        return replace(told_of, group=letter, margins=margins, cells=rows)

    def _added(self, i: int, why: str, letter: str, margins: Mapping[str, MarginFigure]) -> str:
        """What is said of a node for the reason `why`, behind the words of a finding where that is one."""
        known = self.known
        if why.startswith("invalid"):
            invalid = next(text for text in known.quality(i) if text.startswith(INVALID)).removeprefix(INVALID)
            again = "an earlier job was invalid, too" if why == "invalid twice" else "measure it again"
            return f"{invalid}; {again}"
        if why == "fresh":
            sittings = known.sittings(i)
            return f"; {_TOO_SOON if len(sittings) == 1 and len(sittings[0]) > 1 else ONCE}"
        if why == "configured otherwise":
            return self._configured(i)
        if why in outcomes.DOUBTS:
            return sameness.doubted(known, i, why, margins)
        same = why in ("same", "same as group")
        return sameness.alike(known, i, letter, margins) if same else _ADDED.get(why, "")

    def _refuted(self, i: int, findings: Sequence[Finding]) -> str:
        """What was seen in pairs of a node, and not confirmed."""
        pairs = {one.matrix.name for one in self.known.pairs(i)}
        gone = next((one for one in findings if one.id == GONE and one.measurement in pairs), None)
        if gone is None:
            return ""
        place = places.spoken(gone.term, gone.where)
        return f"; {place} was seen in {name_list(gone.runs)} and not confirmed by the jobs after"

    def marked(self, node: PackedNode, found: Iterable[tuple[str, Finding]]) -> list[tuple[str, Finding]]:
        """Findings, each with its reason for an outcome, with why they are known and accepted."""
        return [(why, replace(one, suppressed=self._accepted(node, one.id))) for why, one in found]

    def _accepted(self, node: PackedNode, identity: str) -> str:
        """Why a finding is known and accepted; empty where it is not."""
        return self.rules.suppressed(node.name, identity, self.day)

    def _base(self, i: int) -> NodeVerdict:
        node = self.fleet.nodes[i]
        evidence = self.known.kind_of[i].others if i in self.known.kind_of else []
        quantities = [one.quantity for one in self.known.reduced]
        soft = tuple(
            {
                "id": f"fingerprint-{d.key}",
                "text": d.text,
                "advice": "make it equal on all nodes, or accept the difference in acceptance.yaml",
            }
            for d in self.known.differing.get(node.name, ())
        )
        seen = quality.warnings(node, i, quantities, self.rules, lambda: cause_findings.explained(evidence, i))
        return NodeVerdict(
            "INCONCLUSIVE",
            "",
            quality=self.known.quality(i),
            fingerprint=node.fingerprint,
            warnings=(*node.warnings, *soft, *seen),
            classes=tuple(self.classes[i]),
            cells=tuple(self.rows[i]),
            reason=node.reason,
            log_tail=node.log_tail,
            rack=node.rack,
        )

    def _configured(self, i: int) -> str:
        """How a node differs from those of another configuration, with its class medians against theirs."""
        first, *rest = (kind.nodes.tolist() for kind in self.known.kinds)
        peers = [j for nodes in rest for j in nodes] if i in first else first
        hard = [label(d.key) for d in self.known.differing.get(self.fleet.nodes[i].name, ()) if d.hard]
        changes: dict[str, list[float]] = {}
        for figure in self.classes[i]:
            same = (figure.name, figure.measurement, figure.home)
            others = [f.median_ns for j in peers for f in self.classes[j] if (f.name, f.measurement, f.home) == same]
            if others:
                changes.setdefault(figure.name, []).append(figure.median_ns / float(np.median(others)) - 1)
        compared = [f"{name} {float(np.median(each)) * 100:+z.1f} %" for name, each in changes.items()]
        against = f"; class medians against the other nodes: {', '.join(compared)}" if compared else ""
        return f"differs in {', '.join(hard or [f'its {LAYOUT}'])}{against}"

    def _limits(self, i: int) -> list[Finding]:
        """The node's figures beyond an absolute limit."""
        known = [(f.measurement, f.name, f.median_ns, "ns", f.home) for f in self.classes[i]]
        known += [(f.measurement, f.name, f.median, f.unit, -1) for f in self.rows[i]]
        out = []
        for limit in self.rules.limits:
            for measurement, name, median, unit, home in known:
                over = limit.at_most is not None and median > limit.at_most
                allowed = limit.at_most if over else limit.at_least
                of_it = (measurement, name) == (limit.measurement, limit.of)
                if not of_it or allowed is None or not (over or median < allowed):
                    continue
                effect = median / allowed - 1 if allowed else np.inf
                found, value = said(median, unit), said(allowed, unit)
                side = "most" if over else "least"
                out.append(Finding(
                    "outside-limit", "error", "limit",
                    f"{measurement}, {name}: {found}, the limit is at {side} {value} ({limit.reason})", effect=effect,
                    effect_ns=median - allowed if unit == "ns" else float("nan"), interval=(effect, effect),
                    remedy="refer the vendor to the contract", measurement=measurement, home=home,
                ))  # fmt: skip
        return out

    def _told(self, i: int) -> list[tuple[str, Finding]]:
        """A node's findings, each with its state that outcomes go by, in the order in which they are reported."""
        node, known = self.fleet.nodes[i], self.known
        told = [("limit", one) for one in self._limits(i)]
        if i in known.kind_of:
            shown, soft = decision.causes(known, i), [d.text for d in known.differing.get(node.name, ())]
            peers = [self.fleet.nodes[j] for j in known.kind_of[i].nodes.tolist()] if shown else []
            told += cause_findings.findings(shown, node, peers, soft, partial(self._accepted, node))
            told += [("unstable", _unstable_finding(one, node)) for one in _worst(known.evidence(i).unstable)]
        found = [one for _, one in told]
        return self.marked(node, ((state, self._with_evidence(one, found, i)) for state, one in told))

    def _with_evidence(self, found: Finding, others: Sequence[Finding], i: int) -> Finding:
        """A finding at a core with what else was seen there: clock, caches and memory, time taken from it."""
        if "core" not in found.where or found.term != "core":
            return found
        core, cpu = found.where["core"], found.where.get("cpu")
        seen = [f.text for f in others if f.term not in ("core", "spread") and f.where.get("core") == core]
        loud = quality.loud(self.fleet.nodes[i], i, [one.quantity for one in self.known.reduced], self.rules)
        seen += [
            f"CPU {number} lost {share * 100:.1f} % of its time in a run of the newest job"
            for number, share in loud
            if number == cpu
        ]
        return replace(found, evidence=(*found.evidence, *seen))


def _worst(unstable: Sequence[Unstable]) -> list[Unstable]:
    """Of what is unstable at several homes the worst, a term or core of the same terms each."""
    worst: dict[tuple[int, int, int], Unstable] = {}
    for one in unstable:
        key = (id(one.matrix.terms), one.term, one.core)
        worst[key] = max(worst.get(key, one), one, key=lambda one: one.factor)
    return list(worst.values())


def _unstable_finding(one: Unstable, node: PackedNode) -> Finding:
    if one.core >= 0:
        place = places.spoken("core", places.place(one.matrix, {"core": one.core}, node))
        text = f"{place} varies {one.factor:.1f} times as much between passes as on the peers"
    else:
        of = "" if one.matrix.quantity.of_pairs else f" of {one.matrix.name}"
        text = f"runs{of} differ in {places.term(one.matrix, one.term, node)}"
    return Finding(
        "unstable", "warning", "spread", text, consistent_with=("a busy core", "an intermittent fault"),
        remedy="look for other load on the node, then measure it again",
    )  # fmt: skip
