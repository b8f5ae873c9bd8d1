"""Whether two jobs of a node are independent: by the clock of the login node, as those of nodes may be wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nodeprint.campaign import followed as notes
from nodeprint.campaign.followed import Followed
from nodeprint.data.store import packing
from nodeprint.judge.campaign import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.reduction import independent
from nodeprint.machine.topology.presets import from_part
from nodeprint.simulate import Plan, write
from tests.support.changed_records import with_header

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def at(minutes: float) -> str:
    return (NOON + timedelta(minutes=minutes)).isoformat()


def followed(*spans: tuple[float, float]) -> dict[int, Followed]:
    """Jobs from 1 on that were submitted and ended so many minutes after noon."""
    return {job: Followed(at(submitted), at(ended)) for job, (submitted, ended) in enumerate(spans, start=1)}


@pytest.mark.parametrize("wrong_by", [0, -20 * 365 * 1440, 5 * 365 * 1440])
@pytest.mark.parametrize(("submitted", "components"), [(14, [[1, 2]]), (15, [[1], [2]])])
def test_the_login_nodes_clock_decides(wrong_by: float, submitted: float, components: list[list[int]]) -> None:
    """A job ended after 5 minutes; the node's clock was set back or forth by years before the next."""
    begun = {1: [at(1), at(3)], 2: [at(submitted + wrong_by)]}
    assert independent(begun, followed((0, 5), (submitted, submitted + 5))) == components


def test_a_job_whose_end_was_not_seen_is_no_witness_for_the_next() -> None:
    begun = {1: [at(1)], 2: [at(100)], 3: [at(200)]}
    jobs = followed((0, 5), (99, 105), (199, 205)) | {1: Followed(at(0))}
    assert independent(begun, jobs) == [[1, 2], [3]]


def test_jobs_that_nobody_followed_go_by_their_records() -> None:
    """Imported and simulated ones; a job without times counts as independent."""
    assert sorted(independent({1: [at(0)], 2: [at(5)], 3: [at(15)], 4: [""]}, {})) == [[1, 2], [3], [4]]
    assert independent({1: [at(0)], 2: [at(5)]}, followed((0, 5))) == [[1, 2]]


def test_what_is_noted_of_a_job_is_its_first_submission_and_last_end(tmp_path: Path) -> None:
    assert notes.read(tmp_path) == Followed()
    notes.note(tmp_path, submitted=NOON)
    assert notes.read(tmp_path) == Followed("2026-11-01T12:00:00+00:00", "")
    notes.note(tmp_path, ended=NOON + timedelta(minutes=5))
    notes.note(tmp_path, submitted=NOON + timedelta(hours=1))  # continued: at work again
    assert notes.read(tmp_path) == Followed("2026-11-01T12:00:00+00:00", "")
    notes.note(tmp_path, ended=NOON + timedelta(hours=2))
    assert notes.read(tmp_path) == Followed("2026-11-01T12:00:00+00:00", "2026-11-01T14:00:00+00:00")
    (tmp_path / "followed.json").write_text("{")
    assert notes.read(tmp_path) == Followed()


def with_clocks(job: Path, change: Callable[[datetime], datetime]) -> None:
    """The records of a job as by another clock of its node."""
    for path in job.glob("run*/*.jsonl.gz"):
        text = gzip.decompress(path.read_bytes()).decode()
        began = change(datetime.fromisoformat(json.loads(text.partition("\n")[0])["start_time"]))
        changed = with_header(text, start_time=began.strftime("%Y-%m-%dT%H:%M:%SZ"))
        path.write_bytes(gzip.compress(changed.encode(), compresslevel=1))


@pytest.fixture(scope="module")
def slow_core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two jobs of six nodes with a slow core on one; no clock of a node is right, and they change between jobs."""
    plan = Plan(
        from_part("EPYC 7402", 1, smt=False), nodes=6, jobs=2, runs=6, passes=1, defects=("node003: core 5 +9%",)
    )
    folder = write(plan, tmp_path_factory.mktemp("independence") / "campaign")
    for number, node in enumerate(sorted((folder / "nodes").iterdir())):
        years = timedelta(days=365 * (number - 3) * 4)
        with_clocks(node / "job1", lambda moment, years=years: moment + years)  # type: ignore[misc]
        with_clocks(node / "job2", lambda moment, years=years: moment - years - timedelta(minutes=58))  # type: ignore[misc]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("minutes", "outcome"), [(11, Outcome.DEVIATES), (9, Outcome.SUSPECT)])
def test_a_suspect_is_confirmed_by_a_job_that_followed_late_enough(
    slow_core: Path, minutes: float, outcome: Outcome
) -> None:
    for node in (slow_core / "nodes").iterdir():
        for job, began in (("job1", NOON), ("job2", NOON + timedelta(minutes=5 + minutes))):
            (node / job / "followed.json").unlink(missing_ok=True)
            notes.note(node / job, submitted=began)
            notes.note(node / job, ended=began + timedelta(minutes=5))
    nodes = judge(slow_core).verdict.nodes
    assert nodes["node003"].outcome is outcome
    assert {node.outcome for name, node in nodes.items() if name != "node003"} == {Outcome.SAME}
    assert set(packing.pack(slow_core).nodes[3].followed) == {1, 2}
