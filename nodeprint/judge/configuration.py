"""Configurations: nodes with the same layout and the same hard fields of their fingerprints."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nodeprint.data.places.homes import FAR
from nodeprint.data.places.layout import Ints
from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedNode
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.machine import fingerprint
from nodeprint.machine.fingerprint import NODE_TOKENS, FieldDifference, Value, normalized_cmdline


def normalized(fields: Mapping[str, Any], acceptance: Acceptance) -> dict[str, Value]:
    """Known fields as text. The kernel command line excludes each node's own tokens."""
    out: dict[str, Value] = {}
    for key, value in fields.items():
        if value is None or value == "":
            continue
        text = str(value)
        if key == "cmdline":
            text = normalized_cmdline(text, (*NODE_TOKENS, *acceptance.fingerprint.cmdline_ignored))
        out[key] = text
    return out


def differences(
    nodes: Sequence[PackedNode], acceptance: Acceptance, more: Collection[str] = ()
) -> dict[str, list[FieldDifference]]:
    """By node, the hard and soft fields, and those in `more`, that differ from the majority.

    An unknown field is not a difference.
    """
    known = {node.name: normalized(node.fingerprint, acceptance) for node in nodes}
    judged = {*acceptance.fingerprint.hard, *acceptance.fingerprint.soft, *more}
    compared = {name: {key: value for key, value in fields.items() if key in judged} for name, fields in known.items()}
    return fingerprint.differences(compared, acceptance.fingerprint.hard)


#: The fields of a fingerprint that identify the processor; all others are settings or other hardware.
_PROCESSOR = ("cpu", "cpu_family", "cpu_model", "cpu_stepping")


def processor(node: PackedNode, acceptance: Acceptance) -> tuple[str, ...]:
    """The identity of a node's processor. Different processors are never compared."""
    fields = normalized(node.fingerprint, acceptance)
    return tuple(str(fields.get(key, "")) for key in _PROCESSOR)


def groups(
    nodes: Sequence[PackedNode], layouts: Mapping[int, str], differing: Mapping[str, Sequence[FieldDifference]]
) -> list[Ints]:
    """Numbers of measured nodes with the same layout and hard fields, the largest group first.

    A node of an unknown machine, such as an imported matrix without its component or its node, is a group by
    itself.
    """
    keyed: dict[tuple[str, ...], list[int]] = {}
    for i, node in sorted(enumerate(nodes), key=lambda entry: entry[1].name):
        if node.state == "measured":
            hard = (
                differing_field.identity for differing_field in differing.get(node.name, ()) if differing_field.hard
            )
            is_known = (node.identified or not node.imported) and not node.anonymous
            machine = layouts.get(i, "") if is_known else f"unknown: {node.name}"
            keyed.setdefault((machine, *hard), []).append(i)
    alike = sorted(keyed.values(), key=lambda numbers: (-len(numbers), nodes[numbers[0]].name))
    return [np.array(numbers) for numbers in alike]


def with_homes(nodes: Sequence[PackedNode], reduced: Sequence[Measured]) -> tuple[PackedNode, ...]:
    """Add the homes of the lines of each node's pairs to its fingerprint.

    The home determines a pair's latency, so nodes measured with other homes are other configurations.
    """
    homes: dict[int, set[str]] = {}
    of_cores = [quantity for quantity in reduced if quantity.core_to_core]
    nodes_of: dict[str, set[int]] = {}
    for quantity in of_cores:
        nodes_of.setdefault(quantity.measurement, set()).update(quantity.independent_jobs)
    everyone = set().union(*nodes_of.values())
    # a missing measurement is not another home
    common = {name for name, measured_on in nodes_of.items() if measured_on == everyone} or set(nodes_of)
    for quantity in (quantity for quantity in of_cores if quantity.measurement in common):
        near = "near" if FAR in quantity.homes else "not controlled"
        names = [near if home < 0 else "far" if home >= FAR else str(home) for home in quantity.homes]
        for node in quantity.independent_jobs:
            rows = [row for of_job in quantity.rows[node].values() for row in of_job]
            measured = [
                name for name, missing in zip(names, quantity.missing[rows].min(axis=0), strict=True) if missing < 1
            ]
            if measured:
                homes.setdefault(node, set()).add(", ".join(measured))
    return tuple(
        replace(node, fingerprint={**node.fingerprint, "homes": " / ".join(sorted(homes[i]))}) if i in homes else node
        for i, node in enumerate(nodes)
    )


def layouts(reduced: Sequence[Measured]) -> dict[int, str]:
    """By node, a key of its layout. A node without pairs has the most common key of nodes with its CPUs and NUMA
    nodes."""
    keys: dict[int, set[str]] = {}
    machines: dict[bytes, set[int]] = {}
    for quantity in (measurement for measurement in reduced):
        nodes = np.unique(quantity.node).tolist()
        if quantity.of_pairs:
            digest = hashlib.sha256(quantity.pair_layout.key).hexdigest()
            for node in nodes:
                keys.setdefault(node, set()).add(digest)
        else:
            machines.setdefault(quantity.layout.key, set()).update(nodes)
    layouts = {node: " ".join(sorted(homes)) for node, homes in keys.items()}
    for machine, nodes in machines.items():
        layout_counts = Counter(layouts[node] for node in sorted(nodes) if node in layouts)
        common = layout_counts.most_common(1)[0][0] if layout_counts else hashlib.sha256(machine).hexdigest()
        layouts |= {node: common for node in nodes if node not in layouts}
    return layouts
