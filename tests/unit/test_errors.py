"""Texts of errors on terminals and pages."""

import pytest

from nodeprint.errors import printable


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("node cn017 takes 12345 ns", 25, "node cn017 takes 12345 ns"),
        ("node cn017 takes 12345 ns", 23, "node cn017 takes..."),
        ("node cn017 takes 12345 ns", 24, "node cn017 takes..."),
        ("takes 12345 ns or more", 16, "takes 12345..."),
        ("x" * 30, 10, "xxxxxxx..."),
        (f"a {'y' * 60}", 50, f"a {'y' * 45}..."),
        ("a\nb", 10, "a?b"),
    ],
)
def test_a_text_is_cut_between_words_and_never_within_a_number(text: str, limit: int, shown: str) -> None:
    assert printable(text, limit) == shown
