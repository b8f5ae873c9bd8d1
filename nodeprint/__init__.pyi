from pathlib import Path

from nodeprint.interface.open_campaign import OpenCampaign

__all__ = ["__version__", "open"]

__version__: str

def open(campaign: str | Path) -> OpenCampaign:
    """A campaign for Python: its data, deviations, verdict and figures (docs/how-to/research.md).

    Raises NodeprintError if no campaign is there.
    """
