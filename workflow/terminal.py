"""What a call of the main job shows while it works: one line of progress, and what of Snakemake's output is worth a
line on the terminal."""

from __future__ import annotations

import os
import re
import sys
import textwrap
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise

#: Lines of our own programs are shown, apart from those that the progress line replaces.
_OURS = re.compile(r"^(nodeprint|node-run|slurm|ansible): ")
_ROUTINE = re.compile(
    r"^node-run: (node \S+, job |environment: |run \d+ of \d+: |(complete|partial|failed): .*/status\.json$)"
)
_STEP = re.compile(r"^(?:localrule|rule|onerror:) (?P<name>measure|launch|gather|judge|report)\b")
_FAILED = re.compile(r"^Error in rule (?P<name>\w+):$")
#: How Snakemake begins to say why it ends; the message is the next line.
_ERROR = re.compile(r"^\w+(Error|Exception)( in |:$)")
_UNWRITTEN = re.compile(r"cannot be written|could not be compressed|No space left on device|Disk quota exceeded")
_PLACE = re.compile(r"(?P<path>[^\s:'][^:']*?): (?:measured, but the record file )?(?:cannot be written|could not be)")


# --- words ---


def already(there: int, nodes: int, places: int, unfinished: int) -> str:
    """What was measured before this call, in a sentence; empty where nothing was."""
    total = nodes * places
    of = "this node" if nodes == 1 else f"these {nodes} nodes"
    if there == 0:
        return ""
    if not unfinished:
        return f"all measurements of {of} were there already; `make run NODES=a,b` measures nodes again"
    return f"{there} of {total} measurements of {of} were there already and are kept"


def bar(part: float, width: int = 8) -> str:
    """A bar of `width` characters in brackets, `part` of it filled."""
    filled = round(min(1.0, max(0.0, part)) * width)
    return f"[{'#' * filled}{'.' * (width - filled)}]"


# --- Snakemake's output ---


def is_shown(line: str) -> bool:
    """Whether a line of what Snakemake and its jobs write is shown: our programs' own sentences, no routine."""
    return bool(_OURS.match(line)) and not _ROUTINE.match(line)


def step(line: str) -> str | None:
    """The step that begins with a line of Snakemake's output."""
    found = _STEP.match(line)
    return _name(found["name"]) if found else None


def failed_step(line: str) -> str | None:
    """The rule that failed by a line of Snakemake's output."""
    found = _FAILED.match(line)
    return _name(found["name"]) if found else None


def _name(rule: str) -> str:
    """What a rule does: that of one node and that of many measure."""
    return "measure" if rule == "launch" else rule


def unwritten(line: str) -> str | None:
    """One sentence where a line says that a file could not be written (a full disk, a quota, a right)."""
    if not _UNWRITTEN.search(line):
        return None
    place = _PLACE.search(line.partition("exit code ")[2].partition(": ")[2] or _OURS.sub("", line))
    reasons = ("No space left on device", "Disk quota exceeded", "Read-only file system", "Permission denied")
    why = next((f" ({reason})" for reason in reasons if reason in line), "")
    what = place["path"] if place else "a file"
    return f"{what}: cannot be written{why}; make room there, then call it again: what was measured is kept"


def reason(lines: Iterable[str]) -> str:
    """Why Snakemake failed, from its output: the rules that failed, or else the message of its own error."""
    kept = [line.strip() for line in lines if line.strip()]
    failed = sorted({name for line in kept if (name := failed_step(line))})
    if failed:
        return f"{' and '.join(failed)} failed"
    for before, line in pairwise(kept):
        if _ERROR.match(before):
            return line.rstrip(".")
    return kept[-1] if kept else "Snakemake was killed"


# --- the screen ---


class Screen:
    """Standard error: sentences, and below them one line that is redrawn in place where it is a terminal.

    Where it is none, the line is written now and then: more rarely the longer it takes, so that a night is no
    thousand lines. A reader who leaves is no error.
    """

    FIRST_S, MOST_S, SHARE = 10.0, 600.0, 0.05

    def __init__(self, verbose: bool) -> None:
        self._live = not verbose and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._drawn = False
        self._line = ""
        self._began = self._written = 0.0

    def say(self, text: str) -> None:
        """Write a line, and the progress below it again."""
        if self._live:
            text = textwrap.fill(text, _columns(), break_long_words=False, break_on_hyphens=False)
        self._write(("\r\x1b[K" if self._drawn else "") + text + "\n")
        self._drawn = False

    def show(self, what: str, text: str, part: float | None = None) -> None:
        """Show what a step does now; with `part`, its share from 0 to 1, also where there is no terminal."""
        if self._live:
            self._draw(what, text, part)
        elif part is not None:
            self._now_and_then(f"nodeprint: {what}: {text}")

    def _now_and_then(self, line: str) -> None:
        now = time.monotonic()
        self._began, self._written = self._began or now, self._written or now
        every = min(self.MOST_S, max(self.FIRST_S, self.SHARE * (now - self._began)))
        if now - self._written >= every and (line != self._line or now - self._written >= 3 * every):
            self._write(line + "\n")
            self._line, self._written = line, now

    def _draw(self, what: str, text: str, part: float | None) -> None:
        drawn = f"{bar(part)} " if part is not None else ""
        self._write("\r" + f"{what} {drawn}{text}"[: _columns() - 1] + "\x1b[K")
        self._drawn = True

    def clear(self) -> None:
        """Take the progress line away."""
        if self._drawn:
            self._write("\r\x1b[K")
        self._drawn = False

    @staticmethod
    def _write(text: str) -> None:
        write(2, text.encode(errors="replace"))


def _columns() -> int:
    return os.get_terminal_size(2).columns or 80


def write(descriptor: int, text: bytes) -> None:
    """Write all of `text`, or as much as somebody reads."""
    with suppress(OSError):
        while text:
            text = text[os.write(descriptor, text) :]
