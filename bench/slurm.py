"""What measuring by Snakemake costs: on a real Slurm of virtual nodes, and with 1,000 that do not exist.

The overhead a node is the time that Snakemake takes to measure all, less that of the same jobs submitted in a loop, in
turn, by the number of nodes; kernels do nothing, so all of it is start and end of Snakemake and of jobs. These rows
need root and Slurm. Of 1,000 nodes sbatch's own time is not counted.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.fleet import as_a_kernel_writes
from bench.table import ROOT, Row, keep, row
from nodeprint.campaign import preparation as campaigns
from nodeprint.campaign.node_sheet import Node
from nodeprint.settings import config
from tests.support import fake_slurm, made_status
from tests.support.idle_campaigns import begin, copy, measure_words

CLUSTER = ROOT / "tests/system/cluster/cluster"
# --- a real Slurm -----------------------------------------------------------------------------------------------------


@contextmanager
def cluster(count: int) -> Iterator[dict[str, str]]:
    """A real Slurm of `count` virtual nodes; the environment to call it in."""
    with tempfile.TemporaryDirectory(prefix="nodeprint-bench-") as folder:
        environment = os.environ | {"CLUSTER_STATE": f"{folder}/state"}
        subprocess.run([CLUSTER, "up", str(count)], env=environment, check=True, capture_output=True)
        try:
            yield environment
        finally:
            subprocess.run([CLUSTER, "down"], env=environment, check=True)


def on_login(environment: dict[str, str], folder: Path, *words: str) -> float:
    """Seconds that a command on the login node takes."""
    began = time.monotonic()
    subprocess.run([CLUSTER, "exec", "login", *words], cwd=folder, env=environment, check=True, capture_output=True)
    return time.monotonic() - began


def bare(folder: Path, name: str, nodes: list[Node]) -> list[str]:
    """The same jobs by a loop of sh, which then waits for all outcomes."""
    settings = config.load(begin(folder, name, nodes))
    campaign = config.campaign_folder(settings)
    lines = []
    for node in nodes:
        (campaign / "nodes" / node.node / "job1").mkdir(parents=True)
        run = shlex.join([str(folder / "kernels/node-run"), *campaigns.node_run(settings, node, node.job)])
        lines.append(f"sbatch -Q --nodelist={node.node} --exclusive --mem=0 -o /dev/null --wrap {shlex.quote(run)}")
    count = f"$(ls {campaign}/nodes/*/job1/status.json 2>/dev/null | wc -l)"
    return ["sh", "-c", "\n".join([*lines, f"until [ {count} = {len(nodes)} ]; do sleep 0.05; done"])]


def overhead(count: int, times: int) -> Row:
    """Seconds a node beside the jobs' own, over some turns."""
    found = []
    with cluster(count) as environment, tempfile.TemporaryDirectory(prefix="nodeprint-bench-") as temporary:
        folder = copy(Path(temporary))
        folder.chmod(0o755)
        nodes = [Node(f"cn{i:02d}", f"cn{i:02d}", partition="main") for i in range(1, count + 1)]
        for turn in range(times):
            path = begin(folder, f"launch{turn}", nodes)
            launched = on_login(environment, folder, *measure_words(path))
            alone = on_login(environment, folder, *bare(folder, f"bare{turn}", nodes))
            found.append((launched - alone) / count)
            print(f"{count} nodes: launched {launched:.1f} s, the jobs alone {alone:.1f} s", flush=True)
    return row(f"overhead a node, {count} nodes", found, 0.3, "s")


# --- 1,000 nodes that do not exist ------------------------------------------------------------------------------------


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, without those of what it started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid: int) -> float:
    """The most memory that a process had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def calls(folder: Path, begin_s: float, end_s: float) -> dict[str, float]:
    """Calls a minute of each of Slurm's commands between two moments (uptime), as the Slurm that answers counted."""
    rows = [line.split(" ", 2) for line in (folder / "asked").read_text().splitlines()]
    names = [name for moment, name, _ in rows if begin_s <= float(moment) < end_s]
    return {name: names.count(name) * 60 / (end_s - begin_s) for name in fake_slurm.COMMANDS}


def uptime_s() -> float:
    """The clock of the Slurm that answers."""
    return float(Path("/proc/uptime").read_text().split()[0])


def followed(count: int, wait_s: float, cpu_bound_s: float, per_second: float = 5) -> list[Row]:
    """Jobs of `count` nodes submitted to a Slurm that only answers, waited for, and done; all of them in the queue."""
    with tempfile.TemporaryDirectory(prefix="nodeprint-bench-") as temporary:
        folder = copy(Path(temporary))
        nodes = [Node(f"n{i:05d}", f"n{i:05d}", partition="main", cpus=256) for i in range(count)]
        slurm = {"jobs_at_a_time": count, "poll_seconds": 20, "submissions_per_second": per_second}
        path = begin(folder, "many", nodes, **slurm)
        campaign = folder / "results/many"
        environment = os.environ | fake_slurm.environment(Path(temporary)) | {"PYTHONPATH": str(ROOT / "workflow")}
        began = time.monotonic()
        with Path(temporary, "log").open("wb") as log:
            process = subprocess.Popen(measure_words(path), cwd=folder, env=environment, stdout=log, stderr=log)
        queue = folder / "queue"
        while not (queue.exists() and queue.read_text().count("\n") == count):
            if process.poll() is not None:
                raise SystemExit(Path(temporary, "log").read_text()[-2000:])
            time.sleep(0.1)
        submitted, submitted_at = time.monotonic() - began, uptime_s()
        submitting = calls(folder, submitted_at - 0.8 * count / per_second, submitted_at)
        before, at = cpu_s(process.pid), time.monotonic()
        time.sleep(wait_s)
        waiting = calls(folder, submitted_at, uptime_s())
        share = (cpu_s(process.pid) - before) / (time.monotonic() - at)
        for node in nodes:
            made_status.put(campaign / "nodes" / node.node / "job1")
        at, used, memory = time.monotonic(), 0.0, 0.0
        while process.poll() is None:
            with suppress(OSError, StopIteration):
                used, memory = cpu_s(process.pid), peak_mb(process.pid)
            time.sleep(0.1)
        return [
            row(f"{count:,} nodes: submitting one", submitted / count, None, "s"),
            row(f"{count:,} nodes: share of a core while waiting", share * 100, 2, "%"),
            row(f"{count:,} nodes: sbatch a minute while submitting", submitting["sbatch"], 60 * per_second * 1.02),
            row(f"{count:,} nodes: squeue a minute while submitting", submitting["squeue"], 3),
            row(f"{count:,} nodes: squeue a minute while waiting", waiting["squeue"], 3),
            row(f"{count:,} nodes: other calls a minute while waiting", sum(waiting.values()) - waiting["squeue"], 0),
            row(f"{count:,} nodes: CPU time of graph, submission and following", used, cpu_bound_s, "s"),
            row(f"{count:,} nodes: memory", memory, 200 if count <= 1000 else None, "MiB"),
            row(f"{count:,} nodes: until all outcomes are seen", time.monotonic() - at, None, "s"),
        ]


def dry_run(times: int) -> Row:
    """Snakemake's dry run over 1,000 nodes."""
    found = []
    with tempfile.TemporaryDirectory(prefix="nodeprint-bench-") as temporary:
        folder = copy(Path(temporary))
        nodes = [Node(f"n{i:04d}", f"n{i:04d}", partition="main", cpus=256) for i in range(1000)]
        path = begin(folder, "dry", nodes)
        for _ in range(times):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                ["snakemake", "-n", "--quiet", "--configfile", path.name], cwd=folder, check=True, capture_output=True
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return row("1,000 nodes: CPU time of a dry run", found, 5, "s")


REPLAY = """\
#!/bin/sh
case "$*" in *--help* | *--plan*) exit 0 ;; esac
while [ $# -gt 0 ]; do
    case $1 in --out) out=$2 ;; --run) run=$2 ;; esac
    shift
done
name=${out##*/}
if [ -f "RECORDS/run$run/$name" ]; then cp "RECORDS/run$run/$name" "$out"; else echo '{"record":"trailer"}' >"$out"; fi
"""


def bundle() -> list[Row]:
    """What node-run leaves of a node of 2 x 64 cores in the preset `standard`, with the records of the simulator.

    The simulator has no records of some measurements, which are small beside those of pairs.
    """
    with tempfile.TemporaryDirectory(prefix="nodeprint-bench-") as temporary:
        out, kernels, campaign = Path(temporary, "sim"), Path(temporary, "build"), Path(temporary, "c")
        config_file = Path(temporary, "config.yaml")
        config_file.write_text("campaign: main\n")
        settings = config.load(config_file)
        planned = config.read_plan(config.plan(settings), settings.runs)
        most = max(one.runs for one in planned)
        words = ["rome-2x64", "--nodes", "1", "--runs", str(most), "--linktest", "--out", str(out)]
        subprocess.run(["nodeprint", "simulate", *words], check=True, capture_output=True)
        simulated, chance = out / "nodes/node000/job1", random.Random(1)
        for path in simulated.rglob("*.jsonl.gz"):
            path.with_suffix("").write_text(as_a_kernel_writes(path, chance))
        kernels.mkdir()
        for name in {one.kernel for one in planned}:
            (kernels / name).write_text(REPLAY.replace("RECORDS", str(simulated)))
            (kernels / name).chmod(0o755)
        job = campaign / "nodes/n/job1"
        job.mkdir(parents=True)
        shutil.copy(simulated / "survey.tar.gz", job)
        (campaign / "plan.tsv").write_text(config.plan(settings))
        command = [f"{ROOT}/kernels/node-run", "--node", "n", "--job", "1", "--runs", str(settings.runs)]
        subprocess.run([*command, "--campaign", campaign, "--kernels", kernels], check=True, capture_output=True)
        files = [path for path in job.rglob("*") if path.is_file()]
        known = {path.name.removesuffix(".jsonl") for path in simulated.rglob("*.jsonl")} & {
            row.name for row in planned
        }
        size = sum(path.stat().st_size for path in files)
        return [
            row("files of a node of 2 x 64 cores, standard", len(files) + 1, 20),  # and launch.log
            row(f"its bytes, with the records of {len(known)} of {len(planned)} measurements", size / 1e6, 5, "MB"),
        ]


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3, help="turns of each row on a real Slurm (default 3)")
    parser.add_argument("--wait", type=float, default=120, help="seconds of waiting that are watched (default 120)")
    parser.add_argument("--many", action="store_true", help="5,000 nodes, too: 20 minutes")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [*bundle(), dry_run(options.times), *followed(1000, options.wait, 15)]
    if options.many:
        rows += followed(5000, options.wait, 60)
    if os.geteuid() == 0 and shutil.which("slurmctld"):
        rows += [overhead(count, options.times) for count in (8, 32)]
    else:
        print("overhead on a real Slurm: not measured, as only root with Slurm can start one here")
    keep("slurm", rows, load)


if __name__ == "__main__":
    main()
