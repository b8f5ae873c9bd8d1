"""One line of a record file: what it may hold, and the sentence for one that holds anything else (docs/formats.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from nodeprint.errors import NodeprintError, printable

SCHEMA = 1

#: Columns of a pair that are integers and must be there.
PAIR_KEYS = ("a", "b", "home", "pass")
#: Columns of a pair in ns; `latency_ns` must be there, positive and finite, the others may be absent or null.
PAIR_VALUES = ("latency_ns", "ci_low_ns", "ci_high_ns", "min_ns", "median_ns", "p99_ns", "line_sd_ns")
#: What else a pair may have: the clocks of both cores just before it.
PAIR_CLOCKS = ("clock_a_ghz", "clock_b_ghz")
#: Flags of a pair and their bit in the packed mask.
FLAGS: Mapping[str, int] = {"mixed_lines": 1, "disturbed": 2, "moved": 4, "oversubscribed": 8}

#: Records beside the pairs: what else was seen while they were measured (docs/formats.md).
COMPANIONS = frozenset({"sentinel", "second", "again", "census", "clusters", "offset", "load_second"})

_HEADER_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "schema": int,
    "kernel": str,
    "operation": str,
    "quantity": str,
    "unit": str,
    "host": str,
    "job": int,
    "run": int,
    "cpus": list,
}


def record(where: str, number: int, line: bytes) -> dict[str, Any]:
    """The JSON object of a line; its kind is not checked yet. Raises NodeprintError naming file and line."""
    try:
        record = msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:  # also what is no UTF-8
        raise malformed(where, number, "not a JSON record") from error
    if not isinstance(record, dict):
        raise malformed(where, number, "not a JSON object")
    for key, value in record.items():
        # a seed may have 64 bits; all else is counted in arrays of int64
        if _is_beyond(value, 2**64 if key == "seed" else 2**63):
            raise malformed(where, number, f"{printable(repr(key), 40)} has a whole number beyond 64 bits")
    return record


def _is_beyond(value: Any, limit: int) -> bool:
    """Whether a value, or one inside of it, is a whole number beyond a limit."""
    if isinstance(value, int):
        return not -limit <= value < limit
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_is_beyond(item, limit) for item in inner)


def kind_of(where: str, number: int, record: dict[str, Any], cells: Any) -> str:
    """What a record inside of a segment is, checked; `cells` is the header's key."""
    kind = record.get("record")
    if kind == "pair":
        _check_pair(where, number, record)
    elif kind == "cell":
        _check_cell(where, number, record, cells)
    elif kind in COMPANIONS:
        return "companion"
    elif kind != "pass":
        raise malformed(where, number, f"unknown record {printable(repr(kind), 40)}")
    return str(kind)


def malformed(where: str, line: int, what: str) -> NodeprintError:
    """The error for a line that no kernel writes: `what` is wrong with it."""
    return NodeprintError(what, where=where, line=line, advice="set the file aside and measure the node again")


def checked_header(where: str, line: int, record: dict[str, Any]) -> dict[str, Any]:
    """A header that has the keys and CPUs that every reader needs. Raises NodeprintError naming file, line and key."""
    for key, kind in _HEADER_KEYS.items():
        value = record.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise malformed(where, line, f"header key {key!r} is missing or of the wrong type")
    if record["schema"] != SCHEMA:
        raise NodeprintError(
            f"schema version {record['schema']}, this nodeprint reads {SCHEMA}",
            where=where,
            line=line,
            advice="use the nodeprint that wrote it",
        )
    if not all(isinstance(cpu, int) and cpu >= 0 for cpu in record["cpus"]):
        raise malformed(where, line, "header key 'cpus' is not a list of CPU numbers")
    if "cells" in record:
        _check_cells_key(where, line, record["cells"])
    if record.get("applicable") is False and not isinstance(record.get("reason"), str):
        raise malformed(where, line, "header key 'reason' is missing, though it is not applicable")
    return record


def _check_cells_key(where: str, line: int, cells: object) -> None:
    dims = cells.get("dims") if isinstance(cells, dict) else None
    values = cells.get("values") if isinstance(cells, dict) else None
    if (
        not isinstance(dims, list)
        or not isinstance(values, dict)
        or not all(isinstance(name, str) for name in [*dims, *values, *values.values()])
        or len({*dims, *values} - {"run", "pass", "flags", "record"}) != len(dims) + len(values)
    ):
        raise malformed(where, line, "header key 'cells' does not name dims and the units of values")


def _check_pair(where: str, line: int, record: dict[str, Any]) -> None:
    for key in PAIR_KEYS:
        if type(record.get(key)) is not int:
            raise malformed(where, line, f"pair key {key!r} is not a whole number")
    for key in (*PAIR_VALUES, *PAIR_CLOCKS):
        value = record.get(key)
        if value is None and key != "latency_ns":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise malformed(where, line, f"pair key {key!r} is not a number")
        if not math.isfinite(value):
            raise malformed(where, line, f"pair key {key!r} is not finite")
    if record["latency_ns"] <= 0:
        raise malformed(where, line, "latency_ns is not positive")
    flags = record.get("flags", [])
    if not isinstance(flags, list) or not all(flag in FLAGS for flag in flags):
        raise malformed(where, line, f"unknown flag in {printable(str(flags), 60)}")


def _check_cell(where: str, line: int, record: dict[str, Any], cells: Any) -> None:
    if cells is None:
        raise malformed(where, line, "a cell, but the header has no key 'cells'")
    if type(record.get("pass")) is not int:
        raise malformed(where, line, "cell key 'pass' is not a whole number")
    for key in cells["dims"]:
        if type(record.get(key)) not in (int, str):
            raise malformed(where, line, f"cell key {printable(repr(key), 40)} is neither a whole number nor a word")
    for key in cells["values"]:
        value = record.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise malformed(where, line, f"cell key {printable(repr(key), 40)} is not a finite number")
    flags = record.get("flags", [])
    if not isinstance(flags, list) or not all(flag in FLAGS for flag in flags):
        raise malformed(where, line, f"unknown flag in {printable(str(flags), 60)}")
