"""Values of many nodes as columns: a checked table, also from readers that return rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import copied_values, node_pairs, units
from nodeprint.readers.node_pairs import Pairs
from nodeprint.readers.tool_output import ToolValue
from nodeprint.settings.texts import counted, say

#: Values of one metric at one place are not so many times as large on one node as on another, but in another unit.
_MIXED = 300.0
#: Larger and smaller figures are no measurements, and single precision has not the next.
_LEAST, _LARGEST = 1e-30, 1e30
#: What is no name of a part, as a standard deviation in a column of its own.
_FRACTION = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
#: Seconds since 1970 are of this century (2100).
_LAST_SECOND = 4.1e9
#: Different places of one metric that are judged together; each is compared with the same place of all nodes.
MOST_PLACES = 4096


@dataclass(frozen=True)
class ValueTable:
    """The values of a table, one in each line of `frame`. Its columns are node, metric, unit, value, job, run, time
    (text, empty if the table has none) and line (from 1). Each kind of part also has a column (`""` for a value of the
    whole node).

    `fields` has the known configuration by node, `unmeasured` the nodes without any value. `notes` name the omissions.
    `digest` is the SHA-256 of the file, or of the lines that sha256sum writes for a directory's files.
    `wrong` are nodes on which a benchmark found its own result wrong. `sources` has by axis the words for what states
    it. `pairs` has the two nodes of each pair, whose name is in the column node.
    """

    source: str
    frame: pd.DataFrame
    parts: tuple[str, ...] = ()
    fields: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    digest: str = ""
    wrong: frozenset[str] = frozenset()
    sources: Mapping[str, str] = field(default_factory=dict)
    pairs: Pairs = field(default_factory=dict)


def from_values(values: Sequence[ToolValue], source: str, sources: Mapping[str, str] | None = None) -> ValueTable:
    """The values that readers of tools' output give. Raises NodeprintError as `checked` does."""
    if not values:
        raise NodeprintError("has no figure", where=source, advice="give what the tool printed, complete")
    pairs = {called: ends for value in values if (ends := _ends(value)) and (called := node_pairs.called(*ends))}
    values = [_without_ends(value) for value in values]
    places = [value.place for value in values]
    parts = tuple(dict.fromkeys(name for place in places for name in place))
    columns = {name: [getattr(value, name) for value in values] for name in (*_TEXTS, "value", "line")}
    frame = pd.DataFrame(columns | {name: [str(place.get(name, "")) for place in places] for name in parts})
    settings = _settings(values)
    notes = tuple(differing_settings(settings))
    return checked(ValueTable(source, frame, parts, settings, notes=notes, sources=sources or {}, pairs=pairs))


def _ends(value: ToolValue) -> tuple[str, str] | None:
    """The two nodes of a value between nodes."""
    return (str(value.link["node"]), str(value.link[node_pairs.PEER])) if node_pairs.PEER in value.link else None


def _without_ends(value: ToolValue) -> ToolValue:
    """The value under the name of its pair of nodes, if it has two."""
    ends = _ends(value)
    if ends is None:
        return value
    link = {name: end for name, end in value.link.items() if name not in ("node", node_pairs.PEER)}
    return msgspec.structs.replace(value, node=node_pairs.called(*ends), link=link)


def _settings(values: Sequence[ToolValue]) -> dict[str, dict[str, str]]:
    """By node how its tools were called; of several values all."""
    by_node: dict[str, dict[str, dict[str, None]]] = {}
    for value in values:
        for name, setting in value.settings.items():
            by_node.setdefault(value.node, {}).setdefault(name, {})[setting] = None
    return {node: {name: " and ".join(several) for name, several in of.items()} for node, of in by_node.items()}


#: So many nodes are named with a setting of theirs; of more their number.
_MOST_NAMED = 3


def differing_settings(fields: Mapping[str, Mapping[str, str]]) -> list[str]:
    """In which settings nodes differ from most: a difference in how they were measured, not in how fast they are."""
    notes = []
    for name in dict.fromkeys(name for of_node in fields.values() for name in of_node):
        values = {node: of_node[name] for node, of_node in fields.items() if name in of_node}
        usual, count = Counter(values.values()).most_common(1)[0]
        others = [
            f"{printable(value, 30)} on {printable(node, 60)}" for node, value in values.items() if value != usual
        ]
        if others and count <= len(others):
            kinds = Counter(values.values()).most_common()
            listed = ", ".join(
                f"{printable(value, 30)} on {counted(number, 'node')}" for value, number in kinds[:_MOST_NAMED]
            )
            if len(kinds) < len(values):
                notes.append(f"{printable(name, 40)} differs between nodes: {listed}")
        elif others:
            more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
            most = f"{printable(name, 40)} is {printable(usual, 30)} on most nodes"
            notes.append(f"{most}, {', '.join(others[:_MOST_NAMED])}{more}")
    return notes


_TEXTS = ("node", "metric", "unit", "job", "run", "time")


def checked(figures: ValueTable) -> ValueTable:
    """Return the table with one unit for each metric, times in ISO 8601 and numbered runs. Raises NodeprintError with
    the line if names, values or places contradict each other."""
    frame = figures.frame
    if not len(frame):
        raise NodeprintError("no figure is there", where=figures.source, advice="give a table with values")
    _check_names(figures)
    _check_positive(figures)
    figures = _without_mirrored(figures)
    frame = _one_unit(figures)
    frame = frame.assign(time=_times(frame["time"], figures.source, frame["line"]))
    figures = _without_doubled(replace(figures, frame=frame))
    frame = _numbered(figures, figures.frame)
    if (frame["run"] != figures.frame["run"]).any() and (frame["run"] != "1").any():
        order = "the times" if (frame["time"] != "").all() else "the order in the file"
        figures = replace(figures, sources={**figures.sources, "run": order})
    _check_places(figures, frame)
    _check_magnitudes(figures, frame)
    again = copied_values.repeated_runs(frame, figures.parts)
    if again:
        what = f"the figures of {printable(str(frame['node'].at[again[0]]), 60)} are there twice, run by run"
        raise _error(figures, again[0], what, "take the copies out: they would make the figures look more certain")
    return _without_copies(replace(figures, frame=frame))


def _without_mirrored(figures: ValueTable) -> ValueTable:
    """The same without pairs that are there in the other order with the same values."""
    again = node_pairs.mirrored(figures.frame, figures.pairs, figures.parts) if figures.pairs else []
    if not again:
        return figures
    rest = figures.frame[~figures.frame["node"].isin(again)].reset_index(drop=True)
    return replace(figures, frame=rest, notes=(*figures.notes, say("read", "mirrored_pairs", count=len(again))))


def _without_copies(figures: ValueTable) -> ValueTable:
    """The same without nodes whose figures are those of another: nobody knows whose they are."""
    same = copied_values.copied_nodes(figures.frame, figures.parts)
    if not same:
        return figures
    notes = [
        f"{' and '.join(printable(name, 60) for name in names)} have the same figures in every digit: one is a copy "
        "of another, and none of them is judged"
        for names in same
    ]
    copied = {name for names in same for name in names}
    rest = figures.frame[~figures.frame["node"].isin(copied)].reset_index(drop=True)
    if not len(rest):
        raise NodeprintError(notes[0], where=figures.source, advice="give each node its own figures")
    unmeasured = tuple(sorted({*figures.unmeasured, *copied}))
    return replace(figures, frame=rest, unmeasured=unmeasured, notes=(*figures.notes, *notes))


def _error(figures: ValueTable, row: Any, what: str, advice: str) -> NodeprintError:
    """An error at a row of the frame (its index label)."""
    line = int(figures.frame["line"].loc[row])
    return NodeprintError(what, where=figures.source, line=line or None, advice=advice)


def _check_names(figures: ValueTable) -> None:
    """See that nodes and metrics have names, and that no node has two."""
    frame = figures.frame
    for column in ("node", "metric"):
        empty = frame.index[frame[column].astype(str) == ""]
        if len(empty):
            raise _error(figures, empty[0], f"the {column} has no name", f"name the {column}, or take the line out")
    seen: dict[str, str] = {}
    of_rows = frame["node"].drop_duplicates().items()
    firsts = [(row, end) for row, name in of_rows for end in figures.pairs.get(str(name), (str(name),))]
    for row, name in firsts:
        other = seen.setdefault(str(name).lower(), str(name))
        if other != name:
            what = f"node {printable(str(name), 60)} is {printable(other, 60)} in another case"
            raise _error(figures, row, what, "write a node's name in one way")
    for row, name in firsts:
        short, _, domain = str(name).lower().partition(".")
        if domain and short in seen and not short.isdigit():
            what = f"node {printable(str(name), 60)} is {printable(seen[short], 60)} with its domain"
            raise _error(figures, row, what, "write a node's name in one way")


def _check_positive(figures: ValueTable) -> None:
    frame = figures.frame
    extreme = frame.index[(frame["value"] > 0) & ~frame["value"].between(_LEAST, _LARGEST)]
    if len(extreme):
        what = f"{frame['value'].loc[extreme[0]]:g} is no figure of a machine"
        raise _error(figures, extreme[0], what, "correct it, or give the metric another unit")
    wrong = frame.index[~(frame["value"] > 0)]
    if len(wrong):
        row = wrong[0]
        value, metric = frame["value"].loc[row], printable(str(frame["metric"].at[row]), 60)
        advice = "figures are compared by their ratio: take the line out if the run failed, or the metric if it counts"
        raise _error(figures, row, f"{value:g} as a value of {metric} is not above 0", advice)


def _one_unit(figures: ValueTable) -> pd.DataFrame:
    """The frame with the unit that most figures of a metric have, others converted."""
    frame = figures.frame
    pairs = frame.groupby(["metric", "unit"], sort=False, observed=True)["line"].agg(["size", "idxmin"])
    if len(pairs) == frame["metric"].nunique():
        return frame
    values, unit = frame["value"].to_numpy(copy=True), frame["unit"].to_numpy(dtype=object, copy=True)
    for metric, of_metric in pairs.groupby(level=0, sort=False):
        by_unit = of_metric.droplevel(0)
        usual = str(by_unit["size"].idxmax())
        for other in by_unit.index:
            factor = units.factor(str(other), usual)
            if factor is None:
                row = by_unit["idxmin"].loc[other]
                has = f"the unit {printable(str(other), 30)}" if other else "no unit"
                what = f"{printable(str(metric), 60)} has {has}, and {printable(usual or 'none', 30)} in other lines"
                raise _error(figures, row, what, "give a metric one unit, or call the figures by two names")
            mask = ((frame["metric"] == metric) & (frame["unit"] == other)).to_numpy()
            values[mask] *= factor
            unit[mask] = usual
    return frame.assign(value=values, unit=unit)


def _times(texts: pd.Series[str], source: str, lines: pd.Series[int]) -> pd.Series[str]:
    """Times as ISO 8601 in UTC, empty where there are none: from that, or seconds since 1970."""
    known = texts.astype(str).to_numpy()
    unique = pd.Series(pd.unique(known[known != ""]))
    if not len(unique):
        return texts
    numbers = pd.to_numeric(unique, errors="coerce")
    seconds = numbers.where(numbers < 1e11, numbers / 1e3)
    epoch = seconds.between(1e8, _LAST_SECOND)
    moments = pd.to_datetime(unique.mask(epoch), format="ISO8601", errors="coerce", utc=True)
    moments = moments.mask(epoch, pd.to_datetime(seconds.where(epoch), unit="s", errors="coerce", utc=True))
    if moments.isna().any():
        text = str(unique[moments.isna()].iloc[0])
        row = int(np.flatnonzero(known == text)[0])
        raise NodeprintError(
            f"{printable(repr(text), 40)} is no time",
            where=source,
            line=int(lines.iloc[row]) or None,
            advice="write times as 2026-11-26T14:00:00, or as seconds since 1970",
        )
    named = dict(zip(unique, moments.dt.strftime("%Y-%m-%dT%H:%M:%SZ"), strict=True)) | {"": ""}
    return texts.astype(str).map(named)


def _without_doubled(figures: ValueTable) -> ValueTable:
    """Return the table without rows that occur twice. If runs have no names, a row may repeat another row of its node
    in every digit. It is a copy if the node has the usual number of runs, more than one, without it. Copies do not
    count."""
    frame, place = figures.frame, ["node", "metric", "job", *figures.parts]
    if (frame["run"] != "").any():
        return figures
    sizes = frame.groupby(place, sort=False, observed=True)["value"].transform("size")
    usual = int(frame.groupby(place, sort=False, observed=True).size().mode().iloc[0])
    again = frame.duplicated([*place, "time", "value"])
    spare = again.groupby([frame[column] for column in place], observed=True).transform("sum")
    copied = again & (sizes - spare == usual) & (usual > 1)
    if not copied.any():
        return figures
    row = frame.index[copied][0]
    line = int(frame["line"].loc[row])
    where = f", the first in line {line}" if line else ""
    more = f" ({int(copied.sum())} such values)" if copied.sum() > 1 else ""
    what = f"a value of {_called(frame, row)} appears twice with the same digits{where}{more}: a copy is not a run"
    return replace(figures, frame=frame[~copied].reset_index(drop=True), notes=(*figures.notes, what))


def _numbered(figures: ValueTable, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with a name for every run: where the table has none, in the order of times or lines."""
    place = ["node", "metric", "job", *figures.parts]
    unnamed = frame["run"] == ""
    if unnamed.any() and not unnamed.all():
        row = frame.index[unnamed][0]
        raise _error(figures, row, "the run has no number, as others have", "number all runs or none")
    twice = frame.duplicated([*place, "run"], keep=False)
    if not twice.any():
        return frame.assign(run="1") if unnamed.all() else frame
    if unnamed.all():
        same = frame.duplicated([*place, "time", "value"], keep="first")
        repeats = frame.duplicated(place, keep="first")
        if same.any() and (same == repeats).all():
            row = frame.index[same][0]
            raise _error(figures, row, f"this value of {_called(frame, row)} appears twice", _DUPLICATE)
        ordered = frame.sort_values("time", kind="stable") if (frame["time"] != "").all() else frame
        run = ordered.groupby(place, sort=False, observed=True).cumcount() + 1
        return frame.assign(run=run.astype(str).reindex(frame.index))
    row = frame.index[frame.duplicated([*place, "run"], keep="first")][0]
    what = f"run {printable(str(frame['run'].at[row]), 20)} of {_called(frame, row)} appears twice"
    raise _error(figures, row, what, _DUPLICATE)


_DUPLICATE = "number the runs in a column `run`, name what else differs in a column, or take one out"


def _called(frame: pd.DataFrame, row: Any) -> str:
    return f"{printable(str(frame['metric'].at[row]), 60)} on {printable(str(frame['node'].at[row]), 60)}"


def _check_places(figures: ValueTable, frame: pd.DataFrame) -> None:
    """See that columns of parts are of parts, and that a metric is of the whole node or of parts of it."""
    for part in figures.parts:
        filled = frame[part] != ""
        mixed = filled.groupby(frame["metric"], observed=True).agg(["all", "any"])
        uncertain = mixed.index[~mixed["all"] & mixed["any"]]
        if len(uncertain):
            row = frame.index[(frame["metric"] == uncertain[0]) & ~filled][0]
            what = f"{_called(frame, row)} has no {printable(part, 40)}, as others of it have"
            raise _error(figures, row, what, "call what is of the whole node and what is of a part by two names")
        values = pd.unique(frame[part])
        if len(values) > MOST_PLACES:
            what = f"the column {printable(part, 40)} has {len(values)} values"
            advice = "take it out unless it names a part of a node, as a GPU or link"
            raise _error(figures, frame.index[0], what, advice)
        fraction = next(filter(_FRACTION.fullmatch, values), None)
        if fraction is not None:
            row = frame.index[frame[part] == fraction][0]
            what = f"{printable(fraction, 30)} in the column {printable(part, 40)} is no part of a node"
            raise _error(figures, row, what, "take the column out, or call its figures a metric")
        of_node = frame.groupby("node", observed=True)[part].nunique()
        if len(of_node) > 1 and of_node.max() > 1 and frame.groupby(part, observed=True)["node"].nunique().max() == 1:
            what = f"no two nodes have a value of the column {printable(part, 40)} in common"
            advice = "take it out, or give the parts of all nodes the same names"
            raise _error(figures, frame.index[0], what, advice)
        if len(of_node) > 1 and of_node.max() == 1 and len(values) > 1:
            row = frame.index[frame[part] != frame[part].iloc[0]][0]
            what = f"the column {printable(part, 40)} has one value a node, and not the same on all"
            raise _error(figures, row, what, "call it `group` if it says which nodes are alike, or take it out")


def _check_magnitudes(figures: ValueTable, frame: pd.DataFrame) -> None:
    """See that no figure is so many times another at the same place that only units explain it."""
    of_place = frame.groupby(["metric", *figures.parts], sort=False, observed=True)["value"]
    extent = of_place.agg(["idxmin", "idxmax"])
    low, high = (frame["value"].loc[extent[side]].to_numpy() for side in ("idxmin", "idxmax"))
    wide = np.flatnonzero(high / _MIXED > low)
    if len(wide):
        least, most = (int(extent[side].iloc[wide[0]]) for side in ("idxmin", "idxmax"))
        what = (
            f"{frame['value'].at[most]:g} of {_called(frame, most)} is {high[wide[0]] / low[wide[0]]:.4g} times "
            f"{frame['value'].at[least]:g} of {printable(str(frame['node'].at[least]), 60)}"
        )
        raise _error(figures, most, what, "see whether both have one unit; take out what is no result")
