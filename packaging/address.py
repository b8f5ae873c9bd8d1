"""The project's address, in one place: packaging/ADDRESS, which is empty until the project has one.

    echo https://git.site/group/nodeprint >packaging/ADDRESS && python packaging/address.py

writes it into every file that names it. Where a file has a comment `address: TEXT` (also of HTML), the line after it is
TEXT with the address in the place of @; while there is no address, no such line is there.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: The files that name the address.
FILES = (
    "README.md",
    "pyproject.toml",
    "CITATION.cff",
    "ansible/galaxy.yml",
    "packaging/conda/recipe.yaml",
    "packaging/easybuild/nodeprint-0.1.0-foss-2025b.eb",
    "packaging/spack/spack_repo/nodeprint/packages/nodeprint/package.py",
)
_WANTED = re.compile(r"^(?P<indent> *)(?:# |<!-- )address: (?P<text>.*?)(?: -->)?$")


def written(text: str, address: str) -> str:
    """The text of a file with `address`, without any where that is empty."""
    out: list[str] = []
    made = re.compile("(?!)")  # nothing
    for line in text.splitlines():
        if made.fullmatch(line):
            made = re.compile("(?!)")
            continue
        out.append(line)
        made = re.compile("(?!)")
        if wanted := _WANTED.match(line):
            before, _, after = wanted["text"].partition("@")
            made = re.compile(re.escape(wanted["indent"] + before) + r"\S*" + re.escape(after))
            if address:
                out.append(wanted["indent"] + before + address + after)
    return "\n".join(out) + "\n"


def main() -> None:
    """Write the address into every file that names it."""
    address = (ROOT / "packaging/ADDRESS").read_text().strip().rstrip("/")
    for name in FILES:
        path = ROOT / name
        if (text := written(path.read_text(), address)) != path.read_text():
            path.write_text(text)


if __name__ == "__main__":
    main()
