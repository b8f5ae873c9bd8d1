"""The output of c2clat."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.readers import matrix_file
from tests.support.tool_output import C2CLAT, GNUPLOT, refused

Write = Callable[..., Path]


def test_c2clat(write: Write) -> None:
    imported = matrix_file.read_output(write("$ ./c2clat\n" + C2CLAT, "log"))
    cores = imported.core_matrix()
    assert (imported.tool, cores.cpus, cores.operation) == ("c2clat", (0, 2, 4, 6), "store-load")
    assert cores.ns[2, 1] == cores.ns[1, 2] == 50


def test_c2clat_script(write: Write) -> None:
    imported = matrix_file.read_output(write(GNUPLOT, "plot"))
    assert (imported.tool, imported.core_matrix().cpus) == ("c2clat", (0, 1, 2))
    assert "cpu numbers" in imported.unknown
    assert imported.core_matrix().ns[0, 1] == 92


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (C2CLAT.replace("   4   66", "   5   66"), 4, 1),
        (C2CLAT.replace("48    0\n", "48\n"), 5, 4),
        (C2CLAT.replace("   6   62   54   48    0\n", ""), 4, 1),
        (f"{C2CLAT}$ taskset -c 0,2,4,6 ./c2clat\n{C2CLAT}", 7, 1),
        (GNUPLOT.replace("EOD\nplot", "plot"), 10, 1),
        (GNUPLOT.replace("   92    0   50", "   92    0"), 8, 2),
    ],
)
def test_faults_of_c2clat(write: Write, text: str, line: int, column: int) -> None:
    refused(write(text), line, column)
