"""Render documents as PDF through Typst, with fixed templates that receive content as data, never as markup.

The template reads a host name or BIOS string from a JSON file, so Typst cannot interpret it as code. The PDF is tagged
(PDF/UA-1), with headings, an outline and links.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import msgspec
import typst
from msgspec.structs import replace

from nodeprint.errors import printable
from nodeprint.report.figures.style import load
from nodeprint.report.pages.blocks import Command, Document, Picture
from nodeprint.settings import sources

#: Typst rejects a document that is not accessible by this standard.
_STANDARD: Literal["ua-1"] = "ua-1"
#: Unicode categories of accents and of characters that join letters.
_UNDRAWN = ("Mn", "Me", "Cf")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_PAGE = re.compile(rb"/Type\s*/Page\b")
#: Longer texts are cut.
_LONGEST = 20_000


class Printer(AbstractContextManager["Printer"]):
    """A Typst compiler with the report's templates and fonts, for any number of documents.

    The fonts are Typst's own and matplotlib's DejaVu, never the system's: the same pages on every machine.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="nodeprint-report-")
        root = Path(self._folder.name)
        for path in (sources.folder() / "reports").glob("*.typ"):
            shutil.copy(path, root)
        self._compiler = typst.Compiler(root / "report.typ", root=root, font_paths=_fonts(), ignore_system_fonts=True)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def pdf(self, document: Document, most: int = 0) -> bytes:
        """Return the PDF of a document, deterministically.

        Trailing sections of the first page are dropped until the PDF has at most `most` pages (0: no limit).
        """
        content = self.data(plain(document, self._file))
        while most and pages_of(content) > most and len(document.pages[0].sections) > 1:
            first, *others = document.pages
            document = replace(document, pages=(replace(first, sections=first.sections[:-1]), *others))
            content = self.data(plain(document, self._file))
        return content

    def fewest(self, document: Document, most: int = 0) -> bytes:
        """Return the PDF as `pdf` does, shortened if that saves a page.

        Agreements, letters and figures become slightly smaller, movable sections precede the findings, and optional
        content is omitted.
        """
        content, tried = self.data(plain(document, self._file)), [document]
        for tight in (document, document.early, document.without_dispensable, document.without_dispensable.early):
            if pages_of(content) > 1 and (tight is document or tight not in tried):
                content = min(content, self.data({**plain(tight, self._file), "tight": True}), key=pages_of)
                tried.append(tight)
        return self.pdf(document, most) if most and pages_of(content) > most else content

    def data(self, content: Mapping[str, Any]) -> bytes:
        """Return the PDF of the template for `content`, which it reads as data.json."""
        text = json.dumps({**content, "colors": dict(load().on_paper)}, sort_keys=True)
        Path(self._folder.name, "data.json").write_text(text, encoding="utf-8")
        pdf = self._compiler.compile(format="pdf", pdf_standards=[_STANDARD])
        if not isinstance(pdf, bytes):
            raise TypeError("Typst returned no document")
        return pdf

    def _file(self, content: bytes, number: int) -> str:
        kind = "png" if content.startswith(b"\x89PNG") else "svg"
        name = f"{number}.{kind}"
        Path(self._folder.name, name).write_bytes(content)
        return name


def pages_of(content: bytes) -> int:
    """Count the pages of a PDF from Typst, which does not compress page objects."""
    return len(_PAGE.findall(content))


def plain(value: Any, file: Any, count: list[int] | None = None) -> Any:
    """Return `value`, nested structures, as JSON data with the type of each structure in `kind`.

    Texts become one line of characters that the fonts have; pictures become references by `file(content, number)`.
    """
    count = [0] if count is None else count
    if isinstance(value, Picture | bytes):
        count[0] += 1
        if isinstance(value, bytes):
            return file(value, count[0])
        words = {"caption": line(value.caption), "width": value.width}
        return {"kind": "Picture", "file": file(drawable(value.svg).encode(), count[0]), **words}
    if isinstance(value, Command):  # never cut, line breaks preserved
        lines = [line(component, keep=True) for component in value.command.splitlines()]
        return {"kind": "Command", "lines": lines, "purpose": line(value.purpose)}
    if isinstance(value, msgspec.Struct):
        names = (name for name in value.__struct_fields__ if name != "minor")  # paper has room
        fields = {name: plain(getattr(value, name), file, count) for name in names}
        return {"kind": type(value).__name__, **fields}
    if isinstance(value, list | tuple):
        return [plain(item, file, count) for item in value]
    return line(value) if isinstance(value, str) else value


def line(text: str, *, keep: bool = False) -> str:
    """Return `text` on one line in printable characters of the fonts; very long text is cut unless `keep` is set."""
    clean = printable(text, len(text)) if keep else printable(" ".join(text.split()), _LONGEST)
    return drawable(clean)


def drawable(text: str) -> str:
    """Return `text` in characters of the fonts, boxes for others; unmatched accents and joiners are dropped."""
    if text.isascii():
        return text
    return _NOT_ASCII.sub(lambda letter: _drawn(letter[0]), unicodedata.normalize("NFC", text))


@cache
def _drawn(letter: str) -> str:
    if unicodedata.category(letter) in _UNDRAWN:
        return ""
    return letter if ord(letter) in _letters() else "□"


@cache
def _letters() -> frozenset[int]:
    """Return the characters of DejaVu Sans, the last font of every text."""
    from matplotlib.ft2font import FT2Font  # noqa: PLC0415 (only for texts that are not ASCII)

    return frozenset(FT2Font(os.fspath(_dejavu() / "DejaVuSans.ttf")).get_charmap())


@cache
def _fonts() -> typst.Fonts:
    return typst.Fonts(include_system_fonts=False, font_paths=[_dejavu()])


def _dejavu() -> Path:
    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
    return Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf"
