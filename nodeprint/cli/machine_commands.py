"""Commands about the inside of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeprint.cli.app import app
from nodeprint.cli.shared import (
    Format,
    Json,
    input_files,
    output_file,
    print_json,
    read_labels,
    say_origin,
    show,
    terminal_columns,
)


@app.command(epilog="Example: nodeprint topology --json")
def topology(
    root: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A captured root directory, or an archive of one (default: this machine)."),
    ] = None,
    xml: Annotated[Path | None, typer.Option(metavar="FILE", help="Read an XML file of lstopo instead.")] = None,
    cpuid: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Read CPUID dumps in hwloc's format instead.")
    ] = None,
    json: Json = False,
) -> None:
    """Print the position of every CPU in the machine.

    Prints socket, quadrant, CCD, CCX, NUMA node and core, and the source of each label.
    """
    from rich.console import Console

    from nodeprint.machine.topology import serialized
    from nodeprint.machine.topology.tree_text import as_text

    machine = read_labels(root, xml, cpuid)
    if json:
        print_json(serialized.as_json(machine))
        return
    say_origin(machine.machine.simulated)
    Console(highlight=False, width=terminal_columns()).print(as_text(machine))


@app.command(epilog="Example: nodeprint structure 'AMD EPYC 7773X.csv'")
def structure(
    file: Annotated[
        Path,
        typer.Argument(
            help="A latency matrix: a file of another tool, a record file, or a node's directory. - reads a pipe.",
            show_default=False,
        ),
    ],
    format: Format = None,
    root: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Compare the result with the labels of a root or survey.")
    ] = None,
    xml: Annotated[Path | None, typer.Option(metavar="FILE", help="Compare it with an XML file of lstopo.")] = None,
    cpuid: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Compare it with CPUID dumps in hwloc's format.")
    ] = None,
    pdf: Annotated[
        Path | None,
        typer.Option(callback=output_file, metavar="FILE", help="Draw the matrix, sorted by group, as PDF."),
    ] = None,
    svg: Annotated[Path | None, typer.Option(callback=output_file, metavar="FILE", help="Draw it as SVG.")] = None,
    json: Json = False,
) -> None:
    """Find CCXs, quadrants and sockets in a latency matrix.

    Uses the latencies only, not the labels, and reports irregularities. With a topology, compares the result with its
    labels.
    """
    from nodeprint import structure as structures
    from nodeprint.readers import matrix_file
    from nodeprint.report import matrix_files
    from nodeprint.report.text import structure_sentences
    from nodeprint.structure import printed_structure, quadrants

    pictures = matrix_files.check(pdf, svg)
    with input_files(file) as (kept,):
        source = matrix_file.read_matrix(kept, format)
    labels = read_labels(root, xml, cpuid) if root or xml or cpuid else source.topology
    of_matrix = structures.find(source.ns, source.cpus, labels, source.home_controlled)
    structure = structures.with_repetitions(of_matrix, source.differing)
    if pictures:
        drawn = matrix_files.of_structure(source, structure)
        matrix_files.write(drawn, pictures, file.name, simulated=source.simulated)
    blocks = quadrants.of_matrices(source.runs, source.cpus, labels, structure)
    if json:
        of_dies = [] if blocks is None else printed_structure.quadrant_table(blocks)
        print_json({"simulated": source.simulated, **structure.as_json(), "quadrants": of_dies})
        return
    say_origin(source.simulated)
    words = structure_sentences.placement_of_structure(source.ns, source.cpus, structure)
    words += structure_sentences.quadrant_sentences(blocks) if blocks is not None else []
    show(*filter(None, (structure_sentences.structure_summary(structure), *structure.lines(), *words)))
