"""A terminal that is the same however the tests are started: pytest-xdist leaves its workers another width."""

import pytest


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences are compared whole; tests of the width set their own."""
    monkeypatch.setenv("COLUMNS", "2000")
