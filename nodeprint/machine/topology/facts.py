"""Facts that a reader finds on a machine, before any conclusion; and the helpers that readers share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.topology.model import Machine, NumaNode, Provenance, Warning, warning

#: Linux allows 8192 on x86; anything far beyond is a garbled file, and would only fill the memory.
CPU_LIMIT = 1 << 16

_WORD = re.compile(r"[0-9a-fA-F]{1,8}")
_BITS = {f"{n:x}": [bit for bit in range(4) if n >> bit & 1] for n in range(16)}
_BITS |= {digit.upper(): bits for digit, bits in _BITS.items()}


@dataclass
class Facts:
    """The facts read. `parts[level][cpu]` is any number, machine-wide, that CPUs with the same component share.

    Levels are `socket`, `die`, `ccx`, `cluster` and `core`. AMD's also include `ccd`, `quadrant` and `half`, derived
    from these. `complete` is False if CPUs of the machine are missing (offline, hidden), True if none is, None if
    unknown. `shifts` are the APIC id shifts of CPUID leaf 0x80000026 by level (`core`, `ccx`, `ccd`). `l3_ids`,
    `die_ids` and `core_ids` are the source's own numbers, which follow the APIC id inside a socket.
    """

    source: str
    machine: Machine
    cpus: tuple[int, ...]
    parts: dict[str, dict[int, int]] = field(default_factory=dict)
    provenance: dict[str, Provenance] = field(default_factory=dict)
    apicids: dict[int, int] = field(default_factory=dict)
    l3_ids: dict[int, int] = field(default_factory=dict)
    die_ids: dict[int, int] = field(default_factory=dict)
    core_ids: dict[int, int] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    shifts: dict[str, int] = field(default_factory=dict)
    numa_nodes: tuple[NumaNode, ...] = ()
    complete: bool | None = None
    smt_off: bool = False
    core_positions: bool | None = None
    ccd_positions: bool | None = None
    warnings: list[Warning] = field(default_factory=list)

    def warn(self, name: str, case: str = "", /, *, of: str = "", **values: object) -> None:
        """Note what a reader of the labels should know, in the words of `warning`."""
        self.warnings.append(warning(name, case, of=of, **values))


def cpu_list(text: str, where: Path | str) -> tuple[int, ...]:
    """The sorted numbers of a kernel list such as `0-3,8`. Raises NodeprintError naming `where`."""
    try:
        return _listed(text)
    except ValueError as error:
        raise NodeprintError(f"{printable(error.args[0], 40)!r} is not a list of CPUs", where=where) from None


@lru_cache(maxsize=1024)  # the CPUs of a part all have the same
def _listed(text: str) -> tuple[int, ...]:
    """Raises ValueError of an item that is neither a number nor a range."""
    cpus: set[int] = set()
    for item in text.replace("\0", "").strip().split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", item)
        if match is not None and int(match[2] or match[1]) < CPU_LIMIT:
            cpus.update(range(int(match[1]), int(match[2] or match[1]) + 1))
        elif item.strip():
            raise ValueError(item)
    return tuple(sorted(cpus))


def cpu_mask(text: str, where: Path | str) -> tuple[int, ...]:
    """The sorted numbers of a mask in 32-bit words, `00000003,f0000000` or hwloc's `0x3,,0xf0000000`."""
    words = [word.strip().removeprefix("0x") for word in text.replace("\0", "").strip().split(",")]
    for word in words:
        if (word and not _WORD.fullmatch(word)) or len(words) * 32 > CPU_LIMIT:
            raise NodeprintError(f"{printable(word, 40)!r} is not a CPU mask", where=where)
    digits = "".join(word.rjust(8, "0") for word in words)[::-1]
    return tuple(4 * i + bit for i, digit in enumerate(digits) if digit != "0" for bit in _BITS[digit])


def list_text(cpus: Iterable[int]) -> str:
    """CPUs as a kernel list: `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def groups_of(parts: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """CPUs by part."""
    out: dict[int, list[int]] = {}
    for cpu, part in parts.items():
        out.setdefault(part, []).append(cpu)
    return {part: tuple(sorted(cpus)) for part, cpus in out.items()}


def is_finer(fine: Mapping[int, int], coarse: Mapping[int, int]) -> bool:
    """Whether each part of `fine` lies in one of `coarse`, and there are more of them."""
    nested = all(len({coarse.get(c) for c in cpus}) == 1 for cpus in groups_of(fine).values())
    shared = [c for c in fine if c in coarse]
    return nested and len({fine[c] for c in shared}) > len({coarse[c] for c in shared})
