"""What the site adds to its reports, from the campaign's configuration."""

from __future__ import annotations

from pathlib import Path

from nodeprint.errors import NodeprintError, unreadable
from nodeprint.report.pages.blocks import SiteTexts
from nodeprint.settings import config
from nodeprint.settings.config_file import Site

_TEXTS = ("contact", "contract", "customer", "supplier", "system", "place")


def of(campaign: Path) -> SiteTexts:
    """The logo and texts of the campaign's `site` keys; empty where it has no configuration.

    Raises NodeprintError where the logo cannot be read, or is neither PNG nor SVG.
    """
    path = campaign / "config.yaml"
    site = config.kept(campaign).site if path.is_file() else Site()
    texts = {key: getattr(site, key) for key in _TEXTS}
    return SiteTexts(_image(site.logo, path) if site.logo else None, **texts)


def _image(logo: str, config_path: Path) -> bytes:
    try:
        content = Path(logo).read_bytes()
    except OSError as error:
        raise unreadable(Path(logo), error) from error
    if not content.startswith(b"\x89PNG") and b"<svg" not in content[:2000]:
        advice = f"name a PNG or SVG file at site.logo of {config_path}"
        raise NodeprintError("is neither PNG nor SVG", where=Path(logo), key="site.logo", advice=advice)
    return content
