"""Check a record file: is it complete by its trailer, and are its values possible?

A kernel counts the lines of each kind. It also writes the CRC-32 (zlib's) of all bytes before the name of the checksum,
former segments included. Records of version 0.1.0 have only the number of their pairs or cells.
"""

from __future__ import annotations

import itertools
import json
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.data.format.record_format import HIGHEST, LEAST_NS, MOST, malformed

Columns = Mapping[str, npt.NDArray[Any]]
#: A line of the pairs or cells by its place among them (None: none of these), and what is wrong with it.
_Flaw = tuple[int | None, str]

_SUM = ',"crc32":'
_KIND = re.compile(r'^\{"record": ?"([a-z_]+)"', re.MULTILINE)
#: Values have four digits, the one that stands for the others five, and at most three decimals.
_DIGITS, _DECIMALS = 1e-3, 1e-3
#: Coordinates of cells that are numbers of CPUs.
_CPU_DIMS = ("cpu", "a", "b", "writer", "reader")
#: Values of which none is above the next.
_ORDERED = (
    ("ci_low_ns", "latency_ns", "ci_high_ns"),
    ("min_ns", "median_ns", "p99_ns"),
    ("ci_low_bytes_per_s", "rate_bytes_per_s", "ci_high_bytes_per_s"),
    ("ci_low_per_s", "faults_per_s", "ci_high_per_s"),
    ("ci_low_hz", "core_hz", "ci_high_hz"),
    ("offset_low_ns", "offset_ns", "offset_high_ns"),
    ("ratio_low", "ratio", "ratio_high"),
)
#: What every segment of a file has in common.
_ALIKE = ("kernel", "operation", "quantity", "unit", "host", "job", "run", "cpus", "cells", "kernel_hash", "imported")


def sealed(text: str, trailer: Mapping[str, Any]) -> str:
    """The text of a record file with its trailer, which gets the counts and the checksum that a kernel's has."""
    before = text + json.dumps({**trailer, "lines_by_kind": Counter(_KIND.findall(text))}).removesuffix("}")
    return f"{before}{_SUM}{zlib.crc32(before.encode())}}}\n"


def check(where: str, text: bytes, others: Sequence[tuple[int, Mapping[str, Any]]], columns: Columns) -> None:
    """Raise NodeprintError, with line and reason, where a record file that has its trailer is not as a kernel left it.

    `others` are its records other than pairs and cells, each with its line number. `columns` are those of its pairs or
    cells, in the order of the lines. A file without a trailer is not checked: it is continued.
    """
    last, trailer = others[-1]
    if trailer["record"] != "trailer":
        return
    headers = [(number, record) for number, record in others if record["record"] == "header"]
    counts = Counter(str(record["record"]) for _, record in others[:-1])
    name = "cell" if "cells" in headers[0][1] else "pair"
    counts[name] += len(columns["flags"])
    if why := _unproven(text, trailer, +counts) or _uncounted(trailer, counts[name]):
        raise malformed(where, last, why)
    for number, why in _unlike(headers):
        raise malformed(where, number, why)
    for at, why in _flaws(headers[0][1], columns):
        raise malformed(where, last if at is None else _line(at, [number for number, _ in others]), why)


def _line(at: int, others: Collection[int]) -> int:
    """The number of the line of a pair or cell by its place among these."""
    taken = set(others)
    return next(itertools.islice((line for line in itertools.count(1) if line not in taken), at, None))


# --- what the trailer proves ---


def _unproven(text: bytes, trailer: Mapping[str, Any], counts: Mapping[str, int]) -> str:
    """Why a file is not what its trailer says; empty where it is, and where the trailer says nothing of it."""
    if "crc32" not in trailer:
        return ""
    end = max(text.rfind(_SUM.encode()), 0)
    if text[end:] != b"%s%d}\n" % (_SUM.encode(), trailer["crc32"]):
        return "the trailer does not end with its checksum"
    if zlib.crc32(memoryview(text)[:end]) != trailer["crc32"]:  # nothing is copied
        return "the checksum differs: the file was changed or damaged after it was written"
    if trailer["lines_by_kind"] != counts:
        kind = next(kind for kind in {**trailer["lines_by_kind"], **counts} if _differs(kind, trailer, counts))
        return f"{counts.get(kind, 0)} lines of {kind}, and the trailer counts {trailer['lines_by_kind'].get(kind, 0)}"
    return ""


def _differs(kind: str, trailer: Mapping[str, Any], counts: Mapping[str, int]) -> bool:
    return bool(trailer["lines_by_kind"].get(kind, 0) != counts.get(kind, 0))


def _uncounted(trailer: Mapping[str, Any], count: int) -> str:
    for name in ("pairs", "cells"):
        if trailer.get(name, count) != count:
            return f"{count} {name} are here, and the trailer counts {trailer[name]}"
    return ""


def _unlike(headers: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[tuple[int, str]]:
    """Headers of a file that contradict its first one, or that are not its next segment."""
    _, first = headers[0]
    for segment, (number, header) in enumerate(headers):
        if header["segment"] != segment:
            yield number, f"key 'segment' is {header['segment']}, where {segment} follows"
        for key in _ALIKE:
            if header.get(key) != first.get(key):
                yield number, f"key '{key}' is not as in the first header"


# --- what no kernel measures ---


def _flaws(header: Mapping[str, Any], columns: Columns) -> Iterator[_Flaw]:
    """Pairs or cells that no kernel writes, by one rule after another; the first of each rule."""
    places = list(header["cells"]["dims"]) if "cells" in header else ["home", "a", "b"]
    rules = (
        _rule(_beyond_passes(header, columns), "key 'pass' is beyond the header's passes"),
        _rule(_is_own_pair(columns), "a pair of a CPU with itself"),
        *(_rule(mask, f"key '{key}' is not among the header's CPUs") for key, mask in _strangers(header, columns)),
        _rule(_is_repeated(header, columns, places), "this is measured for the second time in its pass"),
        *(_rule(mask, text) for mask, text in _disorder(columns)),
        *(_rule(mask, text) for mask, text in _impossible(header, columns)),
    )
    for of_rule in rules:
        yield from of_rule


def _rule(mask: npt.NDArray[np.bool_] | None, text: str) -> Iterator[_Flaw]:
    if mask is not None and mask.any():
        yield int(np.argmax(mask)), text


def _beyond_passes(header: Mapping[str, Any], columns: Columns) -> npt.NDArray[np.bool_] | None:
    """LinkTest measures further passes for as long as it is asked to."""
    return None if header["kernel"] == "linktest" else columns["pass"] >= header["passes"]


def _is_own_pair(columns: Columns) -> npt.NDArray[np.bool_] | None:
    return columns["a"] == columns["b"] if "a" in columns and "b" in columns else None


def _strangers(header: Mapping[str, Any], columns: Columns) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """By coordinate which of its values are no CPU of the header; with ranks no number of one."""
    numbers = list(range(len(header["ranks"]))) if "ranks" in header else header["cpus"]
    if not numbers:  # of an imported table nobody says of which CPUs it is
        return
    known = np.zeros(max(numbers) + 2, dtype=np.bool_)
    known[numbers] = True
    for key in _CPU_DIMS:
        if key in columns and columns[key].dtype.kind == "i":
            yield key, ~known[np.clip(columns[key], -1, len(known) - 1)]


def _is_repeated(header: Mapping[str, Any], columns: Columns, places: Sequence[str]) -> npt.NDArray[np.bool_] | None:
    """Whether an earlier line is of the same place and pass. With --pairs a pair may be named repeatedly."""
    if "pairs_hash" in header or not len(columns["flags"]):
        return None
    key = np.zeros(len(columns["flags"]), dtype=np.int64)
    of_places = [columns[name] for name in places]
    if "cells" not in header and not header.get("directed"):
        *homes, a, b = of_places
        of_places = [*homes, np.minimum(a, b), np.maximum(a, b)]
    for values in (columns["pass"], *of_places):
        few = values.dtype.kind == "i" and int(values.max()) - int(values.min()) < _RADIX
        numbers = values - values.min() if few else np.unique(values, return_inverse=True)[1].reshape(-1)
        radix = int(numbers.max()) + 1
        if int(key.max()) + 1 > 2**62 // radix:
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
        key = key * radix + numbers
    if _are_distinct(key):
        return None
    repeated = np.ones(len(key), dtype=np.bool_)
    repeated[np.unique(key, return_index=True)[1]] = False
    return repeated


def _are_distinct(key: npt.NDArray[np.int64]) -> bool:
    most = int(key.max()) + 1
    if most > _SPARSE * len(key):
        return len(np.unique(key)) == len(key)
    present = np.zeros(most, dtype=np.bool_)
    present[key] = True
    return int(np.count_nonzero(present)) == len(key)


#: Up to so many places for each that there is, marking them is faster than sorting.
_SPARSE = 32
#: Coordinates that lie further apart are numbered before they are compared.
_RADIX = 1 << 20


def _disorder(columns: Columns) -> Iterator[tuple[npt.NDArray[np.bool_], str]]:
    """Values that are not in the order that their meaning asks for."""
    for order in _ORDERED:
        if all(key in columns for key in order):
            for low, high in itertools.pairwise(order):
                yield _above(columns[low], columns[high]), f"key '{low}' is above '{high}'"


def _above(low: npt.NDArray[Any], high: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return the positions at which `low` exceeds `high` by more than rounding; none for unknown values."""
    above: npt.NDArray[np.bool_] = low - high > _DIGITS * np.abs(high) + _DECIMALS
    return above


def _impossible(header: Mapping[str, Any], columns: Columns) -> Iterator[tuple[npt.NDArray[np.bool_], str]]:
    """Values of cells beyond what their unit can have; those of pairs have their tolerances in their type."""
    units: Mapping[str, str] = header["cells"]["values"] if "cells" in header else {}
    for key, unit in units.items():
        yield np.abs(columns[key]) > HIGHEST.get(unit, MOST), f"key '{key}' is more than there can be in {unit}"
    if units.get("latency_ns") == "ns":
        yield columns["latency_ns"] < LEAST_NS, f"key 'latency_ns' is below {LEAST_NS:g}, less than a cycle of a core"
