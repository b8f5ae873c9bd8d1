"""The exceptions for users: one sentence with the place, the problem and the advice."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

#: What would break a sentence in two, color a terminal or turn its letters round.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


#: A longer word, such as a path, is cut.
_LONGEST_WORD = 40


class NodeprintError(Exception):
    """Bad input or a missing component. The command line prints one sentence and exits with status 2.

    `where` is a file, `line` a line number in it (from 1), `column` a column, `key` a key's path; each optional.
    `advice` tells the user how to proceed; `problem` is the sentence without it.
    """

    def __init__(
        self,
        what: str,
        *,
        where: Path | str | None = None,
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
        advice: str = "",
    ) -> None:
        place = printable(str(where)) if where is not None else ""
        if line is not None:
            place += f", line {line}"
        if column is not None:
            place += f", column {column}"
        if key is not None:
            place += f": {key}" if place else key
        self.problem = f"{place}: {what}" if place else what
        # names of files and cells stand in all parts of it
        super().__init__(_CONTROL.sub("?", f"{self.problem}; {advice}" if advice else self.problem))


#: The errors that a file can cause in code that does not expect its content. Only a boundary that costs one node or one
#: file catches them: a fleet must be judged although one of its nodes wrote what no reader expects.
UNEXPECTED_CONTENT = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def unexpected(error: Exception) -> str:
    """The reason that a boundary names for one of `UNEXPECTED_CONTENT`."""
    return printable(f"has content that nodeprint does not expect ({type(error).__name__}: {error})", 300)


class CannotWriteError(NodeprintError):
    """The input is valid, but the results cannot be written (a full disk, a read-only directory)."""


class NoServiceError(NodeprintError):
    """The request is valid, but the service is not available. The command line exits with status 1."""


def unreadable(path: Path | str, error: OSError) -> NodeprintError:
    """What to raise where `path` cannot be opened or read."""
    known = {
        FileNotFoundError: "check the name",
        IsADirectoryError: "it is a folder; name a file",
        NotADirectoryError: "a part of the path is a file; check the name",
        PermissionError: "ask its owner for the right to read it",
    }
    advice = known.get(type(error), "check the path and its file system")
    return NodeprintError(f"cannot be read ({error.strerror})", where=path, advice=advice)


def printable(text: str, limit: int = 200) -> str:
    """Return `text` on one line without control characters, for terminals and pages.

    A text beyond `limit` ends with "..." after a whole word, as half a number is another number.
    """
    clean = text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
    if len(clean) <= limit:
        return clean
    kept, blank, rest = clean[: limit - 2].rpartition(" ")
    return (kept if blank and len(rest) < _LONGEST_WORD else clean[: limit - 3]) + "..."


def nearest(name: str, names: Iterable[str]) -> str:
    """A question that suggests the most similar of `names` for a misspelled `name`; empty if none is similar."""
    similar = get_close_matches(name, names, n=1)
    return f"did you mean {printable(similar[0], 60)}?" if similar else ""
