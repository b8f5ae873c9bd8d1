"""Which column of a table is what, by its name: one row a figure (long), or a column a metric (wide)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodeprint.errors import NodeprintError, nearest, printable
from nodeprint.machine import fingerprint
from nodeprint.readers import units

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
))  # fmt: skip
_FIELDS = frozenset(known.name for known in fingerprint.FIELDS if known.name not in _PARTS)
#: A column of a wide table that has a run of the only metric.
_RUN = re.compile(r"(?:run|rep|repetition|iteration|iter|trial|sample)_?0*([1-9]\d*)")
#: A metric of a wide table with its unit: `triad (MB/s)`, `triad [MB/s]`.
_WITH_UNIT = re.compile(r"(.*\S)\s*[(\[]([^()\[\]]{1,20})[)\]]\s*")


#: What is behind the name of a run, job or part that is a number.
_NUMBER = re.compile(r"_(?:id|no|nr|num|number|index|idx)$")
#: Columns for people, which say nothing that can be compared.
_REMARKS = frozenset(("comment", "comments", "note", "notes", "remark", "remarks", "description", "ticket"))
#: Words in the name of a column that says how a node was set up or used, and nothing of how fast it is.
_SETTINGS = frozenset((
    "driver", "firmware", "fw", "vbios", "bios", "microcode", "version", "governor", "threads", "ranks", "temp",
    "temperature",
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


def columns_named(names: Sequence[str], where: str, line: int, *, figures: bool = True) -> Columns:
    """The meaning of the columns of a table with `figures`, or of a table of nodes.

    Raises NodeprintError naming the column that is missing or there twice.
    """
    named: dict[str, int] = {}
    others: dict[str, int] = {}
    for place, name in enumerate(names):
        if plain(name) in _REMARKS:
            continue
        kind = _kind(name)
        key = kind if kind is not None else name.strip()
        taken = named if kind is not None else others
        if not key:
            advice = "name every column, or take it out"
            raise NodeprintError("a column has no name", where=where, line=line, column=place + 1, advice=advice)
        if key in taken:
            what = (
                f"{printable(name, 40)} is the second column of the {key}"
                if kind
                else f"{printable(key, 40)} appears twice"
            )
            raise NodeprintError(what, where=where, line=line, column=place + 1, advice="keep one of the two")
        taken[key] = place
    if "node" not in named:
        listed = ", ".join(printable(name.strip(), 30) for name in names[:8])
        advice = nearest("node", map(plain, names)) or "call the column with the names of the nodes `node`"
        raise NodeprintError(f"no column of nodes among {listed}", where=where, line=line, column=1, advice=advice)
    if not figures:
        return Columns(named, {}, {})
    fields = {plain(name): place for name, place in others.items() if plain(name) in _FIELDS}
    rest = {name: place for name, place in others.items() if plain(name) not in _FIELDS}
    if "metric" in named:
        if "value" not in named:
            advice = "call the column with the figures `value`"
            raise NodeprintError("has a column of metrics and none of values", where=where, line=line, advice=advice)
        return Columns(named, rest, fields)
    parts = {name: place for name, place in rest.items() if is_part(name)}
    metrics = {}
    for name, place in rest.items():
        if name not in parts:
            with_unit = _WITH_UNIT.fullmatch(name)
            metrics[with_unit[1] if with_unit else name] = (place, with_unit[2] if with_unit else _unit_behind(name))
    if "value" in named:
        parts |= {name: place for name, place in rest.items() if name not in parts}
        metrics = {"value": (named["value"], "")}
    if not metrics:
        advice = "name metric and value columns, or give a column a metric"
        raise NodeprintError("no column of figures", where=where, line=line, advice=advice)
    return Columns(named, parts, fields, metrics)


def sources(names: Sequence[str], known: Columns) -> dict[str, str]:
    """By axis of the values the words for the column that states it."""
    columns = {axis: place for axis, place in known.named.items() if axis in ("node", "run", "job")} | {**known.parts}
    return {axis: f"the column `{names[place].strip()}`" for axis, place in columns.items()}


def _kind(name: str) -> str | None:
    """The kind of a column, one of NAMES; None if its name is none of these."""
    kind = next((kind for kind, known in NAMES.items() if plain(name) in known), None)
    numbered = next((kind for kind in ("job", "run") if _without_number(name) in NAMES[kind]), None)
    return kind or numbered


def is_part(name: str) -> bool:
    """Whether a column has the name of a part of a node, or of its number, as `gpu_id`."""
    return plain(name) in _PARTS or _without_number(name) in _PARTS


def _without_number(name: str) -> str:
    return _NUMBER.sub("", plain(name))


def run_of(name: str) -> str:
    """The number of the run that a column is called after, as `run2`; empty where it is called otherwise."""
    found = _RUN.fullmatch(plain(name))
    return found[1] if found else ""


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
