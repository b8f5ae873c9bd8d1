"""The command line. Each command is thin: read its arguments, call one function, print."""

from __future__ import annotations

import gc
import sys
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console, RenderableType

from nodeprint import __version__
from nodeprint.errors import NodeprintError, NoServiceError, printable

if TYPE_CHECKING:
    from nodeprint.topology.model import Topology

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="The fingerprint of every node of a cluster, and whether identically configured nodes really are the same.",
)

Campaign = Annotated[Path, typer.Argument(help="A campaign's folder, e.g. results/main", show_default=False)]
_CONFIG = Path("config/config.yaml")
#: Those of topology/presets.py, which is not imported to print the help.
PRESETS = (
    "naples-2x32", "rome-2x64", "milan-2x64", "genoa-2x96", "turin-2x64", "bergamo-2x128", "icelake-2x40",
    "graviton3-64",
)  # fmt: skip
_Accepted = Annotated[
    Path | None, typer.Option(help="A file as config/acceptance.yaml; without it the campaign's own copy, if any.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
#: Those of importers.FORMATS, which are not imported to print the help.
FORMATS = ("intel-mlc", "multichase-pingpong", "c2clat", "core-to-core-latency")
Format = Annotated[
    str | None, typer.Option(help=f"The format of a matrix, where it cannot be recognised: {', '.join(FORMATS)}.")
]


def main() -> None:
    """Run the command line; bad input ends with one sentence and 2."""
    gc.set_threshold(100_000)  # what is read and judged stays: looking for cycles at every 700 objects is a tenth of it
    try:
        app()
    except NodeprintError as error:
        print(f"nodeprint: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, NoServiceError) else 2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # a path that is too long or a loop, or a broken disk
        what = f"{printable(str(error.filename))}: {error.strerror}" if error.filename else printable(str(error))
        print(f"nodeprint: {what}; check the path, its file system and your rights there", file=sys.stderr)
        sys.exit(2)


def print_json(facts: object) -> None:
    """Facts (JSON types, structures, dataclasses) for programs, the same text for the same facts."""
    typer.echo(dumps(msgspec.to_builtins(facts), indent=1, sort_keys=True, allow_nan=False))


def _print(text: RenderableType) -> None:
    # into a file or pipe, lines are as long as they are: a warning's advice must not be cut
    Console(highlight=False, width=None if sys.stdout.isatty() else 1000).print(text)


def _say_origin(simulated: bool) -> None:
    """The first line of output that is not from a measurement."""
    if simulated:
        typer.echo("SIMULATED, not a measurement")


def _topology(root: Path, xml: Path | None, cpuid: Path | None) -> Topology:
    from nodeprint import topology as labels
    from nodeprint.tree import open_tree

    if xml:
        return labels.read_xml(xml)
    return labels.read_cpuid(cpuid) if cpuid else labels.read(open_tree(root))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nodeprint {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: nodeprint discover --config config/config.yaml")
def discover(
    config: Annotated[Path, typer.Option(help="The configuration.")] = _CONFIG,
    again: Annotated[str, typer.Option(help="Nodes to measure again as a new job, as in cn[001-004],gpu7.")] = "",
    hashes: Annotated[
        Path,
        typer.Option(
            help="hashes.tsv of the built kernels. A job that was begun with other kernels is not continued; its node "
            "gets a new one."
        ),
    ] = Path("kernels/build/hashes.tsv"),
) -> None:
    """Check the configuration and list the nodes.

    Writes the campaign's sample sheet (nodes.tsv) and prints the campaign's folder.
    """
    from nodeprint import campaign, node_lists
    from nodeprint import config as configuration
    from nodeprint import discover as sheet
    from nodeprint.discover import inventory, plans
    from nodeprint.discover import slurm as slurm_sheet
    from nodeprint.judge import acceptance

    if config == _CONFIG and not config.exists():
        advice = "call it in the folder that has config/ (`nodeprint sources --to FOLDER` makes one), or name a file"
        raise NodeprintError("there is no configuration", where=config, key="--config", advice=advice)
    settings = configuration.load(config)
    configuration.check_files(settings, config)
    acceptance.load(Path(settings["acceptance"]))
    names = node_lists.expand(again, "--again")
    plans.check(configuration.plan(settings), hashes.parent, config, here=settings["launch"] == "here")

    def find() -> list[sheet.Node]:
        if settings["launch"] == "ansible":
            return inventory.find(Path(settings["inventory"]))
        return [sheet.local()] if settings["launch"] == "here" else slurm_sheet.find(settings["slurm"])

    folder = campaign.prepare(settings, find, names, campaign.read_hashes(hashes))
    acceptance.keep(Path(settings["acceptance"]), folder)
    typer.echo(folder)


@app.command(epilog="Example: nodeprint doctor")
def doctor(json: Json = False) -> None:
    """Print what can be measured here and what is missing."""
    from nodeprint import doctor as examination

    found = examination.examine()
    print_json(found) if json else _print(examination.as_text(found))


@app.command(epilog="Example: nodeprint sources --to nodeprint && cd nodeprint && make -C kernels")
def sources(
    to: Annotated[Path | None, typer.Option(help="Copy them into this new folder.")] = None,
) -> None:
    """Print or copy the kernels, workflow and configuration.

    Prints the folder of the kernels' sources, workflow, profiles and configuration, or copies them to work with.
    """
    from nodeprint import sources as rooms

    typer.echo(rooms.copy(to) if to else rooms.folder())


@app.command(epilog="Example: nodeprint topology --json")
def topology(
    root: Annotated[Path, typer.Option(help="A live or captured root, or an archive of one.")] = Path("/"),
    xml: Annotated[Path | None, typer.Option(help="An XML file of lstopo instead.")] = None,
    cpuid: Annotated[Path | None, typer.Option(help="A folder of CPUID dumps in hwloc's format instead.")] = None,
    json: Json = False,
) -> None:
    """Print where every CPU is.

    Its socket, quadrant, CCD, CCX, NUMA node and core, and where each label comes from.
    """
    from nodeprint import topology as labels
    from nodeprint.topology.text import as_text

    found = _topology(root, xml, cpuid)
    if json:
        print_json(labels.as_json(found))
        return
    _say_origin(found.machine.simulated)
    _print(as_text(found))


@app.command(epilog="Example: nodeprint structure 'AMD EPYC 7773X.csv'")
def structure(
    file: Annotated[
        Path, typer.Argument(help="A matrix: a file of another tool, a record file, a node's folder or its node.nc.")
    ],
    format: Format = None,
    root: Annotated[Path | None, typer.Option(help="Compare it with the labels of this root or survey.")] = None,
    xml: Annotated[Path | None, typer.Option(help="Or of this XML file of lstopo.")] = None,
    cpuid: Annotated[Path | None, typer.Option(help="Or of this folder of CPUID dumps.")] = None,
    json: Json = False,
) -> None:
    """Find CCXs, quadrants and sockets in a latency matrix.

    The labels are not used; with a topology the result is compared with them. Irregularities are reported.
    """
    from nodeprint import structure as structures

    source = structures.read(file, format)
    labels = _topology(root or Path("/"), xml, cpuid) if root or xml or cpuid else source.topology
    found = structures.find(source.latency_ns, source.cpus, labels, source.home_controlled)
    if json:
        print_json({"simulated": source.simulated, **found.as_json()})
        return
    _say_origin(source.simulated)
    _print(found.as_text())


@app.command(epilog="Example: nodeprint iodie results/main/nodes/cn017")
def iodie(
    where: Annotated[Path, typer.Argument(help="A node's folder below nodes/, or a campaign.", show_default=False)],
    pdf: Annotated[Path | None, typer.Option(help="Write floor plans and tables as pages into this file.")] = None,
    json: Json = False,
) -> None:
    """Map the I/O dies of a node from its hops.

    From records of coherence with --detail: clusters of cache lines, where CCDs and memory are relative to each other,
    and the latency of each part of a path; or why there is no map, and the detection limit (docs/iodie.md). Of a judged
    campaign also what the verdict says of the parts of all nodes.
    """
    from nodeprint.iodie import campaign_dies, die_quantities
    from nodeprint.verdict import outputs

    verdict = outputs.read(where) if (where / "verdict.json").exists() else None
    found = campaign_dies.read(where, die_quantities.judged(verdict) if verdict is not None else None)
    if pdf is not None:
        from nodeprint.report import die_maps

        die_maps.write(found, where.resolve().name, pdf)
    if json:
        print_json(found.as_json())
        return
    _say_origin(found.simulated)
    typer.echo(found.as_text())


@app.command("import", epilog="Example: nodeprint import *.csv --out results/published --part 'EPYC 7742' --sockets 2")
def import_(
    files: Annotated[list[Path], typer.Argument(help="Matrices of other tools, one per node.")],
    out: Annotated[Path, typer.Option(help="The folder of the new campaign.")],
    format: Format = None,
    xml: Annotated[Path | None, typer.Option(help="Topology: an XML file of lstopo.")] = None,
    part: Annotated[str, typer.Option(help="Topology: a processor's name, e.g. 'EPYC 7742'.")] = "",
    sockets: Annotated[int, typer.Option(min=1, help="How many of the part.")] = 1,
    smt: Annotated[bool, typer.Option(help="Whether the part's siblings are among the CPUs.")] = True,
) -> None:
    """Make a campaign of matrices of other tools.

    It can be judged and reported like a measured one. A matrix that does not have the topology's layout is named.
    """
    from nodeprint import importers
    from nodeprint import topology as labels
    from nodeprint.structure import layout_misfit

    machine = labels.read_xml(xml) if xml else labels.from_part(part, sockets, smt) if part else None
    imported = [importers.read(file, format) for file in files]
    names = importers.write_campaign(imported, out, machine)
    for warning in layout_misfit.warnings(imported, machine) if machine else ():
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"{out}: {', '.join(names)}; next: nodeprint judge {out} && nodeprint report {out}")


@app.command(epilog="Example: nodeprint simulate rome-2x64 --nodes 8 --defect 'node003: core 37 +6%' --out results/sim")
def simulate(
    topology: Annotated[str, typer.Argument(help=f"A preset ({', '.join(PRESETS)}) or a captured root or survey.")],
    out: Annotated[Path | None, typer.Option(help="The folder of the new campaign.")] = None,
    power: Annotated[
        bool, typer.Option("--power", help="Print the smallest effect found by numbers of nodes and runs; no campaign.")
    ] = False,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the fleet.")] = 8,
    jobs: Annotated[int, typer.Option(min=1, help="Jobs per node.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="Runs per job; of coherence-cas three times as many.")] = 2,
    passes: Annotated[int, typer.Option(min=1, help="Passes per run.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bytes.")] = 1,
    noise: Annotated[
        float, typer.Option(min=0, max=20, help="Factor on the usual standard deviations of chips, runs and lines.")
    ] = 1,
    linktest: Annotated[
        bool, typer.Option("--linktest", help="LinkTest's messages between cores beside the other measurements.")
    ] = False,
    modes: Annotated[
        str,
        typer.Option(
            help="Where lines live: quadrants, by default of parts that have them, none, or an I/O die by its geometry "
            "and number of sites, such as mesh4, mesh6, ring6 or crossbar4."
        ),
    ] = "quadrants",
    detail: Annotated[bool, typer.Option("--detail", help="The value of each line in the records of pairs.")] = False,
    defect: Annotated[
        list[str] | None,
        typer.Option(help="A planted defect, e.g. 'node017: core 37 +6%'; an unknown one lists all kinds."),
    ] = None,
) -> None:
    """Write a simulated fleet, with planted defects.

    It has the kernels' own formats and is marked as simulated in every file and on every page.
    """
    from nodeprint import config
    from nodeprint import simulate as simulator
    from nodeprint import topology as labels
    from nodeprint.tree import open_tree

    machine = labels.read(open_tree(Path(topology))) if Path(topology).exists() else labels.preset(topology)
    spread = simulator.Spread().times(noise)
    if power:
        from nodeprint.verdict import power as powers

        _print(powers.as_text(powers.power(machine, spread)))
        return
    if out is None:
        raise NodeprintError(
            "no folder is named for the campaign", key="--out", advice="name a new one, or ask for --power"
        )
    lived = simulator.modes_named(modes)
    plan = simulator.Plan(
        machine, nodes, jobs, runs, passes, seed, spread, tuple(defect or ()), cells=True, linktest=linktest,
        modes=lived, detail=detail, pair_runs=runs * config.runs_factor("coherence-cas", "standard"),
    )  # fmt: skip
    typer.echo(simulator.write(plan, out))


@app.command(epilog="Example: nodeprint judge results/main --json --fail-on deviates")
def judge(
    campaign: Campaign,
    baseline: Annotated[Path | None, typer.Option(help="A saved baseline, or a campaign, to compare with.")] = None,
    acceptance: Annotated[
        Path | None,
        typer.Option(
            help="Bounds and limits, as in config/acceptance.yaml. The campaign keeps a copy, which later calls use."
        ),
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            help="Exit code 1 where a node has such an outcome: not-measured, deviates, invalid (not measured, too)"
            " or any, several separated by commas. A node DEVIATES where a second job confirmed it (`recheck: true`);"
            " after one job it is at most SUSPECT, which only `any` counts."
        ),
    ] = "",
    recheck: Annotated[Path | None, typer.Option(help="Write the nodes to measure again as a second job.")] = None,
    json: Json = False,
) -> None:
    """Compare the nodes of a campaign and print the verdict.

    Uses the records that are there; writes verdict.json, JUnit, Prometheus text and drain.sh.
    """
    from nodeprint import files, outcomes
    from nodeprint.verdict import campaign_verdict, outputs

    kinds = outcomes.fail_kinds(fail_on)
    result = campaign_verdict.judge(campaign, baseline=baseline, acceptance=acceptance)
    if recheck:
        files.write(recheck, outputs.recheck(result))
    typer.echo(result.json().rstrip("\n") if json else result.text())
    if any(result.fails(kind) for kind in kinds):
        raise typer.Exit(1)


@app.command(epilog="Example: nodeprint drift results/main")
def drift(
    campaign: Annotated[
        Path, typer.Argument(help="A campaign, measured or only surveyed, or a folder of Ansible's `setup` facts.")
    ],
    acceptance: _Accepted = None,
    json: Json = False,
) -> None:
    """Print settings in which nodes differ from the majority.

    By node, the fields of the fingerprint, and more that no verdict looks at: memory modules by slot, firmware, links.
    """
    from nodeprint import packing
    from nodeprint.importers import setup_facts, surveys
    from nodeprint.judge import acceptance as rules
    from nodeprint.verdict import comparison

    if setup_facts.is_capture(campaign):
        nodes, simulated = setup_facts.read(campaign), False
    elif surveys.is_only_surveyed(campaign):
        nodes, simulated = surveys.read(campaign), False
    else:
        fleet = packing.pack(campaign)
        nodes, simulated = list(fleet.nodes), fleet.simulated
    found = comparison.drift(nodes, rules.load(acceptance or rules.kept(campaign)))
    unknown = {node.name: node.reason or "it has no survey" for node in nodes if not node.fingerprint}
    if json:
        print_json({"simulated": simulated, "nodes": found, "unknown": unknown})
        return
    _say_origin(simulated)
    for name, reason in unknown.items():
        typer.echo(f"{name}: unknown: {reason}")
    for name, differing in found.items():
        for d in differing:
            kind = "hard" if d.hard else "soft"
            typer.echo(f"{name}: {d.text} ({kind})")
    rule = "different hard fields mean another configuration, soft ones a warning (acceptance.yaml)"
    none = f"no field differs on {len(nodes) - len(unknown)} of {len(nodes)} nodes"
    typer.echo(rule if found else none)


baselines = typer.Typer(no_args_is_help=True, help="Save judged campaigns to compare later ones with.")
app.add_typer(baselines, name="baseline")


@baselines.command(epilog="Example: nodeprint baseline save results/main --to baselines/cluster")
def save(
    campaign: Campaign, to: Annotated[Path, typer.Option(help="The baseline's folder; made where it is not there.")]
) -> None:
    """Add a campaign to a baseline; it needs at least three runs over two boots of each node."""
    from nodeprint.verdict import history

    typer.echo(history.save(campaign, to))


@app.command(epilog="Example: nodeprint compare results/before results/after")
def compare(
    before: Annotated[Path, typer.Argument(help="A judged campaign.")],
    after: Annotated[Path, typer.Argument(help="A later one of the same nodes.")],
    acceptance: _Accepted = None,
    json: Json = False,
) -> None:
    """Print what changed between two judged campaigns.

    By node: classes of pairs, memory, caches, bandwidth, clock and jitter.
    """
    from nodeprint import config as configuration
    from nodeprint.judge import acceptance as accepted
    from nodeprint.verdict import comparison
    from nodeprint.verdict.outputs import read

    rules = accepted.load(acceptance or accepted.kept(after))
    verdicts = read(before), read(after)
    changes = comparison.compare(*verdicts, rules)
    simulated = any(verdict.get("simulated") for verdict in verdicts)
    apart = configuration.plans_apart(before, after)
    other = comparison.machines_apart(*verdicts)
    if json:
        facts = {"simulated": simulated, "machines_differ": other, "arguments_differ": apart, "changes": changes}
        print_json(facts)
        return
    if not changes:
        advice = "compare two campaigns of the same nodes"
        raise NodeprintError(f"no node is in both it and {after} with the same classes", where=before, advice=advice)
    _say_origin(simulated)
    if other:
        typer.echo(other)
    for name, (old, new) in apart.items():
        typer.echo(f"{name} was measured with other arguments: {old} before, {new} after")
    _print(comparison.as_text(changes, rules))


@app.command(epilog="Example: nodeprint export results/main --to pairs.parquet")
def export(
    campaign: Campaign,
    to: Annotated[
        Path | None,
        typer.Option(help="A table of every measured pair: a name that ends in .parquet or .csv.", show_default=False),
    ] = None,
) -> None:
    """Write what was measured for other programs.

    Writes node.nc (netCDF) into the folder of each node, or with --to a table with one row per pair and pass.
    """
    if to is None:
        from nodeprint import netcdf

        for path in netcdf.export(campaign):
            typer.echo(path)
        return
    from nodeprint import export as tables
    from nodeprint import packing

    typer.echo(tables.export(packing.pack(campaign), to))


@app.command(epilog="Example: nodeprint report results/main --figures --pseudonyms")
def report(
    campaign: Campaign,
    figures: Annotated[
        bool, typer.Option("--figures", help="Also each figure of cluster.pdf as SVG and PDF, its numbers as CSV.")
    ] = False,
    pseudonyms: Annotated[
        bool,
        typer.Option(
            "--pseudonyms",
            help="For publication: nodes and racks are called N001 and R01, serial numbers are left out. Written into"
            " the campaign's folder `published`; pseudonyms.tsv beside it says which node is which.",
        ),
    ] = False,
    to: Annotated[Path | None, typer.Option(help="Another folder, as of a campaign that cannot be written.")] = None,
) -> None:
    """Write the report of a judged campaign.

    Writes cluster.pdf, the same as cluster.html, and a PDF per node, and prints their paths.
    """
    from nodeprint.report import documents

    for path in documents.write(campaign, to, figures=figures, pseudonyms=pseudonyms):
        typer.echo(path)


@app.command(epilog="Example: nodeprint protocol results/acceptance-1 results/acceptance-2 --to protocol")
def protocol(
    campaigns: Annotated[list[Path], typer.Argument(help="Judged campaigns, the oldest first.", show_default=False)],
    to: Annotated[Path, typer.Option(help="The folder that the protocol is written into.")] = Path("protocol"),
) -> None:
    """Write the acceptance protocol of campaigns, to be signed.

    Outcomes over several days and boots, limits and bounds with their source, racks and serial numbers of nodes that
    deviate, what was not measured, versions, and MANIFEST.sha256 over all files.
    """
    from nodeprint.report import protocol as protocols

    for path in protocols.write(campaigns, to):
        typer.echo(path)


@app.command(epilog="Example: nodeprint status results/main --watch; ssh login nodeprint status results/main --json")
def status(
    campaign: Campaign,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again until nothing is at work.")] = False,
    json: Json = False,
) -> None:
    """Print which nodes are measured, running, queued, failed or left out, and why.

    Ends with 0 where all nodes that were to be measured are, 3 while nodes run or are queued, else with 1.
    """
    import time

    from nodeprint import campaign_status

    found = campaign_status.read(campaign)
    while watch and found.code == campaign_status.AT_WORK:
        typer.echo(("\x1b[H\x1b[J" if sys.stdout.isatty() else "") + found.as_text())
        time.sleep(2 if sys.stdout.isatty() else 60)
        found = campaign_status.read(campaign)
    print_json(found.as_json()) if json else typer.echo(found.as_text())
    if found.code:
        raise typer.Exit(found.code)


@app.command(epilog="Example: nodeprint show results/main")
def show(campaign: Campaign) -> None:
    """Print the result of a campaign and its PDF's path.

    Ends with 1 if it has no measured node or no PDF.
    """
    from nodeprint.report import glance, terminal

    text, complete = terminal.summary(campaign)
    console = Console(highlight=False)
    with console.capture() as shown:  # in colour on a terminal that has some
        if figures := glance.text(campaign):
            console.print(figures, soft_wrap=True)
    text = terminal.wrapped(text, console.width) if console.is_terminal else text
    typer.echo("\n".join(filter(None, (shown.get(), text))))
    if not complete:
        raise typer.Exit(1)
