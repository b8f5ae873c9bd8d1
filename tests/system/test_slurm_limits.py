"""What a site may limit, on a real Slurm with slurmdbd: numbers of jobs, accounts, nodes of an account, preemption,
nodes that are shared. What can run later waits; what never can ends with Slurm's reason."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeprint.machine import other_load
from tests.support.cluster_campaigns import Campaign, outcome
from tests.support.paced_kernel import paced  # noqa: F401 (a fixture)
from tests.support.real_parts import environment, need
from tests.support.virtual_cluster import CLUSTER, cluster, login, up
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.machine, pytest.mark.long, pytest.mark.usefixtures("paced")]

CONF = (
    "AccountingStorageEnforce=associations,limits,qos",
    "PreemptType=preempt/partition_prio",
    "PreemptMode=REQUEUE",
    "PartitionName=low Nodes=ALL PriorityTier=1",
    "PartitionName=high Nodes=ALL PriorityTier=10",
    "PartitionName=denied Nodes=ALL DenyAccounts=own",
    "MinJobAge=300",
)
ACCOUNTS = """
sacctmgr -i add account own Description=own Organization=own
sacctmgr -i add account small GrpTRES=node=1 Description=small Organization=own
sacctmgr -i add qos few MaxSubmitJobsPerUser=2
sacctmgr -i add user root account=own DefaultAccount=own
sacctmgr -i add user root account=small
sacctmgr -i modify user root set qos+=few
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    need("slurmdbd", "mariadbd", "mariadb-install-db")
    state = up(tmp_path_factory.mktemp("limits") / "state", 3, *CONF, accounting=True)
    login(state, ACCOUNTS)
    wait_for(lambda: "few" in login(state, "sacctmgr -nP show assoc user=root format=qos"), "the accounts")
    wait_for(lambda: login(state, "sbatch --parsable -A own -p main -o /dev/null --wrap true"), "a job of the account")
    yield state
    cluster("down", state=state)


def test_a_user_who_may_have_two_jobs_measures_three_nodes(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "few", passes=3, partition="main", qos="few")
    campaign.done()
    assert campaign.outcomes() == dict.fromkeys(("cn01", "cn02", "cn03"), "complete")
    log = (campaign.folder / "logs/run.log").read_text()
    assert "2 of its jobs are in the queue, and no more are allowed now" in log, log[-2000:]


def test_an_account_that_may_have_one_node_measures_one_after_the_other(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "small", passes=3, partition="main", account="small")
    campaign.done()
    assert campaign.outcomes() == dict.fromkeys(("cn01", "cn02", "cn03"), "complete")


def test_an_account_that_a_partition_denies_is_a_reason(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "denied", passes=3, partition="denied", account="own", unavailable_minutes=0.1)
    campaign.done(code=1)
    reasons = {campaign.reason(node) for node in ("cn01", "cn02", "cn03")}
    assert all(re.search(r"ccount", reason) for reason in reasons), reasons


def test_a_job_that_is_preempted_is_continued_by_the_next_call(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "low", passes=60, partition="low")
    process = campaign.call()
    campaign.measuring("cn01")
    login(slurm, "sbatch -p high -w cn01 --exclusive -o /dev/null --wrap 'sleep 5'")
    output = campaign.done(process, code=1)
    assert "PREEMPTED" in campaign.reason("cn01"), campaign.reason("cn01") + output
    campaign.done()
    campaign.once("cn01", "cn02", "cn03")


@pytest.fixture
def sharing(tmp_path: Path) -> Iterator[Path]:
    """A cluster of its own: where jobs may be preempted Slurm does not put a second one onto the node."""
    yield up(tmp_path / "state", 2, "PartitionName=shared Nodes=ALL OverSubscribe=FORCE:2")
    cluster("down", state=tmp_path / "state")


def test_a_job_beside_ours_on_a_partition_that_shares_is_said(house: Path, sharing: Path) -> None:
    campaign = Campaign(house, sharing, "shared", passes=60, partition="shared", nodes="cn02")
    process = campaign.call()
    campaign.measuring("cn02")
    number = login(sharing, "sbatch --parsable -p shared -w cn02 -o /dev/null --wrap 'sleep 300'").strip()
    wait_for(lambda: login(sharing, f"squeue -h -j {number} -o %T").strip() == "RUNNING", "the other job runs")
    output = " ".join(campaign.done(process).split())
    login(sharing, f"scancel {number}")
    assert "cn02: partition shared shares its nodes (OverSubscribe=FORCE:2)" in output
    load = other_load.kept(campaign.folder / "nodes/cn02")
    assert load is not None and load.jobs == (number,)
    assert f"Slurm job {number} ran on the node, and other programs took" in output


def test_a_call_on_another_login_node_waits_for_the_first(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "two", passes=40, partition="main")
    first = campaign.call()
    campaign.measuring("cn01")
    said = campaign.tmp / "second.log"
    call = f"cd {house} && exec {' '.join(campaign.command)} >{said} 2>&1"
    words = [str(CLUSTER), "exec", "cn03", "env", f"TMPDIR={campaign.tmp}", "sh", "-c", call]
    with subprocess.Popen(words, env=environment() | {"CLUSTER_STATE": str(slurm)}) as second:
        wait_for(lambda: said.exists() and "another call is at work" in said.read_text(), "the second call waits")
        campaign.done(first)
        assert second.wait(600) == 0, said.read_text()
    assert [outcome(campaign.folder, node) for node in ("cn01", "cn02", "cn03")] == ["complete"] * 3
    campaign.once("cn01", "cn02", "cn03")
