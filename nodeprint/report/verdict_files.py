"""The verdict as files: verdict.json, JUnit, Prometheus text, suggested scontrol lines, and the nodes to remeasure."""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from nodeprint import files, reading
from nodeprint.campaign import directories
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge import verdict as verdict_types
from nodeprint.judge.outcome import Certainty, Drain, Outcome
from nodeprint.judge.verdict import SCHEMA, FleetVerdict, NodeVerdict, Verdict
from nodeprint.report import check_scripts, text
from nodeprint.settings import former_keys
from nodeprint.settings.texts import say

#: Fields that are infinite if they are null in verdict.json; any other null is unknown (NaN).
_UNBOUNDED = ("within", "within_unit", "smallest_tolerance", "share")
#: Fields with values of other programs.
_FOREIGN = ("fingerprint", "warnings", "versions", "rules")


def write(verdict: Verdict, folder: Path, sheet: Mapping[str, tuple[str, str]] | None = None) -> list[Path]:
    """Write verdict.json, verdict.xml, verdict.prom and drain.sh into `folder`; return their paths.

    `sheet` maps nodes to Slurm's state and reason; nodes with another tool's reason are left alone. Raises
    NodeprintError if the directory is not writable.
    """
    contents = {"verdict.json": as_json(verdict), "verdict.xml": junit(verdict), "verdict.prom": prometheus(verdict)}
    contents["drain.sh"] = drain(verdict, sheet or {})
    return [files.write(folder / name, content) for name, content in contents.items()]


# --- verdict.json ---


def as_json(verdict: Verdict) -> str:
    """Return verdict.json; null is a value that is not finite."""
    return _as_json(check_scripts.named(verdict))


def node_as_json(name: str, node: NodeVerdict, *, imported: bool) -> str:
    """Return the node `name` in the format of verdict.json."""
    return _as_json(check_scripts.named_node(name, node, imported=imported))


def _as_json(component: Verdict | NodeVerdict) -> str:
    body = msgspec.json.encode(msgspec.to_builtins(component, str_keys=True), order="sorted")
    return msgspec.json.format(body, indent=1).decode() + "\n"


def read_fleet(campaign: Path) -> FleetVerdict:
    """Read the fleet's part of a campaign's verdict.json, without the nodes. Raises NodeprintError as `read` does."""

    def decode(raw: bytes) -> dict[str, Any]:
        parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        parts["nodes"] = msgspec.Raw(b"{}")  # they are most of it
        return {key: json.loads(bytes(part)) for key, part in parts.items()}

    return _read(campaign, decode).fleet


def read(campaign: Path) -> Verdict:
    """Read a campaign's verdict.json. Raises NodeprintError if it is missing or unreadable."""
    return _read(campaign, json.loads)


def _read(campaign: Path, decode: Callable[[bytes], Any]) -> Verdict:
    path, again = campaign / "verdict.json", f"run `nodeprint judge {campaign}`"
    try:
        files.check(path)  # a pipe would block forever
        plain = decode(reading.content(path, reading.VERDICT_BYTES, follows=True))
    except (FileNotFoundError, NotADirectoryError) as error:
        if not directories.is_campaign(campaign):
            raise directories.not_a_campaign(campaign) from error
        advice = f"call `make run` again (what was measured is kept), or `nodeprint judge {campaign}`"
        raise NodeprintError("no verdict yet", where=path, advice=advice) from error
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise NodeprintError("not readable as JSON", where=path, advice=again) from error
    if isinstance(plain, dict) and plain.get("schema", SCHEMA) != SCHEMA:
        what = f"has schema {printable(str(plain['schema']), 20)}, this nodeprint reads {SCHEMA}"
        fleet = plain.get("fleet")
        if former := former_keys.named([*plain, *(fleet if isinstance(fleet, dict) else ())]):
            what += f"; its former keys: {former}"
        raise NodeprintError(what, where=path, advice=again)
    try:
        return msgspec.convert(_revived(plain), Verdict, str_keys=True)
    except (msgspec.ValidationError, RecursionError) as error:
        raise NodeprintError(f"not a verdict ({printable(str(error), 160)})", where=path, advice=again) from error


def _revived(value: Any) -> Any:
    """Return JSON data with infinity or NaN restored from null."""
    if isinstance(value, list):
        return [math.nan if item is None else _revived(item) for item in value]
    if not isinstance(value, dict):
        return value
    unknown = {key for key, item in value.items() if item is None and key not in _nullable()}
    known = {key: item if key in _FOREIGN else _revived(item) for key, item in value.items() if key not in unknown}
    return known | {key: math.inf if key in _UNBOUNDED else math.nan for key in unknown}


@cache
def _nullable() -> frozenset[str]:
    types = [of for of in vars(verdict_types).values() if isinstance(of, type) and issubclass(of, msgspec.Struct)]
    hints = [hint for of in types for hint in get_type_hints(of).items()]
    return frozenset(name for name, hint in hints if type(None) in get_args(hint))


# --- JUnit ---


def junit(verdict: Verdict) -> str:
    """Return JUnit XML: a test case per node, one for the fleet, and one per measurement of the fabric."""
    import junitparser as ju  # noqa: PLC0415 (only for those who write JUnit)

    results = {"failure": ju.Failure, "error": ju.Error, "skipped": ju.Skipped}
    group = f"nodeprint.{verdict.campaign}"

    def case(name: str, element: str, kind: str, message: str, details: Iterable[str] = ()) -> ju.TestCase:
        out = ju.TestCase(printable(name), classname=group)
        out.result = [results[element](printable(message, 500), kind)] if element else []
        if lines := [printable(line, 500) for line in details]:
            out.system_out = "\n".join(lines)
        return out

    fleet = verdict.fleet
    element, warnings = fleet.outcome.entry.junit, text.memory_warnings(fleet)
    details = [*warnings, *text.fleet_notes(verdict)]  # a passing fleet shows nothing else
    cases = [case("fleet", element, fleet.outcome, text.first_line(verdict), details)]
    for name, node in sorted(verdict.nodes.items()):
        findings = check_scripts.named_node(name, node, imported=verdict.imported).findings
        details = [check_scripts.sentence(finding) for finding in findings]
        element, words = node.outcome.entry.junit, text.node_sentence(node, fleet.groups)
        cases.append(case(f"node {name}", element, node.outcome, words, details))
    for fabric in verdict.fabric:
        partition = f", partition {fabric.partition}" if fabric.partition else ""
        name = f"fabric {fabric.measurement}{partition}"
        element = fabric.outcome.entry.junit
        cases.append(case(name, element, fabric.outcome, text.fabric(fabric), text.fabric_findings(fabric)))
    suite = ju.TestSuite(f"nodeprint {verdict.campaign}" + (" (simulated)" if verdict.simulated else ""))
    suite.add_testcases(cases)  # one by one, each call would count all of them again
    for warning in warnings:
        suite.add_property("warning", printable(warning, 500))
    xml = ju.JUnitXml()
    xml.add_testsuite(suite)
    raw = xml.tostring()  # type: ignore[no-untyped-call]
    return (raw.decode() if isinstance(raw, bytes) else str(raw)) + "\n"


# --- Prometheus ---


#: The metric for each unit of a quantity, and the factor from the unit to the metric's unit.
_METRICS = {
    "ns": ("latency_seconds", 1e-9),
    "B/s": ("bandwidth_bytes_per_second", 1.0),
    "Hz": ("clock_hertz", 1.0),
    "1/s": ("operations_per_second", 1.0),
    "share": ("lost_time_ratio", 1.0),
}
#: Metrics before and after those of cells, which have one by their unit.
_FIRST = (
    "campaign_info",
    "fleet_verdict",
    "node_verdict",
    "nodes",
    "measured_timestamp_seconds",
    "class_latency_seconds",
)
_LAST = ("memory_achieved_ratio", "agreement_ratio", "finding_effect_ratio")


def prometheus(verdict: Verdict) -> str:
    """Return text for node_exporter's textfile collector.

    The campaign is a sample of its own: as a label of every sample it would start new series each time.
    """
    mark = {"simulated": "true"} if verdict.simulated else {}
    gauges: dict[str, dict[str, float]] = {gauge: {} for gauge in (*_FIRST, *_LAST)}

    def add(gauge: str, value: float, **labels: object) -> None:
        words = {key: printable(str(of)).replace("\\", "\\\\").replace('"', '\\"') for key, of in labels.items()}
        gauges.setdefault(gauge, {})[",".join(f'{key}="{of}"' for key, of in words.items())] = value

    add("campaign_info", 1.0, campaign=verdict.campaign, **mark)
    add("fleet_verdict", 1.0, **{"class": verdict.fleet.outcome_class, "verdict": verdict.fleet.outcome}, **mark)
    for outcome in Outcome:
        add("nodes", float(verdict.fleet.counts.get(outcome, 0)), **_outcome(outcome), **mark)
    for node, of_node in sorted(verdict.nodes.items()):
        own = {"node": node, **mark}
        add("node_verdict", 1.0, **own, **_outcome(of_node.outcome))
        if of_node.measured:
            add("measured_timestamp_seconds", datetime.fromisoformat(of_node.measured).timestamp(), **own)
        for figure in of_node.classes:
            labels = {**own, "class": figure.name, "measurement": figure.measurement, "home": figure.home}
            for group, ns in (figure.groups or {"": figure.median_ns}).items():
                add("class_latency_seconds", ns / 1e9, **labels, **({"group": group} if group else {}))
        for cell in of_node.cells:
            metric, factor = _METRICS.get(cell.unit, ("value", 1.0))
            unit = {} if cell.unit in _METRICS else {"unit": cell.unit}
            add(metric, cell.median * factor, **own, measurement=cell.measurement, name=cell.name, **unit)
        for agreement in of_node.agreements:
            add("agreement_ratio", agreement.share, **own, metric=agreement.metric)
        for finding in of_node.counted:
            place = ",".join(f"{key}={value}" for key, value in sorted(finding.component.where.items()))
            part = f"{finding.component.component_type}: {place}".removesuffix(": ")  # the same in every campaign
            labels = {"id": finding.id, "measurement": finding.measurement, "home": finding.home, "part": part}
            add("finding_effect_ratio", finding.effect, **own, **labels)
    for node, of_most in sorted((node, of.of_most) for of in verdict.fleet.memory for node in of.nodes):
        add("memory_achieved_ratio", of_most, node=node, **mark)
    lines = []
    for gauge in (*_FIRST, *sorted(gauges.keys() - {*_FIRST, *_LAST}), *_LAST):
        lines += [f"# HELP nodeprint_{gauge} {say('prometheus', gauge)}", f"# TYPE nodeprint_{gauge} gauge"]
        lines += [f"nodeprint_{gauge}{{{labels}}} {_number(value)}" for labels, value in gauges[gauge].items()]
    return "\n".join(lines) + "\n"


def _outcome(outcome: Outcome) -> dict[str, str]:
    return {"class": outcome.outcome_class, "verdict": outcome}


def _number(value: float) -> str:
    return f"{value:.10g}" if math.isfinite(value) else f"{value:+}".replace("inf", "Inf").replace("+nan", "NaN")


# --- Slurm ---

#: The most characters of a suggested reason, and its longest beginning without a number that is cut off.
_LONGEST_REASON = 120
_BEGINNING = re.compile(rf".{{1,{_LONGEST_REASON}}}(?=[,;] | \()")


def drain(verdict: Verdict, sheet: Mapping[str, tuple[str, str]]) -> str:
    """Return a shell script of suggested scontrol lines for nodes with a confirmed fault of their own.

    Nodeprint never runs them. If the campaign was simulated or imported, all lines are comments. Nodes with another
    tool's reason are listed and left alone, as are nodes that are better than their peers. The same holds for nodes
    with a shared difference, which indicates a batch or a setting, not a fault of the node.
    """
    lines = [
        "#!/bin/sh",
        say("drain", "suggested", campaign=printable(verdict.campaign, 80)),
        "# Read it, then decide.",
    ]
    if mark := text.origin(verdict):
        lines.append(say("drain", "other_nodes", mark=mark))
    for name, node in sorted(verdict.nodes.items()):
        suggested = node.outcome.entry.drain
        if suggested is Drain.LEFT_ALONE:
            lines.append(say("drain", "intermittent", name=printable(name), outcome=node.outcome))
        if suggested is not Drain.SUGGESTED:
            continue
        confirmed = [finding for finding in node.counted if finding.state is Certainty.CONFIRMED]
        fault = next((finding for finding in confirmed if finding.worse and not finding.shared_by), None)
        state, reason = sheet.get(name, ("", ""))
        if fault is None and confirmed:
            why = "shared" if any(finding.worse for finding in confirmed) else "better"
            lines.append(say("drain", why, name=printable(name), outcome=node.outcome))
        elif reason and not reason.startswith("nodeprint"):
            kept = say("drain", "accepted", state=printable(state, 40), reason=printable(reason, 120))
            lines.append(f"# {printable(name)}: {node.outcome}, {kept}")
        else:
            words = text.reason_and_action({name: node})[0] if fault is None else text.finding_sentence(fault)
            why = f"nodeprint: {node.outcome}: {_in_short(printable(words))}"
            line = f"scontrol update NodeName={_quoted(name)} State=DRAIN Reason={_quoted(why)}"
            lines.append(f"# {line}" if mark else line)
    return "\n".join(lines) + "\n"


def _in_short(words: str) -> str:
    beginning = _BEGINNING.match(words)
    return words if len(words) <= _LONGEST_REASON or beginning is None else f"{beginning[0]}..."


def _quoted(words: str) -> str:
    return "'" + "".join(c for c in printable(words) if c != "'") + "'"


def recheck(verdict: Verdict) -> str:
    """Return the names of the nodes to measure in a further job, one per line; empty without any."""
    return "".join(f"{name}\n" for name in verdict.recheck)


# --- a site's command ---


#: The longest time of a site's own command that gets a verdict: mail, chat, a ticket.
_SECONDS = 60.0


def notify(command: str, verdict: str) -> None:
    """Run `command`, words as a shell reads them but without one, with `verdict` (JSON) on its standard input.

    Raises NodeprintError where it cannot be started, fails, or takes longer than a minute.
    """
    advice = "try it by hand with the campaign's verdict.json on its input"
    try:
        done = subprocess.run(shlex.split(command), input=verdict, text=True, check=False, timeout=_SECONDS)
    except (OSError, ValueError, IndexError) as error:
        raise NodeprintError(f"cannot be started ({printable(str(error))})", key="--notify", advice=advice) from error
    except subprocess.TimeoutExpired as error:
        raise NodeprintError(f"did not end within {_SECONDS:.0f} s", key="--notify", advice=advice) from error
    if done.returncode:
        raise NodeprintError(f"ended with {done.returncode}", key="--notify", advice=advice)
