"""The acceptance protocol of one or several campaigns: what was measured when, by which limits, with which outcome.

A PDF to sign, and MANIFEST.sha256 beside it over everything that it rests on. It decides nothing of its own: outcomes
are those of the campaigns' verdicts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nodeprint import files, outcomes
from nodeprint.errors import NodeprintError
from nodeprint.fleet import jobs, store
from nodeprint.judge import acceptance
from nodeprint.report.pdf import Printer, breakable
from nodeprint.verdict import outputs

#: What of a campaign the protocol rests on, and the manifest lists.
_EVIDENCE = (
    "config.yaml", "acceptance.yaml", "nodes.tsv", "plan.tsv", "fleet.json", "verdict.json", "report/cluster.pdf",
    "nodes/*/job*/status.json", "nodes/*/job*/plan.tsv", "nodes/*/job*/survey.tar.gz",
    "nodes/*/job*/run*.tar.?z", "nodes/*/job*/run*/*.jsonl.gz", "nodes/*/job*/run*/*.jsonl",
    "fabric/job*/*/run*/*.jsonl.gz", "fabric/job*/outcomes.tsv",
)  # fmt: skip
#: What a node is over all campaigns.
ACCEPTED, DEVIATION, OPEN = "accepted", "deviation", "open"


class JudgedCampaign(msgspec.Struct, frozen=True):
    """A judged campaign: its verdict, when it was measured, and the boots of its nodes."""

    folder: Path
    verdict: Mapping[str, Any]
    first: str
    last: str
    boots: Mapping[str, frozenset[str]]

    @property
    def name(self) -> str:
        return str(self.verdict.get("campaign", self.folder.name))


def write(campaigns: Sequence[Path], to: Path) -> list[Path]:
    """Write MANIFEST.sha256 and protocol.pdf into the folder `to`; returns their paths.

    Raises NodeprintError where a campaign has no verdict, two have the same folder, or simulated and measured ones are
    mixed.
    """
    if len({path.resolve() for path in campaigns}) < len(campaigns):
        raise NodeprintError("a campaign is named twice", key="protocol", advice="name each once")
    read = [_campaign(path) for path in campaigns]
    if len({bool(one.verdict.get("simulated")) for one in read}) > 1:
        advice = "write a protocol of measured campaigns only"
        raise NodeprintError("simulated and measured campaigns are mixed", key="protocol", advice=advice)
    text = manifest([path for one in read for path in evidence(one.folder)], to)
    paths = [files.write(to / "MANIFEST.sha256", text)]
    with Printer("protocol.typ") as printer:
        pdf = printer.document(_breakable(content(read, text)))
    return [*paths, files.write(to / "protocol.pdf", pdf)]


def evidence(folder: Path) -> list[Path]:
    """The files of a campaign that the protocol rests on, in the order of their names."""
    return sorted({path for pattern in _EVIDENCE for path in folder.glob(pattern) if path.is_file()})


def manifest(paths: Iterable[Path], base: Path) -> str:
    """A line each as sha256sum writes it, relative to `base`: `sha256sum -c MANIFEST.sha256` there checks them."""
    lines = []
    for path in paths:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        lines.append(f"{digest.hexdigest()}  {os.path.relpath(path, base)}\n")
    return "".join(lines)


def result(words: Sequence[str]) -> str:
    """What a node is over its outcomes in all campaigns: one accusation outweighs, one proof of sameness suffices."""
    known = [outcomes.of(word) for word in words if word]
    if any(one.accuses for one in known):
        return DEVIATION
    return ACCEPTED if any(one.same for one in known) else OPEN


def content(campaigns: Sequence[JudgedCampaign], manifest_text: str) -> dict[str, Any]:
    """What is on the pages, as plain data."""
    names = sorted({name for one in campaigns for name in one.verdict["nodes"]})
    rows = [_node(name, campaigns) for name in names]
    counts = {kind: sum(row["result"] == kind for row in rows) for kind in (ACCEPTED, DEVIATION, OPEN)}
    return {
        "simulated": any(one.verdict.get("simulated") for one in campaigns),
        "campaigns": [_head(one) for one in campaigns],
        "counts": counts,
        "rules": [_rules(one) for one in campaigns],
        "deviations": [row for row in rows if row["result"] == DEVIATION],
        "open": [row for row in rows if row["result"] == OPEN],
        "nodes": rows,
        "versions": [
            [one.name, key, str(value)] for one in campaigns for key, value in sorted(one.verdict["versions"].items())
        ],
        "manifest": hashlib.sha256(manifest_text.encode()).hexdigest(),
        "files": manifest_text.count("\n"),
    }


def _campaign(folder: Path) -> JudgedCampaign:
    verdict = outputs.read(folder)
    times, boots = [], {}
    for name in verdict["nodes"]:
        node = folder / "nodes" / name
        found = [store.job(job, write=False) for job in jobs.folders(node)] if node.is_dir() else []
        times += [str(job.status[key]) for job in found for key in ("started", "ended") if job.status.get(key)]
        runs = [run for job in found for one in job.measured.values() for run in one.runs]
        boots[name] = frozenset(run["boot_id"] for run in runs if run["boot_id"])
    return JudgedCampaign(folder, verdict, min(times, default=""), max(times, default=""), boots)


def _head(one: JudgedCampaign) -> dict[str, Any]:
    counts = one.verdict["fleet"].get("counts", {})
    boots = [len(found) for found in one.boots.values() if found]
    return {
        "name": one.name,
        "measured": " to ".join(dict.fromkeys(time[:10] for time in (one.first, one.last) if time)),
        "boots": f"{min(boots)} to {max(boots)}" if boots and min(boots) != max(boots) else str(max(boots, default=0)),
        "outcome": one.verdict["fleet"].get("outcome", ""),
        "text": one.verdict["fleet"].get("text", ""),
        "counts": ", ".join(f"{count} {word}" for word, count in counts.items() if count),
    }


def _rules(one: JudgedCampaign) -> dict[str, Any]:
    """Bounds with their source, and the limits of the contract, by which a campaign was judged."""
    kept = acceptance.kept(one.folder)
    rules = acceptance.load(kept)
    default = acceptance.load()
    pairs = [
        [name, f"{bound * 100:g} %", "nodeprint's default" if default.bounds.get(name) == bound else "the site's file"]
        for name, bound in rules.bounds.items()
    ]
    cells = [
        [
            name,
            f"{cell.bound * 100:g} %",
            "nodeprint's default" if default.cells.get(name) == cell else "the site's file",
        ]
        for name, cell in rules.cells.items()
    ]
    limits = [
        [
            limit.measurement, limit.of, "" if limit.at_least is None else f"{limit.at_least:g}",
            "" if limit.at_most is None else f"{limit.at_most:g}", limit.reason,
        ]
        for limit in rules.limits
    ]  # fmt: skip
    return {
        "name": one.name, "bounds": [*pairs, *cells], "limits": limits,
        "suppressions": [[s.node, s.finding, s.reason, s.until.isoformat()] for s in rules.suppressions],
        "by": str(one.verdict["versions"].get("acceptance", "the defaults")),
    }  # fmt: skip


def _node(name: str, campaigns: Sequence[JudgedCampaign]) -> dict[str, Any]:
    entries = [one.verdict["nodes"].get(name, {}) for one in campaigns]
    words = [str(entry.get("verdict", "")) for entry in entries]
    said = [
        [one.name, str(found.get("text", ""))]
        for one, entry in zip(campaigns, entries, strict=True)
        for found in entry.get("findings", ())
        if not found.get("suppressed")
    ]
    why = [
        [one.name, str(entry.get("reason") or entry.get("text", ""))]
        for one, entry in zip(campaigns, entries, strict=True)
        if entry and not outcomes.of(str(entry.get("verdict", ""))).same
    ]
    serials = [str(entry.get("fingerprint", {}).get("serials") or "") for entry in entries]
    return {
        "node": name,
        "rack": next((str(entry["rack"]) for entry in entries if entry.get("rack")), ""),
        "serials": next((text for text in reversed(serials) if text), ""),
        "verdicts": [word or "not in it" for word in words],
        "result": result(words),
        "findings": said or why,
        "boots": len(frozenset().union(*(one.boots.get(name, frozenset()) for one in campaigns))),
    }


def _breakable(value: Any) -> Any:
    if isinstance(value, str):
        return breakable(value)
    if isinstance(value, Mapping):
        return {key: _breakable(item) for key, item in value.items()}
    return [_breakable(item) for item in value] if isinstance(value, list) else value
