"""Former names of keys are rejected with the new ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.verdict import SCHEMA, Finding
from nodeprint.report import verdict_files
from nodeprint.settings import former_keys


def test_a_former_key_of_acceptance_names_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "acceptance.yaml"
    path.write_text("suppressions: []")
    with pytest.raises(NodeprintError, match=r"suppressions: a former name; write `waivers`"):
        acceptance.load(path)


def test_a_campaign_of_a_former_version_keeps_its_rules(tmp_path: Path) -> None:
    """Its own copy of the rules was written by nodeprint, so nobody has to edit it."""
    waiver = {"node": "node003", "finding": "*", "reason": "known", "until": "2027-01-31"}
    (tmp_path / "acceptance.yaml").write_text(json.dumps({"suppressions": [waiver]}))
    assert [waived.node for waived in acceptance.rules_of(tmp_path).waivers] == ["node003"]


def test_a_former_verdict_names_the_new_key(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text(json.dumps({"schema": SCHEMA - 1}))
    with pytest.raises(NodeprintError, match=r"has schema 3, .*`suppressed` is `waived` now; run `nodeprint judge"):
        verdict_files.read(tmp_path)


def test_every_new_name_is_a_key() -> None:
    """A key that is renamed once more needs its line here changed."""
    keys = {*Acceptance.__struct_fields__, *Finding.__struct_fields__}
    assert {name for name in former_keys.RENAMED.values() if name not in keys} == set()
    assert {name for name in former_keys.RENAMED if name in keys} == set()
