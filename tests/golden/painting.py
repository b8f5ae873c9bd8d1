"""Pages as text: what a page's template reads, without drawing and setting type, which takes most of a report's time.

A figure is each variable and coordinate of its data in short: how many values, their range and mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from pathlib import Path
from typing import Any
from unittest import mock

import typst
import xarray as xr
from matplotlib.figure import Figure

from nodeprint.report.figures import render
from nodeprint.report.figures.figure_data import title_of
from tests.golden.summary import of_values, text_of_html


@contextmanager
def as_text() -> Iterator[None]:
    """Draw no figure and set no page: both are what they are made of."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(render, "figure", _figure))
        stack.enter_context(mock.patch.object(render, "svg", _svg))
        stack.enter_context(mock.patch.object(typst, "Compiler", _Compiler))
        yield


class _Numbers(Figure):
    """A figure that is not drawn."""

    words = ""


def _figure(_draw: object, data: Any, *_: object) -> Figure:
    out = _Numbers(figsize=(4, 3))
    if isinstance(data, xr.Dataset | tuple):
        each = [data] if isinstance(data, xr.Dataset) else data
        every = [(title_of(of[name]), of[name].to_numpy()) for of in each for name in (*of.coords, *of.data_vars)]
    else:  # a figure of an add-on, whose data have a table
        every = [(str(name), column.to_numpy()) for name, column in data.table().items()]
    out.words = "; ".join(f"{title} {of_values(values.ravel().tolist())}" for title, values in every)
    return out


def _svg(figure: _Numbers, *_: object, **__: object) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg"><desc>{escape(figure.words)}</desc></svg>'


class _Compiler:
    """What Typst's compiler is called with; a page is its content as lines."""

    def __init__(self, _template: Path, *, root: Path, **_: object) -> None:
        self.root = root

    def compile(self, **_: object) -> bytes:
        content = json.loads((self.root / "data.json").read_text(encoding="utf-8"))
        content.pop("colors", None)
        return "\n".join(("%PDF /Type /Page", *_lines(content, self.root))).encode()


def _lines(content: Any, root: Path) -> Iterator[str]:
    """The texts of a page in their order, the cells of a row in one line; what is a figure by its numbers."""
    values = [value for key, value in content.items() if key != "kind"] if isinstance(content, dict) else content
    if not isinstance(values, list) or _is_cell(content):
        yield from (_text(content, root),) if content not in ("", None, True, False) else ()
    elif all(_is_cell(value) or not isinstance(value, dict | list) for value in values):
        yield " | ".join(filter(None, (_text(value, root) for value in values)))
    else:
        for value in values:
            yield from _lines(value, root)


def _is_cell(value: object) -> bool:
    return isinstance(value, dict) and value["kind"] in ("Mark", "Reference")


def _text(value: Any, root: Path) -> str:
    """A text as HTML has it."""
    if _is_cell(value):
        return f"{value['symbol']} {value['word']}" if value["kind"] == "Mark" else value["text"] or "below"
    if isinstance(value, str) and value.endswith(".svg") and (root / value).is_file():
        return " ".join(text_of_html((root / value).read_text(encoding="utf-8")))
    return "" if value is None or isinstance(value, bool) else str(value)
