"""Colors and sizes of figures: reports/style.yaml by meaning, and reports/nodeprint.mplstyle for matplotlib."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import matplotlib
import msgspec
import numpy as np
from matplotlib.colors import Colormap, ListedColormap

from nodeprint.errors import NodeprintError
from nodeprint.report.outcome_colors import OutcomeColor
from nodeprint.settings import checked_yaml, sources

Map = Literal["values", "differences"]


class Outline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The line around the components of a level: its width in points, and its dashes in widths."""

    points: float
    dashes: tuple[float, ...] = ()

    @property
    def linestyle(self) -> Any:
        """Return the style in matplotlib's format."""
        return (0, self.dashes) if self.dashes else "solid"


class Style(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """reports/style.yaml. `rc` has the settings of nodeprint.mplstyle, extended by the user's style."""

    outcomes: Mapping[str, OutcomeColor]
    colors: Mapping[str, str]
    dark: Mapping[str, str]
    series: tuple[str, ...]
    maps: Mapping[Map, str]
    terminal: tuple[str, ...]
    outlines: Mapping[str, Outline]
    widths_mm: Mapping[str, float]
    smallest_letters_pt: float
    rc: Mapping[str, Any] = {}

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Draw and save figures in this style."""
        settings: Any = dict(self.rc)
        with matplotlib.rc_context(settings):
            yield

    def color(self, name: str) -> str:
        """Return a color by its meaning, of outcomes or of figures."""
        return self.on_paper[name]

    @property
    def on_paper(self) -> Mapping[str, str]:
        """Every color by name, for paper and light screens."""
        return {**self.colors, **{name: color.light for name, color in self.outcomes.items()}}

    @property
    def on_dark(self) -> Mapping[str, str]:
        """The colors that differ on dark screens."""
        return {**self.dark, **{name: color.dark for name, color in self.outcomes.items()}}

    def map(self, of: Map) -> Colormap:
        """Return the color map of values or of differences; missing values are gray."""
        return _map(self.maps[of], self.colors["missing"])

    @property
    def letters_pt(self) -> float:
        """The size of letters in figures, in points."""
        return float(self.rc["font.size"])


@cache
def load(top: Path | None = None) -> Style:
    """Load the style of figures, extended by the matplotlib style file `top`, if any.

    Raises NodeprintError if a file cannot be used, or its letters are too small to be read.
    """
    folder = sources.folder() / "reports"
    path = folder / "style.yaml"
    try:
        style = msgspec.convert(checked_yaml.read(path), Style)
    except msgspec.ValidationError as error:
        raise NodeprintError(str(error), where=path, advice="take the file of this version of nodeprint") from error
    above = _settings(top) if top is not None else {}
    rc = _settings(folder / "nodeprint.mplstyle") | above
    if cmap := above.get("image.cmap"):  # for readers used to green for low and red for high
        style = msgspec.structs.replace(style, maps={**style.maps, "values": str(cmap)})
    if not rc["font.size"] >= style.smallest_letters_pt:
        what = f"{rc['font.size']:g} pt is less than {style.smallest_letters_pt:g} pt"
        raise NodeprintError(what, where=top, key="font.size", advice="name larger letters")
    return msgspec.structs.replace(style, rc=rc)


def _settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        advice = "name a file of matplotlib's settings (*.mplstyle)"
        raise NodeprintError("is not there", where=path, advice=advice)
    try:
        with _strictly(path):
            settings: Any = matplotlib.rc_params_from_file(path, use_default_template=False)
        return dict(settings)
    except (OSError, ValueError, KeyError) as error:
        raise NodeprintError(f"cannot be read ({error})", where=path, advice="see matplotlib's style sheets") from error


@contextmanager
def _strictly(path: Path) -> Iterator[None]:
    """Raise NodeprintError if matplotlib logs an error in a line of `path`, which it would otherwise ignore."""

    def refuse(record: logging.LogRecord) -> bool:
        of: Any = record.args
        if len(of) < 2:  # no line number: the file is not text, and an exception follows
            return False
        what = record.getMessage().strip().partition(" in file")[0]
        line = of["line_no"] if isinstance(of, dict) else of[1]
        raise NodeprintError(what[:1].lower() + what[1:], where=path, line=line, advice="see matplotlib's style sheets")

    log = logging.getLogger("matplotlib")
    log.addFilter(refuse)
    try:
        yield
    finally:
        log.removeFilter(refuse)


@cache
def _map(name: str, missing: str) -> Colormap:
    """Return a map of matplotlib or Crameri.

    Importing cmcrameri would import pyplot, which figures do without.
    """
    if name in matplotlib.colormaps:
        return matplotlib.colormaps[name].with_extremes(bad=missing)
    spec = find_spec("cmcrameri")
    if spec is None or spec.origin is None:
        raise NodeprintError("the package cmcrameri is not installed", advice="install it: `pip install cmcrameri`")
    colors = np.loadtxt(Path(spec.origin).parent / "cmaps" / f"{name}.txt")
    return ListedColormap(colors.tolist(), name).with_extremes(bad=missing)
