"""The summary of a measured node: from a campaign's records, without judging it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from nodeprint import __version__
from nodeprint.data.store import packing, store
from nodeprint.data.store.packed import PackedFleet, PackedNode
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance, figures, quality, reduction, tolerances
from nodeprint.judge.odd_runs import odd_runs
from nodeprint.judge.verdict import CellFigure, Disturbance
from nodeprint.machine.topology import serialized
from nodeprint.machine.topology.model import Topology
from nodeprint.settings.commit import commit
from nodeprint.summary.node_summary import (
    LEVELS,
    CpuLabels,
    MedianValue,
    NodeSummary,
    PairMatrix,
    ProcessorFacts,
    SummaryOrigin,
    finite,
    rounded,
    tenths,
)

#: Fields of the fingerprint that change figures and identify no host or user (no command line, no product, no serial).
_SETTINGS = (
    "cpu", "microcode", "kernel", "os", "bios", "governor", "boost", "smt", "thp", "numa_balancing", "clocksource",
    "mitigations", "memory_gib", "virtual", "numa_nodes", "nps",
)  # fmt: skip
_OF_PAIRS = "coherence-cas"


class MeasuredNode:
    """A node of a campaign, read: its summary and what keeps its figures from being its hardware's."""

    def __init__(self, campaign: Path, node: str = "") -> None:
        """Read `node`, which may be left out where there is one. Raises NodeprintError where it is not measured."""
        fleet = packing.pack(campaign)
        names = [node.name for node in fleet.nodes]
        if node == "" and len(names) != 1:
            advice = f"name one of them: a folder below {campaign / 'nodes'}"
            raise NodeprintError(f"is a campaign of {len(names)} nodes", where=campaign, advice=advice)
        if node and node not in names:
            raise NodeprintError(
                "no such node in its campaign", where=campaign / "nodes" / node, advice="see nodes.tsv"
            )
        number = names.index(node) if node else 0
        rules = acceptance.rules_of(campaign)
        self.fleet: PackedFleet = fleet
        self.node: PackedNode = fleet.nodes[number]
        if self.node.state != "measured":
            raise NodeprintError(self.node.reason or "was not measured", where=campaign, advice="measure it first")
        self.reduced = tuple(
            reduction.reduce(quantity) for quantity in fleet.quantities if number in quantity.newest_rows
        )
        newest = max(max(reduced.rows[number]) for reduced in self.reduced)
        odd = [odd_runs(of, tolerances.of_whole(of, rules)) for of in self.reduced]
        #: What makes it invalid, and all that disturbed it.
        self.invalid: list[Disturbance] = quality.of_job(self.node, number, newest, self.reduced, odd, rules)
        self.disturbances: list[Disturbance] = [
            *self.invalid,
            *quality.beside(self.node, number, self.reduced, rules),
        ]
        labels = store.survey(campaign / "nodes" / self.node.name).topology
        self.topology: Topology | None = serialized.from_text(labels) if labels else None
        self.number = number

    @cached_property
    def rows(self) -> Sequence[CellFigure]:
        """The medians of its measurements of other things than pairs."""
        return figures.of_rows(self.reduced, self.fleet.nodes)[self.number]

    @property
    def summary(self) -> NodeSummary:
        """Its summary."""
        began = min((start for reduced in self.reduced for start in reduced.started if start), default="")
        versions = {"nodeprint": __version__, "commit": commit(), **self.fleet.versions}
        return NodeSummary(
            processor=self._processor(),
            origin=SummaryOrigin("nodeprint", began[:10], versions, simulated=self.fleet.simulated),
            figures=tuple(self._figures()),
            matrix=self._matrix(),
            settings={key: self.node.fingerprint[key] for key in _SETTINGS if key in self.node.fingerprint},
            disturbed=tuple(sorted({disturbance.kind for disturbance in self.disturbances})),
            warnings=tuple(str(warning.get("id", "")) for warning in self.node.warnings),
        )

    def _processor(self) -> ProcessorFacts:
        facts, machine = self.node.fingerprint, self.topology.machine if self.topology else None
        labeled = {"sockets": 0, "cores": 0, "cpus": 0, "numa_nodes": 0}
        if self.topology:  # without /sys the fingerprint has no counts
            sockets, cores = (len(self.topology.groups(level)) for level in ("socket", "core"))
            nodes = len(self.topology.numa_nodes)
            labeled = {"sockets": sockets, "cores": cores, "cpus": len(self.topology.cpus), "numa_nodes": nodes}
        counts = {key: int(facts.get(key) or count) for key, count in labeled.items()}
        return ProcessorFacts(
            name=str(facts.get("cpu") or ""),
            generation=(machine.generation or "") if machine else "",
            virtual=machine.virtual if machine else None,
            **counts,
        )

    def _figures(self) -> list[MedianValue]:
        lost = quality.lost(self.node, self.number, self.reduced)
        classes = figures.marked(figures.of_classes(self.reduced, len(self.fleet.nodes))[self.number], lost)
        rows = figures.marked(self.rows, lost)
        of_pairs = [
            MedianValue(
                figure.measurement,
                figure.name,
                "ns",
                rounded(figure.median_ns),
                finite(figure.ci_low_ns),
                finite(figure.ci_high_ns),
                figure.runs,
                figure.home,
                {name: rounded(value) for name, value in figure.groups.items()},
                figure.left_out or msgspec.UNSET,
                rounded(figure.disturbed) if figure.is_marked else msgspec.UNSET,
            )
            for figure in classes
        ]
        of_cells = [
            MedianValue(
                row.measurement,
                row.name,
                row.unit,
                rounded(row.median),
                finite(row.ci_low),
                finite(row.ci_high),
                row.runs,
                left_out=row.left_out or msgspec.UNSET,
                disturbed=rounded(row.disturbed) if row.is_marked else msgspec.UNSET,
            )
            for row in rows
        ]
        return of_pairs + of_cells

    def _matrix(self) -> PairMatrix | None:
        """The first home's pairs, of compare-exchange where they were measured."""
        of_pairs = sorted(
            (reduced for reduced in self.reduced if reduced.of_pairs),
            key=lambda reduced: (reduced.measurement != _OF_PAIRS, reduced.measurement),
        )
        if not of_pairs:
            return None
        quantity = of_pairs[0]
        rows = quantity.newest_rows[self.number]
        values = reduction.over_passes(quantity.level[rows][None, :, : len(quantity.pairs)])[0]
        slots = len(quantity.layout.slots)
        square = np.full((slots, slots), np.nan)
        a, b = quantity.pairs.T
        square[a, b] = square[b, a] = values
        kept = _rows_shown(square)
        cpus = [self.node.cpus[slot] if self.node.cpus else slot for slot in kept]
        return PairMatrix(
            quantity.measurement,
            quantity.operation,
            quantity.quantity,
            self._home(quantity.measurement),
            places(cpus, self.topology),
            tenths(square[np.ix_(kept, kept)]),
        )

    def _home(self, measurement: str) -> str:
        """The policy of the line's home, as the first words of the plan say; the kernel's default otherwise."""
        return "first" if measurement.startswith("coherence") else ""


def measured(folder: Path) -> MeasuredNode:
    """The node of a directory below a campaign's nodes/, or the only one of a campaign. Raises NodeprintError."""
    if (folder / "nodes.tsv").exists():
        return MeasuredNode(folder)
    campaign = folder.parent.parent
    if folder.parent.name != "nodes" or not (campaign / "nodes.tsv").exists():
        raise NodeprintError("is not a node of a campaign", where=folder, advice="name a directory below nodes/")
    return MeasuredNode(campaign, folder.name)


def _rows_shown(square: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> list[int]:
    """The rows with more than one pair: a second thread, of which its core's own pair alone is measured, takes none.
    Of a machine with one pair both."""
    count = np.isfinite(square).sum(axis=1)
    return [int(row) for row in np.flatnonzero(count > (1 if count.max(initial=0) > 1 else 0))]


def places(cpus: Sequence[int], labels: Topology | None) -> CpuLabels:
    """The labels of CPUs, without the levels that are unknown for all of them."""
    if labels is None:
        return CpuLabels(tuple(cpus))
    by_number = {cpu.cpu: cpu for cpu in labels.cpus}
    parts: dict[str, tuple[int, ...]] = {}
    for level in LEVELS:
        numbers = [getattr(by_number.get(cpu), level, None) for cpu in cpus]
        if any(number is not None for number in numbers):
            parts[level] = tuple(-1 if number is None else int(number) for number in numbers)
    provenance: Mapping[str, str] = {
        level: str(origin) for level, origin in labels.provenance.items() if level in parts
    }
    return CpuLabels(tuple(cpus), parts, provenance)
