"""LinkTest between the nodes of a campaign: a job over all of them for each run and measurement; then outcomes.tsv.

USAGE   fabric.py CONFIG OUTCOMES MINUTES     OUTCOMES: <campaign>/fabric/job<J>/outcomes.tsv; MINUTES: of a job
"""

import gzip
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

from nodeprint import campaign as campaigns
from nodeprint import config as configuration
from nodeprint import discover, files
from nodeprint.discover import Node, slurm
from nodeprint.errors import NodeprintError

KERNEL = Path("kernels/build/linktest")


def together(campaign: Path) -> tuple[list[Node], list[str]]:
    """The measured nodes of the partition that has most of them, and what is said of the others."""
    sheet = discover.read_sheet(campaign / "nodes.tsv")
    there = [node for node in sheet if (campaigns.job_folder(campaign, node) / "status.json").exists()]
    count = {node.partition: sum(one.partition == node.partition for one in there) for node in there}
    most = max(count, key=lambda name: count[name], default="")
    chosen = [node for node in there if node.partition == most]
    left = [node.node for node in sheet if node not in chosen]
    return chosen, [f"left out, as not measured or of another partition: {', '.join(left)}"] if left else []


def launcher(config: dict, nodes: list[Node], minutes: int) -> str:
    """What starts the ranks: the configuration's text, or srun with an allocation of its own."""
    own = config["mpi"]["fabric_launcher"]
    asked = slurm.sweep_options(nodes, config["slurm"] | {"wave": len(nodes)}, minutes)
    return own or (
        f"srun --mpi=pmix --job-name=linktest {asked}"
        " --nodelist={nodes} --nodes={count} --ntasks={ranks} --ntasks-per-node={per_node} --exclusive --mem=0"
        " --cpu-bind=none --kill-on-bad-exit=1"
    )


def nothing_to_measure(config: dict, nodes: list[Node]) -> str:
    """Why nothing can be measured between these nodes; empty where it can."""
    if config["launch"] == "here" or len(nodes) < 2:
        return "one node: there is no link between nodes to measure"
    if config["launch"] == "ansible" and not config["mpi"]["fabric_launcher"]:
        return "there is no srun without Slurm: set mpi.fabric_launcher"
    return ""


def measure(out: Path, words: list[str]) -> tuple[str, int, float, str]:
    """One record file, begun or continued: outcome, exit code, seconds, and the last thing that was said."""
    if out.with_name(out.name + ".gz").exists():
        return "done", 0, 0.0, ""
    began = time.monotonic()
    done = subprocess.run([KERNEL, "--out", out, *words], stderr=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(done.stderr)
    said = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode == 0:
        files.write(out.with_name(out.name + ".gz"), gzip.compress(out.read_bytes()))
        out.unlink()
    outcome = "done" if done.returncode == 0 else "refused" if done.returncode in (2, 3) else "failed"
    return outcome, done.returncode, time.monotonic() - began, "" if done.returncode == 0 else said


def main(campaign: Path, config: dict, outcomes: Path, minutes: int) -> None:
    """All that is missing; what went wrong is a row, and never keeps the nodes from being judged."""
    nodes, notes = together(campaign)
    rows = [f"# {note}\n" for note in notes]
    folder = outcomes.parent
    job = folder.name.removeprefix("job")
    for run in range(1, config["runs"] + 1):
        for name, arguments in configuration.fabric_plan(config):
            if said := nothing_to_measure(config, nodes):
                rows.append(f"{run}\t{name}\tleft out\t0\t0\t{said}\n")
                continue
            words = [
                *arguments.split(),
                "--nodes",
                ",".join(node.node for node in nodes),
                "--job",
                job,
                "--run",
                str(run),
            ]
            words += ["--per-node", str(config["mpi"]["ranks_per_node"]), "--seed", str(1000 * int(job) + run)]
            words += ["--launcher", quote(launcher(config, nodes, minutes), safe="/:=,+@{}")]
            words += ["--patience", str(config["slurm"]["deadline_hours"] * 3600 + 600)]
            outcome, code, seconds, said = measure(folder / f"run{run}" / f"{name}.jsonl", words)
            rows.append(f"{run}\t{name}\t{outcome}\t{code}\t{seconds:.1f}\t{said}\n")
    files.write(outcomes, "".join(rows))


if __name__ == "__main__":
    settings, outcomes, minutes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    try:
        config = configuration.load(settings)
        main(configuration.campaign_folder(config), config, outcomes, minutes)
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
