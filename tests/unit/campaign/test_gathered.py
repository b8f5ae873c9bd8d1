"""A node is measured or it is not: what cannot be used says so at every door, and the next call measures it again."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from junitparser import JUnitXml, TestCase

from nodeprint.campaign import gathered, job_status, lost_jobs, node_sheet, node_status, preparation
from nodeprint.cli.shared import judge_and_write
from nodeprint.judge.outcome import Outcome
from nodeprint.settings import checked_yaml
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config
from tests.golden.stage import DECIDING, Stage
from tests.support.command_line import call
from tests.support.made_status import job_outcome, put, run_outcome

ROOT = Path(__file__).parents[3]
#: The made campaigns have nothing else, and two runs that are 2% apart.
PAIRS_DECIDE = "criteria: [core-to-core]\ntolerances: {percent: {class: 50}}\n"


def records(job: Path) -> Path:
    """The record of a measurement's second run."""
    return sorted(job.glob("run2/*.jsonl.gz"))[0]


def garble(job: Path) -> None:
    records(job).write_bytes(gzip.compress(b"this is no record\n"))


def cut(job: Path) -> None:
    """As of a kernel that was killed: no trailer."""
    lines = gzip.decompress(records(job).read_bytes()).splitlines(keepends=True)
    records(job).write_bytes(gzip.compress(b"".join(lines[:-1])))


def copy(job: Path) -> None:
    shutil.copy(job / "run1" / records(job).name, records(job))


def remove(job: Path) -> None:
    records(job).unlink()


def of_another_host(job: Path) -> None:
    for path in job.glob("run*/*.jsonl.gz"):
        text = re.sub(rb'"host": ?"b"', b'"host":"c"', gzip.decompress(path.read_bytes()))
        path.write_bytes(gzip.compress(text))


def refuse(job: Path) -> None:
    """A third run was asked for, and the kernel refused it."""
    runs = [run_outcome(), run_outcome(run=2), run_outcome(run=3, outcome="refused", exit_code=3, message="no memory")]
    put(job, "partial", *runs, node="b", host="b")


@dataclass(frozen=True)
class Seen:
    """What every door says of a node's job that something is wrong with: status, verdict, JUnit, the job that the next
    call measures, and what it says."""

    standing: str
    outcome: Outcome
    junit: str
    job: int
    next_call: str


IN_PART = Seen(
    "partly measured", Outcome.INVALID, "error", 2, "b is measured in a new job: 1 of 2 records of job1 cannot"
)
#: The second run alone is wrong but where all records are of another host.
DAMAGE = {
    garble: IN_PART,
    cut: IN_PART,
    copy: IN_PART,
    remove: IN_PART,
    of_another_host: Seen("failed", Outcome.NOT_MEASURED, "error", 2, "b is measured in a new job: its records were"),
    refuse: Seen("partly measured", Outcome.INCONCLUSIVE, "error", 1, ""),
}


def whole(campaign: Callable[..., Path], *nodes: str) -> tuple[Path, Config]:
    """A campaign of these nodes of which everything is there, and its configuration."""
    folder = campaign(*nodes)
    (folder / "acceptance.yaml").write_text(PAIRS_DECIDE)
    settings = Config(
        results=str(folder.parent), campaign=folder.name, launch="slurm", runs=2, measure=("coherence-cas",)
    )
    (folder / "config.yaml").write_text(checked_yaml.text(settings))
    (folder / "plan.tsv").write_text(configuration.plan(settings))
    for job in folder.glob("nodes/*/job1"):
        shutil.copy(folder / "plan.tsv", job)
        for path in job.glob("run*/*.jsonl"):
            path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    return folder, settings


@pytest.mark.parametrize(("harm", "seen"), DAMAGE.items(), ids=[harm.__name__ for harm in DAMAGE])
def test_every_door_says_that_a_node_is_to_be_measured_again(
    campaign: Callable[..., Path], harm: Callable[[Path], None], seen: Seen, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, settings = whole(campaign, "a", "b", "c", "d")
    judge_and_write(folder)
    assert gathered.unusable(folder) == {}
    assert call("status", folder) == 0
    # the gate before a node is given back
    assert call("status", folder, "--node", "b", "--fail-on", "not-same") == 0
    assert "b: measured; SAME" in capsys.readouterr().out
    assert call("status", folder, "--node", "nobody") == 2
    assert capsys.readouterr().err == "nodeprint: --node: no node nobody in this campaign; its nodes are a,b,c,d\n"
    assert call("status", folder, "--fail-on", "found") == 2
    harm(folder / "nodes/b/job1")
    verdict = judge_and_write(folder)
    # fleet.json, status and its exit status, the sentence of `make run`
    assert set(gathered.unusable(folder)) == {"b"}
    standings = ["measured", seen.standing, "measured", "measured"]
    assert [node.standing for node in node_status.read(folder).nodes] == standings
    assert f"b {seen.standing} (" in node_status.read(folder).unfinished()
    assert call("status", folder) == 1
    # the verdict, its file, JUnit, the gate; of the others nothing changes
    assert verdict.nodes["b"].outcome is seen.outcome
    assert {verdict.nodes[name].outcome for name in "acd"} == {Outcome.SAME}
    assert json.loads((folder / "verdict.json").read_text())["nodes"]["b"]["outcome"] == seen.outcome
    assert junit(folder)["node b"] == [seen.junit]
    capsys.readouterr()
    assert call("status", folder, "--node", "b", "--fail-on", "not-same") == 3
    assert capsys.readouterr().out.strip().endswith(f"; {seen.outcome}")
    # the next call
    sheet = [node_sheet.Node(name, name) for name in "abcd"]
    preparation.prepare(settings, lambda: sheet, [], {})
    assert [node.job for node in node_sheet.read_sheet(folder / "nodes.tsv")] == [1, seen.job, 1, 1]
    assert not (folder / f"nodes/b/job{seen.job}/status.json").exists(), "there is something to measure"
    assert seen.next_call in capsys.readouterr().err
    assert call("status", folder, "--node", "b", "--fail-on", "not-same") == 3, "its newest job was not judged"


@pytest.mark.parametrize(("harm", "seen"), DAMAGE.items(), ids=[harm.__name__ for harm in DAMAGE])
def test_every_door_says_it_of_a_lone_node_too(
    campaign: Callable[..., Path], harm: Callable[[Path], None], seen: Seen
) -> None:
    """Nothing is compared with it, and what it refused is to be measured all the same."""
    folder, _ = whole(campaign, "b")
    assert judge_and_write(folder).nodes["b"].outcome is Outcome.NO_PEERS
    assert (call("status", folder), junit(folder)) == (0, {"fleet": ["skipped"], "node b": ["skipped"]})
    harm(folder / "nodes/b/job1")
    verdict = judge_and_write(folder)
    assert (verdict.nodes["b"].outcome, call("status", folder)) == (seen.outcome, 1)
    assert junit(folder) == {"fleet": ["error"], "node b": ["error"]}


def junit(folder: Path) -> dict[str, list[str]]:
    """By test case its results."""
    return {
        str(case.name): [result.__class__.__name__.lower() for result in case.result] for case in junit_cases(folder)
    }


def junit_cases(folder: Path) -> list[TestCase]:
    return [case for suite in JUnitXml.fromfile(str(folder / "verdict.xml")) for case in suite]


def test_a_campaign_that_was_not_measured_here_says_so_too(campaign: Callable[..., Path]) -> None:
    folder = campaign("a", "b")
    node_sheet.write_sheet(folder / "nodes.tsv", [node_sheet.Node(name, name, state="imported") for name in "ab"])
    for record in (folder / "nodes/b/job1").glob("run*/*.jsonl"):
        record.write_text(record.read_text().replace('"host": "b"', '"host": "c"').replace('"host":"b"', '"host":"c"'))
    assert judge_and_write(folder).nodes["b"].outcome is Outcome.NOT_MEASURED
    assert [node.standing for node in node_status.read(folder).nodes] == ["imported", "failed"]
    assert call("status", folder) == 1


def test_what_is_wrong_with_a_former_job_is_said_and_measured_no_more(
    campaign: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """As its newest job was made for that: the node is measured."""
    folder = campaign("a", "b")
    node_sheet.write_sheet(
        folder / "nodes.tsv", [node_sheet.Node(name, name, job=2, state="simulated") for name in "ab"]
    )
    for name in "ab":
        job1, job2 = (folder / f"nodes/{name}/job{number}" for number in (1, 2))
        shutil.copytree(job1, job2)
        for path in job2.glob("run*/*.jsonl"):
            path.write_text(
                re.sub(r'"((?:latency|ci_low|ci_high|min|median|p99)_ns)": ?(\d+)', r'"\1":1\2', path.read_text())
            )
            path.write_text(re.sub(r'"seed": ?(\d+)', r'"seed":7\1', path.read_text()))
            path.write_text(re.sub(r'"job": ?1\b', '"job": 2', path.read_text()))
        of_job2 = {"node": name, "host": name, "job": 2}
        job_status.write(job2, job_outcome("complete", run_outcome(), run_outcome(run=2), **of_job2))
    before = judge_and_write(folder)
    assert call("status", folder) == 0 and "job1/run2" not in capsys.readouterr().out
    (folder / "nodes/b/job1/run2/coherence-cas.jsonl").unlink()
    verdict = judge_and_write(folder)
    said = "job1/run2: records of coherence-cas are gone, though they were made"
    assert said in [found.detail for found in verdict.nodes["b"].disturbances]
    assert verdict.nodes["b"].outcome is before.nodes["b"].outcome
    assert call("status", folder) == 0
    assert re.search(rf"simulated +b +{said}", capsys.readouterr().out)


@pytest.mark.parametrize(("job", "row"), [(1, "| complete; a record of a former"), (2, "| a record cannot be used")])
def test_the_documentation_has_the_outcome_of_a_cut_record(
    job: int, row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two jobs of one run each: without the former, one run of the measurement remains."""
    (line,) = (line for line in (ROOT / "docs/how-to/reports.md").read_text().splitlines() if row in line)
    _, standing, outcome, _ = line.strip("| ").split(" | ")
    monkeypatch.chdir(tmp_path)
    Stage().simulate("main", jobs=2, measured=DECIDING)
    record = tmp_path / f"main/nodes/node002/job{job}/run1/clock-together.jsonl.gz"
    record.write_bytes(record.read_bytes()[:200])
    verdict = judge_and_write(tmp_path / "main").nodes["node002"]
    assert f"`{verdict.outcome}`" in outcome
    assert standing.startswith("measured" if verdict.outcome is Outcome.INCONCLUSIVE else "partly measured")
    assert call("status", "main") == (verdict.outcome is Outcome.INVALID)


def test_a_node_is_not_the_same_where_its_newest_job_was_lost(campaign: Callable[..., Path]) -> None:
    folder = campaign("a", "b", "c", "d")
    (folder / "acceptance.yaml").write_text(PAIRS_DECIDE)
    whole = judge_and_write(folder).nodes["b"].outcome
    node_sheet.write_sheet(
        folder / "nodes.tsv", [node_sheet.Node(name, name, job=1 + (name == "b")) for name in "abcd"]
    )
    (folder / "config.yaml").write_text("launch: slurm\n")
    job2 = folder / "nodes/b/job2"
    job2.mkdir()
    for place in (folder, job2):
        (place / "plan.tsv").write_text("coherence-cas\tcoherence\t\t2\n")
    lost_jobs.settle(job2, "Slurm job 7: NODE_FAIL, the node was lost")
    verdict = judge_and_write(folder)
    assert (whole, verdict.nodes["b"].outcome) == (Outcome.SAME, Outcome.INCONCLUSIVE)
    assert node_status.read(folder).counts == {"failed": 1, "measured": 3}
