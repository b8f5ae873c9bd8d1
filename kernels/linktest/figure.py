"""What LinkTest says on a terminal when it is called by hand: minimum, mean, maximum, a matrix, the slowest pairs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

#: Matrices of more ranks do not fit on a terminal; of several sizes the smallest and the largest have one.
_MATRIX_RANKS = 32
_SLOWEST = 3

Pair = tuple[int, int]


@dataclass
class Measured:
    """A record file: its header and trailer, by size of message the time of each pair (median over passes, ns), and
    that of pairs that were measured again alone."""

    header: dict[str, Any] = field(default_factory=dict)
    trailer: dict[str, Any] = field(default_factory=dict)
    sizes: dict[int, dict[Pair, float]] = field(default_factory=dict)
    again: dict[Pair, float] = field(default_factory=dict)


def read(path: Path) -> Measured:
    """Read a complete record file."""
    out = Measured()
    passes: dict[int, dict[Pair, list[float]]] = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        kind = record["record"]
        if kind == "header":
            out.header = record
        elif kind == "trailer":
            out.trailer = record
        elif kind == "again":
            out.again[record["a"], record["b"]] = record["latency_ns"]
        elif kind in ("pair", "cell"):
            size = int(record.get("size_bytes") or out.header["message_bytes"])
            of_size = passes.setdefault(size, {})
            of_size.setdefault((record["a"], record["b"]), []).append(record["latency_ns"])
    out.sizes = {size: {pair: median(times) for pair, times in pairs.items()} for size, pairs in sorted(passes.items())}
    return out


def csv(measured: Measured) -> str:
    """A line a pair and size: both ends, bytes, ns and bytes a second."""
    lines = ["a,b,size_bytes,latency_ns,bytes_per_s"]
    for size, pairs in measured.sizes.items():
        ways = _messages(measured)
        lines += [f"{a},{b},{size},{ns:.6g},{1e9 * ways * size / ns:.6g}" for (a, b), ns in sorted(pairs.items())]
    return "\n".join(lines) + "\n"


def text(measured: Measured) -> str:
    """The figure as text."""
    lines = [f"linktest {measured.header['operation']}: medians over {measured.header['passes']} passes"]
    drawn = {min(measured.sizes), max(measured.sizes)}
    for size, pairs in measured.sizes.items():
        lines += ["", f"messages of {_size(size)}"]
        lines += _matrix(pairs, bool(measured.header.get("directed"))) if size in drawn else []
        ordered = sorted(pairs.values())
        for name, ns in (("minimum", ordered[0]), ("mean", mean(ordered)), ("maximum", ordered[-1])):
            lines.append(f"{name:8} {_time(ns):>10}  {_rate(_messages(measured) * size / ns)}")
        lines += [_pair(pair, ns, measured.again) for pair, ns in _slowest(pairs)]
        lines += _together(measured, size, mean(ordered))
    return "\n".join(lines) + "\n"


def _messages(measured: Measured) -> int:
    """How many messages go at once: one each way in bidirectional mode."""
    return 2 if measured.header["operation"] == "bidirectional" else 1


def _slowest(pairs: dict[Pair, float]) -> list[tuple[Pair, float]]:
    return sorted(pairs.items(), key=lambda item: -item[1])[:_SLOWEST] if len(pairs) > _SLOWEST else []


def _pair(pair: Pair, ns: float, again: dict[Pair, float]) -> str:
    alone = f", again alone {_time(again[pair])}" if pair in again else ""
    return f"slowest  {pair[0]:>4} to {pair[1]:<4} {_time(ns)}{alone}"


def _together(measured: Measured, size: int, mean_ns: float) -> list[str]:
    """The bandwidth of all pairs at once, and what an all-to-all took beside its messages one after another."""
    lines, header = [], measured.header
    at_once = int(header.get("parallel", 1))
    if at_once > 1:
        name = "bisection" if "--bisection" in header["arguments"] else "together"
        lines.append(f"{name}: {at_once} pairs at once {_rate(at_once * _messages(measured) * size / mean_ns)}")
    if seconds := measured.trailer.get("alltoall_s"):
        of = int(measured.trailer["alltoall_bytes"])
        line = f"all-to-all of {_size(of)}: {_time(1e9 * seconds)}"
        ranks = int(measured.trailer["alltoall_ranks"])
        if of == size:
            line += f", {ranks * (ranks - 1) * mean_ns / (1e9 * seconds):.1f} times as fast as one message at a time"
        lines.append(line)
    return lines


def _matrix(pairs: dict[Pair, float], directed: bool) -> list[str]:
    """A row a rank or CPU, in the unit of the slowest pair."""
    ends = sorted({end for pair in pairs for end in pair})
    if len(ends) > _MATRIX_RANKS:
        return []
    scale, unit = _unit(max(pairs.values()))
    rows = [f"{unit:>5}" + "".join(f"{end:>8}" for end in ends)]
    for a in ends:
        cells = []
        for b in ends:
            ns = pairs.get((a, b)) if directed else pairs.get((min(a, b), max(a, b)))
            cells.append(f"{ns / scale:8.4g}" if ns is not None and a != b else f"{'-':>8}")
        rows.append(f"{a:>5}" + "".join(cells))
    return rows


def _unit(ns: float) -> tuple[float, str]:
    return next(((scale, name) for scale, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")) if ns >= scale), (1.0, "ns"))


def _time(ns: float) -> str:
    scale, unit = _unit(ns)
    return f"{ns / scale:.3g} {unit}"


def _rate(gigabytes_a_second: float) -> str:
    return f"{gigabytes_a_second:.3g} GB/s" if gigabytes_a_second >= 0.1 else f"{1e3 * gigabytes_a_second:.3g} MB/s"


def _size(count: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"
