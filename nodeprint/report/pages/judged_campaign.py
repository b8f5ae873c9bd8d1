"""The source of pages: a campaign's verdict, packed fleet, and each node's records of its measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec
import xarray as xr
from msgspec.structs import replace

from nodeprint import __version__
from nodeprint.data.job.jobs import Job
from nodeprint.data.store import node_states, store
from nodeprint.data.store.packed import PackedFleet, PackedNode
from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Verdict
from nodeprint.machine.topology.model import Machine
from nodeprint.report import text
from nodeprint.report.figures import style as styles
from nodeprint.report.figures.node_levels import NodeLevels, levels, median_of_runs
from nodeprint.report.figures.render import Origin
from nodeprint.report.figures.style import Style
from nodeprint.report.pages.blocks import SiteTexts

#: The most peers in a node's figures: more would not visibly change a median.
_MOST_PEERS = 15


class FigureFiles(msgspec.Struct, frozen=True):
    """The directory of figure files, their width in mm (0: as on the page), and a style that extends the default."""

    folder: Path
    width: float = 0.0
    style: Path | None = None

    @property
    def in_style(self) -> Style:
        """Load the style of the figures. Raises NodeprintError if it cannot be used."""
        return styles.load(self.style)

    def width_of(self, on_page: float) -> float:
        """Return the width of a figure's file from its width on a page."""
        widths = self.in_style.widths_mm
        return self.width or widths["column" if on_page <= widths["column"] else "page"]


class OverTime(msgspec.Struct, frozen=True):
    """A node over campaigns (`nodeprint.history`): courses of its components, changes in sentences, these campaigns."""

    course: xr.Dataset | None
    sentences: tuple[str, ...]
    campaigns: str
    has_changed: bool = False


@dataclass(frozen=True)
class Campaign:
    """A judged campaign.

    `folder` holds nodes/<node> with their jobs, if they are present; `figures` is the destination of all drawn figures.
    `over_time` has the nodes that are also in other campaigns. `sheet` lists the nodes in the order of nodes.tsv, in
    which files were imported.
    """

    verdict: Verdict
    fleet: PackedFleet
    folder: Path | None = None
    site: SiteTexts = field(default_factory=SiteTexts)
    switches: dict[str, str] = field(default_factory=dict)
    figures: FigureFiles | None = None
    over_time: Mapping[str, OverTime] = field(default_factory=dict)
    sheet: tuple[str, ...] = ()
    _levels: dict[tuple[str, int], NodeLevels] = field(default_factory=dict)

    @cached_property
    def style(self) -> Style:
        """Load the colors and sizes of figures."""
        return styles.load()

    @cached_property
    def packed(self) -> dict[str, PackedNode]:
        """Return the fleet's nodes by name."""
        return {node.name: node for node in self.fleet.nodes}

    @property
    def origin(self) -> str:
        """Return SIMULATED, IMPORTED or nothing."""
        return text.origin(self.verdict)

    def of_figures(self, node: str = "") -> Origin:
        """Return the origin of a figure's numbers."""
        version = self.verdict.versions.get("nodeprint", __version__)
        return Origin(self.verdict.campaign, node, version, self.verdict.simulated, self.verdict.imported)

    def _number(self, node: str) -> int:
        return list(self.packed).index(node) if node in self.packed else -1

    def measurements(self, node: str, *, pairs: bool) -> list[str]:
        """Return the names of a node's measurements, of CPU pairs or of cells, in the fleet's order of kernels."""
        if node not in self.packed or not self.verdict.nodes[node].outcome.entry.measured:
            return []
        number = self._number(node)
        quantities = (q for q in self.fleet.quantities if q.of_pairs == pairs and number in q.newest_rows)
        return list(dict.fromkeys(quantity.measurement for quantity in quantities))

    def levels(self, measurement: str, node: str) -> NodeLevels:
        """Return a measurement on all nodes with the layout of `node`, in their `shown_job`. Raises NodeprintError."""
        number = self._number(node)
        for at, quantity in enumerate(self.fleet.quantities):
            if quantity.measurement == measurement and number in quantity.newest_rows:
                if (measurement, at) not in self._levels:
                    self._levels[measurement, at] = self._as_found(levels(self.fleet, measurement, node))
                return self._levels[measurement, at]
        raise NodeprintError(f"{node} has no values of {measurement}")

    def shown_job(self, node: str, measurement: str) -> str:
        """Return the job that shows a node's finding most clearly if the newest does not show it; else empty."""
        findings = [f for f in self.verdict.nodes[node].counted if f.measurement == measurement and f.by_job]
        if not findings or findings[0].by_job[-1].shows:
            return ""
        return findings[0].by_job[findings[0].deciding].job

    def _as_found(self, newest: NodeLevels) -> NodeLevels:
        quantity, values = newest.quantity, newest.values
        for row, (number, node) in enumerate(zip(quantity.newest_rows, newest.nodes, strict=True)):
            job = self.shown_job(node.name, quantity.measurement).removeprefix("job")
            if job.isdigit() and (rows := quantity.rows[number].get(int(job))):
                values = values.copy() if values is newest.values else values
                values[row] = median_of_runs(quantity, rows)
        return newest if values is newest.values else replace(newest, values=values)

    def peers(self, node: str, levels: NodeLevels, group: str | None = None) -> tuple[str, ...]:
        """Return nodes of the group without a finding of the measurement (or with, if all have one), SAME first."""
        nodes, measurement = self.verdict.nodes, levels.quantity.measurement
        group = nodes[node].group if group is None else group
        alike = [name for name in levels.rows if name != node and name in nodes and nodes[name].group == group]
        usable = [name for name in alike if nodes[name].outcome.entry.usable]
        clear = [n for n in usable if not any(f.measurement == measurement for f in nodes[n].counted)] or usable
        same = [name for name in clear if nodes[name].outcome is Outcome.SAME]
        chosen = same if len(same) > 2 else clear
        count = min(len(chosen), _MOST_PEERS)
        return tuple(chosen[i * len(chosen) // count] for i in range(count))

    def jobs(self, node: str) -> list[Job]:
        """Return the jobs of a node; empty if they are not present, or if its name is hidden."""
        if self.folder is None or self.fleet.folder is None:
            return []
        return node_states.jobs_of(self.fleet.folder, node)

    def machine(self, node: str) -> Machine | None:
        """Return the processor of a node; None if it is unknown, or if the node's name is hidden."""
        if self.folder is None or self.fleet.folder is None:
            return None
        return store.machine_of(self.fleet.folder / "nodes" / node)

    def jobs_changed(self, node: str) -> tuple[str, ...] | None:
        """Return the jobs in a node's records if they are not the judged ones; else None."""
        if node not in self.packed:
            return None
        number = self._number(node)
        former = {job for epoch in self.verdict.nodes[node].former for job in epoch.jobs}
        jobs = sorted({job for quantity in self.fleet.quantities for job in quantity.rows.get(number, ())})
        now = tuple(name for job in jobs if (name := f"job{job}") not in former)
        return now if now != self.verdict.nodes[node].jobs else None
