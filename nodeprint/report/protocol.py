"""The acceptance protocol of one or several campaigns: what was measured when, by which bounds, with which outcome.

A PDF to sign, and MANIFEST.sha256 beside it over everything that it rests on. It decides nothing of its own: outcomes
are those of the campaigns' verdicts, and it is accepted where every node is SAME and measured.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from nodeprint import files
from nodeprint.data import packed
from nodeprint.data.quantity import models
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.judge.outcome import MEANING, Accepted, Outcome
from nodeprint.judge.verdict import NodeVerdict, Verdict
from nodeprint.report import checks, names, site_branding, text
from nodeprint.report import files as verdict_files
from nodeprint.report.pages.blocks import SiteTexts
from nodeprint.report.pages.order import natural
from nodeprint.report.pdf import Printer, plain

#: What of a campaign the protocol rests on, and the manifest lists.
_EVIDENCE = (
    "config.yaml", "acceptance.yaml", "nodes.tsv", "plan.tsv", "fleet.json", "verdict.json", "report/cluster.pdf",
    "nodes/*/job*/status.json", "nodes/*/job*/plan.tsv", "nodes/*/job*/survey.tar.gz",
    "nodes/*/job*/run*.tar.?z", "nodes/*/job*/run*/*.jsonl.gz", "nodes/*/job*/run*/*.jsonl",
    "fabric/job*/*/run*/*.jsonl.gz", "fabric/job*/outcomes.tsv",
)  # fmt: skip


class JudgedCampaign(msgspec.Struct, frozen=True):
    """A judged campaign: its verdict, when it was measured, and the boots of its nodes."""

    folder: Path
    verdict: Verdict
    first: str
    last: str
    boots: Mapping[str, frozenset[str]]


def write(campaigns: Sequence[Path], to: Path) -> list[Path]:
    """Write MANIFEST.sha256 and protocol.pdf into the folder `to`; returns their paths.

    Raises NodeprintError where a campaign has no verdict, two have the same folder, or simulated and measured ones are
    mixed.
    """
    if len({path.resolve() for path in campaigns}) < len(campaigns):
        raise NodeprintError("a campaign is named twice", key="protocol", advice="name each once")
    judged_campaigns = [judged(path) for path in campaigns]
    if len({campaign.verdict.simulated for campaign in judged_campaigns}) > 1:
        advice = "write a protocol of measured campaigns only"
        raise NodeprintError("simulated and measured campaigns are mixed", key="protocol", advice=advice)
    listed = manifest([path for campaign in judged_campaigns for path in evidence(campaign.folder)], to)
    paths = [files.write(to / "MANIFEST.sha256", listed)]
    with Printer("protocol.typ") as printer:
        pdf = printer.data(content(judged_campaigns, listed, site_branding.of(campaigns[-1])))
    return [*paths, files.write(to / "protocol.pdf", pdf)]


def evidence(folder: Path) -> list[Path]:
    """The files of a campaign that the protocol rests on, in the order of their names."""
    return sorted({path for pattern in _EVIDENCE for path in folder.glob(pattern) if path.is_file()})


def manifest(paths: Iterable[Path], base: Path) -> str:
    """A line each as sha256sum writes it, relative to `base`: `sha256sum -c MANIFEST.sha256` there checks them."""
    lines = []
    for path in paths:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        lines.append(f"{digest.hexdigest()}  {os.path.relpath(path, base)}\n")
    return "".join(lines)


def result(outcomes: Iterable[Outcome | None]) -> Accepted:
    """What a node is over its outcomes in all campaigns (None: not part of it)."""
    return overall(Accepted.OPEN if outcome is None else MEANING[outcome].accepted for outcome in outcomes)


def overall(results: Iterable[Accepted]) -> Accepted:
    """What several are together: a single deviation outweighs all, and accepted is where every one is."""
    of_each = set(results)
    if Accepted.DEVIATION in of_each:
        return Accepted.DEVIATION
    return Accepted.ACCEPTED if of_each == {Accepted.ACCEPTED} else Accepted.OPEN


def content(campaigns: Sequence[JudgedCampaign], manifest_text: str, site: SiteTexts) -> dict[str, Any]:
    """What is on the pages, as plain data."""
    every = sorted({name for campaign in campaigns for name in campaign.verdict.nodes}, key=natural)
    rows = [_node(name, campaigns) for name in every]
    counts = {kind: sum(row["result"] == kind for row in rows) for kind in Accepted}
    versions = [
        [campaign.verdict.campaign, key, value]
        for campaign in campaigns
        for key, value in sorted(campaign.verdict.versions.items())
    ]
    fields: dict[str, Any] = {
        "origin": text.origin(campaigns[0].verdict),
        "parties": [
            ["customer", site.customer], ["supplier", site.supplier], ["system", site.system],
            ["contract", site.contract], ["place", site.place], ["contact", site.contact],
        ],
        "result": overall([
            *(row["result"] for row in rows),
            *(meaning.accepted for campaign in campaigns for meaning in campaign.verdict.meanings),
        ]),
        "sentence": text.say("protocol", nodes=names.counted(len(rows), "node"), **counts),
        "campaigns": [_head(campaign) for campaign in campaigns],
        "rules": [_rules(campaign) for campaign in campaigns],
        "deviations": [row for row in rows if row["result"] == Accepted.DEVIATION],
        "open": _folded([row for row in rows if row["result"] == Accepted.OPEN]),
        "nodes": rows,
        "versions": versions,
        "signatures": [f"For the customer{_named(site.customer)}", f"For the supplier{_named(site.supplier)}"],
        "manifest": hashlib.sha256(manifest_text.encode()).hexdigest(),
        "files": manifest_text.count("\n"),
    }  # fmt: skip
    return {key: _plain(value) for key, value in fields.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else plain(value, None)


def _named(party: str) -> str:
    return f", {party}" if party else ""


def judged(folder: Path) -> JudgedCampaign:
    """A campaign with its verdict. Raises NodeprintError where it has none."""
    verdict = verdict_files.read(folder)
    try:
        fleet = packed.read(folder)
    except NodeprintError:  # its verdict alone is here
        return JudgedCampaign(folder, verdict, "", "", {})
    times = [time for quantity in fleet.quantities for time in quantity.started if time]
    boots = {node.name: frozenset(node.boots) for node in fleet.nodes}
    return JudgedCampaign(folder, verdict, min(times, default=""), max(times, default=""), boots)


def _head(campaign: JudgedCampaign) -> dict[str, Any]:
    fleet = campaign.verdict.fleet
    boots = [len(of_node) for of_node in campaign.boots.values() if of_node]
    return {
        "name": campaign.verdict.campaign,
        "measured": " to ".join(dict.fromkeys(time[:10] for time in (campaign.first, campaign.last) if time)),
        "boots": f"{min(boots)} to {max(boots)}" if boots and min(boots) != max(boots) else str(max(boots, default=0)),
        "outcome": str(fleet.outcome),
        "text": text.first_line(campaign.verdict),
        "counts": ", ".join(f"{count} {word}" for word, count in fleet.counts.items() if count),
    }


def _rules(campaign: JudgedCampaign) -> dict[str, Any]:
    """Bounds with their reference values and source, and the limits of the contract, by which a campaign was judged."""
    rules, default = acceptance.load(acceptance.kept(campaign.folder)), acceptance.load()
    source = "nodeprint's default" if rules == default else "acceptance.yaml of the campaign"
    bounds = _bounds(campaign.verdict, source)
    limits = [
        [
            limit.measurement, limit.figure,
            *("" if value is UNSET else f"{value:g}" for value in (limit.at_least, limit.at_most)), limit.reason,
        ]
        for limit in rules.limits
    ]  # fmt: skip
    return {
        "name": campaign.verdict.campaign, "bounds": bounds, "references": _references(campaign.verdict.nodes),
        "limits": limits,
        "suppressions": [[s.node, s.finding, s.reason, s.until.isoformat()] for s in rules.suppressions],
        "by": campaign.verdict.versions.get("acceptance", "the defaults"),
    }  # fmt: skip


def _bounds(verdict: Verdict, source: str) -> list[list[str]]:
    """The bounds by which nodes were judged: of pairs for each kind of part, of a measurement of cells, where all parts
    have one bound, in one row; whether an outcome rests on them, and from which difference on a part is found."""
    rows: dict[tuple[str, str, str, str], list[float]] = {}
    for limit in verdict.fleet.limits:
        model = models().get(limit.measurement)
        cells = model is not None and model.places == "cells"
        part = f"{text.named('subjects', limit.subject)}, every part" if cells else text.named("terms", limit.family)
        decides = "yes" if limit.subject in verdict.decides else "no"
        rows.setdefault((part, limit.measurement, names.bound(limit.bound), decides), []).append(limit.effect)
    out = []
    for (part, measurement, bound, decides), effects in rows.items():
        low, high = names.percent(min(effects)), names.percent(max(effects))
        effect = high if low == high else f"{low.removesuffix(' %')} to {high}"
        out.append([part, measurement, bound, effect, decides, source])
    return out


def _references(nodes: Mapping[str, NodeVerdict]) -> list[list[str]]:
    """The reference values: of each class of pairs and each kind of cell the median over the nodes that are SAME."""
    by_class: dict[tuple[str, str, str], list[float]] = {}
    for node in (node for node in nodes.values() if node.outcome is Outcome.SAME):
        for figure in node.classes:
            of = ", ".join(filter(None, (figure.name, names.home(figure.home))))
            for group, median in (figure.groups or {"": figure.median_ns}).items():
                key = (figure.measurement, ", ".join(filter(None, (of, group))), "ns")
                by_class.setdefault(key, []).append(median)
        for cell in node.cells:
            by_class.setdefault((cell.measurement, cell.name, cell.unit), []).append(cell.median)
    return [
        [measurement, of, names.quantity(float(np.median(values)), unit), str(len(values))]
        for (measurement, of, unit), values in by_class.items()
    ]


def _node(name: str, campaigns: Sequence[JudgedCampaign]) -> dict[str, Any]:
    entries = [campaign.verdict.nodes.get(name) for campaign in campaigns]
    rows = []
    for campaign, entry in zip(campaigns, entries, strict=True):
        if entry is None:
            rows.append([campaign.verdict.campaign, "not part of this campaign"])
        elif entry.counted:
            rows += [[campaign.verdict.campaign, checks.sentence(f)] for f in checks.named_node(name, entry).counted]
        elif entry.outcome is not Outcome.SAME:
            rows.append([campaign.verdict.campaign, text.node_sentence([entry])])
    complete = [entry for entry in entries if entry is not None]
    return {
        "node": name,
        "rack": next((entry.rack for entry in complete if entry.rack), ""),
        "serials": next(
            (str(e.fingerprint["serials"]) for e in reversed(complete) if e.fingerprint.get("serials")), ""
        ),
        "verdicts": [str(entry.outcome) if entry is not None else "not in it" for entry in entries],
        "result": result([entry.outcome if entry is not None else None for entry in entries]),
        "findings": rows,
        "boots": len(frozenset().union(*(campaign.boots.get(name, frozenset()) for campaign in campaigns))),
    }


def _folded(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of nodes of which the same is said, as one with all of their names."""
    alike: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        alike.setdefault(repr((row["verdicts"], row["findings"])), []).append(row)
    return [{**group[0], "node": names.nodes(row["node"] for row in group)} for group in alike.values()]
