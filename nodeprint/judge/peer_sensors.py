"""Sensor readings of a node's peers: clocks and temperatures, which explain a finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr


def table(sensors: Mapping[int, Mapping[str, Any]]) -> xr.Dataset:
    """The readings of a group's nodes, by their numbers in the fleet: `clock_ghz` (node, slot) and `temperature_c`
    (node), NaN if unknown."""
    slots = max((len(of_node.get("clock_ghz") or ()) for of_node in sensors.values()), default=0)
    clock_ghz = np.full((len(sensors), slots), np.nan)
    for row, of_node in enumerate(sensors.values()):
        for slot, clock in enumerate(of_node.get("clock_ghz") or ()):
            clock_ghz[row, slot] = np.nan if clock is None else clock
    temperature_c = [float(of_node.get("temperature_c", np.nan)) for of_node in sensors.values()]
    columns = {"clock_ghz": (("node", "slot"), clock_ghz), "temperature_c": ("node", np.array(temperature_c))}
    return xr.Dataset(columns, {"node": list(sensors)})


def clock(sensors: xr.Dataset, node: int, slots: Sequence[int]) -> float | None:
    """The clock of some slots of a node over that of the same slots of all others (medians); None if either is
    unknown."""
    known = [slot for slot in slots if slot < sensors.sizes["slot"]]
    clock_ghz = sensors["clock_ghz"].isel(slot=known)
    own, peers = clock_ghz.sel(node=node).values, clock_ghz.drop_sel(node=node).values
    measured = np.isfinite(own) & np.isfinite(peers).any(axis=0)
    if not measured.any():
        return None
    return float(np.median(own[measured] / np.nanmedian(peers[:, measured], axis=0)))


def temperature(sensors: xr.Dataset, node: int) -> float | None:
    """The median temperature of all other nodes, of an even number the warmer of the two in the middle; None without
    any."""
    peers_c = sensors["temperature_c"].drop_sel(node=node).values
    sorted_c = np.sort(peers_c[np.isfinite(peers_c)])
    return float(sorted_c[len(sorted_c) // 2]) if len(sorted_c) else None
