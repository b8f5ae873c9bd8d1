"""Pairs of nodes in a table: judged as messages between nodes, or rejected with what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nodeprint.cli.app import app
from nodeprint.data.store import packed
from nodeprint.errors import NodeprintError
from nodeprint.interface import open_campaign
from nodeprint.judge import of_table
from nodeprint.judge.outcome import FleetOutcome, Outcome
from nodeprint.judge.verdict import Verdict
from nodeprint.readers import table_file
from nodeprint.readers.table_fleet import packed_table
from nodeprint.report import text, verdict_files

#: Ten times as far apart as runs of STREAM on real fleets of one session.
FAR = 1.3


def lines(
    values: Callable[[int, int], float],
    *,
    nodes: int = 8,
    runs: int = 3,
    seed: int = 1,
    noise: float = 0.01,
    both: bool = False,
    without: Iterable[tuple[int, int]] = (),
) -> list[str]:
    """Rows of pairs `a,b,run,value`: each pair once, or in both directions."""
    rng = np.random.default_rng(seed)
    of_node = 1 + 0.007 * rng.standard_normal(nodes)
    ends = [
        (a, b) for a in range(nodes) for b in range(nodes) if (a < b or (both and a != b)) and (a, b) not in without
    ]
    return [
        f"cn{a},cn{b},{run},{values(a, b) * of_node[a] * of_node[b] * np.exp(noise * rng.standard_normal()):.4g}"
        for run in range(1, runs + 1)
        for a, b in ends
    ]


def written(tmp_path: Path, rows: Iterable[str], head: str = "node_a,node_b,run,bw (GB/s)") -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def verdict(path: Path, *tolerances: str) -> Verdict:
    figures = table_file.read_table(path)
    return of_table.judge(figures, "pairs", of_table.rules_of(figures, tolerances=tolerances)).verdict


def slow(of: Verdict) -> list[dict[str, int | str]]:
    return [dict(finding.component.where) for fabric in of.fabric for finding in fabric.findings]


@pytest.mark.parametrize("both", [False, True])
def test_a_node_that_is_slow_in_all_its_pairs_is_named_and_no_link(tmp_path: Path, both: bool) -> None:
    rows = lines(lambda a, b: 12 / FAR if 3 in (a, b) else 12, both=both)
    of = verdict(written(tmp_path, rows))
    assert slow(of) == [{"node": "cn3", "sends": 1, "receives": 1}]
    outcomes = {name: node.outcome for name, node in of.nodes.items()}
    assert outcomes == {f"cn{i}": Outcome.SUSPECT if i == 3 else Outcome.SAME for i in range(8)}
    (finding,) = of.fabric[0].findings
    assert finding.effect == pytest.approx(1 / FAR - 1, abs=0.02) and finding.interval.low < finding.effect < 0
    assert finding.unit == "GB/s"
    assert finding.value == pytest.approx(finding.peers * (1 + finding.effect), rel=1e-5), "a verdict has six digits"
    assert "bw of cn3 with every other node is 2" in text.finding_sentence(finding)


def test_a_slow_link_is_named_and_none_of_its_nodes(tmp_path: Path) -> None:
    of = verdict(written(tmp_path, lines(lambda a, b: 12 / FAR if {a, b} == {2, 5} else 12)))
    assert slow(of) == [{"node": "cn2", "to": "cn5", "sends": 1, "receives": 1}]
    assert {node.outcome for node in of.nodes.values()} == {Outcome.SAME} and of.fabric[0].outcome.entry.found


def test_one_direction_of_a_link_is_named_in_a_directed_table(tmp_path: Path) -> None:
    of = verdict(written(tmp_path, lines(lambda a, b: 12 / FAR if (a, b) == (5, 2) else 12, both=True)))
    assert slow(of) == [{"node": "cn5", "to": "cn2", "sends": 1, "receives": 0}]


def test_a_time_is_slow_where_it_is_longer(tmp_path: Path) -> None:
    rows = lines(lambda a, b: 1.9 * FAR if 3 in (a, b) else 1.9)
    of = verdict(written(tmp_path, rows, "src,dst,run,latency (us)"))
    (finding,) = of.fabric[0].findings
    assert finding.component.where["node"] == "cn3" and finding.effect == pytest.approx(FAR - 1, abs=0.02)
    assert finding.unit == "ns" and np.nanmedian(np.array(of.fabric[0].median_ns)) == pytest.approx(1900, rel=0.02)


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_nodes_and_links_of_a_uniform_fabric_are_not_accused(tmp_path: Path, noise: float) -> None:
    for seed in range(4):
        of = verdict(written(tmp_path, lines(lambda *_: 12, seed=seed, noise=noise)))
        assert not slow(of) and of.fleet.outcome is FleetOutcome.UNIFORM, seed


def test_node_effects_and_noise_of_a_real_fleet_accuse_nobody(tmp_path: Path, data: Path) -> None:
    """A pair has the geometric mean of both nodes' STREAM triad of a run."""
    frame = table_file.read_table(data / "fleets/azure-hb96-64.stream.csv").frame
    triad = frame[frame["metric"] == "stream-triad-96p"].pivot_table(index="node", columns="run", values="value")
    for first in range(0, 48, 16):
        chosen = triad.iloc[first : first + 12].to_numpy()
        rows = [
            f"cn{a},cn{b},{run},{np.sqrt(chosen[a, run] * chosen[b, run]):.6g}"
            for run in range(chosen.shape[1])
            for a in range(12)
            for b in range(a)
        ]
        assert not slow(verdict(written(tmp_path, rows))), first


def test_one_run_is_undetermined_and_a_far_node_is_suspect(tmp_path: Path) -> None:
    of = verdict(written(tmp_path, lines(lambda a, b: 12 / FAR if 3 in (a, b) else 12, runs=1)))
    assert of.fabric[0].inconclusive == "one-run" and slow(of) == [{"node": "cn3", "sends": 1, "receives": 1}]
    assert of.fleet.single_runs[0].farthest.nodes == ("cn3",)
    assert {node.outcome for name, node in of.nodes.items() if name != "cn3"} == {Outcome.INCONCLUSIVE}
    (line,) = map(text.fabric, of.fabric)
    assert "1 slow node or link; the spread between runs is unknown with one run" in line
    link = verdict(written(tmp_path, lines(lambda a, b: 12 / FAR if {a, b} == {2, 5} else 12, runs=1)))
    assert not slow(link) and link.fleet.outcome is FleetOutcome.INCONCLUSIVE
    (line,) = map(text.fabric, link.fabric)
    assert "Outside the tolerance in this run: cn2 to cn5 (-2" in line and "provide at least two runs" in line
    assert "deviates" not in text.node_sentence(link.nodes["cn2"])


def test_missing_pairs_are_stated_and_nodes_with_few_of_them_left_out(tmp_path: Path) -> None:
    few = [(a, 7) for a in range(5)]
    of = verdict(written(tmp_path, lines(lambda *_: 12, without=[(0, 1), *few])))
    notes = " ".join(note.detail for note in of.fleet.notes)
    assert "1 of 21 pairs have no value of bw" in notes and "fewer than three of the others: cn7" in notes
    assert of.nodes["cn7"].outcome is Outcome.INCONCLUSIVE and of.nodes["cn1"].outcome is Outcome.SAME


def test_a_pair_in_both_orders_with_the_same_values_counts_once(tmp_path: Path) -> None:
    rows = lines(lambda *_: 12)
    swapped = [",".join([row.split(",")[1], row.split(",")[0], *row.split(",")[2:]]) for row in rows]
    of = verdict(written(tmp_path, [*rows, *swapped, "cn1,cn1,1,90"]))
    assert not of.fabric[0].directed
    notes = " ".join(note.detail for note in of.fleet.notes)
    assert "in both orders, counted once: 28 pairs" in notes and "from a node to itself: 1 row" in notes


def test_pairs_and_values_of_nodes_in_one_table_are_both_judged(tmp_path: Path) -> None:
    rows = lines(lambda a, b: 12 / FAR if {a, b} == {2, 5} else 12)
    long = [f"{a},{b},{run},bw,{value},GB/s" for a, b, run, value in (row.split(",") for row in rows)]
    rng = np.random.default_rng(1)
    own = [f"cn{i},,{run},triad,{200 + rng.standard_normal():.4g},GB/s" for i in range(8) for run in (1, 2, 3)]
    head = "node,peer,run,metric,value,unit"
    of = verdict(written(tmp_path, [*long, *own], head))
    assert slow(of) == [{"node": "cn2", "to": "cn5", "sends": 1, "receives": 1}]
    assert {agreement.metric for agreement in of.nodes["cn0"].agreements} == {"triad"}
    mixed = written(tmp_path, [*long, *(row.replace("triad", "bw") for row in own)], head)
    with pytest.raises(NodeprintError, match="bw has values of nodes and of pairs of nodes; call them"):
        verdict(mixed)


def test_sizes_of_messages_are_of_one_fabric_and_other_parts_of_one_each(tmp_path: Path) -> None:
    parts = [(size, hca) for size in (8, 1 << 20) for hca in (0, 1)]
    rows = [f"{row},{size},{hca}" for size, hca in parts for row in lines(lambda *_: 12.0, seed=size + hca)]
    of = verdict(written(tmp_path, rows, "src,dst,run,bw (GB/s),size,hca"))
    assert [fabric.measurement for fabric in of.fabric] == ["bw, hca 0", "bw, hca 1"]
    assert of.fabric[0].message_bytes == 1 << 20
    assert [figure.message_bytes for figure in of.fabric[0].by_size] == [8, 1 << 20]
    assert of.fabric[0].by_size[1].median_ns == pytest.approx((1 << 20) / 12, rel=0.02)


def test_a_tolerance_of_the_call_is_that_of_nodes(tmp_path: Path) -> None:
    path = written(tmp_path, lines(lambda a, b: 12 / FAR if 3 in (a, b) else 12))
    assert not slow(verdict(path, "bw=40")) and slow(verdict(path, "10"))


@pytest.mark.parametrize(
    ("head", "rows", "sentence"),
    [
        ("src,dst,bw", ["cn1,cn2,3", "cn3,cn4,3"], "bw has values between fewer than four nodes that are each linked"),
        (
            "src,dst,bw",
            ["0,1,3", "0,2,3"],
            "nothing says whether src and dst are nodes, ranks or GPUs",
        ),
        ("node,src,dst,bw", ["n1,cn1,cn2,3"], "the column src is beside pairs of nodes (node and dst); take out"),
        ("src,dst,group,bw", ["cn1,cn2,a,3"], "the column group is beside pairs of nodes (src and dst); take out"),
        ("src,dst,bw", ["cn1,CN2,3", "cn2,cn3,4"], "node cn2 is CN2 in another case"),
    ],
)
def test_what_cannot_be_compared_is_rejected(tmp_path: Path, head: str, rows: list[str], sentence: str) -> None:
    with pytest.raises(NodeprintError) as error:
        verdict(written(tmp_path, rows, head))
    assert sentence in str(error.value)


def test_few_pairs_in_both_directions_are_rejected(tmp_path: Path) -> None:
    path = written(tmp_path, [*lines(lambda *_: 12), "cn5,cn2,1,11"])
    with pytest.raises(NodeprintError, match="1 of 28 pairs of bw have values in both directions, as cn2 and cn5"):
        verdict(path)


def test_a_campaign_of_pairs_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    path = written(tmp_path, lines(lambda a, b: 12 / FAR if 3 in (a, b) else 12))
    to = tmp_path / "c"
    called = CliRunner().invoke(app, ["judge", str(path), "--to", str(to), "--fail-on", "found"])
    assert called.exit_code == 3 and "bw between nodes" in called.stdout and "28 pairs x 3 runs" in called.stdout
    figures = table_file.read_table(path)
    fleet = packed_table(figures, "pairs", {})
    (before,), (after,) = fleet.fabrics, packed.read(to).fabrics
    assert np.array_equal(before.values, after.values, equal_nan=True) and before.nodes == after.nodes
    of, direct = verdict_files.read(to), verdict(path)
    assert slow(of) == slow(direct) and of.fabric[0].shown.median[3][4] == direct.fabric[0].shown.median[3][4]
    junit = (to / "verdict.xml").read_text()
    assert 'name="fabric bw"' in junit and "is 2" in junit
    rows = open_campaign.open_campaign(to).messages()
    assert len(rows) == 2 * 28 * 3 and {*rows["unit"]} == {"GB/s"} and "latency_ns" not in rows
