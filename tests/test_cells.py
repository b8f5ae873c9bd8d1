"""Quantities that are no pairs of CPUs, judged: found and named, healthy ones left alone, by place."""

from __future__ import annotations

import dataclasses
import gzip
import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import yaml
from nodeprint.verdict.campaign_verdict import judge, judge_fleet
from nodeprint.words import units
from nodeprint.words.outcome import Verdict

from bench import cells as bench
from nodeprint import packed
from nodeprint.errors import NodeprintError
from nodeprint.fleet import job_parts
from nodeprint.fleet.nodes import gather
from nodeprint.judge import acceptance, sets
from nodeprint.layout import CCD
from nodeprint.packed import PackedFleet
from nodeprint.simulate import Plan, Spread, fleet, write
from nodeprint.topology.presets import from_part, preset

from .schemas import valid, valid_campaign

SMALL = preset("naples-2x32")
QUIET = Spread(core=0.002)
ACCUSED = ("DEVIATES", "SUSPECT", "UNSTABLE", "INVALID", "DIFFER")


def judged(*defects: str, nodes: int = 8, seed: int = 1, jobs: int = 1) -> Verdict:
    """The verdict of a simulated fleet with cells, without its pairs: what is found is the cells'."""
    plan = Plan(SMALL, nodes=nodes, seed=seed, jobs=jobs, passes=1, spread=QUIET, defects=defects, cells=True)
    found = fleet(plan)
    return judge_fleet(dataclasses.replace(found, quantities=found.others))


PLANTED = [
    ("memory-channel node 1 -12%", "bandwidth", {"memory_node": 1}),
    ("core-clock 37 -15%", "clock", {"core": 37}),
    ("global +12%", "bandwidth", {}),
]


@pytest.mark.parametrize(("text", "term", "where"), PLANTED)
def test_planted_defects_are_found_named_and_confirmed(text, term, where):
    for seed in (1, 2):
        first = judged(f"node001: {text}", seed=seed)
        assert first.nodes["node001"].verdict == "SUSPECT"
        assert "node001" in first.recheck
        verdict = judged(f"node001: {text}", seed=seed, jobs=2)
        node = verdict.nodes["node001"]
        assert node.verdict == "DEVIATES"
        finding = node.findings[0]
        assert (finding.term, finding.severity) == (term, "error")
        assert where.items() <= finding.where.items()
        assert finding.interval[0] < finding.effect < finding.interval[1]
        assert {run.split("/")[0] for run in finding.runs} == {"job1", "job2"}
        assert [name for name, v in verdict.nodes.items() if v.verdict in ACCUSED] == ["node001"]
        place = next(row for row in node.cells if row.deviates and row.measurement == finding.measurement)
        assert place.median / place.group - 1 == pytest.approx(finding.effect, abs=0.01)
        assert f"{place.measurement}, {place.name}:" in finding.text
        assert not any(row.deviates for row in verdict.nodes["node000"].cells)


def test_a_slow_port_is_found_in_the_bandwidth_of_its_ccd():
    rome = preset("rome-2x64")
    found = fleet(Plan(rome, nodes=8, passes=1, spread=QUIET, cells=True))
    (ports,) = (one for one in found.others if one.measurement == "bandwidth-ccx")
    named = {tuple(ports.place(number).values())[1:] for number in range(ports.size)}
    assert named >= {("ccd", "own", "load"), ("ccx", "other_socket", "store_mem")}
    mine = ports.layout.slots[ports.places["cpu"], CCD] == 3
    assert sum(mine) == (2 + 1) * 3 * 2  # two CCXs and their CCD, three memories, two streams
    values = ports.values.copy()
    values[np.ix_(ports.node == 1, np.ones(values.shape[1], dtype=bool), mine)] *= 0.88
    slow = dataclasses.replace(ports, values=values)
    verdict = judge_fleet(dataclasses.replace(found, quantities=(slow,)))
    assert [name for name, node in verdict.nodes.items() if node.verdict in ACCUSED] == ["node001"]
    finding = verdict.nodes["node001"].findings[0]
    assert (finding.term, finding.measurement, finding.where["ccd"]) == ("bandwidth", "bandwidth-ccx", 3)
    assert finding.effect == pytest.approx(-0.12, abs=0.02)


def test_healthy_fleets_are_not_accused():
    outcomes = [v.verdict for seed in range(8) for v in judged(nodes=8, seed=seed).nodes.values()]
    assert not set(outcomes) & {"DEVIATES", "UNSTABLE", "DIFFER"}
    assert sum(outcome in ACCUSED for outcome in outcomes) <= 1
    assert outcomes.count("SAME") >= 48


def test_a_busy_cpu_is_told_and_cleared():
    both = ("node001: busy core 5 run 1", "node001: busy core 5 run 2")
    first, final = judged(*both), judged(*both, jobs=2)
    (finding,) = [f for f in first.nodes["node001"].findings if f.term == "jitter"]
    assert finding.where["core"] == 5
    assert finding.effect > 0.3
    assert first.nodes["node001"].verdict == "SUSPECT"
    assert final.nodes["node001"].verdict in ("SAME", "INCONCLUSIVE")
    once = judged("node001: busy core 5 run 1").nodes["node001"]
    assert not [f for f in once.findings if f.term == "jitter"]


def test_one_cause_is_one_finding():
    node = judged("node001: core-clock 37 -15%", jobs=2).nodes["node001"]
    (finding,) = node.findings
    assert any("chase-levels" in text for text in finding.evidence)


def test_few_nodes_blame_as_pairs_do():
    assert judged(nodes=1).nodes["node000"].verdict == "NO PEER"
    two = judged("node001: memory-channel node 1 -20%", nodes=2, jobs=2)
    assert {v.verdict for v in two.nodes.values()} == {"DIFFER"}
    for nodes in (3, 4):
        found = judged("node001: memory-channel node 1 -20%", nodes=nodes, jobs=2).nodes
        assert found.pop("node001").verdict == "DEVIATES"
        assert {v.verdict for v in found.values()} <= {"SAME", "INCONCLUSIVE"}


def test_a_node_without_a_measurement_of_its_peers_is_not_the_same():
    found = fleet(Plan(SMALL, nodes=8, passes=1, spread=QUIET, cells=True))
    less = [
        dataclasses.replace(
            one,
            node=one.node[kept],
            job=one.job[kept],
            run=one.run[kept],
            values=one.values[kept],
            started=tuple(np.array(one.started)[kept].tolist()),
        )
        for one in found.others
        for kept in [one.node != 3 if one.measurement == "bandwidth-nodes" else one.node >= 0]
    ]
    verdict = judge_fleet(dataclasses.replace(found, quantities=(*found.pairs, *less)))
    assert verdict.nodes["node003"].verdict == "INCONCLUSIVE"
    assert "it has no bandwidth-nodes, which its peers have" in verdict.nodes["node003"].text
    assert {node.verdict for name, node in verdict.nodes.items() if name != "node003"} == {"SAME"}


def test_a_crowd_is_not_blamed():
    half = tuple(f"node{i:03d}: memory-channel node 1 -12%" for i in range(4))
    verdict = judged(*half, jobs=2)
    assert not {"DEVIATES", "SUSPECT"} & set(verdict.fleet.counts)
    assert verdict.fleet.counts.get("SAME", 0) < 8


@pytest.mark.parametrize("slow", [3, 4])
def test_two_populations_of_cells_blame_nobody(slow):
    half = tuple(f"node{i:03d}: memory-channel node 1 -12%" for i in range(slow))
    verdict = judged(*half, jobs=2)
    assert verdict.fleet.outcome == "TWO POPULATIONS"
    assert not {"DEVIATES", "SUSPECT", "SAME"} & set(verdict.fleet.counts)
    assert sorted(len(group["nodes"]) for group in verdict.fleet.groups) == [slow, 8 - slow]
    assert {group["told_apart_by"] for group in verdict.fleet.groups} == {
        "bandwidth-nodes, CPUs of NUMA node 1, memory of NUMA node 1"
    }


def test_smallest_effects_are_told_and_hold():
    calm = judged()
    size = calm.fleet.smallest_effect["bandwidth"]
    assert size is not None and 0.03 < size < 0.15
    found = judged(f"node001: memory-channel node 1 {-150 * size:.2f}%", jobs=2)
    assert found.nodes["node001"].verdict == "DEVIATES"
    missed = judged(f"node001: memory-channel node 1 {-50 * size:.2f}%", jobs=2)
    assert missed.nodes["node001"].verdict not in ACCUSED


# --- invariances ------------------------------------------------------------------------------------------------------


def test_node_order_and_cpu_numbers_do_not_matter():
    defects = ("node001: core-clock 5 -15%", "node002: memory-channel node 0 -12%")
    plan = Plan(SMALL, nodes=8, jobs=2, passes=1, spread=QUIET, defects=defects, cells=True)
    found = fleet(plan)
    plain = judge_fleet(found)
    order = [3, 1, 4, 0, 5, 7, 2, 6]
    other = judge_fleet(_shuffled(found, order))
    assert {n: v.verdict for n, v in plain.nodes.items()} == {n: v.verdict for n, v in other.nodes.items()}
    again = ("node001: renumbered", "node005: renumbered")
    renumbered = judge_fleet(fleet(dataclasses.replace(plan, defects=(*defects, *again))))
    for verdict in (plain, other, renumbered):
        assert [n for n, v in verdict.nodes.items() if v.verdict == "DEVIATES"] == ["node001", "node002"]
        assert verdict.nodes["node001"].findings[0].where["core"] == 5


def _shuffled(found: PackedFleet, order: list[int]) -> PackedFleet:
    at = {old: new for new, old in enumerate(order)}

    def moved(one):
        rows = np.argsort([at[n] for n in one.node.tolist()], kind="stable")
        node = np.array([at[n] for n in one.node.tolist()])[rows]
        values = np.asarray(one.values)[rows]
        return dataclasses.replace(one, node=node, job=one.job[rows], run=one.run[rows], values=values)

    return dataclasses.replace(
        found,
        nodes=tuple(found.nodes[i] for i in order),
        quantities=tuple(map(moved, found.quantities)),
    )


def test_numa_nodes_are_places_by_their_cpus():
    topology = from_part("EPYC 7742", 2, nps=4)
    of = job_parts.machine(topology)
    swapped = {0: 5, 5: 0}
    nodes = tuple(dataclasses.replace(n, node=swapped.get(n.node, n.node)) for n in topology.numa_nodes)
    again = job_parts.machine(dataclasses.replace(topology, numa_nodes=nodes))
    assert of.layout.key == again.layout.key
    assert [swapped.get(n, n) for n in of.nodes] == list(again.nodes)


def test_distances_and_sets_of_four_nodes_a_socket():
    found = fleet(Plan(from_part("EPYC 7742", 2, nps=4), nodes=2, runs=1, passes=1, cells=True))
    of = next(c for c in found.others if c.measurement == "bandwidth-nodes")
    distance = sets.labels(of)["distance"]
    streams = 4
    assert [distance.count(word) for word in ("own node", "same socket", "other socket")] == [
        8 * streams, 8 * 3 * streams, 8 * 4 * streams,
    ]  # fmt: skip
    found = sets.of(of)
    assert found.terms[0].where == {} and len(found.terms[0].covers) == of.size
    assert len({term.covers.tobytes() for term in found.terms}) == len(found.terms)


def test_what_is_suppressed_hides_nothing_else_in_its_place():
    found = fleet(Plan(SMALL, nodes=6, jobs=2, spread=QUIET, defects=("node001: core-clock 37 -15%",), cells=True))
    cells = dataclasses.replace(found, quantities=found.others)
    (clock,) = judge_fleet(cells).nodes["node001"].findings
    rule = acceptance.Suppression("node001", clock.id, "ticket 1", date(2030, 1, 1))
    known = judge_fleet(cells, dataclasses.replace(acceptance.load(), suppressions=(rule,))).nodes["node001"]
    first, *others = known.findings
    assert clock.evidence and first.suppressed and others
    assert not any(one.suppressed for one in others) and known.verdict == "DEVIATES"


def test_memory_without_cpus_has_a_distance_of_its_own():
    """CXL or high-bandwidth memory is not what CPUs of another socket have."""
    found = fleet(Plan(from_part("EPYC 7742", 2), nodes=2, runs=1, passes=1, cells=True))
    of = next(c for c in found.others if c.measurement == "bandwidth-nodes")
    memory = of.places["memory_node"] + 2 * (of.places["memory_node"] != of.places["cpu_node"])
    far = dataclasses.replace(of, places={**of.places, "memory_node": memory})
    assert set(sets.labels(far)["distance"]) == {"own node", "node without CPUs"}


# --- mutations: each must break a promise -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", bench.MUTATIONS)
def test_mutations_are_caught(name):
    with bench.mutated(name):
        assert bench.failures(1)


def test_the_method_itself_passes_what_catches_mutations():
    assert bench.failures(2) == []


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of a fleet in the kernels' formats, judged; one node has no pairs."""
    folder = tmp_path_factory.mktemp("cells") / "sim"
    defects = ("node001: memory-channel node 1 -12%", "node002: renumbered")
    write(Plan(SMALL, nodes=8, jobs=2, passes=1, spread=QUIET, defects=defects, cells=True), folder)
    for path in (folder / "nodes/node003").glob("job*/run*/coherence-cas.jsonl.gz"):
        path.unlink()
    judge(folder)
    return folder


def test_records_are_judged_like_the_same_draws_packed(campaign):
    verdict = json.loads((campaign / "verdict.json").read_text())
    valid(verdict, "verdict")
    node = verdict["nodes"]["node001"]
    assert node["verdict"] == "DEVIATES"
    assert node["findings"][0]["term"] == "bandwidth"
    assert node["findings"][0]["where"]["memory_node"] == 1
    plan = Plan(SMALL, nodes=8, jobs=2, passes=1, spread=QUIET, defects=("node001: memory-channel node 1 -12%",))
    direct = judge_fleet(fleet(dataclasses.replace(plan, cells=True))).nodes["node001"].findings[0]
    assert node["findings"][0]["effect"] == pytest.approx(direct.effect, rel=0.05)
    assert not any("not compared" in note for note in verdict["fleet"]["notes"])


def test_files_are_as_their_schemas_say_and_the_same_again(campaign):
    assert "records" in valid_campaign(campaign)
    text = (campaign / "verdict.json").read_text()
    assert judge(campaign).json() == text
    stored = packed.read(campaign)
    assert {one.measurement for one in stored.others} >= {"chase-latency", "clock-together", "bandwidth-nodes"}


def test_a_node_without_pairs_is_measured_and_compared(campaign):
    states = {node.node: node.state for node in gather(campaign).nodes}
    assert states["node003"] == "measured"
    node = json.loads((campaign / "verdict.json").read_text())["nodes"]["node003"]
    assert node["verdict"] not in ("NOT MEASURED", "DIFFERENT CONFIGURATION")
    assert {row["measurement"] for row in node["cells"]} >= {"chase-latency", "bandwidth-nodes"}


def test_figures_name_the_worst_cell_and_the_group(campaign):
    nodes = json.loads((campaign / "verdict.json").read_text())["nodes"]
    rows = {(row["measurement"], row["name"]): row for row in nodes["node001"]["cells"]}
    slow = rows["bandwidth-nodes", "triad, own node"]
    assert slow["unit"] == "B/s"
    assert slow["worst"] == "CPU node 1, memory 1"
    assert slow["worst_value"] < 0.93 * slow["group"]
    assert rows["chase-latency", "own node"]["median"] < rows["chase-latency", "other socket"]["median"]


# --- over time ------------------------------------------------------------------------------------------------------




# --- what was seen beside ---------------------------------------------------------------------------------------------


def _rewritten(path: Path, header: dict[str, object], trailer: dict[str, object], fell: float = 0.0) -> None:
    """A record file with more in its header and trailer, and clocks that fell by a share."""
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    lines[0] |= header
    lines[-1] |= trailer
    for cell in lines[1:-1]:
        if fell:
            cell["end_hz"] = cell["start_hz"] * (1 - fell)
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))


def test_what_the_kernels_saw_is_told(tmp_path):
    folder = tmp_path / "sim"
    write(Plan(SMALL, nodes=5, runs=2, passes=1, spread=QUIET, cells=True), folder)
    before = {"temperatures_c": {"k10temp0/Tctl": 60.0}, "edac": {"mc0": {"ce": 1, "ue": 0}}, "throttle_core": {"3": 5}}
    hot = {"temperatures_c": {"k10temp0/Tctl": 97.0}, "edac": {"mc0": {"ce": 4, "ue": 0}}, "throttle_core": {"3": 5}}
    path = folder / "nodes/node001/job1/run1/clock-together.jsonl.gz"
    _rewritten(path, {"sensors": before}, {"sensors": hot}, fell=0.08)
    throttled = {"sensors": {**hot, "throttle_core": {"3": 9}, "throttle_package": {"3": 2}}}
    _rewritten(folder / "nodes/node002/job1/run2/clock-together.jsonl.gz", {"sensors": before}, throttled)
    _rewritten(folder / "nodes/node003/job1/run1/coherence-cas.jsonl.gz", {}, {"steal_s": 50.0})
    grain = {"steal_s": 0.01, "elapsed_s": 0.001}  # a tick in a short run
    _rewritten(folder / "nodes/node004/job1/run1/coherence-cas.jsonl.gz", {}, grain)
    verdict = judge(folder)
    assert "records" in valid_campaign(folder)
    warned = {w["id"]: w["text"] for w in verdict.nodes["node001"].warnings}
    assert "97" in warned["hot"] and "3 memory errors" in warned["memory-errors"] and "8.0 %" in warned["clock-fell"]
    assert verdict.nodes["node001"].verdict not in ("INVALID", "UNSTABLE")
    assert verdict.nodes["node002"].verdict == "INVALID"
    assert "6 thermal throttling events" in verdict.nodes["node002"].text
    assert verdict.nodes["node003"].verdict not in ("INVALID", "UNSTABLE"), "its pairs are not disturbed"
    (stolen,) = [w["text"] for w in verdict.nodes["node003"].warnings if w["id"] == "stolen-time"]
    assert "% of the CPUs' time during run 1 of coherence-cas" in stolen
    assert not verdict.nodes["node004"].quality
    assert "stolen-time" not in {w["id"] for w in verdict.nodes["node004"].warnings}


def test_loud_cpus_are_named_in_whatever_run():
    node = judged("node001: busy core 5 run 1").nodes["node001"]
    (text,) = [w["text"] for w in node.warnings if w["id"] == "loud-cpus"]
    assert "CPU 5 (" in text
    assert "rank correlation over CPUs" in text and "in chase-levels" in text
    assert not [w for w in judged().nodes["node002"].warnings if w["id"] == "loud-cpus"]


def test_a_slow_core_is_told_with_its_clock():
    plan = Plan(preset("rome-2x64"), nodes=8, jobs=2, spread=QUIET, cells=True)
    slow = judge_fleet(fleet(dataclasses.replace(plan, defects=("node001: core-clock 37 -30%",)))).nodes["node001"]
    assert slow.findings[0].term == "clock"
    (of_pairs,) = [f for f in slow.findings if f.term == "core"]
    assert any("clock-together, core 37" in text for text in of_pairs.evidence)


def test_limits_and_required_measurements_of_cells(tmp_path):
    path = tmp_path / "acceptance.yaml"
    limit = {"measurement": "bandwidth-nodes", "row": "triad, own node", "at_least": 108e9, "reason": "contract 1"}
    path.write_text(yaml.safe_dump({"limits": [limit], "required": ["loaded-latency"]}))
    found = fleet(Plan(SMALL, nodes=3, passes=1, cells=True, defects=("node001: memory-channel node 1 -30%",)))
    verdict = judge_fleet(found, acceptance.load(path))
    outside = [name for name, node in verdict.nodes.items() if node.verdict == "OUTSIDE LIMIT"]
    assert outside == ["node001"]
    assert "108 GB/s" in verdict.nodes["node001"].text
    assert any("loaded-latency was not measured" in text for text in verdict.nodes["node002"].quality)
    path.write_text(yaml.safe_dump({"limits": [{"measurement": "x", "at_least": 1, "reason": "y"}]}))
    with pytest.raises(NodeprintError, match=r"limits\[0\]"):
        acceptance.load(path)


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (8.6, "8.6 ns"),
        (999.0, "999 ns"),
        (999.96, "1 us"),
        (6990.0, "6.99 us"),
        (1136129.8, "1.14 ms"),
        (2.5e9, "2.5 s"),
    ],
)
def test_a_time_is_said_in_the_unit_that_keeps_it_short(ns: float, said: str) -> None:
    assert units.said(ns, "ns") == said


def test_cells_that_a_node_lacks_are_not_the_same() -> None:
    found = fleet(Plan(SMALL, nodes=8, cells=True))
    one = next(one for one in found.others if one.measurement == "bandwidth-nodes")
    values = np.asarray(one.values).copy()
    values[np.ix_(one.node == 1, range(values.shape[1]), one.places["memory_node"] == 1)] = np.nan
    others = tuple(dataclasses.replace(one, values=values) if of is one else of for of in found.quantities)
    node = judge_fleet(dataclasses.replace(found, quantities=others)).nodes["node001"]
    assert node.verdict == "INCONCLUSIVE" and "it has no complete bandwidth-nodes" in node.text


def test_lost_time_is_said_in_points_above_what_the_peers_lose() -> None:
    found = fleet(Plan(SMALL, nodes=8, cells=True))
    one = next(one for one in found.others if one.measurement == "jitter-detours")
    values = np.full_like(np.asarray(one.values), 0.02)
    values[one.node == 1, :, 9] = 0.1
    others = tuple(dataclasses.replace(one, values=values) if of is one else of for of in found.quantities)
    node = judge_fleet(dataclasses.replace(found, quantities=others)).nodes["node001"]
    assert "loses 8.0 percentage points more of its time than its peers, which lose 2 %" in node.text
