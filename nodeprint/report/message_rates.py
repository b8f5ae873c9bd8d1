"""Facts of a LinkTest matrix: minimum, mean and maximum as times and rates, and the measurement parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nodeprint.judge.verdict import FabricVerdict
from nodeprint.report import names
from nodeprint.report.figures.node_levels import Floats
from nodeprint.settings.texts import say


def messages_at_once(operation: str) -> int:
    """Return the number of messages that one time covers: two if both directions are measured at once."""
    return 2 if operation == "bidirectional" else 1


def rates(times_ns: Mapping[str, float], message_bytes: float | None, operation: str, at_once: int) -> dict[str, str]:
    """Return times by name, each with its rate, which counts both messages if both directions are measured at once.

    If several pairs are measured at once, their total rate at the mean time is added.
    """
    messages = messages_at_once(operation)
    rows = {}
    for name, time in times_ns.items():
        rate = f", {messages * message_bytes / time:.3g} GB/s" if message_bytes else ""
        rows[name] = f"{names.duration(time)}{rate}"
    if message_bytes and at_once > 1:
        rows[f"{at_once} pairs together"] = f"{at_once * messages * message_bytes / times_ns['mean']:.3g} GB/s"
    return rows


def of_fabric(fabric: FabricVerdict) -> dict[str, str]:
    """Return the extremes and mean of messages between nodes as times with rates, or in the unit of a table."""
    shown = fabric.shown
    extremes = {"minimum": shown.minimum, "mean": shown.mean, "maximum": shown.maximum}
    if shown.unit == "ns":
        return rates(extremes, fabric.message_bytes, fabric.operation, fabric.at_once)
    return {name: names.quantity(value, shown.unit) for name, value in extremes.items()}


def facts(
    values_ns: Floats, header: Mapping[str, Any], slowest: Sequence[Mapping[str, Any]] = ()
) -> tuple[tuple[str, str], ...]:
    """Return minimum, mean and maximum of the pairs' values, and the measurement parameters; empty without a value.

    `slowest` are pairs with their first value and their value remeasured one at a time (slowest_again of
    `nodeprint.data.job.jobs.JobMeasurement`).
    """
    finite = values_ns[np.isfinite(values_ns)]
    if not finite.size:
        return ()
    times = {"minimum": float(finite.min()), "mean": float(finite.mean()), "maximum": float(finite.max())}
    message, operation = header.get("message_bytes"), str(header.get("operation", ""))
    words = [str(word) for word in header.get("arguments") or ()]
    given, transport, again = dict(pairwise(words)), header.get("transport") or {}, list[str]()
    for pair in slowest:
        first, second = (names.duration(pair[key]) for key in ("first_ns", "again_ns"))
        again.append(say("again", a=pair["a"], b=pair["b"], first=first, again=second))
    rows = {
        **rates(times, message, operation, int(header.get("parallel", 1))),
        say("again_alone", change=say("change", "time", "most")): "; ".join(again),
        "pairs": f"{finite.size:,}",
        "message": names.message_size(message),
        "mode": operation,
        "schedule": given.get("--schedule", ""),
        "buffers": given.get("--buffers", ""),
        "order": "by seed" if "--mix" in words else "",
        "samples": str(header.get("batches", "")),
        "MPI": str(transport.get("library", "")),
        "transport": "/".join([*(transport.get("pml") or ()), *(transport.get("btl") or ())]),
        "copies": str(transport.get("single_copy", "")),
    }
    return tuple((key, value) for key, value in rows.items() if value)
