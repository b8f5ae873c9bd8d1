"""Record files of the kernels: JSON Lines with headers, passes, pairs or cells, and a trailer (docs/formats.md)."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
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
from nodeprint.data.format import integrity, record_format
from nodeprint.data.format.record_format import COMPANIONS, FLAGS, Header, Pair, malformed
from nodeprint.errors import NodeprintError, printable, unreadable

#: Columns of a pair that are whole numbers.
PAIR_KEYS = ("a", "b", "home", "pass")
#: Columns of a pair in ns.
PAIR_VALUES = ("latency_ns", "ci_low_ns", "ci_high_ns", "min_ns", "median_ns", "p99_ns", "line_sd_ns")
#: The clocks of both cores just before it.
PAIR_CLOCKS = ("clock_a_ghz", "clock_b_ghz")


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
    Raises NodeprintError, with the line, on anything else that is not a record of nodeprint. It also rejects a file
    with a trailer that differs from the kernel's output (`integrity`).
    """
    notes: list[str] = []
    where = called or str(path)
    text = whole_lines(path, where, notes, raw)
    lines, columns = _columns_at_once(text) or _columns_line_by_line(where, text)
    headers: list[dict[str, Any]] = []
    passes, companions, numbered = [], [], []
    trailer: dict[str, Any] | None = None
    for number, line in lines:
        record = record_format.record(where, number, line)
        kind = record["record"]
        record_format.checked(where, number, record, record_format.KINDS[kind])
        numbered.append((number, record))
        if kind == "header":
            headers.append(record)
        elif kind == "pass":
            passes.append(record)
        elif kind in COMPANIONS:
            companions.append(record)
        trailer = record if kind == "trailer" else None if kind == "header" else trailer
    integrity.check(where, text, numbered, columns)
    pairs, cells = (_NO_PAIRS, columns) if "cells" in headers[0] else (columns, {})
    return Records(path, tuple(headers), tuple(passes), pairs, cells, trailer, tuple(notes), tuple(companions))


def whole_lines(path: Path, where: str, notes: list[str], raw: bytes | None) -> bytes:
    """The text of a record file up to its last newline; `raw` is what it holds, where that was read before.

    The rest is dropped with a note. Raises NodeprintError if the file cannot be read or unpacked.
    """
    text = _plain(_content(path, where) if raw is None else raw, where, notes)
    end = text.rfind(b"\n") + 1
    if end < len(text):
        number = text.count(b"\n") + 1
        notes.append(f"{where}, line {number}: cut in the middle, the line was dropped")
    return text[:end]


#: Records that are neither pairs nor cells, of which a first look needs to know no more than what they are.
_BETWEEN = {
    name: record_format.narrowed(kind, ()) for name, kind in record_format.KINDS.items() if name not in ("pair", "cell")
}


@cache
def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """What decodes the lines of a record file whose pairs or cells are of the type `kind`."""
    return msgspec.json.Decoder(Union[(kind, *_BETWEEN.values())])


def decoded(text: bytes, kind: Any) -> tuple[list[Any], list[tuple[int, bytes]]]:
    """The pairs or cells among the lines of `text`, as `kind`, and all other lines, numbered.

    Raises MsgspecError, ValueError or RecursionError where a line is no such record, no header is first, or a trailer
    precedes another record than a header.
    """
    lines = decoder_of(kind).decode_lines(text)
    content = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(content == ord("\n"))
    if not lines or len(lines) != len(ends):
        raise ValueError("not as many records as lines")
    starts = np.append(0, ends[:-1] + 1)
    if (content[starts] != ord("{")).any() or (content[ends - 1] != ord("}")).any():
        raise ValueError("a line ends inside of an object")
    kinds = list(map(type, lines))
    rest = [number for number, kind_of_line in enumerate(kinds) if kind_of_line is not kind]
    after_trailers = {kinds[n + 1] for n in rest if kinds[n] is _BETWEEN["trailer"] and n + 1 < len(kinds)}
    if kinds[:1] != [_BETWEEN["header"]] or not after_trailers <= {_BETWEEN["header"]}:
        raise ValueError("not in the order of a record file")
    numbered = [(number + 1, text[starts[number] : ends[number]]) for number in rest]
    return [line for line in lines if type(line) is kind], numbered


#: Lines that are neither pairs nor cells, numbered, and the columns of these.
_Split = tuple[list[tuple[int, bytes]], dict[str, npt.NDArray[Any]]]


def _columns_at_once(text: bytes) -> _Split | None:
    """Of a whole file; None where something is not as usual: the lines are read one by one then."""
    try:
        cells = msgspec.json.decode(text[: text.find(b"\n")]).get("cells")
        kind = _kind(cells)
        values, rest = decoded(text, kind)
        return rest, _of_structs(values, kind, cells)
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _columns_line_by_line(where: str, text: bytes) -> _Split:
    """Of an unusual or a garbled file; raises NodeprintError with the line that is no record, or not in its place."""
    kinds: dict[str, type[msgspec.Struct]] = {}
    cells: Any = None
    ended = False
    other_lines, values = [], []
    for number, line in enumerate(io.BytesIO(text), 1):
        record = record_format.record(where, number, line[:-1])
        name = record.get("record")
        if name != "header" and not kinds:
            raise malformed(where, number, "the first record is not a header")
        if name != "header" and ended:
            raise malformed(where, number, "records follow the trailer")
        if not isinstance(name, str) or name not in record_format.KINDS:
            raise malformed(where, number, f"unknown record {printable(repr(name), 40)}")
        if not kinds:
            record_format.checked(where, number, record, Header)
            cells = record.get("cells")
            kinds = record_format.KINDS | {_called(cells): _kind(cells)}
        if {"cell": cells is None, "pair": cells is not None}.get(name):
            has = "no" if cells is None else "the"
            raise malformed(where, number, f"a {name}, but the header has {has} key 'cells'")
        typed = record_format.checked(where, number, record, kinds[name])
        if name == _called(cells):
            values.append(typed)
        else:
            other_lines.append((number, line[:-1]))
        ended = name == "trailer"
    if not kinds:
        raise malformed(where, 1, "not a single complete record")
    return other_lines, _of_structs(values, _kind(cells), cells)


_PAIR = record_format.narrowed(Pair, (*PAIR_KEYS, *PAIR_VALUES, *PAIR_CLOCKS, "flags"))


def _called(cells: object) -> str:
    return "pair" if cells is None else "cell"


def _kind(cells: Mapping[str, Any] | None) -> type[msgspec.Struct]:
    """Return the type of pairs, or of the cells that the header's key describes."""
    return _PAIR if cells is None else record_format.cells_of(tuple(cells["dims"]), tuple(cells["values"]))


def _of_structs(
    lines: Sequence[Any], kind: type[msgspec.Struct], cells: Mapping[str, Any] | None
) -> dict[str, npt.NDArray[Any]]:
    """The columns of decoded lines."""
    get = {of.encode_name: attrgetter(of.name) for of in msgspec.structs.fields(kind)}
    whole, dims = (PAIR_KEYS, ()) if cells is None else (("pass",), tuple(cells["dims"]))
    values = (*PAIR_VALUES, *PAIR_CLOCKS) if cells is None else tuple(cells["values"])
    columns = {key: np.fromiter(map(get[key], lines), np.int64, len(lines)) for key in whole}
    columns |= {key: _coordinates(list(map(get[key], lines))) for key in dims}
    columns |= {key: _values(lines, get[key]) for key in values}
    columns["flags"] = _flag_column(list(map(get["flags"], lines)))
    return columns


def _values(lines: Sequence[Any], get: Callable[[Any], float | None]) -> npt.NDArray[np.float64]:
    """A value of each, NaN where it is None."""
    try:
        return np.fromiter(map(get, lines), np.float64, len(lines))
    except TypeError:
        return np.array(list(map(get, lines)), dtype=np.float64)


def _coordinates(coordinates: Sequence[Any]) -> npt.NDArray[Any]:
    """Whole numbers, or words where there is any word."""
    words = any(isinstance(value, str) for value in coordinates)
    return np.array([str(value) for value in coordinates]) if words else np.array(coordinates, dtype=np.int64)


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
        why = "is garbled" if wrong == run_files.GARBLED else wrong
        advice = "set the file aside and measure the node again"
        raise NodeprintError(f"the compressed file {why}", where=where, advice=advice)
    return text


def _flag_column(flags: Sequence[Sequence[str]]) -> npt.NDArray[np.int64]:
    if not any(flags):
        return np.zeros(len(flags), dtype=np.int64)
    return np.array([sum(FLAGS[flag] for flag in set(of_line)) for of_line in flags], dtype=np.int64)


#: The columns of pairs of a file of cells.
_NO_PAIRS = _of_structs((), _PAIR, None)
