"""What the curves of the memory kernels show, in sentences: cache sizes, knees, declines, own against other memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint import curves
from nodeprint.bundle import Job

Header = Mapping[str, Any]

#: Where the injectors of loaded latency are.
_PLACES = {"own_l3": "in the own L3", "own_node": "in the own NUMA node", "other_node": "in another NUMA node"}


def readings(job: Job) -> tuple[str, ...]:
    """Sentences on a job's cells, each beginning with its measurement's name."""
    said = []
    for name, data in job.cells.items():
        header = job.header(name)
        reader = _READERS.get((header["kernel"], header["operation"]))
        said += [f"{name}: {sentence}" for sentence in reader(data, header)] if reader else []
    return tuple(said)


def _curve(data: xr.Dataset, header: Header) -> Iterator[str]:
    told = {name.upper(): int(size) for name, size in header["cache_bytes"].items()}
    latency = _over_runs(data["latency_ns"].median("cpu"))
    for level in curves.levels(data["size_bytes"].values.tolist(), latency.tolist(), told):
        yield level.sentence


def _loaded(data: xr.Dataset, _: Header) -> Iterator[str]:
    delay = data["delay"].values
    for place in data["place"].values:
        one = data.sel(place=place)
        latency, rate = _over_runs(one["latency_ns"]), _over_runs(one["rate_bytes_per_s"])
        idle, loaded = latency[delay < 0], np.isfinite(latency) & np.isfinite(rate) & (delay >= 0)
        if loaded.any() and len(idle) and np.isfinite(idle[0]):
            found = curves.knee(rate[loaded].tolist(), latency[loaded].tolist(), float(idle[0]))
            yield f"injectors {_PLACES.get(str(place), str(place))}: {found.sentence}"


def _pairs(data: xr.Dataset, _: Header) -> Iterator[str]:
    rates = data["rate_bytes_per_s"]
    trials = {int(n): _finite(rates.sel(pairs=n)).tolist() for n in rates["pairs"].values}
    if len(trials) > 1:
        number = curves.slower_from(trials)
        yield f"more pairs are slower from {number} on" if number else "more pairs are not slower, within noise"


def _touch(data: xr.Dataset, header: Header) -> Iterator[str]:
    nodes = {int(cpu): node for cpu, node in header["nodes"].items()}
    several = len(set(nodes.values())) > 1
    apart = [
        _finite(data["ratio"].sel(a=a, b=b, together="both"))
        for a in data["a"].values
        for b in data["b"].values
        if (nodes[int(a)] != nodes[int(b)]) == several
    ]
    values = np.concatenate(apart) if apart else np.array([])
    if len(values):
        yield curves.touch_sentence(curves.median_interval(values), len(set(nodes.values())))


_READERS: Mapping[tuple[str, str], Callable[[xr.Dataset, Header], Iterator[str]]] = {
    ("chase", "curve"): _curve,
    ("loaded", "latency"): _loaded,
    ("remap", "pairs"): _pairs,
    ("touch", "ratio"): _touch,
}


def _over_runs(values: xr.DataArray) -> npt.NDArray[np.float64]:
    """Medians over passes, then over runs: each run counts once, however many passes it has."""
    return np.asarray(values.median("pass").median("run").values, dtype=np.float64)


def _finite(values: xr.DataArray) -> npt.NDArray[np.float64]:
    flat = np.asarray(values.values, dtype=np.float64).ravel()
    return flat[np.isfinite(flat)]
