"""What is said of a golden campaign: made in a temporary folder, kept in `expected`, compared with what is kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path

from tests.golden import summary
from tests.golden.campaigns import CAMPAIGNS, PUBLISHED
from tests.golden.stage import Stage, elsewhere

EXPECTED = Path(__file__).parent / "expected"


def names() -> list[str]:
    """All campaigns that can be made here."""
    return [*CAMPAIGNS, *(PUBLISHED if os.environ.get("NODEPRINT_DATA") else ())]


def artifacts(name: str) -> Mapping[str, str]:
    """Make a campaign and return everything that is said of it."""
    data = os.environ.get("NODEPRINT_DATA")
    with tempfile.TemporaryDirectory(prefix="nodeprint-golden-") as folder:
        if data and name in PUBLISHED:
            Path(folder, "data").symlink_to(Path(data).resolve())
        stage = Stage()
        with elsewhere(Path(folder)):
            (CAMPAIGNS | PUBLISHED)[name](stage)
            return stage.artifacts()


def kept(name: str) -> str:
    """What is kept of a campaign, as one text."""
    return "\n".join(_parts(artifacts(name)))


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
    """How what is said of a campaign differs from what is kept."""
    path = EXPECTED / f"{name}.txt"
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    before, now = (text.splitlines(keepends=True) for text in (expected, kept(name)))
    return unified_diff(before, now, f"expected/{name}.txt", "now", n=1)


def save(name: str, folder: Path) -> None:
    """Write everything that is said of a campaign in full, a file for each artifact."""
    for artifact, text in artifacts(name).items():
        path = folder / name / artifact
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(summary.long(artifact, text), encoding="utf-8")
