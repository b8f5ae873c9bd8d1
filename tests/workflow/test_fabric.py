"""LinkTest between nodes, with a kernel that only pretends: what it is called with, and what its outcome says."""

import gzip
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodeprint.campaign import node_sheet
from nodeprint.campaign.node_sheet import Node
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config
from tests.support import made_status
from tests.support.real_parts import ROOT

FABRIC = SimpleNamespace(**runpy.run_path(str(ROOT / "workflow/scripts/fabric.py")))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that writes its arguments as its record, and ends with the code that its last argument is."""
    program = tmp_path / "kernel"
    program.write_text(
        '#!/bin/sh\necho "$*" > "$2"\necho "linktest: it ends" >&2\nfor last; do :; done\nexit "$last"\n'
    )
    program.chmod(0o755)
    monkeypatch.setitem(FABRIC.measure.__globals__, "KERNEL", program)
    return program


@pytest.mark.parametrize(
    ("ends", "outcome", "code", "message"),
    [(0, "done", 0, ""), (3, "refused", 3, "it ends"), (1, "failed", 1, "it ends")],
)
def test_a_run_has_its_outcome_its_seconds_and_its_last_words(
    tmp_path: Path, kernel: Path, ends: int, outcome: str, code: int, message: str
) -> None:
    out = tmp_path / "r.jsonl"
    said = FABRIC.measure(out, "", ["--op", str(ends)])
    assert (said[0], said[1], said[3]) == (outcome, code, message)
    assert 0 <= said[2] < 600
    record = tmp_path / "r.jsonl.gz"
    assert record.exists() == (ends == 0) != out.exists()
    if ends == 0:
        assert gzip.decompress(record.read_bytes()).decode() == f"--out {out} --op 0\n"
        assert FABRIC.measure(out, "", ["--op", "1"]) == ("done", 0, 0.0, ""), "what is measured is not measured again"


def test_a_run_that_a_signal_ended_has_the_code_that_a_shell_gives_it(tmp_path: Path, kernel: Path) -> None:
    kernel.write_text("#!/bin/sh\nkill -9 $$\n")
    assert FABRIC.measure(tmp_path / "r.jsonl", "", [])[:2] == ("failed", 137)


def test_the_set_up_of_a_site_is_sourced_before_its_kernel(tmp_path: Path, kernel: Path) -> None:
    (tmp_path / "setup.sh").write_text('set -- "$@" 0\n')
    assert FABRIC.measure(tmp_path / "r.jsonl", str(tmp_path / "setup.sh"), ["--op"])[1] == 0


def settings(tmp_path: Path, *lines: str) -> Config:
    """The configuration of a campaign that measures LinkTest in two runs, with these lines."""
    path = tmp_path / "config.yaml"
    usual = ["campaign: c", f"results: {tmp_path}", "runs: 2", "measure: [coherence-cas, linktest-fabric]"]
    path.write_text("".join(f"{line}\n" for line in [*usual, *lines]))
    return configuration.load(path)


def test_nodes_of_two_partitions_are_measured_apart_and_what_was_not_measured_is_left_out(tmp_path: Path) -> None:
    nodes = [
        Node(name, name, partition=partition) for name, partition in (("a", "x"), ("b", "x"), ("c", ""), ("d", "x"))
    ]
    node_sheet.write_sheet(tmp_path / "nodes.tsv", nodes)
    for name in "abc":
        made_status.put(tmp_path / f"nodes/{name}/job1")
    by_partition = FABRIC.partitions(tmp_path)
    assert {name: [node.node for node in of_it] for name, of_it in by_partition.items()} == {
        "x": ["a", "b"],
        "any": ["c"],
    }


@pytest.mark.parametrize(
    ("lines", "nodes", "says"),
    [
        (["launch: here"], "ab", "a alone has no link to another node"),
        (["launch: slurm"], "a", "a alone has no link to another node"),
        (["launch: slurm"], "ab", ""),
        (["launch: ansible", "inventory: {hosts}"], "ab", "there is no srun without Slurm: set mpi.fabric_launcher"),
        (["launch: ansible", "inventory: {hosts}", "mpi: {{fabric_launcher: mpirun}}"], "ab", ""),
    ],
)
def test_messages_need_two_nodes_and_a_launcher(tmp_path: Path, lines: list[str], nodes: str, says: str) -> None:
    (tmp_path / "hosts").touch()
    config = settings(tmp_path, *(line.format(hosts=tmp_path / "hosts") for line in lines))
    assert FABRIC.nothing_to_measure(config, [Node(name, name) for name in nodes], 7) == says


def test_ranks_are_started_in_the_partition_of_their_nodes(tmp_path: Path) -> None:
    slurms = FABRIC.ranks_command(settings(tmp_path, "launch: slurm"), "x", 7)
    assert slurms.startswith("srun --mpi=pmix --job-name=linktest --partition=x --time=7 ")
    assert "--nodelist={nodes} --nodes={count} --ntasks={ranks}" in slurms, "which the kernel fills in"
    own = settings(tmp_path, "launch: slurm", "mpi: {fabric_launcher: 'mine -p {partition} {nodes}'}")
    assert FABRIC.ranks_command(own, "x", 7) == "mine -p x {nodes}"


def test_each_run_has_a_seed_of_its_own_and_the_patience_of_the_campaign(tmp_path: Path) -> None:
    """It waits ten minutes longer than its job may take to begin."""
    config = settings(tmp_path, "launch: slurm", "slurm: {deadline_hours: 2}")
    nodes = [Node(name, name, partition="x") for name in "ab"]
    asked = FABRIC.words(config, nodes, "3", 2, 7)
    options = dict(zip(asked[::2], asked[1::2], strict=True))
    assert (options["--nodes"], options["--job"], options["--run"]) == ("a,b", "3", "2")
    assert (options["--seed"], options["--patience"]) == ("3002", str(2 * 60 * 60 + 10 * 60))
    assert " " not in options["--launcher"] and "{nodes}" in options["--launcher"]


def test_every_run_has_an_outcome_also_where_there_is_nothing_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path, "launch: slurm")
    campaign = configuration.campaign_folder(config)
    nodes = [Node(name, name, partition=partition) for name, partition in (("a", "x"), ("b", "x"), ("c", "y"))]
    campaign.mkdir()
    node_sheet.write_sheet(campaign / "nodes.tsv", nodes)
    for node in nodes:
        made_status.put(campaign / f"nodes/{node.node}/job1")
    called = list[Path]()

    def measure(out: Path, setup: str, words: list[str]) -> tuple[str, int, float, str]:
        called.append(out)
        return "refused", 3, 1.26, "no memory"

    monkeypatch.setitem(FABRIC.outcomes.__globals__, "measure", measure)
    folder = campaign / "fabric/job2"
    runs = list(FABRIC.outcomes(campaign, config, folder, 7))
    assert called == [folder / f"x/run{run}/linktest-fabric.jsonl" for run in (1, 2)]
    assert [(row.partition, row.run, row.outcome, row.exit_code, row.seconds, row.message) for row in runs] == [
        ("x", 1, "refused", 3, 1.3, "no memory"),
        ("x", 2, "refused", 3, 1.3, "no memory"),
        ("y", 1, "unavailable", 0, 0.0, "c alone has no link to another node"),
        ("y", 2, "unavailable", 0, 0.0, "c alone has no link to another node"),
    ]
