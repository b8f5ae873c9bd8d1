"""The verdict as files: verdict.json, and for other tools JUnit, Prometheus' text file, suggested scontrol lines, and
the nodes to measure again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodeprint import files, outcomes
from nodeprint.errors import NodeprintError, printable
from nodeprint.words.outcome import Verdict


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
    import junitparser as ju  # noqa: PLC0415 (not for those who read a verdict)

    results = {"failure": ju.Failure, "error": ju.Error, "skipped": ju.Skipped}
    suite = ju.TestSuite(f"nodeprint {verdict.campaign}" + (" (simulated)" if verdict.simulated else ""))
    cases = []
    for name, node in sorted(verdict.nodes.items()):
        case = ju.TestCase(name, classname=f"nodeprint.{verdict.campaign}")
        text = printable(node.text, 500)
        result = results.get(outcomes.NODE[node.verdict].junit)
        case.result = [result(text, node.verdict)] if result else []
        case.system_out = "\n".join(printable(found.text, 500) for found in node.findings)
        cases.append(case)
    suite.add_testcases(cases)  # one by one it counts all of them again for each
    xml = ju.JUnitXml()
    xml.add_testsuite(suite)
    raw = xml.tostring()  # type: ignore[no-untyped-call]
    return (raw.decode() if isinstance(raw, bytes) else str(raw)) + "\n"


def prometheus(verdict: Verdict) -> str:
    """Text format for node_exporter's textfile collector."""
    fleet = f'campaign="{_label(verdict.campaign)}"' + (',simulated="true"' if verdict.simulated else "")
    nodes = [(f'{fleet},node="{_label(name)}"', node) for name, node in sorted(verdict.nodes.items())]
    outcome = [(f'{mine},verdict="{node.verdict}"', "1") for mine, node in nodes]
    counts = [(f'{fleet},verdict="{word}"', str(verdict.fleet.counts.get(word, 0))) for word in outcomes.NODE]
    classes = [
        (
            f'{mine},class="{of.name}",measurement="{_label(of.measurement)}",home="{of.home}"',
            f"{of.median_ns / 1e9:.6g}",
        )
        for mine, node in nodes
        for of in node.classes
    ]
    findings = [
        (f'{mine},id="{of.id}",term="{of.term}",number="{number}"', f"{of.effect:.6g}")
        for mine, node in nodes
        for number, of in enumerate(node.findings)
    ]
    lines = [
        *_gauge("node_verdict", "1 for the outcome that a node has.", outcome),
        *_gauge("nodes", "Nodes by outcome.", counts),
        *_gauge("class_latency_seconds", "Median hop latency of a class of pairs.", classes),
        *_gauge("finding_effect_ratio", "A finding's effect relative to the peers.", findings),
    ]
    return "\n".join(lines) + "\n"


def _gauge(name: str, text: str, samples: Sequence[tuple[str, str]]) -> list[str]:
    head = [f"# HELP nodeprint_{name} {text}", f"# TYPE nodeprint_{name} gauge"]
    return head + [f"nodeprint_{name}{{{labels}}} {value}" for labels, value in samples]


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
            left = f"left alone as it is {printable(state, 40)}: {printable(reason, 120)}"
            lines.append(f"# {name}: {node.verdict}, {left}")
            continue
        why = f"nodeprint: {node.verdict}: {printable(node.text, 120)}"
        line = f"scontrol update NodeName={_quoted(name)} State=DRAIN Reason={_quoted(why)}"
        lines.append(f"# {line}" if verdict.simulated else line)
    return "\n".join(lines) + "\n"


def recheck(verdict: Verdict) -> str:
    """Names of the nodes to measure as a second job, a line each; empty when there are none."""
    return "".join(f"{name}\n" for name in verdict.recheck)


def _quoted(text: str) -> str:
    """`text` as one word of sh."""
    return "'" + "".join(c for c in printable(text) if c != "'") + "'"


def _label(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')
