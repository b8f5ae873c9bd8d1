"""`nodeprint judge TABLE`: every output says the same, its folder is a campaign, and no table ends in a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.errors import NodeprintError


def call(*words: object, code: int = 0, given: str | None = None) -> str:
    result = CliRunner().invoke(app, list(map(str, words)), input=given)
    assert result.exit_code == code, result.output
    return result.output


def table(nodes: int = 12, slow: float = 0.85, day: str = "2026-11-01") -> str:
    rng = np.random.default_rng(3)
    rows = [
        f"n{node:02},{run},h2d,GB/s,{gpu},{50 * noise * (slow if (node, gpu) == (3, 2) else 1):.2f},{day}T10:{node:02}"
        for node in range(nodes)
        for gpu in range(4)
        for run, noise in enumerate(1 + 0.01 * rng.standard_normal(4))
    ]
    return "\n".join(["node,run,metric,unit,gpu,value,time", *rows])


def test_all_outputs_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(table())
    said = call("judge", tmp_path / "t.csv", "--to", tmp_path / "c", "--fail-on", "found", code=3)
    flat = " ".join(said.split())
    assert "WARN (SUSPECTS): 11 of 12 nodes match" in flat
    assert "n03: WARN (SUSPECT). h2d of gpu 2 is 1" in flat and "% lower than on its peers" in flat
    assert " ".join(call("judge", "-", given=table()).split()).partition("n03: ")[2] == flat.partition("n03: ")[2]
    verdict = json.loads((tmp_path / "c/verdict.json").read_text())
    assert verdict["nodes"]["n03"]["outcome"] == "SUSPECT" and verdict["imported"]
    (finding,) = verdict["nodes"]["n03"]["findings"]
    assert finding["component"]["where"] == {"gpu": 2} and finding["worse"]
    assert (tmp_path / "c/verdict.xml").read_text().count("<failure") == 2  # the node and the fleet
    assert 'node_verdict{node="n03",class="WARN",verdict="SUSPECT"} 1' in (tmp_path / "c/verdict.prom").read_text()
    assert all(line.startswith("#") for line in (tmp_path / "c/drain.sh").read_text().splitlines())
    call("judge", tmp_path / "c", "--fail-on", "found", code=3)  # and again from the folder


def test_two_tables_are_compared(tmp_path: Path) -> None:
    for name, slow, day in (("a", 1.0, "2026-11-01"), ("b", 0.85, "2026-11-20")):
        (tmp_path / "t.csv").write_text(table(slow=slow, day=day))
        call("judge", tmp_path / "t.csv", "--to", tmp_path / name)
    said = call("diff", tmp_path / "a", tmp_path / "b")
    assert "n03" in said and "gpu 2" in said and "2026-11-20" in said


def test_a_table_alone_is_compared_with_nothing_and_tables_without_times_are_drawn(tmp_path: Path) -> None:
    """One measurement shows no change, and not that there is none."""
    for name, slow in (("a", 1.0), ("b", 0.85)):
        rows = [line.rpartition(",")[0] for line in table(slow=slow).splitlines()]
        (tmp_path / "t.csv").write_text("\n".join(rows))
        call("judge", tmp_path / "t.csv", "--to", tmp_path / name)
    assert call("history", tmp_path / "a") == "1 campaign; measured once, so nothing is compared: n[00-11]\n"
    twice = CliRunner().invoke(app, ["diff", str(tmp_path / "a"), str(tmp_path / "a")])
    assert "is named twice" in str(twice.exception)
    said = call("history", tmp_path / "a", tmp_path / "b", "--page", tmp_path / "page.html")
    assert "no component changed by more than its tolerance on 11 of 12 nodes" in said
    assert (tmp_path / "page.html").read_text().count("<svg") == 12


def test_tolerances_of_a_file_and_of_the_call(tmp_path: Path) -> None:
    (tmp_path / "acceptance.yaml").write_text("metrics:\n  h2d: {tolerance: 30}\n  h2dd: {tolerance: 1}\n")
    (tmp_path / "t.csv").write_text(table())
    said = call("judge", tmp_path / "t.csv", "--acceptance", tmp_path / "acceptance.yaml")
    assert "UNIFORM" in said and " of 30% (gpu 2, n" in " ".join(said.split())
    assert "h2dd, which is not a metric of the table (did you mean h2d?)" in " ".join(said.split())
    assert "SUSPECT" in call(
        "judge", tmp_path / "t.csv", "--acceptance", tmp_path / "acceptance.yaml", "--tolerance", "5"
    )
    for tolerances in (["h2d=30", "5"], ["5", "h2d=30"]):  # the one that names the metric, whichever comes last
        words = [word for tolerance in tolerances for word in ("--tolerance", tolerance)]
        assert " of 30% (gpu 2, n" in " ".join(call("judge", tmp_path / "t.csv", *words).split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--tolerance", "h2=3"), "--tolerance: the table has no metric h2; did you mean h2d?"),
        (("--tolerance", "x"), "--tolerance: 'x' is no tolerance; give percent, as in 5 or triad=3"),
        (("--better", "h2d=up"), "--better: 'up' is no side"),
        (("--baseline", "b"), "--baseline: compares campaigns; write the table as one with --to FOLDER"),
    ],
)
def test_wrong_options_end_with_a_sentence(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "t.csv").write_text(table())
    result = CliRunner().invoke(app, ["judge", str(tmp_path / "t.csv"), *words])
    assert sentence in str(result.exception) + result.output


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_change_of_a_table_ends_in_a_traceback(tmp_path: Path, data: st.DataObject) -> None:
    """Cells, lines and separators of a good table are lost, doubled or exchanged: it is judged, or refused in a
    sentence."""
    cells = [line.split(",") for line in table(nodes=6).splitlines()]
    for _ in range(data.draw(st.integers(1, 4))):
        line = data.draw(st.integers(0, len(cells) - 1))
        change = data.draw(st.sampled_from(["cell", "lose", "double", "cut", "unit"]))
        if change == "lose":
            del cells[line]
        elif change == "double":
            cells.append(list(cells[line]))
        elif change == "cut":
            cells[line] = cells[line][: data.draw(st.integers(0, 6))]
        elif cells[line]:
            column = data.draw(st.integers(0, len(cells[line]) - 1))
            cells[line][column] = data.draw(
                st.sampled_from(["", "0", "-1", "1e30", "1e-30", "nan", "inf", "x", "N03", "MB/s", "2026", '"', "4,5"])
            )
    path = tmp_path / "t.csv"
    separator = data.draw(st.sampled_from([",", ";", "\t"]))
    path.write_text("\n".join(map(separator.join, cells)))
    result = CliRunner().invoke(app, ["judge", str(path)])
    assert isinstance(result.exception, NodeprintError | SystemExit | None), result.exception
