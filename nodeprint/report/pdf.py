"""Pages to PDF through Typst: templates stay as they are, and what they show reaches them as data, never as markup.

A host name or a BIOS string is a value of a JSON file that the template reads, so Typst has no way to take it for code.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

import matplotlib
import typst

from nodeprint.report.pages import ClusterPage, NodePage, line, plain, title

TEMPLATES = Path(__file__).parent / "templates"

#: Words longer than this may be broken, after signs that separate, and where there are none after so many characters.
_UNBROKEN = 24
_PIECE = re.compile(r".{3,23}?[,/=:;](?=.)|.{1,24}")
_BREAK = "\u200b"


class Printer(AbstractContextManager["Printer"]):
    """A Typst compiler with the report's templates and fonts, for any number of documents.

    The fonts are Typst's own and matplotlib's DejaVu, never the system's: the same pages on every machine.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="nodeprint-report-")
        root = Path(self._folder.name)
        for template in TEMPLATES.glob("*.typ"):
            shutil.copy(template, root)
        dejavu = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        fonts = typst.Fonts(include_system_fonts=False, font_paths=[dejavu])
        self._compiler = typst.Compiler(root / "report.typ", root=root, font_paths=fonts, ignore_system_fonts=True)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def pdf(self, cluster: ClusterPage | None, nodes: Sequence[NodePage]) -> bytes:
        """The document of a cluster's pages (if any) and those of `nodes`; the same bytes for the same pages."""
        root = Path(self._folder.name)
        images: dict[bytes, str] = {}

        def image(content: bytes) -> str:
            kind = "png" if content.startswith(b"\x89PNG") else "svg"
            return images.setdefault(content, f"{len(images)}.{kind}")

        data = plain({"cluster": cluster, "nodes": list(nodes)}, breakable, image)
        data["title"] = title(cluster, nodes)
        for content, name in images.items():
            (root / name).write_bytes(content)
        (root / "data.json").write_text(json.dumps(data), encoding="utf-8")
        pdf = self._compiler.compile(format="pdf")
        for name in images.values():
            (root / name).unlink()
        if not isinstance(pdf, bytes):
            raise TypeError("Typst returned no document")
        return pdf


def breakable(text: str) -> str:
    """`text` as `pages.line` has it, with places where a very long word may be broken."""
    return " ".join(
        _BREAK.join(_PIECE.findall(word)) if len(word) > _UNBROKEN else word for word in line(text).split(" ")
    )
