"""The table that core-to-core-latency prints on a terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.tool_output import TERMINAL, TRIANGLE, read_text


def test_the_terminal_table(tmp_path: Path) -> None:
    imported = read_text(tmp_path, TERMINAL)
    assert (imported.tool, imported.core_matrix().operation) == ("core-to-core-latency-terminal", "cas")
    assert np.array_equal(imported.core_matrix().ns[2, :2], [90, 91])
    assert "rounded" in imported.notes[0]


def test_a_csv_after_the_terminal_table_is_taken(tmp_path: Path) -> None:
    imported = read_text(tmp_path, TERMINAL + ",,\n25.5,,\n90.25,91,\n")
    assert np.array_equal(imported.core_matrix().ns, TRIANGLE, equal_nan=True)


COLORED = TERMINAL.replace("25±0", "\x1b[1;37m  25\x1b[0m\x1b[2;37m±0 \x1b[0m")


@pytest.mark.parametrize(
    "text",
    [
        COLORED,
        TERMINAL[TERMINAL.index("           0") :],  # the table alone
        TERMINAL.replace("±", "Â±"),  # through a viewer of another encoding
        TERMINAL.replace("\n      2   90", "\n      2\n   90"),  # a line broken by a terminal
        "".join(f"> {line}\n" for line in TERMINAL.splitlines()),
        f"```text\n{TERMINAL}```\n",
        TERMINAL + TERMINAL[TERMINAL.index("1) CAS") :].replace("1) CAS", "2) Single-writer single-reader"),
    ],
)
def test_a_terminal_s_table_as_it_is_pasted(tmp_path: Path, text: str) -> None:
    imported = read_text(tmp_path, text)
    assert (imported.tool, imported.core_matrix().operation) == ("core-to-core-latency-terminal", "cas")
    assert np.array_equal(imported.core_matrix().ns[2, :2], [90, 91])


def test_a_log_with_its_csv_among_other_lines(tmp_path: Path) -> None:
    imported = read_text(tmp_path, COLORED + ",,\n25.5,,\n90.25,91,\n" + "Elapsed: 1, 2 and 3 s\n")
    assert np.array_equal(imported.core_matrix().ns, TRIANGLE, equal_nan=True)
