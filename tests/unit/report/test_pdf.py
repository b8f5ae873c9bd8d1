"""One compiler prints many documents: none has anything of the one before."""

from __future__ import annotations

import pytest

from nodeprint.report import pdf
from nodeprint.report.pages.blocks import Document, Page, Section


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
