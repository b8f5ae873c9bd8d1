"""The golden campaigns, each with what is special about it. They are made by the command line and from record files, so
that no type of the program has to stay as it is for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.golden.stage import DECIDING, Stage, change_records, take_job
from tests.support.made_records import TRAILER, header, lines, pair

Make = Callable[[Stage], None]
CAMPAIGNS: dict[str, Make] = {}


def golden(make: Make) -> Make:
    """A campaign by the name of what makes it."""
    CAMPAIGNS[make.__name__.replace("_", "-")] = make
    return make


@golden
def same(stage: Stage) -> None:
    """Nodes that are the same, and a card of one of them."""
    stage.simulate("main", runs=2, passes=2, measured=())
    stage.judge()
    stage.run("judge", "main", "--fail-on", "not-same")
    stage.run("protocol", "main", "--to", "protocol")


@golden
def core(stage: Stage) -> None:
    """A slow core on one node, one that is slow to half of the machine on another."""
    stage.simulate("main", "node001: core 3 +9%", "node004: half-row 6 +12%", nodes=7)
    stage.judge("main", "--recheck", "again.txt")
    stage.run("judge", "main", "--node", "node001")


@golden
def ccd(stage: Stage) -> None:
    """A CCD that is slow to all others, and one inside."""
    stage.simulate("main", "node001: ccd 2 to-others +12%", "node003: ccd 1 +9%", machine="sixteen", nodes=6)
    stage.judge()


@golden
def ccx(stage: Stage) -> None:
    """The inside of a CCX is slow on one node."""
    stage.simulate("main", machine="ccx", nodes=6)
    change_records("main/nodes/node002/job1/run*/coherence-cas.jsonl.gz", _slow_inside)
    stage.judge()


def _slow_inside(row: dict[str, object]) -> dict[str, object]:
    inside = row["record"] == "pair" and min(int(str(row["a"])), int(str(row["b"]))) >= 4
    return {name: round(1.4 * float(str(value)), 3) for name, value in row.items() if inside and name.endswith("_ns")}


@golden
def arm(stage: Stage) -> None:
    """A machine of one part, whose memory is slow on one node."""
    stage.simulate("main", "node002: memory-channel node 0 -15%", machine="arm")
    stage.judge()


@golden
def link(stage: Stage) -> None:
    """A slow path between two quadrants, and a slow fabric."""
    stage.simulate("main", "node002: link q0-q1 +9%", "node004: fabric +7%", machine="nps4", nodes=7)
    stage.judge()


@golden
def sockets(stage: Stage) -> None:
    """Two sockets: the link between them, one of them, and the power limit of one."""
    defects = ("node001: socket-link +9%", "node002: socket 1 +9%", "node003: power-limit socket 1 -15%")
    stage.simulate("main", *defects, machine="sockets", nodes=8, measured=(*DECIDING, "load-together"))
    stage.judge()


@golden
def memory(stage: Stage) -> None:
    """A memory channel, a path to memory, and memory without huge pages."""
    defects = (
        "node001: memory-channel node 0 -15%",
        "node002: memory node1-to-node0 +25%",
        "node003: fragmented node 1 40%",
    )
    stage.simulate("main", *defects, machine="xeon", nodes=8, measured=(*DECIDING, "fault-huge", "chase-pages"))
    stage.judge()


@golden
def clock(stage: Stage) -> None:
    """The clock of a core, bad cooling, and slow idle states."""
    defects = ("node001: core-clock 3 -15%", "node002: cooling socket 0 -15%", "node003: idle-state +200%")
    stage.simulate("main", *defects, nodes=8, measured=(*DECIDING, "load-together", "load-ladder", "wake-futex"))
    stage.judge()


@golden
def whole_node(stage: Stage) -> None:
    """A node that is slower in all of its cores by two jobs."""
    stage.simulate("main", "node003: global +6%", jobs=2)
    stage.judge()
    stage.run("protocol", "main", "--to", "protocol")


@golden
def confirmed(stage: Stage) -> None:
    """A core that two jobs show, a known finding, and the acceptance report of two campaigns."""
    stage.simulate("first", "node001: core 3 +9%", nodes=6, seed=2)
    stage.simulate("main", "node001: core 3 +9%", "node002: core 5 +9%", jobs=2, nodes=6)
    Path("acceptance.yaml").write_text(
        "waivers:\n- {node: node002, finding: core-slow, reason: ticket 42, until: 2099-12-31}\n"
    )
    stage.judge("first", pages=False)
    stage.judge("main", "--acceptance", "acceptance.yaml")
    stage.run("protocol", "first", "main", "--to", "protocol")


@golden
def intermittent(stage: Stage) -> None:
    """A core that is slow in two of three jobs, and one in some runs."""
    stage.simulate("quiet", jobs=3)
    stage.simulate("main", "node001: core 3 +9%", "node003: intermittent core 5 +40%", jobs=3)
    take_job("quiet", "main", ["node001"], 2)
    stage.judge()


@golden
def disagreeing_jobs(stage: Stage) -> None:
    """A core that the second of two jobs does not show, of some nodes alone."""
    stage.simulate("main", "node001: core 3 +9%", jobs=1, nodes=6)
    stage.simulate("quiet", jobs=2, nodes=6)
    take_job("quiet", "main", ["node001", "node000", "node005"], 2)
    stage.judge("main", "--recheck", "again.txt")


@golden
def split(stage: Stage) -> None:
    """Half of the nodes slower, with other firmware."""
    slower = [f"node00{i}: global +6%" for i in range(4)]
    stage.simulate("main", *slower, *(f"node00{i}: fingerprint microcode=0xa" for i in range(4)), nodes=8)
    stage.judge()


@golden
def two_nodes(stage: Stage) -> None:
    """Two nodes that differ: which is right is unknown."""
    stage.simulate("main", "node001: core 3 +12%", nodes=2)
    stage.judge()


@golden
def one_node(stage: Stage) -> None:
    """A machine by itself, with two threads a core; its card."""
    stage.simulate("main", nodes=1, runs=2, machine="threads", measured=())
    stage.judge()
    stage.prepare("publish", "main/nodes/node000", "--to", "card.json")
    stage.run("judge", "main", "--fail-on", "not-same")


@golden
def configuration(stage: Stage) -> None:
    """Nodes with other settings, and one whose CPUs have other numbers."""
    defects = ("node001: fingerprint microcode=0x1234", "node002: nps 1", "node003: renumbered")
    stage.simulate("main", *defects, nodes=7, machine="sixteen")
    stage.judge()
    stage.run("drift", "main")
    stage.run("judge", "main", "--fail-on", "configuration")


@golden
def not_measured(stage: Stage) -> None:
    """Nodes that never began, or were cut off, one that another program disturbed, and two runs that disagree."""
    defects = ("node001: missing", "node002: cut", "node003: busy core 3 run 1")
    stage.simulate("main", *defects, nodes=7, runs=2)
    change_records("main/nodes/node004/job1/run2/bandwidth-nodes.jsonl.gz", _slower)
    stage.judge()
    stage.run("status", "main")
    stage.run("judge", "main", "--fail-on", "not-measured")


def _slower(row: dict[str, object]) -> dict[str, object]:
    return {name: 0.6 * float(str(value)) for name, value in row.items() if name == "rate_bytes_per_s"}


@golden
def nothing_measured(stage: Stage) -> None:
    """No node has records."""
    stage.simulate("main", "node000: missing", "node001: missing", nodes=2)
    stage.judge()


@golden
def invalid(stage: Stage) -> None:
    """A node whose record is damaged, one that lacks a measurement, and one booted again within a job."""
    stage.simulate("main", nodes=6)
    broken = Path("main/nodes/node001/job1/run1/coherence-cas.jsonl.gz")
    broken.write_bytes(broken.read_bytes()[:200])
    for path in Path("main/nodes/node002/job1").glob("run*/coherence-cas.jsonl.gz"):
        path.unlink()
    change_records("main/nodes/node003/job1/run1/chase*.gz", _booted_again)
    stage.judge()
    stage.run("judge", "main", "--fail-on", "invalid")


def _booted_again(row: dict[str, object]) -> dict[str, object]:
    return {"boot_id": "11111111-0000-4000-8000-000001000000"} if row["record"] == "header" else {}


@golden
def harvested(stage: Stage) -> None:
    """A node whose chip has fewer cores a CCX than the others."""
    stage.simulate("main", "node002: harvest 1", machine="ccx", nodes=6)
    stage.judge()


@golden
def noisy(stage: Stage) -> None:
    """Measurements that resolve no difference of the size of a tolerance."""
    stage.simulate("main", "node002: core 3 +9%", noise=4)
    stage.judge()


@golden
def loaded(stage: Stage) -> None:
    """Other programs took time on all nodes, more than a hundredth on one; hot and throttled processors."""
    stage.simulate("main", nodes=6)
    change_records("main/nodes/*/job1/run1/*.gz", lambda row: _lost(row, 0.004))
    change_records("main/nodes/node001/job1/run*/*.gz", lambda row: _lost(row, 0.2))
    change_records("main/nodes/node002/job1/run1/*.gz", _hot)
    stage.judge()


def _lost(row: dict[str, object], share: float) -> dict[str, object]:
    return {"lost_share": share} if row["record"] == "trailer" else {}


def _hot(row: dict[str, object]) -> dict[str, object]:
    if row["record"] == "header":
        return {"sensors": {"throttle_core": {"cpu0": 1}, "edac": {"mc0": {"ce": 0, "ue": 0}}}}
    after = {
        "temperatures_c": {"k10temp": 98.0},
        "throttle_core": {"cpu0": 9},
        "edac": {"mc0": {"ce": 3, "ue": 1}},
    }
    return {"sensors": after} if row["record"] == "trailer" else {}


@golden
def wrong_result(stage: Stage) -> None:
    """A CPU that calculates wrong numbers."""
    stage.simulate("main", measured=(*DECIDING, "load-alone", "jitter-detours"))
    change_records("main/nodes/node002/job1/run1/load-alone.jsonl.gz", _wrong)
    stage.judge()


def _wrong(row: dict[str, object]) -> dict[str, object]:
    if row["record"] == "header":
        return {"cells": {"dims": ["cpu"], "values": {"flops_per_s": "1/s", "core_hz": "Hz", "wrong_bursts": "1"}}}
    return {"wrong_bursts": 4 if row["cpu"] == 3 else 0} if row["record"] == "cell" else {}


@golden
def limits(stage: Stage) -> None:
    """Limits of a contract that nodes keep, break, and that name nothing."""
    stage.simulate("main", "node001: memory-channel node 0 -15%")
    Path("acceptance.yaml").write_text("""
tolerances: {percent: {core: 8}}
limits:
- {measurement: coherence-cas, class: same socket, at_most: 150, reason: contract 1}
- {measurement: bandwidth-nodes, row: "copy, own node", at_least: 1.0e+11, reason: contract 2}
- {measurement: bandwidth-nodes, row: "no such row", at_least: 1.0e+9, reason: contract 3}
""")
    stage.judge("main", "--acceptance", "acceptance.yaml")


@golden
def linktest(stage: Stage) -> None:
    """LinkTest's messages between cores, one CCD of which is slow."""
    stage.simulate(
        "main", "node002: ccd 1 +12%", linktest=True, machine="sixteen", measured=("coherence-cas", "linktest-node")
    )
    stage.judge()


@golden
def fabric(stage: Stage) -> None:
    """Messages between nodes, with a slow node and a slow link in two jobs."""
    stage.simulate("main", nodes=8)
    names = [f"node{i:03d}" for i in range(8)]
    generator = np.random.default_rng(1)
    for job in (1, 2):
        for run in (1, 2):
            path = Path(f"main/fabric/job{job}/any/run{run}/linktest-fabric.jsonl")
            path.parent.mkdir(parents=True)
            head = header(
                kernel="linktest",
                operation="unidirectional",
                quantity="message",
                home=None,
                directed=True,
                ranks=[[name, 0] for name in names],
                job=job,
                run=run,
                cpus=[],
                message_bytes=1024,
                start_time=f"2026-01-0{job}T0{run}:00:00Z",
            )
            noise = np.exp(0.01 * generator.standard_normal((8, 8)))
            noise[2] *= 1.4
            noise[5, 6] *= 1.6
            pairs = (
                pair(a, b, 0, float(round(2000 * noise[a, b], 1)), home=-1)
                for a in range(8)
                for b in range(8)
                if a != b
            )
            path.write_text(lines(head, *pairs, TRAILER))
    stage.judge()


@golden
def repaired(stage: Stage) -> None:
    """A core that was slow until the node was repaired, another node whose firmware changed."""
    stage.simulate("main", "node001: core 3 +9%", jobs=2)
    stage.simulate("after", "node002: fingerprint microcode=0x9", jobs=2)
    take_job("after", "main", ["node001", "node002"], 2)
    Path("acceptance.yaml").write_text(
        "repairs:\n- {node: node001, at: '2026-01-01T01:30', what: processor exchanged}\n"
    )
    stage.judge("main", "--acceptance", "acceptance.yaml")
    stage.run("protocol", "main", "--to", "protocol")


@golden
def baseline(stage: Stage) -> None:
    """A campaign that is compared with a saved baseline and an earlier one; what changed."""
    stage.simulate("before", jobs=2, runs=2)
    stage.simulate("main", "node001: core 3 +9%", seed=2)
    change_records("before/nodes/*/job2/run*/*.gz", _booted_again)
    stage.judge("before", pages=False)
    stage.run("baseline", "save", "before", "--to", "saved")
    stage.judge("main", "--baseline", "saved")
    stage.run("diff", "before", "main")


@golden
def imported(stage: Stage) -> None:
    """Matrices of another tool as a fleet, one with a slow core; one alone; their structure."""
    generator = np.random.default_rng(1)
    same_ccx = np.arange(8)[:, None] // 4 == np.arange(8)[None, :] // 4
    for node in range(6):
        matrix = np.where(same_ccx, 25.0, 110.0) * np.exp(0.004 * generator.standard_normal((8, 8)))
        matrix[5] *= 1.1 if node == 4 else 1
        matrix[:, 5] *= 1.1 if node == 4 else 1
        rows = [",".join(f"{matrix[a, b]:.1f}" if a > b else "" for b in range(8)) for a in range(8)]
        Path(f"n{node}.csv").write_text("\n".join(rows) + "\n")
    stage.run("import", *(f"n{node}.csv" for node in range(6)), "--out", "main")
    stage.judge()
    stage.run("import", "n1.csv", "--out", "single")
    stage.judge("single")
    stage.run("structure", "n1.csv")


@golden
def table(stage: Stage) -> None:
    """A table of numbers: a slow node, a split metric, and one without a unit."""
    generator = np.random.default_rng(1)
    rows = ["node,run,metric,unit,value"]
    for node in range(16):
        for run in (1, 2, 3):
            triad = 200e9 * (0.9 if node == 3 else 1) * (1 + 0.003 * generator.standard_normal())
            latency = 100 * (1.08 if node % 2 else 1) * (1 + 0.002 * generator.standard_normal())
            rows.append(f"n{node:02d},{run},triad,B/s,{triad:.4g}")
            rows.append(f"n{node:02d},{run},latency,ns,{latency:.4g}")
    Path("stream.csv").write_text("\n".join(rows) + "\n")
    stage.run("judge", "stream.csv", "--fail-on", "found", "--to", "main")
    stage.prepare("report", "main")
    stage.run("judge", "stream.csv", "--tolerance", "triad=20", "--tolerance", "latency=15")
    Path("wide.csv").write_text("node,gflops\n" + "".join(f"n{i},{1000 + i}\n" for i in range(6)))
    stage.run("judge", "wide.csv")
    stage.run("judge", "wide.csv", "--better", "gflops=higher")


@golden
def outputs(stage: Stage) -> None:
    """Outputs of STREAM, a file of each node; one node is slow and one failed its check."""
    for node in range(6):
        best = 90000 * (0.8 if node == 2 else 1) + 37 * node
        check = (
            "Failed Validation on array a[]" if node == 4 else "Solution Validates: avg error less than 1.000000e-13"
        )
        kernels = "".join(
            f"{name:12}{best + at:.1f}     0.018     0.017     0.019\n" for at, name in enumerate(_STREAM)
        )
        bars = "-" * 61
        Path(f"stream-cn{node:02d}.txt").write_text(
            f"{bars}\nSTREAM version $Revision: 5.10 $\n{bars}\nThis system uses 8 bytes per array element.\n{bars}\n"
            f"Array size = 80000000 (elements), Offset = 0 (elements)\n{bars}\n"
            f"Function    Best Rate MB/s  Avg time     Min time     Max time\n{kernels}{bars}\n{check}\n{bars}\n"
        )
    Path("logs").mkdir()
    for path in Path().glob("stream-*.txt"):
        path.rename(Path("logs", path.name))
    stage.run("judge", "logs", "--fail-on", "found", "--to", "main")
    stage.prepare("report", "main")


_STREAM = ("Copy:", "Scale:", "Add:", "Triad:")


@golden
def many_nodes(stage: Stage) -> None:
    """A table of a hundred nodes, of which many differ: nodes share lines."""
    generator = np.random.default_rng(2)
    values = 4000 * (1 + 0.002 * generator.standard_normal((100, 3)))
    values[[7, 21, 22, 23, 61]] *= 0.93
    values[50:54] *= 1.04
    rows = [f"n{node:03d},{run},events,events/s,{values[node, run]:.5g}" for node in range(100) for run in range(3)]
    Path("events.csv").write_text("\n".join(["node,run,metric,unit,value", *rows]) + "\n")
    stage.run("judge", "events.csv", "--fail-on", "found", "--to", "main")
    stage.prepare("report", "main")


@golden
def io_die(stage: Stage) -> None:
    """The map of an I/O die from the values of lines."""
    stage.simulate("main", machine="sixteen", nodes=2, detail=True, modes="mesh4", passes=2)
    stage.judge(pages=False)
    stage.run("iodie", "main/nodes/node000")


#: Published fleets and machines, which are not part of the project: where NODEPRINT_DATA names them.
PUBLISHED: dict[str, Make] = {}


def published(make: Make) -> Make:
    """A campaign of published data."""
    PUBLISHED[make.__name__.replace("_", "-")] = make
    return make


@published
def real_fleet(stage: Stage) -> None:
    """Sixty-four virtual machines of a cloud, and 640 values of another."""
    stage.run("judge", "data/fleets/parallelcluster-64.sysbench.csv", "--fail-on", "found", "--to", "main")
    stage.prepare("report", "main")
    stage.run("judge", "data/fleets/azure-hb96-64.stream.csv", "--fail-on", "found")


@published
def real_machine(stage: Stage) -> None:
    """The matrix of a published machine."""
    stage.run("import", "data/c2c/core-to-core-latency/AMD Ryzen 7 5800U.csv", "--out", "main")
    stage.judge()
