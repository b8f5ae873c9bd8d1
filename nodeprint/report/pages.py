"""What is on a page, ready to be painted: every word written, every position decided. The templates add only looks.

`nodeprint.report.node` and `nodeprint.report.cluster` fill these pages; pdf and html paint them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from nodeprint.errors import printable
from nodeprint.report.figures import Histogram, Matrix, Tick

Facts = tuple[tuple[str, str], ...]

#: Longer texts are cut.
_LONGEST = 1200


@dataclass(frozen=True, slots=True)
class Mark:
    """How a verdict looks: its word, a symbol of its own (never colour alone) and a colour; the worst has rank 0."""

    word: str
    symbol: str
    colour: str
    rank: int


_MARKS = {
    mark.word: mark
    for mark in (
        Mark("OUTSIDE LIMIT", "■", "#a3201d", 0),
        Mark("DEVIATES", "▲", "#a3201d", 1),
        Mark("DIFFER", "△", "#a3201d", 2),
        Mark("UNSTABLE", "≈", "#9a4d00", 3),
        Mark("SUSPECT", "◆", "#9a4d00", 4),
        Mark("INVALID", "✕", "#6d3a8c", 6),
        Mark("NOT MEASURED", "\u2013", "#505a64", 7),
        Mark("DIFFERENT CONFIGURATION", "□", "#1d5a96", 8),
        Mark("INCONCLUSIVE", "◇", "#505a64", 9),
        Mark("NO PEER", "○", "#1d5a96", 10),
        Mark("SAME", "●", "#1b6e53", 11),
        Mark("NOT UNIFORM", "▲", "#a3201d", 0),
        Mark("TWO POPULATIONS", "◐", "#9a4d00", 0),
        Mark("DEVIATIONS", "▲", "#a3201d", 0),
        Mark("UNIFORM", "●", "#1b6e53", 0),
    )
}


def mark(word: str) -> Mark:
    """The look of a verdict or fleet outcome; a word that is not known yet gets a neutral one."""
    return _MARKS.get(word) or Mark(word or "NO VERDICT", "◇", "#505a64", 9)


@dataclass(frozen=True, slots=True)
class Advice:
    """A warning or a quality remark in words: what was seen, what to do, and which nodes it concerns."""

    text: str
    advice: str
    nodes: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of the verdict: its sentence and its figures as short facts."""

    title: str
    text: str
    facts: Facts


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A class of pairs on a node, in words and as positions (0 to 1) on its table's axis."""

    name: str
    pairs: str
    median: str
    interval: str
    fleet: str
    at: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ClassTable:
    """The classes of a node on one axis: in ns, or in percent of the fleet's medians (which lie at `zero`)."""

    rows: tuple[ClassRow, ...]
    ticks: tuple[Tick, ...]
    axis: str
    zero: float | None
    unit: str = "ns"


@dataclass(frozen=True, slots=True)
class Dot:
    """A pass of a pair: its value and 95 % interval as positions from 0 to 1."""

    at: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CardRun:
    """A run of one pair: its passes as dots, the reach from its fastest batch to its 99th percentile (`beyond` the
    axis or not), and the same in words."""

    run: str
    value: str
    interval: str
    fastest: str
    p99: str
    flagged: str
    dots: tuple[Dot, ...]
    reach: tuple[float, float]
    beyond: bool


@dataclass(frozen=True, slots=True)
class Card:
    """A machine with a single pair: no matrix, but everything that was seen of that pair."""

    pair: str
    value: str
    interval: str
    runs: tuple[CardRun, ...]
    ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class Plate:
    """A measurement on the page: what it is, its figure (`card` or `matrix`), and the classes of its pairs.

    `histogram`: of the values in the matrix, in its colours.
    """

    title: str
    subtitle: str
    card: Card | None
    matrix: Matrix | None
    facts: Facts
    classes: ClassTable | None
    histogram: Histogram | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of words: its header and its rows, of which those at `marked` ask for attention."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The levels found in a matrix without its labels, compared with the labels, and remarks."""

    title: str
    levels: Table
    remarks: tuple[Advice, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Difference maps on one scale, side by side, with a caption each; none where `text` says why there is none."""

    text: str
    captions: tuple[str, ...]
    matrices: tuple[Matrix, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """How one measurement was made."""

    title: str
    facts: Facts


@dataclass(frozen=True, slots=True)
class NodePage:
    """Everything on the pages of one node. `origin` marks what was not measured here (SIMULATED, IMPORTED);
    `place` is its group and rack, `notes` are the fleet's where this is all of it, `floorplan` is an SVG."""

    campaign: str
    node: str
    host: str
    origin: str
    mark: Mark
    text: str
    place: str
    reason: str
    notes: tuple[str, ...]
    log_tail: tuple[str, ...]
    nothing: str
    findings: tuple[Finding, ...]
    plates: tuple[Plate, ...]
    quantities: Table
    readings: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    floorplan: bytes | None
    structure: tuple[Found, ...]
    runs: Table
    fingerprint: Facts
    long_facts: Facts
    warnings: tuple[Advice, ...]
    quality: tuple[str, ...]
    problems: tuple[str, ...]
    methods: tuple[Method, ...]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A line of the cluster's table: its class medians in the order of the columns, and what was found first."""

    node: str
    mark: Mark
    place: str
    values: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True)
class FleetClass:
    """A class over the fleet: a dot per node (`odd` are nodes that are not like the others) on the table's axis."""

    name: str
    nodes: str
    median: str
    low: str
    low_node: str
    high: str
    high_node: str
    dots: tuple[float, ...]
    odd: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FleetTable:
    """The classes of one measurement over the fleet, on one axis of percent of each class's median over nodes."""

    title: str
    rows: tuple[FleetClass, ...]
    ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A node without a result: the reason, and the last lines of its log."""

    node: str
    mark: Mark
    reason: str
    log_tail: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FabricPlate:
    """A measurement between nodes: its matrix of nodes, and what was found in it."""

    title: str
    subtitle: str
    text: str
    findings: tuple[str, ...]
    matrix: Matrix
    histogram: Histogram
    facts: Facts


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """Everything on the cluster's pages."""

    campaign: str
    origin: str
    mark: Mark
    text: str
    counts: tuple[tuple[Mark, int], ...]
    notes: tuple[str, ...]
    place: str
    columns: tuple[str, ...]
    rows: tuple[NodeRow, ...]
    compact: tuple[NodeRow, ...]
    classes: tuple[FleetTable, ...]
    groups: Facts
    certainty: Table
    explained: str
    statistics: Table
    statistics_explained: str
    trust: Facts
    unmeasured: tuple[Unmeasured, ...]
    warnings: tuple[Advice, ...]
    methods: tuple[Method, ...]
    elsewhere: str
    fabric: tuple[FabricPlate, ...] = ()


def title(cluster: ClusterPage | None, nodes: Sequence[NodePage]) -> str:
    """What a document of these pages is called."""
    if cluster is not None:
        return line(f"nodeprint, campaign {cluster.campaign}")
    return line(", ".join(["nodeprint", *(f"campaign {node.campaign}, {node.node}" for node in nodes[:1])]))


def plain(value: Any, text: Callable[[str], str], image: Callable[[bytes], str]) -> Any:
    """`value` (dataclasses all the way down) as JSON types, every string by way of `text`, PNG and SVG of `image`."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name), text, image) for field in fields(value)}
    if isinstance(value, dict):
        return {key: plain(item, text, image) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, text, image) for item in value]
    if isinstance(value, bytes):
        return image(value)
    return text(value) if isinstance(value, str) else value


def line(text: str) -> str:
    """`text` on one line, printable and of bounded length."""
    return printable(" ".join(text.split()), _LONGEST)
