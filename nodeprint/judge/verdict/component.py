"""A component and an interval, which findings, agreements and groups of a verdict share."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Component(msgspec.Struct, frozen=True):
    """A component that is compared. `term` is its kind: node, socket, class, quadrant, link, ccd, ccx, block or core.
    Other measurements use their term in measurements.yaml: numa, cache, bandwidth, clock, ... `component_type` is the
    kind of the deciding contrast (core-near, core-far, ...). `where` gives its position: {"core": 37, "cpu": 37}.

    The machine's parts give the names in `where`. Quadrants and links are `numa` if the machine shows NUMA nodes and no
    quadrants. The terms ccd, block and ccx are `ccx`, or `cluster` if it shows clusters and no L3. A `class` has its
    name.
    """

    term: str
    component_type: str
    where: Mapping[str, int | str] = {}


class Interval(msgspec.Struct, frozen=True):
    """Ends of an interval, relative."""

    low: float
    high: float
