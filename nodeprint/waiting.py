"""Progress of long work on stderr, after two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from nodeprint.settings.texts import say

T = TypeVar("T")

#: Seconds before the first word, between two words on a terminal, and between two lines in a file.
_FIRST, _TERMINAL, _FILE = 2.0, 0.5, 30.0


def counted(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """`items` with a progress line on stderr: `nodeprint: 120 of 1000 nodes read, about 40 s left`.

    In a file a last line says that all are done.
    """
    begun = time.monotonic()
    due, said = begun + _FIRST, False
    terminal = sys.stderr.isatty()
    for number, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now < due or number == total:
            continue
        left = (now - begun) / number * (total - number)
        text = f"nodeprint: {say('waiting', done=number, total=total, what=what, seconds=f'{left:.0f}')}"
        print(f"\r{text}\x1b[K" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)
        due, said = now + (_TERMINAL if terminal else _FILE), True
    if said:
        end = "\r\x1b[K" if terminal else f"nodeprint: {say('waited', total=total, what=what)}\n"
        print(end, end="", file=sys.stderr, flush=True)
