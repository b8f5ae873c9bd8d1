"""The command line called in this process, and a matrix for it."""

from __future__ import annotations

import sys
from pathlib import Path

from nodeprint import cli

MATRIX = "0,50.5,60.5\n50.5,0,70.5\n60.5,70.5,0\n"


def call(*words: str | Path) -> int:
    """Exit code of the command line. Any other exception passes through: that would be a traceback."""
    former, sys.argv = sys.argv, ["nodeprint", *map(str, words)]
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = former
    return 0
