"""What a person reads of a campaign as statements: paragraphs and rows of tables, each with what stands around it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser

from nodeprint.settings.measurements import measurements


@dataclass(frozen=True)
class Statement:
    """A paragraph (one cell without a header) or a row. `context` is all that names what it is of: file, headings,
    the row itself."""

    file: str
    context: str
    cells: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """Its words."""
        return " | ".join(text for _, text in self.cells)


def statements(artifacts: Mapping[str, str]) -> Iterator[Statement]:
    """All statements of the artifacts that people read."""
    for file, text in artifacts.items():
        if file.endswith(".html"):
            yield from _of_page(file, text)
        elif file.endswith(".pdf"):
            yield from _of_paper(file, text, artifacts)
        elif file.endswith("verdict.xml"):
            yield from _of_junit(file, text)
        elif file == "terminal":
            yield from _of_terminal(text)
        elif file.endswith("drain.sh"):
            yield from (_paragraph(file, "", line) for line in text.splitlines())


def _paragraph(file: str, around: str, text: str) -> Statement:
    return Statement(file, f"{around} | {text}", (("", text),))


# --- pages ---


class _Page(HTMLParser):
    _HIDDEN = ("script", "style", "head", "svg", "nav", "title")
    _ROWS = ("tr", "dl")
    _INLINE = ("a", "b", "code", "em", "i", "mark", "span", "strong", "sub", "sup", "small")

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file, self.hidden, self.text = file, 0, ""
        self.headings: dict[int, str] = {}
        self.header: list[str] = []
        self.row: list[tuple[str, str]] = []
        self.before: list[str] = []
        self.label = ""
        self.found: list[Statement] = []

    @property
    def around(self) -> str:
        return " | ".join(self.headings.values())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in self._HIDDEN
        if self.hidden or tag in self._INLINE:
            return
        self._flush()
        if tag == "table":
            self.header, self.before = [], []
        if tag == "tr":
            self.row = []

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in self._HIDDEN
        text = " ".join(self.text.split())
        if self.hidden or tag in self._INLINE:
            return
        if tag == "th":
            self.row.append(("th", text))
            self.text = ""
        elif tag == "td":
            self.row.append(("td", text))
            self.text = ""
        elif tag == "dt":
            self.label, self.text = text, ""
        elif tag == "dd":
            self.text = ""
            self._add(((self.label, text),), f"{self.label} | {text}")
        elif tag == "tr":
            self._end_of_row()
        elif re.fullmatch("h[1-6]", tag):
            level = int(tag[1])
            self.headings = {key: words for key, words in self.headings.items() if key < level} | {level: text}
            self._flush()
        else:
            self._flush()

    def _end_of_row(self) -> None:
        texts = [text for _, text in self.row]
        if all(kind == "th" for kind, _ in self.row):
            self.header = texts
            self._add((("", " | ".join(texts)),), "")
            return
        filled = list(texts)
        for at in range(min(len(texts), len(self.before))):  # a blank cell is as the one above it
            if texts[at]:
                break
            filled[at] = self.before[at]
        self.before = filled
        header = self.header if len(self.header) == len(texts) else [""] * len(texts)
        self._add(tuple(zip(header, texts, strict=True)), " | ".join(filled))

    def _flush(self) -> None:
        text = " ".join(self.text.split())
        self.text = ""
        if text:
            self._add((("", text),), text)

    def _add(self, cells: tuple[tuple[str, str], ...], words: str) -> None:
        self.found.append(Statement(self.file, f"{self.around} | {words}", cells))

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.text += data


def _of_page(file: str, text: str) -> list[Statement]:
    page = _Page(file)
    page.feed(text)
    return page.found


# --- paper: what its template reads ---


def _of_paper(file: str, text: str, artifacts: Mapping[str, str]) -> Iterator[Statement]:
    """Lines of a PDF page that no HTML page has; a line of cells without a digit is the header of those below, and a
    node's name below its rows in an acceptance report."""
    shown = " ".join(
        words for other, page in artifacts.items() if other.endswith(".html") for words in _cells(other, page)
    )
    header: list[str] = []
    lines, measured = text.splitlines()[1:], ""
    for at, line in enumerate(lines):
        cells = [cell for cell in line.split(" | ") if cell]
        measured = next((of for of in cells[:1] if of in _MEASURED), measured)  # empty in the rows below
        if not re.search(r"\d", line):
            header = cells
        elif not (_LAYOUT.fullmatch(line) or line in shown or all(len(cell) > 3 and cell in shown for cell in cells)):
            # the share of the peak, which is the last cell, is empty in most rows
            is_whole = len(header) == len(cells) or (len(header) == len(cells) + 1 and header[-1] == "% of peak")
            headers = header[: len(cells)] if is_whole else [""] * len(cells)
            rest = [(head, cell) for head, cell in zip(headers, cells, strict=True) if not _is_layout(cell)]
            below = " | ".join(lines[at + 1 : at + 4])
            if rest:
                yield Statement(file, f"{file} | {measured} | {line} | {below}", tuple(rest))


_MEASURED = frozenset(of.what for of in measurements().values())
#: Widths, numbers of columns and anchors, which a template reads and nobody sees.
_LAYOUT = re.compile(r"-?\d+(?:\.\d+)?|[\w-]+-\d+|finding-\S+|\S+\.pdf \| \S+")


def _is_layout(cell: str) -> bool:
    return bool(_LAYOUT.fullmatch(cell)) or (cell.count("; ") > 1 and not re.search(r"[a-z]\.(?: |$)", cell))


def _cells(file: str, page: str) -> set[str]:
    found = _of_page(file, page)
    texts = {text for statement in found for cell in statement.cells for text in cell}
    return texts | {" | ".join(filter(None, (text for _, text in of.cells))) for of in found}


# --- text ---


def _of_junit(file: str, text: str) -> Iterator[Statement]:
    for case in re.findall(r"<testcase.*?(?:/>|</testcase>)", text, re.DOTALL):
        name = re.search(r'name="([^"]*)"', case)
        found = re.findall(r'message="([^"]*)"', case) + re.findall(r">([^<]+)<", case)
        for words in found:
            for line in unescape(words).splitlines():
                if line.strip():
                    yield _paragraph(file, name[1] if name else "", line.strip())


def _of_terminal(text: str) -> Iterator[Statement]:
    """Lines of the terminal, wrapped ones as one; what stands below a measurement is of it."""
    command = label = ""
    titles = _Titles()
    for line in _unwrapped(text):
        cells = re.split(r" {2,}", line.strip())
        indent = len(line) - len(line.lstrip())
        if line.startswith("$"):
            command = line
        if line.startswith("$") or not line.strip():
            titles, label = _Titles(), ""
        elif titles.take(line):
            continue
        elif titles.names and len(cells) == 1:
            label = cells[0]
            continue
        is_row = line.startswith("  ") and len(cells) > 1
        label = cells[0] if is_row and indent < _ROWS and not titles.is_stacked else label if is_row else ""
        if _UNKEPT.match(command) or re.fullmatch(r"[ \d]*\d", line):  # nothing is kept; CPUs above a matrix
            continue
        is_of_matrix = re.match(r"\s*\d+ .*(?<!\S)\.(?!\S)", line) and not titles.names
        cells = cells[1:] if is_of_matrix and len(cells) > 1 else cells  # a CPU in front of its row
        yield Statement("terminal", f"{command} | {label} | {line}", titles.of(cells, indent))


class _Titles:
    """The titles of a table: lines without a digit, each below the words that it continues."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ends: list[tuple[int, int]] = []
        self.indent, self.is_open = 0, True

    @property
    def is_stacked(self) -> bool:
        """Whether the first cell of a row stands above the others."""
        return bool(self.names) and self.indent > 4

    def take(self, line: str) -> bool:
        """Whether a line has titles; else there are no more."""
        words = [(match[0], match.span()) for match in re.finditer(r"\S+(?: \S+)*", line)]
        no_titles = (
            re.search(r"\d", line.replace("95%", "")) or not line.startswith("    ") or line.rstrip().endswith(".")
        )
        if not self.names:
            if no_titles or len(words) == 1:
                return False
            self.names, self.ends = [word for word, _ in words], [span for _, span in words]
            self.indent = words[0][1][0]
        elif self.is_open and not no_titles and words[0][1][0] > _ROWS:
            for word, (start, end) in words:
                at = next(at for at, span in enumerate(self.ends) if start < span[1] + 1 and end > span[0] - 1)
                self.names[at] += f" {word}"
                self.ends[at] = (min(start, self.ends[at][0]), max(end, self.ends[at][1]))
        else:
            self.is_open = False
        return self.is_open

    def of(self, cells: Sequence[str], indent: int) -> tuple[tuple[str, str], ...]:
        """The cells with their titles; the first is empty in a row that is indented further."""
        names = self.names[1:] if self.indent == 4 < indent else self.names
        return tuple(itertools.zip_longest(names[: len(cells)], cells, fillvalue=""))


#: Commands that judge a file and keep nothing, and those whose results no verdict has, which have tests of their own.
_UNKEPT = re.compile(
    r"\$ nodeprint (?:judge \S+\.csv(?!.*--to )|judge data/\S+(?!.*--to )|iodie|structure|diff|history|status|drift)"
)


def _unwrapped(text: str) -> Iterator[str]:
    line = ""
    width = 0
    for further in text.splitlines():
        is_of_table = "  " in line.strip() or line.startswith(" " * 19)
        is_label = re.match(r" {4}\S", further) and is_of_table  # of the rows below
        if re.match(r" {4,18}\S", further) and width > _WRAPPED and "  " not in further.strip() and not is_label:
            in_list = re.search(r"\[[\d,-]*,$", line)  # a long list of nodes is broken at a comma
            line = f"{line}{'' if in_list else ' '}{further.strip()}"
        else:
            yield line
            line = further
        width = len(further)
    yield line


#: A row that is indented further has the label of one above it.
_ROWS = 8
#: A line that is followed by one that continues it is longer than this.
_WRAPPED = 75


def unfolded(folded: str) -> list[str]:
    """The nodes of `node[001,004-006]`."""
    match = re.match(r"([\w.-]*)\[([\d,-]+)\]", folded)
    stem, ends = (match[1], [part.partition("-") for part in match[2].split(",")]) if match else ("", [])
    return [
        f"{stem}{number:0{len(first)}d}"
        for first, _, last in ends
        if first
        for number in range(int(first), int(last or first) + 1)
    ]
