"""Blocks of pages as text: nothing is wider than the terminal, and no name and no number is broken."""

from __future__ import annotations

import math

import pytest

from nodeprint.report import terminal
from nodeprint.report.pages.blocks import Block, Bullets, FactList, MatrixBlock, Section, Table, Text
from tests.support import printed

_NAMES = ("cn[001-004]", "cn005.cluster.example.org")
_SENTENCE = "Core 37 is 12.5% slower than on its peers (interval 11.25 to 13.75%; tolerance 4%: 3.1 times), 103.6 ns"


def shown(*blocks: Block, columns: int) -> list[str]:
    return printed.of_blocks(blocks, columns).splitlines()


def test_paths_are_never_broken() -> None:
    path = "report: /a/very/long/path/that/is/longer/than/the/terminal/cluster.pdf"
    assert shown(Text(path), columns=30) == [path]


@pytest.mark.parametrize("columns", range(30, 110, 7))
def test_no_line_is_wider_and_no_word_is_lost(columns: int) -> None:
    rows = tuple((name, "memory latency", "103.6 ns", _SENTENCE) for name in _NAMES)
    for block in (Text(_SENTENCE), Bullets((_SENTENCE,)), Table((), rows, "llrl", 3), Table((), rows, "llrl")):
        lines = shown(block, columns=columns)
        assert max(map(len, lines)) <= columns
        words = " ".join(lines).split()
        cells = [cell for row in rows for cell in row] if isinstance(block, Table) else [_SENTENCE]
        assert sorted(words) == sorted(" ".join(cells).split())
        assert not any(line.endswith((" 12.5", " 103.6")) for line in lines), "a number stands with its unit"


def test_a_folded_row_goes_on_below_its_own_column() -> None:
    table = Table((), tuple((name, _SENTENCE) for name in _NAMES), "ll", 1)
    lines = shown(table, columns=80)
    (at,) = {line.index("Core 37") for line in lines if "Core 37" in line}
    assert {len(line) - len(line.lstrip()) for line in lines if "cn" not in line} == {at}


def test_a_table_without_room_has_its_first_column_above_the_others() -> None:
    table = Table((), (("memory latency of all", "own node", "103.6 ns"), ("", "other node", "203.6 ns")), "llr")
    assert shown(table, columns=30) == [
        "    memory latency of all",
        "      own node    103.6 ns",
        "      other node  203.6 ns",
    ]


def test_a_narrow_table_omits_its_minor_columns_and_breaks_its_titles() -> None:
    rows = (("latency", "own node", "103.6 ns", "node003"), ("latency", "other node", "203.6 ns", "node001"))
    table = Table(("measurement", "of", "median value", "on"), rows, "llrl", minor=(3,))
    assert shown(table, columns=60) == [
        "    measurement  of          median value  on",
        "    latency      own node        103.6 ns  node003",
        "                 other node      203.6 ns  node001",
    ]
    assert shown(table, columns=40) == [
        "    measurement  of            median",
        "                                value",
        "    latency      own node    103.6 ns",
        "                 other node  203.6 ns",
    ]


def test_a_list_of_nodes_is_broken_behind_a_comma() -> None:
    nodes = f"cn[{','.join(f'{n:03}' for n in range(1, 99, 2))}]"
    lines = shown(Text(f"{nodes}: PASS (SAME)."), columns=40)
    assert max(map(len, lines)) <= 40 and "".join(line.strip() for line in lines).startswith(nodes)
    assert all(line.endswith((",", "]:")) for line in lines[:-1])


def test_facts_have_a_line_each() -> None:
    assert shown(FactList((("job", "2"), ("boot", "a"))), columns=40) == ["  job: 2", "  boot: a"]


def test_missing_values_of_a_matrix_are_dots() -> None:
    none = math.nan
    matrix = MatrixBlock("m", ("0", "1", "2"), ((none, 20.0, 300.0), (20.0, none, none), (300.0, none, none)))
    lines = shown(matrix, columns=80)
    assert lines[2].split() == ["0", ".", "20", "300"] and lines[3].split() == ["1", "20", ".", "."]


@pytest.mark.parametrize("size", [3, 16, 32])
def test_a_matrix_has_its_numbers_whole_or_none(size: int) -> None:
    matrix = MatrixBlock("m", tuple(map(str, range(size))), ((1234.0,) * size,) * size)
    for columns in (60, 100):
        title, _, *rows = shown(matrix, columns=columns)
        assert max(map(len, rows)) <= columns
        numbers = {word for row in rows for word in row.split()[1:]}
        assert numbers in ({"1234"}, {"123"}, set()) and (numbers == {"123"}) == title.endswith(" / 10")


def test_outcomes_are_in_color_and_the_longest_word_wins() -> None:
    """Of spans that overlap the last one counts. A class that is a node's or the messages' has its own color."""
    words = "FAIL (SPLIT): cn1: WARN (SUSPECT). cn2: PASS (SAME). NON-UNIFORM; FAIL (messages between nodes)"
    out = terminal.painted([Section("", (Text(words),))], 200)
    of_words = {out.plain[span.start : span.end]: str(span.style) for span in out.spans}
    assert of_words["WARN (SUSPECT)"] == "bold yellow" and of_words["PASS (SAME)"] == "bold green"
    assert of_words["FAIL (SPLIT)"] == of_words["FAIL (messages between nodes)"] == "bold red"
    assert of_words["NON-UNIFORM"] == "bold yellow"
    assert list(of_words).index("UNIFORM") < list(of_words).index("NON-UNIFORM")


def test_an_outcome_that_is_broken_is_in_color_too() -> None:
    out = terminal.painted([Section("", (Text("cn1: UNDETERMINED (NOT MEASURED)."),))], 20)
    colored = {" ".join(out.plain[span.start : span.end].split()) for span in out.spans}
    assert colored == {"UNDETERMINED (NOT MEASURED)"} and "\n" in out.plain
