"""Commands that compare campaigns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeprint.cli.app import app
from nodeprint.cli.shared import Json, output_directory, output_file, print_json, say_origin, show
from nodeprint.errors import NodeprintError
from nodeprint.settings.texts import say

if TYPE_CHECKING:
    from nodeprint.history.changes import Histories


Campaigns = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Judged campaigns, or directories of them, such as a baseline (default: results).", show_default=False
    ),
]


@app.command(epilog="Example: nodeprint diff results/before results/after")
def diff(
    before: Annotated[
        Path,
        typer.Argument(help="A judged campaign, or a directory of campaigns, such as a baseline.", show_default=False),
    ],
    after: Annotated[Path, typer.Argument(help="The judged campaign to compare with it.", show_default=False)],
    figures: Annotated[
        Path | None,
        typer.Option(
            callback=output_directory,
            metavar="DIR",
            help="Draw the matrices of both side by side on one scale, as SVG, PDF and CSV. If no node is in both"
            " campaigns, draw the first node of each.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare the nodes of two campaigns.

    Prints, by node, each component that changed by more than its tolerance, and the changed settings.
    """
    compared = _changes([before, after])
    drawn: list[Path] = []
    if figures is not None:
        from nodeprint.report import beside

        drawn = beside.write([before, after], figures, [node.node for node in compared.histories.nodes if node.changes])
    _print_changes(compared, json=json)
    for path in drawn if not json else ():
        typer.echo(path)


@app.command(epilog="Example: nodeprint history results --page history.html")
def history(
    campaigns: Campaigns = None,
    page: Annotated[
        Path | None,
        typer.Option(
            callback=output_file,
            metavar="FILE",
            help="Also write a page with a curve for each node. The name ends in .html or .pdf.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print which components changed, and when.

    Reads the jobs of one campaign, or the campaigns of a year. Prints when a component changed by more than its
    tolerance, and the settings of the node that changed at that time.
    """
    compared = _changes(campaigns or [Path("results")])
    if page is not None:
        from nodeprint.history import page as pages

        pages.write(page, compared.histories)
    _print_changes(compared, json=json)
    if page is not None and not json:
        typer.echo(f"page: {page}")


@dataclass(frozen=True)
class _Changes:
    """Changes over campaigns: names, histories of nodes, and arguments that differ between the first and the last."""

    names: Sequence[str]
    simulated: bool
    histories: Histories
    arguments: Mapping[str, tuple[str, str]]


def _changes(folders: Sequence[Path]) -> _Changes:
    """Read what changed over campaigns. Raises NodeprintError if a campaign is given twice."""
    from nodeprint.history import changes, selection
    from nodeprint.settings import config as configuration

    # Path.resolve raises RuntimeError where links go round
    if len({os.path.realpath(folder) for folder in folders}) < len(folders):
        raise NodeprintError("is named twice", where=folders[-1], advice="name another campaign, or one alone")
    selected = selection.of_one_machine(selection.campaigns(folders))
    judged = selected.judged
    return _Changes(
        [campaign.name for campaign in judged],
        any(campaign.simulated for campaign in judged),
        changes.histories(selected),
        configuration.plans_apart(judged[0].folder, judged[-1].folder),
    )


def _print_changes(compared: _Changes, *, json: bool) -> None:
    from nodeprint.history import change_sentences

    histories = compared.histories
    if json:
        facts = {"simulated": compared.simulated, "campaigns": compared.names}
        facts |= {"left_out": histories.left_out, "nodes": histories.nodes}
        facts |= {"common": histories.common.changes if histories.common is not None else ()}
        facts |= {"copies": histories.copies, "arguments_differ": compared.arguments}
        facts |= {"other_machines": histories.other_machines.to_dict("records")}
        print_json(facts)
        return
    say_origin(compared.simulated)
    show(*change_sentences.page(histories))
    for name, (old, new) in compared.arguments.items():
        show(say("commands", "other_arguments", measurement=name, old=old, new=new))


@app.command(epilog="Example: make run NODES=$(nodeprint next --hours 2)")
def next(
    hours: Annotated[
        float, typer.Option(min=0, metavar="H", help="Node hours to spend: ten nodes of 12 minutes take two.")
    ],
    config: Annotated[Path, typer.Option(metavar="FILE", help="Configuration of the campaign.")] = Path(
        "config/config.yaml"
    ),
    json: Json = False,
) -> None:
    """Select the nodes to measure in the time you have.

    Prints a node list for `make run NODES=...`. Nodes that were never measured come first. Nodes with a new
    configuration, suspicious nodes and those measured longest ago follow. Two nodes that match their peers are added as
    control nodes. With Slurm, only idle nodes are selected. Standard error has the reasons.
    """
    from nodeprint.campaign import node_lists, node_sheet, plans
    from nodeprint.campaign.launchers.launcher_registry import launcher
    from nodeprint.history import change_sentences, changes, next_nodes, selection
    from nodeprint.settings import config as configuration

    settings = configuration.load(config)
    folder = configuration.campaign_folder(settings)
    sheet = [node for node in node_sheet.read_sheet(folder / "nodes.tsv") if node.measure]
    idle = launcher(settings.launch).idle_nodes(settings)
    if idle is not None:
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
