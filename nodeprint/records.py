"""Record files of the kernels: JSON Lines with headers, passes, pairs or cells, and a trailer (docs/formats.md)."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.errors import NodeprintError, printable, unreadable

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
COMPANIONS = frozenset({"sentinel", "second", "again", "census", "offset"})

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


@dataclass(frozen=True)
class Records:
    """One record file.

    `pairs` and `cells` are columns of equal length (int64 keys and flags, float64 values, NaN where absent); a file has
    the one or the other. The columns of `cells` are `pass`, the header's dims (int64, or str where a dim is a word),
    its values and `flags`.
    """

    path: Path
    headers: tuple[dict[str, Any], ...]
    passes: tuple[dict[str, Any], ...]
    pairs: Mapping[str, npt.NDArray[Any]]
    cells: Mapping[str, npt.NDArray[Any]]
    trailer: dict[str, Any] | None
    notes: tuple[str, ...]
    companions: tuple[dict[str, Any], ...] = ()

    @property
    def header(self) -> dict[str, Any]:
        """The first segment's header."""
        return self.headers[0]

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of a cell's coordinates; empty where the file has pairs."""
        return tuple(self.header["cells"]["dims"]) if "cells" in self.header else ()

    @property
    def units(self) -> dict[str, str]:
        """The values of a cell and their units; empty where the file has pairs."""
        return dict(self.header["cells"]["values"]) if "cells" in self.header else {}

    @property
    def not_applicable(self) -> str | None:
        """Why there is nothing to measure on this node; None where there is."""
        return str(self.header["reason"]) if self.header.get("applicable") is False else None

    @property
    def complete(self) -> bool:
        """Whether the file ends with a trailer that says so."""
        return self.trailer is not None and self.trailer.get("complete") is True


def read(path: Path, called: str = "") -> Records:
    """Read a record file, plain or compressed; notes and errors name it as it is `called`, by its path if nothing is.

    A last line without its newline is dropped with a note, as the writer was stopped there.
    Raises NodeprintError, with the line, on anything else that is not a record of nodeprint.
    """
    headers: list[dict[str, Any]] = []
    passes: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    cells: list[dict[str, Any]] = []
    companions: list[dict[str, Any]] = []
    notes: list[str] = []
    trailer: dict[str, Any] | None = None
    where = called or str(path)
    for number, record in _records(path, where, notes):
        kind = record.get("record")
        if not headers and kind != "header":
            raise _malformed(where, number, "the first record is not a header")
        if trailer is not None and kind != "header":
            raise _malformed(where, number, "records follow the trailer")
        if kind == "header":
            headers.append(_checked_header(where, number, record))
            trailer = None
        elif kind == "pass":
            passes.append(record)
        elif kind == "pair":
            pairs.append(_checked_pair(where, number, record))
        elif kind == "cell":
            cells.append(_checked_cell(where, number, record, headers[0].get("cells")))
        elif kind == "trailer":
            trailer = record
        elif kind in COMPANIONS:
            companions.append(record)
        else:
            raise _malformed(where, number, f"unknown record {printable(repr(kind), 40)}")
    if not headers:
        raise _malformed(where, 1, "not a single complete record")
    columns = _cell_columns(cells, headers[0]["cells"]) if "cells" in headers[0] else {}
    return Records(
        path, tuple(headers), tuple(passes), _columns(pairs), columns, trailer, tuple(notes), tuple(companions)
    )


def _malformed(where: str, line: int, what: str) -> NodeprintError:
    return NodeprintError(what, where=where, line=line, advice="set the file aside and measure the node again")


def _records(path: Path, where: str, notes: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = _content(path, where, notes).split(b"\n")
    if lines[-1]:
        notes.append(f"{where}, line {len(lines)}: cut in the middle, the line was dropped")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record = _DECODER.decode(line.decode())
        except (ValueError, RecursionError) as error:
            raise _malformed(where, number, "not a JSON record") from error
        if not isinstance(record, dict):
            raise _malformed(where, number, "not a JSON object")
        yield number, record


def _no_constant(name: str) -> float:
    raise ValueError(name)


#: One for all lines: `json.loads` with options makes a new one each time, which takes longer than the line.
_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _content(path: Path, where: str, notes: list[str]) -> bytes:
    """All that can be read; a compressed file that is cut gives what came before the cut."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise unreadable(where, error) from error
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return gzip.decompress(raw)
    except EOFError:
        notes.append(f"{where}: the compressed file is cut")
        stream = zlib.decompressobj(wbits=31)
        return stream.decompress(raw)
    except (OSError, zlib.error) as error:
        raise NodeprintError(
            "the compressed file is garbled",
            where=where,
            advice="set the file aside and measure the node again",
        ) from error


def _checked_header(where: str, line: int, record: dict[str, Any]) -> dict[str, Any]:
    for key, kind in _HEADER_KEYS.items():
        value = record.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _malformed(where, line, f"header key {key!r} is missing or of the wrong type")
    if record["schema"] != SCHEMA:
        raise NodeprintError(
            f"schema version {record['schema']}, this nodeprint reads {SCHEMA}",
            where=where,
            line=line,
            advice="use the nodeprint that wrote it",
        )
    if not all(isinstance(cpu, int) and cpu >= 0 for cpu in record["cpus"]):
        raise _malformed(where, line, "header key 'cpus' is not a list of CPU numbers")
    if "cells" in record:
        _check_cells_key(where, line, record["cells"])
    if record.get("applicable") is False and not isinstance(record.get("reason"), str):
        raise _malformed(where, line, "header key 'reason' is missing, though it is not applicable")
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
        raise _malformed(where, line, "header key 'cells' does not name dims and the units of values")


def _checked_pair(where: str, line: int, record: dict[str, Any]) -> dict[str, Any]:
    for key in PAIR_KEYS:
        if type(record.get(key)) is not int:
            raise _malformed(where, line, f"pair key {key!r} is not a whole number")
    for key in (*PAIR_VALUES, *PAIR_CLOCKS):
        value = record.get(key)
        if value is None and key != "latency_ns":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _malformed(where, line, f"pair key {key!r} is not a number")
        if not math.isfinite(value):
            raise _malformed(where, line, f"pair key {key!r} is not finite")
    if record["latency_ns"] <= 0:
        raise _malformed(where, line, "latency_ns is not positive")
    flags = record.get("flags", [])
    if not isinstance(flags, list) or not all(flag in FLAGS for flag in flags):
        raise _malformed(where, line, f"unknown flag in {printable(str(flags), 60)}")
    return record


def _checked_cell(where: str, line: int, record: dict[str, Any], cells: Any) -> dict[str, Any]:
    if cells is None:
        raise _malformed(where, line, "a cell, but the header has no key 'cells'")
    if type(record.get("pass")) is not int:
        raise _malformed(where, line, "cell key 'pass' is not a whole number")
    for key in cells["dims"]:
        if type(record.get(key)) not in (int, str):
            raise _malformed(where, line, f"cell key {printable(repr(key), 40)} is neither a whole number nor a word")
    for key in cells["values"]:
        value = record.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise _malformed(where, line, f"cell key {printable(repr(key), 40)} is not a finite number")
    flags = record.get("flags", [])
    if not isinstance(flags, list) or not all(flag in FLAGS for flag in flags):
        raise _malformed(where, line, f"unknown flag in {printable(str(flags), 60)}")
    return record


def _cell_columns(records: list[dict[str, Any]], cells: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {}
    for key in ("pass", *cells["dims"]):
        found = [record[key] for record in records]
        words = any(isinstance(value, str) for value in found)
        columns[key] = np.array([str(value) for value in found]) if words else np.array(found, dtype=np.int64)
    for key in cells["values"]:
        values = [record.get(key) for record in records]
        columns[key] = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    columns["flags"] = _flag_column(records)
    return columns


def _flag_column(records: list[dict[str, Any]]) -> npt.NDArray[np.int64]:
    return np.array([sum(FLAGS[flag] for flag in set(record.get("flags", []))) for record in records], dtype=np.int64)


def _columns(pairs: list[dict[str, Any]]) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {
        key: np.array([pair[key] for pair in pairs], dtype=np.int64) for key in PAIR_KEYS
    }
    for key in (*PAIR_VALUES, *PAIR_CLOCKS):
        values = [pair.get(key) for pair in pairs]
        columns[key] = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    columns["flags"] = _flag_column(pairs)
    return columns
