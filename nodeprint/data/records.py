"""Record files of the kernels: JSON Lines with headers, passes, pairs or cells, and a trailer (docs/formats.md)."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Union

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint import reading
from nodeprint.campaign import run_files
from nodeprint.data import record_lines
from nodeprint.data.record_lines import COMPANIONS, FLAGS, PAIR_CLOCKS, PAIR_KEYS, PAIR_VALUES
from nodeprint.errors import NodeprintError, unreadable


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


def read(path: Path, called: str = "", raw: bytes | None = None, values: Collection[str] | None = None) -> Records:
    """Read a record file, plain or compressed; notes and errors name it as it is `called`, by its path if nothing is.

    `raw` is what it holds, where that was read before; columns of other values than `values` and clocks may be
    missing, where these are named. A last line without its newline is dropped with a note, as the
    writer was stopped there.
    Raises NodeprintError, with the line, on anything else that is not a record of nodeprint.
    """
    notes: list[str] = []
    where = called or str(path)
    text = whole_lines(path, where, notes, raw)
    quick = _columns_at_once(text, values)
    if quick is not None:
        return _assembled(path, where, notes, *quick)
    # an unusual or a garbled file, line by line, which says the line
    return _assembled(path, where, notes, ((number, line[:-1]) for number, line in enumerate(io.BytesIO(text), 1)), {})


def _assembled(
    path: Path,
    where: str,
    notes: Sequence[str],
    lines: Iterable[tuple[int, bytes]],
    quick: Mapping[str, dict[str, npt.NDArray[Any]]],
) -> Records:
    """The records in numbered `lines`, and the columns of pairs or cells that are known already (`quick`)."""
    headers: list[dict[str, Any]] = []
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in ("pass", "pair", "cell", "companion")}
    trailer: dict[str, Any] | None = None
    for number, line in lines:
        record = record_lines.record(where, number, line)
        kind = record.get("record")
        if not headers and kind != "header":
            raise record_lines.malformed(where, number, "the first record is not a header")
        if trailer is not None and kind != "header":
            raise record_lines.malformed(where, number, "records follow the trailer")
        if kind == "header":
            headers.append(record_lines.checked_header(where, number, record))
            trailer = None
        elif kind == "trailer":
            trailer = record
        else:
            found[record_lines.kind_of(where, number, record, headers[0].get("cells"))].append(record)
    if not headers:
        raise record_lines.malformed(where, 1, "not a single complete record")
    pairs, cells = quick.get("pair") or _columns(found["pair"]), quick.get("cell") or {}
    if "cells" in headers[0] and not cells:
        cells = _cell_columns(found["cell"], headers[0]["cells"])
    return Records(
        path, tuple(headers), tuple(found["pass"]), pairs, cells, trailer, tuple(notes), tuple(found["companion"])
    )


def whole_lines(path: Path, where: str, notes: list[str], raw: bytes | None) -> bytes:
    """The text of a record file up to its last newline; `raw` is what it holds, where that was read before.

    What follows is dropped with a note. Raises NodeprintError where the file cannot be read or unpacked.
    """
    text = _plain(_content(path, where) if raw is None else raw, where, notes)
    end = text.rfind(b"\n") + 1
    if end < len(text):
        number = text.count(b"\n") + 1
        notes.append(f"{where}, line {number}: cut in the middle, the line was dropped")
    return text[:end]


#: Records that are neither pairs nor cells, of which a first look needs to know no more than what they are.
_HEADER, _TRAILER, *_BETWEEN = (
    msgspec.defstruct(kind.title(), [], gc=False, tag_field="record", tag=kind)
    for kind in ("header", "trailer", "pass", *sorted(COMPANIONS))
)


@cache
def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """What decodes the lines of a record file whose pairs or cells are of the type `kind`."""
    return msgspec.json.Decoder(Union[(kind, _HEADER, _TRAILER, *_BETWEEN)])


def decoded(text: bytes, kind: Any) -> tuple[list[Any], list[tuple[int, bytes]]]:
    """The pairs or cells among the lines of `text`, as `kind`, and all other lines, numbered.

    Raises MsgspecError, ValueError or RecursionError where a line is no such record, no header is first, or a trailer
    precedes another record than a header.
    """
    found = decoder_of(kind).decode_lines(text)
    content = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(content == ord("\n"))
    if not found or len(found) != len(ends):
        raise ValueError("not as many records as lines")
    starts = np.append(0, ends[:-1] + 1)
    if (content[starts] != ord("{")).any() or (content[ends - 1] != ord("}")).any():
        raise ValueError("a line ends inside of an object")
    kinds = list(map(type, found))
    rest = [at for at, one in enumerate(kinds) if one is not kind]
    after_trailers = {kinds[at + 1] for at in rest if kinds[at] is _TRAILER and at + 1 < len(kinds)}
    if kinds[:1] != [_HEADER] or not after_trailers <= {_HEADER}:
        raise ValueError("not in the order of a record file")
    numbered = [(at + 1, text[starts[at] : ends[at]]) for at in rest]
    return [one for one in found if type(one) is kind], numbered


def _columns_at_once(
    text: bytes, values: Collection[str] | None
) -> tuple[list[tuple[int, bytes]], dict[str, dict[str, npt.NDArray[Any]]]] | None:
    """All lines but those of pairs or cells, numbered, and the columns of these.

    None where something is not as usual: the lines are read one by one then.
    """
    try:
        cells = msgspec.json.decode(text[: text.find(b"\n")]).get("cells")
        kind = _PAIR if cells is None else _cell_type(tuple(cells["dims"]), tuple(cells["values"]))
        found, rest = decoded(text, kind)
        return rest, {"pair" if cells is None else "cell": _of_structs(found, kind, values)} if found else {}
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
    fields.append(("flags", tuple[str, ...], ()))
    return msgspec.defstruct(record.title(), fields, kw_only=True, gc=False, tag_field="record", tag=record)


@cache
def _cell_type(dims: tuple[str, ...], values: tuple[str, ...]) -> Any:
    return _type("cell", dims, ("pass",), values)


_PAIR = _type("pair", (), PAIR_KEYS, (*PAIR_VALUES, *PAIR_CLOCKS), needed="latency_ns")


def _of_structs(found: Sequence[Any], kind: Any, values: Collection[str] | None) -> dict[str, npt.NDArray[Any]]:
    """The columns of decoded lines, of values those that are wanted. Raises ValueError where a value is none."""
    columns: dict[str, npt.NDArray[Any]] = {}
    for field in msgspec.structs.fields(kind):
        get = attrgetter(field.name)
        if field.name == "flags":
            columns["flags"] = _flag_column(list(map(get, found)))
        elif field.type is int:
            columns[field.encode_name] = np.fromiter(map(get, found), np.int64, len(found))
        elif field.required and field.type is not float:
            columns[field.encode_name] = _coordinates(list(map(get, found)))
        elif values is None or field.encode_name in (*values, *PAIR_CLOCKS):
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
        return reading.content(path, reading.RECORD_BYTES)
    except OSError as error:
        raise unreadable(where, error) from error


def _plain(raw: bytes, where: str, notes: list[str]) -> bytes:
    """All that can be unpacked; a compressed file that is cut gives what came before the cut."""
    if raw[:2] != b"\x1f\x8b":
        return raw
    text, wrong = run_files.unpacked(raw, ".gz")
    if wrong == run_files.CUT:
        notes.append(f"{where}: the compressed file is cut")
    elif wrong:
        what = "is garbled" if wrong == run_files.GARBLED else wrong
        advice = "set the file aside and measure the node again"
        raise NodeprintError(f"the compressed file {what}", where=where, advice=advice)
    return text


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
