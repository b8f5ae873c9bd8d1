"""Commands about the inside of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeprint.cli.app import MACHINES, app
from nodeprint.cli.shared import Format, Json, input_files, leave_out, print_json, print_text, say_origin

if TYPE_CHECKING:  # the labels take a tenth of a second to import
    from nodeprint.machine.topology.model import Topology


def _topology(root: Path | None, xml: Path | None, cpuid: Path | None) -> Topology:
    from nodeprint.machine import topology as labels
    from nodeprint.machine.tree import open_tree

    given: dict[str, object] = {"--root": root, "--xml": xml, "--cpuid": cpuid}
    *first, _ = [option for option, path in given.items() if path] or [""]
    leave_out(dict.fromkeys(first, True), "one source of labels is read, and there are several", "leave it out")
    if xml:
        return labels.read_xml(xml)
    return labels.read_cpuid(cpuid) if cpuid else labels.read(open_tree(root or Path("/")))


@app.command(rich_help_panel=MACHINES, epilog="Example: nodeprint topology --json")
def topology(
    root: Annotated[
        Path | None, typer.Option(help="A live or captured root, or an archive of one; without it, this machine's.")
    ] = None,
    xml: Annotated[Path | None, typer.Option(help="An XML file of lstopo instead.")] = None,
    cpuid: Annotated[Path | None, typer.Option(help="A folder of CPUID dumps in hwloc's format instead.")] = None,
    json: Json = False,
) -> None:
    """Print where every CPU is.

    Its socket, quadrant, CCD, CCX, NUMA node and core, and where each label comes from.
    """
    from nodeprint.machine import topology as labels
    from nodeprint.machine.topology.text import as_text

    machine = _topology(root, xml, cpuid)
    if json:
        print_json(labels.as_json(machine))
        return
    say_origin(machine.machine.simulated)
    print_text(as_text(machine))


@app.command(rich_help_panel=MACHINES, epilog="Example: nodeprint structure 'AMD EPYC 7773X.csv'")
def structure(
    file: Annotated[
        Path,
        typer.Argument(
            help="A matrix: a file of another tool, a record file, a node's folder or its node.nc; - reads a pipe."
        ),
    ],
    format: Format = None,
    root: Annotated[Path | None, typer.Option(help="Compare it with the labels of this root or survey.")] = None,
    xml: Annotated[Path | None, typer.Option(help="Or of this XML file of lstopo.")] = None,
    cpuid: Annotated[Path | None, typer.Option(help="Or of this folder of CPUID dumps.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Draw the matrix in the order of its groups into this PDF.")] = None,
    svg: Annotated[Path | None, typer.Option(help="The same as SVG.")] = None,
    json: Json = False,
) -> None:
    """Find CCXs, quadrants and sockets in a latency matrix.

    The labels are not used; with a topology the result is compared with them. Irregularities are reported.
    """
    from nodeprint import structure as structures
    from nodeprint.readers import matrix_source
    from nodeprint.report import matrix_files, placement_words, quadrant_words, structure_words
    from nodeprint.structure import quadrants

    pictures = matrix_files.check(pdf, svg)
    with input_files(file) as (kept,):
        source = matrix_source.read_source(kept, format)
    labels = _topology(root, xml, cpuid) if root or xml or cpuid else source.topology
    of_matrix = structures.find(source.latency_ns, source.cpus, labels, source.home_controlled)
    structure = structures.with_repetitions(of_matrix, source.differing)
    if pictures:
        drawn = matrix_files.of_structure(source, structure)
        matrix_files.write(drawn, pictures, file.name, simulated=source.simulated)
    blocks = quadrants.of_matrices(source.of_runs, source.cpus, labels, structure)
    if json:
        of_dies = [] if blocks is None else quadrant_words.table(blocks)
        print_json({"simulated": source.simulated, **structure.as_json(), "quadrants": of_dies})
        return
    say_origin(source.simulated)
    words = placement_words.of_structure(source.latency_ns, source.cpus, structure)
    words += quadrant_words.sentences(blocks) if blocks is not None else []
    print_text("\n".join(filter(None, (structure_words.summary(structure), structure.as_text(), *words))))


@app.command(rich_help_panel=MACHINES, epilog="Example: nodeprint iodie results/main/nodes/cn017")
def iodie(
    where: Annotated[
        list[Path],
        typer.Argument(
            help="A node's folder below nodes/, a campaign, or files of one machine: records with --detail, or tables "
            "of core-to-core-latency with a row for each pair and address.",
            show_default=False,
        ),
    ],
    root: Annotated[Path | None, typer.Option(help="A captured root, for the labels of files.")] = None,
    xml: Annotated[Path | None, typer.Option(help="XML of lstopo, for the labels of files.")] = None,
    cpuid: Annotated[Path | None, typer.Option(help="CPUID dumps of hwloc, for the labels of files.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Write floor plans and tables as pages into this file.")] = None,
    json: Json = False,
) -> None:
    """Map the I/O dies of a node from its hops.

    From records of coherence with --detail: clusters of cache lines, where CCDs and memory are relative to each other,
    and the latency of each part of a path; or why there is no map, and the detection limit (docs/iodie.md).
    """
    from nodeprint.iodie import campaign_dies

    folder = len(where) == 1 and where[0].is_dir()
    if folder:
        given: dict[str, object] = {"--root": root, "--xml": xml, "--cpuid": cpuid}
        leave_out(given, f"it is for files, and {where[0]} has its labels", "leave it out")
    labels = _topology(root, xml, cpuid) if root or xml or cpuid else None
    with input_files(*where) as kept:
        dies = campaign_dies.read(kept[0]) if folder else campaign_dies.of_files(kept, labels)
    if pdf is not None:
        from nodeprint.report.pages import die_pages

        die_pages.write(dies, where[0].resolve().name, pdf)
    if json:
        print_json(dies.as_json())
        return
    say_origin(dies.simulated)
    typer.echo(dies.as_text())
