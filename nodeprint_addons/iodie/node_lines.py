"""A node's records as passes over lines and censuses, and what of them is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from nodeprint.campaign import run_files
from nodeprint.data.format.records import PAIR_CLOCKS, Records
from nodeprint.data.job import jobs
from nodeprint.data.store import store
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import serialized
from nodeprint_addons.iodie import detailed_records
from nodeprint_addons.iodie.analysis import NodeDies
from nodeprint_addons.iodie.data import census, pass_over_lines
from nodeprint_addons.iodie.iodie_texts import say

T = TypeVar("T")

#: Measurements of pairs that can have them; the first that a node has is taken.
MEASUREMENTS = ("coherence-cas", "coherence-faa", "coherence-flag1")


def read(node_dir: Path) -> tuple[NodeDies, list[xr.Dataset], list[xr.Dataset]]:
    """A node of a campaign by the directory of its jobs, without dies; then the passes and the censuses of all runs.

    An unreadable file is left out and listed as missing. Raises NodeprintError if the directory is not a node's, and if
    no record has lines.
    """
    if not node_dir.is_dir():
        raise NodeprintError("there is no such directory", where=node_dir, advice="name a directory below nodes/")
    files = [path for folder in jobs.folders(node_dir) for path in run_files.paths(folder)]
    survey = store.survey(node_dir, write=False)
    if not files or not survey.topology:
        problem = "no survey of its topology" if files else "no records of a job"
        raise NodeprintError(problem, where=node_dir, advice="name a node's directory below a campaign's nodes/")
    missing: list[str] = []
    for name in MEASUREMENTS:
        passes, censuses, simulated = _read_files(node_dir, name, missing)
        if passes:
            labels = serialized.from_text(survey.topology)
            notes = tuple(dict.fromkeys(missing))
            return NodeDies(node_dir.name, name, labels, notes, simulated), passes, censuses
    advice = (
        "measure with `arguments: {coherence-cas: --detail}` in the configuration (docs/iodie.md)"
        if not missing
        else missing[0]
    )
    raise NodeprintError("no record of pairs has the value of each line", where=node_dir, advice=advice)


def _read_files(node_dir: Path, name: str, missing: list[str]) -> tuple[list[xr.Dataset], list[xr.Dataset], bool]:
    passes: list[xr.Dataset] = []
    censuses: list[xr.Dataset] = []
    simulated = False
    damaged: list[run_files.Problem] = []
    everything = (file for folder in jobs.folders(node_dir) for file in run_files.contents(folder, damaged))
    for path, raw in everything:
        if path.name.split(".")[0] != name:
            continue
        run = f"{path.parent.parent.name}/{path.parent.name}"
        try:
            detail = detailed_records.read(path, f"{name}, {run}", raw)
        except NodeprintError as error:
            missing.append(str(error))
            continue
        simulated |= detail.header.get("simulated") is True
        of_run, of_pool = of_records(run, detail, missing)
        passes += of_run
        censuses += of_pool
    return passes, censuses, simulated


def of_records(run: str, detail: Records, missing: list[str]) -> tuple[list[xr.Dataset], list[xr.Dataset]]:
    """The passes and censuses of a record file, called `run`; missing items are added to `missing`."""
    if not len(detail.pairs["line_ns"]):
        missing.append(f"{run} was measured without --detail")
        return [], []
    if int(detail.header.get("parallel") or 1) > 1:
        missing.append(say("missing", "parallel", run=run))
        return [], []
    if not detail.complete:
        missing.append(say("missing", "stopped", run=run))
    passes = _tolerantly(_passes, run, detail, "passes", missing)
    return passes, _tolerantly(_censuses, run, detail, "census and clusters", missing)


def _tolerantly(
    reader: Callable[[str, Records], list[T]], run: str, detail: Records, kind: str, missing: list[str]
) -> list[T]:
    """The results of a reader; if its records are malformed, nothing, with a note in `missing`."""
    try:
        return reader(run, detail)
    except (KeyError, TypeError, ValueError, OverflowError):
        missing.append(say("missing", "unexpected", run=run, kind=kind))
        return []


def _passes(run: str, detail: Records) -> list[xr.Dataset]:
    sets: dict[tuple[int, int], Sequence[int]] = {}
    for record in detail.passes:  # of a pass that was continued, the lines that it began with
        sets.setdefault((int(record["pass"]), int(record["home"])), record["line_set"])
    pairs, out = detail.pairs, []
    ns, ghz = pairs["line_ns"], np.stack([pairs[clock] for clock in PAIR_CLOCKS], axis=1)
    for (number, home), lines in sorted(sets.items()):
        here = (pairs["pass"] == number) & (pairs["home"] == home)
        if here.any() and len(lines) >= ns.shape[1]:
            numbers = np.array(lines[: ns.shape[1]], dtype=np.int64)
            out.append(
                pass_over_lines(run, number, home, pairs["a"][here], pairs["b"][here], numbers, ns[here], ghz[here])
            )
    return out


def _censuses(run: str, detail: Records) -> list[xr.Dataset]:
    """The last census of each home; an earlier one is of pages that have moved since."""
    distances: dict[int, dict[int, Sequence[Sequence[float]]]] = {}
    clusters_of: dict[int, Mapping[str, Any]] = {}
    for record in detail.companions:
        if record["record"] == "census":
            distances.setdefault(int(record["home"]), {})[int(record["cpu"])] = record["reload_ns"]
        elif record["record"] == "clusters" and record.get("lines"):
            clusters_of[int(record["home"])] = record
    out = []
    for home, clusters in sorted(clusters_of.items()):
        lines = np.array(clusters["lines"], dtype=np.int64)
        by_cpu = distances.get(home, {})
        if by_cpu:
            ns = np.array(list(by_cpu.values()), dtype=np.float64)
            if ns.shape != (len(by_cpu), 2, len(lines)) or not np.isfinite(ns).all():
                raise ValueError("not two distances for each line")
            out.append(
                census(
                    run, home, np.array(list(by_cpu)), lines, ns.swapaxes(0, 1), int(clusters.get("address_bits") or 0)
                )
            )
    return out
