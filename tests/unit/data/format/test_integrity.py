"""What a record file proves of itself: every accidental change of one that has a checksum is seen."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

from nodeprint.data.format import integrity, records
from nodeprint.errors import NodeprintError
from tests.support.made_records import TRAILER, cell, cell_header, header, lines, pair

PAIRS = ((0, 1), (0, 2), (1, 2))
HEAD = header(cpus=[0, 1, 2], passes=2)
PASS = {"record": "pass", "pass": 0, "home": 0, "line_set": [1, 2]}
WHOLE = [HEAD, PASS, *(pair(a, b, number, 50.0 + a + b) for number in (0, 1) for a, b in PAIRS)]


def sealed(*content: dict[str, object]) -> str:
    """A record file as a kernel writes it."""
    count = sum(record["record"] == "pair" for record in content)
    return integrity.sealed(lines(*content), TRAILER | {"pairs": count})


def problem(folder: Path, text: str | bytes) -> str:
    """Why a record file is none; empty where it is complete."""
    path = folder / "x.jsonl"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    try:
        return "" if records.read(path).complete else "not complete"
    except NodeprintError as error:
        return str(error)


def test_a_sealed_file_is_whole_and_its_sum_is_that_of_zlib(tmp_path: Path) -> None:
    text = sealed(*WHOLE)
    assert problem(tmp_path, text) == ""
    trailer = json.loads(text.splitlines()[-1])
    assert trailer["crc32"] == zlib.crc32(text[: text.rindex(',"crc32":')].encode())
    assert trailer["lines_by_kind"] == {"header": 1, "pass": 1, "pair": 6}


def test_a_continued_file_is_summed_over_its_segments(tmp_path: Path) -> None:
    assert problem(tmp_path, sealed(*WHOLE[:5], HEAD | {"segment": 1}, *WHOLE[5:])) == ""


def test_every_flipped_byte_is_seen(tmp_path: Path) -> None:
    """Each byte of the file once, by a bit of it; also in the trailer and in the sum itself."""
    text = sealed(*WHOLE).encode()
    rng = random.Random(1)
    for at in range(len(text)):
        changed = bytearray(text)
        changed[at] ^= 1 << rng.randrange(8)
        assert problem(tmp_path, bytes(changed)), (at, text[max(0, at - 20) : at + 20], chr(changed[at]))


def test_every_changed_digit_is_seen(tmp_path: Path) -> None:
    text = sealed(*WHOLE)
    for at, letter in enumerate(text):
        if letter.isdigit():
            assert problem(tmp_path, text[:at] + str((int(letter) + 1) % 10) + text[at + 1 :]), text[at - 20 : at + 1]


def test_lines_that_are_gone_doubled_or_swapped_are_seen(tmp_path: Path) -> None:
    text = sealed(*WHOLE).splitlines(keepends=True)
    for i, line in enumerate(text):
        assert problem(tmp_path, "".join(text[:i] + text[i + 1 :]))
        assert problem(tmp_path, "".join([*text[:i], line, *text[i:]]))
        for j in range(i):
            swapped = text.copy()
            swapped[i], swapped[j] = text[j], line
            assert problem(tmp_path, "".join(swapped))


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        ([*WHOLE, pair(0, 1, 1)], 9, "for the second time"),
        ([*WHOLE[:7], pair(2, 1, 0, 53.0)], 8, "for the second time"),
        ([HEAD, pair(1, 1)], 2, "with itself"),
        ([HEAD, pair(0, 1), pair(0, 7)], 3, "key 'b' is not among the header's CPUs"),
        ([HEAD, pair(0, 1, 2)], 2, "beyond the header's passes"),
        ([HEAD, pair(0, 1, ci_low_ns=51.0)], 2, "key 'ci_low_ns' is above 'latency_ns'"),
        ([HEAD, pair(0, 1, ci_high_ns=49.0)], 2, "key 'latency_ns' is above 'ci_high_ns'"),
        ([HEAD, pair(0, 1, min_ns=60.0)], 2, "key 'min_ns' is above 'median_ns'"),
        ([HEAD, PASS, pair(0, 1, latency_ns=0.0001)], 3, "at least 0.1"),
        ([HEAD, pair(0, 1, latency_ns=1e13)], 2, "at most 1e+12"),
        ([HEAD, HEAD | {"segment": 1, "job": 7}, pair(0, 1)], 2, "key 'job' is not as in the first header"),
        ([HEAD, pair(0, 1), HEAD | {"segment": 2}], 3, "key 'segment' is 2, where 1 follows"),
    ],
)
def test_what_no_kernel_writes_is_named_with_its_line(
    content: list[dict[str, object]], line: int, why: str, tmp_path: Path
) -> None:
    """Also in a record of version 0.1.0, which has no checksum."""
    for text in (sealed(*content), lines(*content, TRAILER)):
        said = problem(tmp_path, text)
        assert f"line {line}: " in said
        assert why in said


def test_cells_are_looked_at_by_what_the_header_says_of_them(tmp_path: Path) -> None:
    head = cell_header(cpus=[0, 4])
    assert problem(tmp_path, lines(head, cell(0, "l1"), cell(4, "l1"), cell(0, "l2", core_hz=None), TRAILER)) == ""
    assert "'cpu' is not among" in problem(tmp_path, lines(head, cell(3, "l1"), TRAILER))
    assert "second time" in problem(tmp_path, lines(head, cell(0, "l1"), cell(0, "l1"), TRAILER))
    assert "less than a cycle" in problem(tmp_path, lines(head, cell(0, "l1", latency_ns=0.01), TRAILER))
    assert "more than there can be in Hz" in problem(tmp_path, lines(head, cell(0, "l1", core_hz=3e12), TRAILER))


def test_a_record_of_the_first_version_is_counted_by_its_trailer_alone(tmp_path: Path) -> None:
    text = lines(*WHOLE, TRAILER)
    assert "crc32" not in text
    assert problem(tmp_path, text) == ""
    without = "".join(text.splitlines(keepends=True)[:5] + text.splitlines(keepends=True)[8:])
    assert "line 6: 3 pairs are here, and the trailer counts 6" in problem(tmp_path, without)


def test_a_pair_that_was_named_repeatedly_may_be_there_repeatedly(tmp_path: Path) -> None:
    head = HEAD | {"pairs_hash": "0123456789abcdef"}
    assert problem(tmp_path, sealed(head, pair(0, 1), pair(0, 1))) == ""


def test_rounded_values_are_in_order(tmp_path: Path) -> None:
    """An interval has four digits, the value five: 123.45 lies in 123.5 to 123.5."""
    value: dict[str, Any] = {
        "ci_low_ns": 123.5,
        "ci_high_ns": 123.5,
        "min_ns": 123.5,
        "median_ns": 123.5,
        "p99_ns": 123.5,
    }
    assert problem(tmp_path, sealed(HEAD, pair(0, 1, latency_ns=123.45, **value))) == ""


def test_ranks_are_what_pairs_are_of_where_the_header_has_them(tmp_path: Path) -> None:
    head = header(kernel="linktest", cpus=[0], home=None, ranks=[["cn1", 0], ["cn2", 0], ["cn3", 0]])
    assert problem(tmp_path, sealed(head, pair(0, 2, home=-1))) == ""
    assert "'b' is not among" in problem(tmp_path, sealed(head, pair(0, 3, home=-1)))
    assert problem(tmp_path, sealed(head, pair(0, 2, 9, home=-1))) == "", (
        "it measures passes for as long as it is asked"
    )


def test_a_file_that_is_not_complete_is_left_to_its_kernel(tmp_path: Path) -> None:
    assert problem(tmp_path, lines(HEAD, pair(0, 1), pair(0, 1))) == "not complete"
