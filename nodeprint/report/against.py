"""What a node's page has of a matrix against the same matrix of its peers: maps, cores, CCDs, distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nodeprint import captions
from nodeprint.layout import CLASSES, Ints, pair_classes, slots_of
from nodeprint.report import figures, formatting, plots, scale
from nodeprint.report.figures import Figure, Floats
from nodeprint.report.pages import Figures, Section, Text
from nodeprint.report.peers import LEAST_REACH, Template, name_of
from nodeprint.report.scale import Scale
from nodeprint.report.shown import DrawnMatrix, finite_median, row_medians
from nodeprint.topology.model import Topology

#: Parts of a matrix that are compared as blocks, at most so many.
_MOST_PARTS = 32
#: Colours of a difference map: noise in more of them would only be larger.
_COLOURS = 16
#: In ns: the colours of a difference map reach at least so far.
_LEAST_NS = 1.0


def section(
    one: DrawnMatrix, template: Template, topology: Topology | None, node: str, said: Mapping[str, Any],
    bounds: Mapping[str, Any],
) -> Section:  # fmt: skip
    """Pair by pair, core by core and CCD by CCD the difference from the peers. `bounds` are the fleet's, by term."""
    bound, margins = formatting.number(bounds.get("core")), said.get("margins") or {}
    # the median over all others mixes pairs near and far: its margin is the larger of these two
    found = [formatting.number((margins.get(term) or {}).get("within")) for term in ("core", "core-near", "core-far")]
    within = max((one for one in found if one is not None), default=None)
    strip = core_strip(one, template, topology, f"cores-{one.measurement}", node, bound, within)
    text = Text(f"Each pair against the median of {len(template.names)} unsuspected nodes.", quiet=True)
    blocks = (
        text,
        Figures(_maps(one, template, topology)),
        Figures((strip,)),
        Figures(_by_ccd(one, template, topology)),
    )
    return Section("Difference from the fleet", blocks, name_of(one))


def _maps(one: DrawnMatrix, template: Template, topology: Topology | None) -> tuple[Figure, Figure]:
    """The differences of all pairs, in percent and in ns."""
    shift = one.values - template.median
    outer = figures.bands(one.cpus, topology)[-2:]

    def drawn(values: Floats, least: float, unit: str, name: str) -> Figure:
        colours = scale.of_differences(values, least)
        return figures.matrix(
            values, one.cpus, topology, Scale(colours.low, colours.high, colours.map, _COLOURS), unit,
            figures.PAGE / 2 - 2, name=f"difference-{name}-{one.measurement}", groups=outer,
        )  # fmt: skip

    in_percent = drawn(100 * (one.values / template.median - 1), LEAST_REACH, "% from the peers", "percent")
    return in_percent, drawn(shift, _LEAST_NS, "ns from the peers", "ns")


def core_strip(
    one: DrawnMatrix, template: Template, topology: Topology | None, name: str, node: str, bound: float | None,
    within: float | None = None, flagged: Sequence[int] = (),
) -> Figure:  # fmt: skip
    """A CPU's pairs against its peers' same pairs, a dot a CPU; those at `flagged` are triangles.

    `bound` and `within` (what the node's cores are shown to be the same in) are shares, drawn as lines.
    """

    def by_cpu(values: Floats) -> Floats:
        shifts = 100 * (values / template.median - 1)
        np.fill_diagonal(shifts, np.nan)
        return row_medians(shifts)

    marks = [f"Dots: {node}", *["triangles: the place of the finding"] * bool(flagged), "grey: the range of the peers"]
    marks += ["dashed: the bound"] * bool(bound) + ["dotted: within what they are the same"] * bool(within)
    return plots.strip(
        [str(cpu) for cpu in one.cpus], by_cpu(one.values), np.stack([by_cpu(v) for v in template.values]),
        name=name, unit="% from the peers", flagged=flagged, bound=100 * bound if bound else None,
        within=100 * within if within else None,
        groups=[band for band in figures.bands(one.cpus, topology) if len(band.groups) > 1][-2:],
        caption=captions.of("cores", name=one.measurement, peers=len(template.names), marks="; ".join(marks)),
    )  # fmt: skip


def classes_of(one: DrawnMatrix, topology: Topology | None) -> tuple[Ints, Any]:
    """The class of each pair above the diagonal (index in CLASSES), and where these pairs are in the matrix."""
    upper = np.triu_indices(len(one.cpus), 1)
    if topology is None:
        return np.full(len(upper[0]), len(CLASSES) - 1), upper
    slots, order = slots_of(topology, one.cpus)
    at = {cpu: i for i, cpu in enumerate(order)}
    rows = np.array([at[cpu] for cpu in one.cpus])
    return pair_classes(slots, np.stack([rows[upper[0]], rows[upper[1]]], axis=1)), upper


def distributions(one: DrawnMatrix, template: Template, topology: Topology | None) -> Figure:
    """By class, each pair against the median of the peers' class."""
    kinds, upper = classes_of(one, topology)
    mine, theirs = one.values[upper], template.values[:, upper[0], upper[1]]
    rows = []
    for number, name in enumerate(CLASSES):
        here = kinds == number
        base = np.median(theirs[:, here][np.isfinite(theirs[:, here])]) if here.any() else np.nan
        if np.isfinite(base) and base > 0:
            node, peers = 100 * (mine[here] / base - 1), 100 * (theirs[:, here].ravel() / base - 1)
            rows.append((name, node[np.isfinite(node)], peers[np.isfinite(peers)]))
    caption = captions.of("distributions", peers=len(template.names))
    return plots.distributions(rows, name=f"distribution-{one.measurement}", caption=caption, width=114.0)


def _by_ccd(one: DrawnMatrix, template: Template, topology: Topology | None) -> tuple[Figure, ...]:
    """CCD by CCD (CCX by CCX where there is one CCD) the median difference from the peers, in percent."""
    known = {cpu.cpu: cpu for cpu in topology.cpus} if topology is not None else {}
    if not all(cpu in known for cpu in one.cpus):
        return ()
    for level, name in (("ccd", "CCD"), ("ccx", "CCX")):
        parts = [getattr(known[cpu], level) for cpu in one.cpus]
        names = list(dict.fromkeys(parts))
        if None in names or not 2 <= len(names) <= _MOST_PARTS:
            continue
        shift = 100 * (one.values / template.median - 1)
        rows = [np.flatnonzero([part == each for part in parts]) for each in names]
        blocks = [[shift[np.ix_(a, b)] for b in rows] for a in rows]
        table = np.array([[finite_median(block) for block in row] for row in blocks])
        texts = [[f"{value:+.1f}" if np.isfinite(value) else "" for value in row] for row in table]
        return (
            figures.grid(
                table, texts, [str(part) for part in names], [str(part) for part in names],
                scale.of_differences(table, 3.0), "% from the peers", corner=name,
                name=f"{level}-differences-{one.measurement}",
                caption=captions.of("parts", name=one.measurement, peers=len(template.names), part=name),
            ),
        )  # fmt: skip
    return ()
