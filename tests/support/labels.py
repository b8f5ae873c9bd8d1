"""Labels of made-up machines, and what must be true of them."""

from __future__ import annotations

from nodeprint.machine.topology import captured
from nodeprint.machine.topology.model import Level, Topology
from tests.support.machines import Fake


def read(fake: Fake) -> Topology:
    return captured.read(fake.tree())


def parts(labels: Topology, level: Level) -> set[tuple[int, ...]]:
    return set(labels.groups(level).values())


def ids(labels: Topology) -> set[str]:
    return {warning.id for warning in labels.warnings}


def assert_labeled(labels: Topology, fake: Fake, *levels: Level) -> None:
    for level in levels:
        assert parts(labels, level) == fake.partition("node" if level == "numa" else level), level
