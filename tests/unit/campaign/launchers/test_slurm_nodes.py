"""The sheet from Slurm's text: versions, states, partitions, and text that nobody should have written."""

import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.campaign.launchers import slurm_nodes
from nodeprint.campaign.node_sheet import Node
from nodeprint.errors import NodeprintError, NoServiceError
from nodeprint.settings.config_file import Slurm
from tests.support import fake_slurm

SINFO = """\
cn01|other|idle|none
cn01|main*|idle|none
cn02|main*|drained|bad | DIMM State=IDLE "x"
cn03|other|mixed-|none
cn04|gpu|down*|Not responding
cn05|gpu|idle~|none
cn06|main*|maint|none
"""

# 22.05: CPUEfctv is there; two blanks in places; blanks in OS and Reason.
NODE_22 = (
    "NodeName=cn01 Arch=x86_64 CoresPerSocket=64  CPUAlloc=0 CPUEfctv=252 CPUTot=256 CPULoad=1.64"
    " AvailableFeatures=milan,ib ActiveFeatures=milan Gres=(null) NodeAddr=10.0.0.2 NodeHostName=cn01.cluster.example"
    " Version=22.05.8 OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC  RealMemory=1000 Sockets=2 Boards=1 CoreSpecCount=2"
    " CPUSpecList=0-1,128-129 State=IDLE+DRAIN ThreadsPerCore=2 Partitions=main,other"
    " Reason=odd NodeHostName=elsewhere CPUEfctv=1 [root@2026-11-20T11:26:54] Comment=ActiveFeatures=none"
)
# 20.11: no CPUEfctv.
NODE_20 = (
    "NodeName=cn02 Arch=x86_64 CoresPerSocket=64 CPUAlloc=0 CPUTot=256 CPULoad=0.01 AvailableFeatures=(null)"
    " ActiveFeatures=(null) NodeAddr=cn02 NodeHostName=cn02 Version=20.11.9 RealMemory=1 Sockets=2 CoreSpecCount=2"
    " State=IDLE ThreadsPerCore=2"
)


def test_states_and_reasons() -> None:
    rows = {(row.node, row.partition): row for row in slurm_nodes.parse_sinfo(SINFO)}
    assert len(rows) == 7
    assert rows["cn01", "main"].default
    assert not rows["cn01", "other"].default
    assert rows["cn01", "main"].reason == ""
    assert rows["cn02", "main"].reason == 'bad | DIMM State=IDLE "x"'


def test_host_cpus_and_features() -> None:
    facts = slurm_nodes.parse_nodes(f"{NODE_22}\n{NODE_20}\n")
    assert facts["cn01"] == slurm_nodes.SlurmNode("cn01", 252, frozenset({"milan"}), kept=4, threads=2)
    assert facts["cn02"] == slurm_nodes.SlurmNode("cn02", 252, frozenset(), kept=4, threads=2)


def test_a_core_has_as_many_cpus_as_slurm_counts() -> None:
    """Where CPUs= is the number of cores, jobs get whole cores, whatever ThreadsPerCore says."""
    text = "NodeName=cn01 CPUTot=64 CPUEfctv=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2"
    assert slurm_nodes.parse_nodes(text)["cn01"].threads == 1
    assert slurm_nodes.parse_nodes("NodeName=cn01 CPUTot=64")["cn01"].threads == 0


@pytest.mark.parametrize(
    ("fields", "cpus"),
    [
        ({"CPUTot": "64"}, 64),
        ({"CPUTot": "64", "CPUEfctv": "60"}, 60),
        ({"CPUTot": "64", "CoreSpecCount": "2", "ThreadsPerCore": "1"}, 62),
        ({"CPUTot": "64", "CPUSpecList": "0-1,32"}, 61),
        ({"CPUTot": "64", "CPUSpecList": "(null)"}, 64),
        ({"CPUTot": "2", "CoreSpecCount": "9"}, 0),
        ({}, 0),
    ],
)
def test_cpus_of_a_whole_node(fields: dict[str, str], cpus: int) -> None:
    assert slurm_nodes.effective_cpus(fields) == cpus


@pytest.mark.parametrize("state", ["idle", "allocated", "mixed", "completing", "planned", "mixed-", "idle#", "alloc+"])
def test_nodes_in_service_are_measured(state: str) -> None:
    assert slurm_nodes.why_not(state, ours=False, wake=False) == ""


@pytest.mark.parametrize(
    "state",
    ["down", "down*", "drained", "draining", "drained*", "fail", "failing", "idle*", "inval", "future", "unknown",
     "idle@", "idle^", "error", "", "brand_new_state", "idle?"],
)  # fmt: skip
def test_nodes_out_of_service_are_not_measured(state: str) -> None:
    assert slurm_nodes.why_not(state, ours=True, wake=True)


@pytest.mark.parametrize("state", ["idle~", "idle!", "idle%", "powered_down", "powering_down"])
def test_sleeping_nodes_are_measured_when_the_site_says_so(state: str) -> None:
    assert "slurm.wake" in slurm_nodes.why_not(state, ours=False, wake=False)
    assert slurm_nodes.why_not(state, ours=False, wake=True) == ""


@pytest.mark.parametrize("state", ["maint", "resv", "reserved", "idle$"])
def test_reserved_nodes_are_measured_in_their_reservation(state: str) -> None:
    assert "slurm.reservation" in slurm_nodes.why_not(state, ours=False, wake=False)
    assert slurm_nodes.why_not(state, ours=True, wake=False) == ""


def sheet(asked: list[str] | None = None, ours: Iterable[str] = (), **changes: Any) -> dict[str, Any]:
    nodes = slurm_nodes.sheet(
        slurm_nodes.parse_sinfo(SINFO),
        slurm_nodes.parse_nodes(f"{NODE_22}\n{NODE_20}\n"),
        ours=frozenset(ours),
        slurm=Slurm(**changes),
        asked=asked,
    )
    assert len({node.node for node in nodes}) == len(nodes)
    return {node.node: node for node in nodes}


def test_a_node_is_one_row_in_its_default_partition() -> None:
    nodes = sheet()
    assert list(nodes) == ["cn01", "cn02", "cn03", "cn04", "cn05", "cn06"]
    assert nodes["cn01"].partition == "main"
    assert nodes["cn03"].partition == "other"
    assert [name for name, node in nodes.items() if node.measure] == ["cn01", "cn03"]
    assert nodes["cn04"].reason == "Not responding"
    assert "powered down" in nodes["cn05"].reason


def test_selection() -> None:
    assert list(sheet(asked=["cn03", "cn01"])) == ["cn01", "cn03"]
    assert list(sheet(feature="milan")) == ["cn01"]
    assert list(sheet(reservation="r", ours={"cn06"})) == ["cn06"]
    assert sheet(reservation="r", ours={"cn06"})["cn06"].measure
    with pytest.raises(NodeprintError, match="no node cn99"):
        sheet(asked=["cn99"])
    with pytest.raises(NodeprintError, match="no node of this cluster"):
        sheet(feature="rome")


def test_reservation_and_switches() -> None:
    text = "ReservationName=mnt StartTime=2026-11-20T11:26:55 Nodes=cn[03-04] NodeCnt=2 Features=(null) State=ACTIVE"
    assert slurm_nodes.parse_reservation(text) == "cn[03-04]"
    assert slurm_nodes.parse_reservation("ReservationName=licenses Nodes=(null) NodeCnt=0") == ""
    text = (
        "SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=cn[01-02]\n"
        "SwitchName=spine Level=1 LinkSpeed=1 Nodes=cn[01-04] Switches=leaf[0-1]\n"
    )
    assert slurm_nodes.parse_topology(text) == {"leaf0": "cn[01-02]"}
    nodes = slurm_nodes.with_switches(list(sheet().values()), {"leaf0": ["cn01", "cn02"]})
    assert [node.switch for node in nodes] == ["leaf0", "leaf0", "", "", "", ""]


def test_racks_from_names_and_features_and_their_selection() -> None:
    nodes = [
        Node(name, name, switch=switch) for name, switch in (("r1n1", "leaf0"), ("r2n1", "leaf0"), ("gpu", "leaf1"))
    ]
    facts = {"gpu": slurm_nodes.SlurmNode("gpu", 4, frozenset({"ib", "r7n0"}))}
    racks = slurm_nodes.with_racks(nodes, facts, "(r[0-9]+)n[0-9]+")
    assert [node.rack for node in racks] == ["r1", "r2", "r7"]
    assert [n.node for n in slurm_nodes.selected(racks, Slurm(racks="r7,r1", switches=""))] == ["r1n1", "gpu"]
    assert [n.node for n in slurm_nodes.selected(racks, Slurm(racks="r2,r7", switches="leaf0"))] == ["r2n1"]
    with pytest.raises(NodeprintError, match="no node in rack r9; known are r1, r2, r7"):
        slurm_nodes.selected(racks, Slurm(racks="r9", switches=""))
    with pytest.raises(NodeprintError, match=r"no node's rack is known; set slurm\.rack_pattern"):
        slurm_nodes.selected(nodes, Slurm(racks="r1", switches=""))
    with pytest.raises(NodeprintError, match="no node is in both"):
        slurm_nodes.selected(racks, Slurm(racks="r7", switches="leaf0"))


def test_nodes_of_which_a_job_does_not_get_every_cpu_are_named_with_what_gives_them() -> None:
    facts = slurm_nodes.parse_nodes(f"{NODE_22}\n{NODE_20}\nNodeName=cn03 CPUTot=64 CPUEfctv=64\n")
    assert [facts[name].kept for name in ("cn01", "cn02", "cn03")] == [4, 4, 0]
    limits = slurm_nodes.parse_partitions(
        "PartitionName=a MaxCPUsPerNode=UNLIMITED\nPartitionName=b MaxCPUsPerNode=32 X=1\n"
    )
    assert limits == {"b": 32}
    nodes = [Node(name, name, partition=part, cpus=facts[name].cpus) for name, part in (("cn01", "a"), ("cn03", "b"))]
    first, second = slurm_nodes.confined(nodes, facts, limits, "")
    assert first.startswith("cn01: Slurm keeps 4 CPUs for the system") and "`--core-spec=0` in slurm.extra" in first
    assert second.startswith("cn03: partition b gives a job at most 32 CPUs of a node")
    assert len(slurm_nodes.confined(nodes, facts, {}, "--core-spec=0")) == 0


def test_partitions_that_share_nodes_are_named() -> None:
    text = (
        "PartitionName=a OverSubscribe=NO State=UP\nPartitionName=b OverSubscribe=FORCE:4 ExclusiveUser=YES\n"
        "PartitionName=c OverSubscribe=YES:4\nPartitionName=d OverSubscribe=EXCLUSIVE\nPartitionName=e Shared=FORCE\n"
    )
    sharing = slurm_nodes.parse_sharing(text)
    assert sharing == {"b": "OverSubscribe=FORCE:4", "e": "OverSubscribe=FORCE"}
    nodes = [Node(f"cn{i}", f"cn{i}", partition=partition) for i, partition in enumerate("abbcd")]
    (sentence,) = slurm_nodes.shared(nodes, sharing, "--nice")
    assert sentence.startswith("cn[1-2]: partition b shares its nodes (OverSubscribe=FORCE:4), so other jobs may run")
    assert slurm_nodes.shared([replace(node, measure=False) for node in nodes], sharing, "") == []
    for option in ("--exclusive=user", "--oversubscribe", "-s", "--exclusive=mcs"):
        (of_extra,) = slurm_nodes.shared([], {}, f"--nice {option} --licenses=-s")
        assert of_extra.startswith(f"slurm.extra: with {option} other jobs")


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A controller that is away while there is a file of this name."""
    for key, value in fake_slurm.environment(tmp_path).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(slurm_nodes, "_PAUSE_S", 0.2)
    (tmp_path / "down").touch()
    return tmp_path / "down"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("", "sinfo is not on PATH"),
        (
            "echo 'sinfo: error: fetch_config: DNS SRV lookup failed' >&2\n"
            "echo 'sinfo: fatal: Could not establish a configuration source' >&2; exit 1",
            "sinfo: Could not establish a configuration source",
        ),
    ],
)
def test_a_machine_without_slurm_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    if program:
        (tmp_path / "sinfo").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeprintError) as rejection:
        slurm_nodes.find(Slurm())
    assert str(rejection.value) == (
        f"launch: this machine has no Slurm ({reason}), and nothing was written; call it on a login node of the "
        "cluster, or measure this machine with `make run LAUNCH=here`"
    )


def test_a_rejection_by_slurm_names_its_command_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sinfo").write_text("#!/bin/sh\necho 'sinfo: error: Invalid user' >&2; exit 1\n")
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeprintError, match=r"^sinfo: Invalid user; call `sinfo -h -N` by hand"):
        slurm_nodes.find(Slurm())


def test_a_controller_that_is_away_is_asked_again(away: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threading.Timer(1.0, away.unlink).start()
    assert "accounting_storage/none" in slurm_nodes._ask("scontrol", "show", "config")
    assert capsys.readouterr().err.count("it is asked again for 10 minutes") == 1


def test_a_controller_that_stays_away_is_no_bad_input(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_nodes, "_PATIENCE_S", 0.5)
    with pytest.raises(NoServiceError, match="Unable to contact slurm controller"):
        slurm_nodes.find(Slurm())


#: Text made of the pieces that the parsers look for.
HOSTILE = st.lists(
    st.sampled_from(
        [
            "NodeName=",
            "cn01",
            "-c",
            "../x",
            " ",
            "|",
            "\n",
            "\t",
            "State=",
            "idle",
            "idle*",
            "Reason=",
            "CPUTot=",
            "\x00",
            "9" * 30,
            "²",
            "0-1,",
            "Nodes=",
            "(null)",
            "Level=0",
            "SwitchName=",
            "=",
            "$(reboot)",
            "main*",
        ]
    )
    | st.text(max_size=5),
    max_size=30,
).map("".join)


@given(HOSTILE)
def test_any_text_is_read_or_refused_in_one_sentence(text: str) -> None:
    try:
        listed = slurm_nodes.parse_sinfo(text)
        facts = slurm_nodes.parse_nodes(text)
        slurm_nodes.parse_reservation(text)
        slurm_nodes.parse_topology(text)
        nodes = slurm_nodes.sheet(listed, facts, ours=frozenset(), slurm=Slurm(), asked=None)
    except NodeprintError as error:
        assert "\n" not in str(error)
    else:
        for node in nodes:
            assert not set(node.node + node.host) & set("/ \t\n$;|&")
            assert node.reason.isprintable()
            assert node.cpus >= 0


@given(st.text(), st.sampled_from(["idle", "drained"]))
def test_a_reason_changes_nothing_but_the_reason(reason: str, state: str) -> None:
    first = " ".join(reason.split())
    nodes = slurm_nodes.sheet(
        slurm_nodes.parse_sinfo(f"cn01|main*|{state}|{first}\ncn02|main*|idle|none\n"),
        slurm_nodes.parse_nodes(f"NodeName=cn01 CPUTot=8 State=X Reason={first}\nNodeName=cn02 CPUTot=4\n"),
        ours=frozenset(),
        slurm=Slurm(),
        asked=None,
    )
    assert [(n.node, n.cpus, n.state, n.measure) for n in nodes] == [
        ("cn01", 8, state, state == "idle"),
        ("cn02", 4, "idle", True),
    ]
