"""What a document has in its tables."""

from __future__ import annotations

from nodeprint.report.pages.blocks import Cell, Document, Mark, Reference, Table


def rows(document: Document, section: str) -> list[dict[str, str]]:
    """The rows of the first table of a section, by the table's header; of a mark its word."""
    (found,) = (of for page in document.pages for of in page.sections if of.title == section)
    table = next(block for block in found.blocks if isinstance(block, Table))
    return [dict(zip(table.header, map(_word, row), strict=True)) for row in table.rows]


def _word(cell: Cell) -> str:
    if isinstance(cell, Mark):
        return cell.word
    return cell.text if isinstance(cell, Reference) else str(cell)
