"""The output of multichase's pingpong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.readers import matrix_file
from tests.support.tool_output import PINGPONG, refused

Write = Callable[..., Path]


def test_pingpong(write: Write) -> None:
    imported = matrix_file.read_output(write(PINGPONG, "log"))
    cores = imported.core_matrix()
    assert (imported.tool, cores.cpus, cores.home) == ("multichase-pingpong", (0, 1, 2, 5), "first")
    assert cores.ns[0, 3] == cores.ns[3, 0] == 89.5
    assert cores.ns[2, 3] == 13.5
    assert "operation" in imported.unknown


def test_pingpong_of_some_cores(write: Write) -> None:
    imported = matrix_file.read_output(write(PINGPONG.replace(" 2:                    13.5\n", ""), "log"))
    assert imported.notes == ("1 of 6 pairs have no latency",)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (PINGPONG.replace("    90.0", ""), 6, 2),
        (PINGPONG.replace("88.0", "oops"), 5, 3),
        (PINGPONG.replace(" 1: ", " 2: "), 6, 1),
        (PINGPONG + "Killed\n", 9, 1),
    ],
)
def test_faults_of_pingpong(write: Write, text: str, line: int, column: int) -> None:
    refused(write(text), line, column)
