"""Commands that show measurements and verdicts to people and to other programs."""

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
    """Add advice to the error of a directory that cannot be written."""
    try:
        yield
    except CannotWriteError as error:
        raise CannotWriteError(error.problem, advice=advice) from error


@app.command(epilog="Example: nodeprint report results/main --figures --pseudonyms")
def report(
    campaign: Campaign,
    figures: Annotated[
        bool,
        typer.Option("--figures", help="Also write each figure of every node as SVG and PDF, and its numbers as CSV."),
    ] = False,
    width: Annotated[
        float | None,
        typer.Option(
            metavar="MM",
            help="Width of these figures in mm, 40 to 1000. The default (0) is a column (88) or a page (180).",
        ),
    ] = None,
    style: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Matplotlib style (*.mplstyle) for these figures, on top of the default."),
    ] = None,
    pseudonyms: Annotated[
        bool,
        typer.Option(
            "--pseudonyms",
            help="For publication: replace nodes and racks by N001 and R01, and omit serial numbers. Writes to the"
            " directory `published` of the campaign, or --to. pseudonyms.tsv in the campaign lists the real names.",
        ),
    ] = False,
    nodes: Annotated[
        str | None,
        typer.Option(metavar="NODES", help="Write only the node reports of these nodes, as in cn[001-004],gpu7."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            callback=output_directory, metavar="DIR", help="Write to this directory (default: report in the campaign)."
        ),
    ] = None,
) -> None:
    """Write the report of a judged campaign.

    Writes cluster.pdf (six pages at most), cluster.html with all tables and figures, and the tables as CSV. Each node
    with findings has its own PDF. Prints the paths. If earlier campaigns lie in the same directory, a node report shows
    the node over time.
    """
    from nodeprint.campaign import node_lists
    from nodeprint.history import courses
    from nodeprint.report import documents

    if not figures:
        leave_out({"--style": style, "--width": width is not None}, "is for figures as files", "add --figures")
    saved: Any = {
        "figures": figures,
        "figure_width": width or 0,
        "figure_style": style,
        "pseudonyms": pseudonyms,
        "over_time": None if pseudonyms else courses.beside(campaign),
    }
    elsewhere = "make it writable, or specify another directory with `--to`"
    with nullcontext() if to or pseudonyms else _advised(elsewhere):
        named = None if nodes is None else node_lists.expand(nodes, "--nodes")
        paths = documents.write(campaign, to, nodes=named, **saved)
    for path in paths:
        typer.echo(path)


@app.command(epilog="Example: nodeprint verify results/main")
def verify(
    campaigns: Annotated[
        list[Path], typer.Argument(metavar="CAMPAIGN...", help="Judged campaigns.", show_default=False)
    ],
    json: Json = False,
) -> None:
    """Check that judged campaigns are unchanged.

    Prints each file that is missing, changed or new since the verdict, and then exits with status 3.
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
    """Print the result of a campaign and the path of its PDF.

    Exits with status 1 if no node is measured or the PDF is missing.
    """
    from nodeprint.report.pages import brief

    show_sections(brief.campaign(campaign))
    if not brief.is_complete(campaign):
        raise typer.Exit(1)


@app.command(epilog="Example: nodeprint protocol results/acceptance-1 results/acceptance-2 --to protocol")
def protocol(
    campaigns: Annotated[list[Path], typer.Argument(help="Judged campaigns, the oldest first.", show_default=False)],
    to: Annotated[
        Path, typer.Option(callback=output_directory, metavar="DIR", help="Directory of the acceptance report.")
    ] = Path("protocol"),
) -> None:
    """Write the acceptance report of campaigns, to sign.

    It suggests a decision (accepted, accepted with reservations, not decided, rejected). It lists open items with
    remedy and deadline, tolerances and limits, racks and serial numbers. MANIFEST.sha256 has the hashes of all files.
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
            callback=output_file,
            metavar="FILE",
            help="Write one table (see --table) to this file. The name ends in .csv or .parquet.",
            show_default=False,
        ),
    ] = None,
    hwloc: Annotated[
        bool, typer.Option("--hwloc", help="Write topology, latencies and bandwidths as XML of hwloc.")
    ] = False,
    table: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The table of --to: a measurement by its name, such as coherence-cas (default: the first one). Or "
            "details (other recorded values), messages (between nodes), classes (medians by class), or deviations.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Write measurements and deviations for other programs.

    Without options, writes each measurement as netCDF into the directory `export` of the campaign. With --to, writes
    one table. With --hwloc, writes hwloc.xml for each node, with distances and memory attributes for lstopo and hwloc.
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
