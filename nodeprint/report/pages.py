"""What is on a page, ready to be painted: every word written, every figure drawn, in the order in which it is read.

A page is a heading and sections, a section is blocks. `nodeprint.report.node` and `nodeprint.report.cluster` fill them;
the templates of reports/ know each kind of block, and nothing of what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from nodeprint.errors import printable
from nodeprint.outcomes import Outcome
from nodeprint.report.old_figures import Figure

Facts = tuple[tuple[str, str], ...]

#: Longer texts are cut.
_LONGEST = 1200


class Text(msgspec.Struct, frozen=True):
    """A paragraph; `quiet` in small print."""

    text: str
    quiet: bool = False


class Bullets(msgspec.Struct, frozen=True):
    """Sentences in a list."""

    items: tuple[str, ...]


class FactList(msgspec.Struct, frozen=True):
    """Keys and values, in so many columns, keys `width` mm wide."""

    facts: Facts
    columns: int = 1
    width: float = 40.0


class Cell(msgspec.Struct, frozen=True):
    """What a table has in a place where it has more than words: a figure, or an outcome."""

    figure: Figure | None = None
    mark: Outcome | None = None


class Table(msgspec.Struct, frozen=True):
    """A table: its header and its rows, of which those at `marked` ask for attention.

    `align` has a letter a column, l or r; `wide` is the column that takes the room that is left (-1: none).
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    marked: tuple[int, ...] = ()
    align: str = ""
    wide: int = -1
    dense: bool = False


class Advice(msgspec.Struct, frozen=True):
    """A warning or a quality remark in words: what was seen, what to do, and which nodes it concerns."""

    text: str
    advice: str
    nodes: str = ""


class FindingBlock(msgspec.Struct, frozen=True):
    """A finding of the verdict: its sentence, its figures as short facts, and what it looks like."""

    title: str
    text: str
    facts: Facts
    figures: tuple[Figure, ...] = ()


class Figures(msgspec.Struct, frozen=True):
    """Figures side by side, and what may stand beside the last of them."""

    figures: tuple[Figure, ...]
    facts: Facts = ()


class Unmeasured(msgspec.Struct, frozen=True):
    """A node without a result: the reason, and the last lines of its log."""

    node: str
    mark: Outcome
    reason: str
    log_tail: tuple[str, ...]


class Log(msgspec.Struct, frozen=True):
    """The last lines of a log."""

    lines: tuple[str, ...]


class Method(msgspec.Struct, frozen=True):
    """How one measurement was made."""

    title: str
    facts: Facts


Block = Text | Bullets | FactList | Table | Advice | FindingBlock | Figures | Unmeasured | Log | Method


class Section(msgspec.Struct, frozen=True):
    """A heading and what is below it. `together`: on one page where it fits; `apart`: begins a page."""

    title: str
    blocks: tuple[Block, ...]
    subtitle: str = ""
    together: bool = False
    apart: bool = False


class Page(msgspec.Struct, frozen=True):
    """The pages of a subject (a node, or the cluster). `origin` marks what was not measured here (SIMULATED, IMPORTED).

    `lead` are the sentences under the title, `counts` how many nodes have each outcome.
    """

    campaign: str
    subject: str
    title: str
    origin: str
    mark: Outcome | None
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    counts: tuple[tuple[Outcome, int], ...] = ()

    def figures(self) -> list[Figure]:
        """Every figure, in order of the page."""
        blocks = [block for section in self.sections for block in section.blocks]
        return [one for block in blocks if isinstance(block, Figures | FindingBlock) for one in block.figures]


class Site(msgspec.Struct, frozen=True):
    """What a site adds to its reports: a logo (PNG or SVG), whom to ask, and what was agreed with the vendor."""

    logo: bytes | None = None
    contact: str = ""
    contract: str = ""


def sections(*those: Section | None) -> tuple[Section, ...]:
    """Sections without those that have nothing to say."""
    out = []
    for one in those:
        blocks = tuple(block for block in one.blocks if _says(block)) if one is not None else ()
        if one is not None and blocks:
            out.append(replace(one, blocks=blocks))
    return tuple(out)


def _says(block: Block) -> bool:
    if isinstance(block, Text):
        return block.text != ""
    if isinstance(block, Table):
        return bool(block.rows)
    if isinstance(block, FactList):
        return bool(block.facts)
    if isinstance(block, Bullets):
        return bool(block.items)
    if isinstance(block, Log):
        return bool(block.lines)
    return bool(block.figures) if isinstance(block, Figures) else True


def title(pages: Sequence[Page]) -> str:
    """What a document of these pages is called."""
    first = pages[0] if pages else None
    if first is None:
        return "nodeprint"
    return line(f"nodeprint, campaign {first.campaign}" + (f", {first.subject}" if first.subject != "cluster" else ""))


def plain(
    value: Any,
    text: Callable[[str], str],
    image: Callable[[bytes], str],
    figure: Callable[[Figure], dict[str, Any]],
) -> Any:
    """`value` (structures all the way down) as JSON types, every string by way of `text`, files by way of `image`.

    What a structure is stands in `kind`. A figure becomes its caption and what `figure` makes of it.
    """
    if isinstance(value, Figure):
        return {"kind": "Figure", "caption": text(value.caption)} | figure(value)
    if isinstance(value, msgspec.Struct):
        named = asdict(value)
        return {key: plain(item, text, image, figure) for key, item in named.items()} | {"kind": type(value).__name__}
    if isinstance(value, dict):
        return {key: plain(item, text, image, figure) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, text, image, figure) for item in value]
    if isinstance(value, bytes):
        return image(value)
    return text(value) if isinstance(value, str) else value


def line(text: str) -> str:
    """`text` on one line, printable and of bounded length."""
    return printable(" ".join(text.split()), _LONGEST)
