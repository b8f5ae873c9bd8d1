"""The command that measures this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeprint.cli.app import app
from nodeprint.cli.shared import Json, output_file, print_json, show_sections
from nodeprint.settings.texts import say


@app.command(epilog="Example: nodeprint here --pdf matrix.pdf")
def here(
    csv: Annotated[
        Path | None,
        typer.Option(
            callback=output_file,
            metavar="FILE",
            help="Write the median of each pair as a table: cpu_a, cpu_b, latency_ns.",
        ),
    ] = None,
    pdf: Annotated[
        Path | None, typer.Option(callback=output_file, metavar="FILE", help="Write the matrix as PDF.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(callback=output_file, metavar="FILE", help="Write the matrix as SVG.")
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="KIND,...",
            help="Exit with status 3 for these outcomes: not-measured, invalid or not-same.",
            show_default=False,
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Compare the results with those of a fleet (`nodeprint baseline export`)."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure this machine, in half a minute.

    Measures core-to-core latency, memory latency, bandwidth and clock. Takes two minutes on 256 CPUs.

    Prints the matrix, medians, labels, background load, and the values of published machines with the same processor.
    If you interrupt it, the next call resumes.
    """
    from rich.console import Console

    from nodeprint import files
    from nodeprint.here import measure, result, view
    from nodeprint.judge import outcome
    from nodeprint.report import matrix_files
    from nodeprint.summary import fleet_reference
    from nodeprint.summary.node_summary import pairs_csv

    kinds = outcome.kinds(fail_on) if fail_on is not None else ()
    fleet = fleet_reference.read(reference) if reference is not None else None
    pictures = matrix_files.check(pdf, svg)
    console = Console(stderr=True, highlight=False)
    folder = measure.prepare(measure.cache())
    with console.status("starting") as status:

        def show(measurement: str, run: str) -> None:
            status.update(f"measuring {view.shown(measurement)}, run {run}")

        try:
            measure.measure(folder, show)
        except KeyboardInterrupt:
            typer.echo(say("commands", "stopped", folder=folder), err=True)
            raise typer.Exit(130) from None
    measured = result.read(folder, fleet)
    if csv and measured.summary.matrix is not None:
        typer.echo(files.write(csv, pairs_csv(measured.summary.matrix)), err=True)
    if pictures and measured.summary.matrix is not None:
        name = measured.summary.processor.name
        for path in matrix_files.write(matrix_files.of_summary(measured.summary.matrix), pictures, name):
            typer.echo(path, err=True)
    print_json(measured) if json else show_sections(view.sections(measured))
    if outcome.counts(kinds, [measured.outcome]):
        raise typer.Exit(3)
