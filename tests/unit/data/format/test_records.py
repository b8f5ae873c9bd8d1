"""The record reader on good, cut, garbled and hostile files."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.data.format import record_format, records
from nodeprint.errors import NodeprintError
from tests.support.made_records import TRAILER, cell, cell_header, header, lines, pair

GOOD = lines(header(), {"record": "pass", "pass": 0, "home": 0, "line_set": [1, 2]}, pair(0, 1), pair(0, 1, 1), TRAILER)


def write(folder: Path, content: str | bytes, name: str = "coherence-cas.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_whole_file(tmp_path: Path) -> None:
    file = records.read(write(tmp_path, GOOD))
    assert file.complete
    assert list(file.pairs["pass"]) == [0, 1]
    assert file.pairs["latency_ns"][0] == 50.0
    assert file.notes == ()


def test_compressed_reads_the_same(tmp_path: Path) -> None:
    plain = records.read(write(tmp_path, GOOD))
    packed = records.read(write(tmp_path, gzip.compress(GOOD.encode()), "coherence-cas.jsonl.gz"))
    assert packed.headers == plain.headers
    assert list(packed.pairs["latency_ns"]) == list(plain.pairs["latency_ns"])


def test_a_continued_file_has_two_segments(tmp_path: Path) -> None:
    text = lines(header(), pair(0, 1), header(segment=1), pair(0, 1, 1, flags=["mixed_lines"]), TRAILER)
    file = records.read(write(tmp_path, text))
    assert [h["segment"] for h in file.headers] == [0, 1]
    assert list(file.pairs["flags"]) == [0, record_format.FLAGS["mixed_lines"]]
    assert file.complete


def test_cells_are_columns_by_their_dims(tmp_path: Path) -> None:
    file = records.read(
        write(tmp_path, lines(cell_header(), cell(1, "l2", 0, 6.0), cell(0, "l1", 1, core_hz=None), TRAILER))
    )
    assert file.dims == ("cpu", "level")
    assert file.units == {"latency_ns": "ns", "core_hz": "Hz"}
    assert list(file.cells["cpu"]) == [1, 0]
    assert list(file.cells["level"]) == ["l2", "l1"]
    assert list(file.cells["pass"]) == [0, 1]
    assert list(file.cells["latency_ns"]) == [6.0, 5.0]
    assert np.isnan(file.cells["core_hz"][1])
    assert len(file.pairs["a"]) == 0


def test_what_is_not_applicable_says_why(tmp_path: Path) -> None:
    empty = TRAILER | {"cells": 0}
    file = records.read(write(tmp_path, lines(cell_header(applicable=False, reason="one NUMA node"), empty)))
    assert file.complete
    assert file.not_applicable == "one NUMA node"
    assert records.read(write(tmp_path, lines(cell_header(), cell(0, "l1"), TRAILER))).not_applicable is None


@given(cut=st.integers(0, len(GOOD)))
def test_a_cut_file_keeps_every_whole_line(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = write(tmp_path_factory.mktemp("cut"), GOOD[:cut])
    whole = GOOD[:cut].count("\n")
    if whole == 0:
        with pytest.raises(NodeprintError, match="line 1"):
            records.read(path)
        return
    file = records.read(path)
    assert len(file.pairs["a"]) == GOOD[:cut].count('"record": "pair"', 0, GOOD[:cut].rfind("\n") + 1)
    assert bool(file.notes) == (not GOOD[:cut].endswith("\n"))
    assert all(f"line {whole + 1}: cut in the middle" in note for note in file.notes)
    assert file.complete == (whole == 5)


@given(cut=st.integers(20, 200))
def test_a_cut_compressed_file_never_crashes(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = write(tmp_path_factory.mktemp("cut"), gzip.compress(GOOD.encode())[:cut], "x.jsonl.gz")
    try:
        assert not records.read(path).complete
    except NodeprintError as error:
        assert "x.jsonl.gz" in str(error)


def test_a_seed_of_64_bits_is_read(tmp_path: Path) -> None:
    file = records.read(write(tmp_path, lines(header(seed=2**64 - 1), pair(0, 1), TRAILER)))
    assert file.header["seed"] == 2**64 - 1


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", 1),
        ("\0" * 4096, 1),
        ("\0" * 4096 + "\n", 1),
        ("hello\n", 1),
        (lines(pair(0, 1)), 1),
        (lines(header(schema=99)), 1),
        (lines(header(cpus="0-1")), 1),
        (lines(header()) + "{}\n", 2),
        (lines(header()) + "[1]\n", 2),
        (lines(header()) + "garbage\n" + lines(pair(0, 1)), 2),
        (lines(header(), pair(0, 1, latency_ns=-1.0)), 2),
        (lines(header(), pair(0, 1, latency_ns=0.0)), 2),
        (lines(header()) + json.dumps(pair(0, 1)).replace("50.0", "NaN") + "\n", 2),
        (lines(header()) + json.dumps(pair(0, 1)).replace("50.0", "1e999") + "\n", 2),
        (lines(header(), pair(0, 1) | {"a": "0"}), 2),
        (lines(header(), pair(0, 1) | {"a": True}), 2),
        (lines(header(), pair(0, 1, flags=["lucky"])), 2),
        (lines(header(), TRAILER, pair(0, 1)), 3),
        (lines(header()) + "[" * 100_000 + "\n", 2),
        (lines(header(), pair(0, 1)) + lines(pair(0, 2)).strip() + lines(pair(0, 3)) + "\n", 3),
        (lines(header(), pair(0, 1)) + lines(pair(0, 2)).strip() + lines(pair(0, 3)).replace(", ", ",\n", 1), 3),
        (lines(header(), pair(0, 1), TRAILER, header(), TRAILER, pair(0, 1)), 6),
        (lines(header(), cell(0, "l1")), 2),
        (lines(cell_header(cells={"dims": ["cpu"]})), 1),
        (lines(cell_header(cells={"dims": ["cpu", "run"], "values": {}})), 1),
        (lines(cell_header(cells={"dims": ["cpu", "cpu"], "values": {}})), 1),
        (lines(cell_header(applicable=False)), 1),
        (lines(cell_header(), cell(0, "l1") | {"cpu": 0.5}), 2),
        (lines(cell_header(), cell(0, "l1") | {"level": None}), 2),
        (lines(cell_header(), cell(0, "l1") | {"pass": "0"}), 2),
        (lines(cell_header(), cell(0, "l1", latency_ns=True)), 2),
        (lines(cell_header(), cell(0, "l1", flags=["lucky"])), 2),
        (lines(cell_header()) + json.dumps(cell(0, "l1")).replace("5.0", "1e999") + "\n", 2),
        *((lines(header(), pair(0, 1) | {key: 2**63}), 2) for key in ("a", "b", "home", "pass")),
        (lines(header(run=2**70), pair(0, 1)), 1),
        (lines(header(cpus=[0, 2**64]), pair(0, 1)), 1),
        (lines(header(clock={"source": "tsc", "hz": 10**400}), pair(0, 1)), 1),
        (lines(header(clock={"source": "tsc", "hz": 2**63}), pair(0, 1)), 1),
        (lines(header(seed=2**64), pair(0, 1)), 1),
        (lines(cell_header(), cell(-(2**70), "l1")), 2),
        (lines(header(), pair(0, 1) | {"latency_ns": 10**400}), 2),
        (lines(header(), pair(0, 1), TRAILER | {"elapsed_s": 10**400}), 3),
    ],
)
def test_anything_else_is_refused_with_its_line(tmp_path: Path, content: str, line: int) -> None:
    with pytest.raises(NodeprintError) as refusal:
        records.read(write(tmp_path, content))
    assert f"coherence-cas.jsonl, line {line}:" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (pair(0, 1) | {"a": "0"}, "pair key 'a' must be a whole number of at least 0"),
        (
            pair(0, 1, latency_ns=-1.0),
            "pair key 'latency_ns' must be a finite number of at least 0.1 and of at most 1e+12",
        ),
        (
            pair(0, 1, flags=["lucky"]),
            "pair key 'flags[0]' must be one of disturbed, mixed_lines, moved",
        ),
        ({"record": "pair", "a": 0}, "pair key 'b' is missing"),
        (cell(0, "l1"), "a cell, but the header has no key 'cells'"),
        (header(host=None), "header key 'host' must be a text"),
        (header(start_time="yesterday"), "header key 'start_time' must be a time as 2026-12-31T00:00:00Z"),
        (header(clock={"source": "tsc", "hz": 0}), "header key 'clock.hz' must be a finite number above 0"),
        (header(applicable=False), "header key 'reason' is missing, though it is not applicable"),
        (header(schema=2), "schema version 2, this nodeprint reads 1; use the nodeprint that wrote it"),
        ({"record": "load_second", "pass": 0}, "load_second key 'second' is missing"),
        ({"record": "pear"}, "unknown record 'pear'"),
    ],
)
def test_a_bad_line_names_its_key_and_what_that_must_be(
    tmp_path: Path, record: dict[str, object], sentence: str
) -> None:
    with pytest.raises(NodeprintError) as refusal:
        records.read(write(tmp_path, lines(header(), record)))
    assert f"coherence-cas.jsonl, line 2: {sentence}" in str(refusal.value)


@pytest.mark.parametrize(("key", "value"), [("level", None), ("core_hz", "fast"), ("latency_ns", [1])])
def test_a_bad_cell_names_the_coordinate_or_value_of_its_own_header(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(NodeprintError, match=f"line 2: cell key '{key}' must be a (whole|finite) number"):
        records.read(write(tmp_path, lines(cell_header(), cell(0, "l1") | {key: value})))


@given(junk=st.binary(max_size=300))
def test_junk_never_crashes(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    with pytest.raises(NodeprintError):
        records.read(write(tmp_path_factory.mktemp("junk"), junk))


@given(st.data())
def test_pairs_read_at_once_are_those_read_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A line that ends with a blank sends the whole file the slow way."""
    number = st.none() | st.floats(-1e3, 1e3) | st.integers(0, 99) | st.just("x") | st.just(True)
    extra = st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("latency_ns", "p99_ns", "clock_a_ghz"), number)
        | {"flags": st.lists(st.sampled_from(["moved", "disturbed", "odd"]), max_size=2)}
        | {"home": number},
    )
    found = [pair(0, b) | more for b, more in enumerate(data.draw(st.lists(extra, min_size=1, max_size=4)), start=1)]
    text = lines(header(), *found, TRAILER)
    read = []
    for one in (text, text[:-1] + " \n"):
        path = write(tmp_path_factory.mktemp("pairs"), one)
        try:
            read.append({key: column.tolist() for key, column in records.read(path, "it").pairs.items()})
        except NodeprintError as error:
            read.append({"": [str(error)]})
    assert repr(read[0]) == repr(read[1])
