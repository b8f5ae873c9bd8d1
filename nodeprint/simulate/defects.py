"""Injected defects by text: `node017: core 37 +6%`.

A defect changes a component of a chip, the values of a run, or the node's own report of its configuration.

Parts have the numbers of the topology's labels, machine-wide, which the verdict and the floor plan use as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import CCD, CCX, QUADRANT, RANK, SOCKET, Ints, codes
from nodeprint.errors import NodeprintError, printable
from nodeprint.settings.measurements import measurements
from nodeprint.simulate.silicon import Chip, CoreDisturbance, Floats, Paths, with_pairs
from nodeprint.simulate.survey import FINGERPRINT

_CHANGE = r"(?P<sign>[+-])(?P<size>[0-9]{1,4}(?:\.[0-9]+)?)(?P<unit>%|ns)"


@dataclass(frozen=True)
class NodeDefects:
    """The defects of one node outside its chip."""

    disturbances: tuple[CoreDisturbance, ...] = ()
    fingerprint: dict[str, str] = field(default_factory=dict)
    renumbered: bool = False
    harvest: int = 0
    missing: bool = False
    cut: bool = False
    memory_channel: dict[int, float] = field(default_factory=dict)
    #: Factors on the latency from the CPUs of a NUMA node or CCD (level and number) to the memory of a NUMA node.
    memory_path: dict[tuple[str, int, int], float] = field(default_factory=dict)
    #: By socket: the remaining share of the clock under a power limit (all cores busy), and with bad cooling (hot).
    power_limit: dict[int, float] = field(default_factory=dict)
    cooling: dict[int, float] = field(default_factory=dict)
    #: By NUMA node the share of memory that has no huge pages.
    fragmented: dict[int, float] = field(default_factory=dict)
    #: Factors on the simulated values of kernels' files: by the name of the defect there, and the core (None: all).
    of_cells: dict[tuple[str, int | None], float] = field(default_factory=dict)


Effect = Callable[[Paths, Chip, NodeDefects], tuple[Chip, NodeDefects]]


@dataclass(frozen=True)
class Defect:
    """An injected defect: its node, text and effect."""

    node: str
    text: str
    effect: Effect


def parse(text: str) -> Defect:
    """A defect from `node: what`. Raises NodeprintError naming the text."""
    node, colon, change = (part.strip() for part in text.partition(":"))
    if not colon or not node or not change:
        raise NodeprintError(
            f"defect {printable(text)!r} is not 'node: what'", advice="write for instance 'node017: core 37 +6%'"
        )
    for pattern, build in _KINDS:
        match = re.fullmatch(pattern, change)
        if match:
            return Defect(node, change, build(match))
    raise NodeprintError(
        f"unknown defect {printable(change)!r}",
        advice="known are " + ", ".join(EXAMPLES),
    )


def apply(defects: Sequence[Defect], node: str, path: Paths, chip: Chip) -> tuple[Chip, NodeDefects]:
    """`chip` with the defects of `node`, and its defects outside the chip."""
    state = NodeDefects()
    for defect in defects:
        if defect.node == node:
            chip, state = defect.effect(path, chip, state)
    return chip, state


def _amount(match: re.Match[str]) -> float:
    return float(match["sign"] + match["size"])


def _factor(match: re.Match[str]) -> float:
    if match["unit"] != "%":
        raise NodeprintError(f"defect {match[0]!r} takes a percentage", advice="write for instance +5%")
    if _amount(match) <= -100:
        raise NodeprintError(f"defect {match[0]!r} leaves nothing", advice="take off less than 100%")
    return 1 + _amount(match) / 100


def _check_part(array: npt.NDArray[Any], index: int, part: str) -> None:
    if not 0 <= index < len(array):
        raise NodeprintError(f"there is no {part} {index} in this topology", advice=f"use 0 to {len(array) - 1}")


def _core_at(path: Paths, number: int) -> int:
    """The index in `path` of the core that the labels call `number`: they count by socket, CCD and CCX."""
    slots = path.layout.slots[path.core_slots]
    by_label = np.lexsort([slots[:, column] for column in (RANK, CCX, CCD, SOCKET)])
    _check_part(by_label, number, "core")
    return int(by_label[number])


def _parts_at(path: Paths, column: int, part: str, *numbers: int) -> Ints:
    """The part in `column` of each slot, by the label's number; in their order where the labels have none."""
    labels = path.layout.slots[:, column]
    if labels.min(initial=0) < 0:
        labels = codes(path.layout.slots[:, : column + 1])
    for number in numbers:
        if number not in labels:
            raise NodeprintError(
                f"there is no {part} {number} in this topology", advice=f"use {labels.min()} to {labels.max()}"
            )
    return np.asarray(labels, dtype=np.int64)


def _scaled(array: Floats, index: int, factor: float) -> Floats:
    out = array.copy()
    out[index] = out[index] * factor
    return out


def _core(match: re.Match[str]) -> Effect:
    def effect(path: Paths, chip: Chip, node: NodeDefects) -> tuple[Chip, NodeDefects]:
        core = _core_at(path, int(match["n"]))
        if match["unit"] == "ns":
            added = chip.core_add_ns.copy()
            added[core] += _amount(match)
            return replace(chip, core_add_ns=added), node
        return with_pairs(chip, np.where((path.core_a == core) | (path.core_b == core), _factor(match), 1.0)), node

    return effect


def _half_row(match: re.Match[str]) -> Effect:
    def effect(path: Paths, chip: Chip, node: NodeDefects) -> tuple[Chip, NodeDefects]:
        core = _core_at(path, int(match["n"]))
        partner = np.where(path.core_a == core, path.core_b, path.core_a)
        hit = ((path.core_a == core) | (path.core_b == core)) & (partner >= path.n_cores // 2)
        return with_pairs(chip, np.where(hit, _factor(match), 1.0)), node

    return effect


def _core_clock(match: re.Match[str]) -> Effect:
    def effect(path: Paths, chip: Chip, node: NodeDefects) -> tuple[Chip, NodeDefects]:
        core = _core_at(path, int(match["n"]))
        return replace(chip, core_clock=_scaled(chip.core_clock, core, _factor(match))), node

    return effect


def _ccd(match: re.Match[str]) -> Effect:
    number, to_others = int(match["n"]), bool(match["others"])

    def effect(path: Paths, chip: Chip, node: NodeDefects) -> tuple[Chip, NodeDefects]:
        column = CCD if path.layout.slots[:, CCD].min() >= 0 else CCX
        ccd = _parts_at(path, column, "CCD", number)
        a, b = ccd[path.layout.pairs[:, 0]] == number, ccd[path.layout.pairs[:, 1]] == number
        hit = (a ^ b) if to_others else (a | b)
        return with_pairs(chip, np.where(hit, _factor(match), 1.0)), node

    return effect


def _ccd_port(match: re.Match[str]) -> Effect:
    def effect(path: Paths, chip: Chip, node: NodeDefects) -> tuple[Chip, NodeDefects]:
        column = CCD if path.layout.slots[:, CCD].min() >= 0 else CCX
        hit = (_parts_at(path, column, "CCD", int(match["n"])) == int(match["n"]))[path.core_slots]
        rate = np.ones(path.n_ccx)
        rate[path.ccx_of_core[hit]] = _factor(match)
        return replace(chip, port_rate=chip.port_rate * rate), node

    return effect


def _link(match: re.Match[str]) -> Effect:
    p, q = int(match["p"]), int(match["q"])
    if p == q:
        raise NodeprintError(f"defect {match[0]!r} is no link", advice="name two quadrants")

    def effect(path: Paths, chip: Chip, node: NodeDefects) -> tuple[Chip, NodeDefects]:
        qa, qb = _parts_at(path, QUADRANT, "quadrant", p, q)[path.layout.pairs].T
        hit = ((qa == p) & (qb == q)) | ((qa == q) & (qb == p))
        return with_pairs(chip, np.where(hit, _factor(match), 1.0)), node

    return effect


def _socket(match: re.Match[str]) -> Effect:
    number = int(match["n"])

    def effect(path: Paths, chip: Chip, node: NodeDefects) -> tuple[Chip, NodeDefects]:
        socket_a, socket_b = _parts_at(path, SOCKET, "socket", number)[path.layout.pairs].T
        inside = (socket_a == number) & (socket_b == number)
        return with_pairs(chip, np.where(inside, _factor(match), 1.0)), node

    return effect


def _whole(name: str) -> Callable[[re.Match[str]], Effect]:
    def build(match: re.Match[str]) -> Effect:
        def effect(path: Paths, chip: Chip, node: NodeDefects) -> tuple[Chip, NodeDefects]:
            if name == "socket-link":
                return with_pairs(chip, np.where(path.cross, _factor(match), 1.0)), node
            if name == "fabric":
                return with_pairs(chip, np.where(path.in_ccx, 1.0, _factor(match))), node
            return replace(chip, whole=chip.whole * _factor(match)), node

        return effect

    return build


def _disturbed(rate: float) -> Callable[[re.Match[str]], Effect]:
    def build(match: re.Match[str]) -> Effect:
        groups = match.groupdict()
        busy = not groups.get("size")
        by = 1.5 if busy else _factor(match)
        run = int(groups.get("run") or 0)

        def effect(path: Paths, chip: Chip, node: NodeDefects) -> tuple[Chip, NodeDefects]:
            core = _core_at(path, int(match["n"]))
            return chip, replace(node, disturbances=(*node.disturbances, CoreDisturbance(core, by, run, rate, busy)))

        return effect

    return build


def _node(**change: object) -> Callable[[re.Match[str]], Effect]:
    return lambda match: lambda path, chip, node: (chip, replace(node, **change))  # type: ignore[arg-type]


def _fingerprint(match: re.Match[str]) -> Effect:
    key, value = match["key"], match["value"]
    if key not in FINGERPRINT:
        raise NodeprintError(f"simulated nodes have no field {key!r}", advice=f"known are {', '.join(FINGERPRINT)}")
    return lambda path, chip, node: (chip, replace(node, fingerprint={**node.fingerprint, key: value}))


def _nps(match: re.Match[str]) -> Effect:
    return lambda path, chip, node: (replace(chip, nps1=True), node)


def _harvest(match: re.Match[str]) -> Effect:
    return lambda path, chip, node: (chip, replace(node, harvest=int(match["n"])))


def _channel(match: re.Match[str]) -> Effect:
    return lambda path, chip, node: (
        chip,
        replace(node, memory_channel={**node.memory_channel, int(match["n"]): _factor(match)}),
    )


def _memory_path(match: re.Match[str]) -> Effect:
    factor = {(match["level"], int(match["n"]), int(match["m"])): _factor(match)}
    return lambda path, chip, node: (chip, replace(node, memory_path=node.memory_path | factor))


def _power_limit(match: re.Match[str]) -> Effect:
    return lambda path, chip, node: (
        chip,
        replace(node, power_limit={**node.power_limit, int(match["n"]): _factor(match)}),
    )


def _cooling(match: re.Match[str]) -> Effect:
    return lambda path, chip, node: (chip, replace(node, cooling={**node.cooling, int(match["n"]): _factor(match)}))


def _fragmented(match: re.Match[str]) -> Effect:
    share = int(match["share"]) / 100
    return lambda path, chip, node: (
        chip,
        replace(node, fragmented={**node.fragmented, int(match["n"]): share}),
    )


def _of_cells(match: re.Match[str]) -> Effect:
    def effect(path: Paths, chip: Chip, node: NodeDefects) -> tuple[Chip, NodeDefects]:
        key = match["name"], None if match["n"] is None else _core_at(path, int(match["n"]))
        return chip, replace(node, of_cells={**node.of_cells, key: _factor(match)})

    return effect


#: Those that kernels' files name.
_DECLARED = sorted(
    {name for of in measurements().values() if of.simulated is not None for name in of.simulated.defects}
)


_KINDS: tuple[tuple[str, Callable[[re.Match[str]], Effect]], ...] = (
    (rf"core (?P<n>\d+) {_CHANGE}", _core),
    (rf"core-clock (?P<n>\d+) {_CHANGE}", _core_clock),
    (rf"half-row (?P<n>\d+) {_CHANGE}", _half_row),
    (rf"ccd (?P<n>\d+) (?P<others>to-others )?{_CHANGE}", _ccd),
    (rf"ccd-port (?P<n>\d+) {_CHANGE}", _ccd_port),
    (rf"link q(?P<p>\d+)-q(?P<q>\d+) {_CHANGE}", _link),
    (rf"socket (?P<n>\d+) {_CHANGE}", _socket),
    (rf"socket-link {_CHANGE}", _whole("socket-link")),
    (rf"fabric {_CHANGE}", _whole("fabric")),
    (rf"global {_CHANGE}", _whole("global")),
    (r"nps 1", _nps),
    (r"renumbered", _node(renumbered=True)),
    (r"harvest (?P<n>\d+)", _harvest),
    (r"busy core (?P<n>\d+) run (?P<run>\d+)", _disturbed(0.9)),
    (rf"intermittent core (?P<n>\d+) {_CHANGE}", _disturbed(0.3)),
    (r"fingerprint (?P<key>[a-z_]+)=(?P<value>.+)", _fingerprint),
    (r"missing", _node(missing=True)),
    (r"cut", _node(cut=True)),
    (rf"memory-channel node (?P<n>\d+) {_CHANGE}", _channel),
    (rf"memory (?P<level>node|ccd)(?P<n>\d+)-to-node(?P<m>\d+) {_CHANGE}", _memory_path),
    (rf"power-limit socket (?P<n>\d+) {_CHANGE}", _power_limit),
    (rf"cooling socket (?P<n>\d+) {_CHANGE}", _cooling),
    (r"fragmented node (?P<n>\d+) (?P<share>100|\d?\d)%", _fragmented),
    (rf"(?P<name>{'|'.join(map(re.escape, _DECLARED))})(?: core (?P<n>\d+))? {_CHANGE}", _of_cells),
)
EXAMPLES = (
    "core 37 +6%",
    "core 37 +4ns",
    "core-clock 37 -15%",
    "half-row 37 +6%",
    "ccd 3 +5%",
    "ccd 3 to-others +5%",
    "ccd-port 3 -15%",
    "link q0-q2 +5%",
    "socket 1 +5%",
    "socket-link +4%",
    "fabric +5%",
    "global +3%",
    "nps 1",
    "renumbered",
    "harvest 2",
    "busy core 5 run 1",
    "intermittent core 9 +30%",
    "fingerprint microcode=0x1234",
    "missing",
    "cut",
    "memory-channel node 1 -12%",
    "memory node1-to-node0 +20%",
    "memory ccd2-to-node0 +20%",
    "power-limit socket 1 -15%",
    "cooling socket 0 -15%",
    "fragmented node 1 40%",
    *(f"{name} +200%" for name in _DECLARED),
)
