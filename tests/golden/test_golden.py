"""What nodeprint says of the golden campaigns is what it said; a difference is explained in the commit that makes it.

`python -m tests.golden write` keeps what is said now; `python -m tests.golden compare HEAD` shows all that differs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.golden import recording
from tests.golden.campaigns import CAMPAIGNS, PUBLISHED
from tests.support.real_parts import ROOT

#: So many processes make the campaigns, as each has two seconds of imports.
_PROCESSES = 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PROCESSES))
def test_campaigns_are_judged_and_shown_as_before(part: int) -> None:
    assert _differences(list(CAMPAIGNS)[part::_PROCESSES]) == ""


@pytest.mark.slow
def test_published_data_are_judged_and_shown_as_before(data: Path) -> None:
    assert data.is_dir() and _differences(list(PUBLISHED)) == ""


def test_every_golden_is_of_a_campaign() -> None:
    assert {path.stem for path in recording.EXPECTED.iterdir()} == CAMPAIGNS.keys() | PUBLISHED.keys()


def _differences(names: Sequence[str]) -> str:
    words = [word for name in names for word in ("--only", name)]
    command = [sys.executable, "-m", "tests.golden", "check", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
