"""LinkTest between the nodes of a campaign: for each partition, run and measurement a job; then its status.json.

Nodes of two partitions are measured apart, as a scheduler gives no job nodes of both. One job follows the other, as
they may share switches.

USAGE   fabric.py CONFIG JOB MINUTES     JOB: <campaign>/fabric/job<J>; MINUTES: of a job
"""

import gzip
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from nodeprint import files
from nodeprint.campaign import job_status, node_sheet
from nodeprint.campaign import preparation as campaigns
from nodeprint.campaign.job_status import JobStatus, RunOutcome, RunOutcomeWord
from nodeprint.campaign.launchers.launcher_registry import launcher
from nodeprint.campaign.node_sheet import Node
from nodeprint.data.job import fabric_records
from nodeprint.errors import NodeprintError
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config

KERNEL = Path("kernels/build/linktest")


def partitions(campaign: Path) -> dict[str, list[Node]]:
    """The measured nodes, by partition."""
    by_partition: dict[str, list[Node]] = {}
    for node in node_sheet.read_sheet(campaign / "nodes.tsv"):
        if (campaigns.job_folder(campaign, node) / job_status.NAME).exists():
            name = node_sheet.checked_name(node.partition or fabric_records.NO_PARTITION, "nodes.tsv")
            by_partition.setdefault(name, []).append(node)
    return by_partition


def ranks_command(config: Config, partition: str, minutes: int) -> str:
    """What starts the ranks: the configuration's text, or the launcher's, which has an allocation of its own."""
    own = config.mpi.fabric_launcher.replace("{partition}", partition)
    return own or launcher(config.launch).fabric_command(config, partition, minutes)


def nothing_to_measure(config: Config, nodes: list[Node], minutes: int) -> str:
    """Why nothing can be measured between these nodes; empty where it can."""
    if launcher(config.launch).is_here or len(nodes) < 2:
        return f"{nodes[0].node} alone has no link to another node"
    if not ranks_command(config, nodes[0].partition, minutes):
        return "there is no srun without Slurm: set mpi.fabric_launcher"
    return ""


def measure(out: Path, setup: str, words: list[str]) -> tuple[RunOutcomeWord, int, float, str]:
    """One record file, begun or continued: outcome, exit code, seconds, and the last thing that was said.

    `site.setup` is sourced first where it is on this machine: srun hands the environment on to the ranks.
    """
    if out.with_name(out.name + ".gz").exists():
        return "done", 0, 0.0, ""
    began = time.monotonic()
    sourced = ["sh", "-c", '. "$0" >&2 && exec "$@"', str(Path(setup).absolute())] if Path(setup).is_file() else []
    done = subprocess.run([*sourced, KERNEL, "--out", out, *words], stderr=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(done.stderr)
    message = (done.stderr.strip().splitlines() or [""])[-1].removeprefix("linktest: ")
    if done.returncode == 0:
        files.write(out.with_name(out.name + ".gz"), gzip.compress(out.read_bytes()))
        out.unlink()
    code, outcome = done.returncode, job_status.of_exit_code(done.returncode)
    return outcome, code if code >= 0 else 128 - code, time.monotonic() - began, message if code else ""


def words(config: Config, nodes: list[Node], job: str, run: int, minutes: int) -> list[str]:
    """LinkTest's arguments for a run over `nodes`."""
    return [
        "--nodes",
        ",".join(node.node for node in nodes),
        "--job",
        job,
        "--run",
        str(run),
        "--per-node",
        str(config.mpi.ranks_per_node),
        "--seed",
        str(1000 * int(job) + run),
        "--launcher",
        quote(ranks_command(config, nodes[0].partition, minutes), safe="/:=,+@{}"),
        "--patience",
        str(round(launcher(config.launch).jobs(config).deadline_hours * 3600 + 600)),
    ]


def outcomes(campaign: Path, config: Config, folder: Path, minutes: int) -> Iterator[RunOutcome]:
    """All that is missing, measured; what went wrong is an outcome, and never keeps the nodes from being judged."""
    for partition, nodes in partitions(campaign).items():
        for run in range(1, config.runs + 1):
            for name, arguments in configuration.fabric_plan(config):
                outcome: RunOutcomeWord = "unavailable"
                code, seconds, message = 0, 0.0, nothing_to_measure(config, nodes, minutes)
                if not message:
                    out = folder / partition / f"run{run}" / f"{name}.jsonl"
                    asked = words(config, nodes, folder.name.removeprefix("job"), run, minutes)
                    outcome, code, seconds, message = measure(out, config.site.setup, [*arguments.split(), *asked])
                yield RunOutcome(
                    name=name,
                    run=run,
                    outcome=outcome,
                    exit_code=code,
                    seconds=round(seconds, 1),
                    pinned_by="",
                    message=job_status.as_message(message),
                    partition=partition,
                )


def main(config: Config, folder: Path, minutes: int) -> None:
    """Measure what is missing of the job in `folder`, and write its outcome."""
    runs = tuple(outcomes(configuration.campaign_folder(config), config, folder, minutes))
    status = JobStatus(
        schema=1,
        node="",
        host="",
        job=int(folder.name.removeprefix("job")),
        started=None,
        ended=None,
        runs=config.runs,
        outcome=job_status.outcome_of(runs),
        cpus_allowed=0,
        cpus_expected=0,
        simulated=False,
        measurements=runs,
    )
    job_status.write(folder, status)


if __name__ == "__main__":
    settings, folder, minutes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    try:
        main(configuration.load(settings), folder, minutes)
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
