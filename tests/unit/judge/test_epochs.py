"""Jobs before a repair, or of another fingerprint, are no evidence of what a node is now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance, epochs
from nodeprint.judge.acceptance_file import Acceptance, Repair
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Outcome
from tests.support.job_sets import Job, fleet

NAMES = [f"n{number}" for number in range(6)]
#: n2 has a slow core in its first job, which has the last number, and was measured again twice without it.
SLOW = [Job(name, day) for name in NAMES for day in (1, 5, 9) if (name, day) != ("n2", 1)] + [Job("n2", 1, slower=0.3)]


def _rules(*repairs: Repair) -> Acceptance:
    return msgspec.structs.replace(acceptance.load(), criteria=("core-to-core",), repairs=repairs)


def _day(day: int) -> str:
    """The day of a job as the records have it."""
    measured = fleet([Job("n0", day), Job("n1", day)])
    return measured.quantities[0].started[0][:10]


def test_a_repaired_node_is_judged_by_the_jobs_after_it() -> None:
    before = judge(fleet(SLOW), _rules()).verdict.nodes["n2"]
    assert before.outcome is Outcome.INTERMITTENT and before.former == ()
    repaired = judge(fleet(SLOW), _rules(Repair("n2", _day(5), "DIMM replaced"))).verdict
    node = repaired.nodes["n2"]
    assert (node.outcome, node.jobs, node.findings) == (Outcome.SAME, ("job1", "job2"), ())
    assert [(epoch.jobs, epoch.repair, epoch.what) for epoch in node.former] == [(("job3",), _day(5), "DIMM replaced")]
    assert all(of.former == () and len(of.jobs) == 3 for name, of in repaired.nodes.items() if name != "n2")


def test_a_finding_after_the_repair_stands() -> None:
    verdict = judge(fleet(SLOW), _rules(Repair("n2", "2000-01-01", "nothing that helped"))).verdict
    assert verdict.nodes["n2"].outcome is Outcome.INTERMITTENT


def test_a_node_that_was_not_measured_since_its_repair_is_not_measured() -> None:
    verdict = judge(fleet(SLOW), _rules(Repair("n2", "2999-01-01T12:00", "board replaced"))).verdict
    node = verdict.nodes["n2"]
    assert node.outcome is Outcome.NOT_MEASURED and "board replaced" in node.reasons[0].detail
    assert all(of.outcome is Outcome.SAME for name, of in verdict.nodes.items() if name != "n2")


@pytest.mark.parametrize("key", ["microcode", "serials", "cmdline"])
def test_jobs_of_another_fingerprint_do_not_count(key: str) -> None:
    measured = fleet(SLOW)
    number = next(i for i, node in enumerate(measured.nodes) if node.name == "n2")
    nodes = list(measured.nodes)
    nodes[number] = replace(nodes[number], fingerprint={key: "new"}, former={1: {key: "old", "unknown": "x"}})
    rules = _rules()
    kept, former = epochs.current(replace(measured, nodes=tuple(nodes)), rules)
    assert [(epoch.jobs, epoch.fields) for epoch in former["n2"]] == [(("job1",), (key,))]
    assert sorted(kept.quantities[0].rows[number]) == [2, 3]


def test_what_is_not_known_of_both_jobs_is_no_change() -> None:
    measured = fleet(SLOW)
    nodes = tuple(replace(node, fingerprint={}, former={1: {"microcode": "0x1"}}) for node in measured.nodes)
    kept, former = epochs.current(replace(measured, nodes=nodes), _rules())
    assert former == {} and kept.quantities == measured.quantities


def test_a_day_that_no_calendar_has_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "acceptance.yaml"
    file.write_text('repairs:\n  - {node: n1, at: 2026-02-30, what: "fan"}\n')
    with pytest.raises(NodeprintError, match=r"repairs\[0\]\.at"):
        acceptance.load(file)
