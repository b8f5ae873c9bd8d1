"""LinkTest between the nodes of a campaign: for each partition, run and measurement a job; then outcomes.tsv.

Nodes of two partitions are measured apart, as Slurm gives no job nodes of both; one job after the other, as they may
share switches.

USAGE   fabric.py CONFIG OUTCOMES MINUTES     OUTCOMES: <campaign>/fabric/job<J>/outcomes.tsv; MINUTES: of a job
"""

import gzip
import shlex
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

from nodeprint import files
from nodeprint.campaign import node_sheet, slurm
from nodeprint.campaign import preparation as campaigns
from nodeprint.campaign.node_sheet import Node
from nodeprint.data import fabric
from nodeprint.errors import NodeprintError
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config

KERNEL = Path("kernels/build/linktest")


def partitions(campaign: Path) -> dict[str, list[Node]]:
    """The measured nodes, by partition."""
    by_partition: dict[str, list[Node]] = {}
    for node in node_sheet.read_sheet(campaign / "nodes.tsv"):
        if (campaigns.job_folder(campaign, node) / "status.json").exists():
            name = node_sheet.checked_name(node.partition or fabric.NO_PARTITION, "nodes.tsv")
            by_partition.setdefault(name, []).append(node)
    return by_partition


def launcher(config: Config, nodes: list[Node], minutes: int) -> str:
    """What starts the ranks: the configuration's text, or srun with an allocation of its own."""
    own = config.mpi.fabric_launcher
    asked = shlex.join(slurm.allocation_words(nodes[0].partition, config.slurm, minutes))
    return own.replace("{partition}", nodes[0].partition) or (
        f"srun --mpi=pmix --job-name=linktest {asked}"
        " --nodelist={nodes} --nodes={count} --ntasks={ranks} --ntasks-per-node={per_node} --exclusive --mem=0"
        " --cpu-bind=none --kill-on-bad-exit=1"
    )


def nothing_to_measure(config: Config, nodes: list[Node]) -> str:
    """Why nothing can be measured between these nodes; empty where it can."""
    if config.launch == "here" or len(nodes) < 2:
        return f"{nodes[0].node} alone has no link to another node"
    if config.launch == "ansible" and not config.mpi.fabric_launcher:
        return "there is no srun without Slurm: set mpi.fabric_launcher"
    return ""


def measure(out: Path, setup: str, words: list[str]) -> tuple[str, int, float, str]:
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
    outcome = "done" if done.returncode == 0 else "refused" if done.returncode in (2, 3) else "failed"
    return outcome, done.returncode, time.monotonic() - began, "" if done.returncode == 0 else message


def words(config: Config, nodes: list[Node], job: str, run: int, minutes: int) -> list[str]:
    """LinkTest's arguments for a run over `nodes`."""
    return [
        "--nodes", ",".join(node.node for node in nodes), "--job", job, "--run", str(run),
        "--per-node", str(config.mpi.ranks_per_node), "--seed", str(1000 * int(job) + run),
        "--launcher", quote(launcher(config, nodes, minutes), safe="/:=,+@{}"),
        "--patience", str(round(config.slurm.deadline_hours * 3600 + 600)),
    ]  # fmt: skip


def main(campaign: Path, config: Config, outcomes: Path, minutes: int) -> None:
    """All that is missing; what went wrong is a row, and never keeps the nodes from being judged."""
    folder = outcomes.parent
    rows = []
    for partition, nodes in partitions(campaign).items():
        for run in range(1, config.runs + 1):
            for name, arguments in configuration.fabric_plan(config):
                if message := nothing_to_measure(config, nodes):
                    result = "left out", 0, 0.0, message
                else:
                    out = folder / partition / f"run{run}" / f"{name}.jsonl"
                    asked = words(config, nodes, folder.name.removeprefix("job"), run, minutes)
                    result = measure(out, config.site.setup, [*arguments.split(), *asked])
                outcome, code, seconds, message = result
                rows.append(f"{partition}\t{run}\t{name}\t{outcome}\t{code}\t{seconds:.1f}\t{message}\n")
    files.write(outcomes, "".join(rows))


if __name__ == "__main__":
    settings, outcomes, minutes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    try:
        config = configuration.load(settings)
        main(configuration.campaign_folder(config), config, outcomes, minutes)
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
