"""What is kept of an artifact: words as they are, long lists of numbers by their size, range and mean, which any change
moves; of long tables the first rows and a checksum of the others."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

#: So many values, kinds of words, and rows of a table are written out.
_FEW, _KINDS, _ROWS = 4, 6, 8


def number(value: float, digits: int = 4) -> str:
    """A value with the digits that readers see."""
    return f"{value:.{digits}g}" if math.isfinite(value) else "none"


def of_values(values: Sequence[Any]) -> str:
    """A list in short."""
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v)]
    if numbers and len(values) > _FEW:
        mean = mean_of(numbers, 6)
        missing = f", {len(values) - len(numbers)} none" if len(numbers) < len(values) else ""
        return f"{len(values)} values, {number(min(numbers))} to {number(max(numbers))}, mean {mean}{missing}"
    words = [number(v) if isinstance(v, float) else str(v) for v in values]
    kinds = Counter(words)
    if len(words) <= _FEW and len(kinds) == len(words):
        return ", ".join(words)
    if len(kinds) <= _KINDS:
        return ", ".join(f"{word} ({count}x)" if count > 1 else word for word, count in kinds.items())
    return f"{len(words)} values, {checksum(words)}"


def mean_of(numbers: Sequence[float], digits: int) -> str:
    """Their mean, with the digits that the largest of them would have: what cancels out is rounding."""
    largest = max(map(abs, numbers))
    decimals = digits - 1 - math.floor(math.log10(largest)) if largest else 0
    return number(round(math.fsum(numbers) / len(numbers), decimals) + 0.0, digits)


def checksum(lines: Iterable[str]) -> str:
    """What a change of any line changes."""
    return f"checksum {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:12]}"


# --- each kind of artifact ---


def short(name: str, text: str) -> str:
    """What is kept of an artifact."""
    return "".join(f"{line.rstrip()}\n" for line in _kind(name)(text, True))


def long(name: str, text: str) -> str:
    """The artifact as it is compared with that of another commit: nothing is left out, numbers have six digits."""
    return "".join(f"{line.rstrip()}\n" for line in _kind(name)(text, False))


def _kind(name: str) -> Callable[[str, bool], Iterable[str]]:
    ending = name.rpartition(".")[2]
    return {"json": _verdict, "csv": _table, "prom": _metrics, "html": _page, "pdf": _page, "xml": _junit}.get(
        ending, _lines
    )


def _lines(text: str, _: bool) -> Iterable[str]:
    return text.splitlines()


def _junit(text: str, _: bool) -> Iterable[str]:
    return re.sub(r">\s*<", ">\n<", text).splitlines()


def _page(text: str, brief: bool) -> Iterator[str]:
    rows: list[str] = []
    for line in [*(text_of_html(text) if "<html" in text[:1000] else text.splitlines()), ""]:
        if " | " in line:
            rows.append(line)
            continue
        yield from _cut(rows) if brief else rows
        rows = []
        if line:
            yield line


def _cut(rows: Sequence[str]) -> Iterator[str]:
    yield from rows[:_ROWS]
    if others := rows[_ROWS:]:
        yield f"... {len(others)} more rows, {checksum(others)}"


def _metrics(text: str, brief: bool) -> Iterator[str]:
    if not brief:
        yield from text.splitlines()
        return
    values: dict[str, list[float]] = {}
    for line in text.splitlines():
        if line.startswith("# HELP"):
            yield line
        elif not line.startswith("#") and line:
            labels, _, value = line.rpartition(" ")
            values.setdefault(re.sub(r'="[^"]*"', "", labels), []).append(float(value))
    for labels, numbers in values.items():
        yield f"{labels} {of_values(numbers)}"


def _table(text: str, brief: bool) -> Iterator[str]:
    """The table of deviations; in brief the numbers of all rows of a measurement and a term together."""
    rows = list(csv.DictReader(io.StringIO(text)))
    header = list(rows[0]) if rows else []
    yield " | ".join(header)
    if not brief:
        yield from (" | ".join(_rounded(row[name], 5) for name in header) for row in rows)
        return
    texts = [name for name in header if not all(_is_number(row[name]) for row in rows)]
    kinds: dict[str, list[Mapping[str, str]]] = {}
    grouped = [name for name in texts if len({row[name] for row in rows}) <= _GROUPED and name not in _OF_ROWS]
    for row in rows:
        kinds.setdefault(" | ".join(row[name] for name in grouped), []).append(row)
    for kind, members in kinds.items():
        means = [_mean(row[name] for row in members) for name in header if name not in texts]
        labels = checksum(",".join(row[name] for name in texts) for row in members)
        yield f"{kind}: {len(members)} rows, means {' '.join(means)}, {labels}"


#: Columns of words that name single rows, as do those with more kinds of words than this.
_OF_ROWS, _GROUPED = ("node", "job", "group", "started"), 24


def _is_number(text: str) -> bool:
    try:
        return float(text) is not None
    except ValueError:
        return not text


def _mean(texts: Iterable[str]) -> str:
    values = [float(text) for text in texts if text]
    finite = [value for value in values if math.isfinite(value)]
    return mean_of(finite, 5) if finite else "none"


def _rounded(text: str, digits: int) -> str:
    return number(float(text), digits) if text and _is_number(text) and "." in text else text


def _verdict(text: str, brief: bool) -> Iterator[str]:
    """Every value of a verdict by its path; in brief those of lists, and of nodes with one outcome, together."""
    content = json.loads(text)
    values: dict[str, list[Any]] = {}
    for path, value in _leaves(_grouped(content) if brief else content, ()):
        if brief and value in _BLANK:
            continue
        keys = ("*" if isinstance(key, int) or _NUMBERED.fullmatch(key) else key for key in path) if brief else path
        values.setdefault(".".join(map(str, keys)), []).append(value)
    for name, of_path in values.items():
        yield f"{name}: {of_values(of_path) if brief else _word(of_path[0])}"


#: What most of a verdict is; it is seen where it comes and goes.
_BLANK = ("", "empty", None, False, 0)
#: A key that is the number of a CPU, a job or a run.
_NUMBERED = re.compile(r"-?\d+|(?:job|run)\d+.*")


def _grouped(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """A verdict whose nodes are lists by their outcome, each with its fingerprint in one value."""
    groups: dict[str, list[Any]] = {}
    for name, node in content.get("nodes", {}).items():
        fingerprint = ", ".join(f"{key} {value}" for key, value in node.get("fingerprint", {}).items())
        groups.setdefault(str(node.get("outcome")), []).append({"name": name, **node, "fingerprint": fingerprint})
    return {**content, "nodes": groups}


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
    elif not value:
        yield path, "empty"
    else:
        for key, item in items:
            yield from _leaves(item, (*path, key))


def _word(value: Any) -> str:
    return number(value, 6) if isinstance(value, float) else str(value)


# --- pages ---


class _Words(HTMLParser):
    """What a browser shows of a page: lines, the cells of a row in one."""

    _HIDDEN = ("script", "style", "head")
    _CELLS = ("td", "th", "dd")
    _INLINE = ("a", "b", "code", "em", "i", "mark", "span", "strong", "sub", "sup", "text", "tspan", "small")

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[str] = [""]
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in self._HIDDEN
        if tag in self._CELLS:
            self.rows[-1] += " | "
        elif tag not in self._INLINE:
            self.rows.append("")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in self._HIDDEN
        if tag not in (*self._INLINE, *self._CELLS, "dt"):
            self.rows.append("")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.rows[-1] += data


def text_of_html(page: str) -> list[str]:
    """The lines of an HTML page."""
    words = _Words()
    words.feed(page)
    return [line for row in words.rows if (line := " ".join(row.split()).strip("| "))]
