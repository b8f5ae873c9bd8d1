"""Nodes that are alike get pages that say the same: no sentence follows noise."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from nodeprint.cli.shared import judge_and_write
from nodeprint.machine.topology.presets import preset
from nodeprint.report import documents
from nodeprint.report.pages import node as node_pages
from nodeprint.report.pages.blocks import Advice, Bullets, FindingBlock, Page, Text
from nodeprint.simulate import Plan, modes_named, write

#: A number, or a range of two, with its unit, and those units whose numbers are compared: percentages are of
#: differences that are near 0.
_NUMBER = re.compile(
    r"([-+±]?\d[\d.,]*)(?: to [-+]?\d[\d.,]*)? ?(%|ns|us|µs|MB/s|GB/s|GHz|Gflop/s|M/s|G/s|times|kB|MiB|KiB)"
)
#: CPUs of which one of several alike parts is named.
_CPUS = re.compile(r"\(CPUs [^)]*\)")
#: The component that is closest to its tolerance: of healthy nodes noise decides which one.
_CLOSEST = re.compile(r"(% of [\d.]+%) \((?:[^()]|\([^()]*\))*\)")
#: Whose quadrants differ towards another socket is each chip's own, and what is left open there is noise itself.
OF_EACH = "towards other sockets"
_COMPARED = ("ns", "µs", "GB/s", "GHz", "times")
#: By how much numbers of twins may differ.
_NOISE = 0.06


@pytest.fixture(scope="module", params=["rome-2x64", pytest.param("milan-2x64", marks=pytest.mark.long)])
def pages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """Pages of healthy nodes, and of node003, in which the path between two quadrants is slow."""
    plan = Plan(
        preset(request.param),
        nodes=4,
        runs=6,
        passes=1,
        cells=True,
        homes=(-1, 10_000),
        modes=modes_named("quadrants"),
        defects=("node003: link q0-q2 +20%",),
    )
    folder = write(plan, tmp_path_factory.mktemp("twins") / "main")
    judge_and_write(folder)
    source = documents.Task(folder, folder / "report", None, figures=None, pseudonyms=False).source
    return {name: node_pages.page(source, name) for name in source.verdict.nodes}


def sentences(page: Page) -> Iterator[str]:
    """All of a page that is written in words."""
    yield from page.lead
    for block in (block for section in page.sections for block in section.blocks):
        match block:
            case Text(text=words) | FindingBlock(sentence=words):
                yield words
            case Bullets(items=items):
                yield from items
            case Advice(text=words, advice=advice):
                yield from (words, advice)
    yield from (picture.caption for picture in page.pictures)


def without_numbers(page: Page) -> dict[str, list[tuple[float, str]]]:
    """By sentence without its numbers that have a unit these."""
    plain = (
        _CLOSEST.sub(r"\1 (component)", _CPUS.sub("(CPUs)", words.replace(page.subject, "NODE")))
        for words in sentences(page)
        if OF_EACH not in words
    )
    return {
        _NUMBER.sub(r"# \2", words): [
            (float(number.strip("+±,.").replace(",", "")), unit) for number, unit in _NUMBER.findall(words)
        ]
        for words in plain
    }


def test_healthy_twins_have_the_same_sentences(pages: dict[str, Page]) -> None:
    first, *twins = (without_numbers(pages[name]) for name in ("node000", "node001", "node002"))
    assert len(first) > 20
    for twin in twins:
        assert twin.keys() == first.keys()
        for words, numbers in first.items():
            for (number, unit), (other, _) in zip(numbers, twin[words], strict=True):
                assert unit not in _COMPARED or other == pytest.approx(number, rel=_NOISE), words


def test_a_path_that_is_slow_is_in_the_sentences(pages: dict[str, Page]) -> None:
    assert without_numbers(pages["node003"]).keys() != without_numbers(pages["node000"]).keys()
