"""Distributions of values: the pairs of each class compared with the peers', and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from nodeprint.data.places.layout import SOCKET, Ints
from nodeprint.report.figures.figure_data import named, title_of
from nodeprint.report.figures.matrix import home_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels, Unit
from nodeprint.report.figures.part_levels import letters, size_pt
from nodeprint.report.figures.pixels import scale_of, wrapped
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened
from nodeprint.settings.texts import say
from nodeprint.stats.mixture import MIXED, few_near

_BINS, BARS = 80, 16
#: The smallest and largest extent of an axis of differences, percent.
_LEAST_REACH, _MOST_REACH = 2.0, 60.0


def by_class(levels: NodeLevels, node: str, home: int | None = None) -> xr.Dataset:
    """Return the pairs of each class on a node and its peers, in percent from the median of the peers' class.

    Without peers the reference is the node's own median. If the sockets of a class differ by more than the judge's
    MIXED, each socket is a class: the overall median would match no pair. The label has the median and its ratio to the
    fastest socket. If few pairs are near the median and sockets do not explain it, the label has the range.
    """
    quantity = levels.quantity
    start = quantity.homes.index(home_of(quantity, home)) * len(quantity.pairs)
    at = slice(start, start + len(quantity.pairs))
    values, others = levels.of(node)[at], levels.of_peers(node)[:, at]
    sockets = np.sort(quantity.layout.slots[quantity.pairs, SOCKET], axis=1)
    unit, each = levels.unit, []
    for number in np.unique(quantity.pair_layout.classes).tolist():
        name, of_class = quantity.pair_layout.class_names[number], quantity.pair_layout.classes == number
        own = values[of_class]
        if not np.isfinite(own).any():
            continue
        by_socket = {
            f"{name}, socket {socket}": of_class & (sockets == socket).all(axis=1)
            for socket in np.unique(sockets[of_class]).tolist()
            if socket >= 0 and len(np.unique(sockets[of_class])) > 1
        }
        measured = {part: at for part, at in by_socket.items() if np.isfinite(values[at]).any()}
        medians = {part: _median(values[at], others[:, at]) for part, at in measured.items()}
        least = min(medians.values(), default=np.inf)
        if any(median > MIXED * least for median in medians.values()):
            for part, at in measured.items():
                times = medians[part] / least
                each.append(_class(part, values[at], others[:, at], unit, f", {times:.1f} times" if times > 1 else ""))
        else:
            mixture = few_near(own, float(np.nanmedian(own)))
            ends = f"{np.nanmin(own) / unit.size:.3g} to {np.nanmax(own) / unit.size:.3g} {unit.name}"
            each.append(_class(name, own, others[:, of_class], unit, said=ends if mixture else ""))
    title = say("axes", "distributions", of="peers" if len(others) else "node")
    out = xr.concat(each, "pair", combine_attrs="drop")
    out.value.attrs = named((), 0, title).attrs
    return out.assign_attrs(node=node, peers=len(others))


def _median(values: Floats, others: Floats) -> float:
    finite = others[np.isfinite(others)]
    return float(np.median(finite if finite.size else values[np.isfinite(values)]))


def _class(name: str, values: Floats, others: Floats, unit: Unit, more: str = "", *, said: str = "") -> xr.Dataset:
    """Return the values of a class on the node and its peers; the label is `said`, or else the median and `more`."""
    own, theirs = values[np.isfinite(values)], others[np.isfinite(others)]
    median = _median(values, others)
    label = said or f"{'peers ' if theirs.size else ''}{median / unit.size:.3g} {unit.name}{more}"
    count = len(own) + len(theirs)
    coordinates = {
        "class": xr.Variable("pair", np.full(count, name, dtype=object)),
        "label": xr.Variable("pair", np.full(count, f"{name}\n{label}", dtype=object)),
        "median": named("pair", np.full(count, median / unit.size), f"median of the class, {unit.name}"),
        "of_peers": xr.Variable("pair", np.arange(count) >= len(own)),
    }
    return xr.Dataset({"value": ("pair", 100 * (np.concatenate([own, theirs]) / median - 1))}, coordinates)


@primitive(lambda data, width: Frame(width, 7.5 * len(np.unique(data.label.to_numpy()))))
def classes(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw each class: the node's filled distribution over the outline of the peers', and its median."""
    values, of_peers, label = (data[name].to_numpy() for name in ("value", "of_peers", "label"))
    labels = list(dict.fromkeys(label.tolist()))
    reach = float(np.clip(1.1 * np.quantile(np.abs(values), 0.995), _LEAST_REACH, _MOST_REACH))
    middles = (np.arange(_BINS) + 0.5) * (2 * reach / _BINS) - reach
    ax.axvline(0, color=style.colors["hair"], linewidth=0.5)
    for row, name in enumerate(labels):
        for chosen, color, filled in ((of_peers, "peers", False), (~of_peers, "node", True)):
            of_class = values[chosen & (label == name)]
            if not of_class.size:
                continue
            clipped = np.clip(of_class, -reach, reach)  # the outermost bins include the values beyond
            counts = np.histogram(clipped, bins=_BINS, range=(-reach, reach))[0]
            top = row - 0.85 * counts / counts.max()
            pen: dict[str, Any] = {"edgecolor": style.colors[color], "alpha": 0.55 if filled else 1.0}
            pen["facecolor"] = style.colors[color if filled else "wash"]
            ax.fill_between(middles, row, top, step="mid", linewidth=0.6, **pen)
        own = float(np.median(values[~of_peers & (label == name)]))
        ax.plot([own] * 2, [row, row - 0.9], color=style.colors["ink"], linewidth=1.0)
    ax.set_xlim(-reach, reach)
    ax.set_ylim(len(labels) - 0.8, -1.05)
    ax.set_yticks(np.arange(len(labels)) - 0.35, labels)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(wrapped(title_of(data.value), 0.8 * size_pt(ax)[0], style))
    behind = ", peers behind it in grey" if data.attrs["peers"] else ""
    title = wrapped(f"{data.attrs['node']}{behind}", size_pt(ax)[0], style)
    ax.set_title(title, fontsize=style.letters_pt)


def on_one_scale(matrices: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Matrices whose histograms have one scale of counts."""
    most = max(int(_counts(data).max()) for data in matrices)
    return [data.assign_attrs(most=most) for data in matrices]


def _counts(data: xr.Dataset) -> Ints:
    """Count the pairs of a matrix by the bars of its scale; the outermost bars include the values beyond."""
    scale, values = scale_of(data), data.value.to_numpy()
    start, end = np.indices(values.shape)
    counted = values[np.isfinite(values) & ((start < end) if data.attrs["symmetric"] else (start != end))]
    return np.histogram(np.clip(counted, scale.low, scale.high), BARS, (scale.low, scale.high))[0]


@primitive(lambda _, width: Frame(width, 26.0))
def histogram(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw the histogram of a matrix, each pair once, in its colors; the outermost bars include the values beyond."""
    scale, counts = scale_of(data), _counts(data)
    edges = np.linspace(scale.low, scale.high, BARS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    colors = style.map(scale.map)(Normalize(scale.low, scale.high)(middles))
    ax.bar(middles, counts, width=np.diff(edges), color=colors, edgecolor=style.colors["ink"], linewidth=0.3)
    ax.set_xlim(scale.low, scale.high)
    ax.set_ylim(0, 1.05 * data.attrs.get("most", counts.max()))
    ax.set_xlabel(scale.title)
    ax.set_ylabel("pairs")
    if "matrix" in data.coords:
        ax.set_title(shortened(str(data.matrix.item()), letters(ax, 1.2, style)), fontsize=style.letters_pt)
