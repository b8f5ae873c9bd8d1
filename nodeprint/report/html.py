"""Pages to one HTML file that needs nothing beside it: what the PDF shows, painted by Jinja2, and the explorer."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from nodeprint import sources
from nodeprint.report.old_figures import Figure
from nodeprint.report.pages import Page, Site, line, plain, title
from nodeprint.report.svg import svg


def page(pages: Sequence[Page], site: Site | None = None, explorer: str = "") -> str:
    """The HTML of `pages`, every string escaped; the same text each time. `explorer` is its data as JSON, if any."""
    import jinja2  # noqa: PLC0415 (a fifth of a second, which the pages do not need)
    from markupsafe import Markup  # noqa: PLC0415

    folder = sources.folder() / "reports"
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    data = plain(
        {"pages": list(pages), "site": site or Site()}, line, _uri, lambda one: {"drawing": Markup(_drawing(one))}
    )
    # what could end the script is written as an escape of JSON, which means the same
    safe = explorer.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    ours = {name: Markup((folder / name).read_text(encoding="utf-8")) for name in ("report.css", "explorer.js")}
    return environment.get_template("report.html").render(
        data, title=title(pages), explorer=Markup(safe), style=ours["report.css"], script=ours["explorer.js"]
    )  # fmt: skip


def _drawing(figure: Figure) -> str:
    """A figure's SVG as an element of the page, with what it shows in words. All text in it is escaped by `svg`."""
    said = escape(line(figure.alt))
    words = f'<svg role="img" aria-label="{said}" style="width:{figure.drawing.width:.1f}mm" '
    return svg(figure.drawing).decode().replace("<svg ", words, 1)


def _uri(content: bytes) -> str:
    kind = "png" if content.startswith(b"\x89PNG") else "svg+xml"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
