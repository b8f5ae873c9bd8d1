"""A site's own STREAM through a real Slurm, from config.yaml to the slow node; and commands that fail on some nodes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster_campaigns import main_job, outcome, text_of, verdicts
from tests.support.virtual_cluster import cluster, up

pytestmark = [pytest.mark.machine, pytest.mark.long]

NODES = ("cn01", "cn02", "cn03", "cn04")
#: The table of STREAM with these rates and a percent of noise; what it is called with is the share of the rate.
STREAM = """
awk -v share="$1" -v seed="$(date +%N)" 'BEGIN {
    srand(seed)
    print "STREAM version $Revision: 5.10 $\\nNumber of Threads counted = 128"
    print "Function    Best Rate MB/s  Avg time     Min time     Max time"
    split("Copy Scale Add Triad", kernels, " ")
    for (i = 1; i <= 4; i++)
        printf "%-10s %12.1f  0.017  0.017  0.018\\n", kernels[i] ":", share * 3000 * (1 + 0.01 * (rand() - 0.5))
    print "Solution Validates: avg error less than 1.000000e-13 on all three arrays"
}'
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    state = up(tmp_path_factory.mktemp("site-command") / "state", len(NODES), "MinJobAge=2")
    yield state
    cluster("down", state=state)


def configured(house: Path, name: str, by_node: str, **more: Any) -> dict[str, Any]:
    """A configuration that measures the site's STREAM alone; `by_node` is the arm of a case by node."""
    program = house / "stream.sh"
    program.write_text(STREAM)
    command = f'share=100\ncase $NODEPRINT_NODE in {by_node} esac\nsh {program} "$share"'
    own = {"name": "stream", "command": command, "reader": "stream", "tolerance": 3, "time_limit": 5}
    return {
        "campaign": name,
        "launch": "slurm",
        "measure": ["stream"],
        "measurements": [own],
        "slurm": {"deadline_hours": 1, "poll_seconds": 2},
        **more,
    }


def test_a_slow_node_is_named_in_one_call(house: Path, slurm: Path) -> None:
    config = configured(house, "own", "cn02) share=75 ;;", recheck=True, recheck_minutes=0.05)
    done = main_job(house, slurm, config, "--fail-on", "found")
    assert done.returncode == 3, done.stdout + done.stderr
    found = verdicts(house / "results/own")
    # jobs that are so close together confirm nothing; that the others are SAME depends on how busy this machine is
    assert found["cn02"]["outcome"] == "SUSPECT"
    assert found["cn02"]["findings"][0]["effect"] == pytest.approx(-0.25, abs=0.03)
    assert not any(of["findings"] for node, of in found.items() if node != "cn02")
    assert "cn02: WARN (SUSPECT). stream/" in " ".join(done.stdout.split())
    assert "stream/" in text_of(house / "results/own")
    assert outcome(house / "results/own", "cn02", job=2) == "complete"


def test_a_command_that_fails_costs_its_node_that_measurement_alone(house: Path, slurm: Path) -> None:
    by_node = "cn02) echo no license; exit 3 ;; cn03) sleep 60 ;; cn04) echo done; exit 0 ;;"
    config = configured(house, "failing", by_node)
    config["measure"] = ["chase-latency"]
    done = main_job(house, slurm, config)
    assert done.returncode == 1, done.stdout + done.stderr
    campaign = house / "results/failing"
    assert [outcome(campaign, node) for node in NODES] == ["complete", "partial", "partial", "complete"]
    reasons = {node: json.dumps(of) for node, of in verdicts(campaign).items()}
    assert "exited with status 3; last words: no license" in reasons["cn02"]
    assert "did not end within 5 s" in reasons["cn03"]
    assert "ends with 'done' and is not of stream" in reasons["cn04"]
    assert '"stream"' not in reasons["cn01"]
    assert all("chase-latency" in of for of in reasons.values())
