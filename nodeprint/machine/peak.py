"""Theoretical peaks of a node: its memory by channels and clock, its cores by the width of their vectors.

A module moves 8 bytes a transfer (JEDEC's data width of DDR4; DDR5's two halves together): a channel of DDR4-3200 has
25.6 GB/s. Programs achieve less.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from nodeprint.machine.topology import processors

_BYTES_A_TRANSFER = 8


class Memory(msgspec.Struct, frozen=True):
    """The memory channels of a node that have modules, of `all_channels` that its processors have (0 unknown). `mts` is
    their speed in millions of transfers per second, `rated_mts` that of the modules (0 unknown). If `by_processor`, the
    modules are unknown, and the values are the most that the processors support."""

    channels: int
    mts: int
    kind: str = ""
    all_channels: int = 0
    rated_mts: int = 0
    by_processor: bool = False

    @property
    def bytes_per_s(self) -> float:
        """Peak bandwidth of the memory as configured."""
        return self.channels * self.mts * 1e6 * _BYTES_A_TRANSFER

    @property
    def most_bytes_per_s(self) -> float:
        """Peak bandwidth with every channel populated, at the rated speed of its modules."""
        channels, mts = max(self.channels, self.all_channels), max(self.mts, self.rated_mts)
        return channels * mts * 1e6 * _BYTES_A_TRANSFER

    @property
    def could_be_more(self) -> bool:
        """Whether a channel is known to have no module, or the modules to be made for more than they run at."""
        return self.most_bytes_per_s > self.bytes_per_s and not self.by_processor

    @property
    def name(self) -> str:
        """`16 x DDR4-2933`."""
        return f"{self.channels} x {self.kind or 'DDR'}-{self.mts}"

    @property
    def most_name(self) -> str:
        """The same of every channel at the speed that its modules are made for."""
        channels, mts = max(self.channels, self.all_channels), max(self.mts, self.rated_mts)
        return f"{channels} x {self.kind or 'DDR'}-{mts}"


def memory(facts: Mapping[str, Any]) -> Memory | None:
    """The memory of a node with this fingerprint; None where neither its modules nor its processor say it."""
    generation, sockets = _generation(facts), _number(facts.get("sockets"))
    all_channels = (generation.channels or 0) * sockets if generation else 0
    modules, kind = _modules(str(facts.get("dimms", "")))
    mts = _slowest(str(facts.get("dimm_speed", "")))
    channels = _number(facts.get("memory_channels"))
    if not channels and modules and all_channels and modules <= all_channels:
        channels = modules  # no more of them than channels: each has its own
    if channels and mts:
        rated = _slowest(str(facts.get("dimm_rated_speed", "")))
        fastest = _slowest(generation.memory.replace("-", " ")) if generation else 0
        return Memory(channels, mts, kind, all_channels, min(rated, fastest or rated))
    if generation is None or not all_channels or not generation.memory or facts.get("virtual"):
        return None
    kind, _, speed = generation.memory.partition("-")
    return Memory(channels or all_channels, int(speed), kind, all_channels, 0, by_processor=True)


def flops_per_cycle(facts: Mapping[str, Any]) -> int:
    """Operations in double precision that a core can end in a cycle; 0 where that is unknown."""
    generation = _generation(facts)
    return generation.flops_per_cycle if generation else 0


def _generation(facts: Mapping[str, Any]) -> processors.Generation | None:
    family, model = (_number(facts.get(key)) for key in ("cpu_family", "cpu_model"))
    return processors.generation_named(str(facts.get("cpu", "")), family, model) if family else None


def _number(value: object) -> int:
    match = re.fullmatch(r"\d{1,6}", str(value).strip()) if value is not None else None
    return int(match[0]) if match else 0


def _modules(text: str) -> tuple[int, str]:
    """How many modules, and of which kind, a fingerprint's `16 x 64 GB DDR4` has; no kind where they are several."""
    groups = re.findall(r"(\d+) x [^,]*?(\w+)(?:,|$)", text)
    kinds = {kind for _, kind in groups}
    return sum(int(count) for count, _ in groups), kinds.pop() if len(kinds) == 1 else ""


def _slowest(text: str) -> int:
    """The lowest of `2933 MT/s, 3200 MT/s`: a controller runs its channels alike; 0 where there is none."""
    return min(map(int, re.findall(r"\b(\d{3,5})\b", text)), default=0)
