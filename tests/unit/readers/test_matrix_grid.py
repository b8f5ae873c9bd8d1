"""Square tables in all forms that people paste: read as they were meant or refused, never read as something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.errors import NodeprintError
from nodeprint.readers import matrix_file, matrix_grid
from tests.support.tool_output import TRIANGLE, read_text

#: What is printed where a pair of a CPU with itself would be.
DIAGONALS = ("", "x", "-", "0", "nan", "N/A")
BEFORE: tuple[list[str], ...] = (
    [],
    ["# made by hand"],
    ["Lmod: loading rust/1.80", "slurmstepd: info: task 0"],
    ["latencies (ns), 300 samples:", ""],
    ["$ ./bench --csv | tee log", "CPU: AMD EPYC 7R13, 96 cores"],
    ["```"],
)


@st.composite
def matrices(draw: st.DrawFn) -> npt.NDArray[np.float64]:
    """Symmetric, in whole ns or with decimals."""
    size = draw(st.integers(3, 9))
    values = draw(st.lists(st.integers(7, 400), min_size=size * size, max_size=size * size))
    matrix = np.array(values, dtype=np.float64).reshape(size, size) + draw(st.sampled_from((0.0, 0.25)))
    matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    np.fill_diagonal(matrix, np.nan)
    return matrix


@st.composite
def tables(draw: st.DrawFn, matrix: npt.NDArray[np.float64]) -> tuple[str, bool]:
    """A text of it, and whether its lines are numbered in both ways from 0."""
    size = len(matrix)
    separator = draw(st.sampled_from((",", ";", "\t", "|", " ")))
    head, index = draw(st.booleans()), draw(st.booleans())
    shape = draw(st.sampled_from(("square", "lower", "filled", "upper")))
    diagonal = draw(st.sampled_from(DIAGONALS))
    form = "{:.2f}" if (matrix[0, 1] % 1) else "{:.0f}"
    rows = []
    for i in range(size):
        cells = [diagonal if i == j else form.format(matrix[i, j]) for j in range(size)]
        if shape == "lower":
            cells = cells[: i + 1] if diagonal else cells[:i]
        elif shape == "filled":
            cells = [*cells[:i], *("" if j == i or separator != " " else "-" for j in range(i, size))]
        elif shape == "upper":
            cells = cells[i:] if diagonal else cells[i + 1 :]
        rows.append([str(i), *cells] if index else cells)
    if head:
        corner = draw(st.sampled_from(("CPU", ""))) if index else None
        rows.insert(0, [*([] if corner is None else [corner]), *map(str, range(size))])
    if separator == " ":
        width = draw(st.integers(8, 10))
        lines = ["".join(f"{cell:>{width}}" for cell in cells) for cells in rows]
    elif separator == "|":
        lines = ["| " + " | ".join(cells) + " |" for cells in rows]
        lines.insert(1, "|" + "---|" * len(rows[0]))
    else:
        lines = [separator.join(cells) for cells in rows]
    before = draw(st.sampled_from(BEFORE))
    lines = [*before, *lines, *(["```"] if before == ["```"] else [])]
    if draw(st.booleans()):
        lines = [line.replace(" ", "\u00a0") if separator == " " else line for line in lines]
    return draw(st.sampled_from(("\n", "\r\n"))).join(lines) + "\n", head and index


@given(st.data())
def test_every_form_is_read_as_it_was_meant_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    matrix = data.draw(matrices())
    text, numbered = data.draw(tables(matrix))
    path = tmp_path_factory.getbasetemp() / "pasted.txt"
    path.write_text(text)
    try:
        cores = matrix_file.read_output(path).core_matrix()
    except NodeprintError as error:
        assert "\n" not in str(error)
        assert not numbered, f"{error}\n{text}"
        return
    assert np.array_equal(cores.ns, matrix, equal_nan=True), text


def test_a_triangle_between_tabs_keeps_its_empty_line_after_a_comment(tmp_path: Path) -> None:
    """The empty line was left out, and two CPUs were read instead of three."""
    (tmp_path / "m.txt").write_text("# made by hand\n\t\t\n7\t\t\n8\t9\t\n")
    cores = matrix_file.read_output(tmp_path / "m.txt").core_matrix()
    nan = np.nan
    assert np.array_equal(cores.ns, [[nan, 7, 8], [7, nan, 9], [8, 9, nan]], equal_nan=True)


def test_an_empty_diagonal_between_blanks_is_no_shift(tmp_path: Path) -> None:
    """The column of CPU numbers was read as latencies of CPU 0, and every other one moved by a place."""
    text = "      0   1   2   3\n0        24  27  98\n1    24      28  97\n2    27  28      99\n3    98  97  99\n"
    cpus, values, _ = matrix_grid.read_grid(tmp_path, text.splitlines())
    assert cpus == (0, 1, 2, 3)
    assert np.array_equal(np.triu(values, 1)[0], [0, 24, 27, 98])


def test_numbers_that_may_be_cpus_or_latencies_are_refused(tmp_path: Path) -> None:
    text = ",24,25,26\n24,,30,31\n25,30,,32\n26,31,32,\n"
    with pytest.raises(NodeprintError, match="may be CPU numbers or latencies; write CPU in the corner"):
        matrix_grid.read_grid(tmp_path, text.splitlines())
    assert matrix_grid.read_grid(tmp_path, ("CPU" + text).splitlines())[0] == (24, 25, 26)


def test_lines_between_rows_are_left_out_and_said(tmp_path: Path) -> None:
    lines = ["CPU,0,1,2", "0,,,", "slurmstepd: info: task 0", "1,24.5,,", "2,90,91,"]
    _, values, notes = matrix_grid.read_grid(tmp_path, lines)
    assert values[2, 1] == 91
    assert notes == ("1 line beside the table left out, the first of them 'slurmstepd: info: task 0'",)


def test_two_tables_are_refused(tmp_path: Path) -> None:
    table = ["CPU,0,1,2", "0,,,", "1,24.5,,", "2,90,91,"]
    with pytest.raises(NodeprintError, match="2 tables, from line 1 and from line 6; give one table a file"):
        matrix_grid.read_grid(tmp_path, [*table, "with the other governor:", *table])


def test_what_ended_a_triangle_is_no_end(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="'Killed' after a triangle, which may be cut there"):
        matrix_grid.read_grid(tmp_path, ["25.5", "90.25,91", "Killed"])


def test_decimal_commas_and_deviations(tmp_path: Path) -> None:
    lines = ["x;25,5±1;90,25±0,5", "25,5±1;x;91±2", "90,25 ± 3;91;x"]
    _, values, notes = matrix_grid.read_grid(tmp_path, lines)
    assert values[0, 2] == 90.25 and "decimal commas" in notes[-1]


def test_cells_with_another_separator_are_named(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match=r"line 2, column 2: ';' beside ',' as separator"):
        matrix_grid.read_grid(tmp_path, ["x,1.5,2", "1.5,3;x,4", "2,4,x"])


def test_numbers_of_cpus_with_gaps_are_a_head_and_no_latencies(tmp_path: Path) -> None:
    """As pandas writes a table of CPUs 4, 5 and 9: read as latencies, they made a fourth CPU."""
    cores = read_text(tmp_path, ",4,5,9\n4,0.0,25.5,90.25\n5,25.5,0.0,91.0\n9,90.25,91.0,0.0\n").core_matrix()
    assert cores.cpus == (4, 5, 9)
    assert np.array_equal(cores.ns, TRIANGLE, equal_nan=True)


@pytest.mark.parametrize("first", [0, 1])
def test_rows_and_columns_sorted_differently_are_no_latencies(tmp_path: Path, first: int) -> None:
    """The numbers of twelve CPUs, sorted as text in one direction alone, were a row and a column of latencies."""
    cpus = range(first, first + 12)
    columns = sorted(cpus, key=str)
    cells = {a: ["0" if a == b else f"{50 + a + b}.5" for b in columns] for a in cpus}
    lines = [",".join(["", *map(str, columns)]), *(",".join([str(a), *row]) for a, row in cells.items())]
    with pytest.raises(NodeprintError, match="line 1, column 1: CPU numbers in another order than the rows"):
        matrix_grid.read_grid(tmp_path / "matrix.csv", lines)


@pytest.mark.parametrize("name", ["C{}", "#{}", "CPU{}", "cpu {}", "Core {}", '"{}"', "'cpu {}'"])
@pytest.mark.parametrize(("separator", "corner"), [(",", ""), (";", "CPU"), (" | ", ""), ("   ", "cpu"), ("  ", None)])
def test_names_of_cpus(tmp_path: Path, name: str, separator: str, corner: str | None) -> None:
    rows = [[name.format(cpu), "0" if cpu == 4 else "25.5", "0" if cpu == 5 else "25.5"] for cpu in (4, 5)]
    heads = [*([] if corner is None else [corner]), *(name.format(cpu) for cpu in (4, 5))]
    text = "\n".join(separator.join(cells) for cells in [heads, *rows])
    cores = read_text(tmp_path, f"{text}\n").core_matrix()
    assert (cores.cpus, cores.ns[0, 1]) == ((4, 5), 25.5)


def test_arguments_above_a_table_are_no_rows(tmp_path: Path) -> None:
    """`Samples: 500` was the first row of a table whose diagonal leaves no trace."""
    text = "Core Benchmark\n Samples: 500\n Iterations: 8000\n\n      0     1     2\n0           25    90\n"
    cores = read_text(tmp_path, text + "1     25          91\n2     90    91\n").core_matrix()
    assert np.array_equal(np.nan_to_num(cores.ns), [[0, 25, 90], [25, 0, 91], [90, 91, 0]])
