"""Made-up machines and campaigns for the report's tests: labels and times of real shapes, no real machine's figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nodeprint.data import store
from nodeprint.data.jobs import Job, Measured
from nodeprint.machine.topology import as_json
from nodeprint.machine.topology.model import Cpu, Machine, NumaNode, Topology, Warning

#: Latency in ns by what two CPUs share, finest first.
SHARED = (("core", 7.0), ("ccx", 24.0), ("quadrant", 95.0), ("socket", 112.0), (None, 205.0))
CLASSES = {
    "core": "same core",
    "ccx": "same L3",
    "quadrant": "same quadrant",
    "socket": "same socket",
    None: "other socket",
}


def machine(
    sockets: int, quadrants: int, ccds: int, ccxs: int, cores: int, *, vendor: str = "AuthenticAMD"
) -> Topology:
    """A machine with so many parts in each part above it, numbered machine-wide; quadrants of 1 stay unknown."""
    cpus = []
    for number in range(sockets * quadrants * ccds * ccxs * cores):
        ccx, core = divmod(number, cores)
        ccd = ccx // ccxs
        quadrant = ccd // ccds
        socket = quadrant // quadrants
        cpus.append(
            Cpu(
                number,
                socket=socket,
                quadrant=quadrant if quadrants > 1 else None,
                ccd=ccd if vendor == "AuthenticAMD" else None,
                ccx=ccx,
                numa=socket,
                core=number,
                thread=0,
                rank=core,
            )
        )
    nodes = tuple(NumaNode(s, tuple(c.cpu for c in cpus if c.socket == s)) for s in range(sockets))
    return Topology(Machine(vendor=vendor, name="Made-up 1000"), tuple(cpus), nodes)


#: By number of CPUs: one, two, four; one socket of 64; 2 x 64 with two CCXs a CCD; 2 x 128; 4 x 128.
MACHINES = {
    1: machine(1, 1, 1, 1, 1),
    2: machine(1, 1, 1, 1, 2, vendor="GenuineIntel"),
    4: machine(1, 1, 1, 1, 4, vendor="GenuineIntel"),
    16: machine(2, 1, 1, 1, 8, vendor="GenuineIntel"),
    64: machine(1, 4, 2, 2, 4),
    128: machine(2, 4, 2, 2, 4),
    256: machine(2, 4, 4, 1, 8),
    512: machine(4, 4, 4, 1, 8),
}


def shared(topology: Topology) -> np.ndarray[Any, Any]:
    """Per pair the index into SHARED of the finest part that both CPUs are in (n x n)."""
    out = np.full((len(topology.cpus),) * 2, len(SHARED) - 1)
    for index, (level, _) in reversed(list(enumerate(SHARED))):
        if level is None:
            continue
        part = np.array([-1 if getattr(c, level) is None else getattr(c, level) for c in topology.cpus])
        out[(part[:, None] == part[None, :]) & (part[:, None] >= 0)] = index
    return out


def pairs(topology: Topology, rng: np.random.Generator, factor: float = 1.0, runs: int = 2, **header: Any) -> Measured:
    """A measurement of all pairs of a machine, as its records are read."""
    n, passes = len(topology.cpus), 3
    a, b = np.triu_indices(n, 1)
    base = np.array([ns for _, ns in SHARED])[shared(topology)][a, b] * factor
    value = base * rng.normal(1.0, 0.01, (runs, passes, len(a)))
    shares = {
        "latency_ns": 1.0,
        "ci_low_ns": 0.985,
        "ci_high_ns": 1.02,
        "min_ns": 0.95,
        "median_ns": 1.03,
        "p99_ns": 1.4,
    }
    cpus = np.array([c.cpu for c in topology.cpus])
    facts = {
        "schema": 1, "kernel": "coherence", "operation": "cas", "quantity": "hop", "unit": "ns", "host": "here",
        "home": "first", "clock": {"source": "tsc", "hz": 2.3e9, "step_ns": 0.43}, "passes": passes, "lines": 32,
        "batches": 2, "round_trips": 25, "kernel_hash": "0123456789abcdef", "compiler": "gcc 12.2.0",
        "pinned_by": "likwid-pin", "arguments": ["--passes", "3"], "cpus": cpus.tolist(),
        "placement": {"0": {"bytes": 16777216, "bound": True, "verified_by": "move_pages", "pages": "base"}},
    }  # fmt: skip
    columns: dict[str, Any] = {key: (value * share).astype(np.float32) for key, share in shares.items()}
    return Measured(
        "coherence-cas",
        {**facts, **header},
        tuple(
            {
                "run": r + 1, "seed": 1, "start_time": f"2026-01-0{r + 1}T12:00:00Z", "boot_id": "", "segments": 1,
                "complete": True, "sensors": None, "trailer": {"elapsed_s": 7.5}, "clock_ghz": [None] * n,
            }
            for r in range(runs)
        ),
        tuple(range(passes)),
        {"home": np.full(len(a), -1), "a": cpus[a], "b": cpus[b]},
        {},
        columns | {"flags": np.zeros(value.shape, np.uint8), "pair_home": np.zeros(value.shape, np.int16)},
    )  # fmt: skip


def classes(topology: Topology, data: Measured) -> list[dict[str, Any]]:
    """The class medians that a verdict would carry."""
    kinds, values = shared(topology)[np.triu_indices(len(topology.cpus), 1)], data.columns["latency_ns"]
    out = []
    for index, (level, _) in enumerate(SHARED):
        upper = kinds == index
        if upper.any():
            medians = np.median(values[..., upper], axis=-1).ravel()
            out.append(
                {
                    "name": CLASSES[level], "measurement": "coherence-cas", "home": -1,
                    "median_ns": float(np.median(medians)), "ci_low_ns": float(medians.min()),
                    "ci_high_ns": float(medians.max()), "pairs": int(upper.sum()),
                    "runs": len(medians), "run_sd_ns": float(np.std(medians, ddof=1)) if len(medians) > 1 else None,
                }
            )  # fmt: skip
    return out


class Campaign:
    """A campaign of made-up nodes: `jobs` are a node's measurements, job by job; `install` writes them all."""

    def __init__(self, folder: Path, simulated: bool = False) -> None:
        self.folder = folder
        self.topologies: dict[str, Topology] = {}
        self.jobs: dict[str, list[dict[str, Measured]]] = {}
        self.verdict: dict[str, Any] = {
            "schema": 1,
            "campaign": folder.name,
            "simulated": simulated,
            "versions": {"nodeprint": "0.1.0", "likwid": "5.2.2"},
            "fleet": {"outcome": "UNIFORM", "text": "All nodes that were measured are alike."},
            "nodes": {},
        }

    def add(
        self,
        node: str,
        topology: Topology | None,
        *,
        seed: int = 0,
        factor: float = 1.0,
        header: Mapping[str, Any] | None = None,
        **said: Any,
    ) -> None:
        """A node with what the verdict says of it; `topology` None for one that was not measured."""
        text = {
            "verdict": "SAME",
            "text": "Same within 2/2/3/4 % of the group's median.",
            "findings": [],
            "warnings": [],
        }
        if topology is not None:
            self.topologies[node] = topology
            self.jobs[node] = [{}]
            if len(topology.cpus) > 1:
                data = pairs(topology, np.random.default_rng(seed), factor, **{"host": node, **(header or {})})
                self.jobs[node] = [{"coherence-cas": data}]
                text["classes"] = classes(topology, data)
        self.verdict["nodes"][node] = {**text, **said}

    def install(self) -> Path:
        """Write verdict.json, what the store has of the nodes, and their topology; returns the campaign's folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "verdict.json").write_text(json.dumps(self.verdict))
        for node, jobs in self.jobs.items():
            place = self.folder / "nodes" / node
            for number, measured in enumerate(jobs, 1):
                (place / f"job{number}").mkdir(parents=True, exist_ok=True)
                status = {"host": node, "outcome": "complete"}
                store.keep(Job(number, status, measured), place / f"job{number}")
            (place / "job1" / "topology.json").write_text(json.dumps(as_json(self.topologies[node])))
        return self.folder


DOWN = "Not responding [root@2026-01-01]"
ALONE = {"verdict": "NO PEER", "text": "Measured well; there is no other node to compare it with."}
WARNING = {
    "id": "virtual-machine",
    "text": "This is a virtual machine: other guests can disturb it and its CPUs may move.",
    "advice": "Measure on the host, or read the figures as this guest's view.",
}
FINGERPRINT = {
    "cpu_model": "AMD EPYC 7742 64-Core Processor", "stepping": 0, "smt": False, "nps": 1, "memory_gib": 503,
    "governor": "performance", "boost": True, "microcode": "0x8301055", "bios": "2.4",
    "kernel": "5.14.0-427.el9.x86_64", "numa_distances": [[10, 32], [32, 10]],
    "cmdline": "quiet mitigations=off " + "isolcpus=1,2,3,4 " * 6,
}  # fmt: skip
FINDING = {
    "id": "term-block", "severity": "warning", "term": "ccd", "where": {"ccd": 5}, "effect": 0.062,
    "effect_ns": 6.9, "interval": [0.051, 0.073], "runs": ["job1/run1", "job1/run2"],
    "consistent_with": ["a link or I/O-die port"],
    "evidence": ["core clock by probe as its peers", "no EDAC counts"], "measurement": "coherence-cas", "home": -1,
    "remedy": "Measure again after a cold start; then file it.",
    "text": "CCD 5 reaches every other CCD 6.2 % (6.9 ns) later than in the group's template.",
}  # fmt: skip


def alone(folder: Path, cpus: int) -> Campaign:
    """One node of so many CPUs."""
    made = Campaign(folder)
    made.verdict["fleet"] = {
        "outcome": "NO PEER",
        "text": "One node was measured; there is nothing to compare it with.",
    }
    warned = replace(
        MACHINES[cpus], warnings=(Warning("quadrant", "The quadrants are unknown here.", "Nothing to do."),)
    )
    made.add(
        f"node{cpus}",
        warned,
        **ALONE,
        warnings=[WARNING],
        fingerprint=FINGERPRINT,
        quality=["Load before the first run was 0.3."],
    )
    return made


def fleet(folder: Path, count: int, cpus: int = 16) -> Campaign:
    """`count` nodes: one deviates, one is suspect, one failed, one was not measured where there are enough of them."""
    made = Campaign(folder)
    odd = {
        1: {"verdict": "DEVIATES", "text": "One part is not like its peers.", "findings": [FINDING], "factor": 1.06},
        2: {"verdict": "NOT MEASURED", "text": "", "reason": f"Slurm: state DOWN, reason '{DOWN}'"},
        3: {"verdict": "SUSPECT", "text": "Something was seen once.", "findings": [FINDING], "factor": 1.03},
        4: {
            "verdict": "INVALID", "text": "The kernel ended with a signal.",
            "reason": "coherence-cas, run 1: ended by signal 11",
            "log_tail": ["coherence: CPUs 0-15, home first", "coherence: pass 0 of 3, 12 %", "Segmentation fault"],
        },
    }  # fmt: skip
    for i in range(count):
        said = odd.get(i, {}) if count > 2 else {}
        missing = said.get("verdict") in ("NOT MEASURED", "INVALID")
        slow = 1.0 + 0.004 * np.random.default_rng(i).normal()
        arguments = {"factor": slow, **said, "warnings": [WARNING], "fingerprint": FINGERPRINT}
        made.add(f"cn{i + 1:03d}", None if missing else MACHINES[cpus], seed=i, **arguments)
    made.verdict["fleet"] = {
        "outcome": "NOT UNIFORM", "text": f"Of {count} nodes one deviates: cn002, CCD 5.",
        "groups": [{"name": "A", "nodes": list(made.verdict["nodes"])}],
        "smallest_effect": {"node": 0.011, "core": 0.024, "quadrant": None},
        "tests": 1200,
        "expected_false_accusations": 0.0042, "spread": {"core": {"run": 0.003, "node": 0.004}},
        "margins": {},
        "notes": ["cn005 will be measured again."],
        "counts": {},
    }  # fmt: skip
    return made
