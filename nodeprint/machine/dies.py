"""Possible layouts of an I/O die: sites, each with CCDs and memory controllers, and the steps between them."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["mesh", "ring", "crossbar"]
KINDS: tuple[Kind, ...] = ("mesh", "ring", "crossbar")


def moves(kind: Kind, sites: int) -> npt.NDArray[np.int64]:
    """Steps from site to site by their direction (direction, site, site).

    A `mesh` has two columns (2 x 2, 2 x 3, ...; site i is in row i div 2) and two directions, across and along. A
    `ring` and a `crossbar` have one direction; on a crossbar every other site is one step away. Raises ValueError for a
    mesh with an odd number of sites.
    """
    site = np.arange(sites)
    if kind == "mesh":
        if sites % 2:
            raise ValueError(f"a mesh of two columns has no {sites} sites")
        return np.stack([np.abs(np.subtract.outer(coordinate, coordinate)) for coordinate in (site % 2, site // 2)])
    around = np.subtract.outer(site, site) % sites
    return (np.minimum(around, sites - around) if kind == "ring" else (around > 0).astype(np.int64))[None]


def steps(kind: Kind, sites: int) -> npt.NDArray[np.int64]:
    """Steps from site to site (site, site)."""
    return np.asarray(moves(kind, sites).sum(axis=0))
