"""What is compared, and an interval: what findings, agreements and groups of a verdict are all said of."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Component(msgspec.Struct, frozen=True):
    """What is compared. `term` is its kind (node, socket, class, quadrant, link, ccd, ccx, block, core; of other
    measurements their term in measurements.yaml: numa, cache, bandwidth, clock, ...), `component_type` the kind of
    contrast that decided (core-near, core-far, ...), `where` its place, e.g. {"core": 37, "cpu": 37}. Parts are called
    by what they are on the machine: of the terms quadrant and link `numa` where it shows NUMA nodes and no quadrants,
    of ccd, block and ccx `ccx`, or `cluster` where it shows clusters and no L3; a `class` has its name."""

    term: str
    component_type: str
    where: Mapping[str, int | str] = {}


class Interval(msgspec.Struct, frozen=True):
    """Ends of an interval, relative."""

    low: float
    high: float
