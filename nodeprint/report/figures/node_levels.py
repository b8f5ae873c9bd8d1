"""The levels of a quantity at each place on each node: the values that figures compare."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedFleet, PackedNode
from nodeprint.errors import NodeprintError
from nodeprint.report import names
from nodeprint.settings.measurements import known
from nodeprint.stats.robust import median_of_passes
from nodeprint.structure.found import Structure

Floats = npt.NDArray[np.floating]


class Unit(msgspec.Struct, frozen=True):
    """A display unit, and its size in the measurement's unit."""

    name: str
    size: float


class NodeLevels(msgspec.Struct, frozen=True, dict=True):
    """A quantity on the nodes of one layout.

    `values` (node, place) are in the quantity's unit, NaN if not measured: the median over passes, then over the runs
    of each node's newest job.
    """

    quantity: Measured
    nodes: tuple[PackedNode, ...]
    values: Floats

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each node by name."""
        return {node.name: row for row, node in enumerate(self.nodes)}

    @cached_property
    def found(self) -> dict[str, Structure]:
        """The groups detected in each node's matrix, cached by `part_levels`."""
        return {}

    def cpus(self, node: str, slots: Iterable[int]) -> tuple[int, ...]:
        """Return the OS numbers of a node's CPUs by their slots."""
        of_node, every = self.nodes[self.rows[node]], range(len(self.quantity.layout.slots))
        numbers = of_node.cpus or every if self.quantity.of_pairs else of_node.numbers["cpu"]
        return tuple(numbers[slot] for slot in slots)

    def of(self, node: str) -> Floats:
        """Return a node's values (place)."""
        return np.asarray(self.values[self.rows[node]])

    def of_peers(self, node: str, peers: Sequence[str] = ()) -> Floats:
        """Return the values (peer, place) of the named peers, or else of all other nodes."""
        rows = [self.rows[name] for name in peers or self.rows if name in self.rows and name != node]
        return np.asarray(self.values[rows])

    @cached_property
    def slots(self) -> Ints:
        """The slots with more than one pair, which a second thread measured only with the first has not."""
        count = np.bincount(self.quantity.pairs.ravel(), minlength=len(self.quantity.layout.slots))
        return np.flatnonzero(count > (1 if count.max(initial=0) > 1 else 0))

    def home(self, home: int | None = None) -> int:
        """Return a home of pairs, the first by default. Raises NodeprintError for other measurements or homes."""
        quantity = self.quantity
        if not quantity.of_pairs:
            advice = "name a measurement of pairs, such as coherence-cas"
            raise NodeprintError(f"{quantity.measurement} does not measure pairs of CPUs", advice=advice)
        if home is not None and home not in quantity.homes:
            advice = f"choose from {', '.join(map(str, quantity.homes))}"
            raise NodeprintError(f"{quantity.measurement} was not measured at home {home}", advice=advice)
        return quantity.homes[0] if home is None else home

    def square(self, places: Floats, home: int | None = None) -> Floats:
        """Return values by place as a symmetric matrix of the `slots` at a home, the first by default."""
        at_home, pairs, size = self.home(home), self.quantity.pairs, len(self.quantity.layout.slots)
        start = self.quantity.homes.index(at_home) * len(pairs)
        out = np.full((size, size), np.nan, dtype=np.float64)
        out[pairs[:, 0], pairs[:, 1]] = out[pairs[:, 1], pairs[:, 0]] = places[start : start + len(pairs)]
        return np.asarray(out[np.ix_(self.slots, self.slots)])

    @cached_property
    def unit(self) -> Unit:
        """The display unit of the values."""
        unit = names.of_measurement(self.quantity.unit, self.quantity.measurement)
        return Unit("%", 0.01) if self.quantity.model.scale == "share" else shown_unit(unit, self.values)

    @property
    def title(self) -> str:
        """The title of an axis for the values, with their unit."""
        of = known(self.quantity.measurement)
        return f"{self.quantity.quantity if of is None else of.axis or of.what}, {self.unit.name}"


def levels(fleet: PackedFleet, measurement: str, node: str) -> NodeLevels:
    """Return a measurement on all nodes with the layout of `node`. Raises NodeprintError if it has none."""
    numbers = {packed.name: number for number, packed in enumerate(fleet.nodes)}
    if node not in numbers:
        raise NodeprintError(f"{node} is not a node of campaign {fleet.campaign}", advice=_choice(numbers))
    measured = [quantity for quantity in fleet.quantities if numbers[node] in quantity.newest_rows]
    for quantity in measured:
        if quantity.measurement == measurement:
            rows = quantity.newest_rows
            values = np.stack([median_of_runs(quantity, of_node) for of_node in rows.values()])
            return NodeLevels(quantity, tuple(fleet.nodes[number] for number in rows), values)
    advice = _choice(dict.fromkeys(of.measurement for of in measured)) if measured else "measure it first"
    raise NodeprintError(f"{node} has no values of {measurement}", advice=advice)


def _choice(names: Collection[str]) -> str:
    return f"choose from {', '.join(list(names)[:8])}{', ...' if len(names) > 8 else ''}"


def median_of_runs(quantity: Measured, rows: Sequence[int]) -> Floats:
    """Return the median over runs (rows) of the median over passes for each place; NaN if no run measured it."""
    return np.asarray(median_of_passes(_of_runs(quantity, rows)[None])[0], dtype=np.float64)


def mean_of_runs(quantity: Measured, rows: Sequence[int]) -> Floats:
    """Return the mean over runs (rows) of the median over passes for each place, as the judge does."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # what no run has stays NaN
        return np.asarray(np.nanmean(_of_runs(quantity, rows), axis=0), dtype=np.float64)


def _of_runs(quantity: Measured, rows: Sequence[int]) -> Floats:
    return median_of_passes(np.asarray(quantity.values[rows[0] : rows[-1] + 1])[[row - rows[0] for row in rows]])


def shown_unit(unit: str, values: Floats) -> Unit:
    """Return the display unit that suits values of this size."""
    if unit == "ns":
        with np.errstate(all="ignore"):
            long = np.nanmedian(values[:1]) >= 1e4 if values.size else False
        return Unit("\N{MICRO SIGN}s", 1e3) if long else Unit("ns", 1.0)
    if unit in ("1/s", names.FLOPS):
        largest = float(np.max(np.nan_to_num(values), initial=0.0))
        size, name = names.shown_unit(largest, unit)
        return Unit(name, size)
    return {"B/s": Unit("GB/s", 1e9), "Hz": Unit("GHz", 1e9)}.get(unit, Unit(unit, 1.0))
