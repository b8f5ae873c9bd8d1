"""The readers of other tools' outputs: the modules of `nodeprint.readers.tools`, and those that packages add.

A reader is a module with the names of `Reader`. Another package adds one by an entry point of the group
`nodeprint.readers` that names the module. The files of `tools` are those of nodeprint. They need no entry point: the
workflow's rules also run a clone that is not installed.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

from nodeprint import addons
from nodeprint.errors import NodeprintError
from nodeprint.readers import tools
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput

#: The group of entry points.
GROUP = "nodeprint.readers"
#: Contents of an output: a matrix for `nodeprint import`, values for `nodeprint judge`.
Kind = Literal["matrix", "values"]
_ADVICE = "install its package again, or remove it"


class Reader(Protocol):
    """The module of a tool: its name, the kinds of its outputs, how to recognize one, and how to read it."""

    NAME: str
    KINDS: Collection[Kind]

    def evidence(self, lines: list[str]) -> ToolEvidence:
        """The evidence that a text is an output of the tool."""

    def read_output(self, path: Path, lines: list[str]) -> ToolOutput:
        """The content of a file. Raises NodeprintError with line and column (from 1) of the first fault."""


@cache
def readers(kind: Kind) -> Mapping[str, Reader]:
    """The readers of outputs of a kind, by the tool's name. Raises NodeprintError where two have one name, or one lacks
    a name of `Reader`."""
    own = [import_module(f"{tools.__name__}.{module.name}") for module in pkgutil.iter_modules(tools.__path__)]
    out: dict[str, Reader] = {}
    for module in [*own, *addons.load(GROUP).values()]:
        missing = next(
            (name for name in ("NAME", "KINDS", "evidence", "read_output") if not hasattr(module, name)), None
        )
        if missing is not None:
            raise NodeprintError(f"the reader {module.__name__} has no {missing}", advice=_ADVICE)
        reader = cast(Reader, module)
        if reader.NAME in out:
            raise NodeprintError(f"two readers are called {reader.NAME}", advice=_ADVICE)
        out[reader.NAME] = reader
    return {name: out[name] for name in sorted(out) if kind in out[name].KINDS}
