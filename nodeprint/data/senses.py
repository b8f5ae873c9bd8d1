"""What a node's own instruments said: clocks of cores, temperature, memory errors, throttling.

They explain findings; nothing is judged by them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nodeprint.machine.tree import Tree

if TYPE_CHECKING:
    from nodeprint.data.jobs import Job

#: Thermometers of processors by their driver's name.
_PROCESSOR = frozenset({"k10temp", "zenpower", "coretemp", "cpu_thermal", "soc_thermal"})


def of(jobs: Sequence[Job], cpus: Sequence[int]) -> dict[str, Any]:
    """Of the newest job: `clock_ghz` by CPU of `cpus` (None where none was seen); no key where no job has clocks."""
    clocks = _clocks(jobs)
    return {"clock_ghz": [clocks.get(cpu) for cpu in cpus]} if clocks else {}


def _clocks(jobs: Sequence[Job]) -> dict[int, float]:
    for job in reversed(jobs):
        for one in job.pairs:
            of_runs = np.array([run["clock_ghz"] for run in one.runs], dtype=np.float32)
            finite = np.isfinite(of_runs).any(axis=0)
            if not finite.any():
                continue
            middle = np.nanmedian(of_runs[:, finite], axis=0)
            return dict(zip(np.array(one.cpus)[finite].tolist(), np.round(middle, 4).tolist(), strict=True))
    return {}


def of_survey(tree: Tree) -> dict[str, Any]:
    """What a survey has of `temperature_c` (the hottest processor), `memory_errors` and `throttled` (counts since
    boot). What was not seen has no key."""
    found: dict[str, Any] = {}
    degrees = [
        value / 1000
        for sensor in tree.names("sys/class/hwmon")
        if (tree.read_text(f"sys/class/hwmon/{sensor}/name") or "").strip() in _PROCESSOR
        for name in tree.names(f"sys/class/hwmon/{sensor}")
        if re.fullmatch(r"temp\d+_input", name)
        if (value := _number(tree, f"sys/class/hwmon/{sensor}/{name}")) is not None
    ]
    if degrees:
        found["temperature_c"] = max(degrees)
    controllers = "sys/devices/system/edac/mc"
    errors = [
        _number(tree, f"{controllers}/{name}/{kind}")
        for name in tree.names(controllers)
        if re.fullmatch(r"mc\d+", name)
        for kind in ("ce_count", "ue_count")
    ]
    if any(count is not None for count in errors):
        found["memory_errors"] = sum(count or 0 for count in errors)
    cpus = "sys/devices/system/cpu"
    throttled = [
        _number(tree, f"{cpus}/{name}/thermal_throttle/core_throttle_count")
        for name in tree.names(cpus)
        if re.fullmatch(r"cpu\d+", name)
    ]
    if any(count is not None for count in throttled):
        found["throttled"] = sum(count or 0 for count in throttled)
    return found


def _number(tree: Tree, path: str) -> int | None:
    text = (tree.read_text(path) or "").strip()
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None


def clock_against(mine: Mapping[str, Any], peers: Sequence[Mapping[str, Any]], slots: Sequence[int]) -> float | None:
    """The clock of some slots over that of the same slots of peers (medians), None where either is not known."""
    own = [_at(mine, slot) for slot in slots]
    theirs = [[value for peer in peers if (value := _at(peer, slot)) is not None] for slot in slots]
    ratios = [one / float(np.median(many)) for one, many in zip(own, theirs, strict=True) if one is not None and many]
    return float(np.median(ratios)) if ratios else None


def _at(senses: Mapping[str, Any], slot: int) -> float | None:
    clocks = senses.get("clock_ghz") or ()
    return clocks[slot] if slot < len(clocks) else None
