"""Damaged campaigns: each command does its work or refuses in one sentence (`make fuzz` tries ten thousand).

They run in a process of their own: the commands are forked from it, and a worker of pytest has threads, whose locks a
forked process would inherit.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT

_BROKEN = """
import sys
from pathlib import Path
from nodeprint.judge import campaign as judging
from tests.support import mutated_campaigns

base = mutated_campaigns.base(Path(sys.argv[1]))
mutated_campaigns._COMMANDS = (("judge", "BASE"),)
mutated_campaigns._ONE_OF_PAGES = 10**9
judging.judge = lambda *_, **__: 1 / 0
print(mutated_campaigns.tried(base, 1))
"""


def output_of(*words: object) -> str:
    """What a process of Python prints."""
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=ROOT, capture_output=True, text=True, timeout=500, check=False
    )
    return done.stdout + ("" if done.returncode == 0 else done.stderr)


@pytest.mark.slow
def test_a_damaged_campaign_ends_no_command_in_a_traceback() -> None:
    said = output_of("-m", "tests.support.mutated_campaigns", 37, "--seed", 0)
    assert said == "37 damaged files, 0 campaigns ended otherwise than they may\n"


def test_a_command_that_ends_in_a_traceback_is_named(tmp_path: Path) -> None:
    words = output_of("-c", _BROKEN, tmp_path)
    assert words.startswith("seed 1: ") and "judge BASE: Traceback" in words and "ZeroDivisionError" in words
