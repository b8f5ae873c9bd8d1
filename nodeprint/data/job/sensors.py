"""Readings of a node's own instruments: clocks of cores, temperature, memory errors, throttling. They explain findings;
nothing is judged by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.machine import counters
from nodeprint.machine.tree import Tree

#: Thermometers of processors by their driver's name.
_PROCESSOR = frozenset({"k10temp", "zenpower", "coretemp", "cpu_thermal", "soc_thermal"})

#: What each CPU's counter of stolen time advances by at once (USER_HZ): a tick of it may have been lost before the run.
_TICK_S = 0.01


def of(jobs: Sequence[Job], cpus: Sequence[int]) -> dict[str, Any]:
    """Return `clock_ghz` of the newest job by CPU of `cpus` (None if not measured); no key if no job has clocks."""
    clocks = _clocks(jobs)
    return {"clock_ghz": [clocks.get(cpu) for cpu in cpus]} if clocks else {}


def _clocks(jobs: Sequence[Job]) -> dict[int, float]:
    for job in reversed(jobs):
        for measured in job.pairs:
            of_runs = np.array([run["clock_ghz"] for run in measured.runs], dtype=np.float32)
            finite = np.isfinite(of_runs).any(axis=0)
            if not finite.any():
                continue
            middle = np.nanmedian(of_runs[:, finite], axis=0)
            return dict(zip(np.array(measured.cpus)[finite].tolist(), np.round(middle, 4).tolist(), strict=True))
    return {}


def of_survey(tree: Tree) -> dict[str, Any]:
    """Return a survey's `temperature_c` (the hottest processor), `memory_errors` and `throttled` (counts since boot),
    and `counters` (see `nodeprint.machine.counters`). Unknown ones have no key."""
    seen: dict[str, Any] = {}
    counted = counters.read(tree)
    if counted is not None:
        seen["counters"] = msgspec.to_builtins(counted)
    degrees = [
        value / 1000
        for sensor in tree.names("sys/class/hwmon")
        if (tree.read_text(f"sys/class/hwmon/{sensor}/name") or "").strip() in _PROCESSOR
        for name in tree.names(f"sys/class/hwmon/{sensor}")
        if re.fullmatch(r"temp\d+_input", name)
        if (value := _number(tree, f"sys/class/hwmon/{sensor}/{name}")) is not None
    ]
    if degrees:
        seen["temperature_c"] = max(degrees)
    controllers = "sys/devices/system/edac/mc"
    errors = [
        _number(tree, f"{controllers}/{name}/{kind}")
        for name in tree.names(controllers)
        if re.fullmatch(r"mc\d+", name)
        for kind in ("ce_count", "ue_count")
    ]
    if any(count is not None for count in errors):
        seen["memory_errors"] = sum(count or 0 for count in errors)
    cpus = "sys/devices/system/cpu"
    throttled = [
        _number(tree, f"{cpus}/{name}/thermal_throttle/core_throttle_count")
        for name in tree.names(cpus)
        if re.fullmatch(r"cpu\d+", name)
    ]
    if any(count is not None for count in throttled):
        seen["throttled"] = sum(count or 0 for count in throttled)
    return seen


def _number(tree: Tree, path: str) -> int | None:
    text = (tree.read_text(path) or "").strip()
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None


def beside(job: int, measured: JobMeasurement) -> Iterator[dict[str, Any]]:
    """Yield the disturbances of a measurement by run: shares of steal time and of OS noise, sensors, and the fall of
    clocks."""
    cpus = max(len(measured.header["cpus"]), 1)
    for number, run in enumerate(measured.runs):
        trailer = run["trailer"]
        time = float(trailer.get("elapsed_s", np.nan)) * cpus
        steal = float(trailer.get("steal_s", np.nan)) - _TICK_S * cpus
        seen: dict[str, Any] = {"steal_share": steal / time if time > 0 and steal > 0 else 0.0}
        seen["lost_share"] = float(trailer.get("lost_share") or 0.0)
        seen |= _counters(run["sensors"] or {}, trailer.get("sensors") or {})
        if {"start_hz", "end_hz"} <= set(measured.columns):
            fell = 1 - measured.columns["end_hz"][number] / measured.columns["start_hz"][number]
            seen["clock_fell"] = float(np.median(fell[np.isfinite(fell)])) if np.isfinite(fell).any() else 0.0
        if "wrong_bursts" in measured.columns:
            seen |= _wrong(measured, np.nan_to_num(measured.columns["wrong_bursts"][number]))
        if any(seen.values()):
            yield {"job": job, "run": int(run["run"]), "measurement": measured.name, **seen}


def _wrong(measured: JobMeasurement, bursts: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Return the number of bursts of a run that ended with a wrong number (`wrong`). If a cell is of one CPU, also
    return these CPUs (`wrong_cpus`). `bursts` are by pass and cell."""
    of_cells = bursts.reshape(-1, bursts.shape[-1]).sum(axis=0)
    if not of_cells.any():
        return {}
    cpus = [] if {"cores", "scope"} & set(measured.places) else measured.places["cpu"][of_cells > 0].tolist()
    return {"wrong": int(of_cells.sum()), "wrong_cpus": sorted(set(cpus))}


def _counters(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What counters rose by, and the hottest sensor; nothing where it is unknown."""

    def rose(key: str, *within: str) -> int:
        old, new = before.get(key) or {}, after.get(key) or {}
        for name in within:
            old, new = ({k: v.get(name, 0) for k, v in of.items()} for of in (old, new))
        return sum(max(0, int(count) - int(old.get(counter, 0))) for counter, count in new.items())

    heat = after.get("temperatures_c") or {}
    hottest = max(heat, key=lambda name: heat[name], default="")
    return {
        "throttled": rose("throttle_core") + rose("throttle_package"),
        "corrected": rose("edac", "ce"),
        "uncorrected": rose("edac", "ue"),
        "hottest_c": float(heat[hottest]) if hottest else 0.0,
        "hottest": hottest,
    }
