"""Arguments of a tool that differ between outputs, such as the order of HPL's matrix: results of different problems
are no runs of one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers.tool_output import ToolValue

_Problem = tuple[tuple[str, int | str], ...]


def as_points(values: Sequence[ToolValue], source: str) -> list[ToolValue]:
    """Values with the arguments in which outputs of their metric differ as points.

    Raises NodeprintError if no node has a result of each problem: nodes would be compared by different ones.
    """
    seen: dict[tuple[str, str], set[int | str]] = {}
    for value in values:
        for name, at in (*value.arguments.items(), *value.point.items()):
            seen.setdefault((value.metric, name), set()).add(at)
    varied: dict[str, set[str]] = {}
    out = []
    for value in values:
        point = {name: at for name, at in value.arguments.items() if len(seen[value.metric, name]) > 1}
        varied.setdefault(value.metric, set()).update(point)
        out.append(msgspec.structs.replace(value, point={**point, **value.point}) if point else value)
    for metric, names in varied.items():
        if names:
            _check_problems([value for value in out if value.metric == metric], names, source)
    return out


def _check_problems(values: Sequence[ToolValue], names: Collection[str], source: str) -> None:
    problems: dict[str, dict[_Problem, None]] = {}
    for value in values:
        problem = tuple((name, at) for name, at in value.point.items() if name in names)
        problems.setdefault(value.node, {})[problem] = None
    every = {problem for of_node in problems.values() for problem in of_node}
    if any(every == {*of_node} for of_node in problems.values()):
        return
    (first, own), *others = problems.items()
    second, other = next((node, of_node) for node, of_node in others if {*of_node} != {*own})
    what = (
        f"{values[0].metric} has results of different problems, as {_of_one(own, other)} on {printable(first, 40)} and"
        f" {_of_one(other, own)} on {printable(second, 40)}"
    )
    advice = "give results of one problem, or of the same ones on each node"
    raise NodeprintError(what, where=source, advice=advice)


def _of_one(problems: Collection[_Problem], others: Collection[_Problem]) -> str:
    """A problem in words, if possible one that is none of the others."""
    problem = next((problem for problem in problems if problem not in others), next(iter(problems)))
    return printable(", ".join(f"{name} {at}" for name, at in problem), 60)
