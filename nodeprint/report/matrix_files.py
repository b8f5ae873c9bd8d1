"""A matrix without a campaign as a figure in a file: of a node's summary, or in the order of its structure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nodeprint import __version__, files
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.level_names import level_name
from nodeprint.readers.tool_output import CoreMatrix
from nodeprint.structure import Structure
from nodeprint.summary.node_summary import PairMatrix

if TYPE_CHECKING:
    import xarray as xr

#: Levels that outline parts of a matrix, from fine to coarse.
_OUTLINES = ("ccx", "ccd", "quadrant", "group", "socket")
_ENDINGS = (".pdf", ".svg")

Floats = npt.NDArray[np.float64]


def check(pdf: Path | None, svg: Path | None) -> list[Path]:
    """The files that are asked for. Raises NodeprintError where one does not have its ending or cannot be replaced,
    or where what draws is not installed."""
    asked = [path for path in (pdf, svg) if path is not None]
    for path, ending in zip((pdf, svg), _ENDINGS, strict=True):
        if path is not None and path.suffix != ending:
            advice = f"name a file that ends in {ending}"
            raise NodeprintError(f"does not end in {ending}", advice=advice, where=path, key=f"--{ending[1:]}")
        if path is not None:
            files.check(path)
    if asked:
        from nodeprint.report.figures import matrix  # noqa: F401, PLC0415 (says what to install, before measuring)
    return asked


def of_summary(matrix: PairMatrix) -> xr.Dataset:
    """The matrix of a summary in the order of its places, with their outlines."""
    title = f"{matrix.operation}, latency (round trip / 2), ns"
    return _data(matrix.ns, matrix.places.cpus, matrix.places.parts, title)


def of_structure(matrix: CoreMatrix, structure: Structure) -> xr.Dataset:
    """Any matrix, its CPUs ordered by the levels that were found in it."""
    components: dict[str, dict[int, int]] = {}
    for level in structure.levels:
        components.setdefault(level.name, {cpu: number for number, group in enumerate(level.groups) for cpu in group})
    coarse_first = [components[level.name] for level in reversed(structure.levels)]
    order = sorted(matrix.cpus, key=lambda cpu: ([component.get(cpu, -1) for component in coarse_first], cpu))
    place = {cpu: row for row, cpu in enumerate(matrix.cpus)}
    rows = [place[cpu] for cpu in order]
    labels = {
        name: tuple(component.get(cpu, -1) for cpu in order) for name, component in components.items() if name != "smt"
    }
    return _data(matrix.ns[np.ix_(rows, rows)], order, labels, "latency, ns")


def write(data: xr.Dataset, paths: Iterable[Path], name: str, *, simulated: bool = False) -> list[Path]:
    """Draw the matrix into files by their endings; returns them. Raises CannotWriteError."""
    from nodeprint.report.figures import matrix, render, style  # noqa: PLC0415 (matplotlib takes half a second)

    look = style.load()
    origin = render.Origin(name, "", __version__, simulated=simulated)
    out = []
    for path in paths:
        drawn = render.figure(matrix.matrix, data, look, look.widths_mm["page"], origin)
        content = render.pdf(drawn, look) if path.suffix == ".pdf" else render.svg(drawn, look, outlines=True)
        out.append(files.write(path, content))
    return out


def _data(values: Floats, cpus: Sequence[int], components: Mapping[str, Sequence[int]], title: str) -> xr.Dataset:
    from nodeprint.report.figures.matrix import square  # noqa: PLC0415 (matplotlib takes half a second)
    from nodeprint.report.figures.part_levels import outlined  # noqa: PLC0415

    known = {level: numbers for level in _OUTLINES if len(set(numbers := components.get(level, ()))) > 1}
    parts = {
        level: outlined(numbers, level_name(level), level_name(level))
        for level, numbers in known.items()
        if min(numbers) >= 0
    }
    values = values.copy()
    np.fill_diagonal(values, np.nan)
    return square(values, tuple(map(str, cpus)), title, parts)
