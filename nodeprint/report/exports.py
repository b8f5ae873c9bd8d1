"""Each figure of a report as files for a paper: SVG and PDF at the width of a column, its numbers as CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from pathlib import Path

from nodeprint import files
from nodeprint.report.old_figures import Figure
from nodeprint.report.pages import Page
from nodeprint.report.pdf import Printer
from nodeprint.report.svg import svg

#: Widths in mm: of one column and of two; a figure wider than the limit takes two.
_COLUMN, _PAGE, _LIMIT = 88.0, 180.0, 120.0


def write(pages: Sequence[Page], out: Path) -> list[Path]:
    """Write the figures of `pages` into a folder for each subject in `out`; returns the paths.

    The same pages give the same bytes. Raises CannotWriteError.
    """
    paths: list[Path] = []
    with Printer("figure.typ") as printer:
        for page in pages:
            seen: dict[str, int] = {}
            for figure in page.figures():
                if not figure.name:
                    continue
                seen[figure.name] = seen.get(figure.name, 0) + 1
                number = f"-{seen[figure.name]}" if seen[figure.name] > 1 else ""
                stem = out / _harmless(page.subject) / f"{_harmless(figure.name)}{number}"
                paths += _figure(figure, stem, printer)
    return paths


def _figure(figure: Figure, stem: Path, printer: Printer) -> list[Path]:
    width = _COLUMN if figure.drawing.width <= _LIMIT else _PAGE
    written = [
        files.write(stem.with_name(f"{stem.name}.svg"), svg(figure.drawing, width)),
        files.write(stem.with_name(f"{stem.name}.pdf"), printer.picture(figure, width)),
    ]
    if figure.data:
        written.append(files.write(stem.with_name(f"{stem.name}.csv"), _csv(figure)))
    return written


def _csv(figure: Figure) -> str:
    """The columns of a figure; numbers with seven digits, what was not measured empty."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(figure.data)
    for row in zip(*figure.data.values(), strict=True):
        rows.writerow([_written(value) for value in row])
    return out.getvalue()


def _written(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.7g}" if math.isfinite(value) else ""
    return value


def _harmless(name: str) -> str:
    """A name as that of a file or folder."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:80].strip("_") or "unnamed"
