"""Lines of one machine in files of their own: records with `--detail`, and tables with a row for each pair and address.

Such files have no labels. They come from the file's node, or from the latencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from nodeprint import files, structure
from nodeprint.data.job import jobs
from nodeprint.data.store import store
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import serialized
from nodeprint.machine.topology.model import Cpu, Machine, Topology
from nodeprint.readers.parsing import lines_of
from nodeprint.readers.tools import long_table, record_file
from nodeprint_addons.iodie import detailed_records, node_lines
from nodeprint_addons.iodie.analysis import NodeDies
from nodeprint_addons.iodie.data import pass_over_lines
from nodeprint_addons.iodie.iodie_texts import say

#: An address counts where so many of the pairs were measured on it.
_MOST_PAIRS = 0.9


def read(paths: Sequence[Path], labels: Topology | None) -> tuple[NodeDies, list[xr.Dataset], list[xr.Dataset]]:
    """The machine of `paths`, each of them a run, without dies yet, with all passes and censuses. By default `labels`
    are those of the first file's node, else groups by latency.

    Raises NodeprintError if a file has another format, if none has lines, and if the socket of the lines is unknown.
    """
    passes: list[xr.Dataset] = []
    censuses: list[xr.Dataset] = []
    missing: list[str] = []
    names: list[str] = []
    simulated = False
    for number, path in enumerate(paths, start=1):
        if not path.is_file():
            raise NodeprintError("no file", where=path, advice="name one directory, or files of records or tables")
        lines = lines_of(path)
        run = f"{path.name} ({number})" if len(paths) > 1 else path.name
        if record_file.evidence(lines):
            detail = detailed_records.read(path)
            simulated |= detail.header.get("simulated") is True
            of_run, census = node_lines.of_records(run, detail, missing)
            passes += of_run
            censuses += census
            names.append(str(detail.header.get("operation", "")))
        else:
            passes.append(_of_table(run, path, lines, missing))
            names.append("a table of addresses")
    if not passes:
        advice = missing[0] if missing else "measure with `coherence --detail`, which writes each line of a pair"
        raise NodeprintError("no pair has the value of each line", where=paths[0], advice=advice)
    labels_of_cpus = labels or _of_node(paths[0])
    if labels_of_cpus is None:
        labels_of_cpus = _of_hops(passes, paths[0])
        missing.append(say("missing", "labels"))
    notes = tuple(dict.fromkeys(missing))
    measurement = ", ".join(dict.fromkeys(names))
    return NodeDies(paths[0].name, measurement, labels_of_cpus, notes, simulated), passes, censuses


def _of_table(run: str, path: Path, lines: list[str], missing: list[str]) -> xr.Dataset:
    """A table as one pass over the addresses that most pairs have, at home in a single NUMA node."""
    if not long_table.evidence(lines):
        raise NodeprintError(
            "no records, and no table with a row for each pair and address",
            where=path,
            line=1,
            advice="give records of coherence with --detail, or columns named a, b, address and latency_ns",
        )
    by_pair = long_table.by_address(path, lines)
    counts: dict[str, int] = {}
    for of_pair in by_pair.values():
        for address in of_pair:
            counts[address] = counts.get(address, 0) + 1
    common = [address for address, count in counts.items() if count >= _MOST_PAIRS * len(by_pair)]
    if not common:
        raise NodeprintError(
            "no address was measured by most pairs", where=path, advice="measure all pairs on the same addresses"
        )
    whole = [pair for pair, of_pair in by_pair.items() if all(address in of_pair for address in common)]
    if not whole:
        raise NodeprintError(
            "no pair was measured on all addresses", where=path, advice="measure all pairs on the same addresses"
        )
    if len(common) < len(counts):
        missing.append(say("missing", "addresses", run=run, left_out=len(counts) - len(common), addresses=len(counts)))
    if len(whole) < len(by_pair):
        missing.append(say("missing", "address_pairs", run=run, left_out=len(by_pair) - len(whole), pairs=len(by_pair)))
    ns = np.array([[np.median(by_pair[pair][address]) for address in common] for pair in whole])
    a, b = np.array(whole, dtype=np.int64).T
    return pass_over_lines(run, 0, 0, a, b, np.arange(len(common)), ns, np.full((len(whole), 2), np.nan))


def _of_node(path: Path) -> Topology | None:
    """The labels of the node whose record file it is: nodes/<node>/<job>/<run>/<file>; None where it is none."""
    above = files.real(path).parents
    if len(above) < 3 or not jobs.number_of(above[1]):
        return None
    survey = store.survey(above[2], write=False)
    return serialized.from_text(survey.topology) if survey.topology else None


def _of_hops(passes: Sequence[xr.Dataset], path: Path) -> Topology:
    """CPUs in groups by their latencies: cores, and the groups of the finest other level as its L3s."""
    cpus = np.unique(np.concatenate([side for pass_ in passes for side in (pass_["a"], pass_["b"])]))
    by_pass = np.full((len(passes), len(cpus), len(cpus)), np.nan)
    for number, pass_ in enumerate(passes):
        a, b = (np.searchsorted(cpus, pass_[side].to_numpy()) for side in ("a", "b"))
        by_pass[number, a, b] = by_pass[number, b, a] = np.median(pass_["ns"].to_numpy(), axis=1)
    measured = np.isfinite(by_pass).any(axis=0)
    square = np.full(measured.shape, np.nan)
    square[measured] = np.nanmedian(by_pass[:, measured], axis=0)
    levels = structure.find(square, cpus.tolist(), None, None).levels
    if any(level.name == "socket" for level in levels):
        raise NodeprintError(
            "these are CPUs of several sockets, and nothing says in which of them lines are at home",
            where=path,
            advice="name the machine's labels by --xml or --root",
        )
    cores = next((level.groups for level in levels if level.name == "smt"), ())
    groups = next((level.groups for level in levels if level.name != "smt"), ())
    core_of = {cpu: number for number, members in enumerate(cores) for cpu in members}
    ccx_of = {cpu: number for number, members in enumerate(groups) for cpu in members}
    return Topology(
        Machine(), tuple(Cpu(cpu, socket=0, ccx=ccx_of.get(cpu), core=core_of.get(cpu, cpu)) for cpu in cpus.tolist())
    )
