"""The verdict as files: verdict.json, and for other tools JUnit, Prometheus' text file, suggested scontrol lines, and
the nodes to measure again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from nodeprint import files, outcomes
from nodeprint.errors import NodeprintError, printable
from nodeprint.words.outcome import NodeVerdict, Verdict

_RESULTS = {"failure": Failure, "error": Error, "skipped": Skipped}


def write(verdict: Verdict, folder: Path, sheet: Mapping[str, tuple[str, str]] | None = None) -> list[Path]:
    """Write verdict.json, verdict.xml, verdict.prom and drain.sh into `folder`; returns their paths.

    `sheet` has Slurm's state and reason by node: what another tool has a reason for is left alone.
    Raises NodeprintError where the folder is not writable.
    """
    texts = {
        "verdict.json": verdict.json(),
        "verdict.xml": junit(verdict),
        "verdict.prom": prometheus(verdict),
        "drain.sh": drain(verdict, sheet or {}),
    }
    for name, text in texts.items():
        files.write(folder / name, text)
    return [folder / name for name in texts]


def read(campaign: Path) -> dict[str, Any]:
    """verdict.json of a campaign. Raises NodeprintError when there is none or it cannot be read."""
    path = campaign / "verdict.json"
    try:
        files.check(path)  # a pipe would be waited for without end
        verdict = json.loads(path.read_text())
    except FileNotFoundError as error:
        if not campaign.is_dir():
            raise NodeprintError("no campaign is there", where=campaign, advice="name a folder of results/") from error
        advice = f"call `make run` again (what was measured is kept), or `nodeprint judge {campaign}`"
        raise NodeprintError("no verdict yet", where=path, advice=advice) from error
    except (OSError, ValueError, RecursionError) as error:
        raise NodeprintError("not readable as JSON", where=path, advice=f"run `nodeprint judge {campaign}`") from error
    if not isinstance(verdict, dict) or not isinstance(verdict.get("nodes"), dict):
        raise NodeprintError("not a verdict", where=path, advice=f"run `nodeprint judge {campaign}`")
    return verdict


def junit(verdict: Verdict) -> str:
    """JUnit XML: a test case per node."""
    suite = TestSuite(f"nodeprint {verdict.campaign}" + (" (simulated)" if verdict.simulated else ""))
    cases = []
    for name, node in sorted(verdict.nodes.items()):
        case = TestCase(name, classname=f"nodeprint.{verdict.campaign}")
        text = printable(node.text, 500)
        result = _RESULTS.get(outcomes.NODE[node.verdict].junit)
        case.result = [result(text, node.verdict)] if result else []
        case.system_out = "\n".join(printable(found.text, 500) for found in node.findings)
        cases.append(case)
    suite.add_testcases(cases)  # one by one it counts all of them again for each
    xml = JUnitXml()
    xml.add_testsuite(suite)
    raw = xml.tostring()  # type: ignore[no-untyped-call]
    return (raw.decode() if isinstance(raw, bytes) else str(raw)) + "\n"


def prometheus(verdict: Verdict) -> str:
    """Text format for node_exporter's textfile collector."""
    labels = f'campaign="{_label(verdict.campaign)}"' + (',simulated="true"' if verdict.simulated else "")
    lines = [
        "# HELP nodeprint_node_verdict 1 for the outcome that a node has.",
        "# TYPE nodeprint_node_verdict gauge",
    ]
    for name, node in sorted(verdict.nodes.items()):
        lines.append(f'nodeprint_node_verdict{{{labels},node="{_label(name)}",verdict="{node.verdict}"}} 1')
    lines += ["# HELP nodeprint_nodes Nodes by outcome.", "# TYPE nodeprint_nodes gauge"]
    for outcome in outcomes.NODE:
        lines.append(f'nodeprint_nodes{{{labels},verdict="{outcome}"}} {verdict.fleet.counts.get(outcome, 0)}')
    lines += [
        "# HELP nodeprint_class_latency_seconds Median hop latency of a class of pairs.",
        "# TYPE nodeprint_class_latency_seconds gauge",
    ]
    for name, node in sorted(verdict.nodes.items()):
        for figure in node.classes:
            where = f'class="{figure.name}",measurement="{_label(figure.measurement)}",home="{figure.home}"'
            seconds = f"{figure.median_ns * 1e-9:.6g}"
            lines.append(f'nodeprint_class_latency_seconds{{{labels},node="{_label(name)}",{where}}} {seconds}')
    lines += [
        "# HELP nodeprint_finding_effect_ratio A finding's effect relative to the peers.",
        "# TYPE nodeprint_finding_effect_ratio gauge",
    ]
    for name, node in sorted(verdict.nodes.items()):
        for number, found in enumerate(node.findings):
            where = f'id="{found.id}",term="{found.term}",number="{number}"'
            lines.append(f'nodeprint_finding_effect_ratio{{{labels},node="{_label(name)}",{where}}} {found.effect:.6g}')
    return "\n".join(lines) + "\n"


def drain(verdict: Verdict, sheet: Mapping[str, tuple[str, str]]) -> str:
    """A shell script of scontrol lines that are suggested and never run by nodeprint.

    All are comments in a simulated campaign.

    Nodes that have another tool's reason are named and left alone.
    """
    lines = [
        "#!/bin/sh",
        f"# Suggested by nodeprint for campaign {printable(verdict.campaign, 80)}; nothing runs this.",
        "# Read it, then decide.",
    ]
    if verdict.simulated:
        lines.append("# SIMULATED: these nodes do not exist; every line is a comment.")
    for name, node in sorted(verdict.nodes.items()):
        if not outcomes.NODE[node.verdict].drain:
            continue
        state, reason = sheet.get(name, ("", ""))
        if reason and not reason.startswith("nodeprint"):
            lines.append(
                f"# {name}: {node.verdict}, left alone as it is {printable(state, 40)}: {printable(reason, 120)}"
            )
            continue
        line = f"scontrol update NodeName={_quoted(name)} State=DRAIN Reason={_quoted(_reason(node))}"
        lines.append(f"# {line}" if verdict.simulated else line)
    return "\n".join(lines) + "\n"


def recheck(verdict: Verdict) -> str:
    """Names of the nodes to measure as a second job, a line each; empty when there are none."""
    return "".join(f"{name}\n" for name in verdict.recheck)


def _reason(node: NodeVerdict) -> str:
    return f"nodeprint: {node.verdict}: {printable(node.text, 120)}"


def _quoted(text: str) -> str:
    """`text` as one word of sh."""
    return "'" + "".join(c for c in printable(text) if c != "'") + "'"


def _label(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')
