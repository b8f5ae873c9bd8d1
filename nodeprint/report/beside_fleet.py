"""Sentences that compare a node with the values of a fleet: matching values, and the size of each difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodeprint.errors import printable
from nodeprint.report import names, text
from nodeprint.settings.texts import say
from nodeprint.summary.fleet_reference import FleetReference, beside


def sentences(reference: FleetReference, processor: str, values: Mapping[tuple[str, str, int], float]) -> list[str]:
    """Return the sentences for `values`, keyed by measurement, name and home; `processor` is empty if unknown."""
    compared = beside(reference, processor, values)
    called = printable(reference.processor, 60) or say("beside_fleet", "unknown")
    if compared.empty:
        return [say("beside_fleet", "none", processor=called, own=printable(processor, 60) or "unknown")]
    simulated = say("beside_fleet", "simulated") if reference.simulated else ""
    counts = {"alike": int(compared["alike"].sum()), "nodes": int(compared["nodes"].max())}
    figures = names.counted(len(compared), "figure")
    first = say("beside_fleet", "all", figures=figures, processor=called, simulated=simulated, **counts)
    tolerances = (compared["effect"].abs() / compared["tolerance"])[~compared["alike"]]
    others = compared.loc[tolerances.sort_values(ascending=False, kind="stable").index]
    return [first, *map(_sentence, others.itertuples(index=False))]


def _sentence(figure: Any) -> str:
    name = figure.measurement if figure.name == "all" else f"{figure.measurement}, {figure.name}"
    change = text.change(figure.effect, figure.measurement)
    deviations = f"{figure.deviations:.1f}" if figure.deviations < 100 else "over 100"
    tolerance = names.tolerance(figure.tolerance)
    return say("beside_fleet", "other", of=figure, name=name, change=change, tolerance=tolerance, deviations=deviations)
