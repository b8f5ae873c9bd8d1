"""How a node stands beside the figures of a fleet, in sentences: which are as there, and by how much others are not."""

from __future__ import annotations

from collections.abc import Mapping

from nodeprint.errors import printable
from nodeprint.report import names, text
from nodeprint.settings.texts import say
from nodeprint.summary.fleet_reference import Beside, FleetReference, beside


def sentences(reference: FleetReference, processor: str, values: Mapping[tuple[str, str, int], float]) -> list[str]:
    """Of a node with this `processor` (empty where unknown) and these `values` by measurement, name and home."""
    compared = beside(reference, processor, values)
    called = printable(reference.processor, 60) or say("beside_fleet", "unknown")
    if not compared:
        return [say("beside_fleet", "none", processor=called, own=printable(processor, 60) or "unknown")]
    alike = sum(of.alike for of in compared)
    nodes = max(of.figure.nodes for of in compared)
    first = say(
        "beside_fleet",
        "all",
        alike=alike,
        figures=names.counted(len(compared), "figure"),
        processor=called,
        nodes=nodes,
        simulated=say("beside_fleet", "simulated") if reference.simulated else "",
    )
    others = sorted((of for of in compared if not of.alike), key=lambda of: -abs(of.effect) / of.figure.tolerance)
    return [first, *map(_sentence, others)]


def _sentence(of: Beside) -> str:
    figure = of.figure
    name = figure.measurement if figure.name == "all" else f"{figure.measurement}, {figure.name}"
    return say(
        "beside_fleet",
        "other",
        name=printable(name, 80),
        value=names.quantity(of.value, figure.unit),
        effect=names.percent(abs(of.effect)),
        change=text.change(of.effect, figure.measurement),
        median=names.quantity(figure.median, figure.unit),
        tolerance=names.tolerance(figure.tolerance),
        deviations=f"{of.deviations:.1f}" if of.deviations < 100 else "over 100",
    )
