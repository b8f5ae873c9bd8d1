"""Did a change move a verdict? 24 small simulated campaigns, from their records to verdict.json.

    python -m bench.golden             list what differs from bench/golden.json
    python -m bench.golden --write     keep today's verdicts, to be committed with the reason

Each campaign is kept as the hash of its records, the hash of its verdict.json (versions apart) and what is said of each
node, so that a change can be read. Where the records differ, the simulator changed and not the verdict. Sums of floats
may differ in their last bits on other processors, so that this is a benchmark and no test.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: the order of sums is the same on any number of CPUs

from nodeprint.verdict.campaign_verdict import judge

from nodeprint.fleet import homes
from nodeprint.simulate import Plan, Spread, write
from nodeprint.topology.presets import from_part

KEPT = Path(__file__).with_name("golden.json")


@dataclass(frozen=True)
class Recipe:
    """A campaign: `sockets` of `part` with SMT or not, homes of lines `each` NUMA node, near and `far`, or the default;
    the rest as of Plan."""

    part: str
    sockets: int = 2
    nodes: int = 4
    jobs: int = 1
    runs: int = 2
    passes: int = 3
    defects: tuple[str, ...] = ()
    smt: bool = False
    nps: int = 1
    each: bool = False
    far: bool = False
    noise: float = 1
    cells: bool = True
    linktest: bool = False

    def plan(self, seed: int) -> Plan:
        """The simulator's plan."""
        topology = from_part(self.part, self.sockets, self.smt, nps=self.nps)
        near = (homes.NEAR, homes.FAR) if self.far else (homes.NEAR,)
        at_home = tuple(node.node for node in topology.numa_nodes) if self.each else near
        return Plan(
            topology, self.nodes, self.jobs, self.runs, self.passes, seed, Spread().times(self.noise), self.defects,
            homes=at_home, cells=self.cells, linktest=self.linktest,
        )  # fmt: skip


_ROME, _MILAN = Recipe("EPYC 7302"), Recipe("EPYC 7343")

RECIPES: dict[str, Recipe] = {
    "alone": replace(_ROME, nodes=1),
    "two": replace(_ROME, nodes=2),
    "healthy": replace(_ROME, nodes=8),
    "healthy, four runs": replace(_MILAN, nodes=6, runs=4),
    "healthy, siblings": replace(_ROME, smt=True),
    "healthy, loud": replace(_MILAN, noise=4),
    "core": replace(_ROME, jobs=2, defects=("node003: core 7 +8%",)),
    "core, one job": replace(_MILAN, nodes=6, defects=("node002: core 20 +3ns",)),
    "core clock": replace(_MILAN, jobs=2, defects=("node001: core-clock 5 -15%",)),
    "core, siblings": replace(_ROME, smt=True, jobs=2, nodes=3, defects=("node000: half-row 3 +10%",)),
    "CCD": replace(_MILAN, jobs=2, nodes=6, defects=("node004: ccd 3 +6%",)),
    "CCD to others": replace(_ROME, jobs=2, defects=("node002: ccd 2 to-others +6%",)),
    "quadrant link": replace(_ROME, part="EPYC 7532", nodes=5, jobs=2, defects=("node001: link q0-q2 +6%",)),
    "socket link": replace(_MILAN, jobs=2, defects=("node003: socket-link +5%", "node000: socket 1 +5%")),
    "two populations": replace(_ROME, nodes=8, defects=tuple(f"node00{i}: fabric +6%" for i in range(4))),
    "numbers and missing nodes": replace(_ROME, nodes=6, defects=("node001: renumbered", "node004: missing")),
    "cut records": replace(_ROME, nodes=5, defects=("node002: cut",)),
    "other configuration": replace(
        _MILAN, nodes=6, defects=("node001: fingerprint microcode=0x1234", "node003: harvest 1")
    ),
    "busy and intermittent": replace(
        _ROME, nodes=6, jobs=2, defects=("node001: busy core 5 run 1", "node004: intermittent core 9 +30%")
    ),
    "memory channel": replace(_ROME, nodes=5, jobs=2, defects=("node002: memory-channel node 1 -12%",)),
    "every home, NPS4": replace(
        _ROME, part="EPYC 7F52", nps=4, each=True, passes=2, defects=("node003: core 3 +9%", "node001: nps 1")
    ),
    "LinkTest": replace(_MILAN, jobs=2, linktest=True, cells=False, defects=("node002: core 11 +7%",)),
    "monolithic": Recipe("Xeon Platinum 8380", sockets=1, defects=("node001: global +4%",)),
    "no SMT, one socket": Recipe("Graviton3", sockets=1, nodes=3, passes=1, defects=("node002: core 37 +6%",)),
    "near and far": replace(_ROME, far=True, jobs=2, passes=2, defects=("node003: core 7 +8%", "node001: renumbered")),
}


def made(name: str) -> dict[str, Any]:
    """The hashes of a campaign's records and verdict, and what the verdict says of its fleet and of each node."""
    with tempfile.TemporaryDirectory(prefix="nodeprint-golden-") as folder:
        campaign = write(RECIPES[name].plan(seed=list(RECIPES).index(name) + 1), Path(folder) / "golden")
        records = _records(campaign)
        judge(campaign)
        verdict = json.loads((campaign / "verdict.json").read_text())
    del verdict["versions"]
    said = {node: f"{told['verdict']}: {told['text']}" for node, told in verdict["nodes"].items()}
    fleet = f"{verdict['fleet']['outcome']}: {verdict['fleet']['text']}"
    text = json.dumps(verdict, sort_keys=True).encode()
    return {"records": records, "verdict": hashlib.sha256(text).hexdigest()[:16], "fleet": fleet, "nodes": said}


def _records(campaign: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(campaign.glob("nodes/*/job*/**/*")):
        if path.is_file():
            content = path.read_bytes()
            digest.update(f"{path.relative_to(campaign)}\n".encode())
            digest.update(gzip.decompress(content) if path.suffix == ".gz" else content)
    return digest.hexdigest()[:16]


def differences(kept: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """One line for each thing that one campaign's verdict says otherwise now."""
    if kept == now:
        return []
    lines = ["its records differ: the simulator changed"] if kept.get("records") != now["records"] else []
    was = {"the fleet": kept.get("fleet"), **kept.get("nodes", {})}
    lines += [
        f"{who}\n    was {was.get(who)}\n    is  {text}"
        for who, text in {"the fleet": now["fleet"], **now["nodes"]}.items()
        if was.get(who) != text
    ]
    return lines or ["the same is said, with other figures"]


def main() -> int:
    """List or keep; 1 where something differs and is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep today's verdicts in bench/golden.json")
    keep = parser.parse_args().write
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    with ProcessPoolExecutor() as pool:
        now = dict(zip(RECIPES, pool.map(made, RECIPES), strict=True))
    changed = {name: lines for name in RECIPES if (lines := differences(kept.get(name, {}), now[name]))}
    for name, lines in changed.items():
        print("\n  ".join((f"{name} (seed {list(RECIPES).index(name) + 1})", *lines)))
    print(f"{len(changed)} of {len(RECIPES)} verdicts differ")
    if keep:
        KEPT.write_text(json.dumps(now, indent=1) + "\n")
    return int(bool(changed) and not keep)


if __name__ == "__main__":
    sys.exit(main())
