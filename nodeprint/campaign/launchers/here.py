"""This machine, without a scheduler: Snakemake itself starts node-run."""

from __future__ import annotations

from nodeprint.campaign import node_sheet
from nodeprint.campaign.launchers.launcher import Launcher
from nodeprint.campaign.node_sheet import Node
from nodeprint.settings.config_file import Config


class HereLauncher(Launcher):
    """Measures this machine."""

    name, title = "here", "this machine"
    is_here = True

    def nodes(self, config: Config) -> list[Node]:
        return [node_sheet.local()]
