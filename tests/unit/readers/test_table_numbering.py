"""No column that counts, numbers lines, tells things apart or dates them is judged as a figure."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.readers import table_file
from nodeprint.readers.value_table import ValueTable

NODES, RUNS = 4, 3
#: Of a node, a run and a line (each from 0).
Cell = Callable[[int, int, int], int | float | str]

COUNTS: Cell = lambda node, run, line: run + 1  # noqa: E731 (three of a kind)
LINES: Cell = lambda node, run, line: line  # noqa: E731
SECONDS: Cell = lambda node, run, line: 1764201600 + 60 * line  # noqa: E731


def wide(folder: Path, name: str, cell: Cell, *, lost: tuple[int, ...] = ()) -> ValueTable:
    """A table with a column of figures and one of this name, without the lines that are lost."""
    rows = [f"n{i // RUNS},{cell(i // RUNS, i % RUNS, i)},{3000 + 7 * i}.5" for i in range(NODES * RUNS)]
    path = folder / "t.csv"
    path.write_text("\n".join([f"node,{name},triad (MB/s)", *(row for i, row in enumerate(rows) if i not in lost)]))
    return table_file.read_table(path)


@pytest.mark.parametrize("name", ["iteration", "Repeat", "rep", "trial", "sample", "attempt", "run_no", "trial_index"])
def test_runs_by_their_names(tmp_path: Path, name: str) -> None:
    frame = wide(tmp_path, name, COUNTS).frame
    assert set(frame["metric"]) == {"triad"} and set(frame["run"]) == {"1", "2", "3"}


@pytest.mark.parametrize("lost", [(), (4,), (0, 8)])
def test_what_counts_on_each_node_is_no_figure(tmp_path: Path, lost: tuple[int, ...]) -> None:
    with pytest.raises(NodeprintError) as refused:
        wide(tmp_path, "loop", COUNTS, lost=lost)
    sentence = (
        "line 1, column 2: the column loop counts to 3 on each node; call it `run`, or take it out; a figure needs"
    )
    assert sentence in str(refused.value)
    assert set(wide(tmp_path, "loop (1/s)", COUNTS, lost=lost).frame["metric"]) == {"loop", "triad"}, "it has a unit"


@pytest.mark.parametrize(
    ("name", "cell", "sentence"),
    [
        ("#", COUNTS, "the column # counts to 3 on each node; call it `run`"),
        ("#", LINES, "the column # numbers the lines from 0 on; take it out"),
        (
            "best",
            lambda node, run, line: NODES * RUNS - line,
            "the column best numbers the lines from 1 on; take it out",
        ),
        ("finished", SECONDS, "the column finished has dates; call it `time`"),
        ("finished", lambda node, run, line: 1764201600_000 + line, "the column finished has dates; call it `time`"),
        ("of", lambda node, run, line: 20261101 + line, "the column of has dates; call it `time`"),
    ],
)
def test_what_numbers_lines_or_dates_them_is_no_figure(tmp_path: Path, name: str, cell: Cell, sentence: str) -> None:
    with pytest.raises(NodeprintError) as refused:
        wide(tmp_path, name, cell)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("name", "cell", "note"),
    [
        ("seed", lambda node, run, line: 31 * line % 1000 + 2, "identifiers and seeds, which say nothing"),
        ("board_serial", lambda node, run, line: 80_000 + 37 * node, "identifiers and seeds, which say nothing"),
        ("rack", lambda node, run, line: 1 + node // 2, "settings of the nodes, not judged as figures: rack"),
        ("cuda", lambda node, run, line: 12.4, "settings of the nodes, not judged as figures: cuda"),
        ("address", lambda node, run, line: f"10.0.0.{node}", "columns without a number were left out: address"),
        ("ended", lambda node, run, line: f"2026-11-{line + 1:02}", "columns without a number were left out: ended"),
    ],
)
def test_names_and_settings_are_no_figures(tmp_path: Path, name: str, cell: Cell, note: str) -> None:
    figures = wide(tmp_path, name, cell)
    assert set(figures.frame["metric"]) == {"triad"}
    assert note in figures.notes[0]
    assert "board_serial" not in figures.fields.get("n0", {}), "it would go with every difference"


def test_parts_are_known_by_their_number_too(tmp_path: Path) -> None:
    assert wide(tmp_path, "gpu_id", COUNTS).parts == ("gpu_id",)


def test_whole_figures_are_figures(tmp_path: Path) -> None:
    """Neither rounded ones, nor those of nodes of which each has one, nor small ones that leave a number out."""
    rounded: Cell = lambda node, run, line: 70 if node == 3 else 100  # noqa: E731
    few: Cell = lambda node, run, line: (1, 3, 4)[run] if node else (2, 3, 4)[run]  # noqa: E731
    large: Cell = lambda node, run, line: 3_000_000_000 + line  # noqa: E731
    for cell in (rounded, few, large):
        assert "score" in set(wide(tmp_path, "score", cell).frame["metric"])


def test_seeds_alone_are_no_figures(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("node,seed\nn1,17\nn2,19\n")
    with pytest.raises(NodeprintError, match="line 1: no column of figures; name metric"):
        table_file.read_table(tmp_path / "t.csv")


def long(folder: Path, name: str, cell: Cell) -> ValueTable:
    rows = [f"n{i // RUNS},{cell(i // RUNS, i % RUNS, i)},triad,{3000 + 7 * i}" for i in range(NODES * RUNS)]
    (folder / "t.csv").write_text("\n".join([f"node,{name},metric,value", *rows]))
    return table_file.read_table(folder / "t.csv")


def test_a_part_of_a_long_table_that_counts_is_said(tmp_path: Path) -> None:
    figures = long(tmp_path, "loop", COUNTS)
    assert figures.parts == ("loop",)
    assert figures.notes == ("the column loop is taken for a part of the node; call it `run` if it counts runs",)
    assert long(tmp_path, "gpu", COUNTS).notes == ()


@pytest.mark.parametrize(
    ("name", "cell", "sentence"),
    [
        ("finished", SECONDS, "line 1, column 2: the column finished has dates; call it `time`, or take it out"),
        ("on", lambda node, run, line: f"2026-11-0{run + 1}", "line 1, column 2: the column on has dates"),
        ("log", lambda node, run, line: f"n{node}-{run}.log", "no two nodes have a value of the column log in common"),
    ],
)
def test_no_part_of_a_long_table_is_of_one_line(tmp_path: Path, name: str, cell: Cell, sentence: str) -> None:
    with pytest.raises(NodeprintError) as refused:
        long(tmp_path, name, cell)
    assert sentence in str(refused.value)
