"""A site's own STREAM through a real Slurm, from config.yaml to the slow node; and commands that fail on some nodes."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster_campaigns import main_job, outcome, text_of, verdicts
from tests.support.virtual_cluster import cluster, reach, up
from tests.support.waiting import wait_for

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


def test_a_node_that_is_lost_during_a_command_costs_itself_alone(house: Path, slurm: Path) -> None:
    """It is measured in a new job after its boot. Nothing of the others is lost or measured twice."""
    calls = house / "calls"
    calls.mkdir()
    sleeps = f"cn02) [ -e {calls}/up ] || sleep 600 ;;"
    config = configured(house, "crashed", sleeps, slurm={"deadline_hours": 1, "poll_seconds": 2, "late_seconds": 15})
    (own,) = config["measurements"]
    own["time_limit"] = 240
    own["command"] = f"echo $NODEPRINT_JOB/run$NODEPRINT_RUN >>{calls}/$NODEPRINT_NODE\n{own['command']}"
    campaign = house / "results/crashed"
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(main_job, house, slurm, config)
        wait_for(lambda: (calls / "cn02").exists() or call.done(), "the command runs on cn02")
        cluster("crash", "cn02", state=slurm)
        done = call.result()
    assert done.returncode == 1, done.stdout + done.stderr
    assert [outcome(campaign, node) for node in NODES if node != "cn02"] == ["complete"] * 3
    runs = json.loads((campaign / "nodes/cn02/job1/status.json").read_text())["measurements"]
    (reason,) = {run["message"] for run in runs if (run["name"], run["outcome"]) == ("stream", "failed")}
    # Slurm forgets in two seconds: its own word if a poll came in time, else the state of the node
    assert len(runs) == 2 and any(word in reason for word in ("NODE_FAIL, the node was lost", "the node is down*"))
    assert f"cn02: UNDETERMINED (NOT MEASURED). {reason}" in " ".join(done.stdout.split())
    kept = {path: path.stat().st_mtime_ns for path in campaign.glob("nodes/*/job1/run*.tar.*")}
    cluster("start", "cn02", state=slurm)
    reach(slurm, {"cn02": "idle"})
    (calls / "up").touch()
    again = main_job(house, slurm, config)
    assert again.returncode == 0, again.stdout + again.stderr
    assert outcome(campaign, "cn02", job=2) == "complete"
    assert {path: path.stat().st_mtime_ns for path in campaign.glob("nodes/*/job1/run*.tar.*")} == kept
    called = {node: (calls / node).read_text().split() for node in NODES}
    twice = ["1/run1", "1/run2"]
    assert called == {"cn01": twice, "cn02": ["1/run1", "2/run1", "2/run2"], "cn03": twice, "cn04": twice}


def test_programs_of_the_site_print_lines_and_json_of_their_own(house: Path, slurm: Path) -> None:
    """With quotes, a pipe, a here-document and Slurm's variables; a higher time and a lower rate are worse."""
    lines = r"""
case $NODEPRINT_NODE in cn03) t=2.9 ;; *) t=1.7 ;; esac
printf 'job "%s"\n' "$SLURM_JOB_ID" >&2
echo "errors: 0 of '$SLURM_CPUS_ON_NODE'; response: $t" | tr ';' '\n' | sed "s/^ response.*/& us/"
"""
    script = """
import json, os
rate = 80 if os.environ["NODEPRINT_NODE"] == "cn02" else 100
print(json.dumps({"rate_GBps": rate, "inner": {"score": {"value": 3.5, "unit": "TFLOP/s"}}}, indent=1))
"""
    config = configured(house, "programs", "")
    config["measure"] = ["lines", "json"]
    config["measurements"] += [
        {"name": "lines", "command": lines, "reader": "metrics", "time_limit": 60},
        {"name": "json", "command": f"python3 - <<'EOF'\n{script}EOF", "reader": "metrics", "time_limit": 60},
    ]
    done = main_job(house, slurm, config, "--fail-on", "found")
    assert done.returncode == 3, done.stdout + done.stderr
    found = {
        node: [(finding["measurement"], round(finding["effect"], 1)) for finding in of["findings"]]
        for node, of in verdicts(house / "results/programs").items()
    }
    assert found == {"cn01": [], "cn02": [("json/rate", -0.2)], "cn03": [("lines/response", 0.7)], "cn04": []}
