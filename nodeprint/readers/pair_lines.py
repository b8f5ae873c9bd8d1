"""The two hosts of an output between nodes, in a line that names exactly these: `### cn001 cn002`, `cn[001-002]`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ClusterShell.NodeSet import NodeSet, NodeSetException

from nodeprint.readers import host_words
from nodeprint.readers.tool_output import ToolValue

#: What may be a host or a list of hosts.
_WORD = re.compile(r"(?<![\w-])[A-Za-z][\w.-]*(?:\[[\d,-]{1,40}\])?")
#: Benchmarks between two processes, and those among all of them that have similar names.
_BETWEEN_TWO = re.compile(
    r"osu-.*(?:latency|bandwidth|message-rate|put|get).*|imb-(?:pingpong|pingping|uniband|biband).*"
    r"|perftest-.*"
)
_AMONG_ALL = re.compile(r".*(?:all-?(?:gather|reduce|to-?all)|b(?:road)?cast|barrier|gather|scatter|reduce|neighbo).*")


def ends(lines: Sequence[str]) -> tuple[tuple[str, str], list[str]] | None:
    """The two hosts that a line names, and the text without such lines; None if none names two, or others a third.

    Both names have the same letters, so that no versions of programs are hosts.
    """
    found: dict[int, list[str]] = {}
    for number, line in enumerate(lines):
        if hosts := _hosts(line):
            found[number] = hosts
    pairs = {tuple(hosts) for hosts in found.values() if len(hosts) == 2}
    named = {host for hosts in found.values() for host in hosts}
    if len(pairs) != 1 or len(named) != 2:
        return None
    first, second = next(iter(pairs))
    rest = ["" if number in found else line for number, line in enumerate(lines)]
    return ((first, second), rest) if host_words.words(first) == host_words.words(second) else None


def are_between_two(values: Sequence[ToolValue]) -> bool:
    """Whether all values are of benchmarks between two processes."""
    return bool(values) and all(
        _BETWEEN_TWO.fullmatch(value.metric) and not _AMONG_ALL.fullmatch(value.metric) for value in values
    )


def _hosts(line: str) -> list[str]:
    """The hosts in a line, each once, without their domains."""
    out: list[str] = []
    for word in _WORD.findall(line):
        try:
            names = [str(name) for name in NodeSet(word)] if "[" in word else [word]
        except NodeSetException:
            names = []
        ends = [end for name in names for end in host_words.pair(name) or (name,)]
        out += [name.partition(".")[0] for name in ends if host_words.is_numbered_host(name)]
    return host_words.distinct(out)
