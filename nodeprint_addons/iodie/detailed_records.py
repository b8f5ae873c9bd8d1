"""The values of lines in a record file of pairs that were measured with `--detail`."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.format import records
from nodeprint.data.format.record_format import COMPANIONS, Pair, narrowed
from nodeprint.data.format.records import PAIR_CLOCKS, PAIR_KEYS, Records
from nodeprint.errors import NodeprintError

_PAIR = narrowed(Pair, (*PAIR_KEYS, *PAIR_CLOCKS, "line_ns", "flags"))


def read(path: Path, called: str = "", raw: bytes | None = None) -> Records:
    """Read the values of lines in a record file; `raw` as for `records.read`.

    The columns are those of pairs that have lines and no flag: `a`, `b`, `home`, `pass`, both clocks and `line_ns`. The
    last has the values of their first lines (pair, line).

    Raises NodeprintError as `records.read` does, and if lines are not numbers.
    """
    where = called or str(path)
    kinds: dict[str, list[dict[str, Any]]] = {}
    try:
        pairs, rest = records.decoded(records.whole_lines(path, where, [], raw), _PAIR)
        for _, line in rest:
            record = msgspec.json.decode(line)
            kinds.setdefault(record["record"], []).append(record)
        good = [pair for pair in pairs if pair.line_ns and not pair.flags]
        count = min((len(pair.line_ns) for pair in good), default=0)
        ns = np.array([pair.line_ns[:count] for pair in good], dtype=np.float64).reshape(len(good), count)
        if not np.isfinite(ns).all():
            raise ValueError("not finite")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        records.read(path, called, raw)  # which says the line, where it cannot be read at all
        advice = "measure it again with --detail"
        raise NodeprintError("the values of lines (line_ns) are not as expected", where=where, advice=advice) from error
    names = {"a": "a", "b": "b", "home": "home", "pass": "number"}
    columns: dict[str, npt.NDArray[Any]] = {"line_ns": ns}
    for key, name in names.items():
        columns[key] = np.array(list(map(attrgetter(name), good)), dtype=np.int64)
    for name in PAIR_CLOCKS:
        columns[name] = np.array(list(map(attrgetter(name), good)), dtype=np.float64)  # None becomes NaN
    companions = tuple(record for kind in sorted(COMPANIONS) for record in kinds.get(kind, ()))
    trailer = kinds.get("trailer", [None])[-1]
    return Records(path, tuple(kinds["header"]), tuple(kinds.get("pass", ())), columns, {}, trailer, (), companions)
