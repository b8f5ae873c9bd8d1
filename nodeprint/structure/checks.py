"""What the found levels say: whether labels agree, whether like parts are alike, and the findings in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from nodeprint.structure.levels import Partition
from nodeprint.structure.matrices import Labels, Matrix, numbered, rand_index, sizes
from nodeprint.structure.model import Agreement, Finding, FoundLevel, LevelName, Relation, Symmetry
from nodeprint.topology.facts import list_text
from nodeprint.topology.model import Level, Topology

#: The label that a found level should equal. `group` has none and is held against the label that is nearest.
LABEL_OF: dict[LevelName, Level] = {
    "smt": "core",
    "ccx": "ccx",
    "quadrant": "quadrant",
    "half": "half",
    "socket": "socket",
}
_NEAREST: tuple[Level, ...] = ("cluster", "ccx", "ccd", "quadrant", "numa", "half", "socket")

#: Largest over smallest median of parts that are alike. Of published two-socket matrices those of other
#: makes reach 1.13, those of EPYC
#: whose line had one home for all pairs 1.65 to 2.02; parts of one I/O die differ by their distance to that
#: home.
ALIKE: dict[LevelName, float] = {"ccx": 1.3, "quadrant": 1.3, "half": 1.3, "socket": 1.3}


def agreement(levels: Sequence[Partition], cpus: Sequence[int], topology: Topology) -> tuple[Agreement, ...]:
    """Every found level against its label, and labels that the matrix does not show."""
    names: tuple[Level, ...] = ("core", *_NEAREST)
    labels = {level: part for level in names if (part := _labels(topology, level, cpus)) is not None}
    out = []
    for level in levels:
        label = _label_for(level, labels)
        if label is not None:
            relation, odd = _relation(level.labels, labels[label])
            out.append(Agreement(level.name, label, relation, tuple(cpus[int(i)] for i in odd)))
    expected: tuple[LevelName, ...] = ("smt", "ccx", "socket")
    for name in expected:
        part = labels.get(LABEL_OF[name])
        if part is None or part.max() == 0 or sizes(part).max() == 1:
            continue
        if not any(level.name == name or rand_index(part, level.labels) == 1 for level in levels):
            out.append(Agreement(name, LABEL_OF[name], "not found", ()))
    return tuple(out)


def _label_for(level: Partition, labels: Mapping[Level, Labels]) -> Level | None:
    """The label of that name, or where it is unknown or the level has no name the one that is nearest."""
    own = LABEL_OF.get(level.name)
    if own is not None and own in labels:
        return own
    known = [name for name in _NEAREST if name in labels and labels[name].max() > 0]
    scores = [rand_index(labels[name], level.labels) for name in known]
    return known[int(np.argmax(scores))] if known else None


def _labels(topology: Topology, level: Level, cpus: Sequence[int]) -> Labels | None:
    """The label of every CPU as a partition, None where one of them is unknown."""
    part = {cpu: number for number, group in topology.groups(level).items() for cpu in group}
    if not all(cpu in part for cpu in cpus):
        return None
    return numbered(np.array([part[cpu] for cpu in cpus], dtype=np.int64))


def _relation(found: Labels, label: Labels) -> tuple[Relation, npt.NDArray[np.intp]]:
    """How a found partition stands to a label, and the members that make the difference."""
    table = np.zeros((int(found.max()) + 1, int(label.max()) + 1), dtype=np.int64)
    np.add.at(table, (found, label), 1)
    split_found, split_label = (table > 0).sum(1) > 1, (table > 0).sum(0) > 1
    if not split_found.any():
        odd = split_label[label]
        return ("finer" if odd.any() else "agrees"), np.flatnonzero(odd)
    if not split_label.any():
        return "coarser", np.flatnonzero(split_found[found])
    rows, columns = linear_sum_assignment(table, maximize=True)
    match = np.full(len(table), -1)
    match[rows] = columns
    return "contradicts", np.flatnonzero(match[found] != label)


def symmetry(matrix: Matrix, levels: Sequence[Partition], cpus: Sequence[int]) -> tuple[Symmetry, ...]:
    """Medians inside each part of a level, outside those of the finer one; parts are compared inside their socket."""
    out = []
    finer: Labels = np.arange(len(matrix))
    whole = np.zeros(len(matrix), dtype=np.int64)
    sockets = next((level.labels for level in levels if level.name == "socket"), whole)
    for level in levels:
        bound = ALIKE.get(level.name)
        if bound is not None:
            pairs = (level.labels[:, None] == level.labels[None, :]) & (finer[:, None] != finer[None, :])
            medians = _medians_of(matrix, pairs, level.labels)
            over = np.ones(len(matrix))
            for socket in np.unique(whole if level.name == "socket" else sockets):
                rows = np.ones(len(matrix), dtype=bool) if level.name == "socket" else sockets == socket
                inside = medians[level.labels[rows]]
                if not np.isnan(inside).all():
                    over[rows] = inside / np.nanmin(inside)
            if (~np.isnan(medians)).sum() > 1:
                slow = np.flatnonzero(np.nan_to_num(over) > bound)
                out.append(
                    Symmetry(
                        level.name,
                        tuple(None if np.isnan(value) else float(value) for value in medians),
                        float(np.nanmax(over)),
                        not len(slow),
                        tuple(cpus[int(i)] for i in slow),
                    )
                )
        if level.name in ("smt", "ccx"):
            finer = level.labels
    return tuple(out)


def _medians_of(matrix: Matrix, pairs: npt.NDArray[np.bool_], labels: Labels) -> npt.NDArray[np.float64]:
    values = np.where(pairs, matrix, np.nan)
    cells = [values[labels == part] for part in range(int(labels.max()) + 1)]
    return np.array([np.nan if np.isnan(cell).all() else np.nanmedian(cell) for cell in cells])


def findings(
    levels: Sequence[FoundLevel],
    agreed: Sequence[Agreement],
    alike: Sequence[Symmetry],
    home_controlled: bool | None,
) -> tuple[Finding, ...]:
    """Sentences for the reader, worst first."""
    out: list[Finding] = []
    names = {level.name: level for level in levels}
    for item in alike:
        if item.alike:
            continue
        two_epyc_sockets = item.level == "socket" and "ccx" in names and len(item.medians_ns) == 2
        if two_epyc_sockets and not home_controlled:
            out.append(_home_artefact(names["socket"], item, home_controlled))
        else:
            out.append(_unlike(item))
    out += [_disagreement(item) for item in agreed if item.relation != "agrees"]
    out += [
        Finding(
            "unstable-level",
            "warning",
            f"The {level.name} level comes out differently when some CPUs are left out (stability "
            f"{level.stability:.2f}).",
            "Do not rely on it; measure again with more lines and passes.",
        )
        for level in levels
        if level.stability < 0.9
    ]
    if not levels:
        text = "No groups: every CPU is about as near to any other."
        out.append(Finding("flat", "info", text, "Nothing to do; labels cannot be checked by this matrix."))
    order = {"warning": 0, "info": 1}
    return tuple(sorted(out, key=lambda finding: order[finding.severity]))


def _home_artefact(level: FoundLevel, item: Symmetry, home_controlled: bool | None) -> Finding:
    slow, fast = sorted((value or 0.0 for value in item.medians_ns), reverse=True)
    known = "was one node for all pairs" if home_controlled is False else "is not known to have been controlled"
    return Finding(
        "home-artefact",
        "warning",
        f"The socket of CPUs {list_text(item.cpus)} shows {slow:.0f} ns between its CCXs where the other shows "
        f"{fast:.0f} ns "
        f"({item.ratio:.2f} times), about as much as across sockets ({level.between_ns:.0f} ns). On "
        f"two-socket EPYC this is an artefact "
        f"of the contended line's home, which {known}: the socket that does not own the line pays for the "
        f"link in every pair.",
        "Measure with the line bound to each NUMA node in turn (home `each`) and compare like homes; do not "
        "read this as a slow socket.",
    )


def _unlike(item: Symmetry) -> Finding:
    parts = ", ".join("unknown" if value is None else f"{value:.0f}" for value in item.medians_ns)
    return Finding(
        f"unlike-{item.level}s",
        "warning" if item.level in ("socket", "ccx") else "info",
        f"The {item.level}s differ inside by a factor of {item.ratio:.2f}: medians {parts} ns in order; "
        f"slow are CPUs {list_text(item.cpus)}.",
        "Compare with another node of the same model: where it shows the same, it is the design or the "
        "place of the measured line.",
    )


def _disagreement(item: Agreement) -> Finding:
    if item.relation == "contradicts":
        return Finding(
            "labels-contradict",
            "warning",
            f"The matrix groups CPUs {list_text(item.cpus)} differently from the label {item.label} says (level "
            f"{item.level}).",
            "Check the topology that was given or read, and whether the CPUs of the matrix carry the "
            "numbers it assumes; labels stay as they are.",
        )
    if item.relation == "not found":
        return Finding(
            "label-not-found",
            "info",
            f"The matrix shows no level where the labels have {item.label}s.",
            "Expected in a virtual machine that moves its CPUs; elsewhere check that the matrix belongs to "
            "this topology.",
        )
    return Finding(
        f"labels-{item.relation}",
        "info",
        f"The matrix shows {item.level} groups {item.relation} than the label {item.label}, at CPUs "
        f"{list_text(item.cpus)}.",
        "Look at the pairs of these CPUs: disturbed or missing cells split groups, a part that the labels "
        "do not know does too.",
    )
