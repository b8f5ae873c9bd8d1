"""What likwid's performance groups counted on a node, in sentences, or why nothing could be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeprint.machine.counters import Counters
from nodeprint.report import names
from nodeprint.settings.texts import say


def of_sensors(sensors: Mapping[str, Any]) -> tuple[str, ...]:
    """Sentences on the counters that a node's survey has (`nodeprint.data.job.sensors`); none where none were tried."""
    if "counters" not in sensors:
        return ()
    counted = msgspec.convert(sensors["counters"], Counters)
    sentences = []
    if counted.cores:
        counted_hz, timed_hz = (names.quantity(hz, "Hz") for hz in (counted.counted_hz, counted.timed_hz))
        difference = names.signed(counted.counted_hz / counted.timed_hz - 1)
        cores = names.counted(counted.cores, "core")
        sentences.append(
            say("counters", "clock", counted=counted_hz, timed=timed_hz, cores=cores, difference=difference)
        )
    if counted.seconds:
        moved, filled, read = (
            f"{size / 1e9:.3g} GB" for size in (counted.counted_bytes, counted.filled_bytes, counted.read_bytes)
        )
        sentences.append(
            say(
                "counters",
                "memory",
                counted=moved,
                filled=filled,
                read=read,
                seconds=names.duration(1e9 * counted.seconds),
                ratio=f"{counted.counted_bytes / (counted.filled_bytes + counted.read_bytes):.2f}",
                rate=names.quantity(counted.counted_bytes / counted.seconds, "B/s"),
            )
        )
    groups_by_reason: dict[str, list[str]] = {}
    for group, reason in counted.not_readable.items():
        groups_by_reason.setdefault(reason, []).append(group)
    sentences += [
        say("counters", "not_readable", group=names.listed(groups), reason=reason.rstrip("."))
        for reason, groups in groups_by_reason.items()
    ]
    return tuple(sentences)
