"""The results of HPL."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values

_HEAD = "HPLinpack 2.1  --\nT/V         N    NB     P     Q         Time          Gflops\n"


def test_problems_of_several_orders_are_points(tmp_path: Path) -> None:
    rows = "WR00L2L2  1000  80  1  2  0.50  1.5e+00\nWR00L2L2  2000  80  1  2  2.00  2.5e+00\n"
    assert values(of_text(tmp_path, _HEAD + rows)) == {("hpl", "1000"): 1.5, ("hpl", "2000"): 2.5}


def test_a_failed_residual_is_a_wrong_result(tmp_path: Path) -> None:
    text = f"{_HEAD}WR00L2L2  1000  80  1  2  0.50  1.5\n||Ax-b||_oo/(eps*(||A||_oo))= 3.1e+04 ...... FAILED\n"
    with pytest.raises(NodeprintError, match="line 4: HPL's residual check failed"):
        of_text(tmp_path, text)
