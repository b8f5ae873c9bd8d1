"""Figures in the PDF: what is drawn is seen and read in its place, and the document is a third of Typst's own size."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nodeprint.report import pdf_marks, scale
from nodeprint.report.compact import compact
from nodeprint.report.drawing import Drawing, Pixels
from nodeprint.report.truetype import Face

from .conftest import need

#: Dots an inch at which a millimetre has four pixels.
_DPI = 101.6


@pytest.fixture(autouse=True)
def _poppler() -> None:
    need("pdftoppm", "pdftotext")


def seen(document: bytes, folder: Path) -> np.ndarray:
    """The first page as pixels (rows x columns x 3), four a millimetre."""
    (folder / "a.pdf").write_bytes(document)
    command = ["pdftoppm", "-r", str(_DPI), "-singlefile", "-png", folder / "a.pdf", folder / "a"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert not done.stderr
    return np.asarray(Image.open(folder / "a.png").convert("RGB"))


def words(document: bytes, folder: Path) -> str:
    (folder / "a.pdf").write_bytes(document)
    return subprocess.run(["pdftotext", folder / "a.pdf", "-"], check=True, capture_output=True, text=True).stdout


def test_each_mark_is_where_it_was_drawn(tmp_path: Path) -> None:
    drawing = Drawing(40, 20)
    drawing.rect(2, 2, 4, 4, fill="#ff0000")
    drawing.dot(12, 4, radius=2, fill="#00ff00")
    drawing.line(18, 4, 24, 4, stroke="#0000ff", width=1)
    drawing.path([(28, 2), (32, 2), (32, 6)], fill="#ff00ff", closed=True)
    drawing.rect(2, 12, 4, 4, fill="#000000", opacity=0.5)
    drawing.rect(12, 12, 4, 4, fill="#000000")
    page = seen(pdf_marks.book([drawing]), tmp_path)

    def at(x: float, y: float) -> list[int]:
        return page[round(4 * y), round(4 * x)].tolist()

    assert at(4, 4) == [255, 0, 0] and at(7, 4) == [255, 255, 255]
    assert at(12, 4) == at(13.5, 4) == [0, 255, 0] and at(13.8, 5.8) == [255, 255, 255]
    assert at(21, 4) == [0, 0, 255] and at(21, 5) == [255, 255, 255]
    assert at(31.5, 3) == [255, 0, 255] and at(29, 5) == [255, 255, 255]
    assert 120 <= at(4, 14)[0] <= 135, "half as dark"
    assert at(14, 14) == [0, 0, 0], "and what follows is opaque again"


@pytest.mark.parametrize("symmetric", [True, False])
def test_pixels_have_the_colours_of_their_entries(symmetric: bool, tmp_path: Path) -> None:
    """Of a symmetric image half is stored: the other half must be seen, and no gap between them."""
    n = 60
    entries = np.random.default_rng(1).integers(0, scale.LEVELS, (n, n)).astype(np.uint8)
    if symmetric:
        entries = np.minimum(entries, entries.T)
    drawing = Drawing(n, n)
    drawing.image(Pixels.of(entries, "batlow"), 0, 0, n, n)
    document = pdf_marks.book([drawing])
    page = seen(document, tmp_path)
    palette = np.array(scale.palette("batlow"))
    assert np.abs(page[2::4, 2::4].astype(int) - palette[entries]).max() <= 1
    # and an image as large that is not symmetric takes more
    other = Drawing(n, n)
    other.image(Pixels.of(np.roll(entries, 1, axis=0), "batlow"), 0, 0, n, n)
    assert symmetric == (len(pdf_marks.book([other])) > 1.15 * len(document))


def test_text_is_read_and_stands_at_its_anchor(tmp_path: Path) -> None:
    drawing = Drawing(60, 30)
    drawing.text(30, 5, "Ärger µs ▲ 12.5", anchor="middle", size=3)
    drawing.text(58, 15, "to the right", anchor="end", size=3, bold=True)
    drawing.text(5, 25, "up", turned=True, size=3)
    drawing.text(2, 15, "<&#$()\\", size=3)
    document = pdf_marks.book([drawing])
    read = words(document, tmp_path)
    assert all(text in read for text in ("Ärger µs ▲ 12.5", "to the right", "up", "<&#$()\\"))
    dark = seen(document, tmp_path).min(axis=2) < 128

    def ends(top: int, bottom: int, left: int = 0) -> tuple[float, float]:
        columns = left + np.flatnonzero(dark[4 * top : 4 * bottom, 4 * left :].any(axis=0)) / 4
        return float(columns.min()), float(columns.max())

    first = ends(2, 8)
    assert abs(sum(first) / 2 - 30) < 0.7, "around the middle"
    assert abs(ends(12, 18, 30)[1] - 58) < 0.7
    rows = np.flatnonzero(dark[4 * 19 :, : 4 * 10].any(axis=1)) / 4 + 19
    assert rows.max() <= 25.3 and rows.min() < 22.5, "turned text runs upwards from its place"


def test_a_font_has_the_glyphs_asked_for_and_no_others() -> None:
    face = pdf_marks.face(False)
    wanted = [0, *(face.glyphs[ord(c)] for c in "aé")]
    program = face.program(wanted)
    few = Face(program)
    assert [few.advance(i) for i in range(3)] == [face.advance(glyph) for glyph in wanted]
    assert len(program) < 3000


def test_a_compact_document_is_the_same_document(tmp_path: Path) -> None:
    drawing = Drawing(40, 20)
    for i in range(200):
        drawing.text(1 + i % 20, 2 + i // 20, "a")
    document = pdf_marks.book([drawing] * 60)
    smaller = compact(document)
    assert len(smaller) < 0.8 * len(document) and compact(document) == smaller
    assert words(smaller, tmp_path) == words(document, tmp_path)
    assert (seen(smaller, tmp_path) == seen(document, tmp_path)).all()


def test_letters_that_the_fonts_lack_are_boxes(tmp_path: Path) -> None:
    drawing = Drawing(40, 20)
    drawing.text(2, 5, "cn名前 Ωé", size=3)
    assert "cn□□ Ωé" in words(pdf_marks.book([drawing]), tmp_path)
    assert pdf_marks.with_letters("cn名前 Ωé\u4e00") == "cn□□ Ωé□"
    boxes = Drawing(40, 20)
    boxes.text(2, 5, "cn□□ Ωé", size=3)
    assert (seen(pdf_marks.book([drawing]), tmp_path) == seen(pdf_marks.book([boxes]), tmp_path)).all()
