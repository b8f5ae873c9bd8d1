"""Shared words of sentences: names of metrics, components and changes, with verb and adjective."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from nodeprint.data.places.measured import is_metric, models
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.verdict import Agreement, Finding, Group, Shared, TimeEffect
from nodeprint.report import names
from nodeprint.settings.measurements import known, terms
from nodeprint.settings.texts import texts


def named(table: str, key: str) -> str:
    """Return a name from a table of texts or of a kernel's term. Without an entry it is the key in words: the
    dimensions of a component type become `CCD by scope and stream`."""
    term = terms().get(key)
    words = texts()[table].get(key)
    if term is not None and table in ("metrics", "terms"):
        words = term.name if table == "metrics" else term.what
    if table == "metrics" and is_metric(key):
        return str(words or key)
    if table == "terms" and not words:
        first, *others = map(names.dimension, key.split(" x "))
        return f"{first} by {names.listed(others)}" if others else first
    return str(words or key.replace("-", " ").replace("_", " "))


def named_metric(key: str) -> str:
    """Return the words for a metric or a measurement."""
    return measured(key) if key in models() else named("metrics", key)


def sentence(text: str) -> str:
    """Capitalize `text`; names of measurements, and metrics with a digit, stay unchanged."""
    first = text.split(" ", 1)[0].strip("(),:")
    return text if first in models() or re.search(r"[0-9_]", first) else text[:1].upper() + text[1:]


def begin(text: str, measurement: str) -> str:
    """Capitalize `text` unless it begins with the name of a metric."""
    return text if is_metric(measurement) and text.startswith(measurement) else sentence(text)


def measured(measurement: str) -> str:
    """Name the quantity of a measurement in the reader's terms: `memory bandwidth`."""
    of = known(measurement)
    return measurement if of is None else of.what


def noun_phrase(of: Finding | Agreement) -> str:
    """Name a component with its metric, which `core 37 (CPU 37)` implies: `memory bandwidth of NUMA node 1`."""
    if isinstance(of, Finding) and of.of_limit and not is_metric(of.measurement):
        return f"{measured(of.measurement)} ({names.row(str(of.component.where['figure']))})"
    if isinstance(of, Finding) and is_metric(of.measurement):
        return f"{of.measurement} of {names.component(of.component)}" if of.component.where else of.measurement
    name = names.scoped(of.component) if isinstance(of, Agreement) else names.component(of.component)
    if of.component.term.startswith("fabric-"):
        return name
    if of.measurement.startswith("coherence") and names.is_of_pairs(of.component):
        measurement = known(of.measurement)
        return f"{name} ({measurement.instruction})" if measurement and measurement.instruction else name
    if not of.measurement:
        return name
    name = name.removeprefix("memory of ") if measured(of.measurement).startswith("memory") else name
    where = of.component.where
    is_words = where and not names.is_of_pairs(of.component) and all(isinstance(value, str) for value in where.values())
    return f"{measured(of.measurement)} ({name})" if is_words else f"{measured(of.measurement)} of {name}"


def without_cpus(where: Mapping[str, int | str]) -> tuple[tuple[str, int | str], ...]:
    """Return a component that is the same on every node, without the operating system's CPU numbers."""
    return tuple((key, value) for key, value in where.items() if not key.startswith("cpu") or key == "cpu_node")


def is_channel(finding: Finding) -> bool:
    """Tell whether the finding looks like a memory channel of a node, seen from its own CPUs."""
    where = finding.component.where
    own = where.get("cpu_node", where.get("memory_node")) == where.get("memory_node", -1)
    slow = finding.effect < 0 and finding.unit == "B/s" and finding.state is not Certainty.INTERMITTENT
    return slow and own and "memory-channel" in finding.consistent_with


def memory_node(finding: Finding) -> str:
    """Return the NUMA node whose memory the finding is about."""
    return f"NUMA node {finding.component.where['memory_node']}"


def change(effect: float, measurement: str) -> str:
    """Return the adjective of a difference: slower or faster for latencies, higher or lower otherwise."""
    return changed(effect, measurement)["change"]


def changed(
    effect: float = 1.0, measurement: str = "", *, several: bool = False, past: bool = False, of_value: bool = False
) -> dict[str, str]:
    """Return verb and adjective of a change, `is` and `slower`. Without a measurement, it is a latency.

    A component is slower; `of_value`, its time is longer and its latency higher.
    """
    model = models().get(measurement)
    is_time = (model is None or (model.better == "lower" and model.scale != "share")) and not is_metric(measurement)
    of_time = "time" if not of_value else "duration" if "time" in measured(measurement).split() else "other"
    words = texts()["change"][of_time if is_time else "other"]
    singular, plural = words["past" if past else "present"]
    return {"change": words["more" if effect > 0 else "less"], "verb": plural if several else singular}


def difference(
    of: Finding | Group | Shared | TimeEffect, *, several: bool = False, past: bool = False
) -> dict[str, str]:
    """Return the values of a difference that its sentences share."""
    tolerance = 0.0 if isinstance(of, Shared) else of.tolerance
    is_named = isinstance(of, Finding) and noun_phrase(of).startswith(measured(of.measurement))
    of_value = is_named or isinstance(of, TimeEffect)
    effect, of_tolerance = names.with_tolerance(abs(of.effect), tolerance, of.measurement)
    return {
        "effect": effect.removeprefix("+").replace(" points", " percentage points"),
        **changed(of.effect, of.measurement, several=several, past=past, of_value=of_value),
        "interval": f"interval {names.interval(of.interval.low, of.interval.high, of.effect, of.measurement)}",
        "tolerance": of_tolerance,
        "times": names.times(of.effect, tolerance),
    }


def place(of: Group | Shared) -> str:
    """Return the component of a difference, and its measurement."""
    assert of.component is not None
    return f"{names.scoped(of.component)} ({measured(of.measurement)})"


def in_unit(value: float, unit: str, behind: str = "") -> str:
    """Return the difference in the measurement's unit as the end of a sentence; empty if it is unknown."""
    if not math.isfinite(value):
        return ""
    more = f"{names.quantity(abs(value), unit)} {'more' if value > 0 else 'less'}"
    return f", {more} {behind}".rstrip()
