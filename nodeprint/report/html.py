"""Render documents as one self-contained HTML file: the content of the PDF, through Jinja2, and the explorer."""

from __future__ import annotations

import base64
from typing import Any

import jinja2
from markupsafe import Markup

from nodeprint.errors import printable
from nodeprint.report.figures.style import load
from nodeprint.report.pages.blocks import Document, Picture
from nodeprint.settings import sources

#: Pixels of a mm of a figure: its smallest letters, of 6 points, are 11 pixels then.
_SCALE = 5.2


def page(document: Document, explorer: str = "") -> str:
    """Return the HTML of a document, deterministic and with every string escaped; `explorer` is its data as JSON, if
    any."""
    folder = sources.folder() / "reports"
    strict: dict[str, Any] = {"autoescape": True, "undefined": jinja2.StrictUndefined, "finalize": _clean}
    loader = jinja2.FileSystemLoader(folder)
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, **strict)
    environment.filters |= {
        "drawing": _drawing,
        "kind": lambda block: type(block).__name__,
        "uri": _uri,
        "lines": _lines,
    }
    style = load()
    # characters that could end the script become equivalent JSON escapes
    safe = explorer.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    ours = {name: Markup((folder / name).read_text(encoding="utf-8")) for name in ("report.css", "explorer.js")}
    values = {"explorer": Markup(safe), "style": ours["report.css"], "script": ours["explorer.js"]}
    colors = {"colors": style.on_paper, "dark": style.on_dark}
    return environment.get_template("report.html").render(document=document, **colors, **values)


def _clean(value: Any) -> Any:
    return printable(value, 20_000) if isinstance(value, str) and not isinstance(value, Markup) else value


def _drawing(picture: Picture) -> Markup:
    """Return a figure's SVG as an element with alternative text; the SVG's own text is already escaped."""
    opened = Markup('<svg role="img" aria-label="{}" style="width:{}px" ').format(
        printable(picture.caption, 600), round(picture.width * _SCALE)
    )
    return opened + Markup(picture.svg[picture.svg.index("<svg") + len("<svg ") :])


def _lines(command: str) -> Markup:
    return Markup("\n").join(printable(line, len(line)) for line in command.splitlines())


def _uri(content: bytes) -> str:
    kind = "png" if content.startswith(b"\x89PNG") else "svg+xml"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
