"""What likwid-topology says of a machine (`likwid-topology -O`), a second opinion that the labels are compared with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.model import Level, Topology, Warning, warning

#: Its path in a survey.
PATH = "nodeprint/likwid-topology.csv"
#: A row of its table of hardware threads: CPU, thread of its core, core, (die,) socket; then whether it is available.
_ROW = re.compile(r"(\d{1,7})[\s,]+(\d{1,7})[\s,]+(\d{1,7})[\s,]+(?:(\d{1,7})[\s,]+)?(\d{1,7})[\s,]+\*?[\s,]*")
_NUMBER = re.compile(r"\d{1,7}")
#: Its levels, with their names there.
_WORDS: Mapping[Level, str] = {"socket": "sockets", "core": "cores", "ccx": "groups of the L3", "numa": "NUMA domains"}

Groups = frozenset[frozenset[int]]


def groups(text: str) -> dict[Level, Groups]:
    """The parts of each level by their CPUs; a level that it does not print is left out."""
    sockets: dict[int, set[int]] = {}
    cores: dict[tuple[int, int], set[int]] = {}
    caches: list[set[int]] = []
    domains: list[set[int]] = []
    level = ""
    for line in text.splitlines():
        key, _, value = line.partition(",")
        if match := _ROW.fullmatch(line.strip()):
            cpu, core, socket = int(match[1]), int(match[3]), int(match[5])
            sockets.setdefault(socket, set()).add(cpu)
            cores.setdefault((socket, core), set()).add(cpu)
        elif key == "Level:":
            level = value.strip(" ,")
        elif key == "Cache groups:" and level == "3":
            caches = [_cpus(group) for group in value.split(",")]
        elif key == "Processors:":
            domains.append(_cpus(value))
    found: dict[Level, Groups] = {
        "socket": _frozen(sockets.values()),
        "core": _frozen(cores.values()),
        "ccx": _frozen(caches),
        "numa": _frozen(domains),
    }
    return {name: parts for name, parts in found.items() if parts}


def _cpus(text: str) -> set[int]:
    return {int(number) for number in _NUMBER.findall(text)}


def _frozen(parts: Iterable[Iterable[int]]) -> Groups:
    return frozenset(frozenset(part) for part in parts) - {frozenset()}


def warnings(topology: Topology, text: str) -> Iterator[Warning]:
    """A warning for each level of which likwid-topology has other parts than the labels, over the CPUs of both."""
    for level, theirs in groups(text).items():
        ours = _frozen(topology.groups(level).values())
        both = frozenset().union(*ours) & frozenset().union(*theirs)
        mine, others = ({part & both for part in parts} - {frozenset()} for parts in (ours, theirs))
        if both and mine != others:
            cpus = sorted(frozenset().union(*(mine ^ others)))
            yield warning(
                "likwid-topology",
                theirs=len(others),
                parts=_WORDS[level],
                ours=len(mine),
                cpus=list_text(cpus),
            )
