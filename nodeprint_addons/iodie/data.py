"""Core-to-core latency by CCD, CCD and line, from coherence records with `--detail`, and the census of these lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.model import Level, Topology
from nodeprint.stats.robust import robust_sd
from nodeprint_addons.iodie.iodie_texts import say

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: The levels whose parts may be the ends of a way over the die, the first with enough parts in each socket.
_LEVELS: tuple[Level, ...] = ("ccd", "ccx", "cluster", "core")
#: Ends of a socket from which on lines can be separated from ends: of two, distances around the mean are mirror images.
FEWEST_ENDS = 3
#: Pairs of cores between two CCDs are dealt to so many groups, whose noise is independent.
_GROUPS = 4
#: A pair of cores further than this from the others of its two CCDs, in robust standard deviations, is left out.
_ODD = 6.0


class Estimate(msgspec.Struct, frozen=True):
    """An estimate with half of its 95% interval."""

    value: float
    half: float


def rows_of(table: pd.DataFrame) -> Iterable[Any]:
    """The rows of a table as named tuples, whose types pandas does not know."""
    return table.itertuples()


def pass_over_lines(
    run: str, number: int, home: int, a: Ints, b: Ints, lines: Ints, ns: Floats, ghz: Floats
) -> xr.Dataset:
    """Core-to-core latencies of one run, home and pass (its attributes): `ns` (pair, line).

    Pairs are CPUs `a` and `b` by OS number; lines have their `number` in the pool. `ghz` is the clock of both CPUs just
    before (pair, side), NaN if unknown.
    """
    return xr.Dataset(
        {"ns": (("pair", "line"), ns), "ghz": (("pair", "side"), ghz)},
        {"a": ("pair", a), "b": ("pair", b), "number": ("line", lines)},
        {"run": run, "pass": number, "home": home},
    )


def census(run: str, home: int, cpus: Ints, lines: Ints, ns: Floats, address_bits: int) -> xr.Dataset:
    """The distances of lines from CPUs in one run and home, by each half of the loads: `ns` (half, cpu, line).

    Lines have their `number` in the pool. The `address_bits` low bits of a line's offset are those of its physical
    address.
    """
    return xr.Dataset(
        {"ns": (("half", "cpu", "line"), ns)},
        {"cpu": cpus, "number": ("line", lines)},
        {"run": run, "home": home, "address_bits": address_bits},
    )


def line_table(lines: xr.Dataset | Sequence[xr.Dataset]) -> pd.DataFrame:
    """The origin of the lines of a tensor or censuses, a row each: run, home and `number` in the pool."""
    if isinstance(lines, xr.Dataset):
        return pd.DataFrame({name: lines[name].to_numpy() for name in ("run", "home", "number")})
    tables = [pd.DataFrame({**of.attrs, "number": of["number"].to_numpy()}) for of in lines]
    return pd.concat(tables, ignore_index=True)[["run", "home", "number"]]


def clock_spread(tensor: xr.Dataset) -> float:
    """By how much the clock of an end differs between passes at most, relative; 0 where it was not measured."""
    ghz = tensor["ghz"].to_numpy()
    finite = ghz[:, np.isfinite(ghz).all(axis=0)]
    return float((finite.max(axis=0) / finite.min(axis=0)).max()) - 1 if finite.size else 0.0


def tensors(passes: Sequence[xr.Dataset], topology: Topology) -> tuple[list[xr.Dataset], list[str]]:
    """The core-to-core latencies of a node by end, end and line over all runs, for each socket with measured lines.

    Also returns a sentence for each missing item. NUMA nodes of a socket are joined if the same pairs were measured on
    lines of each, else kept separate.

    Ends are the components of `level` by their machine-wide numbers, with their labeled quadrant (`label`, -1 unknown).
    `here` marks ends in the `socket` of the lines. A cell is a group of pairs of cores between two ends. `between` has
    the indices of its ends (cell, side), and `count` its pairs. `half` is its half of the pairs; every two ends have
    both. `ns` is the mean latency on each line (cell, line). Lines have their `number` in the pool and their `run`,
    `home` and `pass`. `part` numbers these three, and `visit` run and pass: latencies of a pair in one visit share an
    effect. `ghz` is the clock of each end in each part. `core_ns` is a CPU's extra latency over its end's median CPU.
    """
    missing: list[str] = []
    sockets = {node.node: _socket_of(topology, node.cpus) for node in topology.numa_nodes}
    level = _level(topology, sorted({cpu for pass_ in passes for cpu in _cpus(pass_)}))
    if level is None:
        return [], [say("missing", "cores", fewest=FEWEST_ENDS)]
    out = []
    for socket in sorted(set(sockets.values())) or [0]:
        socket_passes = [pass_ for pass_ in passes if sockets.get(pass_.attrs["home"], 0) == socket]
        if not socket_passes:
            missing.append(say("missing", "hops", socket=socket))
            continue
        homes = sorted({pass_.attrs["home"] for pass_ in socket_passes})
        together = len(homes) == 1 or _same_pairs(socket_passes)
        if not together:
            missing.append(say("missing", "pairs_differ", socket=socket))
        by_home = [[pass_ for pass_ in socket_passes if pass_.attrs["home"] == home] for home in homes]
        for joined in [socket_passes] if together else by_home:
            made = _tensor(joined, topology, level, socket, missing)
            if made is not None:
                out.append(made)
    return out, missing


def _socket_of(topology: Topology, cpus: Iterable[int]) -> int:
    members = set(cpus)
    return min((cpu.socket or 0 for cpu in topology.cpus if cpu.cpu in members), default=0)


def _cpus(pass_: xr.Dataset) -> list[int]:
    """The CPUs of both sides of all pairs."""
    out: list[int] = np.concatenate(_sides(pass_)).tolist()
    return out


def _sides(pass_: xr.Dataset) -> tuple[Ints, Ints]:
    return pass_["a"].to_numpy(), pass_["b"].to_numpy()


def _same_pairs(passes: Sequence[xr.Dataset]) -> bool:
    by_home: dict[int, set[tuple[int, int]]] = {}
    for pass_ in passes:
        pairs = zip(pass_["a"].to_numpy().tolist(), pass_["b"].to_numpy().tolist(), strict=True)
        by_home.setdefault(pass_.attrs["home"], set()).update(pairs)
    first, *rest = by_home.values()
    return all(len(first & pairs) > 0.9 * len(first | pairs) for pairs in rest)


def _level(topology: Topology, cpus: Sequence[int]) -> Level | None:
    """The coarsest level with enough components of every socket among the measured CPUs, None without any."""
    measured = [cpu for cpu in topology.cpus if cpu.cpu in set(cpus)]
    for level in _LEVELS:
        parts: dict[int | None, set[int | None]] = {}
        for cpu in measured:
            parts.setdefault(cpu.socket, set()).add(getattr(cpu, level))
        if parts and all(None not in numbers and len(numbers) >= FEWEST_ENDS for numbers in parts.values()):
            return level
    return None


def _tensor(
    passes: Sequence[xr.Dataset], topology: Topology, level: Level, socket: int, missing: list[str]
) -> xr.Dataset | None:
    by_cpu = {cpu.cpu: cpu for cpu in topology.cpus}
    apart = "core" if level == "core" else "ccx" if any(cpu.ccx is not None for cpu in topology.cpus) else level
    measured = sorted({cpu for pass_ in passes for cpu in _cpus(pass_)} & set(by_cpu))
    ends = np.unique([getattr(by_cpu[cpu], level) for cpu in measured])
    size = max(measured) + 1
    end_of, inner_of, rank_of = (np.full(size, -1) for _ in range(3))
    seen: dict[int, int] = {}
    for cpu in measured:
        end_of[cpu] = end = int(np.searchsorted(ends, getattr(by_cpu[cpu], level)))
        inner_of[cpu] = getattr(by_cpu[cpu], apart)
        rank_of[cpu] = seen[end] = seen.get(end, -1) + 1
    passes = [_between(pass_, inner_of) for pass_ in passes]
    offsets = _core_offsets(passes, end_of, size)
    columns, keys = [], []
    for pass_ in passes:
        cell, values = _cells(pass_, end_of, rank_of, offsets, len(ends))
        keys.append(cell)
        columns.append(values)
    cells = np.unique(np.concatenate(keys))
    counts, blocks = np.zeros(len(cells), dtype=np.int64), []
    for cell, (mean, count) in zip(keys, columns, strict=True):
        block = np.full((len(cells), mean.shape[1]), np.nan)
        block[np.searchsorted(cells, cell)] = mean
        counts[np.searchsorted(cells, cell)] = np.maximum(counts[np.searchsorted(cells, cell)], count)
        blocks.append(block)
    visits = sorted({(pass_.attrs["run"], pass_.attrs["pass"]) for pass_ in passes})
    visit = [visits.index((pass_.attrs["run"], pass_.attrs["pass"])) for pass_ in passes]
    part = np.repeat(np.arange(len(passes)), [pass_.sizes["line"] for pass_ in passes])
    ns = np.concatenate(blocks, axis=1)
    full = np.isfinite(ns).mean(axis=0)
    whole = full >= 0.8 * full.max()  # of a run that was stopped, the passes that came to their end
    keep = np.isfinite(ns[:, whole]).all(axis=1)
    if not keep.any():
        missing.append(say("missing", "parts", socket=socket))
        return None
    if not whole.all():
        missing.append(say("missing", "lines", socket=socket, left_out=int((~whole).sum()), lines=len(whole)))
    between = np.stack([cells // _GROUPS // len(ends), cells // _GROUPS % len(ends)], axis=1)[keep]
    group, block = cells[keep] % _GROUPS, cells[keep] // _GROUPS
    # where every two ends have a single pair (as at level core) halves are drawn: by number they would follow the ends
    half = (group + block) % 2 == 0 if group.any() else np.random.default_rng(1).random(len(group)) < 0.5
    labels = [{by_cpu[cpu].quadrant for cpu in measured if end_of[cpu] == end} for end in range(len(ends))]
    sockets = [min(by_cpu[cpu].socket or 0 for cpu in measured if end_of[cpu] == end) for end in range(len(ends))]
    here = [number == socket for number in sockets]
    own = set(np.flatnonzero(here).tolist())
    joined = own & set(between[np.array(here)[between].all(axis=1)].ravel().tolist())
    if len(joined) < max(len(own), FEWEST_ENDS):
        homes = list_text(sorted({pass_.attrs["home"] for pass_ in passes}))
        missing.append(
            say(
                "missing",
                "measured_parts",
                socket=socket,
                numa_nodes=homes,
                measured=len(joined),
                level=level,
                needed=max(len(own), FEWEST_ENDS),
            )
        )
        return None
    labels_of = np.array(
        [next(iter(quadrants)) if len(quadrants) == 1 and None not in quadrants else -1 for quadrants in labels],
        dtype=np.int64,
    )
    in_part = {key: np.array([pass_.attrs[key] for pass_ in passes]) for key in ("run", "home", "pass")}
    numbers = np.concatenate([pass_["number"].to_numpy() for pass_ in passes])
    of_lines = {key: ("line", values[part[whole]]) for key, values in in_part.items()}
    return xr.Dataset(
        {
            "ns": (("cell", "line"), ns[keep][:, whole]),
            "ghz": (("part_of_lines", "end"), _clocks(passes, end_of, len(ends))),
        },
        {
            "end": ends,
            "here": ("end", np.array(here)),
            "label": ("end", labels_of),
            "between": (("cell", "side"), between),
            "count": ("cell", counts[keep]),
            "half": ("cell", half),
            **of_lines,
            "number": ("line", numbers[whole]),
            "part": ("line", part[whole]),
            "visit": ("line", np.array(visit)[part[whole]]),
            "core_ns": ("cpu", offsets[measured]),
            "cpu": measured,
        },
        {"socket": socket, "level": level},
    )


def _between(pass_: xr.Dataset, inner_of: Ints) -> xr.Dataset:
    """The pairs of a pass whose lines leave their L3, or of one L3 those of two cores."""
    sides = _sides(pass_)
    in_range = (np.minimum(*sides) >= 0) & (np.maximum(*sides) < len(inner_of))
    a, b = (inner_of[np.where(in_range, side, 0)] for side in sides)
    return pass_.isel(pair=in_range & (np.minimum(a, b) >= 0) & (a != b))


def _core_offsets(passes: Sequence[xr.Dataset], end_of: Ints, size: int) -> Floats:
    """The extra latency of each CPU over the median between the same components (cpu)."""
    cpus, values = [], []
    for pass_ in passes:
        a, b = _sides(pass_)
        mean = np.nanmean(pass_["ns"].to_numpy(), axis=1)
        low, high = np.sort([end_of[a], end_of[b]], axis=0)
        rest = mean - _medians(mean, low * (end_of.max() + 1) + high)
        cpus += [a, b]
        values += [rest, rest]
    cpu, value = np.concatenate(cpus), np.concatenate(values)
    offset = np.zeros(size)
    measured = np.unique(cpu)
    offset[measured] = _by_group(value, cpu)
    for end in np.unique(end_of[measured]):  # the median CPU of a part has none
        in_end = measured[end_of[measured] == end]
        offset[in_end] -= np.median(offset[in_end])
    return offset


def _by_group(values: Floats, group: Ints) -> Floats:
    """The median of each group's values, groups in their order."""
    order = np.lexsort((values, group))
    starts = np.flatnonzero(np.diff(group[order], prepend=group[order][0] - 1))
    counts = np.diff(np.append(starts, len(group)))
    ordered = values[order]
    return np.asarray((ordered[starts + (counts - 1) // 2] + ordered[starts + counts // 2]) / 2)


def _medians(values: Floats, group: Ints) -> Floats:
    """For each value the median of its group."""
    _, index = np.unique(group, return_inverse=True)
    return np.asarray(_by_group(values, group)[index.reshape(-1)])


def _cells(
    pass_: xr.Dataset, end_of: Ints, rank_of: Ints, offsets: Floats, ends: int
) -> tuple[Ints, tuple[Floats, Ints]]:
    """The cells of a pass, the mean latency of the pairs of each (c, l), and their number (c)."""
    a, b = _sides(pass_)
    low, high = np.sort([end_of[a], end_of[b]], axis=0)
    block = low * ends + high
    cell = block * _GROUPS + (rank_of[a] + 2 * rank_of[b]) % _GROUPS
    ns = pass_["ns"].to_numpy() - (offsets[a] + offsets[b])[:, None]
    mean = np.nanmean(ns, axis=1)
    rest = mean - _medians(mean, block)
    scale = robust_sd(rest)
    good = np.isfinite(ns).all(axis=1) & ((np.abs(rest) <= _ODD * scale) | (scale == 0))
    cells, index = np.unique(cell[good], return_inverse=True)
    count = np.bincount(index.reshape(-1))
    order = np.argsort(index.reshape(-1), kind="stable")
    starts = np.concatenate([[0], np.cumsum(count)[:-1]])
    sums = np.add.reduceat(ns[good][order], starts, axis=0) if len(cells) else np.empty((0, ns.shape[1]))
    return cells, (sums / count[:, None], count.astype(np.int64))


def _clocks(passes: Sequence[xr.Dataset], end_of: Ints, ends: int) -> Floats:
    """The median clock of each end in each pass (pass, end), GHz, NaN where it was not measured."""
    clocks = np.full((len(passes), ends), np.nan)
    for row, pass_ in enumerate(passes):
        cpu, ghz = np.concatenate(_sides(pass_)), pass_["ghz"].to_numpy().T.reshape(-1)
        good = np.isfinite(ghz) & (ghz > 0)
        if good.any():
            measured = np.unique(end_of[cpu[good]])
            clocks[row, measured] = _by_group(ghz[good], end_of[cpu[good]])
    return clocks
