"""Quadrant by quadrant: what the I/O die does to core-to-core latency, said only where intervals allow it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec
import numpy as np

from nodeprint import captions
from nodeprint.distributions import stdtrit
from nodeprint.fleet.jobs import Measured
from nodeprint.order_statistics import row_medians
from nodeprint.report import linktest, scale
from nodeprint.report import old_figures as figures
from nodeprint.report.old_figures import Figure, Floats
from nodeprint.report.pages import Bullets, Figures, Section, Table, Text
from nodeprint.report.peers import name_of
from nodeprint.report.scale import Scale
from nodeprint.report.shown import DrawnMatrix, medians_by_run
from nodeprint.topology.model import Topology

#: Intervals hold at once, for all of a table, with this probability of error.
_ERROR = 0.05


class Blocks(msgspec.Struct, frozen=True):
    """Medians of the pairs between quadrants, run by run (run x block), in `unit`; a block is a pair of quadrants.

    `sockets` is the socket of each quadrant, `halves` its half of the I/O die (None unknown).
    """

    quadrants: tuple[int, ...]
    sockets: tuple[int, ...]
    halves: tuple[int | None, ...]
    pairs: tuple[tuple[int, int], ...]
    values: Floats
    unit: str = "ns"

    @property
    def medians(self) -> Floats:
        """Block by block the mean over runs of the median in a run, as the matrix has it."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def half_width(self) -> float:
        """Half of the simultaneous 95 % interval of every block (Bonferroni over blocks, Student over runs, the spread
        between runs pooled over blocks); NaN of one run."""
        runs, blocks = self.values.shape
        if runs < 2:
            return float("nan")
        spread = float(np.sqrt(self.values.var(axis=0, ddof=1).mean()))
        return float(stdtrit(runs - 1, 1 - _ERROR / (2 * blocks)) * spread / runs**0.5)

    def apart(self, comparisons: int, one: int = 1, other: int = 1) -> float:
        """From where on the means of `one` and of `other` blocks differ, with `comparisons` made at once: what all
        blocks of a run share is taken out, as it does not change their order. NaN where it cannot be known."""
        runs, blocks = self.values.shape
        if runs < 2 or blocks < 2:
            return float("nan")
        rest = self.values - self.values.mean(axis=0) - self.values.mean(axis=1, keepdims=True) + self.values.mean()
        degrees = (runs - 1) * (blocks - 1)
        spread = float(np.sqrt((rest**2).sum() / degrees))
        quantile = float(stdtrit(degrees, 1 - _ERROR / (2 * max(comparisons, 1))))
        return float(quantile * spread * ((1 / one + 1 / other) / runs) ** 0.5)

    def at(self, a: int, b: int) -> int:
        """The block of two quadrants (by their order)."""
        return self.pairs.index((min(a, b), max(a, b)))


def blocks(found: Sequence[Measured], one: DrawnMatrix, topology: Topology | None) -> Blocks | None:
    """The blocks of a matrix, a row for each run of each job (`found`); None without two known quadrants."""
    known = {cpu.cpu: cpu for cpu in topology.cpus} if topology is not None else {}
    parts = [known[cpu].quadrant if cpu in known else None for cpu in one.cpus]
    names = sorted({part for part in parts if part is not None})
    if len(names) < 2 or None in parts:
        return None
    of_cpu = np.array([names.index(part) for part in parts if part is not None])
    first = [known[one.cpus[parts.index(name)]] for name in names]
    pairs = [(a, b) for a in range(len(names)) for b in range(a, len(names))]
    ccx = np.array([-1 if known[cpu].ccx is None else known[cpu].ccx for cpu in one.cpus])
    values = []
    for data in found:
        rows, columns, medians = medians_by_run(data, one)
        one_end, other = of_cpu[rows], of_cpu[columns]
        blocks_of = np.minimum(one_end, other) * len(names) + np.maximum(one_end, other)
        # a core's own sibling and the cores of its CCX do not cross the I/O die
        crossing = (ccx[rows] != ccx[columns]) | (ccx[rows] < 0)
        blocks_of[~crossing] = -1
        order = np.argsort(blocks_of, kind="stable")
        ends = np.searchsorted(blocks_of[order], [[code, code + 1] for code in (a * len(names) + b for a, b in pairs)])
        ordered = medians[:, order]
        inside = [ordered[:, start:stop] for start, stop in ends.tolist()]
        values.append(np.stack([row_medians(block) for block in inside], axis=1))
    table = np.concatenate(values)
    table = table[np.isfinite(table).any(axis=1)]
    good = np.asarray(np.isfinite(table).all(axis=0))
    kept = tuple(pair for pair, there in zip(pairs, good.tolist(), strict=True) if there)
    if len(kept) < 2:
        return None
    return Blocks(
        tuple(names), tuple(-1 if c.socket is None else c.socket for c in first), tuple(c.half for c in first), kept,
        table[:, good] / (1e3 if linktest.is_linktest(found[0].header) else 1.0),
        "us" if linktest.is_linktest(found[0].header) else "ns",
    )  # fmt: skip


def section(jobs: Sequence[Measured], one: DrawnMatrix, topology: Topology | None) -> Section | None:
    """The quadrant table of a matrix: medians with intervals, partners, and what can be said in words."""
    found = blocks(jobs, one, topology)
    if found is None:
        return None
    half = found.half_width
    few = not half < 0.2 * float(found.medians.min())  # an interval of that width says nothing
    exact = (
        f"Each median is known to {half:.1f} {found.unit} (simultaneous 95 % interval over {len(found.values)} runs)."
    )
    alone = (
        f"{len(found.values)} {'run gives' if len(found.values) == 1 else 'runs give'} no useful interval of a median."
    )
    about = "Pairs of cores of different CCXs alone, as the others do not cross the I/O die. "
    return Section(
        f"Quadrant by quadrant: {name_of(one)}",
        (
            Text(about + (alone if few else exact), quiet=True),
            Figures((picture(found, one.measurement),)),
            _partners(found),
            Bullets(tuple(sentences(found))),
        ),
        together=True,
    )


def picture(found: Blocks, measurement: str) -> Figure:
    """The medians as numbers in colours, quadrant by quadrant."""
    n = len(found.quadrants)
    values = np.full((n, n), np.nan)
    for (a, b), value in zip(found.pairs, found.medians, strict=True):
        values[a, b] = values[b, a] = value
    names = [
        f"{socket}.{name}" if socket >= 0 else str(name)
        for socket, name in zip(found.sockets, found.quadrants, strict=True)
    ]
    ends = scale.ends(values)
    return figures.grid(
        values, [[f"{v:.1f}" if np.isfinite(v) else "" for v in row] for row in values], names, names,
        scale.of_nodes([ends] if ends else []) if n else Scale(0, 1), found.unit, corner="quadrant",
        name=f"quadrants-{measurement}",
        caption=captions.of("quadrants", unit=found.unit),
    )  # fmt: skip


def _partners(found: Blocks) -> Table:
    """For each quadrant its own median, its fastest and slowest partner in the socket, and the other socket."""
    rows = []
    medians, several = found.medians, len(set(found.sockets)) > 1
    for q, name in enumerate(found.quadrants):
        own = f"{medians[found.at(q, q)]:.1f}" if (q, q) in found.pairs else ""
        same = _others(found, q, same=True)
        far = _others(found, q, same=False)
        rows.append((
            f"{name}", own, _partner(found, same, min), _partner(found, same, max),
            *((f"{min(v for _, v in far):.1f} to {max(v for _, v in far):.1f}" if far else "",) if several else ()),
        ))  # fmt: skip
    header = ("quadrant", "inside", "fastest partner", "slowest partner", *(("other socket",) if several else ()))
    return Table(header, tuple(rows), align="lrll" + ("r" if several else ""), dense=True)


def _others(found: Blocks, q: int, same: bool) -> list[tuple[int, float]]:
    medians = found.medians
    return [
        (other, float(medians[found.at(q, other)]))
        for other in range(len(found.quadrants))
        if other != q
        and (found.sockets[other] == found.sockets[q]) == same
        and (min(q, other), max(q, other)) in found.pairs
    ]


def _partner(found: Blocks, others: Sequence[tuple[int, float]], end: object) -> str:
    """The fastest or slowest partner where it is apart from the one next to it, else all that share the place."""
    if not others:
        return ""
    ordered = sorted(others, key=lambda one: one[1], reverse=end is max)
    apart = found.apart(len(ordered) * (len(ordered) - 1) // 2)
    best = ordered[0][1]
    alike = [other for other, value in ordered if not abs(value - best) > apart]
    if len(alike) == len(ordered) > 1:
        return "not resolved"
    return f"{', '.join(str(found.quadrants[other]) for other in sorted(alike))} ({best:.1f} {found.unit})"


def sentences(found: Blocks) -> list[str]:
    """What is known of sockets and halves: a sentence for each difference whose interval does not reach zero."""
    kinds: dict[str, list[int]] = {}
    for number, (a, b) in enumerate(found.pairs):
        kinds.setdefault(_kind(found, a, b), []).append(number)
    out, unit = [], found.unit
    known = [
        kind
        for kind in ("inside one quadrant", "same half", "other half", "same socket", "other socket")
        if kind in kinds
    ]
    pairs = list(combinations(known, 2))
    means = {kind: float(found.medians[numbers].mean()) for kind, numbers in kinds.items()}
    for one, other in pairs:
        difference = means[other] - means[one]
        apart = found.apart(len(pairs), len(kinds[one]), len(kinds[other]))
        if abs(difference) > apart:
            words, said = "slower" if difference > 0 else "faster", _SAID[other]
            out.append(
                f"{said[0].upper()}{said[1:]} ({means[other]:.1f} {unit}) is {abs(difference):.1f} {unit} {words} than "
                f"{_SAID[one]} ({means[one]:.1f} {unit}), [{abs(difference) - apart:.1f} to "
                f"{abs(difference) + apart:.1f} {unit}]."
            )
    for socket in sorted(set(found.sockets)):
        mine = [n for n, (a, b) in enumerate(found.pairs) if found.sockets[a] == found.sockets[b] == socket and a != b]
        if len(mine) < 2:
            continue
        values = found.medians[mine]
        apart = found.apart(len(mine) * (len(mine) - 1) // 2)
        spread = float(values.max() - values.min())
        if spread > apart:
            (a, b), (c, d) = found.pairs[mine[int(values.argmin())]], found.pairs[mine[int(values.argmax())]]
            names = found.quadrants
            out.append(
                f"Socket {socket}: the fastest path between two quadrants is {names[a]} to {names[b]} "
                f"({values.min():.1f} {unit}), the slowest {names[c]} to {names[d]} ({values.max():.1f} {unit})."
            )
        elif np.isfinite(apart):
            out.append(
                f"Socket {socket}: no difference between paths of two quadrants is resolved ({apart:.1f} {unit})."
            )
    return out


_SAID = {
    "inside one quadrant": "between CCXs of one quadrant",
    "same half": "between quadrants of the same half of the I/O die",
    "other half": "between quadrants of different halves of the I/O die",
    "same socket": "between quadrants of one socket",
    "other socket": "between sockets",
}


def _kind(found: Blocks, a: int, b: int) -> str:
    if a == b:
        return "inside one quadrant"
    if found.sockets[a] != found.sockets[b]:
        return "other socket"
    if None in (found.halves[a], found.halves[b]):
        return "same socket"
    return "same half" if found.halves[a] == found.halves[b] else "other half"
