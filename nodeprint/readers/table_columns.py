"""Which column of a table is what, by its name: one row a figure (long), or a column a metric (wide)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from nodeprint.errors import NodeprintError, nearest, printable
from nodeprint.machine import fingerprint
from nodeprint.readers import table_statistics, units
from nodeprint.readers.table_statistics import Statistic

#: By what a column is the names that it may have; the first is the one that documents use.
NAMES: Mapping[str, Sequence[str]] = {
    "node": ("node", "host", "hostname", "nodename", "node_name", "host_name", "nodelist", "machine", "server"),
    "job": ("job", "jobid", "job_id", "slurm_job_id", "session"),
    "run": ("run", "iteration", "iter", "repetition", "rep", "repeat", "trial", "attempt", "sample"),
    "metric": ("metric", "benchmark", "measurement", "test", "perf_var", "pvar"),
    "value": ("value", "result", "figure", "val", "perf_value"),
    "unit": ("unit", "units", "perf_unit"),
    "time": ("time", "timestamp", "date", "datetime", "started", "start_time", "measured_at", "completion_time"),
    "group": ("group", "fingerprint", "configuration", "node_type", "instance_type", "processor"),
}
#: Columns of a wide table that say which part of a node a row is of; in a long one every other column does.
_PARTS = frozenset((
    "socket", "numa", "numa_node", "ccd", "ccx", "core", "cpu", "thread", "gpu", "device", "link", "nic", "hca", "port",
    "rail", "rank", "channel", "dimm", "disk", "direction", "bytes", "size", "message_bytes", "message_size",
    "src", "dst", "source", "destination", "from", "to", "peer",
))  # fmt: skip
_FIELDS = frozenset(known.name for known in fingerprint.FIELDS if known.name not in _PARTS)
#: A metric of a wide table with its unit: `triad (MB/s)`, `triad [MB/s]`.
_WITH_UNIT = re.compile(r"(.*\S)\s*[(\[]([^()\[\]]{1,20})[)\]]\s*")


#: What is behind the name of a run, job or part that is a number.
_NUMBER = re.compile(r"_(?:id|no|nr|num|number|index|idx)$")
#: Columns for people, which say nothing that can be compared.
_REMARKS = frozenset(("comment", "comments", "note", "notes", "remark", "remarks", "description", "ticket"))
#: Words in the name of a column that says how a node was set up or used, and nothing of how fast it is.
_SETTINGS = frozenset((
    "driver", "firmware", "fw", "vbios", "bios", "microcode", "version", "governor", "threads", "ranks", "temp",
    "temperature", "model", "sku", "platform", "arch", "architecture", "compiler", "vendor",
))  # fmt: skip
#: Whole names of such columns, which are words of metrics, too.
_SETTING_NAMES = frozenset((
    "rack", "row", "chassis", "cabinet", "slot", "enclosure", "switch", "nodes", "tasks", "ntasks", "procs",
    "processes", "cores", "cpus", "sockets", "gpus", "year", "month", "week", "weekday", "day", "hour", "cuda", "rocm",
    "ucx", "ofed", "gcc", "glibc", "nccl", "openmpi", "os",
))  # fmt: skip
#: The last word in the name of a column that tells things apart, and says nothing that can be compared.
_IDENTITIES = frozenset((
    "id", "uuid", "guid", "serial", "seed", "pid", "uid", "gid", "commit", "revision", "rev", "checksum", "asset",
))  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """The indexes of a table's columns: by kind (`node`, `value`, ...), by component name and by field of the
    fingerprint.

    For a wide table also by metric, with the unit in its name.
    """

    named: Mapping[str, int]
    parts: Mapping[str, int]
    fields: Mapping[str, int]
    metrics: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def is_wide(self) -> bool:
        """Whether every metric has a column."""
        return bool(self.metrics)


def has_node(names: Sequence[str]) -> bool:
    """Whether a line of names has a column of nodes."""
    return any(plain(name) in NAMES["node"] for name in names)


def columns_named(
    names: Sequence[str | None], where: str, line: int, *, figures: bool = True, is_wide: bool = False
) -> Columns:
    """The meaning of the columns of a table with `figures`, or of a table of nodes; a name None is left out.

    If it `is_wide`, its column `value` is one of several metrics. Raises NodeprintError naming the column that is
    missing or there twice.
    """
    named: dict[str, int] = {}
    others: dict[str, int] = {}
    for place, name in enumerate(names):
        if name is None or plain(name) in _REMARKS:
            continue
        of_name = kind(name)
        key = of_name if of_name is not None else name.strip()
        taken = named if of_name is not None else others
        if not key:
            advice = "name every column, or take it out"
            raise NodeprintError("a column has no name", where=where, line=line, column=place + 1, advice=advice)
        if key in taken:
            what = (
                f"{printable(name, 40)} is the second column of the {key}"
                if of_name
                else f"{printable(key, 40)} appears twice"
            )
            raise NodeprintError(what, where=where, line=line, column=place + 1, advice="keep one of the two")
        taken[key] = place
    if "node" not in named:
        given = [name for name in names if name is not None]
        listed = ", ".join(printable(name.strip(), 30) for name in given[:8])
        advice = nearest("node", map(plain, given)) or "call the column with the names of the nodes `node`"
        raise NodeprintError(f"no column of nodes among {listed}", where=where, line=line, column=1, advice=advice)
    if not figures:
        return Columns(named, {}, {})
    fields = {plain(name): place for name, place in others.items() if plain(name) in _FIELDS}
    rest = {name: place for name, place in others.items() if plain(name) not in _FIELDS}
    if "metric" in named:
        if "value" not in named and (center := _center(rest, where, line)):
            named["value"] = rest.pop(center)
        if "value" not in named:
            advice = "call the column with the figures `value`"
            raise NodeprintError("has a column of metrics and none of values", where=where, line=line, advice=advice)
        return Columns(named, rest, fields)
    parts = {name: place for name, place in rest.items() if is_part(name)}
    if "value" in named and not is_wide:
        return Columns(named, rest, fields, {"value": (named["value"], "")})
    metrics = {"value": (named["value"], "")} if "value" in named else {}
    metrics |= _metrics({name: place for name, place in rest.items() if name not in parts}, where, line)
    if not metrics:
        advice = "name metric and value columns, or give a column a metric"
        raise NodeprintError("no column of figures", where=where, line=line, advice=advice)
    return Columns(named, parts, fields, metrics)


def sources(names: Sequence[str | None], known: Columns, given: int) -> dict[str, str]:
    """By axis of the values the words for the column that states it. The first `given` columns are the table's; runs as
    columns are in another one."""
    columns = {axis: place for axis, place in known.named.items() if axis in ("node", "run", "job")} | {**known.parts}
    of_names = {axis: "the names of columns" for axis, place in columns.items() if place >= given}
    return {axis: f"the column `{str(names[place]).strip()}`" for axis, place in columns.items()} | of_names


def _center(names: Mapping[str, int], where: str, line: int) -> str:
    """The column of a long table that has the median, mean or only extreme of each row's metric; empty if none has."""
    statistics = [name for name in names if table_statistics.of_row(name) is not Statistic.VALUE]
    if all(table_statistics.of_row(name) >= Statistic.SPREAD for name in statistics):
        return ""
    left_out = table_statistics.chosen(statistics, where, line).dropped
    return next(name for name in statistics if name not in left_out)


def _metrics(columns: Mapping[str, int], where: str, line: int) -> dict[str, tuple[int, str]]:
    """The metrics of columns with their units. Brackets hold no unit if columns differ in them alone."""
    of_statistics = {found[1] for name in columns if (found := _WITH_UNIT.fullmatch(name)) and _is_of_statistic(found)}
    split = {name: _split(name, of_statistics) for name in columns}
    out: dict[str, tuple[int, str]] = {}
    for name, place in columns.items():
        metric, unit = split[name]
        again = [other for other in split.values() if other[0] == metric]
        if len(again) > 1 and all(units.known(other) is None for _, other in again):
            metric, unit = name, ""
        if metric in out:
            what = f"{printable(metric, 40)} appears twice"
            raise NodeprintError(what, where=where, line=line, column=place + 1, advice="keep one of the two")
        out[metric] = (place, unit)
    return out


def _split(name: str, of_statistics: Collection[str]) -> tuple[str, str]:
    """The metric and the unit of a column's name. A minimum is no minute among `of_statistics`, names of metrics whose
    statistics are in brackets."""
    found = _WITH_UNIT.fullmatch(name)
    if found is None:
        return name, _unit_behind(name)
    is_minimum = found[2].strip().lower() == "min" and found[1] in of_statistics
    return (name, "") if is_minimum or _is_of_statistic(found) else (found[1], found[2])


def _is_of_statistic(found: re.Match[str]) -> bool:
    """Whether a name with brackets is a statistic of a metric, as `triad (sd)` and `mean(triad)`."""
    return units.known(found[2]) is None and any(map(table_statistics.is_statistic, found.groups()))


def kind(name: str) -> str | None:
    """The kind of a column, one of NAMES; None if its name is none of these."""
    found = next((kind for kind, known in NAMES.items() if plain(name) in known), None)
    numbered = next((kind for kind in ("job", "run") if _without_number(name) in NAMES[kind]), None)
    return found or numbered


def may_be_figure(name: str) -> bool:
    """Whether a column of a wide table may have values by its name."""
    others = kind(name) is not None or plain(name) in _REMARKS or plain(name) in _FIELDS or is_part(name)
    metric, unit = _split(name, ())
    return not (others or is_setting(metric, unit) or is_identity(metric, unit))


def is_part(name: str) -> bool:
    """Whether a column has the name of a part of a node, or of its number, as `gpu_id`."""
    return plain(name) in _PARTS or _without_number(name) in _PARTS


def _without_number(name: str) -> str:
    return _NUMBER.sub("", plain(name))


def _unit_behind(name: str) -> str:
    """The unit at the end of a metric's name, as of `latency_ns`; empty where there is none. A minimum is no minute."""
    _, mark, unit = name.strip().rpartition("_")
    return unit if mark and unit.lower() != "min" and units.known(unit) is not None else ""


def is_setting(name: str, unit: str) -> bool:
    """Whether a column is a setting by its name, and has no unit of a rate or time."""
    words = plain(name) in _SETTING_NAMES or _SETTINGS.intersection(plain(name).split("_"))
    return bool(words) and units.better(name, unit) is None


def is_identity(name: str, unit: str = "") -> bool:
    """Whether a column tells things apart by its name, as a serial number or seed, and has no unit of a figure."""
    return plain(name).rpartition("_")[2] in _IDENTITIES and not is_part(name) and units.better(name, unit) is None


def plain(name: str) -> str:
    """A name without what spelling adds to it: `Node Name` is node_name."""
    return re.sub(r"[\s-]+", "_", name.strip().lower().lstrip("#@").strip())
