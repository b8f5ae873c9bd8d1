"""How values are distributed: the pairs of each class beside those of the peers, and all values."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from msgspec.structs import replace

from nodeprint.data.places.layout import SOCKET
from nodeprint.report.figures.matrix import home_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import size_pt
from nodeprint.report.figures.pixels import ColorScale, wrapped
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.settings.texts import say
from nodeprint.stats.mixture import MIXED, few_near

_BINS = 80
#: Axes of differences reach so far at least and at most, percent.
_LEAST_REACH, _MOST_REACH = 2.0, 60.0


class ClassShape(msgspec.Struct, frozen=True):
    """A class of pairs: values of the node and of all its peers in percent from the median, which is `median`.

    A class whose sockets differ by more than the judge's MIXED is one shape for each socket, as the median of all would
    be that of no pair: `times` is how many times that of the fastest socket its median is there (else 0). `mixture`:
    few pairs are near the median, and no socket says why; the class goes from `low` to `high`, in the unit.
    """

    name: str
    median: float
    node: Floats
    peers: Floats
    low: float
    high: float
    times: float = 0.0
    mixture: bool = False

    def label(self, unit: str) -> str:
        """Its name with its median and whose that is, or what there is where the median says nothing."""
        if self.mixture:
            return f"{self.name}\n{self.low:.3g} to {self.high:.3g} {unit}"
        slower = f", {self.times:.1f} times" if self.times > 1 else ""
        return f"{self.name}\n{'peers ' if self.peers.size else ''}{self.median:.3g} {unit}{slower}"


class ClassData(msgspec.Struct, frozen=True):
    """The classes from near to far. `from_peers`: the median is that of the peers, else the node's own."""

    node: str
    classes: tuple[ClassShape, ...]
    unit: str
    from_peers: bool

    @property
    def title(self) -> str:
        """What the values are."""
        return say("axes", "distributions", of="peers" if self.from_peers else "node")

    def frame(self, width: float) -> Frame:
        """A row for each class."""
        return Frame(width, 7.5 * len(self.classes))

    def table(self) -> pd.DataFrame:
        """A row for each pair of the node."""
        each = [len(shape.node) for shape in self.classes]
        medians = [shape.median for shape in self.classes]
        return pd.DataFrame(
            {
                "class": np.repeat([shape.name for shape in self.classes], each),
                f"median of the class, {self.unit}": np.repeat(medians, each),
                self.title: np.concatenate([shape.node for shape in self.classes]),
            }
        )


def by_class(levels: NodeLevels, node: str, home: int | None = None, peers: Sequence[str] = ()) -> ClassData:
    """The pairs of each class on a node and on its peers, from the median of the peers' class; of a node without peers
    from its own."""
    quantity = levels.quantity
    start = quantity.homes.index(home_of(quantity, home)) * len(quantity.pairs)
    at = slice(start, start + len(quantity.pairs))
    values, others = levels.of(node)[at], levels.of_peers(node, peers)[:, at]
    shapes = []
    sockets = np.sort(quantity.layout.slots[quantity.pairs, SOCKET], axis=1)
    for number in np.unique(quantity.pair_layout.classes).tolist():
        name, of_class = quantity.pair_layout.class_names[number], quantity.pair_layout.classes == number
        whole = _shape(name, of_class, values, others, levels.unit.size)
        components = [
            (f"{name}, socket {socket}", of_class & (sockets == socket).all(axis=1))
            for socket in np.unique(sockets[of_class]).tolist()
            if socket >= 0 and len(np.unique(sockets[of_class])) > 1
        ]
        by_socket = [
            shape
            for component, pairs in components
            if (shape := _shape(component, pairs, values, others, levels.unit.size)) is not None
        ]
        least = min((shape.median for shape in by_socket), default=np.inf)
        if whole is not None and any(shape.median > MIXED * least for shape in by_socket):
            shapes += [replace(shape, times=shape.median / least) for shape in by_socket]
        elif whole is not None:
            own = values[of_class]
            shapes.append(replace(whole, mixture=few_near(own, float(np.nanmedian(own)))))
    return ClassData(node, tuple(shapes), levels.unit.name, bool(len(others)))


def _shape(name: str, pairs: npt.NDArray[np.bool_], values: Floats, others: Floats, unit: float) -> ClassShape | None:
    """The shape of some pairs of the node and of its peers; None where the node has none of them."""
    own, theirs = values[pairs], others[:, pairs].ravel()
    own, theirs = own[np.isfinite(own)], theirs[np.isfinite(theirs)]
    if not own.size:
        return None
    median = float(np.median(theirs if theirs.size else own))
    of_node, of_peers = (np.asarray(100 * (each / median - 1)) for each in (own, theirs))
    return ClassShape(name, median / unit, of_node, of_peers, float(own.min()) / unit, float(own.max()) / unit)


def classes(ax: Axes, data: ClassData, style: Style) -> None:
    """Draw for each class the shape of the node's values, filled, over the outline of the peers', and its median."""
    values = np.concatenate([np.concatenate([shape.node, shape.peers]) for shape in data.classes])
    reach = float(np.clip(1.1 * np.quantile(np.abs(values), 0.995), _LEAST_REACH, _MOST_REACH))
    middles = (np.arange(_BINS) + 0.5) * (2 * reach / _BINS) - reach
    ax.axvline(0, color=style.colors["hair"], linewidth=0.5)
    for row, shape in enumerate(data.classes):
        for component, color, filled in ((shape.peers, "peers", False), (shape.node, "node", True)):
            if not component.size:
                continue
            counts = np.histogram(np.clip(component, -reach, reach), bins=_BINS, range=(-reach, reach))[
                0
            ]  # the last hold what is beyond, too
            top = row - 0.85 * counts / counts.max()
            ax.fill_between(
                middles,
                row,
                top,
                step="mid",
                facecolor=style.colors[color if filled else "wash"],
                edgecolor=style.colors[color],
                linewidth=0.6,
                alpha=0.55 if filled else 1.0,
            )
        ax.plot([np.median(shape.node)] * 2, [row, row - 0.9], color=style.colors["ink"], linewidth=1.0)
    ax.set_xlim(-reach, reach)
    ax.set_ylim(len(data.classes) - 0.8, -1.05)
    names = [shape.label(data.unit) for shape in data.classes]
    ax.set_yticks(np.arange(len(names)) - 0.35, names)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(wrapped(data.title, 0.8 * size_pt(ax)[0], style))
    behind = ", peers behind it in grey" if data.from_peers else ""
    title = wrapped(f"{data.node}{behind}", size_pt(ax)[0], style)
    ax.set_title(title, fontsize=style.letters_pt)


# --- all values ---


class HistogramData(msgspec.Struct, frozen=True):
    """The `values` of pairs, each once, in the colors of their matrix."""

    values: Floats
    scale: ColorScale
    what: str = "pairs"
    bins: int = 16

    def frame(self, width: float) -> Frame:
        """Low and wide."""
        return Frame(width, 26.0)

    def table(self) -> pd.DataFrame:
        """A row for each value."""
        return pd.DataFrame({self.scale.title: self.values})


def of_square(values: Floats, scale: ColorScale, *, directed: bool = False) -> HistogramData:
    """The values of a matrix, each pair once unless it is `directed`."""
    start, end = np.indices(values.shape)
    counted = np.isfinite(values) & ((start != end) if directed else (start < end))
    return HistogramData(values[counted], scale)


def histogram(ax: Axes, data: HistogramData, style: Style) -> None:
    """Draw how many values there are, in the colors of their matrix; the outermost bars hold what is beyond, too."""
    scale = data.scale
    edges = np.linspace(scale.low, scale.high, data.bins + 1)
    counts = np.histogram(np.clip(data.values, scale.low, scale.high), bins=edges)[0]
    middles = (edges[1:] + edges[:-1]) / 2
    colors = style.map(scale.map)(Normalize(scale.low, scale.high)(middles))
    ax.bar(middles, counts, width=np.diff(edges), color=colors, edgecolor=style.colors["ink"], linewidth=0.3)
    ax.set_xlim(scale.low, scale.high)
    ax.set_xlabel(scale.title)
    ax.set_ylabel(data.what)
