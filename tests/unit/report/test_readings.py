"""What the curves of a node's kernels say in the report: of made-up cells in the datasets' own shape."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from msgspec import structs

from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.machine.topology.model import Topology
from nodeprint.machine.topology.presets import preset
from nodeprint.report.readings import readings

RUNS, PASSES = 2, 3


def cells(kernel: str, operation: str, coords: dict[str, Any], values: dict[str, Any], **header: Any) -> JobMeasurement:
    """Values by coordinate, the same in each run and pass but for one pass of one run, which is far off."""
    names = {dim: tuple(sorted(keys)) for dim, keys in coords.items() if isinstance(keys[0], str)}
    numbers = {dim: [names[dim].index(k) for k in keys] if dim in names else keys for dim, keys in coords.items()}
    places = np.array(list(itertools.product(*numbers.values()))).T
    columns = {}
    for name, value in values.items():
        array = np.broadcast_to(np.asarray(value, dtype=float), (RUNS, PASSES, *np.shape(value))).copy()
        array[0, 0] *= 10
        columns[name] = array.reshape(RUNS, PASSES, -1)
    told = {"kernel": kernel, "operation": operation, "cells": {}, **header}
    runs = tuple({"run": run} for run in (1, 2))
    return JobMeasurement("", told, runs, (0, 1, 2), dict(zip(coords, places, strict=True)), names, columns)


def said(name: str, data: JobMeasurement, topology: Topology | None = None) -> tuple[str, ...]:
    return readings([structs.replace(data, name=name)], topology.machine if topology is not None else None)


def test_a_cache_that_is_smaller_than_told_has_its_effective_size() -> None:
    sizes = [2**k for k in range(14, 29)]
    latency = [2.0 if s <= 2**15 else 5.0 if s <= 2**20 else 20.0 if s <= 2**23 else 90.0 for s in sizes]
    told = {"l1": 2**15, "l2": 2**20, "l3": 2**25}
    data = cells("chase", "curve", {"cpu": [0], "size_bytes": sizes}, {"latency_ns": [latency]}, cache_bytes=told)
    one, two, three = said("chase-curve", data)
    assert one == "Latency by working set: L1: no plateau at the reported size of 32 KiB", "two sizes are no plateau"
    assert two == "Latency by working set: L2: 5.0 ns up to 1 MiB, reported size 1 MiB"
    assert three == "Latency by working set: L3: effective size 8 MiB (20.0 ns up to 8 MiB), reported size 32 MiB"


def test_the_knee_of_loaded_latency() -> None:
    delays = [-1, 0, 8, 64]
    values = {"latency_ns": [[80.0, 300.0, 130.0, 90.0]], "rate_bytes_per_s": [[0.0, 20e9, 12e9, 4e9]]}
    data = cells("loaded", "latency", {"place": ["own_node"], "delay": delays}, values)
    assert said("loaded-latency", data) == (
        "Memory latency under load: injectors in the own NUMA node: knee at 12.0 GB/s: 130 ns, idle 80 ns",
    )
    values["latency_ns"] = [[80.0, 100.0, 90.0, 81.0]]
    data = cells("loaded", "latency", {"place": ["own_node"], "delay": delays}, values)
    assert said("loaded-latency", data)[0].endswith("no knee up to 20.0 GB/s")


def test_more_pairs_that_are_slower() -> None:
    data = cells("remap", "pairs", {"pairs": [1, 2, 4, 8]}, {"rate_bytes_per_s": [1e9, 2e9, 3e9, 3e9]})
    assert said("remap-pairs", data) == (
        "Rate through memory that is mapped twice: the rate does not fall with more pairs",
    )
    data = cells("remap", "pairs", {"pairs": [1, 2, 4, 8]}, {"rate_bytes_per_s": [1e9, 90e9, 2e9, 1e9]})
    assert said("remap-pairs", data) == ("Rate through memory that is mapped twice: the rate falls from 4 pairs on",)
    one = cells("remap", "pairs", {"pairs": [1]}, {"rate_bytes_per_s": [1e9]})
    assert said("remap-pairs", one) == ()


def test_own_against_other_memory() -> None:
    def touch(nodes: dict[str, int]) -> JobMeasurement:
        coords = {"a": [0], "b": [1], "together": ["alone", "both"]}
        return cells("touch", "ratio", coords, {"ratio": [[[1.4, 1.5]]]}, nodes=nodes)

    assert "another NUMA node touched first is 1.50" in said("touch-ratio", touch({"0": 0, "1": 1}))[0]
    assert "one NUMA node: every array is local; the ratio is 1.50" in said("touch-ratio", touch({"0": 0, "1": 0}))[0]


def test_ports_and_the_fabric_clock_that_they_imply() -> None:
    """By the CCDs where there are any: a CCX that shares its port does not reach what the port carries."""
    coords = {
        "cpu": [0, 4],
        "scope": ["ccx", "ccd"],
        "memory": ["own", "other_socket"],
        "stream": ["load", "store_mem"],
    }
    rate = np.full((2, 2, 2, 2), np.nan)
    rate[:, 0, 0] = [40e9, 20e9]
    rate[0, 1, 0] = [46.9e9, 23.5e9]
    rate[:, :, 1] = 30e9
    data = cells("bandwidth", "groups", coords, {"rate_bytes_per_s": rate})
    (both,) = said("bandwidth-ccx", data, preset("rome-2x64"))
    assert both.startswith("Memory bandwidth of a CCX or CCD: the cores of one CCD load 46.9 GB/s and store 23.5 GB/s")
    assert both.endswith("the fabric clock is at least 1.47 GHz")
    for other in (None, preset("icelake-2x40"), preset("turin-2x64"), preset("naples-2x32")):
        assert "fabric" not in said("bandwidth-ccx", data, other)[0], "what its port reads is not known"
    bandwidth = cells("bandwidth", "groups", coords | {"scope": ["ccx"]}, {"rate_bytes_per_s": rate[:, :1]})
    (alone,) = said("bandwidth-ccx", bandwidth)
    assert "the cores of one CCX load 40.0 GB/s" in alone
    assert "(medians of 2 CCXs)" in alone


def test_hops_beside_traffic() -> None:
    coords = {"a": [0], "b": [1, 4], "home": [0], "load": ["idle", "light", "full"]}
    data = cells("coherence", "loaded", coords, {"latency_ns": [[[[20.0, 20.0, 30.0]], [[100.0, 90.0, 120.0]]]]})
    (one,) = said("coherence-loaded", data)
    assert one.startswith(
        "Core-to-core latency under load: with 5 GB/s on another CCX, core-to-core latency is 0.950 times the idle one"
    )
    assert "1.350 times (medians of 2 pairs)" in one


def test_other_measurements_say_nothing() -> None:
    assert said("clock-alone", cells("clock", "alone", {"cpu": [0, 1]}, {"core_hz": [3e9, 3e9]})) == ()


def test_own_and_other_array_case_by_case() -> None:
    """The microbenchmark's three pictures and the fourth, as its README has them: 8.8 and 8.6, 13.2 and 8.7, 13.2."""
    own, other, none = [9.0, 9.0, 9.0, np.nan], [13.0, 13.0, np.nan, 13.0], [9.0, 9.0, np.nan, 9.0]
    data = cells(
        "touch",
        "ratio",
        {"a": [0], "b": [20], "together": ["alone", "both", "first", "second"]},
        {
            "ratio": [[[1.5, 1.5, 1.5, 1.5]]],
            "a_own_ns": [[own]],
            "a_other_ns": [[other]],
            "b_own_ns": [[none]],
            "b_other_ns": [[[13.0, 13.0, 13.0, np.nan]]],
        },
        nodes={"0": 0, "20": 1},
    )
    _, cases = said("touch-ratio", data)
    assert cases.endswith(
        "CPU 0 (NUMA node 0) and CPU 20 (NUMA node 1): each alone 9 ns and 9 ns in its own array, 13 ns and 13 ns in "
        "the other's; both at once 9 ns and 9 ns, exchanged 13 ns and 13 ns; both in the first's 9 ns and 13 ns; both "
        "in the second's 13 ns and 9 ns"
    )


def test_ring_has_the_total_of_xcpumemperf() -> None:
    seconds = {
        "writer_s": [[2e-3, 4e-3]],
        "reader_s": [[3e-3, 3e-3]],
        "writer_staggered_s": [[2e-3, 8e-3]],
        "reader_staggered_s": [[3e-3, 9e-3]],
    }
    pairs = {"writer": [0], "reader": [1, 2]}
    (words,) = said("remap-ring", cells("remap", "ring", pairs, seconds, slice_bytes=4 << 20))
    assert "2 pairs: on average a writer takes 3 ms and a reader 3 ms from the common start, 5 ms and 6 ms" in words
    assert words.endswith("0.00781 GiB in 4 ms (1.95 GiB/s by lines)")


def test_contended_pairs_name_the_most_and_the_least() -> None:
    ends = {"kind": ["cas", "faa"], "a": [0], "b": [1, 64]}
    values = {
        "rate_per_s": [[[60e6, 10e6]], [[200e6, 20e6]]],
        "success_share": [[[0.9, 0.5]], [[1.0, 1.0]]],
        "fairness": [[[0.6, 0.9]], [[1.0, 0.8]]],
    }
    adding, exchanging = said("coherence-contend-pairs", cells("coherence", "contend-pairs", ends, values))
    assert "faa: most CPUs 0 and 1 (200 M/s), least CPUs 0 and 64 (20 M/s); successes 100.0% to 100.0%" in adding
    assert "cas: most CPUs 0 and 1 (60 M/s), least CPUs 0 and 64 (10 M/s); successes 50.0% to 90.0%" in exchanging


def test_what_stream_would_print_is_the_best_of_ten_sweeps_beside_their_median() -> None:
    coords = {
        "cpu": [0],
        "scope": ["machine", "socket"],
        "stream": ["copy", "load", "triad"],
        "pages": ["base", "huge"],
    }
    rate = np.full((1, 2, 3, 2), 300e9)
    rate[0, 0, :, 0] = [200e9, 270e9, 207e9]
    data = cells("bandwidth", "machine", coords, {"rate_bytes_per_s": rate, "best_bytes_per_s": rate * 1.02})
    base, huge = said("bandwidth-machine", data)
    assert "on base pages" in base and "copy 204.0 (200.0), triad 211.1 (207.0)" in base and "load" not in base
    assert "on huge pages" in huge and "copy 306.0 (300.0)" in huge
    old = cells("bandwidth", "machine", coords, {"rate_bytes_per_s": rate})
    assert not said("bandwidth-machine", old), "records of windows have no sweeps"


def test_methods_that_disagree_are_named_with_both_figures() -> None:
    coords = {"a": [0], "b": [1, 2], "home": [0], "state": ["E", "M"], "sharer": ["none"]}
    chase = np.full((1, 2, 1, 2, 1), 70.3)
    single = chase * 1.1
    single[0, 1, 0, 1, 0] = 194.8
    (sentence,) = said(
        "coherence-state", cells("coherence", "state", coords, {"latency_ns": chase, "single_ns": single})
    )
    assert "state M" in sentence and "70.3 ns by a chase, 194.8 ns by single loads" in sentence
    assert "They are more than 15% apart at 1 of 2 places" in sentence


def test_messages_by_size_have_time_and_rate() -> None:
    values = {"latency_ns": [[[[250.0, 80_000.0], [270.0, 84_000.0]]]]}
    data = cells("linktest", "semidirectional", {"a": [0], "b": [1, 2], "size_bytes": [8, 1 << 20]}, values)
    assert said("linktest-node-sizes", data) == (
        "Time of a message by MPI by its size: median over pairs 8 B 260 ns (0.03077 GB/s), 1 MiB 82 µs (12.79 GB/s)",
    )
