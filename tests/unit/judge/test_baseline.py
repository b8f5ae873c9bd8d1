"""What changed since a baseline: found where no peer shows it, and not said of a baseline that is too thin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from msgspec import structs

from nodeprint.data.store import packed
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance, baseline, baseline_folder
from nodeprint.judge.acceptance_file import Waiver
from nodeprint.judge.campaign import judge
from nodeprint.judge.judge import judge as judge_fleet
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.verdict import Finding, Note, Shared, Verdict
from nodeprint.report.text import notes as text
from tests.support.fleets import made, times


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
    baseline_folder.save([written(folder / name) for name in ("a", "b")], folder / "base")
    return folder / "base"


def test_a_node_that_changed_is_named_and_the_others_are_not(base: Path, tmp_path: Path) -> None:
    calm = judge(written(tmp_path / "c"), baseline=base).verdict
    assert not changes(calm) and note(calm) == "a, 2026-01-01; b, 2026-01-01"
    later = judge(written(tmp_path / "d", "node001: global +15%"), baseline=base).verdict
    assert set(changes(later)) == {"node001"}
    (finding,) = changes(later)["node001"]
    assert finding.effect == pytest.approx(0.15, abs=0.02) and finding.worse
    assert finding.interval.low < finding.effect < finding.interval.high and finding.baseline == "a to b"
    assert finding.times_tolerance == pytest.approx(finding.effect / finding.tolerance)


def common(of: Verdict) -> tuple[Note, Shared]:
    """What is said of all nodes since the baseline."""
    (note,) = (note for note in of.fleet.notes if note.kind == "baseline-common")
    assert note.shared is not None
    return note, note.shared


def test_what_all_nodes_changed_by_is_one_note_and_no_finding(base: Path, tmp_path: Path) -> None:
    everyone = tuple(f"node{number:03d}: global +10%" for number in range(6))
    later = judge(written(tmp_path / "d", *everyone), baseline=base).verdict
    assert not changes(later)
    said, shared = common(later)
    assert shared.component.term == "node" and len(shared.nodes) == 6
    assert shared.effect == pytest.approx(0.10, abs=0.01) and shared.interval.low < shared.effect < shared.interval.high
    words = text.note(said)
    assert words.startswith("6 nodes (node[000-005]) changed together since the baseline (a to b): the whole node ")
    assert "slower" in words and "No single node is at fault" in words


def test_a_core_is_found_beside_what_all_changed_by(base: Path, tmp_path: Path) -> None:
    """A season of 2% on all nodes gave 164 false findings."""
    everyone = tuple(f"node{number:03d}: global +3%" for number in range(6))
    later = judge(written(tmp_path / "d", *everyone, "node002: core 5 +12%"), baseline=base).verdict
    assert set(changes(later)) == {"node002"} and len(common(later)[1].nodes) == 6
    (finding,) = changes(later)["node002"]
    assert finding.component.term == "core" and finding.component.where["core"] == 5


def test_a_node_that_stayed_while_all_others_moved_did_not_change(base: Path, tmp_path: Path) -> None:
    most = tuple(f"node{number:03d}: global +6%" for number in range(5))
    later = judge(written(tmp_path / "d", *most), baseline=base).verdict
    assert not changes(later) and common(later)[1].nodes == tuple(f"node{number:03d}" for number in range(5))


@pytest.mark.parametrize(
    ("slow", "state"), [((1, 2), Certainty.CONFIRMED), ((1,), Certainty.INTERMITTENT), ((2,), Certainty.INTERMITTENT)]
)
def test_jobs_of_the_newer_campaign_confirm_each_other_or_not(
    base: Path, slow: tuple[int, ...], state: Certainty
) -> None:
    """Two of two jobs: confirmed; one of two, whichever it is: intermittent."""
    two = made(nodes=6, runs=3, pair_runs=3, jobs=2)
    fleet = times(two, "coherence-cas", lambda node, job: 1.15 if node == 1 and job in slow else 1.0)
    changed, _ = baseline.against(replace(fleet, campaign="c"), baseline_folder.points(base), base, acceptance.load())
    assert set(changed) == {"node001"}
    (finding,) = changed["node001"]
    assert finding.state is state and finding.component.term == "node"
    assert sum(job.shows for job in finding.by_job) == len(slow) and len(finding.by_job) == 2


def test_a_campaign_is_in_a_baseline_once(base: Path) -> None:
    with pytest.raises(NodeprintError, match="is in the baseline already"):
        baseline_folder.save([base.parent / "a"], base)


def test_what_shows_no_change_is_not_saved(tmp_path: Path) -> None:
    """A campaign that is not judged, one boot, one campaign twice; nothing is written then."""
    place, first, again, later = (
        tmp_path / "base",
        *(written(tmp_path / name, boots=("1",)) for name in ("a", "b", "c")),
    )
    with pytest.raises(
        NodeprintError, match=r"needs 3 runs over 2 boots of a node, and with b it has 6 over 1 at most; "
    ):
        baseline_folder.save([first, again], place)
    rebooted = written(tmp_path / "d", boots=("2",))
    with pytest.raises(NodeprintError, match="is in the baseline already"):
        baseline_folder.save([rebooted, rebooted], place)
    (later / "verdict.json").unlink()
    with pytest.raises(NodeprintError, match="c: is not judged; call `nodeprint judge "):
        baseline_folder.save([first, rebooted, later], place)
    assert not place.exists()
    assert baseline_folder.save([first, rebooted], place) == ([place / "a", place / "d"], [])
    assert baseline_folder.save([again], place) == ([place / "b"], []), "what is there counts"
    whole = tmp_path / "whole"
    assert baseline_folder.save([tmp_path], whole)[0] == [whole / name for name in "abd"], "a folder of campaigns"


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
    assert baseline_folder.save([first, second], tmp_path / "base")[1] == ["node002"]
    assert set(changes(judge(later, baseline=tmp_path / "base").verdict)) == {"node001"}


@pytest.mark.slow
def test_cells_are_held_against_a_baseline(tmp_path: Path) -> None:
    """A memory channel that a node lost, also a waived one, and one that all nodes lost."""
    baseline_folder.save([written(tmp_path / name, only_cells=True) for name in ("a", "b")], tmp_path / "base")
    rules = acceptance.load()
    lost = "node001: memory-channel node 1 -12%"
    fleet = packed.read(written(tmp_path / "d", lost, only_cells=True))
    changed, _ = baseline.against(fleet, baseline_folder.points(tmp_path / "base"), tmp_path / "base", rules)
    assert set(changed) == {"node001"}
    (memory,) = (finding for finding in changed["node001"] if finding.measurement == "bandwidth-nodes")
    assert memory.component.where["memory_node"] == 1 and memory.effect == pytest.approx(-0.12, abs=0.02)
    waiver = Waiver("node001", "changed", "ticket 1", date(2999, 12, 31))
    verdict = judge_fleet(fleet, structs.replace(rules, waivers=(waiver,)), changed=changed).verdict
    assert all(finding.waived for finding in verdict.nodes["node001"].findings if finding.id == "changed")
    everyone = tuple(f"node{number:03d}: memory-channel node 1 -12%" for number in range(6))
    later = packed.read(written(tmp_path / "e", *everyone, only_cells=True))
    changed, notes = baseline.against(later, baseline_folder.points(tmp_path / "base"), tmp_path / "base", rules)
    assert not changed and notes[1].kind == "baseline-common"


def test_simulated_and_measured_campaigns_do_not_mix(base: Path) -> None:
    with pytest.raises(NodeprintError, match="mixes simulated and measured"):
        measured = replace(made(nodes=6, runs=3, pair_runs=3), simulated=False)
        baseline.against(measured, baseline_folder.points(base), base, acceptance.load())


def test_a_change_is_one_where_its_whole_interval_is_outside_the_tolerance(base: Path, tmp_path: Path) -> None:
    """Near the tolerance of 2% nothing is named, and what is named has its interval beyond it."""
    for number, percent in enumerate((2.1, 3.0, 4.0)):
        found = changes(judge(written(tmp_path / f"c{number}", f"node003: global +{percent}%"), baseline=base).verdict)
        assert all(finding.interval.low > finding.tolerance for findings in found.values() for finding in findings)
        assert not found if percent < 2.2 else True
    assert set(found) == {"node003"}


def test_a_baseline_has_what_diff_reads_of_a_campaign(tmp_path: Path) -> None:
    """`nodeprint diff BASELINE CAMPAIGN` said that the baseline holds no judged campaign."""
    judged = [written(tmp_path / name) for name in ("a", "b")]
    for campaign in judged:
        (campaign / "verdict.json").write_text(campaign.name)
        (campaign / "deviations.nc").write_bytes(b"table")
    points, _ = baseline_folder.save(judged, tmp_path / "base")
    assert [(point / "verdict.json").read_text() for point in points] == ["a", "b"]
    assert all((point / "deviations.nc").read_bytes() == b"table" for point in points)
