"""What changed since a baseline: found where no peer shows it, and not said of a baseline that is too thin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from nodeprint.data.store import packed
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance, baseline, deviations, reduction
from nodeprint.judge.acceptance_file import Suppression
from nodeprint.judge.campaign import judge
from nodeprint.judge.judge import judge as judge_fleet
from nodeprint.judge.outcome import FleetOutcome, Kind, Outcome
from nodeprint.judge.verdict import Finding, Verdict
from nodeprint.stats import intervals
from nodeprint.stats.runs import job_spread, run_spread
from tests.support.fleets import made


def written(folder: Path, *defects: str, boots: Iterable[str] = (), only_cells: bool = False) -> Path:
    """A packed campaign of six nodes; by default each node was booted for it."""
    campaign_fleet: PackedFleet = made(*defects, nodes=6, runs=3, pair_runs=3, cells=only_cells)
    nodes = tuple(replace(node, boots=tuple(boots) or (f"of {folder.name}",)) for node in campaign_fleet.nodes)
    quantities = campaign_fleet.others if only_cells else campaign_fleet.quantities
    packed.write(replace(campaign_fleet, campaign=folder.name, nodes=nodes, quantities=quantities), folder)
    (folder / "verdict.json").touch()
    return folder


def changes(of: Verdict) -> dict[str, list[Finding]]:
    """The findings since the baseline, by node."""
    found = {
        name: [findings for findings in node.findings if findings.id == "changed"] for name, node in of.nodes.items()
    }
    return {name: findings for name, findings in found.items() if findings}


def note(of: Verdict) -> str:
    """What is said of the baseline."""
    (text,) = (note.detail for note in of.fleet.notes if note.kind == "baseline")
    return text


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A baseline of two campaigns of pairs, each of another boot."""
    folder = tmp_path_factory.mktemp("baseline")
    baseline.save([written(folder / name) for name in ("a", "b")], folder / "base")
    return folder / "base"


def test_a_node_that_changed_is_named_and_the_others_are_not(base: Path, tmp_path: Path) -> None:
    calm = judge(written(tmp_path / "c"), baseline=base).verdict
    assert not changes(calm) and note(calm) == "a, 2026-01-01; b, 2026-01-01"
    later = judge(written(tmp_path / "d", "node001: global +15%"), baseline=base).verdict
    assert set(changes(later)) == {"node001"}
    (finding,) = changes(later)["node001"]
    assert finding.effect == pytest.approx(0.15, abs=0.02) and finding.worse
    assert finding.interval.low < finding.effect < finding.interval.high and finding.baseline == "a to b"
    assert finding.times_bound == pytest.approx(finding.effect / finding.bound)


def test_nodes_that_changed_alike_are_seen_though_no_peer_shows_it(base: Path, tmp_path: Path) -> None:
    everyone = tuple(f"node{number:03d}: global +10%" for number in range(6))
    later = judge(written(tmp_path / "d", *everyone), baseline=base).verdict
    assert len(changes(later)) == 6
    for node, findings in changes(later).items():
        finding = findings[0]  # what is measured now, and what the baseline had: not the median of today's nodes
        medians = {figure.name: figure.median_ns for figure in later.nodes[node].classes}
        assert finding.value == pytest.approx(medians[str(finding.part.where["class"])], rel=0.03)
        assert finding.value == pytest.approx(finding.peers * (1 + finding.effect))
    assert {node.outcome for node in later.nodes.values()} == {Outcome.SUSPECT}
    assert later.fleet.outcome is FleetOutcome.SUSPECTS and later.fails([Kind.FOUND])
    assert set(later.recheck) == set(later.nodes)


def test_a_campaign_is_in_a_baseline_once(base: Path) -> None:
    with pytest.raises(NodeprintError, match="is in the baseline already"):
        baseline.save([base.parent / "a"], base)


def test_what_shows_no_change_is_not_saved(tmp_path: Path) -> None:
    """A campaign that is not judged, one boot, one campaign twice; nothing is written then."""
    place, first, again, later = (
        tmp_path / "base",
        *(written(tmp_path / name, boots=("1",)) for name in ("a", "b", "c")),
    )
    with pytest.raises(
        NodeprintError, match=r"needs 3 runs over 2 boots of a node, and with b it has 6 over 1 at most; "
    ):
        baseline.save([first, again], place)
    rebooted = written(tmp_path / "d", boots=("2",))
    with pytest.raises(NodeprintError, match="is in the baseline already"):
        baseline.save([rebooted, rebooted], place)
    (later / "verdict.json").unlink()
    with pytest.raises(NodeprintError, match="c: is not judged; call `nodeprint judge "):
        baseline.save([first, rebooted, later], place)
    assert not place.exists()
    assert baseline.save([first, rebooted], place) == ([place / "a", place / "d"], [])
    assert baseline.save([again], place) == ([place / "b"], []), "what is there counts"
    whole = tmp_path / "whole"
    assert baseline.save([tmp_path], whole)[0] == [whole / name for name in "abd"], "a folder of campaigns"


def test_a_baseline_that_is_not_there_is_named(base: Path, tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="no such baseline"):
        judge(base.parent / "a", baseline=tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NodeprintError, match="holds no campaign"):
        judge(base.parent / "a", baseline=tmp_path / "empty")


def test_a_node_with_another_layout_is_compared_with_nothing(base: Path, tmp_path: Path) -> None:
    later = judge(written(tmp_path / "d", "node002: harvest 1"), baseline=base).verdict
    assert "in it with another layout or other measurements: node002" in note(later)


def test_a_node_that_the_baseline_has_too_little_of_is_not_compared(tmp_path: Path) -> None:
    """The campaign's own folder is a baseline of one; of a node with one boot nothing is said."""
    later = written(tmp_path / "d", "node001: global +15%")
    thin = judge(later, baseline=written(tmp_path / "a", boots=("1",))).verdict
    assert not changes(thin)
    assert "fewer than 3 runs or 2 boots in it, so that no change is reported: node000, node001" in note(thin)
    first, second = written(tmp_path / "b", boots=("1",)), written(tmp_path / "c", boots=("2",))
    fleet = packed.read(second)
    kept = tuple(replace(node, boots=("1",)) if node.name == "node002" else node for node in fleet.nodes)
    packed.write(replace(fleet, nodes=kept), second)
    assert baseline.save([first, second], tmp_path / "base")[1] == ["node002"]
    assert set(changes(judge(later, baseline=tmp_path / "base").verdict)) == {"node001"}


@pytest.mark.slow
def test_cells_are_held_against_a_baseline(tmp_path: Path) -> None:
    """A memory channel that all nodes lost, and a suppressed change."""
    baseline.save([written(tmp_path / name, only_cells=True) for name in ("a", "b")], tmp_path / "base")
    calm = judge(written(tmp_path / "c", only_cells=True), baseline=tmp_path / "base").verdict
    assert not changes(calm)
    lost = tuple(f"node{number:03d}: memory-channel node 1 -12%" for number in range(6))
    rules = acceptance.load()
    campaign = written(tmp_path / "d", *lost, only_cells=True)
    findings = changes(judge(campaign, baseline=tmp_path / "base").verdict)
    assert len(findings) == 6
    for of_node in findings.values():
        (memory,) = (finding for finding in of_node if finding.measurement == "bandwidth-nodes")
        assert memory.part.where["memory_node"] == 1 and memory.effect == pytest.approx(-0.12, abs=0.02)
    suppression = Suppression("node001", "changed", "ticket 1", date(2999, 12, 31))
    fleet = packed.read(campaign)
    since = baseline.against(fleet, tmp_path / "base", rules)
    verdict = judge_fleet(fleet, structs.replace(rules, suppressions=(suppression,)), since=since).verdict
    assert verdict.nodes["node001"].outcome is Outcome.INCONCLUSIVE
    assert verdict.nodes["node002"].outcome is Outcome.SUSPECT


def test_cells_of_a_baseline_are_matched_by_their_places() -> None:
    """A cell that a campaign lacks is a gap; another unit is another quantity."""
    clocks = next(quantity for quantity in made(nodes=2, cells=True).others if quantity.measurement == "clock-together")
    fewer = replace(
        clocks,
        places={dim: column[1:] for dim, column in clocks.places.items()},
        values=np.asarray(clocks.values)[..., 1:],
    )
    whole, less = (reduction.reduce(each, acceptance.load()) for each in (clocks, fewer))
    again = baseline._at_places(whole.quantity, less)
    assert again is not None and np.isnan(again[:, 0]).all()
    assert np.array_equal(again[:, 1:], whole.level[:, 1:])
    other = structs.replace(less, quantity=replace(less.quantity, unit="ns"))
    assert baseline._at_places(whole.quantity, other) is None


def test_simulated_and_measured_campaigns_do_not_mix(base: Path) -> None:
    with pytest.raises(NodeprintError, match="mixes simulated and measured"):
        baseline.against(replace(made(nodes=6, runs=3, pair_runs=3), simulated=False), base, acceptance.load())


def test_a_change_is_one_where_its_whole_interval_is_outside_the_bound(base: Path, tmp_path: Path) -> None:
    """Near the bound of 2 % nothing is named, and what is named has its interval beyond it."""
    for number, percent in enumerate((2.1, 2.3, 2.5, 3.0, 4.0)):
        defects = tuple(f"node{node:03d}: global +{percent}%" for node in range(6))
        found = changes(judge(written(tmp_path / f"c{number}", *defects), baseline=base).verdict)
        assert all(finding.interval.low > finding.bound for findings in found.values() for finding in findings)
        assert not found if percent < 2.2 else True
    assert len(found) == 6


def test_a_baseline_has_what_since_reads_of_a_campaign(tmp_path: Path) -> None:
    """`nodeprint since BASELINE CAMPAIGN` said that the baseline holds no judged campaign."""
    judged = [written(tmp_path / name) for name in ("a", "b")]
    for campaign in judged:
        (campaign / "verdict.json").write_text(campaign.name)
        (campaign / "deviations.nc").write_bytes(b"table")
    points, _ = baseline.save(judged, tmp_path / "base")
    assert [(point / "verdict.json").read_text() for point in points] == ["a", "b"]
    assert all((point / "deviations.nc").read_bytes() == b"table" for point in points)


def test_the_interval_of_a_change_is_of_runs_and_jobs_of_both_sides() -> None:
    """Worked out anew: a mean of runs now from the mean of two campaigns, with what jobs of the baseline differ by."""
    fleet, rules = made(nodes=3, runs=3, pair_runs=3), acceptance.load()
    (one,) = baseline._series(fleet, [fleet, fleet], rules)
    rng, parts = np.random.default_rng(1), len(one.bound)
    names = sorted(one.now)
    of_jobs = [0.006 * rng.standard_normal((3, 1)) for _ in range(3)]
    runs = [job[:, :, None] + 0.001 * rng.standard_normal((3, 3, parts)) for job in of_jobs]
    runs[0][1, :, 4] += 10 * one.bound[4]
    now, *before = [dict(zip(names, of_point, strict=True)) for of_point in runs]
    del before[0][names[2]]
    drawn = structs.replace(one, now=now, before=before)
    found = {node.name: found for node, found in baseline._changes(drawn, fleet, rules, 0.01)}
    assert [name for name, change in found.items() if change is not None] == [names[1]]
    change = found[names[1]]
    assert change is not None and change[0] == 4
    then = np.mean([of_point[1].mean(axis=0) for of_point in runs[1:]], axis=0)
    assert change[1] == pytest.approx(runs[0][1, :, 4].mean() - then[4]) and change[3] == pytest.approx(then[4])
    matrix = one.parts[0]
    every = np.concatenate([runs[0], runs[1][:2], runs[2]])
    prior = deviations.priors(matrix, rules)
    spread = run_spread(every, matrix.terms.pool, prior.run)
    of_runs = spread.pooled * spread.ratio / 3
    twice = every[[3, 5, 4, 6, 7]].mean(axis=1)  # two campaigns of the first and the second node, one of the third
    of_job = job_spread(twice, np.array([0, 0, 1, 1, 2]), of_runs[3:].mean(axis=0), matrix.terms.pool, prior.job**2)
    assert of_job.excess.any()
    of_both = of_runs[1] + (of_runs[4] + of_runs[6]) / 4
    error, degrees = intervals.combined(
        [(of_both, spread.degrees), (1.5 * of_job.assumed, np.inf), (1.5 * of_job.excess, of_job.degrees)]
    )
    assert change[2] == pytest.approx(intervals.half_width(error, degrees, 0.005)[4])
