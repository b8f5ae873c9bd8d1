"""What a node's page has of memory, caches, bandwidth, clocks and jitter: the table, and a figure of each quantity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from nodeprint import captions
from nodeprint.fleet.jobs import Measured
from nodeprint.report import figures, formatting, plots, scale
from nodeprint.report.figures import Figure, Floats
from nodeprint.report.pages import Block, Figures, Section, Table, Text
from nodeprint.report.peers import Peers, places_and_values
from nodeprint.report.plots import Series
from nodeprint.report.readings import readings
from nodeprint.report.shown import Shown, over_runs
from nodeprint.topology.model import Topology

#: The mark of a row with a finding.
_FOUND = "▲"
_HALF = 88.0


def sections(shown: Shown, node: str, said: Mapping[str, Any], peers: Peers) -> list[Section | None]:
    """The table of all quantities with what their curves say, and their figures."""
    job = shown.job
    table = quantities(said.get("cells") or ())
    blocks: list[Block] = [table]
    if table.marked:
        blocks.append(Text("▲ place of a finding, its own cells only", quiet=True))
    blocks += [Text(text) for text in (readings(job, shown.topology) if job is not None else ())]
    found = pictures(shown, node, str(said.get("group") or ""), peers) if job is not None else []
    return [
        Section("Memory, caches, bandwidth, clock and jitter", tuple(blocks)),
        Section("Quantity by quantity", tuple(found)),
    ]


def quantities(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Other measurements than of pairs: a row per kind of cell, with the group's median; findings are marked."""
    header = ("measurement", "of", "median", "95 % interval", "group's median", "to it", "worst", "where")
    out, before = [], ""
    for row in rows:
        name, kind, unit = (str(row.get(key, "")) for key in ("measurement", "name", "unit"))
        median, group = formatting.number(row.get("median")), formatting.number(row.get("group"))
        ends = [formatting.with_unit(row.get(key), unit) for key in ("ci_low", "ci_high")]
        beside = formatting.percent(median / group - 1, signed=True) if median is not None and group else ""
        worst = (
            (formatting.with_unit(row.get("worst_value"), unit), str(row["worst"])) if row.get("worst") else ("", "")
        )
        out.append((
            name if name != before else "", f"{_FOUND} {kind}" if row.get("deviates") else kind,
            formatting.with_unit(median, unit), f"{ends[0].split(' ')[0]} to {ends[1]}" if all(ends) else "",
            formatting.with_unit(group, unit), beside, *worst,
        ))  # fmt: skip
        before = name
    marked = tuple(i for i, row in enumerate(rows) if row.get("deviates"))
    return replace(without_empty_columns(header, out), marked=marked, dense=True)


def without_empty_columns(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "llrrrrrl") -> Table:
    """A table of the columns that say anything."""
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]
    return Table(
        tuple(header[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows),
        align="".join(align[i] for i in kept),
    )  # fmt: skip


def pictures(shown: Shown, node: str, group: str, peers: Peers) -> list[Block]:
    """A figure of each measurement whose kernel has one, small ones side by side."""
    job = shown.job
    small: list[Figure] = []
    wide: list[Block] = []
    for one in job.cells if job is not None else ():
        painter = _PAINTERS.get((one.header.get("kernel"), one.header.get("operation")))
        for figure in painter(one, shown, node, group, peers) if painter else ():
            if figure.drawing.width <= _HALF:
                small.append(figure)
            else:
                wide.append(Figures((figure,)))
    rows: list[Block] = []
    line: list[Figure] = []
    for figure in small:
        if line and sum(f.drawing.width for f in line) + figure.drawing.width > figures.PAGE:
            rows.append(Figures(tuple(line)))
            line = []
        line.append(figure)
    if line:
        rows.append(Figures(tuple(line)))
    return [*rows, *wide]


Painter = Callable[[Measured, Shown, str, str, Peers], list[Figure]]


# --- NUMA ---


def _numa_latency(one: Measured, shown: Shown, *_: Any) -> list[Figure]:
    """Latency by the CPU's NUMA node and the memory's."""
    if shown.topology is None or len(set(one.keys("memory_node"))) < 2:
        return []
    node_of = {cpu.cpu: cpu.numa for cpu in shown.topology.cpus}
    rows = [node_of.get(int(cpu)) for cpu in one.keys("cpu")]
    values = over_runs(one.columns["latency_ns"])
    return _numa(rows, one.keys("memory_node"), values, "ns", one.name, "latency", 1.0, best=min)


def _numa_bandwidth(one: Measured, shown: Shown, *_: Any) -> list[Figure]:
    """Bandwidth by the CPUs' NUMA node and the memory's, a figure for loads and one for the last other stream."""
    if len(set(one.keys("memory_node"))) < 2:
        return []
    values, streams = over_runs(one.columns["rate_bytes_per_s"]), one.keys("stream")
    known = list(dict.fromkeys(map(str, streams)))
    out = []
    for stream in [name for name in ("load", "store_mem", "triad", "copy") if name in known][:2] or known[:1]:
        here = [i for i, name in enumerate(streams) if name == stream]
        out += _numa(
            [one.keys("cpu_node")[i] for i in here], [one.keys("memory_node")[i] for i in here], values[here], "GB/s",
            f"{one.name}-{stream}", f"bandwidth ({stream})", 1e-9, best=max,
        )  # fmt: skip
    return out


def _numa(
    of_cpus: Sequence[Any], of_memory: Sequence[Any], values: Floats, unit: str, name: str, what: str, factor: float,
    best: Callable[..., float],
) -> list[Figure]:  # fmt: skip
    rows = sorted({n for n in of_cpus if n is not None})
    columns = sorted({n for n in of_memory if n is not None})
    if len(rows) * len(columns) < 2 or len(columns) > 32:
        return []
    table = np.full((len(rows), len(columns)), np.nan)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            mine = [values[k] for k in range(len(values)) if of_cpus[k] == row and of_memory[k] == column]
            known = [value for value in mine if np.isfinite(value)]
            if known:
                table[i, j] = float(np.median(known)) * factor
    ends = scale.ends(table)
    local = [table[i, columns.index(row)] if row in columns else np.nan for i, row in enumerate(rows)]
    texts = [
        [
            f"{v:.3g} ({v / local[i]:.2f})"
            if np.isfinite(v) and np.isfinite(local[i])
            else f"{v:.3g}"
            if np.isfinite(v)
            else ""
            for v in line
        ]
        for i, line in enumerate(table)
    ]
    return [
        figures.grid(
            table, texts, [str(r) for r in rows], [str(c) for c in columns],
            scale.of_nodes([ends] if ends else []), unit, corner="CPUs of \\ memory of", name=name, room=_HALF,
            caption=captions.of("numa", what=f"{what[0].upper()}{what[1:]}", unit=unit),
        )
    ]  # fmt: skip


# --- curves ---


def _curve(one: Measured, shown: Shown, node: str, group: str, peers: Peers) -> list[Figure]:
    """Latency over the size of the working set, with the sizes that the system reports for the caches."""
    grid = one.grid("latency_ns")
    axis = list(one.places).index("size_bytes")
    values = np.moveaxis(over_runs(grid), axis, 0).reshape(len(one.axis("size_bytes")), -1)
    sizes = one.axis("size_bytes").astype(np.float64)
    low, middle, high = (np.nanquantile(values, q, axis=1) for q in (0.0, 0.5, 1.0))
    caches = [(float(size), name) for name, size in dict(one.header.get("cache_bytes", {})).items()]
    series = [Series("median, and the range over CPUs", sizes, middle, low, high)]
    theirs = peers.cells(node, group, one.name, list(zip(*(one.keys(dim) for dim in one.places), strict=True)))
    if len(theirs) >= 2:
        by_size = np.array(one.keys("size_bytes"), dtype=np.float64)
        usual = np.array([np.nanmedian(theirs[:, by_size == size]) for size in sizes])
        series.append(Series("median of the peers", sizes, usual))
    return [
        plots.lines(
            series, name=one.name, caption=captions.of("curve"),
            x="working set", y="ns", log_x=True, log_y=True, x_text=_bytes, marks=caches,
        )
    ]  # fmt: skip


def _bytes(size: float) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g} B"


def _loaded(one: Measured, *_: Any) -> list[Figure]:
    """Latency of memory over the rate of the others' traffic, a line for each place of these."""
    latency, rate = over_runs(one.columns["latency_ns"]), over_runs(one.columns["rate_bytes_per_s"])
    places, delays = one.keys("place"), np.array(one.keys("delay"), dtype=np.float64)
    series = []
    for place in dict.fromkeys(places):
        mine = np.flatnonzero([p == place for p in places])
        x, y = rate[mine] / 1e9, latency[mine]
        x = np.where(delays[mine] < 0, 0.0, x)
        order = np.argsort(x, kind="stable")
        good = order[np.isfinite(x[order]) & np.isfinite(y[order])]
        if len(good) > 1:
            series.append(Series(str(place).replace("_", " "), x[good], y[good]))
    if not series:
        return []
    return [
        plots.lines(
            series, name=one.name, caption=captions.of("loaded"), x="GB/s of the others",
            y="ns",
        )
    ]  # fmt: skip


def _against(x: str, caption: str) -> Painter:
    """Lines of a rate over one dimension, a line for each of the others."""

    def paint(one: Measured, *_: Any) -> list[Figure]:
        if x not in one.places:
            return []
        values, xs = over_runs(one.columns["rate_bytes_per_s"]) / 1e9, np.array(one.keys(x), dtype=np.float64)
        others = [dim for dim in one.places if dim != x and len(set(one.keys(dim))) > 1 and dim != "cpu"]
        names = [", ".join(str(one.keys(dim)[i]) for dim in others) for i in range(len(xs))]
        series = []
        for name in dict.fromkeys(names):
            mine = np.array([n == name for n in names])
            at = np.unique(xs[mine])
            found = np.array([np.nanmedian(values[mine & (xs == v)]) for v in at])
            if len(at) > 1 and np.isfinite(found).any():
                series.append(Series(name or one.name, at, found))
        if not series:
            return []
        return [plots.lines(series, name=one.name, caption=captions.of(caption), x=x.replace("_", " "), y="GB/s")]

    return paint


# --- strips and tables ---


def _by_cpu(unit: str, factor: float, caption: str) -> Painter:
    """A dot for each CPU, with the peers behind it."""

    def paint(one: Measured, shown: Shown, node: str, group: str, peers: Peers) -> list[Figure]:
        found = places_and_values(one)
        if found is None or list(one.places) != ["cpu"] or len(found[0]) < 3:
            return []
        places, values = found
        cpus = [int(place[0]) for place in places]
        order = [cpus.index(cpu) for cpu in figures.order(cpus, shown.topology)]
        theirs = peers.cells(node, group, one.name, places)
        return [
            plots.strip(
                [str(cpus[i]) for i in order], np.array(values)[order] * factor, theirs[:, order] * factor,
                name=one.name, unit=unit, groups=_parts([cpus[i] for i in order], shown.topology),
                caption=f"{captions.of(caption)} {captions.of('peers')}" if len(theirs) else captions.of(caption),
            )
        ]  # fmt: skip

    return paint


def _parts(cpus: Sequence[int], topology: Topology | None) -> list[figures.Band]:
    return [band for band in figures.bands(cpus, topology) if len(band.groups) > 1][-1:]


def _states(one: Measured, *_: Any) -> list[Figure]:
    """Latency by the pair and the state of the line."""
    states = list(dict.fromkeys(map(str, one.keys("state"))))
    pairs = list(dict.fromkeys(zip(one.keys("a"), one.keys("b"), strict=True)))
    values = over_runs(one.columns["latency_ns"])
    table = np.full((len(pairs), len(states)), np.nan)
    for a, b, state, value in zip(one.keys("a"), one.keys("b"), one.keys("state"), values, strict=True):
        table[pairs.index((a, b)), states.index(str(state))] = value
    ends = scale.ends(table)
    texts = [[f"{v:.0f}" if np.isfinite(v) else "" for v in row] for row in table]
    return [
        figures.grid(
            table, texts, [f"{a} to {b}" for a, b in pairs], states, scale.of_nodes([ends] if ends else []), "ns",
            name=one.name, corner="CPUs", room=_HALF, caption=captions.of("states"),
        )
    ]  # fmt: skip


_PAINTERS: Mapping[tuple[Any, Any], Painter] = {
    ("chase", "latency"): _numa_latency,
    ("bandwidth", "nodes"): _numa_bandwidth,
    ("chase", "curve"): _curve,
    ("loaded", "latency"): _loaded,
    ("remap", "pairs"): _against("pairs", "remap"),
    ("bandwidth", "scaling"): _against("cores", "scaling"),
    ("clock", "together"): _by_cpu("GHz", 1e-9, "together"),
    ("clock", "alone"): _by_cpu("GHz", 1e-9, "alone"),
    ("jitter", "detours"): _by_cpu("%", 100.0, "detours"),
    ("coherence", "state"): _states,
}  # fmt: skip
