"""What a verdict is made of, and its words."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from nodeprint import outcomes
from nodeprint.errors import printable

SCHEMA = 1

#: The severity of a finding by the state of its cause (judge.confirmation).
SEVERITY: Mapping[str, str] = {
    "confirmed": "error", "crowd": "warning", "fresh": "warning", "differs": "warning", "refuted": "info",
}  # fmt: skip


#: The id of a finding that a later job did not confirm, and what one of a first job needs.
GONE, ONCE = "not-confirmed", "a second job, at least 10 minutes later, can confirm it"


class Finding(msgspec.Struct, frozen=True):
    """One cause, one finding: `effect` relative to the template, `interval` its 95 % bounds, from the last job."""

    id: str
    severity: str
    term: str
    text: str
    where: Mapping[str, int | str] = {}
    effect: float = 0.0
    effect_ns: float = 0.0
    interval: tuple[float, float] = (0.0, 0.0)
    runs: tuple[str, ...] = ()
    consistent_with: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    measurement: str = ""
    home: int = -1
    constant_in: str = "either"
    suppressed: str = ""


class ClassFigure(msgspec.Struct, frozen=True):
    """A class of pairs on one node: median in ns with the interval over its runs (95 %), how many these are and their
    standard deviation (NaN of one)."""

    name: str
    measurement: str
    home: int
    median_ns: float
    ci_low_ns: float
    ci_high_ns: float
    pairs: int
    runs: int
    run_sd_ns: float


class CellFigure(msgspec.Struct, frozen=True):
    """Cells of one kind on one node: the median with its interval over `runs` (95 %) and their standard deviation, the
    median over the node's group (NaN without one), and the worst cell, all in `unit`; `deviates`: the cells are a
    finding's."""

    measurement: str
    name: str
    unit: str
    median: float
    ci_low: float
    ci_high: float
    group: float
    worst: str
    worst_value: float
    cells: int
    runs: int
    run_sd: float
    deviates: bool = False


class MarginFigure(msgspec.Struct, frozen=True):
    """How alike nodes are in one family of terms of pairs, or in one other measurement: the smallest bound at which
    they would be the same, relative and in ns, the bound that applies, and the place that comes nearest to it. It is
    the far end of a 90 % interval, infinite where there is one run only; ns are NaN where it is no pair."""

    within: float
    within_ns: float
    bound: float
    bound_ns: float
    place: str

    @property
    def share(self) -> float:
        """How much of the bound it takes."""
        return self.within / self.bound


class NodeVerdict(msgspec.Struct, frozen=True):
    """A node's outcome and why."""

    verdict: str
    text: str
    findings: tuple[Finding, ...] = ()
    quality: tuple[str, ...] = ()
    fingerprint: Mapping[str, Any] = {}
    warnings: tuple[Mapping[str, str], ...] = ()
    classes: tuple[ClassFigure, ...] = ()
    cells: tuple[CellFigure, ...] = ()
    reason: str = ""
    log_tail: tuple[str, ...] = ()
    group: str = ""
    rack: str = ""
    margins: Mapping[str, MarginFigure] = {}


#: From this effect on a detection limit is no longer printed as a figure: with heavy tails it is an extrapolation.
MOST_DETECTED = 0.2


class FleetVerdict(msgspec.Struct, frozen=True):
    """The fleet's outcome. `smallest_effect` is the detection limit by term, relative; None untested. `bound` is from
    where on an effect matters, `margins` by family how alike the nodes are that are SAME."""

    outcome: str
    text: str
    groups: tuple[Mapping[str, Any], ...] = ()
    smallest_effect: Mapping[str, float | None] = {}
    bound: Mapping[str, float] = {}
    spread: Mapping[str, Mapping[str, float]] = {}
    counts: Mapping[str, int] = {}
    margins: Mapping[str, MarginFigure] = {}
    tests: int = 0
    expected_false_accusations: float = 0.0
    notes: tuple[str, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """The verdict of a campaign; `recheck` are the nodes to measure again: suspects and two companions each.

    `fabric` has an entry for each measurement between nodes (nodeprint.words.links).
    """

    campaign: str
    simulated: bool
    versions: Mapping[str, str]
    fleet: FleetVerdict
    nodes: Mapping[str, NodeVerdict]
    recheck: tuple[str, ...] = ()
    fabric: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As read from verdict.json (docs/formats.md)."""
        read: dict[str, Any] = json.loads(self.json())
        return read

    def json(self) -> str:
        """verdict.json's text: the same for the same input."""
        body = msgspec.json.encode(_plain({"schema": SCHEMA, **asdict(self)}), order="sorted")
        return msgspec.json.format(body, indent=1).decode() + "\n"

    def text(self) -> str:
        """For a terminal: the fleet in a line, its notes, then every node that is not SAME."""
        lines = [("SIMULATED: " if self.simulated else "") + self.fleet.text]
        lines += [f"note: {note}" for note in self.fleet.notes]
        said = [(name, f"{node.verdict}. {node.text}") for name, node in self.nodes.items() if node.verdict != "SAME"]
        between = [f"{one['measurement']}, partition {one['partition']}: {one['text']}" for one in self.fabric]
        return "\n".join([*lines, *(f"{names}: {text}" for names, text in folded(said)), *between])

    def fails(self, on: str) -> bool:
        """Whether `--fail-on` ON (one of outcomes.FAIL_ON) counts an outcome that is there and not suppressed.

        A link that two jobs showed deviates, though neither of its nodes does.
        """
        return outcomes.fails(on, (node.verdict for node in self.nodes.values()), self.fabric)


#: How margins are summarised: the families that share a figure, and whether it is one in ns, as inside a CCX a hop is
#: short.
_SUMMARY: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("classes", ("class",), False),
    ("quadrants", ("quadrant", "link"), False),
    ("CCDs", ("ccd", "block"), False),
    ("cores", ("core-near", "core-far"), False),
    ("inside a CCX", ("ccx", "core-in"), True),
)


def said_within(margins: Mapping[str, MarginFigure]) -> str:
    """Margins by family in a line: `1.1 % (classes), 1.8 % (CCDs), 1.3 ns (inside a CCX)`.

    Pairs that are no hops follow, a figure each measurement.
    """
    said = []
    for name, families, in_ns in _SUMMARY:
        mine = [margins[family] for family in families if family in margins]
        if mine and in_ns:
            said.append(f"{max(one.within_ns for one in mine):.1f} ns ({name})")
        elif mine:
            said.append(f"{max(one.within for one in mine) * 100:.1f} % ({name})")
    others: dict[str, float] = {}
    for name, one in margins.items():
        measurement, apart, _ = name.partition(": ")
        if apart:
            others[measurement] = max(one.within, others.get(measurement, 0.0))
    return ", ".join([*said, *(f"{within * 100:.1f} % ({name})" for name, within in sorted(others.items()))])


def exceeded(margins: Mapping[str, MarginFigure]) -> list[str]:
    """The families and measurements whose margin is beyond its bound: what is not resolved."""
    return sorted(name for name, one in margins.items() if one.within > one.bound)


def some_names(names: Sequence[str]) -> str:
    """How many nodes, and the first of them: `4 nodes (a, b, c, ...)`."""
    first = ", ".join(printable(name) for name in names[:3])
    return f"{len(names)} {'node' if len(names) == 1 else 'nodes'} ({first}{', ...' if len(names) > 3 else ''})"


#: More nodes that are alike share a line.
MOST_SINGLE = 3
#: Lines that begin so name a part of the node.
_OF_ITS_OWN = tuple(f"{word}{end}" for word, one in outcomes.NODE.items() if one.accuses for end in ":.")


def alike(words: str) -> str:
    """The same for lines that say the same of other figures; accusations are alike only where they are equal."""
    return words if words.startswith(_OF_ITS_OWN) else re.sub(r"[+-]?\d[\d.]*", "#", words)


def folded(said: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Lines of names and what is said of them, in order of names; more than MOST_SINGLE nodes that are alike share one,
    with the words of the first where the others' figures differ."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, words in sorted(said):
        groups.setdefault(alike(words), []).append((name, words))
    lines: list[tuple[str, tuple[str, str]]] = []
    for group in groups.values():
        if len(group) <= MOST_SINGLE:
            lines += [(name, (printable(name), words)) for name, words in group]
        else:
            lines.append((group[0][0], (some_names([name for name, _ in group]), told_once(group))))
    return [line for _, line in sorted(lines)]


def told_once(group: Sequence[tuple[str, str]]) -> str:
    """The words of the first of nodes (names, words) that are alike, with a remark where the others' figures differ."""
    first, words = group[0]
    return (
        words
        if all(other == words for _, other in group)
        else f"{words} (figures of {printable(first)}, those of the others differ)"
    )


def _plain(value: Any) -> Any:
    """`value` as JSON has it: floats with 6 significant digits, which keeps equal input byte-identical over machines;
    NaN becomes null, a structure its fields."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    named = asdict(value) if isinstance(value, msgspec.Struct) else value
    # most are texts, which need no call
    return {str(key): item if type(item) is str else _plain(item) for key, item in named.items()}
