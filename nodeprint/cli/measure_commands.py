"""Commands that measure, or report the state of a measurement."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeprint.campaign import derived
from nodeprint.cli.app import app
from nodeprint.cli.shared import Campaign, Json, leave_out, print_json, show
from nodeprint.errors import NodeprintError

if TYPE_CHECKING:
    from nodeprint.campaign.node_status import Status
    from nodeprint.settings.config_file import Config

_CONFIG = Path("config/config.yaml")


def _read_whole(campaign: Path) -> Collection[str]:
    """Return the nodes whose records a verdict has read without finding damage."""
    if not (campaign / derived.FLEET).is_dir():
        return ()
    from nodeprint.data.store import packing  # numpy, for those who have measured

    return packing.nodes_read_whole(campaign)


def check_call(settings: Config, config: Path, again: str, kernels: Path) -> Sequence[str]:
    """Raise NodeprintError if a configuration cannot be measured, as far as that is known without the campaign's lock.

    `settings` are those of the file `config`, and `kernels` is the directory of the built kernels. Returns the nodes of
    `again`.
    """
    from nodeprint.campaign import node_lists, plans, preparation
    from nodeprint.campaign.launchers import launcher_registry
    from nodeprint.judge import acceptance
    from nodeprint.settings import config as configuration

    launcher_registry.check(settings, config)
    plan = configuration.plan(settings)
    acceptance.check_limits(Path(settings.acceptance), [row.name for row in configuration.read_plan(plan)])
    names = node_lists.expand(again, "--again")
    plans.check(plan, kernels, config, here=launcher_registry.launcher(settings.launch).is_here)
    preparation.check(settings, names)
    return names


@app.command(epilog="Example: nodeprint discover --config config/config.yaml")
def discover(
    config: Annotated[Path, typer.Option(metavar="FILE", help="Configuration.")] = _CONFIG,
    again: Annotated[
        str, typer.Option(metavar="NODES", help="Measure these nodes in a new job, as in cn[001-004],gpu7.")
    ] = "",
    hashes: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="hashes.tsv of the built kernels. A job that began with other kernels is replaced by a new one.",
        ),
    ] = Path("kernels/build/hashes.tsv"),
) -> None:
    """Check the configuration and list the nodes.

    Writes the sample sheet of the campaign (nodes.tsv) and prints the directory of the campaign. Measures nothing.
    """
    from nodeprint.campaign import node_sheet as sheet
    from nodeprint.campaign import plans, preparation
    from nodeprint.campaign.launchers.launcher_registry import launcher
    from nodeprint.judge import acceptance
    from nodeprint.settings import config as configuration

    if config == _CONFIG and not config.exists():
        advice = "call it in the directory that has config/ (`nodeprint sources --to DIR` makes one), or specify a file"
        raise NodeprintError("there is no configuration", where=config, key="--config", advice=advice)
    settings = configuration.load(config)
    names = check_call(settings, config, again, hashes.parent)
    named = launcher(settings.launch)

    def is_available(name: str) -> bool:
        row = planned.get(name)
        return row is not None and not plans.unavailable(hashes.parent, row.kernel, row.arguments.split())

    planned = {row.name: row for row in configuration.read_plan(configuration.plan(settings)) if named.is_here}
    folder = preparation.prepare(
        settings,
        lambda: named.nodes(settings),
        names,
        preparation.read_hashes(hashes),
        _read_whole(configuration.campaign_folder(settings)),
        is_available,
    )
    acceptance.keep(Path(settings.acceptance), folder)
    plans.check_jobs(settings, sheet.read_sheet(folder / "nodes.tsv"), hashes.parent, config)
    typer.echo(folder)


@app.command(epilog="Example: nodeprint doctor")
def doctor(json: Json = False) -> None:
    """Check that this machine can be measured.

    Lists the required parts, the missing ones with a remedy. Exits with status 3 if it cannot be measured yet.
    """
    from nodeprint.machine import doctor as examination

    facts, warnings = examination.facts(), examination.warnings()
    printed = {"facts": facts, "warnings": warnings}
    print_json(printed) if json else show(*examination.lines(facts, warnings))
    if examination.missing(facts):
        raise typer.Exit(examination.NOT_YET)


@app.command(
    epilog="Examples: nodeprint status results/main --watch; "
    "nodeprint status results/main --node cn017 --fail-on not-same",
)
def status(
    campaign: Campaign,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until no node is running or queued.")] = False,
    json: Json = False,
    node: Annotated[
        str, typer.Option("--node", metavar="NAME", help="Show the state and the outcome of one node.")
    ] = "",
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="KIND,...",
            help="With --node: exit with status 3 for these outcomes (see `nodeprint judge --help`).",
        ),
    ] = "",
) -> None:
    """Show which nodes are measured, running or failed.

    Prints the state of each node, the reason, and the time left. Exits with status 0 if all nodes are measured, 3 while
    nodes are running or queued, and 1 otherwise.

    To check a node before you return it to service, use `--node NAME --fail-on not-same`. The status is 0 only if the
    last verdict on its newest job is SAME.
    """
    import time

    from nodeprint.campaign import node_status
    from nodeprint.report import text, verdict_files

    if fail_on and not node:
        raise NodeprintError(
            "it is for one node", key="--fail-on", advice="name one with --node, or use `nodeprint judge`"
        )
    if json:
        leave_out({"--watch": watch, "--node": node}, "it prints sentences", "leave --json out")
    if node:
        leave_out({"--watch": watch}, "it is for all nodes", "leave one of both out")
        _status_of(campaign, node, fail_on)
        return
    status = node_status.read(campaign)
    while watch and status.code == node_status.AT_WORK:
        typer.echo("\x1b[H\x1b[J" if sys.stdout.isatty() else "", nl=False)
        _show_status(status)
        time.sleep(2 if sys.stdout.isatty() else 60)
        status = node_status.read(campaign)
    try:
        judged = (campaign / "verdict.json").exists()
        warnings = text.memory_warnings(verdict_files.read_fleet(campaign)) if judged else []
    except NodeprintError as error:  # how its nodes stand is known without it
        warnings = [str(error)]
    if json:
        print_json(status.as_json() | {"warnings": warnings})
    else:
        _show_status(status, warnings)
    if status.code:
        raise typer.Exit(status.code)


def _show_status(status: Status, warnings: Sequence[str] = ()) -> None:
    """Print the state of the nodes of a campaign."""
    from nodeprint.report.pages.blocks import Table

    show(status.heading, *warnings, *([Table((), tuple(status.rows), "lll", 2)] if status.rows else []))
    if status.advice:
        show(status.advice)


def _status_of(campaign: Path, name: str, fail_on: str) -> None:
    """Print the state of a node and its outcome in the last verdict. Exit with status 3 for an outcome of `fail_on`.

    The outcome of a job without a verdict is NOT MEASURED.
    """
    from nodeprint.campaign import gathered, node_lists, node_status
    from nodeprint.campaign import node_sheet as sheet
    from nodeprint.campaign import preparation as campaigns
    from nodeprint.judge import outcome
    from nodeprint.report import text, verdict_files

    kinds = outcome.kinds(fail_on) if fail_on else ()
    rows = {row.node: row for row in sheet.read_sheet(campaign / "nodes.tsv")}
    if name not in rows:
        raise node_lists.unknown_node(name, rows, key="--node")
    standing = next(node for node in node_status.read(campaign).nodes if node.node == name)
    is_judged = (campaign / "verdict.json").exists() and gathered.is_of(
        campaigns.job_folder(campaign, rows[name]), campaign
    )
    verdict = verdict_files.read(campaign) if is_judged else None
    judged = verdict.nodes.get(name) if verdict else None
    result = judged.outcome if judged and standing.standing in node_status.JUDGED else outcome.Outcome.NOT_MEASURED
    reason = f" ({standing.reason})" if standing.reason else ""
    warnings = text.memory_warnings(verdict.fleet, name) if verdict else ()
    show(". ".join([f"{name}: {standing.standing}{reason}; {result}", *warnings]))
    if outcome.counts(kinds, [result]):
        raise typer.Exit(3)
