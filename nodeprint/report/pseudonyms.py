"""A campaign without the names of its nodes and racks, for publication."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge.verdict import Verdict
from nodeprint.report.pages.order import natural

#: Fields of a fingerprint that may name a site, and parts of a verdict that hold other programs' words.
_DROPPED = ("serials", "ppin", "cmdline", "kernel_parameters", "log_tail", "detail", "check")


class Pseudonyms(msgspec.Struct, frozen=True, dict=True):
    """The pseudonyms of nodes and racks; without any, all names stay unchanged."""

    names: Mapping[str, str] = {}

    @classmethod
    def of(cls, verdict: Verdict) -> Pseudonyms:
        """N001, N002, ... for the nodes of a verdict in natural order, R01, R02, ... for their racks."""
        nodes = sorted(verdict.nodes, key=natural)
        racks = sorted({node.rack for node in verdict.nodes.values() if node.rack}, key=natural)
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

    def verdict(self, verdict: Verdict) -> Verdict:
        """A verdict with every name replaced in keys and texts."""
        if not self.names:
            return verdict
        return msgspec.convert(self._replaced(msgspec.to_builtins(verdict)), Verdict)

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {
                self.text(key) if isinstance(key, str) else key: self._replaced(item)
                for key, item in value.items()
                if key not in _DROPPED
            }
        if isinstance(value, list | tuple):
            return [self._replaced(item) for item in value]
        return self.text(value) if isinstance(value, str) else value

    def fleet(self, fleet: PackedFleet) -> PackedFleet:
        """Return a packed fleet with its nodes renamed."""
        if not self.names:
            return fleet
        nodes = (dataclasses.replace(n, name=self.text(n.name), host="", fingerprint={}) for n in fleet.nodes)
        return dataclasses.replace(fleet, nodes=tuple(nodes))

    def table(self) -> str:
        """Return a table with one line per pseudonym and name."""
        return "".join(f"{new}\t{old}\n" for old, new in self.names.items())
