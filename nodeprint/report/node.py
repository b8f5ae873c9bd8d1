"""The pages of a node, from its part of verdict.json and its bundle. Nothing is judged here.

Keys that are absent are left off the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from nodeprint import bundle, structure
from nodeprint.bundle import Bundle, Job
from nodeprint.cells import models
from nodeprint.errors import NodeprintError
from nodeprint.fingerprint import LISTS, label
from nodeprint.report import figures, linktest, scale, words
from nodeprint.report.figures import Floats, Tick, three_digits
from nodeprint.report.floorplan import floorplan_svg
from nodeprint.report.pages import (
    Advice,
    Card,
    CardRun,
    ClassRow,
    ClassTable,
    Comparison,
    Dot,
    Facts,
    Finding,
    Found,
    Method,
    NodePage,
    Plate,
    Table,
    mark,
)
from nodeprint.report.readings import readings
from nodeprint.report.scale import Ends, Scale
from nodeprint.topology.model import Topology
from nodeprint.verdict import cell_words, wording
from nodeprint.verdict.terms import TERM_OF_FAMILY

#: A class of pairs of a measurement: (measurement, home, class); home -1 where it follows from the policy.
ClassKey = tuple[str, int, str]

_DIMS = ("run", "pass", "home", "a", "b")
#: Terms of pairs; the others are of cells.
_OF_PAIRS = {"node", "socket", "spread", *TERM_OF_FAMILY.values()}
#: The marks of a row with a finding, and of an invalid run.
_FOUND, _INVALID = "▲", "✕"
#: The beginning of evidence that the node does not provide.
_NOT_KNOWN = "not known: "
#: Facts that take a line of their own.
_LONG = {label(key) for key in ("cmdline", "serials", *LISTS)}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A matrix as it is drawn: of one measurement and home (-1: from the policy), in topology order, in ns."""

    measurement: str
    home: int
    cpus: tuple[int, ...]
    values: Floats


@dataclass(frozen=True, slots=True)
class Shown:
    """What a node's folder holds for its page; nothing by default. `problems` are sentences on what cannot be used."""

    bundle: Bundle | None = None
    topology: Topology | None = None
    matrices: tuple[Drawn, ...] = ()
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path, labelled: bool = True) -> Shown:
        """Read a node's folder, without the labels of its CPUs when they are not needed (a survey takes its time).

        What cannot be read is a problem of this node, not of the report.
        """
        try:
            loaded = bundle.load(folder)
        except NodeprintError as error:
            return cls(problems=(str(error),))
        problems, labels = loaded.problems, None
        try:
            labels = loaded.topology if labelled else None
        except NodeprintError as error:
            problems = (*problems, str(error))
        return cls(loaded, labels, tuple(drawn(_latest(loaded), labels)), problems)

    @property
    def job(self) -> Job | None:
        """The newest job that measured something, else the newest."""
        return _latest(self.bundle) if self.bundle is not None else None


def _latest(loaded: Bundle) -> Job | None:
    measured = [job for job in loaded.jobs if job.measurements]
    return next(reversed(measured or loaded.jobs), None)


def drawn(job: Job | None, topology: Topology | None) -> list[Drawn]:
    """The matrices of a job: the median over runs and passes of each pair's latency.

    A CPU that was measured with its own sibling alone is no row of them.
    """
    out = []
    for name, data in _pairwise(job):
        cpus = [int(cpu) for cpu in data["a"].to_numpy()]
        values = _values(data, "latency_ns")
        medians = _median(values.reshape(-1, *values.shape[2:]))
        for home, matrix in zip(data["home"].to_numpy(), medians, strict=True):
            partners = (np.isfinite(matrix) & ~np.eye(len(cpus), dtype=bool)).sum(axis=1)
            rows = [i for i, count in enumerate(partners) if count > 1] or list(range(len(cpus)))
            known = {cpus[i]: i for i in rows}
            ordered = figures.order(list(known), topology)
            places = [known[cpu] for cpu in ordered]
            out.append(Drawn(name, int(home), tuple(ordered), matrix[np.ix_(places, places)]))
    return out


def scale_ends(shown: Shown) -> dict[str, Ends]:
    """Per measurement the ends of what its matrices show, for the report's colour scale."""
    out, matrices = {}, shown.matrices
    for name in {one.measurement for one in matrices}:
        ends = scale.ends(np.concatenate([one.values.ravel() for one in matrices if one.measurement == name]))
        if ends is not None:
            out[name] = ends
    return out


def class_medians(said: Mapping[str, Any]) -> dict[ClassKey, float]:
    """The class medians of a node's verdict, in ns."""
    found = {_class_key(c): words.number(c.get("median_ns")) for c in said.get("classes", ())}
    return {key: median for key, median in found.items() if median is not None}


def _class_key(c: Mapping[str, Any]) -> ClassKey:
    return str(c.get("measurement", "")), int(c.get("home", -1)), str(c.get("name", ""))


def node_page(
    verdict: Mapping[str, Any],
    node: str,
    shown: Shown,
    scales: Mapping[str, Scale],
    fleet: Mapping[ClassKey, float],
    comparisons: Sequence[Comparison] = (),
    with_structure: bool = False,
) -> NodePage:
    """The page of `node`, with the fleet's notes where it is the only one.

    `with_structure` searches the matrices for groups, which takes longer than all else on the page.
    `scales` are the report's colour scales by measurement, `fleet` the fleet's class medians in ns (empty for one).
    """
    said = verdict["nodes"][node]
    job, topology = shown.job, shown.topology
    fingerprint = words.facts(said.get("fingerprint", {}))
    warnings = [advice(item) for item in said.get("warnings", ())]
    if topology is not None:
        known = {one.text for one in warnings}
        warnings += [Advice(w.text, w.advice) for w in topology.warnings if w.text not in known]
    return NodePage(
        campaign=str(verdict.get("campaign", "")),
        node=node,
        host=shown.bundle.host if shown.bundle is not None else node,
        origin=_origin(verdict, job),
        mark=mark(str(said.get("verdict", ""))),
        text=str(said.get("text", "")),
        place=", ".join(f"{key} {said[key]}" for key in ("group", "rack") if said.get(key)),
        notes=words.notes(verdict) if len(verdict["nodes"]) == 1 else (),
        reason=str(said.get("reason") or ""),
        log_tail=tuple(str(line) for line in said.get("log_tail") or ()),
        nothing=_nothing(job, topology),
        findings=_findings(said),
        plates=_plates(shown, said, scales, fleet),
        quantities=_quantities(said.get("cells") or ()),
        readings=readings(job) if job is not None else (),
        comparisons=tuple(comparisons),
        floorplan=_floorplan(shown),
        structure=_structure(shown) if with_structure else (),
        runs=_runs(shown.bundle.jobs if shown.bundle is not None else (), said),
        fingerprint=tuple(fact for fact in fingerprint if fact[0] not in _LONG),
        long_facts=tuple(fact for fact in fingerprint if fact[0] in _LONG),
        warnings=tuple(warnings),
        quality=tuple(words.sentence(item) for item in said.get("quality", ())),
        problems=shown.problems,
        methods=_methods(shown, verdict),
    )


def _origin(verdict: Mapping[str, Any], job: Job | None) -> str:
    headers = [job.header(name) for name in job.measurements] if job is not None else []
    if verdict.get("simulated") or any(header.get("simulated") for header in headers):
        return "SIMULATED, not a measurement"
    return "IMPORTED, not measured by nodeprint" if any(header.get("imported") for header in headers) else ""


def _nothing(job: Job | None, topology: Topology | None) -> str:
    """Why there is no figure although the node was measured."""
    if job is None or job.measurements:
        return ""
    alone = topology is not None and len(topology.cpus) == 1
    return "This node has one CPU: there is no pair to measure." if alone else "No pair of CPUs was measured."


def advice(item: Any) -> Advice:
    """A warning of the verdict in words."""
    if isinstance(item, Mapping):
        return Advice(str(item.get("text", item.get("id", ""))), str(item.get("advice", "")))
    return Advice(str(item), "")


def _findings(said: Mapping[str, Any]) -> tuple[Finding, ...]:
    """The findings of a node; what is unknown for all of them is listed with the last."""
    found = [_finding(item, str(said.get("text", ""))) for item in said.get("findings", ())]
    unknown = {dict(one.facts).get("not known") for one in found}
    if len(unknown) > 1:
        return tuple(found)
    return tuple(replace(one, facts=tuple(f for f in one.facts if f[0] != "not known")) for one in found[:-1]) + tuple(
        found[-1:]
    )


def _finding(item: Mapping[str, Any], said: str) -> Finding:
    """A finding; its sentence is left out where the node's own, `said`, begins with it."""
    rows = []
    if item.get("measurement"):
        home = words.number(item.get("home"))
        where = f", home NUMA node {home:.0f}" if home is not None and home >= 0 else ""
        rows.append(("seen in", f"{item['measurement']}{where}"))
    shift = words.number(item.get("effect_ns"))
    unsteady = item.get("term") == "spread"  # it has a place, no size
    if not unsteady and (shift is not None or words.number(item.get("effect")) is not None):
        in_ns = f"{shift:+.1f} ns" if shift is not None else ""
        effect = ", ".join(filter(None, (words.percent(item.get("effect"), True), in_ns)))
        interval = item.get("interval")
        if isinstance(interval, list) and len(interval) == 2:
            effect += f" (95 % interval {' to '.join(words.percent(end, True) for end in interval)})"
        rows.append(("effect", effect))
    if item.get("runs"):
        rows.append(("runs that show it", words.node_list([str(run) for run in item["runs"]])))
    told = item.get("evidence")
    evidence = [str(one) for one in told] if isinstance(told, list) else []
    known = {"evidence": [one for one in evidence if not one.startswith(_NOT_KNOWN)]}
    known["not known"] = [one.removeprefix(_NOT_KNOWN) for one in evidence if one.startswith(_NOT_KNOWN)]
    for key in ("consistent_with", "evidence", "not known", "remedy", "suppressed"):
        value = known.get(key, item.get(key))
        if value:
            rows.append((key.replace("_", " "), words.sentence(value)))
    text = str(item.get("text", ""))
    return Finding(_title(item), text if not said.startswith(text) else "", tuple(rows))


def _title(item: Mapping[str, Any]) -> str:
    """What deviates, in the verdict's words; as it comes where the verdict is of another version."""
    term, where = str(item.get("term", "")), item.get("where") or {}
    try:
        return wording.spoken(term, where) if term in _OF_PAIRS else f"{term}: {cell_words.spoken(where)}"
    except (AttributeError, KeyError, IndexError, TypeError):
        return " ".join(filter(None, (term, words.sentence(where)))) or str(item.get("id", "finding"))


# --- figures ---


def _pairwise(job: Job | None) -> list[tuple[str, xr.Dataset]]:
    """The measurements of a job that have a latency for pairs of CPUs, core-to-core ones first."""
    found = job.measurements.items() if job is not None else ()
    pairwise = [(name, data) for name, data in found if "latency_ns" in data and set(_DIMS) <= set(data.dims)]
    return sorted(pairwise, key=lambda item: (not item[0].startswith("coherence"), item[0]))


def _values(data: xr.Dataset, key: str) -> Floats:
    values: Floats = data[key].transpose(*_DIMS).to_numpy().astype(np.float64)
    return values


def _median(values: Floats) -> Floats:
    """Median over the first axis without NaN; NaN where there is no value. Sorting is faster than numpy's nanmedian."""
    ordered = np.sort(values, axis=0)
    count = np.isfinite(ordered).sum(axis=0)
    last = np.maximum(count - 1, 0)
    middle = np.stack([last // 2, np.minimum(count // 2, last)])
    out: Floats = np.take_along_axis(ordered, middle, axis=0).mean(axis=0)
    return out


def _plates(
    shown: Shown, said: Mapping[str, Any], scales: Mapping[str, Scale], fleet: Mapping[ClassKey, float]
) -> tuple[Plate, ...]:
    job = shown.job
    if job is None:
        return ()
    # A measurement that none of the nodes behind the report's scales has is drawn on a scale of its own.
    colours = {name: scale.of_nodes([ends]) for name, ends in scale_ends(shown).items()} | dict(scales)
    out: list[Plate] = []
    for one in shown.matrices:
        header, data = job.header(one.measurement), job.measurements[one.measurement]
        classes = [c for c in said.get("classes", ()) if _belongs(c, one) and words.number(c.get("median_ns"))]
        card = matrix = bars = None
        messages = linktest.is_linktest(header) and len(one.cpus) != 2  # a single pair is a card, in ns
        drawn_as = colours.get(one.measurement, Scale(0.0, 1.0))
        values, unit, key = (
            one.values,
            str(header.get("unit", "ns")),
            _matrix_facts(one, data.sizes["a"], shown.topology),
        )
        if messages:
            values, unit, drawn_as = one.values / 1e3, "us", linktest.in_us(drawn_as)
            bars, key = linktest.histogram(values, drawn_as), linktest.facts(values, header)
        where = f", home NUMA node {one.home}" if one.home >= 0 else _home(header)
        subtitle = f"{header.get('operation', one.measurement)}: {_quantity({**header, 'unit': unit})}{where}"
        subtitle += f", job {job.number}" if job.number > 1 else ""
        if len(one.cpus) == 2:
            card = _card(data.sel(home=one.home), one.cpus, classes)
        else:
            title = f"{unit}, {header.get('quantity', '')}"
            matrix = figures.matrix(values, one.cpus, shown.topology, drawn_as, title, 108.0 if out else 140.0)
        out.append(
            Plate(
                title="LinkTest" if messages else "The pair" if card else "Core to core",
                subtitle=subtitle,
                card=card,
                matrix=matrix,
                facts=key,
                # A single class of a single pair is already on the card.
                classes=_class_table(classes, fleet, unit) if matrix or fleet else None,
                histogram=bars if matrix else None,
            )
        )
    return tuple(out)


def _quantities(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Other measurements than of pairs: a row per kind of cell, with the group's median; findings are marked."""
    header = ("measurement", "of", "median", "95 % interval", "group's median", "to it", "worst", "where")
    out, before = [], ""
    for row in rows:
        name, kind, unit = (str(row.get(key, "")) for key in ("measurement", "name", "unit"))
        median, group = words.number(row.get("median")), words.number(row.get("group"))
        ends = [words.with_unit(row.get(key), unit) for key in ("ci_low", "ci_high")]
        beside = words.percent(median / group - 1, signed=True) if median is not None and group else ""
        worst = (words.with_unit(row.get("worst_value"), unit), str(row["worst"])) if row.get("worst") else ("", "")
        out.append((
            name if name != before else "", f"{_FOUND} {kind}" if row.get("deviates") else kind,
            words.with_unit(median, unit), f"{ends[0].split(' ')[0]} to {ends[1]}" if all(ends) else "",
            words.with_unit(group, unit), beside, *worst,
        ))  # fmt: skip
        before = name
    marked = tuple(i for i, row in enumerate(rows) if row.get("deviates"))
    return replace(_without_empty_columns(header, out), marked=marked)


def _without_empty_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]
    return Table(tuple(header[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows))


def _belongs(c: Mapping[str, Any], one: Drawn) -> bool:
    measurement, home, _ = _class_key(c)
    return measurement in ("", one.measurement) and home in (-1, one.home)


def _matrix_facts(one: Drawn, measured: int, topology: Topology | None) -> Facts:
    finite = one.values[np.isfinite(one.values) & ~np.eye(len(one.cpus), dtype=bool)]
    drawn_of = f" of {words.thousands(measured)}" if measured > len(one.cpus) else ""
    rows = [("CPUs", words.thousands(len(one.cpus)) + drawn_of), ("pairs", words.thousands(int(finite.size) // 2))]
    if finite.size:
        for name, value in (("lowest", finite.min()), ("median", np.median(finite)), ("highest", finite.max())):
            rows.append((name, three_digits(float(value))))
    rows.append(("order", "topology" if topology is not None else "OS number"))
    return tuple(rows)


def _class_table(classes: Sequence[Mapping[str, Any]], fleet: Mapping[ClassKey, float], unit: str) -> ClassTable | None:
    """Against the fleet's medians in percent where there is a fleet, else in `unit` (ns or us)."""
    if not classes:
        return None
    of_ns = 1e3 if unit == "us" else 1.0

    def known(value: Any) -> float | None:
        found = words.number(value)
        return None if found is None else found / of_ns

    medians = [float(c["median_ns"]) / of_ns for c in classes]
    lows = [known(c.get("ci_low_ns")) for c in classes]
    highs = [known(c.get("ci_high_ns")) for c in classes]
    beside = [known(fleet.get(_class_key(c))) for c in classes]
    against = all(beside)

    def on_axis(value: float | None, i: int) -> float:
        there = medians[i] if value is None else value
        base = beside[i]
        return 100 * (there / base - 1) if against and base else there

    spans = [[on_axis(value, i) for value in (lows[i], medians[i], highs[i])] for i in range(len(classes))]
    if against:
        end = percent_reach([x for span in spans for x in span])
        start = -end
    else:
        start, end = 0.0, 1.06 * max(x for span in spans for x in span)
    rows = tuple(
        ClassRow(
            name=str(c.get("name", "")),
            pairs=words.thousands(c.get("pairs")),
            median=f"{medians[i]:.1f}",
            interval=f"{lows[i]:.1f} to {highs[i]:.1f}" if lows[i] is not None and highs[i] is not None else "",
            fleet=words.percent(medians[i] / (beside[i] or 1.0) - 1, signed=True) if against else "",
            low=_position(spans[i][0], start, end),
            at=_position(spans[i][1], start, end),
            high=_position(spans[i][2], start, end),
        )
        for i, c in enumerate(classes)
    )
    axis = "% from the fleet's median" if against else unit
    return ClassTable(rows, axis_ticks(start, end), axis, 0.5 if against else None, unit)


def percent_reach(values: Sequence[float]) -> float:
    """Half the width of an axis of differences in percent: what holds `values`, from 2 to 25 %."""
    return float(np.clip(1.15 * max(map(abs, values), default=0.0), 2.0, 25.0))


def axis_ticks(start: float, end: float) -> tuple[Tick, ...]:
    """Round values from `start` to `end` at their positions from 0 to 1."""
    return tuple(Tick(_position(value, start, end), text) for value, text in scale.ticks(start, end))


def _position(value: float, start: float, end: float) -> float:
    return float(np.clip((value - start) / (end - start), 0.0, 1.0))


def _card(data: xr.Dataset, cpus: Sequence[int], classes: Sequence[Mapping[str, Any]]) -> Card:
    """The one pair of a two-CPU machine; `data` has dimensions (run, pass, a, b)."""
    pair = data.sel(a=cpus[0], b=cpus[1])

    def column(key: str) -> Floats:
        values: Floats = pair[key].transpose("run", "pass").to_numpy().astype(np.float64)
        return values

    value, low, high = column("latency_ns"), column("ci_low_ns"), column("ci_high_ns")
    fastest, p99, flagged = column("min_ns"), column("p99_ns"), (column("flags") != 0).sum(axis=1)
    seen = np.concatenate([array[np.isfinite(array)] for array in (value, low, high, fastest)])
    start, end = float(seen.min()), float(seen.max())
    # The axis holds the usual range: a 99th percentile disturbed by the scheduler would compress all else.
    tails = p99[np.isfinite(p99)]
    if tails.size:
        end = max(end, min(float(tails.max()), start + 5 * (end - start)))
    pad = max(0.05 * (end - start), 0.01 * end)
    start, end = max(0.0, start - pad), end + pad

    def at(x: float) -> float:
        return _position(x, start, end)

    runs = []
    for r, run in enumerate(data["run"].to_numpy()):
        dots = tuple(
            Dot(at(v), at(v if np.isnan(a) else a), at(v if np.isnan(b) else b))
            for v, a, b in zip(value[r], low[r], high[r], strict=True)
            if np.isfinite(v)
        )
        if not dots:
            continue
        first, last = _reach(fastest[r], value[r], min), _reach(p99[r], value[r], max)
        runs.append(
            CardRun(
                run=str(run),
                value=f"{np.nanmedian(value[r]):.1f}",
                interval=f"{_reach(low[r], value[r], min):.1f} to {_reach(high[r], value[r], max):.1f}",
                fastest=cell_words.duration(first),
                p99=cell_words.duration(last),
                flagged=f"{flagged[r]} of {len(dots)}",
                dots=dots,
                reach=(at(first), at(last)),
                beyond=last > end,
            )
        )
    # A machine with one pair has one class: the verdict's figures for it are the pair's.
    one = classes[0] if len(classes) == 1 else {"median_ns": np.nanmedian(value)}
    bounds = [words.number(one.get(key)) for key in ("ci_low_ns", "ci_high_ns")]
    known = f"95 % interval over runs {bounds[0]:.1f} to {bounds[1]:.1f} ns" if None not in bounds else ""
    kind = f", {one['name']}" if one.get("name") else ""
    return Card(
        pair=f"CPU {cpus[0]} and CPU {cpus[1]}{kind}",
        value=f"{one['median_ns']:.1f}",
        interval=known,
        runs=tuple(runs),
        ticks=axis_ticks(start, end),
    )


def _reach(values: Floats, otherwise: Floats, end: Any) -> float:
    """The smallest or largest (`end`: min or max) of `values` that are known, else of `otherwise`."""
    known = values[np.isfinite(values)]
    return float(end(known if known.size else otherwise[np.isfinite(otherwise)]))


def _floorplan(shown: Shown) -> bytes | None:
    """The machine with each core in the colour of its median to all others, in its first measurement."""
    if shown.topology is None or not shown.matrices or len(shown.matrices[0].cpus) < 3:
        return None
    first = shown.matrices[0]
    others = np.where(np.eye(len(first.cpus), dtype=bool), np.nan, first.values)
    medians = dict(zip(first.cpus, _median(others).tolist(), strict=True))
    where = f", home NUMA node {first.home}" if first.home >= 0 else ""
    quantity = f"{first.measurement}{where}: a core's median to all others"
    return floorplan_svg(shown.topology, medians, unit="ns", quantity=quantity).encode()


def _structure(shown: Shown) -> tuple[Found, ...]:
    """What each matrix of three or more CPUs shows without its labels."""
    job = shown.job
    out = []
    for one in shown.matrices:
        if len(one.cpus) < 3:
            continue
        controlled = (
            True if job is not None and job.header(one.measurement).get("home") not in (None, "unknown") else None
        )
        seen = structure.find(one.values, one.cpus, shown.topology, controlled)
        relations = {item.level: f"{item.relation} {item.label}" for item in seen.agreement}
        rows = tuple(
            (
                level.name,
                f"{len(level.groups)} of {words.node_list(sorted({str(len(g)) for g in level.groups}, key=int))}",
                f"{level.within_ns:.1f}",
                f"{level.between_ns:.1f}",
                f"{level.stability:.2f}",
                relations.get(level.name, ""),
            )
            for level in seen.levels
        )
        header = ("level", "groups of CPUs", "within, ns", "between, ns", "stability", "compared with the labels")
        where = f", home NUMA node {one.home}" if one.home >= 0 else ""
        remarks = tuple(Advice(item.text, item.advice) for item in seen.findings)
        out.append(Found(f"{one.measurement}{where}", Table(header, rows), remarks))
    return tuple(out)


def _runs(jobs: Sequence[Job], said: Mapping[str, Any]) -> Table:
    """Every run of every job in order: its median, spread and duration, how many findings it shows (`said` is the
    node's part of the verdict), and whether it is invalid; invalid runs are marked."""
    header = (
        "job",
        "measurement",
        "run",
        "passes",
        "median",
        "between passes",
        "flagged",
        "s",
        "start",
        "findings",
        "",
    )
    findings, quality = said.get("findings", ()), [words.sentence(item) for item in said.get("quality", ())]
    showing = Counter((item.get("measurement"), run) for item in findings for run in item.get("runs") or ())
    rows: list[tuple[str, ...]] = []
    marked = []
    for job in jobs:
        for name, data in (*_pairwise(job), *job.cells.items()):
            value, unit = _measured(name, data)
            for r, run in enumerate(data["run"].to_numpy()):
                medians = [float(np.median(one[np.isfinite(one)])) for one in value[r] if np.isfinite(one).any()]
                if not medians:
                    continue
                where = f"job{job.number}/run{run}"
                invalid = any(text.startswith(f"invalid: {name}, {where}:") for text in quality)
                marked += [len(rows)] if invalid else []
                flags = data["flags"].to_numpy()[r]
                seconds = words.number(float(data["elapsed_s"].to_numpy()[r])) if "elapsed_s" in data else None
                rows.append(
                    (
                        str(job.number),
                        name,
                        str(run),
                        str(len(medians)),
                        words.with_unit(float(np.median(medians)), unit),
                        words.percent(max(medians) / min(medians) - 1) if len(medians) > 1 and min(medians) else "",
                        words.percent(float((flags != 0).mean())) if (flags != 0).any() else "",
                        f"{seconds:.1f}" if seconds else "",
                        str(data["start_time"].to_numpy()[r]) if "start_time" in data else "",
                        str(showing[name, where] or ""),
                        f"{_INVALID} invalid" if invalid else "",
                    )
                )
    return replace(_without_empty_columns(header, rows), marked=tuple(marked))


def _measured(name: str, data: xr.Dataset) -> tuple[Floats, str]:
    """What a measurement is compared by, as (run, pass, all else), and its unit; nothing where no model says what."""
    model = models().get(name)
    key = "latency_ns" if set(_DIMS) <= set(data.dims) else model.value if model is not None else ""
    if key not in data:
        return np.zeros((data.sizes["run"], 0, 0)), ""
    values = data[key].transpose("run", "pass", ...).to_numpy().astype(np.float64)
    share = model is not None and model.scale == "share"
    return values.reshape(*values.shape[:2], -1), "share" if share else str(data[key].attrs.get("units", ""))


# --- method ---

_QUANTITIES = {"hop": "round trip / 2", "load": "load latency", "one-way": "one-way latency",
    "transfer": "transfer", "message": "time of a message"}  # fmt: skip
_HOMES = {
    "first": "home: the NUMA node of the pair's first CPU",
    "second": "home: the NUMA node of the pair's second CPU",
}


def _quantity(header: Mapping[str, Any]) -> str:
    quantity = str(header.get("quantity", ""))
    said = _QUANTITIES.get(quantity, "")
    unit = header.get("unit", "ns")
    return f"{quantity} ({said}) in {unit}" if said else f"{quantity or 'value'} in {unit}"


def _home(header: Mapping[str, Any]) -> str:
    """Where the line is at home, to be added to a sentence; a message has no home."""
    policy = header.get("home")
    if linktest.is_linktest(header):
        return ""
    if policy is None or policy == "unknown":
        return ", home unknown"
    return ", " + _HOMES.get(str(policy), f"home: {policy}")


def _methods(shown: Shown, verdict: Mapping[str, Any]) -> tuple[Method, ...]:
    job = shown.job
    if job is None or shown.bundle is None:
        return ()
    # The kernel's hash is already in the record that says how it measured.
    versions = [fact for fact in words.facts(verdict.get("versions", {})) if not fact[0].startswith("kernel ")]
    return tuple(
        Method(name, (*_method_facts(data, job.header(name), _rounds(shown.bundle.jobs, name)), *versions))
        for name, data in job.measurements.items()
    )


def _rounds(jobs: Sequence[Job], name: str) -> str:
    """How many passes, runs and jobs a measurement has."""
    mine = [job.measurements[name].sizes for job in jobs if name in job.measurements]
    passes, runs = (words.node_list(sorted({str(size.get(of, "?")) for size in mine})) for of in ("pass", "run"))
    return f"{passes} passes in each of {runs} runs" + (f", in each of {len(mine)} jobs" if len(mine) > 1 else "")


def _method_facts(data: xr.Dataset, header: Mapping[str, Any], rounds: str) -> Facts:
    imported = header.get("imported") or {}
    measured = not imported
    lines, batches = header.get("lines"), header.get("batches", "?")
    rows = {
        "imported": f"{imported.get('format', '')} {imported.get('source', '')}".strip(),
        "unknown": ", ".join(map(str, imported.get("unknown", ()))),
        "operation": header.get("operation"),
        "quantity": _quantity(header),
        "home": _home(header).removeprefix(", ").removeprefix("home: "),
        "memory": "; ".join(_memory(header.get("placement") or {})),
        "lines": lines and f"{lines} a pass, drawn by seed, {batches} batches a line",
        "round trips": header.get("round_trips") and f"at least {header['round_trips']} a batch",
        "passes, runs": measured and rounds,
        "statistic": measured
        and (
            "lower quartile of the samples"
            if linktest.is_linktest(header)
            else "median over lines of each line's lowest batch"
        )
        + "; the figure shows the median over runs and passes",
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
            size = (words.number(place.get("bytes")) or 0) / 2**20
            bound = f"verified by {place.get('verified_by')}" if place.get("bound") else "not bound"
            out.append(f"node {node}: {size:g} MiB, {place.get('pages', 'unknown')} pages, {bound}")
    return out


def _clock(clock: Mapping[str, Any]) -> str:
    hz, step = words.number(clock.get("hz")), words.number(clock.get("step_ns"))
    parts = [str(clock.get("source", "")), f"{hz / 1e9:.3f} GHz" if hz else "", f"step {step:.2f} ns" if step else ""]
    return ", ".join(filter(None, parts))
