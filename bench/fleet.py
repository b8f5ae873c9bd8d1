"""How long from records to the verdict and its pages? Simulated rome-2x64, the standard set, two jobs of two runs.

    python -m bench.fleet                  64 nodes, every page
    python -m bench.fleet --nodes 1000     no pages but the cluster's

A dozen nodes are simulated, and all others have the same files, an archive a run as kernels/node-run makes it, of lines
as kernels write them: this measures speed and says nothing about verdicts. A dozen, as Typst keeps what it laid out for
the ten documents before. CPU seconds are of nodeprint and its processes; wall time means something on a quiet machine
alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from bench import table
from bench.table import Row, row
from nodeprint.campaign import node_sheet
from nodeprint.data.format import records
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan, write

#: Nodes that are simulated; the others have their records.
_DRAWN = 12
#: Python keeps what it compiled, as it does where nobody tells it otherwise.
_ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def made(folder: Path, nodes: int) -> Path:
    """A campaign of so many nodes, from few draws."""
    campaign = write(Plan(preset("rome-2x64"), nodes=min(nodes, _DRAWN), jobs=2, cells=True), folder / "fleet")
    with ProcessPoolExecutor() as pool:
        list(pool.map(pack, sorted(campaign.glob("nodes/*/job*/run*"))))
    sheet = node_sheet.read_sheet(campaign / "nodes.tsv")
    for number in range(len(sheet), nodes):
        sheet.append(add(campaign, sheet[number % _DRAWN], f"node{number:03d}"))
    node_sheet.write_sheet(campaign / "nodes.tsv", sheet)
    return campaign


def as_a_kernel_writes(simulated: Path, chance: random.Random) -> str:
    """The lines of a simulated record file, those of pairs with the digits and members that the kernel gives them."""
    lines = gzip.decompress(simulated.read_bytes()).decode().splitlines(keepends=True)
    return "".join(_as_a_kernel_writes(line, chance) for line in lines)


def _as_a_kernel_writes(line: str, chance: random.Random) -> str:
    if not line.startswith('{"record":"pair"') or "clock_a_ghz" not in line:
        return line
    pair = json.loads(line)
    flags, clocks = pair.pop("flags"), [pair.pop(key) for key in records.PAIR_CLOCKS]
    pair["p25_ns"] = pair["median_ns"] * chance.uniform(0.95, 1)
    for key in [key for key in pair if key.endswith("_ns")]:
        digits = 5 if key == "latency_ns" else 4
        pair[key] = float(f"{pair[key]:.{digits}g}")
    pair |= {"lines": 32, "round_trips": 25, "retries": 0, "slow_share": chance.choice([0.0] * 8 + [0.016, 0.031])}
    pair |= dict(zip(records.PAIR_CLOCKS, clocks, strict=True)) | {"switches": 0, "flags": flags}
    return json.dumps(pair, separators=(",", ":")) + "\n"


def pack(run: Path) -> None:
    """Make the records of a run one archive, as kernels/node-run does."""
    chance = random.Random(1)
    for path in sorted(run.glob("*.jsonl.gz")):
        path.with_suffix("").write_text(as_a_kernel_writes(path, chance))
        path.unlink()
    names = sorted(f"{run.name}/{path.name}" for path in run.iterdir())
    tar = subprocess.run(["tar", "-C", run.parent, "-c", *names], check=True, capture_output=True).stdout
    packed = subprocess.run(["zstd", "-q", "-15"], input=tar, check=True, capture_output=True).stdout
    run.with_name(f"{run.name}.tar.zst").write_bytes(packed)
    shutil.rmtree(run)


def add(campaign: Path, given: node_sheet.Node, name: str) -> node_sheet.Node:
    """A node `name` with the records of `given`, as if both were names of one host."""
    source, target = campaign / "nodes" / given.node, campaign / "nodes" / name
    shutil.copytree(source, target, copy_function=os.link)
    return replace(given, node=name)


def timed(*command: str | Path) -> tuple[float, float, float]:
    """Wall and CPU seconds of a Python process and its children, and the largest one's memory in GiB."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([sys.executable, *map(str, command)], check=True, stdout=subprocess.DEVNULL, env=_ENVIRONMENT)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begun
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, after.ru_maxrss / 2**20


def nodeprint(*words: str | Path) -> tuple[float, float, float]:
    """`timed` of a command."""
    return timed("-m", "nodeprint", *words)


#: Of a large fleet the report is the cluster's alone.
_CLUSTER = (
    "import sys; from pathlib import Path; from nodeprint.report import documents; "
    "documents.write(Path(sys.argv[1]), of_nodes=False)"
)


def warm(campaign: Path) -> list[float]:
    """CPU seconds of the pages of single nodes in a process that has printed some."""
    code = (
        "import gc, json, sys, time\n"
        "from pathlib import Path\n"
        "from nodeprint.report import documents as pages\n"
        "gc.set_threshold(100_000)  # as nodeprint.cli does\n"
        "folder, took = Path(sys.argv[1]), []\n"
        "names = sorted(path.name for path in (folder / 'nodes').iterdir())[:12]\n"
        "task = pages.Task(folder, folder / 'report', tuple(names), None, False)\n"
        "for name in names:\n"
        "    begun = time.process_time()\n"
        "    task.chunk([name])\n"
        "    took.append(time.process_time() - begun)\n"
        "print(json.dumps(took[4:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, campaign], check=True, capture_output=True, text=True, env=_ENVIRONMENT
    )
    return [float(one) for one in json.loads(done.stdout)]


def main() -> int:
    """Measure and print; 1 where a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=64, help="nodes of the fleet (64)")
    parser.add_argument("--keep", type=Path, help="make the campaign here and leave it")
    arguments = parser.parse_args()
    nodes, every = arguments.nodes, arguments.nodes <= 128
    rows: list[Row] = []
    load = os.getloadavg()[0]
    for module in ("nodeprint.judge.campaign", "nodeprint.report.documents"):
        _, *took = [timed("-c", f"import {module}")[1] for _ in range(4)]  # the first compiles
        rows.append(row(f"import {module}", took, None, "s CPU"))
    with tempfile.TemporaryDirectory(prefix="nodeprint-bench-") as folder:
        campaign = made(arguments.keep or Path(folder), nodes)
        judge = nodeprint("judge", campaign)
        report = nodeprint("report", campaign) if every else timed("-c", _CLUSTER, campaign)
        again = nodeprint("judge", campaign)
        rows += [
            row(f"{nodes} nodes: judge, first time, a node", judge[1] / nodes, None, "s CPU"),
            row("of it to parse and pack", (judge[1] - again[1]) / nodes, None, "s CPU"),
            row(f"{nodes} nodes: report, a node", report[1] / nodes, None, "s CPU"),
            row(f"{nodes} nodes, records to pages", judge[0] + report[0], 90 if every else None, "s wall"),
            row(f"{nodes} nodes, records to pages, CPU", judge[1] + report[1], None, "s CPU"),
            row(f"{nodes} nodes, judged from the store", again[1], 15, "s CPU"),
            row("of it the memory", again[2], 1.5, "GiB"),
        ]
        if every:  # a larger fleet has no pages of nodes without findings
            rows.append(row("pages of a node, warm", warm(campaign), 1.5, "s CPU"))
            rows.append(row(f"{nodes} nodes: netCDF, a node", nodeprint("export", campaign)[1] / nodes, None, "s CPU"))
        sheet = node_sheet.read_sheet(campaign / "nodes.tsv")
        node_sheet.write_sheet(campaign / "nodes.tsv", [*sheet, add(campaign, sheet[0], "onemore")])
        more = nodeprint("judge", campaign)
        rows += [
            row(f"one more node of {nodes}, to the verdict", more[1], None, "s CPU"),
            row("largest process", max(judge[2], report[2], more[2]), 2, "GiB"),
        ]
    table.keep("fleet", rows, load)
    return int(any(one.missed for one in rows))


if __name__ == "__main__":
    sys.exit(main())
