"""Remeasure the findings of a node on this machine: `nodeprint check`."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from nodeprint.campaign import node_lists
from nodeprint.data.store import node_states, packing
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge.verdict import Finding
from nodeprint.report import check_scripts, text, verdict_files
from nodeprint.settings import sources


def check(campaign: Path, node: str, wanted: str = "") -> int:
    """Run the check script of one or all of a node's findings here; return its exit status.

    0 is PASS, 1 FAIL, 3 INCONCLUSIVE. `wanted` is the number of a finding or its kind, which selects the first of that
    kind. Raises NodeprintError if there is no verdict, node or finding.
    """
    verdict = verdict_files.read(campaign)
    if node not in verdict.nodes:
        raise node_lists.unknown_node(node, verdict.nodes, where=campaign / "verdict.json")
    findings = verdict.nodes[node].counted
    if not findings:
        what = f"nothing was found on {printable(node, 80)}: there is nothing to check"
        raise NodeprintError(what, where=campaign / "verdict.json", advice="name a node with a finding")
    number = _number(findings, wanted)
    fleet = packing.pack(campaign)
    jobs = node_states.jobs_of(fleet.folder, node) if fleet.folder is not None else []
    again, disturbed = check_scripts.again(jobs, findings), check_scripts.disturbed_percent(campaign)
    script = check_scripts.script(node, again, text.origin(verdict), disturbed)
    with tempfile.TemporaryDirectory(prefix="nodeprint-check-") as folder:
        path = Path(folder, check_scripts.file_name(node))
        path.write_text(script, encoding="utf-8")
        environment = {"NODEPRINT_KERNELS": str(sources.kernels()), **os.environ}
        done = subprocess.run(["sh", path, *([str(number)] if number else [])], env=environment, check=False)
    if done.returncode < 0 or done.returncode > 3:
        raise KeyboardInterrupt
    return done.returncode


def _number(findings: tuple[Finding, ...], wanted: str) -> int:
    if not wanted:
        return 0
    kinds = [finding.id for finding in findings]
    number = kinds.index(wanted) + 1 if wanted in kinds else int(wanted) if re.fullmatch("[0-9]{1,5}", wanted) else 0
    if not 0 < number <= len(findings):
        advice = "choose from " + ", ".join(f"{number} ({kind})" for number, kind in enumerate(kinds, 1))
        raise NodeprintError(f"{printable(wanted, 40)} is no finding of it", key="FINDING", advice=advice)
    return number
