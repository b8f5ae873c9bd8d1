"""The pages of a node, from its part of verdict.json and its jobs in the store. Nothing is judged here.

Page 1 is for the vendor: which node, what was found and what it looks like, how it was tested. Matrices and quantities
follow; statistics, runs and method come last. Keys that are absent are left off the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodeprint import outcomes
from nodeprint.fingerprint import LISTS, label
from nodeprint.fleet.jobs import Job
from nodeprint.report import findings, formatting, matrices, methods, quantities, runs
from nodeprint.report.pages import (
    Advice,
    Block,
    Bullets,
    FactList,
    Facts,
    Figures,
    Log,
    Page,
    Section,
    Site,
    Table,
    Text,
    sections,
)
from nodeprint.report.peers import Maps, Peers, name_of
from nodeprint.report.scale import Scale
from nodeprint.report.shown import ClassKey, Shown
from nodeprint.topology.model import Topology
from nodeprint.words.names import name_list

#: Facts that take a line of their own.
_LONG = {label(key) for key in ("cmdline", "serials", *LISTS)}


def node_page(
    verdict: Mapping[str, Any],
    node: str,
    shown: Shown,
    scales: Mapping[str, Scale],
    fleet: Mapping[ClassKey, float],
    peers: Peers | None = None,
    maps: Sequence[Maps] = (),
    with_structure: bool = False,
    site: Site | None = None,
) -> Page:
    """The page of `node`, with the fleet's notes where it is the only one.

    `with_structure` searches the matrices for groups, which takes longer than all else on the page.
    `scales` are the report's colour scales by measurement, `fleet` the fleet's class medians in ns (empty for one).
    """
    said = verdict["nodes"][node]
    job, bounds = shown.job, (verdict.get("fleet") or {}).get("bound") or {}
    peers, site = peers or Peers(), site or Site()
    found = findings.findings(said, node, shown, peers, bounds)
    maps_block = tuple(block for one in maps for block in (Text(one.text), Figures(one.figures)))
    alone = formatting.notes(verdict) if len(verdict["nodes"]) == 1 else ()
    return Page(
        campaign=str(verdict.get("campaign", "")),
        subject=node,
        title=node,
        origin=origin(verdict, job),
        mark=outcomes.of(str(said.get("verdict", ""))),
        lead=_lead(said, node, shown),
        sections=sections(
            Section("", (Bullets(alone),)),
            Section("The node", (FactList(_identity(said, shown), 2, 26.0),), together=True),
            Section("Last lines of its log", (Log(tuple(str(line) for line in said.get("log_tail") or ())),)),
            Section(
                "Quality of the data", (Bullets(tuple(formatting.sentence(item) for item in said.get("quality", ()))),)
            ),
            Section("Findings", tuple(found)),
            Section("How it was tested", methods.tested(shown, node, said, site) if found or site.contract else ()),
            Section("Differences", maps_block) if found else None,
            Section("", (Text(_nothing(job, shown.topology)),)),
            *matrices.sections(shown, node, said, scales, fleet, peers, bounds),
            *quantities.sections(shown, node, said, peers),
            matrices.floorplan(shown),
            Section("Runs", (runs.table(shown.jobs, said),)),
            Section("Groups found in the matrix", _structure(shown) if with_structure else ()),
            Section("Warnings", tuple(_warnings(said, shown.topology))),
            Section("Files that could not be used", (Bullets(shown.problems),)),
            None if found else Section("Differences", maps_block),
            Section("Fingerprint", _fingerprint(said)),
        ),
    )


def _lead(said: Mapping[str, Any], node: str, shown: Shown) -> tuple[str, ...]:
    """What was found, in sentences, and where the node is."""
    place = ", ".join(f"{key} {said[key]}" for key in ("group", "rack") if said.get(key))
    host = f"(host {shown.host})" if shown.host and shown.host != node else ""
    text, reason = str(said.get("text", "")), str(said.get("reason") or "")
    return tuple(
        filter(
            None, (formatting.without_runs(text), reason if reason != text else "", f"({place})" if place else "", host)
        )
    )


def _identity(said: Mapping[str, Any], shown: Shown) -> Facts:
    """Which node this is, for somebody who gets this page alone."""
    known = said.get("fingerprint") or {}
    times = sorted(str(run["start_time"]) for job in shown.jobs for one in job.measured.values() for run in one.runs)
    days = list(dict.fromkeys(time[:10] for time in times if time))
    rows = {
        "node": shown.host,
        "rack": said.get("rack"),
        "product": known.get("product"),
        "processors": _processors(known),
        "memory": f"{known['memory_gib']} GiB" if known.get("memory_gib") else None,
        "memory modules": ", ".join(filter(None, (str(known.get("dimms") or ""), str(known.get("dimm_speed") or "")))),
        "BIOS": known.get("bios"),
        "microcode": known.get("microcode"),
        "BMC firmware": known.get("bmc"),
        "operating system": ", ".join(filter(None, (str(known.get("os") or ""), str(known.get("kernel") or "")))),
        "serial numbers": known.get("serials")
        or ("not recorded (`serials:` in the configuration)" if known.get("bios") else None),
        "measured": " to ".join(dict.fromkeys((days[0], days[-1]))) if days else None,
    }
    return tuple((key, str(value)) for key, value in rows.items() if value)


def _processors(known: Mapping[str, Any]) -> str:
    if not known.get("cpu"):
        return ""
    cores = f", {known['cores']} cores" if known.get("cores") else ""
    return f"{known['sockets']} x {known['cpu']}{cores}" if known.get("sockets") else f"{known['cpu']}{cores}"


def origin(verdict: Mapping[str, Any], job: Job | None) -> str:
    """What a page says of records that were not measured here; empty for those that were."""
    headers = [one.header for one in job.pairs] if job is not None else []
    if verdict.get("simulated") or any(header.get("simulated") for header in headers):
        return "SIMULATED, not a measurement"
    return "IMPORTED, not measured by nodeprint" if any(header.get("imported") for header in headers) else ""


def _nothing(job: Job | None, topology: Topology | None) -> str:
    """Why there is no figure although the node was measured."""
    if job is None or job.pairs:
        return ""
    alone = topology is not None and len(topology.cpus) == 1
    return "This node has one CPU: there is no pair to measure." if alone else "No pair of CPUs was measured."


def advice(item: Any) -> Advice:
    """A warning of the verdict in words."""
    if isinstance(item, Mapping):
        return Advice(str(item.get("text", item.get("id", ""))), str(item.get("advice", "")))
    return Advice(str(item), "")


def _warnings(said: Mapping[str, Any], topology: Topology | None) -> list[Advice]:
    """The verdict's warnings, and those of the labels."""
    found = [advice(item) for item in said.get("warnings", ())]
    known = {one.text for one in found}
    labels = topology.warnings if topology is not None else ()
    return found + [Advice(w.text, w.advice) for w in labels if w.text not in known]


def _fingerprint(said: Mapping[str, Any]) -> tuple[Block, ...]:
    facts = formatting.facts(said.get("fingerprint", {}))
    return (
        FactList(tuple(fact for fact in facts if fact[0] not in _LONG), 2),
        FactList(tuple(fact for fact in facts if fact[0] in _LONG)),
    )


def _structure(shown: Shown) -> tuple[Block, ...]:
    """What each matrix of three or more CPUs shows without its labels."""
    from nodeprint import structure  # noqa: PLC0415 (half a second to import, for nodes with findings alone)

    job = shown.job
    out: list[Block] = []
    for one in shown.matrices:
        if len(one.cpus) < 3:
            continue
        controlled = (
            True
            if job is not None and job.measured[one.measurement].header.get("home") not in (None, "unknown")
            else None
        )
        seen = structure.find(one.values, one.cpus, shown.topology, controlled)
        relations = {item.level: f"{item.relation} {item.label}" for item in seen.agreement}
        rows = tuple(
            (
                level.name,
                f"{len(level.groups)} of {name_list(sorted({str(len(g)) for g in level.groups}, key=int))}",
                f"{level.within_ns:.1f}",
                f"{level.between_ns:.1f}",
                f"{level.stability:.2f}",
                relations.get(level.name, ""),
            )
            for level in seen.levels
        )
        header = ("level", "groups of CPUs", "within, ns", "between, ns", "stability", "compared with the labels")
        out.append(Text(f"{name_of(one)}: found from the latencies alone, without labels", quiet=True))
        out.append(Table(header, rows, align="lrrrrl"))
        out += [Advice(item.text, item.advice) for item in seen.findings]
    return tuple(out)
