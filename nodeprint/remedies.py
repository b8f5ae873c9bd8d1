"""What to do about a finding: the sentences of reports/remedies.yaml."""

from __future__ import annotations

from functools import cache

import yaml

from nodeprint import sources


def of(term: str) -> str:
    """The remedy of a finding's term; that of `other` where the term has no sentence of its own."""
    known = _sentences()
    return known.get(term, known["other"])


@cache
def _sentences() -> dict[str, str]:
    text = (sources.folder() / "reports" / "remedies.yaml").read_text(encoding="utf-8")
    return {str(term): str(sentence) for term, sentence in yaml.safe_load(text).items()}
