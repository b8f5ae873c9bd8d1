"""What is written below figures: the sentences of reports/captions.yaml."""

from __future__ import annotations

from functools import cache

import yaml

from nodeprint import sources


def of(name: str, /, **values: object) -> str:
    """The caption `name` with its `values` filled in."""
    return _sentences()[name].format(**values)


@cache
def _sentences() -> dict[str, str]:
    text = (sources.folder() / "reports" / "captions.yaml").read_text(encoding="utf-8")
    return {str(name): str(sentence) for name, sentence in yaml.safe_load(text).items()}
