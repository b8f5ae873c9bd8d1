"""What a node's page has of a matrix against the same matrix of its peers: maps, cores, CCDs, distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nodeprint import captions
from nodeprint.layout import CLASSES, Ints, pair_classes, slots_of
from nodeprint.order_statistics import row_medians
from nodeprint.report import distribution_plots, formatting, matrix_figure, plots, scale
from nodeprint.report import old_figures as figures
from nodeprint.report.old_figures import Figure, Floats
from nodeprint.report.pages import Figures, Section, Text
from nodeprint.report.peers import LEAST_REACH, Template, name_of
from nodeprint.report.scale import Scale
from nodeprint.report.shown import DrawnMatrix
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
        return matrix_figure.matrix(
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
    marks = [f"Dots: {node}", *["triangles: the place of the finding"] * bool(flagged), "grey: the range of the peers"]
    marks += ["dashed: the bound"] * bool(bound) + ["dotted: within what they are the same"] * bool(within)
    return plots.strip(
        [str(cpu) for cpu in one.cpus], template.cpu_shifts(one.values), template.by_cpu,
        name=name, unit="% from the peers", flagged=flagged, bound=100 * bound if bound else None,
        within=100 * within if within else None,
        groups=[band for band in figures.bands(one.cpus, topology) if len(band.groups) > 1][-2:],
        caption=captions.of("cores", name=one.measurement, peers=len(template.names), marks="; ".join(marks)),
    )  # fmt: skip


@lru_cache(maxsize=16)
def _pairs_by_class(cpus: tuple[int, ...], topology: Topology | None) -> tuple[tuple[str, Ints], ...]:
    """Each class of pairs that a machine has, with the places of its pairs in the flattened matrix."""
    upper = np.triu_indices(len(cpus), 1)
    places = np.ravel_multi_index(upper, (len(cpus), len(cpus)))
    if topology is None:
        return ((CLASSES[-1], places),)
    slots, order = slots_of(topology, cpus)
    at = {cpu: i for i, cpu in enumerate(order)}
    rows = np.array([at[cpu] for cpu in cpus])
    kinds = pair_classes(slots, np.stack([rows[upper[0]], rows[upper[1]]], axis=1))
    found = ((name, places[kinds == number]) for number, name in enumerate(CLASSES))
    return tuple((name, there) for name, there in found if there.size)


@lru_cache(maxsize=2)
def _peers_by_class(
    template: Template, cpus: tuple[int, ...], topology: Topology | None
) -> tuple[tuple[str, Ints, float, Floats], ...]:
    """Of each class with values its name, its places, the median of the peers' pairs, and these in percent of it, in
    order."""
    flat = template.values.reshape(len(template.values), -1)
    out = []
    for name, there in _pairs_by_class(cpus, topology):
        known = np.sort(flat[:, there], axis=None)
        known = known[: int(np.isfinite(known).sum())]  # NaN last
        base = float(known[(known.size - 1) // 2] + known[known.size // 2]) / 2 if known.size else 0.0
        if base > 0:
            out.append((name, there, base, 100 * (known / base - 1)))
    return tuple(out)


def class_distributions(one: DrawnMatrix, template: Template, topology: Topology | None) -> Figure:
    """By class, each pair against the median of the peers' class."""
    rows, flat = [], one.values.ravel()
    for name, there, base, peers in _peers_by_class(template, one.cpus, topology):
        mine = np.sort(100 * (flat[there] / base - 1))
        rows.append((name, mine[: int(np.isfinite(mine).sum())], peers))
    caption = captions.of("distributions", peers=len(template.names))
    return distribution_plots.shapes(rows, name=f"distribution-{one.measurement}", caption=caption, width=114.0)


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
        table = _block_medians(shift, np.array([names.index(part) for part in parts]), len(names))
        texts = [[f"{value:+z.1f}" if np.isfinite(value) else "" for value in row] for row in table]
        return (
            figures.grid(
                table, texts, [str(part) for part in names], [str(part) for part in names],
                scale.of_differences(table, 3.0), "% from the peers", corner=name,
                name=f"{level}-differences-{one.measurement}",
                caption=captions.of("parts", name=one.measurement, peers=len(template.names), part=name),
            ),
        )  # fmt: skip
    return ()


def _block_medians(values: Floats, part: Ints, parts: int) -> Floats:
    """The medians of the blocks of `values` (n x n) by the `part` of their rows and columns (parts x parts)."""
    most = int(np.bincount(part, minlength=parts).max())
    at = np.full((parts, most), len(values))  # parts of fewer rows are filled up with rows of NaN
    for number in range(parts):
        mine = np.flatnonzero(part == number)
        at[number, : mine.size] = mine
    filled = np.pad(values, (0, 1), constant_values=np.nan)
    blocks = filled[at[:, None, :, None], at[None, :, None, :]]
    return row_medians(blocks.reshape(parts * parts, -1)).reshape(parts, parts)
