"""Commands over several campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeprint.cli.app import JUDGE, app
from nodeprint.cli.shared import Json, print_json, print_text, say_origin


@app.command(rich_help_panel=JUDGE, epilog="Example: nodeprint history results; nodeprint history results/week* --json")
def history(
    campaigns: Annotated[
        list[Path] | None,
        typer.Argument(help="Judged campaigns, or folders of them; without any `results`.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Print which parts of which nodes changed, and since when.

    Over all judged campaigns: the level of every part of every node, where it changed by its bound or more, and what
    changed in the node's configuration at that time.
    """
    from nodeprint.history import changes, text
    from nodeprint.history import series as over_time

    judged = over_time.campaigns(campaigns or [Path("results")])
    histories = changes.histories(over_time.series(judged), judged)
    simulated = any(campaign.verdict.simulated for campaign in judged)
    if json:
        names = [campaign.verdict.campaign for campaign in judged]
        print_json({"simulated": simulated, "campaigns": names, "nodes": histories})
        return
    say_origin(simulated)
    print_text(text.as_text(histories, len(judged)))
