"""What is packed of a node: what its records, its survey and the outcomes of its jobs say of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodeprint.campaign import node_sheet
from nodeprint.data.store import node_states, packed_node
from nodeprint.data.store.packed_node import OfNode

Make = Callable[..., Path]


def packed(folder: Path) -> OfNode:
    """What is packed of the only node of a campaign."""
    (row,) = node_sheet.read_sheet(folder / "nodes.tsv")
    state, of_jobs = node_states.read(folder, row)
    return packed_node.from_jobs(folder, 4, "stamp", row, state, of_jobs)


def changed(record: Path, **header: Any) -> None:
    """Change keys of a record's header."""
    first, *others = record.read_text().splitlines(keepends=True)
    record.write_text(json.dumps(json.loads(first) | header) + "\n" + "".join(others))


def test_a_node_has_its_jobs_at_their_places_and_what_they_were_packed_from(campaign: Make) -> None:
    node, (part,) = packed(campaign("a"))
    assert (node.name, node.state, node.cpus, node.quality) == ("a", "measured", (0, 1), ())
    assert (node.made_of, node.simulated, node.problems) == ("stamp", False, ())
    assert list(node.versions) == ["kernel coherence"]
    assert (part.node, part.job, part.numbers, part.passes) == (4, 1, [1, 2], (0, 1))
    np.testing.assert_allclose(part.columns["value"][..., 0], [[51, 51.1], [52, 52.1]], rtol=1e-6)


def test_a_node_without_labels_is_not_identified(campaign: Make) -> None:
    node, _ = packed(campaign("a"))
    assert not node.identified and [warning["id"] for warning in node.warnings] == ["no-topology"]


def test_a_survey_that_cannot_be_read_keeps_a_node_from_being_compared(campaign: Make) -> None:
    folder = campaign("a")
    (folder / "nodes/a/job1/survey.tar.gz").write_bytes(b"cut")
    node, _ = packed(folder)
    assert node.unusable == ("job1/survey.tar.gz cannot be read as an archive",) and node.quality == ()


def test_a_job_whose_runs_are_of_two_boots_is_named(campaign: Make) -> None:
    folder = campaign("a")
    changed(folder / "nodes/a/job1/run1/coherence-cas.jsonl", boot_id="first")
    node, _ = packed(folder)
    assert node.rebooted == ("job1",) and len(node.boots) == 2 and "first" in node.boots


@pytest.mark.parametrize(("outcome", "lacking"), [("failed", ("chase",)), ("unavailable", ())])
def test_what_the_newest_job_lacks_is_what_was_refused_or_failed(
    campaign: Make, outcome: str, lacking: tuple[str, ...]
) -> None:
    folder = campaign("a")
    path = folder / "nodes/a/job1/status.json"
    status = json.loads(path.read_text())
    run = status["measurements"][0] | {"name": "chase", "outcome": outcome, "message": "no memory"}
    path.write_text(json.dumps(status | {"outcome": "partial", "measurements": [*status["measurements"], run]}))
    node, _ = packed(folder)
    assert (node.lacking, node.untaken) == (lacking, {"chase": "no memory"})


def test_a_node_that_is_not_measured_has_no_parts_and_says_why(campaign: Make) -> None:
    folder = campaign("a")
    (folder / "nodes/a/job1/status.json").unlink()
    node, parts = packed(folder)
    assert node.state == "not measured" and node.reason and parts == []
    assert node.problems == node.quality
