"""Requests to `nodeprint judge`: options, their allowed combinations, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeprint.cli.shared import input_files, judge_and_write, leave_out, output_directory, output_file
from nodeprint.judge.outcome import FleetOutcome, Outcome

if TYPE_CHECKING:
    from nodeprint.judge.verdict import Verdict
    from nodeprint.summary.fleet_reference import FleetReference

Source = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE",
        help="A campaign, such as results/main. Or a table (CSV, TSV, Parquet, JSON lines; - reads a pipe) with"
        " columns node, metric and value, or a column for each metric. Or a file or a directory of outputs of STREAM,"
        " HPL, HPCG, OSU, IMB, MLC, likwid-bench, sysbench, nvbandwidth, DCGM, ReFrame, SuperBench, Google Benchmark"
        " or hyperfine.",
        show_default=False,
    ),
]
Baseline = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Compare with a saved baseline, or with a campaign.")
]
Acceptance = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Tolerances and limits, as in config/acceptance.yaml. The campaign keeps a copy, which later calls use.",
    ),
]
_FOUND = ", ".join(outcome for outcome in Outcome if outcome.entry.found)
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="KIND,...",
        help="Exit with status 3 if a node, the fleet or a link between nodes has one of these outcomes."
        f" Findings (found): {_FOUND}, {FleetOutcome.NON_UNIFORM}, a slow link. Anything but SAME, to accept nodes in a"
        " script (not-same). DIFFERENT CONFIGURATION (configuration). Also not-measured, invalid, nothing.",
        show_default=False,
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Compare nodes without peers with a fleet, from a file of `nodeprint baseline export`, or with published"
        " machines (`published`, of the atlas add-on).",
        show_default=False,
    ),
]
Recheck = Annotated[
    Path | None,
    typer.Option(callback=output_file, metavar="FILE", help="Write a list of the nodes that need a second job."),
]
Notify = Annotated[
    str,
    typer.Option(
        metavar="COMMAND",
        help="Call a command, such as `mail-verdict --to hpc`, with the verdict as JSON on its standard input.",
    ),
]
OneNode = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Judge the campaign, but print only this node and write nothing."),
]
To = Annotated[
    Path | None,
    typer.Option(
        callback=output_directory,
        metavar="DIR",
        help="For a table: write it and its verdict as a campaign into this directory.",
    ),
]
Tolerances = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PERCENT", help="For a table: accepted difference from the peers, such as 5 or triad=3. Repeatable."
    ),
]
Better = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DIRECTION",
        help="For a table: the better direction, such as lower or latency=lower (default: lower for times)."
        " A node that differs in the other direction is reported as worse. Repeatable.",
    ),
]
Fingerprint = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="For a table: a file with the configuration of each node. Nodes are compared within a configuration.",
    ),
]
PathPattern = Annotated[
    str,
    typer.Option(
        "--path",
        metavar="PATTERN",
        help="For outputs: the parts of their paths, as in 'run{run}/stream-{node}-*.log'; also {job}, {time} "
        "and any name of a copy, as {gpu}.",
    ),
]
LinePatterns = Annotated[
    list[str] | None,
    typer.Option(
        "--line",
        metavar="PATTERN",
        help="For outputs: a line before results, as in '### {node}' or 'GPU {gpu}', with the fields of --path. "
        "Repeatable, the outer loop first.",
    ),
]


@dataclass(frozen=True)
class JudgeRequest:
    """A call of `nodeprint judge`: the campaign or table `source`, a single `node` of it, and the use of the verdict.

    A table becomes a campaign in the directory `to`; the last options state how its values are read.
    """

    source: Path
    baseline: Path | None = None
    acceptance: Path | None = None
    recheck: Path | None = None
    reference: str | None = None
    notify: str = ""
    node: str | None = None
    json: bool = False
    to: Path | None = None
    tolerances: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    fingerprint: Path | None = None
    path_pattern: str = ""
    line_patterns: tuple[str, ...] = ()

    @property
    def of_campaign(self) -> bool:
        """Whether the source is a campaign, not a table or outputs of other programs."""
        from nodeprint.readers import tool_logs

        return self.source.is_dir() and not tool_logs.is_outputs(self.source)

    @property
    def of_table(self) -> dict[str, object]:
        """The options for tables by name."""
        return {
            "--to": self.to,
            "--tolerance": self.tolerances,
            "--better": self.better,
            "--fingerprint": self.fingerprint,
            "--path": self.path_pattern,
            "--line": self.line_patterns,
        }

    def check(self) -> None:
        """Raise NodeprintError if an option would have no effect."""
        if self.of_campaign:
            problem = f"it is for tables, and {self.source} is a campaign"
            leave_out(self.of_table, problem, "leave it out")
        silent = {"--reference": self.json and self.reference}
        leave_out(silent, "it prints sentences, and --json has none", "leave one out")
        if self.node is not None:
            to_write = {"--node": not self.of_campaign and self.source.exists()}
            leave_out(to_write, "it is for campaigns", f"write {self.source} as one first, with --to FOLDER")
            whole = {
                "--baseline": self.baseline,
                "--acceptance": self.acceptance,
                "--recheck": self.recheck,
                "--reference": self.reference,
                "--notify": self.notify,
            }
            leave_out(whole | self.of_table, f"judges a whole campaign, and --node {self.node} one", "leave it out")
        elif not self.of_campaign and self.to is None:
            unwritten = {"--baseline": self.baseline}
            leave_out(unwritten, "compares campaigns", "write the table as one with --to FOLDER")

    def fleet_reference(self) -> FleetReference | None:
        """Return the fleet of a file that --reference names; None for another reference."""
        from nodeprint.summary import fleet_reference
        from nodeprint.summary.references import references

        if not self.reference or self.reference in references():
            return None
        return fleet_reference.read(Path(self.reference))

    def verdict(self) -> Verdict:
        """Return the verdict of all nodes; the verdict of a campaign is written into its directory."""
        if self.of_campaign:
            return judge_and_write(self.source, baseline=self.baseline, acceptance=self.acceptance)
        return self._of_table()

    def _of_table(self) -> Verdict:
        """Return the verdict of a table; with --to it is written as a campaign first and judged there."""
        from nodeprint.judge import of_table
        from nodeprint.readers import table_file

        piped = str(self.source) == "-"
        with input_files(self.source) as (kept,):
            name = "standard input" if piped else str(self.source)
            figures = table_file.read_table(kept, name, self.path_pattern, self.line_patterns)
        if self.fingerprint is not None:
            figures = table_file.with_fields(figures, self.fingerprint)
        rules = of_table.rules_of(figures, self.acceptance, self.tolerances, self.better)
        if self.to is not None:
            of_table.as_campaign(figures, self.to, rules)
            return judge_and_write(self.to, baseline=self.baseline)
        return of_table.judge(figures, "table" if piped else self.source.name.partition(".")[0], rules).verdict
