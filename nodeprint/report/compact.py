"""A PDF as Typst writes it, in a third less: what is no stream goes into an object stream (ISO 32000-1, 7.5.7).

Most of a tagged document is its structure, thousands of small dictionaries that Typst leaves as they are.
"""

from __future__ import annotations

import re
import struct
import zlib

import numpy as np

from nodeprint.report.truetype import Face


def compact(pdf: bytes) -> bytes:
    """The same document with an object stream and a cross-reference stream; the same bytes for the same document."""
    table = int(pdf[pdf.rindex(b"startxref") + 9 :].split()[0])
    trailer = pdf[pdf.index(b"trailer", table) + 7 : pdf.rindex(b"startxref")].strip()
    offsets = _offsets(pdf, table)
    ends = dict(zip(sorted(offsets.values()), [*sorted(offsets.values())[1:], table], strict=True))
    out = bytearray(pdf[: min(offsets.values())])
    entries: dict[int, tuple[int, int, int]] = {0: (0, 0, 65535)}
    packed: list[tuple[int, bytes]] = []
    programs = {int(number) for number in re.findall(rb"/FontFile2 (\d+) 0 R", pdf)}
    for number, at in sorted(offsets.items()):
        whole = pdf[at : ends[at]]
        body = whole[whole.index(b"obj") + 3 : whole.rindex(b"endobj")].strip()
        if body.endswith(b"endstream"):
            entries[number] = (1, len(out), 0)
            out += _without_hints(number, body) if number in programs else whole
        else:
            packed.append((number, body))
    stream, last = max(offsets) + 1, max(offsets) + 2
    entries |= {number: (2, stream, place) for place, (number, _) in enumerate(packed)}
    entries |= {stream: (1, len(out), 0)}
    out += _object(stream, *_packed(packed))
    entries |= {last: (1, len(out), 0)}
    rows = [struct.pack(">BIH", *entries.get(number, (0, 0, 65535))) for number in range(last + 1)]
    rest = re.sub(rb"/Size \d+", b"/Size %d" % (last + 1), trailer[2:-2])
    start = len(out)
    out += _object(last, b"/Type/XRef/W[1 4 2]/DecodeParms<</Predictor 12/Columns 7>>" + rest, _differences(rows))
    return bytes(out) + b"startxref\n%d\n%%%%EOF\n" % start


def _without_hints(number: int, stream: bytes) -> bytes:
    """A TrueType font without the programs of its glyphs, two thirds of it."""
    start = stream.index(b"stream") + len(b"stream")
    program = Face(zlib.decompress(stream[start:].lstrip(b"\r\n"))).without_hints()
    return _object(number, b"/Length1 %d" % len(program), program)


def _differences(rows: list[bytes]) -> bytes:
    """Rows of one length, each as its differences from the one above (PNG's predictor 2), which repeat themselves."""
    table = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
    changes = np.diff(table, axis=0, prepend=np.zeros((1, table.shape[1]), dtype=np.uint8))
    return np.pad(changes, ((0, 0), (1, 0)), constant_values=2).tobytes()


def _offsets(pdf: bytes, table: int) -> dict[int, int]:
    """Where each object begins, by its number."""
    lines = pdf[table : pdf.index(b"trailer", table)].split(b"\n")[1:]
    out: dict[int, int] = {}
    number = 0
    for line in lines:
        words = line.split()
        if len(words) == 2:
            number = int(words[0])
        elif len(words) == 3:
            if words[2] == b"n":
                out[number] = int(words[0])
            number += 1
    return out


def _packed(objects: list[tuple[int, bytes]]) -> tuple[bytes, bytes]:
    """The keys and the content of an object stream."""
    places, at = [], 0
    for number, body in objects:
        places.append(b"%d %d" % (number, at))
        at += len(body) + 1
    head = b" ".join(places) + b"\n"
    return b"/Type/ObjStm/N %d/First %d" % (len(objects), len(head)), head + b"\n".join(body for _, body in objects)


def _object(number: int, keys: bytes, content: bytes) -> bytes:
    packed = zlib.compress(content, 6)
    head = b"%d 0 obj\n<<%b/Filter/FlateDecode/Length %d>>\nstream\n" % (number, keys, len(packed))
    return head + packed + b"\nendstream\nendobj\n"
