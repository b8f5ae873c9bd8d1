"""Sentences about the curves of the memory kernels: cache sizes, knees, declines, own versus other memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.machine.counters import Counters
from nodeprint.machine.topology import processors
from nodeprint.machine.topology.level_names import level_name
from nodeprint.machine.topology.model import Machine
from nodeprint.report import message_rates, names, text
from nodeprint.settings.texts import say, texts
from nodeprint.stats import memory_curves
from nodeprint.stats.memory_curves import MedianInterval

Floats = npt.NDArray[np.float64]

#: Two cores and the arrays that they touched first, case by case (kernels/touch/), over several pairs of nodes.
_OF_TOUCH = ("a_own_ns", "a_other_ns", "b_own_ns", "b_other_ns")
_MOST_PAIRS = 3

#: Families by CPUID of the EPYCs whose port's width is known: Zen 2 to Zen 4 (docs/method/memory.md).
_PORT_KNOWN = (0x17, 0x19)
#: Bytes per fabric cycle from a CCD's port to its cores (Zen 2 to Zen 4; docs/method/memory.md).
_PORT_BYTES_A_CYCLE = 32


def readings(cells: Sequence[JobMeasurement], machine: Machine | None = None) -> tuple[str, ...]:
    """Return sentences about the cells of a job; the fabric clock only for processors whose port width is known."""
    generation = processors.generation_of(machine) if machine is not None else None
    known = generation is not None and generation.has_io_die and generation.family in _PORT_KNOWN
    sentences = []
    for cell in cells:
        name = text.sentence(text.measured(cell.name))
        kernel = (cell.header["kernel"], cell.header["operation"])
        if reader := _READERS.get(kernel):
            sentences += [f"{name}: {sentence}" for sentence in reader(cell)]
        if kernel == ("bandwidth", "groups"):
            sentences += [f"{name}: {sentence}" for sentence in _ports(cell, known)]
    return tuple(sentences)


def _curve(data: JobMeasurement) -> Iterator[str]:
    reported_sizes = {name.upper(): int(size) for name, size in data.header["cache_bytes"].items()}
    latency = over_runs(_median(data.grid("latency_ns"), axis=2 + list(data.places).index("cpu")))
    caches = memory_curves.caches(data.axis("size_bytes").tolist(), latency.tolist(), reported_sizes)
    yield from (cache_sentence(str(row.Index), row) for row in caches.itertuples())


def cache_sentence(name: str, cache: Any) -> str:
    """Return the sentence of a row of `memory_curves.caches`.

    A plateau that reaches half of the reported size agrees with it: a cache is never available up to its full size.
    """
    reported, effective = (names.binary_size(size, "bytes") for size in (cache.reported_bytes, cache.effective_bytes))
    if not cache.effective_bytes:
        return say("readings", "curve", "none", cache=name, reported=reported)
    found = f"{cache.latency_ns:.1f} ns up to {effective}"
    if cache.effective_bytes >= cache.reported_bytes / 2:
        return f"{name}: {found}, reported size {reported}"
    return say("readings", "curve", "other", cache=name, effective=effective, latency=found, reported=reported)


def _loaded(data: JobMeasurement) -> Iterator[str]:
    delay = data.axis("delay")
    latencies, rates = (
        np.moveaxis(over_runs(data.grid(key)), list(data.places).index("place"), 0)
        for key in ("latency_ns", "rate_bytes_per_s")
    )
    for place, latency, rate in zip(data.axis("place"), latencies, rates, strict=True):
        idle, loaded = latency[delay < 0], np.isfinite(latency) & np.isfinite(rate) & (delay >= 0)
        if loaded.any() and len(idle) and np.isfinite(idle[0]):
            knee = memory_curves.knee(rate[loaded].tolist(), latency[loaded].tolist(), float(idle[0]))
            words = f"no knee up to {rate[loaded].max() / 1e9:.1f} GB/s"
            if knee is not None:
                values = {"rate": f"{knee[0] / 1e9:.1f} GB/s", "latency": f"{knee[1]:.0f}", "idle": f"{idle[0]:.0f}"}
                words = say("readings", "knee", **values)
            yield f"injectors {texts()['readings']['injectors'].get(str(place), str(place))}: {words}"


def _pairs(data: JobMeasurement) -> Iterator[str]:
    rates, pairs = data.columns["rate_bytes_per_s"], data.places["pairs"]
    trials = {n: _finite(rates[..., pairs == n]).tolist() for n in data.axis("pairs").tolist()}
    if len(trials) > 1:
        number = memory_curves.slower_from(trials)
        yield say("readings", "pairs", "falls", number=number) if number else say("readings", "pairs", "even")


def _touch(data: JobMeasurement) -> Iterator[str]:
    nodes = data.header["nodes"]
    several = len(set(nodes.values())) > 1
    ends = zip(data.keys("a"), data.keys("b"), data.keys("together"), strict=True)
    apart = [(nodes[str(a)] != nodes[str(b)]) == several and together == "both" for a, b, together in ends]
    values = _finite(data.columns["ratio"][..., np.array(apart)])
    if len(values):
        yield touch_sentence(memory_curves.median_interval(values), len(set(nodes.values())))
    levels = {key: over_runs(data.columns[key]) for key in _OF_TOUCH if key in data.columns}
    if len(levels) < len(_OF_TOUCH):
        return  # older records
    pairs = sorted(set(zip(data.keys("a"), data.keys("b"), strict=True)))
    for a, b in pairs[:_MOST_PAIRS]:
        cases = []
        for case, words in texts()["readings"]["touch_cases"].items():
            of_pair = (data.places["a"] == a) & (data.places["b"] == b)
            at = np.flatnonzero(of_pair & (np.array(data.keys("together")) == case))
            if at.size:
                ns = {key: float(level[at[0]]) for key, level in levels.items()}
                cases.append(words.format(**{key: names.duration(value) for key, value in ns.items()}))
        of_nodes = {"a_node": nodes[str(a)], "b_node": nodes[str(b)]}
        yield say("readings", "touch", "pair", a=a, b=b, cases="; ".join(cases), **of_nodes)


def touch_sentence(ratio: MedianInterval, nodes: int) -> str:
    """Compare own with other arrays on a machine with `nodes` NUMA nodes."""
    found = f"{ratio.middle:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
    if nodes > 1:
        return say("readings", "touch", "ratio", found=found)
    # as printed: with many repeats an interval may be narrower than any difference that matters
    is_one = round(ratio.low, 2) <= 1 <= round(ratio.high, 2)
    verdict = "1, as expected" if is_one else "not 1: the measurement was disturbed"
    return say("readings", "touch", "one_node", found=found, verdict=verdict)


def _ring(data: JobMeasurement) -> Iterator[str]:
    keys = ("writer_s", "reader_s", "writer_staggered_s", "reader_staggered_s")
    if any(key not in data.columns for key in keys):
        return
    seconds = {key: over_runs(data.columns[key]) for key in keys}
    wr, rd, wr_own, rd_own = (names.duration(1e9 * float(np.nanmean(seconds[key]))) for key in keys)
    longest_s = float(np.nanmax([seconds["writer_s"], seconds["reader_s"]]))
    gib = len(seconds["writer_s"]) * int(data.header.get("slice_bytes", 0)) / (1 << 30)
    by_lines = f"{gib:.3g} GiB in {names.duration(1e9 * longest_s)} ({gib / longest_s:.3g} GiB/s by lines)"
    total, pairs = f"; {by_lines}" if gib else "", names.counted(len(seconds["writer_s"]), "pair")
    yield say("readings", "ring", pairs=pairs, writer=wr, reader=rd, writer_own=wr_own, reader_own=rd_own, total=total)


def _sizes(data: JobMeasurement) -> Iterator[str]:
    if "size_bytes" not in data.places:
        return
    latency, sizes = over_runs(data.columns["latency_ns"]), data.places["size_bytes"]
    messages = message_rates.messages_at_once(data.header["operation"])
    in_words = []
    for size in np.unique(sizes).tolist():
        ns = float(np.nanmedian(latency[sizes == size]))
        rate = names.quantity(1e9 * messages * size / ns, "B/s")
        in_words.append(f"{names.message_size(size)} {names.duration(ns)} ({rate})")
    yield f"median over pairs {', '.join(in_words)}"


def _contended(data: JobMeasurement) -> Iterator[str]:
    rates = over_runs(data.columns["rate_per_s"])
    shares, fairness = (over_runs(data.columns[key]) for key in ("success_share", "fairness"))
    a, b, kinds = data.keys("a"), data.keys("b"), np.array(data.keys("kind"))
    for kind in ("faa", "cas"):
        at = np.flatnonzero((kinds == kind) & np.isfinite(rates))
        if not at.size:
            continue
        best, worst = at[rates[at].argmax()], at[rates[at].argmin()]
        most, least = (f"CPUs {a[n]} and {b[n]} ({names.quantity(float(rates[n]), '1/s')})" for n in (best, worst))
        ends = f"most {most}, least {least}" if best != worst else most
        values = {"success_low": names.percent(shares[at].min()), "success_high": names.percent(shares[at].max())}
        values |= {"fairness_low": f"{fairness[at].min():.2f}", "fairness_high": f"{fairness[at].max():.2f}"}
        yield say("readings", "contended", kind=kind, ends=ends, **values)


def _ports(data: JobMeasurement, port_known: bool) -> Iterator[str]:
    rates = _median(np.asarray(data.columns["rate_bytes_per_s"], dtype=np.float64), axis=1)
    places = list(zip(data.keys("scope"), data.keys("memory"), data.keys("stream"), strict=True))
    for scope in ("ccd", "ccx"):
        each = [rates[:, [place == (scope, "own", stream) for place in places]] for stream in ("load", "store_mem")]
        if all(np.isfinite(of_runs).any() for of_runs in each):
            # as the table of medians has them: of a run, then over runs
            loads, stores = (float(_median(_median(of_runs, axis=1), axis=0)) for of_runs in each)
            count = int(np.isfinite(each[0]).any(axis=0).sum())
            component = level_name(scope)
            values = {"loads": f"{loads / 1e9:.1f}", "stores": f"{stores / 1e9:.1f}"}
            medians = _medians_of(count, component)
            rates_of_one = say("readings", "port", "rates", component=component, count=medians, **values)
            ghz = f"{loads / _PORT_BYTES_A_CYCLE / 1e9:.2f}"
            clock = say("readings", "port", "clock", rates=rates_of_one, bytes=_PORT_BYTES_A_CYCLE, ghz=ghz)
            yield clock if port_known else rates_of_one
            return  # a CCX that shares its port says less of it


def _medians_of(count: int, what: str) -> str:
    return f"medians of {count} {what}s" if count > 1 else f"one {what}"


def _hops(data: JobMeasurement) -> Iterator[str]:
    hops, loads = over_runs(data.columns["latency_ns"]), np.array(data.keys("load"))
    pairs = list(zip(data.keys("a"), data.keys("b"), data.keys("home"), strict=True))
    of = {
        load: dict(zip((pairs[i] for i in np.flatnonzero(loads == load)), hops[loads == load], strict=True))
        for load in ("idle", "light", "full")
    }
    good = [pair for pair in of["idle"] if all(np.isfinite(of[load].get(pair, np.nan)) for load in of)]
    if good:
        ratios = ([of[load][pair] / of["idle"][pair] for pair in good] for load in ("light", "full"))
        light, full = map(np.median, ratios)
        count = _medians_of(len(good), "pair")
        yield say("readings", "beside", light=f"{light:.3f}", full=f"{full:.3f}", count=count)


#: STREAM's kernels, in its order; the _mem variants store past the caches, as STREAM does with some compilers.
_STREAM = ("copy", "triad", "copy_mem", "triad_mem")


def _as_stream(data: JobMeasurement) -> Iterator[str]:
    """Return STREAM's results for the whole machine, by page size; nothing for records without a count of sweeps."""
    if "best_bytes_per_s" not in data.columns:
        return
    best, median = (over_runs(data.columns[key]) for key in ("best_bytes_per_s", "rate_bytes_per_s"))
    places = list(zip(data.keys("scope"), data.keys("stream"), data.keys("pages"), strict=True))
    for pages in dict.fromkeys(pages for _, _, pages in places):
        of_machine = {place[1]: i for i, place in enumerate(places) if (place[0], place[2]) == ("machine", pages)}
        at = {stream: of_machine[stream] for stream in _STREAM if stream in of_machine}
        figures = {stream: (best[i], median[i]) for stream, i in at.items() if np.isfinite(best[i])}
        if figures:
            each = (f"{stream} {one / 1e9:.1f} ({usual / 1e9:.1f})" for stream, (one, usual) in figures.items())
            yield say("readings", "stream", pages=pages, each=", ".join(each))


#: Relative difference above which the two methods are considered different.
_METHODS_APART = 0.15


def _states(data: JobMeasurement) -> Iterator[str]:
    chase, single = over_runs(data.columns["latency_ns"]), over_runs(data.columns["single_ns"])
    for state in dict.fromkeys(data.keys("state")):
        of_state = np.array(data.keys("state")) == state
        pairs = np.stack([chase[of_state], single[of_state]])
        pairs = pairs[:, np.isfinite(pairs).all(axis=0)]
        apart = np.abs(pairs[1] / pairs[0] - 1) > _METHODS_APART
        if apart.any():
            medians = (f"{ns:.1f}" for ns in np.median(pairs[:, apart], axis=1).tolist())
            values = dict(zip(("chase", "single"), medians, strict=True))
            yield say("readings", "methods", state=state, apart=int(apart.sum()), places=apart.size, **values)


#: Each sentence uses the values of one operation, so it is selected by kernel and operation here. The kernel's
#: measurements.yaml describes its cells; a kernel without a sentence needs nothing else.
_READERS: Mapping[tuple[str, str], Callable[[JobMeasurement], Iterator[str]]] = {
    ("bandwidth", "machine"): _as_stream,
    ("chase", "curve"): _curve,
    ("coherence", "state"): _states,
    ("coherence", "loaded"): _hops,
    **{("linktest", mode): _sizes for mode in ("semidirectional", "bidirectional", "unidirectional")},
    ("loaded", "latency"): _loaded,
    ("coherence", "contend-pairs"): _contended,
    ("remap", "pairs"): _pairs,
    ("remap", "ring"): _ring,
    ("touch", "ratio"): _touch,
}

#: The kernels and operations with sentences.
KERNELS = frozenset({*_READERS, ("bandwidth", "groups")})


def over_runs(values: npt.NDArray[Any]) -> Floats:
    """Reduce (run, pass, ...) to medians over passes, then over runs; each run counts once."""
    return _median(_median(np.asarray(values, dtype=np.float64), axis=1), axis=0)


def _median(values: Floats, axis: int) -> Floats:
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # values that no pass measured stay NaN
        return np.asarray(np.nanmedian(values, axis=axis))


def _finite(values: npt.NDArray[Any]) -> Floats:
    flat = np.asarray(values, dtype=np.float64).ravel()
    return flat[np.isfinite(flat)]


def of_counters(sensors: Mapping[str, Any]) -> tuple[str, ...]:
    """Return sentences about the counters in a node's survey (`nodeprint.data.job.sensors`); none if untried."""
    if "counters" not in sensors:
        return ()
    counted = msgspec.convert(sensors["counters"], Counters)
    sentences = []
    if counted.cores:
        values = {"counted": names.quantity(counted.counted_hz, "Hz"), "timed": names.quantity(counted.timed_hz, "Hz")}
        difference = names.signed(counted.counted_hz / counted.timed_hz - 1)
        cores = names.counted(counted.cores, "core")
        sentences.append(say("counters", "clock", cores=cores, difference=difference, **values))
    if counted.seconds:
        sizes = {"counted": counted.counted_bytes, "filled": counted.filled_bytes, "read": counted.read_bytes}
        values = {key: f"{size / 1e9:.3g} GB" for key, size in sizes.items()}
        values["ratio"] = f"{counted.counted_bytes / (counted.filled_bytes + counted.read_bytes):.2f}"
        values["rate"] = names.quantity(counted.counted_bytes / counted.seconds, "B/s")
        sentences.append(say("counters", "memory", seconds=names.duration(1e9 * counted.seconds), **values))
    groups_by_reason: dict[str, list[str]] = {}
    for group, reason in counted.not_readable.items():
        groups_by_reason.setdefault(reason, []).append(group)
    for reason, groups in groups_by_reason.items():
        sentences.append(say("counters", "not_readable", group=names.listed(groups), reason=reason.rstrip(".")))
    return tuple(sentences)
