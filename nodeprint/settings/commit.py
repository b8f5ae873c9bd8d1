"""The commit that this nodeprint was made from."""

from __future__ import annotations

import subprocess
from pathlib import Path

#: Written here by `git archive`, and by setup.py into what is installed; in a checkout git knows it.
_COMMIT = "$Format:%h$"


def commit() -> str:
    """The abbreviated commit, with `-dirty` where files of a checkout were changed; empty where it is unknown."""
    return described(Path(__file__).parents[2]) if _COMMIT.startswith("$") else _COMMIT


def described(checkout: Path) -> str:
    """The commit of a directory that is itself a checkout, else an empty text."""
    if not (checkout / ".git").exists():  # the directory may lie in another repository
        return ""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
