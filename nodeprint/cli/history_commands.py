"""Commands over several campaigns."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from nodeprint.cli.app import JUDGE, MEASURE, app
from nodeprint.cli.shared import Json, print_json, print_text, say_origin
from nodeprint.errors import NodeprintError
from nodeprint.settings.texts import say


@app.command(rich_help_panel=JUDGE, epilog="Example: nodeprint since results/before results/after")
def since(
    campaigns: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Judged campaigns, or folders of them, such as a baseline; without any `results`.", show_default=False
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            help="Also write a page with the course of each node over time: a name that ends in .html or .pdf."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Draw the matrices of two campaigns beside each other on one scale, into this folder (SVG, PDF, CSV);"
            " of campaigns without a common node, such as two parts, the first node of each."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print which parts of which nodes changed, and when.

    Between two jobs of a campaign, two campaigns, or over a year of them: the level of every part of every node, where
    it changed by more than its tolerance, and what changed in the node's configuration at that time.
    """
    from nodeprint.history import change_sentences, changes, selection
    from nodeprint.settings import config as configuration

    folders = campaigns or [Path("results")]
    # Path.resolve raises RuntimeError where links go round
    if len({os.path.realpath(folder) for folder in folders}) < len(folders):
        raise NodeprintError("is named twice", where=folders[-1], advice="name another campaign, or one alone")
    if figures is not None and len(folders) != 2:
        raise NodeprintError("draws two campaigns", key="--figures", advice="name two")
    selected = selection.of_one_machine(selection.campaigns(folders))
    judged = selected.judged
    histories = changes.histories(selected)
    apart = configuration.plans_apart(judged[0].folder, judged[-1].folder)
    if page is not None:
        from nodeprint.history import page as pages

        pages.write(page, histories)
    drawn: list[Path] = []
    if figures is not None:
        from nodeprint.report import beside

        drawn = beside.write(folders, figures, [history.node for history in histories.nodes if history.changes])
    simulated = any(campaign.simulated for campaign in judged)
    if json:
        names = [campaign.name for campaign in judged]
        facts = {"simulated": simulated, "campaigns": names, "left_out": histories.left_out, "nodes": histories.nodes}
        facts |= {"common": histories.common.changes if histories.common is not None else ()}
        facts |= {"copies": histories.copies, "arguments_differ": apart}
        facts |= {"other_machines": histories.other_machines.to_dict("records")}
        print_json(facts)
        return
    say_origin(simulated)
    print_text(change_sentences.as_text(histories))
    for name, (old, new) in apart.items():
        typer.echo(say("commands", "other_arguments", measurement=name, old=old, new=new))
    for path in drawn:
        typer.echo(path)
    if page is not None:
        typer.echo(f"page: {page}")


@app.command(rich_help_panel=MEASURE, epilog="Example: make run NODES=$(nodeprint next --hours 2)")
def next(
    hours: Annotated[float, typer.Option(min=0, help="Node hours to spend: ten nodes of 12 minutes are two.")],
    config: Annotated[Path, typer.Option(help="The configuration, whose campaign is measured.")] = Path(
        "config/config.yaml"
    ),
    json: Json = False,
) -> None:
    """Print which nodes to measure in the time there is.

    A node list for `make run NODES=...`: nodes never measured, of another configuration than before, suspicious, then
    those measured longest ago, and two that are the same beside them. With Slurm only idle nodes. The reasons are on
    stderr.
    """
    from nodeprint.campaign import node_lists, node_sheet, plans, slurm
    from nodeprint.history import change_sentences, changes, next_nodes, selection
    from nodeprint.settings import config as configuration

    settings = configuration.load(config)
    folder = configuration.campaign_folder(settings)
    sheet = [node for node in node_sheet.read_sheet(folder / "nodes.tsv") if node.measure]
    if settings.launch == "slurm":
        idle = {node.node for node in slurm.find(settings.slurm) if node.state == "idle"}
        sheet = [node for node in sheet if node.node in idle]
    plan, kernels = configuration.plan(settings), Path("kernels/build")
    seconds = plans.seconds_of(settings, plan, sheet, kernels)
    selected = changes.Histories(())
    if any(folder.parent.glob("*/verdict.json")):
        selected = selection.campaigns([folder.parent])
    alike = selection.of_one_machine(selected)
    histories = changes.histories(alike).nodes if alike.judged else ()
    chosen = next_nodes.choose(seconds, selected.judged, histories, 3600 * hours)
    if seconds and chosen.empty:
        least = min(seconds.values()) / 3600
        raise NodeprintError(
            f"a node takes {least:.2f} hours", key="--hours", advice="give more, or choose `preset: quick`"
        )
    if json:
        print_json({"nodes": chosen.to_dict("records")})
        return
    typer.echo(change_sentences.reasons(chosen), err=True)
    typer.echo(node_lists.fold(chosen["node"]))
