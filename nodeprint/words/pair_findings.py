"""Findings of pairs of CPUs in words: what a cause is called, what it is consistent with, what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodeprint import remedies, senses
from nodeprint.judge.confirmation import ShownCause
from nodeprint.layout import ALL_PAIRS, CCD, CCX, RANK, codes
from nodeprint.packed import PackedNode
from nodeprint.words import places
from nodeprint.words.outcome import SEVERITY, Finding
from nodeprint.words.places import LEVELS
from nodeprint.words.units import duration


def finding(shown: ShownCause, node: PackedNode, peers: Sequence[PackedNode], soft: Sequence[str]) -> Finding:
    """A finding with its place in the node's own numbers, and the evidence there is beside `soft` differences."""
    where = places.place(shown.matrix, shown.cause.where, node)
    term = shown.cause.term
    direction = "slow" if shown.effect > 0 else "fast"
    clock, instruments = _instruments(shown, node, peers)
    what = by_clock(_consistent(term, shown, direction), clock, shown.effect)
    name = places.spoken(term, where)
    # of several terms the one in which it is largest: a mean over all of them may be within what is accepted
    at, largest, largest_ns = shown.cause.largest
    factor, again = largest / shown.cause.effect, shown.effect / shown.cause.effect
    effect, effect_ns, low, high = largest * again, largest_ns * again, *(side * factor for side in shown.interval)
    change = "slower" if effect > 0 else "faster"
    where_most = (
        f", largest {_most_in(shown, at, node, name)}" if len(shown.cause.members) > 1 and factor > _MOST else ""
    )
    added = f"{effect_ns:+.1f} ns"
    if shown.matrix.quantity.quantity == "message":
        added = f"{'+' if effect_ns > 0 else '-'}{duration(abs(effect_ns))} a message"
    text = (
        f"{name} is {'up to ' if where_most else ''}{abs(effect) * 100:.1f} % ({added}) {change} than its "
        f"peers [{low * 100:.1f} to {high * 100:.1f} %]{where_most}, {seen_in(shown.runs)}"
    )
    return Finding(
        id=f"{term}-{direction}",
        severity=SEVERITY[shown.state],
        term=term,
        where=where,
        effect=effect,
        effect_ns=effect_ns,
        interval=(low, high),
        runs=shown.runs,
        consistent_with=what,
        evidence=(*soft, *instruments),
        remedy=remedies.of("unlabelled" if where.get("class") == ALL_PAIRS else term),
        text=text,
        measurement=shown.matrix.name,
        home=shown.matrix.part.home,
        constant_in=shown.cause.constant_in,
    )


#: A cause is said to be largest somewhere from this many times its mean over all its pairs on.
_MOST = 1.1


def _most_in(shown: ShownCause, term: int, node: PackedNode, name: str) -> str:
    """The place of one term of a cause that is called `name`."""
    place = places.term(shown.matrix, term, node)
    return place.removeprefix(f"{name} ") if place.startswith(f"{name} ") else f"in {place}"


def seen_in(runs: Sequence[str]) -> str:
    """The runs that show a deviation."""
    return f"in {', '.join(runs)}" if runs else "not visible in any single run"


def _consistent(term: str, shown: ShownCause, direction: str) -> tuple[str, ...]:
    where = shown.cause.where
    if where.get("class") == ALL_PAIRS:
        term = "node"
    if term == "class" and "to_socket" in where:
        return ("width or speed of the link between the sockets",)
    if (term == "class" and where.get("class") in (0, 1)) or (term == "ccd" and where.get("inside")):
        return ("core clock", "L3 clock")
    if term == "socket" and where.get("beyond_class"):
        return ("the socket's fabric clock", "power limit")
    if term == "class":
        return ("fabric clock", "NPS setting")
    known = remedies.consistent_with(term)
    return known if direction == "slow" else ("a higher clock", *known[:1])


#: A clock that differs by more than this is seen; a processor this much hotter than its peers too.
_CLOCK_SEEN, _HOTTER = 0.02, 8.0


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
        out.append(f"not known: {name}" if count is None else f"{'seen' if count else 'not seen'}: {name}, {count}")
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


#: Causes that the probe of the core clock can confirm or exclude: a fabric hop is not divided by the core clock.
_CLOCKS = (
    "core clock",
    "the core's clock",
    "the CCD's clock",
    "the socket's core clock",
    "core and fabric clock together",
    "a higher clock",
)
#: A clock explains an effect of which it makes so much, were all of a hop spent in it.
_EXPLAINED = 0.5


def by_clock(what: tuple[str, ...], clock: float | None, effect: float) -> tuple[str, ...]:
    """Core clock alone where its probe explains the effect, without it where it is the peers', else first."""
    others = tuple(one for one in what if one not in _CLOCKS)
    if clock is None or others == what:
        return what
    if abs(clock - 1) <= _CLOCK_SEEN:
        return others
    explained = (1 / clock - 1) / effect if effect else 0.0
    return ("core clock",) if explained >= _EXPLAINED else ("core clock", *others) if explained > 0 else others
