"""The commands of a scheduler, each called once: their output, or no answer."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Collection

from nodeprint.campaign.launchers.launcher import NoAnswerError
from nodeprint.errors import NodeprintError

#: A command may wait this long for its server.
ANSWER_S = 60.0
#: So many of the last lines of a command are kept: a site's plugin writes its own before the scheduler's.
_LINES = 6


def environment(dropped: Collection[str] = (), kept: Collection[str] = ()) -> dict[str, str]:
    """The caller's environment without variables that begin with `dropped`, as they would change options or output.

    Those of `kept` stay.
    """
    words = {key: value for key, value in os.environ.items() if key in kept or not key.startswith(tuple(dropped))}
    return words | {"LC_ALL": "C"}


def ask(
    *words: str,
    environment: dict[str, str] | None = None,
    stdin: str | None = None,
    lock: int | None = None,
) -> str:
    """Return the output of a command, which gets the text `stdin` and keeps the descriptor `lock` open while it runs.

    Raises NoAnswerError with its last lines, and NodeprintError if the command does not exist.
    """
    # into files: a command may leave a child that holds a pipe open
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error, tempfile.TemporaryFile() as given:
        given.write((stdin or "").encode())
        given.seek(0)
        try:
            code = subprocess.run(
                words,
                stdin=given,
                stdout=out,
                stderr=error,
                env=environment,
                timeout=ANSWER_S,
                check=False,
                start_new_session=True,  # a Ctrl-C is not for it
                pass_fds=() if lock is None else (lock,),
            ).returncode
        except FileNotFoundError as missing:
            advice = "run it on a login node of the cluster"
            raise NodeprintError(f"{words[0]} is not on PATH", key="launch", advice=advice) from missing
        except subprocess.TimeoutExpired as late:
            raise NoAnswerError(f"{words[0]}: no answer in {ANSWER_S:.0f} s") from late
        out.seek(0)
        error.seek(0)
        if code:
            said = error.read() or out.read()  # qdel says why on its output
            lines = said.decode(errors="replace").strip().splitlines()
            raise NoAnswerError("\n".join(lines[-_LINES:]) or f"{words[0]} ended with {code}")
        return out.read().decode(errors="replace")
