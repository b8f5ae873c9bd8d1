"""nccl-tests and rccl-tests: a table by message size (https://github.com/NVIDIA/nccl-tests, src/common.cu).

Small messages have a time, large ones the bus bandwidth, each out of place and in place. The ranks name the host and
its GPUs: tests of different pairs of GPUs are values of links.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers.parsing import NUMBER, WrongResultError, slug, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "nccl-tests"
KINDS = ("values",)
_HEAD = re.compile(r"#\s*size\s+count\b.*\btime\s+algbw\s+busbw\b.*")
_COLLECTIVE = re.compile(r"#\s*Collective test starting:\s*(\w+)_perf\s*|.*?\b(\w+)_perf\b.*")
_RANK = re.compile(r"#\s+Rank\s+\d+\b.*\son\s+(\S+)\s+device\s+(\d+)\s+(?:\[(\S+)\])?.*")
_OUT_OF_BOUNDS = re.compile(r"#\s*Out of bounds values\s*:\s*([1-9]\d*)\b.*")
_COUNT = re.compile(r"\d+")
_TIME = re.compile(r"\d+\.\d+")
#: From this size on messages are limited by bandwidth (a choice): the table's rates have two digits below.
_LARGE = 1 << 20
#: By the columns of a table the figures out of place and in place.
_SIDES = ("", "-in-place")


@dataclass
class _Test:
    """A table of a test: its GPUs, each with its number and bus, and its values."""

    gpus: list[tuple[int, str]] = field(default_factory=list)
    values: list[ToolValue] = field(default_factory=list)


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether the head of its table is there."""
    return ToolEvidence.NAME if any(_HEAD.fullmatch(line.strip()) for line in lines) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """A time or rate for each size.

    Raises NodeprintError if ranks are on several hosts, the table is cut, or tests of different GPUs are not of pairs.
    Raises WrongResultError if received data are wrong.
    """
    collective = next((match[1] or match[2] for line in lines if (match := _COLLECTIVE.fullmatch(line.strip()))), "")
    hosts = list(dict.fromkeys(match[1] for line in lines if (match := _RANK.fullmatch(line.strip()))))
    if len(hosts) > 1:
        shown = " and ".join(printable(host, 40) for host in hosts[:2])
        what = f"a job on {len(hosts)} nodes ({shown}{', ...' if len(hosts) > 2 else ''}), which is a figure of none"
        raise NodeprintError(what, where=path, advice="give the output of a job on one node")
    node = hosts[0] if hosts and hosts != ["localhost"] else ""
    name = f"nccl-{slug(collective)}" if collective else "nccl"
    heads: list[str] = []
    tests: list[_Test] = [_Test()]
    begun = 0
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if rank := _RANK.fullmatch(text):
            tests += [_Test()] if tests[-1].values else []
            tests[-1].gpus.append((int(rank[2]), rank[3] or ""))
        elif _HEAD.fullmatch(text):
            heads, begun = text.lstrip("# ").split(), number
        elif _OUT_OF_BOUNDS.fullmatch(text):
            raise _wrong(path, number)
        elif heads and text[:1].isdigit() and len(cells := _filled(heads, text.split())) == len(heads):
            tests[-1].values += _row(path, heads, cells, name, node, number)
            begun = 0
    if begun:
        advice = "let the test end, and give all that it printed"
        raise NodeprintError("a table without a line", where=path, line=begun, advice=advice)
    return ToolOutput(path, NAME, values=_of_gpus(tests, path))


def _of_gpus(tests: list[_Test], path: Path) -> list[ToolValue]:
    """The values of all tests; those of different pairs of GPUs with their link."""
    of_sets = {frozenset(test.gpus) for test in tests if test.values}
    if len(of_sets) > 1:
        if any(len(gpus) != 2 for gpus in of_sets):
            what = f"tests of {len(of_sets)} different sets of GPUs, which are not all pairs"
            raise NodeprintError(what, where=path, advice="give the tests of each set a file of its own")
        gpus = frozenset[tuple[int, str]]().union(*of_sets)
        are_numbered = len({number for number, _ in gpus}) == len(gpus)  # CUDA_VISIBLE_DEVICES numbers each pair anew
        for test in (test for test in tests if test.values):
            first, second = (number if are_numbered else bus for number, bus in test.gpus)
            link = {"gpu": first, "peer gpu": second}
            test.values = [msgspec.structs.replace(value, link=link) for value in test.values]
    return [value for test in tests for value in test.values]


def _filled(heads: list[str], cells: list[str]) -> list[str]:
    """The cells with a blank `redop` as "none". Old versions print a blank for a test without one, as alltoall,
    so a time is in its place. A line that was cut has a word there."""
    place = heads.index("redop") if "redop" in heads else 0
    if not place or len(cells) != len(heads) - 1 or not _TIME.fullmatch(cells[place]):
        return cells
    return [*cells[:place], "none", *cells[place:]]


def _row(path: Path, heads: list[str], cells: list[str], name: str, node: str, line: int) -> list[ToolValue]:
    size = int(cells[0])
    if any(head == "#wrong" and _COUNT.fullmatch(cell) and int(cell) for head, cell in zip(heads, cells, strict=True)):
        raise _wrong(path, line)
    kind, unit = ("busbw", "GB/s") if size >= _LARGE else ("time", "us")
    axes = {"node": node, "point": {"message bytes": size}}
    sides = zip(_SIDES, [cell for head, cell in zip(heads, cells, strict=True) if head == kind], strict=False)
    figures = {side: float(cell) for side, cell in sides if size and re.fullmatch(NUMBER, cell)}
    return [
        value
        for side, figure in figures.items()
        for value in tool_values(figure, f"{name}-{kind}{side}", unit, line, **axes)
    ]


def _wrong(path: Path, line: int) -> WrongResultError:
    advice = "data are corrupted: see to the GPUs and their links before their rates"
    return WrongResultError("received data are wrong", where=path, line=line, advice=advice)
