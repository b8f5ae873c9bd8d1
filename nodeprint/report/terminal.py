"""What a campaign amounts to, for the terminal."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from textwrap import wrap

from rich.text import Text

from nodeprint.errors import NodeprintError, printable
from nodeprint.judge.outcome import FleetOutcome, Outcome, OutcomeClass
from nodeprint.judge.verdict import Verdict
from nodeprint.machine import other_load
from nodeprint.machine.fingerprint import label
from nodeprint.report import names, text, verdict_files
from nodeprint.report.outcome_colors import outcome_colors
from nodeprint.settings import config
from nodeprint.settings.texts import say

#: Above this many nodes only those that ask for attention are listed.
_ALL_NODES = 16
#: What is before the text in a row of a table, and how far the second line of other lines is indented.
_ROW, _INDENT = re.compile(r" +\S+ {2,}(?=\S)"), 4


def summary(campaign: Path) -> tuple[str, bool]:
    """The last lines of a run, and whether there is a measured node and a PDF of it.

    Raises NodeprintError where there is no verdict.
    """
    verdict = verdict_files.read(campaign)
    remarks = _remarks(campaign, verdict)
    same = sum(node.outcome is Outcome.SAME for node in verdict.nodes.values())
    if same and len(verdict.nodes) > _ALL_NODES:
        remarks.append(f"{names.counted(same, 'node')} that need no action")
    pdf = campaign / "report" / "cluster.pdf"
    measured = any(node.outcome.entry.measured for node in verdict.nodes.values())
    report = f"report: {pdf}" if pdf.exists() else say("remarks", "no_report", campaign=campaign)
    lines = [text.summary(verdict, most=_ALL_NODES, remarks=remarks), report]
    return "\n".join(lines), measured and pdf.exists()


def wrapped(words: str, columns: int) -> str:
    """`words` with its long lines broken between words for a terminal; no path is broken, and no number from its
    unit. What follows of a row of a table stands below the row's text."""
    words = re.sub(r"(?<=\d) (?=(?:%|ns|GB/s|GHz|times)\b|%)|(?<=^report:) ", "\N{NO-BREAK SPACE}", words, flags=re.M)
    breaks = partial(wrap, width=columns, break_long_words=False, break_on_hyphens=False)
    lines = "\n".join(
        "\n".join(breaks(line, subsequent_indent=" " * _indent(line, columns)) or [""]) for line in words.split("\n")
    )
    return lines.replace("\N{NO-BREAK SPACE}", " ")


def _indent(line: str, columns: int) -> int:
    """Where the second line of a broken line begins: below the text of a row of a table, which has its name before."""
    name = _ROW.match(line)
    return name.end() if name and name.end() <= columns // 2 else _INDENT


def coloured(words: str) -> Text:
    """Text with its outcomes in their colors, which a pipe does not get."""
    out = Text(words)
    for outcome in sorted((*Outcome, *FleetOutcome), key=len):  # the longer last, as one may contain another
        color = outcome_colors()[outcome.entry.color].terminal
        words = rf"\b{re.escape(outcome.with_class)}|(?<!\()\b{re.escape(outcome)}\b"
        out.highlight_regex(words, f"bold {color}")
    # a fleet's class may be that of a node or of the messages
    fails = rf"\b{OutcomeClass.FAIL} \([^)]*\)"
    out.highlight_regex(fails, f"bold {outcome_colors()[FleetOutcome.DEVIATIONS.entry.color].terminal}")
    return out


def busy(campaign: Path, name: str) -> str:
    """Which other programs took time from the CPUs while the newest job of a node was measured; empty where none is
    known. Processes are watched on the machine that the main job runs on."""
    load = other_load.kept(campaign / "nodes" / name)
    return load.text("took") if load is not None and load.is_busy else ""


def beside(campaign: Path, name: str) -> str:
    """The sentence of other programs that were at work while a node was measured; empty where none is known."""
    load = busy(campaign, name)
    return say("remarks", "other_load", name=printable(name), load=load) if load else ""


def _left_out(campaign: Path) -> list[str]:
    """What the configuration asks for and its preset leaves out; nothing where there is no configuration to read."""
    try:
        return config.left_out(config.kept(campaign))
    except NodeprintError:
        return []


def _remarks(campaign: Path, verdict: Verdict) -> list[str]:
    """What no outcome says: settings that differ, nodes to be measured again, records that were refused, how it was
    pinned where likwid is missing, and clocks that are off."""
    nodes = verdict.nodes
    differing: dict[str, list[str]] = {}
    for name, node in sorted(nodes.items()):
        for warning in node.warnings:
            kind, _, key = str(warning.get("id")).partition("-")
            if kind == "fingerprint":
                differing.setdefault(key, []).append(name)
    remarks = [
        say(
            "remarks",
            "drift",
            nodes=names.nodes(on),
            verb="differs" if len(on) == 1 else "differ",
            fields=printable(label(key)),
            campaign=campaign,
        )
        for key, on in sorted(differing.items())
    ]
    for name in nodes:
        if load := beside(campaign, name):
            remarks.append(f"* {load}; `{config.again(campaign, names.nodes([name]))}` measures it again")
    again = [name for name, node in nodes.items() if node.outcome is Outcome.INVALID]
    if again and not verdict.imported:
        remarks.append(f"`{config.again(campaign, names.nodes(again))}` measures {names.nodes(again)} again")
    if aside := sum(1 for _ in campaign.glob("nodes/*/job*/run*/*.bad*")):
        files_were = "file was" if aside == 1 else "files were"
        remarks.append(say("remarks", "malformed", count=aside, files=files_were))
    if left_out := _left_out(campaign):
        remarks.append(say("remarks", "preset", measurements=", ".join(left_out)))
    warned: dict[str, list[str]] = {}
    for name, node in nodes.items():
        for warning in node.warnings:
            if warning.get("id") in ("likwid", "clock"):
                warned.setdefault(f"{warning['text']}; {warning['advice']}", []).append(name)
    remarks += [f"{names.nodes(on)}: {printable(words)}." for words, on in warned.items()]
    return remarks
