"""What things are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.judge.verdict import Component
from nodeprint.report import names


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (5.443e10, "1/s", "54.43 G/s"),
        (1.992e6, "1/s", "1.992 M/s"),
        (1.006e4, "1/s", "10.06 k/s"),
        (12.0, "1/s", "12 1/s"),
        (float("nan"), "1/s", "unknown"),
        (0.05, "share", "5%"),
        (1500.0, "ns", "1.5 \N{MICRO SIGN}s"),
    ],
)
def test_values_have_no_exponent(value: float, unit: str, words: str) -> None:
    assert names.quantity(value, unit) == words


def test_long_names_keep_their_ends() -> None:
    assert names.shortened("cn001", 10) == "cn001"
    assert names.shortened("a" * 30 + "017", 12) == "aaaaa\N{HORIZONTAL ELLIPSIS}aaa017"


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"socket": 1, "memory_node": 0}, "memory of NUMA node 0 from socket 1"),
        ({"cpu_node": 1, "memory_node": 0}, "memory of NUMA node 0 from the CPUs of NUMA node 1"),
        ({"gpu": "0x0f", "peer gpu": "0x17"}, "gpu 0x0f, peer gpu 0x17"),
    ],
)
def test_part_has_one_name_before_and_after_it_was_written(where: dict[str, int | str], words: str) -> None:
    for order in (where, dict(reversed(where.items()))):
        assert names.component(Component("memory", "socket", order)) == words
        assert names.place(order) == words


def test_an_interval_says_which_runs_it_is_of() -> None:
    assert names.over_runs(56.8, 66.7, "ns", 3) == "56.8 to 66.7 ns"
    assert names.over_runs(59.5, 61.5, "ns", 6, 1) == "59.5 to 61.5 ns (5 of 6 runs)"
    assert names.over_runs(81_300, 20_100_000, "ns", 3) == "81.3 \N{MICRO SIGN}s to 20.1 ms"
    assert names.over_runs(26, 122, "ns", 3, 3) == "all runs: 26 to 122 ns"
    assert names.over_runs(float("nan"), float("nan"), "ns", 1) == ""


def test_a_file_has_its_nodes_name_or_one_that_can_be_a_files() -> None:
    assert names.file_stem("cn-01.site_2") == "cn-01.site_2"
    assert names.file_stem("a" * 200) == "a" * 200
    cut = names.file_stem("a/" * 100)
    assert cut.startswith("a_" * 40 + "-") and len(cut) == 80 + 1 + 8
    assert all(names.file_stem(name) != name for name in ("cluster", "figures", ".hidden", "a" * 201))
    assert names.file_stem("a/b") != names.file_stem("a_b") != names.file_stem("a:b") != names.file_stem("a/b")


def test_nodes_are_folded_and_other_names_are_shown_in_eighty_letters() -> None:
    assert names.nodes(["cn002", "cn001", "gpu7"]) == "cn[001-002],gpu7"
    assert names.nodes(["a b" * 27, "cn001"]) == f"cn001,{('a b' * 27)[:76]}...", "cut between words"
    assert names.nodes(["a b" + "x" * 77]) == "a b" + "x" * 77 and names.nodes([]) == ""


def test_numbers_of_things_and_lists() -> None:
    assert [names.counted(count, "node") for count in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
    assert names.counted(2, "entry", "entries") == "2 entries"
    assert [names.listed(items) for items in ([], ["a"], ["a", "b"], "abc")] == ["", "a", "a and b", "a, b and c"]


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (None, ""),
        (0, ""),
        (1000, "1,000 B"),
        (1024, "1 KiB"),
        (65536, "64 KiB"),
        (1 << 20, "1 MiB"),
        (3 << 20, "3 MiB"),
    ],
)
def test_sizes_of_messages(size: float | None, words: str) -> None:
    assert names.message_size(size) == words


def test_names_of_exactly_so_many_letters_are_kept() -> None:
    assert names.shortened("a" * 12, 12) == "a" * 12 and len(names.shortened("a" * 13, 12)) == 12
    assert names.shortened("abcdefg", 5) == "ab\N{HORIZONTAL ELLIPSIS}fg"


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (61.34, "ns", "61.3 ns"),
        (999.4, "ns", "999 ns"),
        (999.6, "ns", "1 \N{MICRO SIGN}s"),
        (1.14e6, "ns", "1.14 ms"),
        (2.5e9, "ns", "2.5 s"),
        (-2.5e9, "ns", "-2.5 s"),
        (3.25e9, "Hz", "3.25 GHz"),
        (205.44e9, "B/s", "205.4 GB/s"),
        (300_000.0, "MB/s", "300000 MB/s"),
        (2e9, "MB/s", "2e+09 MB/s"),
        (1e9, "MB/s", "1e+09 MB/s"),
        (0.9, "1", "0.9"),
        (4.2e10, "flop/s", "42 Gflop/s"),
        (7.0, "flop/s", "7 flop/s"),
    ],
)
def test_a_value_is_in_the_unit_that_keeps_it_short(value: float, unit: str, words: str) -> None:
    assert names.quantity(value, unit) == words


def test_operations_are_called_by_what_is_counted() -> None:
    assert names.of_measurement("1/s", "load-together") == "flop/s"
    assert names.of_measurement("1/s", "coherence-cas") == names.of_measurement("1/s", "no-such") == "1/s"
    assert names.of_measurement("ns", "load-together") == "ns"


def test_shares_have_as_many_digits_as_their_reader_needs() -> None:
    nothing = float("nan")
    assert (names.percent(0.0594), names.percent(-1e-9), names.percent(nothing)) == ("5.9%", "0.0%", "unknown")
    assert (names.signed(0.0594), names.signed(-0.02), names.signed(nothing)) == ("+5.9%", "-2.0%", "unknown")
    assert (names.whole_percent(0.814), names.whole_percent(nothing)) == ("81%", "")
    assert [names.tolerance(share) for share in (0.04, 0.0123, 0.1, 0.1234)] == ["4%", "1.2%", "10%", "12.3%"]
    assert names.moment("2026-03-03T14:20:59Z") == "2026-03-03 14:20"


@given(st.floats(0.001, 0.5), st.floats(1e-6, 0.5))
def test_a_difference_beyond_its_tolerance_is_printed_as_the_larger_one(tolerance: float, further: float) -> None:
    effect, limit = names.with_tolerance(-tolerance * (1 + further), tolerance)
    assert abs(float(effect.removesuffix("%"))) > float(limit.removesuffix("%"))
    assert float(names.times(tolerance * (1 + further), tolerance)) >= 1


def test_values_that_contradict_take_more_digits() -> None:
    assert names.with_tolerance(0.0401, 0.04) == ("+4.01%", "4%")
    assert names.with_tolerance(0.059, 0.04) == ("+5.9%", "4%")
    assert names.with_tolerance(0.0399, 0.04) == ("+4.0%", "4%"), "it is within its tolerance"
    assert names.with_limit(3.2004e9, 3.2e9, "Hz") == ("3.2004 GHz", "3.2 GHz")
    assert names.whole_percent(1.002) == "100.2%" and names.whole_percent(0.998) == "100%"


def test_how_many_times_its_tolerance_an_effect_is_follows_from_what_is_printed() -> None:
    assert (names.times(0.058, 0.04), names.times(-0.058, 0.04)) == ("1.5", "1.5")
    assert (names.times(4.0, 0.04), names.times(3.99, 0.04), names.times(0.5, 0.0)) == ("100", "99.8", "")
    assert names.interval(0.055, 0.062, 0.059) == names.interval(-0.055, -0.062, -0.059) == "5.5 to 6.2%"


@pytest.mark.parametrize(
    ("term", "where", "words"),
    [
        ("core", {"core": 37, "cpu": 37}, "core 37 (CPU 37)"),
        ("core", {"core": 37, "across": 1}, "core 37"),
        ("ccd", {"ccd": 3, "across": 0}, "CCD 3"),
        ("ccd", {"ccd": 3, "inside": 1}, "the inside of CCD 3"),
        ("ccx", {"ccx": 3}, "the inside of CCX 3"),
        ("block", {"ccd": 3, "to_ccd": 4}, "CCD 3 to CCD 4"),
        ("block", {"ccd": 3, "to_ccd": 3}, "the inside of CCD 3"),
        ("socket", {"socket": 1}, "socket 1"),
        ("socket", {"socket": 1, "beyond_class": 1}, "socket 1 beyond its CCXs"),
        ("node", {}, "the whole node"),
        ("class", {"class": 2}, "pairs of the same CCD"),
        ("class", {"class": "same socket", "socket": 1}, "pairs of the same socket on socket 1"),
        ("class", {"beyond_class": 1}, "everything beyond the CCX"),
        ("class", {}, "every pair"),
        ("fabric-link", {"node": "cn1", "to": "cn2", "sends": 1}, "cn1 to cn2"),
        ("fabric-node", {"node": "n" * 81}, "n" * 77 + "..."),
        ("fabric-node", {"node": "n" * 80}, "n" * 80),
        ("cache", {"core": 5, "cpu": 9, "level": "l3"}, "core 5 (CPU 9), L3"),
        ("cache", {"level": "x" * 81}, "x" * 77 + "..."),
        ("cache", {"size_bytes": 64}, "working set, bytes, 64"),
    ],
)
def test_a_part_in_words(term: str, where: dict[str, int | str], words: str) -> None:
    assert names.component(Component(term, term, where)) == words


def test_what_is_inside_a_part_is_not_in_its_inside() -> None:
    assert names.within(Component("ccd", "ccd", {"ccd": 3, "inside": 1})) == "inside CCD 3"
    assert names.within(Component("core", "core-near", {"core": 1})) == "in core 1 to the other cores of its socket"


@pytest.mark.parametrize(
    ("term", "component_type", "where", "words"),
    [
        ("core", "core-near", {"core": 1}, "to the other cores of its socket"),
        ("core", "core", {"core": 1, "across": 1}, "to the cores of the other socket"),
        ("core", "core-in", {"core": 1, "inside": "cluster"}, "to the other cores of its cluster"),
        ("ccd", "ccd", {"ccd": 1}, "to all others"),
        ("ccd", "ccd", {"ccd": 1, "across": 1}, "to the other socket"),
        ("ccd", "ccd", {"ccd": 1, "inside": 1}, ""),
        ("link", "link", {"quadrant": 1, "to_quadrant": 2}, ""),
        ("quadrant", "quadrant", {"quadrant": 1, "to_quadrant": 2}, ""),
        ("quadrant", "quadrant", {"quadrant": 1, "to_others": 1}, "to all others"),
    ],
)
def test_the_pairs_that_are_compared(term: str, component_type: str, where: dict[str, int | str], words: str) -> None:
    assert names.scope(Component(term, component_type, where)) == words


def test_pairs_of_a_class_are_several() -> None:
    assert names.is_plural(Component("class", "class", {"class": 2}))
    for where in ({}, {"class": 6}, {"class": 5, "to_socket": 1}, {"class": 2, "beyond_class": 1}):
        assert not names.is_plural(Component("class", "class", where))
    assert not names.is_plural(Component("core", "core", {"class": 2}))
    assert names.is_of_pairs(Component("core", "core", {})) and not names.is_of_pairs(Component("numa", "numa", {}))


def test_runs_are_folded_by_their_jobs() -> None:
    assert names.runs(["job1/run1", "job1/run2", "job2/run1"]) == "job1/run[1-2],job2/run1"
    assert names.runs(["run1", "run2"]) == "run[1-2]"
