"""What `nodeprint judge` is asked: its options, what of them goes together, and the verdict that is made by them."""

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
        help="A campaign's folder, a table of figures that other programs measured (CSV, TSV, Parquet or JSON"
        " lines with node, metric and value, or a column a metric; - for what comes in), or outputs of STREAM, HPL,"
        " HPCG, OSU, IMB, MLC, likwid-bench, sysbench, nvbandwidth, DCGM, ReFrame, SuperBench, Google Benchmark or"
        " hyperfine, a file or a folder of files.",
        show_default=False,
    ),
]
Baseline = Annotated[Path | None, typer.Option(help="A saved baseline, or a campaign, to compare with.")]
Acceptance = Annotated[
    Path | None,
    typer.Option(
        help="Tolerances and limits, as in config/acceptance.yaml. The campaign keeps a copy, which later calls use."
    ),
]
_FOUND = ", ".join(outcome for outcome in Outcome if outcome.entry.found)
FailOn = Annotated[
    str | None,
    typer.Option(
        help=f"Exit with status 3 if a node, the fleet or messages between nodes have such an outcome: found ({_FOUND},"
        f" {FleetOutcome.NON_UNIFORM}, a slow link), not-same (anything but SAME, to accept nodes by a script),"
        " configuration (DIFFERENT CONFIGURATION), not-measured, invalid or nothing; several separated by commas.",
        show_default=False,
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        help="Compare nodes without peers with a fleet: a file of `baseline export`. `published` (atlas add-on) has"
        " published machines instead.",
        show_default=False,
    ),
]
Recheck = Annotated[
    Path | None, typer.Option(callback=output_file, help="Write the nodes to measure again as a second job.")
]
Notify = Annotated[
    str,
    typer.Option(
        help="A command, as `mail-verdict --to hpc`, that gets the verdict as JSON on its input, with your rights."
    ),
]
OneNode = Annotated[
    str | None,
    typer.Option(help="Judge the campaign, print this node alone, and write nothing."),
]
To = Annotated[
    Path | None,
    typer.Option(
        callback=output_directory,
        help="Of a table: the folder that all files are written into, as of a campaign; none without.",
    ),
]
Tolerances = Annotated[
    list[str] | None,
    typer.Option(help="Of a table: percent that a node may be from its peers, as 5 or triad=3; repeatable."),
]
Better = Annotated[
    list[str] | None,
    typer.Option(help="Of a table: higher or lower, where units do not say it, as latency=lower; repeatable."),
]
Fingerprint = Annotated[
    Path | None,
    typer.Option(help="Of a table: a file with the configuration of each node; different ones are not compared."),
]
NodeName = Annotated[
    str,
    typer.Option(help="Of outputs: where a file's path has the node's name, as 'stream-{node}-*.log'."),
]


@dataclass(frozen=True)
class JudgeRequest:
    """One call of `nodeprint judge`: the campaign or table `source`, one `node` of it alone, and what is done with the
    verdict. Of a table: the folder `to` that it becomes a campaign in, and how its figures are read.
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
    node_name: str = ""

    @property
    def of_campaign(self) -> bool:
        """Whether the source is a campaign, and no table or outputs of other programs."""
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
            "--node-name": self.node_name,
        }

    def check(self) -> None:
        """Raise NodeprintError where an option is given that would have no effect."""
        if self.of_campaign:
            problem = f"it is for tables of figures, and {self.source} is a campaign"
            leave_out(self.of_table, problem, "leave it out")
        silent = {"--reference": self.json and self.reference}
        leave_out(silent, "it is said in sentences, and --json has none", "leave one out")
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
        """The fleet that nodes are compared with, where --reference names its file."""
        from nodeprint.summary import fleet_reference
        from nodeprint.summary.references import references

        if not self.reference or self.reference in references():
            return None
        return fleet_reference.read(Path(self.reference))

    def verdict(self) -> Verdict:
        """The verdict of all nodes; that of a campaign is written into its folder."""
        if self.of_campaign:
            return judge_and_write(self.source, baseline=self.baseline, acceptance=self.acceptance)
        return self._of_table()

    def _of_table(self) -> Verdict:
        """The verdict of a table; with --to it is written as a campaign's folder first and judged there."""
        from nodeprint.judge import of_table
        from nodeprint.readers import table_file

        piped = str(self.source) == "-"
        with input_files(self.source) as (kept,):
            name = "standard input" if piped else str(self.source)
            figures = table_file.read_table(kept, name, self.node_name)
        if self.fingerprint is not None:
            figures = table_file.with_fields(figures, self.fingerprint)
        rules = of_table.rules_of(figures, self.acceptance, self.tolerances, self.better)
        if self.to is not None:
            of_table.as_campaign(figures, self.to, rules)
            return judge_and_write(self.to, baseline=self.baseline)
        return of_table.judge(figures, "table" if piped else self.source.name.partition(".")[0], rules).verdict
