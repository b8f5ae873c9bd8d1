"""How far a campaign is: what is complete in its folder, and the time left by plans, what was taken, Slurm's limit."""

import calendar
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeprint.campaign import progress, recheck
from nodeprint.campaign.node_sheet import Node, write_sheet

START = "2026-11-20T10:00:00Z"
NOW = calendar.timegm(time.strptime(START, "%Y-%m-%dT%H:%M:%SZ"))
LOG = f"""\
{START} node-run: node cn01, job 1 on cn01: 2 runs of 3 measurements, 64 CPUs allowed
{START} node-run: run 1 of 2: coherence-cas
cas: 12 of 300 (4%), 70 s left
2026-11-20T10:01:00Z node-run: run 1 of 2: chase-levels
"""


def test_what_a_node_is_at_is_the_end_of_its_log() -> None:
    node = progress.NodeProgress("cn01", frozenset())
    expected = replace(node, measurement="chase-levels", run=1, measured_s=15.0)
    assert progress.at_work(node, LOG, NOW + 75) == expected
    log = f"{LOG}levels: 1 of 8 (12%), 40 s left\rlevels: 3 of 8 (37%), 31 s left   "
    assert progress.at_work(node, log, NOW + 75) == replace(expected, left_s=31.0)
    assert progress.at_work(node, LOG.splitlines()[0], NOW) is node


PLANNED = {"a": 10.0, "b": 20.0, "c": 30.0}
STEPS = [(run, name) for run in (1, 2) for name in PLANNED]


class Nodes:
    """A campaign of nodes that begin with a measurement, complete it, refuse it, or come to their end."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self.jobs = {name: folder / "nodes" / name / "job1" for name in names}
        for job in self.jobs.values():
            job.mkdir(parents=True)

    def begins(self, node: str, run: int, name: str, seconds_ago: float = 0, *more: str) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds_ago))
        with (self.jobs[node] / "node-run.log").open("a") as log:
            log.write(f"{moment} node-run: run {run} of 2: {name}\n" + "".join(f"{line}\n" for line in more))

    def completes(self, node: str, run: int, name: str, seconds: float = 1) -> None:
        (self.jobs[node] / f"run{run}").mkdir(exist_ok=True)
        (self.jobs[node] / f"run{run}/{name}.jsonl.gz").touch()
        self.notes(node, run, name, "done", seconds)

    def notes(self, node: str, run: int, name: str, outcome: str, seconds: float = 0) -> None:
        with (self.jobs[node] / "outcomes.tsv").open("a") as notes:
            notes.write(f"{run}\t{name}\t{outcome}\t0\t{seconds:.2f}\tnative\t\n")

    def packs(self, node: str, run: int) -> None:
        """One archive takes the place of a run's record files."""
        (self.jobs[node] / f"run{run}.tar.zst").touch()
        for path in (self.jobs[node] / f"run{run}").glob("*"):
            path.unlink()

    def ends(self, node: str) -> None:
        (self.jobs[node] / "status.json").touch()

    def in_queue(self, **states: str) -> None:
        (self.folder / "launch").mkdir(exist_ok=True)
        rows = [f"{node}\t1\t{number}\t{state}\n" for number, (node, state) in enumerate(states.items(), 1)]
        (self.folder / "launch/jobs.tsv").write_text("".join(rows))

    def watch(self, limit_s: float = float("inf")) -> progress.CampaignProgress:
        return progress.CampaignProgress(self.folder, self.jobs, STEPS, PLANNED, limit_s)


Make = Callable[..., Nodes]


@pytest.fixture
def nodes(tmp_path: Path) -> Make:
    """`nodes("cn01", ...)`: a campaign of these."""
    return lambda *names: Nodes(tmp_path, *names)


def test_what_is_complete_is_counted_whatever_is_at_work(nodes: Make) -> None:
    """What heats the node comes last, though its first run is the plan's third step."""
    alone = nodes("n")
    watched = alone.watch()
    for run, name in ((1, "a"), (1, "b"), (2, "a"), (2, "b")):
        alone.completes("n", run, name)
    alone.begins("n", 1, "c")
    assert progress.progress(watched.look()).startswith("4 of 6 measurements, ")
    assert progress.share(watched.look()) == pytest.approx(4 / 6)


@settings(max_examples=30)
@given(
    order=st.permutations([(node, *step) for node in ("cn01", "cn02") for step in STEPS]),
    outcomes=st.lists(st.sampled_from(["done", "done", "refused", "failed"]), min_size=12, max_size=12),
    ends=st.integers(0, 11),
)
def test_the_count_never_falls(
    tmp_path_factory: pytest.TempPathFactory,
    order: list[tuple[str, int, str]],
    outcomes: list[str],
    ends: int,
) -> None:
    """Over any order in which measurements end, are packed, are looked at again, and a node is lost."""
    campaign = Nodes(tmp_path_factory.mktemp("campaign"), "cn01", "cn02")
    watched, states = campaign.watch(), []
    for number, ((node, run, name), outcome) in enumerate(zip(order, outcomes, strict=True)):
        campaign.begins(node, run, name)
        states.append(watched.look())
        campaign.completes(node, run, name) if outcome == "done" else campaign.notes(node, run, name, outcome)
        states.append(watched.look())
        if all((node, run, name) in order[: number + 1] for name in PLANNED):
            campaign.packs(node, run)
            states.append(watched.look())
        if number == ends:
            campaign.ends(node)
    for node in campaign.jobs:
        campaign.ends(node)
    states.append(watched.look())
    counts = [(state.done, sum(node.ended for node in state.nodes)) for state in states]
    assert all(before[0] <= after[0] and before[1] <= after[1] for before, after in pairwise(counts))
    assert all(progress.share(before) <= progress.share(after) for before, after in pairwise(states))
    assert states[-1].done + states[-1].untaken == states[-1].total == 12
    assert states[-1].left_s() is None


def test_a_node_that_was_lost_has_ended_and_its_measurements_were_not_taken(nodes: Make) -> None:
    pair = nodes("cn01", "cn02", "cn03")
    watched = pair.watch()
    pair.completes("cn01", 1, "a")
    pair.ends("cn01")
    pair.ends("cn02")
    (pair.folder / "launch").mkdir()
    (pair.folder / "launch/pending.outcomes.tsv.reasons").write_text("cn03\tunreachable: no route\n")
    assert progress.progress(watched.look()) == "3 of 3 nodes, 1 of 18 measurements, 17 not taken"
    assert progress.share(watched.look()) == 1.0


def test_the_time_left_is_that_of_the_plan_and_of_what_was_taken(nodes: Make) -> None:
    several = nodes("cn01", "cn02")
    watched = several.watch()
    assert watched.look().left_s() is None, "nobody knows when the waiting nodes begin"
    assert progress.progress(watched.look()) == "0 of 2 nodes, 0 of 12 measurements, 2 nodes not begun"
    several.begins("cn01", 1, "a", 0, "x: 1 of 4 (25%), 7 s left")
    # 7 s of a, then as planned: 20 + 30 and 60 once more; cn02 after it
    assert watched.look().left_s() == pytest.approx(7 + 110 + 120)
    several.completes("cn01", 1, "a", seconds=2)
    several.begins("cn01", 1, "b", 0, "x: 1 of 4 (25%), 3 s left")
    # a took 2 of its 10 s, which counts beside a fifth of the whole plan, 12 s
    b, c = (planned * (12 + 2) / (12 + 10) for planned in (20, 30))
    assert watched.look().left_s() == pytest.approx((3 + c + 2 + b + c) + (2 + b + c) * 2)
    assert progress.progress(watched.look()) == "0 of 2 nodes, 1 of 12 measurements, 2 to 3 min left, cn01 b, run 1/2"


def test_background_load_is_planned_for(nodes: Make) -> None:
    """Other programs that take both of two CPUs double the plan, whatever the first, short measurement took."""
    alone = nodes("n")
    watched = alone.watch()
    watched.assume_load(2.0, 2)
    alone.begins("n", 1, "a")
    assert watched.look().left_s() == pytest.approx(20 + 100 + 120, abs=1.5)
    alone.completes("n", 1, "a", seconds=10)
    alone.begins("n", 1, "b")
    scale = (2 * 12 + 10) / (12 + 10)
    assert watched.look().left_s() == pytest.approx(10 + scale * (20 + 30) * 2, abs=1.5)


@pytest.mark.parametrize(
    ("done", "seconds", "words"),
    [
        (0, 62.0, "50 to 90 s left"),
        (0, 90.0, "70 s to 2 min left"),
        (1, 600.0, "8 to 15 min left"),
        (0, 2.0, "about 10 s left"),
        (0, 7200.0, "1.6 to 3 h left"),
        (2, 62.0, "1 min 2 s left"),
    ],
)
def test_the_time_left_is_a_range_until_a_fifth_is_done(done: int, seconds: float, words: str) -> None:
    steps = [(1, name) for name in "abcdefghij"]
    node = progress.NodeProgress("n", frozenset(range(done)), measurement="j", run=1, left_s=0.0)
    ahead = 9 - done
    state = progress.State([node], steps, dict.fromkeys("abcdefghij", seconds / ahead))
    assert progress.time_left(state.left_s(), progress.share(state)) == words


def test_no_node_is_measured_for_longer_than_slurms_limit(nodes: Make) -> None:
    """Both are in the queue, and nothing is said against them."""
    several = nodes("cn01", "cn02")
    watched = several.watch(limit_s=60)
    several.in_queue(cn01="RUNNING\tNone", cn02="PENDING\tNone")
    several.begins("cn01", 1, "a", 20)
    assert watched.look().left_s() == pytest.approx((40 + 60) / 2, abs=1.5)
    several.in_queue(cn01="RUNNING\tNone", cn02="PENDING\tPriority")
    assert watched.look().left_s() == pytest.approx(40 + 60, abs=1.5)
    several.begins("cn01", 1, "b", -50)
    assert watched.look().nodes[0].since_s == pytest.approx(20, abs=1.5), "since the job began, not its measurement"


def test_what_was_refused_is_not_ahead(nodes: Make) -> None:
    alone = nodes("n")
    alone.notes("n", 1, "c", "failed")  # of a former attempt: it is tried again
    watched = alone.watch()
    alone.begins("n", 1, "a")
    alone.notes("n", 1, "a", "refused")
    alone.begins("n", 1, "b", 0, "x: 1 of 4 (25%), 5 s left")
    state = watched.look()
    assert state.left_s() == pytest.approx(5 + 30 + 60)
    assert progress.progress(state) == "0 of 6 measurements, 1 not taken, 80 s to 2 min left, b, run 1/2"


def test_a_continued_node_counts_what_is_there(nodes: Make) -> None:
    alone = nodes("n")
    alone.completes("n", 2, "a", seconds=10)
    alone.begins("n", 1, "c")  # of a former attempt
    watched = alone.watch()
    assert watched.measured_before() == 1 and watched.unfinished() == ["n"]
    assert watched.look().nodes[0].measurement == ""
    alone.begins("n", 1, "b", 100)
    # b has long taken what was planned; a and c of this run, b and c of the next
    assert progress.progress(watched.look()) == "1 of 6 measurements, 70 s to 2 min left, b, run 1/2"
    watched.forget_begin()
    assert watched.look().left_s() == pytest.approx(10 + 30 + 20 + 30)


def test_an_attempt_that_was_at_work_before_the_call_looked_has_begun(nodes: Make) -> None:
    """A job that a former call submitted goes on, and its kernel says how far it is."""
    alone = nodes("n")
    alone.begins("n", 1, "b")
    watched = alone.watch()
    with (alone.jobs["n"] / "node-run.log").open("a") as log:
        log.write("x: 1 of 4 (25%), 9 s left\n")
    assert progress.progress(watched.look()) == "0 of 6 measurements, 90 s to 3 min left, b, run 1/2"


def test_a_node_that_is_surveyed_has_begun_and_one_that_waits_has_not(nodes: Make) -> None:
    pair = nodes("cn01", "cn02")
    watched = pair.watch()
    for node, line in (("cn01", "node cn01, job 1 on cn01: 3 measurements"), ("cn02", "waiting for another job")):
        (pair.jobs[node] / "node-run.log").write_text(f"{START} node-run: {line}\n")
    assert "1 node at work, 1 waiting" in progress.progress(watched.look())


def test_what_a_long_measurement_logs_hides_no_node(nodes: Make) -> None:
    alone = nodes("n")
    watched = alone.watch()
    alone.begins("n", 1, "b", 0, *(f"x: {n} of 9999 (1%), 9 s left" for n in range(1000)))
    assert progress.progress(watched.look()).endswith(", b, run 1/2")


def test_without_a_plan_no_time_is_foretold(nodes: Make) -> None:
    alone = nodes("n")
    watched = progress.CampaignProgress(alone.folder, alone.jobs, STEPS, {"a": 10.0})
    alone.begins("n", 1, "b")
    assert progress.progress(watched.look()) == "0 of 6 measurements, b, run 1/2"


def test_a_recheck_is_counted_for_itself(nodes: Make) -> None:
    """Its nodes have new jobs, and the others are behind it."""
    several = nodes("cn01", "cn02", "cn03")
    for node in several.jobs:
        several.ends(node)
    sheet = [Node(name, name) for name in several.jobs]
    write_sheet(several.folder / "nodes.tsv", sheet)
    assert recheck.at_work(several.folder) == []
    (several.folder / "launch").mkdir()
    recheck.begin(several.folder, 1, ["cn01", "cn03"])
    assert recheck.at_work(several.folder) == ["cn01", "cn03"]
    (several.folder / "config.yaml").write_text("launch: ansible\n")
    (several.folder / "plan.tsv").write_text("a\tcoherence\t--op x\t2\n")
    watched = progress.watch(several.folder, recheck.at_work(several.folder))
    assert progress.progress(watched.look()) == "0 of 2 nodes, 0 of 4 measurements, 2 nodes not begun"
    for node in ("cn01", "cn03"):
        (several.folder / f"nodes/{node}/job2").mkdir()
        (several.folder / f"nodes/{node}/job2/status.json").write_text("{}")
    assert recheck.at_work(several.folder) == []


@pytest.mark.parametrize(
    "seconds, text", [(3.4, "3 s"), (59.6, "1 min 0 s"), (185, "3 min 5 s"), (1500, "25 min"), (7500, "2 h 5 min")]
)
def test_times_in_words(seconds: float, text: str) -> None:
    assert progress.span(seconds) == text


def test_only_what_was_measured_says_how_long_it_takes() -> None:
    cut = "1\ta\tfailed\t3\t2.00\tnative\t\n2\ta\tdone\t0\t3.50\tnative\t\n1\tb\tdone\t0"
    assert progress.seconds_of(cut) == {"a": 3.5}
