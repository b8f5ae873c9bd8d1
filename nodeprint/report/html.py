"""Pages to one HTML file that needs nothing beside it: what the PDF shows, painted by Jinja2 with inline SVG."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import jinja2

from nodeprint.report.pages import ClusterPage, NodePage, line, plain, title


def page(cluster: ClusterPage | None, nodes: Sequence[NodePage]) -> str:
    """The HTML of a cluster's page (if any) and those of `nodes`, every string escaped; the same text each time."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nodeprint.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    data = plain({"cluster": cluster, "nodes": list(nodes)}, line, _inline)
    return environment.get_template("report.html").render(data, title=title(cluster, nodes))


def _inline(content: bytes) -> str:
    kind = "png" if content.startswith(b"\x89PNG") else "svg+xml"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
