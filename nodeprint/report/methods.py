"""How a node was measured, for people: what each test does and how to repeat it, and the method of each measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import yaml

from nodeprint import sources
from nodeprint.fleet.jobs import Job
from nodeprint.report import formatting, linktest
from nodeprint.report.pages import Block, FactList, Facts, Method, Site, Text
from nodeprint.report.shown import Shown
from nodeprint.words.names import name_list

_QUANTITIES = {"hop": "round trip / 2", "load": "load latency", "one-way": "one-way latency",
    "transfer": "transfer", "message": "time of a message"}  # fmt: skip
_HOMES = {
    "first": "home: the NUMA node of the pair's first CPU",
    "second": "home: the NUMA node of the pair's second CPU",
    "sockets": "home: the NUMA node of the pair's first CPU",
}


def quantity(header: Mapping[str, Any]) -> str:
    quantity = str(header.get("quantity", ""))
    said = _QUANTITIES.get(quantity, "")
    unit = header.get("unit", "ns")
    return f"{quantity} ({said}) in {unit}" if said else f"{quantity or 'value'} in {unit}"


def home(header: Mapping[str, Any]) -> str:
    """Where the line is at home, to be added to a sentence; a message has no home."""
    policy = header.get("home")
    if linktest.is_linktest(header):
        return ""
    if policy is None or policy == "unknown":
        return ", home unknown"
    return ", " + _HOMES.get(str(policy), f"home: {policy}")


def methods(shown: Shown, verdict: Mapping[str, Any]) -> tuple[Method, ...]:
    job = shown.job
    if job is None:
        return ()
    # The kernel's hash is already in the record that says how it measured.
    versions = [fact for fact in formatting.facts(verdict.get("versions", {})) if not fact[0].startswith("kernel ")]
    return tuple(
        Method(one.name, (*_method_facts(one.header, job.number, _rounds(shown.jobs, one.name)), *versions))
        for one in job.pairs
    )


def _rounds(found: Sequence[Job], name: str) -> str:
    """How many passes, runs and jobs a measurement has."""
    mine = [job.measured[name] for job in found if name in job.measured]
    passes = name_list(sorted({str(len(one.passes)) for one in mine}))
    runs = name_list(sorted({str(len(one.runs)) for one in mine}))
    return f"{passes} passes in each of {runs} runs" + (f", in each of {len(mine)} jobs" if len(mine) > 1 else "")


def _method_facts(header: Mapping[str, Any], job: int, rounds: str) -> Facts:
    imported = header.get("imported") or {}
    measured = not imported
    lines, batches = header.get("lines"), header.get("batches", "?")
    rows = {
        "imported": f"{imported.get('format', '')} {imported.get('source', '')}".strip(),
        "unknown": ", ".join(map(str, imported.get("unknown", ()))),
        "operation": header.get("operation"),
        "quantity": quantity(header),
        "home": home(header).removeprefix(", ").removeprefix("home: ")
        + (", and its like in the other socket (far)" if header.get("home") == "sockets" else ""),
        "memory": "; ".join(_memory(header.get("placement") or {})),
        "lines": lines and f"{lines} a pass, drawn by seed, {batches} batches a line",
        "round trips": header.get("round_trips") and f"at least {header['round_trips']} a batch",
        "passes, runs": measured and rounds,
        "statistic": measured
        and (
            "lower quartile of the samples"
            if linktest.is_linktest(header)
            else "mean over clusters of lines of the median over their lines of each line's lowest batch"
        )
        + f"; the figure shows job {job}: the median over passes, and the mean of it over runs",
        "pinned by": header.get("pinned_by"),
        "clock": _clock(header.get("clock") or {}),
        "kernel": " ".join(str(header[key]) for key in ("kernel", "kernel_hash") if header.get(key)),
        "compiler": header.get("compiler"),
        "arguments": " ".join(map(str, header.get("arguments") or ())),
    }
    return tuple((key, str(value)) for key, value in rows.items() if value)


def _memory(placement: Mapping[str, Any]) -> list[str]:
    """Each home's pool of lines in words."""
    out = []
    for node, place in placement.items():
        if isinstance(place, Mapping):
            size = (formatting.number(place.get("bytes")) or 0) / 2**20
            bound = f"verified by {place.get('verified_by')}" if place.get("bound") else "not bound"
            out.append(f"node {node}: {size:g} MiB, {place.get('pages', 'unknown')} pages, {bound}")
    return out


def _clock(clock: Mapping[str, Any]) -> str:
    hz, step = formatting.number(clock.get("hz")), formatting.number(clock.get("step_ns"))
    parts = [str(clock.get("source", "")), f"{hz / 1e9:.3f} GHz" if hz else "", f"step {step:.2f} ns" if step else ""]
    return ", ".join(filter(None, parts))


# --- for a vendor ---


def tested(shown: Shown, node: str, said: Mapping[str, Any], site: Site) -> tuple[Block, ...]:
    """What was done, in plain words, the commands that repeat it, and what the site adds."""
    job = shown.job
    headers = {name: one.header for name, one in (job.measured if job is not None else {}).items()}
    named = [str(item.get("measurement")) for item in said.get("findings", ())]
    wanted = [name for name in dict.fromkeys(named) if name in headers] or [n for n in headers if n.startswith("coh")][
        :1
    ]
    out: list[Block] = []
    for name in wanted:
        text = _descriptions().get(str(headers[name].get("kernel")), "")
        out.append(Text(f"{name}: {text}" if text else ""))
    facts: list[tuple[str, str]] = []
    first = headers[wanted[0]] if wanted else {}
    if first and not first.get("imported"):
        again = " ".join(str(word) for word in first.get("arguments") or ())
        facts.append(
            ("measured by", f"{first.get('kernel')} of nodeprint, pinned by {first.get('pinned_by', 'unknown')}")
        )
        facts.append(("to repeat it", f"make run NODES={node}"))
        facts.append(("on the node", f"kernels/build/{first.get('kernel')} {again} --out again.jsonl"))
    facts += [("contract", site.contract), ("contact", site.contact)]
    return (*out, FactList(tuple(fact for fact in facts if fact[1]), 1, 26.0))


@cache
def _descriptions() -> dict[str, str]:
    text = (sources.folder() / "reports" / "tests.yaml").read_text(encoding="utf-8")
    return {str(kernel): str(sentence) for kernel, sentence in yaml.safe_load(text).items()}
