"""A site's own command that gets a verdict: mail, chat, a ticket."""

from __future__ import annotations

import shlex
import subprocess

from nodeprint.errors import NodeprintError, printable

_SECONDS = 60.0


def send(command: str, verdict: str) -> None:
    """Run `command`, words as a shell reads them but without one, with `verdict` (JSON) on its standard input.

    Raises NodeprintError where it cannot be started, fails, or takes longer than a minute.
    """
    advice = "try it by hand with the campaign's verdict.json on its input"
    try:
        done = subprocess.run(shlex.split(command), input=verdict, text=True, check=False, timeout=_SECONDS)
    except (OSError, ValueError, IndexError) as error:
        raise NodeprintError(f"cannot be started ({printable(str(error))})", key="--notify", advice=advice) from error
    except subprocess.TimeoutExpired as error:
        raise NodeprintError(f"did not end within {_SECONDS:.0f} s", key="--notify", advice=advice) from error
    if done.returncode:
        raise NodeprintError(f"ended with {done.returncode}", key="--notify", advice=advice)
