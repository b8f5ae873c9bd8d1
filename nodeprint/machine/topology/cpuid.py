"""CPUID dumps, a file for each CPU, in the format of hwloc-gather-cpuid: `mask in[4] => out[4]`, hexadecimal.

Leaves are 0xB and 0x1F (topology), 4 and 0x8000001D (caches), 0x8000001E (Zen 1's node), and 0x80000026 (core, CCX, CCD
and socket from Zen 4 on). Sources: AMD64 Architecture Programmer's Manual, volume 3, appendix E; Intel's Software
Developer's Manual, volume 2A, CPUID.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path

from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.topology.facts import CPU_LIMIT, Facts, is_finer
from nodeprint.machine.topology.model import Machine
from nodeprint.machine.tree import Tree, open_tree

#: Registers (EAX, EBX, ECX, EDX) by leaf and sub-leaf.
Leaves = Mapping[tuple[int, int], tuple[int, int, int, int]]

_LINE = re.compile(r"([0-9a-fA-F]{1,8})((?: [0-9a-fA-F]{1,8}){4}) =>((?: [0-9a-fA-F]{1,8}){4})\s*")
_USES_ECX = 4  # bit of the mask: the sub-leaf counts

_AMD_LEVELS = {1: "core", 2: "ccx", 3: "ccd", 4: "socket"}  # leaf 0x80000026, ECX[15:8]
_NONE = (0, 0, 0, 0)
_SMT, _DIE = 1, 5  # leaf 0x1F, ECX[15:8]
_KINDS = {0x20: "efficiency", 0x40: "performance"}  # leaf 0x1A, EAX[31:24]


def read(path: Path) -> Facts:
    """Read a directory or archive of dumps `pu0`, `pu1`, .... Raises NodeprintError naming file and line."""
    tree = open_tree(path, marks=("",))
    below = ""
    for _ in range(3):  # an archive has its directory on top
        names = tree.names(below)
        if len(names) == 1 and not _numbers(tree, below):
            below += f"{names[0]}/"
    dumps = _dumps(tree, below)
    if not dumps:
        raise NodeprintError(
            "holds no CPUID dump (pu0, pu1, ...)", where=path, advice="give a directory of `hwloc-gather-cpuid`"
        )
    facts = Facts(str(path), _machine(next(iter(dumps.values()))), tuple(dumps))
    facts.apicids = _apicids(dumps)
    if facts.apicids:
        facts.provenance["apicid"] = "cpuid"
        _label(dumps, facts)
    else:
        facts.warn("apicids-repeat", "dumps")
    return facts


def enrich(tree: Tree, below: str, facts: Facts) -> None:
    """Add the facts that Linux lacks from the dumps `below` a path: APIC ids, and the dies and shifts of AMD.

    No dumps, no change.
    """
    dumps = {cpu: leaves for cpu, leaves in _dumps(tree, below).items() if cpu in facts.cpus}
    dumped = Facts(f"{tree.source}/{below}", facts.machine, facts.cpus)
    dumped.apicids = _apicids(dumps)
    if not dumped.apicids or any(facts.apicids.get(cpu, apicid) != apicid for cpu, apicid in dumped.apicids.items()):
        return
    _label(dumps, dumped)
    facts.shifts = dumped.shifts
    if len(dumps) < len(facts.cpus):
        return
    if not facts.apicids:
        facts.apicids, facts.provenance["apicid"] = dumped.apicids, "cpuid"
    sockets = facts.parts.get("socket", {})
    if is_finer(dumped.parts.get("die", {}), sockets) and not is_finer(facts.parts.get("die", {}), sockets):
        facts.parts["die"], facts.provenance["die"] = dumped.parts["die"], "cpuid"


def _numbers(tree: Tree, below: str) -> list[int]:
    matches = (re.fullmatch(r"pu(\d{1,6})", name) for name in tree.names(below))
    return sorted(int(match[1]) for match in matches if match and int(match[1]) < CPU_LIMIT)


def _dumps(tree: Tree, below: str) -> dict[int, Leaves]:
    paths = {cpu: f"{below}pu{cpu}" for cpu in _numbers(tree, below)}
    return {cpu: _parse(tree.read_text(path) or "", f"{tree.source}/{path}") for cpu, path in paths.items()}


def _parse(text: str, where: str) -> Leaves:
    leaves: dict[tuple[int, int], tuple[int, int, int, int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise NodeprintError(f"{printable(line, 60)!r} is not a line of a CPUID dump", where=where, line=number)
        leaf, _, sub, _ = (int(word, 16) for word in match[2].split())
        eax, ebx, ecx, edx = (int(word, 16) for word in match[3].split())
        leaves.setdefault((leaf, sub if int(match[1], 16) & _USES_ECX else 0), (eax, ebx, ecx, edx))
    if (0, 0) not in leaves or (1, 0) not in leaves:
        raise NodeprintError("has no leaf 0 and 1", where=where, advice="gather the dump again")
    return leaves


def _machine(leaves: Leaves) -> Machine:
    def text(*words: int) -> str:
        raw = b"".join(word.to_bytes(4, "little") for word in words)
        return printable(" ".join(raw.split(b"\0")[0].decode("latin-1").split()))

    _, ebx, ecx, edx = leaves[0, 0]
    version, _, features, _ = leaves[1, 0]
    family, model = version >> 8 & 15, version >> 4 & 15
    if family in (6, 15):
        model |= version >> 12 & 0xF0
    if family == 15:
        family += version >> 20 & 0xFF
    brand = [word for leaf in (0x80000002, 0x80000003, 0x80000004) for word in leaves.get((leaf, 0), ())]
    return Machine(
        vendor=text(ebx, edx, ecx),
        family=family,
        model=model,
        stepping=version & 15,
        name=text(*brand) or None,
        architecture="x86_64",
        virtual=bool(features >> 31),
    )


def _apicids(dumps: Mapping[int, Leaves]) -> dict[int, int]:
    """Each CPU's APIC id; none where they repeat."""
    out = {}
    for cpu, leaves in dumps.items():
        extended = next(
            (leaves[leaf, 0][3] for leaf in (0x80000026, 0x1F, 0xB) if leaves.get((leaf, 0), _NONE)[1]), None
        )
        if extended is None and (0x8000001E, 0) in leaves:
            extended = leaves[0x8000001E, 0][0]
        out[cpu] = leaves[1, 0][1] >> 24 if extended is None else extended
    return out if len(set(out.values())) == len(out) else {}


def _label(dumps: Mapping[int, Leaves], facts: Facts) -> None:
    """Sockets, dies, CCXs, clusters and cores from APIC ids and the shifts that each CPU reports."""
    parts: dict[str, dict[int, int]] = {level: {} for level in ("socket", "die", "ccx", "cluster", "core")}
    expected: dict[int, int | None] = {}
    kinds: dict[int, str] = {}
    for cpu, leaves in dumps.items():
        apicid = facts.apicids[cpu]
        shifts = _shifts(leaves)
        widths = {level: 1 << shift for level, shift in shifts.items()}
        for level, width in (widths | _cache_widths(leaves, shifts, machine=facts.machine)).items():
            if level in parts:  # by the first APIC id, as widths may differ between kinds of cores
                parts[level][cpu] = apicid - apicid % width
        nodes = leaves.get((0x8000001E, 0), _NONE)[2]
        if nodes >> 8 & 7:
            parts["die"][cpu] = parts["socket"][cpu] << 8 | nodes & 0xFF
        expected[parts["socket"][cpu]] = _threads_of_socket(leaves, facts.machine)
        facts.shifts = {level: shift for level, shift in shifts.items() if (0x80000026, 0) in leaves}
        kind = _KINDS.get(leaves.get((0x1A, 0), _NONE)[0] >> 24)
        if kind is not None:
            kinds[cpu] = kind
    core_count = len(set(parts["core"].values()))
    for level, by_cpu in parts.items():
        joins = len(set(by_cpu.values())) + len(dumps) - len(by_cpu) < core_count or level != "cluster"
        if by_cpu and joins:
            facts.parts[level], facts.provenance[level] = by_cpu, "cpuid"
    if len(set(kinds.values())) > 1:
        facts.kinds = kinds
    if None in expected.values():
        return
    missing = sum(count or 0 for count in expected.values()) - len(dumps)
    facts.complete = missing <= 0
    if missing > 0:
        facts.warn("offline-cpus", "dumps", count=missing)


def _shifts(leaves: Leaves) -> dict[str, int]:
    """APIC id shifts by level. Counts of leaves 0xB and 0x1F are for display only, by Intel's manual."""
    amd: dict[str, int] = {}
    for eax, _, ecx, _ in _subleaves(leaves, 0x80000026):
        level = _AMD_LEVELS.get(ecx >> 8 & 0xFF)
        if level is None:
            break
        amd[level] = eax & 31
    if {"core", "socket"} <= amd.keys():
        return amd
    for leaf in (0x1F, 0xB):
        out, shift = {}, 0
        for eax, ebx, ecx, _ in _subleaves(leaves, leaf):
            kind = ecx >> 8 & 0xFF
            if kind == 0 or not ebx:
                break
            if kind == _DIE:
                out["die"] = shift  # an id begins where the level below ends
            shift = eax & 31
            if kind == _SMT:
                out["core"] = shift
        if "core" in out:
            return {**out, "socket": shift}
    return _old_shifts(leaves)


def _old_shifts(leaves: Leaves) -> dict[str, int]:
    """Shifts of processors without an extended topology leaf."""
    size = leaves.get((0x80000008, 0), _NONE)[2]
    logical = leaves[1, 0][1] >> 16 & 0xFF if leaves[1, 0][3] >> 28 & 1 else 1
    if (4, 0) in leaves and leaves[4, 0][0]:  # Intel
        cores = (leaves[4, 0][0] >> 26) + 1
    elif size:  # AMD: cores, until leaf 0x8000001E says how many are threads of one
        threads = (leaves.get((0x8000001E, 0), _NONE)[1] >> 8 & 0xFF) + 1
        return {"core": _bits(threads), "socket": size >> 12 & 15 or _bits((size & 0xFF) + 1)}
    else:
        cores = 1
    socket = _bits(max(logical, 1))
    return {"core": max(socket - _bits(cores), 0), "socket": socket}


def _threads_of_socket(leaves: Leaves, machine: Machine) -> int | None:
    """The threads that a socket has, by AMD's leaf 0x80000008; None where no leaf is meant for counting them.

    Its count ends at 256; above, that of leaf 0x80000026 stands.
    """
    if machine.vendor not in ("AuthenticAMD", "HygonGenuine"):
        return None
    count = (leaves.get((0x80000008, 0), _NONE)[2] & 0xFF) + 1
    levels = _subleaves(leaves, 0x80000026)
    return max([count, *(ebx & 0xFFFF for _, ebx, ecx, _ in levels if _AMD_LEVELS.get(ecx >> 8 & 0xFF) == "socket")])


def _cache_widths(leaves: Leaves, shifts: Mapping[str, int], machine: Machine) -> dict[str, int]:
    """How many APIC ids share an L3 (the CCX) and an L2 (the cluster).

    Before Zen the ids of AMD's cache groups are consecutive, without gaps. From Zen on, and on Intel, each group begins
    at a multiple of a power of two (Linux, arch/x86/kernel/cpu/cacheinfo.c).
    """
    gapless = machine.vendor == "AuthenticAMD" and (machine.family or 0) < 0x17
    out: dict[str, int] = {}
    for leaf in (0x8000001D, 4):
        for eax, *_ in _subleaves(leaves, leaf):
            kind, level, sharers = eax & 31, eax >> 5 & 7, (eax >> 14 & 0xFFF) + 1
            if kind == 0:
                break
            if level in (2, 3):
                out.setdefault("ccx" if level == 3 else "cluster", sharers if gapless else 1 << _bits(sharers))
        if out:
            break
    if "ccx" in shifts and "ccx" in out:
        out["ccx"] = 1 << shifts["ccx"]
    return out


def _subleaves(leaves: Leaves, leaf: int) -> list[tuple[int, int, int, int]]:
    return [leaves[leaf, sub] for sub in itertools.takewhile(lambda sub: (leaf, sub) in leaves, itertools.count())]


def _bits(count: int) -> int:
    """Bits of an id for `count` things."""
    return (count - 1).bit_length()
