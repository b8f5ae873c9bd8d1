"""The levels of a machine with their names: the one table that every sentence, page and figure reads."""

from __future__ import annotations

from collections.abc import Mapping

#: By level what a part of it is called, and several; `smt` and `group` are levels that are found in a matrix.
_NAMES: Mapping[str, tuple[str, str]] = {
    "smt": ("core", "cores"),
    "core": ("core", "cores"),
    "cluster": ("cluster", "clusters"),
    "ccx": ("CCX", "CCXs"),
    "ccd": ("CCD", "CCDs"),
    "group": ("group", "groups"),
    "quadrant": ("quadrant", "quadrants"),
    "half": ("half", "halves"),
    "numa": ("NUMA node", "NUMA nodes"),
    "socket": ("socket", "sockets"),
}
#: The plural of each name.
PLURALS: Mapping[str, str] = dict(_NAMES.values())


def level_name(level: str) -> str:
    """The name of a component of a level. Raises KeyError if there is no such level."""
    return _NAMES[level][0]


def level_plural(level: str) -> str:
    """What parts of a level are called. Raises KeyError where there is no such level."""
    return _NAMES[level][1]
