"""See whether every line between the results of a text is explained.

A line between two results may name a node, a GPU, a compiler or a number of threads, in any form. Results that differ
in something that is no axis of theirs would be taken for runs of one experiment. A line that is the same before all
results is of the tool, or tells nothing apart. Names, dates and messages of programs are known. With any other line,
the text is rejected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import host_words, path_fields
from nodeprint.readers.tool_output import Axis, ToolValue


@dataclass(frozen=True)
class ResultLines:
    """The place of one result of a `tool`: the `first` and `last` line (from 1) with a value, and whose it is."""

    tool: str
    first: int
    last: int
    node: str
    copy: Axis = field(default_factory=dict)


def results_of(tool: str, values: Iterable[ToolValue], node: str, copy: Axis) -> list[ResultLines]:
    """The results of one output, in the order of lines: a value that was there begins the next."""
    out: list[ResultLines] = []
    seen: set[tuple[object, ...]] = set()
    for value in sorted((value for value in values if value.line), key=lambda value: value.line):
        place = (value.metric, *sorted(map(str, value.place.items())))
        if place in seen or not out:
            out.append(ResultLines(tool, value.line, value.line, value.node or node, copy))
            seen = set()
        seen.add(place)
        last = out.pop()
        out.append(ResultLines(tool, last.first, max(last.last, value.line), last.node, copy))
    return out


#: What is put in place of the parts of a line that are known, without a letter, so that these are no words.
_NAME, _COUNT, _NUMBER = "\x01", "\x02", "0"
_WORD = re.compile(r"[A-Za-z0-9](?:[\w.]|-(?=\w))*")
_RUN = re.compile(
    rf"\b(?:{host_words.RUN}|seed)(?:\b[\s#:=_-]*|_?)"
    r"\d+(?:\s*(?:/|of)\s*\d+)?\b",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\b(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+)?(?:\d{1,2}\s+)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"[a-z]*\s+\d{1,4}\b|\b\d{4}-\d\d-\d\d(?:T[\d:.,+-]+Z?)?|\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[AP]M)?|\b\d+m\d+(?:\.\d+)?s\b"
    r"(?:\s+(?:UTC|GMT|CES?T|[ECMP][SD]T)\b)?",
    re.IGNORECASE,
)
#: Messages of programs: they say nothing of the results beside them.
_MESSAGE = re.compile(
    r"\b(?:error|warning|warn|failed|failure|refused|denied|unreachable|timed out|no route|not found|no such|cannot"
    r"|fault|core dumped|aborted|terminated|killed|cancelled|permanently added|exited|closed|unavailable|not connected"
    r"|not return)\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_HEADINGS = re.compile(r"^(?:-{4,}|={4,}|:{4,}|==> .* <==)$")
#: A line with more words is a sentence or a row of a table: its numbers are no settings.
_MOST_WORDS = 10
#: Words beside a number that says how an experiment was done.
_SETTING = re.compile(
    r"\b(?:\w*threads?|ranks?|np|procs?|processes|tasks?|cores?|size|nb|n|block|affinity|places|nodes?)\b",
    re.IGNORECASE,
)
#: Numbers, and words with a number.
_VARIED = re.compile(r"(?<![\w.])(?:[A-Za-z][\w-]*\d[\w.-]*|\d+[A-Za-z]\w*(?!\.)|\d+(?:\.\d+)?(?![\w.]))")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")


def unexplained(
    lines: Sequence[str], results: Sequence[ResultLines], names: Collection[str], explained: Collection[int]
) -> tuple[int, str] | None:
    """The number (from 1) and text of the first line between the results of a text that is not explained.

    `names` are the hosts that the text names. `explained` are the numbers (from 0) of lines whose meaning is known.
    """
    ordered = sorted(results, key=lambda result: result.first)
    known = {name.lower() for name in names} | {name.partition(".")[0].lower() for name in names}
    known = {name for name in known if not name.isdecimal()}  # that may be any number
    between = _between(lines, ordered)
    form_of = cache(lambda line: _form(line, known))  # a log has many lines and few different ones
    forms = [{form_of(lines[number]): number for number in own} for own in between]
    usual = _usual(ordered, forms)
    for own, of_gap, explaining in zip(between[1:], forms[1:], usual[1:], strict=False):
        of_line = {number: form for form, number in of_gap.items()}
        for number in own:
            form = of_line.get(number, "")
            if number not in explained and form not in explaining and _says_something(lines[number], form):
                return number + 1, lines[number].strip()
    for tool in dict.fromkeys(result.tool for result in ordered):
        of_tool = [at for at, result in enumerate(ordered) if result.tool == tool]
        if len(of_tool) > 1:
            found = _setting(lines, [ordered[at] for at in of_tool], [forms[at] for at in of_tool], explained)
            if found is not None:
                return found
    return None


def _between(lines: Sequence[str], results: Sequence[ResultLines]) -> list[list[int]]:
    """The numbers (from 0) of filled lines before each result, and behind the last."""
    ends = [0, *(result.last for result in results)]
    starts = [*(result.first - 1 for result in results), len(lines)]
    return [
        [number for number in range(end, start) if lines[number].strip()]
        for end, start in zip(ends, starts, strict=True)
    ]


def _usual(results: Sequence[ResultLines], forms: Sequence[Mapping[str, int]]) -> list[set[str]]:
    """By result the forms of lines that are usual before it. Those before all results of its tool are, and those behind
    all results of the tool before. So are those of the first result of each node, and of each copy."""
    usual: list[set[str]] = [set() for _ in results]
    for tool in dict.fromkeys(result.tool for result in results):
        own = [at for at, result in enumerate(results) if result.tool == tool]
        for begins in _beginnings([results[at] for at in own]):
            places = [own[at] for at in begins]
            ends = [own[at - 1] for at in begins]  # the last ends what the first begins
            for at in places:
                usual[at] |= _common([forms[at] for at in places])
            for at in ends:
                if at + 1 < len(results):
                    usual[at + 1] |= _common([forms[at + 1] for at in ends])
    return usual


def _beginnings(results: Sequence[ResultLines]) -> list[list[int]]:
    """The places of results that begin something: each does, and those of another node and of another copy."""
    keys = [[str(at) for at in range(len(results))], [one.node for one in results], [str(one.copy) for one in results]]
    return [[at for at, key in enumerate(own) if not at or key != own[at - 1]] for own in keys]


def _common(forms: Sequence[Mapping[str, int]]) -> set[str]:
    return {*forms[0]}.intersection(*forms[1:])


def _form(line: str, names: Collection[str]) -> str:
    """A line in which hosts, runs, dates and numbers are alike."""
    text = _RUN.sub(_COUNT, _DATE.sub(_COUNT, line.strip()))
    text = _WORD.sub(lambda match: _NAME if match[0].rstrip(".").lower() in names else match[0], text)
    return _DIGITS.sub(_NUMBER, text)


def _says_something(line: str, form: str) -> bool:
    return any(letter.isalpha() for letter in form) and not _MESSAGE.search(line) and not _HEADINGS.match(line.strip())


def _setting(
    lines: Sequence[str], results: Sequence[ResultLines], forms: Sequence[Mapping[str, int]], explained: Collection[int]
) -> tuple[int, str] | None:
    """The first line of the same form before all results whose number tells those of a node apart, as `threads: 8` and
    `threads: 16` do."""
    for form in sorted(_common(forms), key=lambda form: forms[1][form]):
        at = [own[form] for own in forms]
        if len(form.split()) > _MOST_WORDS or at[1] in explained or _NUMBER not in form:
            continue
        rows = [_VARIED.findall(_RUN.sub("", _DATE.sub("", lines[number]))) for number in at]
        for values in zip(*rows, strict=False):
            of_nodes: dict[tuple[str, str], list[str]] = {}
            for result, value in zip(results, values, strict=True):
                of_nodes.setdefault((result.node, str(result.copy)), []).append(value)
            if _is_setting([*of_nodes.values()], form):
                return at[1] + 1, lines[at[1]].strip()
    return None


def _is_setting(of_nodes: Sequence[Sequence[str]], form: str) -> bool:
    several = [values for values in of_nodes if len(values) > 1]
    if not any(len({*values}) > 1 for values in several):
        return False
    are_plain = all(_PLAIN.fullmatch(value) for values in several for value in values)
    are_integers = are_plain and not any("." in value for values in several for value in values)
    if not are_plain or (_SETTING.search(form) and are_integers):
        return True
    if len(several) > 1:
        distinct = all(len({*values}) == len(values) for values in several)
        return distinct and len({tuple(values) for values in several}) == 1
    times = Counter(several[0])
    steps = {round(two - one, 6) for one, two in pairwise(sorted(map(float, times)))}
    return len({*times.values()}) == 1 and (steps in ({1}, {0.1}) or host_words.are_sizes([*times]))


def rejection(number: int, text: str, where: str) -> NodeprintError:
    """The rejection of a text with an unexplained line."""
    what = f"`{printable(text, 60)}` tells results apart, and nothing says whether it is a node, a run or a variant"
    return NodeprintError(
        what,
        where=where,
        line=number,
        advice=f"judge variants apart, or state it by --line {_proposed(text)!r}, with node, run or gpu for ?",
    )


def _proposed(text: str) -> str:
    """A pattern for a line. Its last word with a number, or else its last word, is the unknown part."""
    words = list(_WORD.finditer(text))
    chosen = next((match for match in reversed(words) if any(map(str.isdigit, match[0]))), words[-1] if words else None)
    return f"{text[: chosen.start()]}{path_fields.UNKNOWN}{text[chosen.end() :]}" if chosen else text
