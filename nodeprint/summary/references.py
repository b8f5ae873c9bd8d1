"""References of add-ons: machines outside the campaign that a node is compared with. This is no verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from nodeprint import addons
from nodeprint.summary.node_summary import NodeSummary


class ReferenceResult(Protocol):
    """The result of one node: a struct that JSON can hold, and its sentences."""

    def sentences(self) -> tuple[str, ...]:
        """The result for a reader."""


def references() -> Mapping[str, Callable[[NodeSummary], ReferenceResult]]:
    """The references of all installed add-ons by name, as `published`."""
    return addons.load(addons.REFERENCES)
