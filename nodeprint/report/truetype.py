"""The few glyphs of a TrueType font that a document shows, as a font of its own.

Written after the OpenType specification (tables cmap, glyf, loca, hmtx); hints are left out, as pages are printed or
shown at high resolution.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cached_property

#: Flags of a part of a composite glyph.
_WORDS, _SCALE, _MORE, _TWO_SCALES, _MATRIX, _HINTS = 0x1, 0x8, 0x20, 0x40, 0x80, 0x100


class Face:
    """A TrueType font `file`. Glyph 0 stands for characters that it lacks."""

    def __init__(self, file: bytes) -> None:
        count = struct.unpack_from(">H", file, 4)[0]
        records = [struct.unpack_from(">4sIII", file, 12 + 16 * i) for i in range(count)]
        self._tables = {tag.decode("latin-1"): file[at : at + size] for tag, _, at, size in records}
        self.units = int(struct.unpack_from(">H", self._tables["head"], 18)[0])
        self._measured = int(struct.unpack_from(">H", self._tables["hhea"], 34)[0])

    @cached_property
    def glyphs(self) -> dict[int, int]:
        """The glyph of each code point, from the format 4 or 12 tables of cmap."""
        table = self._tables["cmap"]
        found: dict[int, int] = {}
        for i in range(struct.unpack_from(">H", table, 2)[0]):
            at = struct.unpack_from(">I", table, 8 + 8 * i)[0]
            kind = struct.unpack_from(">H", table, at)[0]
            if kind == 12:
                for k in range(struct.unpack_from(">I", table, at + 12)[0]):
                    first, last, glyph = struct.unpack_from(">III", table, at + 16 + 12 * k)
                    found |= {code: glyph + code - first for code in range(first, last + 1)}
            elif kind == 4:
                found |= _segments(table, at)
        return found

    def advance(self, glyph: int) -> int:
        """The width of a glyph in thousandths of the font's size."""
        at = 4 * min(glyph, self._measured - 1)
        units = int(struct.unpack_from(">H", self._tables["hmtx"], at)[0])
        return round(1000 * units / self.units)

    def without_hints(self) -> bytes:
        """This font with all its glyphs, without their hints."""
        return self.program(range(struct.unpack_from(">H", self._tables["maxp"], 4)[0]))

    def program(self, wanted: Sequence[int]) -> bytes:
        """A font file of `wanted` (glyph 0 first), numbered in this order; parts of composite glyphs follow them."""
        order = list(wanted)
        outlines = []
        for glyph in order:  # grows while it is read
            outlines.append(self._outline(glyph, order))
        offsets, glyf = [0], b""
        for one in outlines:
            glyf += one + b"\0" * (-len(one) % 4)
            offsets.append(len(glyf))
        metrics = b"".join(self._metrics(glyph) for glyph in order)
        head = self._tables["head"]
        tables = {
            "glyf": glyf,
            "head": head[:8] + b"\0\0\0\0" + head[12:50] + struct.pack(">h", 1) + head[52:],
            "hhea": self._tables["hhea"][:34] + struct.pack(">H", len(order)),
            "hmtx": metrics,
            "loca": struct.pack(f">{len(offsets)}I", *offsets),
            "maxp": self._tables["maxp"][:4] + struct.pack(">H", len(order)) + self._tables["maxp"][6:],
        }
        return _file(tables)

    def _metrics(self, glyph: int) -> bytes:
        """Advance and left side bearing, in units of the font."""
        table = self._tables["hmtx"]
        advance = table[4 * min(glyph, self._measured - 1) :][:2]
        bearing = 4 * glyph + 2 if glyph < self._measured else 2 * self._measured + 2 * glyph
        return advance + table[bearing : bearing + 2]

    def _outline(self, glyph: int, order: list[int]) -> bytes:
        """A glyph without hints; parts of a composite one are added to `order`, and it refers to their places there."""
        long = struct.unpack_from(">h", self._tables["head"], 50)[0]
        start, end = struct.unpack_from(">II" if long else ">HH", self._tables["loca"], glyph * (4 if long else 2))
        outline = self._tables["glyf"][start * (1 if long else 2) : end * (1 if long else 2)]
        if not outline:
            return b""
        contours = struct.unpack_from(">h", outline)[0]
        if contours >= 0:
            at = 10 + 2 * contours
            hints = struct.unpack_from(">H", outline, at)[0]
            return outline[:at] + b"\0\0" + outline[at + 2 + hints :]
        out, at, flags = bytearray(outline), 10, _MORE
        while flags & _MORE:
            flags, part = struct.unpack_from(">HH", outline, at)
            if part not in order:
                order.append(part)
            struct.pack_into(">HH", out, at, flags & ~_HINTS, order.index(part))
            at += 8 if flags & _WORDS else 6
            at += 2 if flags & _SCALE else 4 if flags & _TWO_SCALES else 8 if flags & _MATRIX else 0
        return bytes(out[:at])


def _segments(table: bytes, at: int) -> dict[int, int]:
    """Code points and glyphs of a format 4 table."""
    count = struct.unpack_from(">H", table, at + 6)[0] // 2
    ends = struct.unpack_from(f">{count}H", table, at + 14)
    starts = struct.unpack_from(f">{count}H", table, at + 16 + 2 * count)
    deltas = struct.unpack_from(f">{count}H", table, at + 16 + 4 * count)
    ranges = at + 16 + 6 * count
    found = {}
    for i, (start, end, delta) in enumerate(zip(starts, ends, deltas, strict=True)):
        offset = struct.unpack_from(">H", table, ranges + 2 * i)[0]
        for code in range(start, min(end, 0xFFFE) + 1):
            glyph = code
            if offset:
                glyph = struct.unpack_from(">H", table, ranges + 2 * i + offset + 2 * (code - start))[0]
                if not glyph:
                    continue
            found[code] = (glyph + delta) & 0xFFFF
    return found


def _file(tables: dict[str, bytes]) -> bytes:
    """A font file of tables in order of their names; readers of PDF do not look at checksums."""
    power = 1 << (len(tables).bit_length() - 1)
    head = struct.pack(">IHHHH", 0x10000, len(tables), 16 * power, power.bit_length() - 1, 16 * (len(tables) - power))
    at, body = len(head) + 16 * len(tables), b""
    for tag, content in sorted(tables.items()):
        head += struct.pack(">4sIII", tag.encode(), 0, at + len(body), len(content))
        body += content + b"\0" * (-len(content) % 4)
    return head + body
