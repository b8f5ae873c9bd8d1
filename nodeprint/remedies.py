"""What a finding may come from and what to do about it: the sentences of reports/, by the finding's term."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from nodeprint import sources


def of(term: str) -> str:
    """The remedy of a finding's term; that of `other` where the term has no sentence of its own."""
    known = _kept("remedies")
    return str(known.get(term, known["other"]))


def consistent_with(term: str) -> tuple[str, ...]:
    """What a finding of a term is consistent with; nothing where that is not known."""
    return tuple(map(str, _kept("consistent_with").get(term, ())))


@cache
def _kept(name: str) -> dict[str, Any]:
    text = (sources.folder() / "reports" / f"{name}.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))
