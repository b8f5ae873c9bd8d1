"""What things are called."""

import pytest

from nodeprint.judge.verdict import Part
from nodeprint.report import names


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (5.443e10, "1/s", "54.43 G/s"),
        (1.992e6, "1/s", "1.992 M/s"),
        (1.006e4, "1/s", "10.06 k/s"),
        (12.0, "1/s", "12 1/s"),
        (float("nan"), "1/s", "unknown"),
        (0.05, "share", "5 %"),
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
        ({"socket": 1, "memory_node": 0}, "memory of NUMA node 0, socket 1"),
        ({"cpu_node": 1, "memory_node": 0}, "memory of NUMA node 0 from the CPUs of NUMA node 1"),
    ],
)
def test_part_has_one_name_before_and_after_it_was_written(where: dict[str, int], words: str) -> None:
    for order in (where, dict(reversed(where.items()))):
        assert names.part(Part("memory", "socket", order)) == words
        assert names.place(order) == words


def test_an_interval_says_which_runs_it_is_of() -> None:
    assert names.over_runs(56.8, 66.7, "ns", 3) == "56.8 to 66.7 ns"
    assert names.over_runs(59.5, 61.5, "ns", 6, 1) == "59.5 to 61.5 ns (5 of 6 runs)"
    assert names.over_runs(26, 122, "ns", 2, 2) == "26 to 122 ns (runs differ)"
    assert names.over_runs(float("nan"), float("nan"), "ns", 1) == ""


def test_a_file_has_its_nodes_name_or_one_that_can_be_a_files() -> None:
    assert names.file_stem("cn-01.site_2") == "cn-01.site_2"
    assert names.file_stem("a" * 200) == "a" * 200
    cut = names.file_stem("a/" * 100)
    assert cut.startswith("a_" * 40 + "-") and len(cut) == 80 + 1 + 8
    assert all(names.file_stem(name) != name for name in ("cluster", "figures", ".hidden", "a" * 201))
    assert names.file_stem("a/b") != names.file_stem("a_b") != names.file_stem("a:b") != names.file_stem("a/b")
