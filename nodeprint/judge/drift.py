"""Fields of fingerprints in which nodes differ from the majority."""

from __future__ import annotations

from collections.abc import Iterable

from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import configuration
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.machine import fingerprint
from nodeprint.machine.fingerprint import FieldDifference


def drift(nodes: Iterable[PackedNode], rules: Acceptance) -> dict[str, list[FieldDifference]]:
    """By node, the fields of its fingerprint that differ from the majority; nodes without any are left out."""
    identified = [node for node in nodes if node.fingerprint]
    differences = configuration.differences(identified, rules, fingerprint.DRIFT)
    return {name: differing for name, differing in differences.items() if differing}
