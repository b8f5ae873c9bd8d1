"""A command that measures what a finding is of and ends with PASS or FAIL, for somebody who has the kernels alone."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nodeprint.data.layout import CCX, SOCKET
from nodeprint.data.packed import os_places
from nodeprint.judge.verdict import Finding
from nodeprint.report import names
from nodeprint.report.figures.node_levels import NodeLevels

#: Arguments of a kernel that belong to one run, and those that say what is measured.
_OWN = ("--out", "--seed", "--job", "--run", "--cpus", "--pairs", "--siblings")
#: Operations that are of all CPUs at work together: less of them would be another measurement.
_AT_ONCE = frozenset({"together", "ladder", "all", "loaded"})
_FLAGS = ("--siblings", "--detail", "--census", "--any-lines", "--huge-pages", "--share-l3", "--mix", "--same-cpu")
#: Which of a core's pairs a contrast counts: of the same socket, of the same CCX.
_COUNTED = {"core-in": (True, True), "core-near": (True, False), "core-far": (False, False)}
#: Pairs that a command lists; a finding of more is measured on this many of them, evenly.
_MOST_PAIRS = 24


def check(finding: Finding, header: Mapping[str, Any], levels: NodeLevels, node: str, peers: Sequence[str]) -> str:
    """The command, to be called in the folder of nodeprint on the node; empty where there is none.

    What is expected is the peers' median at exactly the places that it measures. `header` is that of the measurement's
    records: the arguments that it was measured with.
    """
    kernel, quantity = str(header.get("kernel", "")), levels.quantity
    if not kernel or kernel == "linktest" or header.get("imported") or not peers:
        return ""
    middle = np.nanmedian(levels.of_peers(node, peers), axis=0)
    call = f"kernels/build/{kernel} {_arguments(header)}"
    if quantity.of_pairs:
        ends, at = _pairs(finding, levels, node)
        if not ends:
            return ""
        judged = _judged(finding, "latency_ns", '/"record":"pair"/ && ', float(np.nanmean(middle[at])))
        return "\n".join([_listed(ends), f"{call} --pairs pairs.txt --out check.jsonl", judged])
    places = os_places(quantity, levels.nodes[levels.rows[node]])
    wanted = _picked(finding.cells, places)
    alike = [n for n, place in enumerate(places) if all(place.get(key) in values for key, values in wanted.items())]
    by_node = [dim for dim in wanted if quantity.model.labels.get(dim) == "node_of_cpu"]  # its records name CPUs
    if len(alike) != len(finding.cells) or by_node or not np.isfinite(middle[alike]).any():
        return ""
    cpus = sorted({int(value) for key in ("cpu", "a", "b") for value in wanted.get(key, ())})
    at_once = not _AT_ONCE.isdisjoint(map(str, header.get("arguments") or ()))
    picked = f"--cpus {','.join(map(str, cpus))}" if cpus and not at_once else "--cpus cores"
    judged = _judged(finding, quantity.model.value, _pattern(wanted), float(np.nanmean(middle[alike])))
    return "\n".join([f"{call} {picked} --out check.jsonl", judged])


def expected(finding: Finding) -> str:
    """What is expected where the finding is, and from where on it fails: `117 ns, at most 122 ns`."""
    if not (math.isfinite(finding.peers) and math.isfinite(finding.bound_unit) and finding.bound):
        return ""
    end = finding.peers + (1 if _high_is_bad(finding) else -1) * abs(finding.bound_unit)
    word = "at most" if _high_is_bad(finding) else "at least"
    return f"{names.quantity(finding.peers, finding.unit)}, {word} {names.quantity(end, finding.unit)}"


def _high_is_bad(finding: Finding) -> bool:
    return (finding.effect > 0) == finding.worse


def _arguments(header: Mapping[str, Any]) -> str:
    """The arguments of the measurement without those of one run and those that pick places."""
    words, out = [str(word) for word in header.get("arguments") or ()], []
    while words:
        word = words.pop(0)
        taken = [words.pop(0)] if words and not words[0].startswith("--") and word not in _FLAGS else []
        if word not in _OWN:
            out += [word, *taken]
    return shlex.join(out)


def _pairs(finding: Finding, levels: NodeLevels, node: str) -> tuple[list[tuple[int, int]], list[int]]:
    """The pairs that a command measures, some of many, evenly, and their places at the finding's home: of a core those
    that its contrast counts."""
    quantity = levels.quantity
    cpus = levels.nodes[levels.rows[node]].cpus or tuple(range(len(quantity.layout.slots)))
    slot = {cpu: number for number, cpu in enumerate(cpus)}
    number = {tuple(pair): at for at, pair in enumerate(quantity.pairs.tolist())}
    start = quantity.homes.index(finding.home) * len(number) if finding.home in quantity.homes else 0
    counted = _COUNTED.get(finding.part.family)
    commands = []
    for a, partners in sorted(finding.pairs.items()):
        for b in partners:
            pair = tuple(sorted((slot.get(a, -1), slot.get(b, -1))))
            if pair not in number:
                continue
            a_slot, b_slot = quantity.layout.slots[list(pair)]
            beside = (bool(a_slot[SOCKET] == b_slot[SOCKET]), bool(a_slot[CCX] == b_slot[CCX] >= 0))
            if counted is None or beside == counted:
                commands.append(((a, b), start + number[pair]))
    common = set(commands[0][0]).intersection(*(ends for ends, _ in commands)) if len(commands) > 1 else set()
    count = len(commands) if common else min(len(commands), _MOST_PAIRS)
    kept = [commands[i * len(commands) // count] for i in range(count)]
    return [ends for ends, _ in kept], [at for _, at in kept]


def _listed(ends: Sequence[tuple[int, int]]) -> str:
    """A line of sh that writes pairs of CPUs into pairs.txt: of a CPU with others, or any."""
    common = set(ends[0]).intersection(*ends) if len(ends) > 1 else set()
    if common:
        cpu = min(common)
        others = sorted(b if a == cpu else a for a, b in ends)
        return f"for b in {' '.join(_ranges(others))}; do echo {cpu} $b; done > pairs.txt"
    return f"printf '%s %s\\n' {' '.join(f'{a} {b}' for a, b in ends)} > pairs.txt"


def _ranges(numbers: Sequence[int]) -> list[str]:
    """Numbers as words of sh: `3`, or `$(seq 8 15)` for several that follow each other."""
    out: list[list[int]] = []
    for number in numbers:
        if out and number == out[-1][-1] + 1:
            out[-1].append(number)
        else:
            out.append([number])
    return [f"$(seq {run[0]} {run[-1]})" if len(run) > 2 else " ".join(map(str, run)) for run in out]


def _judged(finding: Finding, key: str, pattern: str, usual: float) -> str:
    """A call of awk that prints the mean of a key of the records and PASS or FAIL, and ends with 0 or 1."""
    worse, side = (">", "above") if _high_is_bad(finding) else ("<", "below")
    room = finding.bound if finding.unit == "share" else finding.bound * usual
    end = f"{usual + room if worse == '>' else usual - room:.6g}"
    return "\n".join([
        f"awk '{pattern}/\"{key}\":/ {{",
        f'  sub(/.*"{key}":/, ""); sum += $0; n++ }}',
        f"END {{ mean = n ? sum / n : 0; bad = !n || mean {worse} {end}",
        f'  print (bad ? "FAIL" : "PASS"), mean ", expected {usual:.6g}, fails {side} {end}"',
        "  exit bad }' check.jsonl",
    ])  # fmt: skip


def _picked(
    cells: Sequence[Mapping[str, int | str]], places: Sequence[Mapping[str, int | str]]
) -> dict[str, list[int | str]]:
    """By label that tells the cells of a finding from others of the `places` of their measurement: its values."""
    values = {key: {cell[key] for cell in cells if key in cell} for key in (cells[0] if cells else ())}
    return {
        key: sorted(of_finding, key=str) if any(isinstance(value, str) for value in of_finding) else sorted(of_finding)
        for key, of_finding in values.items()
        if of_finding != {place.get(key) for place in places}
    }


def _pattern(wanted: Mapping[str, Sequence[int | str]]) -> str:
    """Of awk, for records that have one of the values in every label."""
    words = []
    for key, values in wanted.items():
        each = [f'"{value}"' if isinstance(value, str) else str(value) for value in values]
        words.append(f'/"{key}":{each[0] if len(each) == 1 else "(" + "|".join(each) + ")"}[,}}]/')
    return "".join(f"{word} && " for word in words)
