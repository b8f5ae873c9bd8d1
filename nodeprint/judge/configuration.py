"""Which nodes are meant to be the same: by layout and by the hard keys of their fingerprints."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from nodeprint import fingerprint
from nodeprint.errors import printable
from nodeprint.judge.acceptance import Acceptance
from nodeprint.layout import Ints
from nodeprint.node_configuration import NODE_TOKENS, Value, normalised_cmdline
from nodeprint.packed import PackedNode


class FieldDifference(msgspec.Struct, frozen=True):
    """A key in which a node differs from the majority."""

    key: str
    value: str
    majority: str
    hard: bool

    @property
    def text(self) -> str:
        """For people."""
        if self.key == "kernel_hash":  # a hash says nothing to a reader
            return "nodeprint's kernels were built from different sources than on most nodes"
        label = fingerprint.label(self.key)
        if separator := fingerprint.LISTS.get(self.key):
            mine, theirs = (text.split(separator) for text in (self.value, self.majority))
            more = separator.join(item for item in mine if item not in theirs)
            less = separator.join(item for item in theirs if item not in mine)
            if more and less:
                return f"{label}: {printable(more)}, most nodes have {printable(less)}"
            missing = f"not {printable(less)}, which most nodes have" if less else "in another order than on most nodes"
            return f"{label}: {f'{printable(more)}, which most nodes do not have' if more else missing}"
        return f"{label} is {printable(self.value)}, most nodes have {printable(self.majority)}"


def normalised(fields: Mapping[str, Any], acceptance: Acceptance) -> dict[str, Value]:
    """Known keys as text, the kernel command line without each node's own tokens."""
    out: dict[str, Value] = {}
    for key, value in fields.items():
        if value is None or value == "":
            continue
        text = str(value)
        if key == "cmdline":
            text = normalised_cmdline(text, (*NODE_TOKENS, *acceptance.cmdline_ignored))
        out[key] = text
    return out


def differences(
    nodes: Sequence[PackedNode], acceptance: Acceptance, more: Collection[str] = ()
) -> dict[str, list[FieldDifference]]:
    """By node, the hard and soft keys, and those of `more`, that differ from the majority.

    An unknown key is not a difference.
    """
    known = {node.name: normalised(node.fingerprint, acceptance) for node in nodes}
    judged = {*acceptance.hard_keys, *acceptance.soft_keys, *more}
    told = {name: {key: value for key, value in fields.items() if key in judged} for name, fields in known.items()}
    out: dict[str, list[FieldDifference]] = {name: [] for name in known}
    for one in fingerprint.differences(told, acceptance.hard_keys):
        for name, value in one.others.items():
            out[name].append(FieldDifference(one.field, str(value), str(one.majority), one.hard))
    return out


def groups(
    nodes: Sequence[PackedNode], layouts: Mapping[int, str], found: Mapping[str, Sequence[FieldDifference]]
) -> list[Ints]:
    """Numbers of measured nodes that have layout and hard keys alike, the largest group first."""
    keyed: dict[tuple[str, ...], list[int]] = {}
    for i, node in sorted(enumerate(nodes), key=lambda entry: entry[1].name):
        if node.state == "measured":
            hard = (f"{one.key}={one.value}" for one in found.get(node.name, ()) if one.hard)
            keyed.setdefault((layouts.get(i, ""), *hard), []).append(i)
    alike = sorted(keyed.values(), key=lambda numbers: (-len(numbers), nodes[numbers[0]].name))
    return [np.array(numbers) for numbers in alike]
