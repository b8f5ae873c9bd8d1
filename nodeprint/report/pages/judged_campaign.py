"""What pages are made from: a campaign's verdict and packed fleet, and of each node how its records say it was
measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from nodeprint.judge.verdict import NodeVerdict, Verdict
from nodeprint.machine.topology.model import Machine
from nodeprint.report import text
from nodeprint.report.figures import style as styles
from nodeprint.report.figures.node_levels import NodeLevels, levels, median_of_runs
from nodeprint.report.figures.render import Origin
from nodeprint.report.figures.style import Style
from nodeprint.report.pages.blocks import SiteTexts

#: Peers that a node is drawn against: more would not change a median that is looked at.
_MOST_PEERS = 15


class FigureFiles(msgspec.Struct, frozen=True):
    """Where figures are saved as files, how wide in mm (0: a column or a page, as on the page), and a matplotlib style
    on top of the report's."""

    folder: Path
    width: float = 0.0
    style: Path | None = None

    @property
    def in_style(self) -> Style:
        """The style that they are drawn in. Raises NodeprintError where it cannot be used."""
        return styles.load(self.style)

    def width_of(self, on_page: float) -> float:
        """The width of the file of a figure that has this width on a page."""
        widths = self.in_style.widths_mm
        return self.width or widths["column" if on_page <= widths["column"] else "page"]


class OverTime(msgspec.Struct, frozen=True):
    """What campaigns over time say of a node: the courses of its parts, its changes in sentences, and which campaigns
    these are. It is decided above (`nodeprint.history`)."""

    course: xr.Dataset | None
    sentences: tuple[str, ...]
    campaigns: str
    has_changed: bool = False


@dataclass(frozen=True)
class Campaign:
    """A judged campaign. `folder` holds nodes/<node> with their jobs, where these are here; `figures` is where every
    figure that is drawn is saved, too. `over_time` has the nodes that other campaigns have, too; `sheet` are the
    nodes in the order of nodes.tsv, which is that in which files were imported."""

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
        """Colors and sizes of figures."""
        return styles.load()

    @cached_property
    def packed(self) -> dict[str, PackedNode]:
        """The fleet's nodes by name."""
        return {node.name: node for node in self.fleet.nodes}

    @property
    def origin(self) -> str:
        """SIMULATED, IMPORTED or nothing."""
        return text.origin(self.verdict)

    def of_figures(self, node: str = "") -> Origin:
        """Where the numbers of a figure are from."""
        version = self.verdict.versions.get("nodeprint", __version__)
        return Origin(self.verdict.campaign, node, version, self.verdict.simulated, self.verdict.imported)

    def measurements(self, node: str, *, pairs: bool) -> list[str]:
        """Names of what was measured on a node, of pairs of CPUs or of cells; the kernels' order of the fleet."""
        number = next((i for i, packed in enumerate(self.fleet.nodes) if packed.name == node), None)
        if number is None or not self.verdict.nodes[node].outcome.entry.measured:
            return []
        quantities = (q for q in self.fleet.quantities if q.of_pairs == pairs and number in q.newest_rows)
        return list(dict.fromkeys(quantity.measurement for quantity in quantities))

    def levels(self, measurement: str, node: str) -> NodeLevels:
        """A measurement on all nodes of the layout of `node`, read once, each in the job of `shown_job`. Raises
        NodeprintError where it has none."""
        number = next((i for i, packed in enumerate(self.fleet.nodes) if packed.name == node), -1)
        for at, quantity in enumerate(self.fleet.quantities):
            if quantity.measurement == measurement and number in quantity.newest_rows:
                if (measurement, at) not in self._levels:
                    self._levels[measurement, at] = self._as_found(levels(self.fleet, measurement, node))
                return self._levels[measurement, at]
        raise NodeprintError(f"{node} has no values of {measurement}")

    def shown_job(self, node: str, measurement: str) -> str:
        """The job that a node is drawn in if its newest one does not show its finding: the one that shows it most."""
        findings = [f for f in self.verdict.nodes[node].counted if f.measurement == measurement and f.by_job]
        if not findings or findings[0].by_job[-1].shows:
            return ""
        return findings[0].by_job[findings[0].deciding].job

    def _as_found(self, newest: NodeLevels) -> NodeLevels:
        """The same with each node in the job of `shown_job`."""
        quantity, values = newest.quantity, newest.values
        for row, (number, node) in enumerate(zip(quantity.newest_rows, newest.nodes, strict=True)):
            job = self.shown_job(node.name, quantity.measurement).removeprefix("job")
            if job.isdigit() and (rows := quantity.rows[number].get(int(job))):
                values = values.copy() if values is newest.values else values
                values[row] = median_of_runs(quantity, rows)
        return newest if values is newest.values else replace(newest, values=values)

    def peers(self, node: str, levels: NodeLevels, group: str | None = None) -> tuple[str, ...]:
        """Nodes of a node's group that have no finding of the measurement, SAME ones first, spread over the fleet; the
        others of the group where that leaves none."""
        nodes, measurement = self.verdict.nodes, levels.quantity.measurement
        group = nodes[node].group if group is None else group
        usable = [n for n in levels.rows if n != node and n in nodes and nodes[n].group == group and _usable(nodes[n])]
        clear = [n for n in usable if not any(f.measurement == measurement for f in nodes[n].counted)] or usable
        same = [n for n in clear if nodes[n].outcome is Outcome.SAME]
        return _spread(same if len(same) > 2 else clear)

    def jobs(self, node: str) -> list[Job]:
        """The jobs of a node; none if they are not here, or if its name is hidden."""
        if self.folder is None or self.fleet.folder is None:
            return []
        return node_states.jobs_of(self.fleet.folder, node)

    def machine(self, node: str) -> Machine | None:
        """The processor of a node; None if it is unknown, or if the node's name is hidden."""
        if self.folder is None or self.fleet.folder is None:
            return None
        return store.machine_of(self.fleet.folder / "nodes" / node)

    def jobs_changed(self, node: str) -> tuple[str, ...] | None:
        """The jobs that the records of a node have, where they are others than were judged; else None."""
        number = next((i for i, packed in enumerate(self.fleet.nodes) if packed.name == node), None)
        if number is None:
            return None
        former = {job for epoch in self.verdict.nodes[node].former for job in epoch.jobs}
        jobs = sorted({job for quantity in self.fleet.quantities for job in quantity.rows.get(number, ())})
        now = tuple(name for job in jobs if (name := f"job{job}") not in former)
        return now if now != self.verdict.nodes[node].jobs else None


def _usable(node: NodeVerdict) -> bool:
    return node.outcome.entry.usable


def _spread(names: Sequence[str]) -> tuple[str, ...]:
    """At most _MOST_PEERS names, evenly over the list."""
    count = min(len(names), _MOST_PEERS)
    return tuple(names[i * len(names) // count] for i in range(count))
