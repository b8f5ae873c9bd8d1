"""Tables that other programs measured, by the same judge: made up fleets of known kinds, and published real ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from msgspec.structs import replace

from nodeprint.campaign import node_status
from nodeprint.data.export import datasets
from nodeprint.data.store import packed
from nodeprint.errors import NodeprintError
from nodeprint.interface import export
from nodeprint.judge import campaign, of_table
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.outcome import FleetOutcome, Outcome
from nodeprint.judge.verdict import Verdict
from nodeprint.readers import table_file, value_table
from nodeprint.readers.tool_output import ToolValue
from nodeprint.readers.value_table import ValueTable
from nodeprint.report import text, verdict_files


def judged(rows: list[ToolValue], **rules: object) -> Verdict:
    figures = value_table.from_values(rows, "made up")
    return of_table.judge(figures, "t", of_table.rules_of(figures, **rules)).verdict  # type: ignore[arg-type]


def fleet(
    nodes: int = 32, runs: int = 5, run_sd: float = 0.01, node_sd: float = 0.005, seed: int = 1
) -> npt.NDArray[np.float64]:
    """Values (node, run) of equal nodes."""
    rng = np.random.default_rng(seed)
    return 2600 * (1 + node_sd * rng.standard_normal((nodes, 1))) * (1 + run_sd * rng.standard_normal((nodes, runs)))


def rows_of(values: npt.NDArray[np.float64], metric: str = "triad", unit: str = "MB/s") -> list[ToolValue]:
    return [
        ToolValue(node=f"n{node:03}", metric=metric, value=float(value), unit=unit, run=str(run + 1))
        for node, of_node in enumerate(values)
        for run, value in enumerate(of_node)
    ]


def names(verdict: Verdict, outcome: Outcome) -> list[str]:
    return [name for name, node in verdict.nodes.items() if node.outcome is outcome]


def test_equal_nodes_are_the_same_and_one_at_half_is_suspected() -> None:
    values = fleet()
    assert judged(rows_of(values)).fleet.outcome is FleetOutcome.UNIFORM
    values[7] /= 2
    verdict = judged(rows_of(values))
    assert names(verdict, Outcome.SUSPECT) == ["n007"]
    assert len(names(verdict, Outcome.SAME)) == 31
    (finding,) = verdict.nodes["n007"].findings
    assert finding.worse
    words = text.finding_sentence(finding)
    assert words.startswith("triad is 50.") or words.startswith("triad is 49.")
    assert " lower than on its peers" in words


def test_a_node_at_half_is_suspected_where_nodes_have_no_center_too() -> None:
    values = fleet(nodes=24) * np.linspace(0.88, 1.12, 24)[:, None]
    verdict = judged(rows_of(values))
    assert verdict.fleet.outcome in (FleetOutcome.INCONCLUSIVE, FleetOutcome.NON_UNIFORM)
    assert names(verdict, Outcome.SUSPECT) == names(verdict, Outcome.SAME) == []
    values[7] /= 2
    verdict = judged(rows_of(values))
    assert names(verdict, Outcome.SUSPECT) == ["n007"]
    assert names(verdict, Outcome.SAME) == []


def test_a_second_job_confirms() -> None:
    values = fleet()
    values[7] *= 0.8
    second = fleet(seed=2)
    second[7] *= 0.8
    rows = [replace(row, job="a") for row in rows_of(values)] + [replace(row, job="b") for row in rows_of(second)]
    assert names(judged(rows), Outcome.DEVIATES) == ["n007"]


def remedies(rows: list[ToolValue], **rules: object) -> list[str]:
    """The remedies of the first node."""
    nodes = judged(rows, **rules).nodes
    return [text.agreement_remedy(of) for of in next(iter(nodes.values())).agreements if of.share > 1]


@pytest.mark.parametrize("runs", [5, 6, 12, 20])
def test_a_difference_close_to_the_tolerance_asks_for_no_more_runs(runs: int) -> None:
    values = fleet(64, runs, run_sd=0.011, node_sd=0.0035)
    values[0] *= 2600 * 1.047 / values[0].mean()
    (words,) = remedies(rows_of(values), tolerances=("5",))
    assert words.startswith("more measurements may not resolve a difference so close to the tolerance")


def test_published_runs_do_not_ask_for_one_more_each_time(data: Path) -> None:
    figures = table_file.read_table(data / "fleets/azure-hb96-64.stream.csv")
    verdict = of_table.judge(figures, "t", of_table.rules_of(figures, tolerances=("5",))).verdict
    (open_,) = (of for of in verdict.nodes["n000"].agreements if of.share > 1)
    assert (open_.remedy, open_.needed) == ("tolerance", 0)


def test_where_jobs_vary_another_job_is_asked_for_and_resolves_it() -> None:
    values = fleet(32, 5, run_sd=0.002, node_sd=0.003)
    values[0] *= 2600 * 1.013 / values[0].mean()
    (words,) = remedies(rows_of(values), tolerances=("2",))
    assert words.endswith("as jobs vary: measure it again as another job, 2 jobs in all")
    both = zip("ab", (values, values * (1 + 1e-4)), strict=True)
    rows = [replace(row, job=job) for job, of_job in both for row in rows_of(of_job)]
    assert remedies(rows, tolerances=("2",)) == []


def test_lower_is_better_of_times() -> None:
    values = fleet()
    values[3] *= 1.3
    verdict = judged(rows_of(values, "latency", "us"))
    assert verdict.nodes["n003"].findings[0].worse
    assert not judged(rows_of(values)).nodes["n003"].findings[0].worse
    assert judged(rows_of(values), better=("triad=lower",)).nodes["n003"].findings[0].worse


@pytest.mark.parametrize(
    ("metric", "unit", "options", "said"),
    [
        ("score", "furlong", (), "the unit furlong of score is unknown, so higher counts as better; --better "),
        ("latency", "nss", (), "the unit nss of latency is unknown, so lower counts as better; --better "),
        ("latency", "nss", ("higher",), ""),
        ("score", "", (), ""),
        ("score", "GB/s", (), ""),
    ],
)
def test_an_unknown_unit_is_announced_with_the_assumed_direction(
    metric: str, unit: str, options: tuple[str, ...], said: str
) -> None:
    verdict = judged(rows_of(fleet(4), metric, unit), better=options)
    notes = [note for note in text.fleet_notes(verdict) if "unknown" in note]
    assert len(notes) == bool(said) and said in "".join(notes)


def test_one_run_is_never_the_same() -> None:
    values = fleet(runs=1)
    assert names(judged(rows_of(values)), Outcome.SAME) == []
    values[7] /= 2
    assert names(judged(rows_of(values)), Outcome.SUSPECT) == ["n007"]


def test_of_one_run_it_is_said_how_far_nodes_are_and_who_is_apart() -> None:
    values = fleet(runs=1)
    (said,) = judged(rows_of(values)).fleet.single_runs
    assert (said.nodes, said.apart, said.groups) == (32, (), ())
    assert said.low < 0 < said.high < 0.05
    values[7] *= 0.9
    (said,) = judged(rows_of(values)).fleet.single_runs
    assert [of.nodes for of in said.apart] == [("n007",)]
    assert said.farthest.nodes == ("n007",)
    values[22:] *= 1.15
    verdict = judged(rows_of(values))
    assert len(verdict.fleet.single_runs[0].groups) == 2
    assert verdict.fleet.single_runs[0].groups[1].nodes == tuple(f"n{node:03}" for node in range(22, 32))
    assert any("There are two groups" in words for words in text.fleet_notes(verdict))
    assert judged(rows_of(fleet(runs=2))).fleet.single_runs == ()


def test_a_run_that_moves_no_mean_beyond_the_tolerance_makes_no_node_invalid() -> None:
    values = fleet()
    values[7, 2] *= 1.1
    assert judged(rows_of(values)).nodes["n007"].outcome in (Outcome.SAME, Outcome.INCONCLUSIVE)
    values[7, 2] *= 1.3
    assert judged(rows_of(values)).nodes["n007"].outcome is Outcome.INVALID


def test_tolerances_are_those_of_the_call() -> None:
    values = fleet(run_sd=0.002, node_sd=0.001)
    values[7] *= 0.96
    assert names(judged(rows_of(values)), Outcome.SUSPECT) == []
    assert names(judged(rows_of(values), tolerances=("2",)), Outcome.SUSPECT) == ["n007"]
    assert names(judged(rows_of(values), tolerances=("triad=2",)), Outcome.SUSPECT) == ["n007"]


def test_nodes_of_two_groups_are_not_compared(tmp_path: Path) -> None:
    values = fleet(nodes=16)
    values[8:] *= 2
    frame = pd.DataFrame([msgspec.structs.asdict(row) for row in rows_of(values)])
    frame = frame[["node", "run", "metric", "unit", "value"]]
    frame["group"] = np.where(frame["node"] < "n008", "A", "B")
    frame.to_csv(tmp_path / "table.csv", index=False)
    verdict = of_table.judge(table_file.read_table(tmp_path / "table.csv"), "t", Acceptance()).verdict
    assert len(names(verdict, Outcome.SAME)) == 16


def test_a_folder_of_a_table_names_its_file_and_no_command_that_measures(tmp_path: Path) -> None:
    values = fleet(nodes=8)
    values[7] *= 0.8
    table, folder = tmp_path / "figures.csv", tmp_path / "judged"
    frame = pd.DataFrame([msgspec.structs.asdict(row) for row in rows_of(values)])
    frame[["node", "run", "metric", "unit", "value"]].to_csv(table, index=False)
    of_table.as_campaign(table_file.read_table(table), folder, Acceptance())
    verdict = campaign.judge(folder).verdict
    assert (folder / of_table.TABLES).read_text().split() == [
        hashlib.sha256(table.read_bytes()).hexdigest(),
        "../figures.csv",
    ]
    assert verdict.versions["table"] == f"figures.csv, SHA-256 {hashlib.sha256(table.read_bytes()).hexdigest()}"
    assert verdict.nodes["n007"].counted and "check.sh" not in verdict_files.as_json(verdict)
    of_table_fleet = packed.read(folder)
    made = datasets.dataset(of_table_fleet, of_table_fleet.quantities[0])
    assert "n000" in made["node"].values and "numa_node" not in made.coords
    with pytest.raises(NodeprintError, match=r"is a table of figures, .*`nodeprint judge .*judged` says"):
        node_status.read(folder)


# --- published fleets (docs/validation.md) ---

EIGHT = ["n007", "n023", "n054", "n068", "n086", "n090", "n100", "n121"]


def published(data: Path, name: str, kind: str, runs: int = 5) -> Verdict:
    """The verdict of a fleet by one of its metrics and its first runs."""
    table = table_file.read_table(data / "fleets" / f"{name}.csv")
    frame = table.frame
    kept = frame[frame["metric"].str.contains(kind) & (frame["run"].astype(int) <= runs)]
    return of_table.judge(ValueTable(table.source, kept.reset_index(drop=True)), name, Acceptance()).verdict


@pytest.mark.parametrize(("kind", "same", "undecided"), [("triad", 120, []), ("copy", 119, ["n000"])])
def test_eight_of_128_are_suspected(data: Path, kind: str, same: int, undecided: list[str]) -> None:
    verdict = published(data, "azure-hb96-128.stream", kind)
    assert names(verdict, Outcome.SUSPECT) == EIGHT
    assert len(names(verdict, Outcome.SAME)) == same
    assert names(verdict, Outcome.INCONCLUSIVE) == undecided


@pytest.mark.parametrize(
    "name", ["azure-hb96-64", "azure-hb96-64-placed", "cyclecloud-32", "cyclecloud-64", "cyclecloud-128"]
)
def test_uniform_fleets_are_uniform(data: Path, name: str) -> None:
    assert published(data, f"{name}.stream", "triad").fleet.outcome is FleetOutcome.UNIFORM


def test_fleets_whose_runs_differ_are_undecided(data: Path) -> None:
    for name in ("gce-c2d-64", "gke-c2d-64"):
        verdict = published(data, f"{name}.stream", "triad")
        assert names(verdict, Outcome.SUSPECT) == []
        assert verdict.fleet.outcome is FleetOutcome.INCONCLUSIVE
        assert len(names(verdict, Outcome.SAME)) < len(verdict.nodes) / 2
    assert names(published(data, "gke-c2d-64.stream", "copy"), Outcome.SUSPECT) == ["n007", "n016", "n021", "n026"]


def test_two_groups_of_a_published_fleet_of_one_run_are_named(data: Path) -> None:
    (said,) = published(data, "parallelcluster-64.sysbench", "sysbench").fleet.single_runs
    assert [len(of.nodes) for of in said.groups] == [35, 29]
    (said,) = published(data, "aws-hpc6a-128.sysbench", "sysbench").fleet.single_runs
    assert (said.groups, said.apart) == ((), ())
    (said,) = published(data, "azure-hb96-128.stream", "copy", runs=1).fleet.single_runs
    assert [list(of.nodes) for of in said.apart] == [EIGHT]


@pytest.mark.parametrize("name", ["azure-hb96-128.stream", "aws-hpc6a-64.stream", "aws-hpc6a-128.sysbench"])
def test_no_node_of_one_run_is_the_same(data: Path, name: str) -> None:
    kind = "triad" if "stream" in name else "sysbench"
    assert names(published(data, name, kind, runs=1), Outcome.SAME) == []


def test_two_nodes_far_apart_are_told_by_their_ratio() -> None:
    verdict = judged(rows_of(np.array([[100.0, 101.0], [1000.0, 1010.0]])))
    (low,), (high,) = verdict.nodes["n000"].findings, verdict.nodes["n001"].findings
    assert (low.effect, high.effect) == pytest.approx((-0.9, 9.0), rel=0.01)
    assert (low.value, low.peers) == pytest.approx((100.5, 1005), rel=0.01)


@pytest.mark.parametrize("metric", ["mem-bw/h2d_bw", "../../triad", "t" * 300])
def test_the_name_of_a_metric_is_no_path(tmp_path: Path, metric: str) -> None:
    folder = tmp_path / "results/main"
    of_table.as_campaign(value_table.from_values(rows_of(fleet(4), metric), "made up"), folder, Acceptance())
    assert [quantity.measurement for quantity in packed.read(folder).quantities] == [metric]
    (written,) = export.write_datasets(folder)
    assert written.parent == folder / export.FOLDER and written.suffix == ".nc"
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_the_folder_of_another_table_is_not_written_over(tmp_path: Path) -> None:
    def keep(name: str, *, slow: float = 1.0) -> None:
        rows = [
            f"n{node},{3000 * (slow if node == 2 else 1) + node + 10 * run}" for node in range(4) for run in range(3)
        ]
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(["node,triad", *rows]))
        of_table.as_campaign(table_file.read_table(tmp_path / name), tmp_path / "campaign", Acceptance())

    def values() -> list[float]:
        (quantity,) = packed.read(tmp_path / "campaign").quantities
        return [float(value) for value in quantity.values.ravel()]

    keep("stream.csv")
    former = values()
    for name in ("hpl.csv", "other/stream.csv"):
        with pytest.raises(NodeprintError) as refused:
            keep(name, slow=0.5)
        what = "campaign: holds what was judged of another table (stream.csv); name a new one with --to, or remove"
        assert what in str(refused.value)
        assert values() == former
    keep("copy.csv")  # nothing is lost
    keep("copy.csv", slow=0.5)  # as the same file may have grown
    assert values() != former
