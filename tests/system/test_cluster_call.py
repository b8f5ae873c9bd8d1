"""What `make cluster` takes, and what it calls its nodes: no cluster is started."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT, environment


def run(*words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The call behind `make cluster`; programs in `path` are found first."""
    found = environment() | ({"PATH": f"{path}:{environment()['PATH']}"} if path else {})
    return subprocess.run(
        [ROOT / "tests/system/cluster/run", *words], env=found, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("count", ["", "0", "three", "-1", "1000", "2 3", "2.5"])
def test_a_count_that_is_none_is_refused_in_one_sentence(count: str) -> None:
    done = run(count)
    (sentence,) = done.stderr.splitlines()
    assert done.returncode == 2 and not done.stdout
    assert sentence == f"nodeprint: COUNT={count}: is no number of nodes from 1 to 999; call `make cluster COUNT=3`"


@pytest.mark.parametrize(
    ("defect", "planted", "host"),
    [
        ("node003: core 37 +8%", "node003: core 37 +8%", "cn04"),
        ("cn04: core 37 +8%", "node003: core 37 +8%", "cn04"),
        ("cn10: ccd 1 +4%", "node009: ccd 1 +4%", "cn10"),
        ("", "node004: core 37 +8%", "cn05"),
    ],
)
def test_a_simulated_node_is_named_as_the_cluster_names_it(
    tmp_path: Path, defect: str, planted: str, host: str
) -> None:
    """The simulator, which ends the call here, gets its own names."""
    (tmp_path / "nodeprint").write_text('#!/bin/sh\nfor word; do echo "word $word"; done >&2\nexit 2\n')
    (tmp_path / "nodeprint").chmod(0o755)
    done = run("10", "rome-2x64", defect, path=tmp_path)
    assert done.stdout == (
        f"simulated: 10 nodes of rome-2x64, node000 is cn01 here and so on; planted: {planted}, on {host}\n"
    )
    assert f"word {planted}" in done.stderr.splitlines()
