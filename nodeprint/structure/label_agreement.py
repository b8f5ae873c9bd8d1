"""Compare detected levels with topology labels, and identify exchanged CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nodeprint.machine.topology.model import Level, Topology
from nodeprint.structure.found import LabelAgreement, LevelName, Relation
from nodeprint.structure.levels import Partition
from nodeprint.structure.matrix_arithmetic import Labels, numbered, rand_index, sizes

#: The label that a level should equal. `group` has none and is compared with the most similar label.
LABEL_OF: dict[LevelName, Level] = {
    "smt": "core",
    "ccx": "ccx",
    "quadrant": "quadrant",
    "half": "half",
    "socket": "socket",
}
_NEAREST: tuple[Level, ...] = ("cluster", "ccx", "ccd", "quadrant", "numa", "half", "socket")
_MOST_EXCHANGED = 6


def agreement(levels: Sequence[Partition], cpus: Sequence[int], topology: Topology) -> tuple[LabelAgreement, ...]:
    """Compare every detected level with its label, and report labels that the matrix does not show.

    CPUs without a label are excluded. CPUs that contradict a coarse label often explain finer contradictions: if a
    finer level agrees without them, only they are reported.
    """
    names: tuple[Level, ...] = ("core", *_NEAREST)
    labels = {level: part for level in names if (part := labels_of(topology, level, cpus)).max(initial=-1) >= 0}
    out: list[LabelAgreement] = []
    moved = np.zeros(len(cpus), dtype=bool)
    for level in sorted(levels, key=lambda level: int(level.labels.max())):
        label = _label_for(level, labels)
        if label is None:
            continue
        relation, odd = _compared(level.labels, labels[label], np.ones(len(cpus), dtype=bool))
        if relation == "contradicts":
            rest, more = _compared(level.labels, labels[label], ~moved)
            odd = (
                np.union1d(np.flatnonzero(moved), more)
                if rest == "contradicts" or not moved.any()
                else moved.nonzero()[0]
            )
            moved[odd] = True
        out.append(LabelAgreement(level.name, label, relation, tuple(cpus[int(i)] for i in odd)))
    out.reverse()
    expected: tuple[LevelName, ...] = ("smt", "ccx", "socket")
    for name in expected:
        has = labels.get(LABEL_OF[name])
        if has is None or has.max() == 0 or sizes(has[has >= 0]).max() == 1:
            continue
        if not any(level.name == name or _compared(level.labels, has)[0] == "agrees" for level in levels):
            out.append(LabelAgreement(name, LABEL_OF[name], "not found", ()))
    return tuple(out)


def exchanges(
    levels: Sequence[Partition], cpus: Sequence[int], topology: Topology, agreed: Sequence[LabelAgreement]
) -> tuple[tuple[int, int], ...]:
    """Pairs of CPUs whose labels, if exchanged, resolve every contradiction; empty if there are none or too many."""
    contradictions = [item for item in agreed if item.relation == "contradicts"]
    moved = sorted({cpu for item in contradictions for cpu in item.cpus})
    if not moved or len(moved) % 2 or len(moved) > _MOST_EXCHANGED:
        return ()
    groups_of = {level.name: level.labels for level in levels}
    labels = {item.label: labels_of(topology, item.label, cpus) for item in contradictions}
    place = {cpu: i for i, cpu in enumerate(cpus)}
    for pairs in _pairings(moved):
        order = np.arange(len(cpus))
        for first, second in pairs:
            order[[place[first], place[second]]] = place[second], place[first]
        if all(_compared(groups_of[i.level], labels[i.label][order])[0] != "contradicts" for i in contradictions):
            return pairs
    return ()


def _pairings(cpus: Sequence[int]) -> Iterator[tuple[tuple[int, int], ...]]:
    if not cpus:
        yield ()
    for i in range(1, len(cpus)):
        for rest in _pairings([*cpus[1:i], *cpus[i + 1 :]]):
            yield ((cpus[0], cpus[i]), *rest)


def _label_for(level: Partition, labels: Mapping[Level, Labels]) -> Level | None:
    """The label with the level's name; otherwise the most similar one by Rand index."""
    own = LABEL_OF.get(level.name)
    if own is not None and own in labels:
        return own
    candidates = [name for name in _NEAREST if name in labels and labels[name].max() > 0]
    labeled = {name: labels[name] >= 0 for name in candidates}
    scores = [rand_index(numbered(labels[n][labeled[n]]), numbered(level.labels[labeled[n]])) for n in candidates]
    return candidates[int(np.argmax(scores))] if candidates else None


def labels_of(topology: Topology, level: Level, cpus: Sequence[int]) -> Labels:
    """Label of every CPU as a partition numbered from 0, -1 if unknown."""
    part = {cpu: number for number, group in topology.groups(level).items() for cpu in group}
    out = np.array([part.get(cpu, -1) for cpu in cpus], dtype=np.int64)
    out[out >= 0] = numbered(out[out >= 0]) if (out >= 0).any() else 0
    return out


def _compared(
    groups: Labels, label: Labels, rows: npt.NDArray[np.bool_] | None = None
) -> tuple[Relation, npt.NDArray[np.intp]]:
    """`_relation` restricted to `rows` with a known label."""
    labeled = np.flatnonzero((label >= 0) if rows is None else (label >= 0) & rows)
    if not len(labeled):
        return "agrees", labeled
    relation, odd = _relation(numbered(groups[labeled]), numbered(label[labeled]))
    return relation, labeled[odd]


def _relation(groups: Labels, label: Labels) -> tuple[Relation, npt.NDArray[np.intp]]:
    """Relation of a detected partition to a label, and the members that differ."""
    table = np.zeros((int(groups.max()) + 1, int(label.max()) + 1), dtype=np.int64)
    np.add.at(table, (groups, label), 1)
    split_groups, split_label = (table > 0).sum(1) > 1, (table > 0).sum(0) > 1
    if not split_groups.any():
        odd = split_label[label]
        return ("finer" if odd.any() else "agrees"), np.flatnonzero(odd)
    if not split_label.any():
        return "coarser", np.flatnonzero(split_groups[groups])
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 (importing scipy.optimize takes 0.1 s)

    rows, columns = linear_sum_assignment(table, maximize=True)
    match = np.full(len(table), -1)
    match[rows] = columns
    return "contradicts", np.flatnonzero(match[groups] != label)
