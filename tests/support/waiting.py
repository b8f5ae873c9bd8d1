"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 300) -> Any:
    """The first true value of `condition`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        asked = time.monotonic()
        value = condition()
        if value:
            return value
        # a program that is called to ask has a fifth of a CPU at most: what is waited for needs the rest
        time.sleep(max(0.02, 4 * (time.monotonic() - asked)))
    pytest.fail(f"not within {seconds} s: {what}")
