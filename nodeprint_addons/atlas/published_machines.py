"""Published machines: the table reference.json, and how a card's figures stand to it. This is no verdict.

The table has figures alone, by machine: medians of classes of pairs, and where they are from.
`python -m nodeprint_addons.atlas.collect` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec

from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import processors
from nodeprint.summary.node_summary import NodeSummary, processor_key
from nodeprint_addons.atlas.atlas_texts import say

#: Figures of one processor vary so much with the clock alone.
_ALIKE = 0.1
#: Classes unaffected by the home of the line, as it stays in one cache; with their names.
_INSIDE = {"same core": "inside a core", "same CCX": "inside the CCX", "same socket": "inside the socket"}


class PublishedMachine(msgspec.Struct, frozen=True):
    """A published machine: medians of its pair classes in ns, or of their components if these differ.

    `source` is a key of the table, `file` its name there.
    """

    processor: str
    sockets: int
    cpus: int
    operation: str
    classes: Mapping[str, float]
    source: str
    file: str = ""


class ReferenceTable(msgspec.Struct, frozen=True):
    """The whole reference; each of its `sources` has a `url`, a `version` there, and a `license`."""

    sources: Mapping[str, Mapping[str, str]]
    machines: tuple[PublishedMachine, ...]
    schema: int = 1


class PublishedComparison(msgspec.Struct, frozen=True):
    """A class of a card beside `machines` published ones, whose medians are from `low_ns` to `high_ns`. `kin` is what
    they have in common with it: processor, or generation. `alike`: it is among them, or as near as clocks explain."""

    name: str
    value_ns: float
    low_ns: float
    high_ns: float
    machines: int
    kin: str
    alike: bool


class PublishedStanding(msgspec.Struct, frozen=True):
    """A card compared with the reference: compared classes, and reasons for others."""

    compared: tuple[PublishedComparison, ...] = ()
    not_compared: tuple[str, ...] = ()

    def sentences(self) -> tuple[str, ...]:
        """The standing in words: no result is called wrong."""
        return tuple(_sentence(comparison) for comparison in self.compared) + tuple(
            say("not_compared", reason=reason) for reason in self.not_compared
        )


@cache
def table() -> ReferenceTable:
    """The reference in this package."""
    return msgspec.json.decode(
        files("nodeprint_addons.atlas").joinpath("reference.json").read_bytes(), type=ReferenceTable
    )


def standing(card: NodeSummary, reference: ReferenceTable | None = None) -> PublishedStanding:
    """Compare a card with the reference."""
    reference = reference or table()
    matrix = card.matrix
    if matrix is None:
        return PublishedStanding(not_compared=(say("none"),))
    if card.origin.simulated:
        return PublishedStanding(not_compared=(say("simulated"),))
    if card.processor.virtual:
        reason = say("virtual")
        return PublishedStanding(not_compared=(reason,))
    same_way = [machine for machine in reference.machines if machine.operation == matrix.operation]
    if not same_way:
        return PublishedStanding(not_compared=(say("operation", operation=matrix.operation),))
    kin, machines = _kin(card.processor.name, same_way)
    if not machines:
        return PublishedStanding(not_compared=(say("no_machine"),))
    compared, apart = [], []
    for figure in card.figures:
        values = [value for machine in machines for value in _of_class(machine, figure.name)]
        if figure.measurement != matrix.measurement or not values:
            continue
        if figure.name not in _comparable(card):
            apart.append(figure.name)
            continue
        low, high = min(values), max(values)
        alike = low * (1 - _ALIKE) <= figure.median <= high * (1 + _ALIKE)
        count = sum(bool(_of_class(machine, figure.name)) for machine in machines)
        compared.append(PublishedComparison(figure.name, figure.median, low, high, count, kin, alike))
    why = (say("home", apart=", ".join(apart)),)
    return PublishedStanding(tuple(compared), why if apart else ())


def _of_class(machine: PublishedMachine, name: str) -> list[float]:
    """The median of a class, or those of its parts where they differ (`same core, CCX 0`)."""
    return [value for part, value in machine.classes.items() if part == name or part.startswith(f"{name}, ")]


def _comparable(card: NodeSummary) -> Sequence[str]:
    """The classes inside one cache; a whole socket where that has one."""
    parts = card.matrix.places.parts if card.matrix else {}
    caches, sockets = (len({part for part in parts.get(level, ()) if part >= 0}) for level in ("ccx", "socket"))
    return list(_INSIDE) if sockets and caches == sockets else list(_INSIDE)[:2]


def _kin(name: str, machines: Sequence[PublishedMachine]) -> tuple[str, list[PublishedMachine]]:
    """Machines with the same processor; where there are none, those of its generation."""
    wanted = processor_key(name)
    same = [machine for machine in machines if processor_key(machine.processor) == wanted]
    if same:
        return "processor", same
    generation = generation_of(name)
    return "generation", [
        machine for machine in machines if generation and generation_of(machine.processor) == generation
    ]


@cache
def generation_of(name: str) -> str:
    """The generation of a processor that the table of processors has, else empty."""
    try:
        return processors.part_named(processor_key(name)).generation.name
    except NodeprintError:
        return ""


def _sentence(comparison: PublishedComparison) -> str:
    span = (
        f"{comparison.low_ns:.0f} to {comparison.high_ns:.0f}"
        if round(comparison.low_ns) != round(comparison.high_ns)
        else f"{comparison.low_ns:.0f}"
    )
    key = "as" if comparison.alike else "one" if comparison.machines == 1 else "several"
    return say(
        key,
        place=_INSIDE[comparison.name],
        ns=f"{comparison.value_ns:.0f}",
        machines=comparison.machines,
        s="s" * (comparison.machines > 1),
        kin=comparison.kin,
        span=span,
    )
