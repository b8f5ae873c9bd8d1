"""The acceptance protocol of one or several campaigns: what was measured when, by which tolerances, with which outcome.

A PDF to sign, the tolerances that applied as a file, and MANIFEST.sha256 over everything that it rests on. Outcomes are
those of the campaigns' verdicts; what they suggest follows from a rule over the list of nodes (`decision`), and the
parties tick what they agree on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from nodeprint import files
from nodeprint.data.store import manifest, packed, packing
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance, of_table
from nodeprint.judge.acceptance_file import ContractLimit
from nodeprint.judge.outcome import Accepted, FleetOutcome, Outcome
from nodeprint.judge.verdict import Verdict
from nodeprint.report import check_scripts, names, site_branding, text, verdict_files
from nodeprint.report.pages.accepted import machines
from nodeprint.report.pages.blocks import SiteTexts
from nodeprint.report.pages.order import natural
from nodeprint.report.pdf import Printer, plain
from nodeprint.settings.texts import say

#: What was written from the verdict: the acceptance report lists it after the campaign's manifest.
_WRITTEN = (
    "store/fleet.json",
    "verdict.xml",
    "deviations.nc",
    "report/*.pdf",
    "report/cluster.html",
    "report/*-check.sh",
    "report/tables/*.csv",
)

#: A system is accepted with reservations if this share of its nodes is accepted.
_ACCEPTED = 0.6
#: Outcomes of a fleet in which it is open what its nodes differ from.
_NO_MAJORITY = (FleetOutcome.SPLIT, FleetOutcome.NON_UNIFORM)
#: Findings of a node in its row.
_MOST_OF_NODE = 3
#: Limits of a contract, accepted findings and reservations that have a row; of more there is a word.
_MOST_ROWS = 16


class Decision(StrEnum):
    """What the parties may agree on."""

    ACCEPTED = "accepted"
    RESERVATIONS = "accepted with reservations"
    REJECTED = "rejected"


class JudgedCampaign(msgspec.Struct, frozen=True):
    """A judged campaign: its verdict, when it was measured, and the boots of its nodes."""

    folder: Path
    verdict: Verdict
    first: str
    last: str
    boots: Mapping[str, frozenset[str]]


def write(campaigns: Sequence[Path], to: Path) -> list[Path]:
    """Write MANIFEST.sha256, protocol.pdf and the tolerances that applied (acceptance-NAME.yaml, a file for each
    campaign) into the folder `to`; returns their paths in this order.

    Raises NodeprintError where a campaign has no verdict, two have the same folder, simulated and measured ones are
    mixed, or one is not as it was when it was judged.
    """
    if len({files.real(path) for path in campaigns}) < len(campaigns):
        raise NodeprintError("a campaign is named twice", key="protocol", advice="name each once")
    judged_campaigns = [judged(path) for path in campaigns]
    if len({campaign.verdict.simulated for campaign in judged_campaigns}) > 1:
        advice = "write a protocol of measured campaigns only"
        raise NodeprintError("simulated and measured campaigns are mixed", key="protocol", advice=advice)
    tolerances = [files.write(to / _tolerances_file(campaign), _rules_of(campaign)) for campaign in judged_campaigns]
    written = [path for campaign in judged_campaigns for path in _written(campaign.folder)]
    listed = "".join(_evidence(campaign.folder, to) for campaign in judged_campaigns)
    listed += files.sums([*written, *tolerances], to)
    listed += "".join(_tables(campaign.folder, to) for campaign in judged_campaigns)
    paths = [files.write(to / "MANIFEST.sha256", listed)]
    with Printer("protocol.typ") as printer:
        pdf = printer.data(content(judged_campaigns, listed, site_branding.of(campaigns[-1])))
    return [*paths, files.write(to / "protocol.pdf", pdf), *tolerances]


def _tolerances_file(campaign: JudgedCampaign) -> str:
    return f"acceptance-{names.file_stem(campaign.verdict.campaign)}.yaml"


def _rules_of(campaign: JudgedCampaign) -> str:
    """The tolerances and limits that a campaign is judged by as a file, whose SHA-256 its verdict names."""
    return acceptance.text_of(acceptance.rules_of(campaign.folder))


def _evidence(folder: Path, base: Path) -> str:
    """The lines of a campaign's manifest, as sha256sum writes them. Raises NodeprintError where a file changed."""
    sealed = manifest.read(folder) if (folder / manifest.NAME).is_file() else manifest.current(folder)
    changes = manifest.changes(folder, sealed)
    if first := next(iter((*changes["changed"], *changes["missing"], *changes["new"])), ""):
        what = f"is not as it was when {folder.name} was judged"
        advice = f"`nodeprint verify {folder}` names all such files; judge it again if that is intended"
        raise NodeprintError(what, where=folder / first, advice=advice)
    lines = ((entry.sha256, os.path.relpath(folder / name, base)) for name, entry in sealed.files.items())
    return "".join(f"{digest}  {path}\n" for digest, path in lines)


def _written(folder: Path) -> list[Path]:
    """What was written from a campaign's verdict, in the order of the names."""
    return sorted({path for pattern in _WRITTEN for path in folder.glob(pattern) if path.is_file()})


def _tables(folder: Path, base: Path) -> str:
    """The lines of the table or outputs that a campaign was judged of, with the hash that each had then."""
    kept = folder / of_table.TABLES
    lines = kept.read_text().splitlines() if kept.is_file() else []
    sums = (line.partition("  ") for line in lines)
    return "".join(f"{digest}  {os.path.relpath(folder / name, base)}\n" for digest, _, name in sums)


def result(outcomes: Iterable[Outcome | None]) -> Accepted:
    """What a node is over its outcomes in all campaigns (None: not part of it): a single deviation outweighs all."""
    of_each = {Accepted.OPEN if outcome is None else outcome.entry.accepted for outcome in outcomes}
    if Accepted.DEVIATION in of_each:
        return Accepted.DEVIATION
    return Accepted.ACCEPTED if of_each == {Accepted.ACCEPTED} else Accepted.OPEN


def decision(results: Sequence[Accepted], verdicts: Sequence[Verdict]) -> Decision:
    """What the list of nodes suggests: accepted where every node is and nothing was found in the fleets or in messages;
    rejected where a fleet is split or not uniform, or no majority of the nodes is accepted, as it then is open what
    the others differ from; with reservations else, also where memory could be more than it is."""
    accepted = sum(of_node is Accepted.ACCEPTED for of_node in results)
    every = {outcome.entry.accepted for verdict in verdicts for outcome in verdict.outcomes}
    warned = any(verdict.fleet.memory for verdict in verdicts)
    if results and accepted == len(results) and every == {Accepted.ACCEPTED} and not warned:
        return Decision.ACCEPTED
    without_majority = any(verdict.fleet.outcome in _NO_MAJORITY for verdict in verdicts)
    if without_majority or accepted < _ACCEPTED * len(results) or not results:
        return Decision.REJECTED
    return Decision.RESERVATIONS


def content(campaigns: Sequence[JudgedCampaign], manifest_text: str, site: SiteTexts) -> dict[str, Any]:
    """What is on the pages, as plain data."""
    every = sorted({name for campaign in campaigns for name in campaign.verdict.nodes}, key=natural)
    rows = [_node(name, campaigns) for name in every]
    counts = {kind: sum(row["result"] == kind for row in rows) for kind in Accepted}
    by_rule = decision([row["result"] for row in rows], [campaign.verdict for campaign in campaigns])
    last = {name: node for campaign in campaigns for name, node in campaign.verdict.nodes.items()}
    of_groups = [row for row in rows if set(row["verdicts"]) == {Outcome.SPLIT.with_class}]
    reserved = [
        *(row for row in rows if row["result"] == Accepted.DEVIATION and row not in of_groups),
        *_folded([row for row in rows if row["result"] == Accepted.OPEN or row in of_groups]),
    ]
    fabrics = [fabric for campaign in campaigns for fabric in campaign.verdict.fabric]
    warnings = dict.fromkeys(words for campaign in campaigns for words in text.memory_warnings(campaign.verdict.fleet))
    remarks = [say("protocol_split"), *warnings] if of_groups else [*warnings]
    fields: dict[str, Any] = {
        "origin": text.origin(campaigns[0].verdict),
        "parties": [
            ["customer", site.customer],
            ["supplier", site.supplier],
            ["system", site.system],
            ["contract", site.contract],
            ["place", site.place],
            ["contact", site.contact],
        ],
        "machines": [list(row) for row in machines(last)],
        "result": by_rule,
        "decisions": list(Decision),
        "sentence": " ".join([say("protocol", nodes=names.counted(len(rows), "node"), **counts), *remarks]),
        "rule": say("protocol_rule"),
        "campaigns": [_head(campaign) for campaign in campaigns],
        "rules": [_rules(campaign) for campaign in campaigns],
        "reservations": reserved[:_MOST_ROWS],
        "more_reservations": len(reserved[_MOST_ROWS:]),
        "messages": [words for fabric in fabrics for words in text.fabric_findings(fabric)][:_MOST_ROWS],
        "nodes": rows,
        "versions": [
            [campaign.verdict.campaign, key, value]
            for campaign in campaigns
            for key, value in sorted(campaign.verdict.versions.items())
        ],
        "signatures": [f"For the customer{_named(site.customer)}", f"For the supplier{_named(site.supplier)}"],
        "manifest": hashlib.sha256(manifest_text.encode()).hexdigest(),
        "files": manifest_text.count("\n"),
    }
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
    except NodeprintError:
        if not (folder / "nodes.tsv").is_file():  # its verdict alone is here
            return JudgedCampaign(folder, verdict, "", "", {})
        fleet = packing.pack(folder)  # what another version packed
    times = [time for quantity in fleet.quantities for time in quantity.started if time]
    boots = {node.name: frozenset(node.boots) for node in fleet.nodes}
    return JudgedCampaign(folder, verdict, min(times, default=""), max(times, default=""), boots)


def _head(campaign: JudgedCampaign) -> dict[str, Any]:
    fleet = campaign.verdict.fleet
    boots = [len(of_node) for of_node in campaign.boots.values() if of_node]
    return {
        "name": campaign.verdict.campaign,
        "measured": " to ".join(dict.fromkeys(time[:10] for time in (campaign.first, campaign.last) if time))
        or say("not_recorded"),
        "boots": " to ".join(map(str, sorted({min(boots), max(boots)}))) if boots else say("not_recorded"),
        "outcome": text.campaign_outcome(campaign.verdict),
        "text": text.first_line(campaign.verdict),
        "counts": ", ".join(f"{count} {word}" for word, count in fleet.counts.items() if count),
    }


def _rules(campaign: JudgedCampaign) -> dict[str, Any]:
    """Tolerances of what decides with their source, and the limits of the contract, by which a campaign was judged."""
    rules, default = acceptance.rules_of(campaign.folder), acceptance.load()
    limits = [
        [
            text.measured(limit.measurement),
            limit.figure,
            _least(limit),
            "" if limit.at_most is UNSET else f"{limit.at_most:g}",
            limit.reason,
        ]
        for limit in rules.limits
    ]
    return {
        "name": campaign.verdict.campaign,
        "tolerances": _tolerances(campaign.verdict),
        "source": "nodeprint's defaults" if rules == default else "acceptance.yaml of the campaign",
        "limits": limits[:_MOST_ROWS],
        "waivers": [[s.node, s.finding, s.reason, s.until.isoformat()] for s in rules.waivers][:_MOST_ROWS],
        "repairs": [[repair.node, repair.at, repair.what] for repair in rules.repairs][:_MOST_ROWS],
        "file": _tolerances_file(campaign),
        "digest": hashlib.sha256(_rules_of(campaign).encode()).hexdigest(),
        "judged_by": campaign.verdict.versions.get("acceptance", ""),
    }


def _least(limit: ContractLimit) -> str:
    if limit.at_least_percent is not UNSET:
        return f"{limit.at_least_percent:g} % of the theoretical peak"
    return "" if limit.at_least is UNSET else f"{limit.at_least:g}"


def _tolerances(verdict: Verdict) -> list[list[str]]:
    """By metric that decides the tolerances of its parts, and from which difference on one is found in nine of ten
    nodes."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for limit in verdict.fleet.limits:
        if limit.metric in verdict.criteria:
            rows.setdefault(limit.metric, []).append((limit.tolerance, limit.effect))
    return [
        [
            text.named("metrics", metric),
            _range([b for b, _ in components], names.tolerance),
            _range([e for _, e in components], names.percent),
        ]
        for metric, components in rows.items()
    ]


def _range(values: Sequence[float], words: Callable[[float], str]) -> str:
    """A value, or from the lowest to the highest."""
    low, high = words(min(values)), words(max(values))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def _node(name: str, campaigns: Sequence[JudgedCampaign]) -> dict[str, Any]:
    entries = [campaign.verdict.nodes.get(name) for campaign in campaigns]
    rows, remedies = [], list[str]()
    for campaign, entry in zip(campaigns, entries, strict=True):
        if entry is None:
            rows.append([campaign.verdict.campaign, "not part of this campaign"])
        elif entry.counted:
            checked = check_scripts.named_node(name, entry, imported=campaign.verdict.imported)
            rows += [[campaign.verdict.campaign, check_scripts.sentence(finding)] for finding in checked.counted]
            remedies += [text.remedy(finding) for finding in entry.counted]
        elif entry.outcome is Outcome.SPLIT:
            groups = campaign.verdict.fleet.groups
            rows.append([campaign.verdict.campaign, text.belongs(entry.group, groups)])
            remedies.append(text.next_step(entry.group, groups) or say("protocol_remedies", "compare"))
        elif entry.outcome is not Outcome.SAME:
            rows.append([campaign.verdict.campaign, text.sentence(text.node_sentence(entry))])
            remedies += [] if entry.outcome.entry.measured else [say("protocol_remedies", "measure")]
    complete = [entry for entry in entries if entry is not None]
    return {
        "node": name,
        "rack": next((entry.rack for entry in complete if entry.rack), ""),
        "serials": next(
            (str(e.fingerprint["serials"]) for e in reversed(complete) if e.fingerprint.get("serials")), "not recorded"
        ),
        "verdicts": [entry.outcome.with_class if entry is not None else "not in it" for entry in entries],
        "result": result([entry.outcome if entry is not None else None for entry in entries]),
        "findings": rows[:_MOST_OF_NODE],
        "more": len(rows[_MOST_OF_NODE:]),
        "remedy": " ".join(dict.fromkeys(remedies[:_MOST_OF_NODE])),
        "boots": len(frozenset().union(*(campaign.boots.get(name, frozenset()) for campaign in campaigns))),
    }


def _folded(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of nodes of which the same is said, as one with all of their names."""
    alike: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        alike.setdefault(repr((row["verdicts"], row["findings"])), []).append(row)
    return [{**group[0], "node": names.nodes(row["node"] for row in group)} for group in alike.values()]
