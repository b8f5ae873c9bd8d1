"""Commands that compare nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeprint.cli import judge_request as options
from nodeprint.cli.app import app
from nodeprint.cli.shared import Campaign, Json, output_directory, output_file, print_json, say_origin, show
from nodeprint.settings.texts import say

if TYPE_CHECKING:
    from nodeprint.judge.outcome import Kind
    from nodeprint.judge.verdict import Verdict
    from nodeprint.summary.fleet_reference import FleetReference

_Accepted = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Tolerances and hard fields, as in config/acceptance.yaml (default: the campaign's copy)."
    ),
]
baselines = typer.Typer(
    no_args_is_help=True,
    help="Save judged campaigns to compare later ones with.",
    epilog="Example: nodeprint baseline save results/main --to baselines/cluster",
)
app.add_typer(baselines, name="baseline")


@app.command(
    epilog="Examples: nodeprint judge results/main --json --fail-on not-same; nodeprint judge stream.csv --tolerance 5",
)
def judge(
    campaign: options.Source,
    baseline: options.Baseline = None,
    acceptance: options.Acceptance = None,
    fail_on: options.FailOn = None,
    reference: options.Reference = None,
    recheck: options.Recheck = None,
    notify: options.Notify = "",
    node: options.OneNode = None,
    to: options.To = None,
    tolerance: options.Tolerances = None,
    better: options.Better = None,
    fingerprint: options.Fingerprint = None,
    path_pattern: options.PathPattern = "",
    line_patterns: options.LinePatterns = None,
    json: Json = False,
) -> None:
    """Compare the nodes of a campaign or of a table.

    Writes the verdict into the campaign: verdict.json, deviations.nc, JUnit, Prometheus text and drain.sh. For a table,
    --to writes a campaign that all other commands read. Without --to nothing is written.
    """
    from nodeprint import files
    from nodeprint.judge import outcome
    from nodeprint.report import verdict_files as written
    from nodeprint.report.pages import brief

    kinds = outcome.kinds(fail_on) if fail_on is not None else ()
    request = options.JudgeRequest(
        campaign,
        baseline=baseline,
        acceptance=acceptance,
        recheck=recheck,
        reference=reference,
        notify=notify,
        node=node,
        json=json,
        to=to,
        tolerances=tuple(tolerance or ()),
        better=tuple(better or ()),
        fingerprint=fingerprint,
        path_pattern=path_pattern,
        line_patterns=tuple(line_patterns or ()),
    )
    request.check()
    if node is not None:
        _judge_one(campaign, node, kinds, json=json)
        return
    fleet = request.fleet_reference()
    verdict = request.verdict()
    if recheck:
        files.write(recheck, written.recheck(verdict))
    if json:
        typer.echo(written.as_json(verdict).rstrip("\n"))
    else:
        show(*brief.summary(verdict, remarks=brief.recheck(verdict) if recheck else ()))
    if reference:
        _print_reference(fleet, reference, campaign, verdict)
    if notify:
        written.notify(notify, written.as_json(verdict))
    if verdict.fails(kinds):
        raise typer.Exit(3)


def _print_reference(fleet: FleetReference | None, reference: str, campaign: Path, verdict: Verdict) -> None:
    """Print how nodes without peers compare with a fleet, or with the reference of an add-on.

    A fleet is also compared with nodes that are too few for a majority.
    """
    from nodeprint.report import beside_fleet
    from nodeprint.summary import fleet_reference, measured_node
    from nodeprint.summary.references import references

    few = fleet is not None and len(verdict.nodes) < fleet_reference.FEWEST
    for name, of_node in verdict.nodes.items():
        if not (of_node.is_alone or (few and of_node.outcome.entry.measured)):
            continue
        if fleet is None:
            summary = measured_node.MeasuredNode(campaign, name).summary
            words: Sequence[str] = references()[reference](summary).sentences()
        else:
            processor = fleet_reference.processor_of(of_node).name
            words = beside_fleet.sentences(fleet, processor, fleet_reference.of_verdict(of_node))
        for sentence in words:
            show(f"{name}: {sentence}")


def _judge_one(campaign: Path, name: str, kinds: tuple[Kind, ...], *, json: bool) -> None:
    """Print the verdict of one node."""
    from nodeprint.judge import campaign as judging
    from nodeprint.judge import outcome
    from nodeprint.report import verdict_files as written
    from nodeprint.report.pages import brief

    node, verdict = judging.one_node(campaign, name)
    if json:
        typer.echo(written.node_as_json(name, node, imported=verdict.imported).rstrip("\n"))
    else:
        say_origin(verdict.simulated)
        show(*brief.node(name, node, verdict))
    if outcome.counts(kinds, [node.outcome]):
        raise typer.Exit(3)


@app.command(epilog="Example, called on cn017: nodeprint check results/main cn017 1")
def check(
    campaign: Campaign,
    node: Annotated[str, typer.Argument(help="The node of the finding.", show_default=False)],
    finding: Annotated[
        str,
        typer.Argument(help="Its number in the node report, or its kind, such as core-slow (default: all findings)."),
    ] = "",
) -> None:
    """Measure a finding again on this machine.

    Repeats the measurement of the finding three times and compares it with the expected value. Prints PASS (status 0),
    FAIL (status 1: the finding is still there), or INCONCLUSIVE (status 3: background load, or the runs disagree).

    Without Python, call `sh NODE-check.sh` in the directory of the report.
    """
    from nodeprint.report import run_check

    raise typer.Exit(run_check.check(campaign, node, finding))


@app.command(epilog="Example: nodeprint drift results/main")
def drift(
    campaign: Annotated[
        Path,
        typer.Argument(
            help="A campaign, measured or only surveyed, or a directory of facts from Ansible's `setup` module.",
            show_default=False,
        ),
    ],
    acceptance: _Accepted = None,
    json: Json = False,
) -> None:
    """Print settings in which nodes differ.

    Compares firmware, operating system and settings of each node with the most frequent ones. It needs no
    measurement. A hard field means another configuration, which is judged separately. A soft field is a warning.
    """
    from nodeprint.data.store import packing, surveyed_nodes
    from nodeprint.judge import acceptance as rules
    from nodeprint.judge import drift as drifting
    from nodeprint.readers import ansible_facts

    if ansible_facts.is_capture(campaign):
        nodes, simulated = ansible_facts.read_facts(campaign), False
    elif surveyed_nodes.is_only_surveyed(campaign):
        nodes, simulated = surveyed_nodes.read_surveyed(campaign), False
    else:
        fleet = packing.pack(campaign)
        nodes, simulated = list(fleet.nodes), fleet.simulated
    changes = drifting.drift(nodes, rules.load(acceptance) if acceptance else rules.rules_of(campaign))
    unknown = {node.name: node.reason or say("unmeasured", "no_survey") for node in nodes if not node.fingerprint}
    if json:
        print_json({"simulated": simulated, "nodes": changes, "unknown": unknown})
        return
    say_origin(simulated)
    for name, reason in unknown.items():
        show(f"{name}: unknown: {reason}")
    for name, differing in changes.items():
        for d in differing:
            kind = "hard" if d.hard else "soft"
            show(f"{name}: {d.text} ({kind})")
    compared = len(nodes) - len(unknown)
    show(say("commands", "drift_rule" if changes else "no_drift", compared=compared, nodes=len(nodes)))


@baselines.command(epilog="Example: nodeprint baseline save results/first results/rebooted --to baselines/cluster")
def save(
    campaigns: Annotated[
        list[Path], typer.Argument(help="Judged campaigns, or directories of them.", show_default=False)
    ],
    to: Annotated[
        Path, typer.Option(callback=output_directory, metavar="DIR", help="Directory of the baseline, new or existing.")
    ],
) -> None:
    """Add campaigns to a baseline.

    A baseline needs three runs over two boots of a node.
    """
    from nodeprint.campaign import node_lists
    from nodeprint.judge import baseline, baseline_folder

    points, thin = baseline_folder.save(campaigns, to)
    for path in points:
        typer.echo(path)
    if thin:
        words = say(
            "commands",
            "thin_baseline",
            runs=baseline.MIN_RUNS,
            boots=baseline.MIN_BOOTS,
            nodes=node_lists.fold(thin),
        )
        typer.echo(f"nodeprint: {to}: {words}", err=True)


@baselines.command(epilog="Example: nodeprint baseline export results/main --to epyc-9654.json")
def export(
    campaign: Annotated[Path, typer.Argument(help="A judged campaign.", show_default=False)],
    to: Annotated[Path, typer.Option(callback=output_file, metavar="FILE", help="File to write, a few kilobytes.")],
) -> None:
    """Write medians and spreads of a fleet as a file to share, without names.

    It needs five nodes of one processor without findings. `nodeprint judge --reference FILE` and `nodeprint here
    --reference FILE` compare a single node with it.
    """
    from nodeprint.judge import acceptance
    from nodeprint.report import verdict_files as written
    from nodeprint.summary import fleet_reference

    reference = fleet_reference.of_fleet(written.read(campaign), acceptance.rules_of(campaign))
    typer.echo(fleet_reference.write(reference, to))
