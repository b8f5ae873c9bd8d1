"""Configuration, plan and sample sheet: what is right, and what is said about what is wrong."""

import json
import re
import socket
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint import files
from nodeprint.campaign import node_sheet, node_status, plans, preparation
from nodeprint.campaign.launchers import launcher_registry
from nodeprint.campaign.node_sheet import Node
from nodeprint.data.store import packing
from nodeprint.errors import NodeprintError
from nodeprint.settings import config
from nodeprint.settings.config_file import Config
from nodeprint.settings.measurements import measurements
from tests.support import made_status
from tests.support.made_records import header, lines
from tests.support.made_status import run_outcome
from tests.support.real_parts import ROOT
from tests.support.run_archives import COMPRESS, RECORDS, tar_of

Launch = Literal["here", "slurm", "ansible"]


def folder_of(folder: Path, files: Mapping[str | Path, str]) -> Path:
    """A folder with these files."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def load(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return config.load(path)


def test_the_shipped_configuration_has_every_default(tmp_path: Path) -> None:
    assert config.load(ROOT / "config/config.yaml") == load(tmp_path, "runs: 2")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("preset: fastest", "preset"),
        ("slurn: {}", "slurn"),
        ("measure: [coherence-cas, clock-alone, coherence-cas]", "measure[2]"),
        ("site: {set_up: x}", "site.set_up"),
        ("runs: many", "runs"),
        ("runs: 0", "runs"),
        ("campaign: ../x", "campaign"),
        ("campaign: 'a b'", "campaign"),
        ("measure: [coherence-sca]", "measure[0]"),
        ("measure: []", "measure"),
        ("arguments: {nothing: --passes 3}", "arguments.nothing"),
        ("arguments: {coherence-cas: '--passes $(reboot)'}", "arguments.coherence-cas"),
        ("arguments: {coherence-cas: '--op flag2'}", "arguments.coherence-cas"),
        ("site: {setup: \"x'; reboot '\"}", "site.setup"),
        ("slurm: {rack_pattern: '('}", "slurm.rack_pattern"),
        ("slurm: {rack_pattern: 'r[0-9]+'}", "slurm.rack_pattern"),
        ("slurm: {rack_pattern: '(r)(n)'}", "slurm.rack_pattern"),
        ("a: [", "line 1, column 5"),
        ("- a", "config.yaml"),
        ("", "config.yaml"),
        ("# a comment alone", "config.yaml"),
    ],
)
def test_a_wrong_key_is_named(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(NodeprintError) as refusal:
        load(tmp_path, text)
    assert f"{key}:" in str(refusal.value)
    assert "config.yaml" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["2026-11-21", "2026-11-21T10", "'2026'", "main.2"])
def test_a_campaign_may_have_the_name_of_a_day(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, f"campaign: {name}").campaign == name.strip("'")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("launch: here\nsite: {setup: /none/such}", "/none/such is not there"),
        ("launch: slurm\nsite: {setup: none}", "none"),
    ],
)
def test_a_site_setup_that_is_not_there_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(NodeprintError, match=f"config.yaml: site.setup: {says}"):
        launcher_registry.check(load(tmp_path, text), tmp_path / "config.yaml")


def test_an_acceptance_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match=r"config\.yaml: acceptance: none\.yaml is not there; name a file"):
        launcher_registry.check(load(tmp_path, "acceptance: none.yaml"), tmp_path / "config.yaml")


def test_a_site_setup_of_the_nodes_alone_is_theirs(tmp_path: Path) -> None:
    launcher_registry.check(load(tmp_path, "launch: slurm\nsite: {setup: /none/such}"), tmp_path / "config.yaml")


def test_the_plan_puts_the_users_arguments_last(tmp_path: Path) -> None:
    text = "measure: [coherence-cas]\narguments: {coherence-cas: --passes 99}"
    (row,) = config.read_plan(config.plan(load(tmp_path, text)))
    assert (row.name, row.kernel) == ("coherence-cas", "coherence")
    assert row.arguments.endswith("--passes 99")


def test_a_measurement_says_how_many_runs_a_job_makes_of_it(tmp_path: Path) -> None:
    """Six of what takes seconds where others have two; each in its turn over the whole job."""
    text = "measure: [coherence-cas, chase-latency]\npreset: "
    rows = config.read_plan(config.plan(load(tmp_path, text + "standard")))
    assert [(row.name, row.runs) for row in rows] == [("coherence-cas", 6), ("chase-latency", 2)]
    assert [name[:2] for _, name in config.steps(rows)] == ["co", "ch", "co", "co", "co", "ch", "co", "co"]
    assert [run for run, name in config.steps(rows) if name == "coherence-cas"] == [1, 2, 3, 4, 5, 6]
    rows = config.read_plan(config.plan(load(tmp_path, text + "quick\nruns: 3")))
    assert {row.runs for row in rows} == {3}
    assert config.read_plan("a\tb\t--c 1\n", 5) == [config.PlanRow("a", "b", "--c 1", 5)]  # as older ones have it


def test_every_operation_of_coherence_can_be_asked_for(tmp_path: Path) -> None:
    """`thorough` has those that take long, where the configuration has no list of its own."""
    beyond = ["coherence-oneway", "coherence-state", "coherence-payload", "coherence-contend"]
    usual = load(tmp_path, "preset: standard").measure
    thorough = [name for name in load(tmp_path, "preset: thorough").measure if name not in usual]
    held = ["coherence-place", "coherence-stream"]
    assert thorough == [*beyond[:2], *held, *beyond[2:], "bandwidth-caches", "bandwidth-ladder"]
    for preset in ("quick", "standard", "thorough", "test"):
        rows = config.read_plan(config.plan(load(tmp_path, f"measure: [{', '.join(beyond)}]\npreset: {preset}")))
        assert [row.name for row in rows] == beyond
    operations = {known.operation for known in measurements().values() if known.kernel == "coherence"}
    text = (ROOT / "kernels/coherence/coherence.c").read_text()
    assert operations == set(
        re.findall(r"operation_(?!count)([a-z0-9-]+)", text.replace("contend_pairs", "contend-pairs"))
    )


def test_a_preset_leaves_out_what_it_has_no_time_for(tmp_path: Path) -> None:
    text = "measure: [coherence-cas, bandwidth-cpus]\npreset: "
    assert config.plan(load(tmp_path, text + "quick")).count("\n") == 1
    assert config.plan(load(tmp_path, text + "thorough")).count("\n") == 2
    assert config.left_out(load(tmp_path, text + "quick")) == ["bandwidth-cpus"]
    assert config.left_out(load(tmp_path, text + "thorough")) == []
    with pytest.raises(NodeprintError, match="preset quick leaves out every measurement"):
        load(tmp_path, "measure: [bandwidth-cpus]\npreset: quick")


KERNEL = """\
#!/bin/sh
case $* in
*--passes*x*) echo "coherence: --passes takes a whole number" >&2; exit 2 ;;
*--home*7*) echo "coherence: there is no NUMA node 7 on this machine" >&2; exit 2 ;;
*--alone*) echo "coherence: a pair needs two CPUs, and here is 1" >&2; exit 3 ;;
*9999*) printf 'cpus 0,9999\\nseconds 1\\n' ;;
*) printf 'cpus 0\\nseconds 2.5\\nseconds_at_195_ns 3.5\\n'; echo "coherence: a note" >&2 ;;
esac
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A folder of built kernels: coherence, whose dynamic build does not start here."""
    folder = tmp_path / "build"
    (folder / "static").mkdir(parents=True)
    for path, text in ((folder / "coherence", "not for this machine"), (folder / "static/coherence", KERNEL)):
        path.write_text(text)
        path.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("words", "here", "says"),
    [
        ("--passes 3", True, ""),
        ("--passes x", True, "arguments.coherence-cas: --passes takes a whole number; "),
        ("--passes x", False, "arguments.coherence-cas: --passes takes a whole number; "),
        ("--home 7", True, "there is no NUMA node 7"),
        ("--home 7", False, ""),
        ("--alone", True, ""),
        ("--cpus 0,9999", True, "CPU 9999 is not online on this machine, whose CPUs are 0"),
        ("--cpus 0,9999", False, ""),
        ("--help", False, "nothing is measured with --help"),
    ],
)
def test_the_kernels_are_asked_about_their_arguments(kernels: Path, words: str, here: bool, says: str) -> None:
    plan = f"coherence-cas\tcoherence\t--op cas {words}\nother\tnot-built\t--op x\n"
    if not says:
        plans.check(plan, kernels, Path("config.yaml"), here)
        return
    with pytest.raises(NodeprintError) as refusal:
        plans.check(plan, kernels, Path("config.yaml"), here)
    assert str(refusal.value).startswith("config.yaml: arguments.coherence-cas: ")
    assert says in str(refusal.value)


def test_the_kernels_are_asked_how_long_they_take(kernels: Path) -> None:
    assert plans.seconds(kernels, "coherence", ["--op", "cas"]) == 3.5
    assert plans.process_seconds(kernels, "coherence", ["--op", "cas"]) == 1 + 3.5
    for kernel, words in (("coherence", ["--passes", "x"]), ("not-built", [])):
        with pytest.raises(NodeprintError) as refusal:
            plans.seconds(kernels, kernel, words)
        assert str(refusal.value).startswith(f"{kernel}: ") and "slurm" not in str(refusal.value)


def test_the_limit_of_a_job_that_cannot_be_planned_is_asked_for(kernels: Path, settings: Config) -> None:
    with pytest.raises(NodeprintError, match=r"arguments\.coherence-cas: .*; set slurm\.minutes"):
        plans.job_minutes(settings, "coherence-cas\tcoherence\t--passes x\n", 4, 4, kernels)


@pytest.mark.parametrize("name", measurements())
def test_every_measurement_says_what_each_preset_asks(name: str) -> None:
    measurement = measurements()[name]
    assert set(measurement.presets) == {"quick", "standard", "thorough", "test"}
    assert measurement.presets["thorough"] is not None
    assert measurement.arguments.startswith(("--op ", "--mode "))


def test_this_host() -> None:
    node = node_sheet.local()
    assert node.host == socket.gethostname().split(".")[0]
    assert node.cpus >= 1


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=20)


@given(
    names=st.lists(NAMES, unique=True, max_size=5),
    reason=TEXT,
    state=st.from_regex(r"[a-z*]{0,9}", fullmatch=True),
    cpus=st.integers(0, 4096),
    measure=st.booleans(),
)
def test_the_sheet_reads_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], reason: str, state: str, cpus: int, measure: bool
) -> None:
    path = tmp_path_factory.mktemp("sheet") / "nodes.tsv"
    nodes = [Node(name, name, cpus=cpus, state=state, reason=reason, measure=measure) for name in names]
    node_sheet.write_sheet(path, nodes)
    assert [n.node for n in node_sheet.read_sheet(path)] == names
    assert all(n.cpus == cpus and n.measure == measure and n.state == state for n in node_sheet.read_sheet(path))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no column 'node'"),
        ("host\nx\n", "no column 'node'"),
        ("node\tcolor\nx\tred\n", "'color'"),
        ("node\n-c\n", "line 2"),
        ("node\n../../etc\n", "line 2"),
        ("node\n$(reboot)\n", "line 2"),
        ("node\na\na\n", "twice"),
        ("node\tcpus\na\tmany\n", "'cpus'"),
        ("node\tjob\na\t0\n", "'job'"),
        ("node\tmeasure\na\tmaybe\n", "'measure'"),
        ("node\ta\tb\nx\n", "unknown column"),
        ("node\thost\nx\n", "cells"),
    ],
)
def test_a_wrong_sheet_is_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "nodes.tsv"
    path.write_text(text)
    with pytest.raises(NodeprintError) as refusal:
        node_sheet.read_sheet(path)
    assert says in str(refusal.value)
    assert "nodes.tsv" in str(refusal.value)


@pytest.fixture
def settings(tmp_path: Path) -> Config:
    return load(tmp_path, f"results: {tmp_path}/results")


def test_the_sheet_is_frozen_and_a_node_can_be_measured_again(settings: Config) -> None:
    folder = preparation.prepare(settings, lambda: [Node("a", "a"), Node("b", "b")], [], {})
    preparation.prepare(settings, lambda: [Node("c", "c")], ["b"], {})
    assert [(n.node, n.job) for n in node_sheet.read_sheet(folder / "nodes.tsv")] == [("a", 1), ("b", 2)]
    with pytest.raises(NodeprintError, match="NODES"):
        preparation.prepare(settings, lambda: [], ["z"], {})


def test_a_failed_outcome_is_set_aside_and_a_complete_one_stays(settings: Config) -> None:
    nodes = [Node("good", "good"), Node("bad", "bad"), Node("cut", "cut")]
    folder = preparation.prepare(settings, lambda: nodes, [], {})
    good, bad, cut = (preparation.job_folder(folder, node) for node in nodes)
    made_status.put(good)
    made_status.put(bad, "partial")
    made_status.put(cut)
    (cut / "status.json").write_text((cut / "status.json").read_text()[:100])
    preparation.prepare(settings, lambda: [], [], {})
    assert [(preparation.job_folder(folder, node) / "status.json").exists() for node in nodes] == [True, False, False]


def test_what_was_unavailable_is_measured_once_it_can_be(settings: Config) -> None:
    """LinkTest, after Open MPI was installed. What has nothing to measure is not asked for again."""
    lacks = run_outcome("linktest-node", outcome="unavailable", exit_code=4)
    nothing = run_outcome("touch-ratio", outcome="unavailable")
    campaign = preparation.prepare(settings, lambda: [Node("cn1", "cn1", cpus=2)], [], {})
    status = campaign / "nodes/cn1/job1/status.json"
    made_status.put(status.parent, "complete", lacks, nothing)
    content = status.read_text()
    preparation.prepare(settings, list, [], {}, is_available=lambda name: name == "touch-ratio")
    assert status.read_text() == content
    preparation.prepare(settings, list, [], {}, is_available=lambda name: name == "linktest-node")
    assert not status.exists()
    assert [node.job for node in node_sheet.read_sheet(campaign / "nodes.tsv")] == [1], "the same job goes on"


@pytest.mark.parametrize(("launch", "has_id"), [("here", False), ("slurm", True), ("ansible", True)])
def test_what_is_measured_elsewhere_is_known_by_the_campaigns_id(
    settings: Config, launch: Launch, has_id: bool
) -> None:
    settings = replace(settings, launch=launch)
    folder = preparation.prepare(settings, lambda: [Node("a", "a", state="inventory")], [], {})
    assert (folder / "id").exists() is has_id
    before = (folder / "id").read_text() if has_id else ""
    preparation.prepare(settings, lambda: [Node("a", "a", state="inventory")], [], {})
    assert not has_id or (folder / "id").read_text() == before


def test_nodes_that_all_failed_are_tried_again(settings: Config) -> None:
    """Snakemake makes no list again that is older than the nodes' list, where that has the same content as before."""
    settings = replace(settings, launch="ansible")
    nodes = [Node("a", "a", state="inventory"), Node("b", "b", state="inventory")]
    folder = preparation.prepare(settings, lambda: nodes, [], {})
    came_back = folder / "launch/pending.outcomes.tsv"
    came_back.parent.mkdir(exist_ok=True)
    came_back.write_text("a\t1\tfailed\nb\t1\tfailed\n")
    preparation.prepare(settings, lambda: nodes, [], {})
    assert not came_back.exists()
    for node in nodes:
        made_status.put(preparation.job_folder(folder, node))
    came_back.write_text("a\t1\tcomplete\nb\t1\tcomplete\n")
    preparation.prepare(settings, lambda: nodes, [], {})
    assert came_back.exists()


def test_a_pending_hosts_name_is_that_of_the_inventory(settings: Config) -> None:
    settings = replace(settings, launch="ansible")
    folder = preparation.prepare(settings, lambda: [Node("a", "a", state="inventory")], [], {})
    preparation.prepare(settings, lambda: [Node("a", "n17", state="inventory")], [], {})
    assert [node.host for node in node_sheet.read_sheet(folder / "nodes.tsv")] == ["n17"]


@pytest.mark.parametrize("ending", [".tar.zst", ".tar.xz", ".tar.gz"])
@pytest.mark.parametrize("kept", [0, 100, -1])
def test_a_complete_job_with_a_cut_archive_is_measured_again(settings: Config, ending: str, kept: int) -> None:
    folder = preparation.prepare(settings, lambda: [Node("a", str(header()["host"]))], [], {})
    job = folder / "nodes/a/job1"
    made_status.put(job, host=str(header()["host"]))
    whole = COMPRESS[ending](tar_of(RECORDS))
    (job / f"run1{ending}").write_bytes(whole)
    for judged in (False, True):
        if judged:
            packing.pack(folder)
        preparation.prepare(settings, lambda: [], [], {}, packing.nodes_read_whole(folder))
        assert (job / "status.json").exists()
    (job / f"run1{ending}").write_bytes(whole[:kept])
    packing.pack(folder)
    preparation.prepare(settings, lambda: [], [], {}, packing.nodes_read_whole(folder))
    assert not (job / "status.json").exists()


def test_a_change_of_an_existing_campaigns_configuration_is_said(
    settings: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    preparation.prepare(settings, lambda: [Node("a", "a")], [], {})
    assert capsys.readouterr().err == ""
    preparation.prepare(replace(settings, runs=9), lambda: [], [], {})
    assert "changes in runs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("plan", "kernel_hash", "job"),
    [(None, "h1", 1), ("coherence-cas\tcoherence\t--op other\n", "h1", 2), (None, "h2", 2)],
)
def test_an_unfinished_job_of_another_plan_or_kernel_stays(
    settings: Config, plan: str | None, kernel_hash: str, job: int
) -> None:
    folder = preparation.prepare(settings, lambda: [Node("a", "a")], [], {})
    begun = folder / "nodes/a/job1"
    (begun / "run1").mkdir(parents=True)
    (begun / "run1/coherence-cas.jsonl").write_text(lines(header(kernel_hash="h1")))
    (begun / "plan.tsv").write_text(plan or (folder / "plan.tsv").read_text())
    preparation.prepare(settings, lambda: [], [], {"coherence": kernel_hash})
    assert node_sheet.read_sheet(folder / "nodes.tsv")[0].job == job
    assert (begun / "run1/coherence-cas.jsonl").exists()


@pytest.mark.parametrize(
    ("launch", "seen_by", "records", "job"),
    [
        ("here", "survey", True, 2),
        ("here", "survey", False, 1),
        ("here", "nothing", True, 1),
        ("slurm", "survey", True, 1),
        ("slurm", "node-run", True, 2),
        ("slurm", "nothing", True, 1),
    ],
)
def test_an_unfinished_job_of_another_boot_stays(
    settings: Config, tmp_path: Path, launch: Launch, seen_by: str, records: bool, job: int
) -> None:
    """Of this machine the boot is known; of another node what node-run noted."""
    settings = replace(settings, launch=launch)
    sheet = [Node("a", "a")]
    begun = preparation.prepare(settings, lambda: sheet, [], {}) / "nodes/a/job1"
    (begun / "run1").mkdir(parents=True)
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    surveyed = folder_of(
        tmp_path / "surveyed",
        {"proc/cpuinfo": "", boot_id.relative_to("/"): "b\n" if seen_by == "survey" else boot_id.read_text()},
    )
    with tarfile.open(begun / "survey.tar.gz", "w:gz") as archive:
        archive.add(surveyed / "proc", "proc")
    if records:
        (begun / "run1/coherence-cas.jsonl").write_text(lines(header()))
    made_status.put(begun, "partial", rebooted=seen_by == "node-run")
    folder = preparation.prepare(settings, lambda: sheet, [], {})
    assert node_sheet.read_sheet(folder / "nodes.tsv")[0].job == job
    assert (begun / "survey.tar.gz").exists() and (begun / "run1/coherence-cas.jsonl").exists() == records


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = load(tmp_path, f"results: {tmp_path}/file")
    with pytest.raises(NodeprintError, match="cannot be written"):
        preparation.prepare(settings, lambda: [Node("a", "a")], [], {})


def complete_job(settings: Config, plan: str | None = None) -> Path:
    """A campaign of node a with a complete job; returns the job's folder."""
    folder = preparation.prepare(settings, lambda: [Node("a", "a")], [], {})
    job = folder / "nodes/a/job1"
    job.mkdir(parents=True)
    (job / "plan.tsv").write_text(plan or (folder / "plan.tsv").read_text())
    made_status.put(job)
    return job


@pytest.mark.parametrize(("before", "now"), [("here", "slurm"), ("here", "ansible"), ("slurm", "here")])
def test_a_campaign_of_other_nodes_asks_for_a_name(settings: Config, before: Launch, now: Launch) -> None:
    job = complete_job(replace(settings, launch=before))
    folder = job.parent.parent.parent
    kept = {path: path.read_text() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(NodeprintError) as refusal:
        preparation.prepare(replace(settings, launch=now), lambda: [Node("b", "b")], [], {})
    assert f"launch: the campaign was begun with `launch: {before}`, and `launch: {now}` measures" in str(refusal.value)
    assert str(refusal.value).endswith("; write another name at `campaign:`")
    assert {path: path.read_text() for path in folder.rglob("*") if path.is_file()} == kept


def test_a_node_whose_records_cannot_be_used_gets_a_new_job(
    settings: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    """As its records are of another host: what `gather` says, status says, and the next call measures it."""
    job = complete_job(settings)
    folder = job.parents[2]
    why = "its records were written on host b, not on a"
    said = {"node": "a", "host": "a", "state": "refused", "reason": why, "problems": []}
    files.write(folder / "store/fleet.json", json.dumps({"schema": 1, "simulated": False, "nodes": [said]}))
    assert node_status.read(folder).nodes[0].standing == "failed"
    preparation.prepare(settings, lambda: [], [], {})
    assert node_sheet.read_sheet(folder / "nodes.tsv")[0].job == 2
    assert "a is measured in a new job: its records were written on host b, not on a" in capsys.readouterr().err
    assert (job / "status.json").exists(), "what was measured stays"
    (folder / "nodes/a/job2").mkdir()
    (folder / "nodes/a/job2/status.json").write_text((job / "status.json").read_text())
    preparation.prepare(settings, lambda: [], [], {})
    assert node_sheet.read_sheet(folder / "nodes.tsv")[0].job == 2, "it was not gathered since"
    files.write(folder / "store/fleet.json", json.dumps({"schema": 1, "simulated": False, "nodes": [said]}))
    capsys.readouterr()
    for _ in range(2):
        preparation.prepare(settings, lambda: [], [], {})
        assert node_sheet.read_sheet(folder / "nodes.tsv")[0].job == 2, "it is measured once more, and not for ever"
        assert f"a is not measured once more, as a new job did not help: {why}" in capsys.readouterr().err


def test_a_job_that_was_lost_is_continued_though_it_was_gathered(settings: Config) -> None:
    job = complete_job(settings)
    folder = job.parents[2]
    made_status.put(job, "partial", lost=True)
    said = {"node": "a", "host": "a", "state": "not measured", "reason": "Slurm job 7: NODE_FAIL", "problems": []}
    files.write(folder / "store/fleet.json", json.dumps({"schema": 1, "simulated": False, "nodes": [said]}))
    preparation.prepare(settings, lambda: [], [], {})
    assert node_sheet.read_sheet(folder / "nodes.tsv")[0].job == 1


@pytest.mark.parametrize(
    ("changes", "key"),
    [({"preset": "quick"}, "preset"), ({"arguments": {"coherence-cas": "--passes 9"}}, "arguments")],
)
def test_other_arguments_than_were_measured_ask_for_a_name(settings: Config, changes: dict[str, Any], key: str) -> None:
    job = complete_job(settings)
    with pytest.raises(
        NodeprintError,
        match=rf": {key}: a was measured by [a-z-]+ with `.*`, and `.*` is configured now, so that values of both",
    ):
        preparation.prepare(replace(settings, **changes), lambda: [], [], {})
    assert (job / "status.json").exists()
    folder = preparation.prepare(replace(settings, **changes), lambda: [], ["a"], {})  # anew, as a job of its own
    assert node_sheet.read_sheet(folder / "nodes.tsv")[0].job == 2


@pytest.mark.parametrize(
    ("changes", "again", "says"),
    [
        ({}, ["nowhere"], "NODES: no node nowhere in this campaign; its nodes are a"),
        ({"preset": "quick"}, [], ": preset: a was measured by "),
        ({"launch": "slurm"}, [], ": launch: the campaign was begun with `launch: here`"),
    ],
)
def test_what_is_refused_by_the_folder_is_refused_without_writing(
    settings: Config, changes: dict[str, Any], again: list[str], says: str
) -> None:
    """Before a call waits for another that is at work, maybe for hours."""
    campaign = complete_job(settings).parents[2]
    before = {path: path.stat().st_mtime_ns for path in campaign.rglob("*")}
    with pytest.raises(NodeprintError) as refusal:
        preparation.check(replace(settings, **changes), again)
    assert says in str(refusal.value)
    preparation.check(settings, ["a"])
    preparation.check(replace(settings, campaign="another"), ["x"])
    assert {path: path.stat().st_mtime_ns for path in campaign.rglob("*")} == before


@pytest.mark.parametrize(
    ("changes", "key"),
    [({"preset": "quick"}, "preset"), ({"arguments": {"coherence-cas": "--passes 9"}}, "arguments")],
)
def test_other_arguments_do_not_begin_an_interrupted_job_at_nothing(
    settings: Config, changes: dict[str, Any], key: str
) -> None:
    job = complete_job(settings)
    (job / "status.json").unlink()
    (job / "run1").mkdir()
    (job / "run1/coherence-cas.jsonl.gz").touch()
    campaign = job.parents[2]
    with pytest.raises(NodeprintError) as refusal:
        preparation.prepare(replace(settings, **changes), lambda: [], [], {})
    assert f": {key}: 1 measurements of the job of a are complete, " in str(refusal.value)
    assert "the others are missing (it is not finished)" in str(refusal.value)
    assert str(refusal.value).endswith("begin anew with NODES=a, or write another name at `campaign:`")
    refused = made_status.run_outcome("touch-ratio", outcome="refused", exit_code=3, message="no memory")
    made_status.put(job, "partial", made_status.run_outcome(), refused)
    with pytest.raises(NodeprintError, match=r"the others are missing \(touch-ratio: no memory\)"):
        preparation.prepare(replace(settings, **changes), lambda: [], [], {})
    (job / "status.json").unlink()
    assert node_sheet.read_sheet(campaign / "nodes.tsv")[0].job == 1
    preparation.prepare(settings, lambda: [], [], {})
    assert node_sheet.read_sheet(campaign / "nodes.tsv")[0].job == 1, "as it was it is continued"
    preparation.prepare(replace(settings, **changes), lambda: [], ["a"], {})
    assert node_sheet.read_sheet(campaign / "nodes.tsv")[0].job == 2


@pytest.mark.parametrize("measure", [("coherence-cas", "clock-alone"), ("clock-alone",)])
def test_an_interrupted_job_goes_on_with_more_and_fewer_measurements(
    settings: Config, measure: tuple[str, ...]
) -> None:
    job = complete_job(replace(settings, measure=("coherence-cas",)))
    (job / "status.json").unlink()
    folder = preparation.prepare(replace(settings, measure=measure), lambda: [], [], {})
    assert node_sheet.read_sheet(folder / "nodes.tsv")[0].job == 1
    assert (job / "plan.tsv").read_text() == (folder / "plan.tsv").read_text()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"measure": ("coherence-cas", "clock-alone")}, "new, and measured now: clock-alone on 1 node; complete"),
        ({"runs": 4}, "new, and measured now: runs 7 to 12 of coherence-cas on 1 node; complete"),
        ({"runs": 1}, "changes in runs; complete measurements stay"),
    ],
)
def test_what_is_new_is_said_and_measured_in_the_same_job(
    settings: Config, changes: dict[str, Any], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = replace(settings, measure=("coherence-cas",))
    job = complete_job(settings)
    folder = preparation.prepare(replace(settings, **changes), lambda: [], [], {})
    assert says in capsys.readouterr().err
    assert (job / "status.json").exists() == ("new" not in says)
    for _ in range(2):  # also by the call after an interrupted one
        assert node_sheet.read_sheet(folder / "nodes.tsv")[0].job == 1
        assert ((job / "plan.tsv").read_text() == (folder / "plan.tsv").read_text()) == (says[:3] == "new")
        preparation.prepare(replace(settings, **changes), lambda: [], [], {})


@pytest.mark.parametrize(
    ("rows", "stays"),
    [
        (["done", "done"], True),
        (["done", "unavailable"], True),
        (["done", "failed"], False),
        (["refused", "done"], False),
        (["done"], False),  # a run, or a measurement, that is asked for now
    ],
)
def test_a_job_between_nodes_is_tried_again_where_it_failed_or_lacks_something(
    settings: Config, rows: list[str], stays: bool
) -> None:
    settings = replace(
        settings,
        measure=(
            "coherence-cas",
            "linktest-fabric",
        ),
    )
    folder = preparation.prepare(settings, lambda: [Node("cn01", "cn01", job=2)], [], {})
    jobs = [folder / f"fabric/job{number}" for number in (1, 2)]
    runs = [run_outcome("linktest-fabric", run, outcome=how, partition="main") for run, how in enumerate(rows, 1)]
    for job in jobs:
        made_status.put(job, "partial", *runs)
    preparation.prepare(settings, lambda: [], [], {})
    assert [(job / "status.json").exists() for job in jobs] == [True, stays]


def test_a_new_nodeprint_with_other_arguments_changes_nothing(settings: Config) -> None:
    settings = replace(settings, measure=("coherence-cas",))
    job = complete_job(settings, "coherence-cas\tcoherence\t--op cas --passes 77\n")
    preparation.prepare(settings, lambda: [], [], {})
    assert (job / "status.json").exists()
