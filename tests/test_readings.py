"""What the curves of a node's kernels say in the report: of made-up cells in the datasets' own shape."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from nodeprint.bundle import Job
from nodeprint.report.readings import readings

RUNS, PASSES = 2, 3


def cells(kernel: str, operation: str, coords: dict[str, Any], values: dict[str, Any], **header: Any) -> xr.Dataset:
    """Values by coordinate, the same in each run and pass but for one pass of one run, which is far off."""
    dims = ("run", "pass", *coords)
    data = {}
    for name, value in values.items():
        array = np.broadcast_to(np.asarray(value, dtype=float), (RUNS, PASSES, *np.shape(value))).copy()
        array[0, 0] *= 10
        data[name] = (dims, array)
    attrs = {key: json.dumps(value) for key, value in {"kernel": kernel, "operation": operation, **header}.items()}
    return xr.Dataset(data, {"run": [1, 2], "pass": [0, 1, 2], **coords}, attrs)


def said(name: str, data: xr.Dataset) -> tuple[str, ...]:
    return readings(Job(1, {}, {}, {name: data}))


def test_a_cache_that_is_smaller_than_told_has_its_effective_size() -> None:
    sizes = [2**k for k in range(14, 29)]
    latency = [2.0 if s <= 2**15 else 5.0 if s <= 2**20 else 20.0 if s <= 2**23 else 90.0 for s in sizes]
    told = {"l1": 2**15, "l2": 2**20, "l3": 2**25}
    data = cells("chase", "curve", {"cpu": [0], "size_bytes": sizes}, {"latency_ns": [latency]}, cache_bytes=told)
    one, two, three = said("chase-curve", data)
    assert one == "chase-curve: L1: no plateau at the reported size of 32 KiB", "two sizes are no plateau"
    assert two == "chase-curve: L2: 5.0 ns up to 1 MiB, reported size 1 MiB"
    assert three == "chase-curve: L3: effective size 8 MiB (20.0 ns up to 8 MiB), reported size 32 MiB"


def test_the_knee_of_loaded_latency() -> None:
    delays = [-1, 0, 8, 64]
    values = {"latency_ns": [[80.0, 300.0, 130.0, 90.0]], "rate_bytes_per_s": [[0.0, 20e9, 12e9, 4e9]]}
    data = cells("loaded", "latency", {"place": ["own_node"], "delay": delays}, values)
    assert said("loaded-latency", data) == (
        "loaded-latency: injectors in the own NUMA node: knee at 12.0 GB/s: 130 ns, idle 80 ns",
    )
    values["latency_ns"] = [[80.0, 100.0, 90.0, 81.0]]
    data = cells("loaded", "latency", {"place": ["own_node"], "delay": delays}, values)
    assert said("loaded-latency", data)[0].endswith("no knee reached at 20.0 GB/s")


def test_more_pairs_that_are_slower() -> None:
    data = cells("remap", "pairs", {"pairs": [1, 2, 4, 8]}, {"rate_bytes_per_s": [1e9, 2e9, 3e9, 3e9]})
    assert said("remap-pairs", data) == ("remap-pairs: more pairs are not slower, within noise",)
    data = cells("remap", "pairs", {"pairs": [1, 2, 4, 8]}, {"rate_bytes_per_s": [1e9, 90e9, 2e9, 1e9]})
    assert said("remap-pairs", data) == ("remap-pairs: more pairs are slower from 4 on",)
    assert said("remap-pairs", data.isel(pairs=[0])) == ()


def test_own_against_other_memory() -> None:
    def touch(nodes: dict[str, int]) -> xr.Dataset:
        coords = {"a": [0], "b": [1], "together": ["alone", "both"]}
        return cells("touch", "ratio", coords, {"ratio": [[[1.4, 1.5]]]}, nodes=nodes)

    assert "another NUMA node touched first is 1.50" in said("touch-ratio", touch({"0": 0, "1": 1}))[0]
    assert "one NUMA node: every array is local; the ratio is 1.50" in said("touch-ratio", touch({"0": 0, "1": 0}))[0]


def test_other_measurements_say_nothing() -> None:
    assert said("clock-alone", cells("clock", "alone", {"cpu": [0, 1]}, {"core_hz": [3e9, 3e9]})) == ()
