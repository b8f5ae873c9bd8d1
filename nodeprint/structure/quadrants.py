"""Effects of an I/O die on core pairs by quadrant: latency levels, and differences with simultaneous intervals.

On two-socket Rome nodes, Forschungszentrum Juelich's LinkTest measured two such effects with messages of 1 MiB. They
reach one other quadrant of the socket faster than their own, and two quadrants of the other socket more slowly
(docs/method/messages.md). This module tests for both, in messages and core-to-core latencies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from nodeprint.data.places.layout import CCX, QUADRANT, SOCKET, THREAD, Ints, slots_of
from nodeprint.machine.topology.model import Topology
from nodeprint.structure.found import LevelName, Structure

Floats = npt.NDArray[np.float64]

#: Family-wise error rate of the simultaneous intervals of a node.
ERROR = 0.05
#: Largest number of indistinguishable paths listed as the fastest or slowest.
MOST_NAMED = 3
_FOUND: Mapping[int, LevelName] = {SOCKET: "socket", QUADRANT: "quadrant", CCX: "ccx"}


class LevelDifference(msgspec.Struct, frozen=True):
    """Difference of latency between pairs at `second` and pairs at `first`.

    `half_ns` is the half-width of its simultaneous interval; NaN with a single run.
    """

    first: str
    second: str
    first_ns: float
    second_ns: float
    half_ns: float

    @property
    def ns(self) -> float:
        """The difference in ns, positive if `second` is slower."""
        return self.second_ns - self.first_ns

    @property
    def is_apart(self) -> bool:
        """Whether the interval excludes zero."""
        return abs(self.ns) > self.half_ns

    @property
    def most_ns(self) -> float:
        """Largest absolute difference in the interval."""
        return abs(self.ns) + self.half_ns


class SocketDie(msgspec.Struct, frozen=True):
    """Quadrants of a socket, with simultaneous comparisons.

    `partners` pairs the quadrants that reach each other faster than any other; empty if no pairing is separated.
    `inside` compares own quadrant, partner and others. `across` compares other quadrants of the socket with other
    sockets. `outside` compares the quadrants `near` to other sockets with those `far` from them, split at the largest
    step. `faster_than_own` lists quadrants that reach another quadrant faster than their own. `fastest` and `slowest`
    list paths between quadrants that are separated from all others of the socket.
    """

    socket: int
    quadrants: tuple[int, ...]
    partners: tuple[tuple[int, int], ...]
    inside: tuple[LevelDifference, ...]
    near: tuple[int, ...]
    far: tuple[int, ...]
    outside: LevelDifference | None
    across: LevelDifference | None
    faster_than_own: tuple[int, ...]
    fastest: tuple[tuple[int, int], ...]
    slowest: tuple[tuple[int, int], ...]


class QuadrantBlocks(msgspec.Struct, frozen=True):
    """Medians of the pairs between quadrants in ns, shape (run, block).

    A block is a pair of quadrants, `ends`, with their sockets. Only pairs of cores in different CCXs count, because
    others do not cross the I/O die.
    """

    ends: tuple[tuple[int, int], ...]
    sockets: tuple[tuple[int, int], ...]
    values: Floats

    @property
    def medians(self) -> Floats:
        """Mean over runs of each block's median."""
        return np.asarray(self.values.mean(axis=0))

    def apart(self, comparisons: int, first: int = 1, second: int = 1) -> float:
        """Least significant difference between means of `first` and `second` blocks, with `comparisons` tests
        (Bonferroni).

        Effects shared by all blocks of a run are removed, because they do not change the order of blocks. NaN if
        unknown.
        """
        runs, blocks = self.values.shape
        if runs < 2 or blocks < 2:
            return float("nan")
        rest = self.values - self.values.mean(axis=0) - self.values.mean(axis=1, keepdims=True) + self.values.mean()
        degrees = (runs - 1) * (blocks - 1)
        spread = float(np.sqrt((rest**2).sum() / degrees))
        quantile = float(stdtrit(degrees, 1 - ERROR / (2 * max(comparisons, 1))))
        return float(quantile * spread * ((1 / first + 1 / second) / runs) ** 0.5)

    def inside(self, socket: int) -> list[int]:
        """Blocks between different quadrants of a socket."""
        return [
            number
            for number, (ends, of) in enumerate(zip(self.ends, self.sockets, strict=True))
            if of == (socket, socket) and ends[0] != ends[1]
        ]

    def own(self, socket: int) -> list[int]:
        """Blocks within the quadrants of a socket."""
        return [
            number for number, ends in enumerate(self.ends) if ends[0] == ends[1] and socket in self.sockets[number]
        ]

    def outside(self, quadrant: int) -> list[int]:
        """Blocks between a quadrant and other sockets."""
        return [
            number for number, ends in enumerate(self.ends) if quadrant in ends and len(set(self.sockets[number])) > 1
        ]


def of_pairs(values: Floats, slots: Ints, pairs: Ints) -> QuadrantBlocks | None:
    """Blocks from pair latencies in ns, shape (run, pair); `slots` has the coordinates (docs/formats.md).

    None without two known quadrants, or if a run lacks a block.
    """
    if slots[:, QUADRANT].min(initial=0) < 0 or len(np.unique(slots[:, QUADRANT])) < 2:
        return None
    a, b = slots[pairs[:, 0]], slots[pairs[:, 1]]
    crossing = (a[:, CCX] != b[:, CCX]) | (a[:, CCX] < 0)
    low, high = np.minimum(a[:, QUADRANT], b[:, QUADRANT]), np.maximum(a[:, QUADRANT], b[:, QUADRANT])
    socket_of = dict(zip(slots[:, QUADRANT].tolist(), slots[:, SOCKET].tolist(), strict=True))
    ends, columns = [], []
    for pair in sorted({*zip(low[crossing].tolist(), high[crossing].tolist(), strict=True)}):
        of_block = values[:, crossing & (low == pair[0]) & (high == pair[1])]
        if np.isfinite(of_block).any(axis=1).all():
            ends.append(pair)
            columns.append(np.nanmedian(of_block, axis=1))
    if len(ends) < 2:
        return None
    sockets = tuple((socket_of[a], socket_of[b]) for a, b in ends)
    return QuadrantBlocks(tuple(ends), sockets, np.stack(columns, axis=1).astype(np.float64))


def of_matrices(
    of_runs: Floats, cpus: Sequence[int], topology: Topology | None, structure: Structure
) -> QuadrantBlocks | None:
    """Blocks from matrices (run, cpu, cpu), by labeled quadrants or, without labels, by detected ones.

    None without two quadrants.
    """
    slots = _labeled(cpus, topology) if topology is not None else _found(cpus, structure)
    if slots is None:
        return None
    a, b = np.triu_indices(len(cpus), 1)
    return of_pairs(np.fmin(of_runs[:, a, b], of_runs[:, b, a]), slots, np.stack([a, b], axis=1))


def _labeled(cpus: Sequence[int], topology: Topology) -> Ints:
    slots, numbers = slots_of(topology, cpus)
    return slots[[numbers.index(cpu) for cpu in cpus]]


def _found(cpus: Sequence[int], structure: Structure) -> Ints | None:
    """Coordinates from detected groups; one socket if none was detected."""
    slots = np.full((len(cpus), THREAD + 1), -1, dtype=np.int64)
    slots[:, SOCKET] = 0
    for column, name in _FOUND.items():
        level = structure.level(name)
        for number, group in enumerate(level.groups if level is not None else ()):
            slots[np.isin(cpus, group), column] = number
    return slots if structure.level("quadrant") is not None else None


def dies(blocks: QuadrantBlocks) -> tuple[SocketDie, ...]:
    """Quadrant comparisons of each socket, with simultaneous intervals over all of them."""
    quadrants = {
        end: of
        for ends, sockets in zip(blocks.ends, blocks.sockets, strict=True)
        for end, of in zip(ends, sockets, strict=True)
    }
    by_socket = {socket: sorted(q for q, of in quadrants.items() if of == socket) for socket in quadrants.values()}
    comparisons = sum(_compared(len(members)) for members in by_socket.values())
    return tuple(_die(blocks, socket, by_socket[socket], comparisons) for socket in sorted(by_socket))


def _compared(quadrants: int) -> int:
    """Number of comparisons in a socket.

    They are any two blocks; own, partner and others; any split of the quadrants toward other sockets; and these with
    the others.
    """
    blocks = quadrants * (quadrants + 1) // 2
    return int(blocks * (blocks - 1) // 2 + 3 + 2 ** (quadrants - 1))


def _die(blocks: QuadrantBlocks, socket: int, quadrants: Sequence[int], comparisons: int) -> SocketDie:
    own, between = blocks.own(socket), blocks.inside(socket)
    partners = _partners(blocks, quadrants, between, comparisons)
    matched = [number for number in between if blocks.ends[number] in partners]
    rest = [number for number in between if number not in matched]
    sets = [("own", own), ("partner", matched), ("others", rest)]
    inside = tuple(
        _difference(blocks, *first, *second, comparisons)
        for first, second in combinations([of_kind for of_kind in sets if of_kind[1]], 2)
    )
    near, far, outside = _outside(blocks, quadrants, comparisons)
    to_sockets = sorted({number for q in quadrants for number in blocks.outside(q)})
    across = None
    if to_sockets and (rest or matched):
        across = _difference(blocks, "others", rest or matched, "other sockets", to_sockets, comparisons)
    return SocketDie(
        socket,
        tuple(quadrants),
        partners,
        inside,
        near,
        far,
        outside,
        across,
        tuple(q for q in quadrants if _is_faster_elsewhere(blocks, q, own, between, comparisons)),
        _named(blocks, sorted(between, key=lambda n: float(blocks.medians[n])), comparisons),
        _named(blocks, sorted(between, key=lambda n: -float(blocks.medians[n])), comparisons),
    )


def _named(blocks: QuadrantBlocks, ordered: Sequence[int], comparisons: int) -> tuple[tuple[int, int], ...]:
    """Ends of the first path and of all paths not separated from it.

    Empty if they are too many or not separated from the rest.
    """
    medians, apart = blocks.medians, blocks.apart(comparisons)
    alike = [number for number in ordered if not abs(float(medians[number] - medians[ordered[0]])) > apart]
    others = [number for number in ordered if number not in alike]
    gap = min((abs(float(medians[a] - medians[b])) for a in alike for b in others), default=0.0)
    return tuple(sorted(blocks.ends[number] for number in alike)) if len(alike) <= MOST_NAMED and gap > apart else ()


def _difference(
    blocks: QuadrantBlocks, first: str, of_first: Sequence[int], second: str, of_second: Sequence[int], comparisons: int
) -> LevelDifference:
    first_ns, second_ns = (float(blocks.medians[list(numbers)].mean()) for numbers in (of_first, of_second))
    return LevelDifference(first, second, first_ns, second_ns, blocks.apart(comparisons, len(of_first), len(of_second)))


def _partners(
    blocks: QuadrantBlocks, quadrants: Sequence[int], between: Sequence[int], comparisons: int
) -> tuple[tuple[int, int], ...]:
    """The pairing of quadrants whose paths are all separated from, and faster than, every other path of the socket."""
    medians, apart = blocks.medians, blocks.apart(comparisons)
    for matching in _matchings(quadrants):
        matched = [float(medians[number]) for number in between if blocks.ends[number] in matching]
        rest = [float(medians[number]) for number in between if blocks.ends[number] not in matching]
        if len(matched) == len(matching) and rest and min(rest) - max(matched) > apart:
            return matching
    return ()


def _matchings(quadrants: Sequence[int]) -> Iterator[tuple[tuple[int, int], ...]]:
    """All ways to pair an even number of quadrants."""
    if not quadrants:
        yield ()
    for partner in quadrants[1:]:
        rest = [q for q in quadrants[1:] if q != partner]
        if len(quadrants) % 2 == 0:
            yield from (((quadrants[0], partner), *others) for others in _matchings(rest))


def _is_faster_elsewhere(
    blocks: QuadrantBlocks, quadrant: int, own: Sequence[int], between: Sequence[int], comparisons: int
) -> bool:
    """Whether the quadrant reaches another one of its socket faster than itself."""
    inside = [float(blocks.medians[number]) for number in own if quadrant in blocks.ends[number]]
    to_others = [float(blocks.medians[number]) for number in between if quadrant in blocks.ends[number]]
    return bool(inside and to_others) and inside[0] - min(to_others) > blocks.apart(comparisons)


def _outside(
    blocks: QuadrantBlocks, quadrants: Sequence[int], comparisons: int
) -> tuple[tuple[int, ...], tuple[int, ...], LevelDifference | None]:
    """Quadrants near to and far from other sockets, split at the largest step, and their difference.

    Empty if no other socket was measured or there is only one quadrant.
    """
    paths = {q: blocks.outside(q) for q in quadrants}
    if len(quadrants) < 2 or not all(paths.values()):
        return (), (), None
    level = {q: float(blocks.medians[paths[q]].mean()) for q in quadrants}
    ordered = sorted(quadrants, key=lambda q: level[q])
    step = max(range(1, len(ordered)), key=lambda n: level[ordered[n]] - level[ordered[n - 1]])
    near, far = sorted(ordered[:step]), sorted(ordered[step:])
    sets = [("near", [n for q in near for n in paths[q]]), ("far", [n for q in far for n in paths[q]])]
    return tuple(near), tuple(far), _difference(blocks, *sets[0], *sets[1], comparisons)
