"""Causes in words: what each is called, where and how large it is, what it is consistent with, what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from nodeprint import remedies, senses
from nodeprint.curves import explained_by_jitter
from nodeprint.fleet import homes
from nodeprint.fleet.quantity import Key, models
from nodeprint.judge.confirmation import STATES, ShownCause, by_cpu
from nodeprint.judge.evidence import Evidence
from nodeprint.layout import ALL_PAIRS, CCD, CCX, RANK, codes
from nodeprint.packed import PackedNode
from nodeprint.words import places
from nodeprint.words.names import name_list
from nodeprint.words.outcome import GONE, SEVERITY, Finding
from nodeprint.words.places import LEVELS
from nodeprint.words.units import duration, said

#: Causes that are measured directly and show in pairs, too: reported first.
_DIRECT = ("clock", "jitter")
#: Of causes of cells in one place the first term here is the finding, the others are its evidence: what takes time from
#: a CPU or slows its clock shows in everything that runs there.
_FIRST = ("jitter", "clock", "bandwidth", "numa", "cache")
#: A cause is said to be largest somewhere from this many times its mean over all its pairs on.
_MOST = 1.1
#: The two sides of a term that is neither fast nor slow: more and less of it.
_SIDES: Mapping[str, tuple[str, str]] = {"jitter": ("loud", "quiet"), "die-lines": ("many", "few")}
#: Causes that the probe of the core clock can confirm or exclude: a fabric hop is not divided by the core clock.
_CLOCKS = (
    "core clock",
    "the core's clock",
    "the CCD's clock",
    "the socket's core clock",
    "core and fabric clock together",
    "a higher clock",
)
#: A clock that differs by more than this is seen; a processor this much hotter than its peers too.
_CLOCK_SEEN, _HOTTER = 0.02, 8.0
#: A clock explains an effect if it would cause this share of it with all of a hop at that clock.
_EXPLAINED = 0.5


def findings(
    shown: Sequence[ShownCause],
    node: PackedNode,
    peers: Sequence[PackedNode],
    soft: Sequence[str],
    accepted: Callable[[str], str],
) -> list[tuple[str, Finding]]:
    """A node's findings, each with its state, in the order in which they are reported; `soft` are differences from its
    peers that are evidence, `accepted` says by a finding's id why it is suppressed. One cause is one finding: of pairs
    the matrix that shows most of it, else one a place."""
    out: list[tuple[str, Finding]] = []
    for state in STATES:
        mine = [one for one in shown if one.state == state]
        others = [one for one in shown if one.state != state] if state == "refuted" else []
        pairs = [one for one in mine if one.matrix.quantity.of_pairs and not any(_same(one, other) for other in others)]
        told = [finding(one, node, peers, soft, at) for one, at in _largest(pairs)]
        cells = [finding(one, node, peers, soft) for one in mine if not one.matrix.quantity.of_pairs]
        told += _by_place(cells, accepted)
        told.sort(key=lambda one: one.term not in _DIRECT)
        out += [(state, replace(one, id=GONE) if state == "refuted" else one) for one in told]
    return out


def _largest(shown: Sequence[ShownCause]) -> list[tuple[ShownCause, set[int]]]:
    """The largest first, each with the homes that it was seen at, without those that are the same cause at another home
    or in another measurement."""
    kept: list[tuple[ShownCause, set[int]]] = []
    for one in sorted(shown, key=lambda one: (-abs(one.effect) * len(one.cause.members), one.cause.term)):
        first, at = next(((other, at) for other, at in kept if _same(one, other)), (one, set[int]()))
        if first is one:
            kept.append((one, at))
        if first.matrix.quantity is one.matrix.quantity:
            at.add(one.matrix.part.home)
    return kept


def _same(one: ShownCause, other: ShownCause) -> bool:
    """Whether two causes of different matrices share a term: within one matrix they are told apart already."""
    alike = one.matrix is not other.matrix and one.matrix.terms is other.matrix.terms
    return alike and bool(np.isin(one.cause.members, other.cause.members).any())


def _by_place(found: Sequence[Finding], accepted: Callable[[str], str]) -> list[Finding]:
    """One finding a place for what is worse there than at the peers, and one for what is better; what is accepted hides
    nothing else."""
    by_place: dict[tuple[str, Key, bool, bool], list[Finding]] = {}
    for one in sorted(found, key=lambda one: _FIRST.index(one.term) if one.term in _FIRST else len(_FIRST)):
        part = next((key for key in ("core", "memory_node", "ccx", "ccd", "socket") if key in one.where), "")
        place = one.where[part] if part else str(sorted(one.where.items()))
        model = models().get(one.measurement)
        worse = model is None or (one.effect > 0) == (model.better == "lower")
        by_place.setdefault((part, place, worse, bool(accepted(one.id))), []).append(one)
    return [
        replace(first, evidence=(*first.evidence, *(other.text for other in rest)))
        for first, *rest in by_place.values()
    ]


def finding(
    shown: ShownCause, node: PackedNode, peers: Sequence[PackedNode], soft: Sequence[str], at: Collection[int] = ()
) -> Finding:
    """A finding with its place in the node's own numbers, and the evidence there is beside `soft` differences; `at` are
    the homes of the lines that show it."""
    matrix, cause = shown.matrix, shown.cause
    where = places.place(matrix, cause.where, node)
    # of several terms the one in which it is largest: a mean over all of them may be within what is accepted
    again, factor = shown.effect / cause.effect, cause.largest[1] / cause.effect
    sizes = (cause.largest[1] * again, *(side * factor for side in shown.interval))
    usual = level(shown) if matrix.terms.share else 0.0
    effect, low, high = (matrix.scale.relative(size, usual) for size in sizes)
    found = Finding(
        "", SEVERITY[shown.state], cause.term, "", where, effect, cause.largest[2] * again, (low, high), shown.runs,
        evidence=tuple(soft), remedy=remedies.of(_sentences_of(cause.term, cause.where)),
        measurement=matrix.name, home=matrix.part.home, constant_in=cause.constant_in,
    )  # fmt: skip
    return _of_pairs(found, shown, node, peers, at) if matrix.quantity.of_pairs else _of_cells(found, shown)


def _of_pairs(
    found: Finding, shown: ShownCause, node: PackedNode, peers: Sequence[PackedNode], at: Collection[int]
) -> Finding:
    """What is said of a cause in pairs of CPUs."""
    term, cause, (low, high) = found.term, shown.cause, found.interval
    direction, change = ("slow", "slower") if found.effect > 0 else ("fast", "faster")
    clock, instruments = _instruments(shown, node, peers)
    name, most = places.spoken(term, found.where), ""
    added = f"{found.effect_ns:+.1f} ns"
    if shown.matrix.quantity.quantity == "message":
        added = f"{'+' if found.effect_ns > 0 else '-'}{duration(abs(found.effect_ns))} a message"
    if len(cause.members) > 1:
        place = places.term(shown.matrix, cause.largest[0], node)
        inside = place.removeprefix(f"{name} ") if place.startswith(f"{name} ") else f"in {place}"
        if cause.largest[1] / cause.effect > _MOST:
            most = f", largest {inside}"
        elif not name.startswith(place):  # a percentage is of all terms alike, ns are of one of them
            added += f" {inside}"
    text = (
        f"{name} is {'up to ' if most else ''}{abs(found.effect) * 100:.1f} % ({added}) {change} than its "
        f"peers [{low * 100:z.1f} to {high * 100:z.1f} %]{most}{_at_homes(shown, at)}, {seen_in(shown.runs)}"
    )
    what = by_clock(_consistent(term, cause.where, direction), clock, shown.effect)
    evidence = (*found.evidence, *instruments)
    return replace(found, id=f"{term}-{direction}", text=text, consistent_with=what, evidence=evidence)


def _at_homes(shown: ShownCause, at: Collection[int]) -> str:
    """Where the lines were that show it, if those of other homes do not."""
    if len(shown.matrix.quantity.homes) <= len(at):
        return ""
    return f", with lines at the {' and '.join(homes.named(home) or 'near home' for home in sorted(at))}"


def _of_cells(found: Finding, shown: ShownCause) -> Finding:
    """What is said of a cause in places that are no pairs."""
    quantity, (low, high) = shown.matrix.quantity, found.interval
    model, unit, effect, peers = quantity.model, quantity.unit, found.effect, level(shown)
    slow, fast = _SIDES.get(found.term, ("slow", "fast") if model.better == "lower" else ("fast", "slow"))
    worse, share = (effect > 0) == (model.better == "lower"), model.scale == "share"
    if share:
        more, usual = f"{effect * 100:.1f} percentage points", f"{peers * 100:.2g} %"
        change = f"loses {more} more of its time than its peers, which lose {usual}"
    else:
        change = (
            f"{said(peers * (1 + effect), unit)}, its peers {said(peers, unit)} "
            f"({effect * 100:+.1f} % [{low * 100:z.1f} to {high * 100:z.1f} %])"
        )
    return replace(
        found, id=f"{found.term}-{slow if effect > 0 else fast}",
        text=f"{found.measurement}, {places.of_labels(found.where)}: {change}, {seen_in(shown.runs)}",
        effect_ns=effect * peers if unit == "ns" and not share else float("nan"),
        consistent_with=remedies.consistent_with(found.term) if worse else ("settings that differ from the peers'",),
        constant_in="percent" if model.scale == "log" else "either",
    )  # fmt: skip


def level(shown: ShownCause) -> float:
    """The peers' value of what deviates, in the measurement's unit."""
    (term,) = shown.cause.members
    return float(np.nanmedian(shown.matrix.template[shown.matrix.terms.terms[int(term)].covers]))


def seen_in(runs: Sequence[str]) -> str:
    """The runs that show a deviation."""
    return f"in {name_list(runs)}" if runs else "not visible in any single run"


def explained(evidence: Sequence[Evidence], i: int) -> str:
    """How far the time that CPUs lost goes with what deviates on them elsewhere; empty where it is unknown."""
    deviations = [(one, by_cpu(one, i)) for one in evidence]
    lost = next((mine for one, mine in deviations if one.matrix.terms.share and mine), {})
    said = []
    for one, elsewhere in deviations:
        both = sorted(set(lost) & set(elsewhere)) if not one.matrix.terms.share else []
        found = explained_by_jitter([lost[cpu] for cpu in both], [abs(elsewhere[cpu]) for cpu in both])
        if np.isfinite(found):
            said.append(f"{found:+.2f} in {one.matrix.name}")
    return f"rank correlation over CPUs of lost time with deviations: {', '.join(said)}" if said else ""


def _sentences_of(term: str, where: Mapping[str, Key]) -> str:
    """What the sentences of reports/ call a term: the inside of a CCX shares its bound with blocks, and no more."""
    return "unlabelled" if where.get("class") == ALL_PAIRS else "ccx" if term == "block" and "ccx" in where else term


def _consistent(term: str, where: Mapping[str, Key], direction: str) -> tuple[str, ...]:
    if term == "class" and "to_socket" in where:
        return ("width or speed of the link between the sockets",)
    if (term == "class" and where.get("class") in (0, 1)) or (term == "ccd" and where.get("inside")):
        return ("core clock", "L3 clock")
    if term == "socket" and where.get("beyond_class"):
        return ("the socket's fabric clock", "power limit")
    if term == "class" and where.get("class") != ALL_PAIRS:
        return ("fabric clock", "NPS setting")
    known = remedies.consistent_with(_sentences_of(term, where))
    return known if direction == "slow" else ("a higher clock", *known[:1])


def _instruments(
    shown: ShownCause, node: PackedNode, peers: Sequence[PackedNode]
) -> tuple[float | None, tuple[str, ...]]:
    """The clock of what a finding covers against the peers', and what every instrument said or did not."""
    others = [peer.senses for peer in peers if peer.name != node.name]
    ratio = senses.clock_against(node.senses, others, _slots(shown))
    out = []
    if ratio is None:
        out.append("not known: core clocks (no probe of them in the records)")
    elif abs(ratio - 1) > _CLOCK_SEEN:
        out.append(f"seen: core clock {(ratio - 1) * 100:+.1f} % against the peers'")
    else:
        out.append(f"not seen: a different core clock ({(ratio - 1) * 100:+z.1f} % against the peers')")
    heat, usual = node.senses.get("temperature_c"), [o["temperature_c"] for o in others if "temperature_c" in o]
    if heat is None or not usual:
        out.append("not known: temperature")
    else:
        middle = sorted(usual)[len(usual) // 2]
        what = "seen" if heat - middle > _HOTTER else "not seen"
        out.append(f"{what}: temperature {heat:.0f} C, the peers have {middle:.0f} C")
    for key, name in (("throttled", "thermal throttling"), ("memory_errors", "memory errors (EDAC)")):
        count = node.senses.get(key)
        seen = f"seen: {name}, {count}" if count else f"not seen: {name}"
        out.append(f"not known: {name}" if count is None else seen)
    return ratio, tuple(out)


def _slots(shown: ShownCause) -> list[int]:
    """The slots of the parts that a finding names; all where it names none."""
    slots = shown.matrix.terms.layout.slots
    for name, value in shown.cause.where.items():
        if name == "core" or name in LEVELS:
            level = RANK if name == "core" else LEVELS[name]
            level = CCX if name == "ccd" and slots[:, CCD].min() < 0 else level  # where dies are unknown
            return [int(slot) for slot in np.flatnonzero(codes(slots[:, : level + 1]) == value)]
    return list(range(len(slots)))


def by_clock(what: tuple[str, ...], clock: float | None, effect: float) -> tuple[str, ...]:
    """Core clock alone where its probe explains the effect, without it where it is the peers', else first."""
    others = tuple(one for one in what if one not in _CLOCKS)
    if clock is None or others == what:
        return what
    if abs(clock - 1) <= _CLOCK_SEEN:
        return others
    explained = (1 / clock - 1) / effect if effect else 0.0
    return ("core clock",) if explained >= _EXPLAINED else ("core clock", *others) if explained > 0 else others
