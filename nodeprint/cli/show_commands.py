"""Commands that show what was measured and judged, to people and to other programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from nodeprint.cli.app import app
from nodeprint.cli.shared import Campaign, Json, leave_out, output_directory, output_file, print_json, show_sections
from nodeprint.errors import CannotWriteError, printable
from nodeprint.settings.texts import say


@contextmanager
def _advised(advice: str) -> Iterator[None]:
    """What to do where the command cannot write into the campaign's folder."""
    try:
        yield
    except CannotWriteError as error:
        raise CannotWriteError(error.problem, advice=advice) from error


@app.command(epilog="Example: nodeprint report results/main --figures --pseudonyms")
def report(
    campaign: Campaign,
    figures: Annotated[
        bool, typer.Option("--figures", help="Also each figure of every node as SVG and PDF, its numbers as CSV.")
    ] = False,
    width: Annotated[
        float | None,
        typer.Option(
            max=1000,
            help="How wide these files are, in mm, 40 or more; 0, and without it: a column (88) or a page (180).",
        ),
    ] = None,
    style: Annotated[
        Path | None, typer.Option(help="A matplotlib style (*.mplstyle) for them, on top of the report's.")
    ] = None,
    pseudonyms: Annotated[
        bool,
        typer.Option(
            "--pseudonyms",
            help="For publication: nodes and racks are called N001 and R01, serial numbers are left out. Written into"
            " the campaign's folder `published`, or --to; pseudonyms.tsv in the campaign's folder says which node is"
            " which.",
        ),
    ] = False,
    nodes: Annotated[
        str | None,
        typer.Option(help="Only the PDFs of these nodes, whatever came of them, e.g. cn[001-004],gpu7."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(callback=output_directory, help="Another folder, as of a campaign that cannot be written."),
    ] = None,
) -> None:
    """Write the report of a judged campaign.

    Writes cluster.pdf (six pages at most), cluster.html with all tables and figures, the tables as CSV, and a PDF per
    node in which something was found; prints their paths. Where earlier campaigns lie beside it, the page of a node
    shows it over time.
    """
    from nodeprint.campaign import node_lists
    from nodeprint.history import courses
    from nodeprint.report import documents

    if not figures:
        leave_out({"--style": style, "--width": width is not None}, "is for files of figures", "add --figures")
    saved: Any = {
        "figures": figures,
        "figure_width": width or 0,
        "figure_style": style,
        "pseudonyms": pseudonyms,
        "over_time": None if pseudonyms else courses.beside(campaign),
    }
    elsewhere = "make it writable, or name another folder with `--to`"
    with nullcontext() if to or pseudonyms else _advised(elsewhere):
        if nodes is None:
            paths = documents.write(campaign, to, **saved)
        else:
            paths = documents.write_nodes(campaign, node_lists.expand(nodes, "--nodes"), to, **saved)
    for path in paths:
        typer.echo(path)


@app.command(epilog="Example: nodeprint verify results/main")
def verify(
    campaigns: Annotated[list[Path], typer.Argument(help="Judged campaigns.", show_default=False)],
    json: Json = False,
) -> None:
    """Check that judged campaigns are unchanged.

    Prints each file that is missing, changed or new, and then exits with status 3.
    """
    from nodeprint.data.store import manifest

    results: dict[str, object] = {}
    differ = False
    for campaign in campaigns:
        sealed = manifest.read(campaign)
        changes = manifest.changes(campaign, sealed)
        results[str(campaign)] = {"files": len(sealed.files), **changes}
        differ |= any(changes.values())
        if json:
            continue
        for kind, names in changes.items():
            for name in names:
                typer.echo(printable(f"{campaign / name}: {kind}", 500))
        if not any(changes.values()):
            typer.echo(say("commands", "as_judged", campaign=campaign, files=len(sealed.files)))
    if json:
        print_json(results)
    if differ:
        raise typer.Exit(3)


@app.command(epilog="Example: nodeprint show results/main")
def show(campaign: Campaign) -> None:
    """Print the result of a campaign and its PDF's path.

    Ends with 1 if it has no measured node or no PDF.
    """
    from nodeprint.report.pages import brief

    show_sections(brief.campaign(campaign))
    if not brief.is_complete(campaign):
        raise typer.Exit(1)


@app.command(epilog="Example: nodeprint protocol results/acceptance-1 results/acceptance-2 --to protocol")
def protocol(
    campaigns: Annotated[list[Path], typer.Argument(help="Judged campaigns, the oldest first.", show_default=False)],
    to: Annotated[
        Path, typer.Option(callback=output_directory, help="The folder that the protocol is written into.")
    ] = Path("protocol"),
) -> None:
    """Write the acceptance report of campaigns, to sign.

    What is suggested by the list of nodes (accepted, with reservations, rejected), reservations with remedy and
    deadline, tolerances and limits, racks and serial numbers, and MANIFEST.sha256 over all files.
    """
    from nodeprint.report import protocol as protocols

    for path in protocols.write(campaigns, to):
        typer.echo(path)


@app.command(epilog="Example: nodeprint export results/main --to deviations.csv --table deviations")
def export(
    campaign: Campaign,
    to: Annotated[
        Path | None,
        typer.Option(
            callback=output_file, help="A table as a file: a name that ends in .csv or .parquet.", show_default=False
        ),
    ] = None,
    hwloc: Annotated[bool, typer.Option("--hwloc", help="Write latencies and bandwidths in hwloc's XML.")] = False,
    table: Annotated[
        str,
        typer.Option(
            help="Which: the values of a measurement by its name, what else was recorded of them (details, such as "
            "seconds of writers and readers), messages between nodes, medians by class (classes), or deviations; the "
            "first measurement without.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Write what was measured and judged for other programs.

    Writes each measurement as netCDF into the campaign's folder export; with --to a table; with --hwloc the topology of
    each node as hwloc.xml, with distances and memory attributes as lstopo and hwloc's functions read them.
    """
    if hwloc:
        leave_out({"--to": to, "--table": table}, "a table is written without --hwloc", "call it twice")
    if to is None:
        leave_out({"--table": table}, "it is written into a file", "name one with --to FILE.csv")
    if hwloc:
        from nodeprint.summary import hwloc_export

        with _advised("make it writable, or work in a copy of the campaign"):
            for path in hwloc_export.export(campaign):
                typer.echo(path)
        return
    from nodeprint.interface import export as tables

    if to is None:
        with _advised("make it writable, or write a table elsewhere with `--to`"):
            for path in tables.write_datasets(campaign):
                typer.echo(path)
        return
    typer.echo(tables.write(campaign, to, table))
