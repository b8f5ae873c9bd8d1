"""The table of the benchmarks: what is marked, kept, and compared with the last time; when two programs agree."""

import json
import platform
from pathlib import Path

import numpy as np
import pytest

from bench import cases, table
from bench.agreement import Agreement, Others, agreement, conclusion


def test_medians_spreads_limits_and_the_last_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table, "KEPT", tmp_path / "results")
    table.keep("first", [table.row("ratio", [1, 2, 3, 4, 10], 2.5), table.row("one", 7.0, 8)], 0.1, raw=[1])
    printed = capsys.readouterr().out
    ratio, one = (next(line for line in printed.splitlines() if line.startswith(name)) for name in ("ratio", "one"))
    assert ratio.split() == ["ratio", "3", "66.7%", "2.5", "MISSED"]
    assert one.split() == ["one", "7", "8", "holds"]
    assert "not quiet" not in printed and "nothing to compare with" in printed
    (kept,) = (tmp_path / "results").glob("first-*.json")
    assert json.loads(kept.read_text())["rows"][0]["values"] == [1, 2, 3, 4, 10]

    (tmp_path / "results/first-9999.json").write_text("{")
    table.keep("first", [table.row("ratio", 2.0, 2.5), table.row("fresh", 1.0)], 3.0)
    printed = capsys.readouterr().out
    line = next(line for line in printed.splitlines() if line.startswith("ratio"))
    assert line.split()[1:] == ["2", "2.5", "3", "-33.3%", "holds"]
    assert "not quiet" in printed and "nothing to compare with" not in printed
    assert "first-9999.json: no measurement" in printed and "not measured then: fresh" in printed
    assert table.last_time("other") is None


def test_limits_that_must_be_reached_and_limits_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table, "KEPT", tmp_path)
    shares = {"low": (80.0, None), "reached": (97.0, None), "wide": (96.0, 95.0), "between": (90.0, 95.0)}
    rows = [table.Row(name, (value,), 85.0, "%", True, most, (1.0, 12.34)) for name, (value, most) in shares.items()]
    table.keep("first", rows, 0.1)
    printed = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines() if line}
    assert printed["low"] == ["80", "1-12.3", "85", "%", "MISSED"]
    assert printed["reached"] == ["97", "1-12.3", "85", "%", "holds"]
    assert printed["wide"] == ["96", "1-12.3", "85-95", "%", "MISSED"]
    assert printed["between"] == ["90", "1-12.3", "85-95", "%", "holds"]


def test_cases_are_counted_once_and_add_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second call counts no case again, and adds up what the first one kept."""
    monkeypatch.setattr(table, "KEPT", tmp_path / "results")
    counted = []

    def count(case: cases.Case) -> list[cases.Tally]:
        counted.append(case["seed"])
        return [cases.Tally("hits", case["hit"], 4, "a miss" if case["hit"] else "")]

    sections = {"some": cases.Section(lambda _: iter([{"hit": 1}, {"hit": 0}]), count)}
    promises = {"hits": cases.Promise(5.0)}
    arguments = ["--rounds", "2", "--resume", str(tmp_path / "kept")]
    for rounds in range(2):
        assert cases.run("some", sections, promises, cases.parser("", sections).parse_args(arguments)) == 1
        assert sorted(counted) == [0, 1, 1000, 1001], rounds
        printed = capsys.readouterr().out
        assert "hits: a miss --case" in printed
        assert next(line for line in printed.splitlines() if line.startswith("hits ")).split()[1:4] == [
            "12.5",
            "1.55-38.3",
            "5",
        ]


def test_another_host_is_not_compared_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "KEPT", tmp_path)
    table.keep("first", [table.row("ratio", 1.0)], 0.0)
    monkeypatch.setattr(platform, "node", lambda: "elsewhere")
    assert table.last_time("first") is None


@pytest.mark.parametrize(
    ("ratio", "spread", "said"),
    [(1.01, 0.01, "): within 3%"), (1.1, 0.01, "): NOT within 3%"), (1.0, 0.4, "): UNDECIDED"), (0.97, 0.02, "UNDECI")],
)
def test_two_programs_agree_only_where_the_whole_interval_does(ratio: float, spread: float, said: str) -> None:
    rng = np.random.default_rng(3)
    common = rng.lognormal(sigma=0.5, size=40)  # what other load takes from both in a round
    ours = ratio * common * rng.lognormal(sigma=spread, size=40)
    means = agreement(ours.tolist(), common.tolist())
    assert means.low < means.high and means.rounds == 40
    assert said in means.words(0.03)
    assert means.farthest <= 0.03 or "UNDECIDED: other programs took 20%" in means.words(0.03, others=0.2)


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [
        ((0.91, 0.93), (0.99, 1.01), "within 3%"),
        ((1.04, 1.06), (1.1, 1.2), "NOT"),
        ((0.8, 0.9), (0.93, 0.96), "NOT"),
        ((0.9, 0.95), (0.96, 1.0), "UNDECIDED"),
        ((1.0, 1.04), (1.1, 1.2), "UNDECIDED"),
    ],
)
def test_a_value_may_lie_between_two_of_ours(least: tuple[float, float], most: tuple[float, float], said: str) -> None:
    lower, upper = (Agreement((low + high) / 2, low, high, 9) for low, high in (least, most))
    assert conclusion(lower, upper, limit=0.03).startswith(said)


def test_own_work_is_not_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 <= Others().share() <= 1  # of this machine's /proc/stat
    now = iter([(10.0, 20.0, 4.0), (13.0, 26.0, 5.0)])  # busy, of all CPUs, own
    monkeypatch.setattr(Others, "_now", staticmethod(lambda: next(now)))
    assert Others().share() == pytest.approx((3 - 1) / 6)
