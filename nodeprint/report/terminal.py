"""What a campaign found, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

from nodeprint import other_load, outcomes
from nodeprint.errors import printable
from nodeprint.fingerprint import label
from nodeprint.verdict import outputs
from nodeprint.words.outcome import folded, some_names

#: Above this many nodes only those that ask for attention are listed.
_ALL_NODES = 16


def summary(campaign: Path) -> tuple[str, bool]:
    """The last lines of a run, and whether there is a measured node and a PDF of it.

    Raises NodeprintError where there is no verdict.
    """
    verdict = outputs.read(campaign)
    nodes: dict[str, Any] = verdict["nodes"]
    fleet = verdict.get("fleet", {})
    lines = [("SIMULATED: " if verdict.get("simulated") else "") + printable(str(fleet.get("text", "")), 400)]
    shown = {n: v for n, v in nodes.items() if len(nodes) <= _ALL_NODES or not outcomes.of(str(v.get("verdict"))).same}
    said = [
        (name, f"{printable(str(node.get('verdict')))}: {printable(_said(node), 2000)}") for name, node in shown.items()
    ]
    rows = [*folded(said), *folded(_beside(shown))]
    width = max((len(names) for names, _ in rows), default=0)
    lines += [f"  {names:{width}}  {words}" for names, words in rows]
    if len(shown) < len(nodes):
        lines.append(f"  and {len(nodes) - len(shown)} nodes that need no action")
    lines += [f"  {text}" for text in (*_counted(campaign, nodes), *_busy(campaign, nodes))]
    lines += [
        f"  {one['measurement']}, partition {printable(one['partition'])}: {one['text']}"
        for one in verdict.get("fabric", ())
    ]
    lines += [f"  note: {printable(str(note), 400)}" for note in fleet.get("notes", ())]
    pdf = campaign / "report" / "cluster.pdf"
    measured = any(node.get("verdict") != "NOT MEASURED" for node in nodes.values())
    lines.append(f"report: {pdf}" if pdf.exists() else f"no report yet: run `nodeprint report {campaign}`")
    return "\n".join(lines), measured and pdf.exists()


def wrapped(text: str, columns: int) -> str:
    """`text` with its long lines broken between words for a terminal; a path is never broken."""
    breaks = partial(wrap, width=columns, subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False)
    return "\n".join("\n".join(breaks(line) or [""]) for line in text.split("\n"))


def busy(campaign: Path, name: str, node: Mapping[str, Any]) -> str:
    """Which other programs took time from a node's CPUs while its newest job was measured; empty where none is known.

    Of this machine processes were watched; of others the jitter kernel saw how much time CPUs lost.
    """
    load = other_load.kept(campaign / "nodes" / name)
    if load is not None and load.processes:
        return load.text("took")
    lost = (str(warning.get("text")) for warning in node.get("warnings", ()) if warning.get("id") == "loud-cpus")
    return printable(next(lost, "").partition(";")[0], 200)


def _busy(campaign: Path, nodes: Mapping[str, Any]) -> list[str]:
    """One line of the nodes that were measured beside other programs."""
    texts = {name: text for name, node in sorted(nodes.items()) if (text := busy(campaign, name, node))}
    if not texts:
        return []
    first, text = next(iter(texts.items()))
    again = f"`make run NODES={','.join(map(printable, texts))}` measures again"
    if len(texts) == 1:
        return [f"* other programs were at work while {printable(first)} was measured: {text}; {again}"]
    return [f"* other programs were at work while {some_names(list(texts))} were measured, on {first}: {text}; {again}"]


def _beside(nodes: dict[str, Any]) -> list[tuple[str, str]]:
    """What was wrong with nodes' data, by node, where their outcome does not say it."""
    found = [(name, node, str(text)) for name, node in nodes.items() for text in node.get("quality", ())]
    return [
        (name, printable(text, 300)) for name, node, text in found if text.removeprefix("invalid: ") not in _said(node)
    ]


def _counted(campaign: Path, nodes: dict[str, Any]) -> list[str]:
    """Remarks that no outcome contains: settings that differ, and records that are damaged or refused."""
    differing: dict[str, list[str]] = {}
    for name, node in sorted(nodes.items()):
        for warning in node.get("warnings", ()):
            kind, _, key = str(warning.get("id")).partition("-")
            if kind == "fingerprint":
                differing.setdefault(key, []).append(name)
    measured = {name: node for name, node in nodes.items() if node.get("verdict") != "NOT MEASURED"}
    damaged = sorted(name for name, node in measured.items() if node.get("quality"))
    aside = sum(1 for _ in campaign.glob("nodes/*/job*/run*/*.bad*"))
    texts = [
        f"{some_names(names)} {'differs' if len(names) == 1 else 'differ'} from the majority in "
        f"{printable(label(key))}; `nodeprint drift {campaign}` lists it"
        for key, names in sorted(differing.items())
    ]
    if damaged:
        names = ",".join(map(printable, damaged))
        texts.append(
            f"records are damaged, refused, missing or disturbed on {some_names(damaged)}; "
            f"`make run NODES={names}` measures again"
        )
    if aside:
        texts.append(
            f"{aside} malformed record {'file was' if aside == 1 else 'files were'} kept as .bad and measured again"
        )
    return texts


def _said(node: dict[str, Any]) -> str:
    return str(node.get("reason") or node.get("text") or "")
