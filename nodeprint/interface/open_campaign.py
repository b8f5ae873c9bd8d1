"""The Python interface: a campaign's measurements, deviations, verdict and figures (docs/how-to/research.md)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from nodeprint.campaign import directories
from nodeprint.data.export import datasets, table_files
from nodeprint.data.places.layout import QUADRANT
from nodeprint.data.store import packing
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError, unreadable
from nodeprint.interface import export
from nodeprint.interface.arguments import check, checked
from nodeprint.judge.verdict import Finding, Verdict
from nodeprint.report import verdict_files
from nodeprint.report.figures import curves, differences, floorplan, matrix, matrix_tables, render, strips
from nodeprint.report.figures import style as styles
from nodeprint.report.figures.node_levels import NodeLevels, levels
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.text import structure_sentences
from nodeprint.structure import printed_structure

#: The width of a figure that makes its own axes, in mm.
_WIDTH = 120.0


def open_campaign(campaign: str | Path) -> OpenCampaign:
    """A campaign for Python: its data, deviations, verdict and figures (docs/how-to/research.md).

    Raises NodeprintError if no campaign is there.
    """
    check(campaign, Path, "campaign")
    folder = Path(campaign)
    try:
        is_there = directories.is_campaign(folder)
    except OSError as error:  # a name that is too long
        raise unreadable(folder, error) from error
    if not is_there:
        raise directories.not_a_campaign(folder)
    return OpenCampaign(folder)


@checked
class OpenCampaign:
    """A campaign that was measured. What needs a verdict (`verdict`, `deviations`, figures of findings and of the
    fleet) raises NodeprintError before `nodeprint judge`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plot = Plot(self)

    @cached_property
    def fleet(self) -> PackedFleet:
        """Its nodes and quantities as arrays; packed first where needed."""
        return packing.pack(self.folder)

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict."""
        return verdict_files.read(self.folder)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of its nodes."""
        return tuple(node.name for node in self.fleet.nodes)

    @property
    def measurements(self) -> tuple[str, ...]:
        """The names of its measurements, pairs of CPUs first."""
        return tuple(dict.fromkeys(measured.measurement for measured in self.fleet.quantities))

    def data(self, measurement: str, node: str | None = None) -> xr.Dataset:
        """A measurement on all nodes of one layout: `value` over row (a run), pass and point.

        Coordinates of rows are node, job, run, start time and Slurm's job, those of points their place in the machine.
        `node` chooses the layout if a campaign has several.
        """
        return datasets.dataset(self.fleet, datasets.chosen(self.fleet, measurement, node))

    def deviations(self) -> xr.Dataset:
        """The table (sample, part) that every outcome is read off; `.to_dataframe()` makes rows of it."""
        return export.deviations(self.folder)

    def details(self) -> pd.DataFrame:
        """A row for each cell, run and pass of measurements that record more than the value that is compared."""
        return _joined(table_files.details(self.fleet))

    def messages(self) -> pd.DataFrame:
        """A row for each link between nodes, message size and run of LinkTest between nodes."""
        return _joined(table_files.messages(export.fabrics(self.folder)))

    def classes(self) -> pd.DataFrame:
        """The median of each class of pairs on each node, with its 95% interval."""
        return export.classes(self.verdict)

    def quadrants(self, measurement: str, node: str) -> pd.DataFrame:
        """The effect of the I/O die: differences between own quadrant, partner, others and other sockets.

        A row each, in ns with its simultaneous interval; no rows if fewer than two quadrants are known.
        """
        levels = self.levels(measurement, node)
        levels.home()  # raises NodeprintError for other measurements than of pairs
        blocks = structure_sentences.quadrant_blocks(levels, node)
        return pd.DataFrame([] if blocks is None else printed_structure.quadrant_table(blocks))

    def levels(self, measurement: str, node: str) -> NodeLevels:
        """A measurement place by place on all nodes that can be compared with `node`."""
        return levels(self.fleet, measurement, node)


def _joined(frames: Any) -> pd.DataFrame:
    every = list(frames)
    return pd.concat(every, ignore_index=True) if every else pd.DataFrame()


@checked
class Plot:
    """The report's figures, each on the axes that it is given, or on axes of its own; returns the axes."""

    def __init__(self, campaign: OpenCampaign) -> None:
        self._campaign = campaign

    def matrix(
        self, node: str, measurement: str = "coherence-cas", home: int | None = None, *, ax: Axes | None = None
    ) -> Axes:
        """The pairs of a node, with the outlines of CCX, CCD, quadrant and socket."""
        return _drawn(matrix.matrix, matrix.of_node(self._levels(measurement, node), node, home), ax)

    def difference(
        self, node: str, measurement: str = "coherence-cas", home: int | None = None, *, ax: Axes | None = None
    ) -> Axes:
        """By pair the difference from the median of the other nodes."""
        return _drawn(matrix.matrix, matrix.difference(self._levels(measurement, node), node, home), ax)

    def quadrants(self, node: str, measurement: str = "coherence-cas", *, ax: Axes | None = None) -> Axes:
        """Medians between quadrants. Raises NodeprintError where the machine has none that are known."""
        data = matrix_tables.blocks(self._levels(measurement, node), node, (QUADRANT,))
        if data is None:
            raise NodeprintError(f"{node} has no two quadrants that are known", advice="draw its matrix")
        return _drawn(matrix.matrix, data, ax)

    def floorplan(self, node: str, measurement: str = "coherence-cas", *, ax: Axes | None = None) -> Axes:
        """The machine with each core in the color of its median."""
        levels = self._levels(measurement, node)
        data = floorplan.of_pairs(levels, node) if levels.quantity.of_pairs else floorplan.of_cells(levels, node)
        return _drawn(floorplan.floorplan, data, ax)

    def strip(self, node: str, measurement: str = "clock-together", *, ax: Axes | None = None) -> Axes:
        """The value of each CPU before the range of the other nodes."""
        return _drawn(strips.strip, strips.by_cpu(self._levels(measurement, node), node), ax)

    def numa(self, node: str, measurement: str = "chase-latency", *, ax: Axes | None = None) -> Axes:
        """NUMA node by NUMA node."""
        return _drawn(matrix.matrix, matrix_tables.numa(self._levels(measurement, node), node), ax)

    def curve(self, node: str, measurement: str, over: str, *, ax: Axes | None = None) -> Axes:
        """A measurement over one of its dimensions, such as size_bytes."""
        return _drawn(curves.curve, curves.over(self._levels(measurement, node), node, over), ax)

    def effect(self, node: str, finding: int = 0, *, ax: Axes | None = None) -> Axes:
        """A finding's effect in each job and run against its tolerance, by its number among the node's findings."""
        return _drawn(differences.intervals, differences.of_finding(self._finding(node, finding)), ax)

    def finding(self, node: str, finding: int = 0, *, ax: Axes | None = None) -> Axes:
        """The pairs, cells or messages that a finding is of, beside those of peers, with its effect and tolerance."""
        deviation = self._finding(node, finding)
        if deviation.component.term.startswith("fabric-"):
            between = strips.messages_of(deviation, self._campaign.verdict.fabric)
            return _drawn(strips.strip, strips.own_messages(between, deviation), ax)
        levels = self._levels(deviation.measurement, node)
        peers = Campaign(self._campaign.verdict, self._campaign.fleet).peers(node, levels)
        return _drawn(strips.strip, strips.own_places(levels, node, deviation, peers), ax)

    def maps(self, measurement: str = "coherence-cas", *, ax: Axes | None = None) -> Axes:
        """The difference maps of the nodes that can be compared with the first."""
        levels = self._levels(measurement, self._campaign.nodes[0])
        return _drawn(matrix.maps, matrix.difference_maps(levels, list(levels.rows)), ax)

    def fabric(self, number: int = 0, *, ax: Axes | None = None) -> Axes:
        """Messages between the nodes."""
        fabrics = self._campaign.verdict.fabric
        if not 0 <= number < len(fabrics):
            problem = f"the campaign has {len(fabrics)} measurements between nodes, and number {number} is none of them"
            raise NodeprintError(problem, advice="choose another, or measure LinkTest")
        return _drawn(matrix.matrix, matrix_tables.messages(fabrics[number]), ax)

    def side_by_side(self, *nodes: str, measurement: str = "coherence-cas", ax: Axes | None = None) -> Axes:
        """The matrices of several nodes, of the same machine or not, on one scale."""
        if not nodes:
            raise NodeprintError("no node is named", key="nodes", advice="name one or more of .nodes")
        levels = [self._levels(measurement, node) for node in nodes]
        matrices = [matrix.of_node(of_node, node) for of_node, node in zip(levels, nodes, strict=True)]
        return _drawn(matrix.side_by_side, matrix.on_one_scale(nodes, matrices, levels[0].title), ax)

    def _levels(self, measurement: str, node: str) -> NodeLevels:
        return self._campaign.levels(measurement, node)

    def _finding(self, node: str, number: int) -> Finding:
        verdict = self._campaign.verdict
        findings = verdict.nodes[node].findings if node in verdict.nodes else ()
        if not 0 <= number < len(findings):
            problem = f"{node} has {len(findings)} findings, and number {number} is none of them"
            raise NodeprintError(problem, advice="look at .verdict.nodes[node].findings")
        return findings[number]


def _drawn(draw: render.Primitive[Any], data: Any, ax: Axes | None) -> Axes:
    """Draw on given axes, or on those of a new figure in the style of the report."""
    style = styles.load()
    if ax is None:
        return render.figure(draw, data, style, _WIDTH).axes[0]
    render.on_axes(draw, data, style, ax)
    return ax
