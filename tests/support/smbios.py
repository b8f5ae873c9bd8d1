"""SMBIOS tables as firmware has them (DMTF DSP0134), for slots of memory modules that are asked for."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

_TYPES = {"DDR4": 26, "DDR5": 34}


@dataclass(frozen=True)
class Slot:
    """A slot and the module in it (`gib` 0: none). Speeds are in MT/s, and 0 where the firmware does not know them."""

    locator: str
    bank: str
    gib: int = 64
    kind: str = "DDR5"
    rated: int = 4800
    configured: int = 4800
    serial: str = "S1"


def tables(slots: Iterable[Slot]) -> bytes:
    """What /sys/firmware/dmi/tables/DMI has: a BIOS without strings, the slots, and the end."""
    bios = _structure(0, 0, bytes(20), ())
    structures = [_structure(17, 0x1100 + number, _module(slot), _strings(slot)) for number, slot in enumerate(slots)]
    return b"".join([bios, *structures, _structure(127, 0xFEFF, b"", ())])


def _structure(kind: int, handle: int, body: bytes, strings: tuple[str, ...]) -> bytes:
    text = b"".join(string.encode("latin-1") + b"\0" for string in strings)
    return struct.pack("<BBH", kind, 4 + len(body), handle) + body + (text or b"\0") + b"\0"


def _strings(slot: Slot) -> tuple[str, ...]:
    return (slot.locator, slot.bank, "Maker", slot.serial, "Part-1")


def _module(slot: Slot) -> bytes:
    """7.18 of DSP0134, behind the header: sizes of 32 GiB and more, and speeds beyond 65,534 MT/s, are in the fields
    that were added for them."""
    mib = slot.gib << 10
    size, more_size = (0x7FFF, mib) if mib >= 0x7FFF else (mib, 0)
    speeds = [(0xFFFF, speed) if speed >= 0xFFFF else (speed, 0) for speed in (slot.rated, slot.configured)]
    (rated, more_rated), (configured, more_configured) = speeds
    first = struct.pack("<HHHHHBBBBBH", 0x1000, 0xFFFE, 72, 64, size, 9, 0, 1, 2, _TYPES[slot.kind] if mib else 2, 0)
    then = struct.pack("<HBBBBBIHHHH", rated, 3, 4, 0, 5, 1, more_size, configured, 1100, 1100, 1100)
    return first + then + bytes(0x54 - 4 - len(first) - len(then)) + struct.pack("<II", more_rated, more_configured)
