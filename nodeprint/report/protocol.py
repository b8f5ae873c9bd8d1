"""The acceptance report of one or several campaigns: measured values, dates, tolerances and outcomes.

Output: a PDF to sign, the applied tolerances as a file, and MANIFEST.sha256 over all evidence. Outcomes come from the
campaigns' verdicts. A rule over the list of nodes (`decision`) suggests the result; the parties tick the one that they
agree on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import UNSET

from nodeprint import files
from nodeprint.data.store import manifest, packed, packing
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge import acceptance, acceptance_file, of_table
from nodeprint.judge.outcome import Accepted, FleetOutcome, Outcome
from nodeprint.judge.verdict import Verdict
from nodeprint.machine.fingerprint import label, other_processor
from nodeprint.report import documents, names, text, verdict_files
from nodeprint.report.pages import medians, not_passing
from nodeprint.report.pages.accepted import machines, tolerances, tolerances_source
from nodeprint.report.pages.blocks import (
    Block,
    Cell,
    Document,
    FactList,
    Form,
    Mark,
    Page,
    Section,
    SiteTexts,
    Table,
    Text,
    sections,
)
from nodeprint.report.pages.order import natural
from nodeprint.report.pages.tables import tabulated, without_empty
from nodeprint.report.pdf import Printer
from nodeprint.settings.texts import say

#: Files written from the verdict; the acceptance report lists them after the campaign's manifest.
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
#: Fleet outcomes without a majority that could be the peer reference.
_NO_MAJORITY = (FleetOutcome.SPLIT, FleetOutcome.NON_UNIFORM)
#: What the parties fill in of an open item.
_TO_FILL_IN = {"until (date)": "_" * 12, "done": "\N{WHITE SQUARE}"}


class Decision(StrEnum):
    """The decisions that the parties may agree on."""

    ACCEPTED = "accepted"
    RESERVATIONS = "accepted with reservations"
    OPEN = "not decided"
    REJECTED = "rejected"


#: Symbol and color of a decision, and of a node's result over all campaigns.
_MARKS: Mapping[Decision | Accepted, tuple[str, str]] = {
    **dict.fromkeys((Decision.ACCEPTED, Accepted.ACCEPTED), ("●", "good")),
    Decision.RESERVATIONS: ("◆", "warning"),
    **dict.fromkeys((Decision.OPEN, Accepted.OPEN), ("◇", "neutral")),
    **dict.fromkeys((Decision.REJECTED, Accepted.DEVIATION), ("▲", "alarm")),
}


class JudgedCampaign(msgspec.Struct, frozen=True):
    """A judged campaign: its verdict, when it was measured, and the boots of its nodes."""

    folder: Path
    verdict: Verdict
    first: str
    last: str
    boots: Mapping[str, frozenset[str]]


def write(campaigns: Sequence[Path], to: Path) -> list[Path]:
    """Write the acceptance report into the directory `to`; return the paths of its files.

    In this order: MANIFEST.sha256, protocol.pdf, and the applied tolerances, one acceptance-NAME.yaml per campaign.

    Raises NodeprintError if a campaign has no verdict or changed after it was judged. The same error is raised if two
    campaigns share a directory or a record, or if some are simulated and some measured. Nodes of one name with
    different processors are an error, too.
    """
    if len({files.real(path) for path in campaigns}) < len(campaigns):
        raise NodeprintError("a campaign is named twice", key="protocol", advice="name each once")
    judged_campaigns = [judged(path) for path in campaigns]
    if len({campaign.verdict.simulated for campaign in judged_campaigns}) > 1:
        advice = "write a protocol of measured campaigns only"
        raise NodeprintError("simulated and measured campaigns are mixed", key="protocol", advice=advice)
    _refuse_other_machines(judged_campaigns)
    sealed = [_sealed(campaign.folder) for campaign in judged_campaigns]
    _refuse_copies(judged_campaigns, sealed)
    tolerances = [files.write(to / _tolerances_file(campaign), _rules_of(campaign)) for campaign in judged_campaigns]
    every = [{path for pattern in _WRITTEN for path in of.folder.glob(pattern)} for of in judged_campaigns]
    written = [path for paths in every for path in sorted(paths) if path.is_file()]
    listed = "".join(_evidence(of.folder, files_of, to) for of, files_of in zip(judged_campaigns, sealed, strict=True))
    listed += files.sums([*written, *tolerances], to)
    listed += "".join(_tables(campaign.folder, to) for campaign in judged_campaigns)
    paths = [files.write(to / "MANIFEST.sha256", listed)]
    with Printer() as printer:
        pdf = printer.pdf(content(judged_campaigns, listed, documents.site_texts(campaigns[-1])))
    return [*paths, files.write(to / "protocol.pdf", pdf), *tolerances]


def _tolerances_file(campaign: JudgedCampaign) -> str:
    return f"acceptance-{names.file_stem(campaign.verdict.campaign)}.yaml"


def _rules_of(campaign: JudgedCampaign) -> str:
    return acceptance.text_of(acceptance.rules_of(campaign.folder))


def _sealed(folder: Path) -> Mapping[str, manifest.Entry]:
    """Return the files of a campaign by their paths. Raises NodeprintError where a file changed."""
    sealed = manifest.read(folder) if (folder / manifest.NAME).is_file() else manifest.current(folder)
    changes = manifest.changes(folder, sealed)
    if first := next(iter((*changes["changed"], *changes["missing"], *changes["new"])), ""):
        problem = f"is not as it was when {folder.name} was judged"
        advice = f"`nodeprint verify {folder}` names all such files; judge it again if that is intended"
        raise NodeprintError(problem, where=folder / first, advice=advice)
    return sealed.files


def _refuse_other_machines(campaigns: Sequence[JudgedCampaign]) -> None:
    """Raise NodeprintError if nodes of one name have different processors: they are not one system."""
    first: dict[str, tuple[Path, Mapping[str, object]]] = {}
    for campaign in campaigns:
        for name, node in campaign.verdict.nodes.items():
            folder, fingerprint = first.setdefault(name, (campaign.folder, node.fingerprint))
            if difference := other_processor(fingerprint, node.fingerprint):
                field, before, now = label(difference[0]), *(printable(value, 60) for value in difference[1:])
                raise NodeprintError(
                    f"{printable(name, 60)} is not one machine: its {field} is {before} in {folder.name} and {now} in"
                    f" {campaign.folder.name}",
                    key="protocol",
                    advice="write a report of each system",
                )


def _refuse_copies(campaigns: Sequence[JudgedCampaign], sealed: Sequence[Mapping[str, manifest.Entry]]) -> None:
    """Raise NodeprintError if two campaigns share a record: one measurement would count as two."""
    campaign_of: dict[str, Path] = {}
    for campaign, entries in zip(campaigns, sealed, strict=True):
        records = {name: entry.sha256 for name, entry in entries.items() if ".jsonl" in name and entry.size}
        if copy := next((name for name, digest in records.items() if digest in campaign_of), ""):
            problem = f"is also a record of {campaign_of[records[copy]].name}"
            advice = "name only one of them: a copy is no second measurement"
            raise NodeprintError(problem, where=campaign.folder / copy, key="protocol", advice=advice)
        campaign_of |= dict.fromkeys(records.values(), campaign.folder)


def _evidence(folder: Path, sealed: Mapping[str, manifest.Entry], base: Path) -> str:
    """Return the lines of a campaign's manifest, as sha256sum writes them."""
    return "".join(f"{entry.sha256}  {os.path.relpath(folder / name, base)}\n" for name, entry in sealed.items())


def _tables(folder: Path, base: Path) -> str:
    """Return manifest lines of the table or outputs that a campaign was judged from, with their hashes at that time."""
    kept = folder / of_table.TABLES
    lines = kept.read_text().splitlines() if kept.is_file() else []
    sums = (line.partition("  ") for line in lines)
    return "".join(f"{digest}  {os.path.relpath(folder / name, base)}\n" for digest, _, name in sums)


def result(outcomes: Iterable[Outcome | None]) -> Accepted:
    """Combine a node's outcomes of all campaigns (None: not part of it); a single deviation outweighs all others."""
    of_each = {Accepted.OPEN if outcome is None else outcome.entry.accepted for outcome in outcomes}
    if Accepted.DEVIATION in of_each:
        return Accepted.DEVIATION
    return Accepted.ACCEPTED if of_each == {Accepted.ACCEPTED} else Accepted.OPEN


def decision(results: Sequence[Accepted], verdicts: Sequence[Verdict]) -> Decision:
    """Return the decision that the list of nodes suggests.

    Accepted: every node is accepted, and there are no findings about fleets or messages and no memory warnings.
    Rejected: a fleet is split or not uniform, or so many nodes deviate that too few are a reference for the others.
    Not decided: too few nodes are accepted, but open ones may still be. Otherwise the system is accepted with
    reservations.
    """
    accepted = sum(of_node is Accepted.ACCEPTED for of_node in results)
    every = {outcome.entry.accepted for verdict in verdicts for outcome in verdict.outcomes}
    warned = any(verdict.fleet.memory for verdict in verdicts)
    if results and accepted == len(results) and every == {Accepted.ACCEPTED} and not warned:
        return Decision.ACCEPTED
    without_majority = any(verdict.fleet.outcome in _NO_MAJORITY for verdict in verdicts)
    deviating = sum(of_node is Accepted.DEVIATION for of_node in results)
    if without_majority or len(results) - deviating < _ACCEPTED * len(results):
        return Decision.REJECTED
    return Decision.OPEN if not results or accepted < _ACCEPTED * len(results) else Decision.RESERVATIONS


def content(campaigns: Sequence[JudgedCampaign], manifest_text: str, site: SiteTexts) -> Document:
    """Return the pages, built from the blocks and the template of a report."""
    every = sorted({name for campaign in campaigns for name in campaign.verdict.nodes}, key=natural)
    of_each = [{name: node.outcome for name, node in campaign.verdict.nodes.items()} for campaign in campaigns]
    outcomes = {name: [of_campaign.get(name) for of_campaign in of_each] for name in every}
    results = {name: result(of_node) for name, of_node in outcomes.items()}
    by_rule = decision(list(results.values()), [campaign.verdict for campaign in campaigns])
    last = {name: node for campaign in campaigns for name, node in campaign.verdict.nodes.items()}
    warnings = dict.fromkeys(words for campaign in campaigns for words in text.memory_warnings(campaign.verdict.fleet))
    counts = {kind: sum(of_node is kind for of_node in results.values()) for kind in Accepted}
    is_split = any(Outcome.SPLIT in of_node for of_node in outcomes.values())
    remarks = (*((say("protocol_split"),) if is_split else ()), *warnings)
    parties = {key: getattr(site, key) for key in ("customer", "supplier", "system", "contract", "place", "contact")}
    signing = tuple(" ".join(filter(None, (f"For the {key}", parties[key]))) for key in ("customer", "supplier"))
    digest = hashlib.sha256(manifest_text.encode()).hexdigest()
    of_verdicts = [campaign.verdict for campaign in campaigns]
    versions = [(of.campaign, key, value) for of in of_verdicts for key, value in sorted(of.versions.items())]
    page = Page(
        "acceptance",
        "acceptance",
        say("protocol", "title"),
        _mark(by_rule),
        (say("protocol", "result", nodes=names.counted(len(every), "node"), **counts), *remarks),
        sections(
            Section("", (Form(blanks=tuple(parties.items())),)),
            Section("System", (FactList(machines(last), 2), _campaigns(campaigns))),
            Section("Decision", (Form(choices=tuple(Decision)), Text(say("protocol", "rule"), quiet=True))),
            Section("Open items", _open_items(campaigns, results)),
            *(section for of in campaigns for section in _values_and_rules(of, several=len(campaigns) > 1)),
            Section("Files", (Text(say("protocol", "files", count=manifest_text.count("\n"), digest=digest)),)),
            Section("Signatures", (Form(signatures=signing),)),
            Section("All nodes", (_nodes(campaigns, results),), apart=True),
            Section("Versions", (Table(("campaign", "part", "version or hash"), tuple(versions), wide=2),)),
        ),
    )
    campaign_names = ", ".join(campaign.verdict.campaign for campaign in campaigns)
    return Document(say("protocol", "title"), campaign_names, text.origin(campaigns[0].verdict), (page,), site)


def _mark(of: Decision | Accepted) -> Mark:
    symbol, color = _MARKS[of]
    return Mark(symbol, of, color)


def judged(folder: Path) -> JudgedCampaign:
    """Return a campaign with its verdict. Raises NodeprintError without one."""
    verdict = verdict_files.read(folder)
    try:
        fleet = packed.read(folder)
    except NodeprintError:
        if not (folder / "nodes.tsv").is_file():  # only the verdict is present
            return JudgedCampaign(folder, verdict, "", "", {})
        fleet = packing.pack(folder)  # another version may have packed it
    times = [time for quantity in fleet.quantities for time in quantity.started if time]
    boots = {node.name: frozenset(node.boots) for node in fleet.nodes}
    return JudgedCampaign(folder, verdict, min(times, default=""), max(times, default=""), boots)


def _campaigns(campaigns: Sequence[JudgedCampaign]) -> Table:
    rows = []
    for campaign in campaigns:
        boots = sorted({len(of_node) for of_node in campaign.boots.values() if of_node})
        days = dict.fromkeys(time[:10] for time in (campaign.first, campaign.last) if time)
        counts = (f"{count} {word}" for word, count in campaign.verdict.fleet.counts.items() if count)
        when = " to ".join(days), " to ".join(map(str, dict.fromkeys((*boots[:1], *boots[-1:]))))
        times = (words or say("not_recorded") for words in when)
        outcome = text.campaign_outcome(campaign.verdict)
        rows.append((campaign.verdict.campaign, *times, outcome, ", ".join(counts)))
    header = ("campaign", "measured on", "boots per node", "outcome of the fleet", "nodes by outcome")
    return Table(header, tuple(rows), wide=4)


def _values_and_rules(campaign: JudgedCampaign, *, several: bool) -> tuple[Section, Section]:
    """List the measured values of a campaign, then its rules.

    These are the definition of SAME, tolerances of deciding metrics with their source, the contract's limits, waivers
    and repairs.
    """
    values, of_one = medians.of_fleet(campaign.verdict), f" of {campaign.verdict.campaign}" if several else ""
    first = Section(f"Measured values{of_one}", (values, Text(say("protocol", "values") if values.rows else "")))
    rules = acceptance.rules_of(campaign.folder)
    digest = hashlib.sha256(_rules_of(campaign).encode()).hexdigest()
    judged_by = campaign.verdict.versions.get("acceptance", "")
    default, source = acceptance_file.Metric().tolerance, tolerances_source(campaign.verdict)
    unlisted = say("protocol", "unlisted", tolerance=default) if campaign.verdict.imported else ""
    ends = {"file": _tolerances_file(campaign), "digest": digest, "unlisted": unlisted}
    words = say("protocol", "tolerances", source=source, **ends)
    other = "" if digest in judged_by else say("protocol", "other_rules", judged_by=judged_by)
    limits = []
    for limit in rules.limits:
        least = "" if limit.at_least is UNSET else f"{limit.at_least:g}"
        if limit.at_least_percent is not UNSET:
            least = f"{limit.at_least_percent:g}% of the theoretical peak"
        most = "" if limit.at_most is UNSET else f"{limit.at_most:g}"
        limits.append((text.measured(limit.measurement), limit.figure, least, most, limit.reason))
    waivers = tuple((of.node, of.finding, of.reason, of.until.isoformat()) for of in rules.waivers)
    repairs = tuple((repair.node, repair.at, repair.what) for repair in rules.repairs)
    return first, Section(
        f"Tolerances and limits{of_one}",
        (
            Text(" ".join(filter(None, (say("method", "same"), *text.based_on(campaign.verdict), words, other)))),
            *tolerances(campaign.verdict),
            Text("" if limits else say("protocol", "no_limits")),
            Table(("limit of the contract", "of", "at least", "at most", "source"), tuple(limits), "llrrl"),
            Table(("waived on", "finding", "reason", "until"), waivers, wide=2),
            Table(("repaired", "at", "what; only jobs after it count"), repairs, wide=2),
        ),
    )


def _open_items(campaigns: Sequence[JudgedCampaign], results: Mapping[str, Accepted]) -> tuple[Block, ...]:
    """Return the rows of page 1 of each campaign, with rack and deadline, and the nodes that a campaign lacks."""
    items: list[dict[str, Cell]] = []
    racks = {name: node.rack for campaign in campaigns for name, node in campaign.verdict.nodes.items() if node.rack}
    for campaign in campaigns:
        verdict = campaign.verdict
        rows = [(row.nodes, row.called, row.cells) for row in not_passing.rows(verdict)]
        if absent := tuple(name for name in results if name not in verdict.nodes):
            differs = text.sentence(say("protocol", "absent"))
            rows.append(
                (absent, names.nodes(absent), {"what differs": differs, "what to do": say("protocol", "absent_action")})
            )
        for nodes, called, cells in rows:
            where = {"campaign": verdict.campaign if len(campaigns) > 1 else "", "node": called}
            rack = names.nodes(dict.fromkeys(racks[name] for name in nodes if name in racks))
            items.append({**where, "rack": rack, **dict.fromkeys(not_passing.COLUMNS, ""), **cells, **_TO_FILL_IN})
    has_reports = any(any(campaign.folder.glob("report/*-check.sh")) for campaign in campaigns)
    return tabulated(items, "lllllrrlll"), Text(say("protocol", "node_reports") if has_reports else "", quiet=True)


def _nodes(campaigns: Sequence[JudgedCampaign], results: Mapping[str, Accepted]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, of_node in results.items():
        entries = [campaign.verdict.nodes.get(name) for campaign in campaigns]
        nodes = [entry for entry in entries if entry is not None]
        serials = (str(node.fingerprint["serials"]) for node in reversed(nodes) if node.fingerprint.get("serials"))
        boots = frozenset().union(*(campaign.boots.get(name, frozenset()) for campaign in campaigns))
        machine = next((node.rack for node in nodes if node.rack), ""), next(serials, say("not_recorded"))
        marks = (Mark.of(entry.outcome) if entry is not None else say("protocol", "absent") for entry in entries)
        rows.append((name, *machine, str(len(boots) or ""), *marks, _mark(of_node)))
    header = ("node", "rack", "serial numbers", "boots", *(c.verdict.campaign for c in campaigns), "result")
    return without_empty(Table(header, tuple(rows), "lllr" + "l" * (len(campaigns) + 1), 2))
