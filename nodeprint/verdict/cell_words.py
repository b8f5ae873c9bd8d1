"""What was found in cells, in words and figures: places in the node's own numbers, values with units, remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from nodeprint.cells import Cells, Key, Model, models
from nodeprint.curves import explained_by_jitter
from nodeprint.packed import PackedNode
from nodeprint.verdict.cells import Cause, Judged, labels_of
from nodeprint.verdict.figures import medians_of, over_runs
from nodeprint.verdict.matrices import newest_rows, over_passes
from nodeprint.verdict.outcome import CellFigure, Finding, MarginFigure
from nodeprint.verdict.wording import seen_in

Floats = npt.NDArray[np.float64]

_UNITS: Mapping[str, tuple[float, str]] = {
    "Hz": (1e-9, "GHz"),
    "B/s": (1e-9, "GB/s"),
    "share": (100.0, "%"),
}


#: Of causes in one place the first term here is the finding, the others are its evidence: what takes time from a CPU or
#: slows its clock shows in everything that runs there.
_FIRST = ("jitter", "clock", "bandwidth", "numa", "cache")
_SEVERITY: Mapping[str, str] = {
    "confirmed": "error", "fresh": "warning", "differs": "warning", "crowd": "warning", "refuted": "info",
}  # fmt: skip


def findings(judged: Sequence[Judged], i: int, node: PackedNode, evidence: Sequence[str]) -> dict[str, list[Finding]]:
    """A node's findings by state (confirmed, fresh, differs, crowd: shown by too many, refuted), one per place."""
    places: dict[str, dict[tuple[object, ...], list[Finding]]] = {state: {} for state in _SEVERITY}
    for one in sorted(
        judged, key=lambda one: _FIRST.index(one.model.term) if one.model.term in _FIRST else len(_FIRST)
    ):
        for cause in one.by_node[i].causes if i in one.by_node else ():
            state = "crowd" if cause.number in one.crowd and cause.state != "refuted" else cause.state
            told = finding(one, cause, node, evidence, _SEVERITY[state])
            if state == "refuted":
                told = replace(told, id="not-confirmed")
            places[state].setdefault(_place(told.where), []).append(told)
    return {
        state: [
            replace(first, evidence=(*first.evidence, *(other.text for other in rest)))
            for first, *rest in by_place.values()
        ]
        for state, by_place in places.items()
    }


def _place(where: Mapping[str, Key]) -> tuple[object, ...]:
    """What two findings have in common that are one cause: the core, the memory, or all of it."""
    for key in ("core", "memory_node", "ccx", "ccd", "socket"):
        if key in where:
            return key, where[key]
    return tuple(sorted((key, str(value)) for key, value in where.items()))


def explained(judged: Sequence[Judged], i: int) -> str:
    """How far the time that CPUs lost goes with what deviates on them elsewhere; empty where it is unknown."""
    lost = next((by_cpu for one in judged if one.model.scale == "share" and (by_cpu := _by_cpu(one, i))), {})
    said = []
    for one in judged:
        elsewhere = _by_cpu(one, i) if one.model.scale != "share" else {}
        both = sorted(set(lost) & set(elsewhere))
        found = explained_by_jitter([lost[cpu] for cpu in both], [abs(elsewhere[cpu]) for cpu in both])
        if np.isfinite(found.correlation):
            said.append(f"{found.correlation:+.2f} in {one.cells.measurement}")
    return f"rank correlation over CPUs of lost time with deviations: {', '.join(said)}" if lost and said else ""


def _by_cpu(one: Judged, i: int) -> dict[Key, float]:
    """The newest deviation of each single CPU of a node, by slot."""
    seen = one.newest(i)
    if seen is None:
        return {}
    return {
        where[0]: float(value)
        for labels, where, value in zip(one.sets.labels, one.sets.where, seen.deviation, strict=True)
        if labels == ("cpu",) and np.isfinite(value)
    }


def unstable(judged: Sequence[Judged], i: int, node: PackedNode) -> list[str]:
    """The measurements whose runs differ, and where most."""
    out = []
    for one in judged:
        number = one.by_node[i].unstable if i in one.by_node else None
        if number is not None:
            place = spoken(numbered(one.sets.labels[number], one.sets.where[number], node, one.model))
            out.append(f"runs of {one.cells.measurement} differ in {place}")
    return out


def beside_rows(
    rows: Sequence[CellFigure], judged: Sequence[Judged], i: int, node: PackedNode
) -> tuple[CellFigure, ...]:
    """The rows of a node's table, and behind those of each measurement one for every place that deviates in it."""
    out = list(rows)
    for one in judged:
        for cause in one.by_node[i].causes if i in one.by_node else ():
            if cause.state != "refuted":
                name = spoken(numbered(one.sets.labels[cause.number], one.sets.where[cause.number], node, one.model))
                places = np.flatnonzero(one.sets.member[cause.number]).tolist()
                newest = over_passes(one.cells.values[newest_rows(one.cells)[i]])[0].astype(np.float64)
                mean = _means(newest, [range(len(newest))])[0, places]
                figure = _figure(one.cells, one.model, node, name, places, one.of_runs(i, cause.number), mean)
                out.append(replace(figure, group=one.level(cause.number), deviates=True))
    order = list(dict.fromkeys(row.measurement for row in out))
    return tuple(sorted(out, key=lambda row: order.index(row.measurement)))


def margins(judged: Sequence[Judged], i: int, node: PackedNode) -> dict[str, MarginFigure]:
    """By measurement how alike a node is to its peers; without a second run nothing is shown to be alike."""
    out = {}
    for one in judged:
        known = one.by_node.get(i)
        if known is not None:
            place = numbered(one.sets.labels[known.widest], one.sets.where[known.widest], node, one.model)
            within = one.relative(known.reach) if known.runs > 1 else float("inf")
            bound = one.relative(float(one.stats.bound[known.widest]))
            out[one.cells.measurement] = MarginFigure(within, float("nan"), bound, float("nan"), spoken(place))
    return out


def smallest(judged: Sequence[Judged]) -> dict[str, float]:
    """By term the detection limit of its sharpest measurement."""
    out: dict[str, float] = {}
    for one in judged:
        out[one.model.term] = min(one.relative(one.smallest), out.get(one.model.term, float("inf")))
    return out


def finding(one: Judged, cause: Cause, node: PackedNode, evidence: Sequence[str], severity: str) -> Finding:
    """A finding with its place in the node's own numbers."""
    model, term = one.model, one.model.term
    labels, place = one.sets.labels[cause.number], one.sets.where[cause.number]
    where = numbered(labels, place, node, model)
    effect = one.relative(cause.effect)
    interval = (one.relative(cause.interval[0]), one.relative(cause.interval[1]))
    high = effect > 0
    bad = high == (model.better == "lower")
    peers = one.level(cause.number)
    unit = one.cells.unit
    if model.scale == "share":
        change = f"loses {effect * 100:.1f} % more of its time than its peers, which lose {peers * 100:.2g} %"
    else:
        change = (
            f"{said(peers * (1 + effect), unit)}, its peers {said(peers, unit)} "
            f"({effect * 100:+.1f} % [{interval[0] * 100:.1f} to {interval[1] * 100:.1f} %])"
        )
    text = f"{one.cells.measurement}, {spoken(where)}: {change}, {seen_in(cause.runs)}"
    return Finding(
        id=f"{term}-{_SIDES.get(term, ('high', 'low'))[0 if high else 1]}",
        severity=severity,
        term=term,
        where=where,
        effect=effect,
        effect_ns=effect * peers if unit == "ns" and model.scale != "share" else float("nan"),
        interval=interval,
        runs=cause.runs,
        consistent_with=_CONSISTENT.get(term, ()) if bad else ("settings that differ from the peers'",),
        evidence=tuple(evidence),
        remedy=_REMEDY.get(term, "measure the node again and compare"),
        text=text,
        measurement=one.cells.measurement,
        constant_in="percent" if model.scale == "log" else "either",
    )


def numbered(labels: Sequence[str], place: Sequence[Key], node: PackedNode, model: Model) -> dict[str, Key]:
    """A place in the numbers of the node's topology: OS numbers of CPUs, cores and NUMA nodes, words as they are."""
    out: dict[str, Key] = {}
    for label, key in zip(labels, place, strict=True):
        kind = model.labels.get(label)
        if kind == "cpu":
            slot = int(key)
            core, cpu = ("core", "cpu") if label == "cpu" else (f"core_{label}", f"cpu_{label}")
            out[core] = _at(node.numbers.get("core", ()), slot)
            out[cpu] = _at(node.numbers.get("cpu", ()), slot)
        elif kind in ("node", "node_of_cpu"):
            name = label if kind == "node" else f"node_{label}"
            out[name] = _at(node.numbers.get("node", ()), int(key))
        else:
            out[label] = key
    return out


def _at(numbers: Sequence[int], index: int) -> int:
    return numbers[index] if 0 <= index < len(numbers) else index


def spoken(where: Mapping[str, Key]) -> str:
    """A place for people."""
    if not where:
        return "the whole node"
    parts = []
    for key, value in where.items():
        if key == "core":
            parts.append(f"core {value} (CPU {where['cpu']})" if "cpu" in where else f"core {value}")
        elif key == "distance":
            parts.append({"own node": "memory of the own node", "same socket": "memory of the same socket"}.get(
                str(value), "memory of the other socket"))  # fmt: skip
        elif key != "cpu":
            parts.append(str(value) if isinstance(value, str) else f"{_SPOKEN.get(key, key.replace('_', ' '))} {value}")
    return ", ".join(parts)


def _brief(where: Mapping[str, Key]) -> str:
    """A place in few words, for a table."""
    names = {"cpu": "CPU", "cpu_node": "CPU node", "memory_node": "memory"}
    told = [(names.get(key, key.replace("_", " ")), value) for key, value in where.items() if key != "core"]
    return ", ".join(str(value) if isinstance(value, str) else f"{name} {value}" for name, value in told)


_SPOKEN: Mapping[str, str] = {
    "ccd": "CCD",
    "ccx": "CCX",
    "cpu_node": "CPUs of NUMA node",
    "memory_node": "memory of NUMA node",
}


def said(value: float, unit: str) -> str:
    """A value with its unit; a time in the unit that keeps it short."""
    if unit == "ns":
        return duration(value)
    factor, name = _UNITS.get(unit, (1.0, "" if unit == "1" else unit))
    return f"{value * factor:.4g} {name}".rstrip()


def duration(ns: float) -> str:
    """A time: `61.3 ns`, `1.14 ms`, `2.5 s`."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(ns) >= 0.9995 * size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.4g} ns"


def figures_of(cells: Sequence[Cells], nodes: Sequence[PackedNode]) -> list[list[CellFigure]]:
    """By node: per row of a measurement's table the median of its cells, with its interval over runs and worst cell.

    Of each node's latest job; the interval (95 %) is Student's over runs, NaN with fewer than three.
    """
    out: list[list[CellFigure]] = [[] for _ in nodes]
    for one in cells:
        model = models().get(one.measurement)
        if model is None or not one.places:
            continue
        level = over_passes(one.values)[0].astype(np.float64)
        rows = newest_rows(one)
        means = _means(level, list(rows.values()))
        for name, places in _table_rows(one, model):
            medians, _ = medians_of(level[:, places])
            for (number, mine), mean in zip(rows.items(), means[:, places], strict=True):
                of_runs = [medians[row] for row in mine if medians[row] == medians[row]]
                if of_runs:
                    out[number].append(_figure(one, model, nodes[number], name, places, of_runs, mean))
    return out


def _means(level: Floats, rows: Sequence[Sequence[int]]) -> Floats:
    """Per entry of `rows` the mean over its rows (., place), NaN where none was measured."""
    chosen = level[np.concatenate([np.asarray(mine) for mine in rows])]
    starts = np.cumsum([0, *map(len, rows[:-1])])
    there = np.isfinite(chosen)
    with np.errstate(invalid="ignore"):
        total = np.add.reduceat(np.where(there, chosen, 0.0), starts, axis=0)
        return np.asarray(total / np.add.reduceat(there.astype(np.int64), starts, axis=0))


def _table_rows(cells: Cells, model: Model) -> list[tuple[str, list[int]]]:
    """Rows of the table: their names and places."""
    labels = labels_of(cells, model)
    kept = range(len(cells.places))
    for dim, at in model.at.items():
        found = [int(key) for key in labels[dim] if isinstance(key, int)]
        wanted = {"least": min(found, default=0), "most": max(found, default=0)}.get(str(at), at)
        kept = [place for place in kept if labels[dim][place] == wanted]  # type: ignore[assignment]
    if not set(model.rows) <= set(labels):
        return [("all", list(kept))]
    rows: dict[str, list[int]] = {}
    for place in kept:
        keys = [labels[label][place] for label in model.rows]
        rows.setdefault(", ".join(str(key) for key in keys if key is not None) or "all", []).append(place)
    return list(rows.items())


def _figure(
    cells: Cells, model: Model, node: PackedNode, name: str, places: Sequence[int], of_runs: Sequence[float],
    by_place: Floats,
) -> CellFigure:  # fmt: skip
    """A row's figure from its medians by run and its means by place."""
    middle, sd, half = over_runs(of_runs)
    if len(of_runs) < 3:  # of two runs Student's interval is 12.7 times their spread, which is of no use
        half = float("nan")
    known = np.isfinite(by_place)
    order = np.where(known, by_place, -np.inf if model.better == "lower" else np.inf)
    worst = int(np.argmax(order) if model.better == "lower" else np.argmin(order))
    where = numbered(cells.dims, cells.places[places[worst]], node, model)
    shown = {key: value for key, value in where.items() if str(value) not in name.split(", ")}
    return CellFigure(
        cells.measurement, name, "share" if model.scale == "share" else cells.unit,
        middle, max(middle - half, 0.0), middle + half, float("nan"),
        _brief(shown) if len(places) > 1 else "", float(by_place[worst]), len(places),
        len(of_runs), sd,
    )  # fmt: skip


_SIDES: Mapping[str, tuple[str, str]] = {
    "numa": ("slow", "fast"),
    "cache": ("slow", "fast"),
    "loaded": ("slow", "fast"),
    "touch": ("slow", "fast"),
    "bandwidth": ("fast", "slow"),
    "clock": ("fast", "slow"),
    "remap": ("fast", "slow"),
    "jitter": ("loud", "quiet"),
}
_CONSISTENT: Mapping[str, tuple[str, ...]] = {
    "numa": ("a missing or slow memory channel", "memory speed or interleaving"),
    "cache": ("the core's clock", "a slow or smaller cache"),
    "bandwidth": ("a missing or slow memory channel", "memory speed or interleaving"),
    "clock": ("cooling (paste, fan, airflow)", "a power limit", "boost settings"),
    "loaded": ("a missing or slow memory channel", "the memory controller"),
    "touch": ("memory of the other node", "interleaving"),
    "jitter": ("a daemon or interrupts on the CPU", "a hypervisor that takes CPU time away"),
}
_REMEDY: Mapping[str, str] = {
    "numa": "check that all DIMMs are there and run at their speed, compare memory settings with a node that is SAME",
    "bandwidth": "check that all DIMMs are there and run at their speed, then report the channel with this page",
    "cache": "compare clocks, then report the core to the vendor with this page",
    "clock": "compare temperatures and power limits with a node that is SAME; service the cooling",
    "jitter": "look for daemons and interrupts on the CPU, and move them",
}
