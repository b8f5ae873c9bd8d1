"""The map of the package, as nodeprint/README.md: each room and each module by the first sentence that it says of
itself, from the command line down to what imports nothing; then the add-ons.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, ADDONS = ROOT / "nodeprint", ROOT / "nodeprint_addons"
_OF_ADDONS = "Above all of this: an add-on imports the core, and neither the core nor another add-on imports it."
#: From the top down; a module imports what is in its own line or below, which tests/house/test_house.py holds.
FLOORS = (
    ("__main__",),
    ("cli",),
    ("interface",),
    ("here",),
    ("history",),
    ("report",),
    ("summary",),
    ("judge",),
    ("readers",),
    ("structure", "simulate"),
    ("data",),
    ("campaign",),
    ("machine",),
    ("waiting",),
    ("settings",),
    ("stats",),
    ("files", "reading", "processes", "addons"),
    ("errors",),
)
#: The rooms of a room, from the top down.
INSIDE = {"data": ("export", "store", "job", "places", "format")}


def first_sentence(path: Path) -> str:
    """What a module or a room says of itself first; a module that says nothing is refused."""
    words = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split())
    if not words:
        raise ValueError(f"{path} has no docstring: say in a sentence what is in it")
    return re.split(r"(?<=\.) (?=[A-Z`])", words)[0]


def page() -> str:
    """The map, a heading for each room and a line for each of its modules."""
    out = [
        "# The map of the package",
        "",
        "Made from the modules' own first sentences by `python docs/hooks.py`.",
        "Imports go down this page only.",
    ]
    for room in (room for floor in FLOORS for room in floor):
        alone = PACKAGE / f"{room}.py"
        out += ["", f"## {room}{'' if alone.exists() else '/'}"]
        out += [first_sentence(alone)] if alone.exists() else _modules(PACKAGE / room)
    out += ["", "# Add-ons", "", "An add-on imports the core and itself. The core imports no add-on."]
    for addon in sorted(path.parent for path in ADDONS.glob("*/__init__.py")):
        out += ["", f"## {addon.relative_to(ROOT)}/", *_modules(addon)]
    return "\n".join(out) + "\n"


def _modules(folder: Path) -> list[str]:
    """What a room says of itself, and its modules, those of its folders below it."""
    inside = INSIDE.get(folder.name, ())

    def order(path: Path) -> tuple[int, Path]:
        room = path.relative_to(folder).parts[0]
        return inside.index(room) if room in inside else len(inside), path

    lines = [first_sentence(folder / "__init__.py"), ""]
    for path in sorted(folder.rglob("*.py"), key=order):
        name = path.relative_to(folder).with_suffix("").as_posix().removesuffix("__init__")
        if name:
            lines.append(f"- `{name}`: {first_sentence(path)}")
    return lines
