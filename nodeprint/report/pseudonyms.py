"""A campaign without the names of its nodes and racks, for publication."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
from msgspec.structs import replace

from nodeprint.report import formatting
from nodeprint.report.shown import Shown

#: Fields of a fingerprint that may name a site, and parts of a verdict that hold other programs' words.
_DROPPED = ("serials", "cmdline", "kernel_parameters", "log_tail")


class Pseudonyms(msgspec.Struct, frozen=True, dict=True):
    """What nodes and racks are called instead; without any, everything stays as it is."""

    names: Mapping[str, str]

    @classmethod
    def of(cls, verdict: Mapping[str, Any]) -> Pseudonyms:
        """N001, N002, ... for the nodes of a verdict in natural order, R01, R02, ... for their racks."""
        nodes = sorted(verdict["nodes"], key=formatting.natural)
        racks = sorted({str(n["rack"]) for n in verdict["nodes"].values() if n.get("rack")}, key=formatting.natural)
        width = max(3, len(str(len(nodes))))
        called = {rack: f"R{number:02}" for number, rack in enumerate(racks, 1)}
        return cls(called | {node: f"N{number:0{width}}" for number, node in enumerate(nodes, 1)})

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.names, key=len, reverse=True)
        return re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, longest_first)) + r")(?![\w-])")

    def text(self, text: str) -> str:
        """`text` with every name replaced."""
        return self._pattern.sub(lambda found: self.names[found[0]], text) if self.names else text

    def verdict(self, value: Any) -> Any:
        """A verdict, or a part of it, with every name replaced in keys and texts."""
        if not self.names:
            return value
        if isinstance(value, Mapping):
            return {self.text(str(k)): self.verdict(item) for k, item in value.items() if k not in _DROPPED}
        if isinstance(value, list | tuple):
            return [self.verdict(item) for item in value]
        return self.text(value) if isinstance(value, str) else value

    def shown(self, node: str, shown: Shown) -> Shown:
        """What is shown of `node` (its pseudonym)."""
        if not self.names:
            return shown
        return replace(shown, host=node, problems=tuple(map(self.text, shown.problems)))

    def table(self) -> str:
        """A line each: pseudonym and name."""
        return "".join(f"{new}\t{old}\n" for old, new in self.names.items())


NONE = Pseudonyms({})
