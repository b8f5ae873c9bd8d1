"""Which numbers of a statement have no source: each has to be a fact of what is named there, rounded as printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tests.numbers.actions import false_actions, false_differences, false_report, false_settings
from tests.numbers.campaign import Fact, campaigns, quoted, scale
from tests.numbers.claims import false_claims, unnamed
from tests.numbers.facts import facts
from tests.numbers.fleet import of_acceptance
from tests.numbers.statements import Statement, statements, unfolded

#: A number with its unit; neither is part of a word.
_UNIT = (
    r"(?:percentage )?points|%|GiB|KiB|[nuµm]?s\b|[kMG]?B/s|[kMG]?Hz|[kMG]?flop/s|[kMG]?/s|[a-z]+/s\b"
    r"|times\b|tolerances\b"
)
_NUMBER = re.compile(
    rf"(?<![\w.,])([+-]?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w.]*\d)(?: ?({_UNIT}))?(?!\w)"
)
_RANGE = re.compile(rf" (?:to|of) [+-]?\d+(?:\.\d+)?(?:e[+-]\d+)? ?({_UNIT})")
#: A range in a row whose unit stands in the cell before it.
_BARE_RANGE = re.compile(r"[+-]?[\d.]+ to [+-]?[\d.]+(?: \(\d+ of \d+\))?")


@dataclass(frozen=True)
class Number:
    """A printed number: its value and half of its last digit in `unit`, and the text on both sides."""

    token: str
    value: float
    half: float
    unit: str
    left: str
    right: str

    def shows(self, fact: Fact) -> bool:
        """Whether the fact, rounded as the number is, is what is printed."""
        if fact.unit != self.unit or not math.isfinite(fact.value):
            return False
        value = fact.value if self.token[0] in "+-" or self.value < 0 else abs(fact.value)
        if self.token[0] == "-" and value > 0:
            return False
        return abs(value - self.value) <= self.half + 2e-6 * abs(value)


def numbers(statement: Statement, quotes: Iterable[str] = ()) -> Iterator[Number]:
    """The numbers of a statement that no exemption covers."""
    above = ""
    for header, text in statement.cells:
        spans = [match.span() for pattern in EXEMPT for match in re.finditer(pattern, text)]
        spans += [match.span() for words in quotes if words in text for match in re.finditer(re.escape(words), text)]
        if header in IDENTIFIERS:
            continue
        left = f"{header}: " if header else ""
        for match in _NUMBER.finditer(text):
            if any(start <= match.start() and match.end(1) <= end for start, end in spans):
                continue
            behind = _RANGE.match(text, match.end())
            unit = match[2] or (behind[1] if behind else "") or _above(text, match.start(), above)
            above = unit or above
            size, name = scale(unit)
            token = match[1].replace(",", "")
            decimals = len(token.partition("e")[0].partition(".")[2])
            digits, _, exponent = token.lstrip("+-").partition("e")
            whole = max(0, len(digits) - _MOST_DIGITS) if not decimals else 0
            half = 0.5 * 10.0 ** (whole - decimals + int(exponent or 0))
            yield Number(
                token, float(token) * size, half * size, name, left + text[: match.start()], text[match.end() :]
            )


def _above(text: str, at: int, unit: str) -> str:
    """The unit of the cell above or before, for the ends of a range; how many nodes it is of has none."""
    return unit if _BARE_RANGE.fullmatch(text) and "(" not in text[:at] else ""


#: Of a large whole number so many digits are printed, and zeros.
_MOST_DIGITS = 4
#: Columns whose numbers are names.
IDENTIFIERS = ("job", "arguments", "CPUs", "stability")
#: Numbers that need no source, each by what it is.
EXEMPT: Sequence[str] = (
    # identifiers: nodes, parts of machines, jobs and runs, files, commands, processors, versions, checksums
    r"[\w.-]*\[[\d,\-]+\]",
    r"(?i)\b(?:cores?|CPUs?|CC[XD]s?|sockets?|quadrants?|clusters?|(?:home )?(?:NUMA )?nodes?|group|channel|DIMM)"
    r" \d+(?:(?:, | and |[,\u2013-])\d+)*",
    r"(?:family|model|stepping|contract|ticket) \d+",
    r"\bjob\d+\S*|(?i:\bruns?) \d+ of job ?\d+|run\d+\S*",
    r"\b0x[0-9a-f]+\b|\b[0-9a-f]{12,}\b|SHA-?256|\S+\.(?:pdf|html|sh|csv|json|txt|md|sha256)\b\S*",
    r"`[^`]*`|\bmake \S.*?NODES=\S+|sh \S+-check\.sh \d+|/\S*/\S+|\b[\d.]+-sim\b|\b\d+(?:\.\d+){2,}\b",
    r"(?:AMD|Intel)[^,;|]*|DDR\d+(?:-\d+)?|\bL[123]\b|Zen \d",
    # dates
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\dZ?)?)?",
    # scales of colors, and the differences from which on a picture names a CPU
    r"median of its peers, to [\d.]+%|No CPU differs by more than [\d.]+%",
    # results that no export has, with tests of their own: structure, quadrants, levels over time, loaded hops
    r"stability [\d.]+|Socket \d: inside a quadrant.*$|[+-][\d.]+%.* since \d{4}-.*$",
    r"with \d+ GB/s on another CCX.*$|medians of \d+ \w+|reads \d+ bytes a cycle, .*? at least [\d.]+ GHz",
    # constants of the texts and of processors
    r"\d+ double-precision operations per cycle|sleeps of 5 ms|up to 1 it is the same|95%:",
    r"20 runs of 64 nodes|\b[123]:1 reads:writes",
    r"[\d.]+%?(?: \([^()]*)?\.\.\.$",  # where a short message is cut off
    r"lists the \d+ files",
    r"\d+ earlier campaigns?",
    r"The 48 of \d+ nodes that use most",
    r"\b9[05] ?% (?:interval|the same within|of the nodes)|round trip / 2|majority of 60%|more than 40% of the nodes",
    r"5% is 5% more or 4\.8% less",
    r"exit status \d|ends with PASS.*$",
)


def without_source(artifacts: Mapping[str, str], defects: Defects) -> Iterator[str]:
    """A line for each statement with a number that has none."""
    every = list(statements(artifacts))
    for statement in every:
        if wrong := defects.of(statement):
            yield f"{statement.file}: {'; '.join(wrong)}: {statement.text[:400]}\n"
    for one in defects.judged:
        paper, page = artifacts.get(f"{one.name}/report/cluster.pdf"), f"{one.name}/report/cluster.html"
        if paper is not None and (missing := unnamed(paper, one)):
            yield f"{one.name}/report/cluster.pdf: does not name {', '.join(missing)}, which did not pass\n"
        if page in artifacts:
            of_page = (statement for statement in every if statement.file == page)
            yield from (f"{page}: {what}\n" for what in false_settings(of_page, one))
    for file in (file for file in artifacts if file.endswith("/protocol.pdf")):
        yield from (f"{file}: {what}\n" for what in false_report(artifacts[file], defects.judged))


class Defects:
    """What is false in statements about some campaigns."""

    def __init__(self, artifacts: Mapping[str, str], sources: Mapping[str, str]) -> None:
        self.judged = campaigns(artifacts, sources)
        self.known = {campaign.name: Facts(facts(campaign)) for campaign in self.judged}
        self.every = Facts([*(fact for of in self.known.values() for fact in of.facts), *of_acceptance(self.judged)])
        self.quotes = sorted({words for campaign in self.judged for words in quoted(campaign)})
        self._known: dict[Statement, list[str]] = {}

    def of(self, statement: Statement) -> list[str]:
        """What is false in a statement; a claim is if it is of no campaign that it may be about."""
        if statement not in self._known:
            self._known[statement] = self._of(statement)
        return self._known[statement]

    def _of(self, statement: Statement) -> list[str]:
        folders = (statement.file.partition("/report/")[0], statement.file.rpartition("/")[0])
        known = next((self.known[folder] for folder in folders if folder in self.known), self.every)
        named = dict(statement.cells).get("campaign")  # of a row of an acceptance report
        own = [one for one in self.judged if one.name in folders or one.verdict["campaign"] == named] or self.judged
        claims = [[*false_claims(statement, one), *false_differences(statement, one)] for one in own]
        return [
            *(f"no source of {of.token} {of.unit}".strip() for of in unexplained(statement, known, self.quotes)),
            *(claims[0] if claims and all(claims) else []),
            *false_actions(statement, own),
            *(f"`{words}` is no number" for words in re.findall(r"\bnan\b|\binf\b|of unknown \d", statement.text)),
        ]


class Facts:
    """Facts by unit."""

    def __init__(self, of: Iterable[Fact]) -> None:
        self.facts = list(of)
        self.by_unit: dict[str, list[Fact]] = {}
        for fact in self.facts:
            self.by_unit.setdefault(fact.unit, []).append(fact)

    def sources(self, number: Number, context: str) -> list[Fact]:
        """The facts that a number shows where it stands."""
        return [
            fact
            for fact in self.by_unit.get(number.unit, ())
            if number.shows(fact)
            and (
                not fact.left
                or _compiled(f"(?:{fact.left})" if fact.left.endswith("$") else fact.left).search(number.left)
            )
            and (not fact.right or _compiled(fact.right).match(number.right))
            and all(_compiled(word).search(context) for word in fact.words)
        ]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def unexplained(statement: Statement, of: Facts, quotes: Iterable[str]) -> list[Number]:
    """The numbers of a statement without a source."""
    context = expanded(statement.context).lower()
    found = list(numbers(statement, quotes))
    sources = [of.sources(number, context) for number in found]
    without = [number for number, facts in zip(found, sources, strict=True) if not (facts or is_ratio(number, found))]
    records = [{fact.record for fact in facts} for facts in sources if facts]
    known = [of for of in records if "" not in of]
    # a row of one node is of one record; sentences and folded lists of nodes are of several
    is_row = len(statement.cells) > 1 and not re.search(r"\[[\d,-]+\]|\. ", statement.text)
    return found if is_row and not without and known and not set.intersection(*known) else without


def is_ratio(number: Number, found: Sequence[Number]) -> bool:
    """Whether a factor (`times as long`) is that of the value before it and the first of its statement."""
    before = [of for of in found[: found.index(number)] if of.unit == "ns"]
    if number.unit != "times" or not number.right.startswith(" as long") or len(before) < 2:
        return False
    low, high = (
        (before[-1].value + sign * before[-1].half) / (before[0].value - sign * before[0].half) for sign in (-1, 1)
    )
    return low - number.half <= number.value <= high + number.half


def expanded(text: str) -> str:
    """A text in which folded lists of nodes are followed by the nodes' names."""
    named = [name for match in re.finditer(r"[\w.-]*\[[\d,-]+\]", text) for name in unfolded(match[0])]
    return f"{text} | {' '.join(named)}" if named else text
