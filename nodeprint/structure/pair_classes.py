"""Median latency of the CPU pairs that join at each level, split if one median would not be representative.

Examples are the socket that does not own the measured line and the slower cores of a hybrid processor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nodeprint.machine.topology.level_names import PLURALS, level_name
from nodeprint.stats.mixture import MIXED, few_near
from nodeprint.structure.found import PairClass
from nodeprint.structure.levels import Partition
from nodeprint.structure.matrix_arithmetic import Labels, Matrix, sizes

#: Fewest pairs to split into halves.
_LEAST_PAIRS = 8
#: Above this many groups, or this many that differ, the latencies form a gradient and are not split.
_MOST_PARTS, _MOST_KINDS = 8, 4
#: Two core types are listed separately if their medians differ by this factor and each has this many cores.
_KINDS_APART, _LEAST_CORES = 1.05, 4


def pair_classes(matrix: Matrix, levels: Sequence[Partition]) -> tuple[tuple[PairClass, ...], ...]:
    """Pair classes of each level, from fine to coarse; the last has the pairs that share no group.

    `matrix` is symmetric (n, n) in ns with NaN for missing pairs. A class without pairs is empty.
    """
    first, second = np.nonzero(np.triu(~np.isnan(matrix), 1))
    values = matrix[first, second]
    joins_at = np.full(len(values), len(levels))
    for index in reversed(range(len(levels))):
        labels = levels[index].labels
        joins_at[labels[first] == labels[second]] = index
    kind_of_pair = _kinds(levels, first, second)
    out = []
    for index in range(len(levels) + 1):
        chosen = joins_at == index
        parts: list[tuple[float, Mapping[int, str], Labels]] = []
        if kind_of_pair is not None:
            parts.append((_KINDS_APART, _KINDS, kind_of_pair[chosen]))
        # pairs beyond the coarsest level share none of its groups, and cores are too small to be listed
        if index < len(levels) and levels[-1].name != "smt" and levels[-1].labels.max() < _MOST_PARTS:
            coarsest = levels[-1]
            names = {number: f"{level_name(coarsest.name)} {number}" for number in range(_MOST_PARTS)}
            parts.append((MIXED, names, coarsest.labels[first[chosen]]))
        out.append(_class(values[chosen], parts))
    return tuple(out)


def _class(
    values: npt.NDArray[np.float64], parts: Sequence[tuple[float, Mapping[int, str], Labels]]
) -> tuple[PairClass, ...]:
    """The pairs as one class, or split by the first criterion whose medians differ by its factor."""
    if not len(values):
        return ()
    for factor, names, labels in parts:
        kinds = _apart(values, labels, factor)
        medians = [float(np.median(values[np.isin(labels, kind)])) for kind in kinds]
        if 1 < len(kinds) <= _MOST_KINDS and max(medians) > factor * min(medians):
            named = [(kind, _joined([names[number] for number in kind])) for kind in kinds]
            return tuple(part for kind, name in named for part in _whole_or_halves(values[np.isin(labels, kind)], name))
    return _whole_or_halves(values, "")


def _whole_or_halves(values: npt.NDArray[np.float64], name: str) -> tuple[PairClass, ...]:
    """The values as one class, or as a faster and a slower half if few are near their median."""
    whole = _of(values, name)
    if len(values) < _LEAST_PAIRS or not few_near(values, whole.median_ns):
        return (whole,)
    near = values <= whole.median_ns
    return tuple(
        _of(values[half], ", ".join(filter(None, (name, text))))
        for half, text in ((near, "faster half"), (~near, "slower half"))
        if half.any()
    )


def _of(values: npt.NDArray[np.float64], part: str) -> PairClass:
    return PairClass(part, float(np.median(values)), len(values))


def _apart(values: npt.NDArray[np.float64], labels: Labels, factor: float) -> list[list[int]]:
    """Group numbers, merged if their medians differ by less than `factor`; ordered by first group."""
    medians = sorted((float(np.median(values[labels == part])), int(part)) for part in np.unique(labels))
    kinds: list[list[int]] = []
    lowest = 0.0
    for median, part in medians:
        if not kinds or median > factor * lowest:
            kinds.append([])
            lowest = median
        kinds[-1].append(part)
    return sorted(sorted(kind) for kind in kinds)


#: Pair types of a hybrid processor, by the number of single-threaded cores in the pair.
_KINDS = {0: "cores with two threads", 1: "both kinds of cores", 2: "cores with one thread"}


def _kinds(levels: Sequence[Partition], first: Labels, second: Labels) -> Labels | None:
    """Number in _KINDS of each pair; None if nearly all cores have the same number of threads."""
    smt = next((level.labels for level in levels if level.name == "smt"), None)
    if smt is None:
        return None
    alone = sizes(smt)[smt] == 1
    if min(alone.sum(), (~alone).sum() // 2) < _LEAST_CORES:
        return None
    kind: Labels = alone[first].astype(np.int64) + alone[second].astype(np.int64)
    return kind


def _joined(parts: Sequence[str]) -> str:
    """Join names: `socket 0`, or `sockets 0 and 2`."""
    if len(parts) == 1:
        return parts[0]
    word = parts[0].partition(" ")[0]
    if any(part.partition(" ")[0] != word for part in parts) or not parts[0].partition(" ")[2].isdecimal():
        return " and ".join(parts)
    numbers = [part.partition(" ")[2] for part in parts]
    return f"{PLURALS.get(word, f'{word}s')} {', '.join(numbers[:-1])} and {numbers[-1]}"
