"""Every field that a kernel writes has a reader, or a line in docs/formats.md that says what it is good for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.real_parts import PACKAGES, ROOT

#: A member that C writes by itself, and a row of a table of fields.
_MEMBER = re.compile(r'\\"(\w+)\\":')
_FIELD = re.compile(r'\{\s*"(\w+)",\s*[A-Z_]+,\s*(?:DECIMALS|SIGNIFICANT)')
#: Rooms that write records: what they name is not read.
_WRITERS = ("simulate", "readers", "schemas")
_HEADING = "### Fields that only a researcher reads\n"


def written() -> set[str]:
    """The fields of all records of all kernels."""
    sources = (path for path in (ROOT / "kernels").glob("**/*.[ch]") if path.parent.name != "tests")
    names = {match for path in sources for regex in (_MEMBER, _FIELD) for match in regex.findall(path.read_text())}
    records = ast.parse((ROOT / "kernels/linktest/ranks.py").read_text())
    keys = (key for node in ast.walk(records) if isinstance(node, ast.Dict) for key in node.keys)
    return names | {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def words(path: Path) -> Iterator[str]:
    """Names that a module could look a field up by: words of its texts without blanks, and attributes of its types."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            yield from re.findall(r"\w+", node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def read() -> set[str]:
    """What nodeprint looks up, and what its tables of measurements name."""
    modules = (
        path
        for package in PACKAGES
        for path in (ROOT / package).glob("**/*.py")
        if path.relative_to(ROOT).parts[1] not in _WRITERS and path.name != "record_format.py"
    )
    tables = [*(ROOT / "kernels").glob("**/measurements.yaml"), *(ROOT / "nodeprint").glob("**/measurements.yaml")]
    return {word for path in modules for word in words(path)} | {
        word for path in tables for word in re.findall(r"\w+", path.read_text())
    }


def test_each_field_of_a_record_has_a_reader_or_a_use_that_is_documented() -> None:
    section = (ROOT / "docs/formats.md").read_text().partition(_HEADING)[2].partition("\n### ")[0]
    cells = (row.split("|")[1] for row in section.splitlines() if row.startswith("| `"))
    documented = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    fields = written()
    assert not fields - read() - documented, "neither read nor said what for"
    assert not documented - fields, "no kernel writes it"
