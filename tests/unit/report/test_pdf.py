"""One compiler prints many documents: none has anything of the one before."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nodeprint.report import pdf
from nodeprint.report.pages.blocks import Document, Figures, FindingBlock, Mark, Page, Picture, Section, Table, Text


def named(node: str, sections: int) -> Document:
    of_it = tuple(Section(f"{node}, {number}", (), apart=True) for number in range(sections))
    return Document(node, "main", "", (Page(node, node, node, None, (f"{node} is not the same.",), of_it),))


@pytest.mark.parametrize("most", [0, 2])
def test_each_document_of_a_printer_is_as_if_it_were_its_only_one(most: int) -> None:
    documents = [named("cn001", 4), named("cn002", 4), named("cn003", 1)]
    with pdf.Printer() as printer:
        printed = [printer.pdf(document, most) for document in documents]
    for document, content in zip(documents, printed, strict=True):
        with pdf.Printer() as printer:
            assert printer.pdf(document, most) == content
    assert len(set(printed)) == 3
    assert not most or all(pdf.pages_of(content) <= most for content in printed)


def of_lines(lines: int, dispensable: int = 0) -> Document:
    words = (*(Text(f"line {number}") for number in range(lines)), *(Text("more", dispensable=True),) * dispensable)
    return Document("cn001", "main", "", (Page("cn001", "cn001", "cn001", None, (), (Section("", words),)),))


def test_a_last_page_of_a_few_lines_is_saved() -> None:
    with pdf.Printer() as printer:
        full = next(lines for lines in range(20, 120) if pdf.pages_of(printer.pdf(of_lines(lines))) == 2)
        assert pdf.pages_of(printer.fewest(of_lines(full))) == 1
        assert pdf.pages_of(printer.fewest(of_lines(full, dispensable=8))) == 1
        assert pdf.pages_of(printer.fewest(of_lines(full + 30, dispensable=8))) == 2
        assert printer.fewest(of_lines(full - 3, dispensable=1)) == printer.pdf(of_lines(full - 3, dispensable=1))


def test_a_shortened_document_keeps_its_tables_and_has_no_empty_section() -> None:
    """The table of medians was gone from paper, and its heading stood alone."""
    table = Table(("of", "median", "nodes"), (("same CCX", "24 ns", "8"),), "lrr", minor=(2,))
    parts = Section("values", (table,)), Section("more", (Text("more", dispensable=True),))
    document = Document("cn001", "main", "", (Page("cn001", "cn001", "cn001", None, (), parts),))
    (section,) = document.without_dispensable.pages[0].sections
    assert section.blocks == (table,)


def test_a_sentence_that_ends_a_row_has_the_room_of_the_cells_behind_it() -> None:
    rows = tuple(("cn001", "a sentence of many words " * 8, "", "", "") for _ in range(24))
    numbers = (("cn000", "short", "-14.4%", "4.8%", "Measure the node again and compare."),)

    def pages(last: str) -> int:
        table = Table(("node", "what", "by", "tolerance", "to do"), (*numbers, *((*row[:4], last) for row in rows)))
        page = Page("cn001", "cn001", "cn001", None, (), (Section("", (table,)),))
        with pdf.Printer() as printer:
            return pdf.pages_of(printer.pdf(Document("cn001", "main", "", (page,))))

    assert pages("") < pages("Measure the node again.")


def test_a_sentence_over_the_last_column_leaves_the_others_their_room() -> None:
    """A column that is as wide as its words takes all of a sentence that goes over it."""
    sentence = "Compare settings, firmware and parts of both nodes, and measure both again."
    row = ("cn001", "core-to-core latency of pairs of the same socket", "+5.9%", "4%", sentence)
    table = Table(("node", "what", "by", "tolerance", "to do", "page"), ((*row, ""), *((*row, "2"),) * 20), "llrrlr")
    page = Page("cn001", "cn001", "cn001", None, (), (Section("", (table,)),))
    with pdf.Printer() as printer:
        assert pdf.pages_of(printer.pdf(Document("cn001", "main", "", (page,)))) == 1


def test_a_figure_stands_beside_a_table_that_leaves_it_room() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="60mm" height="60mm"></svg>'
    rows = tuple((f"row {number}", "1") for number in range(16))

    def pages(width: float) -> int:
        blocks = tuple(
            block
            for _ in range(4)
            for block in (Table(("a", "b"), rows), Figures((Picture("", svg, width, "a square"),)))
        )
        page = Page("cn001", "cn001", "cn001", None, (), (Section("", blocks),))
        with pdf.Printer() as printer:
            return pdf.pages_of(printer.pdf(Document("cn001", "main", "", (page,))))

    assert pages(60.0) < pages(178.0)


def test_what_may_be_early_stands_before_the_findings_and_saves_a_page() -> None:
    """A finding is never broken: behind the first section it begins a page, and lines have room before it."""
    with pdf.Printer() as printer:
        full = next(lines for lines in range(20, 120) if pdf.pages_of(printer.pdf(of_lines(lines))) == 2)
        numbers = Table(("number",), tuple((str(number),) for number in range(3 * full // 4)))
        finding = FindingBlock("found", "", Mark("▲", "DEVIATES", "alarm"), numbers)
        first, late = (tuple(Text(f"line {number}") for number in range(int(full * share))) for share in (0.5, 0.4))
        components = (Section("first", first), Section("found", (finding,)), Section("late", late))
        document = Document("t", "c", "", (Page("s", "s", "t", None, (), components),))
        early = replace(
            document,
            pages=(replace(document.pages[0], sections=(*components[:2], replace(components[2], early=True))),),
        )
        assert [component.title for component in early.early.pages[0].sections] == ["first", "late", "found"]
        assert document.early == document
        assert pdf.pages_of(printer.fewest(document)) == 3 and pdf.pages_of(printer.fewest(early)) == 2
