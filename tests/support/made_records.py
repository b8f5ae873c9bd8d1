"""Records as kernels write them, made up, and records of a job read back."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

from nodeprint.campaign import run_files
from nodeprint.data.format import records


def header(**changes: object) -> dict[str, object]:
    """A record file's header as the coherence kernel writes it; no two runs have the same seed."""
    return {
        "record": "header",
        "schema": 1,
        "segment": 0,
        "kernel": "coherence",
        "operation": "cas",
        "quantity": "hop",
        "unit": "ns",
        "host": "n1",
        "boot_id": "b",
        "job": 1,
        "run": 1,
        "seed": zlib.crc32(repr([changes.get("job", 1), changes.get("run", 1)]).encode()),
        "start_time": "2026-01-01T00:00:00Z",
        "arguments": ["--op", "cas"],
        "kernel_hash": "0123456789abcdef",
        "compiler": "gcc 12",
        "clock": {"source": "tsc", "hz": 2.3e9, "step_ns": 0.43},
        "cpus": [0, 1],
        "home": "first",
        "passes": 2,
        "lines": 32,
        "batches": 2,
        "round_trips": 25,
        "pinned_by": "native",
        "placement": {},
    } | changes


def pair(a: int, b: int, number: int = 0, latency_ns: float = 50.0, **changes: object) -> dict[str, object]:
    """A pair's record."""
    return {
        "record": "pair",
        "a": a,
        "b": b,
        "home": 0,
        "pass": number,
        "latency_ns": latency_ns,
        "ci_low_ns": latency_ns * 0.99,
        "ci_high_ns": latency_ns * 1.01,
        "min_ns": latency_ns * 0.95,
        "median_ns": latency_ns * 1.02,
        "p99_ns": latency_ns * 1.4,
        "line_sd_ns": latency_ns * 0.03,
        "flags": [],
    } | changes


def cell_header(**changes: object) -> dict[str, object]:
    """A record file's header as a kernel writes it whose results are no pairs."""
    cells = {"dims": ["cpu", "level"], "values": {"latency_ns": "ns", "core_hz": "Hz"}}
    of_cells = {"kernel": "chase", "operation": "levels", "quantity": "load", "cells": cells}
    return header(**(of_cells | changes))


def cell(cpu: int, level: str, number: int = 0, latency_ns: float = 5.0, **changes: object) -> dict[str, object]:
    """A cell's record, as cell_header() declares it."""
    return {
        "record": "cell",
        "cpu": cpu,
        "level": level,
        "pass": number,
        "latency_ns": latency_ns,
        "core_hz": 3e9,
        "flags": [],
    } | changes


TRAILER: dict[str, object] = {
    "record": "trailer",
    "elapsed_s": 0.1,
    "pairs": 2,
    "voluntary_switches": 1,
    "involuntary_switches": 2,
    "steal_s": 0.0,
    "complete": True,
}


def lines(*content: dict[str, object]) -> str:
    """Records as JSON Lines; a trailer counts the pairs or cells before it."""
    text = ""
    for record in content:
        text += json.dumps(_counting(record, text) if record.get("record") == "trailer" else record) + "\n"
    return text


def _counting(trailer: dict[str, object], text: str) -> dict[str, object]:
    name = "cells" if '"cells": {' in text else "pairs"
    named = [key for key in ("pairs", "cells") if key == name or (key in trailer and name in trailer)]
    others = {key: value for key, value in trailer.items() if key not in ("pairs", "cells")}
    return others | {key: text.count(f'"record": "{key[:-1]}"') for key in named}


def record_texts(job: Path) -> dict[str, bytes]:
    """The records of a job as text, by `run1/coherence-cas`, from archives and from files."""
    problems: list[run_files.Problem] = []
    contents = list(run_files.contents(job, problems))
    assert not problems
    return {
        f"{path.parent.name}/{path.name.split('.')[0]}": gzip.decompress(raw) if path.suffix == ".gz" else raw
        for path, raw in contents
        if raw is not None
    }


def record_files(job: Path) -> list[records.Records]:
    """The record files of a job, read, by run and name."""
    problems: list[run_files.Problem] = []
    files_read = [records.read(path, raw=raw) for path, raw in run_files.contents(job, problems)]
    assert not problems
    return files_read


def one_record_file(job: Path) -> records.Records:
    """The only record file of a job."""
    (file,) = record_files(job)
    return file
