"""The output of the main job while it runs: a line of progress, and messages of nodeprint's programs."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from nodeprint import addons, files
from nodeprint.errors import printable

#: Lines of our own programs are shown, apart from those that the progress line replaces.
_OURS = re.compile(rf"^(nodeprint|node-run|{'|'.join(map(re.escape, addons.names(addons.LAUNCHERS)))}): ")
_ROUTINE = re.compile(
    r"^node-run: (node \S+, job |environment: |run \d+ of \d+: |(complete|partial|failed): .*/status\.json$)"
)
_LONGEST = 400


def already(complete: int, nodes: int, places: int, unfinished: int, call: str) -> str:
    """Return a sentence about earlier measurements, or an empty text. `call` is the command line of this call."""
    total = nodes * places
    scope = "this node" if nodes == 1 else f"these {nodes} nodes"
    if complete == 0:
        return ""
    if not unfinished:
        return f"all measurements of {scope} were there already; `{call} NODES=a,b` measures nodes again"
    return f"{complete} of {total} measurements of {scope} were there already and are kept"


def is_shown(line: str) -> bool:
    """Whether a line of the log is shown: our programs' own sentences, no routine."""
    return bool(_OURS.match(line)) and not _ROUTINE.match(line)


class Log:
    """A new log that another process writes and this one reads; a full disk costs the log alone.

    A process that writes into a file waits for nobody, whatever becomes of its reader.
    """

    def __init__(self, path: Path) -> None:
        """Begin the log `path`. Raises CannotWriteError."""
        self.path = path
        files.remove(path)
        self.descriptor = files.opened(path)
        self._read = 0
        self._rest = b""

    def new_lines(self) -> list[str]:
        """The lines that were completed since the last call of this."""
        with suppress(OSError), self.path.open("rb") as log:
            log.seek(self._read)
            text = self._rest + (new := log.read())
            self._read += len(new)
            *lines, self._rest = text.split(b"\n")
            return [printable(line.decode(errors="replace").rstrip("\r"), _LONGEST) for line in lines]
        return []


class Screen:
    """Standard error: sentences, and on a terminal one line below them that is redrawn.

    In a file or pipe the line is repeated at growing intervals, so that a night does not fill a thousand lines. A
    closed reader causes no error.
    """

    FIRST_S, MOST_S, SHARE = 10.0, 600.0, 0.05

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self._console = Console(stderr=True, highlight=False)
        live = not verbose and self._console.is_terminal and not self._console.is_dumb_terminal
        columns = (TextColumn("{task.fields[step]}"), BarColumn(bar_width=8), TextColumn("{task.fields[words]}"))
        self._progress = Progress(*columns, console=self._console, transient=True, auto_refresh=False) if live else None
        self._line = ""
        self._began = self._written = 0.0

    def say(self, text: str) -> None:
        """Write a line, above the progress."""
        if self._progress is None:
            write(2, f"{text}\n".encode(errors="replace"))
        else:
            with suppress(OSError):  # the terminal was closed
                self._console.print(Text(text))

    def show(self, step: str, words: str, part: float | None = None) -> None:
        """Show the progress of a step. With `part`, its share from 0 to 1, show it without a terminal too."""
        if self._progress is None:
            if part is not None:
                self._now_and_then(f"nodeprint: {step}: {words}")
            return
        with suppress(OSError):
            if not self._progress.tasks:
                self._progress.add_task("", total=1.0, step=step, words=words)
                self._progress.start()
            task = self._progress.tasks[0].id
            self._progress.update(task, completed=part or 0.0, step=step, words=words, refresh=True)

    def _now_and_then(self, line: str) -> None:
        now = time.monotonic()
        self._began, self._written = self._began or now, self._written or now
        every = min(self.MOST_S, max(self.FIRST_S, self.SHARE * (now - self._began)))
        if now - self._written >= every and (line != self._line or now - self._written >= 3 * every):
            write(2, f"{line}\n".encode(errors="replace"))
            self._line, self._written = line, now

    def clear(self) -> None:
        """Take the progress line away."""
        if self._progress is not None:
            with suppress(OSError):
                self._progress.stop()


def write(descriptor: int, text: bytes) -> None:
    """Write all of `text`, or as much as somebody reads."""
    with suppress(OSError):
        while text:
            text = text[os.write(descriptor, text) :]
