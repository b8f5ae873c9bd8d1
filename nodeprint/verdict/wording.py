"""Findings in words: what a cause is called, what it is consistent with, what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodeprint.layout import CCD, CCX, CLASSES, QUADRANT, SOCKET, Layout
from nodeprint.packed import PackedNode
from nodeprint.verdict.evaluate import Shown
from nodeprint.verdict.outcome import Finding

_LEVEL = {"socket": SOCKET, "quadrant": QUADRANT, "ccd": CCD, "ccx": CCX}


def finding(shown: Shown, node: PackedNode, evidence: Sequence[str], severity: str) -> Finding:
    """A finding with its place in the node's own numbers."""
    layout = shown.matrix.terms.layout
    where = numbered(shown.cause.where, layout, node)
    term = shown.cause.term
    if term == "class" and len(shown.cause.members) == 1 and "to_socket" in where:
        where.pop("beyond_class", None)
    direction = "slow" if shown.effect > 0 else "fast"
    what = _consistent(term, shown, direction)
    name = spoken(term, where)
    low, high = shown.interval
    change = "slower" if shown.effect > 0 else "faster"
    text = (
        f"{name} is {abs(shown.effect) * 100:.1f} % ({shown.effect_ns:+.1f} ns) {change} than its peers "
        f"[{low * 100:.1f} to {high * 100:.1f} %], in {', '.join(shown.runs) or 'no run alone'}"
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
        evidence=tuple(evidence),
        remedy=_REMEDY.get(term, "measure the node again and compare"),
        text=text,
        measurement=shown.matrix.stack.measurement,
        home=shown.matrix.stack.homes[shown.matrix.home],
        constant_in=shown.cause.constant_in,
    )


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
        else:
            out[key] = value
    return out


def _first_slot(layout: Layout, column: int, code: int) -> int:
    rows = [tuple(row) for row in layout.slots[:, : column + 1].tolist()]
    return rows.index(sorted(set(rows))[code])


def spoken(term: str, where: Mapping[str, int]) -> str:
    """A place for people."""
    if term == "node":
        return "the whole node"
    if term == "class":
        if "beyond_class" in where:
            return "everything beyond the CCX"
        name = CLASSES[where["class"]]
        if "to_socket" in where:
            return f"the link between socket {where['socket']} and socket {where['to_socket']} ({name})"
        return f"class '{name}'" + (f" on socket {where['socket']}" if "socket" in where else "")
    if term == "core":
        cpu = f" (CPU {where['cpu']})" if "cpu" in where else ""
        scope = {
            "inside": " inside its CCX",
            "near": " to its socket",
            "across": " across",
            "outside": " outside its CCX",
        }
        return f"core {where['core']}{cpu}" + "".join(text for key, text in scope.items() if where.get(key))
    parts = {key: value for key, value in where.items() if key not in ("across", "to_others")}
    numbers = " to ".join(
        f"{key.removeprefix('to_').upper() if 'c' in key[:4] else key.removeprefix('to_')} {value}"
        for key, value in parts.items()
    )
    scope_text = " to the other socket" if where.get("across") else " to all others" if where.get("to_others") else ""
    return f"{'link ' if term == 'link' else ''}{numbers}{scope_text}"


def _consistent(term: str, shown: Shown, direction: str) -> tuple[str, ...]:
    where = shown.cause.where
    if term == "class" and "beyond_class" in where:
        return ("fabric clock", "NPS setting")
    if term == "class" and "to_socket" in where:
        return ("width or speed of the link between the sockets",)
    if term == "class" and where.get("class") in (0, 1):
        return ("core clock", "L3 clock")
    return _CONSISTENT.get(term, ()) if direction == "slow" else ("a higher clock", *_CONSISTENT.get(term, ())[:1])


_CONSISTENT: Mapping[str, tuple[str, ...]] = {
    "node": ("core and fabric clock together", "power limit", "firmware settings"),
    "socket": ("clock or power limit of the socket", "temperature"),
    "class": ("fabric clock",),
    "quadrant": ("the quadrant's part of the I/O die", "memory channel settings"),
    "ccd": ("the CCD's port to the I/O die", "the CCD's clock"),
    "link": ("a path inside the I/O die",),
    "block": ("the link between two parts, or an I/O-die port",),
    "core": ("the core itself", "interrupts", "a daemon pinned there"),
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
