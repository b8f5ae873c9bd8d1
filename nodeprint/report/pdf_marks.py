"""Drawings as a PDF, a page each, which Typst places: a tenth of the time and size of the same marks as SVG.

Positions are whole hundredths of a millimetre from the bottom left corner.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np

from nodeprint.report import package_data, scale
from nodeprint.report.drawing import Dots, Drawing, Image, Mark, Path, Pen, Pixels, Rect, Segments, Words
from nodeprint.report.truetype import Face

#: A hundredth of a millimetre in points.
_UNIT = 72 / 2540
#: By which part of its width a line is moved to the left.
_SHIFTS = {"start": 0.0, "middle": 0.5, "end": 1.0}
#: Pixels this near to the diagonal of a symmetric image are in both of its halves, so that no gap shows between them.
_SHARED = 2
#: Faster than the smallest result by a factor of three, and 2 % larger.
_LEVEL = 5


def book(drawings: Sequence[Drawing]) -> bytes:
    """A document with a page for each drawing; the same bytes for the same drawings."""
    objects: list[bytes] = [b"", b""]  # the catalogue and the list of pages, known at the end

    def add(content: bytes) -> int:
        objects.append(content)
        return len(objects)

    words = [mark for drawing in drawings for mark in drawing.marks if isinstance(mark, Words)]
    fonts = {bold: _Font(bold, [with_letters(one.text) for one in words if one.bold == bold]) for bold in (False, True)}
    used = {bold: _add_font(font, add) for bold, font in fonts.items() if font.codes}
    names = "".join(f"/F{int(bold)} {number} 0 R" for bold, number in used.items())
    palettes: dict[str, int] = {}
    images: dict[Pixels, int] = {}
    pages = []
    for drawing in drawings:
        placed = []
        for one in drawing.images:
            if one.pixels.palette not in palettes:
                palettes[one.pixels.palette] = add(_stream("", bytes(sum(scale.palette(one.pixels.palette), ()))))
            if one.pixels not in images:
                images[one.pixels] = add(_image(one.pixels, palettes[one.pixels.palette]))
            placed.append(images[one.pixels])
        opacities = sorted({_opacity(mark) for mark in drawing.marks})
        states = "".join(f"/G{_hundredths(share)}<</ca {share:.2f}/CA {share:.2f}>>" for share in opacities)
        pictures = "".join(f"/I{number} {number} 0 R" for number in dict.fromkeys(placed))
        body = add(_stream("", _content(drawing, placed, fonts)))
        box = f"[0 0 {100 * drawing.width * _UNIT:.3f} {100 * drawing.height * _UNIT:.3f}]"
        has = f"<</Font<<{names}>>/XObject<<{pictures}>>/ExtGState<<{states}>>>>"
        pages.append(add(f"<</Type/Page/Parent 2 0 R/MediaBox{box}/Contents {body} 0 R/Resources{has}>>".encode()))
    objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    objects[1] = f"<</Type/Pages/Count {len(pages)}/Kids[{' '.join(f'{n} 0 R' for n in pages)}]>>".encode()
    return _file(objects)


def _file(objects: Sequence[bytes]) -> bytes:
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    end = b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(out) + end % (size, table, size, len(out))


def _stream(keys: str, content: bytes, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    compressor = zlib.compressobj(_LEVEL, strategy=strategy)
    packed = compressor.compress(content) + compressor.flush()
    return f"<<{keys}/Filter/FlateDecode/Length {len(packed)}>>\nstream\n".encode() + packed + b"\nendstream"


# --- images ---


def _symmetric(pixels: Pixels) -> bool:
    entries = np.frombuffer(pixels.entries, dtype=np.uint8)
    return pixels.width == pixels.height > 4 * _SHARED and bool(
        (entries.reshape(pixels.width, -1) == entries.reshape(pixels.width, -1).T).all()
    )


def _image(pixels: Pixels, palette: int) -> bytes:
    """An image with its palette; of a symmetric one the half above the diagonal, its other pixels transparent."""
    entries, mask = pixels.entries, ""
    if _symmetric(pixels):
        half = np.frombuffer(entries, dtype=np.uint8).reshape(pixels.width, -1).copy()
        half[np.tri(pixels.width, k=-_SHARED - 1, dtype=bool)] = scale.NONE
        entries, mask = half.tobytes(), f"/Mask[{scale.NONE} {scale.NONE}]"
    kind = f"/Type/XObject/Subtype/Image/Width {pixels.width}/Height {pixels.height}/BitsPerComponent 8"
    # differences are mostly noise, in which a search for what was there before finds nothing
    strategy = zlib.Z_RLE if pixels.palette == "vik" else zlib.Z_DEFAULT_STRATEGY
    return _stream(f"{kind}/ColorSpace[/Indexed/DeviceRGB 255 {palette} 0 R]{mask}", entries, strategy)


def _placed(one: Image, number: int, height: float) -> str:
    """An image in its place, a symmetric one a second time with rows and columns exchanged."""
    x, y, wide, tall = map(_hundredths, (one.x, height - one.y - one.height, one.width, one.height))
    upright = f"q {wide} 0 0 {tall} {x} {y} cm /I{number} Do Q"
    if not _symmetric(one.pixels):
        return upright
    return f"{upright}\nq 0 {-tall} {-wide} 0 {x + wide} {y + tall} cm /I{number} Do Q"


# --- shapes and text ---


def _content(drawing: Drawing, placed: Sequence[int], fonts: dict[bool, _Font]) -> bytes:
    """Images, shapes in their order, then text."""
    out = [f"{_UNIT:.7f} 0 0 {_UNIT:.7f} 0 0 cm"]
    out += [_placed(one, number, drawing.height) for one, number in zip(drawing.images, placed, strict=True)]
    state: dict[str, str] = {}
    painted, last = "", state
    for mark in drawing.marks:
        if isinstance(mark, Words):
            continue
        wanted, paint, route = _shape(mark, drawing.height)
        if wanted is last and paint == painted == "S":  # lines of one kind are one path
            out.append(route)
            continue
        out.append(painted)
        out += [f"{value} {operator}" for operator, value in wanted.items() if state.get(operator) != value]
        out.append(route)
        state |= wanted
        painted, last = paint, wanted
    out += [painted, "/G100 gs" if "gs" in state else "", "BT"]
    return "\n".join([*filter(None, [*out, *_text(drawing, fonts)]), "ET"]).encode()


def _shape(mark: Segments | Path | Rect | Dots, height: float) -> tuple[dict[str, str], str, str]:
    """A mark as the state that it needs (operands by operator), the operator that paints it, and its route."""
    if isinstance(mark, Dots):
        places = [f"{round(100 * x)} {round(100 * (height - y))}" for x, y in mark.points]
        # a line of no length with round ends
        return _state_of_dots(mark.fill, mark.radius, mark.opacity), "S", " ".join([f"{p} m {p} l" for p in places])
    if isinstance(mark, Segments):
        route = " ".join([
            f"{round(100 * x1)} {round(100 * (height - y1))} m {round(100 * x2)} {round(100 * (height - y2))} l"
            for x1, y1, x2, y2 in mark.ends
        ])  # fmt: skip
        return _state(mark.pen), "S", route
    pen = mark.pen
    paint = ("B" if pen.stroke != "none" else "f") if pen.fill != "none" else "S"
    if isinstance(mark, Path):
        first, *others = [f"{round(100 * x)} {round(100 * (height - y))}" for x, y in mark.points]
        route = " ".join([f"{first} m", *[f"{point} l" for point in others], "h" * mark.closed])
        return _state(pen), paint, route.rstrip()
    corner = f"{round(100 * mark.x)} {round(100 * (height - mark.y - mark.height))}"
    return _state(pen), paint, f"{corner} {round(100 * mark.width)} {round(100 * mark.height)} re"


@cache
def _state(pen: Pen) -> dict[str, str]:
    out = {"gs": f"/G{_hundredths(pen.opacity)}", "J": "0"}
    if pen.fill != "none":
        out["rg"] = _rgb(pen.fill)
    if pen.stroke != "none":
        dash = " ".join(f"{100 * float(part):.0f}" for part in pen.dash.split())
        out |= {"RG": _rgb(pen.stroke), "w": f"{round(100 * pen.width, 1):g}", "d": f"[{dash}] 0"}
    return out


@cache
def _state_of_dots(fill: str, radius: float, opacity: float) -> dict[str, str]:
    return _state(Pen("none", fill, 2 * radius, "", opacity)) | {"J": "1"}


def _opacity(mark: Mark) -> float:
    if isinstance(mark, Words):
        return 1.0
    return mark.opacity if isinstance(mark, Dots) else mark.pen.opacity


def _text(drawing: Drawing, fonts: dict[bool, _Font]) -> list[str]:
    """All text: each line's style and direction where they change, its place after the one before, and its codes."""
    out, last, upright, x, y = [], "", True, 0, 0
    for mark in drawing.marks:
        if not isinstance(mark, Words) or not mark.text:
            continue
        across, down, text, size, anchor, fill, turned, bold = mark
        width, codes = fonts[bold].line(text)
        shift = _SHIFTS[anchor] * width * size
        if turned:
            left, up = round(100 * across), round(100 * (drawing.height - down - shift))
        else:
            left, up = round(100 * (across - shift)), round(100 * (drawing.height - down))
        style = _style(bold, size, fill)
        if style != last:
            out.append(style)
        if turned == upright:
            out.append(f"{'0 1 -1 0' if turned else '1 0 0 1'} {left} {up} Tm")
        else:
            out.append(f"{up - y} {x - left} Td" if turned else f"{left - x} {up - y} Td")
        out.append(codes)
        last, upright, x, y = style, not turned, left, up
    return out


@cache
def _style(bold: bool, size: float, fill: str) -> str:
    return f"/F{int(bold)} {100 * size:.4g} Tf {_rgb(fill)} rg"


def _hundredths(value: float) -> int:
    return round(100 * value)


@cache
def _rgb(colour: str) -> str:
    return " ".join(f"{int(colour[i : i + 2], 16) / 255:.3g}" for i in (1, 3, 5))


# --- fonts ---

#: What is printed for a letter that the fonts do not have.
_LACKING = "□"


def with_letters(text: str) -> str:
    """`text` with a box for each letter that DejaVu Sans does not have: Chinese, Japanese, Korean and some others."""
    known = _letters()
    if known.issuperset(text):
        return text
    return "".join(c if c in known or not c.isprintable() else _LACKING for c in text)


@cache
def _letters() -> frozenset[str]:
    return frozenset(map(chr, face(False).glyphs))


@cache
def face(bold: bool) -> Face:
    """matplotlib's DejaVu Sans, as Typst has it."""
    name = f"mpl-data/fonts/ttf/DejaVuSans{'-Bold' if bold else ''}.ttf"
    return Face(package_data.path("matplotlib", name).read_bytes())


class _Font:
    """The glyphs of some texts; `codes` is what a character is called in them."""

    def __init__(self, bold: bool, texts: Iterable[str]) -> None:
        self.face = face(bold)
        self.bold = bold
        self.codes: dict[str, int] = {}
        self.glyphs = [0]
        for character in sorted(set("".join(texts))):
            glyph = self.face.glyphs.get(ord(character), 0)
            if glyph not in self.glyphs:
                self.glyphs.append(glyph)
            self.codes[character] = self.glyphs.index(glyph)
        self.advances = [self.face.advance(glyph) for glyph in self.glyphs]
        self._lines: dict[str, tuple[float, str]] = {}

    def line(self, text: str) -> tuple[float, str]:
        """The width of a line in sizes of the font, and what shows it."""
        if text not in self._lines:
            codes = [self.codes[character] for character in with_letters(text)]
            width = sum([self.advances[code] for code in codes]) / 1000
            self._lines[text] = width, f"<{''.join([f'{code:04x}' for code in codes])}> Tj"
        return self._lines[text]


def _add_font(font: _Font, add: Callable[[bytes], int]) -> int:
    """The objects of a font (a Type 0 font of a TrueType program, ISO 32000 9.7); returns the number of the first."""
    name = "DejaVuSans-Bold" if font.bold else "DejaVuSans"
    tag = _tag(font.codes)
    program = font.face.program(font.glyphs)
    file = add(_stream(f"/Length1 {len(program)}", program))
    metrics = "/Flags 4/FontBBox[-1021 -463 1793 1232]/ItalicAngle 0/Ascent 928/Descent -236/CapHeight 729/StemV 80"
    about = add(f"<</Type/FontDescriptor/FontName/{tag}+{name}{metrics}/FontFile2 {file} 0 R>>".encode())
    widths = " ".join(map(str, font.advances))
    system = "/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/CIDToGIDMap/Identity"
    inner = add(
        f"<</Type/Font/Subtype/CIDFontType2/BaseFont/{tag}+{name}{system}/FontDescriptor {about} 0 R"
        f"/W[0[{widths}]]>>".encode()
    )
    read = add(_stream("", _to_unicode(font.codes)))
    kind = f"<</Type/Font/Subtype/Type0/BaseFont/{tag}+{name}/Encoding/Identity-H"
    return add(f"{kind}/DescendantFonts[{inner} 0 R]/ToUnicode {read} 0 R>>".encode())


def _tag(codes: dict[str, int]) -> str:
    """Six letters that name a selection of glyphs."""
    number = zlib.crc32("".join(codes).encode("utf-8", "surrogatepass"))
    return "".join(chr(65 + number // 26**i % 26) for i in range(6))


def _to_unicode(codes: dict[str, int]) -> bytes:
    """The characters of codes, for those who search or copy text."""
    known = [f"<{code:04x}> <{c.encode('utf-16-be').hex()}>" for c, code in codes.items() if code]
    parts = [known[i : i + 100] for i in range(0, len(known), 100)]
    ranges = "".join(f"{len(part)} beginbfchar\n" + "\n".join(part) + "\nendbfchar\n" for part in parts)
    return (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Adobe-Identity-UCS def\n"
        "/CMapType 2 def 1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        f"{ranges}endcmap CMapName currentdict /CMap defineresource pop end end\n"
    ).encode()
