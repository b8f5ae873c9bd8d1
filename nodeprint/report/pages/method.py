"""The method of a campaign, its answers to the rules for reports of measurements, and its citation.

The questions are the rules of T. Hoefler and R. Belli, Scientific Benchmarking of Parallel Computing Systems (SC15,
doi:10.1145/2807591.2807644). Each answer uses the campaign's own values.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeprint import __version__
from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.judge.verdict import CellFigure, ClassFigure, NodeVerdict, Verdict
from nodeprint.report import check_scripts, names, text
from nodeprint.report.pages.blocks import Block, FactList, FactRows, Page, Section, Table, Text, sections
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.tables import appendix, facts
from nodeprint.settings.measurements import kernel_files
from nodeprint.settings.texts import say, texts

#: The methods of measurements: facts by name, equal for equal methods.
How = tuple[tuple[str, FactRows], ...]


def of_jobs(jobs: Sequence[Job]) -> How:
    """Return the methods of a node's measurements, each from the newest job that has it."""
    newest: dict[str, JobMeasurement] = {}
    for job in jobs:
        newest |= job.measured
    return tuple((name, _facts(name, measured, jobs)) for name, measured in sorted(newest.items()))


def _facts(name: str, measured: JobMeasurement, jobs: Sequence[Job]) -> FactRows:
    head = measured.header
    imported, clock = head.get("imported") or {}, head.get("clock") or {}
    hz, left_out = clock.get("hz"), head.get("not_measured") or {}
    counts = sorted({len(job.measured[name].runs) for job in jobs if name in job.measured})
    runs = names.listed([*map(str, counts[:-1]), *(names.counted(last, "run") for last in counts[-1:])])
    rounds = f"{names.counted(len(measured.passes), 'pass', 'passes')} in each of {runs}"
    quantity = str(head.get("quantity", ""))
    in_words = texts()["method"]["quantities"].get(quantity, "")
    rows = {
        "imported": f"{imported.get('format', '')} {imported.get('source', '')}".strip(),
        "unknown": ", ".join(map(str, imported.get("unknown", ()))),
        "operation": head.get("operation"),
        "quantity": f"{quantity} ({in_words})" if in_words else quantity,
        "home": texts()["method"]["homes"].get(str(head.get("home")), head.get("home")),
        "lines": head.get("lines") and say("method", "lines", head=head["lines"], batches=head.get("batches", "?")),
        "passes, runs": "" if imported else rounds,
        "not measured": "; ".join(f"{what}: {why}" for what, why in left_out.items()),
        "pinned by": head.get("pinned_by"),
        "clock": f"{clock.get('source', '')}, {hz / 1e9:.3f} GHz" if isinstance(hz, int | float) else "",
        "kernel": " ".join(str(head[key]) for key in ("kernel", "kernel_hash") if head.get(key)),
        "compiler": head.get("compiler"),
        "arguments": " ".join(map(str, head.get("arguments") or ())),
    }
    return tuple((key, str(value)) for key, value in rows.items() if value)


def brief(campaign: Campaign) -> tuple[Block, ...]:
    """Summarize the method in half a page: the deciding tests, the comparisons, and further sources."""
    verdict = campaign.verdict
    first = next((name for name, node in verdict.nodes.items() if node.jobs), "")
    jobs = campaign.jobs(first) if first else ()
    kernels = dict.fromkeys(
        str(check_scripts.header(jobs, name).get("kernel", ""))
        for name in (*campaign.measurements(first, pairs=True), *campaign.measurements(first, pairs=False))
    )
    imported = [head for job in jobs for m in job.measured.values() if (head := m.header.get("imported"))]
    if imported:
        alone = len(verdict.nodes) == 1  # several nodes share only the tool
        keys = ("format", "source") if alone else ("format",)
        sources = dict.fromkeys(": ".join(str(head.get(key, "")) for key in keys).strip(": ") for head in imported)
        unknown = names.listed(map(str, imported[0].get("unknown", ()))) or "nothing"
        words = say("imported", source=names.listed(sources), unknown=unknown)
        return Text(words), Text(say("all_else", version=__version__), quiet=True)
    used = {kernel: of for kernel in kernels if (of := kernel_files().get(kernel)) is not None}
    # those on which an outcome is based by default
    shown = [
        of.test for kernel, of in used.items() if kernel == "coherence" or any(t.criterion for t in of.terms.values())
    ]
    return (
        *(Text(words, quiet=True, dispensable=True) for words in shown),
        _judged(verdict) if verdict.fleet.tests else Text(""),
        Text(say("all_else", version=__version__), quiet=True),
    )


def page(campaign: Campaign, methods: Sequence[How], subject: str = "cluster") -> Page:
    """Return the appendix on the method of measuring and judging."""
    verdict = campaign.verdict
    methods_used = list(dict.fromkeys(method for node in methods for method in node))
    blocks = [block for name, rows in methods_used for block in (Text(name), FactList(rows, 2))]
    nodes = [verdict.nodes[subject]] if subject in verdict.nodes else list(verdict.nodes.values())
    cite = f"nodeprint {__version__}, CITATION.cff; its method: docs/method/."
    shown = sections(
        Section("How it was judged", (_judged(verdict),)),
        Section("What these data can resolve", (limit_table(verdict),)),
        Section("How it was measured", tuple(blocks)),
        Section(say("headings", "paper"), (FactList(answers(campaign, nodes)),)),
        Section("Versions", (FactList(facts(verdict.versions)),)),
        Section("How to cite this", (Text(cite),)),
    )
    return Page(subject, "method", "Method", None, (), appendix(*shown))


def _judged(verdict: Verdict) -> Block:
    fleet = verdict.fleet
    words = say("tested", tests=f"{fleet.tests:,}", false_alarm=f"{fleet.false_alarm * 100:g}%") if fleet.tests else ""
    rules = (say("method", "same"), say("method", "judged"))
    return Text(" ".join(filter(None, (*rules, words, *text.based_on(verdict)))))


def limit_table(verdict: Verdict) -> Table:
    """Return the detection limit of each component type, and the variation between nodes and runs."""
    spreads = {(spread.measurement, spread.component_type): spread for spread in verdict.fleet.spreads}
    rows = []
    for limit in verdict.fleet.limits:
        spread = spreads.get((limit.measurement, limit.component_type))
        of_nodes = (spread.chips, spread.runs, spread.smallest_tolerance) if spread else ()
        varies = [*(names.percent(of, limit.measurement) for of in of_nodes), "", "", ""][:3]
        numbers = (names.tolerances([limit]), names.detectable([limit]), *varies)
        rows.append((limit.measurement, text.named("terms", limit.component_type), *numbers))
    header = ("measurement", "component", "tolerance", "detectable from", "nodes differ", "runs differ")
    return Table((*header, "95% the same within"), tuple(rows), "llrrrrr")


def answers(campaign: Campaign, nodes: Sequence[NodeVerdict]) -> FactRows:
    """Answer the rules of Hoefler and Belli for this campaign."""
    verdict, fleet = campaign.verdict, campaign.verdict.fleet
    measured = [node for node in nodes if node.outcome.entry.measured]
    figures: list[ClassFigure | CellFigure] = []
    for node in measured:
        figures += (*node.classes, *node.cells)
    runs = sorted({figure.runs for figure in figures})
    single = sum(figure.runs < 2 for figure in figures)
    mixtures = sum(bool(figure.groups) for node in measured for figure in node.classes)
    disturbed = sum(bool(node.disturbances) for node in nodes)
    bare = sum(not node.fingerprint.get("cpu") for node in measured)
    rows: dict[str, list[str]] = {
        "speedups": [say("method", "speedups")],
        "subsets": [
            f"{names.counted(len(measured), 'node')} of {len(nodes)} measured",
            say("method", "others") if len(measured) < len(nodes) else "",
            say("method", "missing", missing=names.listed(fleet.missing)) if fleet.missing else "",
        ],
        "summaries": [
            say("method", "medians") if figures else "",
            say("method", "mixtures", mixtures=names.counted(mixtures, "mixture")) if mixtures else "",
        ],
        "spread": [
            f"{names.listed(map(str, runs))} {'run' if runs == [1] else 'runs'} a figure" if runs else "no run",
            "" if verdict.imported or not runs else say("method", "processes"),
            say("method", "single", figures=names.counted(single, "figure")) if single else "",
        ],
        "normality": [say("method", "normality")] if runs[-1:] > [1] else [],
        "comparison": [say("method", "tests", tests=f"{fleet.tests:,}") if fleet.tests else say("method", "no_tests")],
        "conditions": [say("method", "no_settings" if bare else "settings", nodes=names.counted(bare, "node"))],
        "environment": [f"disturbances were recorded on {names.counted(disturbed, 'node')}"],
        "figures": [say("method", "scales")],
        "origin": [campaign.origin or "measured by nodeprint"],
    }
    if not disturbed:
        rows["environment"] = ["no disturbance was recorded"]
    return tuple((key, "; ".join(filter(None, words))) for key, words in rows.items() if any(words))


def tested(jobs: Sequence[Job], measurements: Sequence[str]) -> tuple[Block, ...]:
    """Describe each measurement in plain words, for a reader who has only the node report."""
    kernels = {name: str(check_scripts.header(jobs, name).get("kernel", "")) for name in dict.fromkeys(measurements)}
    return tuple(
        Text(f"{text.sentence(text.measured(name))}: {of.test}")
        for name, kernel in kernels.items()
        if (of := kernel_files().get(kernel)) is not None
    )
