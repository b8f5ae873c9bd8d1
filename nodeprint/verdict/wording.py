"""Findings in words: what a cause is called, what it is consistent with, what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nodeprint import senses
from nodeprint.layout import ALL_PAIRS, CCD, CCX, CLASSES, QUADRANT, SOCKET, Layout
from nodeprint.packed import PackedNode
from nodeprint.verdict.evaluate import Place, Shown
from nodeprint.verdict.outcome import Finding

_LEVEL = {"socket": SOCKET, "quadrant": QUADRANT, "ccd": CCD, "ccx": CCX}
#: What is tested, for people: terms, and the families of those that several families show.
TESTED: Mapping[str, str] = {
    "node": "the whole node",
    "socket": "one socket",
    "socket_link": "the link between sockets",
    "fabric": "everything beyond the CCX",
    "class": "one class of pairs",
    "quadrant": "a quadrant to the others",
    "link": "a path between quadrants",
    "ccd": "a CCD to the others",
    "block": "a path between CCDs",
    "ccx": "the inside of a CCX",
    "core": "a core",
    "core-in": "a core inside its CCX",
    "core-near": "a core to its socket",
    "core-far": "a core to the other socket",
    "numa": "memory latency",
    "cache": "cache latency",
    "bandwidth": "memory bandwidth",
    "clock": "a core's clock",
    "jitter": "time taken from a CPU",
    "loaded": "latency under load",
    "touch": "memory first touched by another core",
    "remap": "remapping of pages",
}


def finding(shown: Shown, node: PackedNode, peers: Sequence[PackedNode], soft: Sequence[str], severity: str) -> Finding:
    """A finding with its place in the node's own numbers, and the evidence there is beside `soft` differences."""
    layout = shown.matrix.terms.layout
    where = numbered(shown.cause.where, layout, node)
    term = shown.cause.term
    if term == "class" and len(shown.cause.members) == 1 and "to_socket" in where:
        where.pop("beyond_class", None)
    direction = "slow" if shown.effect > 0 else "fast"
    clock, instruments = _instruments(shown, node, peers)
    what = by_clock(_consistent(term, shown, direction), clock, shown.effect)
    name = spoken(term, where)
    low, high = shown.interval
    change = "slower" if shown.effect > 0 else "faster"
    text = (
        f"{name} is {abs(shown.effect) * 100:.1f} % ({shown.effect_ns:+.1f} ns) {change} than its peers "
        f"[{low * 100:.1f} to {high * 100:.1f} %], {seen_in(shown.runs)}"
    )
    return Finding(
        id=f"{term}-{direction}",
        severity=severity,
        term=term,
        where=where,
        effect=shown.effect,
        effect_ns=shown.effect_ns,
        interval=shown.interval,
        runs=shown.runs,
        consistent_with=what,
        evidence=(*soft, *instruments),
        remedy=_UNLABELLED if where.get("class") == ALL_PAIRS else _REMEDY[term],
        text=text,
        measurement=shown.matrix.stack.measurement,
        home=shown.matrix.stack.homes[shown.matrix.home],
        constant_in=shown.cause.constant_in,
    )


def said(place: Place, node: PackedNode) -> str:
    """A term's place in the node's own numbers."""
    return spoken(place.term, numbered(place.where, place.matrix.terms.layout, node))


def seen_in(runs: Sequence[str]) -> str:
    """The runs that show a deviation."""
    return f"in {', '.join(runs)}" if runs else "not visible in any single run"


def both(share: float, ns: float) -> str:
    """A difference in percent and in ns."""
    return f"{share * 100:.2f} %, {ns:.2f} ns"


def numbered(where: Mapping[str, int], layout: Layout, node: PackedNode) -> dict[str, int]:
    """A place in the numbers of the node's topology: cores and CPUs of the node, parts machine-wide."""
    out: dict[str, int] = {}
    for key, value in where.items():
        level = key.removeprefix("to_")
        if level == "core":
            slot = _first_slot(layout, 4, value)
            out["core"] = node.cores[slot] if slot < len(node.cores) else value
            if slot < len(node.cpus):
                out["cpu"] = node.cpus[slot]
        elif level in _LEVEL and key != "to_others":
            column = _LEVEL[level]
            number = int(layout.slots[_first_slot(layout, column, value), column])
            named = key.replace("ccd", "ccx") if level == "ccd" and number < 0 else key
            out[named] = number if number >= 0 else value
        elif key != "inside" or layout.slots[:, CCX].min() >= 0:
            out[key] = value
    return out


def _first_slot(layout: Layout, column: int, code: int) -> int:
    rows = [tuple(row) for row in layout.slots[:, : column + 1].tolist()]
    return rows.index(sorted(set(rows))[code])


def spoken(term: str, where: Mapping[str, Any]) -> str:
    """A place for people."""
    if term in _WHOLE:
        return _WHOLE[term]
    if term == "class":
        return _spoken_class(where)
    if term == "core":
        cpu = f" (CPU {where['cpu']})" if "cpu" in where else ""
        scope = {
            "inside": " inside its CCX",
            "near": " to its socket",
            "across": " to the other socket",
            "outside": " outside its CCX",
        }
        return f"core {where['core']}{cpu}" + "".join(text for key, text in scope.items() if where.get(key))
    parts = [(key.removeprefix("to_"), value) for key, value in where.items() if key not in ("across", "to_others")]
    numbers = " to ".join(f"{part.upper() if part in ('ccd', 'ccx') else part} {value}" for part, value in parts)
    scope_text = " to the other socket" if where.get("across") else " to all others" if where.get("to_others") else ""
    return f"{'link ' if term == 'link' else ''}{numbers}{scope_text}"


_WHOLE: Mapping[str, str] = {"node": "the whole node", "spread": "runs or passes that differ"}


def _spoken_class(where: Mapping[str, int]) -> str:
    if "beyond_class" in where:
        return "everything beyond the CCX"
    name = CLASSES[where["class"]]
    if where["class"] == ALL_PAIRS:
        return name
    if "to_socket" in where:
        return f"the link between socket {where['socket']} and socket {where['to_socket']} ({name})"
    return f"class '{name}'" + (f" on socket {where['socket']}" if "socket" in where else "")


def _consistent(term: str, shown: Shown, direction: str) -> tuple[str, ...]:
    where = shown.cause.where
    if where.get("class") == ALL_PAIRS:
        term = "node"
    if term == "class" and "to_socket" in where:
        return ("width or speed of the link between the sockets",)
    if term == "class" and where.get("class") in (0, 1):
        return ("core clock", "L3 clock")
    if term == "class":
        return ("fabric clock", "NPS setting")
    return _CONSISTENT.get(term, ()) if direction == "slow" else ("a higher clock", *_CONSISTENT.get(term, ())[:1])


#: A clock that differs by more than this is seen; a processor this much hotter than its peers too.
_CLOCK_SEEN, _HOTTER = 0.02, 8.0


def _instruments(shown: Shown, node: PackedNode, peers: Sequence[PackedNode]) -> tuple[float | None, tuple[str, ...]]:
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


def _slots(shown: Shown) -> list[int]:
    """The slots of the parts that a finding names; all where it names none."""
    slots = shown.matrix.terms.layout.slots
    levels = {"socket": SOCKET, "quadrant": QUADRANT, "ccd": CCD, "ccx": CCX, "core": 4}
    for name, value in shown.cause.where.items():
        if name in levels:
            level = CCX if name == "ccd" and slots[:, CCD].min() < 0 else levels[name]  # where dies are unknown
            codes = np.unique(slots[:, : level + 1], axis=0, return_inverse=True)[1].reshape(-1)
            return [int(slot) for slot in np.flatnonzero(codes == value)]
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


_CONSISTENT: Mapping[str, tuple[str, ...]] = {
    "node": ("core and fabric clock together", "power limit", "firmware settings"),
    "socket": ("the socket's core clock", "the socket's fabric clock", "power limit", "temperature"),
    "quadrant": ("the quadrant's part of the I/O die", "memory channel settings"),
    "ccd": ("the CCD's port to the I/O die", "the CCD's clock"),
    "link": ("the path between the two quadrants",),
    "block": ("the link between two parts, or an I/O-die port",),
    "core": ("the core's clock", "the core itself", "interrupts", "a daemon pinned there"),
}
_REMEDY: Mapping[str, str] = {
    "node": "compare BIOS, clock and power settings with a node that is SAME",
    "socket": "compare power limit and temperature of both sockets; reseat or swap the processors",
    "class": "compare fabric clock, NPS and link settings with a node that is SAME",
    "quadrant": "check the memory population of the quadrant",
    "ccd": "report the CCD to the vendor with this page",
    "link": "report the quadrants to the vendor with this page",
    "block": "report the parts to the vendor with this page",
    "core": "look for interrupts and daemons on the CPU, then report the core to the vendor with this page",
}
_UNLABELLED = (
    "import the matrix with its topology (--part or --xml), so that parts have names; compare clock and power settings"
)
