"""A matrix as a figure in a file: its outlines, and whether it says that it is simulated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.report import matrix_files
from nodeprint.report.figures.part_levels import part_levels


def test_only_parts_that_there_are_several_of_are_outlined() -> None:
    values = np.full((8, 8), 100.0)
    components = {"ccx": (0, 0, 0, 1, 1, 2, 2, 2), "quadrant": (0,) * 8, "socket": (-1, 0, 0, 0, 1, 1, 1, 1)}
    data = matrix_files._data(values, range(8), components, "latency, ns")
    (level,) = part_levels(data, "b")
    assert level.name == "CCX" and level.groups == ((0, 3, "0"), (3, 5, "1"), (5, 8, "2"))
    assert np.isnan(np.diag(data.value)).all() and np.isfinite(values).all()


@pytest.mark.parametrize("simulated", [True, False])
def test_a_figure_says_whether_it_is_simulated(tmp_path: Path, simulated: bool) -> None:
    data = matrix_files._data(np.array([[0.0, 100.0], [101.0, 0.0]]), (0, 1), {}, "latency, ns")
    said = {"simulated": True} if simulated else {}
    (path,) = matrix_files.write(data, [tmp_path / "m.svg"], "main", **said)
    assert ("SIMULATED" in path.read_text()) is simulated


def test_a_file_has_the_ending_of_what_it_is(tmp_path: Path) -> None:
    assert matrix_files.check(tmp_path / "m.pdf", None) == [tmp_path / "m.pdf"]
    assert matrix_files.check(None, None) == []
    with pytest.raises(NodeprintError, match=r"name a file that ends in \.svg"):
        matrix_files.check(tmp_path / "m.pdf", tmp_path / "m.pdf")
