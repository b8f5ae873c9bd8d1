"""What a terminal prints of a campaign, as wide as its longest line unless the columns are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nodeprint.judge.verdict import NodeVerdict, Verdict
from nodeprint.report import terminal
from nodeprint.report.pages import brief
from nodeprint.report.pages.blocks import Block, Section
from tests.support import verdicts

WIDE = 10_000


def of_blocks(blocks: Iterable[Block], columns: int = WIDE) -> str:
    return of_sections([Section("", tuple(blocks))], columns)


def of_sections(sections: Iterable[Section], columns: int = WIDE) -> str:
    return terminal.painted(sections, columns).plain


def medians(nodes: Mapping[str, NodeVerdict], columns: int = WIDE) -> list[str]:
    return of_sections(brief.medians_of(verdicts.verdict(dict(nodes))), columns).splitlines()


def summary(verdict: Verdict, *, most: int = 0, remarks: Sequence[str] = ()) -> str:
    return of_blocks(brief.summary(verdict, most=most, remarks=remarks))


def campaign(folder: Path, columns: int = WIDE) -> str:
    return of_sections(brief.campaign(folder), columns)
