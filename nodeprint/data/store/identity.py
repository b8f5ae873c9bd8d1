"""Whose the values of other programs are, and what stated it: the axes on which a verdict on them rests."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Identity(msgspec.Struct, frozen=True):
    """`nodes` with at least `fewest_runs` and at most `most_runs` runs each, and by kind of part (`gpu`, `task`) how
    many `parts` a node has. `stated` has by axis (`node`, `run`, a part) the words for what states it.
    `pairs` is the number of pairs of nodes with values."""

    nodes: int
    fewest_runs: int
    most_runs: int
    parts: Mapping[str, int]
    stated: Mapping[str, str]
    pairs: int | msgspec.UnsetType = msgspec.UNSET
