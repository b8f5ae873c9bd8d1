"""The content of a page, ready to be rendered: all words and figures, in reading order.

A document is pages, a page is a heading and sections, a section is blocks. The templates of reports/ know each kind of
block, but not its content.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec
from msgspec.structs import replace

from nodeprint.judge.outcome import FleetOutcome, Outcome

FactRows = tuple[tuple[str, str], ...]


class Mark(msgspec.Struct, frozen=True):
    """An outcome: its symbol and word in its color (a name of reports/style.yaml)."""

    symbol: str
    word: str
    color: str

    @classmethod
    def of(cls, outcome: Outcome | FleetOutcome) -> Mark:
        """The mark of an outcome of a node or a fleet."""
        return cls(outcome.entry.symbol, outcome.with_class, outcome.entry.color)


class Picture(msgspec.Struct, frozen=True):
    """A figure: SVG, its width in mm, and a caption, which is its alternative text, too. `name` is the stem of its
    files."""

    name: str
    svg: str
    width: float
    caption: str = ""


class Reference(msgspec.Struct, frozen=True):
    """A reference to a file next to the document, or to an anchor in it; in print the page number appears."""

    text: str
    anchor: str = ""
    file: str = ""


Cell = str | Mark | Reference


class Text(msgspec.Struct, frozen=True, tag=True):
    """A paragraph: `quiet` in small print, `dispensable` if the paper version may drop it to save a page."""

    text: str
    quiet: bool = False
    dispensable: bool = False


class Bullets(msgspec.Struct, frozen=True, tag=True):
    """Sentences in a list; `dispensable` as for a paragraph."""

    items: tuple[str, ...]
    dispensable: bool = False


class FactList(msgspec.Struct, frozen=True, tag=True):
    """Keys and values, in a number of columns."""

    rows: FactRows
    columns: int = 1


class Table(msgspec.Struct, frozen=True, tag=True):
    """A table. `align` has one letter per column, l or r; the column `wide` takes the remaining room (-1: none).

    A medium without room for all columns omits the `minor` ones.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: str = ""
    wide: int = -1
    minor: tuple[int, ...] = ()

    def only(self, columns: Collection[int]) -> Table:
        """Return the table with these columns alone."""
        place = {column: number for number, column in enumerate(sorted(columns))}
        header = tuple(self.header[column] for column in place if self.header)
        rows = tuple(tuple(row[column] for column in place) for row in self.rows)
        align = "".join(self.align[column : column + 1] for column in place)
        minor = tuple(place[column] for column in self.minor if column in place)
        return Table(header, rows, align, place.get(self.wide, -1), minor)


class MatrixBlock(msgspec.Struct, frozen=True, tag=True):
    """The numbers of a matrix (n x n, NaN if missing) with a name per row, for a medium without figures."""

    title: str
    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


class Command(msgspec.Struct, frozen=True, tag=True):
    """A command to type or unchanged log lines, with their purpose."""

    command: str
    purpose: str = ""


class FindingBlock(msgspec.Struct, frozen=True, tag=True):
    """A finding: its summary, a table of numbers, a figure of its own pairs or cells, and details."""

    title: str
    sentence: str
    mark: Mark
    numbers: Table | None = None
    figures: tuple[Picture, ...] = ()
    details: tuple[str, ...] = ()
    facts: FactRows = ()
    command: Command | None = None
    links: tuple[Reference, ...] = ()
    anchor: str = ""


class Figures(msgspec.Struct, frozen=True, tag=True):
    """Figures, side by side if they fit; `dispensable` as for a paragraph."""

    pictures: tuple[Picture, ...]
    dispensable: bool = False


class Advice(msgspec.Struct, frozen=True, tag=True):
    """A warning: the observation, the next step, and the nodes concerned."""

    text: str
    advice: str = ""
    nodes: str = ""


class Form(msgspec.Struct, frozen=True, tag=True):
    """A form: names with values or a line to write on, choices to tick with a date, signatures."""

    blanks: FactRows = ()
    choices: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()


Block = Text | Bullets | FactList | Table | MatrixBlock | Command | FindingBlock | Figures | Advice | Form


class Section(msgspec.Struct, frozen=True):
    """A heading and its content.

    `apart` starts a new page. `appendix` appears only in HTML. `early` moves the section before the findings if that
    saves a page.
    """

    title: str
    blocks: tuple[Block, ...]
    apart: bool = False
    appendix: bool = False
    anchor: str = ""
    early: bool = False


class Page(msgspec.Struct, frozen=True):
    """The pages of one subject (a node, or the cluster).

    `lead` are the sentences below the title, `counts` the number of nodes per outcome.
    """

    subject: str
    anchor: str
    title: str
    mark: Mark | None
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    counts: tuple[tuple[Mark, int], ...] = ()

    @property
    def pictures(self) -> Iterator[Picture]:
        """Yield every figure, in page order."""
        for block in (block for section in self.sections for block in section.blocks):
            if isinstance(block, Figures):
                yield from block.pictures
            elif isinstance(block, FindingBlock):
                yield from block.figures


class SiteTexts(msgspec.Struct, frozen=True):
    """A site's additions to reports: a logo (PNG or SVG), a contact, and agreements for the acceptance report."""

    logo: bytes | None = None
    contact: str = ""
    contract: str = ""
    customer: str = ""
    supplier: str = ""
    system: str = ""
    place: str = ""


class Document(msgspec.Struct, frozen=True):
    """A report: its pages, and `origin` for data from elsewhere (SIMULATED, IMPORTED)."""

    title: str
    campaign: str
    origin: str
    pages: tuple[Page, ...]
    site: SiteTexts = SiteTexts()

    @property
    def printed(self) -> Document:
        """Return the paper version: the pages without their appendices."""
        kept = [replace(p, sections=tuple(of for of in p.sections if not of.appendix)) for p in self.pages]
        return replace(self, pages=(*kept[:1], *(page for page in kept[1:] if page.sections)))

    @property
    def without_dispensable(self) -> Document:
        """Return the document without dispensable paragraphs, lists and figures."""

        def kept(section: Section) -> Section:
            return replace(section, blocks=tuple(b for b in section.blocks if not getattr(b, "dispensable", False)))

        return replace(self, pages=tuple(replace(p, sections=sections(*map(kept, p.sections))) for p in self.pages))

    @property
    def early(self) -> Document:
        """Return the document with `early` sections before the findings."""

        def ordered(components: tuple[Section, ...]) -> tuple[Section, ...]:
            with_findings = [any(isinstance(b, FindingBlock) for b in component.blocks) for component in components]
            at = with_findings.index(True) if any(with_findings) else len(components)
            return (*components[:at], *sorted(components[at:], key=lambda component: not component.early))

        return replace(self, pages=tuple(replace(page, sections=ordered(page.sections)) for page in self.pages))


def word(cell: Cell) -> str:
    """Return a cell as text."""
    return cell.word if isinstance(cell, Mark) else cell.text if isinstance(cell, Reference) else cell


def sections(*components: Section | None) -> tuple[Section, ...]:
    """Return the sections that have content."""
    kept = []
    for section in components:
        blocks = tuple(block for block in section.blocks if _says(block)) if section is not None else ()
        if section is not None and blocks:
            slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in section.title.lower()).strip("-")
            kept.append(replace(section, blocks=blocks, anchor=section.anchor or slug))
    return tuple(kept)


def _says(block: Block) -> bool:
    match block:
        case Text(text=content) | Bullets(items=content) | FactList(rows=content) | Table(rows=content):
            return bool(content)
        case Figures(pictures=content) | Command(command=content):
            return bool(content)
    return True
