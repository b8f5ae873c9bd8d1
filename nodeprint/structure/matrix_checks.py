"""Check a matrix and its levels: asymmetry, missing pairs, unequal groups and labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.model import Topology
from nodeprint.settings.texts import say
from nodeprint.structure.found import FoundLevel, LabelAgreement, LevelName, StructureFinding, Symmetry
from nodeprint.structure.label_agreement import labels_of
from nodeprint.structure.levels import Partition
from nodeprint.structure.matrix_arithmetic import Labels, Matrix

#: Largest ratio of the 95% to the 5% quantile of core pairs at which a machine without groups is flat. Single meshes
#: reach 1.5.
FLAT = 1.6
#: Largest ratio of the directions of a pair, exceeded by one pair in twenty at most; round trips have none.
ONE_WAY = 1.3
#: Largest ratio of the latencies to a sibling thread and to the nearest other core.
SIBLINGS_NEAR = 0.8

#: Largest ratio of the medians of equal groups. Published two-socket matrices reach 1.13, except EPYC with one home for
#: all lines: 1.65 to 2.02. Groups of one I/O die differ by their distance to that home.
ALIKE: dict[LevelName, float] = {"ccx": 1.3, "quadrant": 1.3, "half": 1.3, "socket": 1.3}


def cell_findings(ns: Matrix, cpus: Sequence[int], levels: Sequence[Partition]) -> tuple[StructureFinding, ...]:
    """Findings on the cells of an (n, n) matrix in ns, NaN if a direction was not measured.

    They report asymmetry, missing pairs, and the range of core pairs if no level above SMT was detected.
    """
    out = []
    measured = ~np.isnan(ns)
    measured |= measured.T
    upper = np.triu(measured, 1)
    directions, (a, b) = _directions(ns, upper)
    if directions > ONE_WAY:
        forward, backward = f"{ns[a, b]:.1f}", f"{ns[b, a]:.1f}"
        ends = {"a": str(cpus[a]), "b": str(cpus[b]), "forward": forward, "backward": backward}
        out.append(StructureFinding.of("asymmetric", "warning", ratio=f"{directions:.2f}", **ends))
    missing, pairs = _missing(measured)
    if missing:
        out.append(StructureFinding.of("missing-pairs", "info", missing=missing, pairs=pairs))
    low, high = _between_cores(ns, upper, levels)
    if any(level.name != "smt" for level in levels) or np.isnan(low):
        return tuple(out)
    between = {"low": f"{low:.1f}", "high": f"{high:.1f}"}
    if high > FLAT * low:
        out.append(StructureFinding.of("no-clear-cut", "info", factor=f"{high / low:.2f}", **between))
    elif not levels:
        out.append(StructureFinding.of("flat", "info", **between))
    return tuple(out)


def _missing(measured: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Number of missing pairs, and of all pairs.

    CPUs with only one partner are not counted: second threads are often measured only with their own core.
    """
    partners = measured.sum(1) > 1
    count = int(partners.sum())
    pairs = count * (count - 1) // 2
    return pairs - int(measured[np.ix_(partners, partners)].sum()) // 2, pairs


def _between_cores(ns: Matrix, measured: npt.NDArray[np.bool_], levels: Sequence[Partition]) -> tuple[float, float]:
    """The 5% and 95% quantiles of the `measured` pairs (upper triangle) between cores, ns; NaN without any."""
    smt = next((level.labels for level in levels if level.name == "smt"), np.arange(len(ns)))
    between = measured & (smt[:, None] != smt[None, :])
    values = np.fmax(ns[between], ns.T[between])
    if not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [0.05, 0.95], overwrite_input=True)
    return float(low), float(high)


def _directions(ns: Matrix, measured: npt.NDArray[np.bool_]) -> tuple[float, tuple[int, int]]:
    """95% quantile of the ratio of directions over `measured` pairs (upper triangle), and the most asymmetric pair."""
    ratio = ns[measured] / ns.T[measured]
    ratio = np.maximum(ratio, 1 / ratio)
    both = ~np.isnan(ratio)
    if not both.any():
        return 1.0, (0, 0)
    a, b = divmod(int(np.flatnonzero(measured)[np.nanargmax(ratio)]), len(measured))
    return float(np.quantile(ratio[both], 0.95, overwrite_input=True)), (a, b)


def siblings_not_nearest(matrix: Matrix, cpus: Sequence[int], topology: Topology) -> StructureFinding | None:
    """Finding if labeled siblings are about as distant as the nearest other core, so the matrix cannot show cores."""
    core = labels_of(topology, "core", cpus)
    same = (core[:, None] == core[None, :]) & (core >= 0)[:, None]
    own = matrix[np.triu(same, 1)]
    own = own[~np.isnan(own)]
    nearest = np.where(same | np.isnan(matrix), np.inf, matrix).min(axis=1, initial=np.inf)
    nearest = nearest[np.isfinite(nearest)]
    if not len(own) or not len(nearest) or np.median(own) < SIBLINGS_NEAR * np.median(nearest):
        return None
    own_ns, nearest_ns = f"{np.median(own):.1f}", f"{np.median(nearest):.1f}"
    return StructureFinding.of("siblings-not-nearest", "info", own_ns=own_ns, nearest_ns=nearest_ns)


def symmetry(matrix: Matrix, levels: Sequence[Partition], cpus: Sequence[int]) -> tuple[Symmetry, ...]:
    """Compare the medians inside each group of a level, without pairs of a finer group, socket by socket."""
    out = []
    finer: Labels = np.arange(len(matrix))
    whole = np.zeros(len(matrix), dtype=np.int64)
    sockets = next((level.labels for level in levels if level.name == "socket"), whole)
    for level in levels:
        if level.name in ALIKE:
            medians = _medians_inside(matrix, level.labels, finer)
            over_fastest = np.ones(len(matrix))
            inside = whole if level.name == "socket" else sockets
            for socket in np.unique(inside):
                rows = inside == socket
                inside_ns = medians[level.labels[rows]]
                if not np.isnan(inside_ns).all():
                    over_fastest[rows] = inside_ns / np.nanmin(inside_ns)
            if (~np.isnan(medians)).sum() > 1:
                slow = np.flatnonzero(np.nan_to_num(over_fastest) > ALIKE[level.name])
                out.append(
                    Symmetry(
                        level.name,
                        tuple(None if np.isnan(value) else float(value) for value in medians),
                        float(np.nanmax(over_fastest)),
                        not len(slow),
                        tuple(cpus[int(i)] for i in slow),
                    )
                )
        if level.name in ("smt", "ccx"):
            finer = level.labels
    return tuple(out)


def _medians_inside(matrix: Matrix, labels: Labels, finer: Labels) -> npt.NDArray[np.float64]:
    """Median of the pairs inside each group that share no group of the finer level, NaN without any."""
    out = np.full(int(labels.max()) + 1, np.nan)
    for part in range(len(out)):
        rows = np.flatnonzero(labels == part)
        values = matrix[np.ix_(rows, rows)][finer[rows, None] != finer[None, rows]]
        values = values[~np.isnan(values)]
        if len(values):
            out[part] = np.median(values)
    return out


def findings(
    levels: Sequence[FoundLevel],
    agreed: Sequence[LabelAgreement],
    alike: Sequence[Symmetry],
    home_controlled: bool | None,
    exchanged: Sequence[tuple[int, int]] = (),
) -> tuple[StructureFinding, ...]:
    """Findings on levels and labels."""
    out: list[StructureFinding] = []
    names = {level.name: level for level in levels}
    for item in alike:
        if item.alike:
            continue
        two_epyc_sockets = item.level == "socket" and "ccx" in names and len(item.medians_ns) == 2
        if two_epyc_sockets and not home_controlled:
            out.append(_home_artefact(names["socket"], item, home_controlled))
        else:
            out.append(_unlike(item))
    against = [item for item in agreed if item.relation == "contradicts"]
    if against:
        out.append(_contradiction(against, exchanged))
    out += [_disagreement(item) for item in agreed if item.relation not in ("agrees", "contradicts")]
    out += [
        StructureFinding.of("unstable-level", "warning", level=level.name, stability=f"{level.stability:.2f}")
        for level in levels
        if level.stability < 0.9
    ]
    return tuple(out)


def unsure(left_out: Sequence[Partition]) -> tuple[StructureFinding, ...]:
    """One finding for each level omitted as unstable."""
    return tuple(
        StructureFinding.of("level-left-out", "info", level=level.name, groups=int(level.labels.max()) + 1)
        for level in left_out
    )


def lacking(cpus: Sequence[int], topology: Topology) -> tuple[StructureFinding, ...]:
    """A warning if CPUs of the matrix are not in the topology."""
    labeled = {cpu.cpu for cpu in topology.cpus}
    without = [cpu for cpu in cpus if cpu not in labeled]
    if not without:
        return ()
    count = len(without)
    finding = StructureFinding.of("cpus-without-labels", "warning", cpus=list_text(without), count=count, all=len(cpus))
    return (finding,)


def _home_artefact(level: FoundLevel, item: Symmetry, home_controlled: bool | None) -> StructureFinding:
    slow, fast = sorted((value or 0.0 for value in item.medians_ns), reverse=True)
    return StructureFinding.of(
        "home-artefact",
        "warning",
        home=say("structure_homes", "one" if home_controlled is False else "unknown"),
        cpus=list_text(item.cpus),
        slow=f"{slow:.0f}",
        fast=f"{fast:.0f}",
        ratio=f"{item.ratio:.2f}",
        across=_across(level),
    )


def _across(level: FoundLevel) -> str:
    return " to ".join(f"{item.median_ns:.0f}" for item in level.between) or "unknown"


def _unlike(item: Symmetry) -> StructureFinding:
    parts = ", ".join("unknown" if value is None else f"{value:.0f}" for value in item.medians_ns)
    return StructureFinding.of(
        "unlike",
        "warning" if item.level in ("socket", "ccx") else "info",
        id=f"unlike-{item.level}s",
        level=item.level,
        ratio=f"{item.ratio:.2f}",
        medians=parts,
        cpus=list_text(item.cpus),
    )


def _contradiction(against: Sequence[LabelAgreement], exchanged: Sequence[tuple[int, int]]) -> StructureFinding:
    moved = sorted({cpu for item in against for cpu in item.cpus})
    names = " and ".join(item.label for item in against)
    values = {"cpus": list_text(moved), "labels": names}
    if not exchanged:
        return StructureFinding.of("labels-contradict", "warning", **values)
    pairs = ", ".join(f"{first} and {second}" for first, second in exchanged)
    return StructureFinding.of("labels-exchanged", "warning", id="labels-contradict", pairs=pairs, **values)


def _disagreement(item: LabelAgreement) -> StructureFinding:
    if item.relation == "not found":
        return StructureFinding.of("label-not-found", "info", label=item.label)
    return StructureFinding.of(
        "labels-differ",
        "info",
        id=f"labels-{item.relation}",
        level=item.level,
        relation=item.relation,
        label=item.label,
        cpus=list_text(item.cpus),
    )
