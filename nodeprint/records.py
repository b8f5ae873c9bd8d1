"""Record files of the kernels: JSON Lines with headers, passes, pairs or cells, and a trailer (docs/formats.md)."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
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
COMPANIONS = frozenset({"sentinel", "second", "again", "census", "clusters", "offset"})

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


def read(path: Path, called: str = "", raw: bytes | None = None) -> Records:
    """Read a record file, plain or compressed; notes and errors name it as it is `called`, by its path if nothing is.

    `raw` is what it holds, where that was read before. A last line without its newline is dropped with a note, as the
    writer was stopped there.
    Raises NodeprintError, with the line, on anything else that is not a record of nodeprint.
    """
    notes: list[str] = []
    where = called or str(path)
    lines = _lines(path, where, notes, raw)
    usual = [line for line in lines if line.startswith(_QUICK)]
    rest = [(number, line) for number, line in enumerate(lines, start=1) if not line.startswith(_QUICK)]
    quick = _columns_at_once(usual, rest)
    if quick is not None:
        return _assembled(path, where, notes, rest, quick)
    # an unusual or a garbled file, line by line, which says the line
    return _assembled(path, where, notes, list(enumerate(lines, start=1)), {})


class _Detailed(msgspec.Struct, tag_field="record", tag="pair", gc=False):
    a: int
    b: int
    home: int
    number: int = msgspec.field(name="pass")
    line_ns: list[float] = []
    clock_a_ghz: float | None = None
    clock_b_ghz: float | None = None
    flags: list[str] = []


_DETAILED = msgspec.json.Decoder(_Detailed)


@dataclass(frozen=True)
class Detail:
    """The lines of a record file of pairs with `--detail`: of each pair that has them and no flag `a`, `b`, `home` and
    `pass` (int64), `ns` of its first lines (p, l) and `ghz` of both CPUs (p, 2). `headers`, `passes` and `companions`
    are as in Records."""

    headers: tuple[dict[str, Any], ...]
    passes: tuple[dict[str, Any], ...]
    companions: tuple[dict[str, Any], ...]
    columns: Mapping[str, npt.NDArray[np.int64]]
    ns: npt.NDArray[np.float64]
    ghz: npt.NDArray[np.float64]
    complete: bool


def read_detail(path: Path, called: str = "", raw: bytes | None = None) -> Detail:
    """Read the values of lines in a record file, without what else it says of pairs; `raw` as for `read`.

    Raises NodeprintError as `read` does, and where a pair has other lines than numbers.
    """
    where = called or str(path)
    lines = _lines(path, where, [], raw)
    usual = [line for line in lines if line.startswith(_QUICK)]
    try:
        found = _DETAILED.decode_lines(b"\n".join(usual)) if usual else []
        rest = [msgspec.json.decode(line) for line in lines if not line.startswith(_QUICK)]
        good = [pair for pair in found if pair.line_ns and not pair.flags]
        count = min((len(pair.line_ns) for pair in good), default=0)
        ns = np.array([pair.line_ns[:count] for pair in good], dtype=np.float64).reshape(len(good), count)
        if not np.isfinite(ns).all() or any(not isinstance(record, dict) for record in rest):
            raise ValueError
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        read(path, called, raw)  # which says the line, where it cannot be read at all
        advice = "measure it again with --detail"
        raise NodeprintError("the values of lines (line_ns) are not as expected", where=where, advice=advice) from error
    kinds: dict[str, list[dict[str, Any]]] = {}
    for record in rest:
        kinds.setdefault(str(record.get("record")), []).append(record)
    if "header" not in kinds:
        read(path, called, raw)
        raise NodeprintError("has no header", where=where)
    names = {"a": "a", "b": "b", "home": "home", "pass": "number"}
    columns = {key: np.array(list(map(attrgetter(name), good)), dtype=np.int64) for key, name in names.items()}
    clocks = [np.array(list(map(attrgetter(name), good)), dtype=np.float64) for name in PAIR_CLOCKS]  # None becomes NaN
    trailer = kinds.get("trailer", [{}])[-1]
    return Detail(
        tuple(kinds["header"]), tuple(kinds.get("pass", ())),
        tuple(record for kind in sorted(COMPANIONS) for record in kinds.get(kind, ())), columns, ns,
        np.stack(clocks, axis=1), trailer.get("complete") is True,
    )  # fmt: skip


def _assembled(
    path: Path, where: str, notes: Sequence[str], lines: Sequence[tuple[int, bytes]],
    quick: Mapping[str, dict[str, npt.NDArray[Any]]],
) -> Records:  # fmt: skip
    """The records in numbered `lines`, and the columns of pairs or cells that are known already (`quick`)."""
    headers: list[dict[str, Any]] = []
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in ("pass", "pair", "cell", "companion")}
    trailer: dict[str, Any] | None = None
    for number, line in lines:
        record = _record(where, number, line)
        kind = record.get("record")
        if not headers and kind != "header":
            raise _malformed(where, number, "the first record is not a header")
        if trailer is not None and kind != "header":
            raise _malformed(where, number, "records follow the trailer")
        if kind == "header":
            headers.append(_checked_header(where, number, record))
            trailer = None
        elif kind == "trailer":
            trailer = record
        else:
            found[_kind(where, number, record, headers[0].get("cells"))].append(record)
    if not headers:
        raise _malformed(where, 1, "not a single complete record")
    pairs, cells = quick.get("pair") or _columns(found["pair"]), quick.get("cell") or {}
    if "cells" in headers[0] and not cells:
        cells = _cell_columns(found["cell"], headers[0]["cells"])
    return Records(
        path, tuple(headers), tuple(found["pass"]), pairs, cells, trailer, tuple(notes), tuple(found["companion"])
    )


def _kind(where: str, number: int, record: dict[str, Any], cells: Any) -> str:
    """What a record inside of a segment is, checked; `cells` is the header's key."""
    kind = record.get("record")
    if kind == "pair":
        _check_pair(where, number, record)
    elif kind == "cell":
        _check_cell(where, number, record, cells)
    elif kind in COMPANIONS:
        return "companion"
    elif kind != "pass":
        raise _malformed(where, number, f"unknown record {printable(repr(kind), 40)}")
    return str(kind)


def _malformed(where: str, line: int, what: str) -> NodeprintError:
    return NodeprintError(what, where=where, line=line, advice="set the file aside and measure the node again")


def _lines(path: Path, where: str, notes: list[str], raw: bytes | None) -> list[bytes]:
    *lines, last = _plain(_content(path, where) if raw is None else raw, where, notes).split(b"\n")
    if last:
        notes.append(f"{where}, line {len(lines) + 1}: cut in the middle, the line was dropped")
    return lines


def _record(where: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:  # also what is no UTF-8
        raise _malformed(where, number, "not a JSON record") from error
    if not isinstance(record, dict):
        raise _malformed(where, number, "not a JSON object")
    return record


#: How the line of a pair or a cell begins, as kernels and as Python write it.
_QUICK = (b'{"record":"pair"', b'{"record": "pair"', b'{"record":"cell"', b'{"record": "cell"')


def _columns_at_once(
    usual: Sequence[bytes], rest: Sequence[tuple[int, bytes]]
) -> dict[str, dict[str, npt.NDArray[Any]]] | None:
    """The columns of the pairs or cells in the lines `usual`, beside which are the `rest`, numbered.

    None where something is not as usual: the lines are read one by one then.
    """
    try:
        others = {number: msgspec.json.decode(line) for number, line in rest}
        kinds = {number: record.get("record") for number, record in others.items()}
        # a header is first; after a trailer comes a header, or nothing; no pair or cell begins in another way
        if not usual or kinds.get(1) != "header" or {"pair", "cell"} & set(kinds.values()):
            return None
        count = len(usual) + len(rest)
        ends = [number for number, kind in kinds.items() if kind == "trailer" and number < count]
        if any(kinds.get(number + 1) != "header" for number in ends):
            return None
        cells = others[1].get("cells")
        kind = _PAIR if cells is None else _cell_type(tuple(cells["dims"]), tuple(cells["values"]))
        found = msgspec.json.Decoder(kind).decode_lines(b"\n".join(usual))
        return {"pair" if cells is None else "cell": _of_structs(found, kind)} if len(found) == len(usual) else None
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _type(record: str, words: Sequence[str], keys: Sequence[str], values: Sequence[str], needed: str = "") -> Any:
    """The type of a line: coordinates that may be words, whole numbers, and values; `needed` must be there."""
    kinds: list[Any] = [int | str] * len(words) + [int] * len(keys)
    kinds += [float if key == needed else float | None for key in values]
    fields: list[Any] = []
    for at, (name, kind) in enumerate(zip((*words, *keys, *values), kinds, strict=True)):
        absent = None if at >= len(words) + len(keys) and name != needed else msgspec.NODEFAULT
        fields.append((f"f{at}", kind, msgspec.field(name=name, default=absent)))
    fields.append(("flags", list[str], msgspec.field(default_factory=list)))
    return msgspec.defstruct(record.title(), fields, kw_only=True, gc=False, tag_field="record", tag=record)


@cache
def _cell_type(dims: tuple[str, ...], values: tuple[str, ...]) -> Any:
    return _type("cell", dims, ("pass",), values)


_PAIR = _type("pair", (), PAIR_KEYS, (*PAIR_VALUES, *PAIR_CLOCKS), needed="latency_ns")


def _of_structs(found: Sequence[Any], kind: Any) -> dict[str, npt.NDArray[Any]]:
    """The columns of decoded lines. Raises ValueError where a value is none."""
    columns: dict[str, npt.NDArray[Any]] = {}
    for field in msgspec.structs.fields(kind):
        get = attrgetter(field.name)
        if field.name == "flags":
            columns["flags"] = _flag_column(list(map(get, found)))
        elif field.type is int:
            columns[field.encode_name] = np.fromiter(map(get, found), np.int64, len(found))
        elif field.required and field.type is not float:
            columns[field.encode_name] = _coordinates(list(map(get, found)))
        else:
            columns[field.encode_name] = column = _values(found, get)
            if np.isinf(column).any():
                raise ValueError(field.encode_name)
    if "latency_ns" in columns and kind is _PAIR and not (columns["latency_ns"] > 0).all():
        raise ValueError("latency_ns")
    return columns


def _values(found: Sequence[Any], get: Callable[[Any], float | None]) -> npt.NDArray[np.float64]:
    """A value of each, NaN where it is None."""
    try:
        return np.fromiter(map(get, found), np.float64, len(found))
    except TypeError:
        return np.array(list(map(get, found)), dtype=np.float64)


def _coordinates(found: Sequence[Any]) -> npt.NDArray[Any]:
    """Whole numbers, or words where there is any word."""
    words = any(isinstance(value, str) for value in found)
    return np.array([str(value) for value in found]) if words else np.array(found, dtype=np.int64)


def _content(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(where, error) from error


def _plain(raw: bytes, where: str, notes: list[str]) -> bytes:
    """All that can be unpacked; a compressed file that is cut gives what came before the cut."""
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


def _check_pair(where: str, line: int, record: dict[str, Any]) -> None:
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


def _check_cell(where: str, line: int, record: dict[str, Any], cells: Any) -> None:
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


def _cell_columns(records: list[dict[str, Any]], cells: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {}
    for key in ("pass", *cells["dims"]):
        columns[key] = _coordinates([record[key] for record in records])
    for key in cells["values"]:
        columns[key] = np.array([record.get(key) for record in records], dtype=np.float64)  # None becomes NaN
    columns["flags"] = _flag_column([record.get("flags", ()) for record in records])
    return columns


def _flag_column(flags: Sequence[Sequence[str]]) -> npt.NDArray[np.int64]:
    if not any(flags):
        return np.zeros(len(flags), dtype=np.int64)
    return np.array([sum(FLAGS[flag] for flag in set(mine)) for mine in flags], dtype=np.int64)


def _columns(pairs: list[dict[str, Any]]) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {
        key: np.array([pair[key] for pair in pairs], dtype=np.int64) for key in PAIR_KEYS
    }
    for key in (*PAIR_VALUES, *PAIR_CLOCKS):
        columns[key] = np.array([pair.get(key) for pair in pairs], dtype=np.float64)  # None becomes NaN
    columns["flags"] = _flag_column([pair.get("flags", ()) for pair in pairs])
    return columns
