"""Which nodes are meant to be the same: by layout and by the hard keys of their fingerprints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodeprint.fingerprint import NODE_TOKENS, normalised_cmdline
from nodeprint.packed import PackedNode
from nodeprint.verdict.acceptance import Acceptance


@dataclass(frozen=True)
class Difference:
    """A key in which a node differs from the majority."""

    key: str
    value: str
    majority: str
    hard: bool


def normalised(fingerprint: Mapping[str, Any], acceptance: Acceptance) -> dict[str, str]:
    """Known keys as text, the kernel command line without each node's own tokens."""
    out = {}
    for key, value in fingerprint.items():
        if value is None or value == "":
            continue
        text = str(value)
        if key == "cmdline":
            text = normalised_cmdline(text, (*NODE_TOKENS, *acceptance.cmdline_ignored))
        out[key] = text
    return out


def majority(fingerprints: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The most frequent known value of each key, of equals the first by text."""
    counts: dict[str, Counter[str]] = {}
    for fingerprint in fingerprints:
        for key, value in fingerprint.items():
            counts.setdefault(key, Counter())[value] += 1
    return {key: min(c, key=lambda value: (-c[value], value)) for key, c in sorted(counts.items())}


def differences(nodes: Sequence[PackedNode], acceptance: Acceptance) -> dict[str, list[Difference]]:
    """By node, the hard and soft keys that differ from the majority; a key that is unknown never differs."""
    known = {node.name: normalised(node.fingerprint, acceptance) for node in nodes}
    common = majority(list(known.values()))
    out = {}
    for name, fingerprint in known.items():
        out[name] = [
            Difference(key, fingerprint[key], common[key], key in acceptance.hard_keys)
            for key in (*acceptance.hard_keys, *acceptance.soft_keys)
            if key in fingerprint and fingerprint[key] != common[key]
        ]
    return out


def groups(
    nodes: Sequence[PackedNode], layouts: Mapping[str, str], found: Mapping[str, Sequence[Difference]]
) -> list[list[str]]:
    """Names of measured nodes that have layout and hard keys alike, the largest group first."""
    keyed: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        if node.name in layouts:
            hard = tuple(f"{d.key}={d.value}" for d in found.get(node.name, ()) if d.hard)
            keyed.setdefault((layouts[node.name], *hard), []).append(node.name)
    return sorted(keyed.values(), key=lambda names: (-len(names), names[0]))
