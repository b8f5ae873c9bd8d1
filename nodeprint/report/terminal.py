"""What a campaign found, for the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nodeprint.errors import NodeprintError, printable

#: Above this many nodes only those that ask for attention are listed.
_ALL_NODES = 16
#: Verdicts that ask for nothing.
_QUIET = ("SAME", "NO PEER")


def read_verdict(campaign: Path) -> dict[str, Any]:
    """verdict.json of a campaign. Raises NodeprintError when there is none or it cannot be read."""
    path = campaign / "verdict.json"
    try:
        verdict = json.loads(path.read_text())
    except FileNotFoundError as error:
        advice = "call `make run` again (what was measured is kept), or `nodeprint judge`"
        raise NodeprintError("no verdict yet", where=path, advice=advice) from error
    except (OSError, ValueError) as error:
        raise NodeprintError("not readable as JSON", where=path, advice=f"run `nodeprint judge {campaign}`") from error
    if not isinstance(verdict, dict) or not isinstance(verdict.get("nodes"), dict):
        raise NodeprintError("not a verdict", where=path, advice=f"run `nodeprint judge {campaign}`")
    return verdict


def summary(campaign: Path) -> tuple[str, bool]:
    """The last lines of a run, and whether there is a measured node, a verdict and a PDF of it."""
    try:
        verdict = read_verdict(campaign)
    except NodeprintError as error:
        return str(error), False
    nodes: dict[str, Any] = verdict["nodes"]
    fleet = verdict.get("fleet", {})
    lines = [("SIMULATED: " if verdict.get("simulated") else "") + printable(str(fleet.get("text", "")), 400)]
    shown = {n: v for n, v in nodes.items() if len(nodes) <= _ALL_NODES or v.get("verdict") not in _QUIET}
    width = max((len(name) for name in shown), default=0)
    for name, node in sorted(shown.items()):
        lines.append(
            f"  {printable(name):{width}}  {printable(str(node.get('verdict')))}: {printable(_said(node), 300)}"
        )
        lines += [f"  {'':{width}}  {printable(str(text), 300)}" for text in node.get("quality", ())]
    if len(shown) < len(nodes):
        lines.append(f"  and {len(nodes) - len(shown)} nodes that ask for nothing")
    lines += [f"  note: {printable(str(note), 400)}" for note in fleet.get("notes", ())]
    pdf = campaign / "report" / "cluster.pdf"
    measured = any(node.get("verdict") != "NOT MEASURED" for node in nodes.values())
    lines.append(f"report: {pdf}" if pdf.exists() else f"no report yet: run `nodeprint report {campaign}`")
    return "\n".join(lines), measured and pdf.exists()


def _said(node: dict[str, Any]) -> str:
    return str(node.get("reason") or node.get("text") or "")
