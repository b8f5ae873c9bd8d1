"""The notes of a release: its section of CHANGELOG.md, without the heading.

python packaging/release_notes.py 0.1.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def notes(changelog: str, version: str) -> str:
    """The section of a version; an empty text if there is none."""
    _, *sections = re.split(r"^## ", changelog, flags=re.MULTILINE)
    for section in sections:
        heading, _, text = section.partition("\n")
        if heading.split()[0] == version:
            return text.strip() + "\n"
    return ""


if __name__ == "__main__":
    text = notes(CHANGELOG.read_text(), sys.argv[1])
    if not text.strip():
        sys.exit(f"{CHANGELOG}: no section `## {sys.argv[1]}`. Write the notes of the release there.")
    print(text, end="")
