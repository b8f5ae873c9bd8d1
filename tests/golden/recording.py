"""What is said of a golden campaign: made in a temporary folder, kept in `expected`, compared with what is kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from tests.golden import summary
from tests.golden.campaigns import CAMPAIGNS, PUBLISHED, Make
from tests.golden.stage import Stage, elsewhere
from tests.numbers import check

EXPECTED = Path(__file__).parent / "expected"


def names() -> list[str]:
    """All campaigns that can be made here."""
    return [*CAMPAIGNS, *(PUBLISHED if os.environ.get("NODEPRINT_DATA") else ())]


class Made(NamedTuple):
    """Everything that is said of a campaign, and what the numbers in it have to come from."""

    artifacts: Mapping[str, str]
    sources: Mapping[str, str]


def made(name: str) -> Made:
    """Make a campaign."""
    return of_stage((CAMPAIGNS | PUBLISHED)[name], with_data=name in PUBLISHED)


def of_stage(make: Make, *, with_data: bool = False) -> Made:
    """Make a campaign and return its output and sources; `with_data` it finds the published data."""
    data = os.environ.get("NODEPRINT_DATA")
    with tempfile.TemporaryDirectory(prefix="nodeprint-golden-") as folder:
        if data and with_data:
            Path(folder, "data").symlink_to(Path(data).resolve())
        stage = Stage()
        with elsewhere(Path(folder)):
            make(stage)
            return Made(stage.artifacts(), stage.sources())


def kept(name: str) -> str:
    """What is kept of a campaign, as one text."""
    return _in_short(made(name))


def _in_short(of: Made) -> str:
    return "\n".join(_parts(of.artifacts))


def _parts(of_campaign: Mapping[str, str]) -> Iterator[str]:
    shown: set[str] = set()
    for name, text in of_campaign.items():
        lines = summary.short(name, text).splitlines()
        if name.endswith((".html", ".pdf")):  # a page of paper says little that the other does not
            new = [line for line in lines if line not in shown]
            shown.update(lines)
            lines = [*new, *([f"({len(lines) - len(new)} lines that are above)"] if len(new) < len(lines) else [])]
        yield "\n".join((f"=== {name} ===", *lines, ""))


def write(name: str) -> None:
    """Keep what is said of a campaign."""
    EXPECTED.mkdir(exist_ok=True)
    (EXPECTED / f"{name}.txt").write_text(kept(name), encoding="utf-8")


def difference(name: str) -> Iterator[str]:
    """How what is said of a campaign differs from what is kept, and the numbers in it that have no source."""
    path = EXPECTED / f"{name}.txt"
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    campaign = made(name)
    before, now = (text.splitlines(keepends=True) for text in (expected, _in_short(campaign)))
    yield from unified_diff(before, now, f"expected/{name}.txt", "now", n=1)
    yield from (f"{name}: {line}" for line in check.without_source(campaign.artifacts, check.Defects(*campaign)))


def save(name: str, folder: Path) -> None:
    """Write everything that is said of a campaign in full, a file for each artifact."""
    for artifact, text in made(name).artifacts.items():
        path = folder / name / artifact
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(summary.long(artifact, text), encoding="utf-8")
