"""The command that maps I/O dies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeprint.cli.shared import Json, input_files, leave_out, output_file, print_json, read_labels, say_origin, show

commands = typer.Typer()


@commands.command(epilog="Example: nodeprint iodie results/main/nodes/cn017")
def iodie(
    where: Annotated[
        list[Path],
        typer.Argument(
            help="A node's directory below nodes/, a campaign, or files of one machine. Files are records with "
            "--detail, or tables of core-to-core-latency with a row for each pair and address.",
            show_default=False,
        ),
    ],
    root: Annotated[Path | None, typer.Option(metavar="PATH", help="Labels of files: a captured root.")] = None,
    xml: Annotated[Path | None, typer.Option(metavar="FILE", help="Labels of files: an XML file of lstopo.")] = None,
    cpuid: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Labels of files: CPUID dumps in hwloc's format.")
    ] = None,
    pdf: Annotated[
        Path | None, typer.Option(callback=output_file, help="Write floor plans and tables as pages into this file.")
    ] = None,
    json: Json = False,
) -> None:
    """Map the I/O dies of a node from its core-to-core latencies.

    Needs records of coherence with --detail. Prints clusters of cache lines, the relative positions of CCDs and memory,
    and the latency of each segment of a path. Without a map it prints the reason and the detection limit
    (docs/iodie.md).
    """
    from nodeprint_addons.iodie import campaign_dies

    folder = len(where) == 1 and where[0].is_dir()
    if folder:
        given: dict[str, object] = {"--root": root, "--xml": xml, "--cpuid": cpuid}
        leave_out(given, f"it is for files, and {where[0]} has its labels", "leave it out")
    labels = read_labels(root, xml, cpuid) if root or xml or cpuid else None
    with input_files(*where) as kept:
        nodes, not_analyzed = campaign_dies.read(kept[0]) if folder else ([campaign_dies.of_files(kept, labels)], {})
    if pdf is not None:
        from nodeprint_addons.iodie import die_pages

        die_pages.write(nodes, where[0].resolve().name, pdf)
    if json:
        print_json(campaign_dies.as_json(nodes, not_analyzed))
        return
    say_origin(any(node.simulated for node in nodes))
    show(*campaign_dies.as_text(nodes, not_analyzed).split("\n"))
