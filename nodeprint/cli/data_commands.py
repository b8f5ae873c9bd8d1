"""Commands for imported and simulated data, and for the sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeprint.cli.app import app
from nodeprint.cli.shared import Format, input_files, judge_and_write, leave_out, output_directory, show_sections

#: Those of topology/presets.py, which is not imported to print the help.
PRESETS = (
    "naples-2x32",
    "rome-2x64",
    "milan-2x64",
    "genoa-2x96",
    "turin-2x64",
    "bergamo-2x128",
    "icelake-2x40",
    "graviton3-64",
)


@app.command(
    "import",
    epilog="Example: nodeprint import *.csv --out results/published --part 'EPYC 7742' --sockets 2",
)
def import_(
    files: Annotated[list[Path], typer.Argument(help="Matrices of other tools, one per node.", show_default=False)],
    out: Annotated[Path, typer.Option(callback=output_directory, metavar="DIR", help="Directory of the new campaign.")],
    format: Format = None,
    xml: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take the topology from an XML file of lstopo.")
    ] = None,
    part: Annotated[
        str, typer.Option(metavar="NAME", help="Take the topology from a processor's name, such as 'EPYC 7742'.")
    ] = "",
    sockets: Annotated[
        int | None, typer.Option(min=1, max=64, metavar="N", help="With --part: the number of sockets (default 1).")
    ] = None,
    smt: Annotated[
        bool | None,
        typer.Option(
            help="With --part: the matrix has both hardware threads of each core (default), or one thread of each."
        ),
    ] = None,
) -> None:
    """Make a campaign from matrices of other tools.

    `judge` and `report` read it like a measured campaign. With a topology, it compares files whose names differ only in
    a node's name, such as node01.csv and node02.csv. Others may be runs of one machine.
    A warning names each matrix that does not fit the topology.
    """
    from nodeprint.machine.topology import captured, presets
    from nodeprint.readers import campaign_writer, layout_misfit, matrix_file
    from nodeprint.settings.texts import say

    if not part:
        of_part: dict[str, object] = {"--sockets": sockets, "--smt": smt is not None}
        leave_out(of_part, "it is of a part", "name the processor with --part, or leave it out")
    if xml:
        leave_out({"--part": part}, "--xml has the topology", "leave one of them out")
    machine = (
        captured.read_xml(xml) if xml else presets.from_part(part, sockets or 1, smt is not False) if part else None
    )
    with input_files(*files) as kept:
        imported = [matrix_file.read_output(file, format) for file in kept]
        of_nodes = machine is None or campaign_writer.are_nodes(kept)
    names = campaign_writer.write_campaign(imported, out, machine, of_nodes=of_nodes)
    if not of_nodes:
        typer.echo(f"note: {say('unknown_node')}", err=True)
    differing = [f"{item.source}: {item.cores.differing}" for item in imported if item.cores and item.cores.differing]
    for warning in (*differing, *(layout_misfit.warnings(imported, machine) if machine else ())):
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"{out}: {', '.join(names)}; next: nodeprint judge {out} && nodeprint report {out}")


@app.command(
    epilog="Example: nodeprint simulate rome-2x64 --nodes 8 --defect 'node003: core 37 +6%' --out results/sim",
)
def simulate(
    topology: Annotated[
        str, typer.Argument(help=f"A preset ({', '.join(PRESETS)}), a captured root or a survey.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(callback=output_directory, metavar="DIR", help="Directory of the new campaign.")],
    nodes: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="Number of nodes.")] = 8,
    jobs: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Number of jobs per node.")] = 1,
    runs: Annotated[
        int,
        typer.Option(min=1, max=1000, metavar="N", help="Number of runs per job; coherence-cas has three times it."),
    ] = 2,
    passes: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Number of passes per run.")] = 3,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed. The same seed writes the same bytes.")] = 1,
    noise: Annotated[
        float,
        typer.Option(min=0, max=20, metavar="X", help="Multiply the standard deviations of chips, runs and lines."),
    ] = 1,
    linktest: Annotated[bool, typer.Option("--linktest", help="Add LinkTest's messages between cores.")] = False,
    modes: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Home of cache lines: quadrants (if the processor has them), none, or the sites of an I/O die. Sites "
            "are, for example, mesh4, mesh6, ring6 or crossbar4.",
        ),
    ] = "quadrants",
    detail: Annotated[bool, typer.Option("--detail", help="Record the value of each cache line.")] = False,
    defect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Inject a defect, such as 'node017: core 37 +6%'. Repeatable. An unknown defect lists all kinds.",
        ),
    ] = None,
) -> None:
    """Write a simulated fleet, with injected defects.

    It has the formats of the kernels. Every file and every page says that it is simulated.
    """
    from nodeprint import simulate as simulator
    from nodeprint.machine.topology import captured, presets
    from nodeprint.machine.tree import open_tree
    from nodeprint.settings import config

    machine = captured.read(open_tree(Path(topology))) if Path(topology).exists() else presets.preset(topology)
    spread = simulator.Variation().times(noise)
    lived = simulator.modes_named(modes)
    plan = simulator.Plan(
        machine,
        nodes,
        jobs,
        runs,
        passes,
        seed,
        spread,
        tuple(defect or ()),
        cells=True,
        linktest=linktest,
        modes=lived,
        detail=detail,
        pair_runs=runs * config.runs_factor("coherence-cas", "standard"),
    )
    typer.echo(simulator.write(plan, out))


@app.command(epilog="Example: nodeprint demo --out results/demo")
def demo(
    out: Annotated[
        Path,
        typer.Option(
            callback=output_directory, metavar="DIR", help="Directory of the campaign. It replaces an earlier demo."
        ),
    ] = Path("results/demo"),
) -> None:
    """Find a slow core in a simulated fleet.

    Simulates eight nodes of 2x64 cores, one with a slow core. Judges them and writes the report, in less than a minute.
    Nothing is measured.
    """
    from nodeprint.report import documents
    from nodeprint.report.pages import brief
    from nodeprint.simulate import demo as demonstration

    typer.echo(f"SIMULATED, not a measurement: {demonstration.description()}", err=True)
    demonstration.write(out)
    judge_and_write(out)
    documents.write(out)
    show_sections(brief.campaign(out))


@app.command(epilog="Example: nodeprint sources --to nodeprint && cd nodeprint && make -C kernels")
def sources(
    to: Annotated[
        Path | None, typer.Option(callback=output_directory, metavar="DIR", help="Copy them to this new directory.")
    ] = None,
) -> None:
    """Print or copy the kernels, workflow and configuration.

    Prints the directory of their sources. Copy them to edit the configuration or to build the kernels.
    """
    from nodeprint.settings import sources as rooms

    typer.echo(rooms.copy(to) if to else rooms.folder())
