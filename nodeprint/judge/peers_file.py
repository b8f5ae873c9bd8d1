"""peers.msgpack: what is needed of a judged fleet to judge one more node against it.

Of each group of many nodes that are compared with each other it has the places and the template of every measurement,
the peers' centre with its variances, and what else a node's verdict says of its peers. It is made with the verdict, and
may be removed at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint import __version__, files
from nodeprint.data import msgpack_arrays
from nodeprint.data.layout import Ints
from nodeprint.data.quantity import Floats, NodeLayout, Quantity
from nodeprint.judge import configuration
from nodeprint.judge.confirmation import Series
from nodeprint.judge.deviations import Block
from nodeprint.judge.fleet import letter
from nodeprint.judge.nodes import Reading
from nodeprint.judge.reduction import Reals
from nodeprint.stats.peers import LEAVE_OUT_BELOW

FILE = "peers.msgpack"
_SCHEMA = 1


class KeptQuantity(msgspec.Struct, frozen=True):
    """What a quantity is of, and its places: as of `Quantity`, without values."""

    measurement: str
    operation: str
    quantity: str
    unit: str
    tick_ns: float
    slots: Ints
    numa: Ints
    numa_nodes: int
    harvested: bool
    ordered: bool
    levels: tuple[str, ...]
    places: dict[str, Ints]
    names: dict[str, tuple[str, ...]]

    @property
    def layout(self) -> NodeLayout:
        """The places of the nodes."""
        return NodeLayout(self.slots, self.numa, self.numa_nodes, self.harvested, self.ordered, self.levels)


class KeptBlock(msgspec.Struct, frozen=True):
    """A block's peers, by part: their centre, whether there is one (`centred`), the spread over runs (`run_*`, as of
    `RunSpread`) and the level of simultaneous intervals; of so many `nodes`. By kind of node, those that are peers
    themselves first, how many `peers` they have, and by part the variance of a healthy node about the centre
    (`between`) and that of the centre (`variance`) with its `degrees`."""

    centre: Floats
    run_pooled: Floats
    run_degrees: Floats
    run_ratio_to: Floats
    tail: Floats
    nodes: int
    centred: npt.NDArray[np.bool_]
    peers: Floats
    between: Floats
    variance: Floats
    degrees: Floats


class KeptSeries(msgspec.Struct, frozen=True):
    """One measurement at one home: the number of its quantity and of the part of that, the template (place), the blocks
    of the first, second, ... jobs, and the parts that most nodes have."""

    quantity: int
    part: int
    template: Reals
    blocks: tuple[KeptBlock, ...]
    usual: npt.NDArray[np.bool_]


class KeptGroup(msgspec.Struct, frozen=True):
    """A group: its letter, which nodes are of it (layout and hard differences from the majority), its series, and of
    its nodes the usual measurements, the medians of clocks by slot and of the temperature, those of the rows of tables,
    and the names of those that have a finding, by its part and side."""

    letter: str
    layout: str
    hard: tuple[str, ...]
    series: tuple[KeptSeries, ...]
    usual: tuple[str, ...]
    clock_ghz: Floats
    temperature_c: float
    rows: tuple[tuple[str, str, float], ...]
    shared: tuple[tuple[str, bool, tuple[str, ...]], ...]


class KeptPeers(msgspec.Struct, frozen=True):
    """A judged fleet: by whom and by which acceptance it was judged, how many nodes it has, the day of its newest run,
    the tail of confirming intervals, the value of each field of the fingerprint that most nodes have, quantities and
    groups."""

    schema: int
    version: str
    acceptance: str
    nodes: int
    simulated: bool
    day: str
    confirming: float
    majority: dict[str, str]
    quantities: tuple[KeptQuantity, ...]
    groups: tuple[KeptGroup, ...]


def write(folder: Path, reading: Reading, confirming: float, acceptance: str) -> Path:
    """Write what is kept of a judged fleet; returns the path. Raises CannotWriteError."""
    population = reading.population
    quantities = [measurement.quantity for measurement in population.reduced]
    layouts = configuration.layouts(population.reduced)
    several = len(population.groups) > 1
    groups = [
        _group(reading, number, layouts, quantities, letter(number) if several else "")
        for number, group in enumerate(population.groups)
        if len(group.nodes) >= LEAVE_OUT_BELOW and not population.split_nodes
    ]
    kept = KeptPeers(
        _SCHEMA, __version__, acceptance, population.compared, population.fleet.simulated, reading.day, confirming,
        _majority(reading), tuple(_quantity(quantity) for quantity in quantities) if groups else (), tuple(groups),
    )  # fmt: skip
    return files.write(folder / FILE, msgspec.msgpack.encode(kept, enc_hook=msgpack_arrays.encoded))


def read(folder: Path, acceptance: str) -> KeptPeers | None:
    """What is kept of a judged fleet; None where there is nothing, or it is another version's or acceptance's."""
    path = folder / FILE
    try:
        kept = _DECODER.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, ValueError, TypeError):
        return None
    by_this = (kept.schema, kept.version, kept.acceptance) == (_SCHEMA, __version__, acceptance)
    return kept if by_this else None


def _quantity(of: Quantity) -> KeptQuantity:
    layout = of.layout
    return KeptQuantity(
        of.measurement, of.operation, of.quantity, of.unit, of.tick_ns, layout.slots, layout.numa, layout.numa_nodes,
        layout.harvested, layout.ordered, layout.levels, dict(of.places), dict(of.names),
    )  # fmt: skip


def _group(
    reading: Reading, number: int, layouts: Mapping[int, str], quantities: Sequence[Quantity], name: str
) -> KeptGroup:
    population = reading.population
    nodes = population.groups[number].nodes.tolist()
    first, own = nodes[0], set(nodes)
    differing = population.differing.get(population.fleet.nodes[first].name, ())
    series = [
        (of, usual)
        for of, usual in zip(reading.series, reading.usual_parts, strict=True)
        if int(of.matrix.nodes[0]) in own
    ]
    rows = {(row.measurement, row.name): row.group for i in nodes for row in reading.rows[i]}
    clock_ghz, temperature_c = reading.senses[number].usual()
    shared = [(part, side, names) for (of, part, side), names in sorted(reading.shared.items()) if of == number]
    return KeptGroup(
        name, layouts.get(first, ""), tuple(d.identity for d in differing if d.hard),
        tuple(_series(of, usual, quantities) for of, usual in series), tuple(reading.usual_measurements[number]),
        clock_ghz, temperature_c, tuple((*key, value) for key, value in sorted(rows.items())), tuple(shared),
    )  # fmt: skip


def _series(series: Series, usual: npt.NDArray[np.bool_], quantities: Sequence[Quantity]) -> KeptSeries:
    matrix = series.matrix
    quantity = next(number for number, of in enumerate(quantities) if of is matrix.quantity)
    each = matrix.part.places.stop - matrix.part.places.start
    part = matrix.part.places.start // each
    return KeptSeries(quantity, part, matrix.template, tuple(map(_block, series.blocks)), usual)


def _block(block: Block) -> KeptBlock:
    """The peers of a block. Of later jobs of few nodes all have the same centre, but in shares of the time, of which
    the largest is that of the peers."""
    template = block.template
    peers, first = np.unique(block.peers, return_index=True)
    kinds = template.kind[first]
    spread = block.spread
    return KeptBlock(
        template.centre.max(axis=0), spread.pooled, spread.degrees, spread.ratio_to, block.tail, block.nodes,
        block.centred, peers,
        template.between[kinds], template.variance[kinds], template.degrees[kinds],
    )  # fmt: skip


def _majority(reading: Reading) -> dict[str, str]:
    """The value that most nodes have of each field; of equally frequent ones that which sorts first."""
    counts: dict[str, Counter[str]] = {}
    for node in reading.population.fleet.nodes:
        if node.state == "measured":
            for key, value in configuration.normalised(node.fingerprint, reading.population.rules).items():
                counts.setdefault(key, Counter())[str(value)] += 1
    return {
        key: min(values, key=lambda value, values=values: (-values[value], value))  # type: ignore[misc]
        for key, values in sorted(counts.items())
    }


_DECODER = msgspec.msgpack.Decoder(KeptPeers, dec_hook=msgpack_arrays.decoded)
