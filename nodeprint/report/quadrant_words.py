"""Quadrant by quadrant in words: what the I/O die does to core-to-core latency, said only where intervals allow it."""

from __future__ import annotations

from itertools import combinations

import msgspec
import numpy as np
from scipy.special import stdtrit

from nodeprint.data.layout import CCX, QUADRANT, SOCKET
from nodeprint.report import names
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.stats.robust import median_of_passes

#: Comparisons hold at once, for all sentences of a kind, with this probability of error.
_ERROR = 0.05
#: A path is named as the fastest or slowest with at most so many others that are not apart from it.
_MOST_NAMED = 3
_INSIDE, _SOCKET, _ACROSS = "inside one quadrant", "between quadrants of one socket", "between sockets"


class Blocks(msgspec.Struct, frozen=True):
    """Medians of the pairs between quadrants, run by run (run x block) in ns; a block is a pair of quadrants, each by
    its number and with its socket. Only pairs of cores of different CCXs, as the others do not cross the I/O die."""

    ends: tuple[tuple[int, int], ...]
    sockets: tuple[tuple[int, int], ...]
    values: Floats

    @property
    def medians(self) -> Floats:
        """Block by block the mean over runs of the median in a run."""
        return np.asarray(self.values.mean(axis=0))

    def kind(self, block: int) -> str:
        """What a block is between."""
        (a, b), (one_socket, other_socket) = self.ends[block], self.sockets[block]
        return _INSIDE if a == b else _SOCKET if one_socket == other_socket else _ACROSS

    def apart(self, comparisons: int, first: int = 1, second: int = 1) -> float:
        """From where on the means of `first` and of `second` blocks differ, with `comparisons` made at once: what all
        blocks of a run share is taken out, as it does not change their order. NaN where it cannot be known."""
        runs, blocks = self.values.shape
        if runs < 2 or blocks < 2:
            return float("nan")
        rest = self.values - self.values.mean(axis=0) - self.values.mean(axis=1, keepdims=True) + self.values.mean()
        degrees = (runs - 1) * (blocks - 1)
        spread = float(np.sqrt((rest**2).sum() / degrees))
        quantile = float(stdtrit(degrees, 1 - _ERROR / (2 * max(comparisons, 1))))
        return float(quantile * spread * ((1 / first + 1 / second) / runs) ** 0.5)


def blocks(levels: NodeLevels, node: str) -> Blocks | None:
    """The blocks of a node at the first home of the measurement; None without two known quadrants."""
    quantity = levels.quantity
    slots, pairs = quantity.layout.slots, quantity.pairs
    if slots[:, QUADRANT].min(initial=0) < 0 or len(np.unique(slots[:, QUADRANT])) < 2:
        return None
    number = list(quantity.newest_rows)[levels.rows[node]]
    rows = [row for of_job in quantity.rows[number].values() for row in of_job]
    values = median_of_passes(np.stack([np.asarray(quantity.values[row]) for row in rows]))[:, : len(pairs)]
    a, b = slots[pairs[:, 0]], slots[pairs[:, 1]]
    crossing = (a[:, CCX] != b[:, CCX]) | (a[:, CCX] < 0)
    low, high = np.minimum(a[:, QUADRANT], b[:, QUADRANT]), np.maximum(a[:, QUADRANT], b[:, QUADRANT])
    socket_of = dict(zip(slots[:, QUADRANT].tolist(), slots[:, SOCKET].tolist(), strict=True))
    ends, columns = [], []
    for pair in sorted({*zip(low[crossing].tolist(), high[crossing].tolist(), strict=True)}):
        inside = values[:, crossing & (low == pair[0]) & (high == pair[1])]
        if np.isfinite(inside).all():
            ends.append(pair)
            columns.append(np.median(inside, axis=1))
    if len(ends) < 2:
        return None
    sockets = tuple((socket_of[end], socket_of[other]) for end, other in ends)
    return Blocks(tuple(ends), sockets, np.stack(columns, axis=1).astype(np.float64))


def sentences(blocks: Blocks) -> list[str]:
    """A sentence for each difference whose interval does not reach zero, and of each socket the paths between two
    quadrants that are fastest and slowest, where these are apart from the others."""
    out, medians = [], blocks.medians
    kinds: dict[str, list[int]] = {}
    for block in range(len(blocks.ends)):
        kinds.setdefault(blocks.kind(block), []).append(block)
    measured_kinds = [kind for kind in (_INSIDE, _SOCKET, _ACROSS) if kind in kinds]
    compared = list(combinations(measured_kinds, 2))
    means = {kind: float(medians[of_kind].mean()) for kind, of_kind in kinds.items()}
    for first, second in compared:
        difference = means[second] - means[first]
        apart = blocks.apart(len(compared), len(kinds[first]), len(kinds[second]))
        if abs(difference) > apart:
            low, high = sorted((abs(difference) - apart, abs(difference) + apart))
            out.append(
                f"Pairs {second} ({names.quantity(means[second], 'ns')}) are {names.quantity(abs(difference), 'ns')} "
                f"{'slower' if difference > 0 else 'faster'} than {first} ({names.quantity(means[first], 'ns')}; "
                f"interval {low:.1f} to {high:.1f} ns)."
            )
    for socket in sorted({socket for pair in blocks.sockets for socket in pair}):
        paths = [block for block in kinds.get(_SOCKET, ()) if blocks.sockets[block][0] == socket]
        if len(paths) > 1 and np.isfinite(blocks.apart(1)):
            out.append(_paths(blocks, socket, paths))
    return out


def _paths(blocks: Blocks, socket: int, paths: list[int]) -> str:
    """What can be said of the paths between the quadrants of a socket: the fastest and the slowest are named where each
    of them is apart from each that is not named."""
    medians = blocks.medians
    apart = blocks.apart(len(paths) * (len(paths) - 1) // 2)
    ordered = sorted(paths, key=lambda block: float(medians[block]))
    named = []
    for extreme, word in ((ordered[0], "fastest"), (ordered[-1], "slowest")):
        alike = [block for block in paths if not abs(float(medians[block] - medians[extreme])) > apart]
        further = [block for block in paths if block not in alike]
        gap = min((abs(float(medians[a] - medians[b])) for a in alike for b in further), default=0.0)
        if len(alike) <= _MOST_NAMED and gap > apart:
            ends = names.listed(f"{blocks.ends[block][0]} to {blocks.ends[block][1]}" for block in alike)
            level = names.quantity(float(medians[extreme]), "ns")
            named.append(f"the {word} {'is' if len(alike) == 1 else 'are'} {ends} ({level})")
    if named:
        return f"Socket {socket}, paths between quadrants: {names.listed(named)}."
    return f"Socket {socket}: no path between two quadrants is apart from the others (by {apart:.1f} ns or more)."
