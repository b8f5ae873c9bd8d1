"""Pages to PDF through Typst: templates stay as they are, and what they show reaches them as data, never as markup.

A host name or a BIOS string is a value of a JSON file that the template reads, so Typst has no way to take it for code.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

import typst

from nodeprint import sources
from nodeprint.report import package_data, pdf_marks
from nodeprint.report.compact import compact
from nodeprint.report.drawing import Words
from nodeprint.report.old_figures import Figure
from nodeprint.report.pages import Page, Site, line, plain, title

#: Words longer than this may be broken, after signs that separate, and where there are none after so many characters.
_UNBROKEN = 24
_PIECE = re.compile(r".{3,15}?[,/=:;.-](?=.)|.{1,8}")
_BREAK = "\u200b"
#: So many texts are kept with their breaks: nodes of a fleet share most of theirs.
_KEPT = 4096
#: The file of a document's figures, a page each.
_FIGURES = "figures.pdf"


class Printer(AbstractContextManager["Printer"]):
    """A Typst compiler with the report's templates and fonts, for any number of documents.

    The fonts are Typst's own and matplotlib's DejaVu, never the system's: the same pages on every machine.
    """

    def __init__(self, template: str = "report.typ") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="nodeprint-report-")
        root = Path(self._folder.name)
        for path in (sources.folder() / "reports").glob("*.typ"):
            shutil.copy(path, root)
        self._compiler = typst.Compiler(root / template, root=root, font_paths=_fonts(), ignore_system_fonts=True)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def pdf(self, pages: Sequence[Page], site: Site | None = None) -> bytes:
        """The document of `pages`; the same bytes for the same pages."""
        root = Path(self._folder.name)
        images: dict[bytes, str] = {}

        def image(content: bytes) -> str:
            kind = "png" if content.startswith(b"\x89PNG") else "svg"
            return images.setdefault(content, f"{len(images)}.{kind}")

        figures: list[Figure] = []

        def figure(one: Figure) -> dict[str, Any]:
            figures.append(one)
            return {"page": len(figures)} | _size(one)

        texts: list[str] = []

        def text(one: str) -> str:
            texts.append(one)
            return breakable(pdf_marks.with_letters(one))

        data = plain({"pages": list(pages), "site": site or Site()}, text, image, figure)
        texts += [mark.text for one in figures for mark in one.drawing.marks if isinstance(mark, Words)]
        every = "".join(texts)
        data |= {"title": title(pages), "lacking": pdf_marks.with_letters(every) != every}
        for content, name in images.items():
            (root / name).write_bytes(content)
        (root / _FIGURES).write_bytes(pdf_marks.book([one.drawing for one in figures]))
        pdf = self.document(data)
        for name in images.values():
            (root / name).unlink()
        return pdf

    def picture(self, figure: Figure, width: float) -> bytes:
        """A figure as a page `width` mm wide, by figure.typ."""
        Path(self._folder.name, _FIGURES).write_bytes(pdf_marks.book([figure.drawing]))
        by = width / figure.drawing.width
        return self.document(_size(figure) | {"width": width, "height": figure.drawing.height * by})

    def document(self, data: Mapping[str, Any]) -> bytes:
        """The document of the template for `data`, which it reads as data.json."""
        Path(self._folder.name, "data.json").write_text(json.dumps(data), encoding="utf-8")
        pdf = self._compiler.compile(format="pdf")
        if not isinstance(pdf, bytes):
            raise TypeError("Typst returned no document")
        return compact(pdf)


@cache
def _fonts() -> typst.Fonts:
    dejavu = package_data.path("matplotlib", "mpl-data/fonts/ttf")
    return typst.Fonts(include_system_fonts=False, font_paths=[dejavu])


def _size(figure: Figure) -> dict[str, Any]:
    return {"width": figure.drawing.width, "height": figure.drawing.height, "alt": line(figure.alt)}


@lru_cache(maxsize=_KEPT)
def breakable(text: str) -> str:
    """`text` as `pages.line` has it, with places where a very long word may be broken."""
    words = line(text).split(" ")
    return " ".join([_BREAK.join(_PIECE.findall(word)) if len(word) > _UNBROKEN else word for word in words])
