"""The fingerprint of every node of a cluster, and whether identically configured nodes really are the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodeprint.interface.open_campaign import OpenCampaign

__all__ = ["__version__", "open"]

__version__ = "0.1.0"


def open(campaign: str | Path) -> OpenCampaign:
    """A campaign for Python: its data, deviations, verdict and figures (docs/how-to/research.md).

    Raises NodeprintError where no campaign is there.
    """
    from nodeprint.campaign import derived  # noqa: PLC0415 (the command line imports this package for its version)
    from nodeprint.errors import NodeprintError, unreadable  # noqa: PLC0415
    from nodeprint.interface.arguments import check  # noqa: PLC0415
    from nodeprint.interface.open_campaign import OpenCampaign  # noqa: PLC0415

    check(campaign, Path, "campaign")
    folder = Path(campaign)
    try:
        is_there = (folder / "nodes.tsv").is_file() or (folder / derived.FLEET).is_dir()
    except OSError as error:  # a name that is too long
        raise unreadable(folder, error) from error
    if not is_there:
        raise NodeprintError("no campaign is there", where=folder, advice="name a folder that holds nodes.tsv")
    return OpenCampaign(folder)
